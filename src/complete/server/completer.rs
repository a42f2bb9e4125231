//! Completions of a prompt, in as few requests as the server allows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::run::{is_refused, reason};
use super::{Answer, CompletionRequest, samples};
use crate::endpoint::Endpoint;
use crate::error::Result;

/// Requests completions from a server, and remembers what it does not support.
#[derive(Debug)]
pub struct Completer<'a> {
    endpoint: &'a Endpoint,
    /// Whether the server returns one sample per request.
    one_by_one: AtomicBool,
    /// Whether it returns no log-probabilities, and rejects requests for them.
    without_logprobs: AtomicBool,
    /// Whether it calls the token limit `max_completion_tokens`, like OpenAI's newer chat models.
    completion_tokens: AtomicBool,
}

impl<'a> Completer<'a> {
    /// Client for a server.
    pub fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            one_by_one: AtomicBool::new(false),
            without_logprobs: AtomicBool::new(false),
            completion_tokens: AtomicBool::new(false),
        }
    }

    /// Requests all samples of a prompt, in one request if the server returns several.
    ///
    /// # Errors
    /// The server rejects the request, or its answer contains no completion.
    pub fn ask(&self, asking: &CompletionRequest, prompt: &str) -> Result<Answer> {
        let wanted = asking.samples.max(1);
        let (mut found, mut took) = (Vec::with_capacity(wanted), Duration::ZERO);
        let mut is_one_by_one = self.one_by_one.load(Ordering::Relaxed);
        while found.len() < wanted {
            let left = wanted - found.len();
            let number = if is_one_by_one { 1 } else { left };
            let path = asking.api.path();
            let (answer, time) = match self.post(path, asking.body(prompt, found.len(), number)) {
                Ok(answer) => answer,
                // llama.cpp rejects more samples than it has slots; otherwise the prompt is the cause.
                Err(error) if number > 1 && is_refused(&error) => {
                    is_one_by_one = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            took += time;
            let new = samples(&answer, asking.api).map_err(|reason| {
                let hint = "is this an OpenAI-compatible server? The chat API needs messages";
                self.endpoint.error(path, reason, hint)
            })?;
            // Some servers accept the number and return one sample.
            is_one_by_one |= new.len() < number;
            if is_one_by_one {
                self.one_by_one.store(true, Ordering::Relaxed);
            }
            found.extend(new.into_iter().take(left));
        }
        Ok(Answer { samples: found, seconds: took.as_secs_f64() })
    }

    /// Sends a request, without fields that the server rejects.
    fn post(&self, path: &str, mut body: Value) -> Result<(Value, Duration)> {
        loop {
            if self.without_logprobs.load(Ordering::Relaxed)
                && let Some(fields) = body.as_object_mut()
            {
                fields.shift_remove("logprobs");
            }
            if self.completion_tokens.load(Ordering::Relaxed)
                && let Some(most) = body.as_object_mut().and_then(|f| f.shift_remove("max_tokens"))
            {
                body["max_completion_tokens"] = most;
            }
            let error = match self.endpoint.post_json_timed(path, &body) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let message = reason(&error);
            let has = |field: &str| body.get(field).is_some();
            if !is_refused(&error) {
                return Err(error);
            } else if message.contains("logprobs") && has("logprobs") {
                self.without_logprobs.store(true, Ordering::Relaxed);
            } else if message.contains("max_completion_tokens") && has("max_tokens") {
                self.completion_tokens.store(true, Ordering::Relaxed);
            } else {
                return Err(error);
            }
        }
    }
}
