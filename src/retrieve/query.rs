//! Query windows: what is searched for, by where it comes from — the left context, the ground truth, a prediction.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::repository::window::{RepoWindows, WindowShape};
use crate::store::artifact::{Column, Columns, Payload};
use crate::task::{Task, TaskSet};
use crate::text::language::Language;
use crate::text::lines::{Lines, is_separator, strip, unfinished_line};

/// A setting of the experiment: where the query comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// No retrieval: the task's own prompt.
    #[serde(rename = "none")]
    Without,
    /// Retrieve once, with the lines before the hole (RepoCoder's RG1).
    #[serde(rename = "rg1")]
    LeftContext,
    /// Retrieve again, with the lines before the hole and a first prediction (RepoCoder).
    #[serde(rename = "rg-rg")]
    Prediction,
    /// Retrieve with the lines around the hole, the target among them: the oracle.
    #[serde(rename = "gt")]
    GroundTruth,
    /// No retrieval either: the cross-file context that the task's own file carries (CrossCodeEval's are without
    /// repositories).
    #[serde(rename = "given")]
    Given,
}

/// The settings that RepoCoder compares, in the order of a results table.
pub const REPOCODER_MODES: [Mode; 4] = [
    Mode::Without,
    Mode::LeftContext,
    Mode::Prediction,
    Mode::GroundTruth,
];

impl Mode {
    /// All of them, in the order of a results table.
    pub const ALL: [Self; 5] = [
        Self::Without,
        Self::LeftContext,
        Self::Prediction,
        Self::GroundTruth,
        Self::Given,
    ];

    /// The name on the command line and in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Without => "none",
            Self::LeftContext => "rg1",
            Self::Prediction => "rg-rg",
            Self::GroundTruth => "gt",
            Self::Given => "given",
        }
    }

    /// Whether it searches at all.
    pub fn retrieves(self) -> bool {
        !matches!(self, Self::Without | Self::Given)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| {
                format!("'{name}' is no mode; the modes are none, rg1, rg-rg, gt and given")
            })
    }
}

/// What is searched for on behalf of one task (and one sample of its prediction).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryWindow {
    /// The task's row.
    pub row: u32,
    /// Which of the task's predictions is in it; 0 in the other modes.
    pub sample: u32,
    /// The task's id.
    pub task_id: String,
    /// `repository/folder/…/file.py` of the hole.
    pub path: String,
    /// The hole's line.
    pub line_no: u32,
    /// First line that the task's prompt shows.
    pub context_start: u32,
    /// First line, 0-based, in the file (with the prediction put in, where there is one).
    pub start: u32,
    /// Line after the last.
    pub end: u32,
    /// Lines joined by `\n`.
    pub text: String,
}

/// The query windows of one repository's tasks in one mode, by row, then sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryWindows {
    /// The repository's folder name.
    pub repository: String,
    /// Where the queries come from.
    pub mode: Mode,
    /// How long they are.
    pub shape: WindowShape,
    /// The windows.
    pub windows: Vec<QueryWindow>,
}

/// What cutting query windows gave: the windows, and the tasks that have none, with the reason.
#[derive(Debug)]
pub struct Cut {
    /// The windows.
    pub queries: QueryWindows,
    /// Tasks without a window.
    pub skipped: Vec<Error>,
}

impl QueryWindows {
    /// Query windows that need nothing but the repository: [`Mode::LeftContext`] and [`Mode::GroundTruth`].
    pub fn cut(mode: Mode, tasks: &TaskSet, windows: &RepoWindows) -> Cut {
        let shape = windows.shape;
        cut_each(mode, tasks, windows, |task, lines| {
            let (start, end) = match mode {
                Mode::GroundTruth => around_hole(task, shape, lines.count()),
                _ => (
                    task.context_start
                        .max(task.line_no.saturating_sub(shape.window_size)),
                    task.line_no,
                ),
            };
            vec![query_window(
                task,
                0,
                (start, end),
                lines.range(start, end).to_owned(),
            )]
        })
    }

    /// Query windows with a prediction in the hole's place. `predictions[i]` are the samples for `tasks.tasks[i]`.
    pub fn cut_with_predictions(
        tasks: &TaskSet,
        predictions: &[Vec<String>],
        windows: &RepoWindows,
    ) -> Cut {
        let shape = windows.shape;
        let index_of_row = |row: usize| tasks.tasks.partition_point(|task| task.row < row);
        let mut empty = Vec::new();
        let mut cut = cut_each(Mode::Prediction, tasks, windows, |task, lines| {
            let samples = predictions
                .get(index_of_row(task.row))
                .map_or(&[][..], Vec::as_slice);
            if samples.is_empty() {
                empty.push(tasks.error(task, "has no prediction, so nothing to search with"));
            }
            let mut windows = Vec::new();
            for (sample, prediction) in samples.iter().enumerate() {
                match with_prediction(task, shape, lines, prediction) {
                    Some((range, text)) => windows.push(query_window(task, sample, range, text)),
                    None => empty.push(tasks.error(
                        task,
                        format!("sample {sample}: neither the prediction nor the lines before it hold anything to search with"),
                    )),
                }
            }
            windows
        });
        cut.skipped.extend(empty);
        cut
    }
}

fn query_window(
    task: &Task,
    sample: usize,
    (start, end): (usize, usize),
    text: String,
) -> QueryWindow {
    QueryWindow {
        row: task.row as u32,
        sample: sample as u32,
        task_id: task.id.clone(),
        path: task.path.clone(),
        line_no: task.line_no as u32,
        context_start: task.context_start as u32,
        start: start as u32,
        end: end as u32,
        text,
    }
}

fn cut_each(
    mode: Mode,
    tasks: &TaskSet,
    windows: &RepoWindows,
    mut queries_of: impl FnMut(&Task, &Lines) -> Vec<QueryWindow>,
) -> Cut {
    let (mut queries, mut skipped) = (Vec::new(), Vec::new());
    for task in tasks.of_repository(&windows.repository) {
        match hole_lines(task, windows) {
            Ok(lines) => queries.extend(queries_of(task, lines)),
            Err(reason) => skipped.push(tasks.error(task, reason)),
        }
    }
    let repository = windows.repository.clone();
    Cut {
        queries: QueryWindows {
            repository,
            mode,
            shape: windows.shape,
            windows: queries,
        },
        skipped,
    }
}

/// What most often lies behind a task that does not fit its repository.
const OTHER_VERSION: &str = "; is this the version that the tasks were made from?";

/// The lines of a task's file, once its hole is known to lie in them.
///
/// # Errors
/// What is wrong with the task, in words.
pub fn hole_lines<'a>(task: &Task, windows: &'a RepoWindows) -> Result<&'a Lines, String> {
    let Some(file) = windows.file_index(&task.path) else {
        let language = Language::of_path(&task.path).map_or("source", Language::title);
        return Err(format!(
            "its file {} is not among the repository's {language} files{OTHER_VERSION}",
            task.path
        ));
    };
    let lines = &windows.files[file].lines;
    if task.line_no >= lines.count() {
        return Err(format!(
            "its hole is at line {} (from 0) of {}, which has {} lines{OTHER_VERSION}",
            task.line_no,
            task.path,
            lines.count()
        ));
    }
    Ok(lines)
}

fn around_hole(task: &Task, shape: WindowShape, count: usize) -> (usize, usize) {
    let start = task
        .context_start
        .max(task.line_no.saturating_sub(shape.half()));
    (
        start,
        count.min(task.line_no + shape.window_size - shape.half()),
    )
}

/// Whether a task's prompt ends where its hole begins: with the file's last non-blank line before it. Where it does
/// not, the task was made from another version of the file, and its hole is not where the task says.
pub fn fits(task: &Task, lines: &Lines) -> bool {
    // Only the last lines are looked at: a `\r\n` cut in two adds a blank line, which does not count. What a prompt has of
    // the hole's own line is no line before it.
    let begun = unfinished_line(&task.prompt);
    let is_begun = task.line_no < lines.count() && lines.line(task.line_no).starts_with(begun);
    let shown = &task.prompt[..task.prompt.len() - if is_begun { begun.len() } else { 0 }];
    let shown = shown.rsplit(is_separator).map(strip);
    let before = (task.context_start..task.line_no).rev();
    let before = before.map(|number| strip(lines.line(number)));
    let is_text = |line: &&str| !line.is_empty();
    shown.into_iter().find(is_text) == before.into_iter().find(is_text)
}

/// The reference's prediction window: the file's lines before the hole followed by the prediction's non-blank
/// lines; a window around the hole in that, its blank lines dropped. `None` where nothing is left.
fn with_prediction(
    task: &Task,
    shape: WindowShape,
    lines: &Lines,
    prediction: &str,
) -> Option<((usize, usize), String)> {
    let predicted = Lines::new(prediction);
    let predicted: Vec<&str> = predicted
        .iter()
        .filter(|line| !strip(line).is_empty())
        .collect();
    let (start, end) = around_hole(task, shape, task.line_no + predicted.len());
    let before = (start..end.min(task.line_no))
        .map(|number| lines.line(number))
        .filter(|line| !strip(line).is_empty());
    let after = predicted
        .iter()
        .copied()
        .take(end.saturating_sub(task.line_no));
    let kept: Vec<&str> = before.chain(after).collect();
    (!kept.is_empty()).then(|| ((start, end), kept.join("\n")))
}

impl Payload for QueryWindows {
    const KIND: &'static str = "query windows";

    fn records(&self) -> usize {
        self.windows.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        Ok(vec![Column::records("query windows", self)?])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        columns.records("query windows")
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::corpus::{Repository, SourceFile};
    use std::path::PathBuf;

    fn windows() -> RepoWindows {
        let text: String = (0..60)
            .map(|n| {
                if n % 7 == 3 {
                    "\n".into()
                } else {
                    format!("line {n}\n")
                }
            })
            .collect();
        let file = SourceFile {
            path: "r/a.py".into(),
            text,
            same_as: 0,
        };
        RepoWindows::cut(
            Repository {
                name: "r".into(),
                files: vec![file],
            },
            WindowShape::default(),
        )
    }

    fn tasks(holes: &[(usize, usize)]) -> TaskSet {
        let task = |(row, &(context_start, line_no)): (usize, &(usize, usize))| Task {
            row,
            line: row + 1,
            ..Task::new(
                format!("r/{row}"),
                "r/a.py",
                context_start,
                line_no,
                "x",
                "",
            )
        };
        TaskSet {
            path: PathBuf::from("t.jsonl"),
            tasks: holes.iter().enumerate().map(task).collect(),
        }
    }

    #[test]
    fn left_context_and_ground_truth_ranges() {
        // By hand from the reference's formulas: w = 20, delta = 10.
        let tasks = tasks(&[(0, 57), (50, 57), (0, 5), (0, 30)]);
        let ranges = |mode| {
            let cut = QueryWindows::cut(mode, &tasks, &windows());
            cut.queries
                .windows
                .iter()
                .map(|q| (q.start, q.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            ranges(Mode::LeftContext),
            [(37, 57), (50, 57), (0, 5), (10, 30)]
        );
        assert_eq!(
            ranges(Mode::GroundTruth),
            [(47, 60), (50, 60), (0, 15), (20, 40)]
        );
    }

    #[test]
    fn predictions_replace_what_follows_the_hole() {
        let tasks = tasks(&[(0, 30), (30, 30), (0, 31)]);
        let long = (0..30).map(|n| format!("p{n}\n\n")).collect::<String>();
        let predictions = [vec!["a\n\n  b\n".into(), long], vec![" \n".into()], vec![]];
        let cut = QueryWindows::cut_with_predictions(&tasks, &predictions, &windows());
        let first = &cut.queries.windows[0];
        assert_eq!((first.sample, first.start, first.end), (0, 20, 32));
        // Line 24 (24 % 7 == 3) is blank and dropped.
        let before =
            "line 20\nline 21\nline 22\nline 23\nline 25\nline 26\nline 27\nline 28\nline 29";
        assert_eq!(first.text, format!("{before}\na\n  b"));
        let second = &cut.queries.windows[1];
        assert_eq!((second.sample, second.start, second.end), (1, 20, 40));
        assert!(second.text.ends_with("p8\np9"));
        assert_eq!(cut.queries.windows.len(), 2);
        let skipped: Vec<_> = cut.skipped.iter().map(|e| e.to_string()).collect();
        assert!(
            skipped[0].starts_with("t.jsonl:2: task r/1: sample 0: neither the prediction"),
            "{skipped:?}"
        );
        assert!(
            skipped[1].starts_with("t.jsonl:3: task r/2: has no prediction"),
            "{skipped:?}"
        );
    }

    #[test]
    fn a_prompt_of_another_version_does_not_fit() {
        let windows = windows();
        let lines = &windows.files[0].lines;
        let task = |prompt: &str| Task::new("r/0".into(), "r/a.py", 0, 11, "", prompt);
        // Line 10 (10 % 7 == 3) is blank.
        assert!(fits(&task("line 8\nline 9\n\n"), lines));
        assert!(fits(&task("line 9 "), lines));
        assert!(!fits(&task("line 8\n"), lines));
        assert!(!fits(&task(""), lines));
        assert!(fits(
            &Task::new("r/0".into(), "r/a.py", 0, 0, "", ""),
            lines
        ));
    }

    #[test]
    fn tasks_without_file_or_line_are_named() {
        let mut tasks = tasks(&[(0, 60), (0, 5)]);
        tasks.tasks[1].path = "r/missing.py".into();
        let cut = QueryWindows::cut(Mode::LeftContext, &tasks, &windows());
        assert!(cut.queries.windows.is_empty());
        let skipped: Vec<_> = cut.skipped.iter().map(|e| e.to_string()).collect();
        assert_eq!(
            skipped[0],
            "t.jsonl:1: task r/0: its hole is at line 60 (from 0) of r/a.py, which has 60 lines; is this the version that the tasks were made from?"
        );
        assert_eq!(
            skipped[1],
            "t.jsonl:2: task r/1: its file r/missing.py is not among the repository's Python files; is this the version that the tasks were made from?"
        );
    }
}
