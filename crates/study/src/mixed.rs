//! Systems whose completions or scores were produced under different conditions.

use anyhow::Result;
use repoformer_pipeline::Messages;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::fail;

/// Rejects differences between systems. If they are allowed, warns of them instead, and the caller names them in its output.
pub fn check(differences: &[String], are_allowed: bool, messages: &dyn Messages) -> Result<()> {
    match differences {
        [] => Ok(()),
        _ if are_allowed => {
            messages.warning(join_differences(differences).into());
            Ok(())
        }
        _ => fail(
            format!("these predictions cannot be compared fairly: {}", differences.join("; ")),
            message![
                "complete and score them with the same settings, or compare them anyway under ",
                UserChoice::MixedConditions
            ],
        ),
    }
}

/// Returns the differences in a sentence.
pub fn join_differences(differences: &[String]) -> String {
    format!("mixed conditions: {}", differences.join("; "))
}
