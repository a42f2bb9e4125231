//! Reading of files of scores: JSON and JSON lines with the scores of each task, and the scores in the cache.

use std::collections::BTreeMap;
use std::path::Path;

use foldhash::HashMap;
use repoformer_core::task::kind::RecordKind;
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Object};
use repoformer_store::manifest;
use repoformer_store::schema::{Field, Type, first_wrong, may};
use serde_json::Value;

use super::PerTask;
use crate::conditions::Conditions;

/// Hint for files without such scores.
const NEEDED: &str = "pass a file with the scores of each task";

/// Scores read from a file.
#[derive(Debug)]
pub struct ReadScores {
    /// Scores of the tasks whose records can be used; at least one.
    pub scores: PerTask,
    /// Records that cannot be used.
    pub problems: Vec<Error>,
    /// Number of tasks excluded because their unit tests are inconclusive.
    pub excluded: usize,
}

/// Reads the scores of one system: `FILE`, or `FILE#NAME` if a file has the scores of several predictions (`-`: standard
/// input). The file is one object with `tasks`, a list of such objects, or one task record per line.
///
/// # Errors
/// The file cannot be read, does not have the scores of each task, or has the scores of several systems and `given` does not
/// choose one.
pub fn read(given: &str) -> Result<ReadScores> {
    let (path, wanted) = split(given);
    let text = jsonl::read(path)?;
    let mut sets = Sets::default();
    for (place, object) in objects(path, &text, &mut sets.problems)? {
        sets.add(path, place, object);
    }
    let Sets { named, problems, refused, mut conditions, .. } = sets;
    if let (true, Some(refused)) = (named.is_empty(), refused) {
        return Err(Error::artifact(path, refused.0, refused.1));
    }
    let (name, chosen) = choose(path, named, wanted)?;
    let mut reading = ReadScores { scores: PerTask::new(given), problems, excluded: 0 };
    let known = conditions.iter().position(|(of, _)| *of == name);
    reading.scores.conditions = match known {
        Some(known) => conditions.swap_remove(known).1,
        // Lines do not contain conditions.
        None => conditions_of(&manifest::read_beside(path)?, name.as_deref()),
    };
    for (place, record) in &chosen {
        if record.get("excluded").is_some_and(|why| !why.is_null()) {
            reading.excluded += 1;
        } else if let Err(reason) = reading.scores.add(record) {
            keep(&mut reading.problems, path, place.error(path, reason));
        }
    }
    if reading.scores.tasks.is_empty() {
        return Err(match reading.problems.first().map(reason) {
            Some(first) => wrong(path, format_args!("contains no scores of tasks: {first}")),
            None => wrong(path, "contains no scores of tasks"),
        });
    }
    Ok(reading)
}

/// Returns the message of a problem, without the file.
fn reason(problem: &Error) -> String {
    match problem {
        Error::Record { line, reason, .. } => format!("line {line}: {reason}"),
        Error::Artifact { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// Splits `FILE#NAME` into the path and the name of a set of scores. An existing file whose name contains `#` takes precedence.
pub fn split(given: &str) -> (&Path, Option<&str>) {
    match given.rsplit_once('#') {
        Some((path, name)) if !Path::new(given).exists() => (Path::new(path), Some(name)),
        _ => (Path::new(given), None),
    }
}

/// Position of a record in its file.
#[derive(Debug, Clone)]
enum RecordPosition {
    /// 1-based line of JSON lines.
    Line(usize),
    /// Path in a JSON document: `tasks[3]`.
    Within(String),
}

impl RecordPosition {
    /// Returns the position of an element of this position's `tasks`.
    fn task(&self, number: usize) -> Self {
        match self {
            Self::Line(line) => Self::Within(format!("line {line}: tasks[{number}]")),
            Self::Within(path) if path.is_empty() => Self::Within(format!("tasks[{number}]")),
            Self::Within(path) => Self::Within(format!("{path}.tasks[{number}]")),
        }
    }

    fn error(&self, path: &Path, reason: impl std::fmt::Display) -> Error {
        match self {
            Self::Line(line) => Error::record(path, *line, reason.to_string()),
            Self::Within(place) if place.is_empty() => wrong(path, reason),
            Self::Within(place) => wrong(path, format_args!("{place}: {reason}")),
        }
    }
}

fn wrong(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::artifact(path, reason.to_string(), NEEDED)
}

/// Returns the objects of a file: the object or list of a JSON document, or else the objects of its lines.
fn objects(
    path: &Path,
    text: &[u8],
    problems: &mut Vec<Error>,
) -> Result<Vec<(RecordPosition, Object)>> {
    let Some((_, first)) = jsonl::records(text).next() else {
        return Err(wrong(path, "is empty"));
    };
    let first = first.trim_ascii();
    if first != b"{" && !first.starts_with(b"[") {
        let mut found = Vec::new();
        for (at, bytes) in jsonl::records(text) {
            match jsonl::parse(path, at.line, bytes) {
                Ok(object) => found.push((RecordPosition::Line(at.line), object)),
                Err(problem) => keep(problems, path, problem),
            }
        }
        return Ok(found);
    }
    let document: Value =
        jsonl::value(path, 1, text).map_err(|e| wrong(path, format_args!("not JSON: {e}")))?;
    let elements = match document {
        Value::Object(object) => return Ok(vec![(RecordPosition::Within(String::new()), object)]),
        Value::Array(elements) => elements,
        other => return Err(wrong(path, format_args!("holds {}", jsonl::kind(&other)))),
    };
    let mut found = Vec::new();
    for (number, element) in elements.into_iter().enumerate() {
        let place = RecordPosition::Within(format!("[{number}]"));
        match element {
            Value::Object(object) => found.push((place, object)),
            other => keep(problems, path, place.error(path, not_an_object(&other))),
        }
    }
    Ok(found)
}

/// Returns the conditions of some scores, from the object or the manifest that describes them.
fn conditions_of(about: &Object, name: Option<&str>) -> Conditions {
    let inner = |of: &Object, name: &str| of.get(name).and_then(Value::as_object).cloned();
    let manifest = inner(about, "manifest").unwrap_or_else(|| about.clone());
    let settings = inner(&manifest, "settings").unwrap_or_default();
    let is_of = |key: &str| match (key.strip_prefix("predictions."), name) {
        (Some(of), Some(name)) => of == name,
        (of, _) => of.is_some(),
    };
    let made_with = inner(about, "made_with").or_else(|| {
        let found = settings.iter().find(|(key, _)| is_of(key));
        found.and_then(|(_, value)| value.as_object().cloned())
    });
    let texts = |object: Object| {
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
        object.into_iter().filter_map(text).collect::<BTreeMap<String, String>>()
    };
    let mut conditions = Conditions::of_predictions(&texts(made_with.unwrap_or_default()));
    let prefixed = settings.iter().filter_map(|(key, recipe)| {
        Some((key.strip_prefix("postprocess.")?.to_owned(), recipe.clone()))
    });
    let cuts = inner(about, "postprocess").unwrap_or_else(|| prefixed.collect());
    for (metric, recipe) in texts(cuts) {
        conditions.set_cut(&metric, recipe);
    }
    conditions
}

fn not_an_object(found: &Value) -> String {
    format!("a JSON object is expected, not {}", jsonl::kind(found))
}

type Records = Vec<(RecordPosition, Object)>;

/// Fields that describe all scores in an object with the scores of one or several tasks; a record of one task may have more
/// fields.
const SET: &[Field] = &[
    may("predictions", Type::Text),
    may("tasks", Type::List(&Type::Any)),
    may("made_with postprocess", Type::Map(&Type::Text)),
    may("manifest", Type::Open(&[may("settings", Type::Open(&[]))])),
];

/// Task records of a file, by the name of the predictions.
#[derive(Default)]
struct Sets {
    /// Sets in the order of the file.
    named: Vec<(Option<String>, Records)>,
    /// Their places.
    places: HashMap<Option<String>, usize>,
    problems: Vec<Error>,
    /// Conditions of the sets, by name.
    conditions: Vec<(Option<String>, Conditions)>,
    /// Description of the first object that lacks a task's scores, and the hint for it.
    refused: Option<(String, &'static str)>,
}

impl Sets {
    fn add(&mut self, path: &Path, place: RecordPosition, mut object: Object) {
        if let Some(wrong) = first_wrong(SET, &object) {
            keep(&mut self.problems, path, place.error(path, wrong));
            return;
        }
        let name = object.get("predictions").and_then(Value::as_str).map(str::to_owned);
        if let Some(Value::Array(tasks)) = object.remove("tasks") {
            self.conditions.push((name.clone(), conditions_of(&object, name.as_deref())));
            for (number, task) in tasks.into_iter().enumerate() {
                let place = place.task(number);
                match task {
                    Value::Object(task) => self.records(name.clone()).push((place, task)),
                    other => {
                        let wrong = place.error(path, not_an_object(&other));
                        keep(&mut self.problems, path, wrong);
                    }
                }
            }
            return;
        }
        match explain_refusal(&object) {
            None => self.records(name).push((place, object)),
            Some(refused) => {
                keep(&mut self.problems, path, place.error(path, &refused.0));
                self.refused.get_or_insert(refused);
            }
        }
    }

    fn records(&mut self, name: Option<String>) -> &mut Records {
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.named.push((name.clone(), Vec::new()));
            self.named.len() - 1
        });
        &mut self.named[place].1
    }
}

/// Describes the content of an object without a task's scores, and returns the hint for it.
fn explain_refusal(object: &Object) -> Option<(String, &'static str)> {
    if object.get("all").is_some_and(|all| all.get("n").is_some()) {
        return Some(("contains means, not the scores of each task".into(), NEEDED));
    }
    let kind = RecordKind::from_record(object).filter(|kind| *kind != RecordKind::Score)?;
    let hint = match kind {
        RecordKind::RepoCoderPrediction
        | RecordKind::CrossCodeEvalPrediction
        | RecordKind::LmEvalSample
        | RecordKind::Pair => "compute their scores first",
        _ => NEEDED,
    };
    Some((format!("contains {}, not scores of tasks", kind.record()), hint))
}

/// Chooses a set.
fn choose(
    path: &Path,
    mut named: Vec<(Option<String>, Records)>,
    wanted: Option<&str>,
) -> Result<(Option<String>, Records)> {
    if named.is_empty() {
        return Ok((None, Vec::new()));
    }
    let names: Vec<&str> =
        named.iter().map(|(name, _)| name.as_deref().unwrap_or("(without a name)")).collect();
    let place = match wanted {
        Some(wanted) => named.iter().position(|(name, _)| name.as_deref() == Some(wanted)),
        None => (named.len() == 1).then_some(0),
    };
    let place = place.ok_or_else(|| {
        let (file, list) = (path.display(), names.join(", "));
        Error::Comparison {
            reason: match wanted {
                Some(wanted) => format!("{file}: contains scores of {list}, but not of '{wanted}'"),
                None => format!("{file}: contains the scores of several predictions: {list}"),
            },
            hint: format!("choose one with {file}#{}", names[0]).into(),
        }
    })?;
    Ok(named.swap_remove(place))
}
