//! The names that a file imports from its own repository, read by line without a parser.

use super::tokens::word;
use crate::text::language::{Language, Layout};

/// What the head of a file imports.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Statements that import.
    pub(super) statements: usize,
    /// Those of them that name the file's own repository.
    pub(super) local_statements: usize,
    /// The names that these bring in, as tokens.
    pub(super) local_names: Vec<u32>,
}

/// Reads the import statements of a file's head. A module belongs to the repository where it is relative, or where its first
/// name (of Java and C# the first two) is a folder on the file's own path.
pub(super) fn read(head: &str, path: &str, language: Language) -> Imports {
    let (spec, mut imports) = (language.spec(), Imports::default());
    let mut lines = head.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        let Some((module, names)) = (spec.import_line)(line) else {
            continue;
        };
        imports.statements += 1;
        if !(spec.is_local_import)(module.trim(), path) {
            continue;
        }
        imports.local_statements += 1;
        push_names(names, &mut imports.local_names);
        let mut open = names;
        // `from a import (` goes on until the bracket is closed.
        while spec.layout == Layout::Indentation && open.contains('(') && !open.contains(')') {
            let Some(line) = lines.next() else { break };
            push_names(line, &mut imports.local_names);
            if line.contains(')') {
                open = "";
            }
        }
    }
    imports
}

/// The words of a piece of an import statement, `as` and what is renamed among them.
fn push_names(text: &str, names: &mut Vec<u32>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    names.extend(
        text.split(|c| !is_word(c))
            .filter(|name| !name.is_empty() && *name != "as")
            .map(word),
    );
}
