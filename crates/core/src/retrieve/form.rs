//! Forms of queries: the lines of a task's contexts that are used to search.

use repoformer_text::lines::strip;
use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::mode::Mode;

/// Maximum number of a prediction's lines in a query without right context.
const PREDICTED_LINES: usize = 5;
/// Maximum number of a prediction's lines in a query with right context.
const PREDICTED_BEFORE_RIGHT: usize = 1;
/// Number of lines of either context per line of the target, in the labelling query (the paper's algorithms 1 and 2).
const CONTEXT_PER_LINE: usize = 5;

/// Lines that form a query of n lines. Blank lines count in windows only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QueryForm {
    /// RepoCoder's query: as many lines of the file as a window has. They are before the hole (rg1), around it (gt), or around
    /// it with a prediction in its place (rg-rg). Blank lines count.
    Window,
    /// The last n lines of the left context.
    LastLines,
    /// The first n lines of the right context.
    FirstLines,
    /// The last n/2 lines of the left context and the first lines of the right one, n in total.
    LeftRight,
    /// The last n lines of the left context followed by the target: the oracle.
    GroundTruth,
    /// The end of the left context and at most 5 lines of a prediction, n lines in total.
    Prediction,
    /// The last n/2 lines of the left context, one line of a prediction, and the first lines of the right context, n in total.
    PredictionLeftRight,
    /// For labelling: 5k lines of the left context, the k lines of the target, and 5k lines of the right context.
    Surrounding,
    /// For labelling: 5k lines of the left context and 5k lines of the right one, without the target.
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
    /// Returns the mode that searches with this form; for windows, the first of three modes.
    pub fn mode(self) -> Mode {
        match self {
            Self::GroundTruth | Self::Surrounding => Mode::GroundTruth,
            Self::Prediction | Self::PredictionLeftRight => Mode::Prediction,
            _ => Mode::LeftContext,
        }
    }

    /// Returns the form with which a mode searches if this form was requested: this form if it belongs to the mode, otherwise
    /// the mode's plain form.
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

    /// Returns true if lines of the query may come from the right context.
    pub fn uses_right_context(self) -> bool {
        !matches!(self, Self::Window | Self::LastLines | Self::GroundTruth | Self::Prediction)
    }

    /// Returns the text of a query of `length` lines, and the number of its lines before the hole.
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

/// Texts from which a task's query can be made.
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
