//! Kinds of holes, and how they are drawn.

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
    /// A function's body, its docstring and braces excepted.
    Function,
    /// A run of lines that begins anywhere.
    Chunk,
}

named! {
    Kind, "kind of task":
    Line = "line",
    Api = "api",
    Chunk = "chunk",
    Function = "function",
}

/// Where a hole begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HoleStart {
    /// At the start of its first line.
    #[default]
    LineStart,
    /// At any token of its first line that a word follows or that is one.
    AnyToken,
}

named! {
    HoleStart, "cursor":
    LineStart = "line-start",
    AnyToken = "any-token",
}

/// How tasks are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// Kind of the holes.
    pub kind: Kind,
    /// The language of the repository's files.
    pub language: Language,
    /// At most this many tasks; RepoEval has 200 of a repository.
    pub per_repository: usize,
    /// Another seed, another sample.
    pub seed: u64,
    /// Most tokens of a prompt.
    pub context_tokens: usize,
    /// Where no hole is drawn.
    pub exclusions: Exclusions,
    /// Fewest tokens of a [`Kind::Line`] hole, indentation not counted; RepoEval asks for five.
    pub min_tokens: usize,
    /// Where holes begin.
    pub cursor: HoleStart,
}

impl Sampling {
    /// RepoEval's language and numbers: Python, 200 tasks of a repository, lines of at least 5 tokens, 2000 tokens of context. No
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
    /// The line after the last.
    pub(super) end: usize,
}
