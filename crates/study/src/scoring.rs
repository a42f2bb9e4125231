//! Scoring of the predictions of a study.

use std::path::Path;

use anyhow::Result;
use repoformer_core::metrics::Metric;
use repoformer_evaluate::conditions::read_parameters;
use repoformer_evaluate::score::Scoring;
use repoformer_pipeline::{CompletionBound, Experiment, Messages};
use repoformer_text::message;

use crate::settings::{DECLARED, Settings};

/// Returns the scoring for a command that shows `further` metrics after the default one, unless the settings choose metrics.
pub fn scoring(settings: &Settings, experiment: &Experiment, further: &[Metric]) -> Scoring {
    let mut scoring = experiment.scoring.clone();
    if settings.metrics.is_empty() {
        let known = scoring.metrics.clone();
        scoring.metrics.extend(further.iter().filter(|metric| !known.contains(metric)));
    }
    scoring
}

/// Warns of completions that ended after the target's number of lines, if a cut may look at more.
///
/// # Errors
/// The header of the predictions cannot be read.
pub fn warn_of_ends(path: &Path, scoring: &Scoring, messages: &dyn Messages) -> Result<()> {
    let is_short = read_parameters(path)?
        .get(DECLARED.until.key)
        .is_some_and(|until| until == CompletionBound::Lines.name());
    let longer = scoring.recipes().find(|(_, recipe)| !recipe.is_of_lines());
    if let Some((metric, recipe)) = longer.filter(|_| is_short) {
        messages.warning_once(message![
            format!(
                "{}: these completions end after as many lines as the target has, but {metric} cuts by {recipe}, which may need more \
                 lines; complete with ",
                path.display()
            ),
            &DECLARED.until,
            " tokens for it"
        ]);
    }
    Ok(())
}
