//! Sources of a mode's prompts, and making prompts from them.

use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashSet};
use rayon::prelude::*;
use repoformer_core::prompt::{BlockCounts, Builder, BuilderSettings, CountScratch};
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::repository::{Shard, parallel};
use repoformer_core::retrieve::query::hole_lines;
use repoformer_core::retrieve::{Mode, Query, RankedFragments};
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::artifact::{Identity, LineTotals};
use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::{Message, StageRun};
use repoformer_text::tokenize::P50k;

use super::contexts::{RightContexts, open_needed_contexts};
use super::engine::{Engine, LazyArtifact};
use super::experiment::{Experiment, PromptLayout};
use super::fragments::{Fragments, OpenFragments};
use super::plan::planned_digest;
use super::prompt_artifact::{
    RETRIEVAL, SHARD, TASKS, TOKENS, WITH_BLOCKS, WITHOUT_PROMPT, settings,
};
use super::prompt_batches::batches;
use super::prompt_lines::{Line, Maker};
use super::retrieved::{RepositoryResults, StoredResults};
use super::stage::by_repository;

/// True if the holes of a mode's prompts are found in the fragments.
pub(super) fn holds_holes(experiment: &Experiment, mode: Mode) -> bool {
    matches!(experiment.prompts.layout, PromptLayout::RepoCoder) && !mode.retrieves()
}

/// Sources of the prompts of several modes, for the prompts' identities.
pub(super) struct PromptSources<'e> {
    experiment: &'e Experiment,
    tasks: &'e TaskSet,
    shared: SharedSources,
}

/// Sources of one mode's prompts, for the prompts' identity.
pub(super) struct ModeSources<'e> {
    experiment: &'e Experiment,
    tasks: &'e TaskSet,
    sources: Sources,
}

impl<'e> PromptSources<'e> {
    pub(super) fn new(experiment: &'e Experiment, tasks: &'e TaskSet) -> Self {
        Self { experiment, tasks, shared: SharedSources::new(experiment, tasks) }
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
    /// Returns the identity of the prompts of all tasks.
    pub(super) fn identity(&self) -> Identity {
        self.sources.identity(self.experiment, self.tasks)
    }

    /// Returns the identity of a shard's prompts.
    pub(super) fn identity_of_shard(&self, shard: Shard) -> Identity {
        let settings = settings(self.experiment, self.sources.mode);
        self.sources.identity_of_shard(settings, self.tasks, shard)
    }
}

/// Receives the lines in the order of the tasks, then of their samples.
pub(super) type Emit<'e> = &'e mut dyn FnMut(Result<Line>) -> Result<()>;

/// Fragments and counts that the modes of one run share, so that nothing is read or counted once per mode.
pub(super) struct SharedSources {
    /// Each repository's fragments; `None` if no mode needs them.
    fragments: Vec<Option<OpenFragments>>,
    /// Token counts of each repository's fragments.
    blocks: Vec<Option<Arc<BlockCounts>>>,
    /// Size of each task's own part of its prompts, in tokens.
    own_tokens: Vec<OnceLock<usize>>,
}

impl SharedSources {
    pub(super) fn new(experiment: &Experiment, tasks: &TaskSet) -> Self {
        let repositories = experiment.repositories.len();
        Self {
            fragments: std::iter::repeat_with(|| None).take(repositories).collect(),
            blocks: vec![None; repositories],
            own_tokens: vec![OnceLock::new(); tasks.tasks().len()],
        }
    }
}

/// Sources of one mode's prompts.
pub(super) struct Sources {
    mode: Mode,
    parts: Vec<RepositorySources>,
}

/// Sources of one repository's prompts, which are read when prompts are made. Tasks that carry all their contexts need none of
/// them.
struct RepositorySources {
    repository: String,
    contexts: Option<LazyArtifact<RightContexts>>,
    retrieved: Option<StoredResults>,
    /// Checksum of the fragments in which holes are found, for RepoCoder's prompts without retrieval.
    holes: Option<String>,
}

/// Sources of one repository's prompts, read.
struct ReadPart<'a> {
    contexts: Option<RightContexts>,
    retrieved: Option<RepositoryResults>,
    /// Fragments that were searched, or in which holes are found.
    fragments: Option<&'a RepoFragments>,
}

/// A prompt to make.
struct PromptTask<'a> {
    task: &'a Task,
    /// Index of the task in the set.
    index: usize,
    /// Index of the task's repository.
    part: usize,
    found: Option<(&'a RankedFragments, &'a Query)>,
    /// Reason why the task has no prompt.
    lost: Option<Message>,
}

impl Sources {
    pub(super) fn open(
        experiment: &Experiment,
        mode: Mode,
        shared: &mut SharedSources,
    ) -> Result<Self> {
        let holds_holes = holds_holes(experiment, mode);
        let repositories = experiment.repositories.iter();
        for (repository, fragments) in repositories.zip(&mut shared.fragments) {
            if fragments.is_none() && (mode.retrieves() || holds_holes) {
                *fragments = Some(OpenFragments::open(&mut Engine::new(experiment), repository)?);
            }
        }
        let repositories = experiment.repositories.iter();
        let headers = shared.fragments.iter().map(|open| open.as_ref().map(|open| &open.header));
        let headers: HashMap<&str, _> = repositories.map(String::as_str).zip(headers).collect();
        let parts = by_repository(experiment, |repository| {
            let fragments = headers[repository];
            let mut engine = Engine::new(experiment);
            if let Some(header) = fragments {
                engine.assume(&Fragments::new(repository), header.clone());
            }
            Ok(RepositorySources {
                repository: repository.to_owned(),
                contexts: open_needed_contexts(&mut engine, repository)?,
                retrieved: if mode.retrieves() {
                    Some(StoredResults::open(&mut engine, mode, repository)?)
                } else {
                    None
                },
                holes: fragments.filter(|_| holds_holes).map(|header| header.checksum.clone()),
            })
        })?;
        Ok(Self { mode, parts })
    }

    pub(super) fn identity(&self, experiment: &Experiment, tasks: &TaskSet) -> Identity {
        let identity = settings(experiment, self.mode)
            .input(TASKS, tasks.digest())
            .input(RETRIEVAL, self.digest())
            .parameter("repositories", experiment.repositories.len());
        match experiment.layout.shard {
            Some(shard) => identity.parameter(SHARD, shard),
            None => identity,
        }
    }

    /// Returns the identity of a shard's prompts, if these are the sources of all shards.
    fn identity_of_shard(&self, settings: Identity, tasks: &TaskSet, shard: Shard) -> Identity {
        let held = || self.parts.iter().filter(|part| shard.holds(&part.repository));
        settings
            .input(TASKS, tasks.digest_of_shard(shard))
            .input(RETRIEVAL, Self::digest_of(held()))
            .parameter("repositories", held().count())
            .parameter(SHARD, shard)
    }

    /// Returns one digest of all sources: the checksums of a thousand repositories would fill the header.
    pub(super) fn digest(&self) -> String {
        Self::digest_of(self.parts.iter())
    }

    fn digest_of<'p>(parts: impl Iterator<Item = &'p RepositorySources> + Clone) -> String {
        let checksums = |part| {
            let RepositorySources { contexts, retrieved, holes, .. }: &RepositorySources = part;
            let contexts = contexts.iter().map(|c| &*c.header.checksum);
            let retrieved = retrieved.iter().flat_map(StoredResults::checksums);
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

    /// Makes all lines and passes them on in order; returns the totals over the lines that could be made.
    pub(super) fn build(
        &mut self,
        experiment: &Experiment,
        shared: &mut SharedSources,
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
                // All texts together may not fit into memory, so another mode reads them again.
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

    /// Makes the prompts for the tasks of some repositories.
    fn build_some(
        &mut self,
        experiment: &Experiment,
        shared: &mut SharedSources,
        batch: &[usize],
        work: &Work,
        emit: Emit<'_>,
    ) -> Result<()> {
        let SharedSources { fragments, blocks, own_tokens } = shared;
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
        let (makers, wanted) = (makers?, wanted_prompts(experiment, mode, &read)?);
        // Only this many lines are in memory at a time.
        for wanted in wanted.chunks(64 * rayon::current_num_threads()) {
            let line = |scratch: &mut CountScratch, wanted: &PromptTask<'_>| match &wanted.lost {
                Some(reason) => Err(makers[wanted.part].tasks.error(wanted.task, reason)),
                None => makers[wanted.part].line(
                    wanted.task,
                    wanted.found,
                    &own_tokens[wanted.index],
                    scratch,
                ),
            };
            let lines = wanted.par_iter().map_init(CountScratch::default, line);
            let lines: Vec<Result<Line>> = lines.collect();
            work.advance(lines.len());
            lines.into_iter().try_for_each(&mut *emit)?;
        }
        experiment.messages.gaps(makers.iter().flat_map(Maker::gaps).collect());
        Ok(())
    }
}

/// Returns the prompts to make for the tasks of these repositories, in the order of the tasks, then of their samples.
fn wanted_prompts<'a>(
    experiment: &'a Experiment,
    mode: Mode,
    read: &'a [(&str, ReadPart<'_>)],
) -> Result<Vec<PromptTask<'a>>> {
    let tasks = experiment.tasks()?;
    let mut wanted = Vec::new();
    for (part, (repository, read)) in read.iter().enumerate() {
        let mut searched: HashSet<usize> = HashSet::default();
        let retrieved = read.retrieved.iter();
        for found in retrieved.flat_map(|r| r.retrieval.found.iter().zip(&r.queries.queries)) {
            let row = found.0.row as usize;
            let index = tasks.tasks().binary_search_by_key(&row, |task| task.row);
            let Ok(index) = index else { continue };
            searched.insert(index);
            wanted.push(PromptTask {
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
                // With retrieval, tasks without a hole were reported when queries were made.
                PromptLayout::RepoCoder if mode.retrieves() => continue,
                // Chunks keep no blank lines, but the numbers of holes count them.
                PromptLayout::RepoCoder if experiment.layout.cut.is_windows() => {
                    let lost =
                        read.fragments.and_then(|fragments| hole_lines(task, fragments).err());
                    lost.map(Message::from)
                }
                PromptLayout::Style(_) if mode.retrieves() => Some(message![
                    "has no prompt, since it has no retrieval results, as ",
                    &StageRun::Any("window"),
                    " reported"
                ]),
                // Tasks that are only extended with contexts are never lost.
                _ => None,
            };
            wanted.push(PromptTask { task, index, part, found: None, lost });
        }
    }
    let sample = |wanted: &PromptTask<'_>| wanted.found.map_or(0, |(found, _)| found.sample);
    wanted.sort_by_key(|wanted| (wanted.index, sample(wanted)));
    Ok(wanted)
}

/// Counts tokens of blocks.
static P50K: P50k = P50k;

impl RepositorySources {
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
            // Only the numbers of lines are needed to find holes.
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
                    shown: experiment.fragment_text_settings(mode),
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
