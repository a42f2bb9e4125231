//! JSON records of scores, as `eval` writes them.

use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::UncutReason;
use serde_json::{Map, Value, json};

use super::{Cuts, Intervals, MetricMeans, MetricScore, Scores, TaskScore, UncutCounts};
use crate::statistics::{IntervalKind, Resampling};

impl TaskScore {
    /// Returns `{"task_id": …, "row": …, "repository": …, "repocoder": {"em": …, "es": …}, …, "target_digest": …}`, with all
    /// values between 0 and 1; `uncut` follows if a sample could not be cut.
    ///
    /// The texts follow if they are kept: `pred_raw` as predicted, `pred` as compared by the first metric, and in `pred_by` the
    /// texts that other metrics compared; each is a list if a task has several samples.
    pub fn to_record(&self, cuts: &Cuts) -> Value {
        let mut record = json!({"task_id": self.task_id, "row": self.row});
        if let Some(repository) = &self.repository {
            record["repository"] = repository.as_str().into();
        }
        add_metrics(&mut record, &self.scores);
        record["target_digest"] = format!("{:016x}", self.target).into();
        cuts.add_uncut(&mut record, self.scores.iter().map(|score| score.metric), &self.uncut);
        if cuts.are_shown {
            let text = |samples: &[String]| match samples {
                [one] => Value::from(one.as_str()),
                several => several.into(),
            };
            let first = cuts.of_metric.first().map(|&recipe| &self.cut[recipe]);
            record["pred_raw"] = text(&self.raw);
            record["pred"] = text(first.unwrap_or(&self.raw));
            let others = self.scores.iter().zip(&cuts.of_metric).skip(1);
            let others = others.filter(|&(_, &recipe)| Some(&self.cut[recipe]) != first);
            let others = others
                .map(|(score, &recipe)| (score.metric.name().to_owned(), text(&self.cut[recipe])));
            let others: Map<String, Value> = others.collect();
            if !others.is_empty() {
                record["pred_by"] = others.into();
            }
        }
        record
    }
}

impl MetricMeans {
    /// Returns `{"n": …, "repocoder": {"em": …, "es": …}, …}`.
    pub fn to_record(&self) -> Value {
        let mut record = json!({"n": self.n});
        add_metrics(&mut record, &self.means);
        record
    }
}

impl Scores {
    /// Returns all means as one object, with all values between 0 and 1; `name` identifies the predictions.
    pub fn to_record(&self, name: &str, per_task: bool) -> Value {
        let of = |(name, summary): &(String, MetricMeans)| (name.clone(), summary.to_record());
        let repositories: Map<String, Value> = self.repositories.iter().map(of).collect();
        let mut record = json!({
            "predictions": name,
            "all": self.all.to_record(),
            "repositories": repositories,
            "missing": self.missing,
            "postprocess": self.cuts.to_record(&self.metrics()),
        });
        self.cuts.add_uncut(&mut record, self.metrics(), &self.uncut());
        if per_task {
            record["tasks"] = self.tasks.iter().map(|task| task.to_record(&self.cuts)).collect();
        }
        record
    }
}

impl Cuts {
    /// Returns the recipe of each metric: `{"repocoder": "stripped-lines", …}`.
    pub fn to_record(&self, metrics: &[Metric]) -> Value {
        let recipes = metrics.iter().zip(&self.of_metric);
        let name = |(metric, &recipe): (&Metric, &usize)| {
            let recipe = self.recipes[recipe].to_string();
            (metric.name().to_owned(), recipe.into())
        };
        Value::Object(recipes.map(name).collect())
    }

    /// Adds `"uncut": {"repoformer": {"file": 1}, …}` for the metrics whose recipe could not cut every sample.
    fn add_uncut(
        &self,
        record: &mut Value,
        metrics: impl IntoIterator<Item = Metric>,
        uncut: &[UncutCounts],
    ) {
        let of_metric = metrics.into_iter().zip(&self.of_metric);
        let counts = of_metric.filter_map(|(metric, &recipe)| {
            Some((metric.name().to_owned(), uncut.get(recipe)?.to_record()?))
        });
        let counts: Map<String, Value> = counts.collect();
        if !counts.is_empty() {
            record["uncut"] = counts.into();
        }
    }
}

impl UncutCounts {
    /// Returns `{"file": …}`; `None` if all were cut.
    fn to_record(self) -> Option<Value> {
        let counts = UncutReason::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0);
        let counts: Map<String, Value> =
            counts.map(|(reason, count)| (reason.name().to_owned(), count.into())).collect();
        (!counts.is_empty()).then_some(Value::Object(counts))
    }
}

impl Intervals {
    /// Returns `{"kind", "unit", "units", "level", "resamples", "seed", "repocoder": {"em": [low, high], …}, …}`; the level of
    /// a range is null, and so is the kind if there are no intervals.
    pub fn to_record(&self, metrics: &[Metric], resampling: &Resampling) -> Value {
        let mut record = json!({
            "kind": self.kind().map(IntervalKind::name),
            "unit": self.unit.name(),
            "units": self.units,
            "level": self.kind().and_then(|kind| kind.level(resampling.level)),
            "resamples": resampling.resamples,
            "seed": resampling.seed,
        });
        let mut intervals = self.of_values.iter();
        for metric in metrics {
            let of = metric.values().iter().zip(&mut intervals);
            let of = of.map(|(&name, interval)| {
                (name.to_owned(), interval.map_or(Value::Null, |i| json!([i.low, i.high])))
            });
            record[metric.name()] = Value::Object(of.collect());
        }
        record
    }
}

fn add_metrics(record: &mut Value, scores: &[MetricScore]) {
    for MetricScore { metric, values } in scores {
        let named = metric.values().iter().zip(values);
        let named = named.map(|(&name, &value)| (name.to_owned(), value.into()));
        record[metric.name()] = Value::Object(named.collect());
    }
}
