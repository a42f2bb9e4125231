//! One measure of two systems: means, difference, and tests.

use super::PerTask;
use super::join::TaskPair;
use crate::statistics::{
    Buckets, Changes, Estimate, Groups, PermutationTest, Resampling, ResamplingUnit, SignFlips,
};

/// Settings of a comparison.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComparisonSettings {
    /// Measures, as `METRIC.VALUE`; if empty, all that both systems have.
    pub measures: Vec<String>,
    /// Unit that intervals resample; if `None`, repositories if possible, else tasks.
    pub unit: Option<ResamplingUnit>,
    /// Settings of the intervals.
    pub resampling: Resampling,
    /// Settings of the tests.
    pub flips: SignFlips,
    /// True to compare within each repository, too.
    pub by_repository: bool,
}

/// Comparison of one measure.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureComparison {
    /// `METRIC.VALUE`.
    pub measure: String,
    /// Number of tasks with the measure on both sides.
    pub n: usize,
    /// Mean of the baseline, between 0 and 1.
    pub a: Estimate,
    /// Mean of the system.
    pub b: Estimate,
    /// Mean of B − A over the tasks.
    pub difference: Estimate,
    /// Test that flips the signs of tasks.
    pub by_task: PermutationTest,
    /// Test that flips the signs of repositories, if there are several.
    pub by_repository: Option<PermutationTest>,
    /// Numbers of tasks that got better, stayed the same, and got worse.
    pub changes: Changes,
    /// Gains by size; `None` for a measure that is always 0 or 1, for which `changes` is enough.
    pub buckets: Option<Buckets>,
}

/// Values of one measure, for A and B, for each pair of tasks.
#[derive(Debug)]
pub(super) struct Column {
    measure: String,
    pub(super) values: Vec<Option<(f64, f64)>>,
    /// True if all values are 0 or 1, as for exact match.
    binary: bool,
}

impl Column {
    /// Collects the values of a measure; the error is the reason why the measure cannot be compared.
    pub(super) fn new(
        a: &PerTask,
        b: &PerTask,
        pairs: &[TaskPair],
        measure: &str,
    ) -> Result<Self, String> {
        let has = |side: &PerTask| side.measures.iter().any(|known| known == measure);
        match (has(a), has(b)) {
            (true, true) => {}
            (true, false) => return Err(format!("is only in {}", a.name)),
            (false, true) => return Err(format!("is only in {}", b.name)),
            (false, false) => return Err("is in neither".into()),
        }
        let pair = |pair: &TaskPair| {
            let of_b = b.value(&b.tasks[pair.b], measure);
            a.value(&a.tasks[pair.a], measure).zip(of_b)
        };
        let values: Vec<_> = pairs.iter().map(pair).collect();
        let each = || values.iter().flatten().flat_map(|(one, other)| [*one, *other]);
        if each().next().is_none() {
            return Err("has no task with a value in both".into());
        }
        if let Some(value) = each().find(|value| !(0.0..=1.0).contains(value)) {
            return Err(format!("has values outside 0 to 1, such as {value}"));
        }
        Ok(Self {
            measure: measure.to_owned(),
            binary: each().all(|value| value == 0.0 || value == 1.0),
            values,
        })
    }

    /// Returns the values of some pairs.
    pub(super) fn part(&self, places: &[usize]) -> Self {
        Self {
            measure: self.measure.clone(),
            values: places.iter().map(|place| self.values[*place]).collect(),
            binary: self.binary,
        }
    }

    /// Returns true if any pair has a value.
    pub(super) fn has_values(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }
}

/// Compares each measure. Intervals resample `groups`.
pub(super) fn differences(
    columns: &[Column],
    groups: &Groups,
    repositories: Option<&Groups>,
    settings: &ComparisonSettings,
) -> Vec<MeasureComparison> {
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
    let intervals =
        settings.resampling.intervals(groups, measures.iter().map(|values| values.iter().copied()));
    let estimates = measures.iter().zip(intervals);
    let estimates: Vec<Estimate> =
        estimates.map(|(values, interval)| Estimate { mean: mean(values), interval }).collect();
    let difference = |(place, column): (usize, &Column)| {
        let gains = &measures[3 * place + 2];
        // A task without the measure contributes 0 to every flip.
        let flipped: Vec<f64> = gains.iter().map(|gain| gain.unwrap_or(0.0)).collect();
        let test = |groups: &Groups| settings.flips.test(groups, &flipped);
        let known = || gains.iter().flatten().copied();
        MeasureComparison {
            measure: column.measure.clone(),
            n: known().count(),
            a: estimates[3 * place],
            b: estimates[3 * place + 1],
            difference: estimates[3 * place + 2],
            by_task: test(&Groups::tasks(gains.len())),
            by_repository: repositories.map(test),
            changes: Changes::new(known()),
            buckets: (!column.binary).then(|| Buckets::new(known())),
        }
    };
    columns.iter().enumerate().map(difference).collect()
}

/// Returns the mean over the tasks that have a value; 0 if none has.
fn mean(values: &[Option<f64>]) -> f64 {
    let (mut sum, mut number) = (0.0, 0usize);
    for value in values.iter().flatten() {
        sum += value;
        number += 1;
    }
    sum / number.max(1) as f64
}
