//! `search`: finds fragments for queries.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::definitions::{DefinitionIndex, FileNames, KnownNames};
use repoformer_core::retrieve::graph::FileGraph;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{
    FragmentVectors, Mode, Queries, QueryVectors, RepositoryIndex, Retrieval,
};
use repoformer_core::task::TaskSet;
use repoformer_store::artifact::{Header, Identity, Payload};
use repoformer_store::error::Result;
use repoformer_store::readings::changed;
use repoformer_text::message::StageRun;

use super::embed::{Dense, cosines, embedding_times};
use super::engine::{Artifact, Engine, Flaw, Unread};
use super::experiment::Experiment;
use super::fragments::{Fragments, OpenFragments};
use super::search_time::{SearchTime, keep_time, noted_time};
use super::stage::{StageReport, for_each_repository};
use super::vectorize::{QuerySets, UnreadVectors};
use super::window::ModeQueries;
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
        let fragments = fragments.searched(experiment)?;
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
                return Err(changed(&retrieval.path(experiment)));
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

/// Retrieval of a repository in a mode.
pub(super) struct ModeRetrieval<'a> {
    mode: Mode,
    repository: &'a str,
    /// Inputs besides fragments and queries; `None` for the retrieval artifact that is in the cache.
    vectors: Option<Identity>,
}

impl<'a> ModeRetrieval<'a> {
    /// Returns the retrieval artifact that is in the cache.
    pub(super) fn new(mode: Mode, repository: &'a str) -> Self {
        Self { mode, repository, vectors: None }
    }
}

impl Artifact for ModeRetrieval<'_> {
    type Content = Retrieval;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().retrieval(self.mode, self.repository)
    }

    fn made_by(&self, _: &Experiment) -> StageRun {
        StageRun::InMode("search", self.mode.name())
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let Self { mode, repository, .. } = *self;
        let experiment = engine.experiment;
        let (layout, paths) = (&experiment.layout, experiment.paths());
        let mut identity = experiment.cut(Identity::new(Retrieval::KIND));
        identity = experiment.visible(experiment.ranked(identity));
        identity = identity
            .parameter("repository", repository)
            .parameter("benchmark", &layout.benchmark)
            .parameter("mode", mode)
            .parameter("top-k", experiment.retrieval.search.top_k)
            .parameter("fragments-file", layout.within_cache(&paths.repo_windows(repository)))
            .parameter("queries-file", layout.within_cache(&paths.query_windows(mode, repository)))
            .input("fragments", engine.header(&Fragments::new(repository))?.checksum)
            .input("queries", engine.header(&ModeQueries::new(mode, repository))?.checksum);
        if experiment.reads_names() {
            identity = identity.parameter("names", NAMES);
            identity = identity.input("tasks", experiment.tasks()?.digest_of(repository));
        }
        if experiment.ranks_dense() {
            identity = Dense::inputs(engine, mode, repository, identity)?;
        }
        Ok(self
            .vectors
            .iter()
            .flat_map(|vectors| &vectors.inputs)
            .fold(identity, |identity, (name, digest)| identity.input(name, digest)))
    }

    /// Returns a flaw if the time is damaged, or belongs to another search.
    fn flaw(&self, experiment: &Experiment, header: &Header) -> Result<Option<Flaw>> {
        let path = experiment.paths().search_time(self.mode, self.repository);
        let noted = noted_time(experiment, self.mode, self.repository, header)?;
        let wrong = noted.and_then(std::result::Result::err);
        Ok(wrong.map(|reason| Flaw::Beside { path, reason: reason.to_owned() }))
    }
}

/// Revision of how names are looked up and what is recorded about them; raised with every change.
const NAMES: u32 = 2;

/// Queries of one mode, and the vectors to compare.
pub(super) struct ModeSearch {
    mode: Mode,
    queries: Unread<Queries>,
    sets: Option<Unread<TokenSets>>,
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
        let dense = match engine.experiment.ranks_dense() {
            true => Some(Dense::open(engine, mode, repository)?),
            false => None,
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
    sets: Option<TokenSets>,
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

/// Indexes in which a repository's fragments are searched.
pub(super) struct Indexes<'a> {
    fragments: RepositoryIndex<'a>,
    definitions: Option<DefinitionIndex<'a>>,
    ranks_definitions: bool,
    graph: Option<FileGraph<'a>>,
    tasks: &'a TaskSet,
}

impl<'a> Indexes<'a> {
    pub(super) fn new(
        experiment: &'a Experiment,
        fragments: &'a RepoFragments,
        vectors: FragmentVectors,
        names: Option<&'a FileNames<'a>>,
    ) -> Result<Self> {
        let search = &experiment.retrieval.search;
        let definitions = names.map(FileNames::index);
        let graph = definitions.as_ref().filter(|_| search.ranker.has_prior());
        Ok(Self {
            fragments: RepositoryIndex::new(fragments, vectors, search),
            graph: graph.map(|definitions| FileGraph::new(definitions, fragments)),
            definitions,
            ranks_definitions: search.ranker.finds_definitions(),
            tasks: experiment.tasks()?,
        })
    }

    fn search(&self, read: &ReadSearch) -> Retrieval {
        let cosines = read.dense.as_ref().map(|(fragments, queries)| cosines(fragments, queries));
        let vectors = QueryVectors {
            sets: read.sets.as_ref(),
            cosines: cosines.as_ref().map(|cosines| cosines as _),
            ..QueryVectors::default()
        };
        self.search_with(&read.queries, vectors)
    }

    /// Searches with queries whose vectors are given, except those computed from the names in their tasks' files.
    pub(super) fn search_with(&self, queries: &Queries, vectors: QueryVectors<'_>) -> Retrieval {
        let task = |number: usize| self.tasks.of_row(queries.queries[number].row as usize);
        let definitions = self.definitions.as_ref();
        let of_names = definitions.filter(|_| self.ranks_definitions).map(|definitions| {
            move |number: usize| {
                let query = &queries.queries[number];
                task(number).map_or_else(Vec::new, |task| definitions.search(query, task))
            }
        });
        let priors = self.graph.as_ref().zip(definitions).map(|(graph, definitions)| {
            move |number: usize| {
                let query = &queries.queries[number];
                task(number).map_or_else(Vec::new, |task| graph.prior(definitions, query, task))
            }
        });
        let vectors = QueryVectors {
            definitions: of_names.as_ref().map(|found| found as _),
            priors: priors.as_ref().map(|prior| prior as _),
            ..vectors
        };
        self.fragments.search(queries, vectors)
    }
}
