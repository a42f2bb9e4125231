//! A stage of the pipeline: its report, the artifacts that it needs, and whether they are current.

use std::path::{Path, PathBuf};

use repoformer_core::repository::parallel;
use repoformer_core::retrieve::Retrieval;
use repoformer_store::artifact::{self, ArtifactState, Header, Identity, Payload};
use repoformer_store::error::{Access, Error, Result};
use repoformer_store::files;
use repoformer_store::readings;
use repoformer_text::message;
use repoformer_text::message::{Message, StageRun};

use super::engine::Engine;
use super::experiment::Experiment;
use super::plan::PlannedArtifact;

/// Report of a stage's work.
#[derive(Debug, Default)]
pub struct StageReport {
    /// Number of artifacts written.
    pub built: usize,
    /// Number of artifacts that were current.
    pub current: usize,
    /// Number of records in all of these artifacts.
    pub records: u64,
    /// Artifacts that were rebuilt because they were stale or damaged.
    pub rebuilt: Vec<RebuiltArtifact>,
    /// Warnings.
    pub warnings: Vec<Message>,
    /// Errors of tasks that do not match the files that they name, but were processed nevertheless.
    pub misfits: Vec<Error>,
    /// Records and files that were skipped.
    pub problems: Vec<Error>,
    /// Paths of the artifacts, in the order of the work.
    pub outputs: Vec<PathBuf>,
    /// In a dry run, the artifacts that would be made or are current; the numbers above do not count them.
    pub planned: Vec<PlannedArtifact>,
}

/// Artifact that was rebuilt because it was stale or damaged.
#[derive(Debug)]
pub struct RebuiltArtifact {
    /// Path of the artifact.
    pub path: PathBuf,
    /// Reason for rebuilding: `repository changed`, `damaged: …`.
    pub reason: String,
    /// True if the artifact was stale rather than damaged.
    pub is_stale: bool,
    /// True if the reason is another artifact that was rebuilt before, rather than something outside the cache.
    pub follows: bool,
}

/// Name of the predictions' artifact in the identity of queries that were made from it.
pub(super) const PREDICTIONS_FILE: &str = "predictions-file";

/// True if an input is an artifact of the cache, rather than a file of the user.
fn is_artifact(input: &str, identity: &Identity) -> bool {
    match input {
        "repository" | "tasks" | "vector texts" => false,
        "predictions" => {
            identity.kind == "scores" || identity.parameters.contains_key(PREDICTIONS_FILE)
        }
        // The input of `search` is the cache's vectors, the input of `vectorize` a file's.
        "vectors" => identity.kind == Retrieval::KIND,
        _ => true,
    }
}

impl std::fmt::Display for RebuiltArtifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, reason, is_stale, .. } = self;
        if *is_stale {
            write!(f, "{}: stale ({reason}), rebuilt", path.display())
        } else {
            write!(f, "{}: {reason}; rebuilt", path.display())
        }
    }
}

impl StageReport {
    /// Adds a warning.
    pub(super) fn warn(&mut self, warning: impl Into<Message>) {
        self.warnings.push(warning.into());
    }

    /// Adds another report.
    pub fn merge(&mut self, other: Self) {
        self.built += other.built;
        self.current += other.current;
        self.records += other.records;
        self.rebuilt.extend(other.rebuilt);
        self.warnings.extend(other.warnings);
        self.misfits.extend(other.misfits);
        self.problems.extend(other.problems);
        self.outputs.extend(other.outputs);
        self.planned.extend(other.planned);
    }

    /// Combines this report of unfinished work with the report of doing the work again.
    fn merge_with_rerun(self, again: Self) -> Self {
        let mut rebuilt = self.rebuilt;
        rebuilt.extend(again.rebuilt);
        // The second time, the artifacts that were built the first time are current.
        let current = again.current.saturating_sub(self.built);
        Self { built: self.built + again.built, current, rebuilt, ..again }
    }

    /// Records why an artifact is made again.
    pub(super) fn note(&mut self, path: &Path, identity: &Identity, state: &ArtifactState) {
        let (reason, is_stale) = match state {
            // Further differences often result from the first.
            ArtifactState::Stale(differences) => {
                (differences.first().map(ToString::to_string), true)
            }
            ArtifactState::Damaged(reason) => (Some(reason.clone()), false),
            ArtifactState::Missing | ArtifactState::Current(_) => return,
        };
        let reason = reason.unwrap_or_default();
        let input = reason.strip_suffix(" changed").filter(|_| is_stale);
        let follows = input.is_some_and(|input| is_artifact(input, identity));
        self.rebuilt.push(RebuiltArtifact { path: path.to_owned(), reason, is_stale, follows });
    }

    /// Counts an existing artifact.
    pub(super) fn count(&mut self, path: PathBuf, header: &Header, built: bool) {
        self.built += usize::from(built);
        self.current += usize::from(!built);
        self.records += header.records;
        self.outputs.push(path);
    }
}

/// Reads the header of a JSONL artifact that an earlier stage makes.
pub(super) fn require_jsonl(
    experiment: &Experiment,
    path: &Path,
    kind: &str,
    step: &StageRun,
) -> Result<Header> {
    if let Some(header) = experiment.planned_header(path) {
        return Ok(header);
    }
    if !path.exists() {
        return Err(missing(path, kind, step));
    }
    artifact::read_jsonl_header(path).map_err(|error| made_again(error, step))
}

/// Checks that the lines read from a JSONL artifact match its header.
///
/// # Errors
/// The lines differ: another program rewrote the artifact in between.
pub(super) fn check_read(path: &Path, header: &Header) -> Result<()> {
    match readings::find(path)? {
        Some(content) if content.digest != header.checksum => Err(readings::change_error(path)),
        _ => Ok(()),
    }
}

/// Returns the error for a damaged artifact, with the stage that makes it again.
pub(super) fn made_again(error: Error, step: &StageRun) -> Error {
    match error {
        Error::Artifact { path, reason, .. } => {
            Error::Artifact { path, reason, hint: message!["rebuild it with ", step] }
        }
        other => other,
    }
}

pub(super) fn missing(path: &Path, kind: &str, step: &StageRun) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("the {kind} are missing"),
        hint: message!["make them with ", step, " and the same data set"],
    }
}

pub(super) fn stale(path: &Path, reason: String, step: &StageRun) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("stale: {reason}"),
        hint: message!["rebuild it with ", step, " and the same settings"],
    }
}

/// Removes files if they exist. A header must come after its lines in the list: lines without a header would be taken for the
/// user's own.
///
/// # Errors
/// A file cannot be removed.
pub(super) fn remove(files: &[&Path]) -> Result<()> {
    for file in files {
        match files::remove_file(file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::writing(file, "remove this file", e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Calls `work` for each repository, in parallel; the results are in the repositories' order.
///
/// # Errors
/// The error of the first repository in that order, whichever thread ends first.
pub(super) fn by_repository<T: Send>(
    experiment: &Experiment,
    work: impl Fn(&str) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = parallel::map(&experiment.repositories, |repository| work(repository));
    results.into_iter().collect()
}

/// Runs a stage's work for each repository, in parallel, and merges the reports in the repositories' order.
pub(super) fn for_each_repository(
    experiment: &Experiment,
    stage: &str,
    work: impl Fn(&str, &mut Engine<'_>) -> Result<()> + Sync,
) -> Result<StageReport> {
    let progress = experiment.work(stage, "repositories", experiment.repositories.len());
    let first = parallel::map(&experiment.repositories, |repository| {
        let mut engine = Engine::without_waiting(experiment);
        let outcome = work(repository, &mut engine);
        progress.advance(usize::from(!engine.is_postponed));
        (engine.report, (!engine.is_postponed).then_some(outcome))
    });
    let reports =
        experiment.repositories.iter().zip(first).map(|(repository, (report, outcome))| {
            if let Some(outcome) = outcome {
                return (report, outcome);
            }
            // Another process was making an artifact of this repository. All other work is done by now, and this process holds
            // no turn.
            let mut engine = Engine::new(experiment);
            let outcome = work(repository, &mut engine);
            progress.advance(1);
            (report.merge_with_rerun(engine.report), outcome)
        });
    let mut all = StageReport::default();
    let mut failed = None;
    for (report, outcome) in reports {
        all.merge(report);
        if let Err(error) = outcome {
            // A repository that cannot be read does not affect the others; an error that would affect all of them ends the
            // stage.
            match error {
                Error::Repository { .. } | Error::Io { access: Access::Read, .. } => {
                    all.problems.push(error)
                }
                _ => failed = failed.or(Some(error)),
            }
        }
    }
    failed.map_or(Ok(all), Err)
}
