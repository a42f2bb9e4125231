//! A test server that stands in for a model server, with configurable faults.
//!
//! - [`TestServer`]: the server. It listens on a free port of this machine and records each [`ReceivedRequest`].
//! - [`answer()`], [`ok`], [`refusal`], [`refusal_with`], [`events`]: the bytes of an answer; [`completion`], [`next_token`],
//!   [`token_completion`]: the bytes of a model's answer. [`gate`]: makes an answer wait.
//!
//! ```
//! use std::io::{Read, Write};
//! use repoformer_testing::{TestServer, refusal};
//!
//! let server = TestServer::start(|_, _| refusal("400 Bad Request", "too long"));
//! let mut stream = std::net::TcpStream::connect(server.url().trim_start_matches("http://"))?;
//! stream.write_all(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 15\r\n\r\n{\"prompt\": \"x\"}")?;
//! let mut text = String::new();
//! stream.read_to_string(&mut text)?;
//! assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"));
//! assert_eq!(server.requests()[0].prompt(), "x");
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![allow(clippy::unwrap_used)] // a failure here is a failure of the test

mod answer;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

pub use answer::{
    answer, completion, events, next_token, ok, refusal, refusal_with, token_completion,
};

/// Request that a server received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Method, such as `POST`.
    pub method: String,
    /// Path, such as `/v1/embeddings`.
    pub path: String,
    /// Header lines, in lower case up to the colon.
    pub headers: Vec<String>,
    /// Body; null if it has none or is not JSON.
    pub body: Value,
}

impl ReceivedRequest {
    /// Returns the prompt to complete.
    ///
    /// # Panics
    /// The body has no prompt.
    pub fn prompt(&self) -> &str {
        self.body["prompt"].as_str().unwrap()
    }

    /// Returns the texts to embed.
    ///
    /// # Panics
    /// The body has no texts.
    pub fn input(&self) -> Vec<&str> {
        let list = self.body["input"].as_array().unwrap();
        list.iter().map(|text| text.as_str().unwrap()).collect()
    }
}

/// Requests that a server has received so far.
pub type ReceivedRequests = Arc<Mutex<Vec<ReceivedRequest>>>;

/// Server on a free port of this machine; each connection gets one answer. It stops when dropped.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    requests: ReceivedRequests,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Answers of a server.
struct Answers<A> {
    /// Answer to requests without a body, which are then not recorded.
    models: Option<Vec<u8>>,
    /// Answer to the n-th recorded request.
    answer: A,
}

impl TestServer {
    /// Starts a server. `answer` turns the n-th request (counted from 0) into the bytes of the answer; if it returns no bytes, the server
    /// closes the connection.
    ///
    /// # Panics
    /// No port is free.
    pub fn start(
        answer: impl Fn(usize, &ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Answers { models: None, answer })
    }

    /// Starts a server of models: it answers requests without a body with `models`, without recording them, and all others with the result
    /// of `answer`.
    ///
    /// # Panics
    /// No port is free.
    pub fn start_with_models(
        models: Vec<u8>,
        answer: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Answers {
            models: Some(models),
            answer: move |_: usize, request: &ReceivedRequest| answer(request),
        })
    }

    /// Starts a server of models that lists no models.
    ///
    /// # Panics
    /// No port is free.
    pub fn start_without_models(
        answer: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with_models(refusal("404 Not Found", "no such page"), answer)
    }

    fn listen<A>(answers: Answers<A>) -> Self
    where
        A: Fn(usize, &ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stop) = (ReceivedRequests::default(), Arc::new(AtomicBool::new(false)));
        let (received, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let answers = Arc::new(answers);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (received, answers) = (Arc::clone(&received), Arc::clone(&answers));
                std::thread::spawn(move || serve(stream.unwrap(), &received, &answers));
            }
        });
        Self { address, requests, stop, thread: Some(thread) }
    }

    /// Returns the server's address, `http://127.0.0.1:…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests received so far.
    ///
    /// # Panics
    /// A thread panicked while it recorded a request.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Keeps the server answering until the process ends. Returns its address and its requests.
    pub fn leak(self) -> (String, ReceivedRequests) {
        let parts = (self.url(), Arc::clone(&self.requests));
        std::mem::forget(self);
        parts
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers the request of a connection.
fn serve<A>(stream: TcpStream, received: &Mutex<Vec<ReceivedRequest>>, answers: &Answers<A>)
where
    A: Fn(usize, &ReceivedRequest) -> Vec<u8>,
{
    let mut reader = BufReader::new(stream);
    let Some(request) = read(&mut reader) else { return };
    let bytes = match &answers.models {
        Some(models) if request.body.is_null() => models.clone(),
        _ => {
            let number = {
                let mut received = received.lock().unwrap();
                received.push(request.clone());
                received.len() - 1
            };
            (answers.answer)(number, &request)
        }
    };
    let _ = reader.get_mut().write_all(&bytes);
}

/// Reads a request; `None` if the connection ends before its body.
fn read(reader: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.remove(0);
    words.truncate(words.rfind(" HTTP/").unwrap());
    let (method, path) = words.split_once(' ').unwrap();
    let headers: Vec<String> = lines
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| format!("{}: {}", name.to_ascii_lowercase(), value.trim()))
        .collect();
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(ReceivedRequest { method: method.to_owned(), path: path.to_owned(), headers, body })
}

/// Returns a sender and a gate, which blocks its callers until the sender is dropped.
pub fn gate() -> (Sender<()>, impl Fn() + Send + Sync + 'static) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let pass = move || {
        let _ = receiver.lock().unwrap().recv();
    };
    (sender, pass)
}
