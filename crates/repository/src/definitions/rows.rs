//! Places of definitions.

use std::ops::Range;

use repoformer_text::language::syntax::rows;
use rustc_hash::FxHashMap;
use tree_sitter::Node;

/// Rows of a file, 0-based.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rows {
    /// The first row.
    pub start: u32,
    /// The row after the last.
    pub end: u32,
}

impl Rows {
    /// The rows that a node touches.
    pub(super) fn from_node(node: Node<'_>) -> Self {
        let rows = rows(node);
        Self { start: rows.start as u32, end: rows.end as u32 }
    }

    /// The rows from a definition's name, if it has one, to its end.
    pub(super) fn from_name(node: Node<'_>, name: Option<Node<'_>>) -> Self {
        let rows = Self::from_node(node);
        let start = name.map_or(rows.start, |name| name.start_position().row as u32);
        Self { start: start.min(rows.end), ..rows }
    }

    /// As indices of a list of lines.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Names, and where they are defined.
pub(super) type NameRows = FxHashMap<String, Rows>;

/// Kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DefinitionKind {
    /// A function or a method.
    Function,
    /// A class, an interface and the like.
    Type,
    /// A variable outside functions and types.
    Value,
}

/// A definition of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Definition {
    /// Number of its file.
    pub file: u32,
    /// Its rows, from the one with its name.
    pub rows: Rows,
    /// What it defines.
    pub kind: DefinitionKind,
}

impl Definition {
    pub(super) fn new(file: usize, rows: Rows, kind: DefinitionKind) -> Self {
        Self { file: file as u32, rows, kind }
    }
}

/// The paths of a repository's files.
pub struct SourcePaths<'a> {
    /// Name of the repository's folder.
    pub repository: &'a str,
    /// Its files, in their order.
    pub(super) files: Vec<FilePath<'a>>,
}

/// Folder of a file in its repository, without the latter's name: `.` of `repo/b.go`, `./a` of `repo/a/b.go`.
pub(super) fn folder(path: &str) -> String {
    let below = path.find('/').map_or("", |at| &path[at..]);
    format!(".{}", below.rsplit_once('/').map_or("", |(folder, _)| folder))
}

/// The path of a file.
pub(super) struct FilePath<'a> {
    pub(super) path: &'a str,
    /// The first file that is the same on disk.
    pub(super) file: usize,
}

impl<'a> SourcePaths<'a> {
    /// `files` are the paths, each with the number of the first file that is the same on disk.
    pub fn new(repository: &'a str, files: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let path = |(number, (path, same_as)): (usize, (&'a str, u32))| FilePath {
            path,
            file: number.min(same_as as usize),
        };
        Self { repository, files: files.enumerate().map(path).collect() }
    }
}
