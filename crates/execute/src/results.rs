//! Results of unit tests in every format.

use repoformer_evaluate::statistics::{IntervalKind, Resampling};
use repoformer_evaluate::table::{
    NamedColumn, Printable, Table, columns, ends, interval, of_predictions, one_or_all, or_dash,
    percent, task_columns,
};
use repoformer_store::frame::ColumnType::{Integer, Number, Text};
use serde_json::{Map, Value, json};

use super::run::Execution;
use super::summary::{Summaries, Summary};
use super::verdict::Status;

/// Predictions that were tested.
#[derive(Debug)]
pub struct TestedPredictions {
    /// Name of the predictions: a mode, a file, or `references`.
    pub name: String,
    /// Result of each task.
    pub execution: Execution,
    /// Pass rates of the predictions.
    pub summaries: Summaries,
}

/// Results of unit tests: rates by repository and overall, or for each task.
#[derive(Debug)]
pub struct ExecutionResults<'a> {
    /// Each set of predictions.
    pub tested: &'a [TestedPredictions],
    /// The k values of pass@k, as in the summaries.
    pub ks: &'a [usize],
    /// True if the results of each task are written.
    pub per_task: bool,
    /// Resampling settings of the intervals.
    pub resampling: &'a Resampling,
    /// Manifest, which is part of every record.
    pub manifest: &'a Value,
}

impl Printable for ExecutionResults<'_> {
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
        let count = self.tested.len();
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

    /// Returns one row per task if requested; otherwise one per repository, and one for all without a repository.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        if self.per_task {
            return Box::new(self.tasks().map(|(name, record)| of_predictions(record, name, 2)));
        }
        Box::new(self.tested.iter().flat_map(|TestedPredictions { name, summaries, .. }| {
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

impl ExecutionResults<'_> {
    /// Returns one row per task if requested, one per repository, and one overall. Rates are in percent, statuses are numbers of samples.
    fn rates(&self, with_intervals: bool) -> Table {
        let ids = if self.per_task { 2 } else { 0 };
        let start = ["predictions", "repository", "tasks", "excluded", "n", "samples"];
        let mut head = start.map(String::from).to_vec();
        head.extend(["row", "task_id"].map(String::from).into_iter().take(ids));
        head.extend(self.ks.iter().map(|k| format!("pass@{k}")));
        head.extend(Status::ALL.map(|status| status.name().to_owned()));
        let mut table = Table::new(head);
        let rate = |rate: Option<f64>| or_dash(rate.map(percent));
        for TestedPredictions { name, execution, summaries } in self.tested {
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
                cells.push(if least == most {
                    least.to_string()
                } else {
                    format!("{least}-{most}")
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
        match self.tested.iter().find_map(|of| with(&of.summaries)) {
            Some((kind, (unit, units))) => {
                let name = kind.head(*level);
                format!("\n{name}: {resamples} resamples of the {units} {unit}, seed {seed}\n")
            }
            None => String::new(),
        }
    }

    /// Returns the record of each set of predictions.
    fn records(&self) -> Vec<Value> {
        let record = |TestedPredictions { name, execution, summaries }: &TestedPredictions| {
            let repositories = summaries.repositories.iter();
            let repositories: Map<String, Value> =
                repositories.map(|(name, summary)| (name.clone(), summary.to_record())).collect();
            let tasks = || execution.tasks.iter();
            let excluded = tasks().filter(|task| task.excluded.is_some());
            let excluded: Vec<Value> = excluded.map(|task| task.to_record(self.ks)).collect();
            let mut record = json!({
                "predictions": name, "all": summaries.all.to_record(), "repositories": repositories,
                "missing": summaries.all.missing, "excluded": excluded,
                "intervals": summaries.intervals_to_record(self.resampling),
            });
            if self.per_task {
                record["tasks"] = tasks().map(|task| task.to_record(self.ks)).collect();
            }
            record["manifest"] = self.manifest.clone();
            record
        };
        self.tested.iter().map(record).collect()
    }

    /// Returns the record of each task, with the name of its predictions.
    fn tasks(&self) -> impl Iterator<Item = (&str, Value)> {
        self.tested.iter().flat_map(|TestedPredictions { name, execution, .. }| {
            let tasks = execution.tasks.iter().map(|task| task.to_record(self.ks));
            tasks.map(|record| (name.as_str(), record))
        })
    }
}

#[cfg(test)]
mod tests {
    use repoformer_evaluate::score::MissingPredictions;

    use super::super::run::{Exclusion, TaskResult};
    use super::*;

    fn task(row: usize, repository: &str, samples: &[Status]) -> TaskResult {
        TaskResult {
            row,
            line: row + 1,
            task_id: format!("{repository}/{row}"),
            repository: repository.into(),
            excluded: None,
            samples: samples.to_vec(),
            reasons: vec![String::new(); samples.len()],
            is_reported: true,
        }
    }

    fn tested(name: &str, resampling: &Resampling) -> TestedPredictions {
        let mut tasks = vec![
            task(0, "a", &[Status::Pass, Status::Fail]),
            task(1, "a", &[]),
            task(2, "b", &[Status::Pass, Status::Pass, Status::Timeout]),
        ];
        tasks[1].excluded = Some(Exclusion { status: None, reason: "no hole".into() });
        let execution =
            Execution { tasks, broken: Vec::new(), runs: 0, reused: 0, lost: Vec::new() };
        let summaries = Summaries::new(&execution, &[1, 2], MissingPredictions::Error, resampling);
        TestedPredictions { name: name.into(), execution, summaries }
    }

    /// Calculated by hand: pass@1 is 1/2 and 2/3; pass@2 is 1 for both.
    #[test]
    fn rates_are_rows_records_and_columns() {
        let (resampling, manifest) = (Resampling::default(), json!({"kind": "execution"}));
        let all = ["none", "rg1"].map(|name| tested(name, &resampling));
        let of = |tested, per_task| ExecutionResults {
            tested,
            ks: &[1, 2],
            per_task,
            resampling: &resampling,
            manifest: &manifest,
        };
        let rates = of(&all[..1], false);
        let rows = rates.table().into_rows();
        assert_eq!(
            rows[0][..8],
            ["predictions", "repository", "tasks", "excluded", "n", "samples", "pass@1", "pass@2"]
        );
        assert_eq!(rows[1][..8], ["none", "a", "2", "1", "1", "2", "50.00", "100.00"]);
        assert_eq!(rows[3][..8], ["none", "all", "3", "1", "2", "2-3", "58.33", "100.00"]);
        assert_eq!(rows.len(), 4);
        let text = rates.text();
        assert!(text.contains("[50.00, 66.67]") && text.ends_with(", seed 0\n"), "{text}");
        let record = rates.json();
        assert_eq!((&record["predictions"], &record["manifest"]), (&json!("none"), &manifest));
        assert_eq!(record["excluded"][0]["excluded"]["reason"], "no hole");
        assert_eq!(record.get("tasks"), None);
        assert_eq!(of(&all, false).json().as_array().map(Vec::len), Some(2));
        let frame: Vec<Value> = rates.rows().collect();
        assert_eq!((&frame[1]["repository"], frame[2].get("repository")), (&json!("b"), None));
        assert_eq!(frame[2]["samples"], json!({"least": 2, "most": 3}));
        assert_eq!(frame[2]["exec"]["pass_2_interval"], json!([1.0, 1.0]));
        assert!(rates.columns().iter().any(|(name, _)| name == "exec.pass_2_low"));

        let tasks = of(&all, true);
        let lines: Vec<Value> = tasks.lines().collect();
        assert_eq!((lines.len(), &lines[5]["predictions"]), (6, &json!("rg1")));
        assert_eq!(lines[5]["statuses"], json!(["pass", "pass", "timeout"]));
        assert_eq!(of(&all[..1], true).lines().next().unwrap().get("predictions"), None);
        assert_eq!(of(&all[..1], true).json()["tasks"].as_array().map(Vec::len), Some(3));
        assert_eq!(tasks.table().into_rows()[2][1..8], ["a", "1", "1", "0", "0", "1", "a/1"]);
    }
}
