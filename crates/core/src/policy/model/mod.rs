//! Learned policies: an additive model of the features, calibrated on repositories that it was not trained on.

mod additive;
mod calibration;
mod file;
mod fit;
mod learned;
mod logistic;
#[cfg(test)]
mod tests;
mod train;

pub use additive::{AdditiveModel, FeatureCurve};
pub use calibration::{Calibration, CalibrationMethod};
pub use file::{PolicyModel, Training};
pub use learned::LearnedPolicy;
pub use train::{HeldOutScores, hold_out, train};
