//! Texts to execute: a file's predictions, the references, or the cache's predictions.

use std::path::Path;

use anyhow::Result;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::conditions::{Conditions, are_chat_answers, differences, read_parameters};
use repoformer_execute::{execution_recipe, read_samples};
use repoformer_pipeline::{Experiment, cached_predictions};
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::{completed_modes, completion};
use repoformer_study::experiments::stem;
use repoformer_study::mixed;

use crate::commands::eval_args::EvalArgs;
use crate::commands::parts;
use crate::output::{self, Screen, fail};
use crate::settings::Settings;

/// Returns the texts to execute by name: a file, the references, or the modes in the cache.
pub(super) fn samples(
    args: &EvalArgs,
    settings: &Settings,
    experiment: &Experiment,
    tasks: &TaskSet,
    manifest: &mut Manifest,
) -> Result<Vec<(String, Vec<Vec<String>>)>> {
    if args.check_references {
        let truth = tasks.tasks().iter().map(|task| vec![task.ground_truth.clone()]);
        return Ok(vec![("references".into(), truth.collect())]);
    }
    let mut usual = experiment.scoring.postprocess.answers();
    if let Some(path) = &args.predictions
        && are_chat_answers(path)?
    {
        usual = Postprocess::chat(false).answers();
    }
    let recipe = execution_recipe(settings.postprocess.get().as_ref(), usual)?;
    manifest.setting("postprocess", recipe.to_string());
    // Joined with all tasks of the file, since rows distinguish repeated ids.
    let all = experiment.all_tasks().map_or(tasks, |all| all);
    let is_tested = |task: &Task| experiment.repositories.binary_search(&task.repository).is_ok();
    let mut read = |name: &str, path: &Path| -> Result<Vec<Vec<String>>> {
        parts::input_predictions(manifest, name, path, experiment, args)?;
        Ok(read_samples(name, path, all, &recipe, &is_tested, &output::tell)?)
    };
    if let Some(path) = &args.predictions {
        let name = stem(path);
        let samples = read(&name, path)?;
        return Ok(vec![(name, samples)]);
    }
    let completion = completion(settings)?;
    let (mut named, mut conditions) = (Vec::new(), Vec::new());
    for mode in completed_modes(settings, experiment, &completion)?.0 {
        let path = cached_predictions(experiment, mode, &completion)?;
        named.push((mode.to_string(), read(mode.name(), &path)?));
        // Pass rates are over all samples, however many.
        conditions.push((mode.name(), Conditions::of_predictions(&read_parameters(&path)?)));
    }
    let conditions: Vec<_> = conditions.iter().map(|(name, known)| (*name, known)).collect();
    let differences = differences(&conditions);
    mixed::check(&differences, args.allow_mixed, &Screen)?;
    if !differences.is_empty() {
        manifest.setting("mixed", differences);
    }
    if named.is_empty() {
        return fail(
            "the cache holds no predictions to test",
            "run `repoformer complete` first, name a file with --predictions, or test only the references with --check-references",
        );
    }
    Ok(named)
}
