//! `vectorize` in the manner of chunks: chunks → word vectors; where a ranker needs them, chunks and queries → dense ones.

use super::super::{Experiment, Report, for_each_repository};
use super::dense::Source;
use super::{ChunkSettings, open_chunks, open_queries, shaped};
use crate::error::Result;
use crate::repository::chunk::RepoChunks;
use crate::retrieve::chunks::Queries;
use crate::retrieve::dense::{Matrix, Text, digest};
use crate::retrieve::query::Mode;
use crate::retrieve::rank::Words;
use crate::store::artifact::{Identity, Payload};

/// Word vectors of each repository's chunks, and dense ones where a ranker needs them.
///
/// # Errors
/// Chunks are missing, an artifact cannot be written, or dense vectors cannot be had.
pub(in crate::pipeline) fn vectorize_repositories(experiment: &Experiment) -> Result<Report> {
    let settings = experiment.of_chunks()?;
    let mut report = for_each_repository(experiment, |repository, report| {
        let mut chunks = open_chunks(experiment, repository)?;
        let identity = shaped(experiment, settings, Identity::new(Words::KIND))
            .parameter("repository", repository)
            .parameter("vectorizer", "words")
            .input("chunks", &*chunks.header.checksum);
        let path = experiment.layout.repo_vectors(repository);
        report.ensure(path, &identity, |_| {
            let chunks = chunks.read(None)?;
            Ok(Words::of(&texts_of_chunks(&chunks)))
        })?;
        Ok(())
    })?;
    if let Some(mut source) = Source::new(settings, &[])? {
        for repository in &experiment.repositories {
            dense_chunks(experiment, settings, &mut source, repository, &mut report)?;
        }
    }
    Ok(report)
}

/// Words of queries are looked up when they are searched with; a ranker of dense vectors needs theirs.
///
/// # Errors
/// Queries are missing, or their vectors cannot be had.
pub(in crate::pipeline) fn vectorize_queries(
    experiment: &Experiment,
    modes: &[Mode],
) -> Result<Report> {
    let settings = experiment.of_chunks()?;
    let mut report = Report::default();
    let Some(mut source) = Source::new(settings, modes)? else {
        return Ok(report);
    };
    for &mode in modes.iter().filter(|mode| mode.retrieves()) {
        for repository in &experiment.repositories {
            dense_queries(
                experiment,
                settings,
                &mut source,
                (mode, repository),
                &mut report,
            )?;
        }
    }
    Ok(report)
}

fn texts_of_chunks(chunks: &RepoChunks) -> Vec<&str> {
    (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect()
}

fn dense_chunks(
    experiment: &Experiment,
    settings: &ChunkSettings,
    source: &mut Source,
    repository: &str,
    report: &mut Report,
) -> Result<()> {
    let mut chunks = open_chunks(experiment, repository)?;
    let identity = shaped(experiment, settings, Identity::new(Matrix::KIND))
        .parameter("repository", repository)
        .input("chunks", &*chunks.header.checksum);
    let identity = source.identity(identity)?;
    let layout = experiment.layout.with_dense_vectors();
    report.ensure(layout.repo_vectors(repository), &identity, |report| {
        let chunks = chunks.read(None)?;
        let texts = texts_of_chunks(&chunks);
        let named = (0..).zip(&texts);
        let text = |(chunk, text): (usize, &&str)| Text {
            id: chunks.name(chunk),
            text: (*text).to_owned(),
        };
        source.matrix(experiment, named.map(text).collect(), report)
    })?;
    Ok(())
}

fn dense_queries(
    experiment: &Experiment,
    settings: &ChunkSettings,
    source: &mut Source,
    (mode, repository): (Mode, &str),
    report: &mut Report,
) -> Result<()> {
    let chunks = open_chunks(experiment, repository)?;
    let mut queries = open_queries(experiment, mode, repository, &chunks.header)?;
    let identity = shaped(experiment, settings, Identity::new(Matrix::KIND))
        .parameter("repository", repository)
        .parameter("mode", mode)
        .input("queries", &*queries.header.checksum);
    let identity = source.identity(identity)?;
    let layout = experiment.layout.with_dense_vectors();
    report.ensure(
        layout.query_vectors(mode, repository),
        &identity,
        |report| {
            let queries = queries.read(None)?;
            source.matrix(experiment, texts_of_queries(&queries), report)
        },
    )?;
    Ok(())
}

fn texts_of_queries(queries: &Queries) -> Vec<Text> {
    let mode = queries.mode;
    let text = |query: &crate::retrieve::chunks::Query| Text {
        id: format!("{mode}|{}|{}", query.row, query.sample),
        text: query.text(),
    };
    queries.queries.iter().map(text).collect()
}

/// Every different text that dense retrieval needs vectors of, for a user who computes them elsewhere: the chunks of all
/// repositories, then the queries of these modes.
///
/// # Errors
/// Chunks or queries are missing.
pub fn dense_texts(experiment: &Experiment, modes: &[Mode]) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    for repository in &experiment.repositories {
        let chunks = open_chunks(experiment, repository)?.read(None)?;
        texts.extend((0..chunks.len()).map(|chunk| Text {
            id: chunks.name(chunk),
            text: chunks.text(chunk).to_owned(),
        }));
    }
    for &mode in modes.iter().filter(|mode| mode.retrieves()) {
        for repository in &experiment.repositories {
            let chunks = open_chunks(experiment, repository)?;
            let mut queries = open_queries(experiment, mode, repository, &chunks.header)?;
            texts.extend(texts_of_queries(&queries.read(None)?));
        }
    }
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| !text.text.is_empty() && seen.insert(digest(&text.text)));
    Ok(texts)
}
