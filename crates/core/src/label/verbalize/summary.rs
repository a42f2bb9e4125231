//! Counts of verbalizing.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_store::error::Error;

use super::sequence::{LeftOut, Sequence};
use super::split::Split;
use crate::label::InstanceKind;

/// Counts of a kind's sequences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Number of sequences.
    pub sequences: usize,
    /// Number of sequences in which retrieval helps.
    pub positive: usize,
}

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
    /// Counts by the kind that the labels name.
    pub kinds: BTreeMap<Option<InstanceKind>, KindCounts>,
    /// Place of each sequence's label: the number of its file, from 0, in the upper 32 bits, and its line, from 1.
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
    pub(super) fn add(&mut self, sequence: &Sequence, kind: Option<InstanceKind>) {
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.sequences += 1;
        of_kind.positive += usize::from(sequence.positive);
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
pub(super) fn nothing(labels: &[&Path], verbalized: &VerbalizeSummary) -> Error {
    let reasons = verbalized.left_out.iter();
    let mut reasons: Vec<String> = reasons.map(|(why, count)| format!("{count} × {why}")).collect();
    let problems = verbalized.problems.iter().take(3);
    reasons.extend(problems.map(ToString::to_string));
    if reasons.is_empty() {
        reasons.push("the file is empty".into());
    }
    let others = match labels.len() {
        0 | 1 => String::new(),
        files => format!(" of these {files} files"),
    };
    let reason = format!("no instance{others} can be a sequence: {}", reasons.join("; "));
    let path = labels.first().copied().unwrap_or(Path::new(""));
    Error::artifact(path, reason, "give judged labels")
}
