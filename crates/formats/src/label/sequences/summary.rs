//! Counts of verbalizing.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_store::error::Error;
use repoformer_text::counts::{format_count, group};

use super::sequence::{Sequence, SequenceRejection};
use super::split::{Proportions, Split};
use repoformer_core::label::InstanceKind;

/// Counts of the sequences of one kind.
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
    /// Position of each sequence's label: the number of its file, from 0, in the upper 32 bits, and its line, from 1.
    pub lines: Vec<u64>,
}

/// Result of verbalizing.
#[derive(Debug, Default)]
pub struct VerbalizeSummary {
    /// Requested splits.
    pub splits: BTreeMap<Split, SplitSummary>,
    /// Number of instances left out, by reason.
    pub left_out: BTreeMap<SequenceRejection, usize>,
    /// Number of repeats of a target with its contexts in one repository.
    pub repeated: usize,
    /// Number of sequences whose tokens do not decode to their text, because the tokenizer normalizes it.
    pub inexact: usize,
    /// Records that cannot be used.
    pub problems: Vec<Error>,
}

impl VerbalizeSummary {
    /// Returns true if a split has sequences of several kinds.
    pub fn has_several_kinds(&self) -> bool {
        self.splits.values().any(|split| split.kinds.len() > 1)
    }

    /// Warns of splits whose percentage of the sequences is less than half or more than twice the requested one, since
    /// repositories are not divided.
    pub fn uneven_splits(&self, held_out: Proportions) -> Vec<String> {
        let splits = || self.splits.values();
        let sequences: usize = splits().map(|split| split.sequences).sum();
        let repositories: usize = splits().map(|split| split.repositories).sum();
        let warning = |(split, summary): (&Split, &SplitSummary)| {
            let asked = match split {
                Split::Train => return None,
                Split::Validation => held_out.validation,
                Split::Test => held_out.test,
            };
            let share = summary.sequences as f64 / sequences.max(1) as f64;
            (share > 2.0 * asked || share < asked / 2.0).then(|| {
                format!(
                    "{} holds {:.1} % of the sequences instead of {:.1} %: repositories are held \
                     out whole, so that no code is in two splits, and these are {} of \
                     {repositories}; labels of more repositories come closer",
                    split.name(),
                    100.0 * share,
                    100.0 * asked,
                    summary.repositories
                )
            })
        };
        self.splits.iter().filter_map(warning).collect()
    }
}

impl SplitSummary {
    /// Describes the sequences, of at most `max_tokens` tokens: `1,234 sequences of 5 repositories, 36.90 % positive; …`
    pub fn sequences_text(&self, max_tokens: usize) -> String {
        let count = self.sequences.max(1) as f64;
        let [left, right, cross_file] = self.cut.map(group);
        format!(
            "{} sequences of {}, {:.2} % positive; {:.1} tokens on average, {} of {} at most; cut: {left} left, {right} right, \
             {cross_file} cross-file contexts",
            group(self.sequences),
            format_count(self.repositories as u64, "repository"),
            100.0 * self.positive as f64 / count,
            self.tokens as f64 / count,
            group(self.longest),
            group(max_tokens),
        )
    }

    /// Describes the sequences of each kind: `823 of chunks, 36.90 % positive; 411 of functions, 30.10 % positive`
    pub fn kinds_text(&self) -> String {
        let of_kind = |(kind, counts): (&Option<InstanceKind>, &KindCounts)| {
            let name = kind.map_or("an unnamed kind".to_owned(), |kind| format!("{kind}s"));
            let positive = 100.0 * counts.positive as f64 / counts.sequences as f64;
            format!("{} of {name}, {positive:.2} % positive", group(counts.sequences))
        };
        self.kinds.iter().map(of_kind).collect::<Vec<_>>().join("; ")
    }

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

/// Returns the error if no label became a sequence.
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
    Error::artifact(path, reason, "pass judged labels")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(repositories: usize, sequences: usize) -> SplitSummary {
        SplitSummary { repositories, sequences, ..SplitSummary::default() }
    }

    #[test]
    fn a_split_in_words() {
        let of_kind = |sequences, positive| KindCounts { sequences, positive };
        let summary = SplitSummary {
            positive: 300,
            tokens: 1_500_000,
            longest: 2_048,
            cut: [1_100, 2, 0],
            kinds: [(Some(InstanceKind::Chunk), of_kind(900, 225)), (None, of_kind(300, 75))]
                .into(),
            ..split(1, 1_200)
        };
        assert_eq!(
            summary.sequences_text(2_048),
            "1,200 sequences of 1 repository, 25.00 % positive; 1250.0 tokens on average, 2,048 of 2,048 at most; cut: 1,100 left, \
             2 right, 0 cross-file contexts"
        );
        assert_eq!(
            summary.kinds_text(),
            "300 of an unnamed kind, 25.00 % positive; 900 of chunks, 25.00 % positive"
        );
    }

    /// By hand: 10 % are requested; 4 % are less than half of that, 5 % are not, and 21 % are more than twice that.
    #[test]
    fn splits_far_from_their_share_are_warned_of() {
        let warnings = |validation: usize| {
            let splits = [
                (Split::Train, split(9, 100 - validation)),
                (Split::Validation, split(1, validation)),
            ];
            let summary = VerbalizeSummary { splits: splits.into(), ..VerbalizeSummary::default() };
            summary.uneven_splits(Proportions { validation: 0.1, test: 0.0 })
        };
        assert_eq!([5, 20].map(|validation| warnings(validation).len()), [0, 0]);
        assert_eq!([4, 21].map(|validation| warnings(validation).len()), [1, 1]);
        assert!(
            warnings(4)[0].starts_with("validation holds 4.0 % of the sequences instead of 10.0 %")
        );
        assert!(warnings(4)[0].contains("these are 1 of 10;"));
    }
}
