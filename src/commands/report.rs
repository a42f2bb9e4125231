//! `report`: one page of HTML and its figures, from the predictions in the cache or in files.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use repoformer_core::retrieve::Mode;
use repoformer_pipeline::Experiment;
use repoformer_study::choices::resampling;
use repoformer_study::experiments::{cut_answers, without_repositories};
use repoformer_study::report::{METRICS, ReportSettings, make, of_cache, of_file, other_tasks};
use repoformer_study::scoring::scoring;

use crate::commands::session::open;
use crate::output;
use crate::settings::SettingFlags;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Predictions to show (repeatable) [default: the model's predictions in the cache, mode by mode]
    #[arg(long, value_name = "[NAME=]FILE")]
    predictions: Vec<String>,
    /// Results of unit tests, from `eval --exec --per-task --format jsonl`; NAME is the system's name (repeatable)
    #[arg(long, value_name = "[NAME=]FILE")]
    exec: Vec<String>,
    /// System to compare the others with [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Compare predictions even if their sampling, limits, cuts or targets differ; the differences are printed
    #[arg(long)]
    allow_mixed: bool,
    /// Title of the page [default: the benchmark's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Folder for index.html, figures/*.svg and figures/manifest.json; or FILE.html, with its figures in FILE.figures [default:
    /// report]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Returns the default folder of reports, unless it has a report of other tasks.
fn default_folder(experiment: &Experiment) -> Result<PathBuf> {
    let folder = PathBuf::from("report");
    // Without tasks, there is nothing to report on, which is refused later.
    match experiment.tasks.as_ref().and_then(|set| other_tasks(&folder, &set.path)) {
        Some(other) => output::fail(
            format!("{}: has the report of {other}", folder.display()),
            "name another folder with -o, or replace it with `-o report`",
        ),
        None => Ok(folder),
    }
}

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let (mut experiment, settings) = without_repositories(&settings)?;
    let sources = if args.predictions.is_empty() {
        of_cache(&experiment, &settings)?
    } else {
        args.predictions.iter().map(|given| of_file(given)).collect()
    };
    // All systems are cut in the same way.
    for source in &sources {
        cut_answers(&mut experiment, &settings, &source.predictions)?;
    }
    let making = ReportSettings {
        exec: args.exec.clone(),
        scoring: scoring(&settings, &experiment, &METRICS),
        title: args.title.clone(),
        // The cache's systems are named by their modes.
        baseline: args.baseline.as_deref().map(|name| match &args.predictions[..] {
            [] => Mode::canonical(name).to_owned(),
            _ => name.to_owned(),
        }),
        resampling: resampling(&settings)?,
        allow_mixed: args.allow_mixed,
        settings,
    };
    let output = match &args.output {
        Some(output) => output.clone(),
        None => default_folder(&experiment)?,
    };
    let written = make(&experiment, sources, &making, &output)?;
    output::note(format!("report: {}", written.page.display()));
    Ok(())
}
