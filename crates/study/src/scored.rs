//! The scores that policies give instances, and the trained policies among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use repoformer_core::policy::model::{CalibrationMethod, PolicyModel, hold_out};
use repoformer_core::policy::{Example, Policy};
use repoformer_pipeline::Messages;
use repoformer_store::error::Error;

use crate::fail;

/// Name of the trained policy that comes along.
const BUNDLED: &str = "bundled";

/// Trained policies by kind.
#[derive(Debug, Default)]
pub struct Trained(BTreeMap<&'static str, PolicyModel>);

impl Trained {
    pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut models = BTreeMap::new();
        for path in paths {
            let model = read_model(path.as_ref())?;
            let name = model.policy.name();
            if models.insert(name, model).is_some() {
                return fail(
                    format!("{}: two trained policies are of kind {name}", path.as_ref().display()),
                    "give one of each kind",
                );
            }
        }
        Ok(Self(models))
    }

    /// Checks that a learned policy without a file has other repositories to learn from, for each of these.
    ///
    /// # Errors
    /// All are of one repository, or of none.
    pub fn check_others<'r>(
        &self,
        policy: Policy,
        repositories: impl Iterator<Item = &'r str>,
    ) -> Result<()> {
        let Some(kind) = policy.learned().filter(|kind| !self.0.contains_key(kind.name())) else {
            return Ok(());
        };
        let repositories: BTreeSet<&str> = repositories.collect();
        if repositories.len() > 1 {
            return Ok(());
        }
        let are_named = repositories.iter().any(|name| !name.is_empty());
        let why = if are_named {
            "all instances are of one repository"
        } else {
            "the tasks name no repository"
        };
        fail(
            format!("policy {kind}: {why}, so there is no other to train on"),
            "give a trained policy (--model FILE; for `run`, --policy-model FILE), or instances of more repositories",
        )
    }

    /// Warns of policies applied to their training data, to another model's completions, to gains by another metric, or to scores of
    /// other fragments.
    pub fn warn(
        &self,
        examples: &[Example],
        generator: Option<&str>,
        metric: Option<&str>,
        fragments: Option<&str>,
        messages: &dyn Messages,
    ) {
        for model in self.0.values() {
            let is_known = |name: &&String| examples.iter().any(|e| e.repository == **name);
            let both: Vec<&str> =
                (model.training.repositories.iter()).filter(is_known).map(String::as_str).collect();
            if !both.is_empty() {
                messages.warning(format!(
                    "policy {} was trained on {} of these repositories ({}); without its file, each repository is scored after training on the others",
                    model.policy,
                    both.len(),
                    both.join(", ")
                ).into());
            }
            if let (Some(trained), Some(here)) = (&model.training.generation_model, generator)
                && trained != here
            {
                messages.warning(format!(
                    "policy {} was trained on completions of {trained}, but these are of {here}",
                    model.policy
                ).into());
            }
            if let (Some(trained), Some(here)) = (&model.training.metric, metric)
                && trained != here
            {
                messages.warning(format!(
                    "policy {} was trained on gains by metric {trained}, but these are by {here}",
                    model.policy
                ).into());
            }
            if let Some(difference) = fragments.and_then(|here| other_fragments(model, here)) {
                messages.warning(difference.into());
            }
        }
    }
}

/// Says that a policy which looks at the scores of fragments learned from those of others.
pub fn other_fragments(model: &PolicyModel, here: &str) -> Option<String> {
    let trained = model.training.fragments.as_deref().filter(|trained| *trained != here)?;
    model.policy.looks_at_fragments().then(|| {
        format!("policy {} was trained on scores of {trained}, but these are {here}", model.policy)
    })
}

/// Reads a trained policy; `bundled` is the one that comes along.
pub fn read_model(path: &Path) -> Result<PolicyModel> {
    if path.as_os_str() == BUNDLED && !path.is_file() {
        return Ok(PolicyModel::bundled()?);
    }
    PolicyModel::read(path).map_err(|error| match &error {
        Error::Artifact { hint, .. } => {
            let hint = hint.clone().then(": `repoformer policy train --labels FILE -o FILE`");
            Error::refused(error.message(), hint).into()
        }
        _ => error.into(),
    })
}

/// Names the data that a policy lacks, and the flags that produce them.
pub fn lacking(policy: Policy) -> String {
    let flags = match policy {
        Policy::Entropy => {
            "`complete --mode none --samples 20 --temperature 1 -o FILE` draws them, and --samples-from FILE of `label judge` and `run` takes them"
        }
        Policy::SelfScored => {
            "`complete --probability-of '<cc>' --after '<eof>'` asks for the probability, and --probabilities of `label judge` and `run` takes it; mode rg1 has scores"
        }
        policy if policy.asks_model() => {
            "`complete --probability-of '<cc>' --after '<eof>'` asks for it, and --probabilities of `label judge` and `run` takes it"
        }
        _ => return policy.lacking().into(),
    };
    format!("{} ({flags})", policy.lacking())
}

/// Scores of the instances by one policy.
pub struct Scored {
    pub policy: Policy,
    /// Scores that order the instances; `None` where an instance lacks the policy's signal.
    pub ordered: Vec<Option<f64>>,
    /// Probabilities to compare with thresholds, for policies that have them.
    pub probabilities: Option<Vec<Option<f64>>>,
}

impl Scored {
    /// Number of instances without a score.
    pub fn lacking(&self) -> usize {
        self.ordered.iter().filter(|score| score.is_none()).count()
    }
}

/// Scores instances. Learned policies without a file learn from the other repositories of these instances, and from `more`.
///
/// # Errors
/// No training data is left.
pub fn score(
    policy: Policy,
    examples: &[Example],
    more: &[Example],
    trained: &Trained,
    method: CalibrationMethod,
    seed: u64,
) -> Result<Scored> {
    let Some(kind) = policy.learned() else {
        let scores: Vec<_> = examples.iter().map(|example| policy.score(example, seed)).collect();
        let probabilities = policy.is_probability().then(|| scores.clone());
        return Ok(Scored { policy, ordered: scores, probabilities });
    };
    if let Some(model) = trained.0.get(kind.name()) {
        let scores: Vec<_> = examples.iter().map(|e| model.probability(e)).collect();
        return Ok(Scored { policy, ordered: scores.clone(), probabilities: Some(scores) });
    }
    let some = |examples: &[Example]| -> Vec<Example> {
        examples.iter().filter(|example| kind.has_data(example)).cloned().collect()
    };
    let (known, more) = (some(examples), some(more));
    if known.is_empty() {
        let missing = vec![None; examples.len()];
        return Ok(Scored { policy, ordered: missing.clone(), probabilities: Some(missing) });
    }
    let all = known.iter().chain(&more);
    trained.check_others(policy, all.map(|example| example.repository.as_str()))?;
    let held_out = hold_out(&known, &more, kind, method)?;
    let spread = |scores: Vec<f64>| -> Vec<Option<f64>> {
        let mut scores = scores.into_iter();
        examples.iter().map(|example| kind.has_data(example).then(|| scores.next())?).collect()
    };
    let probabilities = Some(spread(held_out.probabilities));
    Ok(Scored { policy, ordered: spread(held_out.ordered), probabilities })
}
