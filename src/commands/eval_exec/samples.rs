//! Texts to execute: a file's predictions, the references, or the cache's predictions.

use std::path::Path;

use anyhow::Result;
use repoformer_core::postprocess::{HoleContext, Postprocess, Recipe, Step};
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::conditions::{Conditions, are_chat_answers, differences, made_with};
use repoformer_evaluate::predictions;
use repoformer_pipeline::{Experiment, cached_predictions};
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::{completed_modes, completion};
use repoformer_study::experiments::of_kind;
use repoformer_study::mixed;

use crate::commands::eval_args::EvalArgs;
use crate::commands::parts;
use crate::output::{self, Screen, fail};
use crate::settings::Settings;

/// Post-processing of predictions before they are written into their files.
fn recipe(settings: &Settings, usual: Recipe) -> Result<Recipe> {
    let Some(asked) = settings.postprocess.get() else { return Ok(usual) };
    if let Postprocess::Same(recipe) = asked
        && !recipe.has(Step::FunctionBody)
    {
        return Ok(recipe.clone());
    }
    fail(
        format!("--postprocess {asked} makes texts for comparison, not for execution"),
        "use steps that only cut, such as chat or lines",
    )
}

/// Texts to execute, by name: a file, the references, the modes of the cache.
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
    let recipe = recipe(settings, usual)?;
    manifest.setting("postprocess", recipe.to_string());
    let mut read = |name: &str, path: &Path| -> Result<Vec<Vec<String>>> {
        parts::input_predictions(manifest, name, path, experiment, args)?;
        // Joined with all tasks of the file, since rows distinguish repeated ids.
        let all = experiment.all_tasks().map_or(tasks, |all| all);
        let joined = predictions::read(path, all)?;
        output::problems(&joined.problems);
        output::warn_of_numbers(predictions::warning(path, &joined.numbered));
        if recipe.is_empty() {
            warn_of_long(name, all, &joined.predictions);
        }
        let of = all.tasks().iter().zip(joined.predictions);
        Ok(of
            .filter(|(task, _)| experiment.repositories.binary_search(&task.repository).is_ok())
            .map(|(task, samples)| {
                let cut = |sample: &String| {
                    recipe.apply(HoleContext::of(task), sample).prediction.into_owned()
                };
                samples.iter().map(cut).collect()
            })
            .collect())
    };
    if let Some(path) = &args.predictions {
        let stem = path.file_stem().unwrap_or("predictions".as_ref());
        let name = stem.to_string_lossy().into_owned();
        let samples = read(&name, path)?;
        return Ok(vec![(name, samples)]);
    }
    let all = experiment.all_tasks().map_or(tasks, |all| all);
    let completion = completion(&of_kind(settings, Some(all)))?;
    let (mut named, mut conditions) = (Vec::new(), Vec::new());
    for mode in completed_modes(settings, experiment, &completion)?.0 {
        let path = cached_predictions(experiment, mode, &completion)?;
        named.push((mode.to_string(), read(mode.name(), &path)?));
        // Pass rates are over all samples, however many.
        conditions.push((mode.name(), Conditions::of_predictions(&made_with(&path)?)));
    }
    let conditions: Vec<_> = conditions.iter().map(|(name, known)| (*name, known)).collect();
    let differences = differences(&conditions);
    mixed::check(&differences, args.allow_mixed, &Screen)?;
    if !differences.is_empty() {
        manifest.setting("mixed", differences);
    }
    if named.is_empty() {
        return fail(
            "the cache holds no predictions to run tests with",
            "make them with `repoformer complete`, name a file with --predictions, or run the references only with --check-references",
        );
    }
    Ok(named)
}

/// Warns of predictions that continue after the hole: they pass no test as they are.
fn warn_of_long(name: &str, tasks: &TaskSet, predictions: &[Vec<String>]) {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let is_long = |(task, samples): &(&Task, &Vec<String>)| {
        let first = samples.first().map_or(0, |sample| lines(sample));
        first > 2 * lines(&task.ground_truth)
    };
    let long = tasks.tasks().iter().zip(predictions).filter(is_long).count();
    let given = predictions.iter().filter(|samples| !samples.is_empty()).count();
    if long * 4 > given {
        output::warning(format!(
            "exec {name}: {long} of {given} predictions have more than twice the lines of their target; --postprocess lines cuts them"
        ));
    }
}
