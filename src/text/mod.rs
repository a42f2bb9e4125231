//! Text of source files: lines, tokens, edit distances, and languages.

pub mod distance;
pub mod language;
pub mod lines;
pub mod tokenize;
pub mod visible;
