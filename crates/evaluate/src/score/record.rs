//! JSON records of scores, as `eval` writes and other commands read them.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::UncutReason;
use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Cuts, Intervals, MetricMeans, MetricScore, Scores, Scoring, TaskScore, UncutCounts};
use crate::statistics::{IntervalKind, Resampling};

/// Scores of a mode's predictions, as in their artifact.
#[derive(Deserialize)]
pub(crate) struct StoredScores {
    pub(crate) tasks: Vec<StoredTask>,
}

/// Record of a task in the artifact.
#[derive(Deserialize)]
pub(crate) struct StoredTask {
    pub(crate) row: usize,
    pub(crate) repository: Option<String>,
    target_digest: String,
    #[serde(default)]
    uncut: BTreeMap<String, BTreeMap<String, usize>>,
    pred_raw: Option<StoredSamples>,
    pred: Option<StoredSamples>,
    #[serde(default)]
    pred_by: BTreeMap<String, StoredSamples>,
    /// Values by metric and name, and all other fields.
    #[serde(flatten)]
    metrics: Map<String, Value>,
}

/// Texts of a task: one, or a list of several.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum StoredSamples {
    One(String),
    Several(Vec<String>),
}

impl StoredSamples {
    fn into_texts(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Several(texts) => texts,
        }
    }
}

impl StoredScores {
    /// Parses the text of an artifact.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text).map_err(|error| Error::from_damage(path, error.to_string()))
    }
}

impl StoredTask {
    /// Returns the values of these metrics.
    pub(crate) fn scores(&self, path: &Path, metrics: &[Metric]) -> Result<Vec<MetricScore>> {
        let score = |&metric: &Metric| {
            let value = |name: &&str| self.metrics.get(metric.name())?.get(name)?.as_f64();
            let values = metric.values().iter().map(value).collect::<Option<_>>();
            let values =
                values.ok_or_else(|| self.wrong(path, format!("lacks values of {metric}")))?;
            Ok(MetricScore { metric, values })
        };
        metrics.iter().map(score).collect()
    }

    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> usize {
        match &self.pred_raw {
            Some(StoredSamples::Several(samples)) => samples.len(),
            shown => usize::from(shown.is_some()),
        }
    }

    fn wrong(&self, path: &Path, what: impl std::fmt::Display) -> Error {
        Error::from_damage(path, format!("task in row {} {what}", self.row))
    }

    /// Returns the texts that each recipe left of the samples.
    fn take_cut(&mut self, metrics: &[Metric], cuts: &Cuts) -> Option<Vec<Vec<String>>> {
        let first = self.pred.take()?;
        let of_recipe = |recipe: usize| {
            let metric = metrics.iter().zip(&cuts.of_metric).find(|(_, of)| **of == recipe)?.0;
            let own = self.pred_by.remove(metric.name());
            Some(own.unwrap_or_else(|| first.clone()).into_texts())
        };
        (0..cuts.recipes.len()).map(of_recipe).collect()
    }

    /// Returns the numbers of samples that each recipe could not cut.
    fn uncut(&self, metrics: &[Metric], cuts: &Cuts) -> Vec<UncutCounts> {
        let mut counts = vec![UncutCounts::default(); cuts.recipes.len()];
        for (metric, &recipe) in metrics.iter().zip(&cuts.of_metric) {
            let count =
                |reason: UncutReason| self.uncut.get(metric.name())?.get(reason.name()).copied();
            counts[recipe] = UncutCounts(UncutReason::ALL.map(|reason| count(reason).unwrap_or(0)));
        }
        counts
    }
}

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
    /// Parses the text of an artifact: the scores of these samples by task, without those tasks that have none.
    ///
    /// # Errors
    /// The artifact lacks a task or one of its values.
    pub fn parse(
        path: &Path,
        text: &[u8],
        tasks: &TaskSet,
        samples: &[Vec<String>],
        scoring: &Scoring,
    ) -> Result<Self> {
        let Scoring { metrics, postprocess } = scoring;
        let cuts = Cuts::new(metrics, postprocess, true);
        let mut stored = StoredScores::parse(path, text)?.tasks.into_iter();
        let pairs = tasks.tasks().iter().zip(samples).filter(|(_, samples)| !samples.is_empty());
        let read = pairs.map(|(task, samples)| {
            let stored = stored.next().filter(|stored| stored.row == task.row);
            let lacks = || Error::from_damage(path, format!("has no scores of row {}", task.row));
            let mut stored = stored.ok_or_else(lacks)?;
            let target = u64::from_str_radix(&stored.target_digest, 16);
            let cut = stored
                .take_cut(metrics, &cuts)
                .filter(|cut| cut.iter().all(|texts| texts.len() == samples.len()));
            Ok(TaskScore {
                row: task.row,
                task_id: task.id.clone(),
                repository: Some(task.repository.clone()),
                scores: stored.scores(path, metrics)?,
                target: target.map_err(|_| stored.wrong(path, "has an invalid digest"))?,
                samples: samples.len(),
                raw: samples.clone(),
                cut: cut.ok_or_else(|| stored.wrong(path, "lacks compared texts"))?,
                uncut: stored.uncut(metrics, &cuts),
            })
        });
        let read: Vec<TaskScore> = read.collect::<Result<_>>()?;
        let missing = samples.iter().filter(|samples| samples.is_empty()).count();
        Ok(Self::new(metrics, read, missing, cuts))
    }

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

#[cfg(test)]
mod tests {
    use repoformer_core::postprocess::Postprocess;
    use repoformer_core::task::Task;

    use super::*;
    use crate::score::{MissingPredictions, score_tasks};

    /// Tasks of function bodies, one without a prediction and one in a file that the grammar cannot parse, by two metrics that cut
    /// differently.
    #[test]
    fn scores_are_read_as_they_were_written() {
        let task = |row: usize, left: &str| Task {
            row,
            ..Task::new(format!("a/{row}"), "a/x.py", 0, 1, "    return x\n", left)
        };
        let lefts = ["def f(x):\n", "def g(x):\n", "def h(x):\n", "def i(:\n))(\n"];
        let tasks: Vec<Task> =
            lefts.iter().enumerate().map(|(row, left)| task(row, left)).collect();
        let tasks = TaskSet::new("t.jsonl".into(), tasks);
        let samples = [
            vec!["    return x\n\ny = 1\n"],
            vec![],
            vec!["    return y\n", "    pass\n\ndef k():\n    pass\n"],
            vec!["    return ((\n"],
        ];
        let samples = samples.map(|texts| texts.into_iter().map(str::to_owned).collect());
        let scoring = Scoring {
            metrics: vec![Metric::Repoformer, Metric::RepoCoder],
            postprocess: Postprocess::own(true),
        };
        let Scoring { metrics, postprocess } = &scoring;
        let scores = score_tasks(&tasks, &samples, metrics, postprocess, MissingPredictions::Skip);
        let scores = scores.unwrap();
        assert!(scores.cuts.recipes.len() > 1 && scores.uncut() != vec![UncutCounts::default(); 2]);
        let path = Path::new("s.json");
        let read = |record: &Value| {
            Scores::parse(path, record.to_string().as_bytes(), &tasks, &samples, &scoring)
        };
        let mut record = scores.to_record("rg1", true);
        assert_eq!(read(&record).unwrap(), scores);
        for field in ["pred", "repocoder", "target_digest"] {
            let mut without = record.clone();
            without["tasks"][1].as_object_mut().unwrap().remove(field);
            read(&without).unwrap_err();
        }
        record["tasks"].as_array_mut().unwrap().remove(1);
        let error = read(&record).unwrap_err().to_string();
        assert!(error.contains("has no scores of row 2"), "{error}");
    }
}
