//! Texts made of plain parts and special tokens, and their ids.

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
