//! The policies by name, and what each goes by.

use std::fmt;
use std::str::FromStr;

use super::Example;
use super::model::Kind;
use crate::error::Error;

/// When to retrieve. Each policy gives a request a score, and retrieves where that is above a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Never.
    Never,
    /// Always.
    Always,
    /// By chance: the score is even between 0 and 1, so that a threshold of 0.8 retrieves for a fifth.
    Random,
    /// By the score of the best fragment, of any ranker: retrieves, then decides whether to show it.
    TrialRetrieval,
    /// By doubt: 1 less the probability of the least probable token of the completion without retrieval.
    TrialGeneration,
    /// By doubt: the entropy over samples of that completion, in nats.
    Entropy,
    /// The generator's own decision: the probability it gives the token that asks for retrieval. Greedy at 0.5.
    SelfDecision,
    /// What retrieval adds, which only the labels know: no policy can do better.
    Oracle,
    /// A learned probability that retrieval helps, from the contexts alone.
    Learned,
    /// A learned probability that what was retrieved helps.
    LearnedScored,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 10] = [
        Self::Never,
        Self::Always,
        Self::Random,
        Self::TrialRetrieval,
        Self::TrialGeneration,
        Self::Entropy,
        Self::SelfDecision,
        Self::Oracle,
        Self::Learned,
        Self::LearnedScored,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::Random => "random",
            Self::TrialRetrieval => "trial-retrieval",
            Self::TrialGeneration => "trial-generation",
            Self::Entropy => "entropy",
            Self::SelfDecision => "self",
            Self::Oracle => "oracle",
            Self::Learned => Kind::Learned.name(),
            Self::LearnedScored => Kind::LearnedScored.name(),
        }
    }

    /// What is learned, where it is.
    pub fn learned(self) -> Option<Kind> {
        match self {
            Self::Learned => Some(Kind::Learned),
            Self::LearnedScored => Some(Kind::LearnedScored),
            _ => None,
        }
    }

    /// Whether its score is a probability that retrieval helps.
    pub fn is_probability(self) -> bool {
        self.learned().is_some() || self == Self::SelfDecision
    }

    /// What the decision waits for.
    pub fn waits_for(self) -> Waits {
        match self {
            Self::TrialRetrieval | Self::LearnedScored => Waits::Retrieval,
            Self::TrialGeneration | Self::Entropy => Waits::Generation,
            Self::SelfDecision => Waits::Decision,
            _ => Waits::Nothing,
        }
    }

    /// What an instance lacks where the policy can give it no score.
    pub fn lacking(self) -> &'static str {
        match self {
            Self::TrialRetrieval => "a score of their best fragment",
            Self::TrialGeneration => {
                "min_logprob: completions without the log-probabilities of their tokens"
            }
            Self::Entropy => "entropy: completions without `complete --samples 20 --temperature 1`",
            Self::SelfDecision => {
                "cc_probability: `complete --probability-of '<cc>' --after '<eof>'` asks for it, and --probabilities of `label judge` and `run` takes it"
            }
            _ => "a score",
        }
    }

    /// The score of an instance; `None` where what it goes by is not known. The learned ones are scored by their model.
    pub fn score(self, example: &Example, seed: u64) -> Option<f64> {
        match self {
            Self::Learned | Self::LearnedScored => None,
            Self::Never => Some(f64::NEG_INFINITY),
            Self::Always => Some(1.0),
            Self::Random => Some(chance(example, seed)),
            Self::TrialRetrieval => example.top_score,
            Self::TrialGeneration => example.signals.min_logprob.map(|least| 1.0 - least.exp()),
            Self::Entropy => example.signals.entropy,
            Self::SelfDecision => example.signals.cc_probability,
            Self::Oracle => Some(example.gain()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|policy| policy.name() == name);
        named.ok_or_else(|| Error::Parameter {
            name: "policy",
            reason: format!(
                "'{name}' is not one of {}",
                Self::ALL.map(Self::name).join(", ")
            ),
        })
    }
}

/// What a decision takes as long as, in the paper's latency model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Microseconds.
    Nothing,
    /// The model's one token.
    Decision,
    /// What is retrieved.
    Retrieval,
    /// The completion without retrieval.
    Generation,
}

/// A number between 0 and 1 that an instance and a seed always have.
fn chance(example: &Example, seed: u64) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"repoformer random policy 1\0");
    hasher.update(&seed.to_le_bytes());
    hasher.update(example.repository.as_bytes());
    hasher.update(b"\0");
    hasher.update(example.id.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
}
