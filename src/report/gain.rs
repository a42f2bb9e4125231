//! What a system gains over the baseline on each task, by the main measure.

use super::Report;
use crate::evaluate::statistics::{Bucket, Buckets, Change, Changes};

impl Report {
    /// A system's value of the main measure minus the baseline's, between -1 and 1. `None` where one has no prediction, or
    /// there is no baseline.
    pub fn gain(&self, system: usize, task: usize) -> Option<f64> {
        let baseline = self.value(self.baseline?, task, self.main)?;
        let gain = self.value(system, task, self.main)? - baseline;
        Some(match Change::of(gain) {
            Change::Same => 0.0,
            Change::Better | Change::Worse => gain,
        })
    }

    /// How often a system is better, the same and worse than the baseline.
    pub fn changes(&self, system: usize) -> Changes {
        Changes::of(self.gains(system))
    }

    /// How many tasks fall into each bucket.
    pub fn histogram(&self, system: usize) -> Buckets {
        Buckets::of(self.gains(system))
    }

    /// The gains of the tasks that have one.
    fn gains(&self, system: usize) -> impl Iterator<Item = f64> {
        (0..self.tasks.len()).filter_map(move |task| self.gain(system, task))
    }
}

/// A bucket's range in words: `0 to +20`.
pub(super) fn range(bucket: Bucket) -> String {
    match bucket.label() {
        0 => "exactly 0".into(),
        label if label > 0 => format!("+{} to +{}", label - 10, label + 10),
        label => format!("\u{2212}{} to \u{2212}{}", 10 - label, -label - 10),
    }
    .replace("+0 ", "0 ")
    .replace("to \u{2212}0", "to 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_run_from_loss_to_gain() {
        let ranges: Vec<String> = Bucket::all().map(range).collect();
        assert_eq!(ranges[0], "\u{2212}100 to \u{2212}80");
        assert_eq!(ranges[4], "\u{2212}20 to 0");
        assert_eq!(ranges[5], "exactly 0");
        assert_eq!(ranges[6], "0 to +20");
        assert_eq!(ranges[10], "+80 to +100");
    }
}
