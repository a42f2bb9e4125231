//! A trained policy as a file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Additive, Calibration, Kind, values};
use crate::error::{Error, Result};
use crate::selective::policy::Example;
use crate::selective::policy::features::{BUCKETS, Context, Hashed, Local, Request, Retrieved};
use crate::store::artifact::write_file;

/// What the file says it is.
const FILE: &str = "repoformer-policy";
/// Raised whenever a change of the features or of the model changes decisions.
const VERSION: u32 = 1;

/// What a policy was trained on, and how good it is on repositories that it did not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Whose completions judged the instances.
    pub generation_model: Option<String>,
    /// Their repositories.
    pub repositories: Vec<String>,
    /// How many instances.
    pub instances: usize,
    /// How many of them retrieval helped.
    pub positive: usize,
    /// Chance that of two held-out instances, one helped and one not, the helped one is scored higher.
    pub held_out_auc: f64,
    /// Mean distance between probability and share of helped ones, in ten bins of held-out instances.
    pub held_out_calibration_error: f64,
}

/// A trained policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyModel {
    file: String,
    version: u32,
    /// What it decides from.
    pub policy: Kind,
    /// What it was trained on.
    pub training: Training,
    /// From log-odds to probabilities.
    pub calibration: Calibration,
    /// The model itself.
    pub model: Additive,
}

/// The part of a file that every version has.
#[derive(Deserialize)]
struct Head {
    file: String,
    version: u32,
}

impl PolicyModel {
    pub(super) fn new(
        policy: Kind,
        model: Additive,
        calibration: Calibration,
        training: Training,
    ) -> Self {
        Self {
            file: FILE.into(),
            version: VERSION,
            policy,
            training,
            calibration,
            model,
        }
    }

    /// The probability that retrieval helps a request, from text to number.
    pub fn decide(&self, request: Request<'_>) -> f64 {
        let context = Context::of(request);
        let local = Local::of(&context).values().into_iter();
        let words = match self.model.words.is_empty() {
            true => Hashed::default(),
            false => Hashed::of(&context),
        };
        let log_odds = match self.policy {
            Kind::Learned => self.model.log_odds(local, &words),
            Kind::LearnedScored => {
                let retrieved = Retrieved::of(&context).values();
                self.model.log_odds(local.chain(retrieved), &words)
            }
        };
        self.calibration.probability(log_odds)
    }

    /// The probability that retrieval helps an example.
    pub fn probability(&self, example: &Example) -> f64 {
        let values = values(self.policy, example);
        self.calibration
            .probability(self.model.log_odds(values, &example.hashed))
    }

    /// The text of its file.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Writes its file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_file(path, self.to_text().as_bytes())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is none of a policy, or one of another version or of other features than this program's.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).map_err(|e| Error::reading(path, "read this policy", e))?;
        let wrong = |reason: String, hint: &str| Error::Artifact {
            path: path.to_owned(),
            reason,
            hint: hint.into(),
        };
        let again = "make it again with `repoformer policy train --labels FILE -o FILE`";
        let head: Head = serde_json::from_slice(&text)
            .map_err(|e| wrong(format!("this is no trained policy ({e})"), again))?;
        if head.file != FILE {
            return Err(wrong("this is no trained policy".into(), again));
        }
        if head.version != VERSION {
            let reason = format!(
                "this policy is of version {}, and this program's are of version {VERSION}",
                head.version
            );
            return Err(wrong(reason, again));
        }
        let policy: Self = serde_json::from_slice(&text)
            .map_err(|e| wrong(format!("this policy is damaged: {e}"), again))?;
        let trained = policy
            .model
            .curves
            .iter()
            .map(|curve| curve.feature.clone());
        let known = policy.policy.features().map(|(name, _)| name);
        let mut pairs = known
            .map(Some)
            .chain(std::iter::repeat(None))
            .zip(trained.map(Some).chain(std::iter::repeat(None)));
        let other = pairs.find(|(known, trained)| known != trained || known.is_none());
        if let Some((known, trained)) = other
            && known != trained
        {
            let reason = match (known, trained) {
                (Some(known), Some(trained)) => format!(
                    "this policy was trained on other features: it has '{trained}' where this program has '{known}'"
                ),
                (Some(known), None) => {
                    format!("this policy was trained without the feature '{known}'")
                }
                (_, trained) => format!(
                    "this policy was trained on a feature that this program does not have: '{}'",
                    trained.unwrap_or_default()
                ),
            };
            return Err(wrong(reason, again));
        }
        if ![0, BUCKETS].contains(&policy.model.words.len()) {
            let reason = format!(
                "this policy has {} buckets of words, and this program {BUCKETS}",
                policy.model.words.len()
            );
            return Err(wrong(reason, again));
        }
        if let Calibration::Isotonic { points } = &policy.calibration
            && (points.is_empty() || !points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1))
        {
            return Err(wrong(
                "this policy is damaged: its calibration does not rise".into(),
                again,
            ));
        }
        Ok(policy)
    }
}
