//! `eval`: turns tasks and predictions into scores.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::{self, UncutReason};
use repoformer_core::retrieve::Mode;
use repoformer_core::task::{NumberedRecords, Task, TaskFiles, TaskSet};
use repoformer_evaluate::mode_scores::ModeScores;
use repoformer_evaluate::predictions::{self, JoinedPredictions};
use repoformer_evaluate::score::{MissingPredictions, Scores, Scoring, score_tasks};
use repoformer_store::artifact::{self, Header, Identity, LineTotals, digest_parts};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::message::StageRun;
use serde_json::json;

use super::engine::{Artifact, Engine, Lines, Outcome};
use super::experiment::Experiment;
use super::stage::{StageReport, check_read, require_jsonl};

/// Samples and scores of a mode's predictions, and the problems.
#[derive(Debug)]
pub struct Evaluation {
    /// The scores; an error if no task has a prediction, or if one has none and `missing` makes that an error.
    pub scores: Result<Scores>,
    /// Records and tasks that were skipped; if the scores are an error, these may explain it.
    pub problems: Vec<Error>,
    /// Number of samples that are empty texts; they are scored as such.
    pub empty: usize,
    /// Number of records that answer a prompt changed by lm-evaluation-harness.
    pub changed: usize,
    /// Records that are assigned to their tasks by numbers alone.
    pub numbered: NumberedRecords,
    /// The tasks that take part.
    pub tasks: Arc<TaskSet>,
    /// The samples of each of these tasks.
    pub samples: Vec<Vec<String>>,
}

/// Scores a predictions file against the experiment's tasks, or reads the scores that [`scores()`] keeps of it.
///
/// # Errors
/// The file cannot be read.
pub fn evaluate(
    experiment: &Experiment,
    path: &Path,
    scoring: &Scoring,
    missing: MissingPredictions,
) -> Result<Evaluation> {
    // Tasks of all shards: rows distinguish repeated ids, and a shard's records may be in one file with others.
    let tasks = experiment.all_tasks().map_or_else(|| experiment.tasks(), Ok)?;
    let joined = predictions::read(path, tasks)?;
    let JoinedPredictions { predictions, empty, changed, numbered, problems: unusable, .. } =
        joined;
    let (mut tasks, samples) = part(experiment, tasks, predictions);
    let left_contexts = take_left_contexts(experiment, scoring, &mut tasks);
    let checked = match missing {
        MissingPredictions::Skip => check_any(experiment, path, &samples),
        MissingPredictions::Zero | MissingPredictions::Error => Ok(()),
    };
    let mut problems = Vec::new();
    if missing == MissingPredictions::Skip && checked.is_ok() {
        let lost = tasks.tasks().iter().zip(&samples).filter(|(_, samples)| samples.is_empty());
        problems.extend(lost.map(|(task, _)| tasks.error(task, "has no prediction")));
    }
    let Scoring { metrics, postprocess } = scoring;
    let is_kept = checked.is_ok() && missing == MissingPredictions::Skip;
    let left = left_contexts.as_deref();
    let kept = if is_kept { kept_scores(experiment, path, scoring, left)? } else { None };
    let scores = match kept {
        Some((path, text)) => Scores::parse(&path, &text, &tasks, &samples, scoring),
        None => checked.and_then(|()| score_tasks(&tasks, &samples, metrics, postprocess, missing)),
    };
    problems.extend(unusable);
    Ok(Evaluation { scores, problems, empty, changed, numbered, tasks, samples })
}

/// Checks that a file has a prediction for any of the tasks; a shard may have none.
///
/// # Errors
/// The file has no prediction for any of the tasks.
pub fn check_any(experiment: &Experiment, path: &Path, samples: &[Vec<String>]) -> Result<()> {
    let is_whole = experiment.layout.shard.is_none();
    if is_whole && !samples.is_empty() && samples.iter().all(Vec::is_empty) {
        let tasks = experiment.tasks()?.path.clone();
        return Err(Error::NoPrediction { path: path.to_owned(), tasks });
    }
    Ok(())
}

/// Returns the scores of a mode's cached predictions, read from their artifact or computed; tasks without prediction are left
/// out. `None` in a dry run. The artifact may have more metrics. A caller that has just scored every task passes these `known` scores.
///
/// # Errors
/// The predictions are missing or damaged, or the scores cannot be written.
pub fn scores(
    experiment: &Experiment,
    mode: Mode,
    model: &str,
    scoring: &Scoring,
    known: Option<&Scores>,
) -> Result<(Option<ModeScores>, StageReport)> {
    let predictions = experiment.paths().predictions(mode, model);
    let step = StageRun::InMode("complete", mode.name());
    let header = require_jsonl(experiment, &predictions, "predictions", &step)?;
    let mut tasks = Arc::clone(experiment.tasks()?);
    (tasks, _) = part(experiment, &tasks, vec![(); tasks.tasks().len()]);
    let left_contexts = take_left_contexts(experiment, scoring, &mut tasks);
    let kept = experiment.paths().scores(mode, model);
    let kept = read_kept_identity(experiment, scoring, &kept, &header, left_contexts.as_deref())?;
    let wanted = || identity(experiment, scoring, &header, left_contexts.as_deref());
    let identity = kept.map_or_else(wanted, Ok)?;
    let (mut engine, mut made) = (Engine::new(experiment), None);
    let of_mode = ScoredMode { mode, model, identity };
    let outcome = engine.make_lines(&of_mode, |engine, sink| {
        let evaluated;
        let scores = match known {
            Some(scores) => scores,
            None => {
                let evaluation =
                    evaluate(experiment, &predictions, scoring, MissingPredictions::Skip)?;
                engine.report.problems.extend(evaluation.problems);
                evaluated = evaluation.scores?;
                &evaluated
            }
        };
        made = Some(ModeScores::from(scores));
        let reasons = [UncutReason::File, UncutReason::Bound].into_iter();
        let uncut = reasons.flat_map(|reason| scores.tell_uncut(reason));
        let warning = |told| format!("{}: {told}", predictions.display()).into();
        engine.report.warnings.extend(uncut.map(warning));
        let mut record = scores.to_record(mode.name(), true);
        check_read(&predictions, &header)?;
        record["made_with"] = json!(header.identity.parameters);
        let mut text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        text.push(b'\n');
        sink.write(&text)?;
        Ok(LineTotals { records: 1, ..LineTotals::default() })
    })?;
    if let Outcome::Current(_) = outcome {
        let path = of_mode.path(experiment);
        let text = files::read_regular(&path)
            .map_err(|e| Error::reading(&path, "read these scores", e))?;
        made = Some(ModeScores::parse(&path, &text, &scoring.metrics)?);
    }
    Ok((made, engine.report))
}

/// Returns the artifact of the scores of cached predictions, and its text; `None` if they must be scored. The predictions have been
/// read.
fn kept_scores(
    experiment: &Experiment,
    predictions: &Path,
    scoring: &Scoring,
    left_contexts: Option<&str>,
) -> Result<Option<(PathBuf, Vec<u8>)>> {
    let path = experiment.paths().scores_of(predictions).filter(|path| path.exists());
    let header = artifact::jsonl_header(predictions);
    let (Some(path), Ok(header), None) = (path, header, experiment.layout.shard) else {
        return Ok(None);
    };
    check_read(predictions, &header)?;
    let is_kept = read_kept_identity(experiment, scoring, &path, &header, left_contexts)?.is_some();
    Ok(artifact::read_jsonl(&path).ok().filter(|_| is_kept).map(|(_, text)| (path, text)))
}

/// Returns the identity of kept scores if they are those of predictions with this header, by at least these metrics.
fn read_kept_identity(
    experiment: &Experiment,
    scoring: &Scoring,
    kept: &Path,
    predictions: &Header,
    left_contexts: Option<&str>,
) -> Result<Option<Identity>> {
    let Ok(Header { identity: kept, tool, .. }) = artifact::jsonl_header(kept) else {
        return Ok(None);
    };
    let names = kept.parameters.get("metric").map_or("", String::as_str);
    let metrics: Vec<Metric> = names.split(' ').filter_map(|name| name.parse().ok()).collect();
    let has_all = scoring.metrics.iter().all(|metric| metrics.contains(metric));
    let wide = Scoring { metrics, postprocess: scoring.postprocess.clone() };
    let identity = identity(experiment, &wide, predictions, left_contexts)?;
    let is_kept = has_all && tool == env!("CARGO_PKG_VERSION") && kept == identity;
    Ok(is_kept.then_some(identity))
}

/// Returns the identity of the scores of predictions with this header.
fn identity(
    experiment: &Experiment,
    scoring: &Scoring,
    predictions: &Header,
    left_contexts: Option<&str>,
) -> Result<Identity> {
    let names: Vec<&str> = scoring.metrics.iter().map(|metric| metric.name()).collect();
    let recipes: Vec<String> = scoring.recipes().map(|(_, recipe)| recipe.to_string()).collect();
    let mut identity = Identity::new("scores")
        .parameter("metric", names.join(" "))
        .parameter("postprocess", recipes.join(" "))
        .parameter("repositories", experiment.repositories.join(" "))
        .input("tasks", experiment.tasks()?.digest())
        .input("predictions", &*predictions.checksum)
        // Equal predictions may have been made under other conditions.
        .input("conditions", digest_parts(parameter_words(&predictions.identity.parameters)));
    let revisions: BTreeSet<String> =
        scoring.recipes().filter_map(|(_, recipe)| recipe.revision()).collect();
    if !revisions.is_empty() {
        let revisions: Vec<String> = revisions.into_iter().collect();
        identity = identity.parameter("rule of answers", revisions.join(", "));
    }
    Ok(match left_contexts {
        Some(digest) => identity.input("left contexts", digest),
        None => identity,
    })
}

/// Scores of a mode's predictions.
struct ScoredMode<'a> {
    mode: Mode,
    model: &'a str,
    identity: Identity,
}

impl Artifact for ScoredMode<'_> {
    type Content = Lines;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().scores(self.mode, self.model)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::Any("eval")
    }

    fn identity(&self, _: &mut Engine<'_>) -> Result<Identity> {
        Ok(self.identity.clone())
    }
}

/// Iterates over the names and values of parameters.
fn parameter_words(parameters: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    parameters.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()])
}

/// Takes the left contexts of holes from the repositories' files, if predictions are cut to function bodies. Returns the digest of
/// all left contexts if a task received its context this way.
fn take_left_contexts(
    experiment: &Experiment,
    scoring: &Scoring,
    tasks: &mut Arc<TaskSet>,
) -> Option<String> {
    let is_asked = scoring.recipes().any(|(_, recipe)| recipe.has(postprocess::Step::FunctionBody));
    if !is_asked || experiment.repos_dir.as_os_str().is_empty() {
        return None;
    }
    let mut files = TaskFiles::below(&experiment.repos_dir).ok()?;
    let mut is_taken = false;
    let set = Arc::make_mut(tasks).tasks_mut().iter_mut();
    for task in set.filter(|task| task.full_left_context.is_none()) {
        files.take_left(task);
        is_taken |= task.full_left_context.is_some();
    }
    let left = tasks.tasks().iter().filter_map(|task| task.full_left_context.as_deref());
    is_taken.then(|| digest_parts(left))
}

/// Returns the tasks of the repositories that take part, with their samples.
fn part<S>(
    experiment: &Experiment,
    tasks: &Arc<TaskSet>,
    samples: Vec<S>,
) -> (Arc<TaskSet>, Vec<S>) {
    let is_part = |task: &Task| experiment.repositories.binary_search(&task.repository).is_ok();
    if tasks.tasks().iter().all(is_part) {
        return (Arc::clone(tasks), samples);
    }
    let both = tasks.tasks().iter().zip(samples).filter(|(task, _)| is_part(task));
    let (kept, samples) = both.map(|(task, samples)| (task.clone(), samples)).unzip();
    (Arc::new(TaskSet::new(tasks.path.clone(), kept)), samples)
}
