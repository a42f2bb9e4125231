//! Results of a step, and reasons why it leaves a prediction whole.

use repoformer_text::named;

use super::prefix::Prefixes;

/// Reason why a step that parses leaves a prediction whole, as the reference programs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UncutReason {
    /// The grammar cannot parse the file up to the end of the hole, even with the target in the hole.
    File,
    /// No prefix of the prediction parses.
    Prediction,
    /// The parse takes more time or memory than the length of the text allows.
    Bound,
}

named! {
    UncutReason, "reason":
    File = "file",
    Prediction = "prediction",
    Bound = "bound",
}

impl UncutReason {
    /// Returns the reason why no prefix of a prediction parses after a left context.
    pub(super) fn from_texts(left_context: &str, target: &str) -> Self {
        let mut prefixes = Prefixes::new(left_context, target);
        if prefixes.parses(target.len()) { Self::Prediction } else { Self::File }
    }
}

/// Target and prediction after a step.
pub(super) struct Cut {
    /// The target, if it changed.
    pub(super) target: Option<String>,
    /// The prediction.
    pub(super) prediction: String,
    /// Reason why the prediction is still whole, if it could not be cut.
    pub(super) uncut: Option<UncutReason>,
    /// Whether the prediction is code that a chat model marked.
    pub(super) is_marked: bool,
}

impl Cut {
    pub(crate) fn of_prediction(prediction: impl Into<String>) -> Self {
        let prediction = prediction.into();
        Self { target: None, prediction, uncut: None, is_marked: false }
    }

    /// Returns a prediction after a step, or the prediction itself if its parse takes too much work.
    pub(super) fn of_parsed(prediction: &str, cut: Option<impl Into<String>>) -> Self {
        let uncut = cut.is_none().then_some(UncutReason::Bound);
        let prediction = cut.map_or_else(|| prediction.to_owned(), Into::into);
        Self { uncut, ..Self::of_prediction(prediction) }
    }

    pub(super) fn of_both(target: Option<String>, prediction: impl Into<String>) -> Self {
        Self { target, ..Self::of_prediction(prediction) }
    }
}
