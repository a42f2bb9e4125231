//! Use of definitions: computes the recall of each task's definitions from tasks, predictions and repositories.

use repoformer_core::postprocess::{HoleContext, Recipe};
use repoformer_core::repository::corpus::Repository;
use repoformer_core::repository::parallel;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::uses::{UsedNames, Uses};
use repoformer_store::error::{Error, Result};

use super::experiment::Experiment;
use super::stage::by_repository;

/// Use of definitions by predictions.
#[derive(Debug, Default)]
pub struct DefinitionUses {
    /// Uses by task, in the order of the tasks.
    pub tasks: Vec<Uses>,
    /// Number of tasks with predictions that are left out: they name no definition, or no use is found in their target.
    pub left_out: usize,
    /// Tasks that do not match their repository, and files that cannot be read.
    pub problems: Vec<Error>,
}

/// Counts the definitions that the samples of tasks use, after cutting them by a recipe. Tasks without samples are left out.
///
/// # Errors
/// A repository's folder cannot be opened.
pub fn definition_uses(
    experiment: &Experiment,
    tasks: &TaskSet,
    samples: &[Vec<String>],
    recipe: &Recipe,
) -> Result<DefinitionUses> {
    let parts = by_repository(experiment, |name| {
        let of_one = || {
            let all = tasks.tasks().iter().zip(samples);
            all.filter(|(task, samples)| task.repository == *name && !samples.is_empty())
        };
        let mut found = DefinitionUses::default();
        if of_one().next().is_none() {
            return Ok(found);
        }
        let Experiment { repos_dir, layout, walk, .. } = experiment;
        let reading = Repository::read_with(repos_dir, name, layout.language, *walk)?;
        found.problems = reading.skipped;
        let names = UsedNames::new(&reading.repository, layout.language);
        let definitions = names.index();
        let uses = parallel::map(of_one().collect::<Vec<_>>(), |(task, samples)| {
            let cut: Vec<_> =
                samples.iter().map(|sample| recipe.apply(HoleContext::new(task), sample)).collect();
            let cut: Vec<&str> = cut.iter().map(|one| &*one.prediction).collect();
            definitions.uses(task, &cut).map_err(|reason| tasks.error(task, reason))
        });
        for one in uses {
            match one {
                Ok(Some(uses)) => found.tasks.push(uses),
                Ok(None) => found.left_out += 1,
                Err(problem) => found.problems.push(problem),
            }
        }
        Ok(found)
    })?;
    let mut all = DefinitionUses::default();
    for part in parts {
        all.tasks.extend(part.tasks);
        all.left_out += part.left_out;
        all.problems.extend(part.problems);
    }
    all.tasks.sort_by_key(|uses| uses.row);
    Ok(all)
}
