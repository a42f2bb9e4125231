//! Metrics: what a prediction is worth beside the text that stood in the hole.
//!
//! One metric a file, each a `score(target, samples)` with values between 0 and 1 where more is better; [`Metric`] names
//! them. [`levenshtein`] is the distance below the edit similarities.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

pub mod levenshtein;
pub(crate) mod lines;
pub mod repocoder;

/// A named bundle of values, as `--metrics` takes it and the scores print it.
///
/// ```
/// use repoformer::metrics::Metric;
/// let metric: Metric = "repocoder".parse()?;
/// assert_eq!(metric.to_string(), "repocoder");
/// assert_eq!(metric.values(), ["em", "es"]);
/// assert_eq!(metric.score("return x", &["return y"]), [0.0, 0.875]);
/// # Ok::<(), repoformer::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Metric {
    /// [`repocoder`]: exact match and edit similarity over stripped lines, cut to the target's count.
    RepoCoder,
}

impl Metric {
    /// Every metric, in the order tables show them.
    pub const ALL: &[Self] = &[Self::RepoCoder];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepoCoder => "repocoder",
        }
    }

    /// The names of its values, in the order of [`score`](Self::score).
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Self::RepoCoder => &["em", "es"],
        }
    }

    /// Its values for the samples predicted for one target, each between 0 and 1; all 0 without a sample.
    pub fn score<S: AsRef<str>>(self, target: &str, samples: &[S]) -> Vec<f64> {
        match self {
            Self::RepoCoder => {
                let repocoder::Score { em, es } = repocoder::score(target, samples);
                vec![f64::from(u8::from(em)), es]
            }
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|metric| metric.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|metric| metric.name()).collect();
            Error::Parameter {
                name: "metrics",
                reason: format!("'{name}' is not one of {}", names.join(", ")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_print_alike() {
        for &metric in Metric::ALL {
            assert_eq!(metric.to_string().parse::<Metric>().unwrap(), metric);
            let values = metric.score("x", &["y"]);
            assert_eq!(values.len(), metric.values().len());
        }
        assert_eq!(
            "bleu".parse::<Metric>().unwrap_err().to_string(),
            "metrics: 'bleu' is not one of repocoder"
        );
    }
}
