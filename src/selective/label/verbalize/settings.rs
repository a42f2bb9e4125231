//! Settings of verbalizing.

use super::split::Proportions;
use crate::prompt::style::DecisionFrame;

/// Settings of verbalizing.
#[derive(Debug, Clone, PartialEq)]
pub struct VerbalizeSettings {
    /// Special tokens around the contexts.
    pub frame: DecisionFrame,
    /// Greatest number of tokens of a sequence; 2,048 in the paper.
    pub max_tokens: usize,
    /// Greatest number of tokens of a cross-file context, of which the first are kept; 512 in the paper.
    pub max_cross_file_tokens: usize,
    /// Token after the target, with which the model learns to stop. The released program has none.
    pub end: Option<String>,
    /// Weight of the decision relative to the completion; 1 in the paper.
    pub lambda: f32,
    /// Shares of the repositories that are held out.
    pub held_out: Proportions,
    /// Seed of the split of repositories.
    pub seed: u64,
}
