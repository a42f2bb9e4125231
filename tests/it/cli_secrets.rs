//! Keys of servers stay in memory: every byte that commands leave and say is searched for them, whatever the servers do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

#[cfg(feature = "serve")]
use crate::cli_lsp::Session;
#[cfg(feature = "serve")]
use crate::cli_serve::{Serving, soon};
use crate::support::{Place, Ran, TARGETS, jsonl};

/// A key whose URL-encoded form is another text.
const KEY: &str = "sk-live+0a1b/2c3d=4e5f&6a7b8c9d0e1f2a3b4c5d";
/// The key of the policy's server.
const POLICY_KEY: &str = "pk-test+Zy9x/Wv8u=Ts7r&Qp6oNm5lKj4iHg3fEd2c";

/// A server on this machine that keeps every request as it came.
struct Recorder {
    host: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    /// `answer` makes the whole answer of a request's head and body.
    fn start(answer: impl Fn(&str, &Value) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let (requests, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let seen: Arc<Mutex<Vec<String>>> = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if reader.read_line(&mut head).unwrap_or(0) == 0 {
                            break;
                        }
                    }
                    let lower = head.to_lowercase();
                    let length = lower.split("content-length: ").nth(1);
                    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
                    let mut body = vec![0; length.unwrap_or(0)];
                    let _ = reader.read_exact(&mut body);
                    seen.lock().unwrap().push(head.clone());
                    let body = serde_json::from_slice(&body).unwrap_or_default();
                    let _ = reader.get_mut().write_all(answer(&head, &body).as_bytes());
                });
            }
        });
        Self { host, requests }
    }

    fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn path_of(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or("")
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    )
}

/// A model that completes, embeds, and says how likely `<cc>` is.
fn sound(head: &str, body: &Value) -> String {
    let path = path_of(head);
    let answer = if let Some(texts) = body["input"].as_array() {
        let one = |(index, text): (usize, &Value)| json!({"index": index, "embedding": [1, text.as_str().unwrap().len()]});
        json!({"data": texts.iter().enumerate().map(one).collect::<Vec<_>>()})
    } else if body.is_null() {
        json!({"data": [{"id": "tiny"}]})
    } else if body.get("logit_bias").is_some() || body["max_tokens"] == 1 {
        let likely = json!({"<cc>": -0.5, "x": -1.0});
        let logprobs =
            json!({"tokens": ["<cc>"], "token_logprobs": [-0.5], "top_logprobs": [likely]});
        json!({"choices": [{"index": 0, "text": "<cc>", "finish_reason": "length", "logprobs": logprobs}]})
    } else if path.contains("/chat/") {
        let message = json!({"role": "assistant", "content": "x = 1"});
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    } else {
        json!({"choices": [{"index": 0, "text": "x = 1", "finish_reason": "stop"}]})
    };
    response("200 OK", "Content-Type: application/json\r\n", &answer.to_string())
}

/// RFC 4648, section 4, without padding: what stands whole in the encoding of any longer text too.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sign = |three: &[u8], place: usize| {
        let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        char::from(SIGNS[(bits >> (18 - 6 * place)) as usize & 63])
    };
    let signs = bytes.chunks_exact(3).flat_map(|three| (0..4).map(move |place| sign(three, place)));
    signs.collect()
}

fn url_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn each(key: &str, form: impl Fn(u8) -> String) -> String {
    key.bytes().map(form).collect()
}

/// How single characters are written.
const NOTATIONS: [fn(u8) -> String; 32] = [
    |byte| format!("%{byte:02x}"),
    |byte| format!("%u{byte:04x}"),
    |byte| format!("\\u{byte:04x}"),
    |byte| format!("\\uuu{byte:04x}"),
    |byte| format!("\\u{{{byte:x}}}"),
    |byte| format!("\\x{byte:02x}"),
    |byte| format!("\\x{{{byte:x}}}"),
    |byte| format!("\\{byte:03o}"),
    |byte| format!("\\{byte:o}"),
    |byte| format!("&#{byte}"),
    |byte| format!("&#x{byte:04x};"),
    |byte| format!("&amp;#{byte};"),
    |byte| format!("={byte:02X}"),
    |byte| format!("{byte:02x} "),
    |byte| format!("{byte:02X}:"),
    |byte| format!("0x{byte:02x}, "),
    |byte| format!("(byte)0x{byte:02x}, "),
    |byte| format!("{byte}, "),
    |byte| format!("{byte},        "),
    |byte| format!("{byte}.0, "),
    |byte| format!("{byte}u8, "),
    |byte| format!("UInt8({byte}), "),
    |byte| format!("{byte:#o} "),
    |byte| format!("{byte:08b} "),
    |byte| format!("b'{}', ", char::from(byte)),
    |byte| format!("<i>{}</i>", char::from(byte)),
    |byte| format!("{}\\u0000", char::from(byte)),
    |byte| format!("%26%23{byte}%3B"),
    |byte| format!("&#92;u{byte:04x}"),
    |byte| format!("=25{byte:02X}"),
    |byte| format!("0x{byte:02x}_u8, "),
    |byte| format!("0b{:04b}_{:04b}, ", byte >> 4, byte & 15),
];

/// Every twelve characters of a key: as it is, in a URL, escaped, in hexadecimal digits, and in base64 wherever in a text it begins.
fn forms(key: &str) -> Vec<String> {
    let mut whole = vec![key.to_owned(), url_encoded(key), url_encoded(key).to_lowercase()];
    whole.extend((0..3).map(|at| base64(&key.as_bytes()[at..])));
    whole.push(each(key, |byte| format!("{byte:02x}")));
    let part = |part: &[u8]| str::from_utf8(part).unwrap().to_owned();
    let mut parts: Vec<String> =
        whole.iter().flat_map(|text| text.as_bytes().windows(12)).map(part).collect();
    for of_key in key.as_bytes().windows(12).map(part) {
        parts.extend(NOTATIONS.map(|form| each(&of_key, form)));
        parts.push(each(&of_key, |byte| format!("\\\\u{byte:04x}")));
        // As JSON has a list.
        parts.push(each(&of_key, |byte| format!("{byte},")));
        parts.push(each(&of_key, |byte| format!("\"{byte}\",")));
    }
    parts
}

fn assert_no_key(bytes: &[u8], what: &str) {
    for form in [KEY, POLICY_KEY].into_iter().flat_map(forms) {
        let found = memchr::memmem::find(bytes, form.as_bytes());
        assert!(found.is_none(), "{what} has '{form}' of a key");
    }
}

/// Texts that repeat a key: as it is, and as headers, URLs, JSON, pages and dumps have it.
fn echoes(key: &str) -> Vec<String> {
    let mut echoes = vec![
        key.to_owned(),
        format!("Bearer {key}"),
        base64(key.as_bytes()),
        base64(format!("Bearer {key}").as_bytes()),
        base64(format!("user:{key}").as_bytes()),
        base64(key.as_bytes()).chars().map(|c| format!("{c} ")).collect(),
        url_encoded(key),
        key.replace('/', "\\/").replace('&', "&amp;"),
        each(key, |byte| format!("{byte:02x}")),
        each(key, |byte| format!("\\{}", char::from(byte))),
    ];
    echoes.extend(NOTATIONS.map(|form| each(key, form)));
    echoes
}

/// The keys that a request bears.
fn keys_of(head: &str) -> Vec<&str> {
    let bearer = head.lines().filter_map(|line| line.split_once("Bearer ").map(|(_, key)| key));
    bearer.chain(head.contains("api-key=").then_some(KEY)).collect()
}

/// A model that writes the keys it gets wherever it may, in tokens of so many bytes, each of which is an event of a stream.
fn echoing(length: usize) -> impl Fn(&str, &Value) -> String {
    move |head, body| {
        let mut echoes: Vec<String> = keys_of(head).into_iter().flat_map(echoes).collect();
        if length == 1 {
            // Each character is an event or a token, and each of those is searched.
            echoes.truncate(4);
        }
        if !echoes.is_empty() {
            // A server that gets one of them may know the other.
            echoes.extend([KEY, POLICY_KEY].map(str::to_owned));
        }
        let text = format!("\nx = 1  # {}", echoes.join(" , "));
        let first = echoes.first().cloned().unwrap_or_default();
        let kind = "Content-Type: application/json\r\n";
        if body.is_null() {
            let models = [&["tiny".to_owned()], &echoes[..]].concat();
            let models: Vec<Value> = models.iter().map(|id| json!({"id": id})).collect();
            return response("200 OK", kind, &json!({"data": models}).to_string());
        }
        if body.get("prompt").or(body.get("messages")).is_none() || body["max_tokens"] == 1 {
            return sound(head, body);
        }
        let tokens: Vec<&str> =
            text.as_bytes().chunks(length).map(|part| str::from_utf8(part).unwrap()).collect();
        let is_chat = path_of(head).contains("/chat/");
        let choice = |texts: &[&str], finish: Value| {
            let logprobs = if is_chat {
                json!({"content": texts.iter().map(|text| json!({
                    "token": "\u{fffd}", "bytes": text.as_bytes(), "logprob": -0.5,
                })).collect::<Vec<_>>()})
            } else {
                json!({"tokens": texts, "token_logprobs": vec![-0.5; texts.len()]})
            };
            let call = json!({"function": {"name": first, "arguments": first}});
            let mut choice = json!({"index": 0, "finish_reason": finish, "logprobs": logprobs});
            match (is_chat, body["stream"] == true) {
                (false, _) => choice["text"] = texts.concat().into(),
                (true, false) => {
                    choice["message"] = json!({"content": texts.concat(), "tool_calls": [call]})
                }
                (true, true) => {
                    choice["delta"] = json!({"content": texts.concat(), "tool_calls": [call]})
                }
            }
            json!({
                "id": first, "model": first, "choices": [choice], "system_fingerprint": first,
                "usage": {
                    "prompt_tokens": 3, "completion_tokens": first, "note": first, "bytes": first.as_bytes(),
                    "texts": first.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>(),
                },
                "timings": {"prompt_n": 3, first.clone(): first},
            })
        };
        let headers = format!("X-Key: {first}\r\nServer: {first}\r\n");
        if body["stream"] == true {
            let mut events = String::new();
            for token in &tokens {
                events += &format!("data: {}\n\n", choice(&[token], Value::Null));
            }
            events += &format!("data: {}\n\ndata: [DONE]\n\n", choice(&[""], "stop".into()));
            return response(
                "200 OK",
                &format!("Content-Type: text/event-stream\r\n{headers}"),
                &events,
            );
        }
        response("200 OK", &format!("{kind}{headers}"), &choice(&tokens, "stop".into()).to_string())
    }
}

#[test]
fn base64_and_urls_are_searched_for() {
    assert_eq!(base64(b"foobar"), "Zm9vYmFy"); // RFC 4648, section 10
    assert_eq!(url_encoded("a+b/c"), "a%2Bb%2Fc");
    let told = std::panic::catch_unwind(|| assert_no_key(&KEY.as_bytes()[9..21], "a part"));
    assert!(told.is_err());
    let inside = format!("user:{KEY}");
    let told =
        std::panic::catch_unwind(|| assert_no_key(base64(inside.as_bytes()).as_bytes(), "x"));
    assert!(told.is_err());
}

/// The words of a command line; `URL` and `QUERY` stand for the server's address, without and with the key in its query.
const COMMANDS: [&str; 14] = [
    "run --mode none,rg1 --endpoint URL --model tiny --max-tokens 8 --report page --verbose",
    "run --mode none --endpoint QUERY --model tiny --max-tokens 8 --report page --verbose",
    "complete --mode none --endpoint URL --model tiny --max-tokens 8 --verbose --retry-failed",
    "complete --prompts prompts.jsonl --endpoint URL --model tiny --max-tokens 8 --api chat",
    "complete --prompts prompts.jsonl --endpoint QUERY --model tiny --max-tokens 8 --journal own.jsonl",
    "run --unit chunks --vectorizer dense --mode none,rg1 --endpoint URL --embedding-model tiny --verbose",
    "run --unit chunks --vectorizer dense --mode none,rg1 --endpoint QUERY --embedding-model tiny --cache-dir dense",
    "run --unit chunks --prompt-style starcoder --mode none,rg1 --endpoint URL --model tiny --max-tokens 8 \
     --policy self@greedy --policy-endpoint QUERY --policy-model-name tiny --cache-dir policy --verbose",
    "doctor --endpoint URL --verbose",
    "doctor --endpoint QUERY --format json",
    "run --endpoint QUERY --model tiny --show-settings",
    "run --endpoint QUERY --model tiny --dry-run --verbose",
    "run --api-key KEY",
    "complete --prompts prompts.jsonl --endpoint http://user:KEY@model.invalid --model tiny",
];

/// Plays all commands against a server and gives what was said.
fn play(place: &Place, name: &str, url: &str) -> String {
    play_some(place, name, url, &COMMANDS)
}

/// Plays some of the commands.
fn play_some(place: &Place, name: &str, url: &str, commands: &[&str]) -> String {
    let query = format!("{url}/v1?api-key={}", url_encoded(KEY));
    let mut said = String::new();
    for command in commands {
        let words: Vec<String> = command
            .split_whitespace()
            .map(|word| word.replace("URL", url).replace("QUERY", &query).replace("KEY", KEY))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let has_tasks = ["--prompts", "doctor", "KEY"].iter().all(|word| !command.contains(word));
        let words = if has_tasks { place.args(&words) } else { words };
        let temporary = place.path("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        let mut run = place.command(&words);
        run.env("REPOFORMER_API_KEY", KEY).env("REPOFORMER_POLICY_API_KEY", POLICY_KEY);
        run.env("TMPDIR", &temporary).env("HOME", &temporary);
        let ran = Ran::new(run.output().unwrap());
        for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            assert_no_key(text.as_bytes(), &format!("{name}: {stream} of {command}"));
        }
        said += &ran.stderr;
    }
    said
}

fn assert_nothing_left(place: &Place, name: &str, least: usize) {
    let files = walkdir::WalkDir::new(place.path("."));
    let files = files.into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let mut searched = 0;
    for file in files {
        let shown = file.path().display().to_string();
        assert_no_key(file.path().as_os_str().as_encoded_bytes(), &format!("{name}: a name"));
        assert_no_key(&std::fs::read(file.path()).unwrap(), &format!("{name}: {shown}"));
        searched += 1;
    }
    assert!(searched >= least, "{name}: {searched} files");
}

fn place() -> Place {
    let place = Place::new();
    place.write("prompts.jsonl", jsonl(&[json!({"prompt": "def f("}), json!({"prompt": "x = "})]));
    place
}

#[test]
fn no_byte_of_a_key_is_left_by_any_command() {
    let place = place();
    let server = Recorder::start(sound);
    play(&place, "sound", &server.url());
    let requests = server.requests();
    let bearing = |key: &str| {
        let line = format!("authorization: bearer {key}").to_lowercase();
        requests.iter().filter(|head| head.to_lowercase().contains(&line)).count()
    };
    assert!(bearing(KEY) > 10 && bearing(POLICY_KEY) > 0, "keys reach their servers");
    assert!(requests.iter().any(|head| head.contains("/embeddings")));
    assert_nothing_left(&place, "sound", 60);
}

#[test]
fn no_byte_of_a_key_is_left_when_models_write_it() {
    let place = place();
    // A character is a token, or half of the key is one.
    for length in [1, KEY.len() / 2] {
        let server = Recorder::start(echoing(length));
        play(&place, &format!("echoing {length}"), &server.url());
        place.shell("rm -rf cache/journal own.jsonl");
    }
    assert_nothing_left(&place, "echoing", 60);
}

/// What a server wrote is searched for the key even if it comes by a file.
#[test]
fn no_byte_of_a_key_is_left_of_answers_to_a_batch() {
    let place = place();
    let keys = [("REPOFORMER_API_KEY", KEY), ("REPOFORMER_POLICY_API_KEY", POLICY_KEY)];
    for stage in ["window", "prompt"] {
        place.run(&place.args(&[stage, "--mode", "none"])).done();
    }
    let sent = ["complete", "--mode", "none", "--model", "m", "--write-batch", "requests.jsonl"];
    place.run(&place.args(&sent)).done();
    let requests = std::fs::read_to_string(place.path("requests.jsonl")).unwrap();
    let answers = (0..).zip(requests.lines()).map(|(number, request)| {
        let request: Value = serde_json::from_str(request).unwrap();
        let tokens: Vec<String> = KEY.chars().map(|c| c.to_string()).collect();
        let logprobs = json!({"tokens": tokens, "token_logprobs": vec![-0.5; tokens.len()]});
        let text = format!("value = '{KEY}' # {POLICY_KEY}");
        let choice = json!({"index": 0, "text": text, "logprobs": logprobs, "finish_reason": "stop"});
        let response = json!({"status_code": 200, "body": {"choices": [choice]}});
        match number % 2 {
            0 => json!({"custom_id": request["custom_id"], "response": response, "error": null}),
            _ => json!({"custom_id": request["custom_id"], "response": null, "error": {"message": text}}),
        }
    });
    let mut answers: Vec<Value> = answers.collect();
    answers[0][KEY] = json!(1);
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").unwrap();
    std::fs::write(file.path(), jsonl(&answers)).unwrap();
    let path = file.path().to_str().unwrap();
    let read = ["complete", "--mode", "none", "--model", "m", "--read-batch", path];
    let convert = ["convert", path, "--to", "repocoder-predictions", "--tasks", "tasks.jsonl"];
    let validate = ["validate", path];
    let runs = [(&place.args(&read)[..], true), (&convert, true), (&validate, true)];
    // A file of settings in the working folder has the keys, and another thing that is none.
    let settings = [(&convert[..], false), (&validate, false), (&place.args(&read)[..], false)];
    for (words, is_in_environment) in runs.into_iter().chain(settings) {
        let mut run = place.command(words);
        if is_in_environment {
            run.envs(keys);
        } else {
            let [url, policy_url] =
                [KEY, POLICY_KEY].map(|key| format!("http://h/v1?k={}", url_encoded(key)));
            let text = format!("endpoint = '{url}'\npolicy-endpoint = '{policy_url}'\n");
            let other = if words[0] == "complete" {
                // The answers are read again.
                std::fs::remove_dir_all(place.path("cache/journal")).unwrap();
                ""
            } else {
                "nothing = 1\n"
            };
            place.write("repoformer.toml", text + other);
        }
        let ran = Ran::new(run.output().unwrap());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("***"), "{words:?}: {said}");
        assert_no_key(said.as_bytes(), &words.join(" "));
    }
    std::fs::remove_file(place.path("repoformer.toml")).unwrap();
    let journal = std::fs::read_to_string(place.path("cache/journal/m.jsonl")).unwrap();
    // Short texts between keys are masked, too.
    assert!(journal.contains("value = '***"), "{journal}");
    assert_nothing_left(&place, "batch", 5);
}

#[cfg(feature = "serve")]
#[test]
fn no_byte_of_a_key_reaches_an_editor() {
    let place = place();
    let variables = [("REPOFORMER_API_KEY", KEY), ("REPOFORMER_POLICY_API_KEY", POLICY_KEY)];
    for length in [1, KEY.len() / 2] {
        let server = Recorder::start(echoing(length));
        let url = server.url();
        let data = ["--repos-dir", "repos", "--repo", "alpha", "--no-watch", "--endpoint", &url];
        let serving = Serving::start_with(&place, &data, &variables);
        for stream in [false, true] {
            for (path, body) in [
                (
                    "/v1/completions",
                    json!({"prompt": "x = 1\n", "stream": stream, "stream_options": {"include_usage": true}}),
                ),
                ("/v1/completions", json!({"segments": {"prefix": "x = 1\n"}})),
                (
                    "/infill",
                    json!({"input_prefix": "x = 1\n", "input_suffix": "", "stream": stream}),
                ),
            ] {
                let (status, head, answer) = serving.post(path, &body);
                assert_eq!(status, 200, "{answer}");
                assert_no_key(head.as_bytes(), path);
                assert_no_key(answer.as_bytes(), path);
                // What comes in events, too.
                let text: Vec<Value> = answer
                    .lines()
                    .filter_map(|line| {
                        serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok()
                    })
                    .collect();
                let text: String = text
                    .iter()
                    .map(|event| {
                        event["content"]
                            .as_str()
                            .or(event["choices"][0]["text"].as_str())
                            .unwrap_or_default()
                    })
                    .collect();
                assert!(text.contains("x = 1  # ***"), "{text}");
                assert_no_key(text.as_bytes(), path);
            }
        }
        for path in ["/v1/models", "/debug/decisions", "/debug/last", "/metrics", "/health", "/"] {
            let (_, head, answer) = serving.ask(path, "", "");
            assert_no_key((head + &answer).as_bytes(), path);
        }
        assert_no_key(serving.said.lock().unwrap().as_bytes(), "what serve says");
        // Accepted in the language server, a line is learned.
        let labels = format!("labels-{length}.jsonl");
        let mut session = Session::start_with(
            &place,
            &[&data[..4], &data[5..], &["--learn", &labels]].concat(),
            &variables,
        );
        place.write("repos/alpha/typed.py", "x = 1\n");
        let uri = session.open(&place, "repos/alpha", "typed.py", "x = 1\n");
        let shown = session.complete(&uri, 1, 0);
        assert!(shown.to_string().contains("# ***"), "{shown}");
        assert_no_key(shown.to_string().as_bytes(), "lsp");
        let at = json!({"line": 1, "character": 0});
        let edit = json!({"range": {"start": at, "end": at}, "text": "y = 2\n"});
        session.tell(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]}),
        );
        session.complete(&uri, 2, 0);
        soon("a label", || place.path(&labels).metadata().is_ok_and(|file| file.len() > 0));
        assert!(place.read(&labels).contains("***"));
    }
    assert_nothing_left(&place, "editors", 8);
    // Errors, of a whole answer and in a stream.
    for event in [false, true] {
        let count = AtomicUsize::new(0);
        let server = Recorder::start(move |head, _| {
            let echoes: Vec<String> = keys_of(head).into_iter().flat_map(echoes).collect();
            let echo = &echoes[count.fetch_add(1, Relaxed) % echoes.len()];
            let error = json!({"error": {"message": format!("wrong key {echo}")}}).to_string();
            if event {
                response(
                    "200 OK",
                    "Content-Type: text/event-stream\r\n",
                    &format!("data: {error}\n\n"),
                )
            } else {
                response("401 Unauthorized", "", &error)
            }
        });
        let url = server.url();
        let data = ["--repos-dir", "repos", "--repo", "alpha", "--no-watch", "--endpoint", &url];
        let serving = Serving::start_with(&place, &data, &variables);
        for _ in 0..20 {
            let (status, _, answer) =
                serving.post("/v1/completions", &json!({"prompt": "x = 1\n", "stream": event}));
            assert!(
                status == 502 && answer.contains("wrong key ***") || answer.contains("***"),
                "{answer}"
            );
            assert_no_key(answer.as_bytes(), "an error");
        }
        assert_no_key(serving.ask("/debug/decisions", "", "").2.as_bytes(), "decisions");
    }
}

#[test]
fn no_byte_of_a_key_is_left_when_servers_refuse() {
    let place = place();
    // It repeats what it was sent: the key of the header, in one form or another, and the address.
    let count = AtomicUsize::new(0);
    let server = Recorder::start(move |head, _| {
        let key =
            head.lines().find_map(|line| line.split_once("Bearer ").or(line.split_once("bearer ")));
        let key = key.map_or("none", |(_, key)| key);
        let part = key.get(5..30).unwrap_or(key);
        let echoes = echoes(key);
        let echo = &echoes[count.fetch_add(1, Relaxed) % echoes.len()];
        let message = format!("wrong key {echo} at {}; or {part}", path_of(head));
        let body = json!({"error": {"message": message}}).to_string();
        response("401 Unauthorized", &format!("WWW-Authenticate: {key}\r\n"), &body)
    });
    let said = play(&place, "refusing", &server.url());
    assert!(said.contains("401") && said.contains("wrong key ***"), "{said}");
    assert_nothing_left(&place, "refusing", 20);
    // What is no HTTP at all is shown in messages too.
    let server = Recorder::start(|head, _| format!("{head}\r\n\r\n{head}"));
    let some = [COMMANDS[1], COMMANDS[3], COMMANDS[8]]; // each waits and asks again
    play_some(&place, "garbled", &server.url(), &some);
    assert_nothing_left(&place, "garbled", 20);
}

/// No redirect is followed: neither to another host, which would get the key, nor within the same one.
#[test]
fn redirects_are_told_and_get_no_key() {
    let trap = Recorder::start(sound);
    let there = trap.url();
    for code in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let place = place();
        let to = format!("Location: {there}/v1/{}?key={}\r\n", "x", url_encoded(KEY));
        let server = Recorder::start(move |_, _| response(code, &to, ""));
        let said = play(&place, code, &server.url());
        assert!(said.contains(&code[..3]) && said.contains(&there), "{said}");
        assert!(!server.requests().is_empty());
        assert_nothing_left(&place, code, 20);
    }
    assert_eq!(trap.requests(), Vec::<String>::new(), "the other host was asked");
    let server = Recorder::start(|head, _| {
        let to = format!("Location: /moved{}\r\n", path_of(head));
        response("308 Permanent Redirect", &to, "")
    });
    let said = play(&place(), "within", &server.url());
    assert!(said.contains("308"), "{said}");
    assert!(!server.requests().iter().any(|head| head.contains("/moved")));
}

/// A proxy's password is a key too, and the proxy gets the server's key only because it passes it on.
#[test]
fn passwords_of_proxies_are_told_nowhere() {
    let place = place();
    let refusing = Recorder::start(|_, _| response("407 Proxy Authentication Required", "", "no"));
    for proxy in [
        refusing.url(),
        "http://127.0.0.1:9".into(),
        "http://proxy.invalid:3128".into(),
        // A client that ignored these would send the key directly.
        refusing.url().replace("http", "https"),
        refusing.url().replace("http", "socks5"),
        refusing.url().replace("http", "junk"),
    ] {
        let is_refused = !proxy.starts_with("http://");
        let proxy = proxy.replace("://", &format!("://user:{}@", url_encoded(POLICY_KEY)));
        for command in [
            "doctor --endpoint URL",
            "complete --prompts prompts.jsonl --endpoint URL --model tiny",
        ] {
            for scheme in ["http", "https"] {
                let command = command.replace("URL", &format!("{scheme}://model.invalid/v1"));
                let words: Vec<&str> = command.split(' ').collect();
                let mut run = place.command(&words);
                run.env("REPOFORMER_API_KEY", KEY).env("ALL_PROXY", &proxy);
                let ran = Ran::new(run.output().unwrap());
                assert_no_key(ran.stdout.as_bytes(), &format!("stdout of {command}, {proxy}"));
                assert_no_key(ran.stderr.as_bytes(), &format!("stderr of {command}, {proxy}"));
                assert_ne!(ran.code, Some(0), "{}", ran.stdout);
                let is_told =
                    format!("{}{}", ran.stdout, ran.stderr).contains("ALL_PROXY does not");
                assert_eq!(is_told, is_refused, "{proxy}: {} {}", ran.stdout, ran.stderr);
            }
        }
    }
    assert_nothing_left(&place, "proxies", 5);
    assert!(!refusing.requests().is_empty(), "the proxy was asked");
}

/// No file and no flag takes a key, and the refusal does not repeat it.
#[test]
fn keys_in_wrong_places_are_refused_unseen() {
    let place = place();
    let shell = |line: &str| {
        let ran = place.shell_with(line, &[("SECRET", KEY)]);
        assert_no_key(ran.stdout.as_bytes(), &format!("stdout of {line}"));
        assert_no_key(ran.stderr.as_bytes(), &format!("stderr of {line}"));
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
    };
    for (name, text) in [
        ("api-key", format!("api-key = \"{KEY}\"\n")),
        ("broken", format!("endpoint = {KEY}\n")),
        ("number", format!("top-k = \"{KEY}\"\n")),
        ("table", format!("[server]\nkey = \"{KEY}\"\n")),
    ] {
        place.write(&format!("{name}.toml"), text);
        let ran = place.run(&["run", "--config", &format!("{name}.toml")]).failed();
        // The file is the user's own; of the first and last, which can be meant for a key, nothing is repeated.
        if ["api-key", "table"].contains(&name) {
            assert_no_key(ran.stderr.as_bytes(), name);
        }
    }
    for line in [
        "repoformer run --api-key \"$SECRET\"",
        "repoformer run --api-key=\"$SECRET\"",
        "repoformer run --endpoint http://$SECRET@localhost",
        "repoformer run --model tiny --endpoint ftp://$SECRET",
        "repoformer run --model tiny --endpoint $SECRET",
        "REPOFORMER_KEY=$SECRET repoformer run",
        "REPOFORMER_API_KEY=\"$SECRET $SECRET\" repoformer run --endpoint http://localhost:9 --model tiny",
    ] {
        shell(line);
    }
}

/// The key of the model's server is for that server alone; the token of `serve` is for `serve`.
#[test]
fn a_replay_sends_the_token_of_serve() {
    let place = Place::empty();
    place.add_samples();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/line.jsonl");
    place.write("tasks.jsonl", std::fs::read(data).unwrap());
    let server =
        Recorder::start(|_, _| "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into());
    let url = server.url();
    let words = [
        "replay", "--tasks", "tasks.jsonl", "--repos-dir", "repos", "--repo", "parcelflow",
        "--server", &url,
    ];
    let mut run = place.command(&words);
    run.envs([("REPOFORMER_API_KEY", KEY), ("REPOFORMER_SERVE_TOKEN", "token-of-serve")]);
    Ran::new(run.output().unwrap()).failed();
    let sent = server.requests.lock().unwrap().concat().to_lowercase();
    assert!(sent.contains("bearer token-of-serve"), "{sent}");
    assert!(!sent.contains(&KEY.to_lowercase()), "{sent}");
}

/// A command that holds a key leaves no core: without one it does, where this machine makes any.
#[cfg(target_os = "linux")]
#[test]
fn a_crash_with_a_key_leaves_no_core() {
    use std::os::unix::process::ExitStatusExt;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let place = place();
    let mut dumped = Vec::new();
    let url = format!("http://127.0.0.1:9/?code={KEY}");
    for key in [
        None,
        Some(("REPOFORMER_API_KEY", KEY)),
        Some(("REPOFORMER_POLICY_API_KEY", KEY)),
        Some(("REPOFORMER_SERVE_TOKEN", KEY)),
        Some(("REPOFORMER_POLICY_ENDPOINT", &url)),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let words =
            ["complete", "--prompts", "prompts.jsonl", "--endpoint", &url, "--model", "tiny"];
        let mut run = std::process::Command::new("sh");
        run.args([
            "-c",
            "ulimit -c unlimited 2>/dev/null; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_repoformer"),
        ])
        .args(words)
        .current_dir(place.path("."))
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(key)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
        let mut child = run.spawn().unwrap();
        // It waits for an answer now, and has sent the key.
        let connection = listener.accept().unwrap();
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGABRT).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGABRT as i32));
        dumped.push(status.core_dumped());
        drop(connection);
        if key.is_none() {
            let _ = std::fs::remove_file(place.path("core")); // it is large, and has no key
        }
    }
    if !dumped[0] {
        eprintln!("this machine makes no cores: the test shows nothing");
    }
    assert_eq!(dumped[1..], [false; 4]);
    assert_nothing_left(&place, "a core", 5);
}

/// The code of predictions looks for keys in its environment and in every process that it sees.
#[cfg(target_os = "linux")]
#[test]
fn code_under_test_finds_no_key() {
    let place = place();
    place.write("p.jsonl", jsonl(&[json!({"task_id": TARGETS[0].0, "pred": "x = 1"})]));
    let search = "env; for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; tr '\\0' ' ' <$p/cmdline; \
                  for f in $p/fd/*; do timeout 0.1 cat $f; done; done 2>/dev/null </dev/null; echo 'search''ed'; exit 1";
    let eval = [
        "eval", "--exec", "--test-cmd", search, "--predictions", "p.jsonl", "--missing", "skip",
        "--timeout", "20",
    ];
    let mut run = place.command(&place.args(&eval));
    run.env("REPOFORMER_API_KEY", KEY).env("REPOFORMER_POLICY_API_KEY", POLICY_KEY);
    let ran = Ran::new(run.output().unwrap());
    let results = place.files("cache/exec");
    let text: String =
        results.values().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    assert!(text.contains("searched") && text.contains("PATH="), "{text}\n{}", ran.stderr);
    assert_no_key(text.as_bytes(), "what the code found");
    assert_nothing_left(&place, "the code", 5);
}
