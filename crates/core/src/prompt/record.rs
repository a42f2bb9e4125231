//! The JSON line of a prompt, in RepoCoder's fields.
//!
//! The line is written by hand, because it consists almost entirely of a few long strings, which `serde_json` processes byte by
//! byte. The tests compare it with the same record written by `serde` and [`crate::retrieve::records`].

use repoformer_store::jsonl::Object;

use super::block::Block;
use super::json;
use crate::repository::fragment::{FragmentPlace, RepoFragments};
use crate::retrieve::{Hit, HoleView, Mode, Query, QueryForm, Score};
use crate::task::{Format, Task};

/// Fields of a task's metadata that are replaced, because the task may come from a prompt's record.
pub(super) const WRITTEN_ANEW: [&str; 9] = [
    "query_window", "top_k_context", "shown_context", "window_size", "slice_size", "sample", "row",
    "mode", "prompt_tokens",
];

/// Values that the records of one repository's prompts share.
#[derive(Debug)]
pub(super) struct RepositoryPromptParts<'a> {
    pub(super) fragments: &'a RepoFragments,
    pub(super) mode: Mode,
    pub(super) form: QueryForm,
}

/// The query of a prompt, and the fragments that it shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryRecord<'a> {
    pub(super) query: &'a Query,
    pub(super) chosen: &'a [Hit],
    /// Lines that the prompt shows for each fragment.
    pub(super) blocks: &'a [Block],
    pub(super) hole: HoleView<'a>,
}

impl RepositoryPromptParts<'_> {
    /// Appends the record of a prompt, without a newline.
    pub(super) fn write(
        &self,
        task: &Task,
        retrieved: Option<QueryRecord<'_>>,
        prompt: &str,
        tokens: usize,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(b"{\"prompt\":");
        json::string(prompt, out);
        out.extend_from_slice(b",\"metadata\":{");
        let metadata = task.metadata.to_object();
        fields(&metadata, &WRITTEN_ANEW, out);
        self.hole_of(task, &metadata, out);
        if let Some(retrieved) = retrieved {
            self.write_retrieved(retrieved, out);
        }
        number("row", task.row, out);
        text("mode", self.mode.name(), out);
        number("prompt_tokens", tokens, out);
        out.push(b'}');
        fields(&task.extra.to_object(), &[], out);
        out.push(b'}');
    }

    /// Appends the fields of a hole that RepoEval's metadata has, if the task is in another format; completing and joining use
    /// them.
    fn hole_of(&self, task: &Task, metadata: &Object, out: &mut Vec<u8>) {
        let missing = |name: &str| !metadata.contains_key(name);
        if task.format == Format::RepoEval || task.path.is_empty() {
            return;
        }
        if missing("ground_truth") {
            text("ground_truth", &task.ground_truth, out);
        }
        path(&task.path, out);
        if missing("context_start_lineno") {
            number("context_start_lineno", task.context_start, out);
        }
        if missing("line_no") && missing("lineno") {
            number("line_no", task.line_no, out);
        }
    }

    fn write_retrieved(&self, retrieved: QueryRecord<'_>, out: &mut Vec<u8>) {
        let QueryRecord { query, chosen, blocks, hole } = retrieved;
        self.query(query, out);
        list("top_k_context", out);
        for hit in chosen {
            self.hit(hit, &hole, out);
        }
        out.push(b']');
        self.write_shown(chosen, blocks, &hole, out);
        let [size, overlap] = self.fragments.cut.fields();
        number(size.0, size.1, out);
        name(overlap.0, out);
        json::value(&(!chosen.is_empty()).then_some(overlap.1), out);
        number("sample", query.sample, out);
    }

    fn query(&self, query: &Query, out: &mut Vec<u8>) {
        object("query_window", out);
        text("context", &query.text, out);
        object("metadata", out);
        text("task_id", &query.task_id, out);
        number("row", query.row, out);
        if self.form != QueryForm::Window || self.mode == Mode::Prediction {
            number("sample", query.sample, out);
        }
        path(&query.path, out);
        if self.form == QueryForm::Window {
            number("line_no", query.line_no, out);
            number("start_line_no", query.start, out);
            number("end_line_no", query.end, out);
            number("context_start_lineno", query.context_start, out);
            for (field, value) in self.fragments.cut.fields() {
                number(field, value, out);
            }
        } else {
            text("query", self.form.name(), out);
            number("hole", query.hole, out);
        }
        text("repo", &self.fragments.repository, out);
        out.extend_from_slice(b"}}");
    }

    fn hit(&self, hit: &Hit, hole: &HoleView<'_>, out: &mut Vec<u8>) {
        open(out);
        text("context", self.fragments.text(hit.fragment as usize), out);
        list("metadata", out);
        for place in hole.named_places(hit.fragment) {
            self.place(place, out);
        }
        out.push(b']');
        number("sim_score", hit.score.value(), out);
        if let Score::Jaccard { overlap, union } = hit.score {
            number("overlap", overlap, out);
            number("union", union, out);
        }
        out.push(b'}');
    }

    /// Appends the lines shown in the prompt, if any differ from the retrieved lines: in the order of the fragments, `null` for
    /// a fragment that is shown unchanged.
    fn write_shown(
        &self,
        chosen: &[Hit],
        blocks: &[Block],
        hole: &HoleView<'_>,
        out: &mut Vec<u8>,
    ) {
        let is_itself =
            |(hit, block): (&Hit, &Block)| block.has_lines_of(hole.first_named_place(hit.fragment));
        if chosen.iter().zip(blocks).all(is_itself) {
            return;
        }
        list("shown_context", out);
        for pair in chosen.iter().zip(blocks) {
            if is_itself(pair) {
                comma(out);
                out.extend_from_slice(b"null");
                continue;
            }
            let block = pair.1;
            open(out);
            text("context", block.text(self.fragments), out);
            number("start_line_no", block.start, out);
            number("end_line_no", block.end, out);
            out.push(b'}');
        }
        out.push(b']');
    }

    fn place(&self, place: FragmentPlace, out: &mut Vec<u8>) {
        open(out);
        path(&self.fragments.files[place.file as usize].path, out);
        let number_field = self.fragments.cut.number_field();
        let [size, overlap] = self.fragments.cut.fields();
        number(number_field, place.number, out);
        number("start_line_no", place.start, out);
        number("end_line_no", place.end, out);
        number(size.0, size.1, out);
        text("repo", &self.fragments.repository, out);
        number(overlap.0, overlap.1, out);
        out.push(b'}');
    }
}

/// Appends a comma, unless the next value is the first in its object or list.
fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
}

/// Begins an object as the next element of a list.
fn open(out: &mut Vec<u8>) {
    comma(out);
    out.push(b'{');
}

/// Appends the name of a field; our names need no escape.
#[inline(always)]
fn name(name: &str, out: &mut Vec<u8>) {
    comma(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn object(field: &str, out: &mut Vec<u8>) {
    name(field, out);
    out.push(b'{');
}

fn list(field: &str, out: &mut Vec<u8>) {
    name(field, out);
    out.push(b'[');
}

fn text(field: &str, text: &str, out: &mut Vec<u8>) {
    name(field, out);
    json::string(text, out);
}

fn number(field: &str, number: impl serde::Serialize, out: &mut Vec<u8>) {
    name(field, out);
    json::value(&number, out);
}

/// Appends the field `fpath_tuple`: `[repository, folder, …, file]`.
fn path(path: &str, out: &mut Vec<u8>) {
    list("fpath_tuple", out);
    for name in path.split('/') {
        comma(out);
        json::string(name, out);
    }
    out.push(b']');
}

/// Appends the fields of an object, except those named in `without`.
fn fields(object: &Object, without: &[&str], out: &mut Vec<u8>) {
    for (name, value) in object.iter().filter(|(name, _)| !without.contains(&name.as_str())) {
        comma(out);
        json::string(name, out);
        out.push(b':');
        json::verbatim(value, out);
    }
}
