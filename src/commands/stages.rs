//! `window`, `vectorize`, `search` and `prompt`: one stage each.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use repoformer_core::retrieve::Mode;
use repoformer_core::retrieve::dense::write_texts;
use repoformer_formats::exchange::trec;
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Experiment, StageReport, trec_run, write_beir};
use repoformer_store::artifact::digest;
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::{FIRST, WITHOUT_PREDICTION, modes};
use repoformer_study::experiments::{check_single, experiments, experiments_of};
use repoformer_study::stages::read_predictions;

use super::parts;
use crate::commands::dry_run::DryRunFlags;
use crate::commands::session::{check_not_tasks, open};
use crate::output::{self, fail, group, write_data, write_json, write_manifest_beside};
use crate::settings::{SettingFlags, Settings, ValueList};

#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    dry_run: DryRunFlags,
    /// Predictions for mode rg-rg [default: the model's predictions for mode rg1, in the cache]
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VectorizeArgs {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    dry_run: DryRunFlags,
    /// Write the texts to embed elsewhere, one `{"_id", "digest", "text"}` per line, instead of computing vectors
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    write_texts: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    dry_run: DryRunFlags,
    /// Also write the rankings of one mode in an information-retrieval format
    #[arg(long, value_name = "FORMAT", requires = "output")]
    export: Option<ExportFormat>,
    /// Scores to write in a TREC run: by-rank (unique, so that trec_eval keeps the order) or own (the ranker's scores; other
    /// tools may reorder ties) [default: by-rank]
    #[arg(long, value_name = "NAME", requires = "export",
        value_parser = ValueList::new([trec::RunScores::ByRank, trec::RunScores::Own]))]
    scores: Option<String>,
    /// Destination of the export: a file for trec (`-`: standard output), a folder for beir
    #[arg(short, long, value_name = "PATH", requires = "export")]
    output: Option<PathBuf>,
}

/// Format of exported rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Lines of a TREC run
    Trec,
    /// A BEIR collection; its relevance judgements come from mode gt (search with --mode gt first)
    Beir,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    dry_run: DryRunFlags,
    /// Also write the prompts of one mode to this file (`-`: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs a stage on each experiment, and reports the work.
fn stage(
    name: &'static str,
    flags: &SettingFlags,
    dry_run: &DryRunFlags,
    work: impl Fn(&Experiment, &Settings) -> Result<StageReport>,
) -> Result<()> {
    let (settings, mut log) = (open(flags)?, dry_run.log());
    for (mut experiment, settings) in experiments(&settings)? {
        log.begin(&mut experiment);
        log.stage(name, &experiment, || work(&experiment, &settings))?;
    }
    dry_run.finish(&log)
}

pub(crate) fn window(args: &WindowArgs) -> Result<()> {
    stage("window", &args.settings, &args.dry_run, |experiment, settings| {
        let modes = modes(settings, &FIRST)?;
        let searches_predictions = modes.contains(&Mode::Prediction);
        if args.predictions.is_some() && !searches_predictions {
            bail!("--predictions is used only in mode rg-rg; add --mode rg-rg");
        }
        let read = || read_predictions(experiment, settings, args.predictions.as_deref());
        let has_predictions = searches_predictions && experiment.tasks.is_some();
        let joined = has_predictions.then(read).transpose()?;
        let mut report = repoformer_study::stages::window(experiment, &modes, joined.as_ref())?;
        report.problems.extend(joined.into_iter().flat_map(|joined| joined.problems));
        Ok(report)
    })
}

pub(crate) fn vectorize(args: &VectorizeArgs) -> Result<()> {
    if let Some(path) = &args.write_texts {
        return write_dense_texts(&args.settings, path);
    }
    stage("vectorize", &args.settings, &args.dry_run, |experiment, settings| {
        repoformer_study::stages::vectorize(experiment, &modes(settings, &FIRST)?)
    })
}

/// Writes the texts that need dense vectors for all task files and sizes, without duplicates.
fn write_dense_texts(flags: &SettingFlags, path: &Path) -> Result<()> {
    let settings = open(flags)?;
    let (mut texts, mut seen, mut ids) = (Vec::new(), HashSet::new(), HashSet::new());
    for (experiment, settings) in experiments(&settings)? {
        let modes = match experiment.tasks {
            Some(_) => modes(&settings, &FIRST)?,
            None => Vec::new(),
        };
        for mut text in pipeline::dense_texts(&experiment, &modes)? {
            if !seen.insert(text.text.clone()) {
                continue;
            }
            // Queries of several task files may have the same name.
            if !ids.insert(text.id.clone()) {
                text.id = format!("{}|{}", experiment.name, text.id);
            }
            texts.push(text);
        }
    }
    write_texts(path, &texts)?;
    output::note(format!("vectorize: {} texts to {}", group(texts.len()), path.display()));
    Ok(())
}

pub(crate) fn search(args: &SearchArgs) -> Result<()> {
    if args.scores.is_some() && args.export == Some(ExportFormat::Beir) {
        return fail(
            "--scores works only with --export trec; a BEIR collection has no scores",
            "leave it out",
        );
    }
    let scores = args.scores.as_deref().map_or(Ok(trec::RunScores::default()), str::parse)?;
    stage("search", &args.settings, &args.dry_run, |experiment, settings| {
        let modes = modes(settings, &FIRST)?;
        let export = args.export.zip(args.output.as_deref());
        if let Some((_, output)) = export {
            check_one_output(settings, output, &modes)?;
        }
        let report = pipeline::search(experiment, &modes)?;
        if let Some((format, output)) = export.filter(|_| experiment.plan.is_none()) {
            write_search(experiment, modes[0], format, scores, output)?;
        }
        Ok(report)
    })
}

fn write_search(
    experiment: &Experiment,
    mode: Mode,
    format: ExportFormat,
    scores: trec::RunScores,
    output: &Path,
) -> Result<()> {
    match format {
        ExportFormat::Trec => {
            let run = trec_run(experiment, mode, scores)?.into_bytes();
            write_data(output, &run)?;
            // A TREC run has no place for a manifest, so it is in a file next to the run.
            let mut manifest = search_manifest("trec-run", experiment, mode)?;
            manifest.setting("scores", scores.to_string());
            manifest.count("lines", run.iter().filter(|&&byte| byte == b'\n').count());
            manifest.digest("run", &digest(&run));
            write_manifest_beside(output, &manifest.to_record())
        }
        ExportFormat::Beir if output == Path::new("-") => {
            bail!("a BEIR collection cannot go to standard output; name a folder with -o")
        }
        ExportFormat::Beir => {
            write_beir(experiment, mode, output)?;
            let manifest = search_manifest("beir-collection", experiment, mode)?;
            Ok(write_json(&output.join("manifest.json"), &manifest.to_record())?)
        }
    }
}

/// Returns the manifest of an exported search.
fn search_manifest(kind: &str, experiment: &Experiment, mode: Mode) -> Result<Manifest> {
    let retrieval = &experiment.retrieval;
    let mut manifest = Manifest::new(kind);
    manifest.setting("mode", mode.name());
    manifest.setting("top-k", retrieval.search.top_k);
    manifest.setting("language", experiment.layout.language.name());
    manifest.setting("repositories", experiment.repositories.clone());
    manifest.setting("query", retrieval.form.to_string());
    manifest.setting("query-lines", retrieval.query_lines);
    manifest.setting("ranker", retrieval.search.ranker.to_string());
    manifest.setting("align", experiment.prompts.align.to_string());
    if let Some(tasks) = &experiment.tasks {
        manifest.input("tasks", &tasks.path)?;
        manifest.count("tasks", tasks.tasks().len());
    }
    Ok(manifest)
}

pub(crate) fn prompt(args: &PromptArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let modes = modes(&settings, &WITHOUT_PREDICTION)?;
    if let Some(output) = &args.output {
        check_one_output(&settings, output, &modes)?;
    }
    let mut log = args.dry_run.log();
    for (mut experiment, _) in experiments_of(&settings, &modes)? {
        log.begin(&mut experiment);
        log.stage("prompt", &experiment, || {
            let report = pipeline::prompt(&experiment, &modes)?;
            if let Some(output) = args.output.as_ref().filter(|_| experiment.plan.is_none()) {
                copy_prompts(&experiment, modes[0], output)?;
            }
            Ok(report)
        })?;
    }
    args.dry_run.finish(&log)
}

/// Checks that `-o` receives the records of only one task file and one mode, and is not the task file.
fn check_one_output(settings: &Settings, output: &Path, modes: &[Mode]) -> Result<()> {
    check_not_tasks(settings, Some(output))?;
    check_single(settings)?;
    check_one_mode(modes)
}

/// Checks that `-o` receives the records of only one mode.
pub(super) fn check_one_mode(modes: &[Mode]) -> Result<()> {
    match modes {
        [_] => Ok(()),
        _ => bail!("-o can write the records of only one mode; choose it with --mode"),
    }
}

/// Writes a mode's prompts to the output.
pub(super) fn copy_prompts(experiment: &Experiment, mode: Mode, output: &Path) -> Result<()> {
    parts::copy(experiment, &experiment.paths().prompts(mode), output)
}
