//! The learned policies: an additive model of the features, calibrated on repositories that it did not learn from.

mod additive;
mod calibration;
mod file;
mod fit;
#[cfg(test)]
mod tests;
mod train;

pub use additive::{Additive, Curve};
pub use calibration::{Calibration, Method};
pub use file::{PolicyModel, Training};
pub use train::{HeldOut, hold_out, train};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Example;
use super::features::{Local, Retrieved};
use crate::error::Error;

/// What a learned policy decides from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The contexts alone, before retrieval.
    #[default]
    Learned,
    /// What was retrieved too: whether to show it.
    LearnedScored,
}

impl Kind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learned => "learned",
            Self::LearnedScored => "learned-scored",
        }
    }

    /// Name and meaning of each feature, in order.
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Learned, Self::LearnedScored]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| Error::Parameter {
                name: "policy",
                reason: format!("'{name}' is not one of learned, learned-scored"),
            })
    }
}

/// An example's features, in the order of [`Kind::features`].
fn values(kind: Kind, example: &Example) -> impl Iterator<Item = f32> {
    let retrieved = example.retrieved.values().into_iter();
    let count = match kind {
        Kind::Learned => 0,
        Kind::LearnedScored => retrieved.len(),
    };
    example
        .local
        .values()
        .into_iter()
        .chain(retrieved.take(count))
}
