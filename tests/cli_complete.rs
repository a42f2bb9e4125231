//! `complete --endpoint`: a server's answers through the binary, what fails, and how it goes on.

#![allow(clippy::unwrap_used)] // what a test expects and does not get ends it

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use support::{Place, TARGETS, parse_jsonl};

/// A server that answers each request's body with a status and a text; it keeps the bodies.
fn server(
    answer: impl Fn(&Value) -> (&'static str, String) + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
    let bodies = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, answer) = (Arc::clone(&bodies), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut length, mut line) = (0, String::new());
                while line != "\r\n" {
                    line.clear();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let (status, text) = answer(&body);
                seen.lock().unwrap().push(body);
                let length = text.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = reader.get_mut().write_all((head + &text).as_bytes());
            });
        }
    });
    (url, seen)
}

fn completion(text: &str) -> (&'static str, String) {
    let logprobs = json!({"content": [{"id": 3, "token": text, "logprob": -0.5}]});
    let choice = json!({"index": 0, "text": text, "finish_reason": "stop", "logprobs": logprobs});
    ("200 OK", json!({"choices": [choice]}).to_string())
}

fn refusal(status: &'static str, message: &str) -> (&'static str, String) {
    (status, json!({"error": {"message": message}}).to_string())
}

/// A place with the prompts of three tasks.
fn prompted() -> Place {
    let place = Place::new();
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place
}

fn complete<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = [
        "complete",
        "--mode",
        "none",
        "--model",
        "org/tiny:1",
        "--endpoint",
        url,
    ];
    [&flags[..], &["--max-tokens", "8"], more].concat()
}

const PREDICTIONS: &str = "cache/predictions/tasks/none-one-gram-ws-20-ss-2-org-tiny-1.jsonl";

#[test]
fn what_fails_is_listed_and_asked_for_again() {
    let place = prompted();
    let is_sound = Arc::new(Mutex::new(false));
    let sound = Arc::clone(&is_sound);
    let (url, seen) = server(
        move |body| match body["prompt"].as_str().unwrap().contains("view") {
            true if !*sound.lock().unwrap() => refusal(
                "400 Bad Request",
                "request (15000 tokens) exceeds the available context size (4096 tokens)",
            ),
            _ => completion("\nstore_11 = store(1)"),
        },
    );
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
        "logprobs": {"tokens": ["\nstore_11 = store(1)"], "token_logprobs": [-0.5]}, "written": "\nstore_11 = store(1)"}]);
    assert_eq!(record["choices"], wanted);
    // The prompt is sent without the line end behind it.
    let sent = seen.lock().unwrap()[0].clone();
    assert!(!sent["prompt"].as_str().unwrap().ends_with('\n'));
    assert_eq!(sent["temperature"], 0.0);
    // Nothing is asked for twice, until that is asked for.
    place.stage(&args).says(&["current"]);
    *is_sound.lock().unwrap() = true;
    place.stage(&complete(&url, &["--retry-failed"])).done();
    assert_eq!(seen.lock().unwrap().len(), 4);
    assert_eq!(place.records(PREDICTIONS).len(), 3);
    place
        .stage(&[
            "eval",
            "--mode",
            "none",
            "--model",
            "org/tiny:1",
            "--max-tokens",
            "8",
        ])
        .done();
    place
        .stage(&["eval", "--mode", "none", "--model", "org/tiny:1"])
        .failed()
        .says(&["max-tokens"]);
}

#[test]
fn a_broken_run_goes_on_and_keeps_its_key_to_itself() {
    let place = prompted();
    let (url, seen) = server(|body| match body["messages"][1]["content"].as_str() {
        Some(prompt) if prompt.contains("store") => {
            let message = json!({"role": "assistant", "content": "x = 1"});
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            ("200 OK", json!({"choices": [choice]}).to_string())
        }
        _ => refusal("401 Unauthorized", "wrong key secret-key"),
    });
    let mut command = place.command(&place.args(&complete(&url, &["--api", "chat"])));
    command.env("REPOFORMER_API_KEY", "secret-key");
    let ran = support::Ran::of(command.output().unwrap());
    ran.partly()
        .says(&["401", "REPOFORMER_API_KEY"])
        .silent_on("secret-key");
    let journal = place.read("cache/journal/org-tiny-1.jsonl");
    assert!(!journal.contains("secret-key"), "{journal}");
    assert_eq!(parse_jsonl(&journal).len(), 3);
    let before = seen.lock().unwrap().len();
    // An interruption cut the last line off, and the artifact is gone.
    let cut: String = journal
        .lines()
        .take(2)
        .map(|line| line.to_owned() + "\n")
        .collect();
    place.write("cache/journal/org-tiny-1.jsonl", cut + "{\"key\":\"abc");
    std::fs::remove_file(place.path(PREDICTIONS)).unwrap();
    place.stage(&complete(&url, &["--api", "chat"])).partly();
    assert_eq!(seen.lock().unwrap().len(), before + 1);
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
        .says(&["model", "say what the server calls it"]);
    place
        .stage(&complete(nowhere, &["--api", "soap"]))
        .failed()
        .says(&["'soap' is not one of completions, chat"]);
    place
        .stage(&complete(nowhere, &["--prompt-end", "newline"]))
        .failed()
        .says(&["'newline' is not one of as-is, before-whitespace"]);
    place
        .stage(&complete(nowhere, &["--request-timeout", "0"]))
        .failed()
        .says(&["--request-timeout"]);
}
