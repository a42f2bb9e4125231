//! Answers as they come, by the key of their request.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Sample;
use crate::error::Result;
use crate::store::append_log::{Appended, Holds, Place};

const HOLDS: Holds = Holds {
    begin: "{\"key\":",
    what: "an answer that `complete` keeps",
    flag: "--journal",
    writer: "run",
};

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The request's key.
    pub key: String,
    /// What the server wrote; none where it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds from the request to the last of its samples, where it was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The answers of earlier runs, open for more.
#[derive(Debug)]
pub struct Journal {
    lines: Appended,
    answered: FxHashMap<String, Place>,
    failed: FxHashMap<String, Place>,
}

impl Journal {
    /// Opens or begins a journal.
    ///
    /// # Errors
    /// The file cannot be read or written, holds something else, or another run is writing to it.
    pub fn open(path: &Path) -> Result<Self> {
        let (mut answered, mut failed) = (FxHashMap::default(), FxHashMap::default());
        let lines = Appended::open(path, HOLDS, |line, place| {
            let Ok(entry) = serde_json::from_slice::<Entry>(line) else {
                return false;
            };
            match entry.error {
                None => {
                    failed.remove(&entry.key);
                    answered.insert(entry.key, place);
                }
                Some(_) => {
                    failed.insert(entry.key, place);
                }
            }
            true
        })?;
        Ok(Self {
            lines,
            answered,
            failed,
        })
    }

    /// What is known of a request; a failure where it has no answer yet.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn get(&self, key: &str) -> Result<Option<Entry>> {
        let place = self.answered.get(key).or_else(|| self.failed.get(key));
        match place {
            None => Ok(None),
            Some(&place) => Ok(serde_json::from_slice(&self.lines.line(place)?).ok()),
        }
    }

    /// Whether a request is still to be sent; of those that failed, where they are to be asked for again.
    pub fn is_open(&self, key: &str, retry_failed: bool) -> bool {
        !self.answered.contains_key(key) && (retry_failed || !self.failed.contains_key(key))
    }

    /// Appends what came of a request.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, entry: &Entry) -> Result<()> {
        let place = self
            .lines
            .append(serde_json::to_vec(entry).unwrap_or_default())?;
        match entry.error {
            None => self.answered.insert(entry.key.clone(), place),
            Some(_) => self.failed.insert(entry.key.clone(), place),
        };
        Ok(())
    }
}
