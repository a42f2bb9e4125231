//! A repository that is being edited: prepares the prompt for any cursor in it, as the stages would from the current files.

mod changes;
mod locate;
mod prompts;
mod retrieval;

pub(crate) use locate::path_of_url;
pub(crate) use locate::{CursorPlace, RequestPosition};
pub(crate) use retrieval::LiveRetrieval;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use repoformer_core::prompt::CountScratch as PromptScratch;
use repoformer_core::repository::corpus::{self, Listing};
use repoformer_core::repository::fragment::FragmentFile;
use repoformer_core::repository::parallel;
use repoformer_core::retrieve::Query;
use repoformer_core::retrieve::live::{Layer, LiveHits, LiveScratch, Snapshot};
use repoformer_core::task::Task;
use repoformer_pipeline::{
    Experiment, PromptLayout, StageReport, cached_fragments, vectorize_repositories,
    window_repositories,
};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::lines::{line_ends, line_start};

/// Index of a repository that is being edited.
///
/// Requests and changes may come from many threads. Changes wait for one another; requests do not wait for changes.
#[derive(Debug)]
pub struct LiveRepository {
    experiment: Experiment,
    name: String,
    /// Folder of repositories, without links.
    real_dir: PathBuf,
    settled: Mutex<Arc<Snapshot>>,
    edited: Mutex<Option<UnsavedText>>,
    found: Mutex<Option<LastSearch>>,
    /// Lock held during a change.
    changing: Mutex<()>,
}

/// The last unsaved text that was searched.
#[derive(Debug, Clone)]
struct UnsavedText {
    path: String,
    digest: [u8; 32],
    /// Snapshot of the saved files on which `snapshot` is based.
    settled: Arc<Snapshot>,
    snapshot: Arc<Snapshot>,
}

/// Result of the last search, kept because the query stays the same while a line is typed.
#[derive(Debug)]
struct LastSearch {
    snapshot: Arc<Snapshot>,
    query: Query,
    found: Arc<LiveHits>,
}

/// Buffers of one thread, reused from request to request.
#[derive(Debug, Default)]
pub(crate) struct CursorScratch {
    search: LiveScratch,
    prompt: PromptScratch,
}

/// Cursor in a file whose text may be unsaved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    /// `repository/folder/…/file.py`; the file need not exist.
    pub(crate) path: &'a str,
    /// Whole text of the file.
    pub(crate) text: &'a str,
    /// Number of bytes before the cursor.
    pub(crate) offset: usize,
    /// First line, 0-based, of the file that the prompt shows.
    pub(crate) first_line: usize,
}

/// Reason why a repository is not read.
const LED_OUT: &str = "is a link that leads out of its folder, so it is not read";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The contents are only ever replaced as a whole, so they are consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Indexes the cached fragments of a repository, current or not, without identifying its files yet.
fn load(experiment: &Experiment, name: &str) -> Result<Layer> {
    let (fragments, vectors) = cached_fragments(experiment, name)?;
    let same = vec![0; fragments.files.len()];
    let layer = Layer::new(fragments, same, vectors);
    layer.prepare();
    Ok(layer)
}

impl LiveRepository {
    /// Opens the one repository of an experiment: builds its fragments and vectors if the cache has no current ones, and indexes them.
    /// `before` runs before any of its files is read; its result is returned too. `tell` receives reports.
    ///
    /// # Errors
    /// There is not exactly one repository, its search or prompts cannot be kept up to date, or an artifact cannot be read or written.
    pub fn open<T: Send>(
        experiment: Experiment,
        before: impl FnOnce(&Experiment) -> T + Send,
        tell: &mut dyn FnMut(StageReport),
    ) -> Result<(Self, T)> {
        let [name] = &experiment.repositories[..] else {
            let names = experiment.repositories.join(", ");
            let reason = format!("only one repository can be served at a time, not {names}");
            return Err(Error::parameter("repo", reason));
        };
        let name = name.clone();
        if let Some(reason) = Snapshot::refusal(&experiment.retrieval.search) {
            return Err(Error::parameter("ranker", reason));
        }
        if matches!(experiment.prompts.layout, PromptLayout::Attach) {
            let reason = "'attach' writes tasks, not prompts that a model could complete";
            return Err(Error::parameter("prompt-style", reason));
        }
        // The cache is usually current, so index it while checking whether it is.
        let check = || {
            let done = before(&experiment);
            let windowed = window_repositories(&experiment);
            let vectorized = windowed.is_ok().then(|| vectorize_repositories(&experiment));
            (done, [Some(windowed), vectorized])
        };
        let ((done, reports), known) = rayon::join(check, || load(&experiment, &name));
        let mut is_current = true;
        for report in reports.into_iter().flatten() {
            let report = report?;
            is_current &= report.built == 0;
            tell(report);
        }
        let layer = match known {
            Ok(layer) if is_current => layer,
            _ => load(&experiment, &name)?,
        };
        let identity = |(file, _): (&FragmentFile, u64)| {
            corpus::identity(&experiment.repos_dir.join(&file.path))
        };
        let same = parallel::map(layer.files(), identity);
        let search = experiment.retrieval.search.clone();
        let snapshot = Snapshot::new(layer.with_identities(same), search);
        let real_dir = files::canonicalize(&experiment.repos_dir).map_err(|error| {
            Error::reading(&experiment.repos_dir, "open this folder of repositories", error)
        })?;
        let live = Self {
            experiment,
            name,
            real_dir,
            settled: Mutex::new(Arc::new(snapshot)),
            edited: Mutex::new(None),
            found: Mutex::new(None),
            changing: Mutex::new(()),
        };
        live.listing()?;
        Ok((live, done))
    }

    /// Returns the repository's name, which begins the paths of its files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the repository's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.experiment.repos_dir.join(&self.name)
    }

    /// Returns the experiment with the repository's settings.
    pub(crate) fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Returns the repository's files as last saved.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.settled))
    }

    /// Returns a listing of the repository's files on disk.
    ///
    /// # Errors
    /// The folder cannot be opened, or has become a link out of the folder of repositories, as somebody else's commit could make it.
    fn listing(&self) -> Result<Listing<'_>> {
        let Experiment { repos_dir, layout, walk, .. } = &self.experiment;
        let listing = Listing::new(repos_dir, &self.name, layout.language, *walk)?;
        if listing.real_root().starts_with(&self.real_dir) {
            return Ok(listing);
        }
        Err(Error::Repository { path: self.folder(), reason: LED_OUT.into() })
    }

    /// Returns the hole at a cursor as a task.
    ///
    /// # Errors
    /// The cursor is not in the text.
    pub(crate) fn task(&self, cursor: &Cursor<'_>) -> Result<Task> {
        let Cursor { path, text, offset, first_line } = *cursor;
        let (Some(left), Some(right)) = (text.get(..offset), text.get(offset..)) else {
            let reason = format!("offset {offset} is beyond the text or inside a character");
            return Err(Error::parameter("cursor", reason));
        };
        let line_no = line_ends(left);
        let first_line = first_line.min(line_no);
        let shown = line_start(left, first_line).map_or(left, |start| &left[start..]);
        let task = Task::new("cursor".into(), path, first_line, line_no, "", shown);
        // Policies see no right context if prompts show none.
        let takes_right = self.experiment.takes_right_contexts();
        let right_context = takes_right.then(|| right.into());
        Ok(Task { right_context, line: 1, ..task })
    }
}
