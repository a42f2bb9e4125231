//! Tests of streamed answers.

use std::sync::Mutex;

use repoformer_core::completion::{Api, CompletionRequest, Sample};
use repoformer_testing::{TestServer, answer, events, ok, refusal};
use serde_json::{Value, json};

use super::super::partial::PartialAnswer;
use super::{ask, place, texts};
use crate::endpoint::test_client::{client, quick};
use crate::endpoint::{KeyMask, ServerNotice};
use crate::server::Completer;

fn part(index: usize, text: &str, logprob: f64) -> Value {
    let logprobs = json!({"content": [{"id": 1, "token": text, "logprob": logprob}]});
    json!({"choices": [{"index": index, "text": text, "finish_reason": null, "logprobs": logprobs}]})
}

fn line(text: &str, _: usize) -> bool {
    text.contains('\n')
}

#[test]
fn a_server_is_told_to_stop_once_it_has_written_enough() {
    use std::io::{BufRead, BufReader, Write};
    const MOST: usize = 20_000;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let writes = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for number in 0..MOST {
            let event = part(0, ["x", " = 1", "\n", "y"][number.min(3)], -0.5);
            if stream.write_all(format!("data: {event}\n\n").as_bytes()).is_err() {
                return number;
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        MOST
    });
    let endpoint = crate::endpoint::Endpoint::new(&url, quick()).unwrap();
    let completer = Completer::new(&endpoint);
    let found = completer.ask(&CompletionRequest::new("m", 9), "p", Some(&line)).unwrap();
    // The result contains the events up to the moment the text was enough.
    assert_eq!(found.samples[0].text, "x = 1\n");
    assert_eq!(found.samples[0].finish_reason, None);
    let tokens: Vec<&str> = found.samples[0].tokens.iter().map(|token| &*token.text).collect();
    assert_eq!(tokens, ["x", " = 1", "\n"]);
    drop(endpoint);
    let written = writes.join().unwrap();
    assert!(written < MOST, "the server wrote all");
}

#[test]
fn samples_come_in_parts_and_broken_streams_are_asked_again() {
    let server = TestServer::start(|number, request| {
        let is_chat = request.path.contains("chat");
        assert_eq!(request.body["stream"], true);
        let delta = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        match (number, is_chat) {
            // The stream lacks its end.
            (0, _) => answer(
                "200 OK",
                "Content-Type: text/event-stream\r\n",
                format!("data: {}\n\n", part(0, "lost", -9.0)),
            ),
            (_, true) => events(&[
                json!({"choices": [{"index": 0, "delta": {"role": "assistant"}}]}),
                delta("a"),
                delta("b"),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}),
            ]),
            (_, false) => events(&[
                part(1, "c", -1.0),
                part(0, "a", -2.0),
                part(0, "\n", -3.0),
                part(1, "d\n", -4.0),
                part(0, "never read", -5.0),
            ]),
        }
    });
    let endpoint = client(&server);
    let completer = Completer::new(&endpoint);
    let two = CompletionRequest { samples: 2, temperature: 1.0, ..CompletionRequest::new("m", 9) };
    let found = completer.ask(&two, "p", Some(&line)).unwrap().samples;
    let read = |sample: &Sample| (sample.text.clone(), sample.tokens.len());
    assert_eq!(found.iter().map(read).collect::<Vec<_>>(), [("a\n".into(), 2), ("cd\n".into(), 2)]);
    assert_eq!(server.requests().len(), 2);
    let chat = CompletionRequest { api: Api::Chat, ..CompletionRequest::new("m", 9) };
    let found = completer.ask(&chat, "p", Some(&line)).unwrap().samples;
    assert_eq!((&*found[0].text, found[0].finish_reason.as_deref()), ("ab", Some("length")));
}

#[test]
fn a_stream_of_more_choices_than_were_asked_for_is_a_failure() {
    let server = TestServer::start(|_, _| {
        let choices = (0..9).map(|index| part(index, "x", -1.0)["choices"][0].clone());
        events(&[json!({"choices": choices.collect::<Vec<_>>()})])
    });
    let endpoint = client(&server);
    let ask = |samples| {
        let asking = CompletionRequest { samples, ..CompletionRequest::new("m", 9) };
        Completer::new(&endpoint).ask(&asking, "p", Some(&|_, _| false))
    };
    let error = ask(8).unwrap_err().to_string();
    assert!(error.contains("more choices than requested (8)"), "{error}");
    assert_eq!(ask(9).unwrap().samples.len(), 9);
    // Two choices with the same index.
    let mut answer = PartialAnswer::new(Api::Completions, &json!({"n": 3}));
    let twice = [0, 0].map(|index| part(index, "x", -1.0)["choices"][0].clone());
    assert!(answer.add(&json!({"choices": twice}), None, KeyMask::default).is_err());
}

/// Each text is checked again only when it has grown, and never after it was enough.
#[test]
fn a_text_that_was_enough_is_not_looked_at_again() {
    let mut answer = PartialAnswer::new(Api::Completions, &json!({"n": 3}));
    let looks = Mutex::new(Vec::new());
    let is_enough = |text: &str, before: usize| {
        looks.lock().unwrap().push((text.to_owned(), before));
        text.contains('\n')
    };
    let mut looked = |index: usize, text: &str| {
        answer.add(&part(index, text, -1.0), None, KeyMask::default).unwrap();
        let is_done = answer.are_enough(2, &is_enough);
        let looks = std::mem::take(&mut *looks.lock().unwrap());
        (is_done, answer.length(), looks)
    };
    let look = |text: &str, before: usize| (text.to_owned(), before);
    assert_eq!(looked(1, "a\n"), (false, 2, vec![]));
    assert_eq!(looked(2, "b"), (false, 3, vec![look("a\n", 0), look("b", 0)]));
    assert_eq!(looked(1, "more"), (false, 7, vec![look("b", 1)]));
    assert_eq!(looked(2, "\n"), (true, 8, vec![look("b\n", 1)]));
    assert_eq!(looked(0, "c"), (false, 9, vec![look("c", 0)]));
    assert!(!answer.is_finished());
}

#[test]
fn a_server_that_cannot_stream_writes_all_and_is_told_of_once() {
    for refuses in [false, true] {
        let server = TestServer::start(move |_, request| match request.body.get("stream") {
            Some(_) if refuses => refusal("400 Bad Request", "stream is not supported"),
            _ => texts(&["x\ny"]),
        });
        let said = std::sync::Arc::new(Mutex::new(Vec::new()));
        let heard = said.clone();
        let endpoint = client(&server).on_notice(move |notice| heard.lock().unwrap().push(notice));
        let completer = Completer::new(&endpoint);
        for _ in 0..2 {
            let found =
                completer.ask(&CompletionRequest::new("m", 9), "p", Some(&line)).unwrap().samples;
            assert_eq!(found[0].text, "x\ny");
        }
        let said = said.lock().unwrap().clone();
        let is_named = |notice: &ServerNotice| matches!(notice, ServerNotice::Unsupported(text) if text.contains("does not stream"));
        assert!(said.len() == 1 && is_named(&said[0]), "{said:?}");
        let streams = server.requests().iter().filter(|r| r.body.get("stream").is_some()).count();
        assert_eq!((streams, server.requests().len()), (1, if refuses { 3 } else { 2 }));
    }
}

#[test]
fn an_error_within_a_stream_is_the_servers() {
    let server = TestServer::start(|_, _| {
        events(&[part(0, "x", -1.0), json!({"error": {"message": "out of memory"}})])
    });
    let endpoint = client(&server);
    let asking = CompletionRequest::new("m", 9);
    let error = Completer::new(&endpoint).ask(&asking, "p", Some(&line)).unwrap_err().to_string();
    assert!(error.contains("out of memory"), "{error}");
}

/// Once a stream has begun, its status can no longer report that the server is busy.
#[test]
fn an_overload_within_a_stream_is_waited_for() {
    for error in [
        json!({"error": {"message": "too many requests", "code": 429}}),
        json!({"error": {"message": "busy", "code": "503"}}),
        json!({"object": "error", "message": "busy", "code": 500}),
    ] {
        let failed = error.clone();
        let server = TestServer::start(move |number, _| match number {
            0 => events(&[part(0, "lost", -1.0), failed.clone()]),
            _ => events(&[part(0, "x\n", -1.0)]),
        });
        let endpoint = client(&server);
        let asking = CompletionRequest::new("m", 9);
        let found = Completer::new(&endpoint).ask(&asking, "p", Some(&line)).unwrap().samples;
        assert_eq!((&*found[0].text, server.requests().len()), ("x\n", 2), "{error}");
    }
    // A persistent overload is the server's failure, and is not recorded as the prompt's.
    let server = TestServer::start(|_, request| {
        if request.body["prompt"] == "busy" {
            ok(&json!({"error": {"message": "busy", "code": 503}}))
        } else {
            texts(&["fine"])
        }
    });
    let (_dir, path) = place();
    let asking = CompletionRequest::new("m", 7);
    let outcome = ask(&server, &asking, &["a", "busy"], &path).unwrap();
    let error = outcome.entries[1].error.clone().unwrap_or_default().to_string();
    assert!(error.contains("503 Service Unavailable: busy"), "{error}");
    assert_eq!(ask(&server, &asking, &["a", "busy"], &path).unwrap().asked, 1);
    // Other errors are not temporary.
    let server = TestServer::start(|_, _| {
        events(&[json!({"error": {"message": "exceeds the context size", "code": 400}})])
    });
    let endpoint = client(&server);
    Completer::new(&endpoint).ask(&asking, "p", Some(&line)).unwrap_err();
    assert_eq!(server.requests().len(), 1);
}
