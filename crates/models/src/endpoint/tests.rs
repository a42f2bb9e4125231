//! Tests of the client against a faulty server.

use crate::endpoint::DEFAULT_KEY_VARIABLE;
use std::sync::Mutex;
use std::time::Instant;

use repoformer_testing::{TestServer, answer, gate, ok, refusal, refusal_with};
use serde_json::json;

use super::super::test_client::{client, quick};
use super::*;

fn failure(server: &TestServer) -> Error {
    client(server).post_json("/v1/embeddings", &json!({"a": 1})).unwrap_err()
}

fn assert_ends(error: &Error, end: &str) {
    assert!(error.to_string().ends_with(end), "{error}");
}

#[test]
fn a_request_carries_json_and_no_key_that_was_not_given() {
    let server = TestServer::start(|_, request| ok(&json!({"got": request.body})));
    let got = client(&server).post_json("/v1/embeddings", &json!({"a": "é\n"})).unwrap();
    assert_eq!(got, json!({"got": {"a": "é\n"}}));
    assert_eq!(client(&server).get_json("/v1/models").unwrap(), json!({"got": null}));
    let requests = server.requests();
    assert_eq!((&*requests[0].method, &*requests[0].path), ("POST", "/v1/embeddings"));
    assert_eq!((&*requests[1].method, &*requests[1].path), ("GET", "/v1/models"));
    let headers = &requests[0].headers;
    assert!(headers.contains(&"content-type: application/json".into()), "{headers:?}");
    assert!(headers.iter().any(|header| header.starts_with("user-agent: repoformer/")));
}

/// Each byte of a proxy's answer would restart the time limit.
#[test]
fn a_proxy_that_answers_byte_by_byte_is_given_up() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let settings = ConnectionSettings {
        timeout: Duration::from_secs(600),
        connect_timeout: Duration::from_millis(300),
        retries: 0,
        ..ConnectionSettings::default()
    };
    let variable = |name: &str| match name {
        "HTTP_PROXY" => Ok(proxy.clone()),
        _ => Err(VarError::NotPresent),
    };
    let endpoint = Endpoint::with_environment("http://192.0.2.1/v1", settings, variable).unwrap();
    let begin = Instant::now();
    let error = endpoint.get_json("/v1/models").unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(60), "{error}");
}

#[test]
fn what_passes_is_asked_again() {
    for (status, headers) in [
        ("408 Request Timeout", ""),
        ("429 Too Many Requests", "Retry-After: 0\r\n"),
        ("500 Internal Server Error", ""),
        ("502 Bad Gateway", ""),
        ("503 Service Unavailable", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        ("504 Gateway Timeout", ""),
    ] {
        let server = TestServer::start(move |number, _| match number {
            0 | 1 => refusal_with(status, headers, "not now"),
            _ => ok(&json!({})),
        });
        assert_eq!(client(&server).post_json("/v1/x", &json!({})).unwrap(), json!({}));
        assert_eq!(server.requests().len(), 3, "{status}");
    }
}

#[test]
fn a_server_that_asks_for_a_wait_gets_it_unless_it_is_too_long() {
    let server = TestServer::start(|number, _| match number {
        0 => refusal_with("429 Too Many Requests", "Retry-After: 0.06\r\n", "slow down"),
        1 => refusal_with("429 Too Many Requests", "Retry-After: 301\r\n", "come tomorrow"),
        _ => ok(&json!({})),
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = told.clone();
    let endpoint = client(&server).on_notice(move |notice| keep.lock().unwrap().push(notice));
    let start = Instant::now();
    let error = endpoint.post_json("/v1/x", &json!({})).unwrap_err();
    assert!(start.elapsed() >= Duration::from_millis(60));
    assert_ends(&error, "429 Too Many Requests: come tomorrow; sent 2 times");
    assert!(error.hint().unwrap().to_string().contains("fewer"), "{error}");
    let url = server.url();
    let notice = format!(
        "{url}/v1/x: the server answers 429 Too Many Requests: slow down; retrying in 0.1 s, as the server asks"
    );
    assert_eq!(*told.lock().unwrap(), [ServerNotice::Outage(notice)]);
}

#[test]
fn a_refusal_is_not_asked_again() {
    for (status, message, hint) in [
        ("400 Bad Request", "too long", "shorter texts"),
        ("401 Unauthorized", "no key", "set the environment variable REPOFORMER_API_KEY"),
        ("404 Not Found", "model 'x' not found", "name of the model"),
        (
            "500 Internal Server Error",
            "input (15000 tokens) is too large to process. increase the physical batch size",
            "'ubatch-size'",
        ),
        ("501 Not Implemented", "no embeddings", "'embeddings'"),
    ] {
        let server = TestServer::start(move |_, _| refusal(status, message));
        let error = failure(&server);
        assert_ends(&error, &format!("the server answers {status}: {message}"));
        assert!(error.hint().unwrap().to_string().contains(hint), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_redirect_is_named_and_not_followed() {
    let server = TestServer::start(|_, _| {
        answer("301 Moved Permanently", "Location: https://h/v1?key=K\r\n", "")
    });
    let error = failure(&server);
    assert_ends(&error, "the server answers 301 Moved Permanently to https://h/v1?key=***");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn closed_connections_end_the_work_for_their_request_alone() {
    let all = Endpoint::new("http://127.0.0.1:9", quick()).unwrap();
    let own = all.with_own_connections();
    let clone = own.clone();
    assert!(clone.check_open().is_ok());
    own.close();
    assert_ends(&clone.check_open().unwrap_err(), "the request was cancelled");
    assert!(all.check_open().is_ok() && own.with_own_connections().check_open().is_ok());
}

#[test]
fn an_answer_that_nobody_wants_any_longer_is_an_error() {
    let text = "data: {\"a\": 1}\n\ndata: [DONE]\n\n";
    let server = TestServer::start(move |_, _| {
        answer("200 OK", "Content-Type: text/event-stream\r\n", text)
    });
    let endpoint = client(&server);
    let mut close = |_| {
        endpoint.close();
        true
    };
    let error = endpoint.post_events("/v1/x", &json!({}), &mut close).unwrap_err();
    assert_ends(&error, "the request was cancelled");
    assert_eq!(server.requests().len(), 1, "it is not asked again");
}

#[test]
fn a_request_that_is_given_up_waits_no_longer_for_its_retry() {
    let server = TestServer::start(|number, _| match number {
        0 => refusal_with("503 Service Unavailable", "Retry-After: 200\r\n", "later"),
        _ => ok(&json!({})),
    });
    let endpoint = client(&server);
    let closing = endpoint.clone();
    let endpoint = endpoint.on_notice(move |_| closing.close());
    let error = endpoint.post_json("/v1/x", &json!({})).unwrap_err();
    assert_ends(&error, "the request was cancelled");
}

#[test]
fn without_retries_no_server_is_waited_for() {
    let wait = "Retry-After: 0\r\n";
    let server = TestServer::start(move |_, _| refusal_with("429 Too Many Requests", wait, "busy"));
    let endpoint =
        Endpoint::new(&server.url(), ConnectionSettings { retries: 0, ..quick() }).unwrap();
    endpoint.post_json("/v1/x", &json!({})).unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_slow_server_is_left_and_asked_again() {
    let (_closed, pass) = gate();
    let server = TestServer::start(move |number, _| {
        if number == 0 {
            pass();
        }
        ok(&json!({}))
    });
    let settings = ConnectionSettings { timeout: Duration::from_millis(100), ..quick() };
    let endpoint = Endpoint::new(&server.url(), settings.clone()).unwrap();
    assert_eq!(endpoint.post_json("/v1/x", &json!({})).unwrap(), json!({}));
    let (_closed, pass) = gate();
    let server = TestServer::start(move |_, _| {
        pass();
        ok(&json!({}))
    });
    let endpoint =
        Endpoint::new(&server.url(), ConnectionSettings { retries: 1, ..settings }).unwrap();
    let error = endpoint.post_json("/v1/x", &json!({})).unwrap_err();
    assert_ends(&error, "no complete answer within 100ms; sent 2 times");
    assert!(error.hint().unwrap().to_string().contains("raise the timeout"));
}

#[test]
fn an_answer_without_its_end_is_asked_for_again_and_shown_in_the_end() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"data\": [0.5, ";
    let server = TestServer::start(move |number, _| match number {
        0 => half.to_vec(),
        1 => Vec::new(),
        _ => ok(&json!({})),
    });
    assert_eq!(client(&server).post_json("/v1/x", &json!({})).unwrap(), json!({}));
    for (bytes, reason) in [
        (half.to_vec(), "the answer ends after 15 bytes (io: Peer disconnected): {\"data\": [0.5,"),
        (answer("200 OK", "", "{\"data\": "), "the answer ends after 9 bytes: {\"data\":"),
        (answer("200 OK", "", ""), "the answer is empty"),
        (Vec::new(), "the connection failed: Peer disconnected"),
        (b"SSH-2.0-x\r\n\r\n".to_vec(), "the answer is not HTTP"),
    ] {
        let server = TestServer::start(move |_, _| bytes.clone());
        let error = failure(&server);
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(server.requests().len(), 4, "{error}");
    }
}

#[test]
fn a_key_comes_from_the_environment_and_is_shown_nowhere() {
    let secret = "sk-123/ab+c=";
    let settings = |key_variable| ConnectionSettings { key_variable, ..quick() };
    let server = TestServer::start(|_, request| {
        let sent = request.headers.iter().find(|header| header.starts_with("authorization"));
        refusal("401 Unauthorized", &format!("wrong key: {sent:?}"))
    });
    for variable in [DEFAULT_KEY_VARIABLE, "MY_KEY"] {
        let lookup = |name: &str| {
            if name == variable { Ok(format!(" {secret}\n")) } else { Err(VarError::NotPresent) }
        };
        let endpoint =
            Endpoint::with_environment(&server.url(), settings(variable), lookup).unwrap();
        let error = endpoint.post_json("/v1/x", &json!({})).unwrap_err();
        let sent = &server.requests()[0].headers;
        assert!(sent.contains(&format!("authorization: Bearer {secret}")));
        let shown = format!("{endpoint:?} {error} {error:?}");
        assert!(!shown.contains(secret) && shown.contains("Bearer ***"), "{shown}");
        let hint = format!("check the key in the environment variable {variable}");
        assert_eq!(error.hint(), Some(hint.into()));
    }
    let of = |value: Result<&str, VarError>| {
        let lookup = |_: &str| value.clone().map(String::from);
        Endpoint::with_environment(&server.url(), settings("MY_KEY"), lookup)
    };
    assert!(of(Err(VarError::NotPresent)).unwrap().header.is_none());
    assert!(of(Ok(" ")).unwrap().header.is_none());
    for (value, reason) in [
        (Ok("sk-1\nsk-2"), "MY_KEY contains characters that keys cannot contain"),
        (Ok("ключ"), "MY_KEY contains characters that keys cannot contain"),
    ] {
        let error = of(value).unwrap_err();
        assert_ends(&error, reason);
    }
}

/// The same server may decide and complete.
#[test]
fn a_server_repeats_no_key_of_another_one() {
    let secrets = ["sk-other-9XyZ8wVu7TsR", "url-key-5Qp4On3Ml2Kj"];
    let server =
        TestServer::start(move |_, _| ok(&json!({"text": secrets.join(&" and".repeat(10))})));
    let endpoint = client(&server);
    let lookup = |_: &str| Ok(secrets[0].to_owned());
    let other = format!("http://127.0.0.1:9/v1?key={}", secrets[1]);
    Endpoint::with_environment(&other, quick(), lookup).unwrap();
    assert_eq!(
        endpoint.post_json("/v1/x", &json!({})).unwrap()["text"],
        format!("***{}***", " and".repeat(10))
    );
    let sent = &server.requests()[0];
    assert!(!sent.headers.iter().any(|header| header.starts_with("authorization")), "{sent:?}");
    let mut mask = endpoint.key_mask();
    let shown: String = secrets.iter().map(|secret| mask.pass(secret)).collect();
    assert_eq!(shown + &mask.finish(), "***");
    let error = endpoint.error("/v1/x", secrets.join(" and "), "").to_string();
    assert!(error.ends_with("/v1/x: ***"), "{error}");
}

#[test]
fn a_server_without_tls_is_no_https_server() {
    let server = TestServer::start(|_, _| Vec::new());
    let url = server.url().replace("http:", "https:");
    let endpoint = Endpoint::new(
        &url,
        ConnectionSettings { retries: 0, connect_timeout: Duration::from_secs(2), ..quick() },
    );
    let error = endpoint.unwrap().post_json("/v1/x", &json!({})).unwrap_err();
    assert!(error.to_string().starts_with(&url) && error.hint().is_some(), "{error}");
}

#[test]
fn a_minute_of_refusals_is_waited_out_and_a_servers_fault_is_not() {
    let ConnectionSettings { retries, first_delay, longest_delay, .. } =
        ConnectionSettings::patient();
    let wait = |retry| retry::back_off(first_delay, longest_delay, retry, b"any");
    let waits: Duration = (0..retries).map(wait).sum();
    assert!(waits > Duration::from_secs(70), "{waits:?}");
    let patient = ConnectionSettings { retries: 10, ..quick() };
    for (status, asked) in [("429 Too Many Requests", 11), ("500 Internal Server Error", 6)] {
        let server = TestServer::start(move |_, _| refusal(status, "not now"));
        let endpoint = Endpoint::new(&server.url(), patient.clone()).unwrap();
        endpoint.post_json("/v1/completions", &json!({})).unwrap_err();
        assert_eq!(server.requests().len(), asked, "{status}");
    }
}

#[test]
fn a_server_that_asks_for_a_second_at_a_time_is_waited_for_as_long_as_another() {
    // Twenty rejections, each with `Retry-After: 0`, are more than the number of retries.
    let server = TestServer::start(|number, _| match number {
        0..20 => refusal_with("429 Too Many Requests", "Retry-After: 0\r\n", "slow down"),
        _ => ok(&json!({"a": 1})),
    });
    assert_eq!(client(&server).post_json("/v1/x", &json!({})).unwrap()["a"], 1);
}

#[test]
fn an_excerpt_that_ends_within_the_key_shows_nothing_of_it() {
    let key = "sk-SECRET-0123456789";
    for padding in 150..220 {
        let said = format!("{}{key} is wrong", "x".repeat(padding));
        let server = TestServer::start(move |number, _| match number {
            0 => refusal("401 Unauthorized", &said),
            _ => answer("200 OK", "", &said),
        });
        let endpoint =
            Endpoint::with_environment(&server.url(), quick(), |_| Ok(key.into())).unwrap();
        for _ in 0..2 {
            let error = endpoint.post_json("/v1/x", &json!({})).unwrap_err().to_string();
            assert!(!error.contains("sk-"), "{padding}: {error}");
        }
    }
}

#[test]
fn no_message_repeats_a_long_text_of_a_server() {
    let endpoint = Endpoint::with_environment("http://127.0.0.1:1", quick(), |_| {
        Ok("sk-SECRET-0123456789".into())
    });
    let endpoint = endpoint.unwrap();
    let text = format!("{}sk-SECRET-0123456789{}", "é".repeat(2045), "x".repeat(5_000_000));
    let said = endpoint.error("/tokenize", text, "").to_string();
    assert!(said.len() < 4300 && said.contains('…') && !said.contains("sk-"), "{said}");
}

#[test]
fn whoever_answers_a_greeting_is_there() {
    for status in ["401 Unauthorized", "404 Not Found", "503 Service Unavailable"] {
        let server = TestServer::start(move |_, _| refusal(status, "no"));
        client(&server).greet().unwrap();
        assert_eq!(server.requests().len(), 1);
    }
    let gone = TestServer::start(|_, _| Vec::new()).url();
    let error = Endpoint::new(&gone, quick()).unwrap().greet().unwrap_err();
    assert!(error.hint().unwrap().to_string().contains("is the server running"), "{error}");
}

/// The client never asks for a range.
#[test]
fn a_part_of_an_answer_is_a_failure() {
    for kind in ["application/json", "text/event-stream"] {
        let server = TestServer::start(move |_, _| {
            let headers = format!("Content-Type: {kind}\r\n");
            answer("206 Partial Content", &headers, "{\"choices\": [{\"text\": \"x\"}]}")
        });
        let (endpoint, body) = (client(&server), json!({}));
        for error in [
            endpoint.post_json("/v1/x", &body).unwrap_err(),
            endpoint.post_events("/v1/x", &body, &mut |_| false).unwrap_err(),
        ] {
            assert!(error.to_string().contains("206 Partial Content"), "{error}");
        }
    }
}
