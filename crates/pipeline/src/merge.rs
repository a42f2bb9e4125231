//! Merges the artifacts of shards into artifacts of all tasks, identical byte for byte to those of a single process.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use repoformer_core::repository::Shard;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::TaskSet;
use repoformer_store::artifact::{self, ArtifactState, Header, Identity, LineSink, LineTotals};
use repoformer_store::error::{Error, Result};
use repoformer_store::files::File;
use repoformer_text::message;
use repoformer_text::message::StageRun;
use serde::Deserialize;

use super::completion::Completion;
use super::engine::Engine;
use super::experiment::Experiment;
use super::prediction_artifact::{ModePredictions, predictions_identity};
use super::prompt_artifact::Prompts;
use super::prompt_sources::PromptSources;
use super::remote;
use super::stage::StageReport;

/// Merges the prompts and predictions that `count` shards made in each mode. If an artifact of a shard is missing, stale or
/// damaged, its mode is left out and reported; so are predictions if no shard has any.
///
/// # Errors
/// Retrieval results are missing or stale, or an artifact cannot be written.
pub fn merge(
    experiment: &Experiment,
    count: u64,
    modes: &[Mode],
    completion: &Completion,
) -> Result<StageReport> {
    let mut engine = Engine::new(experiment);
    let tasks = experiment.tasks()?;
    let mut sources = PromptSources::new(experiment, tasks);
    for &mode in modes {
        let prompts = sources.open(mode)?;
        let layout = |shard| experiment.paths().of_shard(shard);
        let step = StageRun::InMode("prompt", mode.name());
        let wanted = Shard::all(count).map(|shard| ShardArtifact {
            shard,
            path: layout(shard).prompts(mode),
            identity: prompts.identity_of_shard(shard),
        });
        let Some(parts) = open(wanted, "prompts", &step, &mut engine.report)? else { continue };
        let of_shards: Vec<Header> = parts.iter().map(|part| part.header.clone()).collect();
        let merged = Prompts { mode, identity: prompts.identity() };
        let whole = engine.make_lines(&merged, |_, sink| interleave(tasks, parts, sink))?;

        let model = &completion.model;
        if !Shard::all(count).any(|shard| layout(shard).predictions(mode, model).exists()) {
            continue;
        }
        let step = StageRun::InMode("complete", mode.name());
        let wanted = Shard::all(count).zip(&of_shards).map(|(shard, prompts)| {
            let path = layout(shard).predictions(mode, model);
            let identity = predictions_identity(experiment, mode, completion, prompts, Some(shard));
            ShardArtifact { identity: with_own_journal(identity, &path), shard, path }
        });
        let Some(parts) = open(wanted, "predictions", &step, &mut engine.report)? else { continue };
        let missing: u64 = (parts.iter().zip(&of_shards))
            .map(|(part, prompts)| prompts.records - part.header.records.min(prompts.records))
            .sum();
        let path = experiment.paths().predictions(mode, model);
        let predictions = ModePredictions { mode, completion, prompts: whole.header() };
        let merged = engine.make_lines(&predictions, |_, sink| interleave(tasks, parts, sink))?;
        if missing > 0 {
            engine.report.problems.push(Error::Artifact {
                path,
                reason: format!("{missing} prompts have no prediction in their shards"),
                hint: "complete the shards again, then merge; existing answers are reused".into(),
            });
        }
        let times = Shard::all(count).map(|shard| layout(shard).latency(mode, model));
        remote::merge_latencies(
            &experiment.paths().latency(mode, model),
            times,
            merged.header().records,
        )?;
    }
    Ok(engine.report)
}

/// An artifact that a shard should have made.
struct ShardArtifact {
    shard: Shard,
    path: PathBuf,
    identity: Identity,
}

/// Accepts the shard's own journal: each shard may keep its answers in a file that its user chose.
fn with_own_journal(mut identity: Identity, path: &std::path::Path) -> Identity {
    const JOURNAL: &str = "journal";
    let known = artifact::jsonl_header(path).ok();
    let journal = known.and_then(|header| header.identity.parameters.get(JOURNAL).cloned());
    if let (Some(journal), true) = (journal, identity.parameters.contains_key(JOURNAL)) {
        identity.parameters.insert(JOURNAL.into(), journal);
    }
    identity
}

/// Opens the artifacts of the shards; `None` if a shard lacks its artifact, which is reported.
fn open(
    wanted: impl Iterator<Item = ShardArtifact>,
    kind: &str,
    step: &StageRun,
    report: &mut StageReport,
) -> Result<Option<Vec<Lines>>> {
    let (mut parts, mut is_whole) = (Vec::new(), true);
    for ShardArtifact { shard, path, identity } in wanted {
        let reason = match artifact::state_jsonl(&path, &identity) {
            ArtifactState::Current(header) => {
                parts.push(Lines::open(path, *header)?);
                continue;
            }
            ArtifactState::Missing => format!("the {kind} of shard {shard} are missing"),
            ArtifactState::Stale(differences) => {
                let first = differences.first().map(ToString::to_string).unwrap_or_default();
                format!("the {kind} of shard {shard} are stale: {first}")
            }
            ArtifactState::Damaged(reason) => {
                format!("the {kind} of shard {shard} are damaged: {reason}")
            }
        };
        let more = format!(", shard {shard} and the same settings");
        let hint = message!["make them with ", step, more];
        report.problems.push(Error::Artifact { path, reason, hint });
        is_whole = false;
    }
    Ok(is_whole.then_some(parts))
}

const UNLIKE_TASKS: &str = "its records do not match its tasks in order";
const MAKE_AGAIN: &str = "make it again";

/// Lines of a shard's artifact, one after another.
struct Lines {
    path: PathBuf,
    header: Header,
    input: BufReader<File>,
    hasher: blake3::Hasher,
    line: Vec<u8>,
    /// Row of the line's task, if the line names it.
    row: Option<usize>,
}

impl Lines {
    fn open(path: PathBuf, header: Header) -> Result<Self> {
        let file =
            File::open_regular(&path).map_err(|e| Error::reading(&path, "open this file", e))?;
        let input = BufReader::with_capacity(1 << 16, file);
        let (hasher, line) = (blake3::Hasher::new(), Vec::new());
        let mut lines = Self { path, header, input, hasher, line, row: None };
        lines.advance()?;
        Ok(lines)
    }

    fn advance(&mut self) -> Result<()> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct ModeRecord {
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Metadata {
            row: Option<usize>,
        }
        self.line.clear();
        let read = self.input.read_until(b'\n', &mut self.line);
        read.map_err(|e| Error::reading(&self.path, "read this file", e))?;
        self.hasher.update(&self.line);
        self.row = if self.line.is_empty() {
            None
        } else {
            let record: ModeRecord = serde_json::from_slice(&self.line)
                .map_err(|_| Error::artifact(&self.path, UNLIKE_TASKS, MAKE_AGAIN))?;
            record.metadata.row
        };
        Ok(())
    }

    /// True if there is a line and it belongs to this task; `is_first` if no line was taken for the task before.
    fn are_of(&self, row: usize, is_first: bool) -> bool {
        // Tasks that are written themselves have one line each, without a row.
        !self.line.is_empty() && self.row.map_or(is_first, |its| its == row)
    }

    /// Checks that all lines were taken, and that they match the header's checksum.
    fn finish(self) -> Result<()> {
        if self.line.is_empty() && self.hasher.finalize().to_hex().as_str() == self.header.checksum
        {
            return Ok(());
        }
        Err(Error::artifact(&self.path, UNLIKE_TASKS, MAKE_AGAIN))
    }
}

/// Writes the lines of all shards in the order of the tasks.
fn interleave(tasks: &TaskSet, mut parts: Vec<Lines>, sink: &mut LineSink) -> Result<LineTotals> {
    let mut totals = LineTotals::default();
    let count = parts.len() as u64;
    for task in tasks.tasks() {
        let part = &mut parts[Shard::containing(&task.repository, count).index as usize];
        let mut is_first = true;
        while part.are_of(task.row, is_first) {
            sink.write(&part.line)?;
            totals.records += 1;
            part.advance()?;
            is_first = false;
        }
    }
    for part in parts {
        for (name, total) in &part.header.totals {
            *totals.totals.entry(name.clone()).or_default() += total;
        }
        part.finish()?;
    }
    Ok(totals)
}
