//! Results of unit tests in every format.

use repoformer_evaluate::statistics::{IntervalKind, Resampling};
use repoformer_execute::{Status, Summaries, Summary};
use repoformer_store::frame::ColumnType::{Integer, Number, Text};
use serde_json::{Map, Value, json};

use super::messages::Named;
use crate::commands::eval_output::{of_predictions, one_or_all, task_columns};
use repoformer_evaluate::table::{
    NamedColumn, Printable, Table, columns, ends, interval, or_dash, percent,
};

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

impl Printable for Results<'_> {
    fn table(&self) -> Table {
        self.rates(false)
    }

    fn text(&self) -> String {
        self.rates(true).text() + &self.footnote()
    }

    fn json(&self) -> Value {
        one_or_all(self.records())
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        if !self.per_task {
            return Box::new(self.records().into_iter());
        }
        let count = self.named.len();
        Box::new(self.tasks().map(move |(name, record)| of_predictions(record, name, count)))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let rates = self.ks.iter().map(|k| format!("exec.pass_{k}"));
        if self.per_task {
            let texts = ["statuses", "reasons", "excluded.status", "excluded.reason"];
            let rates = columns(Number, rates);
            return task_columns().chain(rates).chain(columns(Text, texts)).collect();
        }
        let rates = rates.flat_map(|rate| ["", "_low", "_high"].map(|end| format!("{rate}{end}")));
        let counts = ["n", "tasks", "excluded", "missing", "samples.least", "samples.most"];
        columns(Text, ["predictions", "repository"])
            .chain(columns(Integer, counts))
            .chain(columns(Number, rates))
            .chain(columns(Integer, Status::ALL.map(|status| format!("statuses.{status}"))))
            .chain(columns(Text, ["interval", "unit"]))
            .chain(columns(Integer, ["units"]))
            .collect()
    }

    /// A row per task where these are requested, else one per repository and one for all, whose repository is missing.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        if self.per_task {
            return Box::new(self.tasks().map(|(name, record)| of_predictions(record, name, 2)));
        }
        Box::new(self.named.iter().zip(self.summaries).flat_map(|((name, _), summaries)| {
            let record = move |summary: &Summary| {
                let mut record = summary.to_record();
                let (least, most) = summary.samples;
                record["samples"] = json!({"least": least, "most": most});
                record["predictions"] = name.as_str().into();
                record
            };
            let mut all = record(&summaries.all);
            for (k, interval) in self.ks.iter().zip(&summaries.intervals) {
                all["exec"][format!("pass_{k}_interval")] = ends(interval);
            }
            let (unit, units) = summaries.drawn;
            all["interval"] = summaries.interval_kind().map(IntervalKind::name).into();
            all["unit"] = unit.name().into();
            all["units"] = units.into();
            let each = summaries.repositories.iter().map(move |(name, summary)| {
                let mut record = record(summary);
                record["repository"] = name.as_str().into();
                record
            });
            each.chain([all])
        }))
    }
}

impl Results<'_> {
    /// A row per task where requested, per repository, and one for all; rates × 100, statuses in samples.
    fn rates(&self, with_intervals: bool) -> Table {
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
            if let Some(kind) = summaries.interval_kind().filter(|_| with_intervals) {
                let mut cells = vec![String::new(), kind.head(self.resampling.level)];
                cells.extend(vec![String::new(); 4 + ids]);
                cells.extend(summaries.intervals.iter().map(interval));
                cells.extend(Status::ALL.map(|_| String::new()));
                table.row(cells);
            }
        }
        table
    }

    fn footnote(&self) -> String {
        let with = |summary: &Summaries| Some((summary.interval_kind()?, summary.drawn));
        let Resampling { resamples, seed, level } = self.resampling;
        match self.summaries.iter().find_map(with) {
            Some((kind, (unit, units))) => {
                let name = kind.head(*level);
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

    /// The record of each task, with the name of its predictions.
    fn tasks(&self) -> impl Iterator<Item = (&str, Value)> {
        self.named.iter().flat_map(|(name, execution)| {
            let tasks = execution.tasks.iter().map(|task| task.to_record(self.ks));
            tasks.map(|record| (name.as_str(), record))
        })
    }
}
