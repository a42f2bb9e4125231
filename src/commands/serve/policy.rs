//! Policy that decides for each request.

use std::path::PathBuf;

use anyhow::Result;
use repoformer_core::policy::model::{LearnedPolicy, PolicyModel};
use repoformer_core::policy::{Policy, Threshold};
use repoformer_pipeline::Experiment;
use repoformer_serve::{DECIDING, DecisionPolicy};
use repoformer_study::chosen::ThresholdPolicy;
use repoformer_study::settings::PolicyName;

use crate::output::fail;
use crate::settings::Settings;

/// Returns the policy of the settings, with its threshold and its trained model.
pub(super) fn chosen_policy(settings: &Settings) -> Result<DecisionPolicy> {
    // The policies of a profile are meant for comparisons.
    let always = PolicyName { policy: Policy::Always, threshold: None };
    let chosen = match settings.policy.own().map_or(&[][..], Vec::as_slice) {
        [] => ThresholdPolicy::new(&always, false)?,
        [one] => ThresholdPolicy::new(one, false)?,
        _ => return fail("serve uses only one policy", "give --policy once"),
    };
    let ThresholdPolicy { policy, threshold, name } = chosen;
    let Threshold::Above(threshold) = threshold else {
        return fail(
            format!("policy '{name}': a percentage threshold needs all requests in advance"),
            format!("give a number, as in {policy}@0.3; choose it with `policy sweep`"),
        );
    };
    if !DECIDING.contains(&policy) {
        let names = DECIDING.map(Policy::name).join(", ");
        return fail(
            format!("policy '{policy}' cannot decide before a completion, as serve needs"),
            format!("choose one of {names}"),
        );
    }
    let files = settings.policy_model.own().map_or(&[][..], Vec::as_slice);
    let model = trained_model(policy, files)?;
    Ok(DecisionPolicy { policy, threshold, name, model })
}

/// Returns the trained model of a policy, from these files.
fn trained_model(policy: Policy, files: &[PathBuf]) -> Result<Option<PolicyModel>> {
    match (policy.as_learned(), files) {
        (None, []) => Ok(None),
        (None, _) => fail(
            format!("--policy-model is not used by policy {policy}"),
            "leave it out, or choose policy learned, learned-scored or self-scored",
        ),
        (Some(kind), [file]) => {
            let model = PolicyModel::open(file)?;
            if model.policy != kind {
                return fail(
                    format!("{}: holds policy {}, not {kind}", file.display(), model.policy),
                    format!("choose --policy {}, or another file", model.policy),
                );
            }
            Ok(Some(model))
        }
        (Some(LearnedPolicy::LearnedScored), []) => Ok(Some(PolicyModel::load_bundled()?)),
        (Some(_), [_, _, ..]) => {
            fail("serve uses only one trained policy", "give --policy-model once")
        }
        (Some(kind), []) => fail(
            format!("policy {kind} needs a trained model"),
            "train one with `policy train`, and name it with --policy-model FILE",
        ),
    }
}

/// Checks that a policy that looks at fragments was trained on the same kind of fragments.
pub(super) fn check_fragments(policy: &DecisionPolicy, experiment: &Experiment) -> Result<()> {
    let here = experiment.fragments_name();
    match policy.model.as_ref().and_then(|model| model.other_fragments(&here)) {
        None => Ok(()),
        Some(difference) => fail(
            difference,
            "choose the policy's fragments with --unit and --ranker, or name a policy trained on these fragments with --policy-model",
        ),
    }
}
