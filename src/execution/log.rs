//! Results as they come: a file that lines are appended to, from which an interrupted evaluation goes on.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::verdict::Status;
use crate::error::{Error, Result};

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

/// The results, open for more.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    runs: FxHashMap<String, Record>,
    written: FxHashSet<(usize, Kind, usize, String)>,
}

impl Log {
    /// Opens the results of earlier evaluations, or begins them. A line that was cut off is dropped; one that is no result
    /// is passed over and kept.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            fs::create_dir_all(folder)
                .map_err(|e| Error::writing(folder, "create this folder for results", e))?;
        }
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::reading(path, "read these results", error)),
        };
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let writing = |e| Error::writing(path, "append to these results", e);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(writing)?;
        file.set_len(whole as u64).map_err(writing)?;
        file.seek(SeekFrom::End(0)).map_err(writing)?;
        let mut log = Self {
            path: path.to_owned(),
            file,
            runs: FxHashMap::default(),
            written: FxHashSet::default(),
        };
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice::<Record>(line) {
                log.remember(record);
            }
        }
        Ok(log)
    }

    fn remember(&mut self, record: Record) {
        let Record {
            row, kind, sample, ..
        } = record;
        self.written.insert((row, kind, sample, record.key.clone()));
        // What is missing may have been put there since.
        if record.status != Status::EnvironmentBroken {
            self.runs.insert(record.key.clone(), record);
        }
    }

    /// What is known of a run.
    pub fn of_key(&self, key: &str) -> Option<&Record> {
        self.runs.get(key)
    }

    /// Appends a result, unless it stands there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, record: Record) -> Result<()> {
        let place = (record.row, record.kind, record.sample, record.key.clone());
        if self.written.contains(&place) && record.status != Status::EnvironmentBroken {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&record).unwrap_or_default();
        line.push(b'\n');
        // One write a line: an interruption cuts off the last one at most.
        self.file
            .write_all(&line)
            .map_err(|e| Error::writing(&self.path, "append to these results", e))?;
        self.remember(record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_was_cut_off_is_dropped_and_the_rest_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/results.jsonl");
        let mut log = Log::open(&path).unwrap();
        log.append(record(0, Status::Pass, "a")).unwrap();
        log.append(record(0, Status::Pass, "a")).unwrap();
        log.append(record(1, Status::EnvironmentBroken, "b"))
            .unwrap();
        drop(log);
        let whole = fs::read_to_string(&path).unwrap();
        assert_eq!(whole.lines().count(), 2);
        for cut in 0..whole.len() {
            if !whole.is_char_boundary(cut) {
                continue;
            }
            fs::write(&path, &whole[..cut]).unwrap();
            let log = Log::open(&path).unwrap();
            let lines = whole[..cut].matches('\n').count();
            assert_eq!(log.of_key("a").is_some(), lines >= 1, "{cut}");
            assert!(
                log.of_key("b").is_none(),
                "a broken environment is tried again"
            );
            drop(log);
            assert_eq!(
                fs::read_to_string(&path).unwrap().matches('\n').count(),
                lines
            );
        }
        fs::write(&path, "no result\n").unwrap();
        let mut log = Log::open(&path).unwrap();
        log.append(record(0, Status::Fail, "a")).unwrap();
        drop(log);
        assert_eq!(
            Log::open(&path).unwrap().of_key("a").unwrap().status,
            Status::Fail
        );
    }
}
