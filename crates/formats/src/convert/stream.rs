//! Conversion of a file record by record.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use repoformer_core::label::Label;
use repoformer_core::repository::record::Folders;
use repoformer_core::task::Format;
use repoformer_core::task::kind::RecordKind;
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Object, Reader, RecordAddress};
use repoformer_text::language::syntax::ParseGap;
use repoformer_text::message::Message;
use repoformer_text::parse_by_name;
use serde_json::Value;

/// Format to convert to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFormat {
    /// Records of a kind.
    Records(RecordKind),
    /// Folder for each repository.
    Folders,
    /// Task of lm-evaluation-harness: a folder of files.
    LmEval,
}

impl TargetFormat {
    /// Every target format.
    pub const ALL: [Self; 12] = [
        Self::Records(RecordKind::Task(Format::RepoEval)),
        Self::Records(RecordKind::Task(Format::Repoformer)),
        Self::Records(RecordKind::Task(Format::CrossCodeEval)),
        Self::Records(RecordKind::Task(Format::CrossCodeLongEval)),
        Self::Records(RecordKind::RepoCoderPrediction),
        Self::Records(RecordKind::CrossCodeEvalPrediction),
        Self::Records(RecordKind::BatchRequest),
        Self::Records(RecordKind::Label),
        Self::Records(RecordKind::Package),
        Self::Records(RecordKind::RawRepository),
        Self::Folders,
        Self::LmEval,
    ];

    /// Returns the name, which can be parsed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Records(kind) => kind.name(),
            Self::Folders => "repos",
            Self::LmEval => "lm-eval",
        }
    }
}

impl fmt::Display for TargetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

parse_by_name!(TargetFormat, "target format");

/// Result of a conversion.
#[derive(Debug, Default)]
pub struct Conversion {
    /// Number of records written; for folders, number of files.
    pub records: usize,
    /// Records that could not be converted, each with its line and reason.
    pub problems: Vec<Error>,
    /// Warnings about dropped or missing fields.
    pub warnings: Vec<Message>,
    /// Notes on decisions.
    pub notes: Vec<Message>,
    /// Files whose imports and functions are missing.
    pub gaps: Vec<ParseGap>,
}

/// Moves the folders of a file's repositories into place, unless no file was written.
pub(super) fn finish(
    folders: Folders,
    of: &Path,
    dir: &Path,
    conversion: &mut Conversion,
) -> Result<()> {
    let warnings =
        folders.describe_left_out().map(|left_out| format!("{}: {left_out}", of.display()));
    conversion.warnings.extend(warnings.map(Message::from));
    if conversion.records == 0 {
        return Ok(());
    }
    let placed = folders.finish()?;
    conversion.records = placed.files;
    let names = placed.same.iter().map(|name| dir.join(name));
    conversion.notes.extend(
        names
            .map(|place| format!("{}: already exists, with the same files", place.display()))
            .map(Message::from),
    );
    let reason = "already exists, with other files; remove it or choose another -o";
    let refused = placed.refused.iter().map(|name| dir.join(name));
    let refused = refused.map(|path| Error::Repository { path, reason: reason.into() });
    conversion.problems.extend(refused);
    Ok(())
}

/// Receiver of the records of a conversion, one after another.
pub type Emit<'a> = dyn FnMut(&Value) -> Result<()> + 'a;

/// Reads a file, passes each record to `convert`, and the resulting records to `emit`.
pub(super) fn each<Records: IntoIterator<Item = Value>>(
    path: &Path,
    emit: &mut Emit<'_>,
    mut convert: impl FnMut(RecordAddress, Object) -> Result<Records>,
) -> Result<Conversion> {
    let mut conversion = Conversion::default();
    let mut reader = Reader::open(path)?;
    while let Some((at, bytes)) = reader.next_record()? {
        match jsonl::parse(path, at.line, bytes).and_then(|object| convert(at, object)) {
            Ok(records) => {
                for record in records {
                    emit(&record)?;
                    conversion.records += 1;
                }
            }
            Err(problem) => keep(&mut conversion.problems, path, problem),
        }
    }
    Ok(conversion)
}

/// Returns the error for a record of a kind that cannot be converted to the target format.
pub(super) fn other_kind(path: &Path, line: usize, object: &Object, to: TargetFormat) -> Error {
    let reason = match RecordKind::from_record(object) {
        Some(kind) => format!("this is {}, which cannot become {to}", kind.record()),
        None => RecordKind::unknown(),
    };
    Error::record(path, line, reason)
}

/// Returns warnings for fields that have no place in a format, each with the number of records that contain it.
pub(super) fn dropped_field_warnings<N: fmt::Display>(
    left_out: BTreeMap<N, usize>,
    noun: &str,
    to: &str,
) -> impl Iterator<Item = String> {
    left_out.into_iter().map(move |(name, count)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("'{name}' of {count} {noun}{plural} is dropped: {to} has no such field")
    })
}

/// Rewrites labels; unknown fields are kept.
///
/// # Errors
/// The file cannot be read, or `emit` returns an error.
pub fn labels(path: &Path, emit: &mut Emit<'_>) -> Result<Conversion> {
    each(path, emit, |at, object| match RecordKind::from_record(&object) {
        Some(RecordKind::Label) => {
            Label::read(path, at.line, object).map(|label| Some(label.to_record()))
        }
        _ => {
            let to = TargetFormat::Records(RecordKind::Label);
            Err(other_kind(path, at.line, &object, to))
        }
    })
}
