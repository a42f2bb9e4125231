//! `search`: finds fragments for queries.

use std::time::{Duration, Instant};

use repoformer_core::retrieve::definitions::{FileNames, KnownNames};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Mode, Queries};
use repoformer_store::artifact::Identity;
use repoformer_store::error::Result;
use repoformer_store::readings::change_error;

use super::embed::{Dense, embedding_times};
use super::engine::{Artifact, Engine, LazyArtifact};
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::indexes::Indexes;
use super::queries::ModeQueries;
use super::retrieval_artifact::ModeRetrieval;
use super::search_time::{SearchTime, keep_time};
use super::stage::{StageReport, for_each_repository};
use super::vectors::{QuerySets, UnreadVectors};
/// Searches each repository in each mode that retrieves.
///
/// # Errors
/// Fragments, vectors or queries are missing or do not belong together, or an artifact cannot be written.
pub fn search(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    experiment.tasks()?; // otherwise, each repository would report that tasks are missing
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    let known = KnownNames::default();
    for_each_repository(experiment, "search", |repository, engine| {
        search_repository(engine, repository, &modes, &known)
    })
}

fn search_repository(
    engine: &mut Engine<'_>,
    repository: &str,
    modes: &[Mode],
    known: &KnownNames,
) -> Result<()> {
    let experiment = engine.experiment;
    let mut searches = Vec::new();
    for &mode in modes {
        searches.push(ModeSearch::open(engine, repository, mode)?);
    }
    // The index is built once for all modes, and only if some results are not current.
    let mut is_needed = false;
    for search in &searches {
        is_needed |= engine.makes(&search.retrieval(repository))?;
    }
    let (mut fragments, names);
    let mut index = None;
    if is_needed {
        fragments = OpenFragments::open(engine, repository)?;
        let mut vectors = UnreadVectors::open(engine, repository)?;
        let fragments = fragments.read_for_search(experiment)?;
        let vectors = vectors.read(fragments.len())?;
        let begin = Instant::now();
        names = experiment.reads_names().then(|| FileNames::read(fragments, known));
        experiment.messages.gaps(names.iter().flat_map(FileNames::gaps).cloned().collect());
        let built = Indexes::new(experiment, fragments, vectors, names.as_ref())?;
        index = Some((built, begin.elapsed()));
    }
    for mut search in searches {
        let retrieval = search.retrieval(repository);
        engine.make(&retrieval, |engine| {
            let Some((index, built)) = &index else {
                // The artifact was current when the decision not to build the index was made.
                return Err(change_error(&retrieval.path(experiment)));
            };
            let read = search.read()?;
            let begin = Instant::now();
            let found = index.search(&read);
            let took = *built + begin.elapsed();
            // The time is written first: an existing artifact is not searched for again, so its time would stay unknown.
            let time = read.time(experiment, took);
            keep_time(experiment, search.mode, repository, time, &retrieval.identity(engine)?)?;
            Ok(found)
        })?;
    }
    Ok(())
}

/// Queries of one mode, and the vectors to compare.
pub(super) struct ModeSearch {
    mode: Mode,
    queries: LazyArtifact<Queries>,
    sets: Option<LazyArtifact<TokenSets>>,
    dense: Option<Dense>,
    /// Inputs of the results, besides fragments and queries.
    vectors: Identity,
}

impl ModeSearch {
    /// Opens the queries and vectors.
    ///
    /// # Errors
    /// Queries or vectors are missing or do not belong together.
    pub(super) fn open(engine: &mut Engine<'_>, repository: &str, mode: Mode) -> Result<Self> {
        let of_fragments = UnreadVectors::open(engine, repository)?;
        let mut vectors = Identity::new("").input("vectors", of_fragments.checksum());
        let queries = engine.need(&ModeQueries::new(mode, repository))?;
        let mut sets = None;
        if engine.experiment.retrieval.search.by_p50k_sets() {
            let unread = engine.need(&QuerySets { mode, repository })?;
            vectors = vectors.input("query vectors", &*unread.header.checksum);
            sets = Some(unread);
        }
        let dense = if engine.experiment.ranks_dense() {
            Some(Dense::open(engine, mode, repository)?)
        } else {
            None
        };
        Ok(Self { mode, queries, sets, dense, vectors })
    }

    /// Returns the retrieval artifact that is made from these queries and vectors.
    fn retrieval<'a>(&self, repository: &'a str) -> ModeRetrieval<'a> {
        ModeRetrieval { mode: self.mode, repository, vectors: Some(self.vectors.clone()) }
    }

    pub(super) fn read(&mut self) -> Result<ReadSearch> {
        let queries = self.queries.read(None)?;
        let count = queries.queries.len();
        let sets = self.sets.as_mut().map(|sets| sets.read(Some(count)));
        Ok(ReadSearch {
            sets: sets.transpose()?,
            dense: self.dense.as_mut().map(Dense::read).transpose()?,
            queries,
        })
    }
}

/// Queries of one mode and their vectors, after reading.
pub(super) struct ReadSearch {
    pub(super) queries: Queries,
    pub(super) sets: Option<TokenSets>,
    pub(super) dense: Option<(
        repoformer_core::retrieve::dense::Matrix,
        repoformer_core::retrieve::dense::Matrix,
    )>,
}

impl ReadSearch {
    /// Returns the time of a search, including the time for the queries' dense vectors if it is known.
    fn time(&self, experiment: &Experiment, took: Duration) -> SearchTime {
        let queries = &self.queries.queries;
        let embedding = self.dense.as_ref().and_then(|_| embedding_times(experiment, queries));
        SearchTime {
            queries: queries.len(),
            seconds: (took + embedding.iter().flatten().sum::<Duration>()).as_secs_f64(),
            with_embedding: embedding.is_some(),
        }
    }
}
