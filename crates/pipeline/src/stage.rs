//! A stage of the pipeline: what it did, the artifacts that it needs, and whether they are current.

use std::path::{Path, PathBuf};

use repoformer_core::repository::parallel;
use repoformer_core::retrieve::Retrieval;
use repoformer_store::artifact::{self, Header, Identity, Payload, State};
use repoformer_store::error::{Access, Error, Result};
use repoformer_store::files;
use repoformer_store::readings;
use repoformer_text::message;
use repoformer_text::message::{Message, StageRun};

use super::engine::Engine;
use super::experiment::Experiment;
use super::plan::Planned;

/// Work that a stage did.
#[derive(Debug, Default)]
pub struct StageReport {
    /// Artifacts written.
    pub built: usize,
    /// Artifacts found current and left alone.
    pub current: usize,
    /// Records in all of them.
    pub records: u64,
    /// Artifacts that were stale or damaged and so rebuilt.
    pub rebuilt: Vec<Rebuilt>,
    /// Warnings.
    pub warnings: Vec<Message>,
    /// Tasks that do not fit the files that they name, and were worked on all the same.
    pub misfits: Vec<Error>,
    /// Records and files that were skipped.
    pub problems: Vec<Error>,
    /// The artifacts, in the order of the work.
    pub outputs: Vec<PathBuf>,
    /// In a dry run, the artifacts that would be made or are current; then none is in the numbers above.
    pub planned: Vec<Planned>,
}

/// An artifact that was stale or damaged and so rebuilt.
#[derive(Debug)]
pub struct Rebuilt {
    /// Its path.
    pub path: PathBuf,
    /// Why: `repository changed`, `damaged: …`.
    pub reason: String,
    /// Whether it was stale, rather than damaged.
    pub is_stale: bool,
    /// Whether the reason is another artifact that was made again before, rather than something outside the cache.
    pub follows: bool,
}

/// Name of the predictions' artifact in the identity of queries that were made of it.
pub(super) const PREDICTIONS_FILE: &str = "predictions-file";

/// Whether an input is an artifact of the cache, rather than a file of the user.
fn is_artifact(input: &str, identity: &Identity) -> bool {
    match input {
        "repository" | "tasks" | "vector texts" => false,
        "predictions" => {
            identity.kind == "scores" || identity.parameters.contains_key(PREDICTIONS_FILE)
        }
        // Search takes the cache's vectors, and `vectorize` those of a file.
        "vectors" => identity.kind == Retrieval::KIND,
        _ => true,
    }
}

impl std::fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, reason, is_stale, .. } = self;
        match is_stale {
            true => write!(f, "{}: stale ({reason}), rebuilt", path.display()),
            false => write!(f, "{}: {reason}; rebuilt", path.display()),
        }
    }
}

impl StageReport {
    /// Adds a warning.
    pub(super) fn warn(&mut self, warning: impl Into<Message>) {
        self.warnings.push(warning.into());
    }

    /// Adds what another did.
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

    /// The report of work that was begun here and done again, and ended, there.
    fn continued(self, again: Self) -> Self {
        let mut rebuilt = self.rebuilt;
        rebuilt.extend(again.rebuilt);
        // The second time, the artifacts that the first time built were current.
        let current = again.current.saturating_sub(self.built);
        Self { built: self.built + again.built, current, rebuilt, ..again }
    }

    /// Notes why an artifact is made again.
    pub(super) fn note(&mut self, path: &Path, identity: &Identity, state: &State) {
        let (reason, is_stale) = match state {
            // The others are often due to the first.
            State::Stale(differences) => (differences.first().map(ToString::to_string), true),
            State::Damaged(reason) => (Some(reason.clone()), false),
            State::Missing | State::Current(_) => return,
        };
        let reason = reason.unwrap_or_default();
        let input = reason.strip_suffix(" changed").filter(|_| is_stale);
        let follows = input.is_some_and(|input| is_artifact(input, identity));
        self.rebuilt.push(Rebuilt { path: path.to_owned(), reason, is_stale, follows });
    }

    /// Counts an artifact that is there.
    pub(super) fn done(&mut self, path: PathBuf, header: &Header, built: bool) {
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
    if let Some(header) = experiment.planned(path) {
        return Ok(header);
    }
    if !path.exists() {
        return Err(missing(path, kind, step));
    }
    artifact::read_jsonl_header(path).map_err(|error| made_again(error, step))
}

/// Checks that the lines which were read from a JSONL artifact are those of its header.
///
/// # Errors
/// They are not: another program wrote it anew in between.
pub(super) fn check_read(path: &Path, header: &Header) -> Result<()> {
    match readings::known(path)? {
        Some(content) if content.digest != header.checksum => Err(readings::changed(path)),
        _ => Ok(()),
    }
}

/// A damaged artifact, with the stage that mends it.
pub(super) fn made_again(error: Error, step: &StageRun) -> Error {
    match error {
        Error::Artifact { path, reason, .. } => {
            Error::Artifact { path, reason, hint: message!["make it again with ", step] }
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
        hint: message!["make it again with ", step, " and the same settings"],
    }
}

/// Removes files that are there. Of lines and their header, the header comes last: lines without one would be taken for
/// somebody's own.
///
/// # Errors
/// One cannot be removed.
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

/// Does something for each repository, in parallel; the results are in the repositories' order.
///
/// # Errors
/// The first repository's error, whichever thread comes first.
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
        progress.done(usize::from(!engine.is_postponed));
        (engine.report, (!engine.is_postponed).then_some(outcome))
    });
    let reports =
        experiment.repositories.iter().zip(first).map(|(repository, (report, outcome))| {
            if let Some(outcome) = outcome {
                return (report, outcome);
            }
            // Another process was making one of its artifacts. All other work is done, and no turn is held.
            let mut engine = Engine::new(experiment);
            let outcome = work(repository, &mut engine);
            progress.done(1);
            (report.continued(engine.report), outcome)
        });
    let mut all = StageReport::default();
    let mut failed = None;
    for (report, outcome) in reports {
        all.merge(report);
        if let Err(error) = outcome {
            // One repository that cannot be read costs no other; what no repository can do without ends the stage.
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
