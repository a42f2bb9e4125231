//! Scores of a mode's predictions, as in their artifact: the values of each task, and their means.

use std::path::Path;

use repoformer_core::metrics::Metric;
use repoformer_store::error::Result;

use super::score::{MetricMeans, MetricScore, Scores, StoredScores, TaskScore};

/// Scores of a mode's predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeScores {
    /// Scored tasks, in the order of their file.
    pub tasks: Vec<ScoredTask>,
    /// Means over all of these tasks.
    pub all: MetricMeans,
}

/// Values of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredTask {
    /// 0-based position in the task file.
    pub row: usize,
    /// Repository of the task.
    pub repository: Option<String>,
    /// Number of samples.
    pub samples: usize,
    /// Values by each metric, in the requested order.
    pub scores: Vec<MetricScore>,
}

impl ScoredTask {
    /// Returns a value of a metric, between 0 and 1.
    pub fn get(&self, metric: Metric, value: &str) -> Option<f64> {
        self.scores.iter().find(|score| score.metric == metric)?.get(value)
    }
}

impl From<&TaskScore> for ScoredTask {
    fn from(task: &TaskScore) -> Self {
        let TaskScore { row, repository, samples, scores, .. } = task;
        Self {
            row: *row,
            repository: repository.clone(),
            samples: *samples,
            scores: scores.clone(),
        }
    }
}

impl From<&Scores> for ModeScores {
    fn from(scores: &Scores) -> Self {
        Self { tasks: scores.tasks.iter().map(ScoredTask::from).collect(), all: scores.all.clone() }
    }
}

impl ModeScores {
    /// Computes the means of these tasks.
    pub fn new(metrics: &[Metric], tasks: Vec<ScoredTask>) -> Self {
        let all = MetricMeans::new(metrics, tasks.iter().map(|task| task.scores.as_slice()));
        Self { tasks, all }
    }

    /// Parses the text of an artifact.
    ///
    /// # Errors
    /// A value of one of the metrics is missing.
    pub fn parse(path: &Path, text: &[u8], metrics: &[Metric]) -> Result<Self> {
        let tasks = StoredScores::parse(path, text)?.tasks.into_iter().map(|task| {
            let (samples, scores) = (task.samples(), task.scores(path, metrics)?);
            Ok(ScoredTask { row: task.row, repository: task.repository, samples, scores })
        });
        Ok(Self::new(metrics, tasks.collect::<Result<_>>()?))
    }

    /// Returns the largest number of samples of a task.
    pub fn samples(&self) -> usize {
        self.tasks.iter().map(|task| task.samples).max().unwrap_or(0)
    }

    /// Returns a mean of a metric.
    pub fn mean(&self, metric: Metric, value: &str) -> Option<f64> {
        self.all.means.iter().find(|mean| mean.metric == metric)?.get(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(record: &Value, metrics: &[Metric]) -> Result<ModeScores> {
        ModeScores::parse("s.json".as_ref(), record.to_string().as_bytes(), metrics)
    }

    #[test]
    fn values_and_samples_are_read_and_averaged() {
        let task = |row: usize, es: f64, raw: Value| {
            json!({"task_id": "a", "row": row, "repository": "r", "repocoder": {"em": 1.0, "es": es},
                "target_digest": "0", "pred_raw": raw})
        };
        let record =
            json!({"tasks": [task(0, 0.25, json!("x")), task(3, 0.75, json!(["x", "y"]))]});
        let scores = parse(&record, &[Metric::RepoCoder]).unwrap();
        assert_eq!((scores.all.n, scores.samples()), (2, 2));
        assert_eq!(scores.mean(Metric::RepoCoder, "es"), Some(0.5));
        assert_eq!(scores.tasks[1].get(Metric::RepoCoder, "es"), Some(0.75));
        assert_eq!((scores.tasks[1].row, scores.tasks[0].repository.as_deref()), (3, Some("r")));
    }

    #[test]
    fn a_missing_value_is_no_zero() {
        let record = json!({"tasks": [{"row": 7, "repocoder": {"em": 1.0}, "target_digest": "0"}]});
        let error = parse(&record, &[Metric::RepoCoder]).unwrap_err().to_string();
        assert!(error.contains("task in row 7 lacks values of repocoder"), "{error}");
    }
}
