//! `prompt`: tasks + retrieval results → prompts (JSONL, in the order of the tasks).

use rayon::prelude::*;

use super::kept_prompts::{Input, KeptPrompts, Noted};
use super::vectorize::query_windows;
use super::windows::Opened;
use super::{
    Experiment, Report, check_digest, check_input, check_parameter, made_again, require_jsonl,
    require_open,
};
use crate::artifact::{Columns, Header, Identity, JsonLines, Payload};
use crate::error::Result;
use crate::prompt::Builder;
use crate::query::{Mode, QueryWindow, QueryWindows, hole_lines};
use crate::retrieve::{Found, Hit, Hole, HoleGuard, Retrieval};
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
pub(super) struct Built {
    pub(super) row: u32,
    pub(super) sample: u32,
    pub(super) tokens: usize,
    pub(super) has_blocks: bool,
    pub(super) line: Vec<u8>,
    /// What it was made from, where something was retrieved.
    pub(super) input: Option<Input>,
}

/// Builds the prompts of each mode.
///
/// # Errors
/// Retrieval results are missing or stale, or an artifact cannot be written.
pub fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    let mut report = Report::default();
    for &mode in modes {
        let mut sources = Sources::open(experiment, mode, &mut report)?;
        let identity = sources.identity(experiment, mode)?;
        let path = experiment.layout.prompts(mode);
        let note = experiment.layout.note(&path, "inputs");
        let mut noted = None;
        let header = report.ensure_jsonl(path.clone(), &identity, |_| {
            let kept = KeptPrompts::read(&path, &note, &identity);
            let built = sources.build(experiment, mode, &kept)?;
            noted = Some(Noted::of(&identity, &built));
            Ok(join(&built))
        })?;
        if let Some(noted) = noted {
            noted.write(&note, header.checksum);
        }
    }
    Ok(report)
}

/// What a mode's prompts are made from, a part a repository.
struct Sources {
    parts: Vec<Part>,
}

struct Part {
    repository: String,
    opened: Opened,
    /// Missing in the mode that retrieves nothing.
    retrieved: Option<Retrieved>,
}

/// Retrieval results and their query windows, to be read.
struct Retrieved {
    command: String,
    header: Header,
    results: Columns,
    queries: Columns,
}

impl Sources {
    fn open(experiment: &Experiment, mode: Mode, report: &mut Report) -> Result<Self> {
        let mut parts = Vec::new();
        for repository in &experiment.repositories {
            let opened = Opened::new(experiment, repository)?;
            let retrieved = if mode.retrieves() {
                Some(Retrieved::open(
                    experiment,
                    mode,
                    repository,
                    &opened.header,
                )?)
            } else {
                None
            };
            report_lost(experiment, mode, repository, opened.windows(), report)?;
            parts.push(Part {
                repository: repository.clone(),
                opened,
                retrieved,
            });
        }
        Ok(Self { parts })
    }

    fn identity(&self, experiment: &Experiment, mode: Mode) -> Result<Identity> {
        let mut identity = settings(experiment, mode).input("tasks", experiment.tasks()?.digest());
        for part in &self.parts {
            let windows = &*part.opened.header.checksum;
            identity = identity.input(&format!("windows of {}", part.repository), windows);
            if let Some(retrieved) = &part.retrieved {
                let retrieval = &*retrieved.header.checksum;
                identity = identity.input(&format!("retrieval of {}", part.repository), retrieval);
            }
        }
        Ok(identity)
    }

    fn build(
        &mut self,
        experiment: &Experiment,
        mode: Mode,
        kept: &KeptPrompts,
    ) -> Result<Vec<Built>> {
        let tasks = experiment.tasks()?;
        let mut built: Vec<Built> = Vec::new();
        for part in &mut self.parts {
            match &mut part.retrieved {
                Some(retrieved) => {
                    let (retrieval, queries) = retrieved.read()?;
                    let found = (&retrieval, &queries);
                    built.extend(build_part(experiment, mode, &mut part.opened, found, kept)?);
                }
                None => {
                    let (windows, p50k) = (part.opened.windows(), P50k::new());
                    let builder =
                        Builder::new(windows, &p50k, mode, experiment.guard, experiment.budget);
                    let own = tasks_of(&tasks.tasks, part);
                    built.par_extend(own.map(|task| build_one(&builder, task, None)));
                }
            }
        }
        built.sort_unstable_by_key(|prompt| (prompt.row, prompt.sample));
        Ok(built)
    }
}

impl Retrieved {
    fn open(
        experiment: &Experiment,
        mode: Mode,
        repository: &str,
        windows: &Header,
    ) -> Result<Self> {
        let (queries_header, queries) = query_windows(experiment, mode, repository, Some(windows))?;
        let path = experiment.layout.retrieval(mode, repository);
        let command = format!("search --mode {mode}");
        let (header, results) = require_open::<Retrieval>(&path, &command)?;
        check_input(&path, &header, "windows", windows, &command)?;
        check_input(&path, &header, "queries", &queries_header, &command)?;
        check_parameter(&path, &header, ("hole-guard", experiment.guard), &command)?;
        Ok(Self {
            command,
            header,
            results,
            queries,
        })
    }

    fn read(&mut self) -> Result<(Retrieval, QueryWindows)> {
        let again = |error| made_again(error, &self.command);
        let retrieval = Retrieval::from_columns(&mut self.results).map_err(again)?;
        let queries = QueryWindows::from_columns(&mut self.queries)?;
        let fit = retrieval
            .check()
            .map_err(|reason| self.results.damaged(reason));
        fit.map_err(|error| made_again(error, &self.command))?;
        Ok((retrieval, queries))
    }
}

/// The prompts of one repository: those that would come out the same are taken from before.
fn build_part(
    experiment: &Experiment,
    mode: Mode,
    opened: &mut Opened,
    (retrieval, queries): (&Retrieval, &QueryWindows),
    kept: &KeptPrompts,
) -> Result<Vec<Built>> {
    let tasks = &experiment.tasks()?.tasks;
    let inputs = retrieval.found.par_iter().zip(&queries.windows);
    let inputs: Vec<Input> = inputs
        .map(|(found, query)| Input::of(found, query, opened.windows(), experiment.guard))
        .collect();
    let missing = retrieval.found.iter().zip(&queries.windows).zip(&inputs);
    let missing = missing.filter(|(_, input)| kept.get(input).is_none());
    let files = missing
        .flat_map(|((found, query), _)| {
            shown_files(found, query, opened.windows(), experiment.guard)
        })
        .collect();
    let windows = opened.read_files(files)?;
    let p50k = P50k::new();
    let builder = Builder::new(windows, &p50k, mode, experiment.guard, experiment.budget);
    let work = retrieval.found.par_iter().zip(&queries.windows).zip(inputs);
    let built = work.filter_map(|((found, query), input)| {
        if let Some(kept) = kept.get(&input) {
            return Some(kept.built(found, input));
        }
        let row = |task: &Task| task.row;
        let at = tasks
            .binary_search_by_key(&(found.row as usize), row)
            .ok()?;
        let built = build_one(&builder, &tasks[at], Some((found, query)));
        let input = Some(input);
        Some(Built { input, ..built })
    });
    Ok(built.collect())
}

/// The files whose text a prompt may show: of each window found, that of its own place and of the first allowed one.
fn shown_files(
    found: &Found,
    query: &QueryWindow,
    windows: &RepoWindows,
    guard: HoleGuard,
) -> Vec<u32> {
    let hole = Hole::of_query(query, windows, guard);
    let shown = |hit: &Hit| {
        let named = hole.named_places(hit.window);
        let own = windows.first_place(hit.window as usize);
        named
            .into_iter()
            .take(1)
            .chain([own])
            .map(|place| place.file)
    };
    found.hits.iter().flat_map(shown).collect()
}

fn build_one(builder: &Builder<'_>, task: &Task, found: Option<(&Found, &QueryWindow)>) -> Built {
    let prompt = builder.build(task, found.map(|(found, _)| found));
    Built {
        row: task.row as u32,
        sample: found.map_or(0, |(found, _)| found.sample),
        tokens: prompt.tokens,
        has_blocks: !prompt.chosen.is_empty(),
        line: builder.line(task, found.map(|(_, query)| query), &prompt),
        input: None,
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
        task.repository == part.repository && hole_lines(task, part.opened.windows()).is_ok()
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
