//! Where queries come from: no retrieval, the left context, a prediction, the ground truth.

use serde::{Deserialize, Serialize};

use crate::error::named;

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

named! {
    Mode, "mode":
    Without = "none",
    LeftContext = "rg1",
    Prediction = "rg-rg",
    GroundTruth = "gt",
    Given = "given",
}

/// The settings that RepoCoder compares, in the order of a results table.
pub const REPOCODER_MODES: [Mode; 4] =
    [Mode::Without, Mode::LeftContext, Mode::Prediction, Mode::GroundTruth];

impl Mode {
    /// Whether it searches at all.
    pub fn retrieves(self) -> bool {
        !matches!(self, Self::Without | Self::Given)
    }
}
