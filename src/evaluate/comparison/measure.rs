//! One measure of two systems: means, the difference, and what is to be thought of it.

use super::{PerTask, Settings};
use crate::evaluate::statistics::{Buckets, Changes, Groups, Interval, PermutationTest};

/// A mean over tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Itself.
    pub mean: f64,
    /// Where it probably lies, where that can be said.
    pub interval: Option<Interval>,
}

/// One measure, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// `METRIC.VALUE`.
    pub measure: String,
    /// Tasks that have it on both sides.
    pub n: usize,
    /// Of the baseline, between 0 and 1.
    pub a: Mean,
    /// Of the system.
    pub b: Mean,
    /// Of B − A, task by task.
    pub difference: Mean,
    /// The test that flips tasks.
    pub by_task: PermutationTest,
    /// The test that flips repositories, where there are several.
    pub by_repository: Option<PermutationTest>,
    /// Tasks that got better, stayed the same, got worse.
    pub changes: Changes,
    /// The gains by size; of a measure that is only ever 0 or 1, `changes` says it all.
    pub buckets: Option<Buckets>,
}

/// The values of one measure, A's and B's of each pair of tasks.
#[derive(Debug)]
pub(super) struct Column {
    measure: String,
    pub(super) values: Vec<Option<(f64, f64)>>,
    /// Whether all values are 0 or 1, as those of exact match.
    binary: bool,
}

impl Column {
    /// The values of a measure; where it cannot be compared, why.
    pub(super) fn of(
        a: &PerTask,
        b: &PerTask,
        pairs: &[(usize, usize)],
        measure: &str,
    ) -> Result<Self, String> {
        let has = |side: &PerTask| side.measures.iter().any(|known| known == measure);
        match (has(a), has(b)) {
            (true, true) => {}
            (true, false) => return Err(format!("is only in {}", a.name)),
            (false, true) => return Err(format!("is only in {}", b.name)),
            (false, false) => return Err("is in neither".into()),
        }
        let pair = |&(one, other): &(usize, usize)| {
            let (one, other) = (&a.tasks[one], &b.tasks[other]);
            a.value(one, measure).zip(b.value(other, measure))
        };
        let values: Vec<_> = pairs.iter().map(pair).collect();
        let each = || {
            values
                .iter()
                .flatten()
                .flat_map(|(one, other)| [*one, *other])
        };
        if each().next().is_none() {
            return Err("has no task where both have it".into());
        }
        if let Some(value) = each().find(|value| !(0.0..=1.0).contains(value)) {
            return Err(format!(
                "is no score between 0 and 1: it is {value} somewhere"
            ));
        }
        Ok(Self {
            measure: measure.to_owned(),
            binary: each().all(|value| value == 0.0 || value == 1.0),
            values,
        })
    }

    /// Of some of the pairs.
    pub(super) fn part(&self, places: &[usize]) -> Self {
        Self {
            measure: self.measure.clone(),
            values: places.iter().map(|place| self.values[*place]).collect(),
            binary: self.binary,
        }
    }
}

/// Compares each measure. All intervals are of the same resamples, in which `groups` are drawn.
pub(super) fn differences(
    columns: &[Column],
    groups: &Groups,
    repositories: Option<&Groups>,
    settings: &Settings,
) -> Vec<Difference> {
    let of_a = |(one, _): (f64, f64)| one;
    let of_b = |(_, other): (f64, f64)| other;
    let gain = |(one, other): (f64, f64)| other - one;
    let each = |column: &Column, of: fn((f64, f64)) -> f64| -> Vec<Option<f64>> {
        column.values.iter().map(|pair| pair.map(of)).collect()
    };
    let measures: Vec<Vec<Option<f64>>> = columns
        .iter()
        .flat_map(|column| [each(column, of_a), each(column, of_b), each(column, gain)])
        .collect();
    let intervals = settings
        .resampling
        .intervals(groups, measures.iter().map(|values| values.iter().copied()));
    let means = measures
        .iter()
        .zip(intervals)
        .map(|(values, interval)| Mean {
            mean: mean(values),
            interval,
        });
    let means: Vec<Mean> = means.collect();
    let sides = columns
        .iter()
        .zip(means.chunks_exact(3))
        .zip(measures.chunks_exact(3));
    sides
        .map(|((column, means), values)| {
            difference(
                column,
                [means[0], means[1], means[2]],
                &values[2],
                repositories,
                settings,
            )
        })
        .collect()
}

fn difference(
    column: &Column,
    [a, b, difference]: [Mean; 3],
    gains: &[Option<f64>],
    repositories: Option<&Groups>,
    settings: &Settings,
) -> Difference {
    // A task without the measure flips nothing.
    let flipped: Vec<f64> = gains.iter().map(|gain| gain.unwrap_or(0.0)).collect();
    let test = |groups: &Groups| settings.flips.test(groups, &flipped);
    let known = || gains.iter().flatten().copied();
    Difference {
        measure: column.measure.clone(),
        n: known().count(),
        a,
        b,
        difference,
        by_task: test(&Groups::tasks(gains.len())),
        by_repository: repositories.map(test),
        changes: Changes::of(known()),
        buckets: (!column.binary).then(|| Buckets::of(known())),
    }
}

/// Over the tasks that have a value; 0 where none has.
fn mean(values: &[Option<f64>]) -> f64 {
    let (mut sum, mut number) = (0.0, 0usize);
    for value in values.iter().flatten() {
        sum += value;
        number += 1;
    }
    sum / number.max(1) as f64
}
