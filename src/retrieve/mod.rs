//! Retrieval: for each query the k most similar windows of its repository, its own hole kept out.

#[forbid(unsafe_code)]
mod change;
#[forbid(unsafe_code)]
pub mod chunks;
#[forbid(unsafe_code)]
pub mod dense;
#[forbid(unsafe_code)]
mod hole;
mod index;
#[forbid(unsafe_code)]
pub mod query;
#[forbid(unsafe_code)]
pub mod rank;
#[forbid(unsafe_code)]
pub mod vector;

pub use hole::{Hole, HoleGuard};
pub use index::{Hit, Index, Level, Scratch};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::repository::window::RepoWindows;
use crate::retrieve::query::{Mode, QueryWindow, QueryWindows};
use crate::retrieve::vector::TokenSets;
use crate::store::artifact::{Column, Columns, Payload};

/// The windows found for one query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The task's row.
    pub row: u32,
    /// Which of the task's predictions was searched with; 0 in the other modes.
    pub sample: u32,
    /// Best first.
    pub hits: Vec<Hit>,
}

/// The retrieval results of one repository in one mode, in the order of its query windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retrieval {
    /// The repository's folder name.
    pub repository: String,
    /// Where the queries came from.
    pub mode: Mode,
    /// How many windows were kept a query, at most.
    pub top_k: u32,
    /// How the hole was kept out.
    pub guard: HoleGuard,
    /// Number of windows searched: every hit's window is below it.
    pub windows: u32,
    /// A result a query.
    pub found: Vec<Found>,
}

impl Retrieval {
    /// Searches a repository's windows with every query.
    ///
    /// Windows that lie in the hole or behind the prompt's start are left out as [`Hole`] says; the ranking is
    /// by Jaccard similarity, then the later window first: a total order, so nothing depends on scheduling.
    pub fn search(
        windows: &RepoWindows,
        vectors: &TokenSets,
        queries: &QueryWindows,
        query_vectors: &TokenSets,
        (top_k, guard): (usize, HoleGuard),
    ) -> Self {
        let index = Index::new(vectors);
        Self::search_with(&index, windows, queries, query_vectors, (top_k, guard))
    }

    /// The same with an index that is there.
    pub fn search_with(
        index: &Index,
        windows: &RepoWindows,
        queries: &QueryWindows,
        query_vectors: &TokenSets,
        (top_k, guard): (usize, HoleGuard),
    ) -> Self {
        let hole = |query| Hole::of_query(query, windows, guard);
        let holes: Vec<Hole<'_>> = queries.windows.iter().map(hole).collect();
        let allowed = |query: usize, window| holes[query].allows(window);
        let hits = index.search_all(query_vectors, top_k, allowed);
        let found = |(query, hits): (&QueryWindow, _)| Found {
            row: query.row,
            sample: query.sample,
            hits,
        };
        let found = queries.windows.iter().zip(hits).map(found).collect();
        Self {
            repository: windows.repository.clone(),
            mode: queries.mode,
            top_k: top_k as u32,
            guard,
            windows: windows.len() as u32,
            found,
        }
    }
}

impl Payload for Retrieval {
    const KIND: &'static str = "retrieval results";

    fn records(&self) -> usize {
        self.found.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        Ok(vec![Column::records("found", self)?])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        columns.records("found")
    }

    fn check(&self) -> Result<(), String> {
        let bad = self
            .found
            .iter()
            .flat_map(|found| &found.hits)
            .any(|hit| hit.window >= self.windows);
        if bad {
            Err("a hit names a window that is not there".into())
        } else {
            Ok(())
        }
    }
}
