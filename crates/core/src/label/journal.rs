//! Journal of the draws so far, next to the output file: an interrupted run resumes after the last finished repository.

use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::append_log::{AppendLog, LinePlace, LogKind};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::message::UserChoice;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::draw::Drawing;
use super::filter::{Facts, Filter, Rejection};
use super::written::RecordFormat;
use crate::repository::corpus::Repository;
use crate::task::sample::UnparsedFile;

const LOG: LogKind = LogKind {
    begin: "{\"key\":",
    line: "a record of the instances drawn from a repository",
    file: UserChoice::OutputPath,
    remark: " (this file is stored next to the output)",
    writer: "drawing",
};

/// Returns the path of the journal next to an output, `OUTPUT.drawn`; `None` if the output is standard output (`-`) or is not a
/// regular file.
pub fn journal_beside(output: &Path) -> Option<PathBuf> {
    let is_file = output != Path::new("-") && (output.is_file() || !output.exists());
    let mut name = output.file_name().filter(|_| is_file)?.to_owned();
    name.push(".drawn");
    Some(output.with_file_name(name))
}

/// Removes the journal next to an output, if there is one.
///
/// # Errors
/// The journal cannot be removed.
pub fn remove_journal(output: &Path) -> Result<()> {
    let Some(journal) = journal_beside(output) else { return Ok(()) };
    match files::remove_file(&journal) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::writing(&journal, "remove this file", e))
        }
        _ => Ok(()),
    }
}

/// Revision, raised whenever the same repositories yield different instances.
const REVISION: u32 = 3;

/// Result of drawing from a repository. The lines of its records precede it in the journal.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RepositoryDraw {
    /// Digest of everything that the result depends on.
    pub(super) key: String,
    /// Reason for the repository's rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rejected: Option<Rejection>,
    /// Number of instances.
    pub(super) instances: usize,
    /// Number of lines of the instances' targets.
    pub(super) lines: usize,
    /// Files that could not be parsed completely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unparsed: Vec<UnparsedFile>,
}

/// Record of one instance. Each has its own line, because all records together can be many times as large as the repository.
#[derive(Debug, Serialize, Deserialize)]
struct DrawnRecord<R> {
    key: String,
    record: R,
}

/// Line written by an older version of the program, which is ignored.
#[derive(Deserialize)]
struct OlderLine {
    #[serde(rename = "key")]
    _key: String,
}

/// Returns the digest of everything that a repository's draw depends on: its files, the settings, and the facts in its record.
pub(super) fn key(
    repository: &Repository,
    said: Option<&Facts>,
    drawing: &Drawing,
    filter: &Filter,
    format: RecordFormat,
) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    // The debug text has every field, even fields added in the future.
    let settings = format!("{drawing:?}{filter:?}{format:?}{said:?}");
    let revision = REVISION.to_string();
    for text in [&revision, &settings, &repository.name] {
        part(text.as_bytes());
    }
    for file in &repository.files {
        part(file.path.as_bytes());
        part(file.text.as_bytes());
        part(&file.same_as.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Journal of an interrupted run, open for more draws.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    lines: AppendLog,
    known: HashMap<String, KnownDraw>,
}

/// Journal lines of a repository.
#[derive(Debug)]
struct KnownDraw {
    result: LinePlace,
    records: Vec<LinePlace>,
}

impl Journal {
    /// Opens a journal, or creates one.
    ///
    /// # Errors
    /// The file cannot be read or written, is not a journal, or another run writes to it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (mut known, mut begun) = (HashMap::default(), HashMap::default());
        let lines = AppendLog::open(path, LOG, |line, place| {
            if let Ok(record) = serde_json::from_slice::<DrawnRecord<IgnoredAny>>(line) {
                begun.entry(record.key).or_insert_with(Vec::new).push(place);
                return true;
            }
            let Ok(drawn) = serde_json::from_slice::<RepositoryDraw>(line) else {
                return serde_json::from_slice::<OlderLine>(line).is_ok();
            };
            let mut records: Vec<LinePlace> = begun.remove(&drawn.key).unwrap_or_default();
            // Earlier records belong to a run that was interrupted within this repository.
            if let Some(interrupted) = records.len().checked_sub(drawn.instances) {
                records.drain(..interrupted);
                known.insert(drawn.key, KnownDraw { result: place, records });
            }
            true
        })?;
        let path = path.to_owned();
        Ok(Self { path, lines, known })
    }

    pub(super) fn knows(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// Returns the draw of a [known](Self::knows) repository, and passes its records to `emit` first.
    ///
    /// # Errors
    /// The file cannot be read or has changed, or `emit` fails.
    pub(super) fn replay(
        &self,
        key: &str,
        emit: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<RepositoryDraw> {
        let hint = "remove the file and run the command again";
        let changed = || Error::artifact(&self.path, "was changed while it was read", hint);
        let known = self.known.get(key).ok_or_else(changed)?;
        for place in &known.records {
            let line = self.lines.line(*place)?;
            let line: DrawnRecord<Box<RawValue>> =
                serde_json::from_slice(&line).map_err(|_| changed())?;
            emit(line.record.get())?;
        }
        serde_json::from_slice(&self.lines.line(known.result)?).map_err(|_| changed())
    }

    /// Appends a record of a repository.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) fn append_record(&mut self, key: &str, record: &RawValue) -> Result<()> {
        self.append(&DrawnRecord { key: key.to_owned(), record })
    }

    /// Appends the result of a repository whose records were appended, so that a later run finds it.
    ///
    /// # Errors
    /// The result cannot be written.
    pub(super) fn append_result(&mut self, result: &RepositoryDraw) -> Result<()> {
        self.append(result)
    }

    fn append(&mut self, line: &impl Serialize) -> Result<()> {
        self.lines.append(serde_json::to_vec(line).unwrap_or_default()).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::value::to_raw_value;

    use super::*;

    fn append(journal: &mut Journal, key: &str, records: &[u32], is_whole: bool) {
        for record in records {
            journal.append_record(key, &to_raw_value(record).unwrap()).unwrap();
        }
        let (key, instances) = (key.to_owned(), records.len());
        if is_whole {
            let result = RepositoryDraw { key, instances, ..RepositoryDraw::default() };
            journal.append_result(&result).unwrap();
        }
    }

    #[test]
    fn a_journal_is_beside_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.jsonl");
        let journal = folder.path().join("a.jsonl.drawn");
        assert_eq!(journal_beside(&output), Some(journal.clone()));
        assert_eq!(journal_beside(Path::new("-")), None);
        assert_eq!(journal_beside(folder.path()), None);
        remove_journal(&output).unwrap();
        std::fs::write(&journal, "").unwrap();
        remove_journal(&output).unwrap();
        assert!(!journal.exists());
        // A folder of that name is kept.
        std::fs::create_dir(&journal).unwrap();
        let error = remove_journal(&output).unwrap_err().to_string();
        assert!(error.contains("a.jsonl.drawn: cannot remove this file"), "{error}");
    }

    #[test]
    fn draws_that_were_interrupted_are_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("o.jsonl.drawn");
        let mut journal = Journal::open(&path).unwrap();
        append(&mut journal, "interrupted", &[1, 2], false);
        append(&mut journal, "again", &[1, 2], false);
        append(&mut journal, "again", &[3, 4, 5], true);
        append(&mut journal, "none", &[], true);
        drop(journal);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"key\":\"older\",\"lines\":1,\"records\":[7]}\n").unwrap();
        drop(file);
        let journal = Journal::open(&path).unwrap();
        let known = ["interrupted", "older", "again", "none"].map(|key| journal.knows(key));
        assert_eq!(known, [false, false, true, true]);
        let mut records = Vec::new();
        let mut emit = |record: &str| {
            records.push(record.to_owned());
            Ok(())
        };
        assert_eq!(journal.replay("again", &mut emit).unwrap().instances, 3);
        assert_eq!(journal.replay("none", &mut emit).unwrap().instances, 0);
        assert_eq!(records, ["3", "4", "5"]);
    }
}
