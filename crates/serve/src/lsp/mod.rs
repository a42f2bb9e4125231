//! The same completions through a language server, for editors that talk to one over its standard input and output.

mod document;
mod incoming;

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::StreamPart;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::decisions::shorten_dropped;
use crate::error::{Result, ServeError};
use crate::live::path_of_url;
use crate::request::EditorRequest;
use crate::runtime::runtime;
use crate::service::Service;
use crate::watch::Watcher;
use document::{Document, Encoding};
use incoming::{Incoming, next};

/// Maximum number of requests answered at a time; older ones are cancelled.
const AT_ONCE: usize = 8;
/// Maximum number of requests still being processed, including cancelled ones that have not stopped yet.
const UNENDED: usize = 64;

/// Error codes of JSON-RPC and the protocol.
const NOT_JSON: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const NOT_INITIALIZED: i64 = -32002;
const CANCELLED: i64 = -32800;
const FAILED: i64 = -32803;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The editor shut the server down or closed the input.
    Closed,
    /// The editor told the server to exit without shutting it down first, for which the protocol requires exit code 1.
    ExitBeforeShutdown,
}

/// Runs the protocol with an editor until it ends the session. `open` opens the folder that the editor names.
///
/// # Errors
/// The folder cannot be opened, or a message cannot be read.
pub fn run<E: Display + From<ServeError>>(
    input: &mut impl BufRead,
    output: impl Write + Send + 'static,
    open: impl FnOnce(Option<&str>) -> Result<(Service, Option<Watcher>), E>,
) -> Result<SessionEnd, E> {
    let output = Arc::new(Output(Mutex::new(Box::new(output))));
    let first = match initialize(input, &output)? {
        Opening::Initialize(first) => first,
        Opening::End(end) => return Ok(end),
    };
    let opened = open(first.root.as_deref())
        .and_then(|(service, watcher)| Ok((service, watcher, runtime()?)));
    let (service, watcher, runtime) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            output.fail(&first.id, FAILED, &format!("{error:#}"));
            return Err(error);
        }
    };
    output.answer(&first.id, &capabilities(first.encoding));
    let mut server = Server {
        service: Arc::new(service),
        output,
        encoding: first.encoding,
        documents: HashMap::new(),
        asked: Arc::default(),
        room: Arc::new(Semaphore::new(UNENDED)),
        is_shut_down: false,
        runtime,
    };
    let mut has_exited = false;
    while let Some(message) = next(input, &server.output)? {
        match message {
            Incoming::Message(message) if message["method"] == "exit" => {
                has_exited = true;
                break;
            }
            Incoming::Message(message) => server.take(&message),
            Incoming::Unread(reason) => server.lose_documents(reason),
        }
    }
    drop(watcher);
    // Do not wait for requests in flight.
    lock(&server.asked).iter_mut().for_each(RequestInFlight::end);
    let Server { is_shut_down, runtime, .. } = server;
    runtime.shutdown_background();
    let is_early = has_exited && !is_shut_down;
    Ok(if is_early { SessionEnd::ExitBeforeShutdown } else { SessionEnd::Closed })
}

/// Beginning of a session.
enum Opening {
    Initialize(Initialize),
    End(SessionEnd),
}

/// First request of a session.
struct Initialize {
    id: Value,
    /// Folder opened in the editor.
    root: Option<String>,
    encoding: Encoding,
}

/// Waits for the first request, and rejects messages before it.
fn initialize(input: &mut impl BufRead, output: &Output) -> Result<Opening> {
    while let Some(message) = next(input, output)? {
        let Incoming::Message(message) = message else { continue };
        let params = &message["params"];
        if message["method"] == "initialize" && !message["id"].is_null() {
            let folder = params["workspaceFolders"][0]["uri"].as_str();
            let root = folder.or_else(|| params["rootUri"].as_str());
            let root = root.or_else(|| params["rootPath"].as_str());
            let known = params["capabilities"]["general"]["positionEncodings"].as_array();
            let is_utf8 = known.is_some_and(|known| known.iter().any(|name| name == "utf-8"));
            return Ok(Opening::Initialize(Initialize {
                id: message["id"].clone(),
                root: root.map(|root| path_of_url(root).into_owned()),
                encoding: if is_utf8 { Encoding::Utf8 } else { Encoding::Utf16 },
            }));
        }
        if message["method"] == "exit" {
            return Ok(Opening::End(SessionEnd::ExitBeforeShutdown));
        }
        if is_request(&message, output) {
            output.fail(&message["id"], NOT_INITIALIZED, "the server is not initialized");
        }
    }
    Ok(Opening::End(SessionEnd::Closed))
}

/// Returns whether a message requires an answer. An invalid message is rejected.
fn is_request(message: &Value, output: &Output) -> bool {
    let (id, has_method) = (&message["id"], message["method"].is_string());
    if !has_method && !is_answer(message) {
        output.fail(id, INVALID_REQUEST, "a message needs a method");
    }
    has_method && !id.is_null()
}

/// Returns whether a message answers a request.
fn is_answer(message: &Value) -> bool {
    ["result", "error"].iter().any(|name| message.get(name).is_some())
}

fn capabilities(encoding: Encoding) -> Value {
    json!({
        "capabilities": {
            "positionEncoding": encoding.name(),
            "textDocumentSync": {"openClose": true, "change": 2},
            "inlineCompletionProvider": true,
        },
        "serverInfo": {"name": "repoformer", "version": env!("CARGO_PKG_VERSION")},
    })
}

struct Server {
    service: Arc<Service>,
    output: Arc<Output>,
    encoding: Encoding,
    /// Open documents by URI.
    documents: HashMap<String, Document>,
    asked: Arc<Mutex<Vec<RequestInFlight>>>,
    room: Arc<Semaphore>,
    is_shut_down: bool,
    runtime: tokio::runtime::Runtime,
}

/// Request in flight, which ends when its connections are closed.
struct RequestInFlight {
    id: Value,
    connections: Vec<Endpoint>,
    is_cancelled: bool,
}

impl Server {
    /// Marks the texts of all documents as unknown, after a message that may have changed any of them.
    fn lose_documents(&mut self, reason: &str) {
        self.documents.values_mut().for_each(|document| document.lose(reason));
    }

    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let named = params["textDocument"]["uri"].as_str();
        let uri = || named.unwrap_or_default().to_owned();
        let is_request = is_request(message, &self.output);
        if !message["method"].is_string() && !is_answer(message) {
            self.lose_documents("a message had no method");
        }
        if self.is_shut_down {
            if is_request {
                self.output.fail(id, INVALID_REQUEST, "the server is shut down");
            }
            return;
        }
        match message["method"].as_str().unwrap_or_default() {
            "textDocument/didOpen" => match Document::open(&params["textDocument"]) {
                Ok(document) => match self.documents.get_mut(&uri()) {
                    None => drop(self.documents.insert(uri(), document)),
                    Some(known) => {
                        let reason = known.open_again(document).err().unwrap_or_else(|| {
                            "opened again without being closed; the newer text is used".into()
                        });
                        self.output.log(&format!("{}: {reason}", uri()));
                    }
                },
                Err(reason) => {
                    self.output.log(&format!("{}: {reason}", uri()));
                    if let Some(known) = self.documents.get_mut(&uri()) {
                        known.lose(&reason);
                    }
                }
            },
            "textDocument/didChange" => {
                let changed = match self.documents.get_mut(&uri()) {
                    Some(document) => document.change(params, self.encoding),
                    None => Err("not an open document".into()),
                };
                if named.is_none() {
                    self.lose_documents("a change named no document");
                }
                if let Err(reason) = changed {
                    self.output.log(&format!("{}: {reason}", uri()));
                }
            }
            "textDocument/didClose" => drop(self.documents.remove(&uri())),
            "textDocument/inlineCompletion" if is_request => self.complete(id, params, &uri()),
            "$/cancelRequest" => self.cancel(&params["id"]),
            "initialize" if is_request => {
                self.output.fail(id, INVALID_REQUEST, "the server is initialized already");
            }
            "shutdown" if is_request => {
                self.is_shut_down = true;
                self.output.answer(id, &Value::Null);
            }
            // Notifications that need no answer.
            _ if !is_request => {}
            other => self.output.fail(id, METHOD_NOT_FOUND, &format!("unknown method {other}")),
        }
    }

    fn cancel(&self, id: &Value) {
        for asked in lock(&self.asked).iter_mut().filter(|asked| asked.id == *id) {
            asked.end();
        }
    }

    fn complete(&self, id: &Value, params: &Value, uri: &str) {
        let Some(document) = self.documents.get(uri) else {
            return self.output.fail(id, INVALID_PARAMS, &format!("{uri}: not an open document"));
        };
        let text = match document.text() {
            Ok(text) => text,
            Err(reason) => {
                let reason = format!(
                    "{uri}: its text is unknown since an invalid change ({reason}); close and reopen it"
                );
                return self.output.fail(id, FAILED, &reason);
            }
        };
        let Some(offset) = document.offset_of(&params["position"], self.encoding) else {
            return self.output.fail(
                id,
                INVALID_PARAMS,
                "the position is not a line and a character",
            );
        };
        // The completion must begin with the entry selected in the editor's list.
        let selected = &params["context"]["selectedCompletionInfo"];
        let (mut before, mut behind, mut item) = (text[..offset].to_owned(), &text[offset..], None);
        if let Some(entry) = selected["text"].as_str() {
            let place = |name: &str| document.offset_of(&selected["range"][name], self.encoding);
            let Some((start, end)) = place("start").zip(place("end")).filter(|(a, b)| a <= b)
            else {
                let reason = "the range of selectedCompletionInfo does not consist of positions";
                return self.output.fail(id, INVALID_PARAMS, reason);
            };
            before = format!("{}{entry}", &text[..start]);
            behind = &text[end..];
            item = Some((entry.to_owned(), selected["range"].clone()));
        }
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned().map(Arc::new) else {
            let reason = format!("{UNENDED} earlier requests are still in progress");
            return self.output.fail(id, FAILED, &reason);
        };
        let path = path_of_url(uri).into_owned();
        let is_supposed = item.is_some();
        let wanted =
            EditorRequest { is_supposed, ..EditorRequest::of_document(&before, behind, path) };
        let own = self.service.endpoint.with_own_connections();
        {
            let mut asked = lock(&self.asked);
            let waited_for = asked.iter().filter(|one| !one.is_cancelled).count();
            let oldest = asked.iter_mut().find(|one| !one.is_cancelled);
            if let Some(oldest) = oldest.filter(|_| waited_for >= AT_ONCE) {
                oldest.end();
            }
            asked.push(RequestInFlight {
                id: id.clone(),
                connections: vec![own.clone()],
                is_cancelled: false,
            });
        }
        let (service, output, asked) =
            (Arc::clone(&self.service), Arc::clone(&self.output), Arc::clone(&self.asked));
        let id = id.clone();
        self.runtime.spawn_blocking(move || {
            let found = answer(&service, &wanted, &own, (&asked, &id), permit);
            let is_cancelled = {
                let mut asked = lock(&asked);
                let place = asked.iter().position(|one| one.id == id);
                place.is_some_and(|place| asked.remove(place).is_cancelled)
            };
            match found {
                _ if is_cancelled => output.fail(&id, CANCELLED, "cancelled"),
                Ok(text) if text.is_empty() => output.answer(&id, &json!({"items": []})),
                Ok(text) => {
                    let item = match item {
                        None => json!({"insertText": text}),
                        Some((entry, range)) => {
                            json!({"insertText": entry + &text, "range": range})
                        }
                    };
                    output.answer(&id, &json!({"items": [item]}));
                }
                Err(reason) => output.fail(&id, FAILED, &reason),
            }
        });
    }
}

impl RequestInFlight {
    fn end(&mut self) {
        self.is_cancelled = true;
        self.connections.iter().for_each(Endpoint::close);
    }
}

/// Returns the completion for a cursor.
fn answer(
    service: &Service,
    wanted: &EditorRequest,
    own: &Endpoint,
    (asked, id): (&Mutex<Vec<RequestInFlight>>, &Value),
    permit: Arc<OwnedSemaphorePermit>,
) -> Result<String, String> {
    let prepared = service.prepare(wanted, own).map_err(|error| error.to_string())?;
    let mut completing = service.complete(prepared.request, permit);
    if let Some(asked) = lock(asked).iter_mut().find(|asked| asked.id == *id) {
        asked.connections.push(completing.connection());
        if asked.is_cancelled {
            asked.end();
        }
    }
    let mut text = String::new();
    let mut model = service.name_of_model(wanted).to_owned();
    loop {
        match completing.parts.blocking_recv() {
            Some(Ok(StreamPart::Model(name))) if model.is_empty() => model = name,
            Some(Ok(StreamPart::Model(_))) => {}
            Some(Ok(StreamPart::Text(more))) => text += &more,
            Some(Ok(StreamPart::End(end))) => {
                if let Some(dropped) = end.dropped {
                    let dropped = shorten_dropped(&dropped);
                    let text = format!("dropped because it continues the previous line: {dropped}");
                    service.messages.detail(&text);
                }
                break;
            }
            Some(Err(error)) => return Err(error.to_string()),
            // The request was cancelled.
            None => return Ok(String::new()),
        }
    }
    service.keep_shown(prepared.asked, text.clone(), model);
    Ok(text)
}

/// Output to the editor, written one message at a time.
struct Output(Mutex<Box<dyn Write + Send>>);

impl Output {
    fn answer(&self, id: &Value, result: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn fail(&self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Writes an error to the editor's log.
    fn log(&self, message: &str) {
        let params = json!({"type": 1, "message": message});
        self.write(&json!({"jsonrpc": "2.0", "method": "window/logMessage", "params": params}));
    }

    fn write(&self, message: &Value) {
        let text = message.to_string();
        let mut output = lock(&self.0);
        // Ignore errors: an editor that has closed the connection reads nothing.
        let _ = write!(output, "Content-Length: {}\r\n\r\n{text}", text.len());
        let _ = output.flush();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use repoformer_core::policy::Policy;

    use super::incoming::{Body, read};
    use super::*;
    use crate::tests::{Shop, service};

    /// Output that keeps everything written to it.
    #[derive(Clone, Default)]
    struct SharedOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Runs a session with these messages; returns its end and the answers.
    fn session(messages: &[Value]) -> (Result<SessionEnd>, Vec<Value>) {
        let input: String = messages.iter().map(|message| framed(&message.to_string())).collect();
        let written = SharedOutput::default();
        let refuse = |folder: Option<&str>| {
            let path = folder.unwrap_or("none").into();
            Err(ServeError::OtherFragments { path, line: 1, found: "a".into(), here: "b".into() })
        };
        let end = run(&mut input.as_bytes(), written.clone(), refuse);
        let written = lock(&written.0).clone();
        let mut answers = Vec::new();
        let mut output = &written[..];
        while let Some(Body::Whole(body)) = read(&mut output).unwrap() {
            answers.push(serde_json::from_slice(&body).unwrap());
        }
        (end, answers)
    }

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    #[test]
    fn a_request_is_refused_while_too_many_others_have_not_ended() {
        let shop = Shop::new(&[("a.py", "x = 1\n")]);
        let written = SharedOutput::default();
        let mut server = Server {
            service: Arc::new(service(&shop, Policy::Never)),
            output: Arc::new(Output(Mutex::new(Box::new(written.clone())))),
            encoding: Encoding::Utf16,
            documents: HashMap::new(),
            asked: Arc::default(),
            room: Arc::new(Semaphore::new(0)),
            is_shut_down: false,
            runtime: runtime().unwrap(),
        };
        let document = json!({"uri": "file:///a.py", "text": "x = 1\n", "version": 1});
        let opened = json!({"textDocument": document});
        server.take(&json!({"method": "textDocument/didOpen", "params": opened}));
        let params = json!({"textDocument": document, "position": {"line": 0, "character": 0}});
        server.take(&json!({"id": 1, "method": "textDocument/inlineCompletion", "params": params}));
        let said = String::from_utf8(lock(&written.0).clone()).unwrap();
        assert!(said.contains("64 earlier requests are still in progress"), "{said}");
    }

    #[test]
    fn a_session_ends_before_it_begins() {
        assert_eq!(session(&[]).0.unwrap(), SessionEnd::Closed);
        let early = json!({"id": 1, "method": "shutdown"});
        let (end, answers) = session(&[early, json!({"method": "exit"})]);
        assert_eq!(end.unwrap(), SessionEnd::ExitBeforeShutdown);
        assert_eq!(answers[0]["error"]["code"], NOT_INITIALIZED);
        let folder =
            json!({"workspaceFolders": [{"uri": "file:///a%20b"}], "rootUri": "file:///c"});
        let (end, answers) = session(&[json!({"id": 7, "method": "initialize", "params": folder})]);
        let reason = "/a b:1: this label is of a, but this server uses b";
        assert_eq!(end.unwrap_err().to_string(), reason);
        assert_eq!(answers[0]["error"], json!({"code": FAILED, "message": reason}));
    }
}
