//! `run`: every stage for one configuration, then a table of modes × metrics.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use repoformer::artifact::{Layout, write_file};
use repoformer::pipeline::{
    self, Completion, Experiment, PromptTotals, Report, SearchTime, cached_predictions,
    prompt_totals,
};
use repoformer::query::{Mode, REPOCODER_MODES};
use repoformer::statistics::{Groups, Interval, Resampling};
use serde_json::{Value, json};

use super::eval_output::interval;
use super::report::{self, Making};
use super::session::{check_completable, completion, experiments_of, label, modes, open};
use super::{rg_rg, window};
use crate::args::{RunArgs, ScoreFormat, SettingFlags};
use crate::config::Settings;
use crate::output::{Printer, write_data};
use crate::table::Table;

/// The demonstration's data, for a program that runs elsewhere than in its project.
mod demo {
    include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));
}

/// One row of the table.
struct Row {
    benchmark: String,
    mode: Mode,
    /// The mode's scores, as their artifact holds them.
    scores: Value,
    /// Intervals of exact match and edit similarity.
    intervals: [Option<Interval>; 2],
    prompts: PromptTotals,
    time: Option<SearchTime>,
}

pub(crate) fn run(args: &RunArgs, printer: &mut Printer) -> Result<()> {
    let Some(settings) = settings(&args.settings)? else {
        return Ok(());
    };
    let completion = completion(&settings, None)?;
    let modes = modes(&settings, &REPOCODER_MODES)?;
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let resampling = Resampling {
        resamples: args.resamples,
        seed: args.seed,
        ..Resampling::default()
    };
    for experiment in experiments_of(&settings, &modes, printer)? {
        if experiment.tasks.is_none() {
            bail!("--tasks is not set, so there is nothing to complete");
        }
        check_completable(&experiment)?;
        stages(&experiment, &settings, &modes, &completion, printer)?;
        places.push(place(&experiment));
        for &mode in &modes {
            rows.push(row(&experiment, mode, &completion, &resampling, printer)?);
        }
        if let Some(folder) = &args.report {
            let folder = folder
                .clone()
                .unwrap_or_else(|| experiment.layout.cache.join("report"));
            let page = leave_report(&experiment, &settings, &folder, resampling, printer)?;
            places.push(format!("report: {}", page.display()));
        }
    }
    let text = match args.format {
        ScoreFormat::Text => table(&rows, true).text(),
        ScoreFormat::Tsv => table(&rows, false).tsv(),
        ScoreFormat::Json => {
            serde_json::to_string_pretty(&rows.iter().map(json_row).collect::<Vec<_>>())? + "\n"
        }
        ScoreFormat::Jsonl => rows
            .iter()
            .map(|row| json_row(row).to_string() + "\n")
            .collect(),
    };
    write_data(Path::new("-"), text.as_bytes())?;
    places.iter().for_each(|place| printer.note(place));
    Ok(())
}

/// Leaves the report of a benchmark.
fn leave_report(
    experiment: &Experiment,
    settings: &Settings,
    folder: &Path,
    resampling: Resampling,
    printer: &mut Printer,
) -> Result<PathBuf> {
    let making = Making {
        exec: Vec::new(),
        metrics: report::METRICS.to_vec(),
        postprocess: None,
        title: None,
        baseline: None,
        resampling,
    };
    let sources = report::of_cache(experiment, settings)?;
    let folder = folder.join(&experiment.layout.benchmark);
    report::make(experiment, sources, &making, &folder, printer)
}

/// Where the artifacts of a benchmark lie.
fn place(experiment: &Experiment) -> String {
    let Layout {
        cache, benchmark, ..
    } = &experiment.layout;
    let stages = "{window,vector,retrieval,prompts,predictions,scores}";
    format!(
        "artifacts: {}",
        cache.join(stages).join(benchmark).display()
    )
}

/// The user's settings, or those of the demonstration where no data is named.
fn settings(flags: &SettingFlags) -> Result<Option<Settings>> {
    let asked = Settings::resolve(flags)?;
    let named = ["repos-dir", "tasks", "profile"]
        .iter()
        .any(|key| asked.text(key).is_some());
    if named || flags.config.is_some() {
        return open(flags);
    }
    let demo = SettingFlags {
        profile: Some("demo".into()),
        ..flags.clone()
    };
    let Some(mut settings) = open(&demo)? else {
        return Ok(None);
    };
    // Another project's data/repos is not the demonstration's.
    let mut named = ["repos-dir", "tasks"]
        .into_iter()
        .flat_map(|key| settings.list(key));
    let here = named.all(|path| Path::new(path).exists());
    if !here && settings.text("repos-dir").is_some() {
        let root = Path::new(settings.text("cache-dir").unwrap_or("data/cache")).join("demo");
        for (path, text) in demo::FILES {
            let path = root.join(path);
            if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                write_file(&path, text.as_bytes())?;
            }
        }
        settings.move_paths(&root);
    }
    Ok(Some(settings))
}

/// Runs every stage.
fn stages(
    experiment: &Experiment,
    settings: &Settings,
    modes: &[Mode],
    completion: &Completion,
    printer: &mut Printer,
) -> Result<()> {
    // The second retrieval searches with the predictions of the first.
    let mut first: Vec<Mode> = modes
        .iter()
        .copied()
        .filter(|mode| *mode != Mode::Prediction)
        .collect();
    if modes.contains(&Mode::Prediction) && !first.contains(&Mode::LeftContext) {
        first.push(Mode::LeftContext);
    }
    let mut tell = |name: &str, report: Report| printer.report(&label(name, experiment), &report);
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
    complete(experiment, &first, completion, printer)?;
    if modes.contains(&Mode::Prediction) {
        let path = cached_predictions(experiment, Mode::LeftContext, completion)?;
        let joined = window::read_predictions(experiment, settings, Some(&path))?;
        let report = rg_rg::stages(experiment, &joined)?;
        printer.report(&label("rg-rg", experiment), &report);
        complete(experiment, &[Mode::Prediction], completion, printer)?;
    }
    Ok(())
}

fn complete(
    experiment: &Experiment,
    modes: &[Mode],
    completion: &Completion,
    printer: &mut Printer,
) -> Result<()> {
    let total = experiment.tasks.as_ref().map_or(0, |set| set.tasks.len()) * modes.len();
    let bar = printer.bar("complete", total);
    let report = pipeline::complete(experiment, modes, completion, &|| bar.inc(1));
    bar.finish_and_clear();
    printer.report(&label("complete", experiment), &report?);
    Ok(())
}

fn row(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
    resampling: &Resampling,
    printer: &mut Printer,
) -> Result<Row> {
    let (scores, report) = pipeline::scores(experiment, mode, &completion.model, None)?;
    report
        .warnings
        .iter()
        .for_each(|rebuilt| printer.warning(rebuilt));
    printer.problems(&report.problems);
    Ok(Row {
        benchmark: experiment.layout.benchmark.clone(),
        mode,
        intervals: intervals(&scores, resampling),
        scores,
        prompts: prompt_totals(experiment, mode)?,
        time: pipeline::search_time(experiment, mode).filter(|_| mode.retrieves()),
    })
}

/// The intervals of a mode's means, from the scores of its tasks.
fn intervals(scores: &Value, resampling: &Resampling) -> [Option<Interval>; 2] {
    let tasks = scores["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let groups = Groups::of(tasks.iter().map(|task| task["repository"].as_str()));
    let column = |name: &str| -> Vec<Option<f64>> {
        tasks
            .iter()
            .map(|task| task["repocoder"][name].as_f64())
            .collect()
    };
    let found = resampling.intervals(&groups, [column("em"), column("es")]);
    [0, 1].map(|place| found.get(place).copied().flatten())
}

impl Row {
    /// Number of tasks scored.
    fn count(&self) -> u64 {
        self.scores["all"]["n"].as_u64().unwrap_or(0)
    }

    fn value(&self, name: &str) -> f64 {
        self.scores["all"]["repocoder"][name]
            .as_f64()
            .unwrap_or(0.0)
    }

    fn tokens_per_prompt(&self) -> f64 {
        self.prompts.tokens as f64 / self.prompts.prompts.max(1) as f64
    }

    fn share_with_blocks(&self) -> f64 {
        self.prompts.with_blocks as f64 / self.prompts.prompts.max(1) as f64
    }

    fn milliseconds_per_query(&self) -> Option<f64> {
        self.time
            .map(|time| 1e3 * time.seconds / time.queries.max(1) as f64)
    }
}

/// The intervals, `[low, high]`, stand behind their means; with tabs, where one number a column is wanted, last.
fn table(rows: &[Row], intervals_inside: bool) -> Table {
    let mut head = vec![
        "tasks",
        "mode",
        "n",
        "EM",
        "ES",
        "tokens/prompt",
        "with retrieved %",
        "retrieval ms/query",
    ];
    if intervals_inside {
        head.insert(4, "95 %");
        head.insert(6, "95 %");
    } else {
        head.extend(["EM low", "EM high", "ES low", "ES high"]);
    }
    let mut table = Table::new(&head);
    for row in rows {
        let mut cells = vec![
            row.benchmark.clone(),
            row.mode.to_string(),
            row.count().to_string(),
            format!("{:.2}", 100.0 * row.value("em")),
            format!("{:.2}", 100.0 * row.value("es")),
            format!("{:.0}", row.tokens_per_prompt()),
            format!("{:.1}", 100.0 * row.share_with_blocks()),
            row.milliseconds_per_query()
                .map_or("-".into(), |ms| format!("{ms:.3}")),
        ];
        if intervals_inside {
            cells.insert(4, interval(&row.intervals[0]));
            cells.insert(6, interval(&row.intervals[1]));
        } else {
            let ends = row.intervals.iter().flat_map(|interval| {
                let ends = interval.map(|interval| [interval.low, interval.high]);
                let end = |end: usize| {
                    ends.map_or(String::new(), |ends| format!("{:.2}", 100.0 * ends[end]))
                };
                [end(0), end(1)]
            });
            cells.extend(ends);
        }
        table.row(cells);
    }
    table
}

fn json_row(row: &Row) -> Value {
    json!({
        "benchmark": row.benchmark,
        "mode": row.mode.name(),
        "n": row.count(),
        "em": row.value("em"),
        "es": row.value("es"),
        "em_interval": row.intervals[0].map(|interval| [interval.low, interval.high]),
        "es_interval": row.intervals[1].map(|interval| [interval.low, interval.high]),
        "prompt_tokens": row.tokens_per_prompt(),
        "with_retrieved": row.share_with_blocks(),
        "retrieval_ms": row.milliseconds_per_query(),
    })
}
