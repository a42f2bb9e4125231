//! Answers, in the protocol of the request. JSON is written on one line without spaces, because some editors parse it with patterns.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use repoformer_core::completion::Finish;
use repoformer_models::server::StreamEnd;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::request::{EditorRequest, Protocol};

/// Answer with a completion that may still be incomplete.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) model: String,
    created: u64,
}

impl Answer {
    pub(crate) fn new(id: String, model: String) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { id, model, created }
    }

    /// Returns the whole answer.
    pub(crate) fn whole(&self, wanted: &EditorRequest, text: &str, end: &StreamEnd) -> Value {
        match wanted.protocol {
            Protocol::OpenAi | Protocol::Document => {
                let reason = end.reason.as_deref().unwrap_or("stop");
                let mut answer = self.openai(text, Some(reason));
                answer["usage"] = end.usage.clone();
                answer["timings"] = end.timings.clone();
                without_null(answer, &["usage", "timings"])
            }
            Protocol::Infill => infill(self, wanted, text, end),
            Protocol::Tabby => json!({
                "id": self.id, "choices": [{"index": 0, "text": text}], "mode": "standard",
            }),
        }
    }

    /// Returns one part of a streamed answer.
    pub(crate) fn part(&self, protocol: Protocol, text: &str) -> Value {
        match protocol {
            Protocol::OpenAi | Protocol::Tabby | Protocol::Document => self.openai(text, None),
            Protocol::Infill => json!({"index": 0, "content": text, "tokens": [], "stop": false}),
        }
    }

    /// Returns the last events of a streamed answer.
    pub(crate) fn last(&self, wanted: &EditorRequest, end: &StreamEnd) -> Vec<String> {
        if wanted.protocol == Protocol::Infill {
            return vec![infill(self, wanted, "", end).to_string()];
        }
        let reason = end.reason.as_deref().unwrap_or("stop");
        let mut last = self.openai("", Some(reason));
        last["timings"] = end.timings.clone();
        let mut events = vec![without_null(last, &["timings"]).to_string()];
        if wanted.include_usage {
            let mut usage = self.openai("", None);
            usage["choices"] = json!([]);
            usage["usage"] = end.usage.clone();
            events.push(usage.to_string());
        }
        events.push("[DONE]".into());
        events
    }

    fn openai(&self, text: &str, reason: Option<&str>) -> Value {
        json!({
            "id": self.id, "object": "text_completion", "created": self.created, "model": self.model,
            "choices": [{"text": text, "index": 0, "logprobs": null, "finish_reason": reason}],
        })
    }
}

/// Returns llama.cpp's answer to `/infill`.
fn infill(answer: &Answer, wanted: &EditorRequest, text: &str, end: &StreamEnd) -> Value {
    // A count that the model's server does not report is omitted, not zero.
    let (prompt, written) = (end.prompt_tokens(), end.written_tokens());
    let held = prompt.zip(written).map(|(prompt, written)| prompt + written);
    let finish = end.reason.as_deref().and_then(Finish::of_reason);
    let stop_type = match finish {
        _ if end.stop_text.is_some() => "word",
        Some(Finish::StopText) => "word",
        Some(Finish::Length) => "limit",
        Some(Finish::Stop) | None => "eos",
    };
    let whole = json!({
        "index": 0, "content": text, "tokens": [], "stop": true, "model": answer.model,
        "tokens_predicted": written, "tokens_evaluated": prompt, "truncated": false,
        "stop_type": stop_type, "stopping_word": end.stop_text.as_deref().unwrap_or_default(),
        "tokens_cached": held,
        "generation_settings": {}, "timings": end.timings,
    });
    let whole =
        without_null(whole, &["tokens_predicted", "tokens_evaluated", "tokens_cached", "timings"]);
    if wanted.response_fields.is_empty() {
        return whole;
    }
    let mut picked = Map::new();
    for name in &wanted.response_fields {
        // A nested field is named with both names, as in `timings/prompt_n`.
        let found = || name.split('/').try_fold(&whole, |found, part| found.get(part));
        // A name may be repeated, and a field may be long.
        if !picked.contains_key(name)
            && let Some(found) = found()
        {
            picked.insert(name.clone(), found.clone());
        }
    }
    Value::Object(picked)
}

fn without_null(mut answer: Value, names: &[&str]) -> Value {
    if let Some(object) = answer.as_object_mut() {
        object.retain(|name, value| !(names.contains(&name.as_str()) && value.is_null()));
    }
    answer
}

/// Returns an error response that editors show.
pub(crate) fn refusal(status: StatusCode, message: &str) -> Response {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "upstream_error",
    };
    let error = json!({"error": {"message": message, "type": kind, "param": null, "code": status.as_u16()}});
    let mut response = of_json(&error);
    *response.status_mut() = status;
    // Tell clients not to retry: the same request would fail again.
    let again = HeaderName::from_static("x-should-retry");
    response.headers_mut().insert(again, HeaderValue::from_static("false"));
    response
}

/// Returns a JSON response.
pub(crate) fn of_json(value: &impl Serialize) -> Response {
    with_type(serde_json::to_vec(value).unwrap_or_default(), "application/json")
}

/// Returns a response with a body of some media type.
pub(crate) fn with_type(text: impl Into<Body>, kind: &'static str) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_within_others_are_flat_where_the_editor_names_them() {
        let body = json!({"input_prefix": "a", "response_fields": ["content", "timings/prompt_n", "nothing", "content"]});
        let wanted = EditorRequest::infill(&body).unwrap();
        let end = StreamEnd { timings: json!({"prompt_n": 3}), ..StreamEnd::default() };
        let answer = Answer::new("1".into(), "m".into());
        let text = answer.whole(&wanted, "x", &end).to_string();
        assert_eq!(text, r#"{"content":"x","timings/prompt_n":3}"#);
    }

    #[test]
    fn a_stream_ends_with_its_reason_and_the_usage_that_was_asked_for() {
        let body =
            json!({"prompt": "a", "stream": true, "stream_options": {"include_usage": true}});
        let wanted = EditorRequest::completion(&body).unwrap();
        let end = StreamEnd {
            reason: Some("length".into()),
            usage: json!({"prompt_tokens": 2}),
            ..StreamEnd::default()
        };
        let last = Answer::new("1".into(), "m".into()).last(&wanted, &end);
        assert_eq!(last.len(), 3);
        assert!(last[0].contains(r#""finish_reason":"length""#) && !last[0].contains("timings"));
        assert!(last[1].contains(r#""choices":[]"#) && last[1].contains(r#""prompt_tokens":2"#));
        assert_eq!(last[2], "[DONE]");
    }
}
