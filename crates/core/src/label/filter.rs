//! Selection of repositories (Repoformer, section 3.3): those whose files use one another.

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

/// Minimum values that a repository must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filter {
    /// Number of files of the language.
    pub files: usize,
    /// Total number of lines of these files.
    pub lines: usize,
    /// Mean number of modules that a file imports.
    pub imports: f64,
    /// Mean number of the repository's own modules that a file imports.
    pub local_imports: f64,
}

impl Filter {
    /// Returns the paper's filter, which differs between Python and other languages.
    pub fn paper(language: Language) -> Self {
        match language.spec().resolution {
            Resolution::Modules => Self { files: 5, lines: 0, imports: 3.0, local_imports: 2.0 },
            Resolution::Types(_) => {
                Self { files: 20, lines: 20_000, imports: 0.0, local_imports: 0.0 }
            }
        }
    }

    /// Returns a filter without limits.
    pub fn none() -> Self {
        Self { files: 0, lines: 0, imports: 0.0, local_imports: 0.0 }
    }

    /// Checks that a repository passes. Parses only as many files as the answer needs. Files whose imports are unknown because
    /// they cannot be parsed are added to `gaps`.
    ///
    /// # Errors
    /// The reason for the rejection, as in [`Facts::pass`].
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
            // The files not yet parsed can only add to the counts.
            let least = Facts { files: all, ..known };
            if least.pass(self).is_ok() {
                return Ok(());
            }
        }
        known.pass(self)
    }
}

/// Reason why a repository is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// The repository has too few files of the language.
    FewFiles,
    /// Its files have too few lines.
    FewLines,
    /// Its files import too few modules.
    FewImports,
    /// Its files import too few of one another.
    FewLocalImports,
    /// The repository has nothing that could be cut out.
    NoInstance,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FewFiles => "too few files",
            Self::FewLines => "too few lines",
            Self::FewImports => "too few imports per file",
            Self::FewLocalImports => "too few imports of the repository's own files per file",
            Self::NoInstance => "no code suitable for an instance",
        })
    }
}

/// Counts that the filter compares with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Facts {
    /// Number of files of the language.
    pub files: usize,
    /// Total number of lines of these files.
    pub lines: usize,
    /// Number of modules that the files import; each module counts once per file.
    pub imports: usize,
    /// Number of these modules that belong to the repository.
    pub local_imports: usize,
}

impl Facts {
    /// Computes the facts of a repository. Imports are read from Python files only.
    pub fn new(repository: &Repository, language: Language) -> Self {
        facts_of_part(repository, language)(0..repository.files.len()).0
    }

    /// Returns the facts that a raw record states about its repository's files, as its author counted them: `imports` and
    /// `local_imports` (each counted once) and, if present, `line_count`. `None` if the record lacks them for a file of the
    /// language.
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

    /// Checks that a repository with these facts passes a filter.
    ///
    /// # Errors
    /// The first reason for a rejection, in the order of [`Rejection`].
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

/// Number of files parsed between two checks of whether they suffice.
const AT_ONCE: usize = 32;

/// Returns a function that computes the facts of a range of a repository's files, and lists the files that cannot be parsed.
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
