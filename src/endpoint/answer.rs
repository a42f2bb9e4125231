//! What a server answered: the JSON that was asked for, or in words what came instead.

use std::io::Read;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use ureq::http::{HeaderMap, StatusCode};

use super::retry::{Again, Failure, asked_wait, passes};

/// Characters of an answer that a message shows.
const SHOWN: usize = 200;
/// Bytes of an answer: a few hundred vectors of a few thousand numbers are some tens of millions.
const LONGEST: u64 = 1 << 29;

/// How often a request is sent again that a server fails at (500).
const FAULTS: u32 = 5;
/// How often one is sent again that took too long.
const TIMEOUTS: u32 = 2;

/// The settings that messages name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) timeout: Duration,
    /// The variable that the key was taken from, or would be.
    pub(super) key_variable: &'a str,
    pub(super) key: Option<&'a str>,
}

/// The JSON of an answer.
pub(super) fn read(
    response: ureq::http::Response<ureq::Body>,
    context: Context<'_>,
) -> Result<Value, Failure> {
    let (parts, body) = response.into_parts();
    let mut bytes = Vec::new();
    let read = body.into_reader().take(LONGEST + 1).read_to_end(&mut bytes);
    if bytes.len() as u64 > LONGEST {
        let reason = format!("the answer is longer than {LONGEST} bytes");
        return Err(never(reason, "ask for less at a time"));
    }
    // Servers repeat a wrong key, and an excerpt may end within it.
    let masked = || match context.key {
        Some(key) => replaced(&bytes, key.as_bytes(), super::MASK.as_bytes()),
        None => bytes.clone(),
    };
    if !parts.status.is_success() {
        return Err(refused(parts.status, &parts.headers, &masked(), context));
    }
    let failure = match read {
        Ok(_) => match parse(&bytes) {
            Ok(value) => return Ok(value),
            Err(_) => match parse(&masked()) {
                Ok(_) => broken_off(&[], ""),
                Err(failure) => failure,
            },
        },
        Err(error) => match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => timed_out(context.timeout),
            error => broken_off(&masked(), &format!(" ({error})")),
        },
    };
    Err(Failure {
        status: Some(parts.status.as_u16()),
        ..failure
    })
}

/// Some bytes with others in the place of a part, wherever it stands.
fn replaced(bytes: &[u8], part: &[u8], by: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    for found in memchr::memmem::find_iter(bytes, part) {
        out.extend_from_slice(&bytes[at..found]);
        out.extend_from_slice(by);
        at = found + part.len();
    }
    out.extend_from_slice(&bytes[at..]);
    out
}

/// A request that brought no answer at all.
pub(super) fn unanswered(error: &ureq::Error, context: Context<'_>) -> Failure {
    use ureq::Error as E;
    let later = |reason: String| {
        Failure {
        reason,
        hint: "is the server running there, and on this port? A proxy that stands between is set by HTTP_PROXY, HTTPS_PROXY and NO_PROXY".into(),
        again: Again::Later,
        is_silence: true,
        status: None,
    }
    };
    match error {
        E::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            later("no connection came about in time".into())
        }
        E::Timeout(_) => timed_out(context.timeout),
        E::HostNotFound => later("no host of this name was found".into()),
        E::ConnectionFailed => later("no connection came about".into()),
        E::Io(error) => later(format!("the connection failed: {error}")),
        E::Protocol(error) => later(format!("what answered does not speak HTTP: {error}")),
        error => never(
            format!("the request could not be sent: {error}"),
            "check the URL: its scheme, host and port",
        ),
    }
}

fn never(reason: String, hint: &str) -> Failure {
    Failure {
        reason,
        hint: hint.into(),
        again: Again::Never,
        is_silence: false,
        status: None,
    }
}

fn timed_out(timeout: Duration) -> Failure {
    Failure {
        reason: format!("no whole answer came within {timeout:?}"),
        hint: "ask for less at a time, or wait longer".into(),
        again: Again::AtMost(TIMEOUTS),
        is_silence: false,
        status: None,
    }
}

/// An answer that has no end, as a server leaves it that is stopped or runs out of memory.
fn broken_off(bytes: &[u8], why: &str) -> Failure {
    let reason = match bytes.trim_ascii() {
        [] => format!("the answer is empty{why}"),
        _ => format!(
            "the answer breaks off after {} bytes{why}: {}",
            bytes.len(),
            excerpt(bytes)
        ),
    };
    Failure {
        reason,
        hint: "see the server's log: it may have been stopped, or have run out of memory".into(),
        again: Again::Later,
        is_silence: false,
        status: None,
    }
}

/// The JSON of an answer that came whole.
fn parse(bytes: &[u8]) -> Result<Value, Failure> {
    let value = match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => value,
        Err(error) if error.is_eof() => return Err(broken_off(bytes, "")),
        Err(error) => return Err(no_json(bytes, &error)),
    };
    // Some servers refuse with the status of success.
    match value.get("error").filter(|error| !error.is_null()) {
        Some(_) => Err(never(
            format!("the server says: {}", said(bytes)),
            "check the URL and the name of the model",
        )),
        None => Ok(value),
    }
}

fn no_json(bytes: &[u8], error: &serde_json::Error) -> Failure {
    if bytes.trim_ascii_start().starts_with(b"<") {
        let reason = format!("HTML came where JSON is expected: {}", excerpt(bytes));
        return never(
            reason,
            "name the server's API, such as http://localhost:8080/v1, not a page of it",
        );
    }
    // A column counts bytes; what stands there tells more than how the answer begins, where that is far away.
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1));
    let at = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
    let near = match bytes.get(at.saturating_sub(20)..(at + 20).min(bytes.len())) {
        Some(near) if at > SHOWN => format!("; byte {at}: …{}", excerpt(near)),
        _ => String::new(),
    };
    let reason = format!("no JSON came ({what}): {}{near}", excerpt(bytes));
    never(
        reason,
        "is this an OpenAI-compatible server? NaN is no JSON either",
    )
}

/// An answer whose status is not that of success.
fn refused(status: StatusCode, headers: &HeaderMap, bytes: &[u8], context: Context<'_>) -> Failure {
    let mut reason = format!("the server answers {status}");
    if let Some(place) = headers.get("location").filter(|_| status.is_redirection()) {
        let place = super::address::masked(&String::from_utf8_lossy(place.as_bytes()));
        return never(format!("{reason} to {place}"), "name that URL");
    }
    let said = said(bytes);
    if !said.is_empty() {
        reason.push_str(": ");
        reason.push_str(&said);
    }
    // llama.cpp's server answers 500 to a text that is longer than its batch, which no waiting shortens.
    let too_long = said.contains("too large to process");
    let variable = context.key_variable;
    let hint = match status.as_u16() {
        _ if too_long => {
            "ask for shorter texts, or start the server with a larger batch; llama.cpp's needs --ubatch-size for vectors"
                .into()
        }
        401 | 403 if context.key.is_some() => {
            format!("check the key in the environment variable {variable}")
        }
        401 | 403 => format!("set the environment variable {variable} to the server's key"),
        404 | 405 => {
            "check the URL and the name of the model; GET /v1/models lists those there".into()
        }
        413 => "ask for less at a time, or for shorter texts".into(),
        400 | 422 if said.contains("context") || said.contains("long") => {
            "ask for less at a time, or for shorter texts; of prompts, see --max-prompt-tokens and --max-tokens".into()
        }
        400 | 422 => "the server does not take such a request: its message says why".into(),
        429 => "the server wants fewer requests: ask for less at the same time".into(),
        501 => {
            "start the server with this function; llama.cpp's needs --embeddings for vectors".into()
        }
        _ => "see the server's log".into(),
    };
    let own_choice = match status.as_u16() {
        500 => Again::AtMost(FAULTS),
        _ => Again::Later,
    };
    let again = match passes(status.as_u16()) && !too_long {
        true => asked_wait(headers, SystemTime::now()).map_or(own_choice, Again::After),
        false => Again::Never,
    };
    Failure {
        reason,
        hint,
        again,
        is_silence: false,
        status: Some(status.as_u16()),
    }
}

/// The message of an answer that tells of an error, wherever servers put it, or else how the answer begins.
fn said(bytes: &[u8]) -> String {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let places = [
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/detail/0/msg",
    ];
    let message = places
        .iter()
        .find_map(|place| value.pointer(place)?.as_str());
    excerpt(message.map_or(bytes, str::as_bytes))
}

/// How some bytes begin, on one line.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    // A character is four bytes at most; what lies further on need not be decoded.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(8 * SHOWN)]);
    let text = text.split(|c: char| c.is_whitespace() || c.is_control());
    let text = text
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if bytes.len() > 8 * SHOWN => format!("{text}…"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_message_is_found_wherever_it_stands() {
        for (body, message) in [
            // llama.cpp, llama-cpp-python, vLLM and OpenAI
            (
                r#"{"error":{"code":501,"message":"no embeddings","type":"x"}}"#,
                "no embeddings",
            ),
            (
                r#"{"object":"error","message":"no model m","code":404}"#,
                "no model m",
            ),
            // Ollama; text-embeddings-inference
            (r#"{"error":"model 'm' not found"}"#, "model 'm' not found"),
            // FastAPI's own
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (
                r#"{"detail":[{"loc":["body"],"msg":"Field required"}]}"#,
                "Field required",
            ),
            ("no  page\n", "no page"),
            ("", ""),
        ] {
            assert_eq!(said(body.as_bytes()), message);
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
        let failure = |text: &str| parse(text.as_bytes()).unwrap_err();
        let page = failure("\n<!DOCTYPE html><p>hello");
        assert!(
            page.reason
                .starts_with("HTML came where JSON is expected: <!DOCTYPE"),
            "{page:?}"
        );
        let text = format!("{{\"a\": [\n{}NaN, 0.5]}}", "0.25, ".repeat(100));
        let numbers = failure(&text);
        assert!(
            numbers
                .reason
                .contains("byte 608: …, 0.25, 0.25, 0.25, NaN, 0.5]}"),
            "{numbers:?}"
        );
        assert_eq!((page.again, numbers.again), (Again::Never, Again::Never));
        let half = failure("{\"data\": [");
        assert_eq!(
            half.reason,
            "the answer breaks off after 10 bytes: {\"data\": ["
        );
        assert_eq!(failure(" ").reason, "the answer is empty");
        assert_eq!(
            (half.again, failure("").again),
            (Again::Later, Again::Later)
        );
        assert!(
            failure("{\"error\": \"Unexpected endpoint\"}")
                .reason
                .ends_with("Unexpected endpoint")
        );
        assert_eq!(parse(b"{\"error\": null, \"a\": 1}").unwrap()["a"], 1);
    }
}
