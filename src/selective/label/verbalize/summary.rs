//! What became of the labels.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Sequence, Split};
use crate::error::Error;

/// Why an instance is no sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// It has neither a label nor the two similarities.
    NotJudged,
    /// It names no repository, so that no split is known to be without it.
    NoRepository,
    /// There is nothing to complete.
    NoTarget,
    /// Its label says that what was retrieved helped, and nothing was.
    NoCrossFile,
    /// Target and cross-file context leave no room for the current file.
    TooLong,
    /// The same target with the same contexts is held out in another split.
    HeldOut,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::NotJudged => "not judged: neither label nor es_infile and es_rg1",
            Self::NoRepository => "no repository: filename has no folder",
            Self::NoTarget => "the target is empty",
            Self::NoCrossFile => "labelled as helped by a cross-file context, and there is none",
            Self::TooLong => "target and cross-file context leave no room for the current file",
            Self::HeldOut => "the same target and contexts are held out in another split",
        })
    }
}

/// What one split consists of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SplitSummary {
    /// Repositories assigned to it.
    pub repositories: usize,
    /// Sequences.
    pub sequences: usize,
    /// Those in which retrieval helps.
    pub positive: usize,
    /// Tokens of all of them.
    pub tokens: usize,
    /// Tokens of the longest.
    pub longest: usize,
    /// How many have a cut left, right and cross-file context.
    pub cut: [usize; 3],
}

/// What was written.
#[derive(Debug, Default)]
pub struct Verbalized {
    /// The splits that were asked for.
    pub splits: BTreeMap<Split, SplitSummary>,
    /// How many instances are left out, by reason.
    pub left_out: BTreeMap<LeftOut, usize>,
    /// Sequences whose tokens do not decode to their text: the tokenizer normalizes it.
    pub inexact: usize,
    /// What could not be read.
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

/// That none of the labels became a sequence, and why.
pub(super) fn nothing(path: &Path, verbalized: &Verbalized) -> Error {
    let reasons = verbalized.left_out.iter();
    let mut reasons: Vec<String> = reasons
        .map(|(why, count)| format!("{count} × {why}"))
        .collect();
    let problems = verbalized.problems.iter().take(3);
    reasons.extend(problems.map(ToString::to_string));
    if reasons.is_empty() {
        reasons.push("the file is empty".into());
    }
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("no instance can be a sequence: {}", reasons.join("; ")),
        hint: "label verbalize reads what label judge writes".into(),
    }
}
