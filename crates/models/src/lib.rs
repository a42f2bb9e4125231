//! Models that complete code, and models that embed it.
//!
//! - [`in_context`]: the embedded model, which knows only its prompt and needs no server.
//! - [`endpoint`]: the HTTP client for servers that speak OpenAI's protocol: addresses, keys, retries, streams.
//! - [`server`]: completions and probabilities from such a server, with a log of its answers. [`batch`]: files of requests.
//! - [`embed`]: vectors from a server. [`replay`]: tasks typed against a completion server.
//!
//! ```
//! use repoformer_models::in_context::{CompletionLimits, complete};
//!
//! let prompt = "with open(path) as stream:\n    return json.load(stream)\n\nwith open(name) as file:\n";
//! let completion = complete(prompt, &CompletionLimits { max_lines: 1, max_tokens: 100 });
//! assert_eq!(completion.text, "    return json.load(file)\n");
//! ```

#![forbid(unsafe_code)]

pub mod batch;
pub mod embed;
pub mod endpoint;
pub mod in_context;
pub mod replay;
pub mod server;
