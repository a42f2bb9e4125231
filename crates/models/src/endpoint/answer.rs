//! Reads a server's response: its JSON, or a description of the failure.

use std::io::Read;
use std::time::Duration;

use repoformer_core::completion::{SHOWN, error_in, excerpt, message_in};
use repoformer_store::json;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::Value;
use ureq::http::response::Parts;
use ureq::http::{HeaderMap, StatusCode};

use super::address::mask_url;
use super::bound::{ANY, Size};
use super::key::Key;
use super::retry::{Failure, RetryOutlook, asked_wait, passes};

/// Response of a server whose body is still to be read.
pub(super) type Response = ureq::http::Response<ureq::Body>;

/// Number of retries after an internal error of the server (500).
const FAULTS: u32 = 5;
/// Number of retries after a timeout.
const TIMEOUTS: u32 = 2;

/// Settings for reading an answer, some of which appear in messages.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) timeout: Duration,
    /// Environment variable of the key.
    pub(super) key_variable: &'a str,
    /// Whether a key is sent to the server.
    pub(super) has_key: bool,
    /// Keys to mask.
    pub(super) key: &'a Key,
    /// Maximum size of the answer.
    pub(super) greatest: Size,
}

/// Reads the JSON of a response.
pub(super) fn read(response: Response, context: Context<'_>) -> Result<Value, Failure> {
    let (parts, body) = response.into_parts();
    read_body(&parts, body, context)
}

/// Reads the JSON of a response's body.
pub(super) fn read_body(
    parts: &Parts,
    body: ureq::Body,
    context: Context<'_>,
) -> Result<Value, Failure> {
    let mut bytes = Vec::new();
    let read =
        body.into_reader().take(context.greatest.bytes.saturating_add(1)).read_to_end(&mut bytes);
    if bytes.len() as u64 > context.greatest.bytes {
        return Err(too_long(context));
    }
    // Servers repeat a wrong key, and an excerpt may cut it off in the middle.
    let masked = || context.mask(&bytes);
    if !is_whole(parts.status.as_u16()) {
        let message = message_of(&masked());
        return Err(refusal_failure(parts.status, &parts.headers, &message, context));
    }
    let failure = match read {
        Ok(_) => match parse(&bytes, context) {
            Ok(value) => return Ok(context.without_key(value)),
            Err(_) => match parse(&masked(), context) {
                Ok(_) => incomplete_failure(&[], ""),
                Err(failure) => failure,
            },
        },
        Err(error) => unread(error, context, |why| incomplete_failure(&masked(), why)),
    };
    Err(failure.or_status(parts.status))
}

/// Returns whether a response with this status is a complete answer. The program never asks for an empty (204, 205) or partial (206) one.
pub(crate) fn is_whole(status: u16) -> bool {
    (200..300).contains(&status) && !(204..=206).contains(&status)
}

impl Context<'_> {
    /// Returns bytes of an answer for a message, with keys masked.
    pub(super) fn mask(&self, bytes: &[u8]) -> Vec<u8> {
        self.key.mask_message(bytes)
    }

    /// Returns an answer with keys masked: servers repeat what they were sent.
    pub(super) fn without_key(&self, mut answer: Value) -> Value {
        self.key.mask(&mut answer);
        answer
    }
}

/// Returns the failure for an answer larger than the request allows.
pub(super) fn too_long(context: Context<'_>) -> Failure {
    let Size { bytes, values } = context.greatest;
    let reason = format!(
        "the answer is longer than {bytes} bytes or {values} JSON values, which is more than requested"
    );
    Failure::new(RetryOutlook::Never, reason, "check that this is the server's URL")
}

/// Returns the failure of a request that got no response.
pub(super) fn unanswered_failure(error: &ureq::Error, context: Context<'_>) -> Failure {
    use ureq::Error as E;
    let reason = match error {
        E::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            "no connection before the timeout".into()
        }
        E::Timeout(_) => return timeout_failure(context.timeout),
        E::HostNotFound => "the host was not found".into(),
        E::ConnectionFailed => "no connection".into(),
        E::Io(error) => format!("the connection failed: {error}"),
        E::Protocol(error) => format!("the answer is not HTTP: {error}"),
        error => {
            let reason = format!("the request could not be sent: {error}");
            return Failure::new(
                RetryOutlook::Never,
                reason,
                "check the URL: its scheme, host and port",
            );
        }
    };
    let hint = "is the server running on this host and port? HTTP_PROXY, HTTPS_PROXY and NO_PROXY \
                choose a proxy";
    Failure { is_silence: true, ..Failure::new(RetryOutlook::Later, reason, hint) }
}

fn timeout_failure(timeout: Duration) -> Failure {
    let reason = format!("no complete answer within {timeout:?}");
    Failure::new(
        RetryOutlook::AtMost(TIMEOUTS),
        reason,
        "send fewer or shorter requests, or raise the timeout",
    )
}

/// Returns the failure for a response that could not be read to its end: a timeout, or the failure that `broken_off` builds for a response
/// that broke off for the given reason.
pub(super) fn unread(
    error: std::io::Error,
    context: Context<'_>,
    broken_off: impl FnOnce(&str) -> Failure,
) -> Failure {
    match ureq::Error::from(error) {
        ureq::Error::Timeout(_) => timeout_failure(context.timeout),
        error => broken_off(&format!(" ({error})")),
    }
}

/// Returns the failure for an incomplete response.
pub(super) fn incomplete_failure(bytes: &[u8], why: &str) -> Failure {
    stopped_failure(match bytes.trim_ascii() {
        [] => format!("the answer is empty{why}"),
        _ => format!("the answer ends after {} bytes{why}: {}", bytes.len(), excerpt(bytes)),
    })
}

/// Returns the failure for a response that a server leaves incomplete when it is stopped or runs out of memory.
pub(super) fn stopped_failure(reason: String) -> Failure {
    let hint = "see the server's log: it may have been stopped, or have run out of memory";
    Failure::new(RetryOutlook::Later, reason, hint)
}

/// Parses the JSON of a complete response.
pub(super) fn parse(bytes: &[u8], context: Context<'_>) -> Result<Value, Failure> {
    // As the Fetch standard decodes a body: without a byte-order mark, and with U+FFFD for invalid UTF-8.
    let text = String::from_utf8_lossy(json::without_byte_order_mark(bytes));
    if json::count_values(text.as_bytes()) > context.greatest.values {
        return Err(too_long(context));
    }
    let value = match json::parse(text.as_bytes()) {
        Ok(value) => value,
        Err(error) if error.is_eof() => return Err(incomplete_failure(bytes, "")),
        Err(error) => return Err(not_json(text.as_bytes(), &error)),
    };
    // Some servers report errors with a success status; every streaming server does after the stream has begun.
    let choices = value["choices"].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts = std::iter::once(&value).chain(choices);
    let is_overloaded = |part: &&Value| {
        error_in(part).is_some()
            && status_within(part).is_some_and(|status| matches!(status.as_u16(), 429 | 503))
    };
    let has_failed = error_in(&value).is_some();
    // Any other error next to choices belongs to a completion, and the code that reads completions reports it.
    let whole = (has_failed && choices.is_empty()).then_some(&value);
    match parts.find(is_overloaded).or(whole) {
        Some(error) => Err(reported_failure(error, &message_in(error), context)),
        None => Ok(value),
    }
}

/// Returns the failure that a server reports within a successful response.
pub(super) fn reported_failure(error: &Value, message: &str, context: Context<'_>) -> Failure {
    match status_within(error) {
        Some(status) => refusal_failure(status, &HeaderMap::new(), message, context),
        None => Failure {
            is_reported: true,
            ..Failure::new(
                RetryOutlook::Never,
                format!("the server says: {message}"),
                "check the URL and the name of the model",
            )
        },
    }
}

/// Returns the HTTP status that an error gives as its code, as a number or as digits.
fn status_within(error: &Value) -> Option<StatusCode> {
    let code = error.pointer("/error/code").or_else(|| error.get("code"))?;
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let status = StatusCode::from_u16(u16::try_from(number).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

fn not_json(bytes: &[u8], error: &serde_json::Error) -> Failure {
    if bytes.trim_ascii_start().starts_with(b"<") {
        let reason = format!("HTML instead of JSON: {}", excerpt(bytes));
        let hint =
            "use the URL of the server's API, such as http://localhost:8080/v1, not a web page";
        return Failure::new(RetryOutlook::Never, reason, hint);
    }
    // If the error is far into the answer, the text near it is more helpful than the beginning. Columns count bytes.
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let at = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
    let near = match bytes.get(at.saturating_sub(20)..(at + 20).min(bytes.len())) {
        Some(near) if at > SHOWN => format!("; byte {at}: …{}", excerpt(near)),
        _ => String::new(),
    };
    let reason = format!("the answer is not JSON ({what}): {}{near}", excerpt(bytes));
    let hint = "is this an OpenAI-compatible server? NaN is not JSON either";
    Failure::new(RetryOutlook::Never, reason, hint)
}

/// Returns the failure for a response with an error status.
fn refusal_failure(
    status: StatusCode,
    headers: &HeaderMap,
    message: &str,
    context: Context<'_>,
) -> Failure {
    let mut reason = format!("the server answers {status}");
    if let Some(place) = headers.get("location").filter(|_| status.is_redirection()) {
        let place = mask_url(&String::from_utf8_lossy(place.as_bytes()));
        return Failure::new(RetryOutlook::Never, format!("{reason} to {place}"), "use that URL");
    }
    if !message.is_empty() {
        reason += &format!(": {message}");
    }
    // llama.cpp's server answers 500 to a text longer than its batch; retrying does not help.
    let too_long = message.contains("too large to process");
    let variable = context.key_variable;
    let hint: Message = match status.as_u16() {
_ if too_long => {
            "send shorter texts, or start the server with a larger batch (in llama.cpp: 'ubatch-size')"
                .into()
        }
        401 | 403 if context.has_key => {
            format!("check the key in the environment variable {variable}").into()
        }
        401 | 403 => format!("set the environment variable {variable} to the server's key").into(),
404 | 405 => "check the URL and the name of the model; GET /v1/models lists the server's".into(),
        413 => "send less at a time, or shorter texts".into(),
        400 | 422 if message.contains("context") || message.contains("long") => {
            shorter()
        }
        400 | 422 => "see the server's message for the reason".into(),
        429 => "send fewer requests at the same time".into(),
        501 => "start the server with this function enabled (for vectors in llama.cpp: 'embeddings')".into(),
        _ => "see the server's log".into(),
    };
    let again = match status.as_u16() {
        status if too_long || !passes(status) => RetryOutlook::Never,
        500 => asked_wait(headers).map_or(RetryOutlook::AtMost(FAULTS), RetryOutlook::After),
        _ => asked_wait(headers).map_or(RetryOutlook::Later, RetryOutlook::After),
    };
    Failure { status: Some(status.as_u16()), ..Failure::new(again, reason, hint) }
}

/// Returns a hint on how to make a prompt fit.
pub(crate) fn shorter() -> Message {
    message![
        "send less at a time, or shorter texts; for prompts, lower the ",
        UserChoice::PromptBudget,
        " or the ",
        UserChoice::NewTokens
    ]
}

/// Returns the error message of a response, in any form that servers use, or else the beginning of the response.
pub(super) fn message_of(bytes: &[u8]) -> String {
    let is_small = json::count_values(bytes) <= ANY.values;
    match is_small.then(|| json::parse(bytes)) {
        Some(Ok(value @ Value::Object(_))) => message_in(&value),
        _ => excerpt(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value takes seventy times as much memory as its bytes.
    #[test]
    fn an_answer_of_too_many_values_is_refused() {
        let key = Key::default();
        let context = |values| Context {
            timeout: Duration::ZERO,
            key_variable: "KEY",
            has_key: false,
            key: &key,
            greatest: Size { bytes: 1 << 20, values },
        };
        let text = format!("{{\"x\": [{}0], \"choices\": []}}", "[[]],".repeat(1000));
        assert!(parse(text.as_bytes(), context(3010)).is_ok());
        let failure = parse(text.as_bytes(), context(2900)).unwrap_err();
        assert!(failure.reason.contains("2900 JSON values"), "{}", failure.reason);
        let text = format!("{{\"x\": \"{}\"}}", "[[]],".repeat(1000));
        assert!(parse(text.as_bytes(), context(9)).is_ok());
    }

    #[test]
    fn the_servers_message_is_found_wherever_it_stands() {
        for (body, message) in [
            // llama.cpp, llama-cpp-python, vLLM and OpenAI
            (r#"{"error":{"code":501,"message":"no embeddings","type":"x"}}"#, "no embeddings"),
            (r#"{"object":"error","message":"no model m","code":404}"#, "no model m"),
            // Ollama; text-embeddings-inference
            (r#"{"error":"model 'm' not found"}"#, "model 'm' not found"),
            // FastAPI's own errors
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"detail":[{"loc":["body"],"msg":"Field required"}]}"#, "Field required"),
            ("no  page\n", "no page"),
            ("", ""),
        ] {
            assert_eq!(message_of(body.as_bytes()), message);
        }
    }

    #[test]
    fn an_excerpt_is_one_line_of_two_hundred_characters() {
        assert_eq!(excerpt(b" a\r\n\tb \x1b[1mc"), "a b [1mc");
        assert_eq!(excerpt("é".repeat(200).as_bytes()), "é".repeat(200));
        assert_eq!(excerpt("é".repeat(201).as_bytes()), "é".repeat(200) + "…");
        assert_eq!(excerpt(&[b' '; 5000]), "…");
        assert_eq!(excerpt(b"\xff"), "\u{fffd}");
    }

    #[test]
    fn what_is_no_json_is_shown_where_it_stands() {
        let context = Context {
            timeout: Duration::ZERO,
            key_variable: "KEY",
            has_key: false,
            key: &Key::default(),
            greatest: Size { bytes: 999, values: 999 },
        };
        let failure = |text: &str| parse(text.as_bytes(), context).unwrap_err();
        let page = failure("\n<!DOCTYPE html><p>hello");
        assert!(page.reason.starts_with("HTML instead of JSON: <!DOCTYPE"), "{page:?}");
        let text = format!("{{\"a\": [\n{}NaN, 0.5]}}", "0.25, ".repeat(100));
        let numbers = failure(&text);
        assert!(
            numbers.reason.contains("byte 608: …, 0.25, 0.25, 0.25, NaN, 0.5]}"),
            "{numbers:?}"
        );
        assert_eq!((page.again, numbers.again), (RetryOutlook::Never, RetryOutlook::Never));
        let half = failure("{\"data\": [");
        assert_eq!(half.reason, "the answer ends after 10 bytes: {\"data\": [");
        assert_eq!(failure(" ").reason, "the answer is empty");
        assert_eq!((half.again, failure("").again), (RetryOutlook::Later, RetryOutlook::Later));
        assert!(
            failure("{\"error\": \"Unexpected endpoint\"}").reason.ends_with("Unexpected endpoint")
        );
        assert_eq!(parse(b"{\"error\": null, \"a\": 1}", context).unwrap()["a"], 1);
    }
}
