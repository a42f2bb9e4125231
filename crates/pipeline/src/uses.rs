//! Names that predictions use: measured from tasks, predictions and repositories.

use repoformer_core::postprocess::{HoleContext, Recipe};
use repoformer_core::repository::corpus::Repository;
use repoformer_core::repository::parallel;
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::unresolved::{MentionedNames, TaskNames};
use repoformer_evaluate::uses::{UsedNames, Uses};
use repoformer_store::error::{Error, Result};

use super::experiment::Experiment;
use super::stage::by_repository;

/// Measurements of the names that predictions use.
#[derive(Debug)]
pub struct NameMeasurements<T> {
    /// Measurements by task, in the order of the tasks.
    pub tasks: Vec<T>,
    /// Number of tasks with predictions that are left out, because they cannot be measured.
    pub left_out: usize,
    /// Tasks that do not match their repository, and files that cannot be read.
    pub problems: Vec<Error>,
}

/// Function that measures a task's samples; it returns `None` if the task cannot be measured, or why it does not match its repository.
type Measure<'m, T> = dyn Fn(&Task, &[&str]) -> Result<Option<T>, String> + Sync + 'm;

/// Counts the definitions that the samples of tasks use, after cutting them by a recipe. Tasks without samples are left out, as are
/// tasks that name no definition, or whose target is not found to use one.
///
/// # Errors
/// A repository's folder cannot be opened.
pub fn definition_uses(
    experiment: &Experiment,
    tasks: &TaskSet,
    samples: &[Vec<String>],
    recipe: &Recipe,
) -> Result<NameMeasurements<Uses>> {
    measure(experiment, tasks, samples, recipe, |repository, measure| {
        let names = UsedNames::new(repository, experiment.layout.language);
        let definitions = names.index();
        measure(&|task, samples| definitions.uses(task, samples));
    })
}

/// Finds the names in the samples of tasks that resolve nowhere, after cutting them by a recipe. Tasks without samples are left out.
///
/// # Errors
/// A repository's folder cannot be opened.
pub fn unresolved_names(
    experiment: &Experiment,
    tasks: &TaskSet,
    samples: &[Vec<String>],
    recipe: &Recipe,
) -> Result<NameMeasurements<TaskNames>> {
    measure(experiment, tasks, samples, recipe, |repository, measure| {
        let names = MentionedNames::new(repository, experiment.layout.language);
        measure(&|task, samples| names.check(task, samples).map(Some));
    })
}

/// Measures the tasks of each repository. `prepare` reads a repository, and calls its second argument with the function that measures a
/// task.
fn measure<T: Send>(
    experiment: &Experiment,
    tasks: &TaskSet,
    samples: &[Vec<String>],
    recipe: &Recipe,
    prepare: impl Fn(&Repository, &mut dyn FnMut(&Measure<'_, T>)) + Sync,
) -> Result<NameMeasurements<T>> {
    let parts = by_repository(experiment, |name| {
        let of_one = || {
            let all = tasks.tasks().iter().zip(samples);
            all.filter(|(task, samples)| task.repository == *name && !samples.is_empty())
        };
        if of_one().next().is_none() {
            return Ok(None);
        }
        let Experiment { repos_dir, layout, walk, .. } = experiment;
        let reading = Repository::read_with(repos_dir, name, layout.language, *walk)?;
        let mut measured = Vec::new();
        prepare(&reading.repository, &mut |measure| {
            measured = parallel::map(of_one().collect::<Vec<_>>(), |(task, samples)| {
                let cut: Vec<_> = samples
                    .iter()
                    .map(|sample| recipe.apply(HoleContext::new(task), sample))
                    .collect();
                let cut: Vec<&str> = cut.iter().map(|one| &*one.prediction).collect();
                let measured = measure(task, &cut).map_err(|reason| tasks.error(task, reason));
                (task.row, measured)
            });
        });
        Ok(Some((measured, reading.skipped)))
    })?;
    let mut all = NameMeasurements { tasks: Vec::new(), left_out: 0, problems: Vec::new() };
    let mut by_row = Vec::new();
    for (measured, skipped) in parts.into_iter().flatten() {
        all.problems.extend(skipped);
        for (row, one) in measured {
            match one {
                Ok(Some(one)) => by_row.push((row, one)),
                Ok(None) => all.left_out += 1,
                Err(problem) => all.problems.push(problem),
            }
        }
    }
    by_row.sort_by_key(|(row, _)| *row);
    all.tasks = by_row.into_iter().map(|(_, one)| one).collect();
    Ok(all)
}
