//! Client for servers that speak OpenAI's protocol (llama.cpp, vLLM, Ollama, hosted servers): one request, one JSON answer.
//!
//! A request is retried after a temporary failure: no connection, a timeout, an incomplete answer, or one of the statuses 408, 429, 500,
//! 502, 503 and 504. Any other failure is returned immediately, with the server's own message.
//!
//! Without the feature `http` there is no client, and [`Endpoint::new`] returns an error.

use std::time::Duration;

mod address;
mod answer;
mod bound;
mod client;
mod escapes;
mod event;
mod events;
mod key;
mod outage;
mod proxy;
mod readings;
mod request;
mod retry;
#[cfg(test)]
pub(crate) mod test_client;

pub use address::MASK;
pub(crate) use answer::{is_whole, shorter};
pub use client::{Endpoint, ServerNotice};
pub use event::Event;
pub use key::{KeyMask, holds_key, mask_keys, mask_keys_of};

/// Environment variable with the server's key, unless another one is named.
pub const DEFAULT_KEY_VARIABLE: &str = "REPOFORMER_API_KEY";
/// Environment variable with the key of the server that decides when to retrieve, if that is a separate server.
pub const POLICY_KEY_VARIABLE: &str = "REPOFORMER_POLICY_API_KEY";

/// Settings of the connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Environment variable that contains the server's key, if it is set.
    pub key_variable: &'static str,
    /// Time limit for one request, from connecting to the end of the answer.
    pub timeout: Duration,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Number of retries of a request.
    pub retries: u32,
    /// Delay before the first retry; it doubles with each further one.
    pub first_delay: Duration,
    /// Longest delay before a retry.
    pub longest_delay: Duration,
    /// Longest total delay that a server may ask for (`Retry-After`); if it asks for more, the request fails.
    pub longest_retry_after: Duration,
}

/// Environment variable of the token that clients of `serve` send.
pub const SERVE_TOKEN_VARIABLE: &str = "REPOFORMER_SERVE_TOKEN";

impl Default for ConnectionSettings {
    /// Returns settings with ten minutes per request, because busy servers answer late, and five retries within about fifteen seconds.
    fn default() -> Self {
        Self {
            key_variable: DEFAULT_KEY_VARIABLE,
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
    /// Returns settings for hundreds of long requests: if a server rejects requests (429) or restarts, it is retried for at most two and a
    /// half minutes, or for up to an hour if it asks for that.
    pub fn patient() -> Self {
        Self { retries: 10, longest_retry_after: Duration::from_secs(3600), ..Self::default() }
    }
}
