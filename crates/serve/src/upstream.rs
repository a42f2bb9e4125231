//! The model's server, asked for one completion, which ends where the editor no longer wants it.

use std::time::Instant;

use repoformer_core::completion::{Api, CompletionCut};
use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::read_stream;
use repoformer_store::error::Error;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

/// A part of a completion.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Name of the model.
    Model(String),
    Text(String),
    /// The server has written it all.
    End(End),
    Failed(Error),
}

/// Numbers and reason that a server gives at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct End {
    /// Finish reason, in the words of the model's server.
    pub(crate) reason: Option<String>,
    /// Stop text that ended the completion, if it stands in the server's text or the server names it.
    pub(crate) stop_text: Option<String>,
    /// Text that is not part of the completion because the model continued the line before it.
    pub(crate) dropped: Option<String>,
    pub(crate) usage: Value,
    pub(crate) timings: Value,
}

impl End {
    fn number(&self, place: &str, name: &str) -> Option<u64> {
        count(if place == "usage" { &self.usage[name] } else { &self.timings[name] })
    }

    /// Tokens of the prompt.
    pub(crate) fn prompt_tokens(&self) -> Option<u64> {
        let timed = self.number("timings", "prompt_n").zip(self.cached_tokens());
        self.number("usage", "prompt_tokens").or(timed.map(|(new, cached)| new + cached))
    }

    /// Tokens of the prompt that the server had from earlier requests.
    pub(crate) fn cached_tokens(&self) -> Option<u64> {
        let details = &self.usage["prompt_tokens_details"]["cached_tokens"];
        self.number("timings", "cache_n").or(count(details))
    }

    pub(crate) fn written_tokens(&self) -> Option<u64> {
        self.number("usage", "completion_tokens").or(self.number("timings", "predicted_n"))
    }
}

/// A number of tokens. What cannot be one is not counted, so that sums do not overflow.
fn count(number: &Value) -> Option<u64> {
    number.as_u64().filter(|number| u32::try_from(*number).is_ok())
}

/// A request in flight: its pieces, and its end where it is dropped.
#[derive(Debug)]
pub(crate) struct Completing {
    pub(crate) pieces: mpsc::Receiver<Piece>,
    connection: Endpoint,
}

impl Completing {
    /// The connection, which ends the request where it is closed.
    pub(crate) fn connection(&self) -> Endpoint {
        self.connection.clone()
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        // A server stops when nobody listens.
        self.connection.close();
    }
}

/// Pieces that wait for the editor, at most.
const WAITING: usize = 256;

/// Asks for a completion. Always as a stream: a server notices at the next token that nobody listens.
pub(crate) fn complete(endpoint: &Endpoint, request: Request) -> Completing {
    let connection = endpoint.with_own_connections();
    let (sender, pieces) = mpsc::channel(WAITING);
    let asked = connection.clone();
    tokio::task::spawn_blocking(move || follow(&asked, request, &sender));
    Completing { pieces, connection }
}

fn follow(endpoint: &Endpoint, request: Request, sender: &mpsc::Sender<Piece>) {
    write(endpoint, request, &mut |piece| sender.blocking_send(piece).is_err());
}

/// Requests a completion and passes its pieces on until the receiver stops.
pub(crate) fn write(
    endpoint: &Endpoint,
    Request { body, mut cut }: Request,
    is_unwanted: &mut dyn FnMut(Piece) -> bool,
) {
    let (mut read, mut is_named, mut is_left) = (0, false, false);
    let done = read_stream(endpoint, Api::Completions, &body, &mut |answer| {
        if let Some(model) = answer.model.clone().filter(|_| !is_named) {
            is_named = true;
            // Whether somebody listens shows with the first text.
            is_unwanted(Piece::Model(model));
        }
        let text = cut.pass(answer.text().get(read..).unwrap_or_default());
        read = answer.text().len();
        is_left = !text.is_empty() && is_unwanted(Piece::Text(text));
        is_left || cut.stop_text().is_some()
    });
    let last = match done {
        _ if is_left => return,
        Err(error) => Piece::Failed(error),
        Ok((answer, ..)) => {
            let rest = cut.pass(answer.text().get(read..).unwrap_or_default()) + &cut.finish();
            if !rest.is_empty() && is_unwanted(Piece::Text(rest)) {
                return;
            }
            let is_cut = cut.stop_text().is_some();
            let finish = if is_cut { Some("stop") } else { answer.finish_reason() };
            Piece::End(End {
                reason: finish.map(str::to_owned),
                stop_text: cut.stop_text().or(answer.stop_text()).map(str::to_owned),
                dropped: cut.dropped().map(str::to_owned),
                usage: answer.usage.unwrap_or_default(),
                timings: answer.timings.unwrap_or_default(),
            })
        }
    };
    // The receiver may be gone.
    is_unwanted(last);
}

/// A request to the model's server.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) body: Value,
    pub(crate) cut: CompletionCut,
}

/// A request for the completion of a prompt that ended with the white space `removed`.
pub(crate) fn request(
    model: &str,
    prompt: &str,
    removed: &str,
    max_tokens: u64,
    stops: Vec<String>,
    passed: Map<String, Value>,
) -> Request {
    let cut = CompletionCut::new(stops, removed);
    let mut body = json!({
        "prompt": prompt, "max_tokens": max_tokens, "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !model.is_empty() {
        body["model"] = model.into();
    }
    if !cut.stops_to_send().is_empty() {
        body["stop"] = json!(cut.stops_to_send());
    }
    if let Some(body) = body.as_object_mut() {
        body.extend(passed);
    }
    Request { body, cut }
}

/// Milliseconds since a moment.
pub(crate) fn ms_since(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}
