//! Results as text, TSV, JSON and JSONL.

use repoformer::evaluate::statistics::Resampling;
use repoformer::execute::{Status, Summaries, Summary};
use serde_json::{Map, Value, json};

use super::messages::Named;
use crate::commands::eval_output::{of_predictions, one_or_all};
use crate::table::{ScoreFormat, Table, interval, json_lines, json_text, or_dash, percent};

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

impl Results<'_> {
    pub(super) fn text(&self, format: ScoreFormat) -> String {
        match format {
            ScoreFormat::Text => self.table(true).text() + &self.footnote(),
            ScoreFormat::Tsv => self.table(false).tsv(),
            ScoreFormat::Json => json_text(&one_or_all(self.records())),
            ScoreFormat::Jsonl if self.per_task => self.task_lines(),
            ScoreFormat::Jsonl => json_lines(self.records()),
        }
    }

    /// A row per task where requested, per repository, and one for all; rates × 100, statuses in samples.
    fn table(&self, with_intervals: bool) -> Table {
        let ids = if self.per_task { 2 } else { 0 };
        let start = ["predictions", "repository", "tasks", "excluded", "n", "samples"];
        let mut head = start.map(String::from).to_vec();
        head.extend(["row", "task_id"].map(String::from).into_iter().take(ids));
        head.extend(self.ks.iter().map(|k| format!("pass@{k}")));
        head.extend(Status::ALL.map(|status| status.name().to_owned()));
        let mut table = Table::new(head);
        let rate = |rate: Option<f64>| or_dash(rate.map(percent));
        for ((name, execution), summaries) in self.named.iter().zip(self.summaries) {
            for task in execution.tasks.iter().filter(|_| self.per_task) {
                let sound = usize::from(task.excluded.is_none());
                let mut cells = vec![name.clone(), task.repository.clone(), "1".into()];
                let counts = [1 - sound, sound, task.samples.len(), task.row];
                cells.extend(counts.map(|count| count.to_string()));
                cells.push(task.task_id.clone());
                cells.extend(self.ks.iter().map(|&k| rate(task.pass_at(k))));
                let count = |status| task.samples.iter().filter(|of| **of == status).count();
                cells.extend(Status::ALL.map(|status| count(status).to_string()));
                table.row(cells);
            }
            let repositories = summaries.repositories.iter().map(|(name, of)| (name.as_str(), of));
            for (repository, summary) in repositories.chain([("all", &summaries.all)]) {
                let Summary { tasks, excluded, n, samples: (least, most), .. } = summary;
                let mut cells = vec![name.clone(), repository.to_owned()];
                cells.extend([tasks, excluded, n].map(ToString::to_string));
                cells.push(match least == most {
                    true => least.to_string(),
                    false => format!("{least}-{most}"),
                });
                cells.extend(vec![String::new(); ids]);
                cells.extend(summary.rates.iter().map(|(_, of)| rate(*of)));
                cells.extend(summary.counts.iter().map(ToString::to_string));
                table.row(cells);
            }
            if with_intervals && summaries.intervals.iter().any(Option::is_some) {
                let (unit, units) = summaries.drawn;
                let mut cells = vec![String::new(), unit.interval_name(units).into()];
                cells.extend(vec![String::new(); 4 + ids]);
                cells.extend(summaries.intervals.iter().map(interval));
                cells.extend(Status::ALL.map(|_| String::new()));
                table.row(cells);
            }
        }
        table
    }

    fn footnote(&self) -> String {
        let with = |summary: &&Summaries| summary.intervals.iter().any(Option::is_some);
        let Resampling { resamples, seed, .. } = self.resampling;
        match self.summaries.iter().find(with) {
            Some(Summaries { drawn: (unit, units), .. }) => {
                let name = unit.interval_name(*units);
                format!("\n{name}: {resamples} resamples of the {units} {unit}, seed {seed}\n")
            }
            None => String::new(),
        }
    }

    /// The record of each set of predictions.
    fn records(&self) -> Vec<Value> {
        let record = |((name, execution), summary): (&Named, &Summaries)| {
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
            if self.per_task {
                record["tasks"] = tasks().map(|task| task.to_record(self.ks)).collect();
            }
            record["manifest"] = self.manifest.clone();
            record
        };
        self.named.iter().zip(self.summaries).map(record).collect()
    }

    fn task_lines(&self) -> String {
        json_lines(self.named.iter().flat_map(|(name, execution)| {
            let tasks = execution.tasks.iter().map(|task| task.to_record(self.ks));
            tasks.map(|record| of_predictions(record, name, self.named.len()))
        }))
    }
}
