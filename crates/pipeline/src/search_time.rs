//! The time that searches took: a measurement, kept in a file of its own next to the results.

use std::time::{Duration, Instant};

use foldhash::HashMap;
use repoformer_core::retrieve::definitions::{FileNames, KnownNames};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Mode, QueryVectors};
use repoformer_store::artifact::{Header, Identity, digest, read_header, write_file};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::seal::{Seal, check, seal};
use repoformer_text::tokenize::P50k;
use serde::{Deserialize, Serialize};

use super::embed::{cosines, embedding_times};
use super::engine::Engine;
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::indexes::Indexes;
use super::search::{ModeSearch, ReadSearch};
use super::vectors::UnreadVectors;

/// Time that a search took. It depends on the clock, and so has a file of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchTime {
    /// Number of queries.
    pub queries: usize,
    /// Seconds for building the index, for the dense vectors of all queries if known, and for searching.
    pub seconds: f64,
    /// True if the time for dense vectors is known and counted, if the queries need any.
    #[serde(default)]
    pub with_embedding: bool,
}

/// The file of a search's time.
#[derive(Serialize, Deserialize)]
struct NotedTime {
    #[serde(flatten)]
    time: SearchTime,
    /// Digest of the identity of the retrieval artifact; version 0.2.0 did not record it.
    retrieval: Option<String>,
}

/// Time of one query's retrieval.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryTime {
    pub(super) took: Duration,
    /// True if the time for the query's dense vector is unknown and not included.
    pub(super) without_embedding: bool,
}

/// Records next to a retrieval artifact how long the search took.
pub(super) fn keep_time(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    time: SearchTime,
    retrieval: &Identity,
) -> Result<()> {
    let noted = NotedTime { time, retrieval: Some(digest_of(retrieval)) };
    let json = seal(serde_json::to_vec(&noted).unwrap_or_default());
    write_file(&experiment.paths().search_time(mode, repository), &json)
}

/// Measures each query alone in an existing index, from its text to the results: the time that a user waits for one completion.
/// The dense vector exists already; the server's time for it is added if it was kept. Returns times by row and sample.
pub(super) fn time_each(
    experiment: &Experiment,
    mode: Mode,
) -> Result<HashMap<(u64, u64), QueryTime>> {
    let (tokenizer, mut times) = (P50k, HashMap::default());
    let search = &experiment.retrieval.search;
    let work =
        experiment.work("time the searches of", "repositories", experiment.repositories.len());
    let known = KnownNames::default();
    let mut engine = Engine::new(experiment);
    for repository in &experiment.repositories {
        let mut fragments = OpenFragments::open(&mut engine, repository)?;
        let mut vectors = UnreadVectors::open(&mut engine, repository)?;
        let ReadSearch { mut queries, dense, .. } =
            ModeSearch::open(&mut engine, repository, mode)?.read()?;
        let fragments = fragments.read_for_search(experiment)?;
        let vectors = vectors.read(fragments.len())?;
        let names = experiment.reads_names().then(|| FileNames::read(fragments, &known));
        experiment.messages.gaps(names.iter().flat_map(FileNames::gaps).cloned().collect());
        let index = Indexes::new(experiment, fragments, vectors, names.as_ref())?;
        let all = std::mem::take(&mut queries.queries);
        let embedding = dense.as_ref().and_then(|_| embedding_times(experiment, &all));
        let cosines = dense.as_ref().map(|(fragments, queries)| cosines(fragments, queries));
        for (number, query) in all.into_iter().enumerate() {
            let key = (query.row.into(), query.sample.into());
            queries.queries = vec![query];
            let of_this = cosines.as_ref().map(|cosines| move |_| cosines(number));
            let begin = Instant::now();
            let sets = search.by_p50k_sets().then(|| TokenSets::of_queries(&queries, &tokenizer));
            let vectors = QueryVectors {
                sets: sets.as_ref(),
                cosines: of_this.as_ref().map(|cosines| cosines as _),
                ..QueryVectors::default()
            };
            let found = index.search_with(&queries, vectors);
            let mut took = begin.elapsed();
            took += embedding.as_ref().map_or(Duration::ZERO, |times| times[number]);
            let without_embedding = dense.is_some() && embedding.is_none();
            times.insert(key, QueryTime { took, without_embedding });
            std::hint::black_box(found);
        }
        work.advance(1);
    }
    Ok(times)
}

/// Returns the time of the search for a retrieval artifact with this header, or the reason why the file is wrong; `None` if the
/// time is not known.
pub(super) fn noted_time(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    header: &Header,
) -> Result<Option<std::result::Result<SearchTime, &'static str>>> {
    let path = experiment.paths().search_time(mode, repository);
    let bytes = files::read_regular_if_there(&path)
        .map_err(|e| Error::reading(&path, "read this time of a search", e))?;
    let Some(json) = bytes else { return Ok(None) };
    if check(&json) == Seal::Broken {
        return Ok(Some(Err("damaged: its checksum does not match")));
    }
    Ok(match serde_json::from_slice(&json) {
        // The file does not show to which artifact it belongs.
        Ok(NotedTime { retrieval: None, .. }) => None,
        Ok(NotedTime { time, retrieval: Some(of) }) if of == digest_of(&header.identity) => {
            Some(Ok(time))
        }
        _ => Some(Err("belongs to another search")),
    })
}

/// Returns a digest of everything that determines an artifact's bytes.
fn digest_of(identity: &Identity) -> String {
    digest(&serde_json::to_vec(identity).unwrap_or_default())
}

/// Returns the total time of a mode's searches, as measured when they were made; `None` if it is not known.
///
/// # Errors
/// A file of times cannot be read.
pub fn search_time(experiment: &Experiment, mode: Mode) -> Result<Option<SearchTime>> {
    let mut sum = SearchTime { with_embedding: true, ..SearchTime::default() };
    for repository in &experiment.repositories {
        let path = experiment.paths().retrieval(mode, repository);
        if !path.exists() {
            return Ok(None);
        }
        let noted = noted_time(experiment, mode, repository, &read_header(&path)?)?;
        let Some(Ok(time)) = noted else { return Ok(None) };
        sum.queries += time.queries;
        sum.seconds += time.seconds;
        sum.with_embedding &= time.with_embedding || !experiment.ranks_dense();
    }
    Ok(Some(sum))
}
