//! What a system gains over a baseline, task by task: better, same, worse, and the paper's buckets.

use std::iter::Sum;
use std::ops::AddAssign;

/// Gains nearer to 0 than this are 0: what remains of subtracting equal values that were computed in two ways.
pub const SAME: f64 = 1e-9;

/// What happened to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The baseline is better.
    Worse,
    /// Both are alike, to 10⁻⁹.
    Same,
    /// The system is better.
    Better,
}

impl Change {
    /// Of a gain, the system's value less the baseline's.
    pub fn of(gain: f64) -> Self {
        if gain.abs() < SAME {
            Self::Same
        } else if gain < 0.0 {
            Self::Worse
        } else {
            Self::Better
        }
    }
}

/// How many tasks got better, stayed the same, got worse: Repoformer's table 1.
///
/// ```
/// use repoformer::statistics::Changes;
/// let changes = Changes::of([0.5, 0.3 - (0.1 + 0.2), -0.01]);
/// assert_eq!(changes, Changes { better: 1, same: 1, worse: 1 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Gains above 0.
    pub better: usize,
    /// Gains of 0.
    pub same: usize,
    /// Gains below 0.
    pub worse: usize,
}

impl Changes {
    /// Counts gains.
    pub fn of(gains: impl IntoIterator<Item = f64>) -> Self {
        gains.into_iter().map(Change::of).sum()
    }
}

impl Sum<Change> for Changes {
    fn sum<I: Iterator<Item = Change>>(changes: I) -> Self {
        let mut counts = Self::default();
        changes.for_each(|change| counts += change);
        counts
    }
}

impl AddAssign<Change> for Changes {
    fn add_assign(&mut self, change: Change) {
        *match change {
            Change::Worse => &mut self.worse,
            Change::Same => &mut self.same,
            Change::Better => &mut self.better,
        } += 1;
    }
}

/// How many gains fall into each bucket of Repoformer's figures 3, 6 and 10.
///
/// In hundredths, bucket 10 holds the gains above 0 and up to 20, bucket 30 those above 20 and up to 40, and so on to 90;
/// buckets below 0 are their mirror image. Bucket 0 is exactly 0.
///
/// ```
/// use repoformer::statistics::Buckets;
/// let buckets = Buckets::of([0.0, 0.2, 0.21, -0.0001, 1.0]);
/// let filled: Vec<_> = buckets.iter().filter(|(_, count)| *count > 0).collect();
/// assert_eq!(filled, [(-10, 1), (0, 1), (10, 1), (30, 1), (90, 1)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buckets {
    /// In the order of [`LABELS`](Self::LABELS).
    pub counts: [usize; 11],
}

impl Buckets {
    /// The middle of each bucket, in hundredths.
    pub const LABELS: [i32; 11] = [-90, -70, -50, -30, -10, 0, 10, 30, 50, 70, 90];

    /// Counts gains between −1 and 1.
    pub fn of(gains: impl IntoIterator<Item = f64>) -> Self {
        let mut buckets = Self::default();
        for gain in gains {
            buckets.counts[Self::place(gain)] += 1;
        }
        buckets
    }

    /// Labels and counts, from the greatest loss to the greatest gain.
    pub fn iter(&self) -> impl Iterator<Item = (i32, usize)> {
        Self::LABELS.into_iter().zip(self.counts)
    }

    /// How many gains were counted.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    fn place(gain: f64) -> usize {
        // 0.8 − 0.6 is a little more than 0.2.
        let steps = ((gain.abs() - SAME) / 0.2).ceil().clamp(1.0, 5.0) as usize;
        match Change::of(gain) {
            Change::Worse => 5 - steps,
            Change::Same => 5,
            Change::Better => 5 + steps,
        }
    }
}
