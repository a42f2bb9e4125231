//! An additive model: the log-odds of a decision as a sum of one curve a feature, and of one weight a bucket of words.

use serde::{Deserialize, Serialize};

use crate::selective::policy::features::{BUCKETS, Hashed};

/// What one feature adds: a line that bends at knots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The feature's name; those of what was retrieved begin with `retrieved.`.
    pub feature: String,
    /// Slope before the first knot.
    pub slope: f64,
    /// Where the line bends, and by how much the slope changes there.
    pub knots: Vec<(f64, f64)>,
    /// Mean of what it adds over the training data.
    pub mean: f64,
    /// Standard deviation of what it adds over the training data: how much the feature counts.
    pub spread: f64,
    /// Its correlation with the feature there, −1 to 1: whether more of the feature speaks for retrieval.
    pub direction: f64,
}

impl Curve {
    /// What a value adds to the log-odds.
    pub fn at(&self, value: f64) -> f64 {
        let bends = self.knots.iter();
        self.slope * value
            + bends
                .map(|(at, slope)| slope * (value - at).max(0.0))
                .sum::<f64>()
    }
}

/// The sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Additive {
    /// What is added whatever the features.
    pub intercept: f64,
    /// One a feature, in the features' order.
    pub curves: Vec<Curve>,
    /// One a bucket of words, or none.
    pub words: Vec<f64>,
}

impl Additive {
    /// The log-odds for features in the order of the curves.
    pub fn log_odds(&self, values: impl Iterator<Item = f32>, words: &Hashed) -> f64 {
        let curves = self.curves.iter().zip(values);
        let counted: f64 = curves
            .map(|(curve, value)| curve.at(f64::from(value)))
            .sum();
        let hashed: f64 = match self.words.len() {
            BUCKETS => words.sum(&self.words),
            _ => 0.0,
        };
        self.intercept + counted + hashed
    }
}
