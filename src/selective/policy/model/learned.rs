//! Kinds of learned policies, and their features.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::parse_by_name;
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

impl LearnedPolicy {
    /// All learned policies.
    pub const ALL: [Self; 2] = [Self::Learned, Self::LearnedScored];

    /// Name of the policy, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learned => "learned",
            Self::LearnedScored => "learned-scored",
        }
    }

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

impl fmt::Display for LearnedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

parse_by_name!(LearnedPolicy, "learned policy");

/// Returns an example's features, in the order of [`LearnedPolicy::features`].
pub(super) fn values(kind: LearnedPolicy, example: &Example) -> impl Iterator<Item = f32> {
    let retrieved = example.retrieved.values().into_iter();
    let count = match kind {
        LearnedPolicy::Learned => 0,
        LearnedPolicy::LearnedScored => retrieved.len(),
    };
    example.local.values().into_iter().chain(retrieved.take(count))
}
