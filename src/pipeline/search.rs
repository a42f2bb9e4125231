//! `search`: query vectors × repository vectors → retrieval results.

use std::path::Path;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::vectorize::{change, fresh_vectors, query_windows};
use super::windows::Opened;
use super::{Experiment, Report, Unread, check_input, chunks, for_each_repository};
use crate::error::Result;
use crate::repository::window::{Change, RepoWindows};
use crate::retrieve::query::{Mode, QueryWindows};
use crate::retrieve::vector::TokenSets;
use crate::retrieve::{Index, Retrieval};
use crate::store::artifact::{self, Identity, Payload, write_file};
use crate::text::tokenize::P50k;

/// How long a search took: what is kept of it depends on the clock, and so lies in a file of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchTime {
    /// Number of queries.
    pub queries: usize,
    /// Seconds for building the index and searching with all of them.
    pub seconds: f64,
}

/// Searches each repository in each mode.
///
/// # Errors
/// Windows or vectors are missing or do not belong together, or an artifact cannot be written.
pub fn search(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    if experiment.chunks.is_some() {
        return chunks::search(experiment, modes);
    }
    experiment.tasks()?; // or each repository would miss them
    let modes: Vec<Mode> = modes
        .iter()
        .copied()
        .filter(|mode| mode.retrieves())
        .collect();
    for_each_repository(experiment, |repository, report| {
        let mut haystack = None;
        modes.iter().try_for_each(|mode| {
            let haystack = match &mut haystack {
                Some(haystack) => haystack,
                none => none.insert(Haystack::open(experiment, *mode, repository)?),
            };
            search_one(experiment, *mode, haystack, report)
        })
    })
}

fn search_one(
    experiment: &Experiment,
    mode: Mode,
    haystack: &mut Haystack<'_>,
    report: &mut Report,
) -> Result<()> {
    let mut needles = Needles::open(experiment, mode, haystack)?;
    let windows = &*haystack.opened.header.checksum;
    let identity = needles.identity(experiment, haystack, windows, None)?;
    let path = experiment.layout.retrieval(mode, haystack.repository);
    let mut took = None;
    report.ensure(path.clone(), &identity, |_| {
        let (retrieval, time) = needles.search(experiment, haystack, &path)?;
        took = time.map(|time| (retrieval.found.len(), time));
        Ok(retrieval)
    })?;
    // Results that were brought up to date keep the time of the search that they are based on.
    took.map_or(Ok(()), |(queries, time)| {
        keep_time(experiment, mode, haystack.repository, queries, time)
    })
}

/// What is searched: the windows and vectors of a repository, shared by the modes, each part read when it is needed.
struct Haystack<'a> {
    repository: &'a str,
    opened: Opened,
    unread: Unread<TokenSets>,
    vectors: Option<TokenSets>,
    /// The index, and how long it took to build.
    index: Option<(Index, Duration)>,
}

impl<'a> Haystack<'a> {
    fn open(experiment: &Experiment, mode: Mode, repository: &'a str) -> Result<Self> {
        let opened = Opened::new(experiment, repository)?;
        let command = format!("vectorize --mode {mode}");
        let path = experiment.layout.repo_vectors(repository);
        let unread = Unread::open(&path, &command)?;
        check_input(&path, &unread.header, "windows", &opened.header, &command)?;
        Ok(Self {
            repository,
            opened,
            unread,
            vectors: None,
            index: None,
        })
    }

    fn windows(&self) -> &RepoWindows {
        self.opened.windows()
    }

    fn vectors(&mut self) -> Result<(&TokenSets, &RepoWindows)> {
        let count = self.windows().len();
        let vectors = match self.vectors.take() {
            Some(vectors) => vectors,
            None => self.unread.read(Some(count))?,
        };
        Ok((self.vectors.insert(vectors), self.opened.windows()))
    }

    fn index(&mut self) -> Result<(&Index, &RepoWindows, Duration)> {
        let built = match self.index.take() {
            Some(built) => built,
            None => {
                let (vectors, _) = self.vectors()?;
                let begin = Instant::now();
                (Index::new(vectors), begin.elapsed())
            }
        };
        let (index, time) = self.index.insert(built);
        Ok((index, self.opened.windows(), *time))
    }
}

/// What is searched for: the queries of one mode.
struct Needles {
    mode: Mode,
    queries: Unread<QueryWindows>,
    vectors: Unread<TokenSets>,
}

impl Needles {
    /// Opens them, and checks that they belong to what is searched.
    fn open(experiment: &Experiment, mode: Mode, haystack: &Haystack<'_>) -> Result<Self> {
        let (repository, windows) = (haystack.repository, &haystack.opened.header);
        let queries = query_windows(experiment, mode, repository, Some(windows))?;
        let command = format!("vectorize --mode {mode}");
        let path = experiment.layout.query_vectors(mode, repository);
        let vectors = Unread::open(&path, &command)?;
        check_input(&path, &vectors.header, "queries", &queries.header, &command)?;
        Ok(Self {
            mode,
            queries,
            vectors,
        })
    }

    /// The identity of the results for these windows and their vectors; for those that are there now by default.
    fn identity(
        &self,
        experiment: &Experiment,
        haystack: &Haystack<'_>,
        windows: &str,
        vectors: Option<&str>,
    ) -> Result<Identity> {
        let (layout, tasks) = (&experiment.layout, experiment.tasks()?);
        Ok(experiment
            .shaped(Identity::new(Retrieval::KIND))
            .parameter("repository", haystack.repository)
            .parameter("benchmark", &layout.benchmark)
            .parameter("mode", self.mode)
            .parameter("ranker", "jaccard")
            .parameter("top-k", layout.top_k)
            .parameter("hole-guard", experiment.guard)
            .input("tasks", tasks.hole_digest(haystack.repository))
            .input("windows", windows)
            .input(
                "vectors",
                vectors.unwrap_or(&haystack.unread.header.checksum),
            )
            .input("queries", &*self.queries.header.checksum)
            .input("query vectors", &*self.vectors.header.checksum))
    }

    /// The results, and how long the search took where it was one from scratch.
    fn search(
        &mut self,
        experiment: &Experiment,
        haystack: &mut Haystack<'_>,
        path: &Path,
    ) -> Result<(Retrieval, Option<Duration>)> {
        let queries = self.queries.read(None)?;
        let vectors = self.vectors.read(Some(queries.windows.len()))?;
        let both = (&queries, &vectors);
        if let Some((before, change, fresh)) = self.before(experiment, haystack, path)? {
            let (mut retrieval, lost) = before.changed(&change, haystack.windows(), &fresh, both);
            if !lost.is_empty() {
                let (all, windows) = haystack.vectors()?;
                retrieval.search_again(&lost, windows, all, both);
            }
            return Ok((retrieval, None));
        }
        let (index, windows, built) = haystack.index()?;
        let begin = Instant::now();
        let parameters = (experiment.layout.top_k, experiment.guard);
        let retrieval = Retrieval::search_with(index, windows, &queries, &vectors, parameters);
        Ok((retrieval, Some(built + begin.elapsed())))
    }

    /// The results for the windows before, if they are of the same queries, what of those windows is still there, and the
    /// vectors of those that are new.
    fn before(
        &self,
        experiment: &Experiment,
        haystack: &Haystack<'_>,
        path: &Path,
    ) -> Result<Option<(Retrieval, Change, TokenSets)>> {
        let (repository, now) = (haystack.repository, &haystack.opened.header);
        let Some(change) = change(experiment, repository, now) else {
            return Ok(None);
        };
        let Ok((header, before)) = artifact::read::<Retrieval>(path) else {
            return Ok(None);
        };
        let vectors = header.identity.inputs.get("vectors").map(String::as_str);
        let wanted = self.identity(experiment, haystack, &change.from, vectors)?;
        let windows = haystack.windows().len();
        let fits = header.identity == wanted
            && header.tool == env!("CARGO_PKG_VERSION")
            && change.fits(before.windows as usize, windows);
        let new = change.new_windows(windows).count();
        let fresh = fresh_vectors(experiment, repository, &haystack.unread.header, new);
        Ok(fresh.filter(|_| fits).map(|fresh| (before, change, fresh)))
    }
}

pub(super) fn keep_time(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    queries: usize,
    time: Duration,
) -> Result<()> {
    let time = SearchTime {
        queries,
        seconds: time.as_secs_f64(),
    };
    let json = serde_json::to_vec(&time).unwrap_or_default();
    write_file(&experiment.layout.search_time(mode, repository), &json)
}

/// How long each query takes by itself, in an index that is there, from its text to what is found: what somebody waits for
/// who asks for one completion. By row and sample.
pub(super) fn time_each(
    experiment: &Experiment,
    mode: Mode,
) -> Result<FxHashMap<(u64, u64), Duration>> {
    if experiment.chunks.is_some() {
        return chunks::time_each(experiment, mode);
    }
    let (tokenizer, mut times) = (P50k::new(), FxHashMap::default());
    let parameters = (experiment.layout.top_k, experiment.guard);
    for repository in &experiment.repositories {
        let mut haystack = Haystack::open(experiment, mode, repository)?;
        let mut needles = Needles::open(experiment, mode, &haystack)?;
        let mut queries = needles.queries.read(None)?;
        let (index, windows, _) = haystack.index()?;
        for query in std::mem::take(&mut queries.windows) {
            let key = (query.row.into(), query.sample.into());
            queries.windows = vec![query];
            let begin = Instant::now();
            let vectors = TokenSets::of_queries(&queries, &tokenizer);
            let found = Retrieval::search_with(index, windows, &queries, &vectors, parameters);
            times.insert(key, begin.elapsed());
            std::hint::black_box(found);
        }
    }
    Ok(times)
}

/// What the searches of a mode took in all, as measured when they were made; `None` where that is not known.
pub fn search_time(experiment: &Experiment, mode: Mode) -> Option<SearchTime> {
    let of = |repository: &String| -> Option<SearchTime> {
        let bytes = std::fs::read(experiment.layout.search_time(mode, repository)).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    experiment
        .repositories
        .iter()
        .map(of)
        .try_fold(SearchTime::default(), |sum, time| {
            let time = time?;
            Some(SearchTime {
                queries: sum.queries + time.queries,
                seconds: sum.seconds + time.seconds,
            })
        })
}
