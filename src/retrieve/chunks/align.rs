//! Fragment alignment: what is shown for a chunk that was found. Where the query is what stands before the hole, what
//! follows the chunk is what resembles the hole (Lu et al. 2022, ReACC).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::QueryForm;
use crate::repository::chunk::RepoChunks;

/// What is shown for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Align {
    /// What the query asks for: the next chunk where it ends at the hole, the one before where it begins behind it, the
    /// chunk itself where it reaches over the hole.
    #[default]
    Auto,
    /// The chunk itself.
    None,
    /// The next chunk of its file, or itself where it is the last.
    Next,
    /// The chunk before it, or itself where it is the first.
    Previous,
    /// The chunk moved down by a stride, as RepoCoder moves a window, and no further than its file reaches.
    Extend,
    /// The smallest function or class that holds the whole chunk, else the function around the chunk's middle line; the
    /// chunk itself where there is none or where it is larger than what a prompt can show.
    Enclosing,
}

impl Align {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Auto,
        Self::None,
        Self::Next,
        Self::Previous,
        Self::Extend,
        Self::Enclosing,
    ];

    /// The name on the command line and in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Next => "next",
            Self::Previous => "previous",
            Self::Extend => "extend",
            Self::Enclosing => "enclosing",
        }
    }

    /// What `auto` means for queries of this form, as in the released program.
    #[must_use]
    pub fn settled(self, form: QueryForm) -> Self {
        match (self, form) {
            (Self::Auto, QueryForm::LastLines) => Self::Next,
            (Self::Auto, QueryForm::FirstLines) => Self::Previous,
            (Self::Auto, _) => Self::None,
            (chosen, _) => chosen,
        }
    }
}

impl fmt::Display for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Align {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|align| align.name() == name);
        named.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("'{name}' is no alignment; the alignments are {names}")
        })
    }
}

/// Some lines of a file: what is shown for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Index in [`RepoChunks::files`].
    pub file: u32,
    /// First of its non-blank lines.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

impl Piece {
    /// What is shown for a chunk. It never leaves the chunk's file, so it shows no more of a task's own file than the
    /// chunk does: nothing.
    pub fn of(
        chunks: &RepoChunks,
        chunk: u32,
        align: Align,
        enclosing: impl FnOnce(Self) -> Option<Self>,
    ) -> Self {
        let itself = Self::itself(chunks, chunk);
        let neighbour = |number: Option<u32>| {
            let number = number.and_then(|number| chunks.numbered(itself.file, number));
            number.map(|chunk| Self::itself(chunks, chunk))
        };
        let number = chunks.chunk(chunk as usize).number;
        let aligned = match align {
            Align::Auto | Align::None => None,
            Align::Next => neighbour(number.checked_add(1)),
            Align::Previous => neighbour(number.checked_sub(1)),
            Align::Extend => Some(itself.moved_down(chunks)),
            Align::Enclosing => enclosing(itself),
        };
        aligned.unwrap_or(itself)
    }

    fn itself(chunks: &RepoChunks, chunk: u32) -> Self {
        let chunk = chunks.chunk(chunk as usize);
        Self {
            file: chunk.file,
            start: chunk.start,
            end: chunk.end,
        }
    }

    fn moved_down(self, chunks: &RepoChunks) -> Self {
        let count = chunks.files[self.file as usize].count();
        let end = count.min(self.end as usize + chunks.shape.stride);
        Self {
            start: end.saturating_sub(chunks.shape.size) as u32,
            end: end as u32,
            ..self
        }
    }

    /// Its lines joined by `\n`.
    pub fn text(self, chunks: &RepoChunks) -> &str {
        chunks.files[self.file as usize].range(self.start, self.end)
    }
}
