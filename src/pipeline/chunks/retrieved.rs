//! What the stages before `prompt` left of a repository: its chunks, queries and rankings, known to belong together.

use super::super::{Experiment, Unread, check_input, check_parameter};
use super::contexts::RightContexts;
use super::queries::open_contexts;
use super::vectors::Dense;
use super::{ChunkSettings, open_chunks, open_queries};
use crate::chunk::{Order, Queries, Ranking, RepoChunks, Shower};
use crate::error::{Error, Result};
use crate::query::Mode;
use crate::rank::Ranker;

/// What the stages before left of one repository in one mode.
pub(super) struct Retrieved {
    pub(super) checksums: [(&'static str, String); 3],
    pub(super) chunks: RepoChunks,
    pub(super) queries: Queries,
    pub(super) ranking: Ranking,
}

impl Retrieved {
    /// # Errors
    /// Chunks, queries or rankings are missing or do not belong together.
    pub(super) fn open(experiment: &Experiment, mode: Mode, repository: &str) -> Result<Self> {
        let mut chunks = open_chunks(experiment, repository)?;
        let mut queries = open_queries(experiment, mode, repository, &chunks.header)?;
        let path = experiment.layout.retrieval(mode, repository);
        let command = format!("search --mode {mode}");
        let mut ranking = Unread::<Ranking>::open(&path, &command)?;
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
        let checksums = [
            ("chunks", chunks.header.checksum.clone()),
            ("queries", queries.header.checksum.clone()),
            ("ranking", header.checksum.clone()),
        ];
        let (chunks, queries) = (chunks.read(None)?, queries.read(None)?);
        let ranking = ranking.read(Some(queries.queries.len()))?;
        if ranking.chunks as usize != chunks.len() {
            let reason = format!(
                "its results are for {} chunks, not {}",
                ranking.chunks,
                chunks.len()
            );
            return Err(Error::Artifact {
                path,
                reason,
                hint: format!("make it again with `repoformer {command}`"),
            });
        }
        Ok(Self {
            checksums,
            chunks,
            queries,
            ranking,
        })
    }

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

/// The right contexts of a repository's tasks with their checksum, where any task does not carry its own and there are
/// repositories to take them from.
pub(super) fn right_contexts(
    experiment: &Experiment,
    repository: &str,
) -> Result<Option<(String, RightContexts)>> {
    let mut of_it = experiment.tasks()?.tasks.iter();
    if experiment.repos_dir.as_os_str().is_empty()
        || !of_it.any(|task| task.repository == repository && task.right_context.is_none())
    {
        return Ok(None);
    }
    let mut unread = open_contexts(experiment, repository)?;
    Ok(Some((unread.header.checksum.clone(), unread.read(None)?)))
}
