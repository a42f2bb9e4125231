//! Systems that answered, or were scored, under different conditions.

use anyhow::Result;

use crate::output::{self, fail};

/// Refuses differences between systems, unless they are allowed: then this warns of them, and the caller names them in its output.
pub(super) fn check(differences: &[String], are_allowed: bool) -> Result<()> {
    match differences {
        [] => Ok(()),
        _ if are_allowed => {
            output::warning(told(differences));
            Ok(())
        }
        _ => fail(
            format!("these cannot be compared fairly: {}", differences.join("; ")),
            "make and score them with the same settings, or compare them all the same with --allow-mixed",
        ),
    }
}

/// The differences in a sentence.
pub(super) fn told(differences: &[String]) -> String {
    format!("mixed conditions: {}", differences.join("; "))
}
