//! Right contexts of tasks whose format does not carry them, such as RepoEval's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use foldhash::HashMap;
use repoformer_core::repository::corpus::Repository;
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::artifact::{Column, Columns, Identity, Payload};
use repoformer_store::error::{Error, Result};
use repoformer_text::lines::IndexedText;
use repoformer_text::message::StageRun;
use serde::{Deserialize, Serialize};

use super::engine::{Artifact, Engine, LazyArtifact};
use super::experiment::Experiment;

/// Right contexts taken for a repository's tasks that carry none, by row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RightContexts {
    /// Texts of files, each from the end of its first hole on.
    files: Vec<String>,
    /// Row of each task, the index of its file, and the byte offset of its right context in that text.
    of_row: Vec<(u32, u32, u64)>,
}

impl RightContexts {
    /// Takes the right contexts from the tasks' files. A task that does not match its file has none; the returned error names
    /// the first such task.
    pub(super) fn new(tasks: &TaskSet, repository: &Repository) -> (Self, Option<Error>) {
        let (mut holes, mut misfits) = (BTreeMap::<usize, Vec<(u32, usize)>>::new(), Vec::new());
        let mut texts: HashMap<usize, IndexedText<'_>> = HashMap::default();
        let of_it = tasks.of_repository(&repository.name);
        for task in of_it.filter(|task| task.right_context.is_none()) {
            // A missing file is reported when its query is made.
            let Some(number) = repository.file_index(&task.path) else {
                continue;
            };
            let text = || IndexedText::new(&*repository.files[number].text);
            match task.hole_in(texts.entry(number).or_insert_with(text)) {
                Ok(hole) => holes.entry(number).or_default().push((task.row as u32, hole.end)),
                Err(reason) => misfits.push((task, reason)),
            }
        }
        let harm = "prompts of such tasks have no right context";
        (Self::from_holes(holes, repository), misfit(tasks, &repository.name, misfits, harm))
    }

    /// Takes the texts after holes, which are given by file: each hole's row and end.
    fn from_holes(holes: BTreeMap<usize, Vec<(u32, usize)>>, repository: &Repository) -> Self {
        let mut contexts = Self::default();
        for (number, holes) in holes {
            let first = holes.iter().map(|&(_, end)| end).min().unwrap_or_default();
            let file = contexts.files.len() as u32;
            contexts.files.push(repository.files[number].text[first..].to_owned());
            let offsets = holes.iter().map(|&(row, end)| (row, file, (end - first) as u64));
            contexts.of_row.extend(offsets);
        }
        contexts.of_row.sort_unstable();
        contexts
    }

    /// Iterates over rows and right contexts, in the order of the tasks.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let text = |file: u32, offset: u64| &self.files[file as usize][offset as usize..];
        self.of_row.iter().map(move |&(row, file, offset)| (row, text(file, offset)))
    }

    /// Returns the right contexts by row.
    pub(super) fn map(&self) -> HashMap<u32, &str> {
        self.iter().collect()
    }
}

/// Returns one error for the tasks of a repository that do not match their files, with the first reason; `harm` is the
/// consequence.
pub(super) fn misfit(
    tasks: &TaskSet,
    repository: &str,
    misfits: Vec<(&Task, String)>,
    harm: &str,
) -> Option<Error> {
    let (task, reason) = misfits.first()?;
    let others = match misfits.len() - 1 {
        0 => String::new(),
        n => format!("; {n} more tasks of {repository} do not fit either"),
    };
    Some(tasks.error(task, format!("{reason}{others}; {harm}")))
}

/// Returns a task's right context: its own, or the one taken from its file.
pub(super) fn right_context<'t>(task: &'t Task, taken: &HashMap<u32, &'t str>) -> Option<&'t str> {
    let own = task.right_context.as_deref();
    own.or_else(|| taken.get(&(task.row as u32)).copied())
}

/// Right contexts taken for a repository's tasks.
pub(super) struct TakenContexts<'a> {
    pub(super) repository: &'a str,
    /// Digest of the repository's files; `None` for the right contexts that are in the cache.
    pub(super) files: Option<String>,
}

impl<'a> TakenContexts<'a> {
    /// Returns the right contexts that are in the cache.
    pub(super) fn new(repository: &'a str) -> Self {
        Self { repository, files: None }
    }
}

impl Artifact for TakenContexts<'_> {
    type Content = RightContexts;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().right_contexts(self.repository)
    }

    fn making_stage(&self, experiment: &Experiment) -> StageRun {
        // For RepoCoder's prompts, which show no right context, `window` takes none.
        StageRun::WithStyle("window", experiment.prompts.layout.name().to_owned())
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let experiment = engine.experiment;
        let identity = Identity::new(RightContexts::KIND)
            .parameter("repository", self.repository)
            .parameter("language", experiment.layout.language)
            .parameter("walk", experiment.walk)
            // Earlier versions stored a text for each task.
            .parameter("texts", "by-file")
            .input("tasks", experiment.tasks()?.digest_of(self.repository));
        Ok(match &self.files {
            Some(digest) => identity.input("repository", digest),
            None => identity,
        })
    }
}

/// Opens the right contexts if a task does not carry its own and the repositories are at hand.
pub(super) fn open_needed_contexts(
    engine: &mut Engine<'_>,
    repository: &str,
) -> Result<Option<LazyArtifact<RightContexts>>> {
    if needs_contexts(engine.experiment, repository) {
        Ok(Some(engine.need(&TakenContexts::new(repository))?))
    } else {
        Ok(None)
    }
}

/// True if a task does not carry its own right context, and the repositories are at hand to take it from.
pub(super) fn needs_contexts(experiment: &Experiment, repository: &str) -> bool {
    let mut of_it = experiment.tasks.iter().flat_map(|tasks| tasks.of_repository(repository));
    experiment.takes_right_contexts()
        && !experiment.repos_dir.as_os_str().is_empty()
        && of_it.any(|task| task.right_context.is_none())
}

impl Payload for RightContexts {
    const KIND: &'static str = "right contexts";

    fn records(&self) -> usize {
        self.of_row.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        Ok(vec![Column::records("right contexts", self)?])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        columns.records("right contexts")
    }

    fn check(&self) -> Result<(), String> {
        let is_there = |&(_, file, offset): &(u32, u32, u64)| {
            let text = self.files.get(file as usize);
            text.is_some_and(|text| text.is_char_boundary(offset as usize))
        };
        if self.of_row.iter().all(is_there) {
            Ok(())
        } else {
            Err("a right context is outside its file".into())
        }
    }
}
