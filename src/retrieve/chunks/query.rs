//! What is searched for among chunks: some non-blank lines before the hole, behind it, or of what is put into it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::repository::chunk::RepoChunks;
use crate::retrieve::query::Mode;
use crate::store::artifact::{Column, Columns, Payload};
use crate::task::{Task, TaskSet};
use crate::text::lines::strip;

/// Lines of a prediction that a query takes, at most, where it takes no right context.
const PREDICTED_LINES: usize = 5;
/// The same where it does.
const PREDICTED_BEFORE_RIGHT: usize = 1;
/// Lines of either context for each line of the target, in the labelling query (the paper's algorithms 1 and 2).
const CONTEXT_PER_LINE: usize = 5;

/// Which lines make a query of n lines. Blank lines never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QueryForm {
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
    /// The same without the target.
    SurroundingOnly,
}

impl QueryForm {
    /// All of them.
    pub const ALL: [Self; 8] = [
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

    /// The mode that searches with it.
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
            _ if self.mode() == mode => self,
            Mode::GroundTruth => Self::GroundTruth,
            Mode::Prediction if self == Self::LeftRight => Self::PredictionLeftRight,
            Mode::Prediction => Self::Prediction,
            _ => Self::LastLines,
        }
    }

    /// The lines of a query of `length` lines, and how many of them stand before the hole.
    fn lines(self, contexts: &Contexts<'_>, length: usize) -> (Vec<String>, usize) {
        let Contexts {
            left,
            right,
            target,
            filled,
        } = contexts;
        let (left, right, filled) = (non_blank(left), non_blank(right), non_blank(filled));
        let half = length / 2;
        let k = CONTEXT_PER_LINE * non_blank(target).len();
        let (before, behind) = match self {
            Self::LastLines => (last(&left, length).to_vec(), Vec::new()),
            Self::FirstLines => (Vec::new(), first(&right, length).to_vec()),
            Self::LeftRight => (
                last(&left, half).to_vec(),
                first(&right, length - half).to_vec(),
            ),
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
            Self::Surrounding => (
                [last(&left, k), &filled].concat(),
                first(&right, k).to_vec(),
            ),
            Self::SurroundingOnly => (last(&left, k).to_vec(), first(&right, k).to_vec()),
        };
        let hole = before.len();
        let lines = before.into_iter().chain(behind).map(str::to_owned);
        (lines.collect(), hole)
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
            format!("'{name}' is no query; the queries are {names}")
        })
    }
}

/// What a task's query can be made of.
struct Contexts<'a> {
    left: &'a str,
    right: &'a str,
    target: &'a str,
    /// What stands in the hole: the target or a prediction.
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

/// What is searched for on behalf of one task (and one sample of its prediction).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The task's row.
    pub row: u32,
    /// Which of the task's predictions is in it; 0 in the other modes.
    pub sample: u32,
    /// The task's id.
    pub task_id: String,
    /// `repository/folder/…/file` of the hole.
    pub path: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// How many of them stand before the hole, those that fill it included.
    pub hole: u32,
}

impl Query {
    /// Its lines joined by `\n`.
    pub fn text(&self) -> String {
        self.lines.join("\n")
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
    /// How many, at most.
    pub length: u32,
    /// One a task, or one a sample.
    pub queries: Vec<Query>,
}

/// Makes the queries of a repository's tasks in one mode, each with the task's right context (`right_of`); `predictions[i]`
/// are the samples for `tasks.tasks[i]`. Returned with them: the tasks that have none, with the reason.
pub fn queries<'t>(
    (mode, form, length): (Mode, QueryForm, usize),
    tasks: &'t TaskSet,
    chunks: &RepoChunks,
    right_of: impl Fn(&'t Task) -> Option<&'t str>,
    predictions: Option<&[Vec<String>]>,
) -> (Queries, Vec<Error>) {
    let (mut queries, mut skipped) = (Vec::new(), Vec::new());
    for (number, task) in tasks.tasks.iter().enumerate() {
        if task.repository != chunks.repository {
            continue;
        }
        if chunks.file_index(&task.path).is_none() {
            let reason = format!(
                "its file {} is not among the repository's {} files; is this the version that the tasks were made from?",
                task.path,
                chunks.language.title()
            );
            skipped.push(tasks.error(task, reason));
            continue;
        }
        let fillings: &[String] = match predictions {
            Some(predictions) => predictions.get(number).map_or(&[], Vec::as_slice),
            None => std::slice::from_ref(&task.ground_truth),
        };
        if fillings.is_empty() {
            skipped.push(tasks.error(task, "has no prediction to search with"));
        }
        queries.extend((0..).zip(fillings).map(|(sample, filled)| {
            let contexts = Contexts {
                left: &task.prompt,
                right: right_of(task).unwrap_or_default(),
                target: &task.ground_truth,
                filled,
            };
            let (lines, hole) = form.lines(&contexts, length);
            Query {
                row: task.row as u32,
                sample,
                task_id: task.id.clone(),
                path: task.path.clone(),
                lines,
                hole: hole as u32,
            }
        }));
    }
    let queries = Queries {
        repository: chunks.repository.clone(),
        mode,
        form,
        length: length as u32,
        queries,
    };
    (queries, skipped)
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
        let outside = |query: &Query| query.hole as usize > query.lines.len();
        match self.queries.iter().any(outside) {
            true => Err("a query's hole lies outside it".into()),
            false => Ok(()),
        }
    }
}
