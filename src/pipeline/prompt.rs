//! `prompt`: tasks + retrieval results → prompts (JSONL, in the order of the tasks).

use rayon::prelude::*;

use super::vectorize::query_windows;
use super::window::repo_windows;
use super::{
    Experiment, Report, check_digest, check_input, check_parameter, require, require_jsonl,
};
use crate::artifact::{Header, Identity, JsonLines};
use crate::error::Result;
use crate::prompt::Builder;
use crate::query::{Mode, QueryWindow, QueryWindows, hole_lines};
use crate::retrieve::{Found, Retrieval};
use crate::task::Task;
use crate::tokenize::P50k;
use crate::window::RepoWindows;

/// Sums over the prompts of one mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptTotals {
    /// Number of prompts.
    pub prompts: u64,
    /// Their tokens.
    pub tokens: u64,
    /// How many of them hold a retrieved block.
    pub with_blocks: u64,
}

const TOKENS: &str = "tokens";
const WITH_BLOCKS: &str = "prompts with retrieved blocks";

/// The settings that shape a mode's prompts.
fn settings(experiment: &Experiment, mode: Mode) -> Identity {
    let layout = &experiment.layout;
    let identity = Identity::new("prompts")
        .parameter("benchmark", &layout.benchmark)
        .parameter("mode", mode);
    if !mode.retrieves() {
        return identity;
    }
    experiment
        .shaped(identity)
        .parameter("tokenizer", "p50k_base")
        .parameter("vectorizer", &layout.vectorizer)
        .parameter("ranker", "jaccard")
        .parameter("top-k", layout.top_k)
        .parameter("hole-guard", experiment.guard)
        .parameter("max-prompt-tokens", experiment.budget.tokens)
        .parameter("max-blocks", experiment.budget.blocks)
}

/// The header of a mode's prompts, once they are known to be made of these tasks with these settings.
///
/// # Errors
/// They are missing, damaged, or were made otherwise.
pub(super) fn require_prompts(experiment: &Experiment, mode: Mode) -> Result<Header> {
    let path = experiment.layout.prompts(mode);
    let command = match mode {
        Mode::Prediction => "rg-rg".into(),
        _ => format!("prompt --mode {mode}"),
    };
    let header = require_jsonl(&path, "prompts", &command)?;
    for (name, value) in &settings(experiment, mode).parameters {
        check_parameter(&path, &header, (name, value), &command)?;
    }
    if let Some(tasks) = &experiment.tasks {
        check_digest(&path, &header, "tasks", &tasks.digest(), &command)?;
    }
    Ok(header)
}

/// The sums that were kept when a mode's prompts were made.
///
/// # Errors
/// The prompts are missing, damaged or stale.
pub fn prompt_totals(experiment: &Experiment, mode: Mode) -> Result<PromptTotals> {
    let header = require_prompts(experiment, mode)?;
    let total = |name: &str| header.totals.get(name).copied().unwrap_or(0);
    Ok(PromptTotals {
        prompts: header.records,
        tokens: total(TOKENS),
        with_blocks: total(WITH_BLOCKS),
    })
}

/// A prompt's record and what it adds to the sums.
struct Built {
    row: u32,
    sample: u32,
    tokens: usize,
    has_blocks: bool,
    line: Vec<u8>,
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
            sources.build(experiment, mode)
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
        let mut identity = settings(experiment, mode).input("tasks", experiment.tasks()?.digest());
        for part in &self.parts {
            let windows = &*part.windows.0.checksum;
            identity = identity.input(&format!("windows of {}", part.repository), windows);
            if let Some(((header, _), _)) = &part.retrieved {
                let retrieval = &*header.checksum;
                identity = identity.input(&format!("retrieval of {}", part.repository), retrieval);
            }
        }
        Ok(identity)
    }

    fn build(&self, experiment: &Experiment, mode: Mode) -> Result<JsonLines> {
        let tasks = experiment.tasks()?;
        let p50k = P50k::new();
        let mut built: Vec<Built> = Vec::new();
        for part in &self.parts {
            let windows = &part.windows.1;
            let builder = Builder::new(windows, &p50k, mode, experiment.guard, experiment.budget);
            let build = |task: &Task, found: Option<(&Found, &QueryWindow)>| {
                let prompt = builder.build(task, found.map(|(found, _)| found));
                Built {
                    row: task.row as u32,
                    sample: found.map_or(0, |(found, _)| found.sample),
                    tokens: prompt.tokens,
                    has_blocks: !prompt.chosen.is_empty(),
                    line: builder.line(task, found.map(|(_, query)| query), &prompt),
                }
            };
            match &part.retrieved {
                Some(((_, retrieval), queries)) => {
                    let found = retrieval.found.par_iter().zip(&queries.windows);
                    built.par_extend(found.filter_map(|(found, query)| {
                        let row = |task: &Task| task.row;
                        let at = tasks.tasks.binary_search_by_key(&(found.row as usize), row);
                        Some(build(&tasks.tasks[at.ok()?], Some((found, query))))
                    }));
                }
                None => {
                    built.par_extend(tasks_of(&tasks.tasks, part).map(|task| build(task, None)))
                }
            }
        }
        built.sort_unstable_by_key(|prompt| (prompt.row, prompt.sample));
        Ok(join(&built))
    }
}

fn join(built: &[Built]) -> JsonLines {
    let mut lines = JsonLines {
        text: Vec::with_capacity(built.iter().map(|prompt| prompt.line.len()).sum()),
        records: built.len(),
        ..JsonLines::default()
    };
    built
        .iter()
        .for_each(|prompt| lines.text.extend_from_slice(&prompt.line));
    let tokens = built.iter().map(|prompt| prompt.tokens as u64).sum();
    let with_blocks = built.iter().filter(|prompt| prompt.has_blocks).count() as u64;
    lines.totals = [
        (TOKENS.to_owned(), tokens),
        (WITH_BLOCKS.to_owned(), with_blocks),
    ]
    .into();
    lines
}

/// The tasks whose hole exists: the others have no prompt in any mode.
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
