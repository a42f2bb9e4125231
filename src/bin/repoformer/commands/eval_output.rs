//! Scores as a table, as JSON, and as CrossCodeEval's files.

use std::path::Path;

use anyhow::Result;
use repoformer::artifact::write_file;
use repoformer::exchange::crosscodeeval;
use repoformer::manifest::Manifest;
use repoformer::metrics::Metric;
use repoformer::pipeline::Evaluation;
use repoformer::postprocess::Postprocess;
use repoformer::score::{Missing, Scores, Summary};
use serde_json::Value;

use crate::args::{EvalArgs, ScoreFormat};
use crate::output::write_data;
use crate::table::Table;

/// What was scored, by name: a mode, a file, the references.
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
        manifest.digest(name, &repoformer::artifact::digest(text.as_bytes()));
    }
    let text = serde_json::to_string_pretty(&manifest.to_record())? + "\n";
    write_file(&folder.join("manifest.json"), text.as_bytes())?;
    Ok(())
}

/// Writes the scores as they were asked for; JSON objects carry the manifest.
pub(super) fn write(args: &EvalArgs, named: &[Named], manifest: &Manifest) -> Result<()> {
    let text = match args.format {
        ScoreFormat::Text => table(named, args.per_task).text(),
        ScoreFormat::Tsv => table(named, args.per_task).tsv(),
        ScoreFormat::Json => json(named, args.per_task, manifest) + "\n",
        ScoreFormat::Jsonl => jsonl(named, args.per_task, manifest),
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

/// The record of one set of predictions.
fn record((name, scores): &Named, per_task: bool, manifest: &Manifest) -> Value {
    let mut record = scores.to_record(name, per_task);
    record["manifest"] = manifest.to_record();
    record
}

fn json(named: &[Named], per_task: bool, manifest: &Manifest) -> String {
    let records: Vec<Value> = named
        .iter()
        .map(|named| record(named, per_task, manifest))
        .collect();
    let value = if records.len() == 1 {
        records.into_iter().next().unwrap_or_default()
    } else {
        records.into()
    };
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// Task records where asked for, else a line for each set of predictions.
fn jsonl(named: &[Named], per_task: bool, manifest: &Manifest) -> String {
    let mut lines = String::new();
    for one in named {
        let (name, scores) = one;
        if !per_task {
            lines += &(record(one, false, manifest).to_string() + "\n");
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
