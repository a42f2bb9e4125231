//! Time that each task took: a measurement, and so in a file of its own next to the artifacts.

use std::path::{Path, PathBuf};

use repoformer_core::retrieve::Mode;
use repoformer_store::artifact::write_file;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::jsonl::{self, Fields, Object, RecordAddress};
use repoformer_store::seal::{Seal, check, seal};
use serde::{Deserialize, Serialize};

use super::super::engine::Flaw;
use super::super::experiment::Experiment;
use super::super::search_time;
use super::super::stage::remove;

/// Times of one task's prompt, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Id of the task.
    pub task_id: String,
    /// Row of the task in the task file, if the prompt names it.
    pub row: Option<u64>,
    /// Number of the prompt among the task's prompts.
    #[serde(default)]
    pub sample: u64,
    /// Time from the query's text to the results, measured alone on one thread in an existing index; `None` if the mode does not
    /// retrieve or the time was not measured.
    pub retrieval_ms: Option<f64>,
    /// True if `retrieval_ms` does not include the time for the query's dense vector, which came from a file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_embedding: bool,
    /// Time from the request to its last sample, including the wait for other requests. For the embedded model, the time on one
    /// thread while other threads work, too.
    pub generation_ms: Option<f64>,
    /// Time from the request for the probability of the token that asks for retrieval to the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_ms: Option<f64>,
    /// Number of requests that the server had at once; `None` if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
}

impl Latency {
    /// Returns the unmeasured times of a prompt's record, parsing no more of the record than the fields that name its task.
    ///
    /// # Errors
    /// The fields that name the task are of other types.
    pub(crate) fn of_prompt(path: &Path, line: usize, record: &[u8]) -> Result<Self> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Prompt {
            task_id: Option<String>,
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Metadata {
            task_id: Option<String>,
            row: Option<u32>,
            sample: u32,
        }
        match serde_json::from_slice::<Prompt>(record) {
            Ok(Prompt { task_id, metadata }) => Ok(Self::without_times(
                metadata.task_id.or(task_id).unwrap_or_default(),
                metadata.row.map(u64::from),
                metadata.sample.into(),
            )),
            // The record may contain NaN, null, or a numeric id.
            Err(_) => Self::of_record(path, line, &jsonl::parse(path, line, record)?),
        }
    }

    /// Returns the unmeasured times of a prompt's record.
    ///
    /// # Errors
    /// The fields that name the task are of other types.
    pub(crate) fn of_record(path: &Path, line: usize, record: &Object) -> Result<Self> {
        let (top, empty) = (Fields::new(path, line, "", record), Object::new());
        let metadata = if top.has("metadata") { top.object("metadata")? } else { &empty };
        let metadata = top.below("metadata.", metadata);
        let named = [metadata, top].into_iter().find(|fields| fields.has("task_id"));
        let id = named.map(|fields| fields.task_id()).transpose()?.unwrap_or_default();
        let number = |name: &str| -> Result<_> {
            Ok(metadata.optional_count(name)?.map(|number| number as u64))
        };
        Ok(Self::without_times(id, number("row")?, number("sample")?.unwrap_or(0)))
    }

    fn without_times(task_id: String, row: Option<u64>, sample: u64) -> Self {
        Self {
            task_id,
            row,
            sample,
            retrieval_ms: None,
            without_embedding: false,
            generation_ms: None,
            decision_ms: None,
            at_once: None,
        }
    }

    /// Returns the time of the retrieval; `None` if it was not measured, or if the context came with the task (mode `given`).
    pub fn retrieval(&self, mode: Mode) -> Option<f64> {
        match mode {
            Mode::Without => Some(0.0),
            Mode::Given => None,
            _ => self.retrieval_ms,
        }
    }
}

/// Returns the latencies of a model's predictions in a mode, as [`complete`](super::super::complete) recorded them. Retrieval times
/// that are missing are measured here. Empty if the completions were never measured.
///
/// # Errors
/// The mode's retrieval artifacts are missing, or the file cannot be written.
pub fn latencies(experiment: &Experiment, mode: Mode, model: &str) -> Result<Vec<Latency>> {
    let path = experiment.paths().latency(mode, model);
    let mut known = read(&path)?;
    let is_measured = |latency: &Latency| latency.retrieval_ms.is_some();
    if known.is_empty() || !mode.retrieves() || known.iter().all(is_measured) {
        return Ok(known);
    }
    let measured = search_time::time_each(experiment, mode)?;
    for latency in &mut known {
        let key = (latency.row.unwrap_or(u64::MAX), latency.sample);
        let time = measured.get(&key);
        latency.retrieval_ms = time.map(|time| 1e3 * time.took.as_secs_f64());
        latency.without_embedding = time.is_some_and(|time| time.without_embedding);
    }
    write(&path, &known)?;
    Ok(known)
}

/// Records the times of new predictions. If none was measured, removes the times of earlier predictions.
pub(crate) fn keep(path: &Path, latencies: &[Latency]) -> Result<()> {
    if latencies.iter().any(|latency| latency.generation_ms.is_some()) {
        return write(path, latencies);
    }
    remove(&[path])
}

/// Merges the times that shards recorded, in the order of the tasks; there must be one for each of `predictions`, or none is kept.
///
/// # Errors
/// A file of times is damaged, or the merged one cannot be written.
pub(crate) fn merge(
    path: &Path,
    of_shards: impl Iterator<Item = PathBuf>,
    predictions: u64,
) -> Result<()> {
    let read: Vec<Vec<Latency>> = of_shards.map(|path| read(&path)).collect::<Result<_>>()?;
    let mut latencies: Vec<Latency> = read.into_iter().flatten().collect();
    if latencies.len() as u64 != predictions {
        return remove(&[path]);
    }
    latencies.sort_by_key(|latency| (latency.row, latency.sample));
    keep(path, &latencies)
}

/// Records the times of decisions that were just requested.
pub(super) fn keep_decisions(
    experiment: &Experiment,
    mode: Mode,
    model: &str,
    latencies: &[Latency],
) -> Result<()> {
    let decided = latencies.iter().map(|one| Latency { generation_ms: None, ..one.clone() });
    write(&experiment.paths().decision_latency(mode, model), &decided.collect::<Vec<_>>())
}

/// Returns the times of a model's decisions without retrieval; empty if they were not measured.
///
/// # Errors
/// The file of times is damaged.
pub fn decision_latencies(experiment: &Experiment, model: &str) -> Result<Vec<Latency>> {
    read(&experiment.paths().decision_latency(Mode::Without, model))
}

fn write(path: &Path, latencies: &[Latency]) -> Result<()> {
    let mut text = Vec::new();
    for latency in latencies {
        text.extend(seal(serde_json::to_vec(latency).unwrap_or_default()));
        text.push(b'\n');
    }
    write_file(path, &text)
}

/// Reads the recorded times; empty if the file does not exist.
fn read(path: &Path) -> Result<Vec<Latency>> {
    let text = files::read_regular_if_there(path)
        .map_err(|e| Error::reading(path, "read these times", e))?;
    let Some(text) = text else { return Ok(Vec::new()) };
    let record = |(RecordAddress { line, .. }, bytes): (RecordAddress, &[u8])| {
        let damaged = |reason: &str| {
            let reason = format!("line {line}: damaged: {reason}");
            Error::artifact(path, reason, "run `complete` again to measure the times again")
        };
        match check(bytes) {
            Seal::Broken => Err(damaged("its checksum does not match")),
            Seal::Whole | Seal::Without => {
                serde_json::from_slice(bytes).map_err(|_| damaged("not the times of a task"))
            }
        }
    };
    jsonl::records(&text).map(record).collect()
}

/// Returns damage to a file of times as a flaw, so that the times and their artifact are made again.
pub(crate) fn find_damage(times: &Path) -> Option<Flaw> {
    match read(times) {
        Err(Error::Artifact { path, reason, .. }) => Some(Flaw::Beside { path, reason }),
        _ => None,
    }
}
