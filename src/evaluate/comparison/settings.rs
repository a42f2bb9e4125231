//! Settings of a comparison.

use crate::evaluate::statistics::{Resampling, SignFlips, Unit};

/// Settings of a comparison.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComparisonSettings {
    /// Measures, as `METRIC.VALUE`; empty: all that both systems have.
    pub measures: Vec<String>,
    /// Unit that intervals resample; `None`: repositories if possible, else tasks.
    pub unit: Option<Unit>,
    /// Settings of the intervals.
    pub resampling: Resampling,
    /// Settings of the tests.
    pub flips: SignFlips,
    /// Whether to compare within each repository too.
    pub by_repository: bool,
}
