//! Results of each task's tests, from the per-task files that test runs write.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{NumberedRecords, TaskSet};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::json;
use repoformer_store::jsonl::{self, Fields, Object, RecordAddress};
use repoformer_store::manifest;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde_json::Value;

/// Result of one task's tests.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOutcome {
    /// Id of the task.
    pub task_id: String,
    /// Status of the first sample, or `excluded`.
    pub status: String,
    /// pass@1 over all samples; `None` if the task is left out.
    pub pass_rate: Option<f64>,
}

/// Reads the test results by row of the task file; if the file contains several sets of predictions, reads the set `name`.
///
/// # Errors
/// The file cannot be read, or a record in it is not a test result.
pub fn read_executed(path: &Path, name: &str) -> Result<BTreeMap<usize, TestOutcome>> {
    let text = jsonl::read(path)?;
    let mut found = BTreeMap::new();
    let mut add = |line: usize, object: &Object| -> Result<()> {
        // For a record without these fields, the error of `executed` describes the file.
        if ["statuses", "excluded"].iter().any(|name| object.contains_key(*name)) {
            RecordKind::Score.check(path, line, object)?;
        }
        let of_other =
            object.get("predictions").and_then(Value::as_str).is_some_and(|of| of != name);
        if !of_other {
            let (row, executed) = read_outcome(path, line, object)?;
            found.insert(row, executed);
        }
        Ok(())
    };
    match jsonl::value(path, 1, &text) {
        // A JSON document: an object, or a list with one object for each set of predictions.
        Ok(whole) if whole.is_array() || whole.get("tasks").is_some() => {
            let several = whole.as_array().map_or(std::slice::from_ref(&whole), Vec::as_slice);
            let is_named = |one: &&Value| several.len() == 1 || one["predictions"] == name;
            for one in several.iter().filter(is_named) {
                let empty = Object::new();
                let of_one = Fields::new(path, 1, "", one.as_object().unwrap_or(&empty));
                for task in of_one.list("tasks")? {
                    add(1, task.as_object().unwrap_or(&empty))?;
                }
            }
        }
        _ => {
            for (RecordAddress { line, .. }, bytes) in jsonl::records(&text) {
                add(line, &jsonl::parse(path, line, bytes)?)?;
            }
        }
    }
    Ok(found)
}

/// Checks that test results belong to these tasks; results at other rows are ignored. Returns the results that are assigned to
/// their tasks by numbers alone.
///
/// # Errors
/// A result has a different id than the task at its row.
pub fn join(
    path: &Path,
    found: &BTreeMap<usize, TestOutcome>,
    tasks: &TaskSet,
) -> Result<NumberedRecords> {
    let mut numbered = NumberedRecords::default();
    for (row, executed) in found {
        let Some(task) = tasks.of_row(*row) else { continue };
        if task.id != executed.task_id {
            let reason = format!(
                "contains test results of other tasks: its row {row} is {:?}, but {:?} in {}",
                executed.task_id,
                task.id,
                tasks.path.display()
            );
            return Err(Error::artifact(path, reason, "run the tests of these tasks"));
        }
        numbered.add(&executed.task_id);
    }
    Ok(numbered)
}

/// Returns whether unit-test results belong to a file of predictions, according to the digests in their manifest, which is in
/// the document or next to the file. Returns `None` without digests.
///
/// # Errors
/// One of the files cannot be read.
pub fn is_of(results: &Path, predictions: &Path) -> Result<Option<bool>> {
    let read =
        |path: &Path| files::read(path).map_err(|e| Error::reading(path, "read this file", e));
    let text = match files::read_companion(manifest::beside(results)) {
        Ok(text) => text,
        Err(_) => read(results)?,
    };
    let Ok(whole) = json::parse(&text) else {
        return Ok(None);
    };
    let first = whole.get(0).unwrap_or(&whole);
    let manifest = first.get("manifest").unwrap_or(first);
    let inputs = manifest["inputs"].as_array().into_iter().flatten();
    let is_prediction =
        |input: &&Value| input["name"].as_str().is_some_and(|name| name.starts_with("predictions"));
    let digests: Vec<&Value> = inputs.filter(is_prediction).map(|input| &input["blake3"]).collect();
    if digests.is_empty() {
        return Ok(None);
    }
    let own = blake3::hash(&read(predictions)?).to_hex();
    Ok(Some(digests.iter().any(|digest| digest.as_str() == Some(own.as_str()))))
}

/// Reads the test results of one task.
///
/// # Errors
/// A field is missing, of another type or out of its range.
pub fn read_outcome(path: &Path, line: usize, object: &Object) -> Result<(usize, TestOutcome)> {
    let fields = Fields::new(path, line, "", object);
    let status = match (fields.has("excluded"), fields.has("statuses")) {
        (true, _) => Some("excluded"),
        (false, true) => Some(fields.strings("statuses")?.first().copied().unwrap_or("missing")),
        (false, false) => None,
    };
    let Some(status) = status else {
        return Err(Error::record(
            path,
            line,
            message![
                "'statuses' and 'excluded' are missing; pass the ",
                UserChoice::UnitTestResults
            ],
        ));
    };
    let row = fields.count(&["row"])?;
    let pass_rate = if fields.has("exec") {
        fields.below("exec.", fields.object("exec")?).optional_within("pass_1", 1.0)?
    } else {
        None
    };
    let (task_id, status) = (fields.task_id()?, status.to_owned());
    Ok((row, TestOutcome { task_id, status, pass_rate }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_objects_and_lists_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let pass =
            r#"{"task_id": "a", "row": 0, "exec": {"pass_1": 0.5}, "statuses": ["fail", "pass"]}"#;
        let out = r#"{"task_id": "b", "row": 2, "excluded": {"status": null, "reason": "x"}}"#;
        let wanted: BTreeMap<usize, TestOutcome> = [
            (0, TestOutcome { task_id: "a".into(), status: "fail".into(), pass_rate: Some(0.5) }),
            (2, TestOutcome { task_id: "b".into(), status: "excluded".into(), pass_rate: None }),
        ]
        .into();
        for text in [
            format!("{pass}\n{out}\n"),
            format!("{{\"predictions\": \"other\", \"tasks\": [{pass}, {out}]}}"),
            format!(
                "[{{\"predictions\": \"none\", \"tasks\": []}}, {{\"predictions\": \"rg1\", \"tasks\": [{pass}, {out}]}}]"
            ),
        ] {
            std::fs::write(&path, &text).unwrap();
            assert_eq!(read_executed(&path, "rg1").unwrap(), wanted, "{text}");
        }
        let named = pass.replacen('{', "{\"predictions\": \"gt\", ", 1);
        std::fs::write(&path, named + "\n" + out).unwrap();
        assert_eq!(read_executed(&path, "rg1").unwrap().len(), 1);
        std::fs::write(&path, "{\"task_id\": \"a\", \"row\": 0, \"repocoder\": {\"em\": 1}}\n")
            .unwrap();
        let error = read_executed(&path, "rg1").unwrap_err().to_string();
        assert!(error.contains("x:1: 'statuses' and 'excluded' are missing"), "{error}");
    }
}
