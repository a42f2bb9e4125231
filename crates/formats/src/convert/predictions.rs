//! Conversion of predictions between RepoCoder's and CrossCodeEval's records.

use std::path::Path;

use foldhash::HashMap;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::lm_eval;
use repoformer_evaluate::predictions::{TaskIndex, TaskMatch, samples, warning};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{Fields, Object};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::Value;

use super::batch::{Answers, choices, metadata, pred};
use super::deveval::place_body;
use super::stream::{Conversion, Emit, TargetFormat, each, other_kind};

/// Converts predictions to `choices` (RepoCoder's) or `pred` (CrossCodeEval's; a list for several samples). All other fields
/// are kept. Batch responses become predictions too, in the order of the tasks: a response belongs to the task whose row its
/// `custom_id` names ([`custom_id`](repoformer_models::batch::custom_id)), or else to the only task with that id. Samples of
/// lm-evaluation-harness are read as RepoCoder's.
///
/// RepoCoder's records identify their task by its metadata and contain its prompt. If a record of CrossCodeEval has neither,
/// both come from `tasks`; the metadata is then RepoEval's, and `row` identifies the task. If there are tasks, every record is
/// joined with its task as in [`repoformer_evaluate::predictions::read`].
///
/// # Errors
/// The file cannot be read, its records show that they belong to other tasks, or `emit` returns an error.
pub fn predictions(
    path: &Path,
    to: RecordKind,
    tasks: Option<&TaskSet>,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
    let index = tasks.map(TaskIndex::new);
    let mut turns = vec![0; index.as_ref().map_or(0, |index| index.groups.len())];
    let (mut answers, mut named) = (None, None);
    let mut conversion = each(path, emit, |at, object| {
        let line = at.line;
        let object = lm_eval::as_prediction(path, line, object)?;
        let mut find = |object: &Object| -> Result<_> {
            let (Some(set), Some(index)) = (tasks, &index) else {
                return Ok(None);
            };
            let place = match index.find(path, line, object)? {
                TaskMatch::Task(place) => place,
                TaskMatch::Alike(group) => {
                    let alike = &index.groups[group];
                    turns[group] += 1;
                    let place = alike.get(turns[group] - 1).copied();
                    place.ok_or_else(|| too_many(path, line, alike.len()))?
                }
            };
            Ok(Some(&set.tasks()[place]))
        };
        let record = match (RecordKind::from_record(&object), to) {
            (Some(RecordKind::BatchResponse), _) => {
                let tasks = tasks.ok_or_else(|| Error::record(path, line, no_tasks()))?;
                let answers = answers.get_or_insert_with(|| Answers::new(tasks));
                return answers.take(path, line, &object).map(|()| None);
            }
            (Some(RecordKind::DevEvalCompletion), RecordKind::CrossCodeEvalPrediction) => {
                let tasks = tasks.ok_or_else(|| Error::record(path, line, no_indent()))?;
                let named = named.get_or_insert_with(|| TasksById::new(tasks));
                of_dev_eval(path, line, object, named)?
            }
            (Some(RecordKind::RepoCoderPrediction), RecordKind::CrossCodeEvalPrediction) => {
                let task = find(&object)?;
                to_cross_code_eval(path, line, object, task)?
            }
            (Some(RecordKind::CrossCodeEvalPrediction), RecordKind::RepoCoderPrediction) => {
                let task = find(&object)?;
                to_repo_coder(path, line, object, task)?
            }
            (Some(kind), _) if kind == to => {
                find(&object)?;
                samples(path, line, &object)?;
                Value::Object(object)
            }
            _ => return Err(other_kind(path, line, &object, TargetFormat::Records(to))),
        };
        Ok(Some(record))
    })?;
    if let Some(index) = index {
        conversion.warnings.extend(warning(path, &index.finish(path)?).map(Into::into));
    }
    if let Some(answers) = answers {
        let numbered = answers.numbered_records().warning(path.display(), None);
        conversion.warnings.extend(numbered.map(Into::into));
        answers.emit(to, &mut conversion, emit)?;
    }
    Ok(conversion)
}

fn no_tasks() -> Message {
    let reason = "batch responses do not contain their tasks; the ";
    message![reason, UserChoice::TasksFile, " of the requests is needed"]
}

fn no_indent() -> Message {
    let reason = "completions of DevEval need the indentation of their tasks; the ";
    message![reason, UserChoice::TasksFile, " is needed"]
}

/// Tasks of a set, by their ids.
struct TasksById<'t> {
    path: &'t Path,
    /// First task of each id.
    tasks: HashMap<&'t str, &'t Task>,
}

impl<'t> TasksById<'t> {
    fn new(set: &'t TaskSet) -> Self {
        // Of tasks with one id, the last that is inserted stays.
        let tasks = set.tasks().iter().rev().map(|task| (task.id.as_str(), task)).collect();
        Self { path: &set.path, tasks }
    }
}

/// Returns a completion of DevEval or EvoCodeBench, placed as `pass_k.py` places it.
fn of_dev_eval(
    path: &Path,
    line: usize,
    mut object: Object,
    known: &TasksById<'_>,
) -> Result<Value> {
    RecordKind::DevEvalCompletion.check(path, line, &object)?;
    let fields = Fields::new(path, line, "", &object);
    let (namespace, completion) = (fields.string("namespace")?, fields.string("completion")?);
    let refused = |what: String| Err(fields.error(format!("task {namespace:?} {what}")));
    let Some(task) = known.tasks.get(namespace) else {
        return refused(format!("is not in {}", known.path.display()));
    };
    let indent = task.metadata.get("indent").and_then(|indent| indent.as_u64());
    let Some(indent) = indent.filter(|indent| *indent <= MOST_INDENT) else {
        return refused(format!("needs 'metadata.indent', from 0 to {MOST_INDENT}"));
    };
    let mut record = Object::new();
    record.insert("task_id".into(), namespace.into());
    record.insert("pred".into(), place_body(completion, indent as usize).into());
    for name in ["namespace", "completion"] {
        object.shift_remove(name);
    }
    for (name, value) in object {
        record.entry(name).or_insert(value);
    }
    Ok(Value::Object(record))
}

/// Greatest number of blanks before a line of a completion. No function is deeper, and a record of short lines must not become
/// far longer.
const MOST_INDENT: u64 = 200;

fn too_many(path: &Path, line: usize, alike: usize) -> Error {
    let reason = format!(
        "{alike} tasks match this prediction, and as many predictions precede it; add metadata.row"
    );
    Error::record(path, line, reason)
}

fn to_cross_code_eval(
    path: &Path,
    line: usize,
    mut object: Object,
    task: Option<&Task>,
) -> Result<Value> {
    let texts = samples(path, line, &object)?;
    let fields = Fields::new(path, line, "", &object);
    let task_id = match (fields.has("task_id"), task) {
        (true, _) => fields.task_id()?,
        (false, Some(task)) => task.id.clone(),
        (false, None) => fields.below("metadata.", fields.object("metadata")?).task_id()?,
    };
    // If a choice has fields in addition to its text, the choices are kept in the record.
    let bare = |choice: &Value| choice.as_object().is_some_and(|choice| choice.len() == 1);
    if fields.list("choices")?.iter().all(bare) {
        object.shift_remove("choices");
    }
    let mut record = Object::new();
    record.insert("task_id".into(), task_id.into());
    record.insert("pred".into(), pred(texts));
    for (name, value) in object {
        record.entry(name).or_insert(value);
    }
    Ok(Value::Object(record))
}

fn to_repo_coder(
    path: &Path,
    line: usize,
    mut object: Object,
    task: Option<&Task>,
) -> Result<Value> {
    let texts = samples(path, line, &object)?;
    let has_task_id = |metadata: &Value| metadata.get("task_id").is_some();
    let knows_task = object.get("prompt").is_some_and(Value::is_string)
        && object.get("metadata").is_some_and(has_task_id);
    let task = task.filter(|_| !knows_task);
    if !knows_task && task.is_none() {
        let reason = message![
            "its prompt and metadata are not in the record; the ",
            UserChoice::TasksFile,
            " is needed"
        ];
        return Err(Error::record(path, line, reason));
    }
    let kept = object.shift_remove("choices");
    object.shift_remove("pred");
    let mut record = Object::new();
    let (prompt, metadata) = match task {
        Some(task) => (task.prompt.as_str().into(), metadata(task)),
        None => (
            object.shift_remove("prompt").unwrap_or_default(),
            object.shift_remove("metadata").unwrap_or_default(),
        ),
    };
    let named = metadata.get("task_id") == object.get("task_id");
    record.insert("prompt".into(), prompt);
    record.insert("metadata".into(), metadata);
    let kept = kept.filter(|kept| has_texts(kept, &texts));
    record.insert("choices".into(), kept.unwrap_or_else(|| choices(&texts)));
    if named {
        object.shift_remove("task_id");
    }
    for (name, value) in object {
        record.entry(name).or_insert(value);
    }
    Ok(Value::Object(record))
}

/// Returns true if these choices have these texts.
fn has_texts(choices: &Value, texts: &[String]) -> bool {
    let choices = choices.as_array().map(Vec::as_slice).unwrap_or_default();
    let found = choices.iter().map(|choice| choice.get("text")?.as_str());
    found.eq(texts.iter().map(|text| Some(text.as_str())))
}
