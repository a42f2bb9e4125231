//! The code in a chat model's answer.
//!
//! One rule in four steps, each a [`Step`](super::Step) that can also be used alone:
//!
//! 1. [`without_thoughts`] removes the model's thoughts and the tokens of its chat template.
//! 2. [`marked_code`] keeps the code that the answer marks with Markdown.
//! 3. [`without_sentences`] removes sentences before and after the code, if nothing is marked.
//! 4. [`without_echo`] removes leading lines that repeat the left context.
//!
//! Text in quotation marks or in a comment is code, so tokens and tags in it are ignored, except the end of thoughts, which may
//! follow a comment sign. If the hole is in a string or a comment, sentences count as code. White space at the beginning of a
//! line is kept.

mod echo;
mod fences;
mod literal;
mod prose;
mod steps;
mod tags;
#[cfg(test)]
mod tests;

pub(super) use echo::without_echo;
pub(super) use fences::marked_code;
pub(super) use prose::without_sentences;
pub(super) use tags::without_thoughts;

/// Version of the rule; part of the identity of every result that depends on the rule.
pub(crate) const REVISION: u32 = 4;
