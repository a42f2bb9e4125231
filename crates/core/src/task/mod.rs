//! Benchmark tasks: one hole in one file, in the format of any benchmark, recognised by the fields of each record.
//!
//! | format | left context | target | place |
//! |---|---|---|---|
//! | [RepoEval](Format::RepoEval) | `prompt`, whole lines | `metadata.ground_truth`, whole lines | `metadata.fpath_tuple`, `line_no` (or `lineno`) |
//! | [Repoformer](Format::Repoformer) | `prompt`, up to the hole | `groundtruth` | `metadata.filepath`; its line is counted |
//! | [CrossCodeEval](Format::CrossCodeEval) | `prompt`, up to the hole | `groundtruth` | `metadata.repository`, `file`, `groundtruth_start_lineno` |
//! | [CrossCodeLongEval](Format::CrossCodeLongEval) | `prompt`, up to the hole | `groundtruth` | none |
//! | [RepoBench](Format::RepoBench) (read) | `import_statement`, `cropped_code` | `next_line` | `repo_name`, `file_path` |
//! | [ReccEval](Format::ReccEval) (read) | `input` | `gt` | `fpath` |
//!
//! Fields that a format does not define are kept, in order, and [`Task::to_record`] writes them again.

mod contexts;
pub mod cross_file;
mod defined;
pub mod fields;
mod files;
mod fill;
mod format;
mod identity;
pub mod kind;
mod read;
pub mod sample;
#[cfg(test)]
mod tests;
mod write;

pub use contexts::SharedText;
pub use defined::TargetDefinition;
pub use files::TaskFiles;
pub use fill::Hole;
pub use format::Format;
pub use identity::{HoleDigest, HoleMark, NumberedRecords, OtherHole, is_numbered};
pub use read::{NO_TARGET, check_place, read_cross_file, write_cross_file};
pub use write::TaskRecord;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::OnceLock;

use foldhash::HashMap;
use repoformer_store::error::Error;
use repoformer_store::jsonl::Object;
use repoformer_store::kept_fields::KeptFields;
use repoformer_text::language::Language;
use repoformer_text::lines::{is_space, line_ends, unfinished_line};
use repoformer_text::message::Message;
use serde_json::{Value, json};

use crate::repository::Shard;
use crate::task::cross_file::{CrossFile, CrossFileFragment};

/// One hole: the prompt before it, and the text that was in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Task {
    /// Format of the task's record.
    pub format: Format,
    /// 0-based position in the task file: the task's key, since benchmark ids repeat.
    pub row: usize,
    /// 1-based line in the task file, for messages.
    pub line: usize,
    /// Id as the file gives it; not unique in RepoEval's line and API files.
    pub id: String,
    /// Folder of the task's repository: the first name of the path in the record, or `owner_name` for RepoBench's `owner/name`;
    /// empty if the record has no path (CrossCodeLongEval).
    pub repository: String,
    /// `repository/folder/…/file.py`; empty if the record has no path.
    pub path: String,
    /// 0-based first line of the file that the prompt shows.
    pub context_start: usize,
    /// 0-based line of the file on which the hole begins; lines as [`repoformer_text::lines::Lines`] counts them. 0 if the
    /// record names no file.
    pub line_no: usize,
    /// Text that was in the hole.
    pub ground_truth: String,
    /// Text of the file before the hole, as the model sees it without retrieval.
    pub prompt: SharedText,
    /// Context after the hole, if the record has it.
    pub right_context: Option<SharedText>,
    /// The whole file before the hole, if `prompt` is only its end.
    pub full_left_context: Option<SharedText>,
    /// The whole file after the hole, if `right_context` is only its start.
    pub full_right_context: Option<SharedText>,
    /// Cross-file context, if the record has one.
    pub cross_file: Option<CrossFile>,
    /// The record's `metadata` as it was read, including unknown fields.
    pub metadata: KeptFields,
    /// Unknown fields of the record outside its `metadata`, as they were read.
    pub extra: KeptFields,
}

/// Tasks of one file.
#[derive(Debug, Clone)]
pub struct TaskSet {
    /// Path of the task file.
    pub path: PathBuf,
    tasks: Vec<Task>,
    /// Indices of each repository's tasks, computed on first use.
    of_repositories: OnceLock<HashMap<String, Vec<u32>>>,
    /// Mark of each task's hole, computed on first use.
    marks: OnceLock<Vec<HoleMark>>,
}

/// Tasks of a file, and the records that cannot be used.
#[derive(Debug)]
pub struct TaskReading {
    /// Tasks that can be used.
    pub set: TaskSet,
    /// Errors of the records that cannot be used, each with line and reason.
    pub problems: Vec<Error>,
    /// Number of tasks with the id of an earlier task.
    pub repeated_ids: usize,
    /// Number of tasks of each format, in the order of the file; more than one entry if formats are mixed.
    pub formats: Vec<(Format, usize)>,
}

impl TaskSet {
    /// Creates a set of tasks in the order of their file.
    pub fn new(path: PathBuf, tasks: Vec<Task>) -> Self {
        Self { path, tasks, of_repositories: OnceLock::new(), marks: OnceLock::new() }
    }

    /// Creates a set of tasks whose texts were dropped, with the marks of their holes.
    pub fn with_marks(path: PathBuf, tasks: Vec<Task>, marks: Vec<HoleMark>) -> Self {
        Self { marks: marks.into(), ..Self::new(path, tasks) }
    }

    /// Returns the mark of each task's hole.
    pub fn marks(&self) -> &[HoleMark] {
        self.marks.get_or_init(|| self.tasks.iter().map(Task::hole_mark).collect())
    }

    /// Returns the tasks, in the order of the file.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns the tasks without the rest of the set.
    pub fn into_tasks(self) -> Vec<Task> {
        self.tasks
    }

    /// Returns the tasks for changes, and drops the values computed from them.
    pub fn tasks_mut(&mut self) -> &mut Vec<Task> {
        self.of_repositories.take();
        self.marks.take();
        &mut self.tasks
    }

    /// Returns the repositories that the tasks name, sorted, each once.
    pub fn repositories(&self) -> Vec<String> {
        let mut names: Vec<String> = self.of_repositories().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Finds the folders of repositories that are named `owner--name`, as in RepoEval's function files, if the folder is
    /// `owner_name`. `folders` must be sorted.
    pub fn name_folders(&mut self, folders: &[String]) {
        for task in self.tasks_mut() {
            task.name_folder(folders);
        }
    }

    /// Returns the task with this row.
    pub fn of_row(&self, row: usize) -> Option<&Task> {
        let at = self.tasks.binary_search_by_key(&row, |task| task.row);
        Some(&self.tasks[at.ok()?])
    }

    /// Returns the tasks of one repository, in order.
    pub fn of_repository(&self, name: &str) -> impl Iterator<Item = &Task> {
        self.numbers_of(name).map(|number| &self.tasks[number])
    }

    /// Returns the indices of one repository's tasks, in order.
    pub fn numbers_of(&self, repository: &str) -> impl Iterator<Item = usize> {
        let numbers = self.of_repositories().get(repository).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|&number| number as usize)
    }

    fn of_repositories(&self) -> &HashMap<String, Vec<u32>> {
        self.of_repositories.get_or_init(|| {
            let mut found: HashMap<String, Vec<u32>> = HashMap::default();
            for (task, number) in self.tasks.iter().zip(0..) {
                match found.get_mut(&task.repository) {
                    Some(numbers) => numbers.push(number),
                    None => {
                        found.insert(task.repository.clone(), vec![number]);
                    }
                }
            }
            found
        })
    }

    /// Returns a digest of the positions of the holes of one repository's tasks.
    pub fn hole_digest(&self, repository: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for task in self.of_repository(repository) {
            hasher.update(task.path.as_bytes());
            hasher.update(task.id.as_bytes());
            for number in
                [task.path.len(), task.id.len(), task.row, task.context_start, task.line_no]
            {
                hasher.update(&(number as u64).to_le_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns a digest of all tasks, including everything in them.
    pub fn digest(&self) -> String {
        digest(self.tasks.iter())
    }

    /// Returns the digest that the tasks of a shard's repositories would have alone.
    pub fn digest_of_shard(&self, shard: Shard) -> String {
        digest(self.tasks.iter().filter(|task| shard.holds(&task.repository)))
    }

    /// Returns the digest of one repository's tasks.
    pub fn digest_of(&self, repository: &str) -> String {
        digest(self.of_repository(repository))
    }

    /// Returns the error for one of the tasks.
    pub fn error(&self, task: &Task, reason: impl Into<Message>) -> Error {
        Error::Task {
            path: self.path.clone(),
            line: task.line,
            task_id: task.id.clone(),
            reason: reason.into(),
        }
    }
}

fn digest<'t>(tasks: impl Iterator<Item = &'t Task>) -> String {
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), Vec::new());
    for task in tasks {
        task.digest_into(&mut bytes);
        // The hash is fastest on many kilobytes at a time.
        if bytes.len() > 1 << 16 {
            hasher.update(&bytes);
            bytes.clear();
        }
    }
    hasher.update(&bytes);
    hasher.finalize().to_hex().to_string()
}

/// Returns the fields of a literal that is an object.
fn object_of(literal: Value) -> Object {
    match literal {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}

impl Task {
    /// Returns the mark of the task's hole.
    pub fn hole_mark(&self) -> HoleMark {
        HoleMark::new(&self.prompt, &self.ground_truth)
    }

    /// Computes the digest of the task's hole.
    pub fn hole_digest(&self) -> HoleDigest {
        HoleDigest::new(&self.prompt, &self.ground_truth)
    }

    /// Keeps the data that identify the task, and drops its texts and everything else in its record.
    pub fn forget_texts(&mut self) {
        (self.prompt, self.ground_truth) = (SharedText::new(), String::new());
        (self.full_left_context, self.full_right_context) = (None, None);
        (self.right_context, self.cross_file) = (None, None);
        (self.metadata, self.extra) = (KeptFields::default(), KeptFields::default());
    }

    /// Creates a task with the metadata of a RepoEval task.
    pub fn new(
        id: String,
        path: &str,
        context_start: usize,
        line_no: usize,
        ground_truth: &str,
        prompt: &str,
    ) -> Self {
        let names: Vec<&str> = path.split('/').collect();
        Self {
            repository: names[0].to_owned(),
            path: path.to_owned(),
            context_start,
            line_no,
            ground_truth: ground_truth.to_owned(),
            prompt: prompt.into(),
            metadata: object_of(json!({
                "task_id": id, "ground_truth": ground_truth, "fpath_tuple": names,
                "context_start_lineno": context_start, "line_no": line_no,
            }))
            .into(),
            id,
            ..Self::default()
        }
    }

    /// Finds the folder of the task's repository among `folders`, which must be sorted, if the repository is named
    /// `owner--name`.
    pub fn name_folder(&mut self, folders: &[String]) {
        let there = |name: &str| folders.binary_search_by(|folder| (**folder).cmp(name)).is_ok();
        let folder = self.repository.replace("--", "_");
        if folder != self.repository && !there(&self.repository) && there(&folder) {
            self.path.replace_range(..self.repository.len(), &folder);
            self.repository = folder;
        }
    }

    /// Returns the path of the task's file in its repository, `folder/…/file.py`; empty if the task names no file.
    pub fn file_in_repository(&self) -> &str {
        self.path.split_once('/').map_or("", |(_, file)| file)
    }

    /// Returns the language of the task's file, by the file's extension; Python if the extension is unknown.
    pub fn language(&self) -> Language {
        Language::of_path(&self.path).unwrap_or_default()
    }

    /// Returns true if the record contains the whole file before the hole, as far as its line numbers show. A prompt that was
    /// stripped at its end counts as whole if it begins at the start of the file.
    pub fn has_whole_left(&self) -> bool {
        let is_stripped = !self.prompt.ends_with(is_space);
        self.full_left_context.is_some()
            || self.context_start == 0 && (is_stripped || line_ends(&self.prompt) >= self.line_no)
    }

    /// Returns true if the hole begins after code on its line, as far as the record shows.
    pub fn begins_within_line(&self) -> bool {
        let begun = unfinished_line(&self.prompt);
        // The last line of a stripped prompt is a whole line.
        !begun.trim().is_empty() && self.context_start + line_ends(&self.prompt) == self.line_no
    }

    /// Returns the kind of the task's hole, if the record names it: in its metadata, where `label sample` stores it, or in its
    /// id, where `sample` stores it (`repository/chunk-1f3a9c20b4d7`).
    pub fn kind(&self) -> Option<Cow<'_, str>> {
        match self.metadata.get("kind") {
            Some(Value::String(named)) => Some(named.into()),
            _ => identity::drawn_kind(&self.id).map(|kind| kind.name().into()),
        }
    }

    /// Appends the data for a digest: everything that a stage reads, with each text after its length.
    fn digest_into(&self, out: &mut Vec<u8>) {
        for number in [self.row, self.context_start, self.line_no] {
            out.extend_from_slice(&(number as u64).to_le_bytes());
        }
        // The last two may come from the folders of repositories.
        for text in [self.format.name(), &self.prompt, &self.path, &self.repository] {
            add_text(text, out);
        }
        for object in [&self.metadata, &self.extra] {
            add_text(object.as_json(), out);
        }
        if self.format != Format::RepoEval {
            self.digest_texts(out);
        }
    }

    /// Appends the texts that RepoEval's records have only in their metadata. A missing text differs from an empty one.
    fn digest_texts(&self, out: &mut Vec<u8>) {
        add_text(&self.ground_truth, out);
        for text in [&self.right_context, &self.full_left_context, &self.full_right_context] {
            out.push(u8::from(text.is_some()));
            add_text(text.as_deref().unwrap_or_default(), out);
        }
        out.push(u8::from(self.cross_file.is_some()));
        if let Some(CrossFile { text, fragments }) = &self.cross_file {
            add_text(text, out);
            out.extend_from_slice(&(fragments.len() as u64).to_le_bytes());
            for CrossFileFragment { path, text, score } in fragments {
                add_text(path, out);
                add_text(text, out);
                out.push(u8::from(score.is_some()));
                out.extend_from_slice(&score.unwrap_or_default().to_le_bytes());
            }
        }
    }
}

/// Appends a text after its length.
fn add_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
