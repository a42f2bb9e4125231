//! Scores of one file of predictions.

use std::path::Path;

use anyhow::Result;
use repoformer_core::postprocess::UncutReason;
use repoformer_evaluate::predictions;
use repoformer_evaluate::score::{MissingPredictions, Scores, Scoring};
use repoformer_pipeline::{Evaluation, Experiment, evaluate};
use repoformer_store::error::Error;
use repoformer_store::manifest::Manifest;

use crate::output::{self, add_hint};

/// Scoring of predictions, and the treatment of missing ones.
pub(super) struct ScoringSettings {
    pub(super) scoring: Scoring,
    pub(super) missing: MissingPredictions,
}

impl ScoringSettings {
    /// Returns the manifest of scores with these settings.
    pub(super) fn manifest(&self) -> Manifest {
        let mut manifest = Manifest::new("scores");
        let names: Vec<&str> = self.scoring.metrics.iter().map(|metric| metric.name()).collect();
        manifest.setting("metrics", names);
        for (metric, recipe) in self.scoring.recipes() {
            manifest.setting(&format!("postprocess.{metric}"), recipe.to_string());
        }
        manifest.setting("missing", self.missing.to_string());
        manifest
    }
}

/// Adds a hint with the flags that allow scoring if a task has no prediction.
pub(super) fn with_missing(error: Error) -> anyhow::Error {
    match error {
        Error::Task { .. } => add_hint(
            error,
            "count them as wrong with --missing zero, or leave them out with --missing skip",
        ),
        _ => error.into(),
    }
}

/// Warns of different numbers of samples, as in a file that was partly appended to itself.
fn warn_of_uneven(evaluation: &Evaluation, path: &Path) {
    let samples = evaluation.samples.iter().map(Vec::len);
    let given: Vec<_> =
        evaluation.tasks.tasks().iter().zip(samples).filter(|(_, samples)| *samples > 0).collect();
    let Some(fewest) = given.iter().map(|(_, samples)| *samples).min() else {
        return;
    };
    // First of the tasks with the most samples.
    if let Some((task, most)) = given.iter().rev().max_by_key(|(_, samples)| *samples)
        && *most > fewest
    {
        let more = given.iter().filter(|(_, samples)| *samples > fewest).count();
        output::warning(format!(
            "{}: {more} tasks have more samples than others: task {} (row {}) has {most}, others have {fewest}; was the file written twice?",
            path.display(),
            task.id,
            task.row
        ));
    }
}

/// Warns of doubled samples, as in a file that was appended to itself.
fn warn_of_doubled(evaluation: &Evaluation, path: &Path) {
    let given = || evaluation.samples.iter().filter(|samples| !samples.is_empty());
    let is_doubled = |samples: &Vec<String>| {
        let (first, second) = samples.split_at(samples.len() / 2);
        first == second
    };
    if given().count() > 1 && given().all(is_doubled) {
        let file = path.display();
        output::warning(format!(
            "{file}: every task has the same samples twice; was the file written twice?"
        ));
    }
}

/// Reports predictions that could not be cut: as a note if they begin with an error, otherwise as a warning.
pub(super) fn tell_uncut(path: &Path, scores: &Scores) {
    let file = path.display();
    for told in [UncutReason::File, UncutReason::Bound]
        .into_iter()
        .flat_map(|reason| scores.tell_uncut(reason))
    {
        output::warning(format!("{file}: {told}"));
    }
    for told in scores.tell_uncut(UncutReason::Prediction) {
        output::note(format!("{file}: {told}"));
    }
}

/// Scores the predictions of a file, and reports anything unusual about them.
pub(super) fn score(
    experiment: &Experiment,
    path: &Path,
    judging: &ScoringSettings,
) -> Result<Evaluation> {
    let ScoringSettings { scoring, missing } = judging;
    let evaluation = evaluate(experiment, path, scoring, *missing)?;
    output::problems(&evaluation.problems);
    output::warn_of_numbers(predictions::warning(path, &evaluation.numbered));
    let (file, empty) = (path.display(), evaluation.empty);
    let without = evaluation.scores.as_ref().map_or(0, |scores: &Scores| scores.missing);
    if *missing == MissingPredictions::Zero && without > 0 {
        let (tasks, score) = match without {
            1 => ("1 task has".to_owned(), "it scores"),
            n => (format!("{n} tasks have"), "they score"),
        };
        output::warning(format!("{file}: {tasks} no prediction; {score} 0"));
    }
    if let Ok(scores) = &evaluation.scores {
        tell_uncut(path, scores);
    }
    warn_of_uneven(&evaluation, path);
    warn_of_doubled(&evaluation, path);
    if empty > 0 {
        output::warning(format!("{file}: {empty} empty predictions, scored as empty text"));
    }
    if evaluation.changed > 0 {
        output::warning(format!(
            "{file}: lm-eval changed the prompts of {} answers, by a chat template, a system instruction, examples, or cached requests of an older task",
            evaluation.changed
        ));
    }
    Ok(evaluation)
}
