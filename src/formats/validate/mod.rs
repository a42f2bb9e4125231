//! Files of records looked through: every problem, with its line.
//!
//! A finding is an *error* where the record cannot be used, or would be used for something that it does not say: no JSON,
//! a missing field or one of the wrong type, a path that leads out of the repository, lines out of order, a target
//! without text, records of several kinds in one file, ids that a join needs to be unique, and, beside the repositories, a
//! file that is not there or has other text. It is a *note* where the record is as its format allows and may still
//! surprise: repeated task ids, `lineno`, `owner--name`, empty contexts, unknown fields, a byte-order mark.

mod fields;
mod records;
mod schema;
mod tasks;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::formats::convert::Files;
use crate::store::jsonl::{self, At, Object, Reader};
use crate::task::kind::Kind;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The record cannot be used as it is.
    Error,
    /// Legal, but worth knowing.
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

/// One thing found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// 1-based line.
    pub line: usize,
    /// The id of the record's task, where it has one.
    pub task_id: Option<String>,
    /// How much it matters.
    pub severity: Severity,
    /// What was found, with the field.
    pub reason: String,
}

/// What a file holds and what was found in it.
#[derive(Debug)]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// How many records there are of each kind, in the order of the file; records that are no JSON objects or of no known
    /// kind are in none.
    pub kinds: Vec<(Kind, usize)>,
    /// How many records there are in all.
    pub records: usize,
    /// Everything found, by line.
    pub findings: Vec<Finding>,
}

impl Report {
    /// How many findings are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        let found = self.findings.iter();
        found.filter(|finding| finding.severity == severity).count()
    }

    /// The kinds by name, joined by `+`; `unknown` where there is none.
    pub fn kind(&self) -> String {
        if self.kinds.is_empty() {
            return "unknown".into();
        }
        let names: Vec<&str> = self.kinds.iter().map(|(kind, _)| kind.name()).collect();
        names.join("+")
    }

    /// The finding as a message: `file:line: task id: reason`.
    pub fn message(&self, finding: &Finding) -> String {
        let (path, line) = (self.path.display(), finding.line);
        match &finding.task_id {
            Some(id) => format!("{path}:{line}: task {id}: {}", finding.reason),
            None => format!("{path}:{line}: {}", finding.reason),
        }
    }

    /// The report as an object: `file, kind, records, errors, notes, findings[{line, task_id, severity, message}]`.
    pub fn to_record(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "line": finding.line, "task_id": finding.task_id,
                "severity": finding.severity.to_string(), "message": finding.reason,
            })
        };
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        json!({
            "file": self.path.display().to_string(), "kind": self.kind(), "records": self.records,
            "errors": self.count(Severity::Error), "notes": self.count(Severity::Note),
            "findings": findings,
        })
    }
}

/// Looks through a file (`.jsonl`, gzip, zstd, or `-`), each record as the kind that its fields tell; tasks also beside
/// the repositories they come from, where these are given.
///
/// # Errors
/// The file or the repositories cannot be read.
pub fn validate(path: &Path, repos_dir: Option<&Path>) -> Result<Report> {
    let mut validator = Validator {
        path,
        files: repos_dir.map(Files::below).transpose()?,
        kinds: Vec::new(),
        seen: FxHashMap::default(),
        unknown: Vec::new(),
        findings: Vec::new(),
    };
    let mut reader = Reader::open(path)?;
    let mut records = 0;
    while let Some((at, bytes)) = reader.next_record()? {
        records += 1;
        validator.record(at, bytes);
    }
    if records == 0 {
        validator.find(1, None, Severity::Error, "the file holds no record");
    }
    Ok(validator.finish(records))
}

/// A file while it is looked through.
struct Validator<'a> {
    path: &'a Path,
    files: Option<Files<'a>>,
    /// Each kind with its number of records and its first line.
    kinds: Vec<(Kind, usize, usize)>,
    /// The first line of each id, and how often it came again.
    seen: FxHashMap<(Kind, String), usize>,
    /// Fields that no format knows: kind, name, first line, records.
    unknown: Vec<(Kind, String, usize, usize)>,
    findings: Vec<Finding>,
}

impl Validator<'_> {
    fn record(&mut self, at: At, bytes: &[u8]) {
        if at.line == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
            let reason = "the file begins with a byte-order mark, which other programs refuse";
            self.find(1, None, Severity::Note, reason);
        }
        let object = match jsonl::parse(self.path, at.line, bytes) {
            Ok(object) => object,
            Err(error) => return self.find(at.line, None, Severity::Error, reason(error)),
        };
        let Some(kind) = Kind::of(&object) else {
            let reason = format!("this is {}", Kind::unknown());
            return self.find(at.line, None, Severity::Error, reason);
        };
        match self.kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, count, _)) => *count += 1,
            None => self.kinds.push((kind, 1, at.line)),
        }
        let id = task_id(&object);
        let (wrong, unknown) = schema::check(kind, &object);
        for name in unknown {
            let known = |(other, field, ..): &&mut (Kind, String, usize, usize)| {
                (*other, field.as_str()) == (kind, name.as_str())
            };
            match self.unknown.iter_mut().find(known) {
                Some((.., count)) => *count += 1,
                None => self.unknown.push((kind, name, at.line, 1)),
            }
        }
        let whole = wrong.is_empty();
        for reason in wrong {
            self.find(at.line, id.clone(), Severity::Error, reason);
        }
        match kind {
            Kind::Task(format) => self.task(at, format, object, id, whole),
            _ => self.other(at, kind, object, id, whole),
        }
    }

    fn find(
        &mut self,
        line: usize,
        task_id: Option<String>,
        severity: Severity,
        reason: impl Into<String>,
    ) {
        self.findings.push(Finding {
            line,
            task_id,
            severity,
            reason: reason.into(),
        });
    }

    /// The line that this id was seen at before.
    fn seen_before(&mut self, kind: Kind, id: String, line: usize) -> Option<usize> {
        match self.seen.entry((kind, id)) {
            std::collections::hash_map::Entry::Occupied(first) => Some(*first.get()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(line);
                None
            }
        }
    }

    fn finish(mut self, records: usize) -> Report {
        for (kind, name, line, count) in std::mem::take(&mut self.unknown) {
            let more = match count {
                1 => String::new(),
                n => format!(" (here first, in {n} records)"),
            };
            let reason = format!(
                "field '{name}' is none of {}; it is kept{more}",
                kind.name()
            );
            self.find(line, None, Severity::Note, reason);
        }
        if let [(first, ..), others @ ..] = self.kinds.clone().as_slice() {
            for (kind, count, line) in others {
                let records = match count {
                    1 => "is 1 record".to_owned(),
                    n => format!("are {n} records"),
                };
                let reason = format!(
                    "mixed kinds: the file begins with {}, and from here on there {records} of {}",
                    first.name(),
                    kind.name()
                );
                self.find(*line, None, Severity::Error, reason);
            }
        }
        self.findings
            .sort_by_key(|finding| (finding.line, finding.severity));
        Report {
            path: self.path.to_owned(),
            kinds: self
                .kinds
                .iter()
                .map(|(kind, count, _)| (*kind, *count))
                .collect(),
            records,
            findings: self.findings,
        }
    }
}

/// The id that a record gives its task.
fn task_id(object: &Object) -> Option<String> {
    let metadata = object
        .get("metadata")
        .and_then(|metadata| metadata.get("task_id"));
    match object.get("task_id").or(metadata)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// What an error says, without the place that a finding names anyway.
fn reason(error: Error) -> String {
    match error {
        Error::Record { reason, .. } | Error::Task { reason, .. } => reason,
        other => other.to_string(),
    }
}
