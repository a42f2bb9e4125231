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
    /// Request for the completion of a prompt. `fields` are sent as they are, in the place of those of the settings.
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
    /// The completion is complete.
    End(StreamEnd),
}

/// End of a completion, as the server reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamEnd {
    /// Finish reason, in the words of the server.
    pub reason: Option<String>,
    /// Stop text that ended the completion, if it stands in the server's text or the server names it.
    pub stop_text: Option<String>,
    /// Text that is not part of the completion because the model continued the line before it.
    pub dropped: Option<String>,
    /// Numbers of tokens, as the server writes them, in fields that are known; null if it writes none.
    pub usage: Value,
    /// llama.cpp's times and numbers of tokens; null if the server writes none.
    pub timings: Value,
}

impl StreamEnd {
    /// Number of tokens of the prompt.
    pub fn prompt_tokens(&self) -> Option<u64> {
        let timed = count(&self.timings["prompt_n"]).zip(self.cached_tokens());
        count(&self.usage["prompt_tokens"]).or(timed.map(|(new, cached)| new + cached))
    }

    /// Number of tokens of the prompt that the server had from earlier requests.
    pub fn cached_tokens(&self) -> Option<u64> {
        let details = &self.usage["prompt_tokens_details"]["cached_tokens"];
        count(&self.timings["cache_n"]).or(count(details))
    }

    /// Number of tokens of the completion.
    pub fn written_tokens(&self) -> Option<u64> {
        count(&self.usage["completion_tokens"]).or(count(&self.timings["predicted_n"]))
    }
}

/// A number of tokens. What cannot be one is not counted, so that sums do not overflow.
fn count(number: &Value) -> Option<u64> {
    number.as_u64().filter(|number| u32::try_from(*number).is_ok())
}

/// Requests a completion and passes its parts to `is_unwanted`, until that returns true or the completion is complete: at a stop
/// text the connection is closed, which tells the server to stop. Blocks until then.
///
/// # Errors
/// The request fails, or its answer is a failure or ends before its completion does.
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
            // Whether somebody listens shows with the first text.
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
    // They may be of different events, and follow one another in either order.
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
    // The receiver may be gone.
    is_unwanted(StreamPart::End(end));
    Ok(())
}
