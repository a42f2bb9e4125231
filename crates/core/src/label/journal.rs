//! Journal of the draws so far, next to the output file: an interrupted run resumes after the last finished repository.

use std::path::{Path, PathBuf};

use repoformer_store::append_log::{AppendLog, LogKind, Place};
use repoformer_store::error::{Error, Result};
use repoformer_text::message::UserChoice;
use rustc_hash::FxHashMap;
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
    remark: " (this file is beside the output)",
    writer: "drawing",
};

/// Revision, raised whenever the same repositories give other instances.
const REVISION: u32 = 3;

/// Result of drawing from a repository.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RepositoryDraw {
    /// Digest of all that it depends on.
    pub(super) key: String,
    /// Reason for its rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rejected: Option<Rejection>,
    /// Number of lines of the targets of all its instances.
    #[serde(default)]
    pub(super) lines: usize,
    /// Files that could not be parsed completely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unparsed: Vec<UnparsedFile>,
    /// Records of its instances.
    #[serde(default)]
    pub(super) records: Vec<Box<RawValue>>,
}

/// Returns the digest of all that a repository's draw depends on: its files, the settings, and the facts in its record.
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
    // The debug text has every field, including those added later.
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

/// Draws of an interrupted run, open for more.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    lines: AppendLog,
    known: FxHashMap<String, Place>,
}

impl Journal {
    /// Opens or begins a journal.
    ///
    /// # Errors
    /// The file cannot be read or written, is not a journal, or another run writes to it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut known = FxHashMap::default();
        let lines = AppendLog::open(path, LOG, |line, place| {
            let outcome = serde_json::from_slice::<RepositoryDraw>(line);
            outcome.map(|outcome| known.insert(outcome.key, place)).is_ok()
        })?;
        let path = path.to_owned();
        Ok(Self { path, lines, known })
    }

    pub(super) fn knows(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// Returns the draw of a repository that is [known](Self::knows).
    ///
    /// # Errors
    /// The file cannot be read, or was changed.
    pub(super) fn get(&self, key: &str) -> Result<RepositoryDraw> {
        let hint = "remove it and draw again";
        let changed = || Error::artifact(&self.path, "was changed while it was read", hint);
        let place = self.known.get(key).ok_or_else(changed)?;
        serde_json::from_slice(&self.lines.line(*place)?).map_err(|_| changed())
    }

    /// Appends the draw of a repository, for a later run to find.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn append(&mut self, outcome: &RepositoryDraw) -> Result<()> {
        let line = serde_json::to_vec(outcome).unwrap_or_default();
        self.lines.append(line).map(|_| ())
    }
}
