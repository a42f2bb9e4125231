//! Events of a streamed response.

use serde_json::Value;

/// Event of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A new response begins; a response that began earlier was incomplete and must be discarded.
    Begin,
    /// An event of the stream.
    Data {
        /// Its JSON.
        value: Value,
        /// Text of the event as received, if it differs from the JSON: the JSON has U+FFFD for half a character, which a stream divided by
        /// tokens may contain, or a mask for the server's key, which this text still contains.
        exact: Option<Vec<u8>>,
    },
    /// JSON of the whole response, from a server that does not stream.
    Whole(Value),
    /// The stream ended without the event `[DONE]`. If no more is needed, the response is still complete.
    End,
}
