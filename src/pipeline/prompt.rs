//! `prompt`: tasks + retrieval results → prompts (JSONL, in the order of the tasks).

use std::sync::{Arc, Mutex, OnceLock};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::vectorize::query_windows;
use super::window::repo_windows;
use super::{
    Experiment, Report, check_digest, check_input, check_parameter, require, require_jsonl,
};
use crate::artifact::{Header, Identity, JsonLines};
use crate::error::Result;
use crate::prompt::{BlockCounts, Builder, Scratch};
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

/// Builds the prompts of each mode.
///
/// # Errors
/// Retrieval results are missing or stale, or an artifact cannot be written.
pub fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    let mut report = Report::default();
    let mut shared = Shared::default();
    for &mode in modes {
        let sources = Sources::read(experiment, mode, &mut report)?;
        let identity = sources.identity(experiment, mode)?;
        report.ensure_jsonl(experiment.layout.prompts(mode), &identity, |_| {
            sources.build(experiment, mode, &mut shared)
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

    fn build(&self, experiment: &Experiment, mode: Mode, shared: &mut Shared) -> Result<JsonLines> {
        let tasks = &experiment.tasks()?.tasks;
        shared.own_tokens.resize_with(tasks.len(), OnceLock::new);
        let p50k = P50k::new();
        let builders: Vec<Builder<'_>> = self
            .parts
            .iter()
            .map(|part| {
                let (header, windows) = &part.windows;
                let (guard, budget) = (experiment.guard, experiment.budget);
                shared.count_once(header, Builder::new(windows, &p50k, mode, guard, budget))
            })
            .collect();
        let shared = &*shared;
        let make = |wanted: &Wanted<'_>, scratch: &mut Scratch, batch: &mut Batch| {
            let (task, builder) = (&tasks[wanted.task], &builders[wanted.part]);
            let (found, query) = wanted.retrieved.unzip();
            let own_tokens = &shared.own_tokens[wanted.task];
            let prompt = builder.build_with(task, found, own_tokens, scratch);
            builder.line_into(task, query, &prompt, &mut batch.text);
            batch.tokens += prompt.tokens as u64;
            batch.with_blocks += u64::from(!prompt.chosen.is_empty());
        };
        Ok(in_batches(&self.wanted(tasks), make, shared))
    }

    /// The prompts to make, in the order of the tasks. Tasks whose hole does not exist have none in any mode.
    fn wanted(&self, tasks: &[Task]) -> Vec<Wanted<'_>> {
        let mut wanted = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let of = |task, retrieved| Wanted {
                task,
                part: number,
                retrieved,
            };
            match &part.retrieved {
                Some(((_, retrieval), queries)) => {
                    let found = retrieval.found.iter().zip(&queries.windows);
                    wanted.extend(found.filter_map(|(found, query)| {
                        let row = |task: &Task| task.row;
                        let at = tasks.binary_search_by_key(&(found.row as usize), row);
                        Some(of(at.ok()?, Some((found, query))))
                    }));
                }
                None => wanted.extend(
                    (0..tasks.len())
                        .filter(|&at| tasks[at].repository == part.repository)
                        .filter(|&at| hole_lines(&tasks[at], &part.windows.1).is_ok())
                        .map(|at| of(at, None)),
                ),
            }
        }
        let sample = |wanted: &Wanted<'_>| wanted.retrieved.map_or(0, |(found, _)| found.sample);
        wanted.sort_unstable_by_key(|wanted| (wanted.task, sample(wanted)));
        wanted
    }
}

/// One prompt to make.
struct Wanted<'a> {
    /// Index of its task, which are in the order of their rows.
    task: usize,
    /// Index of its repository.
    part: usize,
    retrieved: Option<(&'a Found, &'a QueryWindow)>,
}

/// What the modes of one run share, so that nothing is counted once a mode.
#[derive(Default)]
struct Shared {
    /// By the checksum of a repository's windows.
    blocks: FxHashMap<String, Arc<BlockCounts>>,
    /// What each task's own part of its prompts takes.
    own_tokens: Vec<OnceLock<usize>>,
    /// One a thread that builds.
    scratches: Mutex<Vec<Scratch>>,
}

impl Shared {
    fn count_once<'a>(&mut self, windows: &Header, builder: Builder<'a>) -> Builder<'a> {
        let counts = self.blocks.entry(windows.checksum.clone());
        let counts = counts.or_insert_with(|| builder.counts());
        builder.with_counts(Arc::clone(counts))
    }

    fn with_scratch(&self, work: impl FnOnce(&mut Scratch)) {
        let kept = self.scratches.lock().ok().and_then(|mut kept| kept.pop());
        let mut scratch = kept.unwrap_or_default();
        work(&mut scratch);
        if let Ok(mut kept) = self.scratches.lock() {
            kept.push(scratch);
        }
    }
}

/// Prompts that one thread makes before another may take over: enough to make the handing out cheap.
const BATCH: usize = 4;
/// Batches in memory at a time for each thread. Their memory is used over and over: it stays in the processor's
/// caches, and is not asked of the system again.
const BATCHES: usize = 8;

/// Neighbouring prompts' records, and the sums over all that went through it.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    tokens: u64,
    with_blocks: u64,
}

/// Makes all prompts in parallel and puts their records together in the order of `wanted`.
fn in_batches(
    wanted: &[Wanted<'_>],
    make: impl Fn(&Wanted<'_>, &mut Scratch, &mut Batch) + Sync,
    shared: &Shared,
) -> JsonLines {
    let mut text = Vec::new();
    let mut batches = Vec::new();
    batches.resize_with(BATCHES * rayon::current_num_threads(), Batch::default);
    for wanted in wanted.chunks(BATCH * batches.len()) {
        let pairs = batches.par_iter_mut().zip(wanted.par_chunks(BATCH));
        pairs.for_each(|(batch, wanted)| {
            shared.with_scratch(|scratch| {
                for wanted in wanted {
                    make(wanted, scratch, batch);
                }
            });
        });
        for batch in &mut batches {
            text.extend_from_slice(&batch.text);
            batch.text.clear();
        }
    }
    let tokens = batches.iter().map(|batch| batch.tokens).sum();
    let with_blocks = batches.iter().map(|batch| batch.with_blocks).sum();
    JsonLines {
        text,
        records: wanted.len(),
        totals: [
            (TOKENS.to_owned(), tokens),
            (WITH_BLOCKS.to_owned(), with_blocks),
        ]
        .into(),
    }
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
