//! `run`: every stage for one configuration, then a table of modes × metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use repoformer_core::retrieve::{Mode, REPOCODER_MODES};
use repoformer_evaluate::statistics::Resampling;
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Completion, Experiment, Layout, PlanVerdict, Planned, has_predictions};

use super::complete::completed;
use super::demonstration::{self, Begun};
use super::eval::warn_of_ends;
use super::experiments::{
    are_functions, check_completable, check_not_tasks, completion_of, experiments_of,
    possible_modes,
};
use super::paper::{self, Panel, Paper, tasks_of};
use super::report::{self, Making, Written};
use super::reports::{Reports, report_folder};
use super::rows::{self, Row, Rows};
use super::selective::{Policies, Selected};
use super::session::{modes, page_in, resampling, seed};
use super::stage_log::StageLog;
use super::stages::read_predictions;
use super::tests_of_run::TestResults;
use super::{rg_rg, server};
use crate::output::{self, fail, write_data};
use crate::settings::{SettingFlags, Settings};
use crate::table::{ScoreFormat, written};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Print which artifacts would be made, and why, and make none; no server is asked
    #[arg(long)]
    dry_run: bool,
    /// Format of the table, or of what --dry-run prints [default: as FILE is named, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// File for the table (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Also write a report of each task file, as BENCHMARK/index.html in this folder, and of several index.html, which links
    /// them [default: report in the cache folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    report: Option<Option<PathBuf>>,
    /// Probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of` (repeatable)
    /// [default: the server's, where the prompt style names the token]
    #[arg(long, value_name = "FILE", help_heading = "Selective retrieval")]
    probabilities: Vec<PathBuf>,
    /// Samples of completions without retrieval, for policy entropy, from `complete --mode none --samples 20 --temperature 1`
    #[arg(long, value_name = "FILE", help_heading = "Selective retrieval")]
    samples_from: Option<PathBuf>,
    /// Unit-test results of a mode's predictions, from `eval --exec --per-task --format jsonl`; they give the column UT (repeatable)
    #[arg(long, value_name = "MODE=FILE", help_heading = "Scores")]
    exec: Vec<String>,
}

pub(crate) fn run(args: &RunArgs) -> Result<()> {
    let (begin, mut log) = (Instant::now(), StageLog::new(args.dry_run));
    let Begun { settings, is_elsewhere, removed: _removed } =
        demonstration::settings(&args.settings, args.dry_run)?;
    if !args.dry_run {
        server::keeps_artifacts();
    }
    let output = if args.dry_run { Path::new("-") } else { &args.output };
    let format = ScoreFormat::of(args.format, output)?;
    if args.dry_run && args.output != output {
        output::note(format!("the plan is printed; {} is for results", args.output.display()));
    }
    check_not_tasks(&settings, Some(&args.output))?;
    let seed = seed(&settings)?;
    // Greedy completions draw nothing.
    let is_greedy = *settings.temperature == 0.0;
    let completion = server::model(&settings, (!is_greedy).then_some(seed), false)?;
    let modes = modes(&settings, &REPOCODER_MODES)?;
    let policies = |settings: &Settings, are_functions| {
        Policies::of(&args.probabilities, args.samples_from.as_ref(), settings, are_functions)
    };
    // Before the hours of completing.
    let all = policies(&settings, false)?;
    if !args.dry_run {
        all.greet(&settings)?;
    }
    policies(&settings.of_functions(), true)?;
    let paper = Paper::of(&settings)?;
    let is_sizes = settings.paper.as_deref() == Some(paper::SIZES);
    let is_walk = matches!(&paper, Some(Paper::Figure(figure)) if figure.is_walk());
    let unused = [
        ("report", args.report.is_some(), is_sizes || is_walk),
        ("exec", !args.exec.is_empty(), is_sizes || is_walk),
        ("probabilities", !args.probabilities.is_empty(), is_sizes),
        ("samples-from", args.samples_from.is_some(), is_sizes),
    ];
    if let Some((flag, ..)) = unused.iter().find(|(_, is_given, is_unused)| *is_given && *is_unused)
    {
        let name = settings.paper.as_deref().unwrap_or_default();
        return fail(format!("--{flag} is not used by {name}"), "leave it out");
    }
    if is_sizes {
        if args.dry_run {
            return fail("--dry-run is not used by sizes, which makes no artifact", "leave it out");
        }
        return write_data(&args.output, paper::sizes(&settings, format)?);
    }
    let mut tests = TestResults::of(&args.exec)?;
    if paper.is_some() {
        tests.check_pairs()?;
    }
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let (mut measured, mut panels, mut is_judged) = (Vec::new(), Vec::new(), false);
    let mut walked = None;
    let resampling = resampling(&settings)?;
    let mut experiments = experiments_of(&settings, &modes)?;
    experiments.iter_mut().for_each(|(experiment, _)| log.begin(experiment));
    if is_elsewhere && log.is_dry() {
        log.add_files("demo", demonstration::planned(&settings));
    }
    let mut reports = match (&args.report, &paper) {
        (Some(folder), None) => Some(Reports::of(folder, &settings, experiments.len())?),
        _ => None,
    };
    // Before the hours of completing, too.
    for (experiment, settings) in &experiments {
        if experiment.tasks.is_none() {
            bail!("--tasks is not set, so there is nothing to complete");
        }
        check_completable(experiment)?;
        if let Some(Paper::Table(table)) = &paper {
            table.check_has(&tasks_of(experiment, settings)?, &experiment.name)?;
        }
    }
    let plans: Vec<_> = experiments.iter().map(|(one, _)| possible_modes(one, &modes)).collect();
    let is_open = |experiment: &Experiment, mode: Mode| {
        !experiment.paths().predictions(mode, &completion.model).exists()
    };
    let mut open = experiments.iter().zip(&plans).flat_map(|((experiment, _), (modes, _))| {
        modes.iter().map(move |mode| is_open(experiment, *mode))
    });
    if !args.dry_run && open.any(|is_open| is_open) {
        server::greet(&completion)?;
    }
    let possible: BTreeSet<Mode> = plans.iter().flat_map(|(modes, _)| modes).copied().collect();
    for ((experiment, settings), (modes, reasons)) in experiments.into_iter().zip(plans) {
        for (mode, reason) in reasons {
            // Of several benchmarks, each has its modes.
            if possible.contains(&mode) { output::note(reason) } else { output::failed(reason) }
        }
        let completion = completion_of(completion.clone(), &settings, &experiment)?;
        let policies = policies(&settings, are_functions(&settings, experiment.tasks.as_deref()))?;
        stages(&experiment, &settings, &modes, &completion, &mut log)?;
        places.push(place(&experiment));
        measured.push((experiment.name.clone(), tasks_of(&experiment, &settings)?));
        for &mode in &modes {
            if mode == Mode::Prediction
                && !has_predictions(&experiment, Mode::LeftContext, &completion)?
            {
                output::failed("rg-rg is left out: rg1 has no prediction to search with");
                continue;
            }
            if !has_predictions(&experiment, mode, &completion)? {
                output::failed(format!("{mode} is left out: it has no prediction"));
                continue;
            }
            let (scores, report) = log.timed("scores", || {
                let (scores, report) =
                    pipeline::scores(&experiment, mode, &completion.model, None)?;
                let is_current = report.built == 0;
                Ok(((scores, report), is_current))
            })?;
            output::remarks(&report);
            let Some(scores) = scores else {
                log.add("scores", &experiment, report.planned);
                continue;
            };
            let predictions = experiment.paths().predictions(mode, &completion.model);
            warn_of_ends(&predictions, &experiment.scoring)?;
            let row = Row::of(&experiment, mode, &completion, scores, &resampling)?;
            let row =
                row.with_profile(&settings).tested(tests.of_mode(&experiment, mode, &completion)?);
            // What policies trade is seen beside what each mode takes.
            let row = match policies.is_empty() && paper.is_none() {
                true => row,
                false => row.timed(&experiment, mode, &completion.model)?,
            };
            rows::tell_of_untimed(&row, &experiment, mode, &completion);
            rows.extend(row.by_metric(&experiment, &resampling));
        }
        if log.is_dry() {
            let chosen = policies.plan(&experiment, &modes, &completion, &settings, &mut log);
            is_judged |= chosen.is_some();
            if let Some(reports) = &reports {
                let folder = reports.folder.join(&experiment.name);
                let chosen = chosen.unwrap_or_default();
                let files = report::planned(&experiment, &settings, &chosen, &folder)?;
                log.add("report", &experiment, files);
            }
            continue;
        }
        let choose = || policies.choose(&experiment, &modes, &completion, &settings);
        let (selected, judged) = match policies.is_empty() {
            true => choose()?,
            false => log.timed("policies", || Ok((choose()?, false)))?,
        };
        for selected in &selected {
            let row = Row::selective(&experiment, selected, &resampling).with_profile(&settings);
            let row = row.tested(tests.of_policy(&experiment, selected)?);
            rows.extend(row.by_metric(&experiment, &resampling));
        }
        if let Some(Paper::Figure(figure)) = &paper {
            let Some(judged) = judged else { continue };
            if figure.is_walk() {
                if walked.is_none() {
                    walked = Some(paper::walk(&experiment, &completion.model, &judged, format)?);
                }
                continue;
            }
            let passed = [Mode::Without, judged.mode].map(|mode| tests.passed(&experiment, mode));
            let metric = rows::metric_name(&rows, &experiment.name);
            let panel = Panel::of(&experiment, &settings, &completion, judged, metric)?;
            let tested = match passed {
                [Some(without), Some(with)] => panel.tested(without, with),
                _ => None,
            };
            if !panels.iter().any(|other| panel.repeats(other)) {
                panels.push(panel);
                panels.extend(tested);
            }
            continue;
        }
        if let Some(reports) = &mut reports {
            let folder = reports.folder.join(&experiment.name);
            let written = log.timed("report", || {
                let report = leave_report(&experiment, &settings, &folder, selected, resampling)?;
                Ok((report, false))
            })?;
            places.push(format!("report: {}", written.page.display()));
            reports.add(&experiment, written);
        }
    }
    if log.is_dry() {
        let verdict = PlanVerdict::EachTime;
        let index = reports.as_ref().and_then(Reports::index);
        let index = index.map(|path| Planned::file(path, "page of the reports", verdict.clone()));
        log.add_files("report", index.into_iter().collect());
        if let Some(Paper::Figure(figure)) = paper.as_ref().filter(|_| is_judged && !is_walk) {
            let page = page_in(&figure_folder(args, &settings, figure)?);
            let page = Planned::file(page, "page, with its charts beside it", verdict);
            log.add_files("figure", vec![page]);
        }
        // A plan takes the place of no results.
        return write_data(Path::new("-"), written(&log, format)?);
    }
    tests.check_used()?;
    rows::compare_with_always(&mut rows);
    let data = match &paper {
        Some(Paper::Table(table)) => {
            let mut numbers = Vec::new();
            for (benchmark, tasks) in &measured {
                numbers.extend(rows::measured(&rows, benchmark, &completion.model, tasks));
            }
            table.written(&numbers, &settings, format)?
        }
        Some(Paper::Figure(_)) if walked.is_some() => walked.unwrap_or_default(),
        Some(Paper::Figure(figure)) => {
            let folder = figure_folder(args, &settings, figure)?;
            places.push(format!("figure: {}", page_in(&folder).display()));
            figure.draw(&panels, &settings, &folder, format)?
        }
        None => written(&Rows(&rows), format)?,
    };
    if let Some(index) = reports.as_ref().map(Reports::write).transpose()?.flatten() {
        places.push(format!("reports: {}", index.display()));
    }
    write_data(&args.output, data)?;
    rows::tell_of_crowds(&rows);
    all.tell_of_shares();
    rows::warn_of_gaps(&rows);
    places.iter().for_each(output::note);
    log.tell_times(begin.elapsed());
    Ok(())
}

/// Folder of a figure of the paper.
fn figure_folder(args: &RunArgs, settings: &Settings, figure: &paper::Figure) -> Result<PathBuf> {
    let given = args.report.as_ref().and_then(Option::as_ref);
    Ok(report_folder(given, settings)?.join(figure.name()))
}

/// Writes the report of a benchmark, with the choices of the policies.
fn leave_report(
    experiment: &Experiment,
    settings: &Settings,
    folder: &Path,
    selected: Vec<Selected>,
    resampling: Resampling,
) -> Result<Written> {
    let making = Making::of(
        super::eval::scoring(settings, experiment, &report::METRICS),
        resampling,
        settings,
    );
    let mut sources = report::of_cache(experiment, settings)?;
    sources.extend(selected.into_iter().map(|one| one.source));
    report::make(experiment, sources, &making, folder)
}

/// Folders of a benchmark's artifacts.
fn place(experiment: &Experiment) -> String {
    let Layout { cache, benchmark, .. } = &experiment.layout;
    let stages = "{window,vector,retrieval,prompts,predictions,scores}";
    format!("artifacts: {}", cache.join(stages).join(benchmark).display())
}

/// Runs every stage.
fn stages(
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
    // Contexts that the tasks carry need no repository.
    if !experiment.repos_dir.as_os_str().is_empty() {
        log.stage("window", experiment, || {
            let mut windows = pipeline::window_repositories(experiment)?;
            windows.merge(pipeline::window_queries(experiment, &first, None)?);
            Ok(windows)
        })?;
        log.stage("vectorize", experiment, || {
            let mut vectors = pipeline::vectorize_repositories(experiment)?;
            vectors.merge(pipeline::vectorize_queries(experiment, &first)?);
            Ok(vectors)
        })?;
        log.stage("search", experiment, || Ok(pipeline::search(experiment, &first)?))?;
    }
    log.stage("prompt", experiment, || Ok(pipeline::prompt(experiment, &first)?))?;
    log.stage("complete", experiment, || completed(experiment, &first, completion))?;
    if modes.contains(&Mode::Prediction)
        && has_predictions(experiment, Mode::LeftContext, completion)?
    {
        log.stage("rg-rg", experiment, || {
            let joined = read_predictions(experiment, settings, None)?;
            rg_rg::stages(experiment, &joined)
        })?;
        let mode = [Mode::Prediction];
        log.stage("complete", experiment, || completed(experiment, &mode, completion))?;
    }
    Ok(())
}
