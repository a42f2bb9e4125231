//! Client for servers that speak OpenAI's protocol (llama.cpp, vLLM, Ollama, hosted ones): one request, one JSON answer.
//!
//! A request is sent again after a failure that may pass: no connection, a timeout, an incomplete answer, and the statuses
//! 408, 429, 500, 502, 503 and 504. Everything else fails immediately, with the server's own message.
//!
//! Without the feature `http` there is no client: [`Endpoint::new`] says so.

use std::time::Duration;

mod address;
mod answer;
mod bound;
mod client;
mod escapes;
mod event;
mod events;
mod key;
mod proxy;
mod readings;
mod request;
mod retry;
#[cfg(test)]
pub(crate) mod test_client;

pub(crate) use address::MASK;
pub(crate) use answer::{is_whole, shorter};
pub use client::Endpoint;
pub use event::Event;
pub use key::{KeyMask, holds_key, mask_keys, mask_keys_of};

/// Environment variable of the server's key, unless another one is named.
pub const DEFAULT_KEY_VARIABLE: &str = "REPOFORMER_API_KEY";
/// Environment variable of the key of the server that decides when to retrieve, where that is another one.
pub const POLICY_KEY_VARIABLE: &str = "REPOFORMER_POLICY_API_KEY";

/// Settings of the connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Environment variable that contains the server's key and must be set; `None`: [`DEFAULT_KEY_VARIABLE`], if that is set.
    pub key_variable: Option<String>,
    /// Time limit of one request, from connecting to the end of the answer.
    pub timeout: Duration,
    /// Time limit of connecting.
    pub connect_timeout: Duration,
    /// Number of retries of a request.
    pub retries: u32,
    /// Delay before the first retry; doubled with each further one.
    pub first_delay: Duration,
    /// Longest such delay.
    pub longest_delay: Duration,
    /// Longest total delay that a server may ask for (`Retry-After`); a longer one ends the retries.
    pub longest_retry_after: Duration,
}

impl Default for ConnectionSettings {
    /// Ten minutes a request, because a server under load answers late; five retries in about a quarter of a minute.
    fn default() -> Self {
        Self {
            key_variable: None,
            timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(10),
            retries: 5,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(300),
        }
    }
}

impl ConnectionSettings {
    /// Settings for hundreds of long requests: a server that rejects requests for a minute (429) or restarts is retried for at
    /// most two and a half minutes, or for an hour if it asks for that.
    pub fn patient() -> Self {
        Self { retries: 10, longest_retry_after: Duration::from_secs(3600), ..Self::default() }
    }
}
