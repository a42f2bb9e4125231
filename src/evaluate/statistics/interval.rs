//! Means and intervals.

/// Interval that probably holds the true mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A mean with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Interval of the mean; `None` where it cannot be computed.
    pub interval: Option<Interval>,
}
