//! Completions by a language model on a server that speaks OpenAI's protocol (llama.cpp, vLLM, Ollama, TGI, hosted ones).
//!
//! Requests and answers are defined in [`repoformer_core::completion`].
//!
//! - [`read_whole`]: reads an answer that is not streamed.
//! - [`stream`]: one completion, passed on as it is written, up to the first stop text.
//! - [`Completer`]: the completions of one prompt, in as many requests as the server needs.
//! - [`Prober`]: the probability of one given next token.
//! - [`TextProber`]: the probability of a given text.
//! - [`Journal`]: a log of answers, from which an interrupted run resumes.
//! - [`changing_template`]: the template of an Ollama model, if it changes prompts.
//! - [`run`]: sends requests on several connections at a time; a failed request does not affect the others.

mod completer;
mod journal;
mod likelihood;
mod next;
mod partial;
mod run;
mod stream;
mod template;
#[cfg(test)]
mod tests;

pub use completer::{Completer, read_whole};
pub use journal::{Journal, JournalEntry};
pub use likelihood::{TextProber, echo_body, read_echo};
pub use next::{NextToken, Prober};
pub use partial::IsEnough;
pub use run::{Failures, SendSettings, find_unanswered, run};
pub use stream::{StreamEnd, StreamPart, StreamRequest, stream};
pub use template::changing_template;
