//! A model's server on a free port of this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A status line without its number of HTTP (`200 OK`), and the text.
pub(crate) type Answer = (String, String);

/// A request: its path, and its body where it has one.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn prompt(&self) -> &str {
        self.body["prompt"].as_str().unwrap()
    }
}

/// A server that answers each request with a status and a text, and lists no models; it keeps the
/// requests.
pub(crate) fn server(
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Request>>>) {
    server_listing(refusal("404 Not Found", "no such page"), answer)
}

/// Such a server that answers `models` to requests without a body.
pub(crate) fn server_listing(
    models: Answer,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new((models, answer)));
    let requests = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, answer) = (Arc::clone(&requests), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut length, mut line, mut path) = (0, String::new(), String::new());
                while line != "\r\n" {
                    line.clear();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    if path.is_empty() {
                        path = line.split(' ').nth(1).unwrap().to_owned();
                    }
                    if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let request = Request { path, body };
                let (status, text) = match request.body {
                    Value::Null => answer.0.clone(),
                    _ => {
                        seen.lock().unwrap().push(request.clone());
                        (answer.1)(&request)
                    }
                };
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

/// An answer that has this JSON.
pub(crate) fn ok(body: &Value) -> Answer {
    ("200 OK".into(), body.to_string())
}

/// A refusal as OpenAI's servers word it.
pub(crate) fn refusal(status: &str, message: &str) -> Answer {
    (status.into(), json!({"error": {"message": message}}).to_string())
}
