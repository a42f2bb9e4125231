//! Gains over the baseline by task, in the main measure.

use super::ReportContents;
use crate::statistics::{Bucket, Buckets, Changes, GainSign};

impl ReportContents<'_> {
    /// Returns a system's value of the main measure minus the baseline's, between -1 and 1. Returns `None` if either has no
    /// prediction, or if there is no baseline.
    pub fn gain(&self, system: usize, task: usize) -> Option<f64> {
        let baseline = self.value(self.baseline?, task, self.main)?;
        let gain = self.value(system, task, self.main)? - baseline;
        Some(match GainSign::from_gain(gain) {
            GainSign::Same => 0.0,
            GainSign::Better | GainSign::Worse => gain,
        })
    }

    /// Counts the tasks on which a system is better than, equal to and worse than the baseline.
    pub fn changes(&self, system: usize) -> Changes {
        Changes::new(self.gains(system))
    }

    /// Counts the tasks in each bucket of gains.
    pub fn histogram(&self, system: usize) -> Buckets {
        Buckets::new(self.gains(system))
    }

    /// Returns the gains of the tasks that have one.
    fn gains(&self, system: usize) -> impl Iterator<Item = f64> {
        (0..self.tasks.len()).filter_map(move |task| self.gain(system, task))
    }
}

/// Formats a bucket's range: `0 to +20`.
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
        let some = [0, 4, 5, 6, 10].map(|index| ranges[index].as_str());
        let wanted = [
            "\u{2212}100 to \u{2212}80",
            "\u{2212}20 to 0",
            "exactly 0",
            "0 to +20",
            "+80 to +100",
        ];
        assert_eq!(some, wanted);
    }
}
