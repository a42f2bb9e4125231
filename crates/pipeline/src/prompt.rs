//! `prompt`: tasks + retrieval results → prompts (JSONL, in the order of the tasks), or the tasks with their cross-file context.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use repoformer_core::prompt::{BlockCounts, Builder, BuilderSettings, Scratch};
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::repository::{Shard, parallel};
use repoformer_core::retrieve::query::hole_lines;
use repoformer_core::retrieve::{Align, Found, Mode, Query};
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::artifact::{self, Header, Identity, LineSink, LineTotals};
use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::{Message, StageRun};
use repoformer_text::tokenize::P50k;
use rustc_hash::{FxHashMap, FxHashSet};

use super::contexts::{RightContexts, needs_contexts, open_needed_contexts};
use super::experiment::{Experiment, PromptLayout};
use super::fragments::OpenFragments;
use super::plan::planned_digest;
use super::prompt_batches::batches;
use super::prompt_lines::{Line, Maker};
use super::prompt_warnings::{warn_of_budgets, warn_of_contexts, warn_of_others, warn_of_specials};
use super::retrieved::{OnDisk, Retrieved};
use super::stage::{
    StageReport, Unread, by_repository, check_digest, check_parameters, made_again, missing,
};

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
const TASKS: &str = "tasks";
const RETRIEVAL: &str = "retrieval";
const WITH_BLOCKS: &str = "prompts with retrieved blocks";

/// Parameter of what a shard made.
pub(super) const SHARD: &str = "shard";

const WITHOUT_PROMPT: &str = "tasks without a prompt";

/// Revision of the records; raised with every change of what they say, so that cached prompts are made again.
const RECORDS: u32 = 2;

/// Revision of how functions and classes are shown.
const DEFINITIONS: u32 = 2;

/// The settings that shape a mode's prompts.
fn settings(experiment: &Experiment, mode: Mode) -> Identity {
    let prompts = &experiment.prompts;
    let mut identity = Identity::new("prompts")
        .parameter("records", RECORDS)
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .parameter("prompt-style", prompts.layout.name());
    if let PromptLayout::Style(style) = &prompts.layout {
        identity = identity
            .parameter("template", style.digest())
            .parameter("right-context", style.include().right);
    }
    let is_repocoder = matches!(prompts.layout, PromptLayout::RepoCoder);
    // What fits decides which functions and classes are shown, too.
    if matches!(prompts.layout, PromptLayout::Style(_)) || prompts.align == Align::Enclosing {
        let budget = prompts.budget;
        identity = identity
            .parameter("tokenizer", prompts.tokenizer.digest())
            .parameter("max-prompt-tokens", budget.total);
        for (name, tokens) in [
            ("max-left-tokens", budget.left),
            ("max-right-tokens", budget.right),
            ("max-cross-file-tokens", budget.cross_file),
        ] {
            let tokens = tokens.map_or("any".to_owned(), |tokens| tokens.to_string());
            identity = identity.parameter(name, tokens);
        }
    }
    if !mode.retrieves() {
        return identity;
    }
    if is_repocoder {
        identity = identity.parameter("max-prompt-tokens", prompts.budget.total);
    }
    if matches!(prompts.align, Align::Enclosing | Align::Signature) {
        identity = identity.parameter("definitions", DEFINITIONS);
    }
    identity = experiment.visible(experiment.ranked(experiment.cut(identity)));
    identity
        .parameter("query", experiment.form(mode))
        .parameter("query-lines", experiment.retrieval.query_lines)
        .parameter("top-k", experiment.layout.top_k)
        .parameter("max-blocks", prompts.most)
        .parameter("align", prompts.align)
        .parameter("full-paths", prompts.full_paths)
}

/// Stage that makes a mode's prompts.
fn step(mode: Mode) -> StageRun {
    match mode {
        Mode::Prediction => StageRun::Any("rg-rg"),
        _ => StageRun::InMode("prompt", mode.name()),
    }
}

/// Calls `take` with the lines of a mode's prompts, which lie at `path`, some megabytes at a time; an error at the end may say
/// that they are not those of `header`.
///
/// # Errors
/// They are damaged or cannot be read, or an error of `take`.
pub(super) fn for_each_prompts(
    path: &Path,
    mode: Mode,
    header: &Header,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let read = artifact::for_each_piece(path, header, take);
    read.map_err(|error| made_again(error, &step(mode)))
}

/// The header of a mode's prompts, once they are known to be made of these tasks with these settings; their text is
/// checked where it is [read](for_each_prompts).
///
/// # Errors
/// They are missing, cut off, or were made otherwise.
pub(super) fn require_prompts(experiment: &Experiment, mode: Mode) -> Result<Header> {
    let (path, step) = (experiment.layout.prompts(mode), step(mode));
    let header = match experiment.planned(&path) {
        Some(header) => header,
        None if !path.exists() => return Err(missing(&path, "prompts", &step)),
        None => artifact::jsonl_header(&path).map_err(|error| made_again(error, &step))?,
    };
    check_parameters(&path, &header, &settings(experiment, mode), &step)?;
    if let Some(tasks) = &experiment.tasks {
        check_digest(&path, &header, TASKS, &tasks.digest(), &step)?;
        if are_sources_there(experiment, mode) {
            let sources = Sources::open(experiment, mode, &mut Shared::new(experiment, tasks))?;
            check_digest(&path, &header, RETRIEVAL, &sources.digest(), &step)?;
        }
    }
    Ok(header)
}

/// Whether all that a mode's prompts are made of is in the cache; prompts may be completed where they alone are.
fn are_sources_there(experiment: &Experiment, mode: Mode) -> bool {
    let layout = &experiment.layout;
    let of_repository = |repository: &String| {
        let retrieved = [
            layout.repo_windows(repository),
            layout.query_windows(mode, repository),
            layout.retrieval(mode, repository),
        ];
        let files = match mode.retrieves() {
            true => &retrieved[..],
            false if holds_holes(experiment, mode) => &retrieved[..1],
            false => &[],
        };
        let contexts = layout.right_contexts(repository);
        files.iter().all(|path| experiment.has(path))
            && (!needs_contexts(experiment, repository) || experiment.has(&contexts))
    };
    !experiment.repos_dir.as_os_str().is_empty()
        && experiment.repositories.iter().all(of_repository)
}

/// Whether the fragments tell where the holes of a mode's prompts are.
fn holds_holes(experiment: &Experiment, mode: Mode) -> bool {
    matches!(experiment.prompts.layout, PromptLayout::RepoCoder) && !mode.retrieves()
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
pub fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    let mut report = StageReport::of(experiment);
    let tasks = experiment.tasks()?;
    warn_of_specials(experiment, &mut report);
    warn_of_budgets(experiment, &mut report);
    warn_of_contexts(experiment, &mut report)?;
    let mut shared = Shared::new(experiment, tasks);
    for &mode in modes {
        if !matches!(experiment.prompts.layout, PromptLayout::RepoCoder) {
            warn_of_others(experiment, tasks, &mut report);
        }
        let mut sources = Sources::open(experiment, mode, &mut shared)?;
        let identity = sources.identity(experiment, settings(experiment, mode), tasks);
        let path = experiment.layout.prompts(mode);
        let mut is_told = false;
        let header = report.ensure_jsonl(path, &identity, |report, sink| {
            is_told = true;
            sources.build(experiment, &mut shared, &mut |line| {
                write_line(line, sink, &mut report.problems)
            })
        })?;
        // Tasks without a prompt are complained of each time, not only when the others' prompts are made.
        let lost = header.totals.get(WITHOUT_PROMPT).copied().unwrap_or(0);
        if !is_told && lost > 0 {
            sources.build(experiment, &mut shared, &mut |line| {
                report.problems.extend(line.err());
                Ok(())
            })?;
        }
    }
    Ok(report)
}

/// Sources of the prompts of several modes, for their identities.
pub(super) struct PromptSources<'e> {
    experiment: &'e Experiment,
    tasks: &'e TaskSet,
    shared: Shared,
}

/// Sources of one mode's prompts, for their identity.
pub(super) struct ModeSources<'e> {
    experiment: &'e Experiment,
    tasks: &'e TaskSet,
    sources: Sources,
}

impl<'e> PromptSources<'e> {
    pub(super) fn new(experiment: &'e Experiment, tasks: &'e TaskSet) -> Self {
        Self { experiment, tasks, shared: Shared::new(experiment, tasks) }
    }

    /// # Errors
    /// Retrieval results are missing or stale.
    pub(super) fn open(&mut self, mode: Mode) -> Result<ModeSources<'e>> {
        let Self { experiment, tasks, shared } = self;
        let sources = Sources::open(experiment, mode, shared)?;
        Ok(ModeSources { experiment, tasks, sources })
    }
}

impl ModeSources<'_> {
    /// Identity of the prompts of all tasks.
    pub(super) fn identity(&self) -> Identity {
        let settings = settings(self.experiment, self.sources.mode);
        self.sources.identity(self.experiment, settings, self.tasks)
    }

    /// Identity of a shard's prompts.
    pub(super) fn identity_of_shard(&self, shard: Shard) -> Identity {
        let settings = settings(self.experiment, self.sources.mode);
        self.sources.identity_of_shard(settings, self.tasks, shard)
    }
}

/// Takes the lines in the order of the tasks, then of their samples.
type Emit<'e> = &'e mut dyn FnMut(Result<Line>) -> Result<()>;

/// Fragments and counts that the modes of one run share, so that nothing is read or counted once a mode.
struct Shared {
    /// Each repository's fragments, where a mode needs them.
    fragments: Vec<Option<OpenFragments>>,
    /// Each repository's counts of its fragments' tokens.
    blocks: Vec<Option<Arc<BlockCounts>>>,
    /// For each task what its own part of its prompts takes.
    own_tokens: Vec<OnceLock<usize>>,
}

impl Shared {
    fn new(experiment: &Experiment, tasks: &TaskSet) -> Self {
        let repositories = experiment.repositories.len();
        Self {
            fragments: std::iter::repeat_with(|| None).take(repositories).collect(),
            blocks: vec![None; repositories],
            own_tokens: vec![OnceLock::new(); tasks.tasks().len()],
        }
    }
}

/// Sources of one mode's prompts.
struct Sources {
    mode: Mode,
    parts: Vec<Part>,
}

/// Sources of one repository's prompts, to be read where they are made; nothing of it is needed by tasks that carry all their
/// contexts.
struct Part {
    repository: String,
    contexts: Option<Unread<RightContexts>>,
    retrieved: Option<OnDisk>,
    /// Checksum of the fragments that hold the holes of RepoCoder's prompts without retrieval.
    holes: Option<String>,
}

/// Sources of one repository's prompts.
struct ReadPart<'a> {
    contexts: Option<RightContexts>,
    retrieved: Option<Retrieved>,
    /// The fragments that were searched, or that hold the holes.
    fragments: Option<&'a RepoFragments>,
}

/// A prompt to make.
struct Wanted<'a> {
    task: &'a Task,
    /// Index of the task in its set.
    index: usize,
    /// Index of its repository.
    part: usize,
    found: Option<(&'a Found, &'a Query)>,
    /// Reason why it has none.
    lost: Option<Message>,
}

impl Sources {
    fn open(experiment: &Experiment, mode: Mode, shared: &mut Shared) -> Result<Self> {
        let holds_holes = holds_holes(experiment, mode);
        let repositories = experiment.repositories.iter();
        for (repository, fragments) in repositories.zip(&mut shared.fragments) {
            if fragments.is_none() && (mode.retrieves() || holds_holes) {
                *fragments = Some(OpenFragments::open(experiment, repository)?);
            }
        }
        let repositories = experiment.repositories.iter();
        let headers = shared.fragments.iter().map(|open| open.as_ref().map(|open| &open.header));
        let headers: FxHashMap<&str, _> = repositories.map(String::as_str).zip(headers).collect();
        let parts = by_repository(experiment, |repository| {
            let fragments = headers[repository];
            Ok(Part {
                repository: repository.to_owned(),
                contexts: open_needed_contexts(experiment, repository)?,
                retrieved: match fragments.filter(|_| mode.retrieves()) {
                    Some(header) => Some(OnDisk::open(experiment, mode, repository, header)?),
                    None => None,
                },
                holes: fragments.filter(|_| holds_holes).map(|header| header.checksum.clone()),
            })
        })?;
        Ok(Self { mode, parts })
    }

    fn identity(&self, experiment: &Experiment, settings: Identity, tasks: &TaskSet) -> Identity {
        let identity = settings
            .input(TASKS, tasks.digest())
            .input(RETRIEVAL, self.digest())
            .parameter("repositories", experiment.repositories.len());
        match experiment.layout.shard {
            Some(shard) => identity.parameter(SHARD, shard),
            None => identity,
        }
    }

    /// Identity of a shard's prompts, where these are the sources of all.
    fn identity_of_shard(&self, settings: Identity, tasks: &TaskSet, shard: Shard) -> Identity {
        let held = || self.parts.iter().filter(|part| shard.holds(&part.repository));
        settings
            .input(TASKS, tasks.digest_of_shard(shard))
            .input(RETRIEVAL, Self::digest_of(held()))
            .parameter("repositories", held().count())
            .parameter(SHARD, shard)
    }

    /// Digest of all sources: a thousand repositories would make a header of their own.
    fn digest(&self) -> String {
        Self::digest_of(self.parts.iter())
    }

    fn digest_of<'p>(parts: impl Iterator<Item = &'p Part> + Clone) -> String {
        let checksums = |part| {
            let Part { contexts, retrieved, holes, .. }: &Part = part;
            let contexts = contexts.iter().map(|c| &*c.header.checksum);
            let retrieved = retrieved.iter().flat_map(OnDisk::checksums);
            contexts.chain(retrieved).chain(holes.as_deref()).collect::<Vec<&str>>()
        };
        if let Some(planned) = planned_digest(parts.clone().flat_map(checksums)) {
            return planned;
        }
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part.repository.as_bytes());
            for checksum in checksums(part) {
                hasher.update(checksum.as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Makes all lines and hands them over in order; returns the sums over those that could be made.
    fn build(
        &mut self,
        experiment: &Experiment,
        shared: &mut Shared,
        emit: Emit<'_>,
    ) -> Result<LineTotals> {
        let tasks = experiment.tasks()?;
        let batches = batches(tasks, self.parts.iter().map(|part| &*part.repository));
        let own = |at: &usize| tasks.numbers_of(&self.parts[*at].repository).count();
        let count = batches.iter().flatten().map(own).sum();
        let work = experiment.work(&format!("prompts {} of", self.mode), "prompts", count);
        let (mut totals, mut records) = ([(TOKENS, 0), (WITH_BLOCKS, 0), (WITHOUT_PROMPT, 0)], 0);
        for batch in &batches {
            self.build_some(experiment, shared, batch, &work, &mut |line| {
                match &line {
                    Ok(line) => {
                        totals[0].1 += line.tokens;
                        totals[1].1 += u64::from(line.has_cross_file);
                        records += 1;
                    }
                    Err(_) => totals[2].1 += 1,
                }
                emit(line)
            })?;
            if batches.len() > 1 {
                // All texts together may not fit into memory; another mode reads them again.
                for &at in batch {
                    shared.fragments[at].iter_mut().for_each(OpenFragments::forget);
                }
            }
        }
        let totals =
            totals.into_iter().filter(|(name, total)| *name != WITHOUT_PROMPT || *total > 0);
        Ok(LineTotals {
            records,
            totals: totals.map(|(name, total)| (name.to_owned(), total)).collect(),
        })
    }

    /// Builds the prompts of some repositories' tasks.
    fn build_some(
        &mut self,
        experiment: &Experiment,
        shared: &mut Shared,
        batch: &[usize],
        work: &Work,
        emit: Emit<'_>,
    ) -> Result<()> {
        let Shared { fragments, blocks, own_tokens } = shared;
        let mode = self.mode;
        let is_part = |at: usize| batch.binary_search(&at).is_ok();
        let parts = self.parts.iter_mut().zip(fragments).enumerate();
        let parts = parts.filter(|(at, _)| is_part(*at)).map(|(_, part)| part);
        let read = parallel::map(parts, |(part, fragments)| {
            let read = part.read(experiment, fragments.as_mut())?;
            Ok((&*part.repository, read))
        });
        let read: Vec<(&str, ReadPart<'_>)> = read.into_iter().collect::<Result<_>>()?;
        let blocks = blocks.iter_mut().enumerate().filter(|(at, _)| is_part(*at));
        let makers: Result<Vec<Maker<'_>>> = (read.iter().zip(blocks))
            .map(|((_, read), (_, blocks))| read.maker(experiment, mode, blocks))
            .collect();
        let (makers, wanted) = (makers?, wanted(experiment, mode, &read)?);
        // So many lines at a time are in memory.
        for wanted in wanted.chunks(64 * rayon::current_num_threads()) {
            let line = |scratch: &mut Scratch, wanted: &Wanted<'_>| match &wanted.lost {
                Some(reason) => Err(makers[wanted.part].tasks.error(wanted.task, reason)),
                None => makers[wanted.part].line(
                    wanted.task,
                    wanted.found,
                    &own_tokens[wanted.index],
                    scratch,
                ),
            };
            let lines = wanted.par_iter().map_init(Scratch::default, line);
            let lines: Vec<Result<Line>> = lines.collect();
            work.done(lines.len());
            lines.into_iter().try_for_each(&mut *emit)?;
        }
        Ok(())
    }
}

/// The prompts to make for tasks of these repositories, in the order of the tasks, then of their samples.
fn wanted<'a>(
    experiment: &'a Experiment,
    mode: Mode,
    read: &'a [(&str, ReadPart<'_>)],
) -> Result<Vec<Wanted<'a>>> {
    let tasks = experiment.tasks()?;
    let mut wanted = Vec::new();
    for (part, (repository, read)) in read.iter().enumerate() {
        let mut searched: FxHashSet<usize> = FxHashSet::default();
        let retrieved = read.retrieved.iter();
        for found in retrieved.flat_map(|r| r.retrieval.found.iter().zip(&r.queries.queries)) {
            let row = found.0.row as usize;
            let index = tasks.tasks().binary_search_by_key(&row, |task| task.row);
            let Ok(index) = index else { continue };
            searched.insert(index);
            wanted.push(Wanted {
                task: &tasks.tasks()[index],
                index,
                part,
                found: Some(found),
                lost: None,
            });
        }
        for index in tasks.numbers_of(repository).filter(|index| !searched.contains(index)) {
            let task = &tasks.tasks()[index];
            let lost = match &experiment.prompts.layout {
                // The tasks without a hole were reported when queries were made; without retrieval there are none to make.
                PromptLayout::RepoCoder if mode.retrieves() => continue,
                // Chunks keep no blank lines, by which holes are numbered.
                PromptLayout::RepoCoder if experiment.layout.cut.is_windows() => {
                    let fragments = read.fragments;
                    fragments
                        .and_then(|fragments| hole_lines(task, fragments).err())
                        .map(Message::from)
                }
                PromptLayout::Style(_) if mode.retrieves() => Some(message![
                    "nothing was searched for on its behalf, as ",
                    &StageRun::Any("window"),
                    " reported, so it has no prompt"
                ]),
                // Data that is only added to loses no task of its repository.
                _ => None,
            };
            wanted.push(Wanted { task, index, part, found: None, lost });
        }
    }
    let sample = |wanted: &Wanted<'_>| wanted.found.map_or(0, |(found, _)| found.sample);
    wanted.sort_by_key(|wanted| (wanted.index, sample(wanted)));
    Ok(wanted)
}

/// Counts tokens of blocks.
static P50K: P50k = P50k;

impl Part {
    fn read<'a>(
        &mut self,
        experiment: &Experiment,
        fragments: Option<&'a mut OpenFragments>,
    ) -> Result<ReadPart<'a>> {
        let contexts = self.contexts.as_mut().map(|contexts| contexts.read(None)).transpose()?;
        let (mut retrieved, mut outline) = (None, None);
        if let Some(open) = fragments {
            if let Some(on_disk) = &mut self.retrieved {
                retrieved = Some(on_disk.read_with_texts(experiment, open)?);
            }
            // Holes are found by the number of lines alone.
            if retrieved.is_some() || self.holes.is_some() {
                outline = Some(open.outline()?);
            }
        }
        Ok(ReadPart { contexts, retrieved, fragments: outline })
    }
}

impl ReadPart<'_> {
    fn maker<'a>(
        &'a self,
        experiment: &'a Experiment,
        mode: Mode,
        blocks: &mut Option<Arc<BlockCounts>>,
    ) -> Result<Maker<'a>> {
        let prompts = &experiment.prompts;
        let builder = match (&prompts.layout, self.fragments) {
            (PromptLayout::RepoCoder, Some(fragments)) => {
                let settings = BuilderSettings {
                    mode,
                    form: experiment.form(mode),
                    shown: experiment.shown(mode),
                    budget: prompts.repocoder_budget(),
                };
                let builder = Builder::new(fragments, &P50K, settings);
                let counts = blocks.get_or_insert_with(|| builder.counts());
                Some(builder.with_counts(Arc::clone(counts)))
            }
            _ => None,
        };
        let contexts = self.contexts.as_ref();
        let searched = self.retrieved.as_ref().zip(self.fragments);
        Ok(Maker {
            prompts,
            tasks: experiment.tasks()?,
            language: experiment.layout.language,
            mode,
            contexts: contexts.map(RightContexts::map).unwrap_or_default(),
            texts: searched.map(|(retrieved, fragments)| retrieved.texts(experiment, fragments)),
            builder,
        })
    }
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
