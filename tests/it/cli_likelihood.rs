//! `complete --likelihood` through the binary, and labels by it.

use serde_json::{Value, json};

use crate::support::completion;
use crate::support::server::{ok, refusal, server};
use crate::support::{Place, TARGETS, jsonl, judge, parse_jsonl};

/// A place with the prompts of three tasks.
fn prompted() -> Place {
    let place = Place::new();
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place
}

fn likelihood<'a>(mode: &'a str, file: &'a str) -> [&'a str; 6] {
    ["complete", "--likelihood", "--mode", mode, "-o", file]
}

#[test]
fn the_embedded_model_gives_each_target_a_probability() {
    let place = prompted();
    for (mode, file) in [("none", "none.jsonl"), ("rg1", "rg1.jsonl"), ("rg1", "again.jsonl")] {
        place.stage(&likelihood(mode, file)).done().says(&["3 likelihoods"]);
    }
    assert_eq!(place.read("rg1.jsonl"), place.read("again.jsonl"));
    let found = place.records("rg1.jsonl");
    for (row, (line, task)) in found.iter().zip(place.records("tasks.jsonl")).enumerate() {
        let target = task["metadata"]["ground_truth"].as_str().unwrap();
        let log = line["log_probability"].as_f64().unwrap();
        let characters = target.chars().count();
        assert_eq!(
            (&line["task_id"], &line["row"], &line["characters"], &line["tokens"]),
            (&json!(TARGETS[row].0), &json!(row), &json!(characters), &Value::Null)
        );
        assert!(log < 0.0);
        let per_character = line["likelihood"]["per_character"].as_f64().unwrap();
        assert!((per_character - libm::exp(log / characters as f64)).abs() < 1e-12);
        let bits = line["bits_per_character"].as_f64().unwrap();
        assert!((bits + libm::log2(per_character)).abs() < 1e-9);
        assert_eq!(line["asked"]["model"], "in-context");
    }
    // They are scores.
    let compare = ["compare", "none.jsonl", "rg1.jsonl", "--format", "json"];
    let compared: Value = serde_json::from_str(&place.run(&compare).done().stdout).unwrap();
    let measures = compared["measures"].as_array().unwrap();
    let [measure] = &measures[..] else { panic!("{compared}") };
    assert_eq!(
        (&measure["measure"], &measure["n"]),
        (&json!("likelihood.per_character"), &json!(3))
    );
    // What the prompts repeat becomes likelier.
    assert!(measure["difference"]["mean"].as_f64().unwrap() > 0.0, "{measure}");
}

#[test]
fn records_without_a_probability_are_named() {
    let place = prompted();
    let record = |id: &str, prompt: &str, target: Value| json!({"prompt": prompt, "metadata": {"task_id": id, "ground_truth": target}});
    place.write(
        "prompts.jsonl",
        jsonl(&[
            record("whole", "a = 1\n", json!("b = 1")),
            record("within", "a = 1\nb", json!(" = 1")),
            record("none", "a = 1\n", Value::Null),
            record("empty", "a = 1\n", json!("")),
            json!({"prompt": "a = 1\n", "metadata": {"ground_truth": "b"}}),
        ]),
    );
    let run = ["complete", "--likelihood", "--prompts", "prompts.jsonl", "-o", "out.jsonl"];
    place.run(&run).partly().says(&[
        "prompts.jsonl:2: the prompt ends within a line",
        "prompts.jsonl:3: field 'metadata.ground_truth' is missing",
        "prompts.jsonl:4: the target is empty",
        "prompts.jsonl:5: field 'metadata.task_id' is missing",
        "1 likelihoods",
    ]);
    let found = place.records("out.jsonl");
    assert_eq!((found.len(), &found[0]["task_id"]), (1, &json!("whole")));
    for flags in [["--max-tokens", "9"], ["--samples", "3"], ["--until", "tokens"]] {
        place.run(&[&run[..], &flags].concat()).failed().says(&["cannot be used with"]);
    }
}

#[test]
fn a_server_gives_the_probability_of_the_targets_tokens() {
    let place = prompted();
    // A token a byte.
    let (url, seen) = server(|request| match request.path.as_str() {
        "/tokenize" => ok(&json!({"tokens": request.prompt().bytes().collect::<Vec<u8>>()})),
        _ => {
            let numbers = request.body["prompt"].as_array().unwrap();
            let entry = |(place, number): (usize, &Value)| {
                let byte = u8::try_from(number.as_u64().unwrap()).unwrap();
                let text = char::from(byte).to_string();
                match place {
                    0 => Value::Null,
                    _ => json!({ number.to_string(): {"logprob": -0.25, "decoded_token": text} }),
                }
            };
            let found: Vec<Value> = numbers.iter().enumerate().map(entry).collect();
            ok(&json!({"choices": [{"index": 0, "text": "x", "prompt_logprobs": found}]}))
        }
    });
    let ask =
        [&likelihood("none", "none.jsonl")[..], &["--endpoint", &url, "--model", "m"]].concat();
    place.stage(&ask).done();
    let found = place.records("none.jsonl");
    for (line, task) in found.iter().zip(place.records("tasks.jsonl")) {
        let bytes = task["metadata"]["ground_truth"].as_str().unwrap().len();
        assert_eq!(line["tokens"], bytes);
        assert_eq!(line["log_probability"], -0.25 * bytes as f64);
    }
    // Each is asked for once.
    let asked = seen.lock().unwrap().len();
    place.stage(&ask).done();
    // A greeting, and no more.
    assert!(seen.lock().unwrap().len() <= asked + 1);
    assert_eq!(found, place.records("none.jsonl"));

    let (deaf, _) = server(|request| match request.path.as_str() {
        "/tokenize" => refusal("404 Not Found", "no such page"),
        _ => completion("x"),
    });
    let ask =
        [&likelihood("none", "no.jsonl")[..], &["--endpoint", &deaf, "--model", "n"]].concat();
    place.stage(&ask).partly().says(&[
        "does not return the probabilities of a prompt",
        "echo: the answer has no log-probabilities",
        "llama.cpp's server and Ollama do not",
    ]);
}

#[test]
fn a_batch_asks_for_the_probability_of_the_targets() {
    let place = prompted();
    let of = |more: &[&'static str]| {
        let flags = ["complete", "--likelihood", "--mode", "none", "--model", "m"];
        [&flags[..], more].concat()
    };
    place.stage(&of(&["--write-batch", "b.jsonl"])).done().says(&["3 requests"]);
    let requests = place.records("b.jsonl");
    let targets: Vec<String> = place
        .records("tasks.jsonl")
        .iter()
        .map(|task| task["metadata"]["ground_truth"].as_str().unwrap().to_owned())
        .collect();
    // Tokens of four characters, the last one another text's.
    let told = |request: &Value, prompt: &str| {
        let text: Vec<char> = format!("{prompt}more").chars().collect();
        let tokens: Vec<String> = text.chunks(4).map(|piece| piece.iter().collect()).collect();
        let chance = |at: usize| if at == 0 { Value::Null } else { json!(-0.5) };
        let chances: Vec<Value> = (0..tokens.len()).map(chance).collect();
        let logprobs = json!({"tokens": tokens, "token_logprobs": chances});
        let choice = json!({"index": 0, "text": "x", "logprobs": logprobs});
        json!({"custom_id": request["custom_id"], "error": null,
            "response": {"status_code": 200, "body": {"choices": [choice]}}})
    };
    let mut answers = Vec::new();
    for (request, target) in requests.iter().zip(&targets) {
        let body = &request["body"];
        let prompt = body["prompt"].as_str().unwrap();
        assert!(prompt.ends_with(target), "{body}");
        assert_eq!(
            (&body["echo"], &body["logprobs"], &body["max_tokens"]),
            (&json!(true), &json!(1), &json!(1))
        );
        answers.push(told(request, prompt));
    }
    // One echoes another text.
    answers[2] = told(&requests[2], requests[1]["body"]["prompt"].as_str().unwrap());
    place.write("a.jsonl", jsonl(&answers));
    place.stage(&of(&["--read-batch", "a.jsonl", "-o", "out.jsonl"])).partly().says(&[
        "2 answers, 1 failures",
        "the tokens of the answer are not those of the prompt",
        "2 likelihoods",
    ]);
    let found = place.records("out.jsonl");
    for ((line, request), target) in found.iter().zip(&requests).zip(&targets) {
        let whole = request["body"]["prompt"].as_str().unwrap().chars().count();
        let begin = whole - target.chars().count();
        let tokens = (whole - 1) / 4 - begin / 4 + 1;
        assert_eq!(line["tokens"], tokens);
        assert_eq!(line["log_probability"], -0.5 * tokens as f64);
    }
    // A character of two tokens, the second without a text; and a token that is none.
    let prompt = requests[2]["body"]["prompt"].as_str().unwrap();
    let begin = prompt.len() - targets[2].len();
    let echoed = |last: Value| {
        let tokens = json!([&prompt[..begin], &prompt[begin..], last, "more"]);
        let logprobs = json!({"tokens": tokens, "token_logprobs": [null, -1.0, -2.0, -4.0]});
        let choice = json!({"index": 0, "text": "x", "logprobs": logprobs});
        json!({"custom_id": requests[2]["custom_id"], "error": null,
            "response": {"status_code": 200, "body": {"choices": [choice]}}})
    };
    let read = of(&["--read-batch", "a.jsonl", "-o", "out.jsonl"]);
    place.write("a.jsonl", jsonl(&[echoed(Value::Null)]));
    place.stage(&read).partly().says(&["not a text and a log-probability for each token"]);
    place.write("a.jsonl", jsonl(&[echoed("".into())]));
    place.stage(&read).done();
    assert_eq!(place.records("out.jsonl")[2]["log_probability"], -3.0);
    // What failed is answered by another batch.
    answers[2] = told(&requests[2], prompt);
    place.write("a.jsonl", jsonl(&answers));
    place
        .stage(&of(&["--read-batch", "a.jsonl", "-o", "out.jsonl"]))
        .done()
        .says(&["3 likelihoods"]);
    place.stage(&of(&["--write-batch", "b.jsonl"])).done().says(&["0 requests (3 prompts"]);
    // A completion is no answer to it.
    let completing = ["complete", "--mode", "none", "--model", "m", "--read-batch", "a.jsonl"];
    place.stage(&completing).partly().says(&["belongs to none of these prompts"]);
}

#[test]
fn labels_go_by_the_probability_of_the_target() {
    let place = prompted();
    place.stage(&["complete", "--mode", "none,rg1"]).done();
    for mode in ["none", "rg1"] {
        place.stage(&likelihood(mode, &format!("{mode}.jsonl"))).done();
    }
    let prompts = place.named("cache/prompts/tasks", "rg1");
    let flags = ["--prompts", &prompts, "--metric", "likelihood", "-o", "labels.jsonl"];
    let judged =
        |base: &str, rag: &str| place.run(&[&judge("tasks.jsonl", base, rag)[..], &flags].concat());
    judged("none.jsonl", "rg1.jsonl").done().says(&["3 instances by likelihood"]);
    let (labels, none, rg1) =
        (place.records("labels.jsonl"), place.records("none.jsonl"), place.records("rg1.jsonl"));
    for (row, label) in labels.iter().enumerate() {
        let of = |file: &[Value]| file[row]["likelihood"]["per_character"].as_f64().unwrap();
        let (without, with) = (of(&none), of(&rg1));
        assert_eq!(
            (label["likelihood_infile"].as_f64(), label["likelihood_rg1"].as_f64()),
            (Some(without), Some(with))
        );
        assert_eq!(label["label"], with > without);
        assert_eq!((label.get("es_infile"), &label["metric"]), (None, &json!("likelihood")));
        assert!(label["crossfile_context"]["list"].is_array());
    }
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "--policy", "never,always,oracle"];
    let text = place.run(&sweep).done().stdout;
    let mean = 100.0
        * none
            .iter()
            .map(|line| line["likelihood"]["per_character"].as_f64().unwrap())
            .sum::<f64>()
        / 3.0;
    assert!(text.contains(&format!("p x 100: never {mean:.2}")), "{text}");
    let points =
        parse_jsonl(&place.run(&[&sweep[..], &["--format", "jsonl"]].concat()).done().stdout);
    assert!(
        (points[0]["likelihood"].as_f64().unwrap() - mean / 100.0).abs() < 1e-12,
        "{}",
        points[0]
    );

    // Of the same tasks and targets, and no predictions.
    let predictions = place.named("cache/predictions/tasks", "none");
    judged(&predictions, "rg1.jsonl").failed().says(&[&predictions]);
    judged("rg1.jsonl", "none.jsonl").failed().says(&["has predictions of mode rg1"]);
    let (mut others, mut first) = (none.clone(), none);
    others[0]["target_digest"] = json!("0123456789abcdef");
    others[1]["task_id"] = json!("elsewhere");
    place.write("others.jsonl", jsonl(&others));
    judged("others.jsonl", "rg1.jsonl").partly().says(&[
        "the probability belongs to another target",
        "task elsewhere is not one of the instances",
        "1 instance is left out: no likelihood without retrieval",
    ]);
    let twice = [&rg1[..], &rg1[..1]].concat();
    place.write("twice.jsonl", jsonl(&twice));
    judged("none.jsonl", "twice.jsonl").partly().says(&[
        "task alpha/0 occurs twice",
        "1 instance is left out: no likelihood with retrieval",
    ]);
    let features = ["policy", "features", "--labels", "labels.jsonl"];
    place
        .run(&features)
        .failed()
        .says(&["judge instances (`repoformer label judge`) by edit similarity"]);
    first.truncate(1);
    first[0].as_object_mut().unwrap().shift_remove("likelihood");
    first[0]["repocoder"] = json!({"es": 0.5});
    place.write("scores.jsonl", jsonl(&first));
    judged("scores.jsonl", "rg1.jsonl").failed().says(&[
        "contains no probabilities of targets",
        "complete --likelihood --mode MODE -o FILE",
    ]);
}
