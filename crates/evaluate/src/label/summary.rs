//! Counts of judged instances, and of the instances that could not be judged.

use std::collections::BTreeMap;

use repoformer_core::label::{LIKELIHOOD, Label};
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::{Error, Result};
use repoformer_text::lines::{Lines, strip};

use super::fragments::FragmentSummary;
use crate::statistics::Buckets;

/// Function that receives the 0-based number of an instance in its file, and its label.
pub(super) type EmitLabel<'e> = dyn FnMut(usize, &Label) -> Result<()> + 'e;

/// Label of an instance.
pub(super) struct JudgedInstance {
    pub(super) label: Label,
    /// Gain of retrieval.
    pub(super) gain: f64,
    /// Reason why some sets of its fragments have no gain.
    pub(super) wrong: Option<String>,
}

/// Completion that an instance lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingCompletion {
    /// Completion without retrieval, or its likelihood.
    Base,
    /// Completion with retrieval.
    Augmented,
    /// Both completions.
    Both,
    /// Conclusive unit tests of one completion.
    Tests,
}

impl MissingCompletion {
    /// Returns the missing completion of an instance that has one of the two completions, or none.
    pub(super) fn new(has_base: bool, has_augmented: bool) -> Self {
        match (has_base, has_augmented) {
            (true, _) => Self::Augmented,
            (false, true) => Self::Base,
            (false, false) => Self::Both,
        }
    }

    /// Describes the missing completion, if a metric is the criterion.
    pub fn words(self, metric: &str) -> String {
        let what = if metric == LIKELIHOOD { "likelihood" } else { "completion" };
        match self {
            Self::Base => format!("no {what} without retrieval"),
            Self::Augmented => format!("no {what} with retrieval"),
            Self::Both => format!("no {what} with or without retrieval"),
            Self::Tests => "no conclusive unit tests".to_owned(),
        }
    }
}

/// Counts of the instances whose targets have a given number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LengthCounts {
    /// Number of instances.
    pub count: usize,
    /// Number of instances for which retrieval helps.
    pub positive: usize,
    /// Sum of the gains.
    pub gain: f64,
}

/// Result of judging instances.
#[derive(Debug, Default)]
pub struct JudgeSummary {
    /// Metric of the gains.
    pub metric: String,
    /// Gain by the metric, between −1 and 1, of each instance that has both completions.
    pub gains: Vec<f64>,
    /// Number of instances for which retrieval helps.
    pub positive: usize,
    /// Counts by the number of non-blank lines of the target.
    pub lengths: BTreeMap<usize, LengthCounts>,
    /// Gains of single fragments and of sets of them.
    pub fragments: FragmentSummary,
    /// Number of instances with the probability of the token that requests retrieval.
    pub probable: usize,
    /// Number of instances that were not judged, by missing completion.
    pub lacking: BTreeMap<MissingCompletion, usize>,
    /// Warnings about files whose records may belong to other instances.
    pub warnings: Vec<String>,
    /// Records that cannot be used or belong to no instance.
    pub problems: Vec<Error>,
}

impl JudgeSummary {
    /// Counts a label and passes it on, or adds the reason for its absence to the problems.
    pub(super) fn take(
        &mut self,
        tasks: &TaskSet,
        task: &Task,
        labelled: Result<JudgedInstance, String>,
        emit: &mut EmitLabel<'_>,
    ) -> Result<()> {
        match labelled {
            Ok(JudgedInstance { label, gain, wrong }) => {
                self.problems.extend(wrong.map(|reason| tasks.error(task, reason)));
                self.probable += usize::from(label.signals.cc_probability.is_some());
                self.add(&label, gain);
                self.fragments.add(&label, gain);
                emit(task.row, &label)
            }
            Err(reason) => {
                self.problems.push(tasks.error(task, reason));
                Ok(())
            }
        }
    }

    fn add(&mut self, label: &Label, gain: f64) {
        let positive = usize::from(label.label == Some(true));
        let lines = Lines::new(&label.ground_truth);
        let lines = lines.iter().filter(|line| !strip(line).is_empty()).count();
        let of_length = self.lengths.entry(lines).or_default();
        of_length.count += 1;
        of_length.positive += positive;
        of_length.gain += gain;
        self.positive += positive;
        self.gains.push(gain);
    }

    /// Returns the gains by size, as in the paper's figure 10.
    pub fn buckets(&self) -> Buckets {
        Buckets::new(self.gains.iter().copied())
    }
}
