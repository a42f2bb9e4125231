//! Artifacts of `prompt`: their settings, totals and lines.

use std::path::{Path, PathBuf};

use repoformer_core::retrieve::{Align, Mode};
use repoformer_store::artifact::{self, Header, Identity};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;

use super::contexts::needs_contexts;
use super::engine::{Artifact, Engine, Lines, check, check_settings};
use super::experiment::{Experiment, PromptLayout};
use super::prompt_sources::{SharedSources, Sources, holds_holes};
use super::stage::{made_again, missing};
/// Totals over the prompts of one mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptTotals {
    /// Number of prompts.
    pub prompts: u64,
    /// Number of tokens in the prompts.
    pub tokens: u64,
    /// Number of prompts with a retrieved block.
    pub with_blocks: u64,
}

pub(super) const TOKENS: &str = "tokens";

pub(super) const TASKS: &str = "tasks";

pub(super) const RETRIEVAL: &str = "retrieval";

pub(super) const WITH_BLOCKS: &str = "prompts with retrieved blocks";

/// Parameter of artifacts that a shard made.
pub(super) const SHARD: &str = "shard";

pub(super) const WITHOUT_PROMPT: &str = "tasks without a prompt";

/// Revision of the records; raised with every change of their content, so that cached prompts are made again.
const RECORDS: u32 = 2;

/// Revision of the way in which functions and classes are shown.
const DEFINITIONS: u32 = 2;

/// Returns the settings that shape a mode's prompts.
pub(super) fn settings(experiment: &Experiment, mode: Mode) -> Identity {
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
    // What fits also determines which functions and classes are shown.
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
    identity = experiment.visible(experiment.with_ranking(experiment.cut(identity)));
    identity
        .parameter("query", experiment.form(mode))
        .parameter("query-lines", experiment.retrieval.query_lines)
        .parameter("top-k", experiment.retrieval.search.top_k)
        .parameter("max-blocks", prompts.most)
        .parameter("align", prompts.align)
        .parameter("full-paths", prompts.full_paths)
}

/// Returns the stage that makes a mode's prompts.
fn step(mode: Mode) -> StageRun {
    match mode {
        Mode::Prediction => StageRun::Any("rg-rg"),
        _ => StageRun::InMode("prompt", mode.name()),
    }
}

/// Calls `take` with the lines of a mode's prompts at `path`, a few megabytes at a time. Only at the end may an error report
/// that the lines do not belong to `header`.
///
/// # Errors
/// The prompts are damaged or cannot be read, or `take` returns an error.
pub(super) fn for_each_prompts(
    path: &Path,
    mode: Mode,
    header: &Header,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let read = artifact::for_each_piece(path, header, take);
    read.map_err(|error| made_again(error, &step(mode)))
}

/// Returns the header of a mode's prompts, after checking that they were made from these tasks with these settings; their text
/// is checked when it is [read](for_each_prompts).
///
/// # Errors
/// The prompts are missing, cut off, or were made otherwise.
pub(super) fn require_prompts(experiment: &Experiment, mode: Mode) -> Result<Header> {
    let (path, step) = (experiment.paths().prompts(mode), step(mode));
    let header = match experiment.planned_header(&path) {
        Some(header) => header,
        None if !path.exists() => return Err(missing(&path, "prompts", &step)),
        None => artifact::jsonl_header(&path).map_err(|error| made_again(error, &step))?,
    };
    let mut wanted = settings(experiment, mode);
    // Settings are checked before the inputs, which may be stale for the same reason.
    check_settings(&path, &header, &wanted, &step)?;
    if let Some(tasks) = &experiment.tasks {
        wanted = wanted.input(TASKS, tasks.digest());
        if are_sources_there(experiment, mode) {
            let sources =
                Sources::open(experiment, mode, &mut SharedSources::new(experiment, tasks))?;
            wanted = wanted.input(RETRIEVAL, sources.digest());
        }
    }
    check(&path, &header, &wanted, &step)?;
    Ok(header)
}

/// True if all inputs of a mode's prompts are in the cache; prompts may also be completed without their inputs.
fn are_sources_there(experiment: &Experiment, mode: Mode) -> bool {
    let paths = experiment.paths();
    let of_repository = |repository: &String| {
        let retrieved = [
            paths.repo_windows(repository),
            paths.query_windows(mode, repository),
            paths.retrieval(mode, repository),
        ];
        let files = if mode.retrieves() {
            &retrieved[..]
        } else if holds_holes(experiment, mode) {
            &retrieved[..1]
        } else {
            &[]
        };
        let contexts = paths.right_contexts(repository);
        files.iter().all(|path| experiment.has(path))
            && (!needs_contexts(experiment, repository) || experiment.has(&contexts))
    };
    !experiment.repos_dir.as_os_str().is_empty()
        && experiment.repositories.iter().all(of_repository)
}

/// Returns the totals that were kept when a mode's prompts were made.
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

/// Prompts of a mode.
pub(super) struct Prompts {
    pub(super) mode: Mode,
    pub(super) identity: Identity,
}

impl Artifact for Prompts {
    type Content = Lines;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().prompts(self.mode)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        step(self.mode)
    }

    fn identity(&self, _: &mut Engine<'_>) -> Result<Identity> {
        Ok(self.identity.clone())
    }
}
