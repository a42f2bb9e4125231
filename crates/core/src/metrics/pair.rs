//! Score of a pair of target and prediction.

/// Exact match and edit similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairScore {
    /// Whether target and prediction match exactly, as the metric defines it.
    pub em: bool,
    /// Edit similarity, 0 to 1.
    pub es: f64,
}

impl PairScore {
    /// Returns both values, in the order of their names.
    pub(super) fn values(self) -> Vec<f64> {
        vec![f64::from(self.em), self.es]
    }
}
