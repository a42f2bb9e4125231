//! Imports and functions of Python files.

use std::fmt;

use foldhash::{HashMap, HashSet};
use repoformer_text::language::Language;
use repoformer_text::language::syntax::{Binding, Syntax, preorder};

use super::statements::import_statements;

/// Module that a file imports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Imports {
    /// Number of dots before the name: the number of folders up from which a relative import begins, counting the file's own.
    pub level: usize,
    /// Names of the path, `["os", "path"]`; for `from x import y`, the names of `x`.
    pub module: Vec<String>,
    /// Names that `from` imports, any of which can be a module too.
    pub names: Vec<String>,
}

impl fmt::Display for Imports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", ".".repeat(self.level), self.module.join("."))
    }
}

/// Row and column, 0-based; the column is in bytes.
pub type Point = (usize, usize);

/// Imports and functions of a Python file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PythonFile {
    /// Distinct modules that it imports, anywhere in the file, in the order of the file.
    pub imports: Vec<Imports>,
    /// Start and end of each function definition, including nested functions and methods, in the order of the file.
    pub functions: Vec<(Point, Point)>,
}

/// Modules of a repository by their dotted names. `src/a/b.py` has the names `src.a.b`, `a.b` and `b`, since the root of its
/// import paths is not recorded anywhere.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    files: HashSet<String>,
    /// Names from the top of the repository, for relative imports.
    whole: HashSet<String>,
}

/// Greatest size of a file that is parsed: a syntax tree takes many times a file's memory, and larger files are data.
const LARGEST_FILE: usize = 8 << 20;
/// Greatest number of names in a module's path: each pair of them begins and ends a name that is kept.
const DEEPEST: usize = 64;

impl PythonFile {
    /// Parses a file; `None` if it is too large for a syntax tree.
    ///
    /// ```
    /// use repoformer_repository::record::PythonFile;
    /// let file = PythonFile::read("import os.path\ndef f():\n    pass\n").unwrap();
    /// assert_eq!(file.imports[0].to_string(), "os.path");
    /// assert_eq!(file.functions, [((1, 0), (2, 8))]);
    /// ```
    pub fn read(text: &str) -> Option<Self> {
        let syntax = parse(text, text)?;
        let mut functions = Vec::new();
        preorder(syntax.tree(), |node, _| {
            if node.kind() == "function_definition" {
                let (start, end) = (node.start_position(), node.end_position());
                functions.push(((start.row, start.column), (end.row, end.column)));
            }
            true
        });
        Some(Self { imports: imports(&syntax), functions })
    }

    /// Parses a file as [`read`](Self::read) does, but without the functions: only the import statements are parsed, if they
    /// can be recognised without a parser.
    pub fn read_imports(text: &str) -> Option<Self> {
        let statements = import_statements(text).map(|statements| statements.join("\n"));
        let syntax = parse(text, statements.as_deref().unwrap_or(text))?;
        Some(Self { imports: imports(&syntax), functions: Vec::new() })
    }

    /// Returns the modules of a repository with these files.
    pub fn modules<'a>(paths: impl Iterator<Item = &'a str>) -> Modules {
        let mut modules = Modules::default();
        for path in paths {
            let Some(path) = path.strip_suffix(".py") else {
                continue;
            };
            let path = path.strip_suffix("/__init__").unwrap_or(path);
            let names: Vec<&str> = path.split('/').collect();
            if names.len() > DEEPEST {
                continue;
            }
            // A folder that contains a module is a module itself, with or without `__init__.py`.
            for end in 1..=names.len() {
                modules.whole.insert(names[..end].join("."));
                for start in 0..end {
                    modules.files.insert(names[start..end].join("."));
                }
            }
        }
        modules
    }

    /// Returns the dotted names of its imports that are modules of its repository, in order. A relative import is looked up
    /// from the file's folder, any other wherever the repository has such a module; `from x import y` counts if `x` or `x.y` is
    /// a module.
    pub fn local_imports(&self, path: &str, modules: &Modules) -> Vec<String> {
        let folder: Vec<&str> = match path.rsplit_once('/') {
            Some((folder, _)) => folder.split('/').collect(),
            None => Vec::new(),
        };
        let is_local = |import: &&Imports| {
            let known = |base: &[&str]| {
                let mut names: Vec<&str> = base.to_vec();
                names.extend(import.module.iter().map(String::as_str));
                let module = names.join(".");
                let set = if import.level == 0 { &modules.files } else { &modules.whole };
                let below = |name: &String| match module.as_str() {
                    "" => set.contains(name),
                    module => set.contains(&format!("{module}.{name}")),
                };
                set.contains(&module) || import.names.iter().any(below)
            };
            match import.level {
                0 => known(&[]),
                level => {
                    folder.len().checked_sub(level - 1).is_some_and(|depth| known(&folder[..depth]))
                }
            }
        };
        let local = self.imports.iter().filter(is_local);
        local.map(|import| import.to_string()).collect()
    }
}

/// Parses a part of a file; `None` if the file is too large.
fn parse<'a>(file: &str, part: &'a str) -> Option<Syntax<'a>> {
    (file.len() <= LARGEST_FILE).then(|| Syntax::parse(part, Language::Python))?
}

/// Returns the distinct modules that a text imports.
fn imports(syntax: &Syntax<'_>) -> Vec<Imports> {
    let mut found: Vec<Imports> = Vec::new();
    let mut places: HashMap<(usize, Vec<String>), usize> = HashMap::default();
    for import in syntax.imports() {
        let path = import.from.trim_start_matches(|c: char| c == '.' || c.is_whitespace());
        let level = import.from[..import.from.len() - path.len()].matches('.').count();
        let module = dotted_names(path);
        let name = match import.binding {
            Binding::Member { member, .. } => Some(dotted_names(member).join(".")),
            _ => None,
        };
        let place = *places.entry((level, module.clone())).or_insert(found.len());
        if place == found.len() {
            found.push(Imports { level, module, names: Vec::new() });
        }
        found[place].names.extend(name);
    }
    found
}

fn dotted_names(name: &str) -> Vec<String> {
    let names = name.split('.').map(|part| part.trim().to_owned());
    names.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns as the reference uses them (`1_create_function.py`): the body begins after the row of `def` and ends
    /// with the last row.
    #[test]
    fn functions_and_imports_wherever_they_stand() {
        let text = "\
import os, sys as system
from . import models
from ..pkg.util import a as b, c
from __future__ import annotations
class A:
    async def f(self):
        import json.decoder
        def g(): return 1
        return g
from os import path
from x import *
";
        let file = PythonFile::read(text).unwrap();
        let names: Vec<String> = file.imports.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["os", "sys", ".", "..pkg.util", "__future__", "json.decoder", "x"]);
        assert_eq!(file.imports[2].names, ["models"]);
        assert_eq!(file.imports[3].names, ["a", "c"]);
        assert_eq!(file.imports[0].names, ["path"]);
        assert_eq!(file.functions, [((5, 4), (8, 16)), ((7, 8), (7, 25))]);
    }

    /// The result is the same as from a parse of the whole file.
    #[test]
    fn imports_alone_are_those_of_the_whole_file() {
        let ours = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/repos").into();
        let folder = std::env::var_os("REPOFORMER_CORPORA").unwrap_or_else(ours);
        let (mut files, mut imports) = (0, 0);
        for entry in walkdir::WalkDir::new(folder).follow_links(true).into_iter().flatten() {
            if entry.path().extension().is_none_or(|ending| ending != "py") {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(entry.path()) else {
                continue;
            };
            let text = text.replace("\r\n", "\n");
            let whole = PythonFile::read(&text).unwrap_or_default();
            let alone = PythonFile::read_imports(&text).unwrap_or_default();
            assert_eq!(alone.imports, whole.imports, "{}", entry.path().display());
            files += 1;
            imports += whole.imports.len();
        }
        assert!(files > 10 && imports > 30, "{files} {imports}");
    }

    #[test]
    fn local_is_what_the_repository_has() {
        let paths = ["src/app/__init__.py", "src/app/models.py", "src/app/db/base.py", "setup.py"];
        let modules = PythonFile::modules(paths.into_iter());
        let local =
            |path: &str, text: &str| PythonFile::read(text).unwrap().local_imports(path, &modules);
        let text = "import os\nimport app.models\nfrom app import db\nfrom app.db.base import X\nimport setup\nfrom numpy import app\n";
        assert_eq!(local("src/app/models.py", text), ["app.models", "app", "app.db.base", "setup"]);
        let text = "from . import models\nfrom .db import base\nfrom .none import x\nfrom ... import setup\nfrom .... import setup\n";
        assert_eq!(local("src/app/models.py", text), [".", ".db", "..."]);
        assert_eq!(
            local("src/app/db/base.py", "from ..models import M\nfrom .models import M\n"),
            ["..models"]
        );
        assert_eq!(local("setup.py", "from .setup import x\nfrom . import none\n"), [".setup"]);
    }

    #[test]
    fn broken_and_empty_files_are_read_as_far_as_they_go() {
        assert_eq!(PythonFile::read("").unwrap(), PythonFile::default());
        let file = PythonFile::read("import a\ndef (:\nimport b\n").unwrap();
        assert_eq!(file.imports[0].to_string(), "a");
        assert!(PythonFile::read(&"x".repeat(LARGEST_FILE + 1)).is_none());
    }
}
