//! `search`: query vectors × repository vectors → retrieval results.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::vectorize::{change, query_windows};
use super::windows::Opened;
use super::{Experiment, Report, check_input, for_each_repository, made_again, require_open};
use crate::artifact::{self, Columns, Header, Identity, Payload, write_file};
use crate::error::Result;
use crate::query::{Mode, QueryWindows};
use crate::retrieve::Retrieval;
use crate::vector::TokenSets;
use crate::window::Change;

/// How long a search took: the one thing kept that depends on the clock, in a file of its own.
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
    experiment.tasks()?; // or each repository would miss them
    let modes: Vec<Mode> = modes
        .iter()
        .copied()
        .filter(|mode| mode.retrieves())
        .collect();
    for_each_repository(experiment, |repository, report| {
        modes
            .iter()
            .try_for_each(|mode| search_one(experiment, *mode, repository, report))
    })
}

fn search_one(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    report: &mut Report,
) -> Result<()> {
    let mut sources = Sources::open(experiment, mode, repository)?;
    let identity = sources.identity(experiment, mode, &sources.opened.header.checksum, None)?;
    let path = experiment.layout.retrieval(mode, repository);
    let mut took = None;
    report.ensure(path.clone(), &identity, |_| {
        let (retrieval, time) = sources.search(experiment, mode, &path)?;
        took = Some((retrieval.found.len(), time));
        Ok(retrieval)
    })?;
    took.map_or(Ok(()), |(queries, time)| {
        keep_time(experiment, mode, repository, queries, time)
    })
}

/// What a search reads.
struct Sources<'a> {
    repository: &'a str,
    command: String,
    opened: Opened,
    queries: (Header, Columns),
    vectors: (Header, Columns),
    query_vectors: (Header, Columns),
}

impl<'a> Sources<'a> {
    /// Opens them, and checks that they belong together.
    fn open(experiment: &Experiment, mode: Mode, repository: &'a str) -> Result<Self> {
        let layout = &experiment.layout;
        let opened = Opened::new(experiment, repository)?;
        let windows = &opened.header;
        let queries = query_windows(experiment, mode, repository, Some(windows))?;
        let command = format!("vectorize --mode {mode}");
        let (path, query_path) = (
            layout.repo_vectors(repository),
            layout.query_vectors(mode, repository),
        );
        let vectors = require_open::<TokenSets>(&path, &command)?;
        let query_vectors = require_open::<TokenSets>(&query_path, &command)?;
        check_input(&path, &vectors.0, "windows", windows, &command)?;
        check_input(
            &query_path,
            &query_vectors.0,
            "queries",
            &queries.0,
            &command,
        )?;
        Ok(Self {
            repository,
            command,
            opened,
            queries,
            vectors,
            query_vectors,
        })
    }

    /// The identity of the results for these windows; for others than are there now, whatever their vectors were.
    fn identity(
        &self,
        experiment: &Experiment,
        mode: Mode,
        windows: &str,
        vectors: Option<&str>,
    ) -> Result<Identity> {
        let (layout, tasks) = (&experiment.layout, experiment.tasks()?);
        Ok(experiment
            .shaped(Identity::new(Retrieval::KIND))
            .parameter("repository", self.repository)
            .parameter("benchmark", &layout.benchmark)
            .parameter("mode", mode)
            .parameter("ranker", "jaccard")
            .parameter("top-k", layout.top_k)
            .parameter("hole-guard", experiment.guard)
            .input("tasks", tasks.hole_digest(self.repository))
            .input("windows", windows)
            .input("vectors", vectors.unwrap_or(&self.vectors.0.checksum))
            .input("queries", &*self.queries.0.checksum)
            .input("query vectors", &*self.query_vectors.0.checksum))
    }

    fn search(
        &mut self,
        experiment: &Experiment,
        mode: Mode,
        path: &Path,
    ) -> Result<(Retrieval, Duration)> {
        let again = |error| made_again(error, &self.command);
        let queries = QueryWindows::from_columns(&mut self.queries.1)?;
        let vectors = TokenSets::from_columns(&mut self.vectors.1).map_err(again)?;
        let query_vectors = TokenSets::from_columns(&mut self.query_vectors.1).map_err(again)?;
        let windows = self.opened.windows();
        let begin = Instant::now();
        let parameters = (experiment.layout.top_k, experiment.guard);
        let both = (&queries, &query_vectors);
        let retrieval = match self.before(experiment, mode, path)? {
            Some((before, change)) => before.changed(&change, windows, &vectors, both),
            None => Retrieval::search(windows, &vectors, &queries, &query_vectors, parameters).0,
        };
        Ok((retrieval, begin.elapsed()))
    }

    /// The results for the windows before, if they are of the same queries, and what of those windows is still there.
    fn before(
        &self,
        experiment: &Experiment,
        mode: Mode,
        path: &Path,
    ) -> Result<Option<(Retrieval, Change)>> {
        let now = &self.opened.header;
        let Some(change) = change(experiment, self.repository, now) else {
            return Ok(None);
        };
        let Ok((header, before)) = artifact::read::<Retrieval>(path) else {
            return Ok(None);
        };
        let vectors = header.identity.inputs.get("vectors").map(String::as_str);
        let wanted = self.identity(experiment, mode, &change.from, vectors)?;
        let windows = self.opened.windows().len();
        let fits = header.identity == wanted
            && header.tool == env!("CARGO_PKG_VERSION")
            && change.fits(before.windows as usize, windows);
        Ok(fits.then_some((before, change)))
    }
}

fn keep_time(
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
