//! Benchmark tasks: one hole in one file, in RepoEval's format.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::corpus::is_folder_name;
use crate::cross_file::CrossFile;
use crate::error::{Error, Result};
use crate::jsonl::{self, At, Fields, Object};

/// One hole: the prompt that leads to it, and what stood there.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// 0-based place in the task file: the task's key, since benchmark ids repeat.
    pub row: usize,
    /// 1-based line in the task file, for messages.
    pub line: usize,
    /// The id as the file gives it; not unique in RepoEval's line and API files.
    pub id: String,
    /// Folder of its repository.
    pub repository: String,
    /// `repository/folder/…/file.py`.
    pub path: String,
    /// 0-based first line of the file that the prompt shows.
    pub context_start: usize,
    /// 0-based first line of the hole; lines as [`crate::lines::Lines`] counts them.
    pub line_no: usize,
    /// What stood in the hole.
    pub ground_truth: String,
    /// The file's lines before the hole, as the model sees them without retrieval.
    pub prompt: String,
    /// The context behind the hole, where the file carries it.
    pub right_context: Option<String>,
    /// All of the file before the hole, where `prompt` is only its end.
    pub full_left_context: Option<String>,
    /// All of the file behind the hole, where `right_context` is only its start.
    pub full_right_context: Option<String>,
    /// The cross-file context that the file carries.
    pub cross_file: Option<CrossFile>,
    /// The record's `metadata` as it was read, unknown fields included.
    pub metadata: Object,
    /// The record's other fields, unknown ones, as they were read.
    pub extra: Object,
}

/// The tasks of one file.
#[derive(Debug, Clone)]
pub struct TaskSet {
    /// Where they were read from.
    pub path: PathBuf,
    /// In the order of the file.
    pub tasks: Vec<Task>,
}

/// What reading a task file gave.
#[derive(Debug)]
pub struct Reading {
    /// The tasks that can be used.
    pub set: TaskSet,
    /// The records that cannot, each with its line and reason.
    pub problems: Vec<Error>,
    /// How many tasks carry an id that an earlier task has too.
    pub repeated_ids: usize,
}

impl TaskSet {
    /// Reads a RepoEval task file (`.jsonl`, gzip, zstd, or `-`).
    ///
    /// # Errors
    /// The file cannot be read, or holds no usable task at all.
    pub fn read(path: &Path) -> Result<Reading> {
        let mut tasks = Vec::new();
        let problems = jsonl::for_each(path, |at, object| {
            tasks.push(Task::from_record(path, at, object)?);
            Ok(())
        })?;
        if tasks.is_empty() {
            return Err(match problems.into_iter().next() {
                Some(first) => first,
                None => Error::Artifact {
                    path: path.to_owned(),
                    reason: "the file holds no task".into(),
                    hint: "name a task file, or draw tasks with `repoformer sample`".into(),
                },
            });
        }
        let mut seen: FxHashMap<&str, ()> = FxHashMap::default();
        let repeated_ids = tasks
            .iter()
            .filter(|task| seen.insert(&task.id, ()).is_some())
            .count();
        Ok(Reading {
            set: TaskSet {
                path: path.to_owned(),
                tasks,
            },
            problems,
            repeated_ids,
        })
    }

    /// The repositories its tasks name, sorted, each once.
    pub fn repositories(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .tasks
            .iter()
            .map(|task| task.repository.clone())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Finds the folders of repositories that are named as on the hub: RepoEval's function files write `owner--name` for
    /// the folder `owner_name`.
    pub fn name_folders(&mut self, folders: &[String]) {
        let there = |name: &str| folders.iter().any(|folder| folder == name);
        for task in &mut self.tasks {
            let folder = task.repository.replace("--", "_");
            if folder != task.repository && !there(&task.repository) && there(&folder) {
                task.path.replace_range(..task.repository.len(), &folder);
                task.repository = folder;
            }
        }
    }

    /// A digest of where the holes of one repository's tasks are.
    pub fn hole_digest(&self, repository: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for task in self
            .tasks
            .iter()
            .filter(|task| task.repository == repository)
        {
            hasher.update(task.path.as_bytes());
            hasher.update(task.id.as_bytes());
            for number in [
                task.path.len(),
                task.id.len(),
                task.row,
                task.context_start,
                task.line_no,
            ] {
                hasher.update(&(number as u64).to_le_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// A digest of all tasks, everything in them included.
    pub fn digest(&self) -> String {
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), Vec::new());
        for task in &self.tasks {
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

    /// The error for one of its tasks.
    pub fn error(&self, task: &Task, reason: impl Into<String>) -> Error {
        Error::Task {
            path: self.path.clone(),
            line: task.line,
            task_id: task.id.clone(),
            reason: reason.into(),
        }
    }
}

impl Task {
    fn from_record(path: &Path, At { line, row }: At, mut object: Object) -> Result<Self> {
        let Some(Value::Object(metadata)) = object.remove("metadata") else {
            let found = if object.contains_key("prompt") {
                ""
            } else {
                " (is this a task file?)"
            };
            return Err(Error::record(
                path,
                line,
                format!("field 'metadata' must be an object{found}"),
            ));
        };
        for (what, is_it) in [
            (
                "a prediction (it has 'choices')",
                object.contains_key("choices"),
            ),
            (
                "a prompt (it has 'metadata.top_k_context')",
                metadata.contains_key("top_k_context"),
            ),
        ] {
            if is_it {
                return Err(Error::record(
                    path,
                    line,
                    format!("this is {what}, not a task"),
                ));
            }
        }
        let fields = Fields::new(path, line, "metadata.", &metadata);
        let (repository, file_path) = source_file(&fields)?;
        let context_start = fields.count(&["context_start_lineno"])?;
        let line_no = fields.count(&["line_no", "lineno"])?;
        if context_start > line_no {
            return Err(fields.error(format!(
                "field 'metadata.context_start_lineno' ({context_start}) lies behind the hole's line ({line_no})"
            )));
        }
        let id = fields.string("task_id")?.to_owned();
        let ground_truth = fields.string("ground_truth")?.to_owned();
        Fields::new(path, line, "", &object).string("prompt")?;
        Ok(Self {
            row,
            line,
            id,
            repository,
            path: file_path,
            context_start,
            line_no,
            ground_truth,
            prompt: match object.remove("prompt") {
                Some(Value::String(prompt)) => prompt,
                _ => String::new(),
            },
            right_context: None,
            full_left_context: None,
            full_right_context: None,
            cross_file: None,
            metadata,
            extra: object,
        })
    }

    /// A new task with the metadata that RepoEval gives a task.
    pub fn new(
        id: String,
        path: &str,
        context_start: usize,
        line_no: usize,
        ground_truth: &str,
        prompt: &str,
    ) -> Self {
        let names: Vec<&str> = path.split('/').collect();
        let record = json!({
            "task_id": id, "ground_truth": ground_truth, "fpath_tuple": names,
            "context_start_lineno": context_start, "line_no": line_no,
        });
        let Value::Object(metadata) = record else {
            unreachable!("the literal above is an object")
        };
        Self {
            row: 0,
            line: 0,
            repository: names[0].to_owned(),
            path: path.to_owned(),
            context_start,
            line_no,
            ground_truth: ground_truth.to_owned(),
            prompt: prompt.to_owned(),
            id,
            right_context: None,
            full_left_context: None,
            full_right_context: None,
            cross_file: None,
            metadata,
            extra: Object::new(),
        }
    }

    /// Appends what a digest is made of: the row, the prompt and the other fields, each behind its length.
    fn digest_into(&self, out: &mut Vec<u8>) {
        for number in [self.row, self.prompt.len()] {
            out.extend_from_slice(&(number as u64).to_le_bytes());
        }
        out.extend_from_slice(self.prompt.as_bytes());
        for object in [&self.metadata, &self.extra] {
            let length_at = out.len();
            out.extend_from_slice(&[0; 8]);
            // Writing to memory fails for no object that was read: all keys are texts.
            let _ = serde_json::to_writer(&mut *out, object);
            let length = out.len() - length_at - 8;
            out[length_at..length_at + 8].copy_from_slice(&(length as u64).to_le_bytes());
        }
    }

    /// The record in RepoEval's format.
    pub fn to_record(&self) -> Value {
        let mut record = Object::new();
        record.insert("prompt".into(), self.prompt.as_str().into());
        record.insert("metadata".into(), self.metadata.clone().into());
        record.extend(self.extra.clone());
        Value::Object(record)
    }
}

/// The repository and the `/`-joined path of a task's file, once it is known to lead nowhere else.
fn source_file(fields: &Fields<'_>) -> Result<(String, String)> {
    let names = fields.strings("fpath_tuple")?;
    if let Some(bad) = names.iter().find(|name| !is_folder_name(name)) {
        let reason = format!("field 'metadata.fpath_tuple' leads out of the repository: {bad:?}");
        return Err(fields.error(reason));
    }
    match names.as_slice() {
        [repository, _, ..] => Ok(((*repository).to_owned(), names.join("/"))),
        _ => {
            Err(fields.error("field 'metadata.fpath_tuple' must be [repository, folder, …, file]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Reading> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        std::fs::write(&path, text).unwrap();
        TaskSet::read(&path)
    }

    const GOOD: &str = r#"{"prompt": "a\n", "metadata": {"task_id": "o--r/0", "ground_truth": "x = 1", "fpath_tuple": ["o--r", "a.py"], "context_start_lineno": 0, "lineno": 1, "extra": [1]}}"#;

    #[test]
    fn function_files_and_unknown_fields() {
        let mut reading = read(GOOD).unwrap();
        reading.set.name_folders(&["o--r".into(), "o_r".into()]);
        assert_eq!(
            reading.set.tasks[0].path, "o--r/a.py",
            "the folder is there"
        );
        reading.set.name_folders(&["o_r".into()]);
        let task = &reading.set.tasks[0];
        assert_eq!(
            (task.repository.as_str(), task.path.as_str(), task.line_no),
            ("o_r", "o_r/a.py", 1)
        );
        assert_eq!(task.to_record()["metadata"]["extra"], json!([1]));
    }

    #[test]
    fn each_bad_record_is_named_and_keeps_its_row() {
        let bad = |from: &str, to: &str| GOOD.replace(from, to);
        let text = [
            GOOD.to_owned(),
            bad(r#""lineno": 1"#, r#""lineno": "1""#),
            bad(r#""lineno": 1"#, r#""lineno": -1"#),
            bad(
                r#"["o--r", "a.py"]"#,
                r#"["o--r", "..", "..", "etc", "passwd"]"#,
            ),
            bad(r#"["o--r", "a.py"]"#, r#"["/etc", "a.py"]"#),
            bad(r#"["o--r", "a.py"]"#, r#"["o--r"]"#),
            bad(
                r#""context_start_lineno": 0"#,
                r#""context_start_lineno": 2"#,
            ),
            bad(r#""prompt": "a\n", "#, ""),
            "{".to_owned(),
            GOOD.to_owned(),
        ]
        .join("\n");
        let reading = read(&text).unwrap();
        assert_eq!(
            reading.set.tasks.iter().map(|t| t.row).collect::<Vec<_>>(),
            [0, 9]
        );
        assert_eq!(reading.repeated_ids, 1);
        let wanted = [
            "t.jsonl:2: field 'metadata.lineno' must be a whole number, not a string",
            "t.jsonl:3: field 'metadata.lineno' must be a whole number from 0, not -1",
            "t.jsonl:4: field 'metadata.fpath_tuple' leads out of the repository: \"..\"",
            "t.jsonl:5: field 'metadata.fpath_tuple' leads out of the repository: \"/etc\"",
            "t.jsonl:6: field 'metadata.fpath_tuple' must be [repository, folder, …, file]",
            "t.jsonl:7: field 'metadata.context_start_lineno' (2) lies behind the hole's line (1)",
            "t.jsonl:8: field 'prompt' is missing",
            "t.jsonl:9: not JSON: EOF while parsing an object (column 1)",
        ];
        assert_eq!(reading.problems.len(), wanted.len());
        for (problem, wanted) in reading.problems.iter().zip(wanted) {
            assert!(
                problem.to_string().ends_with(wanted),
                "{problem} / {wanted}"
            );
        }
    }
}
