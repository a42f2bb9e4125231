//! Forms of queries: which lines of a task's contexts are searched with.

use repoformer_text::lines::strip;
use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::mode::Mode;

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

named! {
    QueryForm, "query":
    Window = "window",
    LastLines = "last-n-lines",
    FirstLines = "first-n-lines",
    LeftRight = "left-right",
    GroundTruth = "ground-truth",
    Prediction = "prediction",
    PredictionLeftRight = "prediction-left-right",
    Surrounding = "surrounding",
    SurroundingOnly = "surrounding-without-target",
}

impl QueryForm {
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
    pub(super) fn text(self, contexts: &Contexts<'_>, length: usize) -> (String, usize) {
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

/// Texts that a task's query can be made of.
pub(super) struct Contexts<'a> {
    pub(super) left: &'a str,
    pub(super) right: &'a str,
    pub(super) target: &'a str,
    /// Text in the hole: the target or a prediction.
    pub(super) filled: &'a str,
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
