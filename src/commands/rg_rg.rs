//! `rg-rg`: the same stages as any other mode, with predictions as the query source.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::predictions::JoinedPredictions;
use repoformer_evaluate::statistics::Resampling;
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Completion, Experiment, cached_predictions, check_completed_alike};
use repoformer_study::choices::{label, resampling};
use repoformer_study::experiments::{check_completable, completion_of, single};
use repoformer_study::rows::{self, ResultRows, Row};
use repoformer_study::scoring::warn_of_ends;
use repoformer_study::stages::{code_of, complete, read_predictions, retrieve_again};

use super::dry_run::stage_log;
use super::stages::copy_prompts;
use crate::commands::session::{check_not_tasks, open};
use crate::output::{self, Screen, check_output, fail, write_data};
use crate::settings::{Setting, SettingFlags, Settings};
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Args)]
pub(crate) struct RgRgArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Predictions to search with, of any model [default: the model's predictions for mode rg1, in the cache]
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Also write the prompts to this file (`-`: standard output); with --iterations, the last iteration's prompts
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Number of times to complete the prompts and search again with the completions; prints a row per iteration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), group = "printing")]
    iterations: Option<u32>,
    /// Print what would be built, and why, without building it
    #[arg(long, group = "printing")]
    dry_run: bool,
    /// Format of the table, or of the --dry-run output
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "printing")]
    format: ScoreFormat,
}

pub(crate) fn run(args: &RgRgArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let format = ScoreFormat::choose(Some(args.format), Path::new("-"))?;
    if args.iterations.is_some() && settings.shard.is_some() {
        return fail(
            "--iterations cannot be used with --shard, since it searches with the completions of all shards",
            "leave --shard out, or run `rg-rg`, `complete --mode rg-rg` and `merge` for each iteration",
        );
    }
    check_not_tasks(&settings, args.output.as_deref())?;
    check_output(args.output.as_deref(), &args.predictions)?;
    let (mut experiment, settings) = single(&settings)?;
    let mut log = stage_log(args.dry_run);
    log.begin(&mut experiment);
    let joined = read_predictions(&experiment, &settings, args.predictions.as_deref())?;
    output::problems(&joined.problems);
    match args.iterations {
        Some(iterations) => {
            check_completable(&experiment)?;
            check_samples(&settings)?;
            let completion = completion_of(&experiment, &settings, *settings.seed, false)?;
            let resampling = resampling(&settings)?;
            let mut rows = Vec::new();
            if args.predictions.is_none() {
                let first = Mode::LeftContext;
                let path = cached_predictions(&experiment, first, &completion)?;
                check_completed_alike(&experiment, &path, &completion, first)?;
                rows.push(row(&experiment, first, &completion, &resampling)?);
            }
            let work = (&mut experiment, &settings, &resampling);
            iterate(work, joined, iterations, &completion, &mut rows)?;
            let rows = rows.into_iter().map(|row| row.with_profile(&settings));
            let rows = ResultRows(rows.collect());
            write_data(Path::new("-"), format_results(&rows, format)?)?;
            rows::warn_of_gaps(&rows.0, &Screen);
        }
        None => {
            check_no_server(&settings)?;
            log.stage("rg-rg", &experiment, || retrieve_again(&experiment, &joined))?;
            if log.is_dry() {
                return write_data(Path::new("-"), format_results(&log, format)?);
            }
        }
    }
    if let Some(output) = &args.output {
        copy_prompts(&experiment, Mode::Prediction, output)?;
    }
    Ok(())
}

/// Rejects flags that only completions use.
fn check_no_server(settings: &Settings) -> Result<()> {
    let Some(Setting { key, .. }) = settings.completion_flag() else {
        return Ok(());
    };
    fail(
        format!("--{key} is not used by rg-rg without --iterations, which only writes prompts"),
        "pass it to `repoformer complete --mode rg-rg`, or add --iterations",
    )
}

/// Rejects several completions of a prompt, since only one is used as a query.
fn check_samples(settings: &Settings) -> Result<()> {
    if *settings.samples > 1 {
        return fail(
            "--iterations cannot be used with --samples, since it needs one completion of each prompt",
            "leave --samples out",
        );
    }
    Ok(())
}

/// Retrieves with predictions, completes, and repeats this with the new completions in each iteration.
fn iterate(
    (experiment, settings, resampling): (&mut Experiment, &Settings, &Resampling),
    mut before: JoinedPredictions,
    last: u32,
    completion: &Completion,
    rows: &mut Vec<Row>,
) -> Result<()> {
    for iteration in 1..=last {
        experiment.layout.iteration = iteration;
        let report = retrieve_again(experiment, &before)?;
        let name = experiment.layout.mode_name(Mode::Prediction);
        output::report(&label(&name, experiment), &report);
        let report = complete(experiment, &[Mode::Prediction], completion)?;
        output::report(&label("complete", experiment), &report);
        let path = cached_predictions(experiment, Mode::Prediction, completion)?;
        let now = JoinedPredictions {
            cached: Some(path.clone()),
            ..code_of(experiment, settings, &path, experiment.tasks()?)?
        };
        output::problems(&now.problems);
        let mut row = row(experiment, Mode::Prediction, completion, resampling)?;
        row.unchanged = Some(unchanged_share(&before, &now));
        rows.push(row);
        before = now;
    }
    Ok(())
}

fn row(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
    resampling: &Resampling,
) -> Result<Row> {
    let scoring = &experiment.scoring;
    let (scores, report) = pipeline::scores(experiment, mode, &completion.model, scoring, None)?;
    output::remarks(&report);
    let predictions = experiment.paths().predictions(mode, &completion.model);
    warn_of_ends(&predictions, &experiment.scoring, &Screen)?;
    let scores = scores.context("a dry run makes no scores")?;
    let mut row = Row::of_mode(experiment, mode, scores, resampling)?;
    if !completion.is_embedded() {
        row = row.with_time(experiment, mode, &completion.model)?;
    }
    rows::tell_of_untimed(&row, experiment, mode, completion, &Screen);
    Ok(row)
}

/// Returns the fraction of the tasks with predictions whose predictions did not change.
fn unchanged_share(before: &JoinedPredictions, now: &JoinedPredictions) -> f64 {
    let pairs = before.predictions.iter().zip(&now.predictions);
    let (mut all, mut same) = (0_u32, 0_u32);
    for (before, now) in pairs.filter(|(_, now)| !now.is_empty()) {
        all += 1;
        same += u32::from(before == now);
    }
    f64::from(same) / f64::from(all.max(1))
}
