//! Records of one format → records of another.
//!
//! Records go through one by one: one that cannot be converted is stepped over and told of, and costs no other.

mod batch;
mod predictions;
mod repositories;
mod tasks;
#[cfg(test)]
mod tests;

pub use batch::requests;
pub use predictions::predictions;
pub use repositories::{folders_to_packages, folders_to_raw, records, to_folders};
pub(crate) use tasks::Files;
pub use tasks::tasks;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::selective::label::Label;
use crate::store::jsonl::{self, At, Object, Reader};
use crate::task::Format;
use crate::task::kind::Kind;

/// What can be converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Records of this kind.
    Records(Kind),
    /// A folder a repository.
    Folders,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 11] = [
        Self::Records(Kind::Task(Format::RepoEval)),
        Self::Records(Kind::Task(Format::Repoformer)),
        Self::Records(Kind::Task(Format::CrossCodeEval)),
        Self::Records(Kind::Task(Format::CrossCodeLongEval)),
        Self::Records(Kind::RepoCoderPrediction),
        Self::Records(Kind::CrossCodeEvalPrediction),
        Self::Records(Kind::BatchRequest),
        Self::Records(Kind::Label),
        Self::Records(Kind::Package),
        Self::Records(Kind::RawRepository),
        Self::Folders,
    ];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Records(kind) => kind.name(),
            Self::Folders => "repos",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|target| target.name() == name);
        named.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("'{name}' is nothing to convert to; there are {names}")
        })
    }
}

/// What a conversion did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many records were written; of folders, how many files.
    pub records: usize,
    /// What could not be converted, each with its line and reason.
    pub problems: Vec<Error>,
    /// What was left out or is lacking, in words.
    pub warnings: Vec<String>,
}

/// Takes the records of a conversion, one after another.
pub type Emit<'a> = dyn FnMut(&Value) -> Result<()> + 'a;

/// Reads a file, hands each record to `convert`, and what that gives to `emit`.
fn each<Records: IntoIterator<Item = Value>>(
    path: &Path,
    emit: &mut Emit<'_>,
    mut convert: impl FnMut(At, Object) -> Result<Records>,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut reader = Reader::open(path)?;
    while let Some((at, bytes)) = reader.next_record()? {
        match jsonl::parse(path, at.line, bytes).and_then(|object| convert(at, object)) {
            Ok(records) => {
                for record in records {
                    emit(&record)?;
                    outcome.records += 1;
                }
            }
            Err(problem) => outcome.problems.push(problem),
        }
    }
    Ok(outcome)
}

/// The error for a record of a kind that cannot become what was asked for.
fn other_kind(path: &Path, line: usize, object: &Object, to: Target) -> Error {
    let reason = match Kind::of(object) {
        Some(kind) => format!("this is {}, which cannot become {to}", kind.record()),
        None => format!("this is {}", Kind::unknown()),
    };
    Error::record(path, line, reason)
}

/// Rewrites labels; unknown fields are kept.
///
/// # Errors
/// The file cannot be read, or an error of `emit`.
pub fn labels(path: &Path, emit: &mut Emit<'_>) -> Result<Outcome> {
    each(path, emit, |at, object| match Kind::of(&object) {
        Some(Kind::Label) => {
            Label::read(path, at.line, object).map(|label| Some(label.to_record()))
        }
        _ => Err(other_kind(
            path,
            at.line,
            &object,
            Target::Records(Kind::Label),
        )),
    })
}

/// `1 task`, `3 tasks`.
fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
