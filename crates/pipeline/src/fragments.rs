//! A repository's fragments as the `window` stage wrote them: most stages need few of the texts.

use std::path::PathBuf;

use repoformer_core::repository::fragment::{RepoFragments, TextRanges};
use repoformer_store::artifact::{Columns, Header, Identity, Payload};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;

use super::engine::{Artifact, Engine, LazyArtifact, not_made};
use super::experiment::Experiment;
use super::stage::made_again;

const WINDOW: StageRun = StageRun::Any("window");

/// A repository's fragments.
pub(super) struct Fragments<'a> {
    pub(super) repository: &'a str,
    /// Digest of the repository's files; `None` for the fragments that are in the cache.
    pub(super) files: Option<String>,
}

impl<'a> Fragments<'a> {
    /// Returns the fragments that are in the cache.
    pub(super) fn new(repository: &'a str) -> Self {
        Self { repository, files: None }
    }
}

impl Artifact for Fragments<'_> {
    type Content = RepoFragments;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().repo_windows(self.repository)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        WINDOW
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let experiment = engine.experiment;
        let identity = experiment
            .cut(Identity::new(RepoFragments::KIND))
            .parameter("repository", self.repository)
            .parameter("walk", experiment.walk);
        Ok(match &self.files {
            Some(digest) => identity.input("repository", digest),
            None => identity,
        })
    }
}

/// Fragments of which the header was read; the rest is read when it is needed.
pub(super) struct OpenFragments {
    /// Header of the artifact.
    pub(super) header: Header,
    /// Columns of the artifact; `None` in a dry run that would make the fragments first.
    columns: Option<Columns>,
    /// The fragments, with the texts that were read so far.
    read: Option<(RepoFragments, TextRanges)>,
}

impl OpenFragments {
    /// # Errors
    /// The fragments are missing, or were cut otherwise.
    pub(super) fn open(engine: &mut Engine<'_>, repository: &str) -> Result<Self> {
        let LazyArtifact { header, columns, .. } = engine.need(&Fragments::new(repository))?;
        Ok(Self { header, columns, read: None })
    }

    /// Returns the fragments for callers that need no further texts.
    ///
    /// # Errors
    /// The fragments are damaged or cannot be read, as for every method below.
    pub(super) fn outline(&mut self) -> Result<&RepoFragments> {
        self.read(|_| Some(Vec::new()))
    }

    /// Reads what a search needs: all texts, unless it compares sets.
    pub(super) fn read_for_search(&mut self, experiment: &Experiment) -> Result<&RepoFragments> {
        if experiment.retrieval.search.by_sets() { self.outline() } else { self.read_all() }
    }

    /// Reads all texts.
    pub(super) fn read_all(&mut self) -> Result<&RepoFragments> {
        self.read(|_| None)
    }

    /// Reads the texts of these files, or of all files if these are many.
    pub(super) fn read_files(
        &mut self,
        files: impl FnOnce(&RepoFragments) -> Vec<u32>,
    ) -> Result<&RepoFragments> {
        self.read(|fragments| {
            let mut files = files(fragments);
            files.retain(|file| !fragments.files[*file as usize].lines.is_read());
            files.sort_unstable();
            files.dedup();
            // One long read costs less than many short ones.
            Some(files).filter(|files| files.len() <= fragments.files.len() / 2)
        })
    }

    /// Forgets everything except the header; the rest is read again when it is needed.
    pub(super) fn forget(&mut self) {
        self.read = None;
    }

    /// Reads the texts of the given files, or of all files.
    fn read(
        &mut self,
        files: impl FnOnce(&RepoFragments) -> Option<Vec<u32>>,
    ) -> Result<&RepoFragments> {
        let Some(columns) = &mut self.columns else {
            return Err(not_made(RepoFragments::KIND));
        };
        let read = match self.read.take() {
            Some(read) => Ok(read),
            None => RepoFragments::outline(columns).and_then(|read| match read.0.check() {
                Ok(()) => Ok(read),
                Err(reason) => Err(columns.damage_error(reason)),
            }),
        };
        let read = read.and_then(|(mut fragments, texts)| {
            let files = files(&fragments);
            fragments.read_texts(columns, &texts, files.as_deref())?;
            Ok((fragments, texts))
        });
        columns.close();
        let read = read.map_err(|error| made_again(error, &WINDOW))?;
        Ok(&self.read.insert(read).0)
    }
}
