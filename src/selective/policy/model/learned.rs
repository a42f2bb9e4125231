//! Kinds of learned policies, and their features.

use serde::{Deserialize, Serialize};

use crate::error::named;
use crate::selective::policy::Example;
use crate::selective::policy::features::{Local, Retrieved};

/// A learned policy, by its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnedPolicy {
    /// Decides from the contexts alone, before retrieval.
    #[default]
    Learned,
    /// Decides from the retrieved fragments too, whether to show them.
    LearnedScored,
}

named! {
    LearnedPolicy, "learned policy":
    Learned = "learned",
    LearnedScored = "learned-scored",
}

impl LearnedPolicy {
    /// Names and meanings of the features, in order.
    pub fn features(self) -> impl Iterator<Item = (String, &'static str)> {
        let local = Local::FEATURES.iter();
        let retrieved = match self {
            Self::Learned => &[],
            Self::LearnedScored => Retrieved::FEATURES,
        };
        let retrieved = retrieved.iter();
        local
            .map(|(name, meaning)| ((*name).to_owned(), *meaning))
            .chain(retrieved.map(|(name, meaning)| (format!("retrieved.{name}"), *meaning)))
    }
}

/// Returns an example's features, in the order of [`LearnedPolicy::features`].
pub(super) fn values(kind: LearnedPolicy, example: &Example) -> impl Iterator<Item = f32> {
    let retrieved = example.retrieved.values().into_iter();
    let count = match kind {
        LearnedPolicy::Learned => 0,
        LearnedPolicy::LearnedScored => retrieved.len(),
    };
    example.local.values().into_iter().chain(retrieved.take(count))
}
