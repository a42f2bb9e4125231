//! Policies of a run with their thresholds, and the effects of the thresholds.

use anyhow::Result;
use repoformer_core::policy::{Policy, Threshold};
use repoformer_core::retrieve::Mode;
use repoformer_pipeline::Messages;
use repoformer_text::counts::group;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::fail;
use crate::judged::JudgedPolicy;
use crate::settings::PolicyName;

/// Policy with its threshold, as `learned@0.2` or `learned@30%`.
#[derive(Debug, Clone)]
pub struct ThresholdPolicy {
    /// Policy.
    pub policy: Policy,
    /// Threshold that its scores are compared with.
    pub threshold: Threshold,
    /// Policy and threshold as requested.
    pub name: String,
}

impl ThresholdPolicy {
    /// Creates the policy with this name; if the name has no threshold, the usual one for these tasks is used.
    pub fn new(asked: &PolicyName, are_functions: bool) -> Result<Self> {
        let PolicyName { policy, threshold } = asked;
        let policy = *policy;
        let usual = match policy {
            Policy::Never | Policy::Always | Policy::Oracle => Some(0.0),
            // The paper's thresholds for functions, and for lines, calls and chunks.
            Policy::Learned | Policy::LearnedScored | Policy::SelfScored | Policy::SelfDecision => {
                Some(if are_functions { 0.15 } else { 0.2 })
            }
            Policy::Random | Policy::SelfGreedy => Some(0.5),
            Policy::TrialRetrieval | Policy::TrialGeneration | Policy::Entropy => None,
        };
        if let (Policy::Never | Policy::Always, Some(_)) = (policy, &threshold) {
            return fail(
                format!("policy '{asked}': {policy} has no threshold"),
                format!("leave the threshold out: {policy}"),
            );
        }
        let threshold = match threshold {
            Some(threshold) => threshold.parse().ok(),
            None => usual.map(Threshold::Above),
        };
        match threshold {
            Some(threshold) => Ok(Self { policy, threshold, name: asked.to_string() }),
            None => fail(
                format!("policy '{asked}' needs a threshold: a number or a percentage"),
                message![
                    format!(
                        "give a score above which to retrieve, as in {policy}@0.3, or a percentage of the tasks, as in \
                         {policy}@30%; a "
                    ),
                    UserChoice::PolicySweep,
                    " helps to choose one"
                ],
            ),
        }
    }
}

/// Explains once what percentage thresholds mean.
pub fn tell_of_shares(all: &[ThresholdPolicy], messages: &dyn Messages) {
    if let Some(one) = all.iter().find(|one| matches!(one.threshold, Threshold::Share(_))) {
        messages.note(message![
            format!(
                "{}: the threshold comes from the scores of these tasks (not from their results); a tool that sees one task at a time \
                 needs a number chosen on other data, with a ",
                one.name
            ),
            UserChoice::PolicySweep,
            format!(" of {} at {}", one.policy, one.threshold)
        ]);
    }
}

/// Reports a threshold that was computed from a percentage of the tasks, and a threshold that does not separate any tasks.
pub fn tell_threshold(benchmark: &str, mode: Mode, policy: &JudgedPolicy, messages: &dyn Messages) {
    let count = policy.retrieves.len();
    let retrieved = policy.retrieves.iter().filter(|retrieves| **retrieves).count();
    let (name, threshold) = (&policy.name, policy.threshold);
    let of_all = format!("{} of {} tasks", group(retrieved), group(count));
    let scores = || (0..count).map(|place| policy.score(place));
    match policy.asked.at_most(count) {
        _ if count == 0 || matches!(policy.policy, Policy::Never | Policy::Always) => {}
        Some(most) => {
            let tied = scores().filter(|score| *score == threshold).count();
            let ties = if retrieved < most {
                format!(
                    " (for {} tasks with the score {threshold}, {name} cannot be reached, since tasks with equal scores stay together)",
                    group(tied)
                )
            } else {
                String::new()
            };
            messages.note(format!(
                "{benchmark} {name}: retrieves for {of_all}, those with a score above {threshold}{ties}"
            ).into());
        }
        None if retrieved == 0 => {
            let highest = scores().fold(f64::NEG_INFINITY, f64::max);
            let share = match policy.policy {
                Policy::SelfGreedy | Policy::Oracle => String::new(),
                other => {
                    format!("; {other}@30% retrieves for the 30 % of tasks with the highest scores")
                }
            };
            messages.note(format!(
                "{benchmark} {name}: no task has a score above {threshold} (the highest is {highest:.3}), so its row equals {}{share}",
                Mode::Without
            ).into());
        }
        None if retrieved == count => {
            let lowest = scores().fold(f64::INFINITY, f64::min);
            messages.note(format!(
                "{benchmark} {name}: every task has a score above {threshold} (the lowest is {lowest:.3}), so its row equals {mode}"
            ).into());
        }
        None => {}
    }
}
