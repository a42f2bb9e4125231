//! Which repositories data are made from (Repoformer, section 3.3): those whose files use one another.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use repoformer_text::language::syntax::{ParseExtent, ParseGap};
use repoformer_text::language::{Language, Resolution};
use repoformer_text::lines::Lines;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::repository::corpus::Repository;
use crate::repository::fragment::path_in_repository;
use crate::repository::parallel;
use crate::repository::record::{PythonFile, RawRepository};

/// The least that a repository must have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filter {
    /// Files of the language.
    pub files: usize,
    /// Lines of all of them.
    pub lines: usize,
    /// Modules that a file imports, on average.
    pub imports: f64,
    /// Those of them that are the repository's own.
    pub local_imports: f64,
}

impl Filter {
    /// The paper's, which differ for Python and the other languages.
    pub fn paper(language: Language) -> Self {
        match language.spec().resolution {
            Resolution::Modules => Self { files: 5, lines: 0, imports: 3.0, local_imports: 2.0 },
            Resolution::Types(_) => {
                Self { files: 20, lines: 20_000, imports: 0.0, local_imports: 0.0 }
            }
        }
    }

    /// None at all.
    pub fn none() -> Self {
        Self { files: 0, lines: 0, imports: 0.0, local_imports: 0.0 }
    }

    /// Whether it lets a repository through, or why not; no more files are parsed than it takes to know. Files whose imports are
    /// not known, since they cannot be parsed, go to `gaps`.
    ///
    /// # Errors
    /// As [`Facts::pass`].
    pub fn check(
        &self,
        repository: &Repository,
        language: Language,
        gaps: &mut Vec<ParseGap>,
    ) -> Result<(), Rejection> {
        if *self == Self::none() {
            return Ok(());
        }
        let all = repository.files.len();
        let few = Facts { files: all, ..Facts::default() };
        if let Err(Rejection::FewFiles) = few.pass(self) {
            return Err(Rejection::FewFiles);
        }
        let (facts, mut known) = (facts_of_part(repository, language), Facts::default());
        for start in (0..all).step_by(AT_ONCE) {
            let (some, unread) = facts(start..all.min(start + AT_ONCE));
            known = known.and(some);
            gaps.extend(unread);
            // What is not looked at yet can only add.
            let least = Facts { files: all, ..known };
            if least.pass(self).is_ok() {
                return Ok(());
            }
        }
        known.pass(self)
    }
}

/// Why a repository is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// It has too few files of the language.
    FewFiles,
    /// They have too few lines.
    FewLines,
    /// They import too little.
    FewImports,
    /// They import too little of one another.
    FewLocalImports,
    /// Nothing in it could be cut out.
    NoInstance,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FewFiles => "too few files",
            Self::FewLines => "too few lines",
            Self::FewImports => "too few imports a file",
            Self::FewLocalImports => "too few imports of its own files a file",
            Self::NoInstance => "nothing to cut out",
        })
    }
}

/// Numbers that the filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Facts {
    /// Files of the language.
    pub files: usize,
    /// Lines of all of them.
    pub lines: usize,
    /// Modules that they import, each once a file.
    pub imports: usize,
    /// Those of them that are the repository's own.
    pub local_imports: usize,
}

impl Facts {
    /// Facts of a repository; imports are read from Python files only.
    pub fn new(repository: &Repository, language: Language) -> Self {
        facts_of_part(repository, language)(0..repository.files.len()).0
    }

    /// Facts that a raw record states about its repository's files, as whoever made it counted: `imports` and `local_imports` (each
    /// once) and, where it is there, `line_count`. `None` where a file of the language does not say.
    pub fn from_record(raw: &RawRepository, language: Language) -> Option<Self> {
        let files = raw.files.iter();
        let mut of_language = files.filter(|file| language.holds(&file.content.path));
        of_language.try_fold(Self::default(), |known, file| {
            let names = |field: &str| {
                let list = file.metadata.get(field)?.as_array()?;
                let names: BTreeSet<&str> = list.iter().filter_map(Value::as_str).collect();
                Some(names.len())
            };
            let lines = file.metadata.get("line_count").and_then(Value::as_u64);
            Some(known.and(Self {
                files: 1,
                lines: lines.map_or_else(|| Lines::new(&file.content.text).count(), |n| n as usize),
                imports: names("imports")?,
                local_imports: names("local_imports")?,
            }))
        })
    }

    /// Whether a filter lets a repository through, or why not.
    ///
    /// # Errors
    /// The first reason, in the order of [`Rejection`].
    pub fn pass(&self, filter: &Filter) -> Result<(), Rejection> {
        let a_file = |number: usize| number as f64 / self.files.max(1) as f64;
        let checks = [
            (self.files >= filter.files, Rejection::FewFiles),
            (self.lines >= filter.lines, Rejection::FewLines),
            (a_file(self.imports) >= filter.imports, Rejection::FewImports),
            (a_file(self.local_imports) >= filter.local_imports, Rejection::FewLocalImports),
        ];
        match checks.into_iter().find(|(is_met, _)| !is_met) {
            Some((_, reason)) => Err(reason),
            None => Ok(()),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            lines: self.lines + other.lines,
            imports: self.imports + other.imports,
            local_imports: self.local_imports + other.local_imports,
        }
    }
}

/// Files that are parsed before it is asked whether that suffices.
const AT_ONCE: usize = 32;

/// Returns a function that computes the facts of a part of a repository's files, and names those that cannot be parsed.
fn facts_of_part(
    repository: &Repository,
    language: Language,
) -> impl Fn(Range<usize>) -> (Facts, Vec<ParseGap>) {
    let files = repository.files.iter();
    let paths: Vec<&str> = files.map(|file| path_in_repository(&file.path)).collect();
    let modules = PythonFile::modules(paths.iter().copied());
    move |part| {
        let of_each = parallel::map(part, |number| {
            let file = &repository.files[number];
            let (python, gap) = match language.spec().resolution {
                Resolution::Modules => match PythonFile::read_imports(&file.text) {
                    Some(python) => (python, None),
                    None => (
                        PythonFile::default(),
                        ParseGap::find(language, &file.path, ParseExtent::Not),
                    ),
                },
                Resolution::Types(_) => (PythonFile::default(), None),
            };
            let facts = Facts {
                files: 1,
                lines: file.lines().count(),
                imports: python.imports.len(),
                local_imports: python.local_imports(paths[number], &modules).len(),
            };
            (facts, gap)
        });
        let (of_each, gaps): (Vec<Facts>, Vec<Option<ParseGap>>) = of_each.into_iter().unzip();
        let facts = of_each.into_iter().fold(Facts::default(), Facts::and);
        (facts, gaps.into_iter().flatten().collect())
    }
}
