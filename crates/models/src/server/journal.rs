//! Journal of answers, keyed by request.

use std::path::Path;

use foldhash::{HashMap, HashSet};
use repoformer_core::completion::{Sample, is_complete};
use repoformer_store::append_log::{AppendLog, LinePlace, LogKind};
use repoformer_store::error::Result;
use repoformer_text::message::{Message, UserChoice};
use serde::{Deserialize, Serialize};

const LOG: LogKind = LogKind {
    begin: "{\"key\":",
    line: "an answer of a model server",
    file: UserChoice::Journal,
    remark: "",
    writer: "run",
};

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The request's key.
    pub key: String,
    /// Completions; empty if the request failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// Reason of the failure; the file contains its text.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "words::deserialize"
    )]
    pub error: Option<Message>,
    /// Seconds from the request to its last sample, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Number of concurrent requests in that run, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
    /// True if the answer was checked for errors of the server. Versions before 0.3 kept failed answers as completions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_checked: bool,
}

impl JournalEntry {
    /// Creates the entry of a failed request.
    pub fn from_failure(key: &str, reason: impl Into<Message>) -> Self {
        let (key, error) = (key.to_owned(), Some(reason.into()));
        Self { key, samples: Vec::new(), error, seconds: None, at_once: None, is_checked: true }
    }

    /// Applies the current rule: a completion with a failure as its finish reason is a failure.
    fn reread(self) -> Self {
        let finish =
            |sample: &Sample| sample.finish_reason.clone().filter(|finish| !is_complete(finish));
        match self.samples.iter().find_map(finish) {
            Some(finish) if self.error.is_none() => Self::from_failure(
                &self.key,
                format!(
                    "the answer ended with finish_reason {finish:?}, which is not the end of a completion; an earlier version kept \
                     it as one"
                ),
            ),
            _ => self,
        }
    }

    /// Returns whether the request may have failed: an earlier version kept an empty text without a finish reason.
    fn is_doubtful(&self) -> bool {
        let is_bare = |sample: &Sample| sample.text.is_empty() && sample.finish_reason.is_none();
        !self.is_checked && self.samples.iter().any(is_bare)
    }
}

/// Reasons of failures as a journal contains them: as text, which may end with a hint that lists choices.
mod words {
    use repoformer_core::completion::AnswerError;
    use repoformer_text::message;
    use repoformer_text::message::Message;
    use serde::{Deserialize, Deserializer};

    use crate::endpoint::shorter;
    use crate::server::next::check_number;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Message>, D::Error> {
        let words = Option::<String>::deserialize(deserializer)?;
        Ok(words.map(|words| read(&words)))
    }

    fn read(words: &str) -> Message {
        let hints = [shorter(), AnswerError::Form("").hint(), check_number()];
        let behind = |hint: Message| Some(message![words.strip_suffix(&hint.to_string())?, hint]);
        hints.into_iter().find_map(behind).unwrap_or_else(|| words.into())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_hint_of_a_recorded_reason_is_read_with_its_choices() {
            for hint in [shorter(), AnswerError::Form("no").hint(), check_number()] {
                let reason = message!["the prompt budget; ", hint];
                assert_eq!(read(&reason.to_string()), reason);
            }
            assert_eq!(read("lower the prompt budget"), "lower the prompt budget".into());
        }
    }
}

/// Answers of earlier runs, open for appending.
#[derive(Debug)]
pub struct Journal {
    lines: AppendLog,
    answered: HashMap<String, LinePlace>,
    failed: HashMap<String, LinePlace>,
    doubtful: HashSet<String>,
}

impl Journal {
    /// Opens or creates a journal.
    ///
    /// # Errors
    /// The file cannot be read or written, contains something else, or another run is writing to it.
    pub fn open(path: &Path) -> Result<Self> {
        Self::with(|take| AppendLog::open(path, LOG, take))
    }

    /// Opens a journal for reading only.
    ///
    /// # Errors
    /// The file cannot be read, or contains something else.
    pub fn read(path: &Path) -> Result<Self> {
        Self::with(|take| AppendLog::read(path, LOG, take))
    }

    fn with(
        open: impl FnOnce(&mut dyn FnMut(&[u8], LinePlace) -> bool) -> Result<AppendLog>,
    ) -> Result<Self> {
        let (mut answered, mut failed) = (HashMap::default(), HashMap::default());
        let mut doubtful = HashSet::default();
        let lines = open(&mut |line, place| {
            let Ok(entry) = serde_json::from_slice::<JournalEntry>(line) else {
                return false;
            };
            let entry = entry.reread();
            match entry.error {
                None => {
                    if entry.is_doubtful() {
                        doubtful.insert(entry.key.clone())
                    } else {
                        doubtful.remove(&entry.key)
                    };
                    failed.remove(&entry.key);
                    answered.insert(entry.key, place);
                }
                Some(_) => {
                    failed.insert(entry.key, place);
                }
            }
            true
        })?;
        Ok(Self { lines, answered, failed, doubtful })
    }

    /// Returns the result of a request: its answer, or else its failure.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn get(&self, key: &str) -> Result<Option<JournalEntry>> {
        let place = self.answered.get(key).or_else(|| self.failed.get(key));
        match place {
            None => Ok(None),
            Some(&place) => {
                let entry = serde_json::from_slice(&self.lines.line(place)?).ok();
                Ok(entry.map(JournalEntry::reread))
            }
        }
    }

    /// Returns whether a request was answered.
    pub fn has_answer(&self, key: &str) -> bool {
        self.answered.contains_key(key)
    }

    /// Returns whether a request failed and no later attempt was answered.
    pub fn has_failed(&self, key: &str) -> bool {
        self.failed.contains_key(key) && !self.has_answer(key)
    }

    /// Returns whether a request's answer may be a failure: an earlier version kept an empty text without a finish reason.
    pub fn is_doubtful(&self, key: &str) -> bool {
        self.doubtful.contains(key)
    }

    /// Returns whether a request must be sent; failed requests are sent only if `retry_failed` is set.
    pub fn is_open(&self, key: &str, retry_failed: bool) -> bool {
        !self.answered.contains_key(key) && (retry_failed || !self.failed.contains_key(key))
    }

    /// Appends the result of a request.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        let line = serde_json::to_vec(entry).unwrap_or_default();
        let place = self.lines.append(line)?;
        self.doubtful.remove(&entry.key);
        match entry.error {
            None => self.answered.insert(entry.key.clone(), place),
            Some(_) => self.failed.insert(entry.key.clone(), place),
        };
        Ok(())
    }
}
