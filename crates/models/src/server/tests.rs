//! Tests against a server that misbehaves on purpose.

mod streams;

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use repoformer_core::completion::{Api, CompletionRequest, Ending, Sample, samples};
use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use repoformer_testing::{TestServer, answer, events, ok, refusal, refusal_with};
use serde_json::{Value, json};

use super::*;
use crate::endpoint::test_client::client;
use crate::endpoint::{Endpoint, mask_keys_of};

/// Returns an answer with these texts.
fn texts(texts: &[&str]) -> Vec<u8> {
    let choice = |(index, text): (usize, &&str)| json!({"index": index, "text": text, "finish_reason": "length"});
    ok(&json!({"choices": texts.iter().enumerate().map(choice).collect::<Vec<_>>()}))
}

fn place() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/journal.jsonl");
    (dir, path)
}

/// Answer to each prompt, and the number of prompts sent.
#[derive(Debug)]
struct Outcome {
    entries: Vec<JournalEntry>,
    asked: usize,
}

fn ask(
    server: &TestServer,
    asking: &CompletionRequest,
    prompts: &[&str],
    path: &std::path::Path,
) -> Result<Outcome> {
    ask_again(server, asking, prompts, path, false)
}

fn ask_again(
    server: &TestServer,
    asking: &CompletionRequest,
    prompts: &[&str],
    path: &std::path::Path,
    retry_failed: bool,
) -> Result<Outcome> {
    let mut journal = Journal::open(path)?;
    let endpoint = client(server);
    let completer = Completer::new(&endpoint);
    let keys: Vec<String> = prompts.iter().map(|prompt| asking.key(prompt)).collect();
    let ask = |place: usize| completer.ask(asking, prompts[place], None);
    let open = find_unanswered(&keys, Some(&journal), retry_failed);
    let asked = open.len();
    let work = Work::begin("ask", "prompts");
    let failures = run(&keys, open, 3, &mut journal, &work, &mut Ok, &ask)?;
    let entry = |key: &String| {
        let reason = failures.get(key).cloned().unwrap_or_default();
        Ok(journal.get(key)?.unwrap_or_else(|| JournalEntry::from_failure(key, reason)))
    };
    Ok(Outcome { entries: keys.iter().map(entry).collect::<Result<_>>()?, asked })
}

fn found(outcome: &Outcome) -> Vec<&str> {
    let samples = outcome.entries.iter().map(|entry| entry.samples.first());
    samples.map(|sample| sample.map_or("-", |sample| &sample.text)).collect()
}

const SECRET: &str = "rk-Hu8Bw5Nc2Jm6Tg9Lf3Ys";

/// Returns the client of a server, with a key that the program masks.
fn endpoint_with_key(server: &TestServer) -> Endpoint {
    mask_keys_of(&format!("http://h/v1?key={SECRET}"));
    client(server)
}

#[test]
fn samples_that_spell_a_key_together_are_a_failure() {
    for samples in [SECRET.len(), 3] {
        let pieces: Vec<char> = SECRET.chars().collect();
        let pieces: Vec<String> = pieces
            .chunks(pieces.len().div_ceil(samples))
            .map(|piece| format!("\n{}", piece.iter().collect::<String>()))
            .collect();
        for (is_one_by_one, is_streamed) in [(true, false), (false, true)] {
            let pieces = pieces.clone();
            let server = TestServer::start(move |number, _| {
                let choice = |(index, text): (usize, &String)| json!({"choices": [{"index": index, "text": text, "finish_reason": "stop"}]});
                if is_one_by_one {
                    texts(&[&pieces[number % pieces.len()]])
                } else {
                    events(&pieces.iter().enumerate().map(choice).collect::<Vec<_>>())
                }
            });
            let endpoint = endpoint_with_key(&server);
            let asking = CompletionRequest { samples, ..CompletionRequest::new("m", 7) };
            let is_enough = |_: &str, _: usize| false;
            let is_enough: &dyn Fn(&str, usize) -> bool = &is_enough;
            let completer = Completer::new(&endpoint);
            let error = completer.ask(&asking, "p", is_streamed.then_some(is_enough)).unwrap_err();
            assert!(error.to_string().contains("joined together, contain an API key"), "{error}");
        }
    }
}

/// Returns the end of a streamed completion.
fn streamed_end(of: &[Value]) -> Result<StreamEnd> {
    let of = of.to_vec();
    let server = TestServer::start(move |_, _| events(&of));
    let request =
        StreamRequest::new(&CompletionRequest::new("m", 7), "p", &serde_json::Map::default());
    let mut end = None;
    stream(&endpoint_with_key(&server), request, &mut |part| {
        if let StreamPart::End(found) = part {
            end = Some(found);
        }
        false
    })?;
    Ok(end.unwrap())
}

#[test]
fn counts_are_passed_on_that_are_known_and_spell_no_key() {
    let choice = json!([{"index": 0, "text": "x", "finish_reason": "stop"}]);
    let usage = json!({
        "prompt_tokens": 3, "x": 1, "total_tokens": "4", "completion_tokens": null,
        "prompt_tokens_details": {"cached_tokens": 2, "y": SECRET},
    });
    let timings = json!({"prompt_n": 1, "predicted_ms": 0.5, "prompt_ms": [7], "z": {}});
    let end = streamed_end(&[
        json!({"choices": choice, "usage": usage}),
        json!({"choices": [], "timings": timings}),
    ]);
    let end = end.unwrap();
    let usage = json!({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}});
    assert_eq!((end.usage, end.timings), (usage, json!({"prompt_n": 1, "predicted_ms": 0.5})));
    // No event alone contains enough of the key to be masked, but together they do.
    let bytes = SECRET.as_bytes();
    for (first, second) in [("usage", "timings"), ("timings", "usage")] {
        let names = |of: &str| match of {
            "usage" => [
                "prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens",
                "audio_tokens", "reasoning_tokens",
            ],
            _ => ["cache_n", "prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "draft_n"],
        };
        let counts = |of: &str, at: usize| -> Value {
            let number = |(name, byte): (&str, &u8)| (name.to_owned(), Value::from(*byte));
            names(of).into_iter().zip(&bytes[at..]).map(number).collect()
        };
        let end = streamed_end(&[
            json!({"choices": choice, first: counts(first, 0)}),
            json!({"choices": [], second: counts(second, 6)}),
        ]);
        let end = end.unwrap();
        assert_eq!((end.usage, end.timings), (Value::Null, Value::Null), "{first}");
    }
}

#[test]
fn a_model_of_a_long_name_is_refused() {
    let named = |length: usize| {
        let choice = json!([{"index": 0, "text": "x", "finish_reason": "stop"}]);
        streamed_end(&[json!({"model": "m".repeat(length), "choices": choice})])
    };
    named(4096).unwrap();
    let error = named(4097).unwrap_err().to_string();
    assert!(error.ends_with("the answer's model name is longer than 4096 bytes"), "{error}");
}

#[test]
fn answers_stand_in_the_order_of_prompts_and_are_asked_for_once() {
    let (answered, more) = (Mutex::new(BTreeSet::from([4])), Condvar::new());
    let server = TestServer::start(move |_, request| {
        let prompt = request.body["prompt"].as_str().unwrap();
        // The first requests are answered last: each waits for the next longer prompt.
        let is_early = |answered: &mut BTreeSet<usize>| !answered.contains(&(prompt.len() + 1));
        let mut answered = more.wait_while(answered.lock().unwrap(), is_early).unwrap();
        answered.insert(prompt.len());
        more.notify_all();
        texts(&[&format!("{prompt}!")])
    });
    let (_dir, path) = place();
    let asking = CompletionRequest::new("m", 7);
    let prompts = ["a", "bb", "ccc", "bb"];
    let first = ask(&server, &asking, &prompts, &path).unwrap();
    assert_eq!(found(&first), ["a!", "bb!", "ccc!", "bb!"]);
    assert_eq!((first.asked, server.requests().len()), (3, 3));
    let again = ask(&server, &asking, &prompts, &path).unwrap();
    assert_eq!((found(&again), again.asked), (found(&first), 0));
    // A different token limit makes it a different request.
    let longer = CompletionRequest::new("m", 8);
    assert_eq!(ask(&server, &longer, &prompts[..1], &path).unwrap().asked, 1);
    let body = &server.requests()[0].body;
    let wanted = json!({"model": "m", "prompt": body["prompt"], "logprobs": 1, "max_tokens": 7, "temperature": 0.0});
    assert_eq!(body, &wanted);
}

#[test]
fn what_fails_is_kept_as_such_and_loses_nothing_else() {
    let server =
        TestServer::start(|number, request| match request.body["prompt"].as_str().unwrap() {
            "long" if number < 50 => {
                refusal("400 Bad Request", "exceeds the available context size (4096 tokens)")
            }
            "odd" => ok(&json!({"choices": [{"index": 0}]})),
            "none" => ok(&json!({"id": 1})),
            "empty" => ok(&json!({"choices": []})),
            _ => texts(&["fine"]),
        });
    let (_dir, path) = place();
    let asking = CompletionRequest::new("m", 7);
    let mut prompts = vec!["a", "long", "b", "odd", "c", "none", "d", "empty"];
    let outcome = ask(&server, &asking, &prompts, &path).unwrap();
    assert_eq!(found(&outcome), ["fine", "-", "fine", "-", "fine", "-", "fine", "-"]);
    let errors: Vec<String> = (outcome.entries.iter())
        .filter_map(|entry| Some(entry.error.as_ref()?.to_string()))
        .collect();
    assert!(errors[0].contains("exceeds the available context size"), "{errors:?}");
    assert!(errors[1].contains("choices[0] has no 'text'"), "{errors:?}");
    assert!(errors[2].contains("no 'choices'") && errors[3].contains("are empty"), "{errors:?}");
    assert_eq!(ask(&server, &asking, &prompts, &path).unwrap().asked, 0);
    let retried = ask_again(&server, &asking, &prompts, &path, true).unwrap();
    assert_eq!(retried.asked, 4);
    // Any number of prompts may be too long.
    prompts = vec!["long"; 1];
    assert_eq!(found(&ask(&server, &asking, &prompts, &path).unwrap()), ["-"]);
}

#[test]
fn a_server_that_answers_nothing_ends_the_run_and_what_came_is_kept() {
    for (status, said) in
        [("401 Unauthorized", "401 Unauthorized"), ("404 Not Found", "no such model")]
    {
        let server = TestServer::start(move |_, request| {
            if request.body["prompt"] == "good" {
                texts(&["fine"])
            } else {
                refusal(status, "no such model")
            }
        });
        let (_dir, path) = place();
        let asking = CompletionRequest::new("m", 7);
        let prompts: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
        let mut prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
        prompts.insert(0, "good");
        let error = ask(&server, &asking, &prompts, &path).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(server.requests().len() < 15, "{}", server.requests().len());
        let journal = Journal::open(&path).unwrap();
        let known = journal.get(&asking.key("good")).unwrap().unwrap();
        assert_eq!(known.samples[0].text, "fine");
    }
    let server = TestServer::start(|_, _| answer("200 OK", "", "<html>a page</html>"));
    let (_dir, path) = place();
    let error =
        ask(&server, &CompletionRequest::new("m", 7), &["a", "b", "c", "d", "e", "f"], &path);
    assert!(error.unwrap_err().to_string().contains("HTML instead of JSON"));
}

#[test]
fn servers_give_as_many_samples_as_they_like() {
    let asked = |server: &TestServer| -> BTreeSet<(Option<u64>, Option<u64>)> {
        let of = |body: &Value| (body["seed"].as_u64(), body["n"].as_u64());
        server.requests().iter().map(|request| of(&request.body)).collect()
    };
    let asking = CompletionRequest {
        samples: 3,
        temperature: 0.8,
        seed: Some(7),
        ..CompletionRequest::new("m", 7)
    };
    // A server that returns all samples, one that always returns one, and one that rejects more than one.
    let all = TestServer::start(|_, _| texts(&["x", "y", "z", "too many"]));
    let one = TestServer::start(|_, request| texts(&[&request.body["seed"].to_string()]));
    let none = TestServer::start(|_, request| match request.body.get("n") {
        Some(_) => refusal("400 Bad Request", "Field 'n': Value must be between 1 <= value <= 1"),
        None => texts(&[&request.body["seed"].to_string()]),
    });
    let of = |server: &TestServer| {
        let (_dir, path) = place();
        let outcome = ask(server, &asking, &["p"], &path).unwrap();
        let samples = &outcome.entries[0].samples;
        samples.iter().map(|sample| sample.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&all), ["x", "y", "z"]);
    assert_eq!(asked(&all), [(Some(7), Some(3))].into());
    assert_eq!(of(&one), ["7", "8", "9"]);
    assert_eq!(of(&none), ["7", "8", "9"]);
    assert_eq!(
        asked(&none),
        [(Some(7), Some(3)), (Some(7), None), (Some(8), None), (Some(9), None)].into()
    );
}

#[test]
fn an_interrupted_run_goes_on() {
    let count = Mutex::new(0);
    let server = TestServer::start(move |_, request| {
        *count.lock().unwrap() += 1;
        texts(&[request.body["prompt"].as_str().unwrap()])
    });
    let (_dir, path) = place();
    let asking = CompletionRequest::new("m", 7);
    let prompts = ["a", "b", "c", "d"];
    ask(&server, &asking, &prompts, &path).unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    let end_of_second = whole.match_indices('\n').nth(1).unwrap().0 + 1;
    std::fs::write(&path, &whole[..end_of_second + 20]).unwrap();
    let outcome = ask(&server, &asking, &prompts, &path).unwrap();
    assert_eq!((outcome.asked, found(&outcome)), (2, prompts.to_vec()));
    // A file that is not a journal is left unchanged.
    std::fs::write(&path, "my notes").unwrap();
    let error = Journal::open(&path).unwrap_err().to_string();
    assert!(error.contains("journal.jsonl:1: not an answer"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes");
}

/// Answers of llama.cpp's server and of llama-cpp-python to the same request, shortened.
#[test]
fn both_styles_of_log_probabilities() {
    let new = json!({"choices": [{"text": "read().", "index": 0, "finish_reason": "length", "logprobs": {"content": [
        {"id": 1040, "token": "read", "bytes": [114, 101, 97, 100], "logprob": -0.025, "top_logprobs": []},
        {"id": 2, "token": "", "bytes": [], "logprob": -23.5, "top_logprobs": []}]}}]});
    let old = json!({"choices": [{"text": "read().", "index": 0, "finish_reason": "length", "logprobs": {
        "text_offset": [75, 79], "token_logprobs": [-0.025, null], "tokens": ["read", "()."], "top_logprobs": null}}]});
    let of = |answer: &Value| {
        let tokens = &samples(answer, Api::Completions).unwrap()[0].tokens;
        tokens.iter().map(|token| (token.id, token.text.clone(), token.logprob)).collect::<Vec<_>>()
    };
    assert_eq!(of(&new), [(Some(1040), "read".into(), -0.025), (Some(2), "".into(), -23.5)]);
    assert_eq!(of(&old), [(None, "read".into(), -0.025)]);
    let chat = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "logprobs": null}]});
    assert_eq!(samples(&chat, Api::Chat).unwrap()[0].text, "x");
    assert!(samples(&chat, Api::Completions).unwrap_err().to_string().contains("no 'text'"));
}

#[test]
fn completions_end_at_stop_texts_that_servers_are_not_told() {
    let stop: Vec<String> = ["<a>", "<b>", "<c>", "<d>", "<e>", "<f>"].map(Into::into).into();
    let asking = CompletionRequest { stop, ..CompletionRequest::new("m", 9) };
    assert_eq!(asking.body("x", 0, 1)["stop"], json!(["<a>", "<b>", "<c>", "<d>"]));
    assert_eq!(asking.completion("x", "y<f>z<e>"), "y");
    assert_eq!(asking.completion("x", "y<"), "y<");
    // The key covers all stop texts.
    let mut fewer = asking.clone();
    fewer.stop.pop();
    assert_ne!(fewer.key("x"), asking.key("x"));
}

#[test]
fn the_end_of_a_prompt_is_kept_back_and_its_stops_with_it() {
    let asking = CompletionRequest {
        ending: Ending::BeforeWhitespace,
        stop: vec!["\n".into(), "\ndef ".into(), "<|end|>".into()],
        ..CompletionRequest::new("m", 7)
    };
    let body = asking.body("def f():\n    ", 0, 1);
    assert_eq!(
        (&body["prompt"], &body["stop"]),
        (&json!("def f():"), &json!(["\ndef ", "<|end|>"]))
    );
    // A function that comes first does not end the completion: no line ends before it.
    let functions = CompletionRequest { stop: vec!["\ndef ".into()], ..asking.clone() };
    assert_eq!(functions.completion("x = 1\n", "\ndef f():\n    a\ndef g"), "def f():\n    a");
    assert_eq!(asking.completion("def f():\n    ", "\n    return x\n    y"), "return x");
    let body = asking.body("x =", 0, 1);
    assert_eq!(body["stop"], json!(["\n", "\ndef ", "<|end|>"]));
    assert_ne!(asking.key("x =\n"), asking.key("x =\n\n"));
    let chat = CompletionRequest { api: Api::Chat, stop: Vec::new(), ..asking };
    // A chat's answer may begin with any line.
    for (prompt, written, text) in [
        ("def f():\n", "    return 1", "    return 1"),
        ("def f():\n", "    a = 2\n    return a", "    a = 2\n    return a"),
        ("def f():\n", "\n    return 1", "    return 1"),
        ("def f():\n    ", "    return 1", "return 1"),
        ("x = ", "1", "1"),
    ] {
        assert_eq!(chat.completion(prompt, written), text, "{prompt:?} {written:?}");
    }
    let body = chat.body("x = 1\n", 0, 2);
    assert_eq!(body["messages"][1], json!({"role": "user", "content": "x = 1"}));
    assert_eq!((&body["n"], &body["logprobs"]), (&json!(2), &json!(true)));
}

/// Failures of the server are not failures of its prompts.
#[test]
fn what_the_server_fails_by_is_asked_again_without_being_told() {
    let (_dir, path) = place();
    let asking = CompletionRequest::new("m", 7);
    let prompts: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    for status in ["401 Unauthorized", "404 Not Found", "429 Too Many Requests", "502 Bad Gateway"]
    {
        let down = TestServer::start(move |_, _| refusal(status, "too many tokens"));
        ask(&down, &asking, &prompts, &path).unwrap_err();
    }
    let page = TestServer::start(|_, _| answer("200 OK", "", "<html>a page</html>"));
    ask(&page, &asking, &prompts, &path).unwrap_err();
    let up = TestServer::start(|_, request| match request.body["prompt"].as_str().unwrap() {
        "p3" => refusal("503 Service Unavailable", "too many tokens"),
        "p7" => refusal("400 Bad Request", "what a prompt"),
        _ => texts(&["fine"]),
    });
    let outcome = ask(&up, &asking, &prompts, &path).unwrap();
    assert_eq!(outcome.asked, 12);
    let failed = found(&outcome).iter().filter(|text| **text == "-").count();
    assert_eq!(failed, 2);
    // The overload can be retried; the rejection is the prompt's failure.
    assert_eq!(ask(&up, &asking, &["p7", "p1"], &path).unwrap().asked, 0);
    assert_eq!(ask(&up, &asking, &prompts, &path).unwrap().asked, 1);
    assert_eq!(ask_again(&up, &asking, &prompts, &path, true).unwrap().asked, 2);
}

#[test]
fn prompts_that_failed_do_not_stand_in_the_way_of_others() {
    let server = TestServer::start(|_, request| match request.body["prompt"].as_str().unwrap() {
        "busy" => refusal("503 Service Unavailable", "later"),
        prompt if prompt.starts_with("bad") => refusal("400 Bad Request", "what a prompt"),
        _ => texts(&["fine"]),
    });
    let (_dir, path) = place();
    let asking = CompletionRequest::new("m", 7);
    let bad: Vec<String> = (0..30).map(|number| format!("bad {number}")).collect();
    let mut prompts: Vec<&str> = bad.iter().map(String::as_str).collect();
    let error = ask(&server, &asking, &prompts, &path).unwrap_err();
    assert!(error.to_string().contains("what a prompt"), "{error}");
    prompts.insert(0, "good");
    assert_eq!(ask(&server, &asking, &prompts, &path).unwrap().asked, 31);
    prompts.push("also good");
    prompts.push("busy");
    let outcome = ask_again(&server, &asking, &prompts, &path, true).unwrap();
    // Nor do they make a single overload end the run.
    assert_eq!((outcome.asked, found(&outcome)[31]), (32, "fine"));
}

#[test]
fn one_refusal_does_not_make_every_prompt_a_request_a_sample() {
    let server = TestServer::start(|_, request| {
        if request.body["prompt"] == "bad" {
            refusal("400 Bad Request", "what a prompt")
        } else {
            texts(&["x", "y", "z", "a"])
        }
    });
    let asking =
        CompletionRequest { samples: 4, temperature: 1.0, ..CompletionRequest::new("m", 7) };
    let (_dir, path) = place();
    ask(&server, &asking, &["good", "bad", "a", "b", "c"], &path).unwrap();
    assert_eq!(server.requests().len(), 6);
}

/// OpenAI's newer chat models reject fields that older models require.
#[test]
fn what_a_server_does_not_know_is_left_out() {
    let server = TestServer::start(|_, request| {
        let refused = |what: &str| refusal("400 Bad Request", what);
        match &request.body {
            body if body.get("logprobs").is_some() => {
                refused("Unsupported parameter: 'logprobs' is not supported with this model.")
            }
            body if body.get("max_tokens").is_some() => refused(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            ),
            body => texts(&[&body["max_completion_tokens"].to_string()]),
        }
    });
    let (_dir, path) = place();
    let outcome =
        ask(&server, &CompletionRequest::new("m", 7), &["a", "b", "c", "d"], &path).unwrap();
    assert_eq!(found(&outcome), ["7", "7", "7", "7"]);
    assert!(server.requests().len() <= 4 + 2 * 3, "found out once by each connection at most");
}

/// Time spent waiting while a server rejects requests is not part of a completion's latency.
#[test]
fn waiting_for_a_server_is_not_its_latency() {
    let server = TestServer::start(|number, _| match number {
        0 => refusal_with("429 Too Many Requests", "Retry-After: 0.1\r\n", "slow down"),
        _ => texts(&["fine"]),
    });
    let (_dir, path) = place();
    let begin = Instant::now();
    let outcome = ask(&server, &CompletionRequest::new("m", 7), &["a"], &path).unwrap();
    let (seconds, all) = (outcome.entries[0].seconds.unwrap(), begin.elapsed().as_secs_f64());
    // Latencies are rounded to milliseconds.
    assert!(seconds + 0.099 <= all, "{seconds} of {all}");
}

/// llama.cpp's server lists the bytes of tokens that are parts of a character; their text is empty.
#[test]
fn parts_of_a_character_spell_it() {
    let token = |text: &str, bytes: &[u8], logprob: f64| json!({"token": text, "bytes": bytes, "logprob": logprob});
    let of = |bytes: [&[u8]; 2]| {
        let tokens = [
            token("caf", b"caf", -1.0),
            token("", bytes[0], -2.0),
            token("", bytes[1], -3.0),
            token("\n", b"\n", -4.0),
        ];
        let answer =
            json!({"choices": [{"index": 0, "text": "café", "logprobs": {"content": tokens}}]});
        samples(&answer, Api::Completions).unwrap().remove(0)
    };
    let spelled = of([&[0xc3], &[0xa9]]);
    assert_eq!(spelled.logprobs(0..5), [-1.0, -2.0, -3.0]);
    assert_eq!(spelled.tokens_before(3).len(), 1);
    // As stored in the journal.
    let kept: Sample = serde_json::from_str(&serde_json::to_string(&spelled).unwrap()).unwrap();
    assert_eq!(kept, spelled);
    let unknown = of([&[], &[]]);
    assert!(unknown.logprobs(0..5).is_empty() && unknown.tokens_before(3).is_empty());
}
