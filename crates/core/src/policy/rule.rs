//! Policies by name, and their scores.

use std::fmt;

use repoformer_text::message::{Message, UserChoice};
use repoformer_text::{message, parse_by_name};

use super::Example;
use super::model::LearnedPolicy;

/// Policy that decides when to retrieve: it gives each request a score, and retrieves if the score is above a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Never retrieve.
    Never,
    /// Always retrieve.
    Always,
    /// Retrieve at random: the score is uniform between 0 and 1, so a threshold of 0.8 retrieves for a fifth of the requests.
    Random,
    /// Retrieve first, and decide by the best fragment's score, from any ranker, whether to show the fragments.
    TrialRetrieval,
    /// Decide by uncertainty: 1 minus the probability of the least probable token of the completion without retrieval.
    TrialGeneration,
    /// Decide by uncertainty: the entropy over samples of the completion without retrieval, in nats.
    Entropy,
    /// Let a model decide: the probability of the token that requests retrieval.
    SelfDecision,
    /// Let a model decide greedily: whether the token that requests retrieval is the most probable one.
    SelfGreedy,
    /// Decide by the gain, which only the labels show: no policy is better.
    Oracle,
    /// Decide by a learned probability that retrieval helps, from the contexts alone.
    Learned,
    /// Decide by a learned probability that the retrieved fragments help.
    LearnedScored,
    /// Decide by a learned probability that the retrieved fragments help, which also uses the model's own probability.
    SelfScored,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 12] = [
        Self::Never,
        Self::Always,
        Self::Random,
        Self::TrialRetrieval,
        Self::TrialGeneration,
        Self::Entropy,
        Self::SelfDecision,
        Self::SelfGreedy,
        Self::Oracle,
        Self::Learned,
        Self::LearnedScored,
        Self::SelfScored,
    ];

    /// Returns the name of the policy, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::Random => "random",
            Self::TrialRetrieval => "trial-retrieval",
            Self::TrialGeneration => "trial-generation",
            Self::Entropy => "entropy",
            Self::SelfDecision => "self",
            Self::SelfGreedy => "self@greedy",
            Self::Oracle => "oracle",
            Self::Learned => LearnedPolicy::Learned.name(),
            Self::LearnedScored => LearnedPolicy::LearnedScored.name(),
            Self::SelfScored => LearnedPolicy::SelfScored.name(),
        }
    }

    /// Returns the learned policy, if this is one.
    pub fn as_learned(self) -> Option<LearnedPolicy> {
        match self {
            Self::Learned => Some(LearnedPolicy::Learned),
            Self::LearnedScored => Some(LearnedPolicy::LearnedScored),
            Self::SelfScored => Some(LearnedPolicy::SelfScored),
            _ => None,
        }
    }

    /// Returns true if the score is a probability that retrieval helps.
    pub fn is_probability(self) -> bool {
        self.as_learned().is_some() || self == Self::SelfDecision
    }

    /// Returns true if the score depends on the retrieved fragments.
    pub fn looks_at_fragments(self) -> bool {
        matches!(self, Self::TrialRetrieval | Self::LearnedScored | Self::SelfScored)
    }

    /// Returns true if the score depends on the probability that a model gives the token that requests retrieval.
    pub fn asks_model(self) -> bool {
        matches!(self, Self::SelfDecision | Self::SelfGreedy | Self::SelfScored)
    }

    /// Returns the cost of the decision.
    pub fn decision_cost(self) -> DecisionCost {
        match self {
            Self::TrialRetrieval | Self::LearnedScored => DecisionCost::Retrieval,
            Self::TrialGeneration | Self::Entropy => DecisionCost::Generation,
            Self::SelfDecision | Self::SelfGreedy => DecisionCost::Decision,
            Self::SelfScored => DecisionCost::DecisionAndRetrieval,
            _ => DecisionCost::Nothing,
        }
    }

    /// Describes the data that the policy's score needs, for messages about instances that lack the data.
    pub fn lacking(self) -> Message {
        match self {
            Self::TrialRetrieval => {
                "the score of their best fragment: take it from retrieval or from \
                 `crossfile_context.list`, not from a plain-text cross-file context"
                    .into()
            }
            Self::LearnedScored => "their fragments with scores: take them from retrieval or from \
                 `crossfile_context.list`, not from a plain-text cross-file context"
                .into(),
            Self::SelfScored => message![
                "cc_probability: ",
                UserChoice::RetrievalProbability,
                ", or their fragments with scores, as in mode rg1"
            ],
            Self::TrialGeneration => {
                "min_logprob: log-probabilities of the completion's tokens".into()
            }
            Self::Entropy => message!["entropy: ", UserChoice::EntropySamples],
            Self::SelfDecision => message!["cc_probability: ", UserChoice::RetrievalProbability],
            Self::SelfGreedy => message!["cc_likeliest: ", UserChoice::RetrievalLikeliest],
            _ => "a score".into(),
        }
    }

    /// Returns the score of an instance; `None` if data that the score needs are missing. Learned policies are scored by their
    /// model.
    pub fn score(self, example: &Example, seed: u64) -> Option<f64> {
        match self {
            Self::Learned | Self::LearnedScored | Self::SelfScored => None,
            Self::Never => Some(f64::NEG_INFINITY),
            Self::Always => Some(1.0),
            Self::Random => Some(chance(example, seed)),
            Self::TrialRetrieval => example.top_score,
            Self::TrialGeneration => {
                example.signals.min_logprob.map(|least| 1.0 - libm::exp(least))
            }
            Self::Entropy => example.signals.entropy,
            Self::SelfDecision => example.signals.cc_probability,
            Self::SelfGreedy => example.signals.cc_likeliest.map(f64::from),
            Self::Oracle => Some(example.gain()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

parse_by_name!(Policy, "policy");

impl From<LearnedPolicy> for Policy {
    fn from(learned: LearnedPolicy) -> Self {
        match learned {
            LearnedPolicy::Learned => Self::Learned,
            LearnedPolicy::LearnedScored => Self::LearnedScored,
            LearnedPolicy::SelfScored => Self::SelfScored,
        }
    }
}

/// Cost of a decision in the paper's latency model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionCost {
    /// Nothing: the decision takes microseconds.
    Nothing,
    /// One token of the model.
    Decision,
    /// The retrieval.
    Retrieval,
    /// One token of the model, and the retrieval.
    DecisionAndRetrieval,
    /// The completion without retrieval.
    Generation,
}

/// Returns a number between 0 and 1 that depends on an instance's content and a seed. Instances with the same id get different
/// numbers.
fn chance(example: &Example, seed: u64) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"repoformer random policy 2\0");
    hasher.update(&seed.to_le_bytes());
    hasher.update(example.content.as_bytes());
    if example.repeat > 0 {
        hasher.update(&(example.repeat as u64).to_le_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
}
