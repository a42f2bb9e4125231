//! Two systems on the same tasks: what the second gains over the first, and whether it is more than chance.
//!
//! [`read`](read()) takes the scores of each from a file, or [`PerTask::add`] from anywhere; [`Comparison::of`] joins them task by task.
//! Every difference is B − A: A is the baseline, B the system. Whatever a metric is called, its numbers between 0 and 1
//! are compared.
//!
//! ```
//! use repoformer::evaluate::comparison::{Comparison, PerTask, Settings};
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
//! let comparison = Comparison::of(&none, &rg1, &Settings::default())?;
//! let es = &comparison.all[0];
//! assert_eq!((es.measure.as_str(), es.n, es.difference.mean), ("repocoder.es", 4, 0.125));
//! assert_eq!((es.changes.better, es.changes.same, es.changes.worse), (2, 1, 1));
//! // The mean gain of alpha is an eighth, and so is that of beta: there is nothing that drawing repositories would change.
//! let interval = es.difference.interval.unwrap();
//! assert_eq!((interval.low, interval.high), (0.125, 0.125));
//! # Ok::<(), repoformer::error::Error>(())
//! ```

mod join;
mod measure;
mod per_task;
mod read;
mod record;

pub use measure::{Difference, Mean};
pub use per_task::{PerTask, TaskValues};
pub use read::{Reading, read, split};

use crate::error::{Error, Result};
use crate::evaluate::statistics::{Groups, Resampling, SignFlips, Unit};
use measure::Column;

/// How to compare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// The measures, as `METRIC.VALUE`; none: all that both have.
    pub measures: Vec<String>,
    /// What intervals draw anew; `None`: repositories where that can be, else tasks.
    pub unit: Option<Unit>,
    /// How intervals are made.
    pub resampling: Resampling,
    /// How differences are tested.
    pub flips: SignFlips,
    /// Also compare within each repository.
    pub by_repository: bool,
}

/// One of the two systems.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// What its scores are called.
    pub name: String,
    /// Tasks that it has scores of.
    pub tasks: usize,
    /// Ids of those that the other lacks, by row and id; they are left out.
    pub alone: Vec<String>,
}

/// A task that both have.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedTask {
    /// Its id.
    pub task_id: String,
    /// Its row, where a side knows it.
    pub row: Option<usize>,
    /// Its repository, where a side knows it.
    pub repository: Option<String>,
    /// The values of A and B for each of [`Comparison::all`], where both have one.
    pub values: Vec<Option<(f64, f64)>>,
}

/// What comparing two systems gave.
#[derive(Debug)]
pub struct Comparison {
    /// The baseline.
    pub a: Side,
    /// The system.
    pub b: Side,
    /// What the intervals of [`all`](Self::all) drew anew.
    pub unit: Unit,
    /// How many of them there are.
    pub units: usize,
    /// The tasks that both have, by row and id.
    pub tasks: Vec<PairedTask>,
    /// Each measure over all tasks.
    pub all: Vec<Difference>,
    /// The same within each repository, by name, where it was asked for. Their intervals draw tasks.
    pub repositories: Vec<(String, Vec<Difference>)>,
    /// Measures that are not compared, and why.
    pub left_out: Vec<(String, String)>,
    /// Ids that both have, but at other rows, so that they are not joined.
    pub moved: usize,
    /// Tasks that cannot be told apart, or of which the sides say different things; they are left out.
    pub problems: Vec<Error>,
    /// How intervals were made.
    pub resampling: Resampling,
    /// How differences were tested.
    pub flips: SignFlips,
}

impl Comparison {
    /// Compares B with A on the tasks that both have.
    ///
    /// # Errors
    /// They have no task or no measure in common, a measure asked for is missing or no score between 0 and 1, or
    /// repositories are to be drawn anew and there are not two.
    pub fn of(a: &PerTask, b: &PerTask, settings: &Settings) -> Result<Self> {
        let mut problems = Vec::new();
        let mut joined = join::join(a, b, &mut problems);
        joined
            .pairs
            .retain(|pair| agree(a, b, *pair, &mut problems));
        if joined.pairs.is_empty() {
            // What kept tasks from being joined says more than that none is left.
            return Err(problems
                .into_iter()
                .next()
                .unwrap_or_else(|| no_task(a, b, &joined)));
        }
        let (columns, left_out) = columns(a, b, &joined.pairs, &settings.measures)?;
        let pair = |(number, &(one, other)): (usize, &(usize, usize))| {
            let (one, other) = (&a.tasks[one], &b.tasks[other]);
            PairedTask {
                task_id: one.task_id.clone(),
                row: one.row.or(other.row),
                repository: one.repository.clone().or_else(|| other.repository.clone()),
                values: columns.iter().map(|column| column.values[number]).collect(),
            }
        };
        let tasks: Vec<PairedTask> = joined.pairs.iter().enumerate().map(pair).collect();
        let groups = groups(&tasks, settings.unit)?;
        let repositories = match settings.by_repository {
            true => by_repository(&tasks, &columns, settings),
            false => Vec::new(),
        };
        let alone = |side: &PerTask, places: &[usize]| Side {
            name: side.name.clone(),
            tasks: side.tasks.len(),
            alone: places
                .iter()
                .map(|place| side.tasks[*place].task_id.clone())
                .collect(),
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
            left_out,
            moved: joined.moved,
            problems,
            resampling: settings.resampling,
            flips: settings.flips,
        })
    }
}

/// Whether both say the same of a task's repository.
fn agree(
    a: &PerTask,
    b: &PerTask,
    (one, other): (usize, usize),
    problems: &mut Vec<Error>,
) -> bool {
    let (one, other) = (&a.tasks[one], &b.tasks[other]);
    let (Some(of_a), Some(of_b)) = (&one.repository, &other.repository) else {
        return true;
    };
    if of_a != of_b {
        problems.push(Error::Artifact {
            path: (&*b.name).into(),
            reason: format!(
                "task {:?} is of repository {of_b}, but of {of_a} in {}; it is not compared",
                other.task_id, a.name
            ),
            hint: "score both with the same task file".into(),
        });
    }
    of_a == of_b
}

fn no_task(a: &PerTask, b: &PerTask, joined: &join::Joined) -> Error {
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
            0 => "score both with the same task file".into(),
            n => format!("{n} ids are in both, at other rows; score both with the same task file"),
        },
    }
}

type LeftOut = Vec<(String, String)>;

/// The values of each measure that can be compared, in A's order or the order asked for, and the measures that cannot.
fn columns(
    a: &PerTask,
    b: &PerTask,
    pairs: &[(usize, usize)],
    asked: &[String],
) -> Result<(Vec<Column>, LeftOut)> {
    let mut left_out = Vec::new();
    let only_b = b
        .measures
        .iter()
        .filter(|measure| !a.measures.contains(measure));
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
        match Column::of(a, b, pairs, name) {
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
    Error::Comparison {
        reason: format!("{reason}; {}; {}", list(a), list(b)),
        hint: "name one that both have with --measure, or score both with the same --metrics"
            .into(),
    }
}

fn repositories_of(tasks: &[PairedTask]) -> Option<Groups> {
    Groups::repositories(tasks.iter().map(|task| task.repository.as_deref()))
}

/// What intervals draw anew.
fn groups(tasks: &[PairedTask], unit: Option<Unit>) -> Result<Groups> {
    let by_task = || Groups::tasks(tasks.len());
    match unit {
        Some(Unit::Tasks) => Ok(by_task()),
        None => Ok(repositories_of(tasks).unwrap_or_else(by_task)),
        Some(Unit::Repositories) => repositories_of(tasks).ok_or_else(|| {
            let unknown = tasks.iter().filter(|task| task.repository.is_none()).count();
            Error::Comparison {
                reason: match unknown {
                    0 => "all tasks are of one repository, so that there are none to draw".into(),
                    n => format!(
                        "repositories cannot be drawn: {n} of {} tasks name none",
                        tasks.len()
                    ),
                },
                hint: "draw tasks, with --resample task; or score with --tasks, whose records name repositories".into(),
            }
        }),
    }
}

/// Each measure within each repository.
fn by_repository(
    tasks: &[PairedTask],
    columns: &[Column],
    settings: &Settings,
) -> Vec<(String, Vec<Difference>)> {
    let mut names: Vec<&String> = tasks
        .iter()
        .filter_map(|task| task.repository.as_ref())
        .collect();
    names.sort_unstable();
    names.dedup();
    let within = |name: &String| {
        let is_here = |task: &PairedTask| task.repository.as_ref() == Some(name);
        let places: Vec<usize> = (0..tasks.len())
            .filter(|place| is_here(&tasks[*place]))
            .collect();
        let here: Vec<Column> = columns.iter().map(|column| column.part(&places)).collect();
        let groups = Groups::tasks(places.len());
        (
            name.clone(),
            measure::differences(&here, &groups, None, settings),
        )
    };
    names.into_iter().map(within).collect()
}

#[cfg(test)]
mod tests;
