//! Results as text, TSV, JSON and JSONL.

use repoformer::execution::{Status, Summaries, Summary};
use serde_json::{Value, json};

use super::Named;
use crate::table::Table;

fn rate_cell(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", 100.0 * rate))
}

/// A row a task where asked for, a repository, and one for all; rates × 100, statuses in samples.
pub(super) fn table(
    named: &[Named],
    summaries: &[Summaries],
    ks: &[usize],
    per_task: bool,
) -> Table {
    let rates: Vec<String> = ks.iter().map(|k| format!("pass@{k}")).collect();
    let mut head = vec![
        "predictions",
        "repository",
        "tasks",
        "excluded",
        "n",
        "samples",
    ];
    if per_task {
        head.extend(["row", "task_id"]);
    }
    head.extend(rates.iter().map(String::as_str));
    head.extend(Status::ALL.map(Status::name));
    let mut table = Table::new(&head);
    for ((name, execution), summary) in named.iter().zip(summaries) {
        for task in execution.tasks.iter().filter(|_| per_task) {
            let sound = usize::from(task.excluded.is_none());
            let mut cells = vec![
                name.clone(),
                task.repository.clone(),
                "1".into(),
                (1 - sound).to_string(),
            ];
            cells.extend([sound.to_string(), task.samples.len().to_string()]);
            cells.extend([task.row.to_string(), task.task_id.clone()]);
            cells.extend(ks.iter().map(|&k| rate_cell(task.pass_at(k))));
            cells.extend(Status::ALL.map(|status| {
                task.samples
                    .iter()
                    .filter(|of| **of == status)
                    .count()
                    .to_string()
            }));
            table.row(cells);
        }
        for (repository, summary) in &summary.repositories {
            table.row(summary_row(name, repository, summary, per_task));
        }
        table.row(summary_row(name, "all", &summary.all, per_task));
    }
    table
}

fn summary_row(name: &str, repository: &str, summary: &Summary, per_task: bool) -> Vec<String> {
    let (least, most) = summary.samples;
    let samples = if least == most {
        least.to_string()
    } else {
        format!("{least}-{most}")
    };
    let mut cells = vec![
        name.to_owned(),
        repository.to_owned(),
        summary.tasks.to_string(),
    ];
    cells.extend([summary.excluded.to_string(), summary.n.to_string(), samples]);
    if per_task {
        cells.extend([String::new(), String::new()]);
    }
    cells.extend(summary.rates.iter().map(|(_, rate)| rate_cell(*rate)));
    cells.extend(summary.counts.iter().map(ToString::to_string));
    cells
}

fn record(
    (name, execution): &Named,
    summary: &Summaries,
    (ks, per_task): (&[usize], bool),
    manifest: &Value,
) -> Value {
    let repositories: serde_json::Map<String, Value> = summary
        .repositories
        .iter()
        .map(|(name, summary)| (name.clone(), summary.to_record()))
        .collect();
    let excluded = execution
        .tasks
        .iter()
        .filter(|task| task.excluded.is_some());
    let excluded: Vec<Value> = excluded.map(|task| task.to_record(ks)).collect();
    let mut record = json!({
        "predictions": name, "all": summary.all.to_record(), "repositories": repositories,
        "missing": summary.all.missing, "excluded": excluded,
    });
    if per_task {
        record["tasks"] = execution
            .tasks
            .iter()
            .map(|task| task.to_record(ks))
            .collect();
    }
    record["manifest"] = manifest.clone();
    record
}

pub(super) fn json(
    named: &[Named],
    summaries: &[Summaries],
    ks: &[usize],
    per_task: bool,
    manifest: &Value,
) -> String {
    let both = named.iter().zip(summaries);
    let mut records: Vec<Value> = both
        .map(|(named, summary)| record(named, summary, (ks, per_task), manifest))
        .collect();
    let value = match records.len() {
        1 => records.remove(0),
        _ => records.into(),
    };
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

/// Task records where asked for, else a line for each set of predictions.
pub(super) fn jsonl(
    named: &[Named],
    summaries: &[Summaries],
    ks: &[usize],
    per_task: bool,
    manifest: &Value,
) -> String {
    let mut lines = String::new();
    for (of, summary) in named.iter().zip(summaries) {
        if !per_task {
            lines += &(record(of, summary, (ks, false), manifest).to_string() + "\n");
            continue;
        }
        for task in &of.1.tasks {
            let mut record = task.to_record(ks);
            if named.len() > 1 {
                record["predictions"] = of.0.as_str().into();
            }
            lines += &(record.to_string() + "\n");
        }
    }
    lines
}
