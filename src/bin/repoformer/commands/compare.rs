//! `compare`

use std::path::Path;

use anyhow::{Result, bail};
use repoformer::error::Error;
use repoformer::evaluate::comparison::{
    self, Comparison, ComparisonSettings, PerTask, ReadScores, Side,
};
use repoformer::evaluate::metrics::Metric;
use repoformer::evaluate::score::Missing;
use repoformer::evaluate::statistics::{SignFlips, Unit};
use repoformer::pipeline::{Experiment, cached_predictions, evaluate, own_postprocess};
use repoformer::retrieve::Mode;
use serde_json::Value;

use super::comparison_text::{self, listed};
use super::eval::{metrics, postprocess};
use super::session::{completion, open, resampling, seed, without_repositories};
use crate::args::{CompareArgs, ResampledUnit, ScoreFormat};
use crate::output::{self, check_output, fail, hinted, write_data};
use crate::settings::Settings;
use crate::table::{json_lines, json_text};

pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    let (a_path, b_path) = (comparison::split(&args.a).0, comparison::split(&args.b).0);
    check_output(Some(&args.output), &[a_path, b_path])?;
    if a_path == Path::new("-") && b_path == Path::new("-") {
        return fail(
            "A and B cannot both be standard input, which is read once",
            "name a file for one of them",
        );
    }
    let mut scorer = Scorer { args, settings: open(&args.settings)?, experiment: None };
    let (a, b) = (scorer.load(&args.a)?, scorer.load(&args.b)?);
    let comparison =
        Comparison::of(&a, &b, &comparing(args, &scorer.settings)?).map_err(with_flags)?;
    output::problems(&comparison.problems);
    warn(&comparison);
    write_data(&args.output, written(&comparison, args))
}

/// Finds the scores that A or B names on the command line.
struct Scorer<'a> {
    args: &'a CompareArgs,
    settings: Settings,
    /// Read when the first predictions are scored.
    experiment: Option<Experiment>,
}

impl Scorer<'_> {
    /// Scores of each task, from a file of scores; with tasks also from predictions, or from a mode in the cache.
    fn load(&mut self, given: &str) -> Result<PerTask> {
        if self.settings.list("tasks").is_empty() {
            let scores = comparison::read(given).map_err(with_flags)?;
            return Ok(reported(scores));
        }
        let is_file = Path::new(given).exists();
        let mode = given.parse::<Mode>().ok().filter(|_| !is_file);
        if mode.is_none()
            && let Ok(reading) = comparison::read(given)
        {
            return Ok(reported(reading));
        }
        if self.experiment.is_none() {
            self.experiment = Some(without_repositories(&self.settings)?);
        }
        let Some((experiment, tasks)) =
            self.experiment.as_ref().and_then(|e| Some((e, e.tasks.as_ref()?)))
        else {
            bail!("--tasks is not set, so predictions cannot be scored")
        };
        let path = match mode {
            Some(mode) => cached_predictions(experiment, mode, &completion(&self.settings)?)?,
            None => given.into(),
        };
        let metrics = metrics(&self.args.metrics, &[Metric::RepoCoder])?;
        let cut = postprocess(&self.args.postprocess, || own_postprocess(tasks))?;
        let evaluation = evaluate(experiment, &path, &metrics, &cut, Missing::Skip)?;
        output::problems(&evaluation.problems);
        let scores = evaluation.scores?;
        let mut side = PerTask::new(given);
        for task in &scores.tasks {
            if let Value::Object(record) = task.to_record(&scores.cuts) {
                side.add(&record).map_err(|reason| anyhow::anyhow!("{given}: {reason}"))?;
            }
        }
        Ok(side)
    }
}

/// The scores of a file; excluded tasks are reported.
fn reported(reading: ReadScores) -> PerTask {
    output::problems(&reading.problems);
    if reading.excluded > 0 {
        output::warning(format!(
            "{}: {} tasks are excluded: their unit tests are not conclusive",
            reading.scores.name, reading.excluded
        ));
    }
    reading.scores
}

/// Adds the flags and commands that resolve an error.
fn with_flags(error: Error) -> anyhow::Error {
    let hint = match &error {
        Error::Artifact { hint, .. } => format!(
            "{hint}: `repoformer eval --per-task --format json -o FILE` writes them, with --tasks and --predictions, or with --pairs"
        ),
        Error::Parameter { name: "measure", .. } => {
            "name one that both have with --measure, or score both with the same --metrics".into()
        }
        Error::Parameter { name: "unit", .. } => {
            "draw tasks, with --resample task; or score with --tasks, whose records name repositories".into()
        }
        _ => return error.into(),
    };
    hinted(error, hint)
}

fn comparing(args: &CompareArgs, settings: &Settings) -> Result<ComparisonSettings> {
    Ok(ComparisonSettings {
        measures: args.measure.clone(),
        unit: args.resample.map(|unit| match unit {
            ResampledUnit::Repository => Unit::Repositories,
            ResampledUnit::Task => Unit::Tasks,
        }),
        resampling: resampling(settings)?,
        flips: SignFlips { seed: seed(settings)?, ..SignFlips::default() },
        by_repository: args.by_repository,
    })
}

/// Reports tasks and measures that are not compared.
fn warn(comparison: &Comparison) {
    for (Side { name, alone, .. }, other) in
        [(&comparison.a, &comparison.b), (&comparison.b, &comparison.a)]
    {
        if !alone.is_empty() {
            output::warning(format!(
                "left out: {} in {name} only, not in {}",
                listed(alone),
                other.name
            ));
        }
    }
    if comparison.moved > 0 {
        output::warning(format!(
            "{} ids are at different rows in A and B: were both scored with the same task file?",
            comparison.moved
        ));
    }
    for (measure, reason) in &comparison.left_out {
        output::note(format!("left out: {measure} {reason}"));
    }
}

fn written(comparison: &Comparison, args: &CompareArgs) -> String {
    match (args.format, args.per_task) {
        (ScoreFormat::Text, per_task) => comparison_text::text(comparison, per_task),
        (ScoreFormat::Tsv, true) => comparison_text::task_table(comparison).tsv(),
        (ScoreFormat::Tsv, false) => comparison_text::columns(comparison).tsv(),
        (ScoreFormat::Json, per_task) => json_text(&comparison.to_record(per_task)),
        (ScoreFormat::Jsonl, true) => json_lines(comparison.task_records()),
        (ScoreFormat::Jsonl, false) => json_lines(comparison.measure_records()),
    }
}
