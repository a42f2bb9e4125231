//! Scores as a table, as JSON, and as CrossCodeEval's files.

use std::path::Path;

use anyhow::Result;
use repoformer::evaluate::metrics::Metric;
use repoformer::evaluate::postprocess::Postprocess;
use repoformer::evaluate::score::{Intervals, MetricMeans, MetricScore, Missing, Scores};
use repoformer::evaluate::statistics::{Interval, Resampling};
use repoformer::formats::exchange::crosscodeeval;
use repoformer::pipeline::Evaluation;
use repoformer::store::artifact::write_file;
use repoformer::store::manifest::Manifest;
use serde_json::Value;

use super::session::resampling;
use crate::args::{EvalArgs, ScoreFormat};
use crate::output::{write_data, write_manifest_beside};
use crate::settings::Settings;
use crate::table::Table;

/// The name of some predictions (a mode, a file, the references), and their scores.
pub(super) type Named = (String, Scores);

/// Writes CrossCodeEval's result files and a manifest that names them.
pub(super) fn write_results(
    folder: &Path,
    evaluation: &Evaluation,
    (postprocess, missing): (&Postprocess, Missing),
    mut manifest: Manifest,
) -> Result<()> {
    let Evaluation { tasks, samples, .. } = evaluation;
    let files = crosscodeeval::files(tasks, samples, postprocess, missing == Missing::Zero);
    for (name, text) in &files {
        write_file(&folder.join(name), text.as_bytes())?;
        manifest.digest(name, &repoformer::store::artifact::digest(text.as_bytes()));
    }
    let text = serde_json::to_string_pretty(&manifest.to_record())? + "\n";
    write_file(&folder.join("manifest.json"), text.as_bytes())?;
    Ok(())
}

/// Writes the scores in the requested format. JSON objects contain the manifest; other files have it beside them.
pub(super) fn write(
    args: &EvalArgs,
    settings: &Settings,
    named: &[Named],
    manifest: &Manifest,
) -> Result<()> {
    let resampling = resampling(settings)?;
    let how = (manifest, &resampling);
    let (text, has_manifest) = match args.format {
        ScoreFormat::Text => (text(named, args.per_task, &resampling), false),
        ScoreFormat::Tsv => (table(named, args.per_task, None, &named[0].1.metrics()).tsv(), false),
        ScoreFormat::Json => (json(named, args.per_task, how) + "\n", true),
        ScoreFormat::Jsonl => (jsonl(named, args.per_task, how), !args.per_task),
    };
    write_data(&args.output, text.as_bytes())?;
    if has_manifest { Ok(()) } else { write_manifest_beside(&args.output, &manifest.to_record()) }
}

/// A table per metric with the intervals of the means, then the resampling and the cuts.
fn text(named: &[Named], per_task: bool, resampling: &Resampling) -> String {
    let scores = &named[0].1;
    let intervals: Vec<Intervals> =
        named.iter().map(|(_, scores)| scores.intervals(resampling)).collect();
    let mut text = String::new();
    for metric in scores.metrics() {
        text += &table(named, per_task, Some(&intervals), &[metric]).text();
        text.push('\n');
    }
    let Intervals { units, unit, .. } = &intervals[0];
    if intervals[0].of_values.iter().any(Option::is_some) {
        text += &format!(
            "95 %: {} resamples of the {units} {unit}, seed {}\n",
            resampling.resamples, resampling.seed
        );
    }
    for (metric, recipe) in scores.cuts_by_metric() {
        text += &format!("{metric}: predictions cut by {recipe}\n");
    }
    text
}

/// A row per task where requested, per repository, and one for all; values × 100, of these metrics.
fn table(
    named: &[Named],
    per_task: bool,
    intervals: Option<&[Intervals]>,
    metrics: &[Metric],
) -> Table {
    let columns: Vec<String> = metrics
        .iter()
        .flat_map(|metric| metric.values().iter().map(move |value| format!("{metric}.{value}")))
        .collect();
    let mut head = vec!["predictions", "repository", "n"];
    if per_task {
        head.extend(["row", "task_id"]);
    }
    head.extend(columns.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for (place, (name, scores)) in named.iter().enumerate() {
        for task in scores.tasks.iter().filter(|_| per_task) {
            let repository = task.repository.clone().unwrap_or_default();
            let (row, id) = (task.row.to_string(), task.task_id.clone());
            let mut cells = vec![name.clone(), repository, "1".into(), row, id];
            cells.extend(of_metrics(&task.scores, metrics).map(percent));
            table.row(cells);
        }
        for (repository, summary) in &scores.repositories {
            table.row(summary_row((name, repository), summary, per_task, metrics));
        }
        table.row(summary_row((name, "all"), &scores.all, per_task, metrics));
        if let Some(intervals) = intervals.map(|all| &all[place]) {
            let shown: Vec<String> = scores
                .metrics()
                .iter()
                .flat_map(|metric| metric.values().iter().map(move |_| metric))
                .zip(&intervals.of_values)
                .filter(|(metric, _)| metrics.contains(metric))
                .map(|(_, of)| interval(of))
                .collect();
            if shown.iter().any(|cell| !cell.is_empty()) {
                let mut cells = vec![String::new(), "95 %".into(), String::new()];
                if per_task {
                    cells.extend([String::new(), String::new()]);
                }
                cells.extend(shown);
                table.row(cells);
            }
        }
    }
    table
}

/// The values of these metrics, one after the other.
fn of_metrics<'a>(
    scores: &'a [MetricScore],
    metrics: &'a [Metric],
) -> impl Iterator<Item = &'a f64> {
    let shown = scores.iter().filter(|score| metrics.contains(&score.metric));
    shown.flat_map(|score| &score.values)
}

fn summary_row(
    (name, repository): (&str, &str),
    summary: &MetricMeans,
    per_task: bool,
    metrics: &[Metric],
) -> Vec<String> {
    let mut cells = vec![name.to_owned(), repository.to_owned(), summary.n.to_string()];
    if per_task {
        cells.extend([String::new(), String::new()]);
    }
    cells.extend(of_metrics(&summary.means, metrics).map(percent));
    cells
}

/// `[34.10, 38.00]`
pub(super) fn interval(of: &Option<Interval>) -> String {
    of.as_ref().map_or_else(String::new, |Interval { low, high }| {
        format!("[{}, {}]", percent(low), percent(high))
    })
}

fn percent(value: &f64) -> String {
    format!("{:.2}", 100.0 * value)
}

/// Manifest and resampling, shared by all records of a result.
type Shared<'a> = (&'a Manifest, &'a Resampling);

/// The record of one set of predictions; the tasks come last.
fn record((name, scores): &Named, per_task: bool, (manifest, resampling): Shared<'_>) -> Value {
    let mut record = scores.to_record(name, false);
    let intervals = scores.intervals(resampling);
    record["intervals"] = intervals.to_record(&scores.metrics(), resampling);
    record["manifest"] = manifest.to_record();
    if per_task {
        let tasks = scores.tasks.iter().map(|task| task.to_record(&scores.cuts));
        record["tasks"] = tasks.collect();
    }
    record
}

fn json(named: &[Named], per_task: bool, how: Shared<'_>) -> String {
    let records: Vec<Value> = named.iter().map(|named| record(named, per_task, how)).collect();
    let value = if records.len() == 1 {
        records.into_iter().next().unwrap_or_default()
    } else {
        records.into()
    };
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// Task records where requested, else a line per set of predictions.
fn jsonl(named: &[Named], per_task: bool, how: Shared<'_>) -> String {
    let mut lines = String::new();
    for one in named {
        let (name, scores) = one;
        if !per_task {
            lines += &(record(one, false, how).to_string() + "\n");
            continue;
        }
        for task in &scores.tasks {
            let mut record = task.to_record(&scores.cuts);
            if named.len() > 1 {
                record["predictions"] = name.as_str().into();
            }
            lines += &(record.to_string() + "\n");
        }
    }
    lines
}
