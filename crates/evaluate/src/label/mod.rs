//! Labels from completions without and with retrieved fragments, and the signals from which policies learn.

mod fragments;
mod instances;
mod judge;
mod lengths;
mod likelihoods;
mod settings;
mod signals;
mod summary;
mod trials;

pub use fragments::FragmentSummary;
pub use judge::{judge, judge_one};
pub use lengths::JudgeTable;
pub use settings::{
    JudgeSettings, LabelCriterion, LabelMetric, check_threshold, usual_postprocess,
};
pub use signals::{ReadSignals, entropies, probabilities, signals};
pub use summary::{JudgeSummary, LengthCounts, MissingCompletion};
