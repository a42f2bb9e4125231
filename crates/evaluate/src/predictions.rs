//! Reading of predictions, and assignment of each to its task.
//!
//! The formats are RepoCoder's (`{"prompt", "metadata": {the task's}, "choices": [{"text"}, …]}`), CrossCodeEval's
//! (`{"task_id", "pred"}`) and the log of samples from lm-evaluation-harness.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_core::completion::{AnswerError, check_answer, check_choice};
use repoformer_core::postprocess::{HoleContext, Recipe};
use repoformer_core::task::fields::MADE;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{NumberedRecords, OtherHole, Task, TaskSet};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Fields, Object};
use repoformer_store::schema::require;
use repoformer_text::names::did_you_mean;
use serde_json::{Value, json};

use super::lm_eval;

/// Predictions joined with their tasks.
#[derive(Debug)]
pub struct JoinedPredictions {
    /// Samples of each task in the set, in the order of the tasks; samples from several records are in the order of the file.
    pub predictions: Vec<Vec<String>>,
    /// Records that cannot be used or belong to no task, in the order of their lines.
    pub problems: Vec<Error>,
    /// Indices in the task set of the tasks without a sample.
    pub missing: Vec<usize>,
    /// Number of samples that are empty texts; they are kept.
    pub empty: usize,
    /// Number of records that answer a prompt changed by lm-evaluation-harness.
    pub changed: usize,
    /// Records that are assigned to their tasks by numbers alone.
    pub numbered: NumberedRecords,
    /// File of the cache from which the predictions were taken; `None` if the user named a file.
    pub cached: Option<PathBuf>,
    /// Steps by which each sample was cut.
    pub cut: Recipe,
}

impl JoinedPredictions {
    /// Returns the predictions of an artifact that does not exist yet.
    pub fn unread(path: PathBuf) -> Self {
        let (predictions, problems, missing) = Default::default();
        let (empty, changed, numbered) = Default::default();
        let (cached, cut) = (Some(path), Recipe::default());
        Self { predictions, problems, missing, empty, changed, numbered, cached, cut }
    }

    /// Keeps the samples of some of the tasks, in order.
    #[must_use]
    pub fn of_tasks(mut self, tasks: &TaskSet, is_kept: impl Fn(&Task) -> bool) -> Self {
        let mut kept = tasks.tasks().iter().map(is_kept);
        self.predictions.retain(|_| kept.next() == Some(true));
        self.count();
        self
    }

    /// Cuts each sample by a recipe.
    #[must_use]
    pub fn cut_by(mut self, tasks: &TaskSet, recipe: Recipe) -> Self {
        for (task, samples) in tasks.tasks().iter().zip(&mut self.predictions) {
            for sample in samples {
                *sample = recipe.apply(HoleContext::new(task), sample).prediction.into_owned();
            }
        }
        self.cut = recipe;
        self.count();
        self
    }

    /// Finds the tasks without a sample, and the empty samples.
    fn count(&mut self) {
        let is_missing = |place: &usize| self.predictions[*place].is_empty();
        self.missing = (0..self.predictions.len()).filter(is_missing).collect();
        self.empty = self.predictions.iter().flatten().filter(|sample| sample.is_empty()).count();
    }

    /// Returns a digest of the samples of one repository's tasks.
    pub fn digest(&self, tasks: &TaskSet, repository: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for number in tasks.numbers_of(repository) {
            let (task, samples) = (&tasks.tasks()[number], &self.predictions[number]);
            hasher.update(&(task.row as u64).to_le_bytes());
            hasher.update(&(samples.len() as u64).to_le_bytes());
            for sample in samples {
                hasher.update(&(sample.len() as u64).to_le_bytes());
                hasher.update(sample.as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Reads predictions (`.jsonl`, gzip, zstd, or `-`) and finds the task of each.
///
/// A record belongs to the task with the same `task_id`, and with the same `fpath_tuple` and `line_no` (or `lineno`) if the
/// record's metadata has them, because benchmark ids repeat. Tasks that are equal in all these fields are distinguished by
/// `metadata.row`. Without it, they receive their records in the order of the files, if there are as many records as tasks.
///
/// # Errors
/// The file cannot be read, or its records show that they belong to other tasks.
pub fn read(path: &Path, tasks: &TaskSet) -> Result<JoinedPredictions> {
    let index = TaskIndex::new(tasks);
    let (mut records, mut changed) = (Vec::new(), 0);
    let mut problems = jsonl::for_each(path, |at, object| {
        let object = lm_eval::as_prediction(path, at.line, object)?;
        let target = index.find(path, at.line, &object)?;
        changed += usize::from(lm_eval::is_changed(&object));
        // Samples are checked later, because a record without samples still counts in the order of equal tasks.
        records.push((at.line, target, samples(path, at.line, &object)));
        Ok(())
    })?;
    let numbered = index.finish(path)?;

    let mut turns = vec![Vec::new(); index.groups.len()];
    for (number, (_, target, _)) in records.iter().enumerate() {
        if let TaskMatch::Alike(group) = target {
            turns[*group].push(number);
        }
    }
    let mut predictions = vec![Vec::new(); tasks.tasks().len()];
    for (number, (line, target, samples)) in records.into_iter().enumerate() {
        let place = match target {
            TaskMatch::Task(place) => Ok(place),
            TaskMatch::Alike(group) => {
                let (alike, turn) = (&index.groups[group], &turns[group]);
                match turn.binary_search(&number) {
                    Ok(nth) if turn.len() == alike.len() => Ok(alike[nth]),
                    _ => Err(Error::record(
                        path,
                        line,
                        format!(
                            "{} tasks share the id {:?}, file and line, and {} predictions match \
                             them; add metadata.row, the task's 0-based position in its file",
                            alike.len(),
                            tasks.tasks()[alike[0]].id,
                            turn.len()
                        ),
                    )),
                }
            }
        };
        match place.and_then(|place| Ok((place, samples?))) {
            Ok((place, samples)) => predictions[place].extend(samples),
            Err(problem) => keep(&mut problems, path, problem),
        }
    }
    problems.sort_by_key(|problem| match problem {
        Error::Record { line, .. } => *line,
        Error::Further { .. } => usize::MAX,
        _ => 0,
    });
    let (missing, empty) = (Vec::new(), 0);
    let (cached, cut) = (None, Recipe::default());
    let mut joined =
        JoinedPredictions { predictions, problems, missing, empty, changed, numbered, cached, cut };
    joined.count();
    Ok(joined)
}

/// Returns a warning about records of predictions, prompts or probabilities that are assigned to their tasks by numbers alone;
/// `None` if there are no such records.
pub fn warning(path: &Path, numbered: &NumberedRecords) -> Option<String> {
    numbered.warning(path.display(), Some("the task's `prompt` or target"))
}

/// Returns the samples of one record: `choices[].text`, or `pred` as a text or a list of texts; none if a choice failed.
pub fn samples(path: &Path, line: usize, object: &Object) -> Result<Vec<String>> {
    let fields = Fields::new(path, line, "", object);
    check_record(object).map_err(|failed| fields.error(failed.to_string()))?;
    match RecordKind::from_record(object) {
        Some(kind @ (RecordKind::CrossCodeEvalPrediction | RecordKind::Pair)) => {
            kind.check(path, line, object)?;
        }
        _ if fields.has("choices") => RecordKind::RepoCoderPrediction.check(path, line, object)?,
        _ => require(path, line, MADE, object)?,
    }
    let read_pred = || match object.get("pred") {
        Some(Value::Array(_)) => fields.strings("pred"),
        _ => fields.string("pred").map(|text| vec![text]),
    };
    let said = |name: &str| object.get(name).filter(|value| !value.is_null());
    let (name, samples) = match (said("choices"), said("pred")) {
        (Some(_), pred) => {
            let mut texts = Vec::new();
            for (number, choice) in fields.list("choices")?.iter().enumerate() {
                let prefix = format!("choices[{number}].");
                check_choice(choice, number).map_err(|failed| fields.error(failed.to_string()))?;
                let Value::Object(choice) = choice else { continue };
                texts.push(fields.below(&prefix, choice).string("text")?.to_owned());
            }
            if pred.is_some() && read_pred()? != texts {
                return Err(fields.error(
                    "fields 'choices' and 'pred' have different texts: remove one of them",
                ));
            }
            ("choices", texts)
        }
        (None, Some(_)) => ("pred", read_pred()?.into_iter().map(str::to_owned).collect()),
        (None, None) if object.contains_key("next_token") => {
            return Err(fields.error("contains the probability of a token, not a completion"));
        }
        (None, None) => return Err(fields.error("field 'choices' or 'pred' is missing")),
    };
    if samples.is_empty() {
        return Err(fields.error(format!("field '{name}' is empty: no sample")));
    }
    Ok(samples)
}

/// Checks that a record with completions does not also report a failure.
fn check_record(record: &Object) -> std::result::Result<(), AnswerError> {
    let reporting = ["error", "errors", "success", "object"].into_iter();
    let reported = reporting.filter_map(|name| Some((name.to_owned(), record.get(name)?.clone())));
    check_answer(&reported.collect())?;
    match record.get("finish_reason") {
        Some(reason) => check_choice(&json!({"finish_reason": reason}), 0),
        None => Ok(()),
    }
}

/// Returns the target in a record of RepoEval, another benchmark or a pair. Returns `None` for results of CrossCodeEval's
/// program, which contain identifiers (`target_ids`) and a cut target.
fn target_of(record: &Object) -> Option<&str> {
    if record.contains_key("target_ids") || record.contains_key("pred_ids") {
        return None;
    }
    let of_metadata = record.get("metadata").and_then(|metadata| metadata.get("ground_truth"));
    let fields = ["groundtruth", "ground_truth", "target"].map(|name| record.get(name));
    of_metadata.into_iter().chain(fields.into_iter().flatten()).find_map(Value::as_str)
}

/// Task that a record belongs to.
pub enum TaskMatch {
    /// Task with this index in the set.
    Task(usize),
    /// One task of the group with this index; only the order of records distinguishes these tasks.
    Alike(usize),
}

/// Index of tasks by the names that predictions use.
pub struct TaskIndex<'a> {
    tasks: &'a TaskSet,
    by_row: HashMap<usize, usize>,
    /// Tasks by id, and by the file and line of their hole, if a record names these.
    by_place: HashMap<PlaceName<'a>, SameName>,
    /// Tasks by id that do not name the place of their hole, so that every place fits.
    unplaced: HashMap<&'a str, SameName>,
    /// Indices in the task set of the tasks of each group.
    pub groups: Vec<Vec<usize>>,
    /// Tasks of each group whose holes differ, to compare with records.
    compared: OnceCell<Vec<Vec<usize>>>,
    /// True if an unknown id was already compared with the known ones, which takes a while for many tasks.
    is_hinted: Cell<bool>,
    /// First record that belongs to another task than it names: its line, the index of the named task, and the difference.
    other: Cell<Option<(usize, usize, OtherHole)>>,
    others: Cell<usize>,
    numbered: RefCell<NumberedRecords>,
}

/// Largest number of tasks in a group with which a record is compared.
const MOST_COMPARED: usize = 16;

/// Id, with the file and line of a hole if the record names them.
type PlaceName<'a> = (&'a str, Option<String>, Option<usize>);

/// Tasks with the same name.
#[derive(Debug)]
struct SameName {
    /// Index of the first task.
    first: usize,
    count: usize,
    /// Group of the tasks, if all have the same id, file and line.
    group: Option<usize>,
}

impl SameName {
    fn add(same: Option<Self>, place: usize, group: usize) -> Self {
        match same {
            None => Self { first: place, count: 1, group: Some(group) },
            Some(Self { first, count, group: own }) => {
                Self { first, count: count + 1, group: own.filter(|own| *own == group) }
            }
        }
    }
}

impl<'a> TaskIndex<'a> {
    /// Builds the index of a task set.
    pub fn new(tasks: &'a TaskSet) -> Self {
        let mut index = Self {
            tasks,
            by_row: HashMap::default(),
            by_place: HashMap::default(),
            unplaced: HashMap::default(),
            groups: Vec::new(),
            compared: OnceCell::new(),
            is_hinted: Cell::default(),
            other: Cell::default(),
            others: Cell::default(),
            numbered: RefCell::default(),
        };
        let mut known = HashMap::default();
        for (place, task) in tasks.tasks().iter().enumerate() {
            index.by_row.insert(task.row, place);
            let (id, file) = (task.id.as_str(), as_folder(&task.path));
            let key = (id, file.clone(), task.line_no);
            let group = *known.entry(key).or_insert(index.groups.len());
            if has_place(task) {
                for file in [None, Some(file)] {
                    for line in [None, Some(task.line_no)] {
                        let name = (id, file.clone(), line);
                        let same = index.by_place.remove(&name);
                        index.by_place.insert(name, SameName::add(same, place, group));
                    }
                }
            } else {
                let same = index.unplaced.remove(id);
                index.unplaced.insert(id, SameName::add(same, place, group));
            }
            if group == index.groups.len() {
                index.groups.push(Vec::new());
            }
            index.groups[group].push(place);
        }
        index
    }

    fn compared(&self) -> &[Vec<usize>] {
        let marks = self.tasks.marks();
        let different = |group: &Vec<usize>| {
            let mut kept: Vec<usize> = Vec::new();
            for place in group {
                if kept.len() < MOST_COMPARED && kept.iter().all(|one| marks[*one] != marks[*place])
                {
                    kept.push(*place);
                }
            }
            kept
        };
        self.compared.get_or_init(|| self.groups.iter().map(different).collect())
    }

    /// Finds the task that a record names, and checks that the record's target or prompt, if it has one, belongs to that task.
    ///
    /// # Errors
    /// The record names no task of the set, several tasks, or a task with other texts.
    pub fn find(&self, path: &Path, line: usize, object: &Object) -> Result<TaskMatch> {
        let name = TaskReference::read(path, line, object)?;
        let found = self.match_reference(&name, path, line, object)?;
        let places = match &found {
            TaskMatch::Task(place) => std::slice::from_ref(place),
            TaskMatch::Alike(group) => &self.compared()[*group],
        };
        let prompt =
            ["prompt", "prompt_used"].into_iter().find_map(|name| object.get(name)?.as_str());
        let prompt = prompt.filter(|prompt| !prompt.is_empty());
        let target = target_of(object);
        let marks = places.iter().map(|place| self.tasks.marks()[*place].check(target, prompt));
        let checked: Result<Vec<bool>, OtherHole> = marks.collect();
        match checked {
            Ok(compared) => {
                let is_placed = name.has_place() && has_place(&self.tasks.tasks()[places[0]]);
                if !compared.contains(&true) && !is_placed {
                    let mut numbered = self.numbered.borrow_mut();
                    match (&name.id, name.row) {
                        (Some(id), _) => numbered.add(id),
                        (None, row) => row.into_iter().for_each(|row| numbered.add_row(row)),
                    }
                }
                Ok(found)
            }
            Err(difference) => {
                let place = places[0];
                self.other.set(self.other.get().or(Some((line, place, difference))));
                self.others.update(|n| n + 1);
                Err(self.other_task(path, (line, place, difference), 1))
            }
        }
    }

    /// Returns the records that are assigned to their tasks by numbers alone.
    ///
    /// # Errors
    /// A record belongs to another task than it names.
    pub fn finish(&self, path: &Path) -> Result<NumberedRecords> {
        match self.others(path) {
            Some(others) => Err(others),
            None => Ok(self.numbered_records()),
        }
    }

    /// Returns the error for a file whose records belong to other tasks than they name; `None` if there are no such records.
    pub(crate) fn others(&self, path: &Path) -> Option<Error> {
        Some(self.other_task(path, self.other.get()?, self.others.get()))
    }

    /// Returns the records that are assigned to their tasks by numbers alone.
    pub(crate) fn numbered_records(&self) -> NumberedRecords {
        self.numbered.borrow().clone()
    }

    fn other_task(
        &self,
        path: &Path,
        (line, place, difference): (usize, usize, OtherHole),
        count: usize,
    ) -> Error {
        Error::OtherTasks {
            path: path.to_owned(),
            line,
            task_id: self.tasks.tasks()[place].id.clone(),
            tasks: self.tasks.path.clone(),
            difference: difference.as_str(),
            count,
        }
    }

    fn match_reference(
        &self,
        name: &TaskReference,
        path: &Path,
        line: usize,
        object: &Object,
    ) -> Result<TaskMatch> {
        let record = Fields::new(path, line, "", object);
        let unknown =
            |what: String| record.error(format!("{what} is not in {}", self.tasks.path.display()));
        let Some(id) = name.id.as_deref() else {
            return match name.row {
                Some(row) => self.at_row(row, name, &record),
                None => Err(record.error(NO_ID)),
            };
        };
        let placed = self.by_place.get(&(id, name.path.clone(), name.line_no));
        let unplaced = self.unplaced.get(id);
        if unplaced.is_none() && !self.by_place.contains_key(&(id, None, None)) {
            return Err(record.error(format!(
                "task {id:?} is not in {}{}",
                self.tasks.path.display(),
                self.suggest_id(id)
            )));
        }
        let group = match (placed, unplaced) {
            (None, None) => return Err(unknown(format!("task {id:?} at {}", name.place()))),
            (Some(SameName { first, count: 1, .. }), None)
            | (None, Some(SameName { first, count: 1, .. })) => {
                return Ok(TaskMatch::Task(*first));
            }
            (Some(placed), None) => placed.group.filter(|_| name.has_place()),
            (None, Some(unplaced)) => unplaced.group,
            (Some(_), Some(_)) => None,
        };
        match (name.row, group) {
            (Some(row), _) => self.at_row(row, name, &record),
            (None, Some(group)) => Ok(TaskMatch::Alike(group)),
            (None, None) => {
                let count: usize = [placed, unplaced].into_iter().flatten().map(|s| s.count).sum();
                Err(record.error(format!(
                    "{count} tasks have the id {id:?}; add metadata.fpath_tuple and metadata.line_no"
                )))
            }
        }
    }

    /// Returns a hint with the id that was probably meant; only for the first unknown id.
    fn suggest_id(&self, id: &str) -> String {
        if self.is_hinted.replace(true) {
            return String::new();
        }
        let known = self.tasks.tasks().iter().map(|task| task.id.as_str());
        did_you_mean(id, known).map_or(String::new(), |hint| format!("; {hint}"))
    }

    /// Returns the task at a row of the task file, if it is the one that the record names.
    fn at_row(&self, row: usize, name: &TaskReference, record: &Fields<'_>) -> Result<TaskMatch> {
        let Some(&place) = self.by_row.get(&row) else {
            let file = self.tasks.path.display();
            return Err(record.error(format!("task row {row} is not in {file}")));
        };
        let task = &self.tasks.tasks()[place];
        match &name.id {
            Some(id) if *id != task.id => Err(record.error(format!(
                "field 'metadata.row' is {row}, but the task in that row is {:?}, not {id:?}",
                task.id
            ))),
            _ if name.fits(task) => Ok(TaskMatch::Task(place)),
            _ => Err(record.error(format!(
                "field 'metadata.row' is {row}, but the hole in that row is at {}, line_no {}, not at {}",
                task.path,
                task.line_no,
                name.place()
            ))),
        }
    }
}

/// Message for a record that names no task.
const NO_ID: &str = "field 'task_id' or 'metadata.task_id' is missing";

/// Checks that a record names a task, in fields of the right types.
///
/// # Errors
/// The record names no task, or a field is of another type.
pub fn check_reference(path: &Path, line: usize, object: &Object) -> Result<()> {
    match TaskReference::read(path, line, object)? {
        TaskReference { id: None, row: None, .. } => Err(Error::record(path, line, NO_ID)),
        _ => Ok(()),
    }
}

/// Name and place of a task in a record.
struct TaskReference {
    id: Option<String>,
    path: Option<String>,
    line_no: Option<usize>,
    row: Option<usize>,
}

impl TaskReference {
    fn read(path: &Path, line: usize, object: &Object) -> Result<Self> {
        let top = Fields::new(path, line, "", object);
        let empty = Object::new();
        let metadata = if top.has("metadata") { top.object("metadata")? } else { &empty };
        let fields = top.below("metadata.", metadata);
        let id = match (top.has("task_id"), fields.has("task_id")) {
            (false, false) => None,
            (false, true) => Some(fields.task_id()?),
            (true, false) => Some(top.task_id()?),
            (true, true) => {
                let (id, inner) = (top.task_id()?, fields.task_id()?);
                if id != inner {
                    return Err(top.error(
                        "fields 'task_id' and 'metadata.task_id' name different tasks: remove one of them",
                    ));
                }
                Some(id)
            }
        };
        let given = |names: &[&str]| names.iter().any(|name| fields.has(name));
        let count = |names: &[&str]| given(names).then(|| fields.count(names)).transpose();
        let path = given(&["fpath_tuple"]).then(|| fields.strings("fpath_tuple")).transpose()?;
        Ok(Self {
            id,
            path: path.map(|parts| as_folder(&parts.join("/"))),
            line_no: count(&["line_no", "lineno"])?,
            row: count(&["row"])?,
        })
    }

    /// Returns true if a task's hole is at the path and line that this record names, as far as both name them.
    fn fits(&self, task: &Task) -> bool {
        let is_at_line = self.line_no.is_none_or(|own| own == task.line_no);
        let is_in_file = self.path.as_ref().is_none_or(|own| *own == as_folder(&task.path));
        !has_place(task) || is_in_file && is_at_line
    }

    /// Returns true if the record names the place of the hole.
    fn has_place(&self) -> bool {
        self.path.is_some() && self.line_no.is_some()
    }

    fn place(&self) -> String {
        let path = self.path.as_deref().unwrap_or("any file");
        match self.line_no {
            Some(line_no) => format!("{path}, line_no {line_no}"),
            None => path.to_owned(),
        }
    }
}

/// Returns true if a task names the place of its hole; tasks of CrossCodeLongEval do not.
fn has_place(task: &Task) -> bool {
    !task.path.is_empty()
}

/// Replaces the hub's form of a repository's name, `owner--name`, with the folder's, `owner_name`, so that they can be
/// compared: function files use both forms.
fn as_folder(path: &str) -> String {
    match path.split_once('/') {
        Some((repository, rest)) => format!("{}/{rest}", repository.replace("--", "_")),
        None => path.replace("--", "_"),
    }
}

#[cfg(test)]
mod tests {
    use repoformer_core::task::Task;

    use super::*;

    fn tasks(tasks: &[(&str, &str, usize)]) -> TaskSet {
        let task = |(row, &(id, path, line_no)): (usize, &(&str, &str, usize))| Task {
            row,
            line: row + 1,
            ..Task::new(id.to_owned(), path, 0, line_no, "", "")
        };
        TaskSet::new("t.jsonl".into(), tasks.iter().enumerate().map(task).collect())
    }

    fn join(tasks: &TaskSet, lines: &[&str]) -> JoinedPredictions {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.jsonl");
        std::fs::write(&path, lines.join("\n")).unwrap();
        read(&path, tasks).unwrap()
    }

    /// Returns the problems without the folder of their file.
    fn reasons(problems: &[Error]) -> Vec<String> {
        let reason = |problem: &Error| {
            let text = problem.to_string();
            text[text.find("p.jsonl:").unwrap() + 8..].to_owned()
        };
        problems.iter().map(reason).collect()
    }

    #[test]
    fn unique_ids_in_both_formats() {
        let set = tasks(&[("a", "r/x.py", 1), ("b", "r/x.py", 2), ("c", "r/x.py", 3)]);
        let joined = join(
            &set,
            &[
                r#"{"task_id": "b", "pred": "B"}"#,
                r#"{"prompt": "", "metadata": {"task_id": "a", "fpath_tuple": ["r", "x.py"], "line_no": 1}, "choices": [{"text": "A1"}, {"text": ""}]}"#,
                r#"{"task_id": "b", "pred": ["B2", "B3"]}"#,
                "{",
                r#"{"task_id": "a", "choices": [{"text": "A"}, {"text": null}]}"#,
                r#"{"task_id": "a", "text": "A"}"#,
                r#"{"pred": "A"}"#,
                r#"{"metadata": [], "pred": "A"}"#,
                r#"{"metadata": {"task_id": "a", "line_no": -1}, "pred": "A"}"#,
                r#"{"metadata": {"task_id": "a", "line_no": 2}, "pred": "A"}"#,
            ],
        );
        assert_eq!(joined.predictions, [vec!["A1", ""], vec!["B", "B2", "B3"], vec![]]);
        assert_eq!((joined.missing, joined.empty), (vec![2], 1));
        assert_eq!(
            reasons(&joined.problems),
            [
                "4: not JSON: EOF while parsing an object (column 1)",
                "5: field 'choices[1].text' must be a string, not null",
                "6: field 'choices' or 'pred' is missing",
                "7: field 'task_id' or 'metadata.task_id' is missing",
                "8: field 'metadata' must be an object, not a list",
                "9: field 'metadata.line_no' must be a whole number from 0, not -1",
                r#"10: task "a" at any file, line_no 2 is not in t.jsonl"#,
            ]
        );
    }

    #[test]
    fn repeated_ids_are_told_apart_by_file_and_line() {
        let set =
            tasks(&[("r/idx", "o_r/x.py", 1), ("r/idx", "o_r/x.py", 2), ("r/idx", "o_r/y.py", 1)]);
        let joined = join(
            &set,
            &[
                r#"{"metadata": {"task_id": "r/idx", "fpath_tuple": ["o_r", "y.py"], "line_no": 1}, "pred": "y1"}"#,
                r#"{"metadata": {"task_id": "r/idx", "fpath_tuple": ["o--r", "x.py"], "lineno": 2}, "pred": "x2"}"#,
                r#"{"task_id": "r/idx", "pred": "?"}"#,
                r#"{"task_id": "r/idx", "metadata": {"line_no": 1}, "pred": "?"}"#,
                r#"{"task_id": "r/idx", "metadata": {"fpath_tuple": ["o_r", "y.py"]}, "pred": "y1b"}"#,
                r#"{"task_id": "r/idx", "metadata": {"fpath_tuple": ["o_r", "y.py"], "line_no": 7}, "pred": "?"}"#,
            ],
        );
        assert_eq!(joined.predictions, [vec![], vec!["x2"], vec!["y1", "y1b"]]);
        assert_eq!(joined.missing, [0]);
        assert_eq!(
            reasons(&joined.problems),
            [
                r#"3: 3 tasks have the id "r/idx"; add metadata.fpath_tuple and metadata.line_no"#,
                r#"4: 2 tasks have the id "r/idx"; add metadata.fpath_tuple and metadata.line_no"#,
                r#"6: task "r/idx" at o_r/y.py, line_no 7 is not in t.jsonl"#,
            ]
        );
    }

    const ALIKE: &str = r#"{"metadata": {"task_id": "i", "fpath_tuple": ["r", "x.py"], "line_no": 1}, "pred": "PRED"}"#;

    #[test]
    fn tasks_that_are_alike_take_turns() {
        let set = tasks(&[("i", "r/x.py", 1), ("j", "r/x.py", 1), ("i", "r/x.py", 1)]);
        let (first, second) = (ALIKE.replace("PRED", "1"), ALIKE.replace("PRED", "2"));
        let between = r#"{"task_id": "j", "pred": "J"}"#;
        let joined = join(&set, &[&first, between, &second]);
        assert_eq!(joined.predictions, [["1"], ["J"], ["2"]]);
        assert!(joined.problems.is_empty() && joined.missing.is_empty());

        // A record without samples still counts in the order.
        let bad = ALIKE.replace(r#""PRED""#, "3");
        let joined = join(&set, &[&bad, &second]);
        assert_eq!(joined.predictions, [vec![], vec![], vec!["2"]]);
        assert_eq!(
            reasons(&joined.problems),
            ["1: field 'pred' must be a string or a list of strings, not a number"]
        );

        // With one or three records for two tasks, nothing shows which record belongs to which task.
        for lines in [vec![first.as_str()], vec![&first, &second, &first]] {
            let joined = join(&set, &lines);
            assert_eq!(joined.missing, [0, 1, 2]);
            assert_eq!(joined.problems.len(), lines.len());
            let reason = &reasons(&joined.problems)[0];
            assert!(reason.starts_with(r#"1: 2 tasks share the id "i", file and line, and "#));
        }
    }

    #[test]
    fn the_row_tells_apart_what_is_alike_and_must_agree() {
        let mut set = tasks(&[("i", "r/x.py", 1), ("i", "r/x.py", 1), ("j", "r/y.py", 1)]);
        // The record in between cannot be used.
        set.tasks_mut()[2].row = 3;
        let with_row =
            |row: usize| ALIKE.replace(r#""line_no""#, &format!(r#""row": {row}, "line_no""#));
        let elsewhere = with_row(0).replace("x.py", "y.py");
        let joined = join(
            &set,
            &[
                &with_row(1),
                &with_row(1),
                &with_row(2),
                &with_row(3),
                &elsewhere,
                r#"{"metadata": {"row": 3}, "pred": "J"}"#,
            ],
        );
        assert_eq!(joined.predictions, [vec![], vec!["PRED", "PRED"], vec!["J"]]);
        assert_eq!(
            reasons(&joined.problems),
            [
                "3: task row 2 is not in t.jsonl",
                r#"4: field 'metadata.row' is 3, but the task in that row is "j", not "i""#,
                r#"5: task "i" at r/y.py, line_no 1 is not in t.jsonl"#,
            ]
        );
    }
}
