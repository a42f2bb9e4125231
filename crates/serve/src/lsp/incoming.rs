//! Reads an editor's messages.

use std::fmt;
use std::io::{BufRead, Read as _};

use repoformer_store::json;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{INVALID_REQUEST, NOT_JSON, Output};
use crate::error::{Result, ServeError};

/// Maximum number of bytes of a message.
const LARGEST: u64 = 64 << 20;
/// Maximum number of values in a message's JSON; each takes one or two hundred bytes of memory.
const VALUES: u64 = 1 << 18;

/// Message from an editor.
pub(super) enum Incoming {
    Message(Value),
    /// A message that was rejected without being read, and the reason. The message may have been a change of any document.
    Unread(&'static str),
}

/// Returns the next message; `None` if there are no more.
pub(super) fn next(input: &mut impl BufRead, output: &Output) -> Result<Option<Incoming>> {
    while let Some(body) = read(input)? {
        let Body::Whole(body) = body else {
            output.log(&format!("a message has more than {LARGEST} bytes"));
            return Ok(Some(Incoming::Unread("a message was too large")));
        };
        // Tolerate invalid UTF-8: rejecting a change would leave the document with its old text.
        let text = String::from_utf8_lossy(json::without_byte_order_mark(&body));
        let read = if json::count_values(text.as_bytes()) <= VALUES {
            json::parse(text.as_bytes()).map(Some)
        } else {
            without_values(&text, output)
        };
        match read {
            Ok(Some(message)) => return Ok(Some(Incoming::Message(message))),
            Ok(None) => {}
            Err(error) => {
                output.fail(&Value::Null, NOT_JSON, &format!("not JSON: {error}"));
                return Ok(Some(Incoming::Unread("a message was not JSON")));
            }
        }
    }
    Ok(None)
}

/// Fields read from a message with too many values.
#[derive(Deserialize)]
struct Head {
    id: Option<MessageId>,
    method: Option<String>,
    params: Option<Params>,
}

/// Number or text that identifies a request. Anything else is skipped, because it could have as many values as the message.
struct MessageId(Value);

impl<'de> Deserialize<'de> for MessageId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(MessageIdVisitor)
    }
}

struct MessageIdVisitor;

impl Visitor<'_> for MessageIdVisitor {
    type Value = MessageId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text as the id")
    }

    fn visit_i64<E>(self, id: i64) -> std::result::Result<MessageId, E> {
        Ok(MessageId(id.into()))
    }

    fn visit_u64<E>(self, id: u64) -> std::result::Result<MessageId, E> {
        Ok(MessageId(id.into()))
    }

    fn visit_str<E>(self, id: &str) -> std::result::Result<MessageId, E> {
        Ok(MessageId(id.into()))
    }
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "textDocument")]
    document: Option<Identifier>,
}

#[derive(Deserialize)]
struct Identifier {
    uri: Option<String>,
}

/// Rejects a message with too many values. A notification is reduced to its document's URI, which makes its change an invalid one.
fn without_values(text: &str, output: &Output) -> serde_json::Result<Option<Value>> {
    let reason = format!("the message has more than {VALUES} values of JSON");
    let Head { id, method, params } = serde_json::from_str(text)?;
    if let Some(id) = id {
        output.fail(&id.0, INVALID_REQUEST, &reason);
        return Ok(None);
    }
    output.log(&reason);
    let uri = params.and_then(|params| params.document).and_then(|document| document.uri);
    Ok(Some(json!({"method": method, "params": {"textDocument": {"uri": uri}}})))
}

/// Body of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    Whole(Vec<u8>),
    /// More bytes than are kept, which were skipped.
    TooLarge,
}

/// Returns the body of the next message; `None` if there are no more.
pub(super) fn read(input: &mut impl BufRead) -> Result<Option<Body>> {
    let mut length: Option<u64> = None;
    loop {
        let mut line = Vec::new();
        let read = input
            .take(1 << 16)
            .read_until(b'\n', &mut line)
            .map_err(ServeError::system("cannot read a message"))?;
        if read == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
    }
    let length = length.ok_or(ServeError::Unbounded)?;
    let is_whole = length <= LARGEST;
    let (mut body, mut bytes) = (Vec::new(), input.take(length));
    let read = if is_whole {
        bytes.read_to_end(&mut body).map(|read| read as u64)
    } else {
        std::io::copy(&mut bytes, &mut std::io::sink())
    };
    let read = read.and_then(|read| {
        if read == length { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    });
    read.map_err(ServeError::system("a message that is cut off"))?;
    Ok(Some(if is_whole { Body::Whole(body) } else { Body::TooLarge }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_by_their_length() {
        let text =
            "Content-Length: 7\r\nContent-Type: x\r\n\r\n{\"a\":1}content-length: 2\r\n\r\n{}";
        let mut input = text.as_bytes();
        let whole = |text: &str| Some(Body::Whole(text.into()));
        assert_eq!(read(&mut input).unwrap(), whole("{\"a\":1}"));
        assert_eq!(read(&mut input).unwrap(), whole("{}"));
        assert_eq!(read(&mut input).unwrap(), None);
        for wrong in
            ["x: 1\r\n\r\n{}", "Content-Length: 9\r\n\r\n{}", "Content-Length: 99999999999\r\n\r\n"]
        {
            assert!(read(&mut wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
