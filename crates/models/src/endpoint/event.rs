//! Parts of a streamed response.

use serde_json::Value;

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
