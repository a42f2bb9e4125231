//! Results as text, TSV, JSON and JSONL.

use repoformer::evaluate::statistics::Resampling;
use repoformer::execute::{Status, Summaries, Summary};
use serde_json::{Map, Value, json};

use super::messages::Named;
use crate::args::ScoreFormat;
use crate::commands::eval_output::interval;
use crate::table::Table;

/// Results to write.
pub(super) struct Results<'a> {
    pub(super) named: &'a [Named],
    /// Summary of each of them.
    pub(super) summaries: &'a [Summaries],
    /// The k of pass@k.
    pub(super) ks: &'a [usize],
    pub(super) per_task: bool,
    pub(super) resampling: &'a Resampling,
    pub(super) manifest: &'a Value,
}

fn rate_cell(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", 100.0 * rate))
}

impl Results<'_> {
    /// Text of the results, and whether it contains the manifest.
    pub(super) fn text(&self, format: ScoreFormat) -> (String, bool) {
        match format {
            ScoreFormat::Text => (self.table(true).text() + &self.footnote(), false),
            ScoreFormat::Tsv => (self.table(false).tsv(), false),
            ScoreFormat::Json => (self.json(), true),
            ScoreFormat::Jsonl => (self.jsonl(), !self.per_task),
        }
    }

    /// A row per task where requested, per repository, and one for all; rates × 100, statuses in samples.
    fn table(&self, with_intervals: bool) -> Table {
        let rates: Vec<String> = self.ks.iter().map(|k| format!("pass@{k}")).collect();
        let mut head = vec!["predictions", "repository", "tasks", "excluded", "n", "samples"];
        if self.per_task {
            head.extend(["row", "task_id"]);
        }
        head.extend(rates.iter().map(String::as_str));
        head.extend(Status::ALL.map(Status::name));
        let mut table = Table::new(&head);
        for ((name, execution), summary) in self.named.iter().zip(self.summaries) {
            for task in execution.tasks.iter().filter(|_| self.per_task) {
                let sound = usize::from(task.excluded.is_none());
                let mut cells = vec![
                    name.clone(),
                    task.repository.clone(),
                    "1".into(),
                    (1 - sound).to_string(),
                ];
                cells.extend([sound.to_string(), task.samples.len().to_string()]);
                cells.extend([task.row.to_string(), task.task_id.clone()]);
                cells.extend(self.ks.iter().map(|&k| rate_cell(task.pass_at(k))));
                let count = |status| task.samples.iter().filter(|of| **of == status).count();
                cells.extend(Status::ALL.map(|status| count(status).to_string()));
                table.row(cells);
            }
            for (repository, summary) in &summary.repositories {
                table.row(self.summary_row(name, repository, summary));
            }
            table.row(self.summary_row(name, "all", &summary.all));
            if with_intervals && summary.intervals.iter().any(Option::is_some) {
                let before = if self.per_task { 6 } else { 4 };
                let mut cells = vec![String::new(), "95 %".into()];
                cells.extend(vec![String::new(); before]);
                cells.extend(summary.intervals.iter().map(interval));
                cells.extend(Status::ALL.map(|_| String::new()));
                table.row(cells);
            }
        }
        table
    }

    fn summary_row(&self, name: &str, repository: &str, summary: &Summary) -> Vec<String> {
        let samples = match summary.samples {
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least}-{most}"),
        };
        let mut cells = vec![name.to_owned(), repository.to_owned(), summary.tasks.to_string()];
        cells.extend([summary.excluded.to_string(), summary.n.to_string(), samples]);
        if self.per_task {
            cells.extend([String::new(), String::new()]);
        }
        cells.extend(summary.rates.iter().map(|(_, rate)| rate_cell(*rate)));
        cells.extend(summary.counts.iter().map(ToString::to_string));
        cells
    }

    fn footnote(&self) -> String {
        let with = |summary: &&Summaries| summary.intervals.iter().any(Option::is_some);
        match self.summaries.iter().find(with) {
            Some(Summaries { drawn: (unit, units), .. }) => format!(
                "\n95 %: {} resamples of the {units} {unit}, seed {}\n",
                self.resampling.resamples, self.resampling.seed
            ),
            None => String::new(),
        }
    }

    fn record(&self, (name, execution): &Named, summary: &Summaries, with_tasks: bool) -> Value {
        let repositories = summary.repositories.iter();
        let repositories: Map<String, Value> =
            repositories.map(|(name, summary)| (name.clone(), summary.to_record())).collect();
        let tasks = || execution.tasks.iter();
        let excluded = tasks().filter(|task| task.excluded.is_some());
        let excluded: Vec<Value> = excluded.map(|task| task.to_record(self.ks)).collect();
        let mut record = json!({
            "predictions": name, "all": summary.all.to_record(), "repositories": repositories,
            "missing": summary.all.missing, "excluded": excluded,
            "intervals": summary.intervals_to_record(self.resampling),
        });
        if with_tasks {
            record["tasks"] = tasks().map(|task| task.to_record(self.ks)).collect();
        }
        record["manifest"] = self.manifest.clone();
        record
    }

    fn json(&self) -> String {
        let both = self.named.iter().zip(self.summaries);
        let mut records: Vec<Value> =
            both.map(|(named, summary)| self.record(named, summary, self.per_task)).collect();
        let value = match records.len() {
            1 => records.remove(0),
            _ => records.into(),
        };
        serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
    }

    /// Task records where requested, else a line per set of predictions.
    fn jsonl(&self) -> String {
        let mut lines = String::new();
        for (of, summary) in self.named.iter().zip(self.summaries) {
            if !self.per_task {
                lines += &(self.record(of, summary, false).to_string() + "\n");
                continue;
            }
            for task in &of.1.tasks {
                let mut record = task.to_record(self.ks);
                if self.named.len() > 1 {
                    record["predictions"] = of.0.as_str().into();
                }
                lines += &(record.to_string() + "\n");
            }
        }
        lines
    }
}
