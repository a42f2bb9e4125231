//! Retrieval for a cursor, from saved and unsaved text.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use repoformer_core::repository::corpus::{self, SourceFile};
use repoformer_core::repository::fragment::FragmentFile;
use repoformer_core::retrieve::live::{LiveFile, LiveHits, LiveScratch, Snapshot};
use repoformer_core::retrieve::query::QueryOutcome;
use repoformer_core::retrieve::visibility::{HoleGuard, Visibility};
use repoformer_core::retrieve::{Mode, Queries, Query, QuerySettings};
use repoformer_core::task::{Task, TaskSet};
use repoformer_pipeline::Experiment;
use repoformer_store::error::{Error, Result};
use repoformer_text::lines::line_start;

use super::{Cursor, CursorScratch, LastSearch, LiveRepository, UnsavedText, lock};

/// Fragments retrieved for a cursor.
#[derive(Debug)]
pub(crate) struct LiveRetrieval {
    /// Hole at the cursor, as a task.
    pub(crate) task: Task,
    /// The query.
    pub(crate) query: Query,
    pub(super) found: Arc<LiveHits>,
    /// Time to update the index with the unsaved text, and time to search.
    pub(crate) took: [Duration; 2],
}

impl LiveRetrieval {
    /// Returns whether all retrieved fragments may be shown at another cursor of the same file, because none of them overlaps the lines
    /// that its prompt shows.
    pub(crate) fn is_visible_from(&self, task: &Task) -> bool {
        task.path == self.query.path && task.context_start >= self.query.context_start as usize
    }

    /// Returns whether the retrieved fragments are still current: other files are saved unchanged, and the lines from the cursor's own file
    /// still occur in its text.
    pub(crate) fn is_current(&self, snapshot: &Snapshot, own_text: &str) -> bool {
        let LiveHits { excerpt, found } = &*self.found;
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

impl LiveRepository {
    /// Retrieves for a cursor, as mode rg1 does for a task in a saved file with this text.
    ///
    /// # Errors
    /// The cursor is not in the text, or there is nothing to search for.
    pub(crate) fn retrieve(
        &self,
        cursor: &Cursor<'_>,
        scratch: &mut CursorScratch,
    ) -> Result<LiveRetrieval> {
        let begin = Instant::now();
        let task = self.task(cursor)?;
        // Search with the file up to its hole. The hole counts as a line even if it is still empty.
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
        let QueryOutcome { mut queries, skipped } = Queries::of_tasks(settings, &tasks, &own);
        let (Some(query), Some(task)) = (queries.queries.pop(), tasks.into_tasks().pop()) else {
            let reason = skipped.first().map(Error::message).unwrap_or_default();
            return Err(Error::parameter("cursor", reason));
        };
        let found = self.find(snapshot, &query, &mut scratch.search);
        Ok(LiveRetrieval { task, query, found, took: [updated, begin.elapsed()] })
    }

    /// Searches, or returns the last result if the search is the same.
    fn find(
        &self,
        snapshot: Arc<Snapshot>,
        query: &Query,
        scratch: &mut LiveScratch,
    ) -> Arc<LiveHits> {
        if let Some(last) = &*lock(&self.found)
            && last.query == *query
            && Arc::ptr_eq(&last.snapshot, &snapshot)
        {
            return Arc::clone(&last.found);
        }
        let found = Arc::new(snapshot.search(query, scratch));
        let last = LastSearch { snapshot, query: query.clone(), found: Arc::clone(&found) };
        *lock(&self.found) = Some(last);
        found
    }

    /// Returns a known snapshot, if a search from this cursor would not see any changes in its text: the text before the lines shown in the
    /// prompt is unchanged, and the rest of the file is hidden from the search.
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
            // Line ends are the same as in the index. The text must be longer than `start`, because a window cut short by the end of the
            // text changes when the text goes on; a longer text makes it reach into the hidden part.
            start == 0 || text.len() > start && text.starts_with(hidden_from)
        };
        let settled = self.snapshot();
        let edited = lock(&self.edited).clone();
        let edited = edited.filter(|edited| Arc::ptr_eq(&edited.settled, &settled));
        match edited.filter(|edited| edited.path == cursor.path) {
            Some(edited) if has_same(&edited.snapshot) => Some(edited.snapshot),
            _ => has_same(&settled).then_some(settled),
        }
    }

    /// Returns the files with this text in place of the saved one, if the two differ and the search sees the text.
    fn with_text(&self, file: &FragmentFile) -> Arc<Snapshot> {
        let settled = self.snapshot();
        let search = &self.experiment.retrieval.search;
        let sees_own = matches!(search.visibility, Visibility::Guarded(_))
            || self.experiment.layout.cut.is_windows();
        let known = settled.file(&file.path);
        if !sees_own || known.is_some_and(|(known, _)| known.digest == file.digest) {
            return settled;
        }
        // Release the lock, so that other requests do not wait while this text is indexed.
        let before = lock(&self.edited).clone().filter(|edited| edited.path == file.path);
        if let Some(before) = &before
            && before.digest == file.digest
            && Arc::ptr_eq(&before.settled, &settled)
        {
            return Arc::clone(&before.snapshot);
        }
        let same = known.map_or_else(
            || corpus::identity(&self.experiment.repos_dir.join(&file.path)),
            |(_, same)| same,
        );
        let live = LiveFile { file: file.clone(), same };
        let before = before.as_ref().map(|before| &*before.snapshot);
        let snapshot = Arc::new(settled.with_open(live, before));
        *lock(&self.edited) = Some(UnsavedText {
            path: file.path.clone(),
            digest: file.digest,
            settled,
            snapshot: Arc::clone(&snapshot),
        });
        snapshot
    }
}
