//! Means of a benchmark's measures, and the rows they are computed from.
//!
//! A mean is over the tasks for which the measure is defined, and has their number next to it. Values are summed in the order
//! of the rows.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::measure::Measures;

/// Measures of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskQuality {
    /// 0-based position in the task file.
    pub row: usize,
    /// Id of the task, as its file gives it.
    pub task_id: String,
    /// Repository of the task, if the file names one.
    pub repository: Option<String>,
    /// Values of the task.
    pub measures: Measures,
}

impl TaskQuality {
    /// Returns `{"row": …, "task_id": …, "repository": …, "id_recall": …, …}`: every value is between 0 and 1, or `null` if
    /// undefined.
    pub fn to_record(&self) -> Value {
        let mut record =
            json!({"row": self.row, "task_id": self.task_id, "repository": self.repository});
        for (measure, value) in self.measures.values() {
            record[measure] = value.into();
        }
        record
    }
}

/// Mean of one measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureMean {
    /// Name of the measure.
    pub measure: &'static str,
    /// Number of tasks for which the measure is defined.
    pub n: usize,
    /// Mean between 0 and 1; `None` if `n` is 0.
    pub mean: Option<f64>,
}

/// Means over some tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct QualityMeans {
    /// Number of tasks, including those for which a measure is undefined.
    pub n: usize,
    /// One mean for each of [`Measures::values`], in that order.
    pub means: Vec<MeasureMean>,
}

impl QualityMeans {
    fn new(tasks: &[&TaskQuality]) -> Self {
        let mut sums = Measures::default().values().map(|(measure, _)| (measure, 0, 0.0));
        for task in tasks {
            for ((_, n, sum), (_, value)) in sums.iter_mut().zip(task.measures.values()) {
                *n += usize::from(value.is_some());
                *sum += value.unwrap_or(0.0);
            }
        }
        let means = sums.map(|(measure, n, sum)| {
            let mean = (n > 0).then(|| sum / n as f64);
            MeasureMean { measure, n, mean }
        });
        Self { n: tasks.len(), means: means.to_vec() }
    }

    /// Returns one mean.
    pub fn get(&self, measure: &str) -> Option<MeasureMean> {
        self.means.iter().find(|m| m.measure == measure).copied()
    }

    /// Returns `{"n": …, "id_recall": {"mean": …, "n": …}, …}`; a mean over no task is `null`.
    pub fn to_record(&self) -> Value {
        let mut record = json!({"n": self.n});
        for MeasureMean { measure, n, mean } in &self.means {
            record[measure] = json!({"mean": mean, "n": n});
        }
        record
    }
}

/// Retrieval quality of one benchmark with one ranker and query.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievalQuality {
    /// One row per task, in the given order.
    pub tasks: Vec<TaskQuality>,
    /// Means by repository, in the order of their names.
    pub repositories: Vec<(String, QualityMeans)>,
    /// Means over all tasks.
    pub all: QualityMeans,
}

impl RetrievalQuality {
    /// Computes the means.
    ///
    /// ```
    /// use repoformer_evaluate::quality::{Measures, RetrievalQuality, Share, TaskQuality};
    /// let task = |row, found, of| TaskQuality {
    ///     row,
    ///     task_id: format!("demo/{row}"),
    ///     repository: Some("demo".into()),
    ///     measures: Measures { identifiers: Share { found, of }, ..Measures::default() },
    /// };
    /// // 1 of 2, nothing wanted, 1 of 1.
    /// let quality = RetrievalQuality::new(vec![task(0, 1, 2), task(1, 0, 0), task(2, 1, 1)]);
    /// let mean = quality.all.get("id_recall").unwrap();
    /// assert_eq!((quality.all.n, mean.n, mean.mean), (3, 2, Some(0.75)));
    /// ```
    pub fn new(tasks: Vec<TaskQuality>) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&TaskQuality>> = BTreeMap::new();
        for task in &tasks {
            if let Some(name) = &task.repository {
                by_name.entry(name).or_default().push(task);
            }
        }
        let summary = |(name, tasks): (&str, Vec<_>)| (name.to_owned(), QualityMeans::new(&tasks));
        Self {
            repositories: by_name.into_iter().map(summary).collect(),
            all: QualityMeans::new(&tasks.iter().collect::<Vec<_>>()),
            tasks,
        }
    }

    /// Returns all means as one object, with every value between 0 and 1; `name` identifies the retrieval.
    pub fn to_record(&self, name: &str, per_task: bool) -> Value {
        let of = |(name, summary): &(String, QualityMeans)| (name.clone(), summary.to_record());
        let repositories: Map<String, Value> = self.repositories.iter().map(of).collect();
        let mut record =
            json!({"retrieval": name, "all": self.all.to_record(), "repositories": repositories});
        if per_task {
            record["tasks"] = self.tasks.iter().map(TaskQuality::to_record).collect();
        }
        record
    }
}
