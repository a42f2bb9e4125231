//! `prompt`: tasks + retrieval results → prompts (JSONL, in the order of the tasks).

use rayon::prelude::*;

use super::vectorize::query_windows;
use super::window::repo_windows;
use super::{Experiment, Report, check_input, check_parameter, require};
use crate::artifact::{Header, Identity};
use crate::error::Result;
use crate::prompt::Builder;
use crate::query::{Mode, QueryWindows, hole_lines};
use crate::retrieve::Retrieval;
use crate::task::Task;
use crate::tokenize::P50k;
use crate::window::RepoWindows;

/// Prompts of one mode.
#[derive(Debug, Default)]
struct Prompts {
    /// A record a line, by row, then sample.
    text: Vec<u8>,
    /// Number of records.
    records: usize,
}

/// Builds the prompts of each mode.
///
/// # Errors
/// Retrieval results are missing or stale, or an artifact cannot be written.
pub fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    let mut report = Report::default();
    for &mode in modes {
        let sources = Sources::read(experiment, mode, &mut report)?;
        let identity = sources.identity(experiment, mode)?;
        report.ensure_jsonl(experiment.layout.prompts(mode), &identity, |_| {
            let prompts = sources.build(experiment, mode)?;
            Ok((prompts.records, prompts.text))
        })?;
    }
    Ok(report)
}

/// What a mode's prompts are made from, a part a repository.
struct Sources {
    parts: Vec<Part>,
}

struct Part {
    repository: String,
    windows: (Header, RepoWindows),
    /// Missing in the mode that retrieves nothing.
    retrieved: Option<((Header, Retrieval), QueryWindows)>,
}

impl Sources {
    fn read(experiment: &Experiment, mode: Mode, report: &mut Report) -> Result<Self> {
        let mut parts = Vec::new();
        for repository in &experiment.repositories {
            let windows = repo_windows(experiment, repository)?;
            let retrieved = if mode.retrieves() {
                let (queries_header, queries) =
                    query_windows(experiment, mode, repository, Some(&windows.0))?;
                let path = experiment.layout.retrieval(mode, repository);
                let command = format!("search --mode {mode}");
                let (header, retrieval) = require::<Retrieval>(&path, &command)?;
                check_input(&path, &header, "windows", &windows.0, &command)?;
                check_input(&path, &header, "queries", &queries_header, &command)?;
                check_parameter(&path, &header, ("hole-guard", experiment.guard), &command)?;
                Some(((header, retrieval), queries))
            } else {
                None
            };
            report_lost(experiment, mode, repository, &windows.1, report)?;
            parts.push(Part {
                repository: repository.clone(),
                windows,
                retrieved,
            });
        }
        Ok(Self { parts })
    }

    fn identity(&self, experiment: &Experiment, mode: Mode) -> Result<Identity> {
        let mut identity = Identity::new("prompts")
            .parameter("benchmark", &experiment.layout.benchmark)
            .parameter("mode", mode)
            .parameter("hole-guard", experiment.guard)
            .parameter("max-prompt-tokens", experiment.budget.tokens)
            .parameter("max-blocks", experiment.budget.blocks)
            .input("tasks", experiment.tasks()?.digest());
        for part in &self.parts {
            identity = identity.input(
                &format!("windows of {}", part.repository),
                &*part.windows.0.checksum,
            );
            if let Some(((header, _), _)) = &part.retrieved {
                identity = identity.input(
                    &format!("retrieval of {}", part.repository),
                    &*header.checksum,
                );
            }
        }
        Ok(identity)
    }

    fn build(&self, experiment: &Experiment, mode: Mode) -> Result<Prompts> {
        let tasks = experiment.tasks()?;
        let mut records: Vec<(u32, u32, Vec<u8>)> = Vec::new();
        for part in &self.parts {
            let windows = &part.windows.1;
            let p50k = P50k::new();
            let builder = Builder::new(windows, &p50k, mode, experiment.guard, experiment.budget);
            match &part.retrieved {
                Some(((_, retrieval), queries)) => {
                    let built = retrieval.found.par_iter().zip(&queries.windows).filter_map(
                        |(found, query)| {
                            let at = tasks
                                .tasks
                                .binary_search_by_key(&(found.row as usize), |task| task.row)
                                .ok()?;
                            let task = &tasks.tasks[at];
                            let prompt = builder.build(task, Some(found));
                            Some((
                                found.row,
                                found.sample,
                                builder.line(task, Some(query), &prompt),
                            ))
                        },
                    );
                    records.par_extend(built);
                }
                None => records.par_extend(tasks_of(&tasks.tasks, part).map(|task| {
                    let prompt = builder.build(task, None);
                    (task.row as u32, 0, builder.line(task, None, &prompt))
                })),
            }
        }
        records.sort_unstable_by_key(|(row, sample, _)| (*row, *sample));
        let records_count = records.len();
        let mut text = Vec::with_capacity(records.iter().map(|(_, _, line)| line.len()).sum());
        records
            .into_iter()
            .for_each(|(_, _, line)| text.extend_from_slice(&line));
        Ok(Prompts {
            text,
            records: records_count,
        })
    }
}

/// The tasks whose hole exists; those of the others have no prompt in any mode, so that all modes are scored on the same tasks.
fn tasks_of<'a>(tasks: &'a [Task], part: &'a Part) -> impl ParallelIterator<Item = &'a Task> {
    tasks.par_iter().filter(|task| {
        task.repository == part.repository && hole_lines(task, &part.windows.1).is_ok()
    })
}

/// Tasks without a hole were reported when query windows were cut; mode none has none to cut.
fn report_lost(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    windows: &RepoWindows,
    report: &mut Report,
) -> Result<()> {
    if mode.retrieves() {
        return Ok(());
    }
    let tasks = experiment.tasks()?;
    for task in tasks
        .tasks
        .iter()
        .filter(|task| task.repository == repository)
    {
        if let Err(reason) = hole_lines(task, windows) {
            report.problems.push(tasks.error(task, reason));
        }
    }
    Ok(())
}
