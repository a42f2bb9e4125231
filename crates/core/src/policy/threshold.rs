//! Thresholds of policies, as numbers or as percentages of the instances.

use std::fmt;
use std::str::FromStr;

use repoformer_store::error::{Error, Result};

/// Threshold of a policy.
///
/// ```
/// use repoformer_core::policy::Threshold;
/// let scores = [0.9, 0.4, 0.4, 0.1];
/// let retrieved = |threshold: &str| {
///     let least = threshold.parse::<Threshold>().unwrap().value(&scores);
///     scores.iter().filter(|score| **score > least).count()
/// };
/// assert_eq!((retrieved("0.4"), retrieved("25%"), retrieved("75%"), retrieved("100%")), (1, 1, 3, 4));
/// assert_eq!(retrieved("50%"), 1, "a half would part the two equal scores");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Retrieve if the score is above this number.
    Above(f64),
    /// Retrieve for the instances with the highest scores, at most this percentage of the instances.
    Share(f64),
}

impl Threshold {
    /// Returns the number that scores must be above. For a percentage, this is the highest score for which the policy does not
    /// retrieve. Instances with equal scores are therefore all retrieved for or not at all, and never more than the percentage.
    /// If the policy retrieves for every instance, the number is −∞.
    pub fn value(self, scores: &[f64]) -> f64 {
        let per_cent = match self {
            Self::Above(number) => return number,
            Self::Share(per_cent) => per_cent,
        };
        let mut sorted = scores.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        sorted.get(Self::room(per_cent, scores.len())).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Returns the maximum number of instances, out of `count`, that a percentage retrieves for; `None` for a number.
    pub fn at_most(self, count: usize) -> Option<usize> {
        match self {
            Self::Above(_) => None,
            Self::Share(per_cent) => Some(Self::room(per_cent, count)),
        }
    }

    /// Returns a percentage of `count`, rounded down; percentages that are whole numbers of instances stay whole.
    fn room(per_cent: f64, count: usize) -> usize {
        (per_cent * count as f64 / 100.0 + 1e-9) as usize
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Above(number) => write!(f, "{number}"),
            Self::Share(per_cent) => write!(f, "{per_cent}%"),
        }
    }
}

impl FromStr for Threshold {
    type Err = Error;

    /// Parses a number, such as `0.2`, or a percentage, such as `30%`.
    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| !number.is_nan());
        let found = match text.strip_suffix('%') {
            Some(share) => {
                number(share).filter(|share| (0.0..=100.0).contains(share)).map(Self::Share)
            }
            None => number(text).map(Self::Above),
        };
        found.ok_or_else(|| {
            let reason =
                format!("'{text}' must be a number, such as 0.2, or a percentage from 0% to 100%");
            Error::parameter("threshold", reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_numbers_or_shares() {
        for (text, wanted) in [
            ("0.2", Threshold::Above(0.2)),
            ("-3", Threshold::Above(-3.0)),
            ("30%", Threshold::Share(30.0)),
            ("12.5%", Threshold::Share(12.5)),
        ] {
            assert_eq!(text.parse::<Threshold>().unwrap(), wanted);
            assert_eq!(wanted.to_string(), text);
        }
        for text in ["", "%", "nan", "nan%", "101%", "-1%", "half", "30 %%"] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains("must be a number"), "{text}: {error}");
        }
    }

    /// Compares every percentage of every count with counting by hand.
    #[test]
    fn a_share_retrieves_for_as_many_as_fit() {
        for count in 0..=60usize {
            let scores: Vec<f64> = (0..count).map(|n| ((n * 7) % 60) as f64).collect();
            for per_cent in 0..=100usize {
                let threshold = Threshold::Share(per_cent as f64);
                let least = threshold.value(&scores);
                let retrieved = scores.iter().filter(|score| **score > least).count();
                assert_eq!(retrieved, per_cent * count / 100, "{per_cent} % of {count}");
                assert_eq!(threshold.at_most(count), Some(retrieved));
            }
        }
        // All scores are equal: only 100 % retrieves.
        let least = |per_cent| Threshold::Share(per_cent).value(&[0.5; 4]);
        assert_eq!((least(99.0), least(100.0)), (0.5, f64::NEG_INFINITY));
    }
}
