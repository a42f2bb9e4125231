//! Text of source files: its lines, its tokens, and the languages it is written in.

pub mod distance;
pub mod language;
pub mod lines;
pub mod tokenize;
