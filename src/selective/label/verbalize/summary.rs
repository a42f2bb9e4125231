//! Counts of verbalizing.

use std::collections::BTreeMap;
use std::path::Path;

use super::sequence::{LeftOut, Sequence};
use super::split::Split;
use crate::error::Error;

/// Counts of one split.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SplitSummary {
    /// Number of repositories.
    pub repositories: usize,
    /// Number of sequences.
    pub sequences: usize,
    /// Number of sequences in which retrieval helps.
    pub positive: usize,
    /// Number of tokens.
    pub tokens: usize,
    /// Number of tokens of the longest sequence.
    pub longest: usize,
    /// Number of sequences with a cut left, right and cross-file context.
    pub cut: [usize; 3],
    /// 1-based line of the labels that each sequence is made of.
    pub lines: Vec<u64>,
}

/// Result of verbalizing.
#[derive(Debug, Default)]
pub struct VerbalizeSummary {
    /// Requested splits.
    pub splits: BTreeMap<Split, SplitSummary>,
    /// Number of instances left out, by reason.
    pub left_out: BTreeMap<LeftOut, usize>,
    /// Number of instances whose repository has the same target and contexts before.
    pub repeated: usize,
    /// Number of sequences whose tokens do not decode to their text, because the tokenizer normalizes it.
    pub inexact: usize,
    /// Records that cannot be used.
    pub problems: Vec<Error>,
}

impl SplitSummary {
    pub(super) fn add(&mut self, sequence: &Sequence) {
        self.sequences += 1;
        self.positive += usize::from(sequence.positive);
        self.tokens += sequence.ids.len();
        self.longest = self.longest.max(sequence.ids.len());
        for (count, is_cut) in self.cut.iter_mut().zip(sequence.cut) {
            *count += usize::from(is_cut);
        }
    }
}

/// Error if no label became a sequence.
pub(super) fn nothing(path: &Path, verbalized: &VerbalizeSummary) -> Error {
    let reasons = verbalized.left_out.iter();
    let mut reasons: Vec<String> = reasons.map(|(why, count)| format!("{count} × {why}")).collect();
    let problems = verbalized.problems.iter().take(3);
    reasons.extend(problems.map(ToString::to_string));
    if reasons.is_empty() {
        reasons.push("the file is empty".into());
    }
    let reason = format!("no instance can be a sequence: {}", reasons.join("; "));
    Error::artifact(path, reason, "give judged labels")
}
