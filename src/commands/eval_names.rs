//! `eval --definitions`: how many of the definitions that tasks name their predictions use. `eval --unresolved`: which names of
//! predictions resolve nowhere.

use anyhow::{Result, bail};
use repoformer_core::metrics::Metric;
use repoformer_evaluate::score::Scoring;
use repoformer_evaluate::table::percent;
use repoformer_evaluate::unresolved::{CheckedNames, TaskNames};
use repoformer_evaluate::uses::Uses;
use repoformer_pipeline::{
    NameMeasurements, cached_predictions, definition_uses, unresolved_names,
};
use repoformer_study::choices::{completed_modes, completion, warn_of_departures};
use repoformer_study::experiments::{cut_answers, single};
use repoformer_text::counts::subject;

use super::eval_score::{ScoringSettings, score, with_missing};
use super::stages::check_one_mode;
use crate::commands::eval_args::EvalArgs;
use crate::output::{self, fail, format_count};
use crate::records_output::RecordsOutput;
use crate::settings::Settings;

/// Measures the names of predictions: with `args.definitions` the definitions that they use, else those that resolve nowhere.
pub(super) fn run(args: &EvalArgs, settings: &Settings) -> Result<()> {
    let (mut experiment, settings) = single(settings)?;
    if let Some(path) = &args.predictions {
        cut_answers(&mut experiment, &settings, path)?;
    }
    if experiment.tasks.is_none() {
        bail!("--tasks is not set, so there are no tasks to measure");
    }
    warn_of_departures(&settings);
    // Whole lines or bodies, with their indentation.
    let postprocess = experiment.scoring.postprocess.clone();
    let recipe = postprocess.recipe(Metric::Repoformer);
    let scoring = Scoring { metrics: vec![Metric::Repoformer], postprocess };
    let judging = ScoringSettings { scoring, missing: args.missing.parse()? };
    let (name, path) = match &args.predictions {
        Some(path) => (path.display().to_string(), path.clone()),
        None => {
            let completion = completion(&settings)?;
            let (modes, _) = completed_modes(&settings, &experiment, &completion)?;
            check_one_mode(&modes)?;
            (modes[0].to_string(), cached_predictions(&experiment, modes[0], &completion)?)
        }
    };
    let evaluation = score(&experiment, &path, &judging)?;
    evaluation.scores.map_err(with_missing)?;
    let (tasks, samples) = (&evaluation.tasks, &evaluation.samples);
    if args.definitions {
        let found = definition_uses(&experiment, tasks, samples, &recipe)?;
        write_uses(args, &name, &found)
    } else {
        let found = unresolved_names(&experiment, tasks, samples, &recipe)?;
        write_names(args, &name, &found)
    }
}

fn write_uses(args: &EvalArgs, name: &str, found: &NameMeasurements<Uses>) -> Result<()> {
    output::problems(&found.problems);
    if found.tasks.is_empty() {
        return fail(
            "no task names the definitions that its target uses",
            "draw tasks with `sample --kind api`, or convert DevEval's tasks",
        );
    }
    let mut file = RecordsOutput::new(&args.output);
    for uses in &found.tasks {
        file.line(&uses.to_record())?;
    }
    file.finish()?;
    let recall =
        found.tasks.iter().map(|uses| uses.recall()).sum::<f64>() / found.tasks.len() as f64;
    let left_out = match found.left_out {
        0 => String::new(),
        n => format!(
            "; {} left out, since the target uses no known definition",
            subject(n, "task", ["is", "are"])
        ),
    };
    output::note(format!(
        "{name}: predictions use {} % of the definitions that the targets of {} use{left_out}",
        percent(recall),
        format_count(found.tasks.len() as u64, "task")
    ));
    Ok(())
}

fn write_names(args: &EvalArgs, name: &str, found: &NameMeasurements<TaskNames>) -> Result<()> {
    output::problems(&found.problems);
    if found.tasks.is_empty() {
        return fail(
            "no task matches its repository",
            "set --repos-dir to the repositories of the tasks, in the versions that they were drawn from",
        );
    }
    let mut file = RecordsOutput::new(&args.output);
    for names in &found.tasks {
        file.line(&names.to_record())?;
    }
    file.finish()?;
    let checked = |one: &&CheckedNames| one.checked > 0;
    let predictions = || found.tasks.iter().flat_map(|names| &names.samples).filter(checked);
    let targets = || found.tasks.iter().map(|names| &names.reference).filter(checked);
    let any = |one: &&CheckedNames| !one.unresolved.is_empty();
    let share = |any: usize, all: usize| percent(any as f64 / all.max(1) as f64);
    let all = found.tasks.iter().map(|names| names.samples.len()).sum::<usize>();
    let left_out = match all - predictions().count() {
        0 => String::new(),
        n => format!("; {n} without a name that can be checked are left out"),
    };
    output::note(format!(
        "{name}: of {}, {} % use a name that resolves nowhere; so do {} % of the targets{left_out}",
        format_count(predictions().count() as u64, "prediction"),
        share(predictions().filter(any).count(), predictions().count()),
        share(targets().filter(any).count(), targets().count()),
    ));
    Ok(())
}
