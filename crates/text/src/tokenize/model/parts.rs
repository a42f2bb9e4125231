//! Texts that consist of plain parts and special tokens, and errors of a tokenizer's file.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Part of a text that is counted or encoded as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart<'t> {
    /// Special token; plain text if the tokenizer does not have it.
    Special(&'t str),
    /// Code, or any other text, with any characters.
    Plain(&'t str),
}

impl<'t> TextPart<'t> {
    /// Returns the characters of the part.
    pub fn text(&self) -> &'t str {
        match self {
            Self::Special(text) | Self::Plain(text) => text,
        }
    }
}

/// Ids of a text that consists of parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncodedText {
    /// One id per token.
    pub ids: Vec<u32>,
    /// Positions of the ids of [`TextPart::Special`].
    pub specials: Vec<usize>,
}

/// Description of the values that a tokenizer setting accepts.
pub const HINT: &str = "pass p50k_base, words, or the path of a tokenizer.json of a model, for \
                        example from the Hugging Face hub";

/// Error of a tokenizer that cannot be used.
#[derive(Debug)]
pub struct TokenizerError {
    /// Path of its file.
    pub path: PathBuf,
    /// Reason why it cannot be used.
    pub fault: TokenizerFault,
}

/// Reason why a tokenizer cannot be used.
#[derive(Debug)]
pub enum TokenizerFault {
    /// Its file cannot be read.
    NotRead(io::Error),
    /// A part of the file would crash the program, or make it use unlimited time or memory.
    Refused {
        /// Name of the part in the file.
        part: &'static str,
        /// Reason.
        reason: String,
    },
    /// The file is something else, or cannot tokenize a text; the value describes the problem.
    Unusable(String),
}

impl TokenizerError {
    /// Returns a hint on how to resolve the error.
    pub fn hint(&self) -> &'static str {
        HINT
    }
}

impl fmt::Display for TokenizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            TokenizerFault::NotRead(reason) => {
                write!(f, "{}: cannot read this tokenizer: {reason}", self.path.display())
            }
            fault => write!(f, "{}: {fault}", self.path.display()),
        }
    }
}

impl std::error::Error for TokenizerError {}

impl fmt::Display for TokenizerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRead(reason) => reason.fmt(f),
            Self::Refused { part, reason } => write!(f, "its {part} cannot be used: {reason}"),
            Self::Unusable(reason) => f.write_str(reason),
        }
    }
}

/// Result of a tokenizer's functions.
pub(super) type Result<T> = std::result::Result<T, TokenizerError>;

pub(super) fn tokenizer_error(path: &Path, reason: String) -> TokenizerError {
    TokenizerError { path: path.to_owned(), fault: TokenizerFault::Unusable(reason) }
}

pub(super) fn not_read(path: &Path, reason: io::Error) -> TokenizerError {
    match reason.kind() {
        io::ErrorKind::NotFound => tokenizer_error(path, "this tokenizer does not exist".into()),
        _ => TokenizerError { path: path.to_owned(), fault: TokenizerFault::NotRead(reason) },
    }
}
