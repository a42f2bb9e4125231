//! Tasks of a run with what retrieval did for them, and what policies made of it.

use repoformer_core::policy::sweep::LatencyModel;
use repoformer_core::policy::{Example, Policy, Threshold};
use repoformer_core::retrieve::Mode;

/// Tasks of a benchmark with what retrieval did for them, and what policies made of it.
#[derive(Debug)]
pub(super) struct Judged {
    /// The mode that retrieves.
    pub(super) mode: Mode,
    pub(super) examples: Vec<Example>,
    /// Times of each, where all were measured.
    pub(super) clock: Option<LatencyModel>,
    pub(super) policies: Vec<JudgedPolicy>,
}

/// Scores and decisions of a policy, in the order of the examples.
#[derive(Debug)]
pub(super) struct JudgedPolicy {
    pub(super) policy: Policy,
    /// With its threshold, as `learned@0.2`.
    pub(super) name: String,
    /// Threshold as it was asked for.
    pub(super) asked: Threshold,
    /// Number that scores were compared with.
    pub(super) threshold: f64,
    /// Scores that order the tasks.
    pub(super) ordered: Vec<f64>,
    /// Probabilities that thresholds are compared with, for policies that have them.
    pub(super) probabilities: Option<Vec<f64>>,
    pub(super) retrieves: Vec<bool>,
}

impl JudgedPolicy {
    /// The threshold; `None` if the policy has none.
    pub(super) fn printed_threshold(&self) -> Option<f64> {
        let has_none = matches!(
            self.policy,
            Policy::Never | Policy::Always | Policy::SelfGreedy | Policy::Oracle
        );
        Some(self.threshold).filter(|threshold| !has_none && threshold.is_finite())
    }

    /// The score that is compared with the threshold.
    pub(super) fn score(&self, place: usize) -> f64 {
        self.probabilities.as_ref().unwrap_or(&self.ordered)[place]
    }
}

impl Judged {
    /// The first policy that decides by a probability, or else the first.
    pub(super) fn deciding(&self) -> Option<&JudgedPolicy> {
        let probable = self.policies.iter().find(|policy| policy.probabilities.is_some());
        probable.or(self.policies.first())
    }

    /// Those of the tasks that are kept.
    pub(super) fn only(&self, kept: &[bool]) -> Self {
        let policy = |policy: &JudgedPolicy| JudgedPolicy {
            policy: policy.policy,
            name: policy.name.clone(),
            asked: policy.asked,
            threshold: policy.threshold,
            ordered: only(&policy.ordered, kept),
            probabilities: policy.probabilities.as_ref().map(|all| only(all, kept)),
            retrieves: only(&policy.retrieves, kept),
        };
        Self {
            mode: self.mode,
            examples: only(&self.examples, kept),
            clock: self.clock.clone(),
            policies: self.policies.iter().map(policy).collect(),
        }
    }
}

/// The values that are kept.
fn only<T: Clone>(all: &[T], kept: &[bool]) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept).map(|(one, _)| one.clone()).collect()
}
