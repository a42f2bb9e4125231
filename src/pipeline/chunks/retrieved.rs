//! What the stages before `prompt` left of a repository: its chunks, queries and rankings, known to belong together.

use std::path::PathBuf;

use super::super::{Experiment, Unread, check_input, check_parameter};
use super::dense::Dense;
use super::{ChunkSettings, open_chunks, open_queries};
use crate::error::{Error, Result};
use crate::repository::chunk::RepoChunks;
use crate::retrieve::chunks::{Order, Queries, Ranking, Shower};
use crate::retrieve::query::Mode;
use crate::retrieve::rank::Ranker;

/// What the stages before left of one repository in one mode, of which the headers are read.
pub(super) struct OnDisk {
    chunks: Unread<RepoChunks>,
    queries: Unread<Queries>,
    ranking: Unread<Ranking>,
    path: PathBuf,
    command: String,
}

/// The same, read.
pub(super) struct Retrieved {
    pub(super) chunks: RepoChunks,
    pub(super) queries: Queries,
    pub(super) ranking: Ranking,
}

impl OnDisk {
    /// # Errors
    /// Chunks, queries or rankings are missing or do not belong together.
    pub(super) fn open(experiment: &Experiment, mode: Mode, repository: &str) -> Result<Self> {
        let chunks = open_chunks(experiment, repository)?;
        let queries = open_queries(experiment, mode, repository, &chunks.header)?;
        let path = experiment.layout.retrieval(mode, repository);
        let command = format!("search --mode {mode}");
        let ranking = Unread::<Ranking>::open(&path, &command)?;
        let header = &ranking.header;
        check_input(&path, header, "chunks", &chunks.header, &command)?;
        check_input(&path, header, "queries", &queries.header, &command)?;
        let settings = experiment.of_chunks()?;
        check_parameter(&path, header, ("ties", settings.order), &command)?;
        for (name, limit) in [
            ("max-files", settings.limits.files),
            ("max-chunks", settings.limits.chunks),
        ] {
            check_parameter(&path, header, (name, limit), &command)?;
        }
        if settings.ranker.parts().contains(&Ranker::Dense) {
            let headers = (&chunks.header, &queries.header);
            let dense = Dense::open(experiment, mode, repository, headers)?;
            for (input, vectors) in dense.headers() {
                check_input(&path, header, input, vectors, &command)?;
            }
        }
        Ok(Self {
            chunks,
            queries,
            ranking,
            path,
            command,
        })
    }

    /// Checksums of all that it consists of.
    pub(super) fn checksums(&self) -> [&str; 3] {
        [
            &self.chunks.header,
            &self.queries.header,
            &self.ranking.header,
        ]
        .map(|h| &*h.checksum)
    }

    /// # Errors
    /// Something is damaged.
    pub(super) fn read(&mut self) -> Result<Retrieved> {
        let (chunks, queries) = (self.chunks.read(None)?, self.queries.read(None)?);
        let ranking = self.ranking.read(Some(queries.queries.len()))?;
        if ranking.chunks as usize != chunks.len() {
            let reason = format!(
                "its results are for {} chunks, not {}",
                ranking.chunks,
                chunks.len()
            );
            return Err(Error::Artifact {
                path: self.path.clone(),
                reason,
                hint: format!("make it again with `repoformer {}`", self.command),
            });
        }
        Ok(Retrieved {
            chunks,
            queries,
            ranking,
        })
    }
}

impl Retrieved {
    /// What turns its rankings into fragments.
    pub(super) fn shower<'a>(
        &'a self,
        experiment: &'a Experiment,
        settings: &'a ChunkSettings,
    ) -> Shower<'a> {
        let fits = |text: &str| {
            let most = settings.budget.cross_file.unwrap_or(settings.budget.total);
            settings.tokenizer.count(text) <= most
        };
        let align = settings.align.settled(self.queries.form);
        Shower::new(&self.chunks, align, experiment.budget.blocks, fits)
            .with_full_paths(settings.full_paths)
            .with_texts_apart(settings.order == Order::Reference)
    }
}
