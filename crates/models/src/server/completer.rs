//! Completions of a prompt, in as few requests as the server allows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use repoformer_core::completion::{
    Answer, AnswerError, Api, CompletionRequest, Sample, drop_secrets, samples,
};
use repoformer_store::error::{Error, Result};
use serde_json::Value;

use super::partial::{IsEnough, PartialAnswer};
use super::run::{is_refused, reason};
use crate::endpoint::{Endpoint, Event};

/// Requests an answer that is not streamed, and returns its completions and its time.
///
/// # Errors
/// The request fails, or its answer is a failure.
pub fn read_whole(endpoint: &Endpoint, api: Api, body: &Value) -> Result<(Vec<Sample>, Duration)> {
    let (answer, time) = endpoint.post_json_timed(api.path(), body)?;
    match samples(&answer, api) {
        Ok(found) => Ok((found, time)),
        Err(error) => Err(answer_error(endpoint, api, &error)),
    }
}

/// Requests a streamed answer, and calls `is_enough` after each event until it returns true; then the connection is closed. A server that
/// does not stream sends its whole answer at once. Returns the received answer, its time, and whether the server streams.
///
/// # Errors
/// The request fails, or its answer is a failure or ends before its completions are finished.
pub(super) fn read_stream(
    endpoint: &Endpoint,
    api: Api,
    body: &Value,
    is_enough: &mut dyn FnMut(&PartialAnswer) -> bool,
) -> Result<(PartialAnswer, Duration, bool)> {
    let (mut partial, mut failed, mut streams) = (PartialAnswer::new(api, body), None, true);
    let time = endpoint.post_events(api.path(), body, &mut |event| {
        let added = match event {
            Event::Begin => {
                partial = PartialAnswer::new(api, body);
                return false;
            }
            // The stream is complete if every completion is finished.
            Event::End => return partial.is_finished(),
            Event::Data { value, exact } => {
                partial.add(&value, exact.as_deref(), || endpoint.key_mask())
            }
            Event::Whole(answer) => {
                streams = false;
                partial.set(&answer)
            }
        };
        match added {
            Ok(()) => is_enough(&partial),
            Err(error) => {
                failed = Some(error);
                true
            }
        }
    })?;
    partial.finish();
    match failed.map_or_else(|| partial.check(), Err) {
        Ok(()) => Ok((partial, time, streams)),
        Err(error) => Err(answer_error(endpoint, api, &error)),
    }
}

/// Returns the error for an answer without a completion.
pub(super) fn answer_error(endpoint: &Endpoint, api: Api, error: &AnswerError) -> Error {
    let (reason, hint) = (error.to_string(), error.hint());
    match error {
        AnswerError::Form(_) => endpoint.error(api.path(), reason, hint),
        _ => endpoint.failed_answer(api.path(), reason, hint),
    }
}

/// Number of bytes of completions up to which they are checked after every token.
const LOOKED_AT_OFTEN: usize = 1 << 12;

/// Client that requests completions from a server and remembers what the server does not support.
#[derive(Debug)]
pub struct Completer<'a> {
    endpoint: &'a Endpoint,
    /// Whether the server returns one sample per request.
    one_by_one: AtomicBool,
    /// Whether the server returns no log-probabilities and rejects requests for them.
    without_logprobs: AtomicBool,
    /// Whether the server does not stream, and therefore does not stop when the connection is closed.
    without_stream: AtomicBool,
    /// Whether the server calls the token limit `max_completion_tokens`, like OpenAI's newer chat models.
    completion_tokens: AtomicBool,
}

impl<'a> Completer<'a> {
    /// Creates a client for a server.
    pub fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            one_by_one: AtomicBool::new(false),
            without_logprobs: AtomicBool::new(false),
            without_stream: AtomicBool::new(false),
            completion_tokens: AtomicBool::new(false),
        }
    }

    /// Requests all samples of a prompt, in one request if the server supports it. With `is_enough`, the answer is streamed, and the
    /// connection is closed as soon as the text of each sample is enough, which tells the server to stop; a server that cannot stream
    /// writes everything.
    ///
    /// # Errors
    /// The server rejects the request, or its answer contains no completion.
    pub fn ask(
        &self,
        asking: &CompletionRequest,
        prompt: &str,
        is_enough: Option<&IsEnough<'_>>,
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
                // llama.cpp rejects more samples than it has slots; otherwise the prompt is at fault.
                Err(error) if number > 1 && is_refused(&error) => {
                    is_one_by_one = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            took += time;
            // Some servers accept the number but return one sample.
            is_one_by_one |= new.len() < number;
            if is_one_by_one {
                self.one_by_one.store(true, Ordering::Relaxed);
            }
            found.extend(new.into_iter().take(left));
        }
        // Tokens or samples may spell a key together.
        drop_secrets(&mut found, |text| self.endpoint.has_key_in_text(text))
            .map_err(|error| answer_error(self.endpoint, asking.api, &error))?;
        Ok(Answer { samples: found, seconds: took.as_secs_f64() })
    }

    /// Sends a request, without the fields that the server rejects.
    fn post(
        &self,
        api: Api,
        mut body: Value,
        number: usize,
        is_enough: Option<&IsEnough<'_>>,
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
                None => read_whole(self.endpoint, api, &body),
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

    /// Reads an answer as it is written, until it is long enough.
    fn stream(
        &self,
        api: Api,
        body: &Value,
        number: usize,
        is_enough: &IsEnough<'_>,
    ) -> Result<(Vec<Sample>, Duration)> {
        // Each check reads the whole text, so a long text is not checked at every token.
        let mut next = 0;
        let (partial, time, streams) = read_stream(self.endpoint, api, body, &mut |partial| {
            let length = partial.length();
            if length < next {
                return false;
            }
            next = if length < LOOKED_AT_OFTEN { 0 } else { length + length / 16 };
            // The server may still report a failure after the last finish reason.
            partial.are_enough(number, is_enough) && !partial.is_finished()
        })?;
        if !streams {
            self.tell_without_stream();
        }
        let found = partial.into_samples();
        Ok((found.map_err(|error| answer_error(self.endpoint, api, &error))?, time))
    }

    /// Remembers, and reports once, that the server does not stream.
    fn tell_without_stream(&self) {
        if !self.without_stream.swap(true, Ordering::Relaxed) {
            let text = "the server does not stream, so it writes completions to their last token";
            self.endpoint.tell_unsupported(text);
        }
    }
}

/// Returns whether a word of an error message refers to streaming; `upstream` does not.
fn is_stream(word: &str) -> bool {
    word.to_lowercase().starts_with("stream")
}
