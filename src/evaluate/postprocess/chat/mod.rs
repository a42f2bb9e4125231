//! The code in a chat model's answer.
//!
//! One rule in four steps, each a [`Step`](super::Step) that can also be used alone:
//!
//! 1. [`without_thoughts`]: what the model thinks before it answers, and the tokens of a chat template, are no part of the answer.
//! 2. [`marked_code`]: if the answer marks code as Markdown does, the code is what is marked.
//! 3. [`without_sentences`]: if nothing is marked, sentences before and behind code are no part of it.
//! 4. [`without_echo`]: lines of the left context that the answer begins with are no part of it.
//!
//! Whatever is in quotation marks or in a comment is code: a token or a tag there is never looked at, apart from the end of
//! thoughts, which may be behind a comment sign. If the hole is in a string or a comment, sentences are its code. White space at the
//! beginning of a line is kept.

mod echo;
mod fences;
mod literal;
mod prose;
mod tags;

pub(super) use echo::without_echo;
pub(super) use fences::marked_code;
pub(super) use prose::without_sentences;
pub(super) use tags::without_thoughts;

/// Version of the rule, which is part of the identity of what is computed by it.
pub(crate) const REVISION: u32 = 3;
