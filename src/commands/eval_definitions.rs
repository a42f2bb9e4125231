//! `eval --definitions`: how many of the definitions that tasks name their predictions use.

use anyhow::{Result, bail};
use repoformer_core::metrics::Metric;
use repoformer_evaluate::score::Scoring;
use repoformer_evaluate::table::percent;
use repoformer_pipeline::{cached_predictions, definition_uses};
use repoformer_study::choices::{completed_modes, completion, warn_of_departures};
use repoformer_study::experiments::{cut_answers, single};
use repoformer_text::counts::subject;

use super::eval_score::{ScoringSettings, score, with_missing};
use super::stages::check_one_mode;
use crate::commands::eval_args::EvalArgs;
use crate::output::{self, fail, format_count};
use crate::records_output::RecordsOutput;
use crate::settings::Settings;

pub(super) fn run(args: &EvalArgs, settings: &Settings) -> Result<()> {
    let (mut experiment, settings) = single(settings)?;
    if let Some(path) = &args.predictions {
        cut_answers(&mut experiment, &settings, path)?;
    }
    if experiment.tasks.is_none() {
        bail!("--tasks is not set, so no definitions are named");
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
    let found = definition_uses(&experiment, &evaluation.tasks, &evaluation.samples, &recipe)?;
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
