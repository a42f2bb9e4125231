//! Scores that policies give to instances, and the trained policies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use repoformer_core::policy::model::{CalibrationMethod, PolicyModel, hold_out};
use repoformer_core::policy::{Example, Policy};
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

/// Trained policies by kind.
#[derive(Debug, Default)]
pub struct TrainedPolicies(BTreeMap<&'static str, PolicyModel>);

impl TrainedPolicies {
    /// Reads the files of trained policies; the path `bundled` is the policy that is bundled with the program.
    ///
    /// # Errors
    /// A file cannot be read or is not a policy, or two policies are of the same kind.
    pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut models = BTreeMap::new();
        for path in paths {
            let model = PolicyModel::open(path.as_ref())?;
            let name = model.policy.name();
            if models.insert(name, model).is_some() {
                return Err(Error::from_refusal(
                    format!(
                        "{}: another trained policy is already of kind {name}",
                        path.as_ref().display()
                    ),
                    "pass one trained policy of each kind",
                ));
            }
        }
        Ok(Self(models))
    }

    /// Checks for each of these repositories that a learned policy without a file has other repositories to learn from.
    ///
    /// # Errors
    /// All instances belong to one repository, or name none.
    pub fn check_others<'r>(
        &self,
        policy: Policy,
        repositories: impl Iterator<Item = &'r str>,
    ) -> Result<()> {
        let Some(kind) = policy.as_learned().filter(|kind| !self.0.contains_key(kind.name()))
        else {
            return Ok(());
        };
        let repositories: BTreeSet<&str> = repositories.collect();
        if repositories.len() > 1 {
            return Ok(());
        }
        let are_named = repositories.iter().any(|name| !name.is_empty());
        let why = if are_named {
            "all instances belong to one repository"
        } else {
            "the tasks do not name their repositories"
        };
        Err(Error::from_refusal(
            format!("policy {kind}: {why}, so no other repository is left to train on"),
            message!["give a ", UserChoice::TrainedPolicy, ", or instances of more repositories"],
        ))
    }

    /// Returns warnings about policies that are applied to their training data, to another model's completions, to gains by
    /// another metric, or to scores of other fragments. `generator`, `metric` and `fragments` describe the examples, if they
    /// are known.
    pub fn warnings(
        &self,
        examples: &[Example],
        generator: Option<&str>,
        metric: Option<&str>,
        fragments: Option<&str>,
    ) -> Vec<Message> {
        let mut warnings = Vec::new();
        for model in self.0.values() {
            let (policy, training) = (model.policy, &model.training);
            let is_known = |name: &&String| examples.iter().any(|e| e.repository == **name);
            let both: Vec<&str> =
                training.repositories.iter().filter(is_known).map(String::as_str).collect();
            if !both.is_empty() {
                warnings.push(format!(
                    "policy {policy} was trained on {} of these repositories ({}); without its \
                     file, each repository is scored by a policy trained on the others",
                    both.len(),
                    both.join(", ")
                ));
            }
            if let (Some(trained), Some(here)) = (&training.generation_model, generator)
                && trained != here
            {
                warnings.push(format!(
                    "policy {policy} was trained on completions of {trained}, but these \
                     completions are of {here}"
                ));
            }
            if let (Some(trained), Some(here)) = (&training.metric, metric)
                && trained != here
            {
                warnings.push(format!(
                    "policy {policy} was trained on gains in metric {trained}, but these gains are in {here}"
                ));
            }
            warnings.extend(fragments.and_then(|here| model.other_fragments(here)));
        }
        warnings.into_iter().map(Into::into).collect()
    }
}

/// Scores of the instances by one policy.
#[derive(Debug, Clone)]
pub struct PolicyScores {
    /// Policy.
    pub policy: Policy,
    /// Scores that order the instances; `None` for an instance that lacks the policy's signal.
    pub ordered: Vec<Option<f64>>,
    /// Probabilities to compare with thresholds, for policies that have them.
    pub probabilities: Option<Vec<Option<f64>>>,
}

impl PolicyScores {
    /// Returns the number of instances without a score.
    pub fn lacking(&self) -> usize {
        self.ordered.iter().filter(|score| score.is_none()).count()
    }
}

/// Scores instances by one policy. A learned policy without a file learns from the other repositories of these instances, and
/// from `more`.
///
/// # Errors
/// No training data is left.
pub fn score(
    policy: Policy,
    examples: &[Example],
    more: &[Example],
    trained: &TrainedPolicies,
    method: CalibrationMethod,
    seed: u64,
) -> Result<PolicyScores> {
    let Some(kind) = policy.as_learned() else {
        let scores: Vec<_> = examples.iter().map(|example| policy.score(example, seed)).collect();
        let probabilities = policy.is_probability().then(|| scores.clone());
        return Ok(PolicyScores { policy, ordered: scores, probabilities });
    };
    if let Some(model) = trained.0.get(kind.name()) {
        let scores: Vec<_> = examples.iter().map(|e| model.probability(e)).collect();
        return Ok(PolicyScores { policy, ordered: scores.clone(), probabilities: Some(scores) });
    }
    let some = |examples: &[Example]| -> Vec<Example> {
        examples.iter().filter(|example| kind.has_data(example)).cloned().collect()
    };
    let (known, more) = (some(examples), some(more));
    if known.is_empty() {
        let missing = vec![None; examples.len()];
        return Ok(PolicyScores { policy, ordered: missing.clone(), probabilities: Some(missing) });
    }
    let all = known.iter().chain(&more);
    trained.check_others(policy, all.map(|example| example.repository.as_str()))?;
    let held_out = hold_out(&known, &more, kind, method)?;
    let spread = |scores: Vec<f64>| -> Vec<Option<f64>> {
        let mut scores = scores.into_iter();
        examples.iter().map(|example| kind.has_data(example).then(|| scores.next())?).collect()
    };
    let probabilities = Some(spread(held_out.probabilities));
    Ok(PolicyScores { policy, ordered: spread(held_out.ordered), probabilities })
}
