//! Completions by models: the request to a server, its answer, and the completion in the answer.
//!
//! - [`CompletionRequest`]: the settings of requests; equal requests have equal keys.
//! - [`Ending`]: the end of prompts for models whose tokens span a newline and the following indentation.
//! - [`samples`]: the texts of an answer and their tokens' log-probabilities, in either of the styles that servers use, or the
//!   reason why the answer has no completion.
//! - [`CompletionCut`]: the completion in a server's text: without repeated white space, up to the first stop text.
//! - [`Confidence`], [`entropy`]: the model's confidence in its completions.

mod answer;
mod cut;
mod ending;
mod excerpt;
mod request;
mod uncertainty;

pub use answer::{
    Answer, AnswerError, Choice, Finish, LONGEST_NAME, ROUNDED, Sample, TextPlace,
    TokenProbability, check_answer, check_choice, choices, drop_secrets, is_complete, logarithm,
    samples, samples_of_any, tokens,
};
pub use cut::{AnswerCut, CompletionCut, MOST_STOPS};
pub use ending::Ending;
pub use excerpt::{SHOWN, error_in, excerpt, message_in};
pub use request::{Api, CompletionRequest};
pub use uncertainty::{Confidence, entropy};
