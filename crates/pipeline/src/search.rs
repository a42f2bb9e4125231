//! `search`: queries × fragments → retrieval results.

use std::time::{Duration, Instant};

use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::definitions::{DefinitionIndex, FileNames, KnownNames};
use repoformer_core::retrieve::graph::FileGraph;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Mode, Queries, QueryVectors, RepositoryIndex, Retrieval, Vectors};
use repoformer_core::task::TaskSet;
use repoformer_store::artifact::{Header, Identity, Payload, digest, read_header, write_file};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::seal::{Seal, check, seal};
use repoformer_text::message::StageRun;
use repoformer_text::tokenize::P50k;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::embed::{Dense, DenseInputs, cosines, embedding_times};
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::stage::{Rebuilt, StageReport, Unread, check_input, for_each_repository, remove};
use super::vectorize::UnreadVectors;
use super::window::open_queries;

/// How long a search took. It depends on the clock, and so lies in a file of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchTime {
    /// Number of queries.
    pub queries: usize,
    /// Seconds for building the index, for the dense vectors of all of them where known, and for searching.
    pub seconds: f64,
    /// Whether the time for their dense vectors is known and counted, where they need any.
    #[serde(default)]
    pub with_embedding: bool,
}

/// The file of a search's time.
#[derive(Serialize, Deserialize)]
struct NotedTime {
    #[serde(flatten)]
    time: SearchTime,
    /// Digest of the identity of the retrieval that was searched for; version 0.2.0 noted none.
    retrieval: Option<String>,
}

/// Time of one query's retrieval.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryTime {
    pub(super) took: Duration,
    /// Whether the time for its dense vector is not known and missing here.
    pub(super) without_embedding: bool,
}

/// Searches each repository in each mode that retrieves.
///
/// # Errors
/// Fragments, vectors or queries are missing or do not belong together, or an artifact cannot be written.
pub fn search(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    experiment.tasks()?; // or each repository would miss them
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    let known = KnownNames::default();
    for_each_repository(experiment, "search", |repository, report| {
        search_repository(experiment, repository, &modes, &known, report)
    })
}

fn search_repository(
    experiment: &Experiment,
    repository: &str,
    modes: &[Mode],
    known: &KnownNames,
    report: &mut StageReport,
) -> Result<()> {
    if modes.is_empty() {
        return Ok(());
    }
    let layout = &experiment.layout;
    let mut fragments = OpenFragments::open(experiment, repository)?;
    let header = fragments.header.clone();
    let mut vectors = UnreadVectors::open(experiment, repository, &header)?;
    let mut searches = Vec::new();
    for &mode in modes {
        if !report.is_dry() {
            forget_wrong_time(report, experiment, mode, repository)?;
        }
        let search = ModeSearch::open(experiment, repository, mode, &header)?;
        let mut identity = experiment.cut(Identity::new(Retrieval::KIND));
        identity = experiment.visible(experiment.ranked(identity));
        identity = identity
            .parameter("repository", repository)
            .parameter("benchmark", &layout.benchmark)
            .parameter("mode", mode)
            .parameter("top-k", layout.top_k)
            .parameter("fragments-file", layout.within_cache(&layout.repo_windows(repository)))
            .parameter("queries-file", layout.within_cache(&layout.query_windows(mode, repository)))
            .input("fragments", &*header.checksum)
            .input("vectors", &*vectors.header().checksum);
        if experiment.reads_names() {
            identity = identity.parameter("names", NAMES);
            identity = identity.input("tasks", experiment.tasks()?.digest_of(repository));
        }
        searches.push((mode, search.inputs(identity), search));
    }
    // The index is built once for all modes, and only where some results are not current.
    let is_needed = searches.iter().any(|(mode, identity, _)| {
        report.builds::<Retrieval>(&layout.retrieval(*mode, repository), identity)
    });
    let names;
    let index = match is_needed {
        true => {
            let fragments = fragments.searched(experiment)?;
            let vectors = vectors.read(fragments.len())?;
            let begin = Instant::now();
            names = experiment.reads_names().then(|| FileNames::read(fragments, known));
            let index = Indexes::new(experiment, fragments, vectors, names.as_ref())?;
            Some((index, begin.elapsed()))
        }
        false => None,
    };
    for (mode, identity, mut search) in searches {
        report.ensure(layout.retrieval(mode, repository), &identity, |_| {
            let (index, built) = match &index {
                Some((index, built)) => (index, *built),
                None => unreachable!("an artifact that is not current has an index"),
            };
            let read = search.read()?;
            let begin = Instant::now();
            let found = index.search(&read);
            let time = built + begin.elapsed();
            let queries = &read.queries.queries;
            let embedding = read.dense.as_ref().and_then(|_| embedding_times(experiment, queries));
            let time = SearchTime {
                queries: queries.len(),
                seconds: (time + embedding.iter().flatten().sum::<Duration>()).as_secs_f64(),
                with_embedding: embedding.is_some(),
            };
            // It goes first: an artifact that is there is not searched for again, and its time would stay unknown.
            keep_time(
                experiment,
                mode,
                repository,
                NotedTime { time, retrieval: Some(digest_of(&identity)) },
            )?;
            Ok(found)
        })?;
    }
    Ok(())
}

/// Revision of how names are looked up, and of what is noted of it; raised with every change.
const NAMES: u32 = 2;

/// Queries of one mode, and their vectors.
struct ModeSearch {
    queries: Unread<Queries>,
    sets: Option<Unread<TokenSets>>,
    dense: Option<Dense>,
}

impl ModeSearch {
    /// Opens them, and checks that they belong to the fragments.
    fn open(
        experiment: &Experiment,
        repository: &str,
        mode: Mode,
        fragments: &Header,
    ) -> Result<Self> {
        let queries = open_queries(experiment, mode, repository, fragments)?;
        let mut sets = None;
        if experiment.retrieval.search.by_p50k_sets() {
            let step = StageRun::InMode("vectorize", mode.name());
            let path = experiment.layout.query_vectors(mode, repository);
            let unread = Unread::open(experiment, &path, &step)?;
            check_input(&path, &unread.header, "queries", &queries.header, &step)?;
            sets = Some(unread);
        }
        let dense = match experiment.ranks_dense() {
            true => {
                let made_of = DenseInputs { fragments, queries: &queries.header };
                Some(Dense::open(experiment, mode, repository, made_of)?)
            }
            false => None,
        };
        Ok(Self { queries, sets, dense })
    }

    fn inputs(&self, mut identity: Identity) -> Identity {
        identity = identity.input("queries", &*self.queries.header.checksum);
        if let Some(sets) = &self.sets {
            identity = identity.input("query vectors", &*sets.header.checksum);
        }
        match &self.dense {
            Some(dense) => dense.inputs(identity),
            None => identity,
        }
    }

    fn read(&mut self) -> Result<ReadSearch> {
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

/// Queries of one mode and their vectors, read.
struct ReadSearch {
    queries: Queries,
    sets: Option<TokenSets>,
    dense: Option<(
        repoformer_core::retrieve::dense::Matrix,
        repoformer_core::retrieve::dense::Matrix,
    )>,
}

/// Indexes of a repository that queries are searched in.
struct Indexes<'a> {
    fragments: RepositoryIndex<'a>,
    definitions: Option<DefinitionIndex<'a>>,
    ranks_definitions: bool,
    graph: Option<FileGraph<'a>>,
    tasks: &'a TaskSet,
}

impl<'a> Indexes<'a> {
    fn new(
        experiment: &'a Experiment,
        fragments: &'a RepoFragments,
        vectors: Vectors,
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

    /// Searches with queries, of which all vectors are there but what the names in their tasks' files tell.
    fn search_with(&self, queries: &Queries, vectors: QueryVectors<'_>) -> Retrieval {
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

/// Notes beside a retrieval artifact how long the search took.
fn keep_time(experiment: &Experiment, mode: Mode, repository: &str, time: NotedTime) -> Result<()> {
    let json = seal(serde_json::to_vec(&time).unwrap_or_default());
    write_file(&experiment.layout.search_time(mode, repository), &json)
}

/// Removes a time that is damaged or belongs to another search, and its retrieval, so that the search runs again; notes the reason.
fn forget_wrong_time(
    report: &mut StageReport,
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
) -> Result<()> {
    let retrieval = experiment.layout.retrieval(mode, repository);
    let Ok(header) = read_header(&retrieval) else { return Ok(()) }; // it is made again
    let noted = noted_time(experiment, mode, repository, &header)?;
    let Some(Err(reason)) = noted else { return Ok(()) };
    let path = experiment.layout.search_time(mode, repository);
    remove(&[&retrieval, &path])?;
    report.rebuilt.push(Rebuilt { path, reason: reason.into(), is_stale: false, follows: false });
    Ok(())
}

/// Times each query by itself, in an index that is there, from its text to what is found: what somebody waits for who asks for
/// one completion. Its dense vector is there too; the server's time for it is added where that was kept. By row and sample.
pub(super) fn time_each(
    experiment: &Experiment,
    mode: Mode,
) -> Result<FxHashMap<(u64, u64), QueryTime>> {
    let (tokenizer, mut times) = (P50k, FxHashMap::default());
    let search = &experiment.retrieval.search;
    let work =
        experiment.work("time the searches of", "repositories", experiment.repositories.len());
    let known = KnownNames::default();
    for repository in &experiment.repositories {
        let mut fragments = OpenFragments::open(experiment, repository)?;
        let header = fragments.header.clone();
        let mut vectors = UnreadVectors::open(experiment, repository, &header)?;
        let ReadSearch { mut queries, dense, .. } =
            ModeSearch::open(experiment, repository, mode, &header)?.read()?;
        let fragments = fragments.searched(experiment)?;
        let vectors = vectors.read(fragments.len())?;
        let names = experiment.reads_names().then(|| FileNames::read(fragments, &known));
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
        work.done(1);
    }
    Ok(times)
}

/// Returns the time of the search for a retrieval with this header, or the reason why the file is wrong; `None` without a known time.
fn noted_time(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    header: &Header,
) -> Result<Option<std::result::Result<SearchTime, &'static str>>> {
    let path = experiment.layout.search_time(mode, repository);
    let bytes = files::read_if_there(&path)
        .map_err(|e| Error::reading(&path, "read this time of a search", e))?;
    let Some(json) = bytes else { return Ok(None) };
    if check(&json) == Seal::Broken {
        return Ok(Some(Err("damaged: its checksum does not match")));
    }
    Ok(match serde_json::from_slice(&json) {
        // Whose it is, nothing tells.
        Ok(NotedTime { retrieval: None, .. }) => None,
        Ok(NotedTime { time, retrieval: Some(of) }) if of == digest_of(&header.identity) => {
            Some(Ok(time))
        }
        _ => Some(Err("it is of another search")),
    })
}

/// Digest of everything that determines an artifact's bytes.
fn digest_of(identity: &Identity) -> String {
    digest(&serde_json::to_vec(identity).unwrap_or_default())
}

/// Time that the searches of a mode took in all, as measured when they were made; `None` if that is not known.
///
/// # Errors
/// A file of times cannot be read.
pub fn search_time(experiment: &Experiment, mode: Mode) -> Result<Option<SearchTime>> {
    let mut sum = SearchTime { with_embedding: true, ..SearchTime::default() };
    for repository in &experiment.repositories {
        let path = experiment.layout.retrieval(mode, repository);
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
