//! Definitions: resolves the names in a repository's files to the places that define them.
//!
//! [`Names`] are the definitions, imports and calls of one file, from its tree; [`Definitions`] looks names up in all files.
//! Python names are resolved through imports (`modules`), names of other languages through declared types (`typed`).

mod found;
mod known;
mod modules;
mod rows;
#[cfg(test)]
mod tests;
mod typed;

pub use found::FoundDefinitions;
pub use known::KnownNames;
pub use rows::{Definition, Rows, SourcePaths};

use std::sync::Arc;

use modules::Imports;
use repoformer_text::language::syntax::{Binding, Import, Syntax};
use repoformer_text::language::{Language, Resolution, TypeRules};
use typed::Types;

/// Greatest length in bytes of a name that is looked up, and of an import's path or name: each call would read it again.
const LONGEST_NAME: usize = 256;

/// Returns true if an import's path and names are short enough to be looked up.
fn is_short(import: &Import<'_>) -> bool {
    let names = match import.binding {
        Binding::Member { member, local } => [member, local],
        Binding::Whole { local } => [local, local],
        Binding::All | Binding::Nothing => [""; 2],
    };
    names.iter().chain([&import.from]).all(|name| name.len() <= LONGEST_NAME)
}

/// Definitions, imports and calls of one file; cheap to clone.
#[derive(Debug, Clone, Default)]
pub enum Names {
    /// The file could not be read.
    #[default]
    Unread,
    /// Names of a language whose files are modules: Python.
    Module(Arc<modules::ModuleNames>),
    /// Names of a language with declared types.
    Unit(Arc<typed::Unit>),
}

impl Names {
    /// Reads a file's names from its tree. `path` begins with its repository's name.
    pub fn read(path: &str, syntax: &Syntax<'_>) -> Self {
        Self::read_before(path, syntax, usize::MAX)
    }

    /// Reads a file's names, and only the imports before a row.
    pub fn read_before(path: &str, syntax: &Syntax<'_>, row: usize) -> Self {
        match syntax.spec().resolution {
            Resolution::Modules => Self::Module(modules::ModuleNames::read(syntax, row).into()),
            Resolution::Types(rules) => {
                Self::Unit(typed::Unit::read(rules, path, syntax, row).into())
            }
        }
    }

    /// Returns the row of the definition that a chain of names, such as `["Class", "method"]`, refers to at the top level of a
    /// Python file.
    pub fn row_of(&self, chain: &[&str]) -> Option<usize> {
        match self {
            Self::Module(names) => names.rows_of(chain).map(|rows| rows.start as usize),
            _ => None,
        }
    }

    /// Returns the names that the file's imports bind, in alphabetical order.
    pub fn imported_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = match self {
            Self::Unread => Vec::new(),
            Self::Module(names) => names.imported_names().collect(),
            Self::Unit(unit) => unit.imported_names().collect(),
        };
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Names of all files of a repository.
#[derive(Debug)]
pub enum RepositoryNames {
    /// Names of modules.
    Modules(Vec<Arc<modules::ModuleNames>>),
    /// Names of files with declared types, and the rules of their language.
    Units(&'static TypeRules, Vec<Arc<typed::Unit>>),
}

impl RepositoryNames {
    /// Collects the names of all files; `files` has an entry for each file of the repository.
    pub fn new(language: Language, files: Vec<Names>) -> Self {
        let files = files.into_iter();
        match language.spec().resolution {
            Resolution::Modules => Self::Modules(
                files
                    .map(|names| match names {
                        Names::Module(names) => names,
                        _ => Arc::default(),
                    })
                    .collect(),
            ),
            Resolution::Types(rules) => Self::Units(
                rules,
                files
                    .map(|names| match names {
                        Names::Unit(unit) => unit,
                        _ => Arc::default(),
                    })
                    .collect(),
            ),
        }
    }
}

/// Function that returns the definitions of a chain of names.
pub type LookUp<'n> = dyn Fn(&[&str]) -> FoundDefinitions + 'n;

/// Definitions of a repository, ready for look-ups.
pub struct Definitions<'a>(Rules<'a>);

enum Rules<'a> {
    Imports(Imports<'a>),
    Types(Types<'a>),
}

impl<'a> Definitions<'a> {
    /// Prepares look-ups; `files` and `names` have an entry for each file of the repository.
    pub fn new(language: Language, files: &'a SourcePaths<'a>, names: &'a RepositoryNames) -> Self {
        Self(match names {
            RepositoryNames::Modules(names) => {
                Rules::Imports(Imports::new(files, language.spec(), names))
            }
            RepositoryNames::Units(rules, units) => {
                Rules::Types(Types::new(files, language, rules, units))
            }
        })
    }

    /// Returns the types of one file, each with the methods that it defines.
    pub fn types(&self, file: usize) -> Vec<(Definition, Vec<Rows>)> {
        match &self.0 {
            Rules::Imports(imports) => imports.types(file),
            Rules::Types(types) => types.types(file),
        }
    }

    /// Returns the calls of one file whose callee is defined in other files, ordered by their first row, each with its
    /// definitions.
    pub fn calls(&self, file: usize) -> Vec<(Rows, FoundDefinitions)> {
        match &self.0 {
            Rules::Imports(imports) => imports.calls(file),
            Rules::Types(types) => types.calls(file),
        }
    }

    /// Returns a function that looks up chains of names, such as `["a", "f"]` for `a.f`, and returns their definitions in other
    /// files. The chains occur before a row of a file, whose current names are `names`. A chain begins with `""` if something
    /// other than a name precedes it.
    pub fn within<'n>(&'n self, file: usize, names: &'n Names, row: u32) -> Box<LookUp<'n>> {
        match (&self.0, names) {
            (Rules::Imports(imports), Names::Module(names)) => Box::new(move |chain| {
                imports.resolve_chain(file, names, chain).into_iter().collect()
            }),
            (Rules::Types(types), Names::Unit(unit)) => Box::new(types.within(file, unit, row)),
            _ => Box::new(|_| FoundDefinitions::default()),
        }
    }
}
