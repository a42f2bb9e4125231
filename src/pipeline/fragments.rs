//! A repository's fragments as the `window` stage left them: most stages need few of their texts.

use super::experiment::Experiment;
use super::stage::{Unread, check_parameter, made_again};
use crate::error::Result;
use crate::repository::fragment::{RepoFragments, TextRanges};
use crate::store::artifact::{Columns, Header, Identity, Payload};

/// Fragments, and the texts that were read so far.
pub(super) struct OpenFragments {
    /// Header of the artifact.
    pub(super) header: Header,
    fragments: RepoFragments,
    columns: Columns,
    texts: TextRanges,
}

impl OpenFragments {
    /// # Errors
    /// They are missing, damaged, or were cut otherwise.
    pub(super) fn open(experiment: &Experiment, repository: &str) -> Result<Self> {
        let (header, mut columns) = Self::unread(experiment, repository)?.into_columns();
        let outline = RepoFragments::outline(&mut columns);
        columns.close();
        let outline = outline.and_then(|(fragments, texts)| match fragments.check() {
            Ok(()) => Ok((fragments, texts)),
            Err(reason) => Err(columns.damaged(reason)),
        });
        let (fragments, texts) = outline.map_err(|error| made_again(error, "window"))?;
        Ok(Self { header, fragments, columns, texts })
    }

    /// The header alone.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn unread(
        experiment: &Experiment,
        repository: &str,
    ) -> Result<Unread<RepoFragments>> {
        let path = experiment.layout.repo_windows(repository);
        let unread = Unread::<RepoFragments>::open(&path, "window")?;
        let wanted = experiment.cut(Identity::new(RepoFragments::KIND));
        let wanted = wanted.parameter("walk", experiment.walk);
        for (name, value) in &wanted.parameters {
            check_parameter(&path, &unread.header, (name, value), "window")?;
        }
        Ok(unread)
    }

    /// The fragments, for what needs no more text than was read.
    pub(super) fn outline(&self) -> &RepoFragments {
        &self.fragments
    }

    /// Reads what a search needs: texts, but where it compares sets.
    pub(super) fn searched(&mut self, experiment: &Experiment) -> Result<&RepoFragments> {
        if experiment.retrieval.search.by_sets() {
            return Ok(self.outline());
        }
        self.read_all()
    }

    /// Reads all texts.
    pub(super) fn read_all(&mut self) -> Result<&RepoFragments> {
        self.read(None)
    }

    /// Reads the texts of these files; of all where they are many.
    pub(super) fn read_files(&mut self, mut files: Vec<u32>) -> Result<&RepoFragments> {
        files.sort_unstable();
        files.dedup();
        // One long read costs less than many short ones.
        let many = files.len() > self.fragments.files.len() / 2;
        self.read(Some(&files).filter(|_| !many).map(Vec::as_slice))
    }

    fn read(&mut self, files: Option<&[u32]>) -> Result<&RepoFragments> {
        let read = self.fragments.read_texts(&mut self.columns, &self.texts, files);
        self.columns.close();
        read.map_err(|error| made_again(error, "window"))?;
        Ok(&self.fragments)
    }

    /// The fragments with the texts that were read.
    pub(super) fn into_fragments(self) -> RepoFragments {
        self.fragments
    }
}
