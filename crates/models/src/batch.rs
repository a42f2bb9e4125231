//! Batch endpoints: files of requests and responses in the format of OpenAI's batch API.
//!
//! Responses arrive in any order; a request and its response share their `custom_id`.

use std::path::Path;

use repoformer_core::completion::{error_in, message_in, samples_of_any};
use repoformer_core::task::kind::RecordKind;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{Fields, Object};
use serde_json::{Value, json};

use crate::endpoint::{is_whole, mask_keys};

/// Settings of all requests in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchSettings {
    /// The endpoint's name for the model.
    pub model: String,
    /// Largest number of tokens in a completion.
    pub max_tokens: usize,
    /// Sampling temperature; 0 always takes the most probable token.
    pub temperature: f64,
    /// Texts that end a completion.
    pub stop: Vec<String>,
}

/// Returns a request to complete a prompt: `custom_id, method, url, body{model, prompt, max_tokens, temperature[, stop]}`.
///
/// ```
/// use repoformer_models::batch::{BatchSettings, request};
/// let settings = BatchSettings { model: "m".into(), max_tokens: 50, temperature: 0.0, stop: vec![] };
/// assert_eq!(
///     request("row-0", "def f(", &settings).to_string(),
///     r#"{"custom_id":"row-0","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"def f(","max_tokens":50,"temperature":0.0}}"#,
/// );
/// ```
pub fn request(custom_id: &str, prompt: &str, sampling: &BatchSettings) -> Value {
    let mut body = json!({
        "model": sampling.model, "prompt": prompt,
        "max_tokens": sampling.max_tokens, "temperature": sampling.temperature,
    });
    if !sampling.stop.is_empty() {
        body["stop"] = sampling.stop.as_slice().into();
    }
    json!({"custom_id": custom_id, "method": "POST", "url": "/v1/completions", "body": body})
}

/// Text between the row and the rest of a `custom_id`.
pub const SEPARATOR: &str = "-of-";

/// Returns the `custom_id` of a task's prompt: `row-12`, and `row-12-sample-1` for the second prompt of a task (in mode rg-rg). Tasks are
/// identified by row because benchmarks repeat task ids.
pub fn custom_id(row: usize, sample: usize) -> String {
    match sample {
        0 => format!("row-{row}"),
        _ => format!("row-{row}-sample-{sample}"),
    }
}

/// Parses the row and the sample of a `custom_id` built by [`custom_id`], with or without a suffix `-of-…`.
pub fn parse_custom_id(id: &str) -> Option<(usize, usize)> {
    let rest = id.split(SEPARATOR).next()?.strip_prefix("row-")?;
    let (row, sample) = match rest.split_once("-sample-") {
        Some((row, sample)) => (row, sample.parse().ok()?),
        None => (rest, 0),
    };
    Some((row.parse().ok()?, sample))
}

/// A response: `custom_id`, and the texts of its choices in the order of their `index`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The request's id.
    pub custom_id: String,
    /// Texts of the choices (`text` of completions, `message.content` of chats); at least one.
    pub texts: Vec<String>,
}

impl Response {
    /// Reads a response from a record of a file.
    ///
    /// # Errors
    /// A field is missing or has the wrong type, or the endpoint answered with an error (which is quoted) or with a failed completion.
    pub fn read(path: &Path, line: usize, record: &Object) -> Result<Self> {
        let fields = Fields::new(path, line, "", record);
        let (custom_id, answer) = answer(path, line, record)?;
        let body = answer.map_err(|message| {
            fields.error(format!("the endpoint answered {custom_id:?} with an error: {message}"))
        })?;
        let samples = samples_of_any(&body)
            .map_err(|error| fields.error(format!("the answer to {custom_id:?}: {error}")))?;
        let texts = samples.into_iter().map(|sample| sample.text).collect();
        Ok(Self { custom_id, texts })
    }
}

/// Returns the `custom_id` of a response and its body or the endpoint's error message, with the program's API keys masked.
///
/// # Errors
/// A field is missing or has the wrong type.
pub fn answer(
    path: &Path,
    line: usize,
    record: &Object,
) -> Result<(String, Result<Value, String>)> {
    let mut record = Value::Object(record.clone());
    mask_keys(&mut record);
    let failure = error_in(&record);
    let Value::Object(record) = record else { return Err(Error::record(path, line, "no object")) };
    RecordKind::BatchResponse.check(path, line, &record)?;
    let fields = Fields::new(path, line, "", &record);
    let custom_id = fields.string("custom_id")?.to_owned();
    let error = record.get("error").filter(|error| !error.is_null());
    if let Some(message) = error.map(message_in).or(failure) {
        return Ok((custom_id, Err(message)));
    }
    let response = fields.object("response")?;
    let below = fields.below("response.", response);
    let status = below.optional_count("status_code")?;
    if let Some(status) = status.filter(|status| !u16::try_from(*status).is_ok_and(is_whole)) {
        let message = response.get("body").map(message_in).unwrap_or_default();
        return Ok((custom_id, Err(format!("status {status}, {message}"))));
    }
    if let Some(message) = record.get("response").and_then(error_in) {
        return Ok((custom_id, Err(message)));
    }
    let body = below.object("body")?;
    Ok((custom_id, Ok(Value::Object(body.clone()))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(record: Value) -> Result<Vec<String>> {
        let Value::Object(record) = record else { panic!() };
        Response::read(Path::new("b.jsonl"), 2, &record).map(|response| response.texts)
    }

    proptest! {
        #[test]
        fn ids_name_their_row_and_sample(row: usize, sample: usize) {
            prop_assert_eq!(parse_custom_id(&custom_id(row, sample)), Some((row, sample)));
        }
    }

    /// The records follow the documentation of OpenAI's batch API.
    #[test]
    fn answers_and_refusals() {
        let answer = |body: Value| json!({"id": "b", "custom_id": "row-1", "response": {"status_code": 200, "request_id": "r", "body": body}, "error": null});
        let choices = json!({"choices": [{"index": 1, "text": "b"}, {"index": 0, "text": "a"}]});
        assert_eq!(read(answer(choices)).unwrap(), ["a", "b"]);
        let chat =
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "c"}}]});
        assert_eq!(read(answer(chat)).unwrap(), ["c"]);
        let failed = json!({"custom_id": "x", "response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}, "error": null});
        let expired = json!({"custom_id": "x", "response": null, "error": {"code": "batch_expired", "message": "too late"}});
        let status = |status: Value| {
            let body = json!({"choices": [{"index": 0, "text": "a"}]});
            json!({"custom_id": "x", "response": {"status_code": status, "body": body}})
        };
        assert_eq!(read(status(Value::Null)).unwrap(), ["a"]);
        assert_eq!(read(status(json!(201))).unwrap(), ["a"]);
        for none in [0, 199, 204, 205, 206, 300, 65736] {
            let refused = read(status(json!(none))).unwrap_err().to_string();
            assert!(refused.contains(&format!("an error: status {none}")), "{refused}");
        }
        for (place, name, value) in [
            ("", "errors", json!(["full"])),
            ("", "success", json!(false)),
            ("/response", "error", json!({"message": "full"})),
            ("/response", "object", json!("error")),
        ] {
            let mut one = answer(json!({"choices": [{"index": 0, "text": "a"}]}));
            one.pointer_mut(place).unwrap()[name] = value;
            let refused = read(one).unwrap_err().to_string();
            assert!(
                refused.contains("the endpoint answered \"row-1\" with an error: "),
                "{refused}"
            );
        }
        for (bad, wanted) in [
            (
                status(json!("500")),
                "field 'response.status_code' must be a whole number, not a string",
            ),
            (
                status(json!(200.5)),
                "field 'response.status_code' must be a whole number from 0, not 200.5",
            ),
            (failed, "the endpoint answered \"x\" with an error: status 429, slow down"),
            (expired, "the endpoint answered \"x\" with an error: too late"),
            (
                answer(json!({"choices": []})),
                "the answer to \"row-1\": the answer's 'choices' are empty",
            ),
            (
                answer(json!({"choices": [{}]})),
                "the answer to \"row-1\": the answer's choices[0] has no 'text' or 'message.content'",
            ),
            (
                answer(
                    json!({"choices": [{"text": "a"}, {"text": "b", "finish_reason": "abort"}]}),
                ),
                "the answer to \"row-1\": the answer's choices[1] ended with finish_reason \"abort\", which is not the end of a completion",
            ),
            (
                answer(json!({"error": {"message": "full"}})),
                "the answer to \"row-1\": the answer is an error: full",
            ),
            (json!({"custom_id": 1}), "field 'custom_id' must be a string, not a number"),
            (json!({"custom_id": "x"}), "field 'response' is missing"),
        ] {
            assert_eq!(read(bad).unwrap_err().to_string(), format!("b.jsonl:2: {wanted}"));
        }
        assert_eq!(parse_custom_id("row-7-sample-2-of-rg1-0af3"), Some((7, 2)));
        for id in ["row-", "row-x", "task-1", "row-1-sample-", "r/0"] {
            assert_eq!(parse_custom_id(id), None, "{id}");
        }
    }
}
