//! Where queries come from: no retrieval, the left context, a prediction, the ground truth.

use serde::{Deserialize, Serialize};

use crate::error::parse_by_name;

/// A setting of the experiment: where the query comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// No retrieval: the task's own prompt.
    #[serde(rename = "none")]
    Without,
    /// Retrieve once, with the lines before the hole (RepoCoder's RG1).
    #[serde(rename = "rg1")]
    LeftContext,
    /// Retrieve again, with the lines before the hole and a first prediction (RepoCoder).
    #[serde(rename = "rg-rg")]
    Prediction,
    /// Retrieve with the lines around the hole, the target among them: the oracle.
    #[serde(rename = "gt")]
    GroundTruth,
    /// No retrieval either: the cross-file context that the task's own file carries (CrossCodeEval's are without
    /// repositories).
    #[serde(rename = "given")]
    Given,
}

/// The settings that RepoCoder compares, in the order of a results table.
pub const REPOCODER_MODES: [Mode; 4] =
    [Mode::Without, Mode::LeftContext, Mode::Prediction, Mode::GroundTruth];

impl Mode {
    /// All of them, in the order of a results table.
    pub const ALL: [Self; 5] =
        [Self::Without, Self::LeftContext, Self::Prediction, Self::GroundTruth, Self::Given];

    /// The name on the command line and in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Without => "none",
            Self::LeftContext => "rg1",
            Self::Prediction => "rg-rg",
            Self::GroundTruth => "gt",
            Self::Given => "given",
        }
    }

    /// Whether it searches at all.
    pub fn retrieves(self) -> bool {
        !matches!(self, Self::Without | Self::Given)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

parse_by_name!(Mode, "mode");
