//! Queries: what is searched for on behalf of a task, some lines before its hole, behind it, or of what fills it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::mode::Mode;
use crate::error::{Error, Result};
use crate::repository::fragment::{RepoFragments, WindowShape};
use crate::store::artifact::{Column, Columns, Payload};
use crate::task::{Task, TaskSet};
use crate::text::language::Language;
use crate::text::lines::{Lines, is_separator, strip, unfinished_line};

/// Lines of a prediction that a query takes, at most, where it takes no right context.
const PREDICTED_LINES: usize = 5;
/// Lines of a prediction that a query takes, at most, where it takes a right context.
const PREDICTED_BEFORE_RIGHT: usize = 1;
/// Lines of either context for each line of the target, in the labelling query (the paper's algorithms 1 and 2).
const CONTEXT_PER_LINE: usize = 5;

/// Which lines make a query of n lines. Blank lines count in windows only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QueryForm {
    /// RepoCoder's: as many lines of the file as a window has, those before the hole (rg1), around it (gt), or around it with a
    /// prediction in its place (rg-rg). Blank lines count.
    Window,
    /// The last n of the left context.
    LastLines,
    /// The first n of the right context.
    FirstLines,
    /// The last n/2 of the left context and the first of the right one, n in all.
    LeftRight,
    /// The last n of the left context with the target behind it: the oracle.
    GroundTruth,
    /// The end of the left context and at most 5 lines of a prediction, n in all.
    Prediction,
    /// The last n/2 of the left context, a line of a prediction, and the first of the right context, n in all.
    PredictionLeftRight,
    /// For labelling: 5k lines of the left context, the target's k lines, 5k of the right context.
    Surrounding,
    /// For labelling: 5k lines of the left context and 5k of the right one, without the target.
    SurroundingOnly,
}

impl QueryForm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Window,
        Self::LastLines,
        Self::FirstLines,
        Self::LeftRight,
        Self::GroundTruth,
        Self::Prediction,
        Self::PredictionLeftRight,
        Self::Surrounding,
        Self::SurroundingOnly,
    ];

    /// The name on the command line and in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::LastLines => "last-n-lines",
            Self::FirstLines => "first-n-lines",
            Self::LeftRight => "left-right",
            Self::GroundTruth => "ground-truth",
            Self::Prediction => "prediction",
            Self::PredictionLeftRight => "prediction-left-right",
            Self::Surrounding => "surrounding",
            Self::SurroundingOnly => "surrounding-without-target",
        }
    }

    /// The mode that searches with it; the first of three for windows.
    pub fn mode(self) -> Mode {
        match self {
            Self::GroundTruth | Self::Surrounding => Mode::GroundTruth,
            Self::Prediction | Self::PredictionLeftRight => Mode::Prediction,
            _ => Mode::LeftContext,
        }
    }

    /// The form that a mode searches with, where this one was asked for: itself where it is one of that mode's, else the
    /// mode's plain one.
    #[must_use]
    pub fn of_mode(self, mode: Mode) -> Self {
        match mode {
            _ if self == Self::Window || self.mode() == mode => self,
            Mode::GroundTruth => Self::GroundTruth,
            Mode::Prediction if self == Self::LeftRight => Self::PredictionLeftRight,
            Mode::Prediction => Self::Prediction,
            _ => Self::LastLines,
        }
    }

    /// Whether its lines may come from the right context.
    pub fn uses_right_context(self) -> bool {
        !matches!(self, Self::Window | Self::LastLines | Self::GroundTruth | Self::Prediction)
    }

    /// The text of a query of `length` lines, and how many of them stand before the hole.
    fn text(self, contexts: &Contexts<'_>, length: usize) -> (String, usize) {
        let Contexts { left, right, target, filled } = contexts;
        let (left, right, filled) = (non_blank(left), non_blank(right), non_blank(filled));
        let half = length / 2;
        let k = CONTEXT_PER_LINE * non_blank(target).len();
        let (before, behind) = match self {
            Self::Window | Self::LastLines => (last(&left, length).to_vec(), Vec::new()),
            Self::FirstLines => (Vec::new(), first(&right, length).to_vec()),
            Self::LeftRight => (last(&left, half).to_vec(), first(&right, length - half).to_vec()),
            Self::GroundTruth => {
                let all = [left, filled].concat();
                (last(&all, length).to_vec(), Vec::new())
            }
            Self::Prediction => {
                let predicted = first(&filled, PREDICTED_LINES.min(length));
                let left = last(&left, length.saturating_sub(predicted.len()));
                ([left, predicted].concat(), Vec::new())
            }
            Self::PredictionLeftRight => {
                let predicted = first(&filled, PREDICTED_BEFORE_RIGHT);
                let rest = length.saturating_sub(half + predicted.len());
                let before = [last(&left, half), predicted].concat();
                (before, first(&right, rest).to_vec())
            }
            Self::Surrounding => ([last(&left, k), &filled].concat(), first(&right, k).to_vec()),
            Self::SurroundingOnly => (last(&left, k).to_vec(), first(&right, k).to_vec()),
        };
        let hole = before.len();
        ([before, behind].concat().join("\n"), hole)
    }
}

impl fmt::Display for QueryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for QueryForm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|form| form.name() == name);
        named.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown query '{name}'; known: {names}")
        })
    }
}

/// Texts that a task's query can be made of.
struct Contexts<'a> {
    left: &'a str,
    right: &'a str,
    target: &'a str,
    /// Text in the hole: the target or a prediction.
    filled: &'a str,
}

fn non_blank(text: &str) -> Vec<&str> {
    let lines = text.split('\n');
    lines.filter(|line| !strip(line).is_empty()).collect()
}

fn last<'l, 't>(lines: &'l [&'t str], count: usize) -> &'l [&'t str] {
    &lines[lines.len().saturating_sub(count)..]
}

fn first<'l, 't>(lines: &'l [&'t str], count: usize) -> &'l [&'t str] {
    &lines[..lines.len().min(count)]
}

/// The query of one task, or of one sample of its prediction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
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
    /// First line of a window, 0-based, in the file (with the prediction put in, where there is one); 0 in other forms.
    pub start: u32,
    /// Line after the last of a window; 0 in other forms.
    pub end: u32,
    /// How many of its lines stand before the hole, those that fill it included.
    pub hole: u32,
    /// Its lines joined by `\n`.
    pub text: String,
}

impl Query {
    /// Its lines, none where its text is empty.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let text = (!self.text.is_empty()).then_some(self.text.as_str());
        text.into_iter().flat_map(|text| text.split('\n'))
    }

    fn new(task: &Task, sample: usize, text: String) -> Self {
        Self {
            row: task.row as u32,
            sample: sample as u32,
            task_id: task.id.clone(),
            path: task.path.clone(),
            line_no: task.line_no as u32,
            context_start: task.context_start as u32,
            start: 0,
            end: 0,
            hole: 0,
            text,
        }
    }
}

/// The queries of one repository's tasks in one mode, by row, then sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queries {
    /// The repository's folder name.
    pub repository: String,
    /// Where they come from.
    pub mode: Mode,
    /// Which lines they are made of.
    pub form: QueryForm,
    /// Number of lines, at most.
    pub length: u32,
    /// Size and overlap of the windows that queries of form [`QueryForm::Window`] resemble.
    pub shape: Option<WindowShape>,
    /// One a task, or one a sample.
    pub queries: Vec<Query>,
}

/// How the queries of one mode are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuerySettings {
    /// Where they come from.
    pub mode: Mode,
    /// Which lines they are made of.
    pub form: QueryForm,
    /// Number of lines, at most; a window has its own.
    pub length: usize,
}

/// Queries, and the tasks that have none.
#[derive(Debug)]
pub struct Made {
    /// The queries.
    pub queries: Queries,
    /// Tasks without a query, each with its reason.
    pub skipped: Vec<Error>,
}

impl Queries {
    /// Makes the queries of a repository's tasks that need nothing but the tasks and the repository.
    pub fn of_tasks(settings: QuerySettings, tasks: &TaskSet, fragments: &RepoFragments) -> Made {
        Self::make(settings, tasks, fragments, |task| task.right_context.as_deref(), None)
    }

    /// Makes the queries of a repository's tasks in one mode, each with the task's right context (`right_of`);
    /// `predictions[i]` are the samples for `tasks.tasks[i]`, which mode rg-rg searches with.
    pub fn make<'t>(
        settings: QuerySettings,
        tasks: &'t TaskSet,
        fragments: &RepoFragments,
        right_of: impl Fn(&'t Task) -> Option<&'t str>,
        predictions: Option<&[Vec<String>]>,
    ) -> Made {
        let QuerySettings { mode, form, length } = settings;
        let (mut queries, mut skipped) = (Vec::new(), Vec::new());
        let shape = match form {
            QueryForm::Window => fragments.cut.windows(),
            _ => None,
        };
        for (number, task) in tasks.tasks.iter().enumerate() {
            if task.repository != fragments.repository {
                continue;
            }
            let lines = match shape {
                Some(_) => hole_lines(task, fragments).map(Some),
                None => file_lines(task, fragments).map(|_| None),
            };
            let lines = match lines {
                Ok(lines) => lines,
                Err(reason) => {
                    skipped.push(tasks.error(task, reason));
                    continue;
                }
            };
            let fillings: &[String] = match predictions {
                Some(predictions) => predictions.get(number).map_or(&[], Vec::as_slice),
                None => std::slice::from_ref(&task.ground_truth),
            };
            if fillings.is_empty() {
                skipped.push(tasks.error(task, "has no prediction to search with"));
            }
            for (sample, filled) in fillings.iter().enumerate() {
                let made = match (lines, shape) {
                    (Some(lines), Some(shape)) => {
                        window(WindowQuery { task, sample, shape, lines }, mode, filled)
                    }
                    _ => {
                        let contexts = Contexts {
                            left: &task.prompt,
                            right: right_of(task).unwrap_or_default(),
                            target: &task.ground_truth,
                            filled,
                        };
                        let (text, hole) = form.text(&contexts, length);
                        let hole = hole as u32;
                        Ok(Query { hole, ..Query::new(task, sample, text) })
                    }
                };
                match made {
                    Ok(query) => queries.push(query),
                    Err(reason) => skipped.push(tasks.error(task, reason)),
                }
            }
        }
        let queries = Self {
            repository: fragments.repository.clone(),
            mode,
            form,
            length: shape.map_or(length, |shape| shape.window_size) as u32,
            shape,
            queries,
        };
        Made { queries, skipped }
    }
}

/// A query of RepoCoder's: where it is to be cut.
struct WindowQuery<'a> {
    task: &'a Task,
    sample: usize,
    shape: WindowShape,
    /// The lines of the hole's file.
    lines: &'a Lines,
}

fn window(query: WindowQuery<'_>, mode: Mode, filled: &str) -> Result<Query, String> {
    let WindowQuery { task, sample, shape, lines } = query;
    let ((start, end), text, hole) = match mode {
        Mode::GroundTruth => {
            let (start, end) = around_hole(task, shape, lines.count());
            let target = Lines::new(filled).count();
            let hole = (task.line_no + target).min(end).saturating_sub(start);
            ((start, end), lines.range(start, end).to_owned(), hole)
        }
        Mode::Prediction => {
            let found = with_prediction(task, shape, lines, filled);
            let (range, text) = found.ok_or_else(|| format!(
                "sample {sample}: neither the prediction nor the lines before it hold anything to search with"
            ))?;
            let hole = Lines::joined(text.clone()).count();
            (range, text, hole)
        }
        _ => {
            let (start, end) = (
                task.context_start.max(task.line_no.saturating_sub(shape.window_size)),
                task.line_no,
            );
            ((start, end), lines.range(start, end).to_owned(), end.saturating_sub(start))
        }
    };
    Ok(Query {
        start: start as u32,
        end: end as u32,
        hole: hole as u32,
        ..Query::new(task, sample, text)
    })
}

/// The usual reason why a task does not fit its repository.
const OTHER_VERSION: &str = "; is this the version that the tasks were made from?";

/// The lines of a task's file.
fn file_lines<'a>(task: &Task, fragments: &'a RepoFragments) -> Result<&'a Lines, String> {
    let file = fragments.file_index(&task.path).ok_or_else(|| {
        let title = Language::of_path(&task.path).map_or("source", Language::title);
        format!("its file {} is not among the repository's {title} files{OTHER_VERSION}", task.path)
    })?;
    Ok(&fragments.files[file].lines)
}

/// The lines of a task's file, once its hole is known to lie in them.
///
/// # Errors
/// Says in words what is wrong with the task.
pub fn hole_lines<'a>(task: &Task, fragments: &'a RepoFragments) -> Result<&'a Lines, String> {
    let lines = file_lines(task, fragments)?;
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
    let start = task.context_start.max(task.line_no.saturating_sub(shape.half()));
    (start, count.min(task.line_no + shape.window_size - shape.half()))
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
    let predicted: Vec<&str> = predicted.iter().filter(|line| !strip(line).is_empty()).collect();
    let (start, end) = around_hole(task, shape, task.line_no + predicted.len());
    let before = (start..end.min(task.line_no))
        .map(|number| lines.line(number))
        .filter(|line| !strip(line).is_empty());
    let after = predicted.iter().copied().take(end.saturating_sub(task.line_no));
    let kept: Vec<&str> = before.chain(after).collect();
    (!kept.is_empty()).then(|| ((start, end), kept.join("\n")))
}

impl Payload for Queries {
    const KIND: &'static str = "queries";

    fn records(&self) -> usize {
        self.queries.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        Ok(vec![Column::records("queries", self)?])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        columns.records("queries")
    }

    fn check(&self) -> Result<(), String> {
        if self.form == QueryForm::Window && self.shape.is_none() {
            return Err("queries of windows without their shape".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::corpus::{Repository, SourceFile};
    use crate::repository::fragment::Cut;
    use std::path::PathBuf;

    fn windows() -> RepoFragments {
        let text: String =
            (0..60).map(|n| if n % 7 == 3 { "\n".into() } else { format!("line {n}\n") }).collect();
        let file = SourceFile { path: "r/a.py".into(), text, same_as: 0 };
        let repository = Repository { name: "r".into(), files: vec![file] };
        RepoFragments::cut(repository, Language::Python, Cut::Windows(WindowShape::default()))
    }

    fn tasks(holes: &[(usize, usize)]) -> TaskSet {
        let task = |(row, &(context_start, line_no)): (usize, &(usize, usize))| Task {
            row,
            line: row + 1,
            ..Task::new(format!("r/{row}"), "r/a.py", context_start, line_no, "x", "")
        };
        TaskSet {
            path: PathBuf::from("t.jsonl"),
            tasks: holes.iter().enumerate().map(task).collect(),
        }
    }

    fn window(mode: Mode) -> QuerySettings {
        QuerySettings { mode, form: QueryForm::Window, length: 20 }
    }

    #[test]
    fn left_context_and_ground_truth_ranges() {
        // By hand from the reference's formulas: w = 20, delta = 10.
        let tasks = tasks(&[(0, 57), (50, 57), (0, 5), (0, 30)]);
        let ranges = |mode| {
            let cut = Queries::of_tasks(window(mode), &tasks, &windows());
            cut.queries.queries.iter().map(|q| (q.start, q.end)).collect::<Vec<_>>()
        };
        assert_eq!(ranges(Mode::LeftContext), [(37, 57), (50, 57), (0, 5), (10, 30)]);
        assert_eq!(ranges(Mode::GroundTruth), [(47, 60), (50, 60), (0, 15), (20, 40)]);
    }

    #[test]
    fn predictions_replace_what_follows_the_hole() {
        let tasks = tasks(&[(0, 30), (30, 30), (0, 31)]);
        let long = (0..30).map(|n| format!("p{n}\n\n")).collect::<String>();
        let predictions = [vec!["a\n\n  b\n".into(), long], vec![" \n".into()], vec![]];
        let cut = Queries::make(
            window(Mode::Prediction),
            &tasks,
            &windows(),
            |_| None,
            Some(&predictions),
        );
        let first = &cut.queries.queries[0];
        assert_eq!((first.sample, first.start, first.end), (0, 20, 32));
        // Line 24 (24 % 7 == 3) is blank and dropped.
        let before =
            "line 20\nline 21\nline 22\nline 23\nline 25\nline 26\nline 27\nline 28\nline 29";
        assert_eq!(first.text, format!("{before}\na\n  b"));
        let second = &cut.queries.queries[1];
        assert_eq!((second.sample, second.start, second.end), (1, 20, 40));
        assert!(second.text.ends_with("p8\np9"));
        assert_eq!(cut.queries.queries.len(), 2);
        let skipped: Vec<_> = cut.skipped.iter().map(|e| e.to_string()).collect();
        assert!(
            skipped[0].starts_with("t.jsonl:2: task r/1: sample 0: neither the prediction"),
            "{skipped:?}"
        );
        assert!(skipped[1].starts_with("t.jsonl:3: task r/2: has no prediction"), "{skipped:?}");
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
        assert!(fits(&Task::new("r/0".into(), "r/a.py", 0, 0, "", ""), lines));
    }

    #[test]
    fn tasks_without_file_or_line_are_named() {
        let mut tasks = tasks(&[(0, 60), (0, 5)]);
        tasks.tasks[1].path = "r/missing.py".into();
        let cut = Queries::of_tasks(window(Mode::LeftContext), &tasks, &windows());
        assert!(cut.queries.queries.is_empty());
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
