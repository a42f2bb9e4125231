//! Queries: the text with which a task searches, made from lines before its hole, after its hole, or in the text that fills it.

use std::ops::Range;

use repoformer_store::artifact::{Column, Columns, Payload};
use repoformer_store::error::{Error, Result};
use repoformer_text::counts::format_count;
use repoformer_text::language::Language;
use repoformer_text::lines::{Lines, strip};
use serde::{Deserialize, Serialize};

use super::form::{Contexts, QueryForm};
use super::mode::Mode;
use crate::repository::fragment::{RepoFragments, WindowShape};
use crate::task::{Task, TaskSet};

/// The query of one task, or of one sample of its prediction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Row of the task.
    pub row: u32,
    /// Number of the prediction in the query, among the task's predictions; 0 in the other modes.
    pub sample: u32,
    /// Id of the task.
    pub task_id: String,
    /// `repository/folder/…/file.py` of the hole.
    pub path: String,
    /// 0-based line of the hole.
    pub line_no: u32,
    /// First line that the task's prompt shows.
    pub context_start: u32,
    /// First line of a window, 0-based, in the file (with the prediction inserted, if there is one); 0 in other forms.
    pub start: u32,
    /// Line after the last line of a window; 0 in other forms.
    pub end: u32,
    /// Number of the query's lines before the hole's end: before the hole, or in the text that fills it.
    pub hole: u32,
    /// Lines of the query, joined by `\n`.
    pub text: String,
}

impl Query {
    /// Returns the lines of the query; none if its text is empty.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let text = (!self.text.is_empty()).then_some(self.text.as_str());
        text.into_iter().flat_map(|text| text.split('\n'))
    }

    /// Creates the query of a task's first sample.
    fn new(task: &Task, range: Range<usize>, hole: usize, text: String) -> Self {
        Self {
            row: task.row as u32,
            sample: 0,
            task_id: task.id.clone(),
            path: task.path.clone(),
            line_no: task.line_no as u32,
            context_start: task.context_start as u32,
            start: range.start as u32,
            end: range.end as u32,
            hole: hole as u32,
            text,
        }
    }
}

/// Queries of one repository's tasks in one mode, by row, then by sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queries {
    /// Name of the repository's folder.
    pub repository: String,
    /// Source of the queries.
    pub mode: Mode,
    /// Form of the queries: the lines that they have.
    pub form: QueryForm,
    /// Maximum number of lines per query.
    pub length: u32,
    /// Size and overlap of the windows that the queries resemble, if their form is [`QueryForm::Window`].
    pub shape: Option<WindowShape>,
    /// One query per task, or per sample.
    pub queries: Vec<Query>,
}

/// Settings for making the queries of one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuerySettings {
    /// Source of the queries.
    pub mode: Mode,
    /// Form of the queries: the lines that they have.
    pub form: QueryForm,
    /// Maximum number of lines; the number of lines in a window is set separately.
    pub length: usize,
}

/// Queries, and the tasks that have none.
#[derive(Debug)]
pub struct QueryOutcome {
    /// The queries.
    pub queries: Queries,
    /// Tasks without a query, each with its reason.
    pub skipped: Vec<Error>,
}

impl Queries {
    /// Makes the queries of a repository's tasks in modes that need only the tasks and the repository.
    pub fn of_tasks(
        settings: QuerySettings,
        tasks: &TaskSet,
        fragments: &RepoFragments,
    ) -> QueryOutcome {
        Self::make(settings, tasks, fragments, |task| task.right_context.as_deref(), None)
    }

    /// Makes the queries of a repository's tasks in one mode. `right_of` returns a task's right context. `predictions[i]` has
    /// the samples for `tasks.tasks()[i]`, which mode rg-rg uses to search.
    pub fn make<'t>(
        settings: QuerySettings,
        tasks: &'t TaskSet,
        fragments: &RepoFragments,
        right_of: impl Fn(&'t Task) -> Option<&'t str>,
        predictions: Option<&[Vec<String>]>,
    ) -> QueryOutcome {
        let QuerySettings { mode, form, length } = settings;
        let (mut queries, mut skipped) = (Vec::new(), Vec::new());
        let shape = match form {
            QueryForm::Window => fragments.cut.windows(),
            _ => None,
        };
        for number in tasks.numbers_of(&fragments.repository) {
            let task = &tasks.tasks()[number];
            let lines = match shape {
                Some(_) => hole_lines(task, fragments),
                None => file_lines(task, fragments),
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
                let query = match shape {
                    Some(shape) => window(task, lines, shape, mode, filled),
                    None => {
                        let contexts = Contexts {
                            left: &task.prompt,
                            right: right_of(task).unwrap_or_default(),
                            target: &task.ground_truth,
                            filled,
                        };
                        let (text, hole) = form.text(&contexts, length);
                        Some(Query::new(task, 0..0, hole, text))
                    }
                };
                match query {
                    Some(query) => queries.push(Query { sample: sample as u32, ..query }),
                    None => skipped.push(tasks.error(task, format!(
                        "sample {sample}: the prediction and the lines before it have no words to search with"
                    ))),
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
        QueryOutcome { queries, skipped }
    }
}

/// Makes a query of RepoCoder's form; `None` if a prediction leaves no text for the search.
fn window(
    task: &Task,
    lines: &Lines,
    shape: WindowShape,
    mode: Mode,
    filled: &str,
) -> Option<Query> {
    let (range, hole, text) = match mode {
        Mode::GroundTruth => {
            let range = around_hole(task, shape, lines.count());
            let hole = task.line_no + Lines::new(filled).count();
            let hole = hole.min(range.end).saturating_sub(range.start);
            let text = lines.range(range.start, range.end).to_owned();
            (range, hole, text)
        }
        Mode::Prediction => {
            let (range, text) = with_prediction(task, shape, lines, filled)?;
            (range, Lines::with_line_feeds(text.clone()).count(), text)
        }
        _ => {
            let start = task.context_start.max(task.line_no.saturating_sub(shape.window_size));
            let text = lines.range(start, task.line_no).to_owned();
            (start..task.line_no, task.line_no.saturating_sub(start), text)
        }
    };
    Some(Query::new(task, range, hole, text))
}

/// Hint at the usual reason why a task does not match its repository.
const OTHER_VERSION: &str = "; is this the repository version that the tasks were made from?";

/// Returns the lines of a task's file.
fn file_lines<'a>(task: &Task, fragments: &'a RepoFragments) -> Result<&'a Lines, String> {
    let file = fragments.file_index(&task.path).ok_or_else(|| {
        let title = Language::of_path(&task.path).map_or("source", Language::title);
        format!("its file {} is not among the repository's {title} files{OTHER_VERSION}", task.path)
    })?;
    Ok(&fragments.files[file].lines)
}

/// Returns the lines of a task's file, after a check that its hole is in them.
///
/// # Errors
/// The task does not match the repository; the error describes how.
pub fn hole_lines<'a>(task: &Task, fragments: &'a RepoFragments) -> Result<&'a Lines, String> {
    let lines = file_lines(task, fragments)?;
    if task.line_no >= lines.count() {
        return Err(format!(
            "its hole is at line {} (counted from 0) of {}, which has {}{OTHER_VERSION}",
            task.line_no,
            task.path,
            format_count(lines.count() as u64, "line")
        ));
    }
    Ok(lines)
}

fn around_hole(task: &Task, shape: WindowShape, count: usize) -> Range<usize> {
    let start = task.context_start.max(task.line_no.saturating_sub(shape.half()));
    start..count.min(task.line_no + shape.window_size - shape.half())
}

/// Makes the reference program's prediction window: the file's lines before the hole, followed by the prediction's non-blank
/// lines; a window around the hole in this text, without its blank lines. `None` if no lines are left.
fn with_prediction(
    task: &Task,
    shape: WindowShape,
    lines: &Lines,
    prediction: &str,
) -> Option<(Range<usize>, String)> {
    let predicted = Lines::new(prediction);
    let predicted: Vec<&str> = predicted.iter().filter(|line| !strip(line).is_empty()).collect();
    let range = around_hole(task, shape, task.line_no + predicted.len());
    let before = (range.start..range.end.min(task.line_no))
        .map(|number| lines.line(number))
        .filter(|line| !strip(line).is_empty());
    let after = predicted.iter().copied().take(range.end.saturating_sub(task.line_no));
    let kept: Vec<&str> = before.chain(after).collect();
    (!kept.is_empty()).then(|| (range, kept.join("\n")))
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
            return Err("its window queries lack the window shape".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::repository::corpus::{Repository, SourceFile};
    use crate::repository::fragment::Cut;

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
        TaskSet::new(PathBuf::from("t.jsonl"), holes.iter().enumerate().map(task).collect())
    }

    #[test]
    fn predictions_replace_what_follows_the_hole() {
        let tasks = tasks(&[(0, 30), (30, 30), (0, 31)]);
        let long = (0..30).map(|n| format!("p{n}\n\n")).collect::<String>();
        let predictions = [vec!["a\n\n  b\n".into(), long], vec![" \n".into()], vec![]];
        let (mode, form) = (Mode::Prediction, QueryForm::Window);
        let settings = QuerySettings { mode, form, length: 20 };
        let cut = Queries::make(settings, &tasks, &windows(), |_| None, Some(&predictions));
        let first = &cut.queries.queries[0];
        assert_eq!((first.sample, first.start, first.end), (0, 20, 32));
        // Line 24 (24 % 7 == 3) is blank and is dropped.
        let before =
            "line 20\nline 21\nline 22\nline 23\nline 25\nline 26\nline 27\nline 28\nline 29";
        assert_eq!(first.text, format!("{before}\na\n  b"));
        let second = &cut.queries.queries[1];
        assert_eq!((second.sample, second.start, second.end), (1, 20, 40));
        assert!(second.text.ends_with("p8\np9"));
        assert_eq!(cut.queries.queries.len(), 2);
        let skipped: Vec<_> = cut.skipped.iter().map(|e| e.to_string()).collect();
        let wanted = "t.jsonl:2: task r/1: sample 0: the prediction and the lines";
        assert!(skipped[0].starts_with(wanted), "{skipped:?}");
        assert!(skipped[1].starts_with("t.jsonl:3: task r/2: has no prediction"), "{skipped:?}");
    }
}
