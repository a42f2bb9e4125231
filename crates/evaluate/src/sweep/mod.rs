//! Sweeps of policies over labelled instances: accuracy and time at every threshold.
//!
//! - [`LabelSet`], [`read_labels`]: labelled instances; [`train_on`]: a policy trained on them, [`Explanation`]: its weights.
//! - [`feature_record`]: an instance's features, for other learners.
//! - [`TimeSources`], [`RetrieverTimes`]: times of requests, given or measured.
//! - [`Sweep`]: the policies and the settings of the sweep. [`SweepResults`]: their curves as a table, as records and as a
//!   page.

mod explanation;
mod features;
mod labels;
mod page;
mod results;
mod run;
#[cfg(test)]
mod tests;
mod times;

pub use explanation::Explanation;
pub use features::{feature_columns, feature_record};
pub use labels::{LabelSet, read_labels, train_on};
pub use results::{SetCurves, SweepResults};
pub use run::Sweep;
pub use times::{RetrieverTimes, TimeSources};
