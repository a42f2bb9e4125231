//! Scores of each task by any metrics.

use foldhash::HashMap;
use repoformer_core::metrics::Metric;
use repoformer_core::task::kind::{RecordKind, SCORED_BY};
use repoformer_store::jsonl::{self, Object};
use repoformer_store::literal::literal;
use repoformer_store::schema::first_wrong;
use serde_json::Value;

use crate::conditions::Conditions;
use crate::score::{Scores, TaskScore, samples_of};

/// Greatest number of measures of a system. Work grows with their number times the number of tasks.
const MOST_MEASURES: usize = 100;

/// Greatest length in bytes of a measure's name, which results repeat for each task and repository.
const LONGEST_MEASURE: usize = 256;

/// Scores of one system by task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PerTask {
    /// Name in messages and tables.
    pub name: String,
    /// Measures of the tasks, as `METRIC.VALUE`, in the order of their first appearance.
    pub measures: Vec<String>,
    /// Tasks, in any order.
    pub tasks: Vec<TaskValues>,
    /// Conditions under which the scores were produced, as far as they are known.
    pub conditions: Conditions,
    /// Greatest number of samples of a task; 0 if it is unknown.
    pub samples: usize,
    places: HashMap<String, usize>,
}

/// Scores of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskValues {
    /// Id of the task.
    pub task_id: String,
    /// 0-based row in the task file, if known.
    pub row: Option<usize>,
    /// Repository of the task, if known.
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

    /// Returns one measure of the tasks that have it.
    pub fn of_scores(name: String, scores: &Scores, metric: Metric, value: &str) -> Self {
        let measure = format!("{}.{value}", metric.name());
        let task = |task: &TaskScore| {
            Some(TaskValues {
                task_id: task.task_id.clone(),
                row: Some(task.row),
                repository: task.repository.clone(),
                target: Some(format!("{:016x}", task.target)),
                values: vec![Some(task.get(metric, value)?)],
            })
        };
        Self {
            tasks: scores.tasks.iter().filter_map(task).collect(),
            places: [(measure.clone(), 0)].into_iter().collect(),
            measures: vec![measure],
            samples: scores.samples(),
            ..Self::new(name)
        }
    }

    /// Adds a task's record, `{"task_id", "row"?, "repository"?, "METRIC": {"VALUE": number, …}, …}`, as
    /// [`TaskScore::to_record`](crate::score::TaskScore::to_record) returns it. Every object with numbers is a metric; other
    /// fields are ignored.
    ///
    /// ```
    /// use repoformer_evaluate::comparison::PerTask;
    /// let record = serde_json::from_str(r#"{"task_id": "a", "row": 3, "repocoder": {"em": 0, "es": 0.5}, "time": 7}"#).unwrap();
    /// let mut scores = PerTask::new("rg1");
    /// scores.add(&record).unwrap();
    /// assert_eq!(scores.measures, ["repocoder.em", "repocoder.es"]);
    /// assert_eq!(scores.value(&scores.tasks[0], "repocoder.es"), Some(0.5));
    /// ```
    ///
    /// # Errors
    /// The record has no id or no score; it brings the number of measures above 100; a measure's name has more than 256 bytes; a
    /// score, row, repository or digest has
    /// another type; or a score of a metric of this program is not between 0 and 1. The error is a message.
    pub fn add(&mut self, record: &Object) -> Result<(), String> {
        self.check(record)?;
        let task_id = record.get("task_id").and_then(jsonl::id).unwrap_or_default();
        let row = record.get("row").and_then(jsonl::count);
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let (repository, target) = (text("repository"), text("target_digest"));
        let added = numbers(record).filter(|(measure, _)| !self.places.contains_key(measure));
        let (known, added) = (self.measures.len(), added.count());
        if known + added > MOST_MEASURES {
            return Err(format!(
                "adds {added} measures to {known}, but at most {MOST_MEASURES} are compared"
            ));
        }
        if let Some((long, _)) = numbers(record).find(|(name, _)| name.len() > LONGEST_MEASURE) {
            return Err(format!(
                "a measure has a name of {} bytes, but at most {LONGEST_MEASURE} are compared",
                long.len()
            ));
        }
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
            return Err(
                "has no scores: no field is an object of numbers, such as 'repocoder'".into()
            );
        }
        self.samples = self.samples.max(samples_of(record));
        self.tasks.push(TaskValues { task_id, row, repository, target, values });
        Ok(())
    }

    /// Checks the fields: each score must be a number, and scores of this program's metrics must be between 0 and 1. A field
    /// that is not known to be a score may contain anything except a number that a JSON value cannot hold, such as NaN.
    fn check(&self, record: &Object) -> Result<(), String> {
        if let Some(wrong) = first_wrong(RecordKind::Score.fields(), record) {
            return Err(wrong);
        }
        for (metric, values) in record.iter().filter(|(name, _)| may_be_metric(name)) {
            let is_own = SCORED_BY.contains(&&**metric);
            let Some(values) = values.as_object().filter(|_| literal(values).is_none()) else {
                match values {
                    Value::Null => continue,
                    _ if is_own => {
                        let kind = jsonl::kind(values);
                        return Err(format!("field '{metric}' must be an object, not {kind}"));
                    }
                    _ => continue,
                }
            };
            for (name, value) in values {
                let field = format!("{metric}.{name}");
                let is_score = is_own || self.places.contains_key(&field);
                match value.as_f64() {
                    None if is_score && !value.is_null() || literal(value).is_some() => {
                        let kind = jsonl::kind(value);
                        return Err(format!("field '{field}' must be a number, not {kind}"));
                    }
                    Some(score) if is_own && !(0.0..=1.0).contains(&score) => {
                        return Err(format!(
                            "field '{field}' must be between 0 and 1, not {score}"
                        ));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the conditions, including the number of samples.
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

/// Returns true if a field may contain scores: numbers in the task's metadata are line numbers, and some other fields are
/// settings.
fn may_be_metric(name: &str) -> bool {
    !matches!(name, "metadata" | "asked")
}

/// Returns every `METRIC.VALUE` of a record that is a number.
fn numbers(record: &Object) -> impl Iterator<Item = (String, f64)> {
    let metrics = record.iter().filter(|(name, _)| may_be_metric(name));
    let metrics = metrics.filter_map(|(name, value)| Some((name, value.as_object()?)));
    metrics.flat_map(|(metric, values)| {
        let number = move |(name, value): (&String, &Value)| {
            Some((format!("{metric}.{name}"), value.as_f64()?))
        };
        values.iter().filter_map(number)
    })
}
