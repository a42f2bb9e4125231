//! Lengths of tasks: the number of lines and tokens in their contexts and targets, as in Table 6 of the Repoformer paper.
//!
//! Only non-blank lines count, so that a task has the same length in every format: one format assigns the indent before a hole
//! to the context, another to the target.

use std::path::{Path, PathBuf};

use foldhash::HashSet;
use repoformer_core::repository::parallel;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Task, TaskFiles};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl;
use repoformer_text::lines::{Lines, strip};
use repoformer_text::tokenize::model::Tokenizer;
use serde_json::{Value, json};

/// Mean, median and maximum of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Sum divided by the count.
    pub mean: f64,
    /// Middle number; for an even count, the mean of the two middle numbers.
    pub median: f64,
    /// Largest number.
    pub max: usize,
}

impl Spread {
    /// Computes the spread of these numbers; `None` without numbers.
    ///
    /// ```
    /// use repoformer_formats::lengths::Spread;
    /// assert_eq!(Spread::from_numbers(vec![4, 1, 2, 9]), Some(Spread { mean: 4.0, median: 3.0, max: 9 }));
    /// ```
    pub fn from_numbers(mut numbers: Vec<usize>) -> Option<Self> {
        numbers.sort_unstable();
        let (count, max) = (numbers.len(), *numbers.last()?);
        let median = (numbers[(count - 1) / 2] + numbers[count / 2]) as f64 / 2.0;
        Some(Self { mean: numbers.iter().sum::<usize>() as f64 / count as f64, median, max })
    }

    fn to_record(self) -> Value {
        json!({"mean": self.mean, "median": self.median, "max": self.max})
    }
}

/// Lengths of one part, over the tasks that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lengths {
    /// Number of tasks that have the part.
    pub tasks: usize,
    /// Non-blank lines.
    pub lines: Spread,
    /// Tokens.
    pub tokens: Spread,
}

impl Lengths {
    fn new(counted: impl Iterator<Item = Option<(usize, usize)>>) -> Option<Self> {
        let (lines, tokens): (Vec<_>, Vec<_>) = counted.flatten().unzip();
        let tasks = lines.len();
        Some(Self {
            tasks,
            lines: Spread::from_numbers(lines)?,
            tokens: Spread::from_numbers(tokens)?,
        })
    }

    fn to_record(&self) -> Value {
        let (lines, tokens) = (self.lines.to_record(), self.tokens.to_record());
        json!({"tasks": self.tasks, "lines": lines, "tokens": tokens})
    }
}

/// Part of a task that has a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPart {
    /// Context before the hole.
    Left,
    /// Context after the hole.
    Right,
    /// Original text of the hole.
    Target,
    /// Cross-file context in the record.
    CrossFile,
}

impl TaskPart {
    /// All parts, in the order of the paper's table.
    pub const ALL: [Self; 4] = [Self::Left, Self::Right, Self::Target, Self::CrossFile];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Target => "target",
            Self::CrossFile => "cross-file",
        }
    }

    fn text(self, task: &Task, is_whole: bool) -> Option<&str> {
        match self {
            Self::Left if is_whole => task.full_left_context.as_deref(),
            Self::Left => Some(&task.prompt),
            Self::Right if is_whole => task.full_right_context.as_deref(),
            Self::Right => task.right_context.as_deref(),
            Self::Target => Some(&task.ground_truth),
            Self::CrossFile => task.cross_file.as_ref().map(|cross_file| &*cross_file.text),
        }
    }
}

/// Tasks of one kind in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct KindLengths {
    /// Kind of their records.
    pub kind: RecordKind,
    /// Number of tasks.
    pub instances: usize,
    /// Number of repositories that they name.
    pub repositories: usize,
    /// Number of files that they name.
    pub files: usize,
    /// Lengths of each part, in the order of [`TaskPart::ALL`]; `None` for a part that no task has.
    pub parts: [Option<Lengths>; 4],
}

impl KindLengths {
    fn new(Counts { kind, repositories, files, tasks }: &Counts) -> Self {
        Self {
            kind: *kind,
            instances: tasks.len(),
            repositories: repositories.len(),
            files: files.len(),
            parts: [0, 1, 2, 3].map(|part| Lengths::new(tasks.iter().map(|parts| parts[part]))),
        }
    }

    /// Returns `kind, instances, repositories, files, left, right, target, cross_file`; each part has `tasks` (the number of
    /// tasks that have it), `lines` and `tokens`, each with `mean, median, max`.
    pub fn to_record(&self) -> Value {
        let mut record = json!({
            "kind": self.kind.name(), "instances": self.instances,
            "repositories": self.repositories, "files": self.files,
        });
        for (part, lengths) in TaskPart::ALL.iter().zip(&self.parts) {
            let lengths = lengths.as_ref().map(Lengths::to_record);
            record[part.name().replace('-', "_")] = lengths.into();
        }
        record
    }
}

/// Lengths of a file's tasks.
#[derive(Debug)]
pub struct FileLengths {
    /// Path of the file.
    pub path: PathBuf,
    /// Lengths of each kind, in the order of the file.
    pub kinds: Vec<KindLengths>,
    /// Records that are not tasks, or do not fit their file; they are not counted.
    pub problems: Vec<Error>,
}

/// Counts for one task.
struct CountedTask {
    kind: RecordKind,
    repository: String,
    path: String,
    parts: PartLengths,
}

/// Lines and tokens of each part.
type PartLengths = [Option<(usize, usize)>; 4];

/// Lengths of the tasks of one kind, whose texts are not kept.
struct Counts {
    kind: RecordKind,
    repositories: HashSet<String>,
    files: HashSet<String>,
    tasks: Vec<PartLengths>,
}

impl Counts {
    fn take(all: &mut Vec<Self>, CountedTask { kind, repository, path, parts }: CountedTask) {
        let place = all.iter().position(|known| known.kind == kind).unwrap_or(all.len());
        if place == all.len() {
            let (repositories, files, tasks) = Default::default();
            all.push(Self { kind, repositories, files, tasks });
        }
        let counts = &mut all[place];
        for (names, name) in [(&mut counts.repositories, repository), (&mut counts.files, path)] {
            if !name.is_empty() && !names.contains(&name) {
                names.insert(name);
            }
        }
        counts.tasks.push(parts);
    }
}

/// Number of tasks that are counted at once.
const AT_ONCE: usize = 1024;

/// Measures the tasks or labels of a file, in any format: their contexts as in the records or, with `repos_dir`, their complete
/// files before and after the hole.
///
/// # Errors
/// The file or the repositories cannot be read.
pub fn lengths(
    path: &Path,
    repos_dir: Option<&Path>,
    tokenizer: &Tokenizer,
) -> Result<FileLengths> {
    let mut files = repos_dir.map(TaskFiles::below).transpose()?;
    let count = |text: &str| {
        let lines = Lines::new(text);
        let is_text = |line: &&str| !strip(line).is_empty();
        (lines.iter().filter(is_text).count(), tokenizer.count(text))
    };
    let counted = |(kind, task): (RecordKind, Task)| CountedTask {
        parts: TaskPart::ALL.map(|part| part.text(&task, repos_dir.is_some()).map(count)),
        kind,
        repository: task.repository,
        path: task.path,
    };
    let (mut counts, mut waiting) = (Vec::new(), Vec::new());
    let mut count_waiting = |waiting: &mut Vec<(RecordKind, Task)>| {
        let counted = parallel::map(waiting.drain(..), counted);
        counted.into_iter().for_each(|counted| Counts::take(&mut counts, counted));
    };
    let problems = jsonl::for_each(path, |at, object| {
        let kind = RecordKind::from_record(&object);
        let mut task = Task::from_record(path, at, object)?;
        if let Some(files) = &mut files {
            let file = files.text(&mut task);
            file.and_then(|file| task.fill(file)).map_err(|reason| Error::Task {
                path: path.to_owned(),
                line: at.line,
                task_id: task.id.clone(),
                reason: reason.into(),
            })?;
        }
        let kind = kind.unwrap_or(RecordKind::Task(task.format));
        waiting.push((kind, task));
        if waiting.len() == AT_ONCE {
            count_waiting(&mut waiting);
        }
        Ok(())
    })?;
    count_waiting(&mut waiting);
    let kinds = counts.iter().map(KindLengths::new).collect();
    Ok(FileLengths { path: path.to_owned(), kinds, problems })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(records: &[Value], repos_dir: Option<&Path>) -> FileLengths {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        lengths(&path, repos_dir, &Tokenizer::words()).unwrap()
    }

    fn repo_eval(prompt: &str, line_no: usize, start: usize, target: &str) -> Value {
        json!({"prompt": prompt, "metadata": {"task_id": "r/0", "ground_truth": target, "fpath_tuple": ["r", "a.py"],
            "context_start_lineno": start, "line_no": line_no}})
    }

    const FILE: &str = "a = 1\n\nb = 2\n    c = 3\n\n\nd\n";

    #[test]
    fn parts_are_counted_by_hand() {
        let repoformer = json!({"prompt": "b = 2\n    ", "groundtruth": "c = 3", "right_context": "\n\n\nd\n",
            "crossfile_context": "# x\n# y\n", "metadata": {"task_id": 7, "filepath": "s/b.py"}});
        let records = [
            repo_eval("b = 2\n", 3, 2, "    c = 3\n"),
            repo_eval("a = 1\n\n", 2, 0, "b = 2\n    c = 3\n\n"),
            repoformer,
            json!({"task_id": "a", "pred": "x"}),
        ];
        let found = measured(&records, None);
        assert_eq!(found.problems.len(), 1);
        assert!(found.problems[0].to_string().contains("t.jsonl:4"), "{}", found.problems[0]);
        let [one, other] = found.kinds.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (one.kind.name(), one.instances, one.repositories, one.files),
            ("repoeval", 2, 1, 1)
        );
        assert_eq!((other.kind.name(), other.instances), ("repoformer", 1));
        let means = |kind: &KindLengths| {
            let of = |part: &Option<Lengths>| {
                part.as_ref().map(|p| (p.tasks, p.lines.mean, p.tokens.mean))
            };
            kind.parts.each_ref().map(of)
        };
        let all = |lines, tokens| Some((2, lines, tokens));
        assert_eq!(means(one), [all(1.0, 3.0), None, all(1.5, 4.5), None]);
        let some = |lines, tokens| Some((1, lines, tokens));
        assert_eq!(means(other), [some(1.0, 3.0), some(1.0, 1.0), some(1.0, 3.0), some(2.0, 4.0)]);
        let target = one.parts[2].as_ref().unwrap();
        assert_eq!((target.tokens.median, target.tokens.max), (4.5, 6));
        assert_eq!(
            one.to_record()["target"]["lines"],
            json!({"mean": 1.5, "median": 1.5, "max": 2})
        );
        assert_eq!(one.to_record()["cross_file"], Value::Null);
    }

    #[test]
    fn the_files_have_the_whole_contexts() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("r")).unwrap();
        std::fs::write(dir.path().join("r/a.py"), FILE).unwrap();
        let records = [repo_eval("b = 2\n", 3, 2, "    c = 3\n"), repo_eval("b = 2\n", 4, 2, "x")];
        let found = measured(&records, Some(dir.path()));
        assert_eq!(found.problems.len(), 1, "the second does not fit the file");
        let parts = &found.kinds[0].parts;
        let of = |part: usize| parts[part].as_ref().map(|p| (p.lines.max, p.tokens.max)).unwrap();
        assert_eq!((found.kinds[0].instances, of(0), of(1)), (1, (2, 6), (1, 1)));
    }
}
