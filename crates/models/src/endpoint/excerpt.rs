//! Parts of a server's response: its events, its error, and an excerpt for messages.

use serde_json::Value;

/// Number of characters of a response shown in messages.
pub(super) const SHOWN: usize = 200;

/// Part of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A response begins; one that began before was not complete, and does not count.
    Begin,
    /// An event.
    Data {
        /// Its JSON.
        value: Value,
        /// Its text as it came, if the JSON has something else: U+FFFD for half a character, as a stream that is divided by tokens
        /// may have, or a mask for the server's key, which is in this text.
        exact: Option<Vec<u8>>,
    },
    /// JSON of the whole response, of a server that does not stream.
    Whole(Value),
    /// The stream ends without the event `[DONE]`. If no more is needed, the response is complete all the same.
    End,
}

/// Returns the error that a server put into its JSON, in words.
pub(crate) fn error_in(answer: &Value) -> Option<String> {
    let error = answer.get("error")?;
    let is_none = matches!(error, Value::Null | Value::Bool(false)) || *error == "" || *error == 0;
    (!is_none).then(|| message_in(error))
}

/// Returns the message of a server's error, with its code if that is all it has.
pub(crate) fn message_in(error: &Value) -> String {
    let places = ["/error/message", "/error", "/message", "/detail", "/detail/0/msg"];
    let found = places.iter().find_map(|place| error.pointer(place)?.as_str());
    let message = found.or(error.as_str()).filter(|message| !message.trim().is_empty());
    match message {
        Some(message) => excerpt(message.as_bytes()),
        None => excerpt(error.to_string().as_bytes()),
    }
}

/// The beginning of some bytes, on one line.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    // A character has at most four bytes; the rest need not be decoded.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(8 * SHOWN)]);
    let text = text.split(|c: char| c.is_whitespace() || c.is_control());
    let text = text.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if bytes.len() > 8 * SHOWN => format!("{text}…"),
        None => text,
    }
}
