//! Typed errors that say what is wrong, where (path, line, task), and the way out.
//!
//! A stage that cannot continue returns one as `Err`; a stage that skips a record collects them in a `Vec<Error>`, which is
//! printed and counted in the exit code. Hints speak of data and settings in words; the binary adds the flags.

use std::path::{Path, PathBuf};

/// Kind of access to a file that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading, or listing a folder.
    Read,
    /// Writing, or creating a folder.
    Write,
}

/// Part of a request whose time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// Retrieval.
    Retrieval,
    /// Completion with retrieved fragments.
    Generation,
    /// Completion without retrieved fragments.
    BaseGeneration,
}

impl RequestPart {
    /// Returns the field that holds its time in a record.
    pub fn field(self) -> &'static str {
        match self {
            Self::Retrieval => "retrieval_ms",
            Self::Generation | Self::BaseGeneration => "generation_ms",
        }
    }

    /// Returns the modes whose requests have the part.
    fn modes(self) -> &'static str {
        match self {
            Self::Retrieval | Self::Generation => "a mode that retrieves",
            Self::BaseGeneration => "mode none",
        }
    }
}

/// Input of a labelling that is missing, or not the one needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelInput {
    /// Samples of a task, apart from the completion that is judged.
    Samples,
    /// Probabilities of targets.
    Likelihoods,
    /// Results of the tests of these predictions.
    TestResults,
    /// The name of the predictions whose results are read.
    TestedName,
    /// One model of both predictions.
    Model,
}

impl LabelInput {
    fn hint(self) -> &'static str {
        match self {
            Self::Samples => {
                "give one completion of each task here, and the samples, for their entropy, in a file of their own"
            }
            Self::Likelihoods => "`complete` writes them as likelihoods",
            Self::TestResults => "run the tests of these predictions",
            Self::TestedName => "name them as its records do",
            Self::Model => {
                "a label compares completions of one model: make both with the same, or name the model if a file does not"
            }
        }
    }
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
        /// Reading or writing.
        access: Access,
        /// Attempted action, as a verb phrase: "read this file".
        action: &'static str,
        /// The system's error. Part of the message, and therefore not a `source`, which would be printed a second time.
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
    /// A repository folder that cannot be used.
    #[error("{}: {reason}", path.display())]
    Repository {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file in a form that is not read.
    #[error("{}: {reason}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Its form.
        reason: String,
        /// How to make it readable.
        hint: String,
    },
    /// A record of a JSONL file that cannot be used.
    #[error("{}:{line}: {reason}", path.display())]
    Record {
        /// The JSONL file.
        path: PathBuf,
        /// 1-based line in it.
        line: usize,
        /// The field, and what is wrong with it.
        reason: String,
    },
    /// A file whose records belong to other tasks than the task file's.
    #[error("{}:{line}: made for another task than {task_id:?} of {}: {difference}{}", path.display(), tasks.display(), others(*count))]
    OtherTasks {
        /// The file.
        path: PathBuf,
        /// 1-based line of its first record of another task.
        line: usize,
        /// The task that the record names.
        task_id: String,
        /// The task file.
        tasks: PathBuf,
        /// The difference between the record and the task.
        difference: &'static str,
        /// Number of such records.
        count: usize,
    },
    /// A file without a prediction of any of the tasks.
    #[error("{}: holds no prediction of any task of {}, so there is nothing to score", path.display(), tasks.display())]
    NoPrediction {
        /// The file.
        path: PathBuf,
        /// The task file.
        tasks: PathBuf,
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
        /// The problem.
        reason: String,
    },
    /// An artifact that is damaged or is not the one needed.
    #[error("{}: {reason}", path.display())]
    Artifact {
        /// The artifact.
        path: PathBuf,
        /// The problem.
        reason: String,
        /// How to resolve it.
        hint: String,
    },
    /// A file that labels cannot be made from.
    #[error("{}: {reason}", path.display())]
    Labelling {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
        /// The input that resolves it.
        needed: LabelInput,
    },
    /// A file of measured times, none of which is of a part of requests.
    #[error("{}: has no {}", path.display(), part.field())]
    NoTime {
        /// The file.
        path: PathBuf,
        /// The part.
        part: RequestPart,
    },
    /// A server that did not answer as needed.
    #[error("{url}: {reason}")]
    Endpoint {
        /// The request's URL; keys in it are masked.
        url: String,
        /// The problem, or the message received instead.
        reason: String,
        /// How to resolve it.
        hint: String,
        /// HTTP status of the response; `None` if there was no response.
        status: Option<u16>,
    },
    /// A token whose number in the vocabulary the model's server does not give.
    #[error("{url}: {reason}")]
    UnknownToken {
        /// The request's URL; keys in it are masked.
        url: String,
        /// The token, and the server's message.
        reason: String,
    },
    /// A server's answer that reports a failure, of the server or of the model, instead of a result.
    #[error("{url}: {reason}")]
    FailedAnswer {
        /// The request's URL; keys in it are masked.
        url: String,
        /// The problem, in the server's words if it has any.
        reason: String,
        /// How to resolve it.
        hint: String,
    },
    /// Vectors computed by the user that cannot be used.
    #[error("{}{place}: {reason}", path.display())]
    Vectors {
        /// Their file.
        path: PathBuf,
        /// `:3` for line 3, ` row 7` for row 7, or empty.
        place: String,
        /// The problem.
        reason: String,
        /// How to resolve it.
        hint: String,
    },
    /// A tokenizer that cannot be used.
    #[error("{}: {reason}", path.display())]
    Tokenizer {
        /// Its file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A prompt style that cannot be used.
    #[error("{}:{line}: {reason}", path.display())]
    Style {
        /// Its file.
        path: PathBuf,
        /// 1-based line in it.
        line: usize,
        /// The problem.
        reason: String,
        /// How to resolve it.
        hint: Option<String>,
    },
    /// A prompt whose parts do not fit its budget.
    #[error("{reason}")]
    Room {
        /// The number of tokens of each part.
        reason: String,
    },
    /// Tests that cannot be run.
    #[error("{reason}")]
    Execution {
        /// Why not.
        reason: String,
        /// How to resolve it.
        hint: String,
    },
    /// A parameter outside its range.
    #[error("{name}: {reason}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// The problem with its value.
        reason: String,
    },
    /// A name that is not in a closed set.
    #[error("unknown {what} '{given}'; known: {known}")]
    Unknown {
        /// Kind of thing named, such as "runner".
        what: &'static str,
        /// The name given.
        given: String,
        /// The known names, separated by commas.
        known: String,
    },
    /// Two sets of scores that cannot be compared.
    #[error("{reason}")]
    Comparison {
        /// Why not.
        reason: String,
        /// How to resolve it.
        hint: String,
    },
}

/// Number of such records after the first.
fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => " (and 1 more record)".into(),
        n => format!(" (and {} more records)", n - 1),
    }
}

/// Result of the core's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failed read; `action` is a verb phrase: "open this file".
    pub(crate) fn reading(path: &Path, action: &'static str, reason: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), access: Access::Read, action, reason }
    }

    /// A failed write; `action` is a verb phrase.
    pub(crate) fn writing(path: &Path, action: &'static str, reason: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), access: Access::Write, action, reason }
    }

    /// An artifact that cannot be used.
    pub(crate) fn artifact(
        path: &Path,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Artifact { path: path.to_owned(), reason: reason.into(), hint: hint.into() }
    }

    /// A file that labels cannot be made from.
    pub(crate) fn labelling(path: &Path, reason: impl Into<String>, needed: LabelInput) -> Self {
        Self::Labelling { path: path.to_owned(), reason: reason.into(), needed }
    }

    /// An artifact whose content is not as it was written.
    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        let hint = "run the command that writes it again; it is rebuilt";
        Self::artifact(path, format!("damaged: {}", reason.into()), hint)
    }

    /// Vectors that cannot be used, at a place of their file.
    pub(crate) fn vectors(path: &Path, place: &str, reason: impl Into<String>, hint: &str) -> Self {
        Self::Vectors {
            path: path.to_owned(),
            place: place.into(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// Tests that cannot be run.
    pub(crate) fn execution(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Execution { reason: reason.into(), hint: hint.into() }
    }

    /// A parameter outside its range.
    pub(crate) fn parameter(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Parameter { name, reason: reason.into() }
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

    /// A record that cannot be used, at a 1-based line of its file.
    pub(crate) fn record(path: &Path, line: usize, reason: impl Into<String>) -> Self {
        Self::Record { path: path.to_owned(), line, reason: reason.into() }
    }

    /// How to resolve the error, if that is known; printed as `hint:` below it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { access, reason, .. } => {
                io_hint(reason.kind(), *access == Access::Write).map(Into::into)
            }
            Self::Artifact { hint, .. }
            | Self::Form { hint, .. }
            | Self::Endpoint { hint, .. }
            | Self::FailedAnswer { hint, .. }
            | Self::Execution { hint, .. }
            | Self::Vectors { hint, .. }
            | Self::Comparison { hint, .. } => Some(hint.clone()),
            Self::Labelling { needed, .. } => Some(needed.hint().into()),
            Self::NoTime { part, .. } => Some(format!("take the latencies of {}", part.modes())),
            Self::Style { hint, .. } => hint.clone(),
            Self::OtherTasks { .. } => {
                Some("give the tasks file that it was made for; if its tasks are these, leave targets and prompts out of its records".into())
            }
            Self::NoPrediction { .. } => Some("give the tasks file that they were made for".into()),
            Self::Unknown { given, known, .. } => did_you_mean(given, known.split(", ")),
            Self::UnknownToken { .. } => {
                Some("give its token number, which is in the model's tokenizer.json".into())
            }
            Self::Tokenizer { .. } => Some(
                "a tokenizer is p50k_base, words, or the path of a tokenizer.json as models on the Hugging Face hub carry it"
                    .into(),
            ),
            Self::Room { .. } => {
                Some("give the prompt more tokens, or its right and cross-file context fewer".into())
            }
            Self::SourceFile { .. } => {
                Some("repair or remove it and run this again; all other files are used".into())
            }
            Self::Record { .. } => {
                Some("correct the line or remove it; the other lines are read".into())
            }
            _ => None,
        }
    }
}

/// The known name that differs least from a given one: letters that are added, left out, changed or swapped count one each,
/// and case does not count.
///
/// ```
/// use repoformer::error::nearest;
///
/// assert_eq!(nearest("rg2", ["none", "rg1", "gt"]), Some("rg1"));
/// assert_eq!(nearest("BM25", ["jaccard", "bm25"]), Some("bm25"));
/// ```
pub fn nearest<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    known.into_iter().min_by_key(|name| distance(given, name))
}

fn distance(given: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(&given.to_lowercase(), &name.to_lowercase())
}

/// The known name that a given one was probably meant to be: one that differs in few letters, or that it begins.
///
/// ```
/// use repoformer::error::meant;
///
/// let profiles = ["demo", "repocoder", "repoformer-paper"];
/// assert_eq!(meant("repocodre", profiles), Some("repocoder"));
/// assert_eq!(meant("repoformer", profiles), Some("repoformer-paper"));
/// assert_eq!(meant("mine", profiles), None);
/// ```
pub fn meant<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    all_meant(given, known).into_iter().next()
}

/// The known names that a given one was probably meant to be, the likeliest first: a second one where it is as near, or is
/// begun by the given name and the first is not.
fn all_meant<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let letters = |text: &str| text.chars().count();
    let is_near = |name: &str| {
        let most = letters(given).max(letters(name));
        distance(given, name) <= (most / 3).max(1) && letters(given).min(letters(name)) > 1
    };
    let begins = |name: &str| letters(given) > 2 && name.starts_with(given);
    let rank = |name: &&str| {
        let distance = distance(given, name);
        (distance > 1 && !begins(name), distance)
    };
    let mut found: Vec<&str> =
        known.into_iter().filter(|name| is_near(name) || begins(name)).collect();
    found.sort_by_key(rank);
    found.dedup();
    if let [first, rest @ ..] = &found[..] {
        let is_second = |name: &&&str| rank(name) == rank(first) || begins(name) && !begins(first);
        let second = rest.iter().find(is_second).copied();
        found = std::iter::once(*first).chain(second).collect();
    }
    found
}

/// Hint at the known names that were probably [meant].
///
/// ```
/// use repoformer::error::did_you_mean;
///
/// let flags = ["--repo", "--report", "--repos-dir"];
/// assert_eq!(did_you_mean("--repot", flags).unwrap(), "did you mean '--repo' or '--report'?");
/// assert_eq!(did_you_mean("--repos", flags).unwrap(), "did you mean '--repo' or '--repos-dir'?");
/// assert_eq!(did_you_mean("--reportt", flags).unwrap(), "did you mean '--report'?");
/// ```
pub fn did_you_mean<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let names = all_meant(given, known);
    (!names.is_empty()).then(|| format!("did you mean '{}'?", names.join("' or '")))
}

/// Hint for a system error while reading or writing.
fn io_hint(kind: std::io::ErrorKind, writing: bool) -> Option<&'static str> {
    use std::io::ErrorKind as Kind;
    Some(match kind {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            "free some space, or choose another cache folder or output path; no partial file was kept"
        }
        Kind::NotADirectory | Kind::AlreadyExists if writing => {
            "a file is in the place of a folder; choose another cache folder or output path"
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::NotFound if writing => {
            "choose a writable cache folder or output path"
        }
        Kind::PermissionDenied => "make it readable, or name another",
        Kind::NotFound => "check the path; relative ones start at the current folder",
        Kind::IsADirectory if !writing => "name a file in it",
        Kind::NotADirectory if !writing => "check the path: a file is in the place of a folder",
        _ => return None,
    })
}

/// Names the values of an enumeration: `ALL`, `name()`, `Display` and `FromStr`, whose error lists the known names. Aliases
/// follow `also`.
macro_rules! named {
    (
        $type:ident, $what:literal: $($value:ident = $name:literal),+ $(,)?
        $(; also $($alias:literal => $of:ident),+ $(,)?)?
    ) => {
        impl $type {
            /// Every value.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The value's name in settings and files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        $crate::error::parse_by_name!($type, $what $($(, $alias => $of)+)?);
    };
}

pub(crate) use named;

/// Implements `FromStr` for a type with `ALL` and `name()`, and other names for some values; its error lists the known names.
macro_rules! parse_by_name {
    ($type:ty, $what:literal $(, $alias:literal => $value:ident)* $(,)?) => {
        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            fn from_str(name: &str) -> $crate::error::Result<Self> {
                $(if name == $alias {
                    return Ok(Self::$value);
                })*
                let found = Self::ALL.into_iter().find(|value| value.name() == name);
                let unknown =
                    || $crate::error::Error::unknown($what, name, Self::ALL.map(Self::name));
                found.ok_or_else(unknown)
            }
        }
    };
}

pub(crate) use parse_by_name;
