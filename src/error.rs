//! Typed errors that say what is wrong, where (path, line, task), and the way out.
//!
//! The same type serves for what ends a stage (returned as `Err`) and for what a stage
//! steps over (collected in a `Vec<Error>`, printed, and counted in the exit code).

use std::path::{Path, PathBuf};

/// What was to be done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading, or listing a folder.
    Read,
    /// Writing, or creating a folder.
    Write,
}

/// Everything that can go wrong in the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("{}: cannot {action}: {reason}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Whether something was to be read or written.
        access: Access,
        /// What was tried, as a verb phrase: "read this file".
        action: &'static str,
        /// What the system answered. Part of the message, so no `source` that would be told a second time.
        reason: std::io::Error,
    },
    /// A source file that is left out of its repository.
    #[error("{}: left out: {reason}", path.display())]
    SourceFile {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A repository folder that cannot serve.
    #[error("{}: {reason}", path.display())]
    Repository {
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A record of a JSONL file that cannot be used.
    #[error("{}:{line}: {reason}", path.display())]
    Record {
        /// The JSONL file.
        path: PathBuf,
        /// 1-based line in it.
        line: usize,
        /// The field and what is wrong with it.
        reason: String,
    },
    /// A task that cannot be carried out.
    #[error("{}:{line}: task {task_id}: {reason}", path.display())]
    Task {
        /// The task file.
        path: PathBuf,
        /// 1-based line in it.
        line: usize,
        /// The task's id as the file gives it.
        task_id: String,
        /// What is wrong.
        reason: String,
    },
    /// An artifact that is not what its reader needs.
    #[error("{}: {reason}", path.display())]
    Artifact {
        /// The artifact.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// A server that did not answer with what it was asked for.
    #[error("{url}: {reason}")]
    Endpoint {
        /// What was asked; keys in it are masked.
        url: String,
        /// What came instead.
        reason: String,
        /// What to do about it.
        hint: String,
        /// The status of the answer; `None` where there was none.
        status: Option<u16>,
    },
    /// Vectors that a user computed and that cannot serve.
    #[error("{}{place}: {reason}", path.display())]
    Vectors {
        /// Their file.
        path: PathBuf,
        /// `:3` for its third line, ` row 7` for its seventh row, or nothing.
        place: String,
        /// What is wrong with them.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// A tokenizer that cannot be used.
    #[error("{}: {reason}", path.display())]
    Tokenizer {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A prompt style that cannot be used.
    #[error("{}:{line}: {reason}", path.display())]
    Style {
        /// Its file.
        path: PathBuf,
        /// 1-based line in it.
        line: usize,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A prompt whose parts do not fit its budget.
    #[error("{reason}")]
    Room {
        /// What takes how much.
        reason: String,
    },
    /// Tests that cannot be run.
    #[error("{reason}")]
    Execution {
        /// What stands in the way.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// A parameter outside its range.
    #[error("{name}: {reason}")]
    Parameter {
        /// Name of the parameter, as on the command line.
        name: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
    /// A name that is not in a closed set.
    #[error("unknown {what} '{given}'; known: {known}")]
    Unknown {
        /// What the name should name: "runner".
        what: &'static str,
        /// The name given.
        given: String,
        /// The known names, separated by commas.
        known: String,
    },
    /// Two sets of scores that cannot be compared.
    #[error("{reason}")]
    Comparison {
        /// What they lack.
        reason: String,
        /// What to do about it.
        hint: String,
    },
}

/// Result of the core's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// That something could not be read; `action` is a verb phrase: "open this file".
    pub(crate) fn reading(path: &Path, action: &'static str, reason: std::io::Error) -> Self {
        let (path, access) = (path.to_owned(), Access::Read);
        Self::Io {
            path,
            access,
            action,
            reason,
        }
    }

    /// That something could not be written.
    pub(crate) fn writing(path: &Path, action: &'static str, reason: std::io::Error) -> Self {
        let (path, access) = (path.to_owned(), Access::Write);
        Self::Io {
            path,
            access,
            action,
            reason,
        }
    }

    /// An artifact that cannot be used.
    pub(crate) fn artifact(
        path: &Path,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Artifact {
            path: path.to_owned(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// A parameter outside its range.
    pub(crate) fn parameter(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Parameter {
            name,
            reason: reason.into(),
        }
    }

    /// A name that is not among the known ones.
    pub(crate) fn unknown(
        what: &'static str,
        given: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        Self::Unknown {
            what,
            given: given.to_owned(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        }
    }

    pub(crate) fn record(path: &Path, line: usize, reason: impl Into<String>) -> Self {
        Self::Record {
            path: path.to_owned(),
            line,
            reason: reason.into(),
        }
    }

    /// The way out, where one is known; printed as `hint:` below the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { access, reason, .. } => {
                io_hint(reason.kind(), *access == Access::Write).map(Into::into)
            }
            Self::Artifact { hint, .. }
            | Self::Endpoint { hint, .. }
            | Self::Execution { hint, .. }
            | Self::Vectors { hint, .. }
            | Self::Comparison { hint, .. } => Some(hint.clone()),
            Self::Style { hint, .. } => hint.clone(),
            Self::Tokenizer { .. } => Some(
                "a tokenizer is p50k_base, words, or the path of a tokenizer.json as models on the Hugging Face hub carry it"
                    .into(),
            ),
            Self::Room { .. } => {
                Some("give the prompt more tokens, or its right and cross-file context fewer".into())
            }
            Self::SourceFile { .. } => {
                Some("mend or remove it and run this again; all other files are used".into())
            }
            Self::Record { .. } => {
                Some("correct the line or remove it; the other lines are read".into())
            }
            _ => None,
        }
    }
}

/// The way out of what the system answered to reading or writing.
fn io_hint(kind: std::io::ErrorKind, writing: bool) -> Option<&'static str> {
    use std::io::ErrorKind as Kind;
    Some(match kind {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            "make room, or choose another folder with --cache-dir or -o; nothing half-written was kept"
        }
        Kind::NotADirectory | Kind::AlreadyExists if writing => {
            "a file stands where a folder is needed; choose another --cache-dir or -o"
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::NotFound if writing => {
            "choose a folder that can be written with --cache-dir or -o"
        }
        Kind::PermissionDenied => "make it readable, or name another",
        Kind::NotFound => "check the path; relative ones start at the current folder",
        Kind::IsADirectory if !writing => "name a file in it",
        Kind::NotADirectory if !writing => "check the path: a file stands where a folder is needed",
        _ => return None,
    })
}

/// Implements `FromStr` for a type with `ALL` and `name()`; its error lists the known names.
macro_rules! parse_by_name {
    ($type:ty, $what:literal) => {
        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            fn from_str(name: &str) -> $crate::error::Result<Self> {
                let found = Self::ALL.into_iter().find(|value| value.name() == name);
                let unknown =
                    || $crate::error::Error::unknown($what, name, Self::ALL.map(Self::name));
                found.ok_or_else(unknown)
            }
        }
    };
}

pub(crate) use parse_by_name;
