//! Modes: the source of a query (no retrieval, the left context, a prediction, or the ground truth).

use repoformer_text::named;
use serde::{Deserialize, Serialize};

/// Source of the query, as a setting of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// No retrieval: the task's own prompt.
    #[serde(rename = "none")]
    Without,
    /// Retrieve once, with the lines before the hole (RepoCoder's RG1).
    #[serde(rename = "rg1", alias = "r-g")]
    LeftContext,
    /// Retrieve again, with the lines before the hole and a first prediction (RepoCoder).
    #[serde(rename = "rg-rg", alias = "r-g-r-g")]
    Prediction,
    /// Retrieve with the lines around the hole, including the target: the oracle.
    #[serde(rename = "gt")]
    GroundTruth,
    /// No retrieval either: use the cross-file context that the task's own file has (CrossCodeEval's tasks come without
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
    Given = "given"; also
    "r-g" => LeftContext,
    "r-g-r-g" => Prediction,
}

/// Modes that RepoCoder compares, in the order of a results table.
pub const REPOCODER_MODES: [Mode; 4] =
    [Mode::Without, Mode::LeftContext, Mode::Prediction, Mode::GroundTruth];

impl Mode {
    /// Names in RepoCoder's released program, which are accepted like [`name`](Self::name).
    pub const ALIASES: [&'static str; 2] = ["r-g", "r-g-r-g"];

    /// Returns the name of the mode with this name or alias; returns any other text unchanged.
    pub fn canonical(name: &str) -> &str {
        match name.parse::<Self>() {
            Ok(mode) => mode.name(),
            Err(_) => name,
        }
    }

    /// Returns true if the mode searches at all.
    pub fn retrieves(self) -> bool {
        !matches!(self, Self::Without | Self::Given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alias_is_another_name_of_a_mode() {
        let modes = Mode::ALIASES.map(|alias| alias.parse::<Mode>().unwrap());
        assert_eq!(modes, [Mode::LeftContext, Mode::Prediction]);
        assert_eq!(Mode::ALIASES.map(Mode::canonical), ["rg1", "rg-rg"]);
        for (alias, mode) in Mode::ALIASES.into_iter().zip(modes) {
            assert_eq!(serde_json::from_str::<Mode>(&format!("\"{alias}\"")).unwrap(), mode);
        }
        assert_eq!(Mode::canonical("rg-rg-2"), "rg-rg-2");
        let error = "rg2".parse::<Mode>().unwrap_err().to_string();
        assert!(error.ends_with("known: none, rg1, rg-rg, gt, given"), "{error}");
    }
}
