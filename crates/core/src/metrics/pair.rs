//! Score of one pair of target and prediction.

/// Exact match and edit similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairScore {
    /// Whether target and prediction match exactly, in the sense of the metric.
    pub em: bool,
    /// Edit similarity, 0 to 1.
    pub es: f64,
}

impl PairScore {
    /// Both values, in the order of their names.
    pub(super) fn values(self) -> Vec<f64> {
        vec![f64::from(self.em), self.es]
    }
}
