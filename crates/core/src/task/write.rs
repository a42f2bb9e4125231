//! Writes tasks as records, in their own format or another.

use repoformer_store::jsonl::Object;
use repoformer_text::lines::{Lines, indent, line_ends, line_starts, unfinished_line};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::{Value, json};

use super::read::{read_cross_file, write_cross_file};
use super::{Format, SharedText, Task, object_of};

/// Record of a task in a requested format.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// The record.
    pub record: Value,
    /// Names of the fields that the format cannot store, and that are therefore left out.
    pub left_out: Vec<&'static str>,
    /// Names of the fields that the format has and for which the task has no value.
    pub lacking: Vec<&'static str>,
}

/// Number of lines of the right context that Repoformer's converter keeps after the hole's line (`convert.py`).
const RIGHT_LINES: usize = 50;

/// Top-level fields for which a [`Task`] has its own fields.
const NAMED: [&str; 7] = [
    "prompt", "groundtruth", "right_context", "full_right_context", "full_left_context",
    "metadata", "crossfile_context",
];

/// Fields about the place of a hole, which CrossCodeLongEval's tasks lack.
const OF_PLACE: [&str; 9] = [
    "metadata.fpath_tuple",
    "metadata.filepath",
    "metadata.repository",
    "metadata.file",
    "metadata.context_start_lineno",
    "metadata.line_no",
    "metadata.lineno",
    "metadata.groundtruth_start_lineno",
    "metadata.right_context_start_lineno",
];

impl Task {
    /// Returns the record in the task's own format, or in CrossCodeEval's if the task's format is read-only. Values that were
    /// read and not changed are written as they were read, including unknown fields.
    pub fn to_record(&self) -> Value {
        let mut record = Object::new();
        record.insert("prompt".into(), self.prompt.as_str().into());
        if self.format != Format::RepoEval {
            record.insert("groundtruth".into(), self.ground_truth.as_str().into());
            put(&mut record, "right_context", self.right_context.as_deref());
            if self.format.is_written() {
                put(&mut record, "full_right_context", self.full_right_context.as_deref());
                put(&mut record, "full_left_context", self.full_left_context.as_deref());
            }
        }
        record.insert("metadata".into(), self.metadata.to_object().into());
        if let Some(value) = self.cross_file_value(self.format) {
            record.insert("crossfile_context".into(), value);
        }
        self.put_extra(&mut record, &[]);
        Value::Object(record)
    }

    /// Returns the `crossfile_context`, as it was read if its content is unchanged.
    fn cross_file_value(&self, format: Format) -> Option<Value> {
        let cross_file = self.cross_file.as_ref()?;
        if format == self.format
            && let Some(as_read) = self.extra.get("crossfile_context")
            && read_cross_file(&as_read, self.language()).ok().flatten().as_ref()
                == Some(cross_file)
        {
            return Some(as_read);
        }
        Some(write_cross_file(cross_file, format))
    }

    fn put_extra(&self, record: &mut Object, without: &[&str]) {
        for (name, value) in self.extra.to_object() {
            if !record.contains_key(&name) && !without.contains(&name.as_str()) {
                record.insert(name, value);
            }
        }
    }

    /// Returns the record in a format. If this is not the task's own format:
    ///
    /// - RepoEval's holes are whole lines, and holes of the other formats begin after the indent. White space before the hole
    ///   therefore moves to the ground truth and back. Code before the hole on its line stays in the prompt, so that the target
    ///   is the same.
    /// - Repoformer's prompt is the whole file before the hole. RepoEval's prompt begins at `context_start_lineno`, which is
    ///   kept in Repoformer's metadata if it is not 0. A newline at the end of a RepoEval function body is not part of
    ///   Repoformer's `groundtruth`; the original is then kept as `metadata.ground_truth`.
    /// - If only the whole right context is known, `right_context` is the whole; in Repoformer's format, it is the rest of the
    ///   hole's line and 50 lines (`convert.py`).
    /// - If nothing else is known, Repoformer's `metadata.repository` is the folder, and its `url` is empty.
    /// - Unknown fields are kept. Fields of other formats that this format cannot store are left out and listed.
    ///
    /// # Errors
    /// The format is read-only, or information is missing; the error describes it and names the fields.
    pub fn to_format(&self, format: Format) -> Result<TaskRecord, Message> {
        if !format.is_written() {
            return Err(format!("format {format} can be read but not written").into());
        }
        if format == self.format {
            return Ok(TaskRecord {
                record: self.to_record(),
                left_out: Vec::new(),
                lacking: Vec::new(),
            });
        }
        if self.path.is_empty() && format != Format::CrossCodeLongEval {
            let field = match format {
                Format::RepoEval => "fpath_tuple",
                Format::Repoformer => "filepath",
                _ => "file",
            };
            let format = self.format;
            return Err(format!(
                "'metadata.{field}' is missing: {format} tasks do not name a file"
            )
            .into());
        }
        match format {
            Format::RepoEval => Ok(self.to_repo_eval()),
            _ => self.to_cut(format),
        }
    }

    fn to_repo_eval(&self) -> TaskRecord {
        let before = unfinished_indent(&self.prompt);
        let prompt = &self.prompt[..self.prompt.len() - before.len()];
        let mut ground_truth = format!("{before}{}", self.ground_truth);
        // A conversion from RepoEval kept the original here, because the other format cannot express it.
        if let Some(Value::String(kept)) = self.metadata.get("ground_truth")
            && kept.strip_suffix('\n') == Some(&ground_truth)
        {
            ground_truth = kept;
        }
        let (prompt, context_start) = self.shown_from_kept_start(prompt);
        let is_text = |value: &Value, text: &str| value.as_str() == Some(text);
        let names: Vec<&str> = self.path.split('/').collect();
        let line_no = if self.metadata.contains("lineno") { "lineno" } else { "line_no" };
        let mut metadata = object_of(json!({
            "task_id": self.id, "ground_truth": ground_truth, "fpath_tuple": names,
            "context_start_lineno": context_start, line_no: self.line_no,
        }));
        self.put_metadata(&mut metadata, |name, value| match name {
            "filepath" | "file" | "groundtruth_start_lineno" | "right_context_start_lineno" => {
                false
            }
            "repository" => !is_text(value, &self.repository),
            "url" => !is_text(value, ""),
            _ => true,
        });
        let mut record = Object::new();
        record.insert("prompt".into(), with_newlines(prompt).into());
        record.insert("metadata".into(), metadata.into());
        self.put_extra(&mut record, &NAMED);
        let mut left_out = self.whole_contexts();
        left_out.extend(self.right_context.as_ref().map(|_| "right_context"));
        let shows = |cross_file: &&_| !crate::task::cross_file::CrossFile::is_empty(cross_file);
        left_out.extend(self.cross_file.as_ref().filter(shows).map(|_| "crossfile_context"));
        TaskRecord { record: Value::Object(record), left_out, lacking: Vec::new() }
    }

    /// Returns the prompt from the line at which a RepoEval record began, if that line was kept, and the line.
    fn shown_from_kept_start<'a>(&self, prompt: &'a str) -> (&'a str, usize) {
        let kept = self.metadata.get("context_start_lineno").and_then(|kept| kept.as_u64());
        let kept = kept.and_then(|kept| usize::try_from(kept).ok());
        let Some(kept) = kept.filter(|kept| (self.context_start..=self.line_no).contains(kept))
        else {
            return (prompt, self.context_start);
        };
        match line_starts(prompt).nth(kept - self.context_start) {
            Some(start) => (&prompt[start..], kept),
            None => (prompt, self.context_start),
        }
    }

    /// Returns the names of the whole contexts that contain more than the other contexts.
    fn whole_contexts(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let left = self.full_left_context.as_ref();
        names.extend(left.is_some_and(|left| *left != self.prompt).then_some("full_left_context"));
        let right = self.full_right_context.is_some();
        let says_more = right && self.full_right_context != self.right_context;
        names.extend(says_more.then_some("full_right_context"));
        names
    }

    /// Converts the task to a format whose holes begin after the line's indent.
    fn to_cut(&self, format: Format) -> Result<TaskRecord, Message> {
        let mut cut = self.cut();
        if format == Format::Repoformer {
            if self.format == Format::RepoEval {
                cut.prompt = cut.full_left_context.clone().unwrap_or(cut.prompt);
            }
            let first = cut.full_right_context.as_deref().map(first_lines);
            cut.right_context = cut.right_context.or(first.map(SharedText::from));
        } else {
            cut.right_context = cut.right_context.or_else(|| cut.full_right_context.clone());
        }
        let Some(right_context) = &cut.right_context else {
            return Err(message![
                format!("'right_context' is missing from this {} task; pass the ", self.format),
                UserChoice::RepositoriesFolder,
                " to take it from the file"
            ]);
        };
        let mut record = Object::new();
        put(&mut record, "prompt", Some(&cut.prompt));
        put(&mut record, "groundtruth", Some(&cut.ground_truth));
        put(&mut record, "right_context", Some(right_context));
        let (mut left_out, mut lacking) = (Vec::new(), Vec::new());
        if format == Format::Repoformer {
            lacking.extend(cut.full_right_context.is_none().then_some("full_right_context"));
            lacking.extend(cut.full_left_context.is_none().then_some("full_left_context"));
            put(&mut record, "full_right_context", cut.full_right_context.as_deref());
            put(&mut record, "full_left_context", cut.full_left_context.as_deref());
        } else if self.format == Format::Repoformer {
            left_out = self.whole_contexts();
        }
        let metadata = match format {
            Format::Repoformer => self.repoformer_metadata(&cut),
            Format::CrossCodeEval => {
                left_out.extend(self.names_repository_otherwise().then_some("metadata.repository"));
                self.cross_code_eval_metadata(&cut)
            }
            _ => {
                let metadata = self.bare_metadata(&cut);
                let own = self.metadata.to_object();
                let is_lost = |name: &&str| {
                    let name = name.trim_start_matches("metadata.");
                    own.contains_key(name) && !metadata.contains_key(name)
                };
                left_out.extend(OF_PLACE.into_iter().filter(is_lost));
                metadata
            }
        };
        record.insert("metadata".into(), metadata.into());
        if let Some(value) = self.cross_file_value(format) {
            let loses = self.cross_file.as_ref().is_some_and(|c| !c.fragments.is_empty());
            left_out.extend((value.is_string() && loses).then_some("crossfile_context.list"));
            record.insert("crossfile_context".into(), value);
        }
        self.put_extra(&mut record, &NAMED);
        Ok(TaskRecord { record: Value::Object(record), left_out, lacking })
    }

    /// Returns a task with only the texts, cut for a hole that begins after the line's indent and ends before the line's end.
    fn cut(&self) -> Task {
        let mut cut = Task {
            prompt: self.prompt.clone(),
            ground_truth: self.ground_truth.clone(),
            right_context: self.right_context.clone(),
            full_left_context: self.full_left_context.clone(),
            full_right_context: self.full_right_context.clone(),
            ..Task::default()
        };
        if cut.full_left_context.is_none() && self.context_start == 0 && !self.path.is_empty() {
            cut.full_left_context = Some(self.prompt.clone());
        }
        if self.format != Format::RepoEval {
            return cut;
        }
        if unfinished_line(&self.prompt).is_empty() {
            let line = &self.ground_truth
                [..line_starts(&self.ground_truth).nth(1).unwrap_or(self.ground_truth.len())];
            let indent = indent(line.trim_end_matches(repoformer_text::lines::is_separator));
            for text in
                [Some(&mut cut.prompt), cut.full_left_context.as_mut()].into_iter().flatten()
            {
                *text = [&**text, indent].concat().into();
            }
            cut.ground_truth.drain(..indent.len());
        }
        if cut.ground_truth.ends_with('\n') {
            cut.ground_truth.pop();
            for text in [&mut cut.right_context, &mut cut.full_right_context].into_iter().flatten()
            {
                *text = ["\n", &**text].concat().into();
            }
        }
        cut
    }

    /// Returns true if a RepoEval record's ground truth must be kept: it does not follow from the other format's fields.
    fn keeps_ground_truth(&self, cut: &Task) -> bool {
        self.format == Format::RepoEval
            && format!("{}{}", unfinished_indent(&cut.prompt), cut.ground_truth)
                != self.ground_truth
            && self.ground_truth.ends_with('\n')
    }

    fn repoformer_metadata(&self, cut: &Task) -> Object {
        let known = self.metadata.to_object();
        let text = |name: &str| known.get(name).and_then(Value::as_str);
        let url = text("url").unwrap_or("");
        let repository = match self.format {
            Format::RepoEval => text("repository").unwrap_or(&self.repository),
            _ if url.is_empty() => &self.repository,
            _ => url,
        };
        // If the left context is whole, lines can be counted, so line numbers need not be stored.
        let counted = cut.full_left_context.is_some();
        let begins = match self.format {
            Format::RepoEval => 0,
            _ => self.line_no.saturating_sub(line_ends(&cut.prompt)),
        };
        let mut metadata = object_of(json!({
            "task_id": self.id, "filepath": self.path, "repository": repository, "url": url,
        }));
        self.put_metadata(&mut metadata, |name, value| match name {
            "fpath_tuple" | "file" => false,
            "ground_truth" => self.keeps_ground_truth(cut),
            "line_no" => !(counted && self.format == Format::RepoEval),
            "context_start_lineno" => !counted || value.as_u64() != Some(begins as u64),
            "groundtruth_start_lineno" => !counted,
            "right_context_start_lineno" => value.as_u64() != Some(self.right_start(cut) as u64),
            _ => true,
        });
        metadata
    }

    fn cross_code_eval_metadata(&self, cut: &Task) -> Object {
        let kept = self.metadata.get("right_context_start_lineno");
        let mut metadata = self.adapted_metadata();
        let right = kept.unwrap_or_else(|| self.right_start(cut).into());
        metadata.insert("right_context_start_lineno".into(), right);
        self.put_metadata(&mut metadata, |name, value| match name {
            "fpath_tuple" | "filepath" => false,
            "line_no" => self.format != Format::RepoEval,
            "ground_truth" => self.keeps_ground_truth(cut),
            "url" => value.as_str() != Some(""),
            _ => true,
        });
        metadata
    }

    /// Returns true if the metadata names the repository by neither its folder nor its URL.
    fn names_repository_otherwise(&self) -> bool {
        let metadata = self.metadata.to_object();
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        let said = text("repository");
        said.is_some_and(|said| said != self.repository) && text("url") != said
    }

    fn bare_metadata(&self, cut: &Task) -> Object {
        let mut metadata = object_of(json!({"task_id": self.id}));
        self.put_metadata(&mut metadata, |name, _| match name {
            "ground_truth" => self.keeps_ground_truth(cut),
            _ => !OF_PLACE.iter().any(|of_place| of_place.strip_prefix("metadata.") == Some(name)),
        });
        metadata
    }

    /// Returns the line after the hole.
    fn right_start(&self, cut: &Task) -> usize {
        let whole = cut.ground_truth.ends_with('\n');
        self.line_no + line_ends(&cut.ground_truth) + usize::from(!whole)
    }

    /// Adds the metadata fields that are still missing and are to be kept.
    fn put_metadata(&self, metadata: &mut Object, keep: impl Fn(&str, &Value) -> bool) {
        for (name, value) in self.metadata.to_object() {
            if !metadata.contains_key(&name) && keep(&name, &value) {
                metadata.insert(name, value);
            }
        }
    }
}

fn put(record: &mut Object, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        record.insert(name.into(), text.into());
    }
}

/// Returns the white space before a hole on its line; empty if the line also has other text before the hole.
fn unfinished_indent(prompt: &str) -> &str {
    let begun = unfinished_line(prompt);
    if indent(begun) == begun { begun } else { "" }
}

/// Returns the rest of a line and the 50 lines after it.
fn first_lines(text: &str) -> &str {
    let end = memchr::memchr_iter(b'\n', text.as_bytes()).nth(RIGHT_LINES);
    &text[..end.unwrap_or(text.len())]
}

/// Returns a text as RepoCoder joins its lines: with `\n`, regardless of their original line ends.
fn with_newlines(text: &str) -> String {
    let lines = Lines::new(text);
    let mut joined = lines.text().to_owned();
    if text.ends_with(repoformer_text::lines::is_separator) {
        joined.push('\n');
    }
    joined
}
