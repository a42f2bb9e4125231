//! JSON records of windows, queries and retrieval results, with RepoCoder's field names.

use serde::Serialize;

use crate::repository::window::{Place, RepoWindows, WindowShape};
use crate::retrieve::query::{Mode, QueryWindow};
use crate::retrieve::{Hit, Hole, Retrieval};

/// A place of a window.
#[derive(Debug, Clone, Serialize)]
pub struct PlaceRecord<'a> {
    /// `[repository, folder, …, file]`
    pub fpath_tuple: Vec<&'a str>,
    /// Line around which the window was cut.
    pub line_no: u32,
    /// First line, 0-based.
    pub start_line_no: u32,
    /// Line after the last.
    pub end_line_no: u32,
    /// Number of lines of a whole window.
    pub window_size: usize,
    /// Folder name of the repository.
    pub repo: &'a str,
    /// Number of slices per window.
    pub slice_size: usize,
}

/// A repository window.
#[derive(Debug, Clone, Serialize)]
pub struct WindowRecord<'a> {
    /// Text, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'a str>,
    /// Places of the window.
    pub metadata: Vec<PlaceRecord<'a>>,
}

/// A query window.
#[derive(Debug, Clone, Serialize)]
pub struct QueryRecord<'a> {
    /// Text, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'a str>,
    /// Origin of the query.
    pub metadata: QueryMetadata<'a>,
}

/// Origin of a query window.
#[derive(Debug, Clone, Serialize)]
pub struct QueryMetadata<'a> {
    /// The task's id.
    pub task_id: &'a str,
    /// Row of the task in its file.
    pub row: u32,
    /// Number of the prediction it contains, in mode rg-rg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    /// `[repository, folder, …, file]` of the hole.
    pub fpath_tuple: Vec<&'a str>,
    /// Line of the hole.
    pub line_no: u32,
    /// First line of the window.
    pub start_line_no: u32,
    /// Line after the last.
    pub end_line_no: u32,
    /// First line shown in the prompt.
    pub context_start_lineno: u32,
    /// Number of lines of a whole window.
    pub window_size: usize,
    /// Number of slices per window.
    pub slice_size: usize,
    /// Folder name of the repository.
    pub repo: &'a str,
}

/// A window found for a query.
#[derive(Debug, Clone, Serialize)]
pub struct HitRecord<'a> {
    /// Text, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'a str>,
    /// Places of the window.
    pub metadata: Vec<PlaceRecord<'a>>,
    /// Jaccard similarity.
    pub sim_score: f64,
    /// Number of tokens in both.
    pub overlap: u32,
    /// Number of tokens in either.
    pub union: u32,
}

/// Results of one query, best first.
#[derive(Debug, Clone, Serialize)]
pub struct RetrievalRecord<'a> {
    /// The task's id.
    pub task_id: &'a str,
    /// Row of the task in its file.
    pub row: u32,
    /// The query.
    pub query_window: QueryRecord<'a>,
    /// Windows found.
    pub top_k_context: Vec<HitRecord<'a>>,
}

/// Record of a place.
pub fn place<'a>(windows: &'a RepoWindows, place: Place) -> PlaceRecord<'a> {
    PlaceRecord {
        fpath_tuple: windows.files[place.file as usize].path.split('/').collect(),
        line_no: place.line_no,
        start_line_no: place.start,
        end_line_no: place.end,
        window_size: windows.shape.window_size,
        repo: &windows.repository,
        slice_size: windows.shape.slice_size,
    }
}

/// Record of a window; with its text only if `context` is set.
pub fn window(windows: &RepoWindows, index: usize, context: bool) -> WindowRecord<'_> {
    WindowRecord {
        context: context.then(|| windows.text(index)),
        metadata: windows.places(index).map(|p| place(windows, p)).collect(),
    }
}

/// Record of a query window; with its text only if `context` is set.
pub fn query<'a>(
    query: &'a QueryWindow,
    mode: Mode,
    shape: WindowShape,
    repo: &'a str,
    context: bool,
) -> QueryRecord<'a> {
    QueryRecord {
        context: context.then_some(query.text.as_str()),
        metadata: QueryMetadata {
            task_id: &query.task_id,
            row: query.row,
            sample: (mode == Mode::Prediction).then_some(query.sample),
            fpath_tuple: query.path.split('/').collect(),
            line_no: query.line_no,
            start_line_no: query.start,
            end_line_no: query.end,
            context_start_lineno: query.context_start,
            window_size: shape.window_size,
            slice_size: shape.slice_size,
            repo,
        },
    }
}

/// Record of a hit, with the places that the prompt names.
pub fn hit<'a>(
    windows: &'a RepoWindows,
    hit: &Hit,
    hole: &Hole<'_>,
    context: bool,
) -> HitRecord<'a> {
    let places = hole.named_places(hit.window);
    HitRecord {
        context: context.then(|| windows.text(hit.window as usize)),
        metadata: places.into_iter().map(|p| place(windows, p)).collect(),
        sim_score: hit.score(),
        overlap: hit.overlap,
        union: hit.union,
    }
}

/// Record of one query's results.
pub fn retrieval<'a>(
    retrieval: &'a Retrieval,
    index: usize,
    windows: &'a RepoWindows,
    query_window: &'a QueryWindow,
    context: bool,
) -> RetrievalRecord<'a> {
    let found = &retrieval.found[index];
    let hole = Hole::of_query(query_window, windows, retrieval.guard);
    let (repo, shape) = (&windows.repository, windows.shape);
    RetrievalRecord {
        task_id: &query_window.task_id,
        row: found.row,
        query_window: query(query_window, retrieval.mode, shape, repo, context),
        top_k_context: found
            .hits
            .iter()
            .map(|h| hit(windows, h, &hole, context))
            .collect(),
    }
}
