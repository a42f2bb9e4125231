//! `window`

use anyhow::Result;
use repoformer::evaluate::predictions::{self, JoinedPredictions};
use repoformer::pipeline::{self, Experiment, cached_predictions};
use repoformer::retrieve::Mode;

use super::session::{FIRST, completion, modes, stage};
use crate::args::WindowArgs;
use crate::output::fail;
use crate::settings::Settings;

pub(crate) fn run(args: &WindowArgs) -> Result<()> {
    stage("window", &args.settings, |experiment, settings| {
        let modes = modes(settings, &FIRST)?;
        if args.predictions.is_some() && !modes.contains(&Mode::Prediction) {
            anyhow::bail!("--predictions are searched with in mode rg-rg alone; add --mode rg-rg");
        }
        let mut report = pipeline::window_repositories(experiment)?;
        if experiment.tasks.is_none() {
            return Ok(report);
        }
        let joined = match modes.contains(&Mode::Prediction) {
            true => Some(read_predictions(experiment, settings, args.predictions.as_deref())?),
            false => None,
        };
        report.merge(pipeline::window_queries(experiment, &modes, joined.as_ref())?);
        report.problems.extend(joined.into_iter().flat_map(|joined| joined.problems));
        Ok(report)
    })
}

/// The predictions named, or the model's own for mode rg1.
pub(super) fn read_predictions(
    experiment: &Experiment,
    settings: &Settings,
    named: Option<&std::path::Path>,
) -> Result<JoinedPredictions> {
    let Some(tasks) = &experiment.tasks else {
        anyhow::bail!("predictions need the --tasks that they belong to")
    };
    let path = match named {
        Some(path) => path.to_owned(),
        None => cached_predictions(experiment, Mode::LeftContext, &completion(settings)?)?,
    };
    let joined = predictions::read(&path, tasks)?;
    if joined.missing.len() < tasks.tasks.len() {
        return Ok(joined);
    }
    let first = joined.problems.first().map_or(String::new(), |problem| format!(" ({problem})"));
    fail(
        format!("{}: holds no prediction for any of the tasks{first}", path.display()),
        "a record is {\"metadata\": {the task's}, \"choices\": [{\"text\"}]} or {\"task_id\", \"pred\"}",
    )
}
