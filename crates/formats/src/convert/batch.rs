//! Conversion of prompts to batch requests, and of the responses, in any order, to predictions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use foldhash::{HashMap, HashSet};
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Format, NumberedRecords, Task, TaskSet};
use repoformer_models::batch::{
    BatchSettings, Response, SEPARATOR, custom_id, parse_custom_id, request,
};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{Fields, Object, RecordAddress};
use serde_json::{Value, json};

use super::stream::{Conversion, Emit, TargetFormat, each, other_kind};

/// Converts prompts, or tasks with their own left contexts, to batch requests. The `custom_id` of a request comes from
/// [`custom_id`] for the prompt's `metadata.row` (and `sample`), or for its position in the file if it has no row. If
/// `sampling` has no stop texts, the stop texts of the prompt's style (`metadata.stop`) apply.
///
/// # Errors
/// The file cannot be read, or `emit` returns an error.
pub fn requests(path: &Path, sampling: &BatchSettings, emit: &mut Emit<'_>) -> Result<Conversion> {
    let mut seen = HashSet::default();
    each(path, emit, |at, object| {
        let (id, prompt, stop) = match RecordKind::from_record(&object) {
            Some(RecordKind::Prompt | RecordKind::Task(Format::RepoEval)) => {
                prompt(path, at, &object)?
            }
            Some(RecordKind::Task(_)) => {
                let task = Task::from_record(path, at, object)?;
                (custom_id(task.row, 0), task.prompt.to_string(), Vec::new())
            }
            _ => {
                let to = TargetFormat::Records(RecordKind::BatchRequest);
                return Err(other_kind(path, at.line, &object, to));
            }
        };
        if !seen.insert(id.clone()) {
            let reason = format!(
                "an earlier prompt has the same custom_id {id:?}, because both have the same 'metadata.row'"
            );
            return Err(Error::record(path, at.line, reason));
        }
        let stop = if sampling.stop.is_empty() { stop } else { sampling.stop.clone() };
        Ok(Some(request(&id, &prompt, &BatchSettings { stop, ..sampling.clone() })))
    })
}

/// Returns the request's id, the prompt, and its stop texts.
fn prompt(
    path: &Path,
    at: RecordAddress,
    object: &Object,
) -> Result<(String, String, Vec<String>)> {
    RecordKind::Prompt.check(path, at.line, object)?;
    let fields = Fields::new(path, at.line, "", object);
    let metadata = fields.below("metadata.", fields.object("metadata")?);
    let count = |name| metadata.optional_count(name);
    let id = custom_id(count("row")?.unwrap_or(at.row), count("sample")?.unwrap_or(0));
    let stop = if metadata.has("stop") { metadata.strings("stop")? } else { Vec::new() };
    let stop = stop.into_iter().map(str::to_owned).collect();
    Ok((id, fields.string("prompt")?.to_owned(), stop))
}

/// Collector of the responses to the requests of tasks, in any order.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    tasks: &'a TaskSet,
    by_row: HashMap<usize, usize>,
    by_id: HashMap<&'a str, Vec<usize>>,
    /// Texts for each task, by the number of their prompt.
    texts: Vec<BTreeMap<usize, Vec<String>>>,
    /// Answers that only numbers assign to their tasks.
    numbered: NumberedRecords,
}

impl<'a> Answers<'a> {
    pub(super) fn new(tasks: &'a TaskSet) -> Self {
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::default();
        for (place, task) in tasks.tasks().iter().enumerate() {
            by_id.entry(&task.id).or_default().push(place);
        }
        let rows = tasks.tasks().iter().map(|task| task.row);
        Self {
            tasks,
            by_row: rows.zip(0..).collect(),
            by_id,
            texts: vec![BTreeMap::new(); tasks.tasks().len()],
            numbered: NumberedRecords::default(),
        }
    }

    /// Returns the answers that only numbers assign to their tasks.
    pub(super) fn numbered_records(&self) -> &NumberedRecords {
        &self.numbered
    }

    /// Adds the response at a line of a file. It belongs to the task whose row its `custom_id` names, or else to the only task
    /// with that id.
    pub(super) fn take(&mut self, path: &Path, line: usize, object: &Object) -> Result<()> {
        let Response { custom_id, texts } = Response::read(path, line, object)?;
        let error = |reason: String| Error::record(path, line, reason);
        let named = parse_custom_id(&custom_id)
            .and_then(|(row, sample)| Some((*self.by_row.get(&row)?, sample)));
        let same_id = self.by_id.get(custom_id.as_str()).map(Vec::as_slice);
        let (place, sample) = match (named, same_id.unwrap_or_default()) {
            (Some(named), _) => named,
            (None, [only]) => (*only, 0),
            (None, []) => {
                let file = self.tasks.path.display();
                return Err(error(format!("custom_id {custom_id:?} belongs to no task in {file}")));
            }
            (None, several) => {
                let several = several.len();
                return Err(error(format!("{several} tasks have the id {custom_id:?}")));
            }
        };
        match self.texts[place].entry(sample) {
            Entry::Vacant(answer) => {
                answer.insert(texts);
            }
            Entry::Occupied(_) => {
                return Err(error(format!("custom_id {custom_id:?} was answered before")));
            }
        }
        // The digest after a row comes from a request, which is not available here.
        self.numbered.add(custom_id.split(SEPARATOR).next().unwrap_or(&custom_id));
        Ok(())
    }

    /// Emits the predictions in the order of the tasks; tasks without one are reported as problems.
    pub(super) fn emit(
        self,
        to: RecordKind,
        conversion: &mut Conversion,
        emit: &mut Emit<'_>,
    ) -> Result<()> {
        for (task, answers) in self.tasks.tasks().iter().zip(self.texts) {
            if answers.is_empty() {
                let problem = self.tasks.error(task, "it has no answer");
                keep(&mut conversion.problems, &self.tasks.path, problem);
                continue;
            }
            let texts: Vec<String> = answers.into_values().flatten().collect();
            emit(&match to {
                RecordKind::RepoCoderPrediction => {
                    json!({"prompt": *task.prompt, "metadata": metadata(task), "choices": choices(&texts)})
                }
                _ => json!({"task_id": task.id, "pred": pred(texts), "metadata": metadata(task)}),
            })?;
            conversion.records += 1;
        }
        Ok(())
    }
}

/// Returns CrossCodeEval's `pred`: a string for one sample, a list for several.
pub(super) fn pred(mut texts: Vec<String>) -> Value {
    match texts.len() {
        1 => texts.swap_remove(0).into(),
        _ => texts.into(),
    }
}

/// Returns RepoCoder's `choices`.
pub(super) fn choices(texts: &[String]) -> Value {
    texts.iter().map(|text| json!({ "text": text })).collect()
}

/// Returns a task's metadata as RepoCoder's programs read it, if the task names a file.
pub(super) fn metadata(task: &Task) -> Value {
    let written = task.to_format(Format::RepoEval);
    let metadata = written.map(|mut written| written.record["metadata"].take());
    let mut metadata = metadata.unwrap_or_else(|_| task.metadata.to_object().into());
    metadata["row"] = task.row.into();
    metadata
}
