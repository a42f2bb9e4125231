//! Answers of servers through the binary: failed answers, stop texts that servers keep, event streams, and halves of surrogate
//! pairs.
//!
//! The shapes of failed answers come from the servers' documentation and sources: OpenRouter (`finish_reason` `error`
//! with an `error` next to it), vLLM and SGLang (`abort`), OpenAI and Azure (`content_filter`), Mistral (`error`), DeepSeek
//! (`insufficient_system_resource`), Ollama (`load`).

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::cli_lsp::Session;
use crate::cli_serve::Serving;
use crate::support::completion;
use crate::support::server::{Answer, Request, answer, events as stream, ok, server};
use crate::support::{Place, Ran, TARGETS, parse_jsonl};

const EVENTS: &str = "Content-Type: text/event-stream\r\n";

/// A place with the prompts of three tasks.
fn prompted() -> Place {
    let place = Place::new();
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place
}

/// Text of a request's prompt, or of its last message.
fn prompt(request: &Request) -> String {
    let chat = request.body["messages"].as_array().and_then(|messages| messages.last());
    chat.map_or(&request.body["prompt"], |last| &last["content"]).as_str().unwrap().to_owned()
}

/// A server that answers the prompt of `view.py` with `failed` until it is sound, and the other prompts with `sound`.
fn failing(
    is_sound: &Arc<Mutex<bool>>,
    failed: Answer,
    sound: Answer,
) -> (String, Arc<Mutex<Vec<Request>>>) {
    let is_up = Arc::clone(is_sound);
    server(move |request| {
        if prompt(request).contains("view") && !*is_up.lock().unwrap() {
            failed.clone()
        } else {
            sound.clone()
        }
    })
}

/// Failed answers, each with the words of its message.
fn failed_answers(text: &str) -> Vec<(Value, &'static str)> {
    let ended = |finish: &str| json!({"choices": [{"text": text, "finish_reason": finish}]});
    vec![
        (
            json!({"choices": [{"text": "", "finish_reason": "error", "error": {"code": 502}}]}),
            "choices[0] is an error: {\"code\":502}",
        ),
        (
            json!({"choices": [{"text": text, "finish_reason": "stop", "error": {"code": 502, "message": "no provider"}}]}),
            "choices[0] is an error: no provider",
        ),
        (
            json!({"choices": [{"text": text, "finish_reason": "error"}], "error": {"code": 502, "message": "Provider disconnected"}}),
            "the answer is an error: Provider disconnected",
        ),
        (json!({"choices": [{"text": text}], "error": "boom"}), "the answer is an error: boom"),
        (ended("abort"), "finish_reason \"abort\""),
        (ended("content_filter"), "finish_reason \"content_filter\""),
        (ended("ERROR"), "finish_reason \"ERROR\""),
        (ended("insufficient_system_resource"), "finish_reason \"insufficient_system_resource\""),
        (ended("load"), "finish_reason \"load\""),
        (ended("tool_calls"), "finish_reason \"tool_calls\""),
        (ended("a new reason"), "finish_reason \"a new reason\""),
        (
            json!({"choices": [{"text": text, "finish_reason": {"type": "abort", "message": "x"}}]}),
            "finish_reason \"abort\"",
        ),
        (json!({"choices": []}), "'choices' are empty"),
        (
            json!({"choices": [{"text": null, "finish_reason": "length"}]}),
            "has no 'text' (finish_reason \"length\")",
        ),
        (
            json!({"choices": [{"text": text, "finish_reason": "stop"}, {"index": 1, "text": "", "finish_reason": "error"}]}),
            "choices[1] ended with finish_reason \"error\"",
        ),
    ]
}

/// Completes the prompts without retrieval, by a server.
fn complete(place: &Place, url: &str, more: &[&str]) -> Ran {
    let flags =
        ["complete", "--mode", "none", "--model", "m", "--max-tokens", "8", "--endpoint", url];
    place.stage(&[&flags[..], more].concat())
}

#[test]
fn a_failed_answer_is_no_prediction_and_is_asked_again() {
    let place = prompted();
    for (number, (failed, says)) in failed_answers("return ").into_iter().enumerate() {
        let is_sound = Arc::new(Mutex::new(false));
        let (url, seen) = failing(&is_sound, ok(&failed), completion("\nview_20 = view(20)"));
        let journal = format!("journal-{number}.jsonl");
        let flags = ["--until", "tokens", "--journal", &journal];
        let wanted = [&format!("task {}", TARGETS[1].0), says, "--retry-failed"];
        complete(&place, &url, &flags).partly().says(&wanted);
        let failures = || {
            let records = place.records(&journal);
            records.iter().filter(|entry| entry.get("error").is_some()).count()
        };
        assert_eq!((seen.lock().unwrap().len(), failures()), (3, 1), "{failed}");
        let predictions = place.named("cache/predictions/tasks", "none");
        assert_eq!(place.records(&predictions).len(), 2, "{failed}");
        // A further run names the failure and does not repeat the request.
        complete(&place, &url, &flags).partly().says(&wanted);
        assert_eq!(seen.lock().unwrap().len(), 3);
        complete(&place, &url, &[&flags[..], &["--retry-failed"]].concat()).partly().says(&[says]);
        *is_sound.lock().unwrap() = true;
        complete(&place, &url, &[&flags[..], &["--retry-failed"]].concat()).done();
        assert_eq!(seen.lock().unwrap().len(), 5);
        assert_eq!(place.records(&predictions).len(), 3);
    }
}

#[test]
fn an_answer_that_fails_alone_is_kept_as_a_failure() {
    let place = prompted();
    let failed = json!({"choices": [{"text": "", "finish_reason": "error"}]});
    let (url, seen) = server(move |_| ok(&failed));
    complete(&place, &url, &[]).partly().says(&["finish_reason \"error\"", "--retry-failed"]);
    assert_eq!(seen.lock().unwrap().len(), 3);
    complete(&place, &url, &[]).partly();
    assert_eq!(seen.lock().unwrap().len(), 3);
    // An evaluation has nothing to score.
    let eval = ["eval", "--mode", "none", "--model", "m", "--max-tokens", "8"];
    place.stage(&eval).says(&["no prediction"]);
}

#[test]
fn a_stream_that_fails_is_no_prediction() {
    let place = prompted();
    let part = |text: &str| json!({"choices": [{"index": 0, "text": text, "finish_reason": null}]});
    let end =
        |finish: &str| json!({"choices": [{"index": 0, "text": "", "finish_reason": finish}]});
    let error = json!({"message": "out of memory"});
    let with_choices = json!({"error": {"code": "server_error", "message": "out of memory"},
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]});
    let sound = stream(&[part("\nview_20 = view(20)"), end("stop")]);
    for (number, (failed, says)) in [
        (stream(&[part("return "), end("error")]), "finish_reason \"error\""),
        (stream(&[part("return "), end("abort")]), "finish_reason \"abort\""),
        (stream(&[part("return "), json!({"error": error})]), "out of memory"),
        (stream(&[part("return "), end("stop"), json!({"error": error})]), "out of memory"),
        (stream(&[part("return "), with_choices]), "the answer is an error: out of memory"),
        (stream(&[json!({"choices": [{"text": null, "finish_reason": "stop"}]})]), "has no 'text'"),
        (stream(&[json!({"choices": []})]), "'choices' are empty"),
        (
            answer("200 OK", EVENTS, format!("data: {}\n\nevent: error\ndata: {error}\n\n", part("x"))),
            "out of memory",
        ),
        (
            stream(&[json!({"choices": [{"index": 0, "text": "x", "error": error, "finish_reason": null}]})]),
            "choices[0] is an error: out of memory",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let is_sound = Arc::new(Mutex::new(false));
        let (url, seen) = failing(&is_sound, failed, sound.clone());
        let journal = format!("journal-{number}.jsonl");
        let flags = ["--journal", &journal, "--concurrency", "1"];
        complete(&place, &url, &flags).partly().says(&[&format!("task {}", TARGETS[1].0), says]);
        assert!(seen.lock().unwrap().iter().all(|request| request.body["stream"] == true));
        let predictions = place.named("cache/predictions/tasks", "none");
        assert_eq!(place.records(&predictions).len(), 2, "{says}");
        complete(&place, &url, &flags).partly();
        assert_eq!(seen.lock().unwrap().len(), 3, "{says}");
        *is_sound.lock().unwrap() = true;
        complete(&place, &url, &[&flags[..], &["--retry-failed"]].concat()).done();
        assert_eq!(place.records(&predictions).len(), 3);
    }
}

#[test]
fn a_chat_that_fails_is_no_prediction() {
    let place = prompted();
    let choice = |content: Value, finish: &str| json!({"choices": [{"index": 0, "message": {"content": content}, "finish_reason": finish}]});
    let sound = ok(&choice("view_20 = view(20)".into(), "stop"));
    for (number, (failed, says)) in [
        (choice("return ".into(), "error"), "finish_reason \"error\""),
        (choice("".into(), "content_filter"), "finish_reason \"content_filter\""),
        (choice(Value::Null, "length"), "has no 'message.content' (finish_reason \"length\")"),
        (choice(Value::Null, "tool_calls"), "finish_reason \"tool_calls\""),
    ]
    .into_iter()
    .enumerate()
    {
        let (url, seen) = failing(&Arc::default(), ok(&failed), sound.clone());
        let journal = format!("journal-{number}.jsonl");
        let flags = ["--journal", &journal, "--api", "chat"];
        complete(&place, &url, &flags).partly().says(&[says, "--retry-failed"]);
        complete(&place, &url, &flags).partly().says(&[says]);
        assert_eq!(seen.lock().unwrap().len(), 3, "{failed}");
        let predictions = place.named("cache/predictions/tasks", "none");
        assert_eq!(place.records(&predictions).len(), 2);
    }
}

#[test]
fn a_failed_answer_in_a_batch_is_a_failure() {
    let place = prompted();
    for (number, (failed, says)) in failed_answers("return ").into_iter().enumerate() {
        let journal = format!("journal-{number}.jsonl");
        let flags = [
            "complete", "--mode", "none", "--model", "m", "--max-tokens", "8", "--journal",
            &journal,
        ];
        place.stage(&[&flags[..], &["--write-batch", "requests.jsonl"]].concat()).done();
        let sound = json!({"choices": [{"text": "x = 1", "finish_reason": "stop"}]});
        let answers: Vec<Value> = place
            .records("requests.jsonl")
            .iter()
            .zip([&sound, &failed, &sound])
            .map(|(request, body)| json!({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": null}))
            .collect();
        place.write("answers.jsonl", crate::support::jsonl(&answers));
        let read = [&flags[..], &["--read-batch", "answers.jsonl"]].concat();
        place.stage(&read).partly().says(&[
            "2 answers, 1 failures",
            &format!("task {}: ", TARGETS[1].0),
            says,
        ]);
        let again = place.stage(&[&flags[..], &["--write-batch", "again.jsonl"]].concat()).done();
        again.says(&["1 request (2 prompts are already answered"]);
    }
    // `convert` reads such files too.
    place
        .run(&[
            "convert", "answers.jsonl", "--tasks", "tasks.jsonl", "--to", "repocoder-predictions",
            "-o", "p.jsonl",
        ])
        .partly()
        .says(&["choices[1] ended with finish_reason \"error\"", TARGETS[1].0]);
}

#[test]
fn predictions_with_a_failed_choice_are_not_scored() {
    let place = Place::new();
    let tasks = parse_jsonl(&place.read("tasks.jsonl"));
    let predictions: Vec<Value> = tasks
        .iter()
        .zip([
            json!([{"text": "store_12 = store(12)", "finish_reason": "stop"}]),
            json!([{"text": "", "finish_reason": "error"}]),
            json!([{"text": "main_30 = main(30)", "error": {"message": "no provider"}}]),
        ])
        .map(|(task, choices)| json!({"prompt": "", "metadata": task["metadata"], "choices": choices}))
        .collect();
    place.write("p.jsonl", crate::support::jsonl(&predictions));
    let says = [
        "p.jsonl:2: the answer's choices[0] ended with finish_reason \"error\"",
        "p.jsonl:3: the answer's choices[0] is an error: no provider",
    ];
    let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl"];
    place.run(&eval).failed().says(&says).says(&["2 of 3 tasks have none"]);
    place.run(&[&eval[..], &["--missing", "skip"]].concat()).partly().says(&says);
    place.run(&["validate", "p.jsonl"]).partly();
    // The failure may stand next to the completions.
    let ids = || tasks.iter().map(|task| &task["metadata"]["task_id"]);
    let fields = [
        json!({"pred": "", "error": "timeout"}),
        json!({"pred": "x", "finish_reason": "content_filter"}),
        json!({"choices": [{"text": "x"}], "error": {"message": "no provider"}}),
    ];
    let records = ids().zip(fields).map(|(id, mut record)| {
        record["task_id"] = id.clone();
        record
    });
    place.write("p.jsonl", crate::support::jsonl(&records.collect::<Vec<_>>()));
    let says =
        ["p.jsonl:1: ", "timeout", "p.jsonl:2: ", "content_filter", "p.jsonl:3: ", "no provider"];
    place.run(&eval).failed().says(&says).says(&["3 of 3 tasks have none"]);
}

/// A journal of a version that kept failed answers as completions, with its predictions.
#[test]
fn journals_of_earlier_versions_are_read_with_the_same_rule() {
    let place = prompted();
    let is_sound = Arc::new(Mutex::new(true));
    let (url, seen) = failing(&is_sound, completion(""), completion("\nview_20 = view(20)"));
    let flags = ["--until", "tokens"];
    complete(&place, &url, &flags).done();
    let predictions = place.named("cache/predictions/tasks", "none");
    let plain = |text: &str, change: &dyn Fn(usize, &mut Value)| -> String {
        let mut records = parse_jsonl(text);
        for (number, record) in records.iter_mut().enumerate() {
            let object = record.as_object_mut().unwrap();
            object.remove("record_checksum");
            object.remove("is_checked").unwrap();
            change(number, record);
        }
        crate::support::jsonl(&records)
    };
    let journal = "cache/journal/m.jsonl";
    let old = plain(&place.read(journal), &|number, entry| {
        if number == 0 {
            entry["samples"][0]["finish_reason"] = "error".into();
        }
        if number == 1 {
            entry["samples"][0]["finish_reason"] = Value::Null;
            entry["samples"][0]["text"] = "".into();
        }
    });
    place.write(journal, old);
    let (folder, name) = predictions.rsplit_once('/').unwrap();
    let header = format!("{folder}/.{}.header.json", name.trim_end_matches(".jsonl"));
    let mut fields: Value = serde_json::from_str(&place.read(&header)).unwrap();
    for field in ["record_checksum", "totals"] {
        fields.as_object_mut().unwrap().remove(field).unwrap();
    }
    place.write(&header, fields.to_string());
    let ran = complete(&place, &url, &flags).partly();
    ran.says(&[
        "finish_reason \"error\", which is not the end of a completion; an earlier version kept it as one",
        "1 answers that an earlier version kept are empty",
        "--retry-failed",
    ]);
    assert_eq!(place.records(&predictions).len(), 2);
    complete(&place, &url, &[&flags[..], &["--retry-failed"]].concat()).done();
    assert_eq!((place.records(&predictions).len(), seen.lock().unwrap().len()), (3, 4));
}

fn serving(place: &Place, url: &str, more: &[&str]) -> Serving {
    let data = ["--repos-dir", "repos", "--repo", "alpha", "--no-watch", "--endpoint", url];
    Serving::start(place, &[&data[..], more].concat())
}

#[test]
fn serve_names_a_failed_answer() {
    let place = Place::new();
    for (failed, says) in failed_answers("part of a text") {
        let (url, _) = server(move |_| ok(&failed));
        let serving = serving(&place, &url, &[]);
        let body = json!({"prompt": "def f", "stream": false});
        let (status, _, answer) = serving.post("/v1/completions", &body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 502 && message.contains(says), "{status} {answer}");
        let (status, _, answer) =
            serving.post("/infill", &json!({"input_prefix": "def f", "input_suffix": ""}));
        assert!(status == 502 && answer.contains("error"), "{status} {answer}");
        let last = serving.last();
        assert_eq!(last["outcome"], "failed", "{last}");
        assert!(last["error"].as_str().unwrap().contains(says), "{last}");
    }
    // In a stream, the text before the failure stays, and the stream ends with an error.
    let part = json!({"choices": [{"text": "part", "finish_reason": null}]});
    let end = json!({"choices": [{"text": "", "finish_reason": "error"}]});
    let events = stream(&[part, end]);
    let (url, _) = server(move |_| events.clone());
    let serving = serving(&place, &url, &[]);
    let (status, _, text) =
        serving.post("/v1/completions", &json!({"prompt": "def f", "stream": true}));
    assert_eq!(status, 200);
    assert!(text.contains("\"text\":\"part\"") && text.contains("upstream_error"), "{text}");
    assert!(text.contains("finish_reason \\\"error\\\"") && !text.contains("[DONE]"), "{text}");
    let (status, _, whole) = serving.post("/v1/completions", &json!({"prompt": "def f"}));
    assert!(status == 502 && whole.contains("finish_reason"), "{status} {whole}");
}

#[test]
fn the_language_server_names_a_failed_answer() {
    let place = Place::new();
    let failed = json!({"choices": [{"text": "part", "finish_reason": "content_filter"}]});
    let (url, _) = server(move |_| ok(&failed));
    let mut session = Session::start(&place, &["--endpoint", &url]);
    let uri = session.open(&place, "repos/alpha", "view.py", "def f(a, b):\n    ");
    let found = session.complete(&uri, 1, 4);
    assert_eq!(found["error"]["code"], -32803, "{found}");
    assert!(found["error"]["message"].as_str().unwrap().contains("\"content_filter\""), "{found}");
}

/// Completions by every protocol, from a server that writes `text` in pieces of `size` bytes, or as a whole.
fn completions(
    place: &Place,
    text: &'static str,
    size: usize,
    stop: &[&str],
    more: &[&str],
) -> Vec<String> {
    let (url, _) = server(move |request| {
        let pieces: Vec<String> = text
            .chars()
            .collect::<Vec<_>>()
            .chunks(size)
            .map(|piece| piece.iter().collect())
            .collect();
        let choice = |text: &str, finish: Option<&str>| json!({"choices": [{"index": 0, "text": text, "finish_reason": finish}]});
        if request.body["stream"] == true && size < text.len() {
            let pieces = pieces.iter().map(|piece| choice(piece, None));
            stream(&pieces.chain([choice("", Some("stop_sequence"))]).collect::<Vec<_>>())
        } else {
            ok(&choice(text, Some("stop_sequence")))
        }
    });
    let serving = serving(place, &url, more);
    let mut found = Vec::new();
    for (path, field) in [("/v1/completions", "text"), ("/infill", "content")] {
        for streams in [false, true] {
            let body = json!({"prompt": "x =", "input_prefix": "x =", "input_suffix": "", "stop": stop, "stream": streams});
            let body = match path {
                "/infill" => {
                    let mut body = body;
                    body["prompt"] = "".into();
                    body
                }
                _ => body,
            };
            let (status, _, answer) = serving.post(path, &body);
            assert_eq!(status, 200, "{answer}");
            let events: Vec<Value> = if streams {
                answer
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .filter_map(|data| serde_json::from_str(data).ok())
                    .collect()
            } else {
                vec![serde_json::from_str(&answer).unwrap()]
            };
            let texts = events.iter().filter_map(|event| match path {
                "/infill" => event[field].as_str(),
                _ => event["choices"][0][field].as_str(),
            });
            found.push(texts.collect());
        }
    }
    if stop.is_empty() {
        let mut session = Session::start(place, &[&["--endpoint", &url], more].concat());
        let uri = session.open(place, "repos/alpha", "view.py", "x =");
        let answer = session.complete(&uri, 0, 3);
        found.push(
            answer["result"]["items"][0]["insertText"].as_str().unwrap_or_default().to_owned(),
        );
    }
    found
}

/// TGI keeps the stop text in its text, and other servers accept at most four.
#[test]
fn a_completion_ends_at_every_stop_text_whoever_knows_it() {
    let place = Place::new();
    for size in [1, 2, 3, 5, 1000] {
        // The editor's first stop text, which the server knows and keeps.
        let found = completions(&place, " 1\n\nimport os\n", size, &["\n\n"], &[]);
        assert_eq!(found, [" 1"; 4], "{size}");
        // The editor's fifth and sixth stop text.
        let six = ["<a>", "<b>", "<c>", "<d>", "<e>", "<f>"];
        let found = completions(&place, " 1 <f <f>more", size, &six, &[]);
        assert_eq!(found, [" 1 <f "; 4], "{size}");
        // The flag's stop text, and the prompt style's.
        let found = completions(&place, " 2;rest", size, &[], &["--stop", ";"]);
        assert_eq!(found, [" 2"; 5], "{size}");
        let style = ["--prompt-style", "qwen2.5-coder"];
        let found = completions(&place, " 3<|file_sep|>b.py\nx = 1", size, &[], &style);
        assert_eq!(found, [" 3"; 5], "{size}");
        // The beginning of a stop text alone is part of the completion.
        let found = completions(&place, " 4<|file", size, &[], &style);
        assert_eq!(found, [" 4<|file"; 5], "{size}");
    }
}

#[test]
fn predictions_end_at_every_stop_text() {
    let place = prompted();
    const TEXT: &str = "\nview_20 = view(20)<|file_sep|>b.py";
    let stops = ["<a>", "<b>", "<c>", "<d>", "<|file_sep|>"].map(|stop| ["--stop", stop]).concat();
    for (api, journal) in [("completions", "a.jsonl"), ("chat", "b.jsonl")] {
        for until in ["tokens", "lines"] {
            let (url, _) = server(|request| {
                let text = |name: &str| {
                    if request.path.contains("chat") {
                        json!({"index": 0, name: {"content": TEXT}, "finish_reason": "stop_sequence"})
                    } else {
                        json!({"index": 0, "text": TEXT, "finish_reason": "eos_token"})
                    }
                };
                if request.body["stream"] == true {
                    stream(&[json!({"choices": [text("delta")]})])
                } else {
                    ok(&json!({"choices": [text("message")]}))
                }
            });
            let flags =
                ["--api", api, "--until", until, "--journal", &format!("{until}-{journal}")];
            complete(&place, &url, &[&flags[..], &stops].concat()).done();
            let predictions = place.named("cache/predictions/tasks", "none");
            for record in place.records(&predictions) {
                assert_eq!(record["choices"][0]["text"], "view_20 = view(20)", "{api} {until}");
            }
        }
    }
}

/// The HTML standard's rules for event streams: a byte-order mark, and lines that end in CR.
#[test]
fn event_streams_are_read_by_the_standard() {
    let place = prompted();
    let part = |text: &str, finish: Option<&str>| json!({"choices": [{"index": 0, "text": text, "finish_reason": finish}]});
    let events = [part("\nreturn a", None), part(" + b", None), part("\nmore", Some("stop"))];
    for end in ["\n", "\r\n", "\r"] {
        for (begin, kind, done) in [
            ("", "text/event-stream", "data: [DONE]"),
            ("\u{feff}", "Text/Event-Stream; Charset=UTF-8", "data:[DONE]"),
            ("\u{feff}: comment", "text/event-stream;charset=utf-8", "event: end"),
        ] {
            let lines = events.iter().map(|event| format!("data:{event}{end}id: 1{end}{end}"));
            let begin = if begin.ends_with("comment") {
                format!("{begin}{end}{end}")
            } else {
                begin.into()
            };
            let text = format!("{begin}{}{done}{end}{end}", lines.collect::<String>());
            let headers = format!("Content-Type: {kind}\r\n");
            let (url, seen) = server(move |_| answer("200 OK", &headers, &text));
            complete(&place, &url, &[]).done();
            assert_eq!(seen.lock().unwrap().len(), 3, "{end:?} {kind}");
            let predictions = place.named("cache/predictions/tasks", "none");
            for record in place.records(&predictions) {
                assert_eq!(record["choices"][0]["text"], "return a + b", "{end:?} {kind}");
            }
            let serving = serving(&place, &url, &["--prompt-end", "as-is"]);
            let (_, _, answer) = serving.post("/v1/completions", &json!({"prompt": "x"}));
            assert!(
                answer.contains("\"text\":\"\\nreturn a + b\\nmore\""),
                "{end:?} {kind}: {answer}"
            );
            std::fs::remove_dir_all(place.path("cache/journal")).unwrap();
            std::fs::remove_dir_all(place.path("cache/predictions")).unwrap();
        }
    }
}

/// JavaScript writes half a pair for a string that is cut within a character.
#[test]
fn half_a_surrogate_pair_is_a_replacement_character() {
    let place = prompted();
    let (url, seen) = server(|request| {
        if request.body["stream"] == true {
            answer(
                "200 OK",
                EVENTS,
                "data: {\"choices\": [{\"text\": \"\\nx \\ud83d\", \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n",
            )
        } else {
            answer("200 OK", "", "{\"choices\": [{\"text\": \"\\nx \\udc00\"}]}")
        }
    });
    for until in ["lines", "tokens"] {
        let flags = ["--until", until, "--journal", until];
        complete(&place, &url, &flags).done();
        let predictions = place.named("cache/predictions/tasks", "none");
        assert_eq!(place.records(&predictions)[0]["choices"][0]["text"], "x \u{fffd}");
    }
    let serving = serving(&place, &url, &[]);
    for (path, body) in [
        ("/v1/completions", r#"{"prompt": "cut \ud83d here", "suffix": "\udc00"}"#),
        ("/infill", r#"{"input_prefix": "cut \ud83d here", "input_suffix": ""}"#),
    ] {
        let (status, _, answer) = serving.ask(path, "", body);
        assert!(status == 200 && answer.contains("x \u{fffd}"), "{status} {answer}");
        let sent = seen.lock().unwrap().last().unwrap().prompt().to_owned();
        assert!(sent.contains("cut \u{fffd} here"), "{sent}");
    }
    let mut session = Session::start(&place, &["--endpoint", &url]);
    let uri = session.open(&place, "repos/alpha", "view.py", "");
    let edit = format!(
        r#"{{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {{"textDocument": {{"uri": "{uri}", "version": 2}}, "contentChanges": [{{"text": "cut \ud83d here"}}]}}}}"#
    );
    session.send_text(&edit);
    let found = session.complete(&uri, 0, 10);
    assert!(
        found["result"]["items"][0]["insertText"].as_str().unwrap().contains('\u{fffd}'),
        "{found}"
    );
    let sent = seen.lock().unwrap().last().unwrap().prompt().to_owned();
    assert!(sent.contains("cut \u{fffd} here"), "{sent}");
}

/// Event of a completion, in the words of a server that writes bytes as it pleases.
fn raw_event(text: &str, finish: &str) -> String {
    format!(
        "data: {{\"choices\": [{{\"index\": 0, \"text\": \"{text}\", \"finish_reason\": {finish}}}]}}\n\n"
    )
}

/// A server that streams these bytes.
fn raw_server(bytes: Vec<u8>) -> String {
    server(move |_| answer("200 OK", EVENTS, &bytes)).0
}

/// A server that streams token by token divides characters: by their bytes in UTF-8, or by the halves of a surrogate pair.
#[test]
fn a_character_that_two_events_divide_is_whole() {
    let place = prompted();
    let of = |pieces: &[&[u8]]| {
        let mut bytes = Vec::new();
        for piece in pieces {
            let event = raw_event("X", "null");
            let (begin, end) = event.split_once('X').unwrap();
            bytes.extend([begin.as_bytes(), piece, end.as_bytes()].concat());
        }
        bytes.extend((raw_event("", "\"stop\"") + "data: [DONE]\n\n").into_bytes());
        bytes
    };
    for (number, (pieces, wanted)) in [
        (&[&b"\\nx = '"[..], b"\\ud83d", b"\\ude00'"][..], "x = '😀'"),
        (&[b"\\nx = '\xf0\x9f", b"\x98\x80'"], "x = '😀'"),
        (&[b"\\nx = '\xf0", b"\x9f", b"\x98", b"\x80'"], "x = '😀'"),
        // A half that nothing completes.
        (&[b"\\nx = '\\ud83d", b"'"], "x = '\u{fffd}'"),
        (&[b"\\nx = '\\ud83d"], "x = '\u{fffd}"),
    ]
    .into_iter()
    .enumerate()
    {
        let url = raw_server(of(pieces));
        let flags = ["--journal", &format!("journal-{number}.jsonl")];
        complete(&place, &url, &flags).done();
        let predictions = place.named("cache/predictions/tasks", "none");
        assert_eq!(place.records(&predictions)[0]["choices"][0]["text"], wanted);
        let serving = serving(&place, &url, &[]);
        for streams in [false, true] {
            let body = json!({"prompt": "def f():\n", "stream": streams});
            let (_, _, answer) = serving.post("/v1/completions", &body);
            let texts = answer.lines().filter_map(|line| {
                let event = line.strip_prefix("data: ").unwrap_or(line);
                let event: Value = serde_json::from_str(event).ok()?;
                Some(event["choices"][0]["text"].as_str()?.to_owned())
            });
            assert_eq!(texts.collect::<String>(), wanted, "{streams} {answer}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_off_is_named_as_such() {
    let place = Place::new();
    let begun = raw_event("x", "null");
    for (bytes, says) in [
        (begun.clone(), "the stream was cut off after 1 event, before [DONE]"),
        (
            begun.clone() + &begun + "data: {\"choi",
            "the stream was cut off after 2 events, before [DONE]; the next one begins: {\\\"choi",
        ),
        (String::new(), "the stream was cut off before its first event"),
    ] {
        let url = raw_server(bytes.into_bytes());
        let serving = serving(&place, &url, &[]);
        let (status, _, answer) = serving.post("/v1/completions", &json!({"prompt": "x"}));
        assert!(status == 502 && answer.contains(says), "{status} {answer}");
    }
}

/// llama.cpp's `stop_type` and `stopping_word` (`tools/server/README.md`).
#[test]
fn infill_says_why_a_completion_ended() {
    let place = Place::new();
    let choice = |more: Value| {
        let mut choice = json!({"index": 0, "text": " 1\n\nimport os"});
        choice.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"choices": [choice]})
    };
    for (more, stop, stop_type, word) in [
        (json!({"finish_reason": "stop"}), "\n\n", "word", "\n\n"),
        (json!({"finish_reason": "length"}), "\n\n", "word", "\n\n"),
        (json!({"finish_reason": "stop"}), "unseen", "eos", ""),
        (json!({"finish_reason": "length"}), "unseen", "limit", ""),
        (json!({"finish_reason": "max_tokens"}), "unseen", "limit", ""),
        (json!({"finish_reason": "stop_sequence"}), "unseen", "word", ""),
        // vLLM names the stop text, or a token.
        (json!({"finish_reason": "stop", "stop_reason": "unseen"}), "unseen", "word", "unseen"),
        (json!({"finish_reason": "stop", "stop_reason": 151643}), "unseen", "eos", ""),
    ] {
        let events = stream(&[choice(more.clone())]);
        let (url, _) = server(move |_| events.clone());
        let serving = serving(&place, &url, &[]);
        for streams in [false, true] {
            let body = json!({"input_prefix": "x =", "input_suffix": "", "stop": [stop], "stream": streams});
            let (_, _, answer) = serving.post("/infill", &body);
            // A stream ends with the length of an empty chunk.
            let last = answer.lines().rfind(|line| line.contains('{')).unwrap();
            let last: Value =
                serde_json::from_str(last.strip_prefix("data: ").unwrap_or(last)).unwrap();
            let found = (last["stop_type"].as_str(), last["stopping_word"].as_str());
            assert_eq!(found, (Some(stop_type), Some(word)), "{more} {last}");
        }
    }
}

/// A request with a byte-order mark is read; bytes that are not UTF-8 are named, as a document with U+FFFD in it would not be
/// that of the editor.
#[test]
fn bodies_of_other_encodings_are_read_or_refused_by_their_byte() {
    let place = Place::new();
    let (url, seen) = server(|_| completion(" 1"));
    let serving = serving(&place, &url, &[]);
    let (status, _, answer) = serving.ask("/v1/completions", "", "\u{feff}{\"prompt\": \"x =\"}");
    assert!(status == 200 && answer.contains("\" 1\""), "{status} {answer}");
    let body = b"{\"prompt\": \"caf\xe9 =\"}";
    let (status, _, answer) = serving.ask_bytes("/v1/completions", body);
    let says = "the body is not UTF-8: byte 16 is 0xe9";
    assert!(status == 400 && answer.contains(says), "{status} {answer}");
    assert_eq!(seen.lock().unwrap().len(), 1);
    // A language server has no answer to a change, so that its document stays that of the editor.
    let mut session = Session::start(&place, &["--endpoint", &url]);
    let uri = session.open(&place, "repos/alpha", "view.py", "");
    let edit = format!(
        r#"{{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {{"textDocument": {{"uri": "{uri}", "version": 2}}, "contentChanges": [{{"text": "caf~ here"}}]}}}}"#
    );
    let edit: Vec<u8> = edit.bytes().map(|byte| if byte == b'~' { 0xe9 } else { byte }).collect();
    session.send_bytes(&edit);
    session.complete(&uri, 0, 9);
    let sent = seen.lock().unwrap().last().unwrap().prompt().to_owned();
    assert!(sent.contains("caf\u{fffd} here"), "{sent}");
}

/// Tasks of one file, so many that a failing server shows.
fn many_tasks(count: usize) -> Place {
    let place = Place::new();
    let task = place.records("tasks.jsonl").remove(0);
    let tasks = (0..count).map(|number| {
        let mut task = task.clone();
        task["metadata"]["task_id"] = format!("alpha/{number}").into();
        task["prompt"] = format!("# {number}\n{}", task["prompt"].as_str().unwrap()).into();
        task
    });
    place.write("tasks.jsonl", crate::support::jsonl(&tasks.collect::<Vec<_>>()));
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place
}

/// An answer that reports a failure counts alike, whether it does as a whole or for its choice.
#[test]
fn answers_that_report_failures_count_alike() {
    let place = many_tasks(30);
    let error = json!({"error": {"message": "no such function"}});
    let choice = json!({"choices": [{"text": "", "finish_reason": "error"}]});
    for (number, failed) in [error, choice].into_iter().enumerate() {
        let is_sound = Arc::new(Mutex::new(false));
        let is_up = Arc::clone(&is_sound);
        let (url, seen) =
            server(move |_| if *is_up.lock().unwrap() { completion("\nx") } else { ok(&failed) });
        let journal = format!("journal-{number}.jsonl");
        let flags = ["--until", "tokens", "--journal", &journal, "--concurrency", "1"];
        complete(&place, &url, &flags).failed();
        assert_eq!(seen.lock().unwrap().len(), 25);
        // The next run asks again.
        *is_sound.lock().unwrap() = true;
        complete(&place, &url, &flags).done();
        assert_eq!(seen.lock().unwrap().len(), 25 + 30);
    }
}

/// A status that passes is waited for wherever an answer names it: OpenRouter writes it into the choice.
#[test]
fn an_overload_next_to_choices_is_waited_for() {
    let place = prompted();
    let sound = json!({"choices": [{"text": "\nview_20", "finish_reason": "stop"}]});
    for (number, failed) in [
        json!({"error": {"code": 429, "message": "slow down"}, "choices": [{"text": "part", "finish_reason": "error"}]}),
        json!({"choices": [{"text": "part", "finish_reason": "error", "error": {"code": "503", "message": "busy"}}]}),
    ]
    .into_iter()
    .enumerate()
    {
        let (sound, count) = (sound.clone(), Arc::new(Mutex::new(0)));
        let (url, seen) = server(move |request| {
            let mut count = count.lock().unwrap();
            *count += 1;
            let answer = if *count == 1 { &failed } else { &sound };
            if request.body["stream"] == true { stream(std::slice::from_ref(answer)) } else { ok(answer) }
        });
        for until in ["tokens", "lines"] {
            let journal = format!("journal-{number}-{until}.jsonl");
            let flags = ["--until", until, "--journal", &journal, "--concurrency", "1",];
            complete(&place, &url, &flags).done();
            assert!(place.records(&journal).iter().all(|entry| entry.get("error").is_none()));
        }
        assert_eq!(seen.lock().unwrap().len(), 1 + 3 + 3);
    }
    // An editor does not wait: it gets the status.
    let busy =
        json!({"error": {"code": 429, "message": "slow down"}, "choices": [{"text": "part"}]});
    let (url, _) = server(move |_| ok(&busy));
    let serving = serving(&place, &url, &[]);
    let (status, _, answer) = serving.post("/v1/completions", &json!({"prompt": "x"}));
    assert!(status == 429 && answer.contains("slow down"), "{status} {answer}");
}
