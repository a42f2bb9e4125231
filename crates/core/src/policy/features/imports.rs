//! Names that a file imports from its own repository, read line by line without a parser.

use repoformer_text::language::{BlockMarks, Language};

use super::tokens::word;

/// Imports in the head of a file.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Number of import statements.
    pub(super) statements: usize,
    /// Number of import statements that name the file's own repository.
    pub(super) local_statements: usize,
    /// Names that these statements import, as tokens.
    pub(super) local_names: Vec<u32>,
}

/// Reads the import statements at the head of a file. A module belongs to the repository if it is relative, or if its first
/// name (in Java and C#, its first two names) is a folder on the file's own path.
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
        // `from a import (` continues until the bracket is closed.
        while spec.layout == BlockMarks::Indentation && open.contains('(') && !open.contains(')') {
            let Some(line) = lines.next() else { break };
            push_names(line, &mut imports.local_names);
            if line.contains(')') {
                open = "";
            }
        }
    }
    imports
}

/// Adds the words in part of an import statement, except `as`.
fn push_names(text: &str, names: &mut Vec<u32>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    names.extend(
        text.split(|c| !is_word(c)).filter(|name| !name.is_empty() && *name != "as").map(word),
    );
}
