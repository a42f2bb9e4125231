//! `lsp`: completions over standard input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli_serve::{slow_server, soon, text_answer};
use crate::support::Place;
use crate::support::server::{ok, refusal, server};

/// A language server that runs until it is dropped.
pub(crate) struct Session {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Value>,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Session {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_with(place, args, &[])
    }

    pub(crate) fn start_with(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = place.command(&[&["lsp", "--no-watch"], args].concat());
        command.envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let (mut length, mut line) = (0, String::new());
                while output.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let value = line.strip_prefix("Content-Length: ").unwrap();
                    length = value.trim().parse().unwrap();
                    line.clear();
                }
                let mut body = vec![0; length];
                if length == 0 || output.read_exact(&mut body).is_err() {
                    return;
                }
                let _ = sender.send(serde_json::from_slice(&body).unwrap());
            }
        });
        Self { input: child.stdin.take().unwrap(), child, answers }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.send_text(&message.to_string());
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        write!(self.input, "Content-Length: {}\r\n\r\n", bytes.len()).unwrap();
        self.input.write_all(bytes).unwrap();
        self.input.flush().unwrap();
    }

    fn answer(&self) -> Value {
        self.answers.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(json!({"id": id, "method": method, "params": params}));
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params}));
    }

    /// Starts in a folder, opens one of its documents, and returns the document's URI.
    pub(crate) fn open(&mut self, place: &Place, folder: &str, file: &str, text: &str) -> String {
        let root = format!("file://{}", place.path(folder).canonicalize().unwrap().display());
        self.ask(1, "initialize", json!({"capabilities": {}, "rootUri": root}));
        let uri = format!("{root}/{file}");
        let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        uri
    }

    /// The answer to a request for a completion.
    pub(crate) fn complete(&mut self, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({"line": line, "character": character});
        let params = json!({"textDocument": {"uri": uri}, "position": position});
        self.ask(2, "textDocument/inlineCompletion", params)
    }
}

const CODE: &str =
    "def total(items):\n    é = 0\n    for item in items:\n        é += item.price\n    ";

#[test]
fn an_open_document_is_completed_where_the_cursor_is() {
    let place = Place::empty();
    place.write("shop/a.py", format!("import marker\n{CODE}return é\n"));
    place.write("shop/my file.py", "x = 1\n");
    place.write("shop/pyproject.toml", "");
    let (url, seen) = server(|_| ok(&text_answer("return é")));
    let mut session = Session::start(
        &place,
        &["--endpoint", &url, "--prompt-style", "qwen2.5-coder", "--learn", "labels.jsonl"],
    );
    let root = format!("file://{}", place.path("shop").display());
    let unready = session.ask(1, "textDocument/inlineCompletion", json!({}));
    assert_eq!(unready["error"]["code"], -32002);
    let ready = session.ask(2, "initialize", json!({"capabilities": {}, "rootUri": root}));
    let capabilities = &ready["result"]["capabilities"];
    assert_eq!(
        (&capabilities["inlineCompletionProvider"], &capabilities["positionEncoding"]),
        (&json!(true), &json!("utf-16"))
    );
    session.tell("initialized", json!({}));
    let uri = format!("{root}/my%20file.py");
    let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": "x = 1\n"});
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    let at = |line: u32, character: u32| json!({"line": line, "character": character});
    let edit = json!({"range": {"start": at(0, 0), "end": at(1, 0)}, "text": CODE});
    session.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]}),
    );
    let here =
        json!({"textDocument": {"uri": uri}, "position": at(4, 4), "context": {"triggerKind": 2}});
    let found = session.ask(3, "textDocument/inlineCompletion", here.clone());
    assert_eq!(found["result"]["items"], json!([{"insertText": "return é"}]), "{found}");
    let prompt = seen.lock().unwrap()[0].prompt().to_owned();
    assert!(
        prompt.contains("import marker") && prompt.contains("é += item.price\n    <|fim_suffix|>"),
        "{prompt}"
    );
    // The completion is accepted, and the next line asked for: a label is learned from it.
    let edit = json!({"range": {"start": at(4, 4), "end": at(4, 4)}, "text": "return é\n"});
    session.tell(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri, "version": 3}, "contentChanges": [edit]}),
    );
    let next =
        json!({"textDocument": {"uri": uri}, "position": at(5, 0), "context": {"triggerKind": 2}});
    session.ask(30, "textDocument/inlineCompletion", next);
    soon("a label", || place.path("labels.jsonl").metadata().is_ok_and(|file| file.len() > 0));
    let label: Value = serde_json::from_str(&place.read("labels.jsonl")).unwrap();
    assert_eq!(label["groundtruth"], "return é\n", "{label}");
    assert_eq!((&label["metadata"]["accepted"], &label["label"]), (&json!(true), &json!(false)));
    // What was deleted and is not saved yet does not come back.
    let saved = format!("{root}/a.py");
    let rest = "def first():\n    return 1\n\n\ndef second():\n    return 2\n";
    place.write("shop/c.py", format!("{rest}\n\ndef deleted():\n    return 3\n"));
    let uri = saved.replace("a.py", "c.py");
    let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": rest});
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    let here = json!({"textDocument": {"uri": uri}, "position": at(1, 4)});
    session.ask(9, "textDocument/inlineCompletion", here);
    let prompt = seen.lock().unwrap().last().unwrap().prompt().to_owned();
    assert!(!prompt.contains("deleted"), "{prompt}");
    let unknown = json!({"textDocument": {"uri": "file:///other.py"}, "position": at(0, 0)});
    assert_eq!(session.ask(4, "textDocument/inlineCompletion", unknown)["error"]["code"], -32602);
    assert_eq!(session.ask(5, "workspace/symbol", json!({}))["error"]["code"], -32601);
    assert_eq!(session.ask(6, "shutdown", Value::Null)["result"], Value::Null);
    session.tell("exit", Value::Null);
    assert!(session.child.wait().unwrap().success());
}

#[test]
fn a_cancelled_request_and_a_server_that_fails_are_errors() {
    let place = Place::new();
    let open = |session: &mut Session| {
        session.ask(1, "initialize", json!({"capabilities": {}}));
        let document =
            json!({"uri": "file:///x.py", "languageId": "python", "version": 1, "text": "x = "});
        session.tell("textDocument/didOpen", json!({"textDocument": document}));
    };
    let here =
        json!({"textDocument": {"uri": "file:///x.py"}, "position": {"line": 0, "character": 4}});
    let (url, said) = slow_server("");
    let args = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint"];
    let mut session = Session::start(&place, &[&args[..], &[&url]].concat());
    open(&mut session);
    session.send(json!({"id": 7, "method": "textDocument/inlineCompletion", "params": here}));
    assert_eq!(said.recv_timeout(Duration::from_secs(20)), Ok("asked"));
    // One that is still in flight does not keep the server from ending.
    session.send(json!({"id": 6, "method": "textDocument/inlineCompletion", "params": here}));
    assert_eq!(said.recv_timeout(Duration::from_secs(20)), Ok("asked"));
    session.tell("$/cancelRequest", json!({"id": 7}));
    assert_eq!(said.recv_timeout(Duration::from_secs(20)), Ok("gone"));
    let cancelled = session.answer();
    assert_eq!((&cancelled["id"], &cancelled["error"]["code"]), (&json!(7), &json!(-32800)));
    session.tell("exit", Value::Null);
    assert_eq!(said.recv_timeout(Duration::from_secs(20)), Ok("gone"));
    assert_eq!(session.child.wait().unwrap().code(), Some(1), "it was not shut down before");
    let (url, _) = server(|_| refusal("400 Bad Request", "the prompt is too long"));
    let mut session = Session::start(&place, &[&args[..], &[&url]].concat());
    open(&mut session);
    let failed = session.ask(8, "textDocument/inlineCompletion", here);
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("the prompt is too long"), "{failed}");
}

#[test]
fn a_selected_entry_is_the_beginning_of_the_completion() {
    let place = Place::new();
    let (url, seen) = server(|_| ok(&text_answer("al(1)")));
    let args = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url];
    let mut session = Session::start(&place, &args);
    session.ask(1, "initialize", json!({"capabilities": {}}));
    let document = json!({"uri": "file:///x.py", "languageId": "python", "version": 1, "text": "x = to\ny = 1\n"});
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    let at = |character: u32| json!({"line": 0, "character": character});
    let range = json!({"start": at(4), "end": at(6)});
    let ask = |session: &mut Session, id: u32, selected: Value| {
        let context = json!({"triggerKind": 1, "selectedCompletionInfo": selected});
        let here =
            json!({"textDocument": {"uri": "file:///x.py"}, "position": at(6), "context": context});
        session.ask(id, "textDocument/inlineCompletion", here)
    };
    let found = ask(&mut session, 2, json!({"text": "tot", "range": range}));
    assert_eq!(
        found["result"]["items"],
        json!([{"insertText": "total(1)", "range": range}]),
        "{found}"
    );
    assert!(seen.lock().unwrap().last().unwrap().prompt().ends_with("x = tot"));
    assert_eq!(ask(&mut session, 3, json!({"text": "tot"}))["error"]["code"], -32602);
    let found = ask(&mut session, 4, Value::Null);
    assert_eq!(found["result"]["items"], json!([{"insertText": "al(1)"}]), "{found}");
}

/// An editor may have opened a stranger's repository, whose `data` leads anywhere.
#[cfg(unix)]
#[test]
fn a_default_cache_that_is_a_link_is_refused() {
    let place = Place::new();
    let (url, _) = server(|_| ok(&text_answer("x")));
    place.write("victim/cache/own.txt", "own");
    std::os::unix::fs::symlink("victim", place.path("data")).unwrap();
    let args = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url];
    let refused = Session::start(&place, &args).ask(1, "initialize", json!({"capabilities": {}}));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("data: the cache would be written where this link leads"),
        "{refused}"
    );
    assert_eq!(place.files("victim").len(), 1);
    let named = [&args[..], &["--cache-dir", "data/cache"]].concat();
    let opened = Session::start(&place, &named).ask(1, "initialize", json!({"capabilities": {}}));
    assert!(opened.get("result").is_some(), "{opened}");
}

#[test]
fn what_is_no_request_is_refused_and_a_start_that_fails_is_said() {
    let place = Place::new();
    let (url, _) = server(|_| ok(&text_answer("x")));
    let args = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url];
    let mut session = Session::start(&place, &args);
    session.ask(1, "initialize", json!({"capabilities": {}}));
    write!(session.input, "Content-Length: 4\r\n\r\n{{\"a\"").unwrap();
    session.input.flush().unwrap();
    let refused = session.answer();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32700)));
    assert_eq!(session.ask(2, "shutdown", Value::Null)["result"], Value::Null);
    let late = session.ask(3, "textDocument/inlineCompletion", json!({}));
    assert_eq!(late["error"]["code"], -32600, "{late}");
    session.tell("exit", Value::Null);
    assert!(session.child.wait().unwrap().success());
    let mut session = Session::start(&place, &[&args[..4], &["--policy", "oracle"]].concat());
    let failed = session.ask(1, "initialize", json!({"capabilities": {}}));
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("--endpoint is not set"), "{failed}");
    assert!(!session.child.wait().unwrap().success());
}

#[test]
fn a_wrong_change_leaves_a_document_that_is_not_completed() {
    let place = Place::new();
    let (url, seen) = server(|_| ok(&text_answer("y")));
    let args = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url];
    let mut session = Session::start(&place, &args);
    session.ask(1, "initialize", json!({"capabilities": {}}));
    assert_eq!(session.ask(2, "initialize", json!({}))["error"]["code"], -32600);
    let uri = "file:///x.py";
    let document =
        json!({"uri": uri, "languageId": "python", "version": 5, "text": "first = 1\nx = "});
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    let change = |session: &mut Session, uri: &str, version: Value, edit: Value| {
        let params =
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [edit]});
        session.tell("textDocument/didChange", params);
    };
    let at = |line: i64, character: i64| json!({"line": line, "character": character});
    let part = |from: Value, to: Value| json!({"range": {"start": from, "end": to}, "text": "z"});
    for (version, edit, says) in [
        (json!(6), part(at(-1, 0), at(1, 0)), "contentChanges[0].range.start is {\"line\":-1"),
        (json!(6), part(at(0, 0), at(0, -1)), "contentChanges[0].range.end"),
        (json!(6), part(at(1, 1), at(0, 1)), "contentChanges[0].range ends before it starts"),
        (
            json!(6),
            json!({"range": {"start": at(0, 0)}, "text": "z"}),
            "contentChanges[0].range.end",
        ),
        (
            json!(6),
            json!({"range": {"start": at(0, 0), "end": at(0, 0)}}),
            "contentChanges[0].text",
        ),
        (json!(4), part(at(0, 0), at(0, 0)), "textDocument.version is 4, behind version 5"),
        (json!(-7), json!({"text": "stale"}), "textDocument.version is -7, behind version 5"),
        (
            json!("6"),
            json!({"text": "of no version"}),
            "textDocument.version is \"6\", not a whole",
        ),
        (json!(6.5), json!({"text": "of no version"}), "textDocument.version is 6.5, not a whole"),
    ] {
        change(&mut session, uri, version, edit);
        let told = session.answer();
        assert_eq!(
            (&told["method"], &told["params"]["type"]),
            (&json!("window/logMessage"), &json!(1))
        );
        let message = told["params"]["message"].as_str().unwrap();
        assert!(message.contains(uri) && message.contains(says), "{message}");
        let refused = session.complete(uri, 1, 4);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(says) && message.contains("close and reopen it"), "{message}");
        // All of the text is known again.
        change(&mut session, uri, json!(6), json!({"text": "first = 1\nx = "}));
        assert!(session.complete(uri, 1, 4).get("result").is_some());
        session.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
        session.tell("textDocument/didOpen", json!({"textDocument": document}));
    }
    // Whatever cannot be read may have been a change.
    let opened = json!({"textDocument": {"uri": uri, "version": 6, "text": null}});
    let not_opened = json!({"method": "textDocument/didOpen", "params": opened}).to_string();
    for (unread, says) in [
        (r#"{"method":"textDocument/didChange","params":{"version":1e400}}"#, "was not JSON"),
        (r#"[{"method":"textDocument/didChange","params":{}}]"#, "had no method"),
        (r#"{"method":["textDocument/didChange"],"params":{}}"#, "had no method"),
        (
            r#"{"method":"textDocument/didChange","params":{"textDocument":{"uri":null}}}"#,
            "no document",
        ),
        (&not_opened, "textDocument.text is not a text"),
        (&" ".repeat((64 << 20) + 1), "was too large"),
    ] {
        session.send_text(unread);
        session.answer();
        let refused = session.complete(uri, 1, 4);
        assert!(refused["error"]["message"].as_str().unwrap().contains(says), "{refused}");
        change(&mut session, uri, json!(7), json!({"text": "first = 1\nx = "}));
        assert!(session.complete(uri, 1, 4).get("result").is_some(), "{says}");
    }
    session.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    let told = session.answer();
    assert!(told["params"]["message"].as_str().unwrap().contains("without being closed"), "{told}");
    let mut older = document.clone();
    (older["version"], older["text"]) = (json!(3), json!("stale"));
    session.tell("textDocument/didOpen", json!({"textDocument": older}));
    let told = session.answer();
    assert!(told["params"]["message"].as_str().unwrap().contains("3, behind version 5"), "{told}");
    assert!(session.complete(uri, 1, 4).get("error").is_some());
    change(&mut session, uri, json!(6), json!({"text": "first = 1\nx = "}));
    assert!(session.complete(uri, 1, 4).get("result").is_some());
    // Values of JSON take many times as much memory as their bytes.
    let many = "0,".repeat(1 << 18);
    session.send_text(&format!(r#"{{"id": "a", "method": "x", "params": {{"x": [{many} 0]}}}}"#));
    let refused = session.answer();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a"), &json!(-32600)));
    session.send_text(&format!(
        r#"{{"method": "textDocument/didChange", "params": {{"textDocument": {{"uri": "{uri}"}}, "contentChanges": [{many} 0]}}}}"#
    ));
    let told = session.answer();
    assert!(told["params"]["message"].as_str().unwrap().contains("values of JSON"), "{told}");
    assert_eq!(session.answer()["method"], "window/logMessage", "its change is a wrong one");
    assert!(session.complete(uri, 1, 4).get("error").is_some());
    change(&mut session, uri, json!(6), json!({"text": "first = 1\nx = "}));
    assert!(session.complete(uri, 1, 4).get("result").is_some());
    assert!(seen.lock().unwrap().iter().all(|request| request.prompt().contains("first = 1")));
    change(&mut session, "file:///other.py", json!(1), json!({"text": "x"}));
    let told = session.answer();
    assert!(told["params"]["message"].as_str().unwrap().contains("not an open document"), "{told}");
    assert_eq!(session.complete("file:///other.py", 0, 0)["error"]["code"], -32602);
    session.send_text("[]");
    assert_eq!(session.answer()["error"]["code"], -32600);
}

#[test]
fn an_exit_without_a_shutdown_is_a_failure() {
    let place = Place::new();
    let args = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", "http://127.0.0.1:9"];
    let mut session = Session::start(&place, &args);
    assert_eq!(session.ask(1, "shutdown", Value::Null)["error"]["code"], -32002);
    session.tell("textDocument/didOpen", json!({}));
    session.tell("exit", Value::Null);
    assert_eq!(session.child.wait().unwrap().code(), Some(1));
}
