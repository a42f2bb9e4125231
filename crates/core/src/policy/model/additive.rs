//! Additive model: the log-odds of a decision are a sum of one curve per feature and one weight per bucket of words.

use serde::{Deserialize, Serialize};

use crate::policy::features::{BUCKETS, WordBuckets};

/// Contribution of one feature: a piecewise linear function with knots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureCurve {
    /// Name of the feature; names of features of the retrieved fragments start with `retrieved.`.
    pub feature: String,
    /// Slope before the first knot.
    pub slope: f64,
    /// Knots, each with the change of slope at the knot.
    pub knots: Vec<(f64, f64)>,
    /// Mean contribution over the training data.
    pub mean: f64,
    /// Standard deviation of the contribution over the training data: the importance of the feature.
    pub spread: f64,
    /// Correlation of contribution and feature over the training data, −1 to 1: above 0 if a larger value favours retrieval.
    pub direction: f64,
}

impl FeatureCurve {
    /// Returns the contribution of a value to the log-odds.
    pub fn at(&self, value: f64) -> f64 {
        let bends = self.knots.iter();
        self.slope * value + bends.map(|(at, slope)| slope * (value - at).max(0.0)).sum::<f64>()
    }
}

/// Additive model of the log-odds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdditiveModel {
    /// Constant term.
    pub intercept: f64,
    /// Curve of each feature, in the features' order.
    pub curves: Vec<FeatureCurve>,
    /// Weight of each bucket of words; empty if the model does not use words.
    pub words: Vec<f64>,
}

impl AdditiveModel {
    /// Returns the log-odds for features in the order of the curves.
    pub fn log_odds(&self, values: impl Iterator<Item = f32>, words: &WordBuckets) -> f64 {
        let curves = self.curves.iter().zip(values);
        let counted: f64 = curves.map(|(curve, value)| curve.at(f64::from(value))).sum();
        let hashed: f64 = match self.words.len() {
            BUCKETS => words.sum(&self.words),
            _ => 0.0,
        };
        self.intercept + counted + hashed
    }
}
