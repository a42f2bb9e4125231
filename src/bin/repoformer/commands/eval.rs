//! `eval`

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use repoformer::artifact::header_path;
use repoformer::metrics::Metric;
use repoformer::pairs;
use repoformer::pipeline::{self, Experiment, cached_predictions, evaluate};
use repoformer::query::{Mode, REPOCODER_MODES};
use repoformer::score::{Missing, Scores, Summary, score_pairs, score_tasks};
use serde_json::Value;

use super::eval_retrieval;
use super::session::{check_not_tasks, completion, modes, open, without_repositories};
use crate::args::{EvalArgs, ScoreFormat};
use crate::output::{Printer, check_output, write_data};
use crate::table::Table;

/// What was scored, by name: a mode, a file, the references.
type Named = (String, Scores);

pub(crate) fn run(args: &EvalArgs, printer: &mut Printer) -> Result<()> {
    let metrics = metrics(&args.metrics)?;
    let Some(settings) = open(&args.settings)? else {
        return Ok(());
    };
    check_not_tasks(&settings, Some(&args.output))?;
    let read: Vec<&Path> = [&args.pairs, &args.predictions]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    check_output(Some(&args.output), &read)?;
    if args.retrieval {
        return eval_retrieval::run(args, &settings, printer);
    }
    if args.exec.exec {
        #[cfg(target_os = "linux")]
        return super::eval_exec::run(args, &settings, printer);
        #[cfg(not(target_os = "linux"))]
        bail!("tests are run on Linux alone");
    }
    if let Some(path) = &args.pairs {
        let reading = pairs::read(path)?;
        printer.problems(&reading.problems);
        if reading.pairs.is_empty() {
            bail!("{}: holds no pair to score", path.display());
        }
        let scores = score_pairs(&reading.pairs, &metrics);
        return write(args, &[("pairs".into(), scores)]);
    }
    let experiment = without_repositories(&settings, printer)?;
    let Some(tasks) = &experiment.tasks else {
        bail!("--tasks is not set, so there is nothing to score against")
    };
    if args.check_references {
        let perfect: Vec<Vec<String>> = tasks
            .tasks
            .iter()
            .map(|task| vec![task.ground_truth.clone()])
            .collect();
        let scores = score_tasks(tasks, &perfect, &metrics, Missing::Error)?;
        for task in scores.tasks.iter().filter(|task| {
            task.scores
                .iter()
                .any(|s| s.values.iter().any(|v| *v != 1.0))
        }) {
            printer.failed(&format!(
                "row {} ({}): its reference does not score as perfect",
                task.row, task.task_id
            ));
        }
        return write(args, &[("references".into(), scores)]);
    }
    let missing: Missing = args.missing.parse()?;
    let completion = completion(&settings, None)?;
    let mut named = Vec::new();
    if let Some(path) = &args.predictions {
        let name = path.file_stem().map_or("predictions".into(), |stem| {
            stem.to_string_lossy().into_owned()
        });
        named.push((name, score(&experiment, path, &metrics, missing, printer)?));
    } else {
        let asked = !settings.list("mode").is_empty();
        let mut left_out = Vec::new();
        let all: &[Mode] = match experiment.chunks {
            Some(_) => &Mode::ALL,
            None => &REPOCODER_MODES,
        };
        for mode in modes(&settings, all)? {
            if !asked
                && !experiment
                    .layout
                    .predictions(mode, &completion.model)
                    .exists()
            {
                if mode != Mode::Given {
                    left_out.push(mode.name());
                }
                continue;
            }
            let path = cached_predictions(&experiment, mode, &completion)?;
            let scores = score(&experiment, &path, &metrics, missing, printer)?;
            if header_path(&path).exists() {
                let complete = scores.missing == 0 && metrics == [Metric::RepoCoder];
                let known = complete.then_some(&scores);
                // Scores that cannot be kept are still told.
                if let Err(error) = pipeline::scores(&experiment, mode, &completion.model, known) {
                    printer.problems(&[error]);
                }
            }
            named.push((mode.to_string(), scores));
        }
        if named.is_empty() {
            let hint = "make them with `repoformer complete`, or name a file with --predictions";
            return Err(crate::output::hinted(
                anyhow::anyhow!("there are no predictions in the cache to score"),
                hint,
            ));
        }
        if !left_out.is_empty() {
            printer.note(format!("eval: not completed yet: {}", left_out.join(", ")));
        }
    }
    write(args, &named)
}

fn metrics(names: &[String]) -> Result<Vec<Metric>> {
    if names.is_empty() {
        return Ok(vec![Metric::RepoCoder]);
    }
    let mut metrics = names
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Vec<Metric>, _>>()?;
    metrics.dedup();
    Ok(metrics)
}

fn score(
    experiment: &Experiment,
    path: &std::path::Path,
    metrics: &[Metric],
    missing: Missing,
    printer: &mut Printer,
) -> Result<Scores> {
    let evaluation = evaluate(experiment, path, metrics, missing)?;
    printer.problems(&evaluation.problems);
    if let (Missing::Zero, Ok(scores)) = (missing, &evaluation.scores)
        && scores.missing > 0
    {
        printer.warning(format!(
            "{}: {} tasks have no prediction; they score 0",
            path.display(),
            scores.missing
        ));
    }
    if evaluation.empty > 0 {
        printer.warning(format!(
            "{}: {} empty predictions; they score as such",
            path.display(),
            evaluation.empty
        ));
    }
    Ok(evaluation.scores?)
}

fn write(args: &EvalArgs, named: &[Named]) -> Result<()> {
    let text = match args.format {
        ScoreFormat::Text => table(named, args.per_task).text(),
        ScoreFormat::Tsv => table(named, args.per_task).tsv(),
        ScoreFormat::Json => json(named, args.per_task) + "\n",
        ScoreFormat::Jsonl => jsonl(named, args.per_task),
    };
    write_data(&args.output, text.as_bytes())
}

/// A row a task where asked for, a repository, and one for all; values × 100.
fn table(named: &[Named], per_task: bool) -> Table {
    let metrics: Vec<Metric> = named[0]
        .1
        .all
        .means
        .iter()
        .map(|mean| mean.metric)
        .collect();
    let columns: Vec<String> = metrics
        .iter()
        .flat_map(|metric| {
            metric
                .values()
                .iter()
                .map(move |value| format!("{metric}.{value}"))
        })
        .collect();
    let mut head = vec!["predictions", "repository", "n"];
    if per_task {
        head.extend(["row", "task_id"]);
    }
    head.extend(columns.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for (name, scores) in named {
        if per_task {
            for task in &scores.tasks {
                let repository = task.repository.clone().unwrap_or_default();
                let (row, id) = (task.row.to_string(), task.task_id.clone());
                let mut cells = vec![name.clone(), repository, "1".into(), row, id];
                cells.extend(
                    task.scores
                        .iter()
                        .flat_map(|score| score.values.iter().map(percent)),
                );
                table.row(cells);
            }
        }
        for (repository, summary) in &scores.repositories {
            table.row(summary_row(name, repository, summary, per_task));
        }
        table.row(summary_row(name, "all", &scores.all, per_task));
    }
    table
}

fn summary_row(name: &str, repository: &str, summary: &Summary, per_task: bool) -> Vec<String> {
    let mut cells = vec![
        name.to_owned(),
        repository.to_owned(),
        summary.n.to_string(),
    ];
    if per_task {
        cells.extend([String::new(), String::new()]);
    }
    cells.extend(
        summary
            .means
            .iter()
            .flat_map(|mean| mean.values.iter().map(percent)),
    );
    cells
}

fn percent(value: &f64) -> String {
    format!("{:.2}", 100.0 * value)
}

fn json(named: &[Named], per_task: bool) -> String {
    let records: Vec<Value> = named
        .iter()
        .map(|(name, scores)| scores.to_record(name, per_task))
        .collect();
    let value = if records.len() == 1 {
        records.into_iter().next().unwrap_or_default()
    } else {
        records.into()
    };
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// Task records where asked for, else a line for each set of predictions.
fn jsonl(named: &[Named], per_task: bool) -> String {
    let mut lines = String::new();
    for (name, scores) in named {
        if !per_task {
            lines += &(scores.to_record(name, false).to_string() + "\n");
            continue;
        }
        for task in &scores.tasks {
            let mut record = task.to_record();
            if named.len() > 1 {
                record["predictions"] = name.as_str().into();
            }
            lines += &(record.to_string() + "\n");
        }
    }
    lines
}
