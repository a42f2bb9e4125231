//! Kinds of learned policies, and their features.

use repoformer_text::named;
use serde::{Deserialize, Serialize};

use crate::label::Signals;
use crate::policy::Example;
use crate::policy::features::{Local, Retrieved};

/// A learned policy, by its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnedPolicy {
    /// Decides from the contexts alone, before retrieval.
    #[default]
    Learned,
    /// Decides whether to show the retrieved fragments, from the contexts and the fragments.
    LearnedScored,
    /// Decides from the contexts, the fragments, and the probability that a model gives the token that requests retrieval.
    SelfScored,
}

named! {
    LearnedPolicy, "learned policy":
    Learned = "learned",
    LearnedScored = "learned-scored",
    SelfScored = "self-scored",
}

/// Features of a model's own decision.
const OF_MODEL: &[(&str, &str)] =
    &[("cc_log_odds", "Log-odds of the token by which a model requests retrieval")];
/// Log-odds used if a server reports a probability of 0 or 1.
const LARGEST: f64 = 20.0;

impl LearnedPolicy {
    /// Returns the names and meanings of the features, in order.
    pub fn features(self) -> impl Iterator<Item = (String, &'static str)> {
        let (retrieved, of_model): (&[_], &[_]) = match self {
            Self::Learned => (&[], &[]),
            Self::LearnedScored => (Retrieved::FEATURES, &[]),
            Self::SelfScored => (Retrieved::FEATURES, OF_MODEL),
        };
        let named = |of: &'static str, features: &'static [(&str, &'static str)]| {
            features.iter().map(move |(name, meaning)| (format!("{of}{name}"), *meaning))
        };
        named("", Local::FEATURES)
            .chain(named("retrieved.", retrieved))
            .chain(named("model.", of_model))
    }

    /// Returns true if the policy decides from the retrieved fragments.
    pub fn looks_at_fragments(self) -> bool {
        self != Self::Learned
    }

    /// Returns true if an example has the data that the features need.
    pub fn has_data(self, example: &Example) -> bool {
        (!self.looks_at_fragments() || example.is_scored) && self.has_signals(&example.signals)
    }

    /// Returns true if the signals are present that the features need.
    pub(super) fn has_signals(self, signals: &Signals) -> bool {
        self != Self::SelfScored || signals.cc_probability.is_some()
    }

    /// Returns the values of the features, in the order of [`Self::features`]; NaN if a signal is missing.
    pub(super) fn values(
        self,
        local: &Local,
        retrieved: &Retrieved,
        signals: &Signals,
    ) -> impl Iterator<Item = f32> {
        let retrieved = retrieved.values().into_iter();
        let count = if self.looks_at_fragments() { retrieved.len() } else { 0 };
        let log_odds = (self == Self::SelfScored).then(|| match signals.cc_probability {
            Some(asked) => {
                let asked = asked.clamp(0.0, 1.0);
                (libm::log(asked) - libm::log1p(-asked)).clamp(-LARGEST, LARGEST) as f32
            }
            None => f32::NAN,
        });
        local.values().into_iter().chain(retrieved.take(count)).chain(log_odds)
    }
}

/// Returns an example's features, in the order of [`LearnedPolicy::features`].
pub(super) fn values(kind: LearnedPolicy, example: &Example) -> impl Iterator<Item = f32> {
    kind.values(&example.local, &example.retrieved, &example.signals)
}
