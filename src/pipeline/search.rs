//! `search`: query vectors × repository vectors → retrieval results.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::vectorize::query_windows;
use super::window::repo_windows;
use super::{Experiment, Report, check_input, for_each_repository, require};
use crate::artifact::{Identity, Payload, write_file};
use crate::error::Result;
use crate::query::Mode;
use crate::retrieve::Retrieval;
use crate::vector::TokenSets;

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
    let (layout, tasks) = (&experiment.layout, experiment.tasks()?);
    let (windows_header, windows) = repo_windows(experiment, repository)?;
    let (queries_header, queries) =
        query_windows(experiment, mode, repository, Some(&windows_header))?;
    let command = format!("vectorize --mode {mode}");
    let (path, query_path) = (
        layout.repo_vectors(repository),
        layout.query_vectors(mode, repository),
    );
    let (vectors_header, vectors) = require::<TokenSets>(&path, &command)?;
    let (query_vectors_header, query_vectors) = require::<TokenSets>(&query_path, &command)?;
    check_input(&path, &vectors_header, "windows", &windows_header, &command)?;
    check_input(
        &query_path,
        &query_vectors_header,
        "queries",
        &queries_header,
        &command,
    )?;
    let identity = experiment
        .shaped(Identity::new(Retrieval::KIND))
        .parameter("repository", repository)
        .parameter("benchmark", &layout.benchmark)
        .parameter("mode", mode)
        .parameter("ranker", "jaccard")
        .parameter("top-k", layout.top_k)
        .parameter("hole-guard", experiment.guard)
        .input("tasks", tasks.hole_digest(repository))
        .input("windows", windows_header.checksum)
        .input("vectors", vectors_header.checksum)
        .input("queries", queries_header.checksum)
        .input("query vectors", query_vectors_header.checksum);
    let mut took = None;
    report.ensure(layout.retrieval(mode, repository), &identity, |_| {
        let parameters = (layout.top_k, experiment.guard);
        let (retrieval, time) =
            Retrieval::search(&windows, &vectors, &queries, &query_vectors, parameters);
        took = Some(time);
        Ok(retrieval)
    })?;
    took.map_or(Ok(()), |time| {
        keep_time(experiment, mode, repository, queries.windows.len(), time)
    })
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
