//! Test map: the tests of each task.

use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_core::task::{NumberedRecords, Task, TaskSet};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Fields, Object};
use serde_json::{Value, json};

/// Tests of each task, as the test runner names them.
#[derive(Debug, Clone)]
pub struct TestMap {
    /// Path of the map.
    pub path: PathBuf,
    by_row: HashMap<usize, Vec<String>>,
    /// Records that are assigned to their tasks by number alone.
    pub numbered: NumberedRecords,
}

impl TestMap {
    /// Reads a map: one line `{"task_id": …, "tests": […]}` per task, with `"row"` (the task's 0-based position in its file) if ids repeat;
    /// or one object `{task_id: [tests], …}`. Records of tasks that are not in the set are skipped. The errors returned with the map
    /// identify the lines that cannot be used.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain a map.
    pub fn read(path: &Path, tasks: &TaskSet) -> Result<(Self, Vec<Error>)> {
        let text = jsonl::read(path)?;
        let (by_row, numbered) = Default::default();
        let mut map = Self { path: path.to_owned(), by_row, numbered };
        let mut problems = Vec::new();
        match jsonl::value(path, 1, &text) {
            Ok(Value::Object(object)) if !object.contains_key("tests") => {
                for (id, tests) in &object {
                    let record = json!({"task_id": id, "tests": tests});
                    let record = record.as_object().cloned().unwrap_or_default();
                    if let Err(problem) = map.add(1, &record, tasks) {
                        keep(&mut problems, path, problem);
                    }
                }
            }
            _ => {
                for (at, bytes) in jsonl::records(&text) {
                    let added = jsonl::parse(path, at.line, bytes)
                        .and_then(|object| map.add(at.line, &object, tasks));
                    if let Err(problem) = added {
                        keep(&mut problems, path, problem);
                    }
                }
            }
        }
        match problems.pop() {
            Some(only) if map.by_row.is_empty() && problems.is_empty() => Err(only),
            last => {
                problems.extend(last);
                Ok((map, problems))
            }
        }
    }

    /// Returns the tests listed in the tasks' own `metadata.tests`; `None` if no task lists any.
    ///
    /// # Errors
    /// The tests of a task are not a list of names.
    pub fn of_tasks(tasks: &TaskSet) -> Result<Option<Self>> {
        let mut by_row: HashMap<usize, Vec<String>> = HashMap::default();
        for task in tasks.tasks() {
            let metadata = task.metadata.to_object();
            let tests = Fields::new(&tasks.path, task.line, "metadata.", &metadata);
            if !tests.has("tests") {
                continue;
            }
            let tests = tests.strings("tests")?;
            if !tests.is_empty() {
                by_row.insert(task.row, tests.into_iter().map(str::to_owned).collect());
            }
        }
        let (path, numbered) = (tasks.path.clone(), NumberedRecords::default());
        Ok((!by_row.is_empty()).then_some(Self { path, by_row, numbered }))
    }

    fn add(&mut self, line: usize, record: &Object, tasks: &TaskSet) -> Result<()> {
        let fields = Fields::new(&self.path, line, "", record);
        let tests = fields.strings("tests")?;
        let id = fields.has("task_id").then(|| fields.task_id()).transpose()?;
        let rows: Vec<usize> = match (fields.has("row"), &id) {
            (true, _) => {
                let row = fields.count(&["row"])?;
                let task =
                    tasks.of_row(row).filter(|task| id.as_ref().is_none_or(|id| *id == task.id));
                task.map(|task| task.row).into_iter().collect()
            }
            (false, Some(id)) => {
                let with_id = tasks.tasks().iter().filter(|task| task.id == *id);
                with_id.map(|task| task.row).collect()
            }
            (false, None) => return Err(fields.error("field 'task_id' or 'row' is missing")),
        };
        if rows.len() > 1 {
            let (count, id) = (rows.len(), id.unwrap_or_default());
            return Err(fields.error(format!(
"{count} tasks have the id {id:?}; add \"row\", the task's 0-based position in its file"
            )));
        }
        for row in rows {
            match &id {
                Some(id) => self.numbered.add(id),
                None => self.numbered.add_row(row),
            }
            let known = self.by_row.entry(row).or_default();
            known.extend(tests.iter().map(|test| (*test).to_owned()));
        }
        Ok(())
    }

    /// Returns the tests of a task; `None` if the map lists none.
    pub fn of(&self, task: &Task) -> Option<&[String]> {
        let tests = self.by_row.get(&task.row).map(Vec::as_slice);
        tests.filter(|tests| !tests.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_what_is_wrong_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tests.jsonl");
        let task =
            |row: usize, id: &str| Task { row, ..Task::new(id.into(), "r/a.py", 0, 0, "x", "") };
        let tasks = TaskSet::new("t.jsonl".into(), vec![task(0, "a"), task(1, "b"), task(2, "b")]);
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            TestMap::read(&path, &tasks).unwrap()
        };
        let (map, problems) = read(
            "{\"task_id\": \"a\", \"tests\": [\"t::x\"]}\n{\"task_id\": \"b\", \"tests\": []}\n{\"row\": 2, \"tests\": [\"t::y\"]}\n{\"tests\": [1]}\n{\"task_id\": \"z\", \"tests\": []}\n",
        );
        let of = |map: &TestMap, at: usize| map.of(&tasks.tasks()[at]).map(<[_]>::to_vec);
        assert_eq!(of(&map, 0), Some(vec!["t::x".to_owned()]));
        assert_eq!((of(&map, 1), of(&map, 2)), (None, Some(vec!["t::y".to_owned()])));
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(problems[0].contains(":2: 2 tasks have the id \"b\""), "{problems:?}");
        assert!(
            problems[1].contains(":4: field 'tests' must be a list of strings"),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 2);
        let (map, problems) = read("{\"a\": [\"t::z\"],\n \"other\": []}");
        assert_eq!(of(&map, 0), Some(vec!["t::z".to_owned()]));
        assert!(problems.is_empty());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(TestMap::read(&path, &tasks).is_err());
    }
}
