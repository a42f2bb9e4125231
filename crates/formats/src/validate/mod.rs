//! Validation of record files: counts every problem, and reports the first ones of each severity with their lines.
//!
//! A finding is an *error* if the record cannot be used, or would be used incorrectly: invalid JSON, a field that is missing or
//! has the wrong type, a path that leads out of the repository, lines out of order, a target without text, records of several
//! kinds in one file, ids that must be unique for a join, and, with the repositories, a missing file or a file with another
//! text. It is a *note* if the record is valid in its format but may be surprising: repeated task ids, `lineno`, `owner--name`,
//! empty contexts, unknown fields, a byte-order mark. An error here is also an error for the commands that read the record:
//! both use the fields of [`task::fields`](repoformer_core::task), and the same readers.

mod function_level;
mod records;
mod tasks;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use function_level::FunctionLevel;
use repoformer_core::policy::LabelScales;
use repoformer_core::task::TaskFiles;
use repoformer_core::task::kind::RecordKind;
use repoformer_models::endpoint::{MASK, holds_key};
use repoformer_store::error::{Error, KEPT, Result};
use repoformer_store::jsonl::{self, Object, Reader, RecordAddress};
use repoformer_store::manifest::is_part;
use repoformer_store::schema;
use repoformer_text::message;
use repoformer_text::message::Message;
use serde_json::{Value, json};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The record cannot be used in its present form.
    Error,
    /// The record is valid, but has a notable property.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Note => "note",
        })
    }
}

/// Problem or notable property of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// 1-based line.
    pub line: usize,
    /// Id of the record's task, if it has one.
    pub task_id: Option<String>,
    /// Severity of the finding.
    pub severity: Severity,
    /// Description, with the field.
    pub reason: Message,
}

/// Result of validating a file.
#[derive(Debug)]
pub struct Validation {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of records of each kind, in the order of the file. Records that are not JSON objects, or of an unknown kind, are
    /// not included.
    pub kinds: Vec<(RecordKind, usize)>,
    /// Total number of records.
    pub records: usize,
    /// Findings, by line: the first ones of each severity, up to [`KEPT`].
    pub findings: Vec<Finding>,
    /// Number of all errors, and of all notes.
    counts: [usize; 2],
}

impl Validation {
    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.counts[severity as usize]
    }

    /// Returns the number of findings of a severity that are only counted.
    pub fn further(&self, severity: Severity) -> usize {
        self.count(severity).saturating_sub(KEPT)
    }

    /// Returns the names of the kinds, joined by `+`; `unknown` without any.
    pub fn kind(&self) -> String {
        if self.kinds.is_empty() {
            return "unknown".into();
        }
        let names: Vec<&str> = self.kinds.iter().map(|(kind, _)| kind.name()).collect();
        names.join("+")
    }

    /// Formats a finding as a message: `file:line: task id: reason`.
    pub fn message(&self, finding: &Finding) -> Message {
        let (path, line) = (self.path.display(), finding.line);
        match &finding.task_id {
            Some(id) => message![format!("{path}:{line}: task {id}: "), &finding.reason],
            None => message![format!("{path}:{line}: "), &finding.reason],
        }
    }

    /// Returns `file, kind, records, errors, notes, findings[{line, task_id, severity, message}]`; `more_errors` and
    /// `more_notes` are the numbers of further findings that are only counted, if there are any.
    pub fn to_record(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "line": finding.line, "task_id": finding.task_id,
                "severity": finding.severity.to_string(), "message": finding.reason,
            })
        };
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        let mut record = json!({
            "file": self.path.display().to_string(), "kind": self.kind(), "records": self.records,
            "errors": self.count(Severity::Error), "notes": self.count(Severity::Note),
            "findings": findings,
        });
        for (name, severity) in [("more_errors", Severity::Error), ("more_notes", Severity::Note)] {
            if self.further(severity) > 0 {
                record[name] = self.further(severity).into();
            }
        }
        record
    }
}

/// Validates a file (`.jsonl`, gzip, zstd, or `-`), each record by the kind that its fields indicate. With `repos_dir`, tasks
/// are also compared with their files.
///
/// # Errors
/// The file or the repositories cannot be read.
pub fn validate(path: &Path, repos_dir: Option<&Path>) -> Result<Validation> {
    let mut validator = Validator {
        path,
        files: repos_dir.map(TaskFiles::below).transpose()?,
        kinds: Vec::new(),
        seen: HashMap::default(),
        unknown: HashMap::default(),
        function_level: FunctionLevel::default(),
        scales: LabelScales::default(),
        findings: Vec::new(),
        counts: [0; 2],
    };
    let mut reader = Reader::open(path)?;
    let mut records = 0;
    while let Some((at, bytes)) = reader.next_record()? {
        records += 1;
        validator.record(at, bytes);
    }
    if records == 0 {
        let severity = if is_part(path) { Severity::Note } else { Severity::Error };
        validator.find(1, None, severity, "the file contains no record");
    }
    Ok(validator.finish(records))
}

/// State of the validation of one file.
struct Validator<'a> {
    path: &'a Path,
    files: Option<TaskFiles<'a>>,
    /// Each kind, its number of records and its first line.
    kinds: Vec<(RecordKind, usize, usize)>,
    /// First line of each id.
    seen: HashMap<(RecordKind, String), usize>,
    /// Unknown fields: their order, first line, and number of records.
    unknown: HashMap<(RecordKind, String), (usize, usize, usize)>,
    function_level: FunctionLevel,
    scales: LabelScales,
    findings: Vec<Finding>,
    counts: [usize; 2],
}

impl Validator<'_> {
    fn record(&mut self, at: RecordAddress, bytes: &[u8]) {
        if at.line == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
            let reason = "the file begins with a byte-order mark, which other programs reject";
            self.find(1, None, Severity::Note, reason);
        }
        let object = match jsonl::parse(self.path, at.line, bytes) {
            Ok(object) => object,
            Err(error) => return self.find(at.line, None, Severity::Error, reason(error)),
        };
        let Some(kind) = RecordKind::from_record(&object) else {
            return self.find(at.line, None, Severity::Error, RecordKind::unknown());
        };
        match self.kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, count, _)) => *count += 1,
            None => self.kinds.push((kind, 1, at.line)),
        }
        let id = task_id(&object);
        let schema::RecordProblems { wrong, mut unknown } = schema::check(kind.fields(), &object);
        // Scores and samples have one field per metric.
        if matches!(kind, RecordKind::Score | RecordKind::LmEvalSample) {
            unknown.clear();
        }
        for name in unknown {
            let next = self.unknown.len();
            let (_, _, count) = self.unknown.entry((kind, name)).or_insert((next, at.line, 0));
            *count += 1;
        }
        let whole = wrong.is_empty();
        let shown = id.as_deref().map(shortened);
        for reason in wrong {
            self.find(at.line, shown.clone(), Severity::Error, reason);
        }
        match kind {
            _ if !whole => {}
            RecordKind::Task(format) => self.task(at, format, object, id),
            _ => self.other(at.line, kind, object, id),
        }
    }

    fn find(
        &mut self,
        line: usize,
        task_id: Option<String>,
        severity: Severity,
        reason: impl Into<Message>,
    ) {
        self.counts[severity as usize] += 1;
        if self.counts[severity as usize] <= KEPT {
            let task_id = task_id.as_deref().map(shortened);
            self.findings.push(Finding { line, task_id, severity, reason: reason.into() });
        }
    }

    /// Returns the line of an earlier record with this id.
    fn seen_before(&mut self, kind: RecordKind, id: String, line: usize) -> Option<usize> {
        let first = *self.seen.entry((kind, id)).or_insert(line);
        (first != line).then_some(first)
    }

    fn finish(mut self, records: usize) -> Validation {
        let unknown = std::mem::take(&mut self.unknown).into_iter();
        let mut unknown: Vec<_> = unknown.map(|(name, place)| (place, name)).collect();
        unknown.sort_unstable();
        for ((_, line, count), (kind, name)) in unknown {
            let more = if count > 1 {
                format!(" (first here, in {count} records)")
            } else {
                String::new()
            };
            let name = if holds_key(&name) { MASK } else { &name };
            let reason = format!("unknown field '{name}' of {}; it is kept{more}", kind.name());
            self.find(line, None, Severity::Note, reason);
        }
        let (path, scales) = (self.path, std::mem::take(&mut self.scales));
        scales.problems(path, |problem| {
            if let Error::Task { line, task_id, reason, .. } = problem {
                self.find(line, Some(task_id), Severity::Error, reason);
            }
        });
        if let Some((line, reason)) = self.function_level.note() {
            self.find(line, None, Severity::Note, reason);
        }
        if let [(first, ..), others @ ..] = self.kinds.clone().as_slice() {
            for (kind, count, line) in others {
                let records = match count {
                    1 => "is 1 record".to_owned(),
                    n => format!("are {n} records"),
                };
                let reason = format!(
                    "mixed kinds: the file begins with {}, and from this line on there {records} of {}",
                    first.name(),
                    kind.name()
                );
                self.find(*line, None, Severity::Error, reason);
            }
        }
        self.findings.sort_by_key(|finding| (finding.line, finding.severity));
        let kinds = self.kinds.iter().map(|(kind, count, _)| (*kind, *count));
        Validation {
            path: self.path.to_owned(),
            kinds: kinds.collect(),
            records,
            findings: self.findings,
            counts: self.counts,
        }
    }
}

/// Greatest length in bytes of an id in a finding: a record may have as many findings as elements.
const LONGEST_ID: usize = 256;

fn shortened(id: &str) -> String {
    if id.len() <= LONGEST_ID {
        return id.to_owned();
    }
    format!("{}…", &id[..id.floor_char_boundary(LONGEST_ID)])
}

/// Returns the task id in a record.
fn task_id(object: &Object) -> Option<String> {
    let within = |name: &str| object.get(name).and_then(|inner| inner.get("task_id"));
    jsonl::id(object.get("task_id").or(within("metadata")).or(within("doc"))?)
}

/// Returns an error's reason without its location, which a finding contains anyway.
fn reason(error: Error) -> Message {
    match error {
        Error::Record { reason, .. } | Error::Task { reason, .. } => reason,
        other => other.message(),
    }
}
