//! `prompt`: tasks + retrieval results → prompts (JSONL, in the order of the tasks).

mod batches;
mod input;

use std::sync::OnceLock;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use batches::{Batch, Shared, Wanted, in_batches};
use input::{input, input_of_row};

use super::kept::{Input, KeptLines, NotedLine};
use super::vectorize::query_windows;
use super::windows::Opened;
use super::{
    Experiment, Report, Unread, check_digest, check_input, check_parameter, chunks, made_again,
    missing,
};
use crate::error::Result;
use crate::prompt::{Builder, Scratch};
use crate::repository::window::RepoWindows;
use crate::retrieve::query::{Mode, QueryWindow, QueryWindows, hole_lines};
use crate::retrieve::{Found, Hit, Hole, HoleGuard, Retrieval};
use crate::store::artifact::{self, Header, Identity, LineSink, LineTotals};
use crate::task::Task;
use crate::text::tokenize::P50k;

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

pub(super) const TOKENS: &str = "tokens";
pub(super) const TASKS: &str = "tasks";
pub(super) const WITH_BLOCKS: &str = "prompts with retrieved blocks";

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

/// What makes a mode's prompts.
fn command(mode: Mode) -> String {
    match mode {
        Mode::Prediction => "rg-rg".into(),
        _ => format!("prompt --mode {mode}"),
    }
}

/// The text of a mode's prompts.
///
/// # Errors
/// They are damaged or cannot be read.
pub(super) fn read_prompts(experiment: &Experiment, mode: Mode) -> Result<Vec<u8>> {
    let read = artifact::read_jsonl(&experiment.layout.prompts(mode));
    let (_, text) = read.map_err(|error| made_again(error, &command(mode)))?;
    Ok(text)
}

/// The header of a mode's prompts, once they are known to be made of these tasks with these settings; their text is
/// checked where it is [read](read_prompts).
///
/// # Errors
/// They are missing, cut off, or were made otherwise.
pub(super) fn require_prompts(experiment: &Experiment, mode: Mode) -> Result<Header> {
    let (path, command) = (experiment.layout.prompts(mode), command(mode));
    if !path.exists() {
        return Err(missing(&path, "prompts", &command));
    }
    let header = artifact::jsonl_header(&path).map_err(|error| made_again(error, &command))?;
    let settings = match &experiment.chunks {
        Some(_) => chunks::prompt_settings(experiment, mode)?,
        None => settings(experiment, mode),
    };
    for (name, value) in &settings.parameters {
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

/// What a prompt adds to the sums.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Adds {
    tokens: u64,
    has_blocks: bool,
}

fn totals(lines: &[NotedLine<Adds>]) -> LineTotals {
    let tokens = lines.iter().map(|line| line.adds.tokens).sum();
    let with_blocks = lines.iter().filter(|line| line.adds.has_blocks).count() as u64;
    let totals = [
        (TOKENS.to_owned(), tokens),
        (WITH_BLOCKS.to_owned(), with_blocks),
    ];
    LineTotals {
        records: lines.len(),
        totals: totals.into(),
    }
}

/// Builds the prompts of each mode.
///
/// # Errors
/// Retrieval results are missing or stale, or an artifact cannot be written.
pub fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    if experiment.chunks.is_some() {
        return chunks::prompt(experiment, modes);
    }
    let mut report = Report::default();
    let repositories = experiment.repositories.iter();
    let mut opened: Vec<Opened> = repositories
        .map(|repository| Opened::new(experiment, repository))
        .collect::<Result<_>>()?;
    let tasks = experiment.tasks()?.digest();
    let mut shared = Shared::default();
    for &mode in modes {
        let mut sources = Sources::open(experiment, mode, &opened, &mut report)?;
        let identity = sources.identity(experiment, &tasks);
        let path = experiment.layout.prompts(mode);
        let note = experiment.layout.note(&path, "inputs");
        let mut settings = identity.clone();
        settings.inputs.retain(|name, _| name == TASKS);
        let mut noted = Vec::new();
        let header = report.ensure_jsonl(path.clone(), &identity, |_, sink| {
            let kept = KeptLines::read(&path, &note, &settings);
            noted = sources.build(experiment, &mut opened, kept, (&mut shared, sink))?;
            Ok(totals(&noted))
        })?;
        NotedLine::write(noted, &note, settings, &header);
    }
    Ok(report)
}

/// What the prompts of one mode are made from, besides the windows.
struct Sources {
    mode: Mode,
    /// One a repository.
    parts: Vec<Part>,
}

struct Part {
    repository: String,
    /// Checksum of the windows.
    windows: String,
    /// Missing in the mode that retrieves nothing.
    retrieved: Option<Retrieved>,
}

/// Retrieval results and their query windows, to be read.
struct Retrieved {
    results: Unread<Retrieval>,
    queries: Unread<QueryWindows>,
}

impl Sources {
    fn open(
        experiment: &Experiment,
        mode: Mode,
        opened: &[Opened],
        report: &mut Report,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        for (repository, opened) in experiment.repositories.iter().zip(opened) {
            let header = &opened.header;
            let retrieved = if mode.retrieves() {
                Some(Retrieved::open(experiment, mode, repository, header)?)
            } else {
                None
            };
            report_lost(experiment, mode, repository, opened.windows(), report)?;
            parts.push(Part {
                repository: repository.clone(),
                windows: header.checksum.clone(),
                retrieved,
            });
        }
        Ok(Self { mode, parts })
    }

    fn identity(&self, experiment: &Experiment, tasks: &str) -> Identity {
        let mut identity = settings(experiment, self.mode).input(TASKS, tasks);
        for part in &self.parts {
            let windows = format!("windows of {}", part.repository);
            identity = identity.input(&windows, &*part.windows);
            if let Some(retrieved) = &part.retrieved {
                let retrieval = &*retrieved.results.header.checksum;
                identity = identity.input(&format!("retrieval of {}", part.repository), retrieval);
            }
        }
        identity
    }

    /// Makes the prompts; returns what each was made from. Those that would come out the same are taken from before.
    fn build(
        &mut self,
        experiment: &Experiment,
        opened: &mut [Opened],
        kept: KeptLines<Adds>,
        (shared, sink): (&mut Shared, &mut LineSink),
    ) -> Result<Vec<NotedLine<Adds>>> {
        let tasks = &experiment.tasks()?.tasks;
        let (mode, guard, budget) = (self.mode, experiment.guard, experiment.budget);
        let results = self.read(opened, guard)?;
        let wanted = self.wanted(tasks, opened, &results);
        if let Some((header, lines)) = kept.same_as(wanted.iter().map(|wanted| &wanted.input)) {
            sink.keep(header);
            return Ok(lines);
        }
        let kept = kept.load();
        read_texts(opened, &results, guard, &kept)?;
        shared.own_tokens.resize_with(tasks.len(), OnceLock::new);
        let p50k = P50k::new();
        let parts = self.parts.iter().zip(opened.iter());
        let builders: Vec<Builder<'_>> = parts
            .map(|(part, opened)| {
                let builder = Builder::new(opened.windows(), &p50k, mode, guard, budget);
                shared.count_once(&part.windows, builder)
            })
            .collect();
        let shared = &*shared;
        let make = |wanted: &Wanted<'_>, scratch: &mut Scratch, batch: &mut Batch| {
            if let Some(line) = kept.get(&wanted.input) {
                return batch.keep(&line);
            }
            let (task, builder) = (&tasks[wanted.task], &builders[wanted.part]);
            let (found, query) = wanted.retrieved.unzip();
            let own_tokens = &shared.own_tokens[wanted.task];
            let prompt = builder.build_with(task, found, own_tokens, scratch);
            let begin = batch.text.len();
            builder.line_into(task, query, &prompt, &mut batch.text);
            batch.lines.push(NotedLine {
                input: wanted.input,
                bytes: (batch.text.len() - begin) as u64,
                adds: Adds {
                    tokens: prompt.tokens as u64,
                    has_blocks: !prompt.chosen.is_empty(),
                },
            });
        };
        in_batches(&wanted, make, shared, sink)
    }

    /// Reads what was retrieved, and works out what each prompt is made from.
    fn read(&mut self, opened: &[Opened], guard: HoleGuard) -> Result<Vec<Option<Results>>> {
        let parts = self.parts.iter_mut().zip(opened);
        let read = |(part, opened): (&mut Part, &Opened)| {
            let Some(retrieved) = &mut part.retrieved else {
                return Ok(None);
            };
            let windows = opened.windows();
            let (retrieval, queries) = retrieved.read(windows.len())?;
            let both = retrieval.found.par_iter().zip(&queries.windows);
            let inputs = both.map(|(found, query)| input(found, query, windows, guard));
            let inputs = inputs.collect();
            Ok(Some(Results {
                retrieval,
                queries,
                inputs,
            }))
        };
        parts.map(read).collect()
    }

    /// The prompts to make, in the order of the tasks. Tasks whose hole does not exist have none in any mode.
    fn wanted<'a>(
        &self,
        tasks: &[Task],
        opened: &[Opened],
        results: &'a [Option<Results>],
    ) -> Vec<Wanted<'a>> {
        let mut wanted = Vec::new();
        let parts = self.parts.iter().zip(opened).zip(results);
        for (number, ((part, opened), result)) in parts.enumerate() {
            let of = |task, input, retrieved| Wanted {
                task,
                part: number,
                retrieved,
                input,
            };
            match result {
                Some(results) => {
                    wanted.extend(results.each().filter_map(|(found, query, input)| {
                        let row = |task: &Task| task.row;
                        let at = tasks.binary_search_by_key(&(found.row as usize), row);
                        Some(of(at.ok()?, *input, Some((found, query))))
                    }));
                }
                None => wanted.extend(
                    (0..tasks.len())
                        .filter(|&at| tasks[at].repository == part.repository)
                        .filter(|&at| hole_lines(&tasks[at], opened.windows()).is_ok())
                        .map(|at| of(at, input_of_row(tasks[at].row), None)),
                ),
            }
        }
        let sample = |wanted: &Wanted<'_>| wanted.retrieved.map_or(0, |(found, _)| found.sample);
        wanted.sort_unstable_by_key(|wanted| (wanted.task, sample(wanted)));
        wanted
    }
}

impl Retrieved {
    fn open(
        experiment: &Experiment,
        mode: Mode,
        repository: &str,
        windows: &Header,
    ) -> Result<Self> {
        let queries = query_windows(experiment, mode, repository, Some(windows))?;
        let path = experiment.layout.retrieval(mode, repository);
        let command = format!("search --mode {mode}");
        let results = Unread::<Retrieval>::open(&path, &command)?;
        let header = &results.header;
        check_input(&path, header, "windows", windows, &command)?;
        check_input(&path, header, "queries", &queries.header, &command)?;
        check_parameter(&path, header, ("hole-guard", experiment.guard), &command)?;
        Ok(Self { results, queries })
    }

    /// Results for so many windows, and their queries.
    fn read(&mut self, windows: usize) -> Result<(Retrieval, QueryWindows)> {
        let queries = self.queries.read(None)?;
        let retrieval = self.results.read(Some(queries.windows.len()))?;
        if retrieval.windows as usize == windows {
            return Ok((retrieval, queries));
        }
        let reason = format!(
            "its results are for {} windows, not {windows}",
            retrieval.windows
        );
        let damaged = self.results.columns.damaged(reason);
        Err(made_again(damaged, &self.results.command))
    }
}

/// What was retrieved from one repository, and what each prompt is made from.
struct Results {
    retrieval: Retrieval,
    queries: QueryWindows,
    inputs: Vec<Input>,
}

impl Results {
    fn each(&self) -> impl Iterator<Item = (&Found, &QueryWindow, &Input)> {
        let found = self.retrieval.found.iter();
        let all = found.zip(&self.queries.windows).zip(&self.inputs);
        all.map(|((found, query), input)| (found, query, input))
    }
}

/// Reads the texts that the prompts need which are not kept from before.
fn read_texts(
    opened: &mut [Opened],
    results: &[Option<Results>],
    guard: HoleGuard,
    kept: &KeptLines<Adds>,
) -> Result<()> {
    for (opened, results) in opened.iter_mut().zip(results) {
        let missing = results.iter().flat_map(Results::each);
        let missing = missing.filter(|(_, _, input)| kept.get(input).is_none());
        let files = missing
            .flat_map(|(found, query, _)| shown_files(found, query, opened.windows(), guard))
            .collect();
        opened.read_files(files)?;
    }
    Ok(())
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
        let places = named.into_iter().take(1).chain([own]);
        places.map(|place| place.file)
    };
    found.hits.iter().flat_map(shown).collect()
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
    for task in tasks.of_repository(repository) {
        if let Err(reason) = hole_lines(task, windows) {
            report.problems.push(tasks.error(task, reason));
        }
    }
    Ok(())
}
