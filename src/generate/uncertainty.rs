//! How sure a model is of what it wrote, from the log-probabilities of its tokens.
//!
//! The measures are those by which Repoformer's paper lets a model's first attempt decide whether to retrieve (its
//! appendix C): the least probable token, and the entropy over samples.

use serde::{Deserialize, Serialize};

use super::Sample;

/// How sure a model is of one completion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Mean natural logarithm of its tokens' probabilities.
    pub mean_logprob: f64,
    /// That of the least probable token.
    pub min_logprob: f64,
}

impl Confidence {
    /// From its tokens' log-probabilities; `None` without any.
    ///
    /// ```
    /// use repoformer::generate::Confidence;
    /// let sure = Confidence::of([-0.5, -1.5].into_iter()).unwrap();
    /// assert_eq!((sure.mean_logprob, sure.min_logprob), (-1.0, -1.5));
    /// assert!(Confidence::of([].into_iter()).is_none());
    /// ```
    pub fn of(logprobs: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut sum, mut least, mut count) = (0.0, f64::INFINITY, 0_u32);
        for logprob in logprobs {
            sum += logprob;
            least = least.min(logprob);
            count += 1;
        }
        (count > 0).then(|| Self {
            mean_logprob: sum / f64::from(count),
            min_logprob: least,
        })
    }
}

/// The entropy of the model's distribution over completions in nats, estimated from samples that were drawn from it: the mean
/// of −log p. `None` with fewer than two, or where a sample's tokens are not known. Only samples of temperature 1 without
/// truncation are draws from the model itself.
pub fn entropy(samples: &[Sample]) -> Option<f64> {
    let mut sum = 0.0;
    for sample in samples {
        if sample.tokens.is_empty() && !sample.text.is_empty() {
            return None;
        }
        let logprobs = sample.tokens.iter().map(|token| token.logprob);
        sum -= logprobs.sum::<f64>();
    }
    (samples.len() > 1).then(|| sum / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::TokenProbability;

    #[test]
    fn entropy_is_the_mean_surprise_of_samples() {
        let sample = |logprobs: &[f64]| Sample {
            text: "x".into(),
            finish_reason: None,
            tokens: logprobs
                .iter()
                .map(|logprob| TokenProbability {
                    id: None,
                    text: "x".into(),
                    logprob: *logprob,
                })
                .collect(),
        };
        // A fair coin's: ln 2, whatever was drawn.
        let half = 0.5_f64.ln();
        assert_eq!(entropy(&[sample(&[half]), sample(&[half])]), Some(-half));
        assert_eq!(
            entropy(&[sample(&[-1.0, -2.0]), sample(&[-0.5])]),
            Some(1.75)
        );
        assert_eq!(entropy(&[sample(&[-1.0])]), None);
        assert_eq!(entropy(&[sample(&[-1.0]), sample(&[])]), None);
    }
}
