//! Chunks, queries and rankings as JSON records, for `inspect`.

use serde_json::{Value, json};

use super::{Queries, Query, Ranked};
use crate::repository::chunk::RepoChunks;

impl RepoChunks {
    /// `{"context"?, "metadata": [{"fpath_tuple", "chunk", "start_line_no", "end_line_no", …}]}`: a window's fields, with
    /// lines counted from 0 among the file's non-blank ones.
    pub fn record(&self, index: usize, with_text: bool) -> Value {
        let chunk = self.chunk(index);
        let path: Vec<&str> = self.files[chunk.file as usize].path.split('/').collect();
        let place = json!({
            "fpath_tuple": path,
            "chunk": chunk.number,
            "start_line_no": chunk.start,
            "end_line_no": chunk.end,
            "chunk_size": self.shape.size,
            "chunk_stride": self.shape.stride,
            "repo": self.repository,
        });
        let mut record = json!({ "metadata": [place] });
        if with_text {
            record["context"] = self.text(index).into();
        }
        record
    }
}

impl Queries {
    /// `{"context"?, "metadata": {"task_id", "row", "sample", "fpath_tuple", "query", "hole", "repo"}}`.
    pub fn record(&self, query: &Query, with_text: bool) -> Value {
        let path: Vec<&str> = query.path.split('/').collect();
        let mut record = json!({ "metadata": {
            "task_id": query.task_id,
            "row": query.row,
            "sample": query.sample,
            "fpath_tuple": path,
            "query": self.form.name(),
            "hole": query.hole,
            "repo": self.repository,
        } });
        if with_text {
            record["context"] = query.text().into();
        }
        record
    }
}

impl Ranked {
    /// `{"task_id", "row", "candidates", "query_window": {…}, "top_k_context": [{"metadata", "sim_score"}]}`, best first.
    pub fn record(
        &self,
        queries: &Queries,
        query: &Query,
        chunks: &RepoChunks,
        with_text: bool,
    ) -> Value {
        let hits = self.hits.iter().map(|hit| {
            let mut record = chunks.record(hit.chunk as usize, with_text);
            record["sim_score"] = hit.score.into();
            record
        });
        json!({
            "task_id": query.task_id,
            "row": self.row,
            "candidates": self.seen,
            "query_window": queries.record(query, with_text),
            "top_k_context": hits.collect::<Vec<_>>(),
        })
    }
}
