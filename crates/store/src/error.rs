//! Typed errors that state the problem, the location (path, line, task), and the solution.
//!
//! A stage that cannot continue returns an error as `Err`; a stage that skips records [keeps](keep) their errors in a
//! `Vec<Error>`, which is printed and counted in the exit code. Messages and hints name settings and commands as
//! [choices](UserChoice); the binary adds the flags.

use std::fmt;
use std::path::{Path, PathBuf};

use repoformer_text::message::{Message, UserChoice};
use repoformer_text::names::UnknownName;
use repoformer_text::tokenize::model::{TokenizerError, TokenizerFault};
use repoformer_text::{message, tokenize};

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

    /// Returns the names of the modes whose requests have this part.
    fn modes(self) -> &'static str {
        match self {
            Self::Retrieval | Self::Generation => "a mode that retrieves",
            Self::BaseGeneration => "mode none",
        }
    }
}

/// Input for labels that is missing or wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelInput {
    /// Samples of a task, in addition to the completion that is judged.
    Samples,
    /// Probabilities of targets.
    Likelihoods,
    /// Unit-test results of these predictions.
    TestResults,
    /// Name of the predictions whose results are read.
    TestedName,
    /// The same model for both predictions.
    Model,
}

impl LabelInput {
    fn hint(self) -> Message {
        match self {
            Self::Samples => message![
                "pass one completion of each task here, and the other samples, for the entropy, as a ",
                UserChoice::SamplesFile
            ],
            Self::Likelihoods => message!["write ", UserChoice::TargetLikelihoods],
            Self::TestResults => message![
                "run the tests of these predictions, for their ",
                UserChoice::UnitTestResults
            ],
            Self::TestedName => {
                message!["pass the ", UserChoice::NameInResults, " that its records use"]
            }
            Self::Model => message![
                "a label compares completions of one model: complete both with the same model, or pass the ",
                UserChoice::ModelName,
                " if a file lacks it"
            ],
        }
    }
}

/// Everything that can go wrong in the core.
#[derive(Debug)]
pub enum Error {
    /// Reading or writing failed.
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reading or writing.
        access: Access,
        /// Attempted action, as a verb phrase: "read this file".
        action: &'static str,
        /// Error of the system. It is part of the message and therefore not a `source`, which would be printed a second time.
        reason: std::io::Error,
    },
    /// A source file that is left out of its repository.
    SourceFile {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it is left out.
        reason: Message,
    },
    /// A repository folder that cannot be used.
    Repository {
        /// Path of the folder.
        path: PathBuf,
        /// Reason why it cannot be used.
        reason: Message,
    },
    /// A file in a format that the program does not read.
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Its format.
        reason: String,
        /// How to make it readable.
        hint: Message,
    },
    /// A record of a JSONL file that cannot be used.
    Record {
        /// Path of the JSONL file.
        path: PathBuf,
        /// 1-based line in the file.
        line: usize,
        /// Field, and the problem with it.
        reason: Message,
        /// How to resolve it; `None` for a line that can only be corrected or removed.
        hint: Option<Message>,
    },
    /// Further problems of a file, beyond those [kept](keep).
    Further {
        /// Path of the file.
        path: PathBuf,
        /// Number of further problems.
        count: usize,
    },
    /// A file whose records belong to tasks that are not in the task file.
    OtherTasks {
        /// Path of the file.
        path: PathBuf,
        /// 1-based line of the first record of another task.
        line: usize,
        /// Id of the task that the record names.
        task_id: String,
        /// Path of the task file.
        tasks: PathBuf,
        /// Difference between the record and the task.
        difference: &'static str,
        /// Number of such records.
        count: usize,
    },
    /// A file without a prediction for any of the tasks.
    NoPrediction {
        /// Path of the file.
        path: PathBuf,
        /// Path of the task file.
        tasks: PathBuf,
    },
    /// A task that cannot be processed.
    Task {
        /// Path of the task file.
        path: PathBuf,
        /// 1-based line in the task file.
        line: usize,
        /// Id of the task as the file gives it.
        task_id: String,
        /// Description of the problem.
        reason: Message,
    },
    /// An artifact that is damaged or out of date.
    Artifact {
        /// Path of the artifact.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
        /// How to resolve it.
        hint: Message,
    },
    /// A file from which labels cannot be computed.
    Labelling {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
        /// Input that resolves it.
        needed: LabelInput,
    },
    /// A file of measured times that lacks a time for one part of requests.
    NoTime {
        /// Path of the file.
        path: PathBuf,
        /// Part of requests without a time.
        part: RequestPart,
    },
    /// A server that did not answer as required.
    Endpoint {
        /// URL of the request; keys in it are masked.
        url: String,
        /// Description of the problem, or the message received instead.
        reason: String,
        /// How to resolve it.
        hint: Message,
        /// HTTP status of the response; `None` if there was no response.
        status: Option<u16>,
    },
    /// A token whose number in the vocabulary the model's server does not return.
    UnknownToken {
        /// URL of the request; keys in it are masked.
        url: String,
        /// Token, and the server's message.
        reason: String,
    },
    /// A server's answer that reports an error of the server or of the model instead of a result.
    FailedAnswer {
        /// URL of the request; keys in it are masked.
        url: String,
        /// Description of the problem, in the server's words if available.
        reason: String,
        /// How to resolve it.
        hint: Message,
    },
    /// Vectors computed by the user that cannot be used.
    Vectors {
        /// Their file.
        path: PathBuf,
        /// `:3` for line 3, ` row 7` for row 7, or empty.
        place: String,
        /// Description of the problem.
        reason: Message,
        /// How to resolve it.
        hint: Message,
    },
    /// A tokenizer that cannot be used.
    Tokenizer {
        /// Its file.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// A prompt style that cannot be used.
    Style {
        /// Its file.
        path: PathBuf,
        /// 1-based line in the style's file.
        line: usize,
        /// Description of the problem.
        reason: String,
        /// How to resolve it.
        hint: Option<Message>,
    },
    /// A prompt whose parts do not fit its budget.
    Room {
        /// Number of tokens of each part.
        reason: String,
    },
    /// Tests that cannot be run.
    Execution {
        /// Reason why they cannot be run.
        reason: String,
        /// How to resolve it.
        hint: Message,
    },
    /// A parameter outside its range.
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Problem with its value.
        reason: Message,
    },
    /// Settings or inputs that cannot be used, or cannot be combined.
    Refused {
        /// Reason why they cannot be used.
        reason: Message,
        /// How to resolve it.
        hint: Message,
    },
    /// A name that is not in a closed set.
    Unknown(UnknownName),
    /// Two sets of scores that cannot be compared.
    Comparison {
        /// Reason why they cannot be compared.
        reason: String,
        /// How to resolve it.
        hint: Message,
    },
}

/// Describes the number of similar records after the first.
fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => " (and 1 more record)".into(),
        n => format!(" (and {} more records)", n - 1),
    }
}

/// Number of problems of a file that are kept with their text, so that a file full of invalid lines does not fill the memory.
pub const KEPT: usize = 1000;

/// Adds a problem of a file to a list. The problem itself is added if the list has fewer than [`KEPT`]; otherwise it is added
/// to the number of [further ones](Error::Further).
pub fn keep(problems: &mut Vec<Error>, path: &Path, problem: Error) {
    let (more, is_full) = (problem.count(), problems.len() >= KEPT);
    match problems.last_mut() {
        Some(Error::Further { path: of, count }) if of == path => *count += more,
        _ if !is_full => problems.push(problem),
        _ => problems.push(Error::Further { path: path.to_owned(), count: more }),
    }
}

/// Returns the number of problems in a list, including the problems that are only counted.
pub fn count(problems: &[Error]) -> usize {
    problems.iter().map(Error::count).sum()
}

/// Result of a function in these crates.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the error of a failed read; `action` is a verb phrase: "open this file".
    pub fn reading(path: &Path, action: &'static str, reason: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), access: Access::Read, action, reason }
    }

    /// Returns the error of a failed write; `action` is a verb phrase.
    pub fn writing(path: &Path, action: &'static str, reason: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), access: Access::Write, action, reason }
    }

    /// Returns the error for an artifact that cannot be used.
    pub fn artifact(path: &Path, reason: impl Into<String>, hint: impl Into<Message>) -> Self {
        Self::Artifact { path: path.to_owned(), reason: reason.into(), hint: hint.into() }
    }

    /// Returns the error for a file from which labels cannot be computed.
    pub fn labelling(path: &Path, reason: impl Into<String>, needed: LabelInput) -> Self {
        Self::Labelling { path: path.to_owned(), reason: reason.into(), needed }
    }

    /// Returns the error for an artifact whose content was changed.
    pub fn from_damage(path: &Path, reason: impl Into<String>) -> Self {
        let hint = "run the command that writes it again to rebuild it";
        Self::artifact(path, format!("damaged: {}", reason.into()), hint)
    }

    /// Returns the error for vectors that cannot be used, at a position in their file.
    pub fn vectors(
        path: &Path,
        place: &str,
        reason: impl Into<Message>,
        hint: impl Into<Message>,
    ) -> Self {
        Self::Vectors {
            path: path.to_owned(),
            place: place.into(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// Returns the error for tests that cannot be run.
    pub fn execution(reason: impl Into<String>, hint: impl Into<Message>) -> Self {
        Self::Execution { reason: reason.into(), hint: hint.into() }
    }

    /// Returns the error for a parameter outside its range.
    pub fn parameter(name: &'static str, reason: impl Into<Message>) -> Self {
        Self::Parameter { name, reason: reason.into() }
    }

    /// Returns the error for settings or inputs that cannot be used, or cannot be combined.
    pub fn from_refusal(reason: impl Into<Message>, hint: impl Into<Message>) -> Self {
        Self::Refused { reason: reason.into(), hint: hint.into() }
    }

    /// Returns the error for a name that is not among the known ones.
    pub fn unknown(
        what: &'static str,
        given: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        UnknownName::new(what, given, known).into()
    }

    /// Returns the error for a record that cannot be used, at a 1-based line of its file.
    pub fn record(path: &Path, line: usize, reason: impl Into<Message>) -> Self {
        Self::Record { path: path.to_owned(), line, reason: reason.into(), hint: None }
    }

    /// Returns the number of problems that this error represents.
    pub fn count(&self) -> usize {
        match self {
            Self::Further { count, .. } => *count,
            _ => 1,
        }
    }

    /// Describes the problem and its location. `Display` prints this message.
    pub fn message(&self) -> Message {
        match self {
            Self::Io { path, action, reason, .. } => at(path, format!("cannot {action}: {reason}")),
            Self::SourceFile { path, reason } => at(path, message!["left out: ", reason]),
            Self::Repository { path, reason } => at(path, reason),
            Self::Form { path, reason, .. }
            | Self::Artifact { path, reason, .. }
            | Self::Labelling { path, reason, .. }
            | Self::Tokenizer { path, reason } => at(path, reason),
            Self::Record { path, line, reason, .. } => at_line(path, *line, reason),
            Self::Style { path, line, reason, .. } => at_line(path, *line, reason),
            Self::Further { path, count } => {
                at(path, format!("{count} more problems, which are not listed"))
            }
            Self::OtherTasks { path, line, task_id, tasks, difference, count } => at_line(
                path,
                *line,
                format!(
                    "belongs to a task other than {task_id:?} of {}: {difference}{}",
                    tasks.display(),
                    others(*count)
                ),
            ),
            Self::NoPrediction { path, tasks } => at(
                path,
                format!(
                    "contains no predictions for the tasks of {}, so there is nothing to score",
                    tasks.display()
                ),
            ),
            Self::Task { path, line, task_id, reason } => {
                at_line(path, *line, message![format!("task {task_id}: "), reason])
            }
            Self::NoTime { path, part } => at(path, format!("has no {}", part.field())),
            Self::Endpoint { url, reason, .. }
            | Self::UnknownToken { url, reason }
            | Self::FailedAnswer { url, reason, .. } => format!("{url}: {reason}").into(),
            Self::Vectors { path, place, reason, .. } => {
                message![format!("{}{place}: ", path.display()), reason]
            }
            Self::Room { reason }
            | Self::Execution { reason, .. }
            | Self::Comparison { reason, .. } => reason.into(),
            Self::Refused { reason, .. } => reason.clone(),
            Self::Parameter { name, reason } => message![format!("{name}: "), reason],
            Self::Unknown(name) => name.to_string().into(),
        }
    }

    /// Describes how to resolve the error, if known; printed as `hint:` below the error.
    pub fn hint(&self) -> Option<Message> {
        match self {
            Self::Io { access, reason, .. } => io_hint(reason.kind(), *access == Access::Write),
            Self::Artifact { hint, .. }
            | Self::Form { hint, .. }
            | Self::Endpoint { hint, .. }
            | Self::FailedAnswer { hint, .. }
            | Self::Execution { hint, .. }
            | Self::Refused { hint, .. }
            | Self::Vectors { hint, .. }
            | Self::Comparison { hint, .. } => Some(hint.clone()),
            Self::Labelling { needed, .. } => Some(needed.hint()),
            Self::NoTime { part, .. } => {
                let way = match part {
                    RequestPart::Retrieval => {
                        message!["pass the ", UserChoice::RetrievalTime, " instead of this file"]
                    }
                    RequestPart::Generation | RequestPart::BaseGeneration => {
                        message!["add the ", UserChoice::GenerationTime]
                    }
                };
                Some(message![format!("pass the latencies of {}, or ", part.modes()), way])
            }
            Self::Style { hint, .. } => hint.clone(),
            Self::OtherTasks { .. } => Some(message![
                "give the ",
                UserChoice::TasksFile,
                " that this file was made for; if these are the right tasks, remove targets and \
                 prompts from the file's records"
            ]),
            Self::NoPrediction { .. } => {
                Some(message!["give the ", UserChoice::TasksFile, " that the predictions were made for"])
            }
            Self::Unknown(name) => name.hint().map(Into::into),
            Self::UnknownToken { .. } => Some(message![
                "give its ",
                UserChoice::TokenNumber,
                ", which is in the model's tokenizer.json"
            ]),
            Self::Tokenizer { .. } => Some(tokenize::model::HINT.into()),
            Self::Room { .. } => Some(
                "raise the prompt's token budget, or lower the budgets of the right and cross-file \
                 context".into(),
            ),
            Self::SourceFile { .. } => {
                Some("repair or remove the file and run the command again; all other files are used".into())
            }
            Self::Record { hint, .. } => Some(hint.clone().unwrap_or_else(|| {
                "correct or remove the line; the other lines are used".into()
            })),
            Self::Repository { .. }
            | Self::Further { .. }
            | Self::Task { .. }
            | Self::Parameter { .. } => None,
        }
    }
}

/// Returns a sentence about a file or a folder.
fn at(path: &Path, reason: impl Into<Message>) -> Message {
    message![format!("{}: ", path.display()), reason]
}

/// Returns a sentence about a line of a file.
fn at_line(path: &Path, line: usize, reason: impl Into<Message>) -> Message {
    message![format!("{}:{line}: ", path.display()), reason]
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message().fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<UnknownName> for Error {
    fn from(name: UnknownName) -> Self {
        Self::Unknown(name)
    }
}

impl From<TokenizerError> for Error {
    fn from(TokenizerError { path, fault }: TokenizerError) -> Self {
        match fault {
            TokenizerFault::NotRead(reason) => Self::reading(&path, "read this tokenizer", reason),
            fault => Self::Tokenizer { path, reason: fault.to_string() },
        }
    }
}

/// Returns a hint for a system error while reading or writing.
fn io_hint(kind: std::io::ErrorKind, writing: bool) -> Option<Message> {
    use std::io::ErrorKind as Kind;
    let elsewhere =
        || message!["choose another ", UserChoice::CacheFolder, " or ", UserChoice::OutputPath];
    Some(match kind {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            message!["free some space, or ", elsewhere(), "; no partial file was kept"]
        }
        Kind::NotADirectory | Kind::AlreadyExists if writing => {
            message!["part of the path is a file, not a folder; ", elsewhere()]
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::NotFound if writing => {
            message!["choose a writable ", UserChoice::CacheFolder, " or ", UserChoice::OutputPath]
        }
        Kind::PermissionDenied => "make the file readable, or choose another file".into(),
        Kind::NotFound => "check the path; relative paths start at the current folder".into(),
        Kind::IsADirectory if !writing => "name a file in it".into(),
        Kind::NotADirectory if !writing => {
            "check the path: part of it is a file, not a folder".into()
        }
        _ => return None,
    })
}
