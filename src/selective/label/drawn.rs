//! What was drawn from each repository so far, beside the output that it becomes, so that a drawing that was broken off
//! goes on where it stopped.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::collect::Recorded;
use super::draw::Drawing;
use super::filter::{Facts, Filter, Rejection};
use crate::error::{Error, Result};
use crate::repository::corpus::Repository;
use crate::store::append_log::{AppendLog, LogKind, Place};

const LOG: LogKind = LogKind {
    begin: "{\"key\":",
    line: "a record of the instances drawn from a repository",
    file: "output path (this file is beside the output)",
    writer: "drawing",
};

/// Another number, other instances of the same repositories.
const REVISION: u32 = 1;

/// What came of a repository.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    key: String,
    /// Why it does not serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rejected: Option<Rejection>,
    /// Lines of the targets of all its instances.
    #[serde(default)]
    pub(super) lines: usize,
    /// The records of its instances.
    #[serde(default)]
    pub(super) records: Vec<Box<RawValue>>,
}

impl Outcome {
    pub(super) fn rejected(reason: Rejection) -> Self {
        Self {
            rejected: Some(reason),
            ..Self::default()
        }
    }

    pub(super) fn drawn(lines: usize, records: Vec<Box<RawValue>>) -> Self {
        Self {
            lines,
            records,
            ..Self::default()
        }
    }

    /// The same with its key, where it is to be kept.
    pub(super) fn keyed(self, key: Option<Key>) -> Self {
        Self {
            key: key.map_or_else(String::new, |key| key.0),
            ..self
        }
    }
}

/// All that what is drawn from a repository depends on, as a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Of a repository's files and how they are drawn from; `said` is what its record says of them.
    pub(super) fn of(
        repository: &Repository,
        said: Option<&Facts>,
        (drawing, filter, recorded): (&Drawing, &Filter, Recorded),
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        // Their debugging text names every field that they have, whichever are added.
        let settings = format!("{drawing:?}{filter:?}{recorded:?}{said:?}");
        let revision = REVISION.to_string();
        for text in [&revision, &settings, &repository.name] {
            part(text.as_bytes());
        }
        for file in &repository.files {
            part(file.path.as_bytes());
            part(file.text.as_bytes());
            part(&file.same_as.to_le_bytes());
        }
        Self(hasher.finalize().to_hex().to_string())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The outcomes of a drawing that was broken off, open for more.
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
    /// The file cannot be read or written, holds something else, or another drawing writes to it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut known = FxHashMap::default();
        let lines = AppendLog::open(path, LOG, |line, place| {
            match serde_json::from_slice::<Outcome>(line) {
                Ok(outcome) => known.insert(outcome.key, place),
                Err(_) => return false,
            };
            true
        })?;
        let path = path.to_owned();
        Ok(Self { path, lines, known })
    }

    pub(super) fn knows(&self, key: &Key) -> bool {
        self.known.contains_key(&key.0)
    }

    /// What came of a repository that is [known](Self::knows).
    ///
    /// # Errors
    /// The file cannot be read any more, or somebody changed it.
    pub(super) fn get(&self, key: &Key) -> Result<Outcome> {
        let changed = || Error::Artifact {
            path: self.path.clone(),
            reason: "was changed while it was read".into(),
            hint: "remove it, and draw anew".into(),
        };
        let place = self.known.get(&key.0).ok_or_else(changed)?;
        serde_json::from_slice(&self.lines.line(*place)?).map_err(|_| changed())
    }

    /// Appends what came of a repository, for another drawing to know.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn append(&mut self, outcome: &Outcome) -> Result<()> {
        let line = serde_json::to_vec(outcome).unwrap_or_default();
        self.lines.append(line).map(|_| ())
    }
}
