//! Parts of a server's response: its events, and an excerpt for messages.

use serde_json::Value;

/// Number of characters of a response shown in messages.
pub(super) const SHOWN: usize = 200;

/// Part of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A response begins; one that began before was not complete, and does not count.
    Begin,
    /// JSON of an event.
    Data(Value),
    /// JSON of the whole response, of a server that does not stream.
    Whole(Value),
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
