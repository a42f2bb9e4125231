//! `complete`: turns prompts into predictions (JSONL, in the order of the prompts).

use std::path::Path;

use repoformer_core::prompt::style::Style;
use repoformer_core::retrieve::Mode;
use repoformer_store::artifact::{self, LineTotals, header_path};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::completed::check_searched_with;
use super::completion::{Completion, EmitLine, Predictions};
use super::embedded::EmbeddedCompleter;
use super::engine::{Artifact, Engine, Outcome};
use super::experiment::Experiment;
use super::prediction_artifact::ModePredictions;
use super::prompt_artifact::require_prompts;
use super::prompt_warnings::warn_of_begun_lines;
use super::remote::{self, PromptText};
use super::stage::StageReport;
/// Completes the cached prompts of each mode.
///
/// # Errors
/// Prompts are missing, an artifact cannot be written, or a predictions file that this program did not write is in the way.
pub fn complete(
    experiment: &Experiment,
    modes: &[Mode],
    completion: &Completion,
) -> Result<StageReport> {
    completion.check()?;
    let mut engine = Engine::new(experiment);
    if completion.server.is_none() {
        warn_of_begun_lines(experiment, &mut engine.report)?;
    }
    for &mode in modes {
        let prompts = require_prompts(experiment, mode)?;
        if mode == Mode::Prediction {
            check_searched_with(experiment, Some(completion))?;
        }
        let predictions = ModePredictions { mode, completion, prompts: &prompts };
        let path = predictions.path(experiment);
        refuse_foreign(&path)?;
        let mut latencies = Vec::new();
        let outcome = engine.make_lines(&predictions, |engine, sink| {
            let made = predictions.make(experiment, &mut |line| sink.write(line))?;
            engine.report.problems.extend(made.problems);
            engine.report.warnings.extend(made.warnings);
            latencies = made.latencies;
            let records = made.records;
            let is_asked = completion.server.is_some();
            let totals = is_asked.then(|| (remote::CHECKED.to_owned(), records as u64));
            Ok(LineTotals { records, totals: totals.into_iter().collect() })
        })?;
        match outcome {
            // Failures are reported in later runs, too.
            Outcome::Current(header) if header.records < prompts.records => {
                let failures = match &completion.server {
                    Some(server) => {
                        server.failures(&PromptText::of_mode(experiment, mode)?, completion)?
                    }
                    None => vec![incomplete(&path, header.records, prompts.records)],
                };
                engine.report.problems.extend(failures);
            }
            Outcome::Made(_) => {
                let times = experiment.paths().latency(mode, &completion.model);
                remote::keep_latencies(&times, &latencies)?;
                // This is a measurement: if the searched artifacts no longer exist, queries have no time.
                let _ = remote::latencies(experiment, mode, &completion.model);
            }
            Outcome::Current(_) | Outcome::Decided(_) => {}
        }
    }
    Ok(engine.report)
}

fn incomplete(path: &Path, predictions: u64, prompts: u64) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!(
            "holds predictions for only {predictions} of {prompts} prompts; the others could not be completed"
        ),
        hint: message!["to see why, remove this file and start a ", UserChoice::VerboseRun],
    }
}

/// Refuses to overwrite predictions that the user put into the cache.
fn refuse_foreign(path: &Path) -> Result<()> {
    if path.exists() && !header_path(path).exists() {
        return Err(Error::Artifact {
            path: path.to_owned(),
            reason: "would be overwritten, but these predictions were not written by repoformer"
                .into(),
            hint: message![
                "move the file to another folder, and pass it to later stages as ",
                UserChoice::PredictionsFile
            ],
        });
    }
    Ok(())
}

/// Completes every prompt of a JSONL file. For the embedded model, prompts in a style that is not bundled need their style.
///
/// # Errors
/// The file cannot be read, or `emit` returns an error.
pub fn complete_file(
    prompts: &Path,
    completion: &Completion,
    style: Option<&Style>,
    emit: &mut EmitLine<'_>,
) -> Result<Predictions> {
    completion.check()?;
    match &completion.server {
        None => {
            let mut local = EmbeddedCompleter::new(prompts, completion, style, emit);
            artifact::whole_lines(prompts, jsonl::open(prompts)?, &mut |piece| {
                local.work.more(jsonl::records(piece).count());
                local.complete(piece)
            })?;
            Ok(local.predictions)
        }
        Some(server) => server.complete(&PromptText::of_file(prompts)?, completion, emit),
    }
}
