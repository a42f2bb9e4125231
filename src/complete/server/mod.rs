//! Completions by a language model on a server that speaks OpenAI's protocol (llama.cpp, vLLM, Ollama, TGI, hosted ones).
//!
//! - [`CompletionRequest`]: the settings of requests; equal requests have equal keys.
//! - [`Ending`]: the end of prompts for models whose tokens span a newline and the following indentation.
//! - [`samples`]: the texts of an answer and their tokens' log-probabilities, in either of the styles that servers use, or the reason
//!   why it has no completion.
//! - [`read_whole`], [`read_stream`]: an answer as a whole, or in events as far as it is needed.
//! - [`CompletionCut`]: the completion in a server's text: without repeated white space, up to the first stop text.
//! - [`Completer`]: the completions of one prompt, in as many requests as the server needs.
//! - [`Confidence`], [`entropy`]: the model's confidence in its completions.
//! - [`Prober`]: the probability of one given next token.
//! - [`TextProber`]: the probability of a given text.
//! - [`Journal`]: log of answers, from which an interrupted run resumes.
//! - [`changing_template`]: the template of an Ollama model, where it changes prompts.
//! - [`run`]: requests on several connections at a time; a failed one does not affect the others.

mod answer;
mod completer;
mod cut;
mod ending;
mod journal;
mod likelihood;
mod next;
mod request;
mod run;
mod template;
#[cfg(feature = "http")]
#[cfg(test)]
mod tests;
mod uncertainty;

pub use answer::{Answer, AnswerError, Finish, PartialAnswer, Sample, TokenProbability, samples};
pub(crate) use answer::{check_answer, check_choice, samples_of_any};
pub use completer::{Completer, read_stream, read_whole};
pub(crate) use cut::span as completion_span;
pub use cut::{CompletionCut, MOST_STOPS};
pub use ending::Ending;
pub use journal::{Entry, Journal};
pub use likelihood::TextProber;
pub(crate) use likelihood::{echo_body, read_echo};
pub use next::{NextToken, Prober};
pub use request::{Api, CompletionRequest};
pub use run::{Failures, Sending, run, unanswered};
pub use template::changing_template;
pub use uncertainty::{Confidence, entropy};
