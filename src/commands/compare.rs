//! `compare`

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use repoformer_core::metrics::Metric;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::comparison::{
    self, Comparison, ComparisonSettings, PerTask, ReadScores, Side,
};
use repoformer_evaluate::conditions::{Conditions, read_parameters};
use repoformer_evaluate::predictions;
use repoformer_evaluate::score::MissingPredictions;
use repoformer_evaluate::statistics::{ResamplingUnit, SignFlips};
use repoformer_pipeline::{Experiment, cached_predictions, evaluate};
use repoformer_store::error::Error;
use repoformer_study::choices::{completion, resampling, seed, warn_of_departures};
use repoformer_study::experiments::{cut_answers, without_repositories};
use repoformer_study::mixed;
use repoformer_study::scoring::{scoring, warn_of_ends};
use repoformer_text::counts::subject;
use serde_json::Value;

use super::comparison_text::{PrintedComparison, list_ids};
use super::eval_score::tell_uncut;
use crate::commands::session::open;
use crate::output::{self, Screen, add_hint, check_output, fail, plural, write_data};
use crate::settings::{SettingFlags, Settings};
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Scores of the baseline, from `eval --per-task --format json` or jsonl (`-`: standard input; FILE#NAME selects one of
    /// several predictions); with --tasks, also a file of predictions, or a mode whose predictions are in the cache
    a: String,
    /// Scores of the system, in the same form; differences are B - A
    b: String,
    /// Measure to compare, such as repocoder.es (repeatable, or separated by commas) [default: all measures in both]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    measure: Vec<String>,
    /// Unit that intervals resample: repository (with all its tasks) or task [default: repository, if the scores name two or
    /// more]
    #[arg(long, value_name = "UNIT")]
    resample: Option<ResampledUnit>,
    /// Also compare within each repository
    #[arg(long)]
    by_repository: bool,
    /// Also write the values of each task (with tsv, csv, jsonl and parquet, only these)
    #[arg(long)]
    per_task: bool,
    /// Compare predictions even if their sampling, limits, cuts or targets differ; the differences are printed
    #[arg(long)]
    allow_mixed: bool,
    /// Exit with status 1 if a mean differs by more than this (scores are between 0 and 1), or if A or B lacks a task
    #[arg(long, value_name = "T")]
    within: Option<f64>,
    /// Format of the comparison; tsv, csv, jsonl and parquet have a row per measure [default: from the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// File for the comparison (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Unit that intervals resample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResampledUnit {
    Repository,
    Task,
}

pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    let (a_path, b_path) = (comparison::split(&args.a).0, comparison::split(&args.b).0);
    let format = ScoreFormat::choose(args.format, &args.output)?;
    check_output(Some(&args.output), [a_path, b_path])?;
    if args.within.is_some_and(|tolerance| tolerance.is_nan() || tolerance < 0.0) {
        return fail(
            "--within must be a number of at least 0",
            "give a difference of scores, which are between 0 and 1, such as 0.005",
        );
    }
    if a_path == Path::new("-") && b_path == Path::new("-") {
        return fail(
            "A and B cannot both be standard input, which can be read only once",
            "name a file for one of them",
        );
    }
    let settings = open(&args.settings)?;
    let mut scorer = Scorer { settings, files: [a_path, b_path], experiment: None };
    let (a, b) = (scorer.load(&args.a)?, scorer.load(&args.b)?);
    let comparison =
        Comparison::new(&a, &b, &comparing(args, &scorer.settings)?).map_err(with_hint)?;
    mixed::check(&comparison.mixed, args.allow_mixed, &Screen)?;
    output::problems(&comparison.problems);
    warn(&comparison);
    let results = PrintedComparison { comparison: &comparison, per_task: args.per_task };
    write_data(&args.output, format_results(&results, format)?)?;
    if let Some(tolerance) = args.within {
        check(&comparison, tolerance);
    }
    Ok(())
}

/// Checks that no mean of B differs from A's by more than a tolerance, and that both have the same tasks and measures.
fn check(comparison: &Comparison, tolerance: f64) {
    for difference in &comparison.all {
        let mean = difference.difference.mean;
        let lacking = comparison.tasks.len().saturating_sub(difference.n);
        if lacking > 0 {
            output::count_failure(format!(
                "{}: {lacking} {} without a value in A or B",
                difference.measure,
                plural(lacking, "task")
            ));
        }
        // A difference such as 0.9 - 0.89 is not 0.01 to the last bit.
        if mean.is_nan() || mean.abs() > tolerance + 1e-12 {
            output::count_failure(format!(
                "{}: B - A is {mean:+.6}, not within {tolerance}",
                difference.measure
            ));
        }
    }
    let alone: usize = [&comparison.a, &comparison.b].iter().map(|side| side.alone.len()).sum();
    if alone + comparison.left_out.len() > 0 {
        let measures = comparison.left_out.len();
        output::count_failure(format!(
            "{alone} {} and {measures} {} are only in A or only in B",
            plural(alone, "task"),
            plural(measures, "measure")
        ));
    }
}

/// Loader of the scores that A or B names on the command line.
struct Scorer<'a> {
    settings: Settings,
    /// A and B, if they are files.
    files: [&'a Path; 2],
    /// Experiment, read when the first predictions are scored.
    experiment: Option<(Experiment, Settings)>,
}

impl Scorer<'_> {
    /// Loads the scores of each task: from a file of scores or, with tasks, from predictions or from a mode in the cache.
    fn load(&mut self, given: &str) -> Result<PerTask> {
        if self.settings.tasks.is_empty() {
            if given.parse::<Mode>().is_ok() && !Path::new(given).exists() {
                return fail(
                    format!("--tasks is not set, so the predictions of {given} cannot be found"),
                    "name the task file with --tasks, and --cache-dir if it is not data/cache",
                );
            }
            let scores = comparison::read(given).map_err(with_hint)?;
            return Ok(report_excluded(scores));
        }
        let is_file = Path::new(given).exists();
        let mode = given.parse::<Mode>().ok().filter(|_| !is_file);
        if mode.is_none()
            && let Ok(reading) = comparison::read(given)
        {
            return Ok(report_excluded(reading));
        }
        if self.experiment.is_none() {
            let (mut experiment, settings) = without_repositories(&self.settings)?;
            // Both systems are cut alike.
            for path in self.files {
                cut_answers(&mut experiment, &settings, path)?;
            }
            self.experiment = Some((experiment, settings));
        }
        let found = self.experiment.as_ref().filter(|(experiment, _)| experiment.tasks.is_some());
        let Some((experiment, settings)) = found else {
            bail!("--tasks is not set, so predictions cannot be scored")
        };
        let path = match mode {
            Some(mode) => cached_predictions(experiment, mode, &completion(settings)?)?,
            None => given.into(),
        };
        warn_of_departures(settings);
        let scoring = scoring(settings, experiment, &[Metric::RepoCoder]);
        let evaluation = evaluate(experiment, &path, &scoring, MissingPredictions::Skip)?;
        output::problems(&evaluation.problems);
        output::warn_of_numbers(predictions::warning(&path, &evaluation.numbered));
        warn_of_ends(&path, &scoring, &Screen)?;
        let scores = evaluation.scores?;
        tell_uncut(&path, &scores);
        let mut side = PerTask::new(mode.map_or(given, |mode| mode.name()));
        side.conditions = Conditions::of_predictions(&read_parameters(&path)?);
        for (metric, recipe) in scoring.recipes() {
            side.conditions.set_cut(metric.name(), recipe);
        }
        for task in &scores.tasks {
            if let Value::Object(record) = task.to_record(&scores.cuts) {
                side.add(&record).map_err(|reason| anyhow::anyhow!("{given}: {reason}"))?;
            }
        }
        Ok(side)
    }
}

/// Returns the scores of a file, and reports excluded tasks.
fn report_excluded(reading: ReadScores) -> PerTask {
    output::problems(&reading.problems);
    if reading.excluded > 0 {
        let name = &reading.scores.name;
        let tasks = subject(reading.excluded, "task", ["is excluded: its", "are excluded: their"]);
        output::warning(format!("{name}: {tasks} unit tests are not conclusive"));
    }
    reading.scores
}

/// Adds the flags and commands that resolve an error.
fn with_hint(error: Error) -> anyhow::Error {
    let hint = match &error {
        Error::Artifact { hint, .. } => hint.clone().then(
            ": `repoformer eval --per-task --format json -o FILE` writes them, with --tasks and --predictions, or with --pairs",
        ),
        Error::Parameter { name: "measure", .. } => {
            "choose a measure that both have with --measure, or score both with the same --metrics".into()
        }
        Error::Parameter { name: "unit", .. } => {
            "resample tasks with --resample task, or score with --tasks, whose records name repositories".into()
        }
        _ => return error.into(),
    };
    add_hint(error, hint)
}

fn comparing(args: &CompareArgs, settings: &Settings) -> Result<ComparisonSettings> {
    Ok(ComparisonSettings {
        measures: args.measure.clone(),
        unit: args.resample.map(|unit| match unit {
            ResampledUnit::Repository => ResamplingUnit::Repositories,
            ResampledUnit::Task => ResamplingUnit::Tasks,
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
            let (tasks, other) = (list_ids(alone), &other.name);
            output::warning(format!("left out: {tasks} in {name} only, not in {other}"));
        }
    }
    let files = format!("{} and {}", comparison.a.name, comparison.b.name);
    output::warn_of_numbers(comparison.numbered.warning(files, Some("`target_digest`")));
    if comparison.moved > 0 {
        output::warning(format!(
            "{} ids are in different rows in A and B: were A and B scored with different task files?",
            comparison.moved
        ));
    }
    for (measure, reason) in &comparison.left_out {
        output::note(format!("left out: {measure} {reason}"));
    }
}
