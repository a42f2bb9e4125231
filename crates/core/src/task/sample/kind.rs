//! Kinds of holes, and settings for drawing them.

use repoformer_text::language::Language;
use repoformer_text::named;

use super::exclude::Exclusions;

/// Kind of a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One line of code.
    Line,
    /// The lines of a call whose callee the repository defines in another file.
    Api,
    /// A function's body, without its docstring and braces.
    Function,
    /// A run of lines that begins at any line of code.
    Chunk,
}

named! {
    Kind, "kind of task":
    Line = "line",
    Api = "api",
    Chunk = "chunk",
    Function = "function",
}

/// Place at which a hole begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HoleStart {
    /// The start of the hole's first line.
    #[default]
    LineStart,
    /// Any token of the first line that is a word or has a word after it.
    AnyToken,
}

named! {
    HoleStart, "cursor":
    LineStart = "line-start",
    AnyToken = "any-token",
}

/// Settings for drawing tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// Kind of the holes.
    pub kind: Kind,
    /// Language of the repository's files.
    pub language: Language,
    /// Maximum number of tasks per repository; RepoEval has 200.
    pub per_repository: usize,
    /// Seed of the random draws.
    pub seed: u64,
    /// Maximum number of tokens in a prompt.
    pub context_tokens: usize,
    /// Code from which no hole is drawn.
    pub exclusions: Exclusions,
    /// Minimum number of tokens in a [`Kind::Line`] hole, not counting indentation; RepoEval requires five.
    pub min_tokens: usize,
    /// Place at which holes begin.
    pub cursor: HoleStart,
}

impl Sampling {
    /// Returns RepoEval's settings: Python, 200 tasks per repository, lines of at least 5 tokens, 2000 tokens of context. No
    /// hole is drawn from data tables.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            language: Language::Python,
            per_repository: 200,
            seed: 0,
            context_tokens: 2000,
            exclusions: Exclusions { tables: true, ..Exclusions::default() },
            min_tokens: 5,
            cursor: HoleStart::LineStart,
        }
    }
}

/// A run of lines of one file that can be cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hole {
    /// Index of the file in its repository.
    pub(super) file: usize,
    /// 0-based first line.
    pub(super) start: usize,
    /// Line after the last line.
    pub(super) end: usize,
}
