//! Policies that decide when to retrieve, for any model, behind one interface.
//!
//! - [`features`]: features of a decision, computed in microseconds.
//! - [`Examples`]: judged instances with features.
//! - [`model`]: training, calibration and files of learned policies.
//! - [`Policy`]: all policies, each with a score; [`Threshold`]: the number that the score is compared with.
//! - [`sweep`]: results of a policy on judged instances at every threshold.
//! - [`measure`]: quality of scores.

mod examples;
pub mod features;
pub mod measure;
pub mod model;
mod rule;
pub mod sweep;
mod threshold;

pub use examples::{CompletionScores, Example, Examples, LabelScales, Measure};
pub use rule::{DecisionCost, Policy};
pub use threshold::Threshold;
