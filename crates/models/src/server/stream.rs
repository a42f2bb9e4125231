//! One completion, passed on as a server writes it.

use repoformer_core::completion::{Api, CompletionCut, CompletionRequest};
use repoformer_store::error::Result;
use serde_json::{Map, Value, json};

use super::completer::read_stream;
use crate::endpoint::Endpoint;

/// Request for one completion that is passed on as it is written.
#[derive(Debug, Clone)]
pub struct StreamRequest {
    api: Api,
    body: Value,
    cut: CompletionCut,
}

impl StreamRequest {
    /// Creates a request for the completion of a prompt. `fields` are sent unchanged and override the fields of the settings.
    pub fn new(settings: &CompletionRequest, prompt: &str, fields: &Map<String, Value>) -> Self {
        let body = settings.stream_body(prompt, fields);
        Self { api: settings.api, body, cut: settings.cut(prompt) }
    }
}

/// Part of a completion that is passed on.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamPart {
    /// Name of the model.
    Model(String),
    /// Text of the completion.
    Text(String),
    /// End of the completion.
    End(StreamEnd),
}

/// End of a completion, as the server reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamEnd {
    /// Finish reason, in the server's words.
    pub reason: Option<String>,
    /// Stop text that ended the completion, if the server's text contains it or the server names it.
    pub stop_text: Option<String>,
    /// Text removed from the beginning of the completion because the model continued the line before it.
    pub dropped: Option<String>,
    /// Token counts, in the server's format and restricted to known fields; null if the server sends none.
    pub usage: Value,
    /// llama.cpp's times and token counts; null if the server sends none.
    pub timings: Value,
}

impl StreamEnd {
    /// Returns the number of tokens of the prompt.
    pub fn prompt_tokens(&self) -> Option<u64> {
        let timed = count(&self.timings["prompt_n"]).zip(self.cached_tokens());
        count(&self.usage["prompt_tokens"]).or(timed.map(|(new, cached)| new + cached))
    }

    /// Returns the number of prompt tokens that the server had cached from earlier requests.
    pub fn cached_tokens(&self) -> Option<u64> {
        let details = &self.usage["prompt_tokens_details"]["cached_tokens"];
        count(&self.timings["cache_n"]).or(count(details))
    }

    /// Returns the number of tokens of the completion.
    pub fn written_tokens(&self) -> Option<u64> {
        count(&self.usage["completion_tokens"]).or(count(&self.timings["predicted_n"]))
    }
}

/// Returns a number of tokens. An implausible number is not counted, so that sums do not overflow.
fn count(number: &Value) -> Option<u64> {
    number.as_u64().filter(|number| u32::try_from(*number).is_ok())
}

/// Requests a completion and passes its parts to `is_unwanted` until that returns true or the completion is complete. At a stop text the
/// connection is closed, which tells the server to stop. Blocks until then.
///
/// # Errors
/// The request fails, or its answer is a failure or ends before its completion is finished.
pub fn stream(
    endpoint: &Endpoint,
    request: StreamRequest,
    is_unwanted: &mut dyn FnMut(StreamPart) -> bool,
) -> Result<()> {
    let StreamRequest { api, body, mut cut } = request;
    let (mut read, mut is_named, mut is_left) = (0, false, false);
    let done = read_stream(endpoint, api, &body, &mut |answer| {
        if let Some(model) = answer.model.clone().filter(|_| !is_named) {
            is_named = true;
            // Ignore the result here; whether the receiver is still listening is checked with the first text.
            is_unwanted(StreamPart::Model(model));
        }
        let text = cut.pass(answer.text().get(read..).unwrap_or_default());
        read = answer.text().len();
        is_left = !text.is_empty() && is_unwanted(StreamPart::Text(text));
        is_left || cut.stop_text().is_some()
    });
    if is_left {
        return Ok(());
    }
    let (mut answer, ..) = done?;
    let rest = cut.pass(answer.text().get(read..).unwrap_or_default()) + &cut.finish();
    if !rest.is_empty() && is_unwanted(StreamPart::Text(rest)) {
        return Ok(());
    }
    // Usage and timings may be in different events, in either order.
    let (mut usage, mut timings) =
        (answer.usage.take().unwrap_or_default(), answer.timings.take().unwrap_or_default());
    if endpoint.mask_keys(&mut json!([usage, timings, usage])) {
        (usage, timings) = Default::default();
    }
    let is_cut = cut.stop_text().is_some();
    let finish = if is_cut { Some("stop") } else { answer.finish_reason() };
    let end = StreamEnd {
        reason: finish.map(str::to_owned),
        stop_text: cut.stop_text().or(answer.stop_text()).map(str::to_owned),
        dropped: cut.dropped_text().map(str::to_owned),
        usage,
        timings,
    };
    // Ignore the result: the receiver may be gone.
    is_unwanted(StreamPart::End(end));
    Ok(())
}
