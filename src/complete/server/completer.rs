//! Completions of a prompt, in as few requests as the server allows.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::answer::Parts;
use super::run::{is_refused, reason};
use super::{Answer, Api, CompletionRequest, Sample, samples};
use crate::endpoint::{Endpoint, Event};
use crate::error::{Error, Result};

/// Requests completions from a server, and remembers what it does not support.
#[derive(Debug)]
pub struct Completer<'a> {
    endpoint: &'a Endpoint,
    /// Whether the server returns one sample per request.
    one_by_one: AtomicBool,
    /// Whether it returns no log-probabilities, and rejects requests for them.
    without_logprobs: AtomicBool,
    /// Whether it writes completions as a whole, and does not stop when no more is read.
    without_stream: AtomicBool,
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
            without_stream: AtomicBool::new(false),
            completion_tokens: AtomicBool::new(false),
        }
    }

    /// Requests all samples of a prompt, in one request if the server returns several. With `is_enough`, the server is asked to
    /// stream, and is told to stop by a closed connection once the text of each sample is enough; a server that cannot stream
    /// writes all.
    ///
    /// # Errors
    /// The server rejects the request, or its answer contains no completion.
    pub fn ask(
        &self,
        asking: &CompletionRequest,
        prompt: &str,
        is_enough: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<Answer> {
        let wanted = asking.samples.max(1);
        let (mut found, mut took) = (Vec::with_capacity(wanted), Duration::ZERO);
        let mut is_one_by_one = self.one_by_one.load(Ordering::Relaxed);
        while found.len() < wanted {
            let left = wanted - found.len();
            let number = if is_one_by_one { 1 } else { left };
            let body = asking.body(prompt, found.len(), number);
            let (new, time) = match self.post(asking.api, body, number, is_enough) {
                Ok(answer) => answer,
                // llama.cpp rejects more samples than it has slots; otherwise the prompt is the cause.
                Err(error) if number > 1 && is_refused(&error) => {
                    is_one_by_one = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            took += time;
            // Some servers accept the number and return one sample.
            is_one_by_one |= new.len() < number;
            if is_one_by_one {
                self.one_by_one.store(true, Ordering::Relaxed);
            }
            found.extend(new.into_iter().take(left));
        }
        // A stream, or its tokens, may spell the key in parts.
        found.iter_mut().for_each(|sample| self.mask_key(sample));
        Ok(Answer { samples: found, seconds: took.as_secs_f64() })
    }

    /// Masks the server's key in a completion, whose tokens are no longer its own then.
    fn mask_key(&self, sample: &mut Sample) {
        let tokens: String = sample.tokens.iter().map(|token| token.text.as_str()).collect();
        let is_masked = |text: &str| matches!(self.endpoint.without_key(text), Cow::Owned(_));
        if is_masked(&tokens) || is_masked(&sample.text) {
            sample.text = self.endpoint.without_key(&sample.text).into_owned();
            sample.tokens.clear();
        }
    }

    /// Sends a request, without fields that the server rejects.
    fn post(
        &self,
        api: Api,
        mut body: Value,
        number: usize,
        is_enough: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<(Vec<Sample>, Duration)> {
        if is_enough.is_some() {
            body["stream"] = true.into();
        }
        loop {
            if self.without_stream.load(Ordering::Relaxed)
                && let Some(fields) = body.as_object_mut()
            {
                fields.shift_remove("stream");
            }
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
            let sent = match is_enough.filter(|_| body.get("stream").is_some()) {
                Some(is_enough) => self.stream(api, &body, number, is_enough),
                None => self.whole(api, &body),
            };
            let error = match sent {
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
            } else if message.split(|c: char| !c.is_alphanumeric()).any(is_stream) && has("stream")
            {
                self.tell_without_stream();
            } else {
                return Err(error);
            }
        }
    }

    /// Requests an answer as a whole.
    fn whole(&self, api: Api, body: &Value) -> Result<(Vec<Sample>, Duration)> {
        let (answer, time) = self.endpoint.post_json_timed(api.path(), body)?;
        Ok((samples(&answer, api).map_err(|reason| self.no_completion(api, reason))?, time))
    }

    /// Reads an answer as it is written, until it is enough.
    fn stream(
        &self,
        api: Api,
        body: &Value,
        number: usize,
        is_enough: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<Sample>, Duration)> {
        let (mut parts, mut whole, mut wrong) = (Parts::default(), None, None);
        let time = self.endpoint.post_events(api.path(), body, &mut |event| match event {
            Event::Begin => {
                (parts, whole, wrong) = (Parts::default(), None, None);
                false
            }
            Event::Data(event) => match parts.add(&event, api) {
                Ok(()) => parts.are_enough(number, is_enough),
                Err(reason) => {
                    wrong = Some(reason);
                    true
                }
            },
            Event::Whole(answer) => {
                whole = Some(answer);
                true
            }
        })?;
        let found = match (wrong, whole) {
            (Some(reason), _) => Err(reason),
            (None, Some(answer)) => {
                self.tell_without_stream();
                samples(&answer, api)
            }
            (None, None) => match parts.into_samples(api) {
                Ok(found) if found.is_empty() => Err("the answer's 'choices' are empty".into()),
                found => found,
            },
        };
        Ok((found.map_err(|reason| self.no_completion(api, reason))?, time))
    }

    /// Remembers, and says once, that the server does not stream.
    fn tell_without_stream(&self) {
        if !self.without_stream.swap(true, Ordering::Relaxed) {
            let text = "the server does not stream, so it writes completions to their last token";
            self.endpoint.tell("/v1", text);
        }
    }

    fn no_completion(&self, api: Api, reason: String) -> Error {
        let hint = "is this an OpenAI-compatible server? The chat API needs messages";
        self.endpoint.error(api.path(), reason, hint)
    }
}

/// Whether a word of a refusal names streaming; `upstream` does not.
fn is_stream(word: &str) -> bool {
    word.to_lowercase().starts_with("stream")
}
