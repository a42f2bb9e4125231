//! Policy `self`: a model on a server decides when to retrieve.

use std::path::Path;

use crate::support::completion;
use crate::support::server::{Request, next_token, ok, refusal, server};
use crate::support::{Place, parse_jsonl};
use serde_json::{Value, json};

/// One model decides, another completes (the paper's table 4).
#[test]
fn a_policy_has_a_server_of_its_own() {
    let place = Place::new();
    let (large, of_large) = server(|_| completion("x"));
    let (small, of_small) = server(|request| match request.path.as_str() {
        "/tokenize" => ok(&json!({"tokens": [7]})),
        _ => next_token(7, if request.prompt().contains("store_11") { -0.1 } else { -3.0 }),
    });
    let run = [
        "run", "--unit", "chunks", "--mode", "none,rg1", "--endpoint", &large, "--model", "large",
        "--max-tokens", "8", "--policy", "self", "--format", "jsonl", "--cache-dir", "cache",
    ];
    let with = |more: &[&'static str], url: &str| {
        let policy = ["--policy-endpoint".to_owned(), url.to_owned()];
        let all = run.iter().map(ToString::to_string).chain(policy);
        let all: Vec<String> = all.chain(more.iter().map(ToString::to_string)).collect();
        place.stage(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // Before anything is completed.
    with(&["--policy-model-name", "small"], "http://127.0.0.1:1").failed().says(&["127.0.0.1:1"]);
    assert_eq!(of_large.lock().unwrap().len(), 0);
    with(&[], &small).failed().says(&["--policy-model-name is not"]);
    let ran = with(&["--policy-model-name", "small"], &small).done();
    let row = parse_jsonl(&ran.stdout).pop().unwrap();
    assert!((row["with_retrieved"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{row}");
    assert!(row["latency_ms"].is_number(), "{row}");
    let biased = |request: &Request| request.body.get("logit_bias").is_some();
    assert!(!of_large.lock().unwrap().iter().any(biased));
    let seen: Vec<Request> = of_small.lock().unwrap().drain(..).collect();
    let asked: Vec<&Request> = seen.iter().filter(|request| biased(request)).collect();
    assert_eq!(asked.len(), 3);
    for request in asked {
        assert_eq!(request.body["model"], "small");
        assert!(request.prompt().starts_with("<fim_prefix>"), "in the style of Repoformer");
    }
    // Kept: nothing is asked again.
    let again = with(&["--policy-model-name", "small"], &small).done();
    assert_eq!(parse_jsonl(&again.stdout).pop().unwrap(), row);
    assert!(of_small.lock().unwrap().iter().all(|request| !biased(request)));
    // Right contexts are there for it where the other model's style shows none.
    let mut windows: Vec<&str> = run.to_vec();
    windows.retain(|one| !matches!(*one, "--unit" | "chunks"));
    let own =
        ["--policy-endpoint", &small, "--policy-model-name", "small", "--cache-dir", "windows"];
    windows.retain(|one| !matches!(*one, "--cache-dir" | "cache"));
    let ran = place.stage(&[&windows[..], &own].concat()).done();
    let row = parse_jsonl(&ran.stdout).pop().unwrap();
    assert!((row["with_retrieved"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{row}");
    let shows =
        |request: &Request| biased(request) && !request.prompt().contains("<fim_suffix><eof>");
    assert!(of_small.lock().unwrap().iter().any(shows), "right contexts");
    // Its key is not the other server's.
    let policy = ["--policy-endpoint", &small, "--policy-model-name", "small"];
    let line = format!("repoformer {}", place.args(&[&run[..], &policy].concat()).join(" "));
    place
        .shell_with(&line, &[("REPOFORMER_API_KEY", "secret")])
        .failed()
        .says(&["REPOFORMER_POLICY_API_KEY is not set"]);
}

/// A server without `/tokenize`: the message names that cause, and the model's tokenizer has the token's number.
#[test]
fn a_token_that_the_server_does_not_know_is_found_in_the_tokenizer() {
    let place = Place::new();
    let (url, seen) = server(|request| match &*request.path {
        "/tokenize" => refusal("404 Not Found", "no such page"),
        _ if request.body.get("logit_bias").is_some() => next_token(7, -0.8),
        _ => completion("\nx"),
    });
    let run = [
        "run",
        "--unit",
        "chunks",
        "--prompt-style",
        "starcoder",
        "--mode",
        "none,rg1",
        "--endpoint",
        &url,
        "--model",
        "tiny",
        "--max-tokens",
        "8",
        "--policy",
        "self@greedy,always,self@0.3",
        "--format",
        "jsonl",
    ];
    let ran = place.stage(&run).partly();
    let ran = ran.silent_on("it needs a model on a server").says(&[
        "tasks self@greedy, self@0.3: left out: ",
        "/tokenize: the server does not say which token \"<cc>\" is",
        "name the model's tokenizer.json with --tokenizer FILE",
    ]);
    assert_eq!(ran.stderr.matches("does not say which token").count(), 1, "{}", ran.stderr);
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers/starcoder.json");
    let mut tokenizer: Value = serde_json::from_slice(&std::fs::read(fixture).unwrap()).unwrap();
    let added = tokenizer["added_tokens"].as_array().unwrap();
    let mut own = added.last().unwrap().clone();
    own["content"] = "<cc>".into();
    let ids = added.iter().map(|token| token["id"].as_u64().unwrap());
    let vocabulary = tokenizer["model"]["vocab"].as_object().unwrap();
    let ids = ids.chain(vocabulary.values().map(|id| id.as_u64().unwrap()));
    let id = ids.max().unwrap() + 1;
    own["id"] = id.into();
    tokenizer["added_tokens"].as_array_mut().unwrap().push(own);
    place.write("tokenizer.json", tokenizer.to_string());
    seen.lock().unwrap().clear();
    place.stage(&[&run[..], &["--tokenizer", "tokenizer.json"]].concat());
    let seen = seen.lock().unwrap();
    let asked = seen.iter().filter_map(|request| request.body.get("logit_bias"));
    let asked: Vec<&Value> = asked.collect();
    assert!(!asked.is_empty() && asked.iter().all(|bias| bias.get(id.to_string()).is_some()));
}

/// Policy self goes by what the model says of `<cc>`: `run` asks the server, and a file of the answers serves labels.
#[test]
fn a_model_decides_by_itself() {
    let place = Place::new();
    // Asks for retrieval in the first task alone.
    let (url, seen) = server(|request| {
        if request.path == "/tokenize" {
            return ok(&json!({"tokens": [7]}));
        }
        let is_first = request.prompt().contains("store_11");
        if request.body.get("logit_bias").is_none() {
            return if request.body["max_tokens"] == 1 {
                next_token(if is_first { 7 } else { 9 }, -0.8)
            } else {
                completion("\nx")
            };
        }
        next_token(7, if is_first { -0.8 } else { -3.0 })
    });
    let run = [
        "run", "--unit", "chunks", "--prompt-style", "starcoder", "--mode", "none,rg1",
        "--endpoint", &url, "--model", "tiny", "--max-tokens", "8", "--policy",
        "self@greedy,self@0.3", "--format", "jsonl", "--cache-dir", "cache",
    ];
    let ran = place.stage(&run).done();
    let mut rows = parse_jsonl(&ran.stdout);
    let of_self = rows.pop().unwrap();
    let greedy = rows.pop().unwrap();
    for (row, name) in [(&greedy, "self@greedy"), (&of_self, "self@0.3")] {
        assert_eq!(row["mode"], name);
        assert!((row["with_retrieved"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert!(row["latency_ms"].is_number() && row["speedup"].is_number(), "{row}");
    }
    let decisions = place.records(&place.named("cache/latency/tasks", "decision-none"));
    assert!(decisions.len() == 3 && decisions.iter().all(|one| one["decision_ms"].is_number()));
    let asked = |request: &&Request| request.body.get("logit_bias").is_some();
    let ends = |request: &Request| request.prompt().ends_with("<eof>");
    let all_seen = seen;
    let seen: Vec<Request> = all_seen.lock().unwrap().drain(..).collect();
    assert_eq!(seen.iter().filter(asked).count(), 3);
    assert!(seen.iter().filter(asked).all(ends));
    let again = place.stage(&run).done();
    let again = parse_jsonl(&again.stdout).pop().unwrap();
    assert_eq!(again, of_self, "{again} {of_self}");
    crate::cli_policy::train_self_scored(&place, "joined.json");
    let mut joined = run.to_vec();
    joined[14] = "self-scored@0.5";
    joined.extend(["--policy-model", "joined.json"]);
    let joined = parse_jsonl(&place.stage(&joined).done().stdout).pop().unwrap();
    assert_eq!(joined["with_retrieved"], of_self["with_retrieved"], "{joined}");
    assert!(joined["latency_ms"].is_number(), "{joined}");
    let file = |kind: &str, mode: &str| place.named(&format!("cache/{kind}/tasks"), mode);
    let probabilities = file("probabilities", "none");
    let (base, rag) = (file("predictions", "none"), file("predictions", "rg1"));
    let judge = [
        &crate::support::judge("tasks.jsonl", &base, &rag)[..],
        &["-o", "labels.jsonl", "--probabilities"],
    ]
    .concat();
    place.run(&[&judge[..], &[&probabilities]].concat()).done();
    let labels = place.records("labels.jsonl");
    let said: Vec<f64> =
        labels.iter().map(|label| libm::log(label["cc_probability"].as_f64().unwrap())).collect();
    assert!((said[0] + 0.8).abs() < 1e-9 && (said[2] + 3.0).abs() < 1e-9, "{said:?}");
    let greedy: Vec<&Value> = labels.iter().map(|label| &label["cc_likeliest"]).collect();
    assert_eq!(greedy, [&json!(true), &json!(false), &json!(false)]);
    let policies = "self,self@greedy";
    place.run(&["policy", "sweep", "--labels", "labels.jsonl", "--policy", policies]).done();
    // Of an instance without one, all that nobody asked for is swept.
    let mut some = labels;
    some[1].as_object_mut().unwrap().shift_remove("cc_probability");
    place.write("some.jsonl", crate::support::jsonl(&some));
    let sweep = ["policy", "sweep", "--labels", "some.jsonl"];
    let ran = place.run(&sweep).done();
    ran.says(&["policy self is left out: 1 of 3 instances lacks cc_probability"]);
    // Files that are something else are told from probabilities.
    place
        .run(&[&judge[..], &[&base]].concat())
        .failed()
        .says(&["'next_token.probability' must be a number from 0 to 1"]);
    let one = place.read(&probabilities);
    place.write("one.jsonl", one.lines().next().unwrap());
    place
        .run(&[&judge[..], &["one.jsonl"]].concat())
        .done()
        .says(&["2 of 3 instances have no probability"]);
    assert!(all_seen.lock().unwrap().is_empty(), "what is known is not asked for again");
    let given = [&run[..], &["--probabilities", &probabilities]].concat();
    let again = place.stage(&given).done();
    let again = parse_jsonl(&again.stdout).pop().unwrap();
    // A file does not tell what the decisions took.
    let mut untimed = of_self;
    untimed.as_object_mut().unwrap().retain(|key, _| key != "latency_ms" && key != "speedup");
    assert_eq!(again, untimed);
}
