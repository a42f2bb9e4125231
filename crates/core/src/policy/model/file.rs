//! Files of trained policies.

use std::path::Path;

use repoformer_store::artifact::write_file;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl;
use repoformer_store::seal::{self, Seal};
use repoformer_text::counts::format_count;
use repoformer_text::message::UserChoice;
use serde::{Deserialize, Serialize};

use super::learned::{LearnedPolicy, values};
use super::{AdditiveModel, Calibration};
use crate::label::Signals;
use crate::policy::Example;
use crate::policy::features::{BUCKETS, Context, Local, Request, Retrieved, WordBuckets};

/// Type name stored in the file.
const FILE: &str = "repoformer-policy";
/// Name of the bundled policy.
const BUNDLED: &str = "bundled";
/// Version, raised whenever a change of the features or of the model changes decisions.
const VERSION: u32 = 1;

/// Training data of a policy, and its quality on repositories that it was not trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Model whose completions were judged.
    pub generation_model: Option<String>,
    /// Metric by which they were judged, if the labels name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Kind of the instances' fragments, if the labels name it: scores of other kinds have another scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments: Option<String>,
    /// Repositories of the instances.
    pub repositories: Vec<String>,
    /// Number of instances.
    pub instances: usize,
    /// Number of instances that retrieval helped.
    pub positive: usize,
    /// Area under the receiver operating characteristic on held-out instances.
    pub held_out_auc: f64,
    /// Expected calibration error on held-out instances.
    pub held_out_calibration_error: f64,
}

impl Training {
    /// Returns the data and the quality for the end of a sentence, such as: `90 instances of 3 repositories, 33.33 % positive,
    /// by model m, …`.
    pub fn summary(&self) -> String {
        format!(
            "{} of {}, {:.2} % positive, by model {}{}; held out: AUC {:.3}, calibration error {:.3}",
            format_count(self.instances as u64, "instance"),
            format_count(self.repositories.len() as u64, "repository"),
            100.0 * self.positive as f64 / self.instances.max(1) as f64,
            self.generation_model.as_deref().unwrap_or("(not named)"),
            self.fragments.as_ref().map_or(String::new(), |fragments| format!(", {fragments}")),
            self.held_out_auc,
            self.held_out_calibration_error,
        )
    }
}

/// A trained policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyModel {
    file: String,
    version: u32,
    /// Kind of policy.
    pub policy: LearnedPolicy,
    /// Training data and quality.
    pub training: Training,
    /// Map from log-odds to probabilities.
    pub calibration: Calibration,
    /// Model of the log-odds.
    pub model: AdditiveModel,
}

/// Part of a file that every version has.
#[derive(Deserialize)]
struct Head {
    file: String,
    version: u32,
}

impl PolicyModel {
    pub(super) fn new(
        policy: LearnedPolicy,
        model: AdditiveModel,
        calibration: Calibration,
        training: Training,
    ) -> Self {
        Self { file: FILE.into(), version: VERSION, policy, training, calibration, model }
    }

    /// Returns the probability that retrieval helps a request; `None` if a signal that the policy needs is missing.
    pub fn decide(&self, request: Request<'_>, signals: Signals) -> Option<f64> {
        if !self.policy.has_signals(&signals) {
            return None;
        }
        let context = Context::new(request);
        let words = if self.model.words.is_empty() {
            WordBuckets::default()
        } else {
            WordBuckets::new(&context)
        };
        let retrieved = if self.policy.looks_at_fragments() {
            Retrieved::new(&context)
        } else {
            Retrieved::default()
        };
        let local = Local::from_context(&context);
        let values = self.policy.values(&local, &retrieved, &signals);
        Some(self.calibration.probability(self.model.log_odds(values, &words)))
    }

    /// Returns the probability that retrieval helps an example; `None` if data that the policy needs are missing.
    pub fn probability(&self, example: &Example) -> Option<f64> {
        self.policy.has_data(example).then(|| {
            let values = values(self.policy, example);
            self.calibration.probability(self.model.log_odds(values, &example.hashed))
        })
    }

    /// Returns a warning if the policy uses the scores of fragments and was trained on fragments of another kind than `here`.
    /// `None` if it was not, or if its training data does not name the kind.
    pub fn other_fragments(&self, here: &str) -> Option<String> {
        let trained = self.training.fragments.as_deref().filter(|trained| *trained != here)?;
        self.policy.looks_at_fragments().then(|| {
            format!(
                "policy {} was trained on scores of {trained}, but these scores are of {here}",
                self.policy
            )
        })
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let mut text = seal::seal(serde_json::to_vec_pretty(self).unwrap_or_default());
        text.push(b'\n');
        String::from_utf8(text).unwrap_or_default()
    }

    /// Writes a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_file(path, self.to_text().as_bytes())
    }

    /// Reads a file, or the bundled policy if the path is `bundled` and no file has that name.
    ///
    /// # Errors
    /// As for [`PolicyModel::read`].
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == BUNDLED {
            return Self::load_bundled();
        }
        Self::read(path)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is not a policy, or has another version or other features than this version of the program.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(path, &jsonl::read(path)?)
    }

    /// Returns the bundled policy `learned-scored`.
    ///
    /// Its labels are chunks of 41 Python packages, completed by a small fill-in-the-middle model. Retrieval counts as helping
    /// if it raises the edit similarity by more than 0.1. `scripts/trained.py --size full --until policies-labels` rebuilds the
    /// policy (docs/results.md).
    ///
    /// # Errors
    /// None in practice: a test reads the policy.
    pub fn load_bundled() -> Result<Self> {
        Self::parse(Path::new(BUNDLED), include_bytes!("bundled/learned-scored.json"))
    }

    fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let wrong = |reason: String| Error::artifact(path, reason, UserChoice::PolicyTraining);
        let head: Head = serde_json::from_slice(text)
            .map_err(|e| wrong(format!("this is not a trained policy ({e})")))?;
        if head.file != FILE {
            return Err(wrong("this is not a trained policy".into()));
        }
        if head.version != VERSION {
            return Err(wrong(format!(
                "this policy has format version {}, but this program reads version {VERSION}",
                head.version
            )));
        }
        if seal::check(text) == Seal::Broken {
            let reason = "this policy is damaged: its checksum does not match; if you edited it, remove its field 'record_checksum'";
            return Err(wrong(reason.into()));
        }
        let policy: Self = serde_json::from_slice(text)
            .map_err(|e| wrong(format!("this policy is damaged: {e}")))?;
        let known: Vec<String> = policy.policy.features().map(|(name, _)| name).collect();
        let curves = &policy.model.curves;
        let trained: Vec<&String> = curves.iter().map(|curve| &curve.feature).collect();
        let place = (0..known.len().max(trained.len()))
            .find(|&place| known.get(place) != trained.get(place).copied());
        if let Some(place) = place {
            return Err(wrong(match (known.get(place), trained.get(place)) {
                (Some(known), Some(trained)) => format!(
                    "this policy was trained on other features: it has '{trained}', this program \
                     has '{known}'"
                ),
                (Some(known), None) => {
                    format!("this policy was trained without the feature '{known}'")
                }
                (_, trained) => format!(
                    "this policy was trained on a feature that this program does not have: '{}'",
                    trained.map_or("", |name| name.as_str())
                ),
            }));
        }
        if ![0, BUCKETS].contains(&policy.model.words.len()) {
            return Err(wrong(format!(
                "this policy has {} word buckets, but this program uses {BUCKETS}",
                policy.model.words.len()
            )));
        }
        if let Calibration::Isotonic { points } = &policy.calibration
            && (points.is_empty() || !points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1))
        {
            let reason = "this policy is damaged: its calibration curve does not increase";
            return Err(wrong(reason.into()));
        }
        let Training { held_out_auc, held_out_calibration_error, .. } = policy.training;
        let points = match &policy.calibration {
            Calibration::Isotonic { points } => &points[..],
            Calibration::Platt { .. } => &[],
        };
        let shares = points.iter().map(|point| ("calibration", point.1)).chain([
            ("training.held_out_auc", held_out_auc),
            ("training.held_out_calibration_error", held_out_calibration_error),
        ]);
        for (field, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(wrong(format!(
                    "this policy is damaged: field '{field}' must be between 0 and 1, not {share}"
                )));
            }
        }
        Ok(policy)
    }
}
