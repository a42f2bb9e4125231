//! Confidence of a model in its completions, from the log-probabilities of their tokens.
//!
//! Repoformer's paper uses these measures to decide from a model's first attempt whether to retrieve (appendix C): the least
//! probable token, and the entropy over samples.

use serde::{Deserialize, Serialize};

/// Confidence of a model in one completion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Mean natural logarithm of the tokens' probabilities.
    pub mean_logprob: f64,
    /// Natural logarithm of the least probable token's probability.
    pub min_logprob: f64,
}

impl Confidence {
    /// Computes the confidence from the tokens' log-probabilities; `None` if there are none.
    ///
    /// ```
    /// use repoformer_core::completion::Confidence;
    /// let sure = Confidence::from_logprobs(&[-0.5, -1.5]).unwrap();
    /// assert_eq!((sure.mean_logprob, sure.min_logprob), (-1.0, -1.5));
    /// assert!(Confidence::from_logprobs(&[-0.0]).unwrap().min_logprob.is_sign_positive());
    /// assert!(Confidence::from_logprobs(&[]).is_none());
    /// ```
    pub fn from_logprobs(logprobs: &[f64]) -> Option<Self> {
        // Adding 0 turns −0 into 0; servers write −0 for a certain token.
        (!logprobs.is_empty()).then(|| Self {
            mean_logprob: logprobs.iter().sum::<f64>() / logprobs.len() as f64 + 0.0,
            min_logprob: logprobs.iter().copied().fold(f64::INFINITY, f64::min) + 0.0,
        })
    }
}

/// Estimates, in nats, the entropy of the model's distribution over completions: the mean of −log p over samples, each given by
/// its tokens' log-probabilities. Returns `None` if there are fewer than two samples, or if one has no tokens. The estimate is
/// valid only for samples drawn at temperature 1 without truncation.
///
/// ```
/// use repoformer_core::completion::entropy;
/// assert_eq!(entropy(&[vec![-1.0, -2.0], vec![-0.5]]), Some(1.75));
/// // Two certain samples: 0 without a sign.
/// assert!(entropy(&[vec![0.0], vec![0.0]]).is_some_and(f64::is_sign_positive));
/// assert_eq!(entropy(&[vec![-1.0]]), None);
/// assert_eq!(entropy(&[vec![-1.0], vec![]]), None);
/// ```
pub fn entropy(samples: &[Vec<f64>]) -> Option<f64> {
    let is_known = samples.iter().all(|logprobs| !logprobs.is_empty());
    let sum = samples.iter().flatten().sum::<f64>();
    (samples.len() > 1 && is_known).then(|| -sum / samples.len() as f64 + 0.0)
}
