//! Training, and scores for instances of repositories that were not trained on.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::calibration::{Calibration, Method};
use super::file::{PolicyModel, Training};
use super::fit::fit;
use super::{Additive, Kind, values};
use crate::error::{Error, Result};
use crate::selective::policy::measure::{area, expected_error};
use crate::selective::policy::{Example, Examples};

/// Parts that training data is cut into, at most.
const FOLDS: usize = 10;

/// The part of each example. All of a repository's are in one part; where there is one repository alone, its examples are
/// dealt out in runs.
fn folds(examples: &[&Example]) -> Vec<usize> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for example in examples {
        *sizes.entry(&example.repository).or_default() += 1;
    }
    if sizes.len() < 2 {
        let run = examples.len().div_ceil(FOLDS / 2).max(1);
        return (0..examples.len()).map(|place| place / run).collect();
    }
    // The largest first, each into the part that has least.
    let mut order: Vec<(&str, usize)> = sizes.into_iter().collect();
    order.sort_by_key(|(name, size)| (std::cmp::Reverse(*size), *name));
    let mut parts = vec![0; FOLDS.min(order.len())];
    let mut part_of = BTreeMap::new();
    for (name, size) in order {
        let least = (0..parts.len())
            .min_by_key(|&part| parts[part])
            .unwrap_or_default();
        parts[least] += size;
        part_of.insert(name, least);
    }
    examples
        .iter()
        .map(|example| part_of[example.repository.as_str()])
        .collect()
}

/// Scores of instances by models that each learned without their repository.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    /// Probabilities that retrieval helps, by one calibration of all scores: their order is that of the models' log-odds, and
    /// says how much is gained at each budget.
    pub ordered: Vec<f64>,
    /// The same by calibrations that each left the instance's repository out: what a threshold is held against, and what says
    /// how far probabilities hold.
    pub probabilities: Vec<f64>,
    /// That one calibration.
    pub calibration: Calibration,
}

/// Scores each example by a model that learned from the other repositories, and from `more` examples of other repositories.
///
/// # Errors
/// The labels of some training part are all alike.
pub fn hold_out(
    examples: &[Example],
    more: &[Example],
    kind: Kind,
    method: Method,
) -> Result<HeldOut> {
    let all: Vec<&Example> = examples.iter().chain(more).collect();
    let folds = folds(&all);
    let count = folds.iter().max().map_or(0, |last| last + 1);
    let models: Vec<Additive> = (0..count)
        .into_par_iter()
        .map(|part| {
            let others = all.iter().zip(&folds).filter(|(_, of)| **of != part);
            let others: Vec<&Example> = others.map(|(example, _)| *example).collect();
            let own = all.iter().zip(&folds).find(|(_, of)| **of == part);
            fit(&others, kind).map_err(|error| match own {
                Some((example, _)) => Error::Parameter {
                    name: "labels",
                    reason: format!(
                        "without those of repository {}: {error}; more repositories, or others, are needed to tell how good a policy is where it has not learned",
                        example.repository
                    ),
                },
                None => error,
            })
        })
        .collect::<Result<_>>()?;
    let score = |(example, part): (&Example, &usize)| {
        models[*part].log_odds(values(kind, example), &example.hashed)
    };
    let scores: Vec<f64> = all.iter().copied().zip(&folds).map(score).collect();
    let labels: Vec<bool> = all.iter().map(|example| example.label).collect();
    let pooled = Calibration::fit(method, &scores, &labels);
    let without: Vec<Calibration> = (0..count)
        .map(|part| {
            let others = (0..scores.len()).filter(|&place| folds[place] != part);
            let (scores, labels): (Vec<f64>, Vec<bool>) =
                others.map(|place| (scores[place], labels[place])).unzip();
            Calibration::fit(method, &scores, &labels)
        })
        .collect();
    let scores = &scores[..examples.len()];
    let calibrated = scores.iter().zip(&folds);
    Ok(HeldOut {
        ordered: scores
            .iter()
            .map(|score| pooled.probability(*score))
            .collect(),
        probabilities: calibrated
            .map(|(score, part)| without[*part].probability(*score))
            .collect(),
        calibration: pooled,
    })
}

/// Trains a policy on all examples. How good it is on repositories it has not seen, and its calibration, come from models
/// that were each trained without a part of the repositories.
///
/// # Errors
/// All labels are alike.
pub fn train(examples: &Examples, kind: Kind, method: Method) -> Result<PolicyModel> {
    let all: Vec<&Example> = examples.all.iter().collect();
    let model = fit(&all, kind)?;
    let labels: Vec<bool> = all.iter().map(|example| example.label).collect();
    let held_out = hold_out(&examples.all, &[], kind, method)?;
    let positive = labels.iter().filter(|label| **label).count();
    let training = Training {
        generation_model: examples.model.clone(),
        repositories: examples
            .repositories()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        instances: all.len(),
        positive,
        held_out_auc: area(&held_out.ordered, &labels),
        held_out_calibration_error: expected_error(&held_out.probabilities, &labels),
    };
    Ok(PolicyModel::new(
        kind,
        model,
        held_out.calibration,
        training,
    ))
}
