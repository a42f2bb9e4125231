//! The hole that a prediction fills.

use repoformer_text::language::Language;

use crate::task::Task;

/// The hole that a prediction fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoleContext<'a> {
    /// Text of the file before the hole, as shown to the model, without cross-file context; empty if unknown.
    pub left_context: &'a str,
    /// The whole file before the hole, if more of it is known than the left context; cuts of function bodies use it.
    pub whole_left_context: Option<&'a str>,
    /// Text that was in the hole.
    pub target: &'a str,
    /// Language of the file.
    pub language: Language,
}

impl<'a> HoleContext<'a> {
    /// Returns the hole of a task.
    pub fn new(task: &'a Task) -> Self {
        Self {
            left_context: &task.prompt,
            whole_left_context: task.full_left_context.as_deref(),
            target: &task.ground_truth,
            language: task.language(),
        }
    }

    /// Returns everything that is known of the file before the hole.
    pub(super) fn known_left(&self) -> &'a str {
        self.whole_left_context.unwrap_or(self.left_context)
    }
}
