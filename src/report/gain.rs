//! What a system gains over the baseline on each task: the verdicts and the histogram of Repoformer's figures 3, 6 and 10.

use super::Report;

/// Gains nearer to 0 than this are 0: what differs there is the order of floating-point operations, not the texts.
const NOTHING: f64 = 1e-9;

/// Whether a system completes a task better than the baseline does, by the main measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Its value is higher.
    Better,
    /// The values are equal.
    Same,
    /// Its value is lower.
    Worse,
    /// One of the two has no prediction.
    Missing,
}

impl Verdict {
    /// Of a gain, where both systems have a value.
    ///
    /// ```
    /// use repoformer::report::Verdict;
    /// assert_eq!(Verdict::of(Some(0.25)), Verdict::Better);
    /// assert_eq!(Verdict::of(Some(0.1 + 0.2 - 0.3)), Verdict::Same); // 5.6e-17
    /// assert_eq!(Verdict::of(None), Verdict::Missing);
    /// ```
    pub fn of(gain: Option<f64>) -> Self {
        match gain {
            None => Self::Missing,
            Some(gain) if gain.abs() < NOTHING => Self::Same,
            Some(gain) if gain > 0.0 => Self::Better,
            Some(_) => Self::Worse,
        }
    }
}

/// One column of the histogram. The paper: "Each bucket contains values ranging from label-10 to label+10 except for the
/// central bucket, which corresponds to exactly 0." On a border a gain belongs to the bucket nearer to 0, so that the one
/// labelled 10 is (0, 20] and the one labelled -90 is [-100, -80).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket(i8);

impl Bucket {
    /// How many there are.
    pub const COUNT: usize = 11;

    /// All of them, from the greatest loss to the greatest gain.
    pub fn all() -> impl Iterator<Item = Self> {
        (-5..=5).map(Self)
    }

    /// Of a gain between -1 and 1.
    ///
    /// ```
    /// use repoformer::report::Bucket;
    /// let label = |gain| Bucket::of(gain).label();
    /// assert_eq!([label(-0.9), label(-0.05), label(0.0), label(0.2), label(0.21)], [-90, -10, 0, 10, 30]);
    /// ```
    pub fn of(gain: f64) -> Self {
        let size = gain.abs();
        if size < NOTHING || size.is_nan() {
            return Self(0);
        }
        // 0.9 - 0.7 is a little more than 0.2, and meant to be 0.2.
        let place = ((size - NOTHING) / 0.2).ceil().clamp(1.0, 5.0) as i8;
        Self(if gain < 0.0 { -place } else { place })
    }

    /// The middle of its range × 100: -90, -70, …, -10, 0, 10, …, 90.
    pub fn label(self) -> i32 {
        let place = i32::from(self.0);
        20 * place - 10 * place.signum()
    }

    /// 0 for the greatest loss, 10 for the greatest gain.
    pub fn index(self) -> usize {
        (self.0 + 5) as usize
    }

    /// Its range in words: `0 to 20`.
    pub(super) fn range(self) -> String {
        match self.label() {
            0 => "exactly 0".into(),
            label if label > 0 => format!("+{} to +{}", label - 10, label + 10),
            label => format!("\u{2212}{} to \u{2212}{}", 10 - label, -label - 10),
        }
        .replace("+0 ", "0 ")
        .replace("to \u{2212}0", "to 0")
    }
}

/// How many tasks have each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// On how many the system is better.
    pub better: usize,
    /// On how many the two are equal.
    pub same: usize,
    /// On how many it is worse.
    pub worse: usize,
    /// How many cannot be compared.
    pub missing: usize,
}

impl Verdicts {
    /// How many tasks could be compared.
    pub fn compared(&self) -> usize {
        self.better + self.same + self.worse
    }
}

impl Report {
    /// A system's value of the main measure minus the baseline's, between -1 and 1. `None` where one has no prediction, or
    /// there is no baseline.
    pub fn gain(&self, system: usize, task: usize) -> Option<f64> {
        let baseline = self.value(self.baseline?, task, self.main)?;
        let gain = self.value(system, task, self.main)? - baseline;
        Some(if gain.abs() < NOTHING { 0.0 } else { gain })
    }

    /// How often a system is better, the same and worse than the baseline.
    pub fn verdicts(&self, system: usize) -> Verdicts {
        let mut counts = Verdicts::default();
        for task in 0..self.tasks.len() {
            *match Verdict::of(self.gain(system, task)) {
                Verdict::Better => &mut counts.better,
                Verdict::Same => &mut counts.same,
                Verdict::Worse => &mut counts.worse,
                Verdict::Missing => &mut counts.missing,
            } += 1;
        }
        counts
    }

    /// How many tasks fall into each [`Bucket`], from the greatest loss to the greatest gain.
    pub fn histogram(&self, system: usize) -> [usize; Bucket::COUNT] {
        let mut counts = [0; Bucket::COUNT];
        for gain in (0..self.tasks.len()).filter_map(|task| self.gain(system, task)) {
            counts[Bucket::of(gain).index()] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the sentence of the paper: borders belong to the bucket nearer to 0.
    #[test]
    fn borders_belong_to_the_bucket_nearer_to_zero() {
        let cases = [
            (0.0, 0),
            (1e-10, 0),
            (-1e-10, 0),
            (1e-8, 10),
            (0.2, 10),
            (0.9 - 0.7, 10),
            (0.7 - 0.5, 10),
            (0.2001, 30),
            (0.4, 30),
            (0.6, 50),
            (0.8, 70),
            (0.8001, 90),
            (1.0, 90),
        ];
        for (gain, label) in cases {
            assert_eq!(Bucket::of(gain).label(), label, "{gain}");
            assert_eq!(Bucket::of(-gain).label(), -label, "-{gain}");
        }
        assert_eq!(Bucket::of(f64::NAN).label(), 0);
    }

    #[test]
    fn labels_and_ranges_run_from_loss_to_gain() {
        let labels: Vec<i32> = Bucket::all().map(Bucket::label).collect();
        assert_eq!(labels, [-90, -70, -50, -30, -10, 0, 10, 30, 50, 70, 90]);
        let ranges: Vec<String> = Bucket::all().map(Bucket::range).collect();
        assert_eq!(ranges[0], "\u{2212}100 to \u{2212}80");
        assert_eq!(ranges[4], "\u{2212}20 to 0");
        assert_eq!(ranges[5], "exactly 0");
        assert_eq!(ranges[6], "0 to +20");
        assert_eq!(ranges[10], "+80 to +100");
        assert!(Bucket::all().enumerate().all(|(at, b)| b.index() == at));
    }
}
