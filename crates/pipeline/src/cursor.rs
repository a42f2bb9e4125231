//! Parts of the stages for a repository that is being edited: cached fragments, and the prompt for one task.

use std::path::PathBuf;

use foldhash::HashMap;
use repoformer_core::prompt::{Builder, BuilderSettings, CountScratch};
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::{FragmentText, FragmentVectors, Mode, Query, RankedFragments};
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::Result;
use repoformer_text::tokenize::P50k;

use super::engine::Engine;
use super::experiment::{Experiment, PromptLayout};
use super::fragments::OpenFragments;
use super::prompt_lines::{Maker, TaskPrompt};
use super::vectors::UnreadVectors;

/// Counts tokens of blocks.
static P50K: P50k = P50k;

/// Returns a repository's fragments and their vectors from the cache, current or not.
///
/// # Errors
/// The cache has none, or the fragments or vectors are damaged or were made with other settings.
pub fn cached_fragments(
    experiment: &Experiment,
    repository: &str,
) -> Result<(RepoFragments, FragmentVectors)> {
    let mut engine = Engine::new(experiment);
    let mut fragments = OpenFragments::open(&mut engine, repository)?;
    let mut vectors = UnreadVectors::open(&mut engine, repository)?;
    let fragments = fragments.read_all()?.clone();
    let vectors = vectors.read(fragments.len())?;
    Ok((fragments, vectors))
}

/// Returns the prompt for one task as stage `prompt` would make it, with the results of its search in these fragments.
///
/// # Errors
/// The style cannot lay out the prompt.
pub fn task_prompt(
    experiment: &Experiment,
    mode: Mode,
    task: &Task,
    fragments: &RepoFragments,
    found: Option<(&RankedFragments, &Query)>,
    scratch: &mut CountScratch,
) -> Result<TaskPrompt> {
    let prompts = &experiment.prompts;
    let builder = match prompts.layout {
        PromptLayout::RepoCoder => {
            let settings = BuilderSettings {
                mode,
                form: experiment.form(mode),
                shown: experiment.fragment_text_settings(mode),
                budget: prompts.repocoder_budget(),
            };
            Some(Builder::new(fragments, &P50K, settings))
        }
        _ => None,
    };
    let texts = || {
        FragmentText::new(fragments, experiment.fragment_text_settings(mode), |text| {
            experiment.fits(text)
        })
    };
    let tasks = TaskSet::new(PathBuf::from("cursor"), Vec::new());
    let maker = Maker {
        prompts,
        tasks: &tasks,
        language: experiment.layout.language,
        mode,
        contexts: HashMap::default(),
        texts: found.map(|_| texts()),
        builder,
    };
    maker.task_prompt(task, found, scratch)
}
