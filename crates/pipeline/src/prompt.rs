//! `prompt`: turns tasks and retrieval results into prompts (JSONL, in the order of the tasks), or tasks with cross-file
//! context.

use repoformer_core::retrieve::Mode;
use repoformer_store::artifact::LineSink;
use repoformer_store::error::Result;

use super::engine::Engine;
use super::experiment::{Experiment, PromptLayout};
use super::prompt_artifact::{Prompts, WITHOUT_PROMPT};
use super::prompt_lines::Line;
use super::prompt_sources::{SharedSources, Sources};
use super::prompt_warnings::{warn_of_budgets, warn_of_contexts, warn_of_others, warn_of_specials};
use super::stage::StageReport;
/// Builds the prompts of each mode.
///
/// # Errors
/// Retrieval results are missing or stale, or an artifact cannot be written.
pub fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    let mut engine = Engine::new(experiment);
    let tasks = experiment.tasks()?;
    warn_of_specials(experiment, &mut engine.report);
    warn_of_budgets(experiment, &mut engine.report);
    warn_of_contexts(experiment, &mut engine.report)?;
    let mut shared = SharedSources::new(experiment, tasks);
    for &mode in modes {
        if !matches!(experiment.prompts.layout, PromptLayout::RepoCoder) {
            warn_of_others(experiment, tasks, &mut engine.report);
        }
        let mut sources = Sources::open(experiment, mode, &mut shared)?;
        let prompts = Prompts { mode, identity: sources.identity(experiment, tasks) };
        let mut is_told = false;
        let outcome = engine.make_lines(&prompts, |engine, sink| {
            is_told = true;
            let problems = &mut engine.report.problems;
            sources.build(experiment, &mut shared, &mut |line| write_line(line, sink, problems))
        })?;
        // Tasks without a prompt are reported each time, not only when prompts are made.
        let lost = outcome.header().totals.get(WITHOUT_PROMPT).copied().unwrap_or(0);
        if !is_told && lost > 0 {
            sources.build(experiment, &mut shared, &mut |line| {
                engine.report.problems.extend(line.err());
                Ok(())
            })?;
        }
    }
    Ok(engine.report)
}

fn write_line(
    line: Result<Line>,
    sink: &mut LineSink,
    problems: &mut Vec<repoformer_store::error::Error>,
) -> Result<()> {
    match line {
        Ok(line) => sink.write(&line.json),
        Err(error) => {
            problems.push(error);
            Ok(())
        }
    }
}
