//! Scores of trials: completions, or probabilities, of prompts that show some of an instance's fragments.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_core::label::{FragmentGains, FragmentSet, Label, Trial};
use repoformer_core::repository::Shard;
use repoformer_core::task::TaskSet;
use repoformer_core::task::cross_file::CrossFile;
use repoformer_store::error::{Error, Result};

use super::instances::Instances;
use super::judge::{Scorer, check_sample_counts};
use super::likelihoods::likelihoods;
use super::summary::JudgeSummary;
use crate::predictions;
use crate::score::target_digest;

const AGAIN: &str = "write the tasks of these instances again, and complete them";

/// Scores of the trials of each instance, by the instance's row.
#[derive(Debug, Default)]
pub(super) struct TrialScores(BTreeMap<usize, Vec<ScoredTrial>>);

#[derive(Debug)]
struct ScoredTrial {
    shown: FragmentSet,
    /// Score by the labels' criterion.
    score: f64,
    /// Digest of the texts that the trial shows.
    content: u64,
}

impl TrialScores {
    /// Reads the scores of the trials in a file from their predictions, or from the probabilities of their targets.
    pub(super) fn add(
        &mut self,
        [path, answers]: [&Path; 2],
        instances: &TaskSet,
        scorer: &Scorer<'_>,
        judged: &mut JudgeSummary,
    ) -> Result<()> {
        let JudgeSummary { problems, warnings, .. } = judged;
        let trials = Instances::read(path, Shard::WHOLE, problems)?;
        let is_likelihood = scorer.is_likelihood();
        let (likely, samples) = if is_likelihood {
            (likelihoods(answers, &trials.tasks, problems, warnings)?, Vec::new())
        } else {
            let joined = predictions::read(answers, &trials.tasks)?;
            problems.extend(joined.problems);
            warnings.extend(predictions::warning(answers, &joined.numbered));
            check_sample_counts(answers, &trials.tasks, &joined.predictions)?;
            (Vec::new(), joined.predictions)
        };
        trials.for_each_batch(&mut |batch| {
            let tasks = TaskSet::new(path.to_owned(), batch.tasks);
            let scores: Vec<Option<f64>> = if is_likelihood {
                let of_target = |(place, label): (&usize, &Label)| {
                    let found = likely[*place]?;
                    let is_other = found.is_of_other(target_digest(&label.ground_truth));
                    (!is_other).then_some(found.per_character)
                };
                batch.places.iter().zip(&batch.labels).map(of_target).collect()
            } else {
                let samples: Vec<&[String]> =
                    batch.places.iter().map(|&place| &*samples[place]).collect();
                scorer.score(&tasks, &samples)?.into_iter().map(|score| Some(score?.es)).collect()
            };
            for ((task, label), score) in tasks.tasks().iter().zip(&batch.labels).zip(scores) {
                let Some(trial) = Trial::of_label(label) else {
                    judged
                        .problems
                        .push(tasks.error(task, "it does not show the fragments of an instance"));
                    continue;
                };
                let place = instances.tasks().binary_search_by_key(&trial.row, |task| task.row);
                let instance = place.ok().map(|place| &instances.tasks()[place]);
                if instance.is_none_or(|instance| instance.id != trial.instance) {
                    let reason = format!("{} is not one of the instances", trial.instance);
                    judged.problems.push(tasks.error(task, reason));
                    continue;
                }
                let Some(score) = score else {
                    judged.fragments.unanswered += 1;
                    continue;
                };
                let content = content(label, &label.cross_file);
                let known = self.0.entry(trial.row).or_default();
                if known.iter().any(|other| other.shown == trial.shown) {
                    judged
                        .problems
                        .push(tasks.error(task, "an earlier task shows the same fragments"));
                    continue;
                }
                known.push(ScoredTrial { shown: trial.shown, score, content });
            }
            Ok(())
        })
    }

    /// Returns the gains of an instance's fragments over its score without retrieval, or the reason why its trials belong to
    /// another instance.
    pub(super) fn gains(
        &self,
        row: usize,
        label: &Label,
        without: f64,
    ) -> Result<FragmentGains, String> {
        let mut gains = FragmentGains::default();
        for trial in self.0.get(&row).into_iter().flatten() {
            if content(label, &label.shown(trial.shown)) != trial.content {
                let shown = trial.shown.to_value();
                return Err(format!(
                    "its fragments {shown} were completed with other text: {AGAIN}"
                ));
            }
            gains.insert(trial.shown, trial.score - without);
        }
        Ok(gains)
    }
}

/// Returns the digest of an instance's texts with a context.
fn content(label: &Label, shown: &CrossFile) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for text in [&label.prompt, &label.ground_truth, &label.right_context, &shown.text] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Returns the error for trials that were completed in a mode that retrieves anew.
pub(super) fn wrong_mode(answers: &Path) -> Error {
    Error::artifact(
        answers,
        "has predictions of a mode that retrieves other fragments than the tasks name",
        "complete the tasks in mode given",
    )
}
