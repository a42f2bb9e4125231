//! Completions by a language model on a server that speaks OpenAI's protocol (llama.cpp, vLLM, Ollama, TGI, hosted ones).
//!
//! - [`Asking`]: what a request holds; equal requests have equal keys.
//! - [`Ending`]: where a prompt ends for models whose tokens span a newline and the indentation behind it.
//! - [`samples`]: the texts of an answer and their tokens' log-probabilities, in either of the two styles that servers use.
//! - [`Completer`]: the completions of one prompt, in as many requests as the server needs.
//! - [`Confidence`], [`entropy`]: how sure the model is of what it wrote.
//! - [`Prober`]: the probability of one given next token.
//! - [`Journal`]: answers as they come, from which an interrupted run goes on.
//! - [`run`]: requests on so many connections at a time; one that fails does not lose the others.

mod answer;
mod completer;
mod ending;
mod journal;
mod next;
mod request;
mod run;
#[cfg(test)]
mod tests;
mod uncertainty;

pub use answer::{Answer, Sample, TokenProbability, samples};
pub use completer::Completer;
pub use ending::Ending;
pub use journal::{Entry, Journal};
pub use next::{NextToken, Prober};
pub use request::{Api, Asking};
pub use run::{Failures, Sending, run, unanswered};
pub use uncertainty::{Confidence, entropy};
