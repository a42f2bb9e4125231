//! A server for tests, with configurable faults.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ConnectionSettings, Endpoint};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `POST /v1/embeddings`
    pub(crate) line: String,
    /// The header lines, in lower case up to the colon.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

impl Request {
    /// The texts that vectors are asked for.
    pub(crate) fn input(&self) -> Vec<&str> {
        let list = self.body["input"].as_array().unwrap();
        list.iter().map(|text| text.as_str().unwrap()).collect()
    }
}

/// A server on a free port of this machine; each connection gets one answer. It ends when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `answer` turns the n-th request (from 0) into the bytes of the answer; without any the connection is closed.
    pub(crate) fn start(
        answer: impl Fn(usize, &Request) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (seen, stopped, answer) = (requests.clone(), stop.clone(), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
            }
        });
        Self { address, requests, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests received so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// A client of it that loses no time.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.url(), quick()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A gate before answers that must not come: whoever passes waits until the sender is dropped.
pub(crate) fn gate() -> (Sender<()>, impl Fn() + Send + Sync + 'static) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let pass = move || {
        let _ = receiver.lock().unwrap().recv();
    };
    (sender, pass)
}

/// Settings whose waits are milliseconds. Its variable for the key is one that is not set.
pub(crate) fn quick() -> ConnectionSettings {
    ConnectionSettings {
        timeout: Duration::from_secs(20),
        retries: 3,
        first_delay: Duration::from_millis(2),
        longest_delay: Duration::from_millis(8),
        ..ConnectionSettings::default()
    }
}

/// One request of a connection, and its answer.
fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(usize, &Request) -> Vec<u8> + Send + Sync),
) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0).replace(" HTTP/1.1", "");
    let headers: Vec<String> = lines
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| format!("{}: {}", name.to_ascii_lowercase(), value.trim()))
        .collect();
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let request = Request { line, headers, body };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let bytes = answer(number, &request);
    let _ = reader.get_mut().write_all(&bytes);
}

/// An answer of this status line (`200 OK`), with further header lines (`Retry-After: 1\r\n`).
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

/// An answer that has this JSON.
pub(crate) fn ok(body: &Value) -> Vec<u8> {
    answer("200 OK", "Content-Type: application/json\r\n", &body.to_string())
}

/// A refusal as OpenAI's servers word it.
pub(crate) fn refusal(status: &str, headers: &str, message: &str) -> Vec<u8> {
    answer(status, headers, &json!({"error": {"message": message}}).to_string())
}
