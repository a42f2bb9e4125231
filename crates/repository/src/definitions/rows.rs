//! Places of definitions.

use std::ops::Range;

use foldhash::HashMap;
use repoformer_text::language::syntax::rows;
use tree_sitter::Node;

/// Rows of a file, 0-based.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rows {
    /// First row.
    pub start: u32,
    /// Row after the last.
    pub end: u32,
}

impl Rows {
    /// Returns the rows that a node touches.
    pub(super) fn from_node(node: Node<'_>) -> Self {
        let rows = rows(node);
        Self { start: rows.start as u32, end: rows.end as u32 }
    }

    /// Returns the rows from a definition's name, if it has one, to its end.
    pub(super) fn from_name(node: Node<'_>, name: Option<Node<'_>>) -> Self {
        let rows = Self::from_node(node);
        let start = name.map_or(rows.start, |name| name.start_position().row as u32);
        Self { start: start.min(rows.end), ..rows }
    }

    /// Returns the rows as indices of a list of lines.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Names and the rows of their definitions.
pub(super) type NameRows = HashMap<String, Rows>;

/// Kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DefinitionKind {
    /// Function or method.
    Function,
    /// Class, interface or similar type.
    Type,
    /// Variable outside functions and types.
    Value,
}

/// Definition in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Definition {
    /// Index of its file.
    pub file: u32,
    /// Rows from the one with its name to its end.
    pub rows: Rows,
    /// What it defines.
    pub kind: DefinitionKind,
}

impl Definition {
    pub(super) fn new(file: usize, rows: Rows, kind: DefinitionKind) -> Self {
        Self { file: file as u32, rows, kind }
    }
}

/// Paths of a repository's files.
pub struct SourcePaths<'a> {
    /// Name of the repository's folder.
    pub repository: &'a str,
    /// Files in order.
    pub(super) files: Vec<FilePath<'a>>,
}

/// Returns the folder of a file in its repository, without the repository's name: `.` for `repo/b.go`, `./a` for `repo/a/b.go`.
pub(super) fn folder(path: &str) -> String {
    let below = path.find('/').map_or("", |at| &path[at..]);
    format!(".{}", below.rsplit_once('/').map_or("", |(folder, _)| folder))
}

/// Path of a file.
pub(super) struct FilePath<'a> {
    pub(super) path: &'a str,
    /// Index of the first file that is the same on disk.
    pub(super) file: usize,
}

impl<'a> SourcePaths<'a> {
    /// Collects the paths; `files` are the paths, each with the index of the first file that is the same on disk.
    pub fn new(repository: &'a str, files: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let path = |(number, (path, same_as)): (usize, (&'a str, u32))| FilePath {
            path,
            file: number.min(same_as as usize),
        };
        Self { repository, files: files.enumerate().map(path).collect() }
    }
}
