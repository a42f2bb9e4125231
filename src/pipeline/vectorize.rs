//! `vectorize`: windows → vectors.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::window::CHANGE;
use super::windows::Opened;
use super::{Experiment, Report, Unread, check_digest, check_input, chunks, for_each_repository};
use crate::error::Result;
use crate::repository::window::Change;
use crate::retrieve::query::{Mode, QueryWindows};
use crate::retrieve::vector::TokenSets;
use crate::store::artifact::{self, Header, Identity, Payload, read_note, write_note};
use crate::text::tokenize::P50k;

/// Vectors of the repositories' windows.
///
/// # Errors
/// Windows are missing, or an artifact cannot be written.
pub fn vectorize_repositories(experiment: &Experiment) -> Result<Report> {
    if experiment.chunks.is_some() {
        return chunks::vectorize_repositories(experiment);
    }
    for_each_repository(experiment, |repository, report| {
        let mut opened = Opened::new(experiment, repository)?;
        let of = |checksum: &str| identity(experiment, repository).input("windows", checksum);
        let identity = of(&opened.header.checksum);
        let path = experiment.layout.repo_vectors(repository);
        let mut fresh = None;
        let state = artifact::state::<TokenSets>(&path, &identity);
        let header = report.settle(path.clone(), state, |_, path| {
            let change = change(experiment, repository, &opened.header);
            let before = change.and_then(|change| {
                let vectors = before(path, &of(&change.from), &change, opened.windows().len())?;
                Some((vectors, change))
            });
            if let Some((vectors, change)) = before {
                let new = fresh.insert(new_vectors(&change, &mut opened)?);
                if let Ok(changed) = vectors.changed(&change, new) {
                    let columns = changed.columns();
                    return artifact::write_columns(path, &identity, changed.len(), &columns);
                }
            }
            fresh = None;
            let vectors = TokenSets::of_windows(opened.read_all()?, &P50k::new());
            artifact::write(path, &identity, &vectors)
        })?;
        if let Some(fresh) = fresh {
            let sets = fresh.iter().map(|set| set.iter().collect()).collect();
            let vectors = header.checksum;
            let note = experiment.layout.note(&path, FRESH);
            write_note(&note, &Fresh { vectors, sets });
        }
        Ok(())
    })
}

/// The note about the vectors that were made last, where others were there already.
const FRESH: &str = "fresh";

#[derive(Debug, Serialize, Deserialize)]
struct Fresh {
    /// Checksum of all vectors.
    vectors: String,
    /// Those of the new windows, in their order.
    sets: Vec<Vec<u32>>,
}

/// The vectors of the windows that are new since the change before these vectors, if that was noted.
pub(super) fn fresh_vectors(
    experiment: &Experiment,
    repository: &str,
    vectors: &Header,
    count: usize,
) -> Option<TokenSets> {
    let path = experiment.layout.repo_vectors(repository);
    let fresh: Fresh = read_note(&experiment.layout.note(&path, FRESH))?;
    let mut sets = TokenSets::default();
    fresh
        .sets
        .iter()
        .for_each(|set| sets.push(set.iter().copied()));
    (fresh.vectors == vectors.checksum && sets.len() == count).then_some(sets)
}

/// What the windows that are there now kept of those before, if that was noted.
pub(super) fn change(experiment: &Experiment, repository: &str, now: &Header) -> Option<Change> {
    let layout = &experiment.layout;
    let change: Change = read_note(&layout.note(&layout.repo_windows(repository), CHANGE))?;
    (change.to == now.checksum).then_some(change)
}

/// The vectors of the windows before, if that is what the artifact still holds.
fn before(path: &Path, identity: &Identity, change: &Change, windows: usize) -> Option<TokenSets> {
    let (header, vectors) = artifact::read::<TokenSets>(path).ok()?;
    let tool = env!("CARGO_PKG_VERSION");
    (header.identity == *identity && header.tool == tool && change.fits(vectors.len(), windows))
        .then_some(vectors)
}

/// The vectors of the new windows.
fn new_vectors(change: &Change, opened: &mut Opened) -> Result<TokenSets> {
    let count = opened.windows().len();
    let new: Vec<u32> = change.new_windows(count).collect();
    let file = |window: &u32| opened.windows().first_place(*window as usize).file;
    let files = new.iter().map(file).collect();
    let windows = opened.read_files(files)?;
    Ok(TokenSets::of_these(windows, &new, &P50k::new()))
}

/// Vectors of the query windows of each mode that retrieves.
///
/// # Errors
/// Query windows are missing, or an artifact cannot be written.
pub fn vectorize_queries(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    if experiment.chunks.is_some() {
        return chunks::vectorize_queries(experiment, modes);
    }
    for_each_repository(experiment, |repository, report| {
        for &mode in modes.iter().filter(|mode| mode.retrieves()) {
            let mut queries = query_windows(experiment, mode, repository, None)?;
            let identity = identity(experiment, repository)
                .parameter("mode", mode)
                .input("queries", &*queries.header.checksum);
            let path = experiment.layout.query_vectors(mode, repository);
            report.ensure(path, &identity, |_| {
                Ok(TokenSets::of_queries(&queries.read(None)?, &P50k::new()))
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
) -> Result<Unread<QueryWindows>> {
    let command = if mode == Mode::Prediction {
        "rg-rg".to_owned()
    } else {
        format!("window --mode {mode}")
    };
    let path = experiment.layout.query_windows(mode, repository);
    let queries = Unread::open(&path, &command)?;
    let holes = experiment.tasks()?.hole_digest(repository);
    check_digest(&path, &queries.header, "tasks", &holes, &command)?;
    if let Some(windows) = windows {
        check_input(&path, &queries.header, "windows", windows, &command)?;
    }
    Ok(queries)
}
