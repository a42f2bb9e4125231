//! `vectorize`: windows → vectors.

use super::window::repo_windows;
use super::{Experiment, Report, check_digest, check_input, for_each_repository, require};
use crate::artifact::{Header, Identity, Payload};
use crate::error::Result;
use crate::query::{Mode, QueryWindows};
use crate::tokenize::P50k;
use crate::vector::TokenSets;

/// Vectors of the repositories' windows.
///
/// # Errors
/// Windows are missing, or an artifact cannot be written.
pub fn vectorize_repositories(experiment: &Experiment) -> Result<Report> {
    for_each_repository(experiment, |repository, report| {
        let (header, windows) = repo_windows(experiment, repository)?;
        let identity = identity(experiment, repository).input("windows", header.checksum);
        let path = experiment.layout.repo_vectors(repository);
        report.ensure(path, &identity, |_| {
            Ok(TokenSets::of_windows(&windows, &P50k::new()))
        })
    })
}

/// Vectors of the query windows of each mode that retrieves.
///
/// # Errors
/// Query windows are missing, or an artifact cannot be written.
pub fn vectorize_queries(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    for_each_repository(experiment, |repository, report| {
        for &mode in modes.iter().filter(|mode| mode.retrieves()) {
            let (header, queries) = query_windows(experiment, mode, repository, None)?;
            let identity = identity(experiment, repository)
                .parameter("mode", mode)
                .input("queries", header.checksum);
            let path = experiment.layout.query_vectors(mode, repository);
            report.ensure(path, &identity, |_| {
                Ok(TokenSets::of_queries(&queries, &P50k::new()))
            })?;
        }
        Ok(())
    })
}

fn identity(experiment: &Experiment, repository: &str) -> Identity {
    experiment
        .shaped(Identity::new(TokenSets::KIND))
        .parameter("repository", repository)
        .parameter("vectorizer", &experiment.layout.vectorizer)
        .parameter("tokenizer", "p50k_base")
}

/// Query windows as the `window` stage left them: of the tasks that are there now, and of these repository windows
/// where the caller works with both.
pub(super) fn query_windows(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    windows: Option<&Header>,
) -> Result<(Header, QueryWindows)> {
    let command = if mode == Mode::Prediction {
        "rg-rg".to_owned()
    } else {
        format!("window --mode {mode}")
    };
    let path = experiment.layout.query_windows(mode, repository);
    let (header, queries) = require::<QueryWindows>(&path, &command)?;
    let holes = experiment.tasks()?.hole_digest(repository);
    check_digest(&path, &header, "tasks", &holes, &command)?;
    if let Some(windows) = windows {
        check_input(&path, &header, "windows", windows, &command)?;
    }
    Ok((header, queries))
}
