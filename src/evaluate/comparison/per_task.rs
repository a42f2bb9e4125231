//! Scores of each task by any metrics.

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::evaluate::conditions::Conditions;
use crate::evaluate::score::samples_of;
use crate::store::jsonl::{self, Object};
use crate::store::literal::literal;

/// Scores of one system by task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PerTask {
    /// Name in messages and tables.
    pub name: String,
    /// Measures of the tasks, as `METRIC.VALUE`, in the order of their first appearance.
    pub measures: Vec<String>,
    /// The tasks, in any order.
    pub tasks: Vec<TaskValues>,
    /// Conditions that they came about under, as far as they are known.
    pub conditions: Conditions,
    /// Greatest number of samples of a task; 0 where it is not known.
    pub samples: usize,
    places: FxHashMap<String, usize>,
}

/// Scores of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskValues {
    /// The task's id.
    pub task_id: String,
    /// 0-based row in the task file, if known.
    pub row: Option<usize>,
    /// The task's repository, if known.
    pub repository: Option<String>,
    /// Digest of its target, if known.
    pub target: Option<String>,
    /// Values in the order of [`PerTask::measures`], as many as were known when the task was added.
    values: Vec<Option<f64>>,
}

impl PerTask {
    /// Returns an empty set of scores.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a task's record, `{"task_id", "row"?, "repository"?, "METRIC": {"VALUE": number, …}, …}`, as
    /// [`TaskScore::to_record`](crate::evaluate::score::TaskScore::to_record) returns it. Every object with numbers is a metric; other
    /// fields are ignored.
    ///
    /// ```
    /// use repoformer::evaluate::comparison::PerTask;
    /// let record = serde_json::from_str(r#"{"task_id": "a", "row": 3, "repocoder": {"em": 0, "es": 0.5}, "time": 7}"#).unwrap();
    /// let mut scores = PerTask::new("rg1");
    /// scores.add(&record).unwrap();
    /// assert_eq!(scores.measures, ["repocoder.em", "repocoder.es"]);
    /// assert_eq!(scores.value(&scores.tasks[0], "repocoder.es"), Some(0.5));
    /// ```
    ///
    /// # Errors
    /// Returns a message if the record has no id, no score, or a row, repository or digest of another type.
    pub fn add(&mut self, record: &Object) -> Result<(), String> {
        let task_id = match record.get("task_id") {
            Some(value) => jsonl::id(value).ok_or("field 'task_id' must be a string")?,
            None => return Err("field 'task_id' is missing".into()),
        };
        if let Some(field) = infinite(record) {
            return Err(field);
        }
        let row = match record.get("row") {
            None | Some(Value::Null) => None,
            Some(row) => {
                let whole = row.as_u64().and_then(|row| usize::try_from(row).ok());
                Some(whole.ok_or("field 'row' must be a whole number from 0")?)
            }
        };
        let text = |name: &str| match record.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("field '{name}' must be a string")),
        };
        let (repository, target) = (text("repository")?, text("target_digest")?);
        let mut values = vec![None; self.measures.len()];
        for (measure, value) in numbers(record) {
            let next = self.measures.len();
            let place = *self.places.entry(measure).or_insert_with_key(|measure| {
                self.measures.push(measure.clone());
                next
            });
            if place >= values.len() {
                values.resize(place + 1, None);
            }
            values[place] = Some(value);
        }
        if values.iter().all(Option::is_none) {
            return Err("has no scores: no field is an object of numbers, as 'repocoder' is".into());
        }
        self.samples = self.samples.max(samples_of(record));
        self.tasks.push(TaskValues { task_id, row, repository, target, values });
        Ok(())
    }

    /// Returns the conditions, with the number of samples.
    pub(super) fn all_conditions(&self) -> Conditions {
        let mut conditions = self.conditions.clone();
        conditions.set_samples(self.samples);
        conditions
    }

    /// Returns a task's value of a measure, if it has one.
    pub fn value(&self, task: &TaskValues, measure: &str) -> Option<f64> {
        let place = self.places.get(measure)?;
        task.values.get(*place).copied().flatten()
    }
}

/// Names the score that is NaN or infinite, if one is.
fn infinite(record: &Object) -> Option<String> {
    let metrics = record.iter().filter(|(name, _)| *name != "metadata");
    metrics.filter_map(|(metric, values)| Some((metric, values.as_object()?))).find_map(
        |(metric, values)| {
            let (name, value) = values.iter().find(|(_, value)| literal(value).is_some())?;
            Some(format!("field '{metric}.{name}' must be a number, not {}", jsonl::kind(value)))
        },
    )
}

/// Returns every `METRIC.VALUE` of a record that is a number.
fn numbers(record: &Object) -> impl Iterator<Item = (String, f64)> {
    // Numbers in the task's metadata are line numbers, not scores.
    let metrics = record.iter().filter(|(name, _)| *name != "metadata");
    let metrics = metrics.filter_map(|(name, value)| Some((name, value.as_object()?)));
    metrics.flat_map(|(metric, values)| {
        let number = move |(name, value): (&String, &Value)| {
            Some((format!("{metric}.{name}"), value.as_f64()?))
        };
        values.iter().filter_map(number)
    })
}
