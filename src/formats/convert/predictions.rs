//! Predictions between RepoCoder's and CrossCodeEval's records.

use std::path::Path;

use serde_json::{Value, json};

use super::batch::Answers;
use super::{Emit, Outcome, Target as To, each, other_kind};
use crate::error::{Error, Result};
use crate::evaluate::predictions::{TaskIndex, TaskMatch, samples};
use crate::store::jsonl::{Fields, Object};
use crate::task::kind::Kind;
use crate::task::{Format, Task, TaskSet};

/// Converts predictions to `choices` (RepoCoder's) or `pred` (CrossCodeEval's; a list where there are several samples).
/// All other fields are kept. Batch responses become predictions too, in the order of the tasks: an answer belongs to the
/// task whose row its `custom_id` names ([`custom_id`](crate::complete::batch::custom_id)), or else to the only one with it as its id.
///
/// RepoCoder's records name their task by its metadata and hold its prompt: where a record of CrossCodeEval has neither,
/// both come from the `tasks`, joined as [`crate::evaluate::predictions::read`] does; the metadata is then RepoEval's, and `row` says
/// which of the tasks it is.
///
/// # Errors
/// The file cannot be read, or an error of `emit`.
pub fn predictions(
    path: &Path,
    to: Kind,
    tasks: Option<&TaskSet>,
    emit: &mut Emit<'_>,
) -> Result<Outcome> {
    let index = tasks.map(TaskIndex::new);
    let mut turns = vec![0; index.as_ref().map_or(0, |index| index.groups.len())];
    let mut answers = None;
    let mut outcome = each(path, emit, |at, object| {
        let line = at.line;
        match (Kind::of(&object), to) {
            (Some(Kind::BatchResponse), _) => {
                let Some(tasks) = tasks else {
                    let reason = "batch responses do not say whose they are; give the tasks that the requests were made from with --tasks";
                    return Err(Error::record(path, line, reason));
                };
                let answers = answers.get_or_insert_with(|| Answers::new(tasks));
                return answers.take(path, line, &object).map(|()| None);
            }
            (Some(Kind::RepoCoderPrediction), Kind::CrossCodeEvalPrediction) => {
                to_cross_code_eval(path, line, object)
            }
            (Some(Kind::CrossCodeEvalPrediction), Kind::RepoCoderPrediction) => {
                to_repo_coder(path, line, object, |object| {
                    let (Some(set), Some(index)) = (tasks, &index) else {
                        return Ok(None);
                    };
                    let place = match index.find(path, line, object)? {
                        TaskMatch::Task(place) => place,
                        TaskMatch::Alike(group) => {
                            turns[group] += 1;
                            let alike = &index.groups[group];
                            *alike.get(turns[group] - 1).ok_or_else(|| {
                                Error::record(path, line, format!(
                                    "{} tasks are alike in all that this prediction says, and as many came before it; add metadata.row",
                                    alike.len()
                                ))
                            })?
                        }
                    };
                    Ok(Some(&set.tasks[place]))
                })
            }
            (Some(kind), _) if kind == to => {
                samples(path, line, &object)?;
                Ok(Value::Object(object))
            }
            _ => Err(other_kind(path, line, &object, To::Records(to))),
        }
        .map(Some)
    })?;
    if let Some(answers) = answers {
        answers.give(to, &mut outcome, emit)?;
    }
    Ok(outcome)
}

fn to_cross_code_eval(path: &Path, line: usize, mut object: Object) -> Result<Value> {
    let texts = samples(path, line, &object)?;
    let fields = Fields::new(path, line, "", &object);
    let task_id = match object.get("task_id") {
        Some(_) => fields.task_id()?,
        None => Fields::new(path, line, "metadata.", fields.object("metadata")?).task_id()?,
    };
    // What a choice says besides its text is kept in the record.
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

/// One sample is a text, several are a list.
pub(super) fn pred(mut texts: Vec<String>) -> Value {
    match texts.len() {
        1 => texts.swap_remove(0).into(),
        _ => texts.into(),
    }
}

fn to_repo_coder<'a>(
    path: &Path,
    line: usize,
    mut object: Object,
    find: impl FnOnce(&Object) -> Result<Option<&'a Task>>,
) -> Result<Value> {
    let texts = samples(path, line, &json_without_choices(&object))?;
    let knows_task = object.get("prompt").is_some_and(Value::is_string)
        && object
            .get("metadata")
            .and_then(|m| m.get("task_id"))
            .is_some();
    let task = if knows_task { None } else { find(&object)? };
    if !knows_task && task.is_none() {
        return Err(Error::record(
            path,
            line,
            "its prompt and metadata are not in the record; give the tasks with --tasks",
        ));
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
    let choices: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    record.insert(
        "choices".into(),
        kept.filter(|kept| says(kept, &texts))
            .unwrap_or(choices.into()),
    );
    if named {
        object.shift_remove("task_id");
    }
    for (name, value) in object {
        record.entry(name).or_insert(value);
    }
    Ok(Value::Object(record))
}

/// `pred` is asked here, whatever else a record has.
fn json_without_choices(object: &Object) -> Object {
    let pred = object.get("pred").cloned().unwrap_or_default();
    Object::from_iter([("pred".to_owned(), pred)])
}

/// Whether these choices have these texts.
fn says(choices: &Value, texts: &[String]) -> bool {
    let said = choices.as_array().map(Vec::as_slice).unwrap_or_default();
    let said: Vec<Option<&str>> = said.iter().map(|c| c.get("text")?.as_str()).collect();
    said == texts
        .iter()
        .map(|text| Some(text.as_str()))
        .collect::<Vec<_>>()
}

/// A task's metadata as RepoCoder's programs read it, where the task names a file.
pub(super) fn metadata(task: &Task) -> Value {
    let written = task.to_format(Format::RepoEval);
    let metadata = written.map(|mut written| written.record["metadata"].take());
    let mut metadata = metadata.unwrap_or_else(|_| task.metadata.clone().into());
    metadata["row"] = task.row.into();
    metadata
}
