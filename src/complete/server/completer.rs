//! Completions of a prompt, in as few requests as the server allows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::run::{is_refused, reason};
use super::{Answer, Asking, samples};
use crate::endpoint::Endpoint;
use crate::error::Result;

/// Asks a server for completions, and remembers what it does not do.
#[derive(Debug)]
pub struct Completer<'a> {
    endpoint: &'a Endpoint,
    /// Whether the server gives one sample a request.
    one_by_one: AtomicBool,
    /// Whether it tells no log-probabilities, and refuses to be asked.
    without_logprobs: AtomicBool,
    /// Whether it calls the most tokens `max_completion_tokens`, as OpenAI's newer chat models.
    completion_tokens: AtomicBool,
}

impl<'a> Completer<'a> {
    /// Of this server.
    pub fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            one_by_one: AtomicBool::new(false),
            without_logprobs: AtomicBool::new(false),
            completion_tokens: AtomicBool::new(false),
        }
    }

    /// All samples of a prompt, in one request where the server gives several.
    ///
    /// # Errors
    /// The server refuses, or its answer holds no completion.
    pub fn ask(&self, asking: &Asking, prompt: &str) -> Result<Answer> {
        let wanted = asking.samples.max(1);
        let (mut found, mut took) = (Vec::with_capacity(wanted), Duration::ZERO);
        let mut is_one_by_one = self.one_by_one.load(Ordering::Relaxed);
        while found.len() < wanted {
            let left = wanted - found.len();
            let number = if is_one_by_one { 1 } else { left };
            let path = asking.api.path();
            let (answer, time) = match self.post(path, asking.body(prompt, found.len(), number)) {
                Ok(answer) => answer,
                // llama.cpp refuses more samples than it has slots; or is it the prompt that it refuses?
                Err(error) if number > 1 && is_refused(&error) => {
                    is_one_by_one = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            took += time;
            let new = samples(&answer, asking.api).map_err(|reason| {
                let hint = "is this an OpenAI-compatible server? --api chat asks for messages";
                self.endpoint.error(path, reason, hint)
            })?;
            // Some servers take the number and give one all the same.
            is_one_by_one |= new.len() < number;
            if is_one_by_one {
                self.one_by_one.store(true, Ordering::Relaxed);
            }
            found.extend(new.into_iter().take(left));
        }
        Ok(Answer {
            samples: found,
            seconds: took.as_secs_f64(),
        })
    }

    /// Sends a request, without what the server turns out not to know.
    fn post(&self, path: &str, mut body: Value) -> Result<(Value, Duration)> {
        loop {
            if self.without_logprobs.load(Ordering::Relaxed)
                && let Some(fields) = body.as_object_mut()
            {
                fields.shift_remove("logprobs");
            }
            if self.completion_tokens.load(Ordering::Relaxed)
                && let Some(most) = body
                    .as_object_mut()
                    .and_then(|f| f.shift_remove("max_tokens"))
            {
                body["max_completion_tokens"] = most;
            }
            let error = match self.endpoint.post_json_timed(path, &body) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let said = reason(&error);
            let has = |field: &str| body.get(field).is_some();
            if !is_refused(&error) {
                return Err(error);
            } else if said.contains("logprobs") && has("logprobs") {
                self.without_logprobs.store(true, Ordering::Relaxed);
            } else if said.contains("max_completion_tokens") && has("max_tokens") {
                self.completion_tokens.store(true, Ordering::Relaxed);
            } else {
                return Err(error);
            }
        }
    }
}
