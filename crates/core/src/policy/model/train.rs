//! Trains policies, and scores instances with models that were not trained on their repository.

use std::collections::BTreeMap;

use repoformer_store::content::ContentDigest;
use repoformer_store::error::{Error, Result};
use repoformer_store::progress::Work;

use super::AdditiveModel;
use super::calibration::{Calibration, CalibrationMethod};
use super::file::{PolicyModel, Training};
use super::fit::fit;
use super::learned::{LearnedPolicy, values};
use crate::policy::measure::{area, expected_error};
use crate::policy::{Example, Examples};
use crate::repository::parallel;

/// Maximum number of folds.
const FOLDS: usize = 10;

/// Returns the fold of each example. All examples of a repository are in one fold, but a single repository is split into runs.
fn folds(examples: &[&Example]) -> Vec<usize> {
    let mut sizes: BTreeMap<&str, (usize, ContentDigest)> = BTreeMap::new();
    for example in examples {
        let (size, first) = sizes.entry(&example.repository).or_insert((0, example.content));
        *size += 1;
        *first = example.content.min(*first);
    }
    if sizes.len() < 2 {
        let run = examples.len().div_ceil(FOLDS / 2).max(1);
        return (0..examples.len()).map(|place| place / run).collect();
    }
    // Assign the largest repositories first, each to the smallest fold. Content orders repositories of equal size.
    let mut order: Vec<(&str, (usize, ContentDigest))> = sizes.into_iter().collect();
    order.sort_by_key(|(name, (size, first))| (std::cmp::Reverse(*size), *first, *name));
    let mut parts = vec![0; FOLDS.min(order.len())];
    let mut part_of = BTreeMap::new();
    for (name, (size, _)) in order {
        let least = (0..parts.len()).min_by_key(|&part| parts[part]).unwrap_or_default();
        parts[least] += size;
        part_of.insert(name, least);
    }
    examples.iter().map(|example| part_of[example.repository.as_str()]).collect()
}

/// Scores of instances by models that were trained without their repository.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutScores {
    /// Probabilities from one calibration of all scores. Their order is the order of the models' log-odds, and determines the
    /// gain at each budget.
    pub ordered: Vec<f64>,
    /// Probabilities from calibrations without the instance's repository. They are compared with thresholds, and they measure
    /// the calibration.
    pub probabilities: Vec<f64>,
    /// Calibration of all scores.
    pub calibration: Calibration,
}

/// Scores each example by a model trained on the other repositories, and on `more` examples of other repositories. A model that
/// uses fragments is not trained on fragments that a query with the target retrieved.
///
/// # Errors
/// The labels of a training set are all equal, or an example lacks the policy's data.
pub fn hold_out(
    examples: &[Example],
    more: &[Example],
    kind: LearnedPolicy,
    method: CalibrationMethod,
) -> Result<HeldOutScores> {
    let all: Vec<&Example> = examples.iter().chain(more).collect();
    let folds = folds(&all);
    let count = folds.iter().max().map_or(0, |last| last + 1);
    let teaches = |example: &Example| !kind.looks_at_fragments() || !example.query_has_target;
    let work = Work::new(format!("train policy {}", kind.name()), "folds", count);
    let models = parallel::map(0..count, |part| {
        let others = all.iter().zip(&folds).filter(|(one, of)| **of != part && teaches(one));
        let others: Vec<&Example> = others.map(|(example, _)| *example).collect();
        let own = all.iter().zip(&folds).find(|(_, of)| **of == part);
        let fitted = fit(&others, kind);
        work.advance(1);
        fitted.map_err(|error| match own {
            Some((example, _)) => Error::parameter(
                "labels",
                format!(
                    "when repository {} is held out: {error}; add labels of more repositories",
                    example.repository
                ),
            ),
            None => error,
        })
    });
    let models: Vec<AdditiveModel> = models.into_iter().collect::<Result<_>>()?;
    let score = |(example, part): (&Example, &usize)| {
        models[*part].log_odds(values(kind, example), &example.hashed)
    };
    let scores: Vec<f64> = all.iter().copied().zip(&folds).map(score).collect();
    // Calibrates on all folds except `part`.
    let calibration = |part: Option<usize>| {
        let others = (0..scores.len()).filter(|&at| Some(folds[at]) != part && teaches(all[at]));
        let (scores, labels): (Vec<f64>, Vec<bool>) =
            others.map(|place| (scores[place], all[place].label)).unzip();
        Calibration::fit(method, &scores, &labels)
    };
    let pooled = calibration(None);
    let without: Vec<Calibration> = (0..count).map(|part| calibration(Some(part))).collect();
    let scores = &scores[..examples.len()];
    let calibrated = scores.iter().zip(&folds);
    Ok(HeldOutScores {
        ordered: scores.iter().map(|score| pooled.probability(*score)).collect(),
        probabilities: calibrated.map(|(score, part)| without[*part].probability(*score)).collect(),
        calibration: pooled,
    })
}

/// Trains a policy on all examples. Its calibration and its held-out quality come from models that were each trained without
/// some of the repositories.
///
/// # Errors
/// All labels are equal, or an example lacks the policy's data.
pub fn train(
    examples: &Examples,
    kind: LearnedPolicy,
    method: CalibrationMethod,
) -> Result<PolicyModel> {
    let all: Vec<&Example> = examples.all.iter().collect();
    let model = fit(&all, kind)?;
    let labels: Vec<bool> = all.iter().map(|example| example.label).collect();
    let held_out = hold_out(&examples.all, &[], kind, method)?;
    let positive = labels.iter().filter(|label| **label).count();
    let training = Training {
        generation_model: examples.model.clone(),
        metric: examples.metric.clone(),
        fragments: examples.fragments.clone(),
        repositories: examples.repositories().into_iter().map(str::to_owned).collect(),
        instances: all.len(),
        positive,
        held_out_auc: area(&held_out.ordered, &labels),
        held_out_calibration_error: expected_error(&held_out.probabilities, &labels),
    };
    Ok(PolicyModel::new(kind, model, held_out.calibration, training))
}
