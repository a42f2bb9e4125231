//! Labels from completions without and with retrieved fragments, and the signals that policies learn from.

mod judge;
mod likelihoods;
mod signals;
mod summary;

pub use judge::{JudgeSettings, JudgedBy, judge, judge_one};
pub use signals::{ReadSignals, entropies, probabilities, signals};
pub use summary::{JudgeSummary, LengthCounts, MissingCompletion};
