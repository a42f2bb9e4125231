//! A repository that is being edited: the prompt for any cursor in it, as the stages would make it of the files as they are now.

mod locate;

pub use locate::{Located, Place};

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::pipeline::experiment::{Experiment, PromptLayout};
use crate::pipeline::fragments::OpenFragments;
use crate::pipeline::layout::Layout;
use crate::pipeline::prompt_lines::Maker;
use crate::pipeline::stage::StageReport;
use crate::pipeline::vectorize::UnreadVectors;
use crate::pipeline::{vectorize_repositories, window_repositories};
use crate::prompt::shown::{Fragment, shown_in};
use crate::prompt::style::Budget;
use crate::prompt::{Builder, BuilderSettings, Scratch as PromptScratch};
use crate::repository::corpus::{self, Listing, SourceFile};
use crate::repository::fragment::{FragmentFile, RepoFragments};
use crate::repository::parallel;
use crate::retrieve::live::{Layer, LiveFile, LiveFound, LiveScratch, Snapshot};
use crate::retrieve::query::Made;
use crate::retrieve::rank::Words;
use crate::retrieve::vector::TokenSet;
use crate::retrieve::visibility::{HoleGuard, Visibility};
use crate::retrieve::{Found, FragmentText, Mode, Queries, Query, QuerySettings};
use crate::task::{Task, TaskSet};
use crate::text::lines::{line_ends, line_start};
use crate::text::tokenize::P50k;

/// Counts tokens of blocks.
static P50K: P50k = P50k;

/// A repository that is being edited, indexed.
///
/// Requests and changes may come from many threads. Changes wait for one another, requests for none of them.
#[derive(Debug)]
pub struct LiveRepository {
    experiment: Experiment,
    name: String,
    settled: Mutex<Arc<Snapshot>>,
    edited: Mutex<Option<Edited>>,
    found: Mutex<Option<LastFound>>,
    /// Held while a change is made.
    changing: Mutex<()>,
}

/// The last unsaved text that was searched with.
#[derive(Debug)]
struct Edited {
    path: String,
    digest: [u8; 32],
    /// The snapshot that it was laid over.
    settled: Arc<Snapshot>,
    snapshot: Arc<Snapshot>,
}

/// Result of the last search: while a line is typed, its query stays the same.
#[derive(Debug)]
struct LastFound {
    snapshot: Arc<Snapshot>,
    query: Query,
    found: Arc<LiveFound>,
}

/// Buffers of one thread, used again from request to request.
#[derive(Debug, Default)]
pub struct CursorScratch {
    search: LiveScratch,
    prompt: PromptScratch,
}

/// A cursor in a file, of which the text may be unsaved.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    /// `repository/folder/…/file.py`; the file need not be there.
    pub path: &'a str,
    /// Its whole text.
    pub text: &'a str,
    /// Bytes before the cursor.
    pub offset: usize,
    /// First line, 0-based, that the prompt shows of the file.
    pub first_line: usize,
}

/// Fragments that were found for a cursor.
#[derive(Debug)]
pub struct LiveRetrieval {
    /// The hole at the cursor, as a task.
    pub task: Task,
    /// The query.
    pub query: Query,
    found: Arc<LiveFound>,
    /// Time for bringing the index up to date with the unsaved text, and for the search.
    pub took: [Duration; 2],
}

impl LiveRetrieval {
    /// Whether all that was found may be shown from another cursor of the same file: nothing of it is in the lines that its prompt
    /// shows.
    pub fn is_visible_from(&self, task: &Task) -> bool {
        task.path == self.query.path && task.context_start >= self.query.context_start as usize
    }

    /// Whether all that was found is still as it was: other files as they are saved, and the lines of its own file somewhere in
    /// its text.
    pub fn is_current(&self, snapshot: &Snapshot, own_text: &str) -> bool {
        let LiveFound { excerpt, found } = &*self.found;
        let is_same = |file: &FragmentFile| {
            file.path == self.query.path
                || snapshot.file(&file.path).is_some_and(|(now, _)| now.digest == file.digest)
        };
        let own = excerpt.file_index(&self.query.path).map(|file| file as u32);
        let is_there = |fragment: u32| {
            let is_own = Some(excerpt.first_place(fragment as usize).file) == own;
            !is_own || own_text.contains(excerpt.text(fragment as usize))
        };
        excerpt.files.iter().all(is_same) && found.hits.iter().all(|hit| is_there(hit.fragment))
    }
}

/// A prompt that is ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct LivePrompt {
    /// Its text.
    pub text: String,
    /// Texts that end a completion.
    pub stop: Vec<String>,
    /// The fragments that it shows, best first.
    pub fragments: Vec<Fragment>,
    /// The right context that it was made with.
    pub right: String,
    /// Its record, as stage `prompt` writes it.
    pub record: Value,
}

/// Files that were read anew after a change.
#[derive(Debug, Default)]
pub struct Changed {
    /// Paths of the files whose text changed, or that are new.
    pub read: Vec<String>,
    /// Paths of those that are gone.
    pub removed: Vec<String>,
    /// Files that cannot be read, and are gone from the index.
    pub problems: Vec<Error>,
}

/// Whether a path is that of a folder, or lies in it; all do in that of the empty name.
fn is_within(path: &str, folder: &str) -> bool {
    let below = path.strip_prefix(folder);
    below.is_some_and(|below| folder.is_empty() || below.is_empty() || below.starts_with('/'))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is held is replaced whole, and so never half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveRepository {
    /// Opens the one repository of an experiment: makes its fragments and vectors where the cache has none that are current, and
    /// indexes them. Reports go to `tell`.
    ///
    /// # Errors
    /// There is not one repository, its search or prompts cannot be kept up to date, or an artifact cannot be read or written.
    pub fn open(experiment: Experiment, tell: &mut dyn FnMut(StageReport)) -> Result<Self> {
        let [name] = &experiment.repositories[..] else {
            let count = experiment.repositories.len();
            let reason = format!("one repository is served at a time, and there are {count}");
            return Err(Error::Parameter { name: "repo", reason });
        };
        let name = name.clone();
        if let Some(reason) = Snapshot::refusal(&experiment.retrieval.search) {
            return Err(Error::Parameter { name: "ranker", reason });
        }
        if matches!(experiment.prompts.layout, PromptLayout::Attach) {
            let reason = "'attach' writes tasks, not prompts that a model could complete".into();
            return Err(Error::Parameter { name: "prompt-style", reason });
        }
        tell(window_repositories(&experiment)?);
        tell(vectorize_repositories(&experiment)?);
        let mut fragments = OpenFragments::open(&experiment, &name)?;
        let mut vectors = UnreadVectors::open(&experiment, &name, &fragments.header.clone())?;
        let fragments = fragments.read_all()?.clone();
        let vectors = vectors.read(fragments.len())?;
        let identity =
            |file: &FragmentFile| corpus::identity(&experiment.repos_dir.join(&file.path));
        let same = parallel::map(&fragments.files, identity);
        let search = experiment.retrieval.search.clone();
        let snapshot = Snapshot::new(Layer::new(fragments, same, vectors), search);
        Ok(Self {
            experiment,
            name,
            settled: Mutex::new(Arc::new(snapshot)),
            edited: Mutex::new(None),
            found: Mutex::new(None),
            changing: Mutex::new(()),
        })
    }

    /// Its name, the first part of its files' paths.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        self.experiment.repos_dir.join(&self.name)
    }

    /// Its settings.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Its files as they were saved last.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.settled))
    }

    /// Its files on disk.
    fn listing(&self) -> Result<Listing<'_>> {
        let Experiment { repos_dir, layout, walk, .. } = &self.experiment;
        Listing::new(repos_dir, &self.name, layout.language, *walk)
    }

    /// Reads files that may have changed, named from the folder of repositories on.
    ///
    /// # Errors
    /// The repository's folder cannot be opened.
    pub fn refresh(&self, paths: &[String]) -> Result<Changed> {
        let _one_at_a_time = lock(&self.changing);
        let before = self.snapshot();
        let mut paths: FxHashSet<&str> = paths.iter().map(String::as_str).collect();
        // Another name of a file changes with it.
        let same = |path: &&str| before.file(path).map(|(_, same)| same);
        let changed: FxHashSet<u64> = paths.iter().filter_map(same).collect();
        let names = before.files().filter(|(_, same)| changed.contains(same));
        let names: Vec<String> = names.map(|(file, _)| file.path.clone()).collect();
        paths.extend(names.iter().map(String::as_str));
        let mut paths: Vec<&str> = paths.into_iter().collect();
        paths.sort_unstable();
        let cut = self.experiment.layout.cut;
        let listing = self.listing()?;
        let read = parallel::map(&paths, |path| {
            listing.read(path).map(|read| {
                let (source, same) = read?;
                Some(LiveFile { file: FragmentFile::new(source, cut), same })
            })
        });
        let (mut changed, mut files) = (Changed::default(), Vec::new());
        for (path, read) in paths.into_iter().zip(read) {
            let known = before.file(path);
            match read {
                Ok(Some(file)) => {
                    let is_known = known.is_some_and(|(known, same)| {
                        known.digest == file.file.digest
                            && known.bytes == file.file.bytes
                            && same == file.same
                    });
                    if !is_known {
                        changed.read.push(path.to_owned());
                        files.push(file);
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => changed.problems.push(error),
            }
            if known.is_some() {
                changed.removed.push(path.to_owned());
            }
        }
        if !files.is_empty() || !changed.removed.is_empty() {
            let next = before.with(files, &changed.removed);
            *lock(&self.settled) = Arc::new(next);
        }
        Ok(changed)
    }

    /// Reads files that may have changed, named from the repository's folder on, and those below folders that may have: of the
    /// empty name, all.
    ///
    /// # Errors
    /// The repository's folder cannot be opened or listed.
    pub fn refresh_below(&self, names: &[String]) -> Result<Changed> {
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        // What lies in a folder of the list comes with it.
        names.dedup_by(|name, folder| is_within(name, folder));
        let whole = |name: &&str| match *name {
            "" => self.name.clone(),
            name => format!("{}/{name}", self.name),
        };
        let paths: Vec<String> = names.iter().map(whole).collect();
        let is_below = |path: &str| paths.iter().any(|folder| is_within(path, folder));
        let snapshot = self.snapshot();
        let known = snapshot.files().map(|(file, _)| &*file.path);
        let mut all: Vec<String> = known.filter(|path| is_below(path)).map(str::to_owned).collect();
        let listing = self.listing()?;
        let is_folder = |path: &str| self.experiment.repos_dir.join(path).is_dir();
        let folders = names.iter().zip(&paths).filter(|(_, path)| is_folder(path));
        let listed: Option<Vec<_>> = folders
            .map(|(name, _)| if name.is_empty() { None } else { listing.below(name) })
            .collect();
        let found = match listed {
            Some(found) => found.into_iter().flatten().collect(),
            None => listing.all()?.0,
        };
        all.extend(found.into_iter().map(|file| file.path).filter(|path| is_below(path)));
        all.extend(paths.into_iter().filter(|path| *path != self.name));
        self.refresh(&all)
    }

    /// Retrieves for a cursor: as mode rg1 does for a task of the saved file with this text.
    ///
    /// # Errors
    /// The cursor is not in the text, or nothing can be searched for.
    pub fn retrieve(
        &self,
        cursor: &Cursor<'_>,
        scratch: &mut CursorScratch,
    ) -> Result<LiveRetrieval> {
        let begin = Instant::now();
        let task = self.task(cursor)?;
        // The file up to its hole is searched with. The hole is a line of the file, also where nothing stands in it yet.
        let begun = cursor.text[..cursor.offset].to_owned() + "\n\n";
        let Experiment { layout, retrieval, .. } = &self.experiment;
        let source = |text| SourceFile { path: cursor.path.to_owned(), text, same_as: 0 };
        let snapshot = match self.known_before(cursor) {
            Some(snapshot) => snapshot,
            None => {
                let whole = source(cursor.text.to_owned());
                self.with_text(&FragmentFile::new(whole, layout.cut))
            }
        };
        let updated = begin.elapsed();
        let begin = Instant::now();
        let own = self.only(FragmentFile::new(source(begun), layout.cut));
        let mode = Mode::LeftContext;
        let settings =
            QuerySettings { mode, form: self.experiment.form(mode), length: retrieval.query_lines };
        let tasks = TaskSet::new(PathBuf::from("cursor"), vec![task]);
        let Made { mut queries, skipped } = Queries::of_tasks(settings, &tasks, &own);
        let (Some(query), Some(task)) = (queries.queries.pop(), tasks.into_tasks().pop()) else {
            let reason = skipped.into_iter().next().map_or_else(String::new, |e| e.to_string());
            return Err(Error::Parameter { name: "cursor", reason });
        };
        let found = self.find(snapshot, &query, &mut scratch.search);
        Ok(LiveRetrieval { task, query, found, took: [updated, begin.elapsed()] })
    }

    /// Searches, unless the last search was the same.
    fn find(
        &self,
        snapshot: Arc<Snapshot>,
        query: &Query,
        scratch: &mut LiveScratch,
    ) -> Arc<LiveFound> {
        if let Some(last) = &*lock(&self.found)
            && last.query == *query
            && Arc::ptr_eq(&last.snapshot, &snapshot)
        {
            return Arc::clone(&last.found);
        }
        let found = Arc::new(snapshot.search(query, scratch));
        let last = LastFound { snapshot, query: query.clone(), found: Arc::clone(&found) };
        *lock(&self.found) = Some(last);
        found
    }

    /// The hole at a cursor, as a task.
    ///
    /// # Errors
    /// The cursor is not in the text.
    pub fn task(&self, cursor: &Cursor<'_>) -> Result<Task> {
        let Cursor { path, text, offset, first_line } = *cursor;
        let (Some(left), Some(right)) = (text.get(..offset), text.get(offset..)) else {
            let reason = format!("offset {offset} is not in the text, or within a character");
            return Err(Error::Parameter { name: "cursor", reason });
        };
        let line_no = line_ends(left);
        let first_line = first_line.min(line_no);
        let shown = line_start(left, first_line).map_or(left, |start| &left[start..]);
        let task = Task::new("cursor".into(), path, first_line, line_no, "", shown);
        // Policies see no right context where prompts show none.
        let takes_right = self.experiment.takes_right_contexts();
        let right_context = takes_right.then(|| right.to_owned());
        Ok(Task { right_context, line: 1, ..task })
    }

    /// The files as they are known, where a search from this cursor cannot see what is new in its text: before the lines that the
    /// prompt shows, nothing is, and the rest of its own file is hidden from it.
    fn known_before(&self, cursor: &Cursor<'_>) -> Option<Arc<Snapshot>> {
        let strict = Visibility::Guarded(HoleGuard::Strict);
        if self.experiment.retrieval.search.visibility != strict {
            return None;
        }
        let start = line_start(&cursor.text[..cursor.offset], cursor.first_line)?;
        let hidden_from = &cursor.text[..start];
        let has_same = |snapshot: &Arc<Snapshot>| {
            let Some((file, _)) = snapshot.file(cursor.path) else { return start == 0 };
            let text = file.lines.text();
            // Lines end as they do in the index.
            text.starts_with(hidden_from)
                && (start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n'))
                || text.len() + 1 == start && hidden_from.strip_suffix('\n') == Some(text)
        };
        let settled = self.snapshot();
        let edited = lock(&self.edited);
        let edited = edited.as_ref().filter(|edited| Arc::ptr_eq(&edited.settled, &settled));
        let edited = edited.filter(|edited| edited.path == cursor.path);
        match edited {
            Some(edited) if has_same(&edited.snapshot) => Some(Arc::clone(&edited.snapshot)),
            _ => has_same(&settled).then_some(settled),
        }
    }

    /// The files with a text in place of the saved one, where that is another and the search sees it.
    fn with_text(&self, file: &FragmentFile) -> Arc<Snapshot> {
        let settled = self.snapshot();
        let search = &self.experiment.retrieval.search;
        let sees_own = matches!(search.visibility, Visibility::Guarded(_))
            || self.experiment.layout.cut.is_windows();
        let known = settled.file(&file.path);
        if !sees_own || known.is_some_and(|(known, _)| known.digest == file.digest) {
            return settled;
        }
        let mut edited = lock(&self.edited);
        let before = edited.as_ref().filter(|edited| edited.path == file.path);
        if let Some(before) = before
            && before.digest == file.digest
            && Arc::ptr_eq(&before.settled, &settled)
        {
            return Arc::clone(&before.snapshot);
        }
        let same = known.map_or_else(
            || corpus::identity(&self.experiment.repos_dir.join(&file.path)),
            |(_, same)| same,
        );
        let before = before.map(|before| &*before.snapshot);
        let live = LiveFile { file: file.clone(), same };
        let snapshot = Arc::new(settled.with_open(live, before));
        *edited = Some(Edited {
            path: file.path.clone(),
            digest: file.digest,
            settled,
            snapshot: Arc::clone(&snapshot),
        });
        snapshot
    }

    /// The prompt for a cursor without retrieval.
    ///
    /// # Errors
    /// The style cannot lay it out.
    pub fn plain_prompt(&self, task: &Task, scratch: &mut CursorScratch) -> Result<LivePrompt> {
        let text = SourceFile { path: task.path.clone(), text: String::new(), same_as: 0 };
        let own = self.only(FragmentFile::new(text, self.experiment.layout.cut));
        self.prompt_of(task, Mode::Without, (&own, None), scratch)
    }

    /// A repository of one file, without fragments.
    fn only(&self, file: FragmentFile) -> RepoFragments {
        let Layout { language, cut, .. } = self.experiment.layout;
        let none = std::iter::empty();
        RepoFragments::of_places(self.name.clone(), vec![file], (language, cut), none)
    }

    /// The prompt for a cursor with what was found for it.
    ///
    /// # Errors
    /// The style cannot lay it out.
    pub fn prompt(
        &self,
        retrieval: &LiveRetrieval,
        scratch: &mut CursorScratch,
    ) -> Result<LivePrompt> {
        self.prompt_with(retrieval, &retrieval.task, scratch)
    }

    /// The prompt for a cursor with what was found for an earlier one.
    ///
    /// # Errors
    /// The style cannot lay it out.
    pub fn prompt_with(
        &self,
        retrieval: &LiveRetrieval,
        task: &Task,
        scratch: &mut CursorScratch,
    ) -> Result<LivePrompt> {
        let LiveRetrieval { query, found, .. } = retrieval;
        let LiveFound { excerpt, found } = &**found;
        self.prompt_of(task, Mode::LeftContext, (excerpt, Some((found, query))), scratch)
    }

    /// Similarity of fragments to the text of a query, in terms of the vocabulary.
    pub fn similarities(&self, query: &str, fragments: &[Fragment]) -> Vec<f64> {
        let texts = std::iter::once(query).chain(fragments.iter().map(|one| &*one.text));
        let texts: Vec<&str> = texts.collect();
        let vocabulary = &self.experiment.retrieval.search.vocabulary;
        let sets = Words::of_terms(&texts, vocabulary).sets();
        let query: FxHashSet<u32> = sets.get(0).iter().collect();
        let of = |set: TokenSet<'_>| {
            let overlap = set.iter().filter(|term| query.contains(term)).count();
            overlap as f64 / (query.len() + set.len() - overlap).max(1) as f64
        };
        sets.iter().skip(1).map(of).collect()
    }

    /// Tokens that a prompt has for the left context.
    pub fn left_room(&self) -> usize {
        let Budget { total, left, right, cross_file } = self.experiment.prompts.budget;
        let others = right.unwrap_or(0) + cross_file.unwrap_or(0);
        left.unwrap_or_else(|| total.saturating_sub(others))
    }

    /// The first line from which the text up to a cursor has so many tokens, at most.
    pub fn first_line_within(&self, text: &str, offset: usize, tokens: usize) -> usize {
        let left = &text[..offset];
        let tokenizer = &self.experiment.prompts.tokenizer;
        let (mut line, mut room, mut end) = (line_ends(left), tokens, left.len());
        loop {
            let start = left[..end].rfind('\n').map_or(0, |at| at + 1);
            let count = tokenizer.count(&left[start..end]) + 1;
            if count > room {
                return (line + 1).min(line_ends(left));
            }
            if start == 0 {
                return 0;
            }
            (room, end, line) = (room - count, start - 1, line - 1);
        }
    }

    fn prompt_of(
        &self,
        task: &Task,
        mode: Mode,
        (fragments, found): (&RepoFragments, Option<(&Found, &Query)>),
        scratch: &mut CursorScratch,
    ) -> Result<LivePrompt> {
        let experiment = &self.experiment;
        let prompts = &experiment.prompts;
        let builder = match prompts.layout {
            PromptLayout::RepoCoder => {
                let settings = BuilderSettings {
                    mode,
                    form: experiment.form(mode),
                    shown: experiment.shown(mode),
                    budget: prompts.repocoder_budget(),
                };
                Some(Builder::new(fragments, &P50K, settings))
            }
            _ => None,
        };
        let shown = || {
            let settings = experiment.shown(mode);
            FragmentText::new(fragments, settings, |text| experiment.fits(text))
        };
        let tasks = TaskSet::new(PathBuf::from("cursor"), Vec::new());
        let maker = Maker {
            prompts,
            tasks: &tasks,
            language: experiment.layout.language,
            mode,
            contexts: FxHashMap::default(),
            texts: found.map(|_| shown()),
            builder,
        };
        let line = maker.line(task, found, &OnceLock::new(), &mut scratch.prompt)?;
        let record: Value = serde_json::from_slice(&line.json).unwrap_or_default();
        let stop = record["metadata"]["stop"].as_array().into_iter().flatten();
        let stop = stop.filter_map(|stop| stop.as_str().map(str::to_owned)).collect();
        let shown =
            record.as_object().and_then(|record| shown_in(record, &mut FxHashSet::default()));
        let shown = shown.map(|(_, shown)| shown).unwrap_or_default();
        let right = shown.right.or_else(|| task.right_context.clone());
        Ok(LivePrompt {
            text: record["prompt"].as_str().unwrap_or_default().to_owned(),
            stop,
            fragments: shown.fragments,
            right: right.unwrap_or_default(),
            record,
        })
    }
}
