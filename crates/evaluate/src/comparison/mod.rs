//! Comparison of two systems on the same tasks: the gain of the second over the first, and whether the gain may be due to
//! chance.
//!
//! [`read`](read()) reads the scores of a system from a file; [`PerTask::add`] adds them from records; [`Comparison::new`]
//! joins them task by task. Every difference is B − A: A is the baseline, B the system. Any metric with numbers between 0 and 1
//! can be compared.
//!
//! ```
//! use repoformer_evaluate::comparison::{Comparison, PerTask, ComparisonSettings};
//! let scores = |name: &str, values: [f64; 4]| {
//!     let mut scores = PerTask::new(name);
//!     for (row, value) in values.into_iter().enumerate() {
//!         let repository = ["alpha", "beta"][row % 2];
//!         let record = serde_json::json!({"task_id": "t", "row": row, "repository": repository, "repocoder": {"es": value}});
//!         scores.add(record.as_object().unwrap()).unwrap();
//!     }
//!     scores
//! };
//! let (none, rg1) = (scores("none", [0.25, 0.5, 0.5, 0.5]), scores("rg1", [0.5, 1.0, 0.5, 0.25]));
//! let comparison = Comparison::new(&none, &rg1, &ComparisonSettings::default())?;
//! let es = &comparison.all[0];
//! assert_eq!((es.measure.as_str(), es.n, es.difference.mean), ("repocoder.es", 4, 0.125));
//! assert_eq!((es.changes.better, es.changes.same, es.changes.worse), (2, 1, 1));
//! // The mean gains of alpha and beta are both an eighth, so every resample of repositories has this mean.
//! let interval = es.difference.interval.unwrap();
//! assert_eq!((interval.low, interval.high), (0.125, 0.125));
//! # Ok::<(), repoformer_store::error::Error>(())
//! ```

mod join;
mod measure;
mod per_task;
mod read;
mod record;

pub use measure::{ComparisonSettings, MeasureComparison};
pub use per_task::{PerTask, TaskValues};
pub use read::{ReadScores, read, split};

use std::collections::BTreeMap;

use join::TaskPair;
use measure::Column;
use repoformer_core::metrics::Metric;
use repoformer_core::repository::parallel;
use repoformer_core::task::NumberedRecords;
use repoformer_store::error::{Error, Result};
use repoformer_text::counts::part;

use crate::conditions;
use crate::statistics::{Groups, IntervalKind, Resampling, ResamplingUnit, SignFlips};

/// One of the two systems.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Name of the scores.
    pub name: String,
    /// Number of scored tasks.
    pub tasks: usize,
    /// Ids of the tasks that the other system lacks, by row and id; they are left out.
    pub alone: Vec<String>,
    /// Greatest number of samples of a task; 0 if it is unknown.
    pub samples: usize,
}

/// Task of both systems.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedTask {
    /// Id of the task.
    pub task_id: String,
    /// Row in the task file, if either side knows it.
    pub row: Option<usize>,
    /// Repository, if either side knows it.
    pub repository: Option<String>,
    /// Values of A and B for each of [`Comparison::all`], if both have one.
    pub values: Vec<Option<(f64, f64)>>,
}

/// Result of comparing two systems.
#[derive(Debug)]
pub struct Comparison {
    /// Baseline.
    pub a: Side,
    /// System.
    pub b: Side,
    /// Unit that the intervals of [`all`](Self::all) resample.
    pub unit: ResamplingUnit,
    /// Number of units.
    pub units: usize,
    /// Tasks of both systems, by row and id.
    pub tasks: Vec<PairedTask>,
    /// Comparison of each measure over all tasks.
    pub all: Vec<MeasureComparison>,
    /// Comparison of each measure within each repository, by name, if requested. Their intervals resample tasks.
    pub repositories: Vec<(String, Vec<MeasureComparison>)>,
    /// Conditions that differ between the systems, so that comparing their numbers means little; empty if all known conditions
    /// agree.
    pub mixed: Vec<String>,
    /// Measures that are not compared, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Number of ids that both systems have at different rows, which are not joined.
    pub moved: usize,
    /// Tasks of both systems that only numbers join: a side lacks the digest of the target.
    pub numbered: NumberedRecords,
    /// Tasks that cannot be distinguished, or whose repositories differ between the sides; they are left out.
    pub problems: Vec<Error>,
    /// Settings of the intervals.
    pub resampling: Resampling,
    /// Settings of the tests.
    pub flips: SignFlips,
}

impl Comparison {
    /// Compares B with A on the tasks that both have.
    ///
    /// # Errors
    /// The systems have no task or no measure in common, a requested measure is missing or not between 0 and 1, or repositories
    /// are to be resampled and there are fewer than two.
    pub fn new(a: &PerTask, b: &PerTask, settings: &ComparisonSettings) -> Result<Self> {
        let mut problems = Vec::new();
        let mut joined = join::join(a, b, &mut problems);
        joined.pairs.retain(|pair| agree(a, b, *pair, &mut problems));
        if joined.pairs.is_empty() {
            // The first problem explains more than the message that no task is left.
            return Err(problems.into_iter().next().unwrap_or_else(|| no_task(a, b, &joined)));
        }
        let (columns, left_out) = columns(a, b, &joined.pairs, &settings.measures)?;
        let pair = |(number, &pair): (usize, &TaskPair)| {
            let (one, other) = (&a.tasks[pair.a], &b.tasks[pair.b]);
            PairedTask {
                task_id: one.task_id.clone(),
                row: one.row.or(other.row),
                repository: one.repository.clone().or_else(|| other.repository.clone()),
                values: columns.iter().map(|column| column.values[number]).collect(),
            }
        };
        let tasks: Vec<PairedTask> = joined.pairs.iter().enumerate().map(pair).collect();
        let groups = groups(&tasks, settings.unit)?;
        let repositories = if settings.by_repository {
            by_repository(&tasks, &columns, settings)
        } else {
            Vec::new()
        };
        let conditions = [a, b].map(PerTask::all_conditions);
        let mut mixed =
            conditions::differences(&[(&a.name, &conditions[0]), (&b.name, &conditions[1])]);
        mixed.extend(other_targets(a, b, &joined.pairs));
        let alone = |side: &PerTask, places: &[usize]| Side {
            name: side.name.clone(),
            tasks: side.tasks.len(),
            alone: places.iter().map(|place| side.tasks[*place].task_id.clone()).collect(),
            samples: side.samples,
        };
        Ok(Self {
            a: alone(a, &joined.only_a),
            b: alone(b, &joined.only_b),
            unit: groups.unit(),
            units: groups.len(),
            all: measure::differences(
                &columns,
                &groups,
                repositories_of(&tasks).as_ref(),
                settings,
            ),
            tasks,
            repositories,
            mixed,
            left_out,
            moved: joined.moved,
            numbered: numbered_records(a, b, &joined.pairs),
            problems,
            resampling: settings.resampling,
            flips: settings.flips,
        })
    }
}

impl Comparison {
    /// Returns the kind of the intervals of [`all`](Self::all).
    pub fn interval_kind(&self) -> IntervalKind {
        self.unit.interval_kind(self.units)
    }

    /// Returns the name of a measure, with the way in which its metric combines several samples of a task: `repocoder.es (best
    /// of 3)`.
    pub fn title(&self, measure: &str) -> String {
        let metric = measure.split('.').next().and_then(|name| name.parse::<Metric>().ok());
        let several = metric.and_then(|metric| metric.of_several([self.a.samples, self.b.samples]));
        several.map_or_else(|| measure.to_owned(), |several| format!("{measure} ({several})"))
    }
}

/// Returns the tasks that only numbers join.
fn numbered_records(a: &PerTask, b: &PerTask, pairs: &[TaskPair]) -> NumberedRecords {
    let mut numbered = NumberedRecords::default();
    for (one, other) in pairs.iter().map(|pair| (&a.tasks[pair.a], &b.tasks[pair.b])) {
        if one.target.is_none() || other.target.is_none() {
            numbered.add(&one.task_id);
        }
    }
    numbered
}

/// Describes how many tasks have other targets in B than in A, among those whose targets both know.
fn other_targets(a: &PerTask, b: &PerTask, pairs: &[TaskPair]) -> Option<String> {
    let differ = |pair: &&TaskPair| {
        let targets = (&a.tasks[pair.a].target, &b.tasks[pair.b].target);
        matches!(targets, (Some(of_a), Some(of_b)) if of_a != of_b)
    };
    let mut others = pairs.iter().filter(differ);
    let first = others.next()?;
    let (count, id) = (1 + others.count(), &a.tasks[first.a].task_id);
    Some(format!("targets: different in {count} of {} tasks (the first is {id})", pairs.len()))
}

/// Returns true if both sides have the same repository for a task.
fn agree(a: &PerTask, b: &PerTask, pair: TaskPair, problems: &mut Vec<Error>) -> bool {
    let (one, other) = (&a.tasks[pair.a], &b.tasks[pair.b]);
    let (Some(of_a), Some(of_b)) = (&one.repository, &other.repository) else {
        return true;
    };
    if of_a != of_b {
        let reason = format!(
            "task {:?} belongs to repository {of_b} here, but to {of_a} in {}; it is not compared",
            other.task_id, a.name
        );
        problems.push(Error::artifact(b.name.as_ref(), reason, SAME_TASKS));
    }
    of_a == of_b
}

const SAME_TASKS: &str = "score both with the same task file";

fn no_task(a: &PerTask, b: &PerTask, joined: &join::JoinedTasks) -> Error {
    let example = |side: &PerTask, places: &[usize]| {
        let task = places.first().map(|place| &side.tasks[*place]);
        task.map_or("none".into(), |task| match task.row {
            Some(row) => format!("{:?} at row {row}", task.task_id),
            None => format!("{:?}", task.task_id),
        })
    };
    let (one, other) = (example(a, &joined.only_a), example(b, &joined.only_b));
    Error::Comparison {
        reason: format!(
            "{} and {} have no task in common; the first begins with {one}, the second with {other}",
            a.name, b.name
        ),
        hint: match joined.moved {
            0 => SAME_TASKS.into(),
            n => format!("{n} ids are in both files, at different rows; {SAME_TASKS}").into(),
        },
    }
}

type LeftOut = Vec<(String, String)>;

/// Returns the values of each measure that can be compared, in A's order or the requested order, and the measures that cannot.
fn columns(
    a: &PerTask,
    b: &PerTask,
    pairs: &[TaskPair],
    asked: &[String],
) -> Result<(Vec<Column>, LeftOut)> {
    let mut left_out = Vec::new();
    let only_b = b.measures.iter().filter(|measure| !a.measures.contains(measure));
    let mut names: Vec<&String> = a.measures.iter().chain(only_b).collect();
    if !asked.is_empty() {
        names.clear();
        for name in asked {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut columns = Vec::new();
    for name in names {
        match Column::new(a, b, pairs, name) {
            Ok(column) => columns.push(column),
            Err(reason) if asked.is_empty() => left_out.push((name.clone(), reason)),
            Err(reason) => return Err(no_measure(a, b, &format!("{name} {reason}"))),
        }
    }
    if columns.is_empty() {
        return Err(no_measure(a, b, "they have no measure in common"));
    }
    Ok((columns, left_out))
}

fn no_measure(a: &PerTask, b: &PerTask, reason: &str) -> Error {
    let list = |side: &PerTask| format!("{} has {}", side.name, side.measures.join(", "));
    Error::parameter("measure", format!("{reason}; {}; {}", list(a), list(b)))
}

fn repositories_of(tasks: &[PairedTask]) -> Option<Groups> {
    Groups::repositories(tasks.iter().map(|task| task.repository.as_deref()))
}

/// Returns the groups that intervals resample.
fn groups(tasks: &[PairedTask], unit: Option<ResamplingUnit>) -> Result<Groups> {
    let by_task = || Groups::tasks(tasks.len());
    match unit {
        Some(ResamplingUnit::Tasks) => Ok(by_task()),
        None => Ok(repositories_of(tasks).unwrap_or_else(by_task)),
        Some(ResamplingUnit::Repositories) => repositories_of(tasks).ok_or_else(|| {
            let unknown = tasks.iter().filter(|task| task.repository.is_none()).count();
            let reason = match unknown {
                0 => "all tasks belong to one repository".into(),
                n => part(n, tasks.len(), "task", ["names", "name"]) + " no repository",
            };
            Error::parameter("unit", format!("repositories cannot be resampled: {reason}"))
        }),
    }
}

/// Compares each measure within each repository that has values of it.
fn by_repository(
    tasks: &[PairedTask],
    columns: &[Column],
    settings: &ComparisonSettings,
) -> Vec<(String, Vec<MeasureComparison>)> {
    let mut places: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (place, task) in tasks.iter().enumerate() {
        if let Some(name) = &task.repository {
            places.entry(name).or_default().push(place);
        }
    }
    parallel::map(places, |(name, places)| {
        let here = columns.iter().map(|column| column.part(&places));
        let here: Vec<Column> = here.filter(Column::has_values).collect();
        let groups = Groups::tasks(places.len());
        (name.clone(), measure::differences(&here, &groups, None, settings))
    })
}

#[cfg(test)]
mod tests;
