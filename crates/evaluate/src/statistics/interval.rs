//! Means and intervals.

use repoformer_text::named;

/// Meaning of the two ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalKind {
    /// Confidence interval of the mean.
    Confidence,
    /// Little more than the range of a few repositories' means.
    Range,
}

named! {
    IntervalKind, "kind of interval":
    Confidence = "confidence",
    Range = "range",
}

impl IntervalKind {
    /// Returns the heading of a column of intervals at this level: `95 %`, or `range`.
    pub fn head(self, level: f64) -> String {
        match self {
            Self::Confidence => format!("{:.0} %", 100.0 * level),
            Self::Range => "range".into(),
        }
    }

    /// Returns the level of a confidence interval; a range has none.
    pub fn level(self, level: f64) -> Option<f64> {
        (self == Self::Confidence).then_some(level)
    }
}

/// Interval that probably contains the true mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Mean with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Mean of the values.
    pub mean: f64,
    /// Interval of the mean; `None` if it cannot be computed.
    pub interval: Option<Interval>,
}
