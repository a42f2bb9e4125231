//! Results as they come: a file that lines are appended to, from which an interrupted evaluation goes on.

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::verdict::Status;
use crate::error::Result;
use crate::store::append_log::{Appended, Holds, Place};

/// What was put in the place of a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What stood there.
    Truth,
    /// A failure before it.
    Planted,
    /// A prediction.
    Prediction,
}

/// A line of the results: one text in one task's hole, and what its tests said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The task's id.
    pub task_id: String,
    /// The task's 0-based place in its file.
    pub row: usize,
    /// Its repository.
    pub repository: String,
    /// What was put in its hole.
    pub kind: Kind,
    /// Which of several: of the samples, or of the runs of the truth; from 0.
    pub sample: usize,
    /// What came of it.
    pub status: Status,
    /// Why, where the status does not say it all.
    pub reason: String,
    /// How many tests passed, where the runner tells.
    #[serde(default)]
    pub passed: Option<u64>,
    /// Whether it stands for good; else the run is made again the next time.
    #[serde(default = "is_lasting")]
    pub is_lasting: bool,
    /// Seconds on the clock.
    pub seconds: f64,
    /// Seconds on the processors.
    pub cpu_seconds: f64,
    /// Megabytes of memory at the most.
    pub peak_memory_mb: f64,
    /// What the command exited with.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that outlived it and were ended.
    pub left_behind: usize,
    /// The end of what it printed.
    pub output_tail: String,
    /// How many bytes it printed.
    pub output_bytes: u64,
    /// A digest of all that the run depended on: equal keys, equal runs.
    pub key: String,
}

fn is_lasting() -> bool {
    true
}

impl Record {
    /// The same for this text in this task's hole.
    pub(super) fn of(self, task: &crate::task::Task, kind: Kind, sample: usize) -> Self {
        Self {
            task_id: task.id.clone(),
            row: task.row,
            repository: task.repository.clone(),
            kind,
            sample,
            ..self
        }
    }
}

const HOLDS: Holds = Holds {
    begin: "{\"task_id\":",
    what: "a result of `eval --exec`",
    flag: "--exec-results",
    writer: "evaluation",
};

/// The results, open for more; nobody else may write to them meanwhile.
#[derive(Debug)]
pub struct Log {
    lines: Appended,
    known: Known,
}

/// What stands in the results.
#[derive(Debug, Default)]
struct Known {
    runs: FxHashMap<String, Place>,
    written: FxHashSet<(usize, Kind, usize, String)>,
}

impl Known {
    fn remember(&mut self, record: &Record, place: Place, forgotten: &[Status]) {
        let written = (record.row, record.kind, record.sample, record.key.clone());
        // What is missing may have been put there since.
        let is_kept = record.is_lasting
            && record.status != Status::EnvironmentBroken
            && !forgotten.contains(&record.status);
        match is_kept {
            true => {
                self.written.insert(written);
                self.runs.insert(record.key.clone(), place);
            }
            false => {
                self.written.remove(&written);
                self.runs.remove(&record.key);
            }
        }
    }
}

impl Log {
    /// Opens the results of earlier evaluations, or begins them. A line that was cut off is dropped; one that is no result
    /// is passed over and kept. Results whose status is among `forgotten` are made again.
    ///
    /// # Errors
    /// The file cannot be read or written, holds something else, or another evaluation is writing to it.
    pub fn open(path: &Path, forgotten: &[Status]) -> Result<Self> {
        let mut known = Known::default();
        let lines = Appended::open(path, HOLDS, |line, place| {
            let record = serde_json::from_slice::<Record>(line);
            let record = record.map(|record| known.remember(&record, place, forgotten));
            record.is_ok()
        })?;
        Ok(Self { lines, known })
    }

    /// What is known of a run.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn of_key(&self, key: &str) -> Result<Option<Record>> {
        match self.known.runs.get(key) {
            None => Ok(None),
            Some(&place) => Ok(serde_json::from_slice(&self.lines.line(place)?).ok()),
        }
    }

    /// Appends a result, unless it stands there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        let written = (record.row, record.kind, record.sample, record.key.clone());
        if self.known.written.contains(&written) {
            return Ok(());
        }
        let place = self
            .lines
            .append(serde_json::to_vec(record).unwrap_or_default())?;
        self.known.remember(record, place, &[]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record(row: usize, status: Status, key: &str) -> Record {
        Record {
            task_id: format!("r/{row}"),
            row,
            repository: "r".into(),
            kind: Kind::Prediction,
            sample: 0,
            status,
            reason: String::new(),
            passed: None,
            is_lasting: true,
            seconds: 0.1,
            cpu_seconds: 0.1,
            peak_memory_mb: 1.0,
            exit_code: Some(0),
            signal: None,
            left_behind: 0,
            output_tail: "é".into(),
            output_bytes: 2,
            key: key.into(),
        }
    }

    fn known(log: &Log, key: &str) -> Option<Status> {
        log.of_key(key).unwrap().map(|record| record.status)
    }

    #[test]
    fn what_was_cut_off_is_dropped_and_the_rest_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/results.jsonl");
        let mut log = Log::open(&path, &[]).unwrap();
        log.append(&record(0, Status::Pass, "a")).unwrap();
        log.append(&record(0, Status::Pass, "a")).unwrap();
        log.append(&record(1, Status::EnvironmentBroken, "b"))
            .unwrap();
        drop(log);
        let whole = fs::read_to_string(&path).unwrap();
        assert_eq!(whole.lines().count(), 2);
        for cut in 0..whole.len() {
            if !whole.is_char_boundary(cut) {
                continue;
            }
            fs::write(&path, &whole[..cut]).unwrap();
            let log = Log::open(&path, &[]).unwrap();
            let lines = whole[..cut].matches('\n').count();
            assert_eq!(known(&log, "a").is_some(), lines >= 1, "{cut}");
            assert!(
                known(&log, "b").is_none(),
                "a broken environment is tried again"
            );
            drop(log);
            assert_eq!(
                fs::read_to_string(&path).unwrap().matches('\n').count(),
                lines
            );
        }
    }

    #[test]
    fn results_are_made_again_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        let mut log = Log::open(&path, &[]).unwrap();
        log.append(&record(0, Status::Fail, "a")).unwrap();
        log.append(&record(1, Status::Pass, "b")).unwrap();
        drop(log);
        let mut log = Log::open(&path, &[Status::Fail, Status::Timeout]).unwrap();
        assert_eq!(
            (known(&log, "a"), known(&log, "b")),
            (None, Some(Status::Pass))
        );
        log.append(&record(0, Status::Pass, "a")).unwrap();
        assert_eq!(known(&log, "a"), Some(Status::Pass));
        drop(log);
        // The last word stands.
        assert_eq!(
            known(&Log::open(&path, &[]).unwrap(), "a"),
            Some(Status::Pass)
        );
    }

    #[test]
    fn a_file_of_something_else_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        for text in [
            "no result\n",
            "one line without an end",
            "{\n  \"a\": 1\n}",
            "{\"id\": 1}\n{\"task_id\":",
        ] {
            fs::write(&path, text).unwrap();
            let error = Log::open(&path, &[]).unwrap_err().to_string();
            assert!(error.contains("x.json:1: not a result"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        // Among results it is passed over.
        fs::write(&path, "").unwrap();
        let mut log = Log::open(&path, &[]).unwrap();
        log.append(&record(0, Status::Fail, "a")).unwrap();
        drop(log);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("no result\n\n{text}")).unwrap();
        assert_eq!(
            known(&Log::open(&path, &[]).unwrap(), "a"),
            Some(Status::Fail)
        );
    }

    #[test]
    fn one_evaluation_writes_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        let log = Log::open(&path, &[]).unwrap();
        let error = Log::open(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("another evaluation"), "{error}");
        drop(log);
        Log::open(&path, &[]).unwrap();
    }
}
