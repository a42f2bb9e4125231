//! Tasks of a run with the effect of retrieval on each, and the decisions of policies.

use repoformer_core::policy::sweep::LatencyModel;
use repoformer_core::policy::{Example, Policy, Threshold};
use repoformer_core::retrieve::Mode;

/// Tasks of a benchmark with the effect of retrieval on each, and the decisions of policies.
#[derive(Debug)]
pub struct JudgedTasks {
    /// Mode that retrieves.
    pub mode: Mode,
    /// Scores of each task without and with retrieval.
    pub examples: Vec<Example>,
    /// Times of each task, if all were measured.
    pub clock: Option<LatencyModel>,
    /// Policies in the order in which they were requested.
    pub policies: Vec<JudgedPolicy>,
}

/// Scores and decisions of a policy, in the order of the examples.
#[derive(Debug)]
pub struct JudgedPolicy {
    /// Policy.
    pub policy: Policy,
    /// Name with the threshold, as `learned@0.2`.
    pub name: String,
    /// Threshold as requested.
    pub asked: Threshold,
    /// Number that scores were compared with.
    pub threshold: f64,
    /// Scores that order the tasks.
    pub ordered: Vec<f64>,
    /// Probabilities that thresholds are compared with, for policies that have probabilities.
    pub probabilities: Option<Vec<f64>>,
    /// Whether the policy retrieves for each task.
    pub retrieves: Vec<bool>,
}

impl JudgedPolicy {
    /// Returns the threshold; `None` if the policy has none.
    pub fn printed_threshold(&self) -> Option<f64> {
        let has_none = matches!(
            self.policy,
            Policy::Never | Policy::Always | Policy::SelfGreedy | Policy::Oracle
        );
        Some(self.threshold).filter(|threshold| !has_none && threshold.is_finite())
    }

    /// Returns the score that is compared with the threshold.
    pub fn score(&self, place: usize) -> f64 {
        self.probabilities.as_ref().unwrap_or(&self.ordered)[place]
    }
}

impl JudgedTasks {
    /// Returns the first policy that decides by a probability, or else the first.
    pub fn deciding(&self) -> Option<&JudgedPolicy> {
        let probable = self.policies.iter().find(|policy| policy.probabilities.is_some());
        probable.or(self.policies.first())
    }

    /// Returns only the tasks that are kept.
    pub fn only(&self, kept: &[bool]) -> Self {
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

/// Returns the values that are kept.
fn only<T: Clone>(all: &[T], kept: &[bool]) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept).map(|(one, _)| one.clone()).collect()
}
