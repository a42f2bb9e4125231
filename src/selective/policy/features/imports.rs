//! Names that a file imports from its own repository, read by line without a parser.

use super::tokens::word;
use crate::text::language::Language;

/// Imports in the head of a file.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Number of import statements.
    pub(super) statements: usize,
    /// Number of import statements that name the file's own repository.
    pub(super) local_statements: usize,
    /// Names imported by these, as tokens.
    pub(super) local_names: Vec<u32>,
}

/// Reads the import statements of a file's head. A module belongs to the repository if it is relative, or if its first name (in
/// Java and C# the first two) is a folder on the file's own path.
pub(super) fn read(head: &str, path: &str, language: Language) -> Imports {
    let mut imports = Imports::default();
    let mut lines = head.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        let Some((module, names)) = statement(line, language) else {
            continue;
        };
        imports.statements += 1;
        if !is_local(module, path, language) {
            continue;
        }
        imports.local_statements += 1;
        push_names(names, &mut imports.local_names);
        let mut open = names;
        // `from a import (` continues until the bracket is closed.
        while language == Language::Python && open.contains('(') && !open.contains(')') {
            let Some(line) = lines.next() else { break };
            push_names(line, &mut imports.local_names);
            if line.contains(')') {
                open = "";
            }
        }
    }
    imports
}

/// Returns module and names of an import statement.
fn statement(line: &str, language: Language) -> Option<(&str, &str)> {
    match language {
        Language::Python => {
            if let Some(rest) = line.strip_prefix("from ") {
                return rest.split_once(" import ");
            }
            let module = line.strip_prefix("import ")?;
            Some((module, module))
        }
        Language::TypeScript => {
            let rest = line
                .strip_prefix("import ")
                .or_else(|| line.strip_prefix("} "))?;
            let (names, module) = rest.rsplit_once("from ").unwrap_or(("", rest));
            Some((module.trim_start_matches(['\'', '"', '`']), names))
        }
        Language::Java => {
            let module = line.strip_prefix("import ")?;
            let module = module.strip_prefix("static ").unwrap_or(module);
            Some((module, module.rsplit('.').next().unwrap_or(module)))
        }
        Language::CSharp => {
            let module = line.strip_prefix("using ")?;
            // `using (` manages a resource.
            if !line.trim_end().ends_with(';') || module.starts_with('(') || module.contains(" = ")
            {
                return None;
            }
            Some((module, ""))
        }
    }
}

fn is_local(module: &str, path: &str, language: Language) -> bool {
    let module = module.trim();
    if module.starts_with('.') {
        return true;
    }
    // The repository's own folder is not a module.
    let mut folders = path.split('/').skip(1).peekable();
    let mut parts = module.split(['.', ' ', ';', ',']);
    match language {
        Language::TypeScript => false,
        Language::Python => {
            let first = parts.next();
            std::iter::from_fn(|| {
                let folder = folders.next()?;
                folders.peek().map(|_| folder)
            })
            .any(|folder| Some(folder) == first)
        }
        Language::Java | Language::CSharp => match (parts.next(), parts.next()) {
            (Some(first), Some(second)) => {
                let path = path.replace('/', ".");
                path.contains(&format!(".{first}.{second}."))
            }
            _ => false,
        },
    }
}

/// Adds the words of a part of an import statement, except `as`.
fn push_names(text: &str, names: &mut Vec<u32>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    names.extend(
        text.split(|c| !is_word(c))
            .filter(|name| !name.is_empty() && *name != "as")
            .map(word),
    );
}
