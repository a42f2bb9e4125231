//! Fits the additive model: regularised logistic regression on each feature and on its bends.

use repoformer_store::error::{Error, Result};

use super::additive::{AdditiveModel, FeatureCurve};
use super::calibration::round_trained;
use super::learned::{LearnedPolicy, values};
use super::logistic::Rows;
use crate::policy::Example;
use crate::policy::features::BUCKETS;

/// Weight of the squared weights relative to the summed loss. Features are scaled to a standard deviation of 1.
const REGULARISATION: f64 = 50.0;
/// Minimum number of instances for which word weights are fitted.
const LEAST_FOR_WORDS: usize = 5000;
/// Quantiles of the training data at which curves bend.
const QUANTILES: [f64; 3] = [0.25, 0.5, 0.75];
/// Scale of a group's intercept, which is regularised less than a feature.
const LEVEL: f64 = 5.0;

/// Column of the regression: a feature, or its excess over a bend.
struct Column {
    feature: usize,
    /// `None` for the feature itself; otherwise the bend, and the column is the excess over it.
    bend: Option<f64>,
    mean: f64,
    deviation: f64,
}

impl Column {
    fn raw(&self, value: f64) -> f64 {
        match self.bend {
            None => value,
            Some(at) => (value - at).max(0.0),
        }
    }
}

/// Fits a model to labels. Each group of examples (the instances of one repository in one file) has its own intercept, which is
/// discarded, because differences between repositories do not generalize.
///
/// # Errors
/// All labels are equal, an example lacks the policy's data, or a feature is not finite.
pub(super) fn fit(examples: &[&Example], kind: LearnedPolicy) -> Result<AdditiveModel> {
    let lacking = examples.iter().filter(|example| !kind.has_data(example)).count();
    if lacking > 0 {
        let all = examples.len();
        let reason = format!("{lacking} of {all} labels lack the data that policy {kind} needs");
        return Err(Error::parameter("labels", reason));
    }
    let rows: Vec<Vec<f64>> =
        examples.iter().map(|example| values(kind, example).map(f64::from).collect()).collect();
    let columns = columns(&rows);
    let words = if examples.len() >= LEAST_FOR_WORDS { BUCKETS } else { 0 };
    let (groups, count) = groups(examples);
    let labels: Vec<bool> = examples.iter().map(|example| example.label).collect();
    if labels.iter().all(|&label| label) || !labels.iter().any(|&label| label) {
        let reason =
            "all are equal: retrieval always helped or never did, so there is nothing to learn";
        return Err(Error::parameter("labels", reason));
    }
    let scaled = |row: &Vec<f64>| {
        let value = |c: &Column| (c.raw(row[c.feature]) - c.mean) / c.deviation;
        columns.iter().map(value).collect()
    };
    // A bucket is 0 or 1, with a standard deviation of about a half.
    let sparse = |(example, group): (&&Example, usize)| {
        let buckets = (0..words).filter(|&bucket| example.hashed.has(bucket));
        let mut row: Vec<_> = buckets.map(|bucket| (columns.len() + bucket, 1.0)).collect();
        row.push((columns.len() + words + group, LEVEL));
        row
    };
    let data = Rows {
        width: columns.len() + words + count,
        dense: rows.iter().map(scaled).collect(),
        sparse: examples.iter().zip(groups).map(sparse).collect(),
        labels,
    };
    let Some(weights) = data.fit(REGULARISATION) else {
        return Err(Error::parameter("labels", "some features are not finite numbers"));
    };
    Ok(assemble(kind, &rows, &columns, &weights, words))
}

/// Returns the columns of the regression: each feature that varies, and its excess over each of its quartiles.
fn columns(rows: &[Vec<f64>]) -> Vec<Column> {
    let mut columns = Vec::new();
    for feature in 0..rows.first().map_or(0, Vec::len) {
        let mut sorted: Vec<f64> = rows.iter().map(|row| row[feature]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut bends: Vec<f64> = QUANTILES
            .iter()
            .map(|share| sorted[(share * (sorted.len() - 1) as f64) as usize])
            .filter(|&at| at > sorted[0] && at < sorted[sorted.len() - 1])
            .collect();
        bends.dedup();
        for bend in std::iter::once(None).chain(bends.into_iter().map(Some)) {
            let mut column = Column { feature, bend, mean: 0.0, deviation: 0.0 };
            let values = || rows.iter().map(|row| column.raw(row[feature]));
            let (mean, deviation) = moments(values());
            if deviation > 1e-6 {
                (column.mean, column.deviation) = (mean, deviation);
                columns.push(column);
            }
        }
    }
    columns
}

fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Returns the index of each example's group, and the number of groups.
fn groups(examples: &[&Example]) -> (Vec<usize>, usize) {
    let mut names: Vec<(usize, &str)> = examples.iter().map(|e| e.group()).collect();
    names.sort_unstable();
    names.dedup();
    let number = |example: &&Example| names.binary_search(&example.group()).unwrap_or(0);
    (examples.iter().map(number).collect(), names.len())
}

/// Builds the model from the weights of the columns.
fn assemble(
    kind: LearnedPolicy,
    rows: &[Vec<f64>],
    columns: &[Column],
    weights: &[f64],
    words: usize,
) -> AdditiveModel {
    let mut curves: Vec<FeatureCurve> = kind
        .features()
        .map(|(feature, _)| FeatureCurve {
            feature,
            slope: 0.0,
            knots: Vec::new(),
            mean: 0.0,
            spread: 0.0,
            direction: 0.0,
        })
        .collect();
    for (column, weight) in columns.iter().zip(weights) {
        let slope = round_trained(weight / column.deviation);
        let curve = &mut curves[column.feature];
        match column.bend {
            None => curve.slope = slope,
            Some(at) => curve.knots.push((at, slope)),
        }
    }
    let mut intercept = 0.0;
    for (feature, curve) in curves.iter_mut().enumerate() {
        let added = rows.iter().map(|row| curve.at(row[feature]));
        let (mean, spread) = moments(added.clone());
        let (center, deviation) = moments(rows.iter().map(|row| row[feature]));
        let together = (rows.iter().zip(added))
            .map(|(row, added)| (row[feature] - center) * (added - mean))
            .sum::<f64>()
            / rows.len() as f64;
        curve.mean = round_trained(mean);
        curve.spread = round_trained(spread);
        if spread * deviation > 1e-12 {
            curve.direction = round_trained(together / (spread * deviation));
        }
        intercept -= mean;
    }
    let words = &weights[columns.len()..columns.len() + words];
    AdditiveModel {
        intercept: round_trained(intercept),
        curves,
        words: words.iter().map(|weight| round_trained(*weight)).collect(),
    }
}
