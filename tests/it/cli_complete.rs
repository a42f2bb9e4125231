//! `complete --endpoint`: a server's answers through the binary, what fails, and how it goes on.

use std::io::Read;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::support::completion;
use crate::support::server::{
    Request, next_token, ok, refusal, server, server_listing, token_completion,
};
use crate::support::{Place, TARGETS, parse_jsonl};
use serde_json::{Value, json};

/// A place with the prompts of three tasks.
fn prompted() -> Place {
    let place = Place::new();
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place
}

fn complete<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["complete", "--mode", "none", "--model", "org/tiny:1", "--endpoint", url];
    [&flags[..], &["--max-tokens", "8"], more].concat()
}

const PREDICTIONS: &str = "cache/predictions/tasks/none-one-gram-ws-20-ss-2-org-tiny-1.jsonl";

/// A server that refuses the prompt of `view.py` until it is sound.
fn refusing_views(is_sound: &Arc<Mutex<bool>>) -> (String, Arc<Mutex<Vec<Request>>>) {
    let sound = Arc::clone(is_sound);
    server(move |request| {
        if request.prompt().contains("view") && !*sound.lock().unwrap() {
            refusal(
                "400 Bad Request",
                "request (15000 tokens) exceeds the available context size (4096 tokens)",
            )
        } else {
            completion("\nstore_11 = store(1)")
        }
    })
}

#[test]
fn what_fails_is_listed_and_asked_for_again() {
    let place = prompted();
    let is_sound = Arc::new(Mutex::new(false));
    let (url, seen) = refusing_views(&is_sound);
    let args = complete(&url, &[]);
    place.stage(&args).partly().says(&[
        &format!("task {}", TARGETS[1].0),
        "exceeds the available context size",
        "--retry-failed",
    ]);
    assert_eq!(place.records(PREDICTIONS).len(), 2);
    assert_eq!(seen.lock().unwrap().len(), 3);
    let record = &place.records(PREDICTIONS)[0];
    let wanted = json!([{"text": "store_11 = store(1)", "index": 0, "finish_reason": "stop",
        "logprobs": {"tokens": ["\nstore_11 = store(1)"], "token_logprobs": [-0.5]}, "mean_logprob": -0.5, "min_logprob": -0.5,
        "written": "\nstore_11 = store(1)"}]);
    let asked = json!({"model": "org/tiny:1", "api": "completions", "max_tokens": 8, "temperature": 0.0,
        "prompt_end": "before-whitespace", "until": "lines"});
    assert_eq!(record["asked"], asked);
    assert_eq!(record["choices"], wanted);
    // The prompt is sent without the line end behind it.
    let sent = seen.lock().unwrap()[0].clone();
    assert!(!sent.prompt().ends_with('\n'));
    assert_eq!((&*sent.path, &sent.body["temperature"]), ("/v1/completions", &json!(0.0)));
    // Nothing is asked for twice, until that is asked for.
    let again = place.stage(&args).partly();
    again.says(&["current", &format!("task {}", TARGETS[1].0), "context size", "--retry-failed"]);
    *is_sound.lock().unwrap() = true;
    place.stage(&complete(&url, &["--retry-failed"])).done();
    assert_eq!(seen.lock().unwrap().len(), 4);
    assert_eq!(place.records(PREDICTIONS).len(), 3);
    place.stage(&["eval", "--mode", "none", "--model", "org/tiny:1", "--max-tokens", "8"]).done();
    place
        .stage(&["eval", "--mode", "none", "--model", "org/tiny:1"])
        .failed()
        .says(&["max-tokens"]);
}

/// A model without timings of its completions has no mean.
#[test]
fn a_time_that_is_not_known_leaves_the_mean_out() {
    let place = Place::new();
    let (url, _) = server(|request| token_completion(request, &["\n", "x = f(1)", "\n", "more"]));
    let run = |more: &[&str]| {
        let run = ["run", "--mode", "none", "--endpoint", &url, "--model", "tiny"];
        let ran = place.stage(&[&run[..], &["--max-tokens", "8"], more].concat()).done();
        (ran.stdout.contains("generation ms/prompt"), ran)
    };
    let (is_timed, ran) = run(&["--until", "tokens"]);
    assert!(is_timed, "{}", ran.stdout);
    ran.silent_on("have no time");
    let (is_timed, ran) = run(&[]);
    assert!(!is_timed, "{}", ran.stdout);
    ran.says(&[
        "tasks none: 3 of 3 completions have no time, so the mean is left out",
        "a new --journal",
    ]);
}

#[test]
fn other_cuts_need_all_tokens() {
    let place = prompted();
    let tokens = ["\n", "x = f(", "\n", "1)", "\n", "y"];
    let (url, seen) = server(move |request| token_completion(request, &tokens));
    place.stage(&complete(&url, &[])).done();
    let eval = [
        "eval", "--mode", "none", "--model", "org/tiny:1", "--max-tokens", "8", "--metrics",
        "crosscodeeval",
    ];
    place.stage(&eval).done().says(&[
        "these completions end after as many lines as the target has, but crosscodeeval cuts by statement",
        "--until tokens",
    ]);
    let short = ["these completions end after as many lines", "crosscodeeval cuts by statement"];
    let of = ["--model", "org/tiny:1", "--max-tokens", "8", "--metrics", "crosscodeeval"];
    place.stage(&[&["compare", "none", "none"][..], &of].concat()).done().says(&short);
    place.stage(&[&["report", "--mode", "none"][..], &of].concat()).done().says(&short);
    let run = ["run", "--mode", "none", "--endpoint", &url, "--until", "lines"];
    place.stage(&[&run[..], &of].concat()).done().says(&short);
    // A run knows its metrics; the profiles of papers ask for all tokens.
    for more in [&["--metrics", "crosscodeeval"][..], &["--profile", "repocoder"]] {
        let asked = seen.lock().unwrap().len();
        let run = [
            "run", "--mode", "none", "--endpoint", &url, "--model", "org/tiny:1", "--max-tokens",
            "8", "--cache-dir", "other",
        ];
        place.stage(&[&run[..], more].concat()).done().silent_on("these completions end");
        let seen = seen.lock().unwrap();
        assert!(
            seen[asked..].iter().all(|request| request.body.get("stream").is_none()),
            "{more:?}"
        );
    }
    place.stage(&complete(&url, &["--until", "words"])).failed().says(&["unknown until 'words'"]);
    place
        .stage(&["complete", "--mode", "none", "--until", "lines"])
        .failed()
        .says(&["--until works only with a model on a server"]);
}

#[test]
fn a_broken_run_goes_on_and_keeps_its_key_to_itself() {
    let place = prompted();
    let is_sound = Arc::new(Mutex::new(false));
    let sound = Arc::clone(&is_sound);
    let (url, seen) = server(move |request| {
        let prompt = request.body["messages"][1]["content"].as_str().unwrap();
        if !prompt.contains("store") && !*sound.lock().unwrap() {
            return refusal("401 Unauthorized", "wrong key secret-key");
        }
        let message = json!({"role": "assistant", "content": "x = 1"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        ok(&json!({"choices": [choice]}))
    });
    let mut command = place.command(&place.args(&complete(&url, &["--api", "chat"])));
    command.env("REPOFORMER_API_KEY", "secret-key");
    let ran = crate::support::Ran::new(command.output().unwrap());
    ran.failed()
        .says(&["401", "REPOFORMER_API_KEY", "run the same command to resume"])
        .silent_on("secret-key");
    let journal = place.read("cache/journal/org-tiny-1.jsonl");
    assert!(!journal.contains("secret-key"), "{journal}");
    // With the right key the same command goes on, also where an interruption cut the last line off.
    let answered = parse_jsonl(&journal).len();
    place.write("cache/journal/org-tiny-1.jsonl", journal + "{\"key\":\"abc");
    *is_sound.lock().unwrap() = true;
    let before = seen.lock().unwrap().len();
    place.stage(&complete(&url, &["--api", "chat"])).done();
    assert_eq!(seen.lock().unwrap().len(), before + 3 - answered);
    let text = &place.records(PREDICTIONS)[0]["choices"][0]["text"];
    assert_eq!(text, "x = 1", "behind a prompt that ends in a line end");
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_way_out() {
    let place = prompted();
    let nowhere = "http://127.0.0.1:9";
    place
        .stage(&["complete", "--mode", "none", "--model", "tiny"])
        .failed()
        .says(&["--endpoint is not set"]);
    place
        .stage(&["complete", "--mode", "none", "--endpoint", nowhere])
        .failed()
        .says(&["no model of the server is named", "name it with --model"]);
    place
        .stage(&complete(nowhere, &["--api", "soap"]))
        .failed()
        .says(&["unknown api 'soap' (from command line); known: completions, chat"]);
    place.stage(&complete(nowhere, &["--prompt-end", "newline"])).failed().says(&[
        "unknown prompt-end 'newline' (from command line); known: before-whitespace, as-is",
    ]);
    place
        .stage(&complete(nowhere, &["--request-timeout", "0"]))
        .failed()
        .says(&["invalid request-timeout '0'"]);
}

#[test]
fn options_for_a_server_are_not_ignored_without_one() {
    let place = prompted();
    for flags in [["--temperature", "1"], ["--stop", ";"], ["--concurrency", "2"], ["--seed", "7"]]
    {
        let args = ["complete", "--mode", "none", flags[0], flags[1]];
        place.stage(&args).failed().says(&[flags[0], "on a server"]);
    }
    place
        .stage(&["complete", "--mode", "none", "--probability-of", "<cc>"])
        .failed()
        .says(&["needs a completion server (--endpoint)"]);
    place.stage(&["rg-rg", "--samples", "3"]).failed();
    // Nor those that would not do what they say.
    let nowhere = "http://127.0.0.1:9";
    for (flags, said) in [
        (["--samples", "3"], "--temperature 1"),
        (["--stop", ""], "--stop is empty"),
        (["--max-lines", "1"], "--max-tokens"),
        (["--temperature", "nan"], "invalid temperature 'nan'"),
        (["--top-p", "2"], "invalid top-p '2'"),
        (["--samples", "0"], "invalid samples '0'"),
        (["--concurrency", "0"], "invalid concurrency '0'"),
        (["--journal", "/dev/full"], "not a file"),
    ] {
        place.stage(&complete(nowhere, &flags)).failed().says(&[said]);
    }
    for flags in [
        ["--probability-of", "x", "--stop", ";"],
        ["--write-batch", "b.jsonl", "--concurrency", "2"],
    ] {
        place.stage(&complete(nowhere, &flags)).failed().says(&["cannot be used with"]);
    }
    let journal = ["--journal", "j.jsonl", "-o", "j.jsonl"];
    place.write("j.jsonl", "");
    place.stage(&complete(nowhere, &journal)).failed().says(&["would overwrite"]);
}

#[test]
fn predictions_of_other_settings_are_not_taken_for_these() {
    let place = prompted();
    let (url, _) = imitator();
    place.stage(&complete(&url, &[])).done();
    // Another name with the same path, another journal, and other settings of the first completion.
    let eval = ["eval", "--mode", "none", "--max-tokens", "8", "--model"];
    place.stage(&[&eval[..], &["org-tiny-1"]].concat()).failed().says(&["model was org/tiny:1"]);
    let other = complete(&url, &["--journal", "other.jsonl"]);
    place.stage(&other).done().says(&["journal"]);
    assert_eq!(place.records("other.jsonl").len(), 3);
    let server = ["--endpoint", &url, "--model", "tiny", "--max-tokens", "8"];
    place.stage(&[&["complete", "--mode", "rg1"], &server[..]].concat()).done();
    let turns = ["rg-rg", "--iterations", "2", "--prompt-end", "as-is"];
    place.stage(&[&turns[..], &server[..]].concat()).failed().says(&["prompt-end"]);
}

#[test]
fn nobody_there_is_told_at_once() {
    let place = prompted();
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    place
        .stage_within(&complete(&url, &[]), 10)
        .failed()
        .says(&["/v1/models: ", "is the server running"])
        .silent_on("kept in");
}

#[test]
fn a_template_that_changes_prompts_is_told() {
    let place = Place::new();
    let run = |owner: &str, template: &'static str| {
        let models = ok(&json!({"data": [{"id": "tiny:latest", "owned_by": owner}]}));
        let (url, seen) = server_listing(models, move |request| match &*request.path {
            "/api/show" => ok(&json!({"template": template})),
            _ => completion("\nx"),
        });
        let cache = format!("cache-{}", seen.lock().unwrap().len() + template.len());
        let run =
            ["run", "--mode", "none", "--endpoint", &url, "--model", "tiny", "--max-tokens", "8"];
        let ran = place.stage(&[&run[..], &["--cache-dir", &cache]].concat());
        let asked = seen.lock().unwrap().iter().any(|request| request.path == "/api/show");
        (ran, asked)
    };
    let chat = "<|im_start|>user\n{{ .Prompt }}<|im_end|>\n";
    let (ran, asked) = run("library", chat);
    ran.done().says(&["Ollama wraps prompts for 'tiny' in the template '<|im_start|>user…'"]);
    assert!(asked);
    let (ran, asked) = run("library", "{{ .Prompt }}");
    ran.done().silent_on("template");
    assert!(asked);
    // Another server is not asked.
    let (ran, asked) = run("vllm", "{{ if .Suffix }}{{ .Prompt }}");
    ran.done().silent_on("template");
    assert!(!asked);
}

/// A run cuts, searches and prompts for minutes before it asks.
#[test]
fn a_run_looks_for_its_server_first() {
    let place = Place::new();
    let run = |url: &str, more: &[&str]| {
        let run = ["run", "--mode", "none", "--endpoint", url, "--model", "tiny"];
        place.stage(&[&run[..], &["--max-tokens", "8"], more].concat())
    };
    let nowhere = "http://127.0.0.1:9";
    run(nowhere, &[]).failed().says(&["/v1/models: ", "is the server running"]);
    assert!(!place.path("cache").exists());
    run(nowhere, &["--dry-run"]).done();
    let models = |name: &str| ok(&json!({"data": [{"id": name}]}));
    let (url, seen) = server_listing(models("other"), |_| completion("\nx"));
    run(&url, &[]).done().says(&["/v1/models: lists no model 'tiny', but other"]);
    assert_eq!(seen.lock().unwrap().len(), 3);
    let (url, _) = server_listing(models("tiny:latest"), |_| completion("\nx"));
    run(&url, &["--cache-dir", "other"]).done().silent_on("lists no model");
    // The journal has all.
    for folder in ["prompts", "predictions"] {
        std::fs::remove_dir_all(place.path("cache").join(folder)).unwrap();
    }
    run(nowhere, &[]).done();
    std::fs::remove_dir_all(place.path("cache/journal")).unwrap();
    run(nowhere, &[]).done().says(&["(current)"]);
}

/// Answer of a batch endpoint to a request.
fn batch_answer(request: &Value, text: &str) -> Value {
    let body = json!({"choices": [{"index": 0, "text": text, "finish_reason": "length"}]});
    json!({"id": "batch_1", "custom_id": request["custom_id"], "error": null,
        "response": {"status_code": 200, "request_id": "r", "body": body}})
}

/// Prompts that a batch and a token's probability are asked for; the last is none.
fn file_of_prompts() -> Place {
    let place = Place::empty();
    place.write(
        "prompts.jsonl",
        "{\"prompt\": \"a = \"}\n{\"prompt\": \"b = \"}\n{\"prompt\": 3}\n",
    );
    place
}

#[test]
fn a_batch_is_written_and_read() {
    let place = file_of_prompts();
    let of = |more: &[&'static str]| {
        let flags = ["complete", "--prompts", "prompts.jsonl", "--model", "tiny"];
        place.run(&[&flags[..], more].concat()).partly()
    };
    let written = of(&["--write-batch", "-"]);
    let requests = parse_jsonl(&written.stdout);
    assert_eq!(requests.len(), 2);
    written.says(&["prompts.jsonl:3", "complete: 2 requests\n"]);
    let mut stranger = batch_answer(&requests[1], "2");
    stranger["custom_id"] = "row-4-0123456789abcdef".into();
    let answers = [batch_answer(&requests[0], "1"), stranger];
    place.write("answers.jsonl", crate::support::jsonl(&answers));
    of(&["--read-batch", "answers.jsonl", "-o", "out.jsonl"]).says(&[
        "answers.jsonl:2: the answer to \"row-4-0123456789abcdef\" belongs to none",
        "1 answers, 0 failures, 1 unreadable or for unknown prompts",
        "prompts.jsonl:2: task without id: it has no answer yet",
        "complete: 1 predictions",
    ]);
    of(&["--write-batch", "rest.jsonl"]).says(&["1 request (1 prompt is already answered"]);
    assert_eq!(place.records("rest.jsonl"), requests[1..]);
    place.write("more.jsonl", crate::support::jsonl(&[batch_answer(&requests[1], "2")]));
    of(&["--read-batch", "answers.jsonl", "--read-batch", "more.jsonl", "-o", "out.jsonl"])
        .silent_on("no answer yet");
    let texts = place.records("out.jsonl");
    let texts: Vec<&Value> = texts.iter().map(|record| &record["choices"][0]["text"]).collect();
    assert_eq!(texts, ["1", "2"]);
}

/// A file is read several times, and a pipe once.
#[test]
fn prompts_come_from_a_pipe() {
    let place = file_of_prompts();
    let (url, _) = server(|_| completion("1"));
    let line = format!(
        "head -n 2 prompts.jsonl | repoformer complete --prompts - --endpoint {url} --model tiny -o out.jsonl"
    );
    place.shell(&line).done();
    assert_eq!(place.records("out.jsonl").len(), 2);
}

#[test]
fn the_probability_of_a_token_is_asked_for_by_flags() {
    let place = file_of_prompts();
    let flags =
        ["complete", "--prompts", "prompts.jsonl", "--model", "m", "--probability-of", "<cc>"];
    let of = |more: &[&str]| place.run(&[&flags[..], more].concat());
    of(&["--write-batch", "b.jsonl"]).failed().says(&["token-id", "must be given"]);
    let batch = ["--token-id", "49153", "--after", "<eof>", "--write-batch", "b.jsonl"];
    of(&batch).partly().says(&["2 requests"]);
    let body = &place.records("b.jsonl")[1]["body"];
    assert!(body["prompt"].as_str().unwrap().ends_with("<eof><cc>"), "{body}");
    let (url, seen) = server(|request| match request.path.as_str() {
        "/tokenize" => ok(&json!({"tokens": [49_153]})),
        _ if request.body.get("logit_bias").is_none() => next_token(8, -1.2),
        _ => next_token(49_153, -1.5),
    });
    let ran = of(&["--endpoint", &url, "--after", "<eof>"]).partly();
    let records = parse_jsonl(&ran.stdout);
    assert_eq!(records.len(), 2);
    assert_eq!(records[1]["next_token"]["id"], 49_153);
    let ends = |request: &Request| request.prompt().ends_with("<eof>");
    assert!(seen.lock().unwrap()[1..].iter().all(ends));
    ran.says(&["complete: 2 probabilities of \"<cc>\""]);
    of(&["--endpoint", &url, "--samples", "3"]).failed();
    let (deaf, _) = server(|_| refusal("404 Not Found", "no such page"));
    of(&["--endpoint", &deaf]).failed().says(&["does not say which token", "--token-id"]);
}

/// A server whose completion of a prompt is its last line with another number.
fn imitator() -> (String, Arc<Mutex<Vec<Request>>>) {
    server(|request| {
        let last = request.prompt().lines().last().unwrap();
        completion(&format!("\n{}", last.replace('1', "2")))
    })
}

#[test]
fn the_whole_experiment_with_a_server() {
    let place = Place::new();
    let (url, seen) = imitator();
    let run = ["run", "--endpoint", &url, "--model", "tiny", "--max-tokens", "8"];
    let ran = place.stage(&run).done();
    assert!(ran.stdout.contains("generation ms/prompt"), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().count(), 5);
    // rg-rg and gt may have prompts that were asked before.
    let asked = seen.lock().unwrap().len();
    assert!((7..=12).contains(&asked), "{asked}");
    let latency = |mode: &str| {
        place.records(&format!("cache/latency/tasks/{mode}-one-gram-ws-20-ss-2-tiny.jsonl"))
    };
    for (mode, retrieves) in [("none", false), ("rg1", true), ("rg-rg", true), ("gt", true)] {
        let records = latency(mode);
        assert_eq!(records.len(), 3, "{mode}");
        for record in &records {
            assert_eq!(record["retrieval_ms"].is_number(), retrieves, "{record}");
            assert!(record["generation_ms"].as_f64().unwrap() >= 0.0, "{record}");
        }
    }
    assert_eq!(latency("rg1")[1]["task_id"], TARGETS[1].0);
    let again =
        place.stage(&run).done().says(&["complete tasks: 3 records in 1 artifact (current)"]);
    assert_eq!((again.stdout, seen.lock().unwrap().len()), (ran.stdout, asked));
    let json = place.stage(&[&run[..], &["--format", "json"]].concat()).done().stdout;
    assert!(
        serde_json::from_str::<Value>(&json).unwrap()[1]["generation_ms"].is_number(),
        "{json}"
    );
}

#[test]
fn retrieval_and_completion_take_turns() {
    let place = prompted();
    let (url, _) = imitator();
    let server = ["--endpoint", &url, "--model", "tiny", "--max-tokens", "8"];
    place.stage(&[&["complete", "--mode", "rg1"], &server[..]].concat()).done();
    let turns = [&["rg-rg", "--iterations", "3"], &server[..]].concat();
    let ran = place.stage(&[&turns[..], &["-o", "last.jsonl"]].concat()).done();
    let rows: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let names: Vec<&str> = rows[1..].iter().map(|row| row[1]).collect();
    assert_eq!(names, ["rg1", "rg-rg", "rg-rg-2", "rg-rg-3"]);
    // What it writes depends on a prompt's last line alone, which retrieval does not change.
    let unchanged: Vec<&str> = rows[1..].iter().map(|row| *row.last().unwrap()).collect();
    assert_eq!(unchanged, ["-", "100.0", "100.0", "100.0"]);
    assert!(ran.stdout.lines().next().unwrap().ends_with("unchanged %"), "{}", ran.stdout);
    for (folder, file) in [
        ("window", "alpha_ws20_slice2.bin"),
        ("vector", "alpha_ws20_slice2.one-gram.bin"),
        ("retrieval", "alpha_ws20_slice2.one-gram.top20.bin"),
    ] {
        let path = format!("cache/{folder}/tasks/rg-rg-3/{file}");
        assert!(place.path(&path).exists(), "{path}");
    }
    let third = place.read("cache/prompts/tasks/rg-rg-3-one-gram-ws-20-ss-2.jsonl");
    assert_eq!(place.read("last.jsonl"), third);
    // The first is what `rg-rg` makes without being told how often.
    let first = place.read("cache/prompts/tasks/rg-rg-one-gram-ws-20-ss-2.jsonl");
    std::fs::remove_dir_all(place.path("cache/prompts/tasks")).unwrap();
    place.stage(&["prompt", "--mode", "rg1"]).done();
    place.stage(&["rg-rg", "--model", "tiny", "--max-tokens", "8"]).done();
    assert_eq!(place.read("cache/prompts/tasks/rg-rg-one-gram-ws-20-ss-2.jsonl"), first);
    // Later artifacts can be looked at, and the embedded model takes turns as well.
    let retrieval = "cache/retrieval/tasks/rg-rg-3/alpha_ws20_slice2.one-gram.top20.bin";
    place.run(&["inspect", retrieval, "--format", "jsonl"]).done();
    place.stage(&["complete", "--mode", "rg1"]).done();
    let ran = place.stage(&["rg-rg", "--iterations", "2", "--format", "jsonl"]).done();
    assert_eq!(parse_jsonl(&ran.stdout).len(), 3);
    place
        .stage(&[&turns[..], &["--samples", "2"]].concat())
        .failed()
        .says(&["one completion of each prompt"]);
    place.stage(&["rg-rg", "--iterations", "0"]).failed();
}

#[cfg(target_os = "linux")]
#[test]
fn an_interruption_says_how_to_go_on() {
    let place = prompted();
    // The last answer does not come before the sender is dropped.
    let (asleep, awake) = std::sync::mpsc::channel::<()>();
    let awake = Mutex::new(awake);
    let (url, seen) = server(move |request| {
        if request.prompt().contains("main") {
            let _ = awake.lock().unwrap().recv();
        }
        completion("x = 1")
    });
    let args = complete(&url, &["--concurrency", "1"]);
    let journal = place.path("cache/journal/org-tiny-1.jsonl");
    let lines = || std::fs::read_to_string(&journal).unwrap_or_default().lines().count();
    let said = interrupted(&place, &args, || {
        while lines() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    assert!(
        said.contains("interrupted; cache/journal/org-tiny-1.jsonl keeps the answers"),
        "{said}"
    );
    drop(asleep);
    let before = seen.lock().unwrap().len();
    place.stage(&args).done();
    assert_eq!(seen.lock().unwrap().len(), before + 1);
}

/// Messages of a command that is interrupted after a while.
#[cfg(target_os = "linux")]
fn interrupted(place: &Place, stage: &[&str], wait: impl FnOnce()) -> String {
    use std::os::unix::process::ExitStatusExt;
    // A shell starts background jobs with Ctrl-C ignored, and their children inherit that.
    let mut command = std::process::Command::new("/usr/bin/env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_repoformer")]);
    command.args(place.args(stage)).current_dir(place.path("")).env_clear();
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait();
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    // By the signal itself, which ends the loop of a shell, too.
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    said
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_says_that_it_goes_on() {
    let place = Place::new();
    // It is asked which models it has, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let run = ["run", "--mode", "none", "--endpoint", &url, "--model", "tiny"];
    let mut connection = None;
    let said = interrupted(&place, &run, || connection = Some(listener.accept().unwrap()));
    let wanted = "interrupted; finished work is in the cache; run the same command to resume";
    assert!(said.contains(wanted), "{said}");
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_and_loses_nothing() {
    let place = prompted();
    let (url, seen) = server(|_| completion(&"x = 1; ".repeat(30)));
    let args = complete(&url, &["--concurrency", "1"]).join(" ");
    let data = "--repos-dir repos --tasks tasks.jsonl --cache-dir cache";
    // No file may grow beyond a kilobyte: the second answer does not fit.
    let ran = place.shell(&format!("trap '' XFSZ; ulimit -f 2; repoformer {args} {data}"));
    let journal = place.read("cache/journal/org-tiny-1.jsonl");
    assert!(journal.ends_with('\n'), "half a line stayed: {journal}");
    ran.failed().says(&["cannot append to this file", "journal", "run the same command to resume"]);
    assert!(!place.path(PREDICTIONS).exists());
    let before = seen.lock().unwrap().len();
    place.stage(&complete(&url, &[])).done();
    let asked = seen.lock().unwrap().len() - before;
    assert!((1..3).contains(&asked), "{asked} of 3 were asked again");
    assert_eq!(place.records(PREDICTIONS).len(), 3);
}

#[test]
fn a_mode_without_any_answer_leaves_the_others_their_rows() {
    let place = Place::new();
    let (url, _) = server(|request| {
        if request.prompt().contains("relevant code") {
            refusal("400 Bad Request", "this model's maximum context length is 10 tokens")
        } else {
            completion("\nx = 1")
        }
    });
    let run = ["run", "--endpoint", &url, "--model", "tiny", "--max-tokens", "8"];
    let ran = place.stage(&run).partly().says(&[
        "rg1 is left out: it has no prediction",
        "rg-rg is left out",
        "gt is left out: it has no prediction",
    ]);
    let rows: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(rows.len(), 2, "{}", ran.stdout);
    assert!(rows[1].contains("none"), "{}", ran.stdout);
}
