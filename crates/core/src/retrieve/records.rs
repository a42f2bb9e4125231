//! Artifacts as the JSON records that users in this field exchange, in RepoCoder's field names.
//!
//! Chunks have the fields of windows, except that `chunk` (the number in the file) replaces `line_no`, and that they have their
//! own sizes. Their lines are counted from 0 among the file's non-blank lines.

use serde_json::{Map, Value, json};

use crate::repository::fragment::{FragmentPlace, RepoFragments};
use crate::retrieve::{
    Hit, HoleGuard, HoleView, Mode, Queries, Query, QueryForm, RankedFragments, Score,
};

/// Returns `{"fpath_tuple", "line_no" | "chunk", "start_line_no", "end_line_no", "window_size", "repo", "slice_size"}`.
pub fn place(fragments: &RepoFragments, place: FragmentPlace) -> Value {
    let [size, overlap] = fragments.cut.fields();
    let mut record = Map::new();
    record.insert("fpath_tuple".into(), tuple(&fragments.files[place.file as usize].path));
    record.insert(fragments.cut.number_field().into(), place.number.into());
    record.insert("start_line_no".into(), place.start.into());
    record.insert("end_line_no".into(), place.end.into());
    record.insert(size.0.into(), size.1.into());
    record.insert("repo".into(), fragments.repository.as_str().into());
    record.insert(overlap.0.into(), overlap.1.into());
    record.into()
}

/// Returns `{"context"?, "metadata": [place, …]}`; the text is included only if `context` is true.
pub fn fragment(fragments: &RepoFragments, index: usize, context: bool) -> Value {
    let places = fragments.places(index).map(|p| place(fragments, p));
    let text = context.then(|| fragments.text(index));
    with_context(text, places.collect())
}

/// Returns `{"context"?, "metadata": {"task_id", "row", …}}`; the text is included only if `context` is true.
pub fn query(queries: &Queries, query: &Query, context: bool) -> Value {
    let mut metadata = Map::new();
    metadata.insert("task_id".into(), query.task_id.as_str().into());
    metadata.insert("row".into(), query.row.into());
    if queries.form != QueryForm::Window || queries.mode == Mode::Prediction {
        metadata.insert("sample".into(), query.sample.into());
    }
    metadata.insert("fpath_tuple".into(), tuple(&query.path));
    if let Some(shape) = queries.shape {
        metadata.insert("line_no".into(), query.line_no.into());
        metadata.insert("start_line_no".into(), query.start.into());
        metadata.insert("end_line_no".into(), query.end.into());
        metadata.insert("context_start_lineno".into(), query.context_start.into());
        metadata.insert("window_size".into(), shape.window_size.into());
        metadata.insert("slice_size".into(), shape.slice_size.into());
    } else {
        metadata.insert("query".into(), queries.form.name().into());
        metadata.insert("hole".into(), query.hole.into());
    }
    metadata.insert("repo".into(), queries.repository.as_str().into());
    with_context(context.then_some(&query.text), metadata.into())
}

/// Returns a fragment's record with `sim_score` and, if known, `overlap` and `union`. The places are the ones that prompts
/// name.
pub fn hit(fragments: &RepoFragments, hit: &Hit, hole: &HoleView<'_>, context: bool) -> Value {
    let places = hole.named_places(hit.fragment).into_iter();
    let places = places.map(|p| place(fragments, p)).collect();
    let text = context.then(|| fragments.text(hit.fragment as usize));
    let mut record = with_context(text, places);
    record["sim_score"] = hit.score.value().into();
    if let Score::Jaccard { overlap, union } = hit.score {
        record["overlap"] = overlap.into();
        record["union"] = union.into();
    }
    record
}

/// Converter of one repository's results to records.
#[derive(Debug, Clone, Copy)]
pub struct RetrievalRecords<'a> {
    /// Fragments that were searched.
    pub fragments: &'a RepoFragments,
    /// Queries that searched them.
    pub queries: &'a Queries,
    /// Guard that kept the hole out.
    pub guard: HoleGuard,
    /// Whether records include texts.
    pub context: bool,
}

impl RetrievalRecords<'_> {
    /// Returns `{"task_id", "row", "candidates"?, "query_window": {…}, "top_k_context": [hit, …]}`, best first.
    pub fn of(&self, found: &RankedFragments, of_query: &Query) -> Value {
        let hole = HoleView::of_query(of_query, self.fragments, self.guard);
        let hits = found.hits.iter();
        let hits = hits.map(|h| hit(self.fragments, h, &hole, self.context));
        let mut record = json!({ "task_id": of_query.task_id, "row": found.row });
        if let Some(seen) = found.seen {
            record["candidates"] = seen.into();
        }
        record["query_window"] = query(self.queries, of_query, self.context);
        record["top_k_context"] = hits.collect();
        record
    }
}

fn with_context(text: Option<impl AsRef<str>>, metadata: Value) -> Value {
    match text {
        Some(text) => json!({ "context": text.as_ref(), "metadata": metadata }),
        None => json!({ "metadata": metadata }),
    }
}

/// Returns `[repository, folder, …, file]`.
fn tuple(path: &str) -> Value {
    path.split('/').collect()
}
