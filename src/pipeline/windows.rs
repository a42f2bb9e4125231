//! A repository's windows as the `window` stage left them, for the stages behind it.

use super::{Experiment, Unread, check_parameter, made_again};
use crate::error::Result;
use crate::repository::window::{RepoWindows, TextRanges};
use crate::store::artifact::{Columns, Header, Payload};

/// The windows, and the texts that were read so far: most stages need few of them.
pub(super) struct Opened {
    /// The artifact's header.
    pub(super) header: Header,
    windows: RepoWindows,
    columns: Columns,
    texts: TextRanges,
}

impl Opened {
    /// # Errors
    /// They are missing, damaged, or were cut otherwise.
    pub(super) fn new(experiment: &Experiment, repository: &str) -> Result<Self> {
        let path = experiment.layout.repo_windows(repository);
        let opened = Unread::<RepoWindows>::open(&path, "window")?;
        let (header, mut columns) = (opened.header, opened.columns);
        let center = ("center", experiment.shape().center);
        check_parameter(&path, &header, center, "window")?;
        let outline = RepoWindows::outline(&mut columns);
        columns.close();
        let (windows, texts) = outline.map_err(|error| made_again(error, "window"))?;
        let fit = windows.check().map_err(|reason| columns.damaged(reason));
        fit.map_err(|error| made_again(error, "window"))?;
        Ok(Self {
            header,
            windows,
            columns,
            texts,
        })
    }

    /// What needs no more text than was read.
    pub(super) fn windows(&self) -> &RepoWindows {
        &self.windows
    }

    /// Reads all texts.
    pub(super) fn read_all(&mut self) -> Result<&RepoWindows> {
        self.read(None)
    }

    /// Reads the texts of these files; of all where they are many.
    pub(super) fn read_files(&mut self, mut files: Vec<u32>) -> Result<&RepoWindows> {
        files.sort_unstable();
        files.dedup();
        // One long read costs less than many short ones.
        let many = files.len() > self.windows.files.len() / 2;
        self.read(Some(&files).filter(|_| !many).map(Vec::as_slice))
    }

    fn read(&mut self, files: Option<&[u32]>) -> Result<&RepoWindows> {
        let read = self
            .windows
            .read_texts(&mut self.columns, &self.texts, files);
        self.columns.close();
        read.map_err(|error| made_again(error, "window"))?;
        Ok(&self.windows)
    }
}
