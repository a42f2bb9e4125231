//! Scores in every format, and as CrossCodeEval's files.

use std::path::Path;

use anyhow::Result;
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::{Intervals, MetricMeans, MetricScore, MissingPredictions, Scores};
use repoformer_evaluate::statistics::{Interval, IntervalKind, Resampling};
use repoformer_evaluate::table::{
    NamedColumn, Printable, Table, columns, ends, interval, of_predictions, one_or_all, percent,
    task_columns,
};
use repoformer_formats::exchange::crosscodeeval;
use repoformer_store::artifact::{digest, write_file};
use repoformer_store::frame::ColumnType::{Integer, Number, Text};
use repoformer_store::manifest::Manifest;
use repoformer_study::mixed;
use repoformer_text::visible::visible_in_line;
use serde_json::Value;

use crate::commands::eval_args::EvalArgs;
use crate::output::{write_data, write_json, write_manifest_beside};
use crate::table::format_results;

/// Name of some predictions (a mode, a file, the references), and their scores.
pub(super) type NamedScores = (String, Scores);

/// Writes CrossCodeEval's result files and a manifest that names them.
pub(super) fn write_results(
    folder: &Path,
    (tasks, samples): (&TaskSet, &[Vec<String>]),
    postprocess: &Postprocess,
    missing: MissingPredictions,
    mut manifest: Manifest,
) -> Result<()> {
    let files =
        crosscodeeval::files(tasks, samples, postprocess, missing == MissingPredictions::Zero);
    for (name, text) in &files {
        write_file(&folder.join(name), text.as_bytes())?;
        manifest.digest(name, &digest(text.as_bytes()));
    }
    Ok(write_json(&folder.join("manifest.json"), &manifest.to_record())?)
}

/// Scores to write.
pub(super) struct Results<'a> {
    pub(super) named: &'a [NamedScores],
    pub(super) per_task: bool,
    pub(super) resampling: Resampling,
    /// Conditions that differ between the predictions.
    pub(super) mixed: Vec<String>,
    /// Line with the settings that contradict the paper's profile in force.
    pub(super) departures: Option<String>,
    pub(super) manifest: Value,
}

impl Printable for Results<'_> {
    fn table(&self) -> Table {
        self.scores(&self.intervals(), &self.metrics(), true)
    }

    /// Returns a table per metric with the intervals of the means, then the resampling and the cuts.
    fn text(&self) -> String {
        let intervals = self.intervals();
        let mut text = String::new();
        for metric in self.metrics() {
            text += &self.scores(&intervals, &[metric], false).text();
            text.push('\n');
        }
        let Intervals { units, unit, .. } = &intervals[0];
        if let Some(kind) = intervals[0].kind() {
            let Resampling { resamples, seed, level } = self.resampling;
            let name = kind.head(level);
            text += &format!("{name}: {resamples} resamples of the {units} {unit}, seed {seed}\n");
        }
        for (metric, recipe) in self.named[0].1.cuts_by_metric() {
            text += &format!("{metric}: predictions cut by {recipe}\n");
        }
        if !self.mixed.is_empty() {
            text += &(visible_in_line(&mixed::join_differences(&self.mixed)) + "\n");
        }
        text + &self.departures.as_ref().map_or_else(String::new, |line| format!("{line}\n"))
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
        let metrics = self.metrics();
        let names = metrics.iter().flat_map(|metric| {
            metric.values().iter().map(move |value| format!("{metric}.{value}"))
        });
        if self.per_task {
            // The first metric compared the text `pred`.
            let others = metrics.iter().skip(1).map(|metric| format!("pred_by.{metric}"));
            return task_columns()
                .chain(columns(Number, names))
                .chain(columns(Text, ["target_digest", "pred_raw", "pred"]))
                .chain(columns(Text, others))
                .collect();
        }
        let names = names.flat_map(|name| ["", "_low", "_high"].map(|end| format!("{name}{end}")));
        columns(Text, ["predictions", "repository"])
            .chain(columns(Integer, ["n"]))
            .chain(columns(Number, names))
            .chain(columns(Text, ["interval", "unit"]))
            .chain(columns(Integer, ["units", "missing", "samples"]))
            .chain(columns(Text, ["mixed"]))
            .collect()
    }

    /// Returns a row per task if requested; otherwise a row per repository, and one without a repository for all.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        if self.per_task {
            return Box::new(self.tasks().map(|(name, record)| of_predictions(record, name, 2)));
        }
        Box::new(self.named.iter().zip(self.intervals()).flat_map(|((name, scores), intervals)| {
            let mut all = scores.all.to_record();
            let metrics = scores.metrics();
            let values = metrics.iter().flat_map(|metric| {
                metric.values().iter().map(|value| (metric.name(), format!("{value}_interval")))
            });
            for ((metric, value), interval) in values.zip(&intervals.of_values) {
                all[metric][value] = ends(interval);
            }
            all["interval"] = intervals.kind().map(IntervalKind::name).into();
            all["unit"] = intervals.unit.name().into();
            all["units"] = intervals.units.into();
            all["missing"] = scores.missing.into();
            all["samples"] = scores.samples().into();
            let repository = |(repository, means): &(String, MetricMeans)| {
                let mut record = means.to_record();
                record["repository"] = repository.as_str().into();
                record
            };
            let each: Vec<Value> = scores.repositories.iter().map(repository).collect();
            each.into_iter().chain([all]).map(|mut record| {
                record["predictions"] = name.as_str().into();
                if !self.mixed.is_empty() {
                    record["mixed"] = self.mixed.clone().into();
                }
                record
            })
        }))
    }
}

impl Results<'_> {
    /// Writes the scores in the requested format. JSON objects contain the manifest; other files have it next to them.
    pub(super) fn write(&self, args: &EvalArgs) -> Result<()> {
        write_with_manifest(args, &format_results(self, args.format()?)?, &self.manifest)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.named[0].1.metrics()
    }

    fn intervals(&self) -> Vec<Intervals> {
        self.named.iter().map(|(_, scores)| scores.intervals(&self.resampling)).collect()
    }

    /// Returns a table of these metrics, with values × 100: a row per task if requested, a row per repository, and one for all.
    /// Intervals, `[low, high]`, have rows of their own; with tabs they are columns after the values, with one number per column.
    fn scores(&self, intervals: &[Intervals], metrics: &[Metric], with_tabs: bool) -> Table {
        let ids = if self.per_task { 2 } else { 0 };
        let mut head = ["predictions", "repository", "n"].map(String::from).to_vec();
        head.extend(["row", "task_id"].map(String::from).into_iter().take(ids));
        let mut names = Vec::new();
        for metric in metrics {
            let several = metric.of_several(self.named.iter().map(|(_, scores)| scores.samples()));
            let several = several.map_or_else(String::new, |several| format!(" ({several})"));
            names.extend(metric.values().iter().map(|value| format!("{metric}.{value}{several}")));
        }
        head.extend(names.iter().cloned());
        let ends = names.iter().filter(|_| with_tabs);
        head.extend(
            ends.clone().flat_map(|name| ["low", "high"].map(|end| format!("{name} {end}"))),
        );
        let without_ends = vec![String::new(); 2 * ends.count() + usize::from(with_tabs)];
        head.extend(with_tabs.then(|| "interval".to_owned()));
        // As text, the conditions are printed below the tables.
        let mixed = (with_tabs && !self.mixed.is_empty()).then(|| self.mixed.join("; "));
        head.extend(mixed.iter().map(|_| "mixed".to_owned()));
        let mut table = Table::new(head);
        let mut row = |start: [&str; 3], task: [String; 2], values: Vec<String>| {
            let start = start.map(str::to_owned).into_iter();
            let cells = start.chain(task.into_iter().take(ids)).chain(values);
            table.row(cells.chain(mixed.clone()).collect());
        };
        let percents = |scores: &[MetricScore]| -> Vec<String> {
            let shown = scores.iter().filter(|score| metrics.contains(&score.metric));
            shown.flat_map(|score| &score.values).map(|value| percent(*value)).collect()
        };
        for (place, (name, scores)) in self.named.iter().enumerate() {
            for task in scores.tasks.iter().filter(|_| self.per_task) {
                let repository = task.repository.as_deref().unwrap_or_default();
                let id = [task.row.to_string(), task.task_id.clone()];
                let values = [percents(&task.scores), without_ends.clone()].concat();
                row([name, repository, "1"], id, values);
            }
            for (repository, means) in &scores.repositories {
                let start = [name, repository.as_str(), &means.n.to_string()];
                let values = [percents(&means.means), without_ends.clone()].concat();
                row(start, Default::default(), values);
            }
            let mut of_all: Vec<&Option<Interval>> = Vec::new();
            let kind = intervals[place].kind();
            let mut of_values = intervals[place].of_values.iter();
            for metric in scores.metrics() {
                let of_metric: Vec<_> = of_values.by_ref().take(metric.values().len()).collect();
                of_all.extend(of_metric.into_iter().filter(|_| metrics.contains(&metric)));
            }
            let ends = of_all.iter().filter(|_| with_tabs).flat_map(|interval| {
                let ends = interval.map(|interval| [interval.low, interval.high].map(percent));
                ends.unwrap_or_default()
            });
            let start = [name, "all", &scores.all.n.to_string()];
            let values = percents(&scores.all.means).into_iter().chain(ends);
            let name = kind.map_or("", IntervalKind::name).to_owned();
            let values = values.chain(with_tabs.then_some(name));
            row(start, Default::default(), values.collect());
            if let Some(kind) = kind.filter(|_| !with_tabs) {
                let cells = of_all.into_iter().map(interval);
                let head = kind.head(self.resampling.level);
                row(["", &head, ""], Default::default(), cells.collect());
            }
        }
        table
    }

    /// Returns the record of each set of predictions; the tasks come last.
    fn records(&self) -> Vec<Value> {
        let record = |(name, scores): &NamedScores| {
            let mut record = scores.to_record(name, false);
            let intervals = scores.intervals(&self.resampling);
            record["intervals"] = intervals.to_record(&scores.metrics(), &self.resampling);
            if scores.samples() > 1 {
                record["samples"] = scores.samples().into();
            }
            if !self.mixed.is_empty() {
                record["mixed"] = self.mixed.clone().into();
            }
            record["manifest"] = self.manifest.clone();
            if self.per_task {
                let tasks = scores.tasks.iter().map(|task| task.to_record(&scores.cuts));
                record["tasks"] = tasks.collect();
            }
            record
        };
        self.named.iter().map(record).collect()
    }

    /// Iterates over the records of tasks, with the names of their predictions.
    fn tasks(&self) -> impl Iterator<Item = (&str, Value)> {
        self.named.iter().flat_map(|(name, scores)| {
            let tasks = scores.tasks.iter().map(|task| task.to_record(&scores.cuts));
            tasks.map(|record| (name.as_str(), record))
        })
    }
}

/// Writes results, and a manifest next to a file.
pub(super) fn write_with_manifest(args: &EvalArgs, data: &[u8], manifest: &Value) -> Result<()> {
    write_data(&args.output, data)?;
    write_manifest_beside(&args.output, manifest)
}
