//! Texts made of plain parts and special tokens, and what can be wrong with a tokenizer's file.

use std::io;
use std::path::Path;

use crate::error::Error;

/// A part of a text that is counted or encoded as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'t> {
    /// A special token; plain text if the tokenizer does not have it.
    Special(&'t str),
    /// Code, or any other text, whatever characters it contains.
    Plain(&'t str),
}

impl<'t> Part<'t> {
    /// Characters of the part.
    pub fn text(&self) -> &'t str {
        match self {
            Self::Special(text) | Self::Plain(text) => text,
        }
    }
}

/// Ids of a text made of parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// One id per token.
    pub ids: Vec<u32>,
    /// Positions of the ids of [`Part::Special`].
    pub specials: Vec<usize>,
}

pub(super) fn tokenizer_error(path: &Path, reason: String) -> Error {
    Error::Tokenizer { path: path.to_owned(), reason }
}

pub(super) fn not_read(path: &Path, reason: io::Error) -> Error {
    match reason.kind() {
        io::ErrorKind::NotFound => tokenizer_error(path, "this tokenizer does not exist".into()),
        _ => Error::reading(path, "read this tokenizer", reason),
    }
}
