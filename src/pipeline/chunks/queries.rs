//! `window` in the manner of chunks: tasks → queries.

use super::super::{
    Experiment, Report, Unread, check_digest, check_parameter, for_each_repository,
};
use super::contexts::{RightContexts, right_context};
use super::{open_chunks, shaped};
use crate::error::{Error, Result};
use crate::evaluate::predictions::JoinedPredictions;
use crate::repository::chunk::RepoChunks;
use crate::retrieve::chunks::{Queries, queries};
use crate::retrieve::query::Mode;
use crate::store::artifact::{Header, Identity, Payload};

/// Makes the queries of each mode that retrieves; rg-rg needs `predictions`.
///
/// # Errors
/// Chunks are missing, an artifact cannot be written, or rg-rg is asked for without predictions.
pub(in crate::pipeline) fn make_queries(
    experiment: &Experiment,
    modes: &[Mode],
    predictions: Option<&JoinedPredictions>,
) -> Result<Report> {
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    for_each_repository(experiment, |repository, report| {
        if modes.is_empty() {
            return Ok(());
        }
        let mut unread = open_chunks(experiment, repository)?;
        let chunks = unread.read(None)?;
        let mut contexts = open_contexts(experiment, repository)?;
        let contexts = (contexts.header.clone(), contexts.read(None)?);
        let chunks = (&unread.header, &chunks);
        modes.iter().try_for_each(|mode| {
            let contexts = (&contexts.0, &contexts.1);
            of_mode(experiment, *mode, chunks, contexts, predictions, report)
        })
    })
}

/// The right contexts as the `window` stage left them: of the tasks that are there now.
pub(super) fn open_contexts(
    experiment: &Experiment,
    repository: &str,
) -> Result<Unread<RightContexts>> {
    let path = experiment.layout.right_contexts(repository);
    let contexts = Unread::<RightContexts>::open(&path, "window")?;
    let tasks = experiment.tasks()?.digest_of(repository);
    check_digest(&path, &contexts.header, "tasks", &tasks, "window")?;
    let language = experiment.layout.language;
    check_parameter(&path, &contexts.header, ("language", language), "window")?;
    check_parameter(&path, &contexts.header, ("walk", experiment.walk), "window")?;
    Ok(contexts)
}

/// The same where any task does not carry its own, and there are repositories that they were taken from.
pub(super) fn open_needed_contexts(
    experiment: &Experiment,
    repository: &str,
) -> Result<Option<Unread<RightContexts>>> {
    let mut of_it = experiment.tasks()?.of_repository(repository);
    let is_needed = !experiment.repos_dir.as_os_str().is_empty()
        && of_it.any(|task| task.right_context.is_none());
    match is_needed {
        true => Ok(Some(open_contexts(experiment, repository)?)),
        false => Ok(None),
    }
}

fn of_mode(
    experiment: &Experiment,
    mode: Mode,
    (header, chunks): (&Header, &RepoChunks),
    (contexts_header, contexts): (&Header, &RightContexts),
    predictions: Option<&JoinedPredictions>,
    report: &mut Report,
) -> Result<()> {
    let (tasks, settings) = (experiment.tasks()?, experiment.of_chunks()?);
    let (form, length) = (settings.form.of_mode(mode), settings.query_lines);
    let repository = chunks.repository.as_str();
    let mut identity = shaped(experiment, settings, Identity::new(Queries::KIND))
        .parameter("repository", repository)
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .parameter("query", form)
        .parameter("query-lines", length)
        .input("tasks", tasks.digest_of(repository))
        .input("chunks", &*header.checksum)
        .input("right contexts", &*contexts_header.checksum);
    let samples = match (mode, predictions) {
        (Mode::Prediction, Some(joined)) => {
            identity = identity.input("predictions", joined.digest(tasks, repository));
            Some(joined.predictions.as_slice())
        }
        (Mode::Prediction, None) => {
            let reason = "mode rg-rg searches with predictions: name their file".into();
            return Err(Error::Parameter {
                name: "predictions",
                reason,
            });
        }
        _ => None,
    };
    let right = contexts.map();
    let right_of = |task| right_context(task, &right);
    let (queries, skipped) = queries((mode, form, length), tasks, chunks, right_of, samples);
    report.problems.extend(skipped);
    let path = experiment.layout.query_windows(mode, repository);
    report.ensure(path, &identity, |_| Ok(queries))?;
    Ok(())
}
