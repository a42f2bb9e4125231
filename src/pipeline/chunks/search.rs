//! `search` in the manner of chunks: queries × chunks → rankings.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::super::search::keep_time;
use super::super::{Experiment, Report, Unread, check_input, for_each_repository};
use super::dense::{self, Dense};
use super::{open_chunks, open_queries, shaped};
use crate::error::Result;
use crate::repository::chunk::RepoChunks;
use crate::retrieve::chunks::{Neighbourhood, Ranking};
use crate::retrieve::query::Mode;
use crate::retrieve::rank::{Index, Ranker, Words};
use crate::store::artifact::{Identity, Payload};

/// Searches each repository in each mode that retrieves.
///
/// # Errors
/// Chunks, vectors or queries are missing or do not belong together, or an artifact cannot be written.
pub(in crate::pipeline) fn search(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    experiment.tasks()?; // or each repository would miss them
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    for_each_repository(experiment, |repository, report| {
        search_repository(experiment, repository, &modes, report)
    })
}

fn search_repository(
    experiment: &Experiment,
    repository: &str,
    modes: &[Mode],
    report: &mut Report,
) -> Result<()> {
    let settings = experiment.of_chunks()?;
    let mut unread = open_chunks(experiment, repository)?;
    let path = experiment.layout.repo_vectors(repository);
    let mut words = Unread::<Words>::open(&path, "vectorize")?;
    check_input(&path, &words.header, "chunks", &unread.header, "vectorize")?;
    let mut loaded: Option<(RepoChunks, Index, Duration)> = None;
    for &mode in modes {
        let mut queries = open_queries(experiment, mode, repository, &unread.header)?;
        let mut dense = match settings.ranker.parts().contains(&Ranker::Dense) {
            true => {
                let headers = (&unread.header, &queries.header);
                Some(Dense::open(experiment, mode, repository, headers)?)
            }
            false => None,
        };
        let mut identity = shaped(experiment, settings, Identity::new(Ranking::KIND))
            .parameter("repository", repository)
            .parameter("benchmark", &experiment.layout.benchmark)
            .parameter("mode", mode)
            .parameter("ranker", &settings.ranker)
            .parameter("top-k", experiment.layout.top_k)
            .parameter("ties", settings.order)
            .parameter("max-files", settings.limits.files)
            .parameter("max-chunks", settings.limits.chunks)
            .input("chunks", &*unread.header.checksum)
            .input("vectors", &*words.header.checksum)
            .input("queries", &*queries.header.checksum);
        if let Some(dense) = &dense {
            identity = dense.inputs(identity);
        }
        let path = experiment.layout.retrieval(mode, repository);
        let mut took = None;
        report.ensure(path, &identity, |_| {
            let (chunks, index, built) = match &loaded {
                Some((chunks, index, built)) => (chunks, index, *built),
                None => {
                    let chunks = unread.read(None)?;
                    let words = words.read(Some(chunks.len()))?;
                    let begin = Instant::now();
                    let index = index(&chunks, words, &settings.ranker);
                    let (chunks, index, built) = &*loaded.insert((chunks, index, begin.elapsed()));
                    (chunks, index, *built)
                }
            };
            let queries = queries.read(None)?;
            let cosines = dense.as_mut().map(Dense::read).transpose()?;
            let begin = Instant::now();
            let neighbourhood = Neighbourhood::new(chunks, settings.limits, settings.order);
            let cosines = cosines.as_ref().map(dense::cosines);
            let parameters = (&settings.ranker, experiment.layout.top_k);
            let ranking = Ranking::search(
                index,
                &neighbourhood,
                &queries,
                parameters,
                cosines.as_ref().map(|cosines| cosines as _),
            );
            took = Some((queries.queries.len(), built + begin.elapsed()));
            Ok(ranking)
        })?;
        let keep =
            |(count, time): (usize, Duration)| keep_time(experiment, mode, repository, count, time);
        took.map_or(Ok(()), keep)?;
    }
    Ok(())
}

/// How long each query takes by itself, by row and sample (see [`time_each`](super::super::search::time_each)); nothing
/// where vectors are asked for elsewhere.
pub(in crate::pipeline) fn time_each(
    experiment: &Experiment,
    mode: Mode,
) -> Result<FxHashMap<(u64, u64), Duration>> {
    let settings = experiment.of_chunks()?;
    let mut times = FxHashMap::default();
    if settings.ranker.parts().contains(&Ranker::Dense) {
        return Ok(times);
    }
    for repository in &experiment.repositories {
        let mut unread = open_chunks(experiment, repository)?;
        let path = experiment.layout.repo_vectors(repository);
        let mut words = Unread::<Words>::open(&path, "vectorize")?;
        let mut queries = open_queries(experiment, mode, repository, &unread.header)?.read(None)?;
        let chunks = unread.read(None)?;
        let words = words.read(Some(chunks.len()))?;
        let index = index(&chunks, words, &settings.ranker);
        let neighbourhood = Neighbourhood::new(&chunks, settings.limits, settings.order);
        let parameters = (&settings.ranker, experiment.layout.top_k);
        for query in std::mem::take(&mut queries.queries) {
            let key = (query.row.into(), query.sample.into());
            queries.queries = vec![query];
            let begin = Instant::now();
            let found = Ranking::search(&index, &neighbourhood, &queries, parameters, None);
            times.insert(key, begin.elapsed());
            std::hint::black_box(found);
        }
    }
    Ok(times)
}

fn index(chunks: &RepoChunks, words: Words, ranker: &Ranker) -> Index {
    let texts: Vec<&str> = (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect();
    Index::new(words, &texts, std::slice::from_ref(ranker), chunks.language)
}
