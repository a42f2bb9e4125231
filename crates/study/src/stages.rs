//! Stages of a run, as a list.

use std::path::Path;

use anyhow::Result;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::conditions::are_chat_answers;
use repoformer_evaluate::predictions::{self, JoinedPredictions};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{
    Completion, Experiment, StageReport, cached_predictions, has_predictions,
};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::choices::completion;
use crate::experiments::of_kind;
use crate::fail;
use crate::server::resumable;
use crate::settings::{DECLARED, Settings};
use crate::stage_log::StageLog;

/// Input of an experiment that a stage works on; without it, the stage has no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StageInput {
    /// Repositories; tasks that carry their contexts need none.
    Repositories,
    Tasks,
    /// Predictions with which to retrieve again.
    Predictions,
}

/// Stage of a run.
struct RunStage {
    name: &'static str,
    of: StageInput,
    work: fn(&RunWork<'_>) -> Result<StageReport>,
}

/// Stages of a run, in order.
const RUN: [RunStage; 7] = [
    RunStage {
        name: "window",
        of: StageInput::Repositories,
        work: |run| window(run.experiment, &run.first, None),
    },
    RunStage {
        name: "vectorize",
        of: StageInput::Repositories,
        work: |run| vectorize(run.experiment, &run.first),
    },
    RunStage {
        name: "search",
        of: StageInput::Repositories,
        work: |run| Ok(pipeline::search(run.experiment, &run.first)?),
    },
    RunStage {
        name: "prompt",
        of: StageInput::Tasks,
        work: |run| Ok(pipeline::prompt(run.experiment, &run.first)?),
    },
    RunStage {
        name: "complete",
        of: StageInput::Tasks,
        work: |run| complete(run.experiment, &run.first, run.completion),
    },
    RunStage {
        name: "rg-rg",
        of: StageInput::Predictions,
        work: |run| {
            let joined = read_predictions(run.experiment, run.settings, None)?;
            let mut report = retrieve_again(run.experiment, &joined)?;
            report.problems.extend(joined.problems);
            Ok(report)
        },
    },
    RunStage {
        name: "complete",
        of: StageInput::Predictions,
        work: |run| complete(run.experiment, &[Mode::Prediction], run.completion),
    },
];

/// Input of a run's stages.
struct RunWork<'a> {
    experiment: &'a Experiment,
    settings: &'a Settings,
    /// Modes that need no prediction.
    first: Vec<Mode>,
    completion: &'a Completion,
}

/// Runs every stage of an experiment for these modes.
///
/// # Errors
/// A stage cannot continue.
pub fn run_stages(
    experiment: &Experiment,
    settings: &Settings,
    modes: &[Mode],
    completion: &Completion,
    log: &mut StageLog,
) -> Result<()> {
    // The second retrieval searches with the predictions of the first.
    let mut first = modes.to_vec();
    first.retain(|mode| *mode != Mode::Prediction);
    if modes.contains(&Mode::Prediction) && !first.contains(&Mode::LeftContext) {
        first.push(Mode::LeftContext);
    }
    let work = RunWork { experiment, settings, first, completion };
    for stage in RUN {
        let has_work = match stage.of {
            StageInput::Tasks => true,
            StageInput::Repositories => !experiment.repos_dir.as_os_str().is_empty(),
            StageInput::Predictions => {
                modes.contains(&Mode::Prediction)
                    && has_predictions(experiment, Mode::LeftContext, completion)?
            }
        };
        if has_work {
            log.stage(stage.name, experiment, || (stage.work)(&work))?;
        }
    }
    Ok(())
}

/// Cuts the repositories, and the queries of these modes if the experiment has tasks.
///
/// # Errors
/// A file cannot be read or written.
pub fn window(
    experiment: &Experiment,
    modes: &[Mode],
    predictions: Option<&JoinedPredictions>,
) -> Result<StageReport> {
    let mut report = pipeline::window_repositories(experiment)?;
    if experiment.tasks.is_some() {
        report.merge(pipeline::window_queries(experiment, modes, predictions)?);
    }
    Ok(report)
}

/// Turns the fragments into vectors, and the queries of these modes if the experiment has tasks.
///
/// # Errors
/// A file cannot be read or written, or a vector server does not answer.
pub fn vectorize(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    let mut report = pipeline::vectorize_repositories(experiment)?;
    if experiment.tasks.is_some() {
        report.merge(pipeline::vectorize_queries(experiment, modes)?);
    }
    Ok(report)
}

/// Completes the cached prompts of these modes; a server's answers are kept if the work ends early.
///
/// # Errors
/// A file cannot be read or written, or the server does not answer.
pub fn complete(
    experiment: &Experiment,
    modes: &[Mode],
    completion: &Completion,
) -> Result<StageReport> {
    let complete = || pipeline::complete(experiment, modes, completion);
    match experiment.plan {
        Some(_) => Ok(complete()?),
        None => resumable(completion, &*experiment.messages, complete),
    }
}

/// Retrieves with predictions: their windows, vectors, search and prompts.
///
/// # Errors
/// A file cannot be read or written.
pub fn retrieve_again(
    experiment: &Experiment,
    predictions: &JoinedPredictions,
) -> Result<StageReport> {
    let mode = [Mode::Prediction];
    let mut report = pipeline::window_queries(experiment, &mode, Some(predictions))?;
    report.merge(pipeline::vectorize_queries(experiment, &mode)?);
    report.merge(pipeline::search(experiment, &mode)?);
    report.merge(pipeline::prompt(experiment, &mode)?);
    Ok(report)
}

/// Reads the predictions of a file, or the model's own for mode rg1 in the cache.
///
/// # Errors
/// There are no predictions, or none for these tasks.
pub fn read_predictions(
    experiment: &Experiment,
    settings: &Settings,
    named: Option<&Path>,
) -> Result<JoinedPredictions> {
    let (Some(tasks), Some(all)) = (&experiment.tasks, experiment.all_tasks()) else {
        return Err(message!["predictions need their tasks; set ", &DECLARED.tasks].into());
    };
    let shard = experiment.layout.shard;
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let (first, whole) = (Mode::LeftContext, experiment.whole());
            let completion = completion(&of_kind(settings, Some(all)))?;
            let path = whole.paths().predictions(first, &completion.model);
            if shard.is_some() && !whole.has(&path) {
                return fail(
                    format!("{}: the predictions of all shards are missing", path.display()),
                    message![
                        UserChoice::MergeShards,
                        ", or choose a ",
                        UserChoice::PredictionsFile
                    ],
                );
            }
            cached_predictions(whole, first, &completion)?
        }
    };
    if experiment.is_planned(&path) {
        let answers = experiment.scoring.postprocess.answers();
        return Ok(JoinedPredictions::unread(path).cut_by(all, answers));
    }
    let mut joined = code_of(experiment, settings, &path, all)?;
    if let Some(warning) = predictions::warning(&path, &joined.numbered) {
        experiment.messages.unproven(&warning);
    }
    if named.is_some_and(Path::is_file) {
        pipeline::check_searchable(experiment, &path)?;
    }
    if let Some(shard) = shard {
        joined = joined.of_tasks(all, |task| shard.holds(&task.repository));
    }
    joined.cached = named.is_none().then(|| path.clone());
    if joined.missing.len() < tasks.tasks().len() || shard.is_some() && tasks.tasks().is_empty() {
        return Ok(joined);
    }
    let none = format!("{}: contains no predictions for these tasks", path.display());
    let first = joined.problems.first().map(|problem| message![" (", problem.message(), ")"]);
    fail(
        message![none, first.unwrap_or_default()],
        "write records as {\"metadata\": {the task's}, \"choices\": [{\"text\"}]} or {\"task_id\", \"pred\"}",
    )
}

/// Reads predictions in the form used in queries: chat answers are reduced to their code, as for scores.
///
/// # Errors
/// The file cannot be read.
pub fn code_of(
    experiment: &Experiment,
    settings: &Settings,
    path: &Path,
    tasks: &TaskSet,
) -> Result<JoinedPredictions> {
    let mut postprocess = experiment.scoring.postprocess.clone();
    if settings.postprocess.is_none() && are_chat_answers(path)? {
        postprocess.cut_answers();
    }
    let joined = predictions::read(path, tasks)?;
    Ok(joined.cut_by(tasks, postprocess.answers()))
}
