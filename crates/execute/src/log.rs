//! Log of results: lines are appended as results arrive, so that an interrupted evaluation resumes.

use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet};
use repoformer_store::append_log::{AppendLog, LinePlace, LogKind};
use repoformer_store::error::Result;
use repoformer_text::message::UserChoice;
use serde::{Deserialize, Serialize};

use super::guard::Report;
use super::verdict::Status;

/// Text put into a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoleText {
    /// The reference text.
    Truth,
    /// The reference text with a failure before it.
    Planted,
    /// A prediction.
    Prediction,
}

/// A line of the results: one text in one task's hole, and the result of its tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The task's id.
    pub task_id: String,
    /// 0-based position of the task in its file.
    pub row: usize,
    /// Name of the task's repository.
    pub repository: String,
    /// Text in the hole.
    pub kind: HoleText,
    /// 0-based number of the sample, or of the run of the reference text.
    pub sample: usize,
    /// Result of the tests.
    pub status: Status,
    /// Explanation, if the status does not suffice.
    pub reason: String,
    /// Number of tests that passed, if the runner prints the number.
    #[serde(default)]
    pub passed: Option<u64>,
    /// Report of the test libraries, if they wrote one.
    #[serde(default)]
    pub report: Option<Report>,
    /// True if the result is final; otherwise the run is repeated the next time.
    #[serde(default = "is_lasting")]
    pub is_lasting: bool,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Processor seconds.
    pub cpu_seconds: f64,
    /// Peak memory in megabytes.
    pub peak_memory_mb: f64,
    /// Exit code of the command.
    pub exit_code: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    /// Number of processes that outlived the command and were killed.
    pub left_behind: usize,
    /// End of the output.
    pub output_tail: String,
    /// Length of the output in bytes.
    pub output_bytes: u64,
    /// Digest of everything that the run depends on: equal keys mean equal runs.
    pub key: String,
}

fn is_lasting() -> bool {
    true
}

impl RunRecord {
    /// Returns true if the run need not be repeated. A run in a broken environment is repeated: the user may have installed what was
    /// missing.
    fn is_kept(&self) -> bool {
        self.is_lasting && self.status != Status::EnvironmentBroken
    }

    /// Returns the record for a text in a task's hole.
    pub(super) fn with_task(
        self,
        task: &repoformer_core::task::Task,
        kind: HoleText,
        sample: usize,
    ) -> Self {
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

const LOG: LogKind = LogKind {
    begin: "{\"task_id\":",
    line: "a result of an execution",
    file: UserChoice::ResultsFile,
    remark: "",
    writer: "evaluation",
};

/// Results file, open for appending; a lock keeps other processes from writing to it.
#[derive(Debug)]
pub struct Log {
    lines: AppendLog,
    known: ResultIndex,
}

/// Index of the results file.
#[derive(Debug, Default)]
struct ResultIndex {
    runs: HashMap<String, LinePlace>,
    written: HashSet<(usize, HoleText, usize, String)>,
}

impl ResultIndex {
    fn remember(&mut self, record: &RunRecord, place: LinePlace, forgotten: &[Status]) {
        let written = (record.row, record.kind, record.sample, record.key.clone());
        if record.is_kept() && !forgotten.contains(&record.status) {
            self.written.insert(written);
            self.runs.insert(record.key.clone(), place);
        } else {
            self.written.remove(&written);
            self.runs.remove(&record.key);
        }
    }
}

impl Log {
    /// Opens or creates a results file. An incomplete last line is dropped; a line that is not a result is skipped and kept.
    /// Runs whose status is among `forgotten` are repeated.
    ///
    /// # Errors
    /// The file cannot be read or written, contains something else, or another evaluation is writing to it.
    pub fn open(path: &Path, forgotten: &[Status]) -> Result<Self> {
        let mut known = ResultIndex::default();
        let lines = AppendLog::open(path, LOG, |line, place| {
            let record = serde_json::from_slice::<RunRecord>(line);
            record.map(|record| known.remember(&record, place, forgotten)).is_ok()
        })?;
        Ok(Self { lines, known })
    }

    /// Returns the known result of a run.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn of_key(&self, key: &str) -> Result<Option<RunRecord>> {
        match self.known.runs.get(key) {
            None => Ok(None),
            Some(&place) => Ok(serde_json::from_slice(&self.lines.line(place)?).ok()),
        }
    }

    /// Appends a result, unless it is already recorded.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn append(&mut self, record: &RunRecord) -> Result<()> {
        let written = (record.row, record.kind, record.sample, record.key.clone());
        if self.known.written.contains(&written) {
            return Ok(());
        }
        let place = self.lines.append(serde_json::to_vec(record).unwrap_or_default())?;
        self.known.remember(record, place, &[]);
        Ok(())
    }
}

/// Key of a result: row, text, number of the sample or run, and the digest of everything that the run depends on.
type ResultOf = (usize, HoleText, usize, String);

/// Recorded results of one run in a shard's file.
struct ShardResults {
    /// Digests of all recorded results.
    recorded: HashSet<blake3::Hash>,
    last: LinePlace,
    /// True if the run of the last result need not be repeated.
    is_kept: bool,
}

/// Appends the results recorded in other files to a results file, and returns the number of runs with results in the other files. If a run
/// was repeated, the last result counts; a run that was repeated in the results file itself keeps its result from there.
///
/// # Errors
/// A file cannot be read or written, contains something else, or another evaluation is writing to it.
pub fn gather(path: &Path, others: &[PathBuf]) -> Result<usize> {
    let result_of = |record: RunRecord| (record.row, record.kind, record.sample, record.key);
    let digest = |record: &RunRecord| blake3::hash(&serde_json::to_vec(record).unwrap_or_default());
    let mut now: HashMap<ResultOf, blake3::Hash> = HashMap::default();
    let mut log = AppendLog::open(path, LOG, |line, _| {
        let record = serde_json::from_slice::<RunRecord>(line);
        let Ok(record) = record else { return false };
        let digest = digest(&record);
        now.insert(result_of(record), digest);
        true
    })?;
    let mut count = 0;
    for other in others {
        let mut found: HashMap<ResultOf, ShardResults> = HashMap::default();
        let lines = AppendLog::open(other, LOG, |line, place| {
            let Ok(record) = serde_json::from_slice::<RunRecord>(line) else { return false };
            let (digest, is_kept) = (digest(&record), record.is_kept());
            let gathered = found.entry(result_of(record)).or_insert_with(|| ShardResults {
                recorded: HashSet::default(),
                last: place,
                is_kept,
            });
            gathered.recorded.insert(digest);
            (gathered.last, gathered.is_kept) = (place, is_kept);
            true
        })?;
        count += found.values().filter(|gathered| gathered.is_kept).count();
        let mut wanted = Vec::new();
        for (of, gathered) in found {
            let is_older = |there: &blake3::Hash| gathered.recorded.contains(there);
            if now.get(&of).map_or(gathered.is_kept, is_older) {
                wanted.push((of, gathered.last));
            }
        }
        wanted.sort_unstable_by_key(|(_, place)| place.begin());
        for (of, place) in wanted {
            let Ok(record) = serde_json::from_slice::<RunRecord>(&lines.line(place)?) else {
                continue;
            };
            let digest = digest(&record);
            if now.insert(of, digest) != Some(digest) {
                log.append(serde_json::to_vec(&record).unwrap_or_default())?;
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record(row: usize, status: Status, key: &str) -> RunRecord {
        RunRecord {
            task_id: format!("r/{row}"),
            row,
            repository: "r".into(),
            kind: HoleText::Prediction,
            sample: 0,
            status,
            reason: String::new(),
            passed: None,
            report: None,
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
        log.append(&record(1, Status::EnvironmentBroken, "b")).unwrap();
        drop(log);
        let whole = fs::read_to_string(&path).unwrap();
        assert_eq!(whole.lines().count(), 2);
        for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            fs::write(&path, &whole[..cut]).unwrap();
            let log = Log::open(&path, &[]).unwrap();
            let lines = whole[..cut].matches('\n').count();
            assert_eq!(known(&log, "a").is_some(), lines >= 1, "{cut}");
            assert!(known(&log, "b").is_none(), "a broken environment is tried again");
            drop(log);
            assert_eq!(fs::read_to_string(&path).unwrap().matches('\n').count(), lines);
        }
    }

    #[test]
    fn results_of_shards_are_gathered_and_repeated_ones_replace_their_older_ones() {
        let dir = tempfile::tempdir().unwrap();
        let [whole, one, two] =
            ["results.jsonl", "one.jsonl", "two.jsonl"].map(|name| dir.path().join(name));
        let add = |path: &Path, record: RunRecord, forgotten: &[Status]| {
            Log::open(path, forgotten).unwrap().append(&record).unwrap();
        };
        let status = |key| known(&Log::open(&whole, &[]).unwrap(), key);
        let others = [one.clone(), two.clone()];
        add(&one, record(0, Status::Fail, "a"), &[]);
        add(&two, record(1, Status::EnvironmentBroken, "b"), &[]);
        assert_eq!(gather(&whole, &others).unwrap(), 1, "the other must be found again");
        assert_eq!((status("a"), status("b")), (Some(Status::Fail), None));
        // Repeated in the shards, before and after gathering.
        add(&one, record(0, Status::Pass, "a"), &[Status::Fail]);
        add(&two, record(1, Status::Fail, "b"), &[]);
        add(&two, record(1, Status::Pass, "b"), &[Status::Fail]);
        assert_eq!(gather(&whole, &others).unwrap(), 2);
        assert_eq!((status("a"), status("b")), (Some(Status::Pass), Some(Status::Pass)));
        let length = fs::metadata(&whole).unwrap().len();
        assert_eq!(gather(&whole, &others).unwrap(), 2);
        assert_eq!(fs::metadata(&whole).unwrap().len(), length, "nothing is new");
        // Repeated in the combined file.
        add(&whole, record(0, Status::Timeout, "a"), &[Status::Pass]);
        gather(&whole, &others).unwrap();
        assert_eq!(status("a"), Some(Status::Timeout));
        // The environment broke, so the earlier result no longer counts.
        add(&two, record(1, Status::EnvironmentBroken, "b"), &[Status::Pass]);
        gather(&whole, &others).unwrap();
        assert_eq!(status("b"), None);
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
        // Between results, the line is skipped.
        fs::write(&path, "").unwrap();
        Log::open(&path, &[]).unwrap().append(&record(0, Status::Fail, "a")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("no result\n\n{text}")).unwrap();
        assert_eq!(known(&Log::open(&path, &[]).unwrap(), "a"), Some(Status::Fail));
        assert_eq!(known(&Log::open(&path, &[Status::Fail]).unwrap(), "a"), None);
    }

    #[test]
    fn one_evaluation_writes_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        let _log = Log::open(&path, &[]).unwrap();
        let error = Log::open(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("another evaluation"), "{error}");
    }
}
