//! The model's server, asked for one completion, which ends where the editor no longer wants it.

use std::time::Instant;

use repoformer::complete::server::MOST_STOPS;
use repoformer::endpoint::{Endpoint, Event};
use repoformer::error::Error;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

/// A part of a completion.
#[derive(Debug)]
pub(super) enum Piece {
    /// Name of the model.
    Model(String),
    Text(String),
    /// The server has written it all.
    End(End),
    Failed(Error),
}

/// Numbers and reason that a server gives at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct End {
    /// `stop` or `length`.
    pub(super) reason: Option<String>,
    pub(super) usage: Value,
    pub(super) timings: Value,
}

impl End {
    fn number(&self, place: &str, name: &str) -> Option<u64> {
        let of = if place == "usage" { &self.usage } else { &self.timings };
        of[name].as_u64()
    }

    /// Tokens of the prompt.
    pub(super) fn prompt_tokens(&self) -> Option<u64> {
        let timed = self.number("timings", "prompt_n").zip(self.cached_tokens());
        self.number("usage", "prompt_tokens").or(timed.map(|(new, cached)| new + cached))
    }

    /// Tokens of the prompt that the server had from earlier requests.
    pub(super) fn cached_tokens(&self) -> Option<u64> {
        let details = &self.usage["prompt_tokens_details"]["cached_tokens"];
        self.number("timings", "cache_n").or(details.as_u64())
    }

    pub(super) fn written_tokens(&self) -> Option<u64> {
        self.number("usage", "completion_tokens").or(self.number("timings", "predicted_n"))
    }
}

/// A request in flight: its pieces, and its end where it is dropped.
#[derive(Debug)]
pub(super) struct Completing {
    pub(super) pieces: mpsc::Receiver<Piece>,
    connection: Endpoint,
}

impl Completing {
    /// The connection, which ends the request where it is closed.
    pub(super) fn connection(&self) -> Endpoint {
        self.connection.clone()
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        // A server stops when nobody listens.
        self.connection.close();
    }
}

const COMPLETIONS: &str = "/v1/completions";
/// Pieces that wait for the editor, at most.
const WAITING: usize = 256;

/// Asks for a completion. Always as a stream: a server notices at the next token that nobody listens.
pub(super) fn complete(endpoint: &Endpoint, request: Request) -> Completing {
    let connection = endpoint.with_own_connections();
    let (sender, pieces) = mpsc::channel(WAITING);
    let asked = connection.clone();
    tokio::task::spawn_blocking(move || follow(&asked, request, &sender));
    Completing { pieces, connection }
}

fn follow(endpoint: &Endpoint, request: Request, sender: &mpsc::Sender<Piece>) {
    let Request { body, mut stops } = request;
    let mut end = End::default();
    let (mut is_unwanted, mut is_named, mut has_text) = (false, false, false);
    let mut take = |event: Event| {
        let (Event::Data(value) | Event::Whole(value)) = event else { return false };
        if let Some(model) = value["model"].as_str().filter(|_| !is_named) {
            is_named = true;
            // Whether somebody listens shows with the first text.
            let _ = sender.blocking_send(Piece::Model(model.to_owned()));
        }
        let choice = &value["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            end.reason = Some(reason.to_owned());
        }
        for (place, found) in
            [(&mut end.usage, &value["usage"]), (&mut end.timings, &value["timings"])]
        {
            if found.is_object() {
                *place = found.clone();
            }
        }
        has_text |= choice["text"].is_string();
        let text = stops.pass(choice["text"].as_str().unwrap_or_default());
        is_unwanted = !text.is_empty() && sender.blocking_send(Piece::Text(text)).is_err();
        is_unwanted || stops.has_ended
    };
    let done = endpoint.post_events(COMPLETIONS, &body, &mut take);
    if stops.has_ended {
        end.reason = Some("stop".into());
    }
    let rest = stops.rest();
    if !is_unwanted && !rest.is_empty() {
        is_unwanted = sender.blocking_send(Piece::Text(rest)).is_err();
    }
    if !is_unwanted {
        let last = match done {
            Ok(_) if has_text => Piece::End(end),
            Ok(_) => Piece::Failed(without_text(endpoint)),
            Err(error) => Piece::Failed(error),
        };
        // Nobody may listen any more.
        let _ = sender.blocking_send(last);
    }
}

/// Error of a server whose answer has no completion, not even an empty one.
pub(super) fn without_text(endpoint: &Endpoint) -> Error {
    let hint = "the server must have OpenAI's /v1/completions, which chat models lack";
    endpoint.error(COMPLETIONS, "the answer has no choices with text", hint)
}

/// A request to the model's server.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) body: Value,
    pub(super) stops: Stops,
}

/// Stop texts that the server is not told, since it would refuse so many: a stream is ended here.
#[derive(Debug, Clone, Default)]
pub(super) struct Stops {
    texts: Vec<String>,
    /// Text that one of them may begin with.
    held: String,
    has_ended: bool,
}

impl Stops {
    /// The text to pass on.
    pub(super) fn pass(&mut self, text: &str) -> String {
        if self.has_ended {
            return String::new();
        }
        self.held.push_str(text);
        let found = self.texts.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        self.has_ended = found.is_some();
        let may_begin = |at: &usize| {
            let end = &self.held[*at..];
            self.texts.iter().any(|stop| stop.starts_with(end))
        };
        let starts = || self.held.char_indices().map(|(at, _)| at).find(may_begin);
        let end = found.or_else(starts).unwrap_or(self.held.len());
        let held = self.held.split_off(end);
        let passed = std::mem::replace(&mut self.held, held);
        if self.has_ended {
            self.held.clear();
        }
        passed
    }

    /// Whether a stop text was found.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Text that was held back and is no stop text after all.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// A request for the completion of a prompt, with the first stop texts.
pub(super) fn request(
    model: &str,
    prompt: &str,
    max_tokens: u64,
    mut stop: Vec<String>,
    passed: Map<String, Value>,
) -> Request {
    let texts = stop.split_off(stop.len().min(MOST_STOPS));
    let mut body = json!({
        "prompt": prompt, "max_tokens": max_tokens, "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !model.is_empty() {
        body["model"] = model.into();
    }
    if !stop.is_empty() {
        body["stop"] = json!(stop);
    }
    if let Some(body) = body.as_object_mut() {
        body.extend(passed);
    }
    Request { body, stops: Stops { texts, ..Stops::default() } }
}

/// Milliseconds since a moment.
pub(super) fn ms_since(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_at_stop_texts_that_the_server_is_not_told() {
        let all = ["<a>", "<b>", "<c>", "<d>", "<end>", "é="].map(String::from).to_vec();
        let request = request("m", "x", 5, all, Map::new());
        assert_eq!(request.body["stop"], json!(["<a>", "<b>", "<c>", "<d>"]));
        let written = |pieces: &[&str]| {
            let mut stops = request.stops.clone();
            let passed: String = pieces.iter().map(|piece| stops.pass(piece)).collect();
            (passed + &stops.rest(), stops.has_ended)
        };
        assert_eq!(written(&["x = 1", "<e", "nd>y", "z"]), ("x = 1".into(), true));
        assert_eq!(written(&["x <", "e", "nd", "ed"]), ("x <ended".into(), false));
        assert_eq!(written(&["<<end", ">"]), ("<".into(), true));
        assert_eq!(written(&["a é", "= é"]), ("a ".into(), true));
        assert_eq!(written(&["a é"]), ("a é".into(), false));
    }
}
