//! `run`: every stage for one configuration, then a table of modes × metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use repoformer::evaluate::statistics::Resampling;
use repoformer::pipeline::{self, Completion, Experiment, Layout, StageReport};
use repoformer::retrieve::{Mode, REPOCODER_MODES};
use repoformer::store::artifact::write_file;

use super::complete::complete_modes;
use super::experiments::{
    are_functions, check_completable, check_not_tasks, completion_of, experiments_of,
    possible_modes,
};
use super::paper::{self, Panel, Paper, tasks_of};
use super::report::{self, Making};
use super::rows::{self, Row, Rows};
use super::selective::{Policies, Selected};
use super::session::{begin, label, modes, resampling, seed};
use super::stages::read_predictions;
use super::tests_of_run::TestResults;
use super::{rg_rg, server};
use crate::output::{self, fail, write_data};
use crate::settings::{Given, SettingFlags, Settings};
use crate::table::{ScoreFormat, written};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Format of the table
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ScoreFormat,
    /// File for the table (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Also write a report of each task file, as BENCHMARK/index.html in this folder [default: report in the cache folder]
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

/// The demonstration's data, for a program that runs outside its project.
mod demo {
    include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));

    /// Folder of its repositories, as in `configs/demo.toml`.
    pub(super) const REPOS: &str = "data/repos";
    /// Files of its tasks, as in `configs/demo.toml`.
    pub(super) const TASKS: [&str; 3] =
        ["data/tasks/line.jsonl", "data/tasks/api.jsonl", "data/tasks/function.jsonl"];
}

pub(crate) fn run(args: &RunArgs) -> Result<()> {
    let settings = settings(&args.settings)?;
    args.format.check(&args.output)?;
    check_not_tasks(&settings, Some(&args.output))?;
    let seed = seed(&settings)?;
    // Greedy completions draw nothing.
    let is_greedy = settings.parsed::<f64>("temperature")? == 0.0;
    let completion = server::model(&settings, (!is_greedy).then_some(seed), false)?;
    let modes = modes(&settings, &REPOCODER_MODES)?;
    let policies = |settings: &Settings, are_functions| {
        Policies::of(&args.probabilities, args.samples_from.as_ref(), settings, are_functions)
    };
    // Before the hours of completing.
    let all = policies(&settings, false)?;
    all.greet(&settings)?;
    policies(&settings.of_functions(), true)?;
    let paper = Paper::of(&settings)?;
    let is_sizes = settings.text("paper") == Some(paper::SIZES);
    let is_walk = matches!(&paper, Some(Paper::Figure(figure)) if figure.is_walk());
    let unused = [
        ("report", args.report.is_some(), is_sizes || is_walk),
        ("exec", !args.exec.is_empty(), is_sizes || is_walk),
        ("probabilities", !args.probabilities.is_empty(), is_sizes),
        ("samples-from", args.samples_from.is_some(), is_sizes),
    ];
    if let Some((flag, ..)) = unused.iter().find(|(_, is_given, is_unused)| *is_given && *is_unused)
    {
        let name = settings.text("paper").unwrap_or_default();
        return fail(format!("--{flag} is not used by {name}"), "leave it out");
    }
    if is_sizes {
        return write_data(&args.output, paper::sizes(&settings, args.format)?);
    }
    let mut tests = TestResults::of(&args.exec)?;
    if paper.is_some() {
        tests.check_pairs()?;
    }
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let (mut measured, mut panels) = (Vec::new(), Vec::new());
    let mut walked = None;
    let resampling = resampling(&settings)?;
    let experiments = experiments_of(&settings, &modes)?;
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
    let possible: BTreeSet<Mode> = plans.iter().flat_map(|(modes, _)| modes).copied().collect();
    for ((experiment, settings), (modes, reasons)) in experiments.into_iter().zip(plans) {
        for (mode, reason) in reasons {
            // Of several benchmarks, each has its modes.
            if possible.contains(&mode) { output::note(reason) } else { output::failed(reason) }
        }
        let completion = completion_of(completion.clone(), &settings, &experiment)?;
        let policies = policies(&settings, are_functions(&settings, experiment.tasks.as_ref()))?;
        stages(&experiment, &settings, &modes, &completion)?;
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
            let row = Row::of(&experiment, mode, &completion, &resampling)?;
            let row = row.tested(tests.of_mode(&experiment, mode, &completion)?);
            // What policies trade is seen beside what each mode takes.
            if policies.is_empty() && paper.is_none() {
                rows.extend(row.by_metric(&experiment, &resampling));
            } else {
                let row = row.timed(&experiment, mode, &completion.model)?;
                tell_untimed(&row, &experiment, mode, &completion);
                rows.extend(row.by_metric(&experiment, &resampling));
            }
        }
        let (selected, judged) = policies.choose(&experiment, &modes, &completion, &settings)?;
        for selected in &selected {
            let row = Row::selective(&experiment, selected, &resampling);
            let row = row.tested(tests.of_policy(&experiment, selected)?);
            rows.extend(row.by_metric(&experiment, &resampling));
        }
        if let Some(Paper::Figure(figure)) = &paper {
            let Some(judged) = judged else { continue };
            if figure.is_walk() {
                if walked.is_none() {
                    walked =
                        Some(paper::walk(&experiment, &completion.model, &judged, args.format)?);
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
        if let Some(folder) = &args.report {
            let folder = folder.clone().unwrap_or_else(|| experiment.layout.cache.join("report"));
            let page = leave_report(&experiment, &settings, &folder, selected, resampling)?;
            places.push(format!("report: {}", page.display()));
        }
    }
    tests.check_used()?;
    rows::compare_with_always(&mut rows);
    let data = match &paper {
        Some(Paper::Table(table)) => {
            let mut numbers = Vec::new();
            for (benchmark, tasks) in &measured {
                numbers.extend(rows::measured(&rows, benchmark, &completion.model, tasks));
            }
            table.written(&numbers, args.format)?
        }
        Some(Paper::Figure(_)) if walked.is_some() => walked.unwrap_or_default(),
        Some(Paper::Figure(figure)) => {
            let cache: PathBuf = settings.parsed("cache-dir")?;
            let folder = args.report.clone().flatten().unwrap_or_else(|| cache.join("report"));
            let folder = folder.join(figure.name());
            places.push(format!("figure: {}", folder.join("index.html").display()));
            figure.draw(&panels, &folder, args.format)?
        }
        None => written(&Rows(&rows), args.format)?,
    };
    write_data(&args.output, data)?;
    rows::tell_of_crowds(&rows);
    all.tell_of_shares();
    rows::warn_of_gaps(&rows);
    places.iter().for_each(output::note);
    Ok(())
}

/// Reports completions without times: they are not made again only to be measured.
fn tell_untimed(row: &Row, experiment: &Experiment, mode: Mode, completion: &Completion) {
    if completion.is_embedded() && !row.is_timed() {
        let path = experiment.layout.predictions(mode, &completion.model);
        output::note(format!(
            "{} {mode}: some completions were made without timing; delete {} to make and time them again",
            experiment.name,
            path.display()
        ));
    }
}

fn has_predictions(experiment: &Experiment, mode: Mode, completion: &Completion) -> Result<bool> {
    Ok(pipeline::count_predictions(experiment, mode, completion)? > 0)
}

/// Writes the report of a benchmark, with the choices of the policies.
fn leave_report(
    experiment: &Experiment,
    settings: &Settings,
    folder: &Path,
    selected: Vec<Selected>,
    resampling: Resampling,
) -> Result<PathBuf> {
    let making =
        Making::of(super::eval::scoring(settings, experiment, &report::METRICS)?, resampling);
    let mut sources = report::of_cache(experiment, settings)?;
    sources.extend(selected.into_iter().map(|one| one.source));
    let folder = folder.join(&experiment.name);
    report::make(experiment, sources, &making, &folder)
}

/// Folders of a benchmark's artifacts.
fn place(experiment: &Experiment) -> String {
    let Layout { cache, benchmark, .. } = &experiment.layout;
    let stages = "{window,vector,retrieval,prompts,predictions,scores}";
    format!("artifacts: {}", cache.join(stages).join(benchmark).display())
}

/// The given settings, or the demonstration's where no data is named.
fn settings(flags: &SettingFlags) -> Result<Settings> {
    let given = Settings::resolve(flags)?;
    let named = ["repos-dir", "tasks"];
    if named.iter().any(|key| given.text(key).is_some()) {
        return begin(given, flags);
    }
    let has_settings = ["profile", "config"].iter().any(|key| given.text(key).is_some());
    let presets = if has_settings {
        // Settings without data use the demonstration's.
        Given::from([
            ("repos-dir", vec![demo::REPOS.into()]),
            ("tasks", demo::TASKS.map(String::from).to_vec()),
        ])
    } else {
        Given::from([("profile", vec!["demo".into()])])
    };
    let settings = Settings::with_presets(flags, "run", presets)?;
    let mut settings = begin(settings, flags)?;
    // Another project's data/repos is not the demonstration's.
    let mut named = ["repos-dir", "tasks"].into_iter().flat_map(|key| settings.list(key));
    let here = named.all(|path| Path::new(path).exists());
    if !here && settings.text("repos-dir").is_some() {
        let root = settings.parsed::<PathBuf>("cache-dir")?.join("demo");
        for (path, text) in demo::FILES {
            let path = root.join(path);
            if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                write_file(&path, text.as_bytes())?;
            }
        }
        settings.move_paths(&root);
    }
    Ok(settings)
}

/// Runs every stage.
fn stages(
    experiment: &Experiment,
    settings: &Settings,
    modes: &[Mode],
    completion: &Completion,
) -> Result<()> {
    // The second retrieval searches with the predictions of the first.
    let mut first = modes.to_vec();
    first.retain(|mode| *mode != Mode::Prediction);
    if modes.contains(&Mode::Prediction) && !first.contains(&Mode::LeftContext) {
        first.push(Mode::LeftContext);
    }
    let tell = |name: &str, report: StageReport| output::report(&label(name, experiment), &report);
    // Contexts that the tasks carry need no repository.
    if !experiment.repos_dir.as_os_str().is_empty() {
        let mut windows = pipeline::window_repositories(experiment)?;
        windows.merge(pipeline::window_queries(experiment, &first, None)?);
        tell("window", windows);
        let mut vectors = pipeline::vectorize_repositories(experiment)?;
        vectors.merge(pipeline::vectorize_queries(experiment, &first)?);
        tell("vectorize", vectors);
        tell("search", pipeline::search(experiment, &first)?);
    }
    tell("prompt", pipeline::prompt(experiment, &first)?);
    complete_modes(experiment, &first, completion)?;
    if modes.contains(&Mode::Prediction)
        && has_predictions(experiment, Mode::LeftContext, completion)?
    {
        let joined = read_predictions(experiment, settings, None)?;
        tell("rg-rg", rg_rg::stages(experiment, &joined)?);
        complete_modes(experiment, &[Mode::Prediction], completion)?;
    }
    Ok(())
}
