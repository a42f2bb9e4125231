//! Reads records of every task format as tasks.

use std::path::Path;

use foldhash::HashSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Fields, Object, RecordAddress};
use repoformer_store::manifest::is_part;
use repoformer_text::language::Language;
use repoformer_text::lines::{line_ends, strip};
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde_json::{Value, json};

use super::contexts::LeftContexts;
use super::{Format, SharedText, Task, TaskReading, TaskSet, object_of};
use crate::repository::corpus::{PathError, path_names, path_names_with_repository};
use crate::task::cross_file::{self, CrossFile, CrossFileFragment};
use crate::task::kind::RecordKind;

/// Problem of a task or label with an empty target.
pub const NO_TARGET: &str = "its ground truth is empty: there is nothing to predict";

impl TaskSet {
    /// Reads a task file (`.jsonl`, gzip, zstd, or `-`). The format of each record is recognised by its fields.
    ///
    /// # Errors
    /// The file cannot be read, or has no usable task; only a shard's file may be empty.
    pub fn read(path: &Path) -> Result<TaskReading> {
        let mut tasks = Vec::new();
        let mut contexts = LeftContexts::default();
        let problems = jsonl::for_each(path, |at, object| {
            tasks.push(Task::from_record(path, at, object)?);
            tasks.last_mut().into_iter().for_each(|task| contexts.take(task));
            Ok(())
        })?;
        contexts.give_back(&mut tasks);
        tasks.shrink_to_fit();
        if tasks.is_empty() && !(problems.is_empty() && is_part(path)) {
            return Err(problems.into_iter().next().unwrap_or_else(|| Error::Artifact {
                path: path.to_owned(),
                reason: "the file contains no tasks".into(),
                hint: message!["pass a file of tasks, or ", UserChoice::DrawTasks],
            }));
        }
        let mut seen: HashSet<&str> = HashSet::default();
        let repeated_ids = tasks.iter().filter(|task| !seen.insert(&task.id)).count();
        let mut formats: Vec<(Format, usize)> = Vec::new();
        for task in &tasks {
            match formats.iter_mut().find(|(format, _)| *format == task.format) {
                Some((_, count)) => *count += 1,
                None => formats.push((task.format, 1)),
            }
        }
        Ok(TaskReading {
            set: TaskSet::new(path.to_owned(), tasks),
            problems,
            repeated_ids,
            formats,
        })
    }
}

impl Task {
    /// Reads a record of any task format, recognised by its fields.
    ///
    /// # Errors
    /// A field is missing, has another type or leads out of the repository; the target is empty; or the record is not a task,
    /// and the error names its kind.
    pub fn from_record(path: &Path, at: RecordAddress, object: Object) -> Result<Self> {
        let kind = RecordKind::from_record(&object);
        if let Some(kind @ (RecordKind::Task(_) | RecordKind::Label)) = kind {
            kind.check(path, at.line, &object)?;
        }
        let record = TaskFields { path, at, object };
        match kind {
            // Repoformer's own program writes tasks with an empty target.
            Some(RecordKind::Task(format @ Format::Repoformer)) => record.task(format),
            Some(RecordKind::Task(format)) => with_target(path, at, record.task(format)?),
            Some(RecordKind::Label) => {
                check_place(&record.fields("metadata.", record.metadata()?))?;
                with_target(path, at, record.repoformer("filename")?)
            }
            Some(kind) => Err(record
                .top()
                .error(message![format!("this is {}, not a task; ", kind.record()), kind.usage()])),
            None if record.object.contains_key("prompt") => Err(record
                .metadata()
                .err()
                .unwrap_or_else(|| record.top().error(RecordKind::unknown()))),
            None => Err(record.top().error(RecordKind::unknown())),
        }
    }
}

/// Checks that an instance's path names a file in a repository, and that the instance has at least one line.
pub fn check_place(metadata: &Fields<'_>) -> Result<()> {
    let names = path_names_with_repository(metadata.string("filename")?);
    source_file(metadata, "filename", names)?;
    if metadata.count(&["start_i"])? < metadata.count(&["end_i"])? {
        Ok(())
    } else {
        Err(metadata.error("field 'metadata.end_i' is not after 'start_i'"))
    }
}

fn with_target(path: &Path, at: RecordAddress, task: Task) -> Result<Task> {
    if !strip(&task.ground_truth).is_empty() {
        return Ok(task);
    }
    let (path, reason) = (path.to_owned(), NO_TARGET.into());
    Err(Error::Task { path, line: at.line, task_id: task.id, reason })
}

/// A record while it is converted to a task: its fields are taken out one by one, and the remaining ones are kept unchanged.
struct TaskFields<'a> {
    path: &'a Path,
    at: RecordAddress,
    object: Object,
}

impl TaskFields<'_> {
    fn task(self, format: Format) -> Result<Task> {
        match format {
            Format::RepoEval => self.repo_eval(),
            Format::Repoformer => self.repoformer("filepath"),
            Format::CrossCodeEval => self.cross_code_eval(),
            Format::CrossCodeLongEval => self.cross_code_long_eval(),
            Format::RepoBench => self.repo_bench(),
            Format::ReccEval => self.recc_eval(),
        }
    }

    fn fields<'a>(&'a self, prefix: &'a str, object: &'a Object) -> Fields<'a> {
        Fields::new(self.path, self.at.line, prefix, object)
    }

    fn top(&self) -> Fields<'_> {
        self.fields("", &self.object)
    }

    fn metadata(&self) -> Result<&Object> {
        self.top().object("metadata")
    }

    fn take_metadata(&mut self) -> Result<Object> {
        self.metadata()?;
        match self.object.shift_remove("metadata") {
            Some(Value::Object(metadata)) => Ok(metadata),
            _ => Ok(Object::new()),
        }
    }

    fn take_text(&mut self, name: &str) -> Result<String> {
        self.top().string(name)?;
        match self.object.shift_remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Ok(String::new()),
        }
    }

    /// Takes a text that may be missing or `null`.
    fn take_optional(&mut self, name: &str) -> Result<Option<SharedText>> {
        match self.object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.take_text(name).map(|text| Some(text.into())),
        }
    }

    /// Takes the `crossfile_context`. It stays among the unknown fields if it could not be written again unchanged.
    fn take_cross_file(&mut self, language: Language, format: Format) -> Result<Option<CrossFile>> {
        let Some(value) = self.object.get("crossfile_context") else {
            return Ok(None);
        };
        let cross_file = read_cross_file(value, language).map_err(|e| self.top().error(e))?;
        if let Some(cross_file) = &cross_file
            && write_cross_file(cross_file, format) == *value
        {
            self.object.shift_remove("crossfile_context");
        }
        Ok(cross_file)
    }

    /// Returns the task with its position in the file and the fields that were not taken.
    fn finish(self, task: Task) -> Task {
        Task { row: self.at.row, line: self.at.line, extra: self.object.into(), ..task }
    }

    fn repo_eval(mut self) -> Result<Task> {
        let metadata = self.take_metadata()?;
        let fields = self.fields("metadata.", &metadata);
        let names = fields.strings("fpath_tuple")?;
        // Joined like Python's `os.path.join`.
        let rest = names.get(1..).unwrap_or_default();
        let named: Vec<&str> = rest.iter().copied().filter(|name| !name.is_empty()).collect();
        let absolute = named.iter().find(|name| name.starts_with('/'));
        let below = absolute.map_or_else(|| named.join("/"), |name| (*name).to_owned());
        let names = match names[..] {
            [repository, _, ..] => {
                path_names(&below).map(|names| [vec![repository], names].concat())
            }
            _ => Ok(names),
        };
        let (repository, path) = source_file(&fields, "fpath_tuple", names)?;
        let context_start = fields.count(&["context_start_lineno"])?;
        let line_no = fields.count(&["line_no", "lineno"])?;
        check_order(&fields, context_start, line_no)?;
        let id = fields.string("task_id")?.to_owned();
        let ground_truth = fields.string("ground_truth")?.to_owned();
        let prompt = self.take_text("prompt")?.into();
        // This format does not define these fields, so any value is valid and is kept. A value is used if it has the type that
        // other formats use.
        let text = |name: &str| self.object.get(name)?.as_str().map(SharedText::from);
        let mut task = Task {
            format: Format::RepoEval,
            id,
            repository,
            path,
            context_start,
            line_no,
            ground_truth,
            prompt,
            metadata: metadata.into(),
            right_context: text("right_context"),
            full_left_context: text("full_left_context"),
            full_right_context: text("full_right_context"),
            ..Task::default()
        };
        let cross_file = self.object.get("crossfile_context");
        task.cross_file = cross_file.and_then(|v| read_cross_file(v, task.language()).ok()?);
        Ok(self.finish(task))
    }

    /// Reads the fields that the three formats with a top-level `groundtruth` share.
    fn contexts(&mut self, task: Task) -> Result<Task> {
        let prompt = self.take_text("prompt")?.into();
        let ground_truth = self.take_text("groundtruth")?;
        Ok(Task {
            prompt,
            ground_truth,
            // Every program writes this field; models without fill-in-the-middle do not need it.
            right_context: self.take_optional("right_context")?,
            full_left_context: self.take_optional("full_left_context")?,
            full_right_context: self.take_optional("full_right_context")?,
            cross_file: self.take_cross_file(task.language(), task.format)?,
            ..task
        })
    }

    /// Reads a task of Repoformer. `path_field` is the field with the file's path; it differs for training instances, which can
    /// also be read as tasks.
    fn repoformer(mut self, path_field: &str) -> Result<Task> {
        let metadata = self.take_metadata()?;
        let fields = self.fields("metadata.", &metadata);
        let id = fields.task_id()?;
        let file = fields.string(path_field)?;
        let (repository, path) =
            source_file(&fields, path_field, path_names_with_repository(file))?;
        // Written by a conversion; used only if no other field shows how much the prompt leaves out.
        let kept = fields.optional_count("context_start_lineno")?.unwrap_or(0);
        let format = Format::Repoformer;
        let metadata = metadata.into();
        let task = Task { format, id, repository, path, metadata, ..Task::default() };
        let mut task = self.contexts(task)?;
        let shown = line_ends(&task.prompt);
        (task.context_start, task.line_no) = match &task.full_left_context {
            Some(left) => {
                let line_no = line_ends(left);
                (line_no.saturating_sub(shown), line_no)
            }
            None => (kept, kept + shown),
        };
        Ok(self.finish(task))
    }

    fn cross_code_eval(mut self) -> Result<Task> {
        let metadata = self.take_metadata()?;
        let fields = self.fields("metadata.", &metadata);
        let id = fields.task_id()?;
        let repository = fields.string("repository")?;
        let names = path_names(fields.string("file")?);
        let names = names.map(|names| [vec![repository], names].concat());
        let (repository, path) = source_file(&fields, "file", names)?;
        let context_start = fields.count(&["context_start_lineno"])?;
        let line_no = fields.count(&["groundtruth_start_lineno"])?;
        check_order(&fields, context_start, line_no)?;
        let task = self.contexts(Task {
            format: Format::CrossCodeEval,
            id,
            repository,
            path,
            context_start,
            line_no,
            metadata: metadata.into(),
            ..Task::default()
        })?;
        Ok(self.finish(task))
    }

    fn cross_code_long_eval(mut self) -> Result<Task> {
        let metadata = self.take_metadata()?;
        let id = self.fields("metadata.", &metadata).task_id()?;
        let format = Format::CrossCodeLongEval;
        let task =
            self.contexts(Task { format, id, metadata: metadata.into(), ..Task::default() })?;
        Ok(self.finish(task))
    }

    /// Reads a task of RepoBench. Its left context is the import statement and the cropped code, joined as in RepoBench's own
    /// prompt.
    fn repo_bench(mut self) -> Result<Task> {
        let name = self.take_text("repo_name")?;
        let file = self.take_text("file_path")?;
        let folder = name.replace('/', "_");
        let names = path_names(&file).map(|names| [vec![folder.as_str()], names].concat());
        let (repository, path) = source_file(&self.top(), "file_path", names)?;
        let fragments = snippets(&self.top())?;
        let cropped = self.take_text("cropped_code")?;
        let imports = self.take_text("import_statement")?;
        let whole = self.take_optional("all_code")?;
        let mut task = Task {
            format: Format::RepoBench,
            id: format!("{name}/{}", self.at.row),
            repository,
            path,
            ground_truth: self.take_text("next_line")?,
            prompt: format!("{imports}\n{cropped}\n").into(),
            ..Task::default()
        };
        task.cross_file = Some(CrossFile::new(fragments, task.language()));
        self.object.shift_remove("context");
        task.full_left_context =
            whole.and_then(|all| before_hole(&all, &cropped, &task.ground_truth));
        task.line_no = line_ends(task.full_left_context.as_deref().unwrap_or(&task.prompt));
        task.metadata = task.adapted_metadata().into();
        Ok(self.finish(task))
    }

    /// Reads a task of ReccEval, whose `fpath` begins with the folder of the package.
    fn recc_eval(mut self) -> Result<Task> {
        let package = self.take_text("pkg")?;
        let file = self.take_text("fpath")?;
        let (repository, path) =
            source_file(&self.top(), "fpath", path_names_with_repository(&file))?;
        let prompt: SharedText = self.take_text("input")?.into();
        let mut task = Task {
            format: Format::ReccEval,
            id: format!("{package}/{}", self.at.row),
            repository,
            path,
            line_no: line_ends(&prompt),
            ground_truth: self.take_text("gt")?,
            prompt,
            ..Task::default()
        };
        task.metadata = task.adapted_metadata().into();
        Ok(self.finish(task))
    }
}

impl Task {
    /// Returns the metadata of a task in CrossCodeEval's format, without the start of the right context. Read-only formats use
    /// the same metadata.
    pub(super) fn adapted_metadata(&self) -> Object {
        object_of(json!({
            "task_id": self.id, "repository": self.repository, "file": self.file_in_repository(),
            "context_start_lineno": self.context_start, "groundtruth_start_lineno": self.line_no,
        }))
    }
}

fn check_order(fields: &Fields<'_>, context_start: usize, line_no: usize) -> Result<()> {
    if context_start <= line_no {
        return Ok(());
    }
    Err(fields.error(format!(
        "field 'metadata.context_start_lineno' ({context_start}) is after the hole's line ({line_no})"
    )))
}

/// Returns the repository (the first name) and the `/`-joined path of a task's file.
fn source_file(
    fields: &Fields<'_>,
    name: &str,
    names: Result<Vec<&str>, PathError>,
) -> Result<(String, String)> {
    let names = names.and_then(|names| {
        PathError::check(names.first().copied().unwrap_or_default())?;
        Ok(names)
    });
    let names =
        names.map_err(|e| fields.error(format!("field '{}{name}' {e}", fields.prefix())))?;
    match &names[..] {
        [repository, _, ..] => Ok(((*repository).to_owned(), names.join("/"))),
        _ => Err(fields.error(if name == "fpath_tuple" {
            "field 'metadata.fpath_tuple' must be [repository, folder, …, file]".to_owned()
        } else {
            format!("field '{}{name}' must be repository/folder/…/file", fields.prefix())
        })),
    }
}

/// Reads a `crossfile_context` in any form: a text, an object with text and list, or null. The error describes what is wrong.
pub fn read_cross_file(value: &Value, language: Language) -> Result<Option<CrossFile>, String> {
    let object = match value {
        Value::Null => return Ok(None),
        Value::String(text) => {
            return Ok(Some(CrossFile { text: text.clone(), fragments: Vec::new() }));
        }
        Value::Object(object) => object,
        other => {
            return Err(format!(
                "field 'crossfile_context' must be a string or an object, not {}",
                jsonl::kind(other)
            ));
        }
    };
    let wrong = |field: String, wanted: &str, found: &Value| {
        format!("field 'crossfile_context.{field}' must be {wanted}, not {}", jsonl::kind(found))
    };
    let fragments = match object.get("list") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            let read = |(number, item): (usize, &Value)| {
                read_fragment(item).map_err(|(field, wanted, found)| {
                    wrong(format!("list[{number}]{field}"), wanted, found)
                })
            };
            list.iter().enumerate().map(read).collect::<Result<_, _>>()?
        }
        Some(other) => return Err(wrong("list".into(), "a list", other)),
    };
    match object.get("text") {
        Some(Value::String(text)) => Ok(Some(CrossFile { text: text.clone(), fragments })),
        None | Some(Value::Null) => Ok(Some(CrossFile::new(fragments, language))),
        Some(other) => Err(wrong("text".into(), "a string", other)),
    }
}

/// Reads one fragment of the list. The error is the wrong field, the expected type, and the value.
fn read_fragment(item: &Value) -> Result<CrossFileFragment, (&'static str, &'static str, &Value)> {
    let Value::Object(object) = item else {
        return Err(("", "an object", item));
    };
    let text = |name: &str, field| match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err((field, "a string", other)),
        None => Err((field, "a string", &Value::Null)),
    };
    let score = match object.get("score") {
        None | Some(Value::Null) => None,
        Some(value) => match value.as_f64() {
            Some(score) => Some(score),
            None => return Err((".score", "a number", value)),
        },
    };
    Ok(CrossFileFragment {
        path: text("filename", ".filename")?,
        text: text("retrieved_chunk", ".retrieved_chunk")?,
        score,
    })
}

/// Returns a `crossfile_context` in the form of a format.
pub fn write_cross_file(cross_file: &CrossFile, format: Format) -> Value {
    let is_text = match format {
        Format::Repoformer => true,
        Format::CrossCodeLongEval => cross_file.fragments.is_empty(),
        _ => false,
    };
    if is_text {
        return Value::String(cross_file.text.clone());
    }
    let fragment = |fragment: &CrossFileFragment| {
        json!({
            "retrieved_chunk": fragment.text, "filename": fragment.path, "score": fragment.score,
        })
    };
    let list: Vec<Value> = cross_file.fragments.iter().map(fragment).collect();
    json!({"text": cross_file.text, "list": list})
}

/// Reads RepoBench's snippets of other files.
fn snippets(top: &Fields<'_>) -> Result<Vec<cross_file::CrossFileFragment>> {
    let mut fragments = Vec::new();
    for (number, item) in top.list("context")?.iter().enumerate() {
        let Value::Object(item) = item else {
            return Err(top.error(format!(
                "field 'context[{number}]' must be an object, not {}",
                jsonl::kind(item)
            )));
        };
        let prefix = format!("context[{number}].");
        let fields = top.below(&prefix, item);
        fragments.push(CrossFileFragment {
            path: fields.string("path")?.to_owned(),
            text: fields.string("snippet")?.to_owned(),
            score: None,
        });
    }
    Ok(fragments)
}

/// Returns the text of a file up to the end of the cropped code. If the code occurs several times, the last occurrence that the
/// target follows is used, otherwise the last one. `None` if the file does not contain the code.
fn before_hole(all: &str, cropped: &str, target: &str) -> Option<SharedText> {
    let line_end = |at: usize| match all[at..].strip_prefix('\n') {
        Some(_) => at + 1,
        None => at,
    };
    let mut ends = all.rmatch_indices(cropped).map(|(at, _)| line_end(at + cropped.len()));
    let last = ends.next()?;
    let end = std::iter::once(last)
        .chain(ends)
        .find(|end| all[*end..].starts_with(target))
        .unwrap_or(last);
    Some(all[..end].into())
}
