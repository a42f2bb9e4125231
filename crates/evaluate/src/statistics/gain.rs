//! Gains of a system over a baseline by task: better, same, worse, and the buckets of Repoformer's figures 3, 6 and 10.

/// Smallest gain that is not a rounding error: equal values that were computed in two ways differ by less.
pub const SAME: f64 = 1e-9;

/// Sign of a gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GainSign {
    /// The baseline is better.
    Worse,
    /// Both are equal, to 10⁻⁹.
    Same,
    /// The system is better.
    Better,
}

impl GainSign {
    /// Classifies a gain, the system's value minus the baseline's.
    ///
    /// ```
    /// use repoformer_evaluate::statistics::GainSign;
    /// assert_eq!(GainSign::from_gain(0.25), GainSign::Better);
    /// assert_eq!(GainSign::from_gain(0.1 + 0.2 - 0.3), GainSign::Same); // 5.6e-17
    /// ```
    pub fn from_gain(gain: f64) -> Self {
        if gain >= SAME {
            Self::Better
        } else if gain <= -SAME {
            Self::Worse
        } else {
            Self::Same
        }
    }
}

/// Number of tasks that got better, stayed the same and got worse: Repoformer's table 1.
///
/// ```
/// use repoformer_evaluate::statistics::Changes;
/// let changes = Changes::new([0.5, 0.3 - (0.1 + 0.2), -0.01]);
/// assert_eq!(changes, Changes { better: 1, same: 1, worse: 1 });
/// assert_eq!(changes.total(), 3);
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
    pub fn new(gains: impl IntoIterator<Item = f64>) -> Self {
        let mut changes = Self::default();
        for gain in gains {
            *match GainSign::from_gain(gain) {
                GainSign::Worse => &mut changes.worse,
                GainSign::Same => &mut changes.same,
                GainSign::Better => &mut changes.better,
            } += 1;
        }
        changes
    }

    /// Returns the number of gains counted.
    pub fn total(&self) -> usize {
        self.better + self.same + self.worse
    }
}

/// Column of the histogram. The paper: "Each bucket contains values ranging from label-10 to label+10 except for the central
/// bucket, which corresponds to exactly 0." A gain on a border belongs to the bucket nearer to 0, so that the bucket labelled
/// 10 is (0, 20] and the bucket labelled -90 is [-100, -80).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket(i8);

impl Bucket {
    /// Number of buckets.
    pub const COUNT: usize = 11;

    /// Iterates over all buckets, from the greatest loss to the greatest gain.
    pub fn all() -> impl Iterator<Item = Self> {
        (-5..=5).map(Self)
    }

    /// Returns the bucket of a gain between −1 and 1.
    ///
    /// ```
    /// use repoformer_evaluate::statistics::Bucket;
    /// let label = |gain| Bucket::new(gain).label();
    /// assert_eq!([label(-0.9), label(-0.05), label(0.0), label(0.2), label(0.21)], [-90, -10, 0, 10, 30]);
    /// ```
    pub fn new(gain: f64) -> Self {
        // 0.9 − 0.7 is slightly more than 0.2 and must count as 0.2.
        let steps = ((gain.abs() - SAME) / 0.2).ceil().clamp(1.0, 5.0) as i8;
        match GainSign::from_gain(gain) {
            GainSign::Worse => Self(-steps),
            GainSign::Same => Self(0),
            GainSign::Better => Self(steps),
        }
    }

    /// Returns the middle of the range × 100: -90, -70, …, -10, 0, 10, …, 90.
    pub fn label(self) -> i32 {
        let place = i32::from(self.0);
        20 * place - 10 * place.signum()
    }

    /// Returns its [`label`](Self::label) with a sign; 0 has none.
    pub fn signed_label(self) -> String {
        match self.label() {
            0 => "0".to_owned(),
            label => format!("{label:+}"),
        }
    }

    /// Returns the index, from 0 for the greatest loss to 10 for the greatest gain.
    pub fn index(self) -> usize {
        (self.0 + 5) as usize
    }
}

/// Number of gains in each [`Bucket`].
///
/// ```
/// use repoformer_evaluate::statistics::Buckets;
/// let buckets = Buckets::new([0.0, 0.2, 0.21, -0.0001, 1.0]);
/// let filled: Vec<_> = buckets.iter().filter(|(_, count)| *count > 0).collect();
/// let labelled: Vec<_> = filled.iter().map(|(bucket, count)| (bucket.label(), *count)).collect();
/// assert_eq!(labelled, [(-10, 1), (0, 1), (10, 1), (30, 1), (90, 1)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buckets {
    /// Counts, from the greatest loss to the greatest gain.
    pub counts: [usize; Bucket::COUNT],
}

impl Buckets {
    /// Counts gains between −1 and 1.
    pub fn new(gains: impl IntoIterator<Item = f64>) -> Self {
        let mut buckets = Self::default();
        for gain in gains {
            buckets.counts[Bucket::new(gain).index()] += 1;
        }
        buckets
    }

    /// Iterates over buckets and counts, from the greatest loss to the greatest gain.
    pub fn iter(&self) -> impl Iterator<Item = (Bucket, usize)> {
        Bucket::all().zip(self.counts)
    }

    /// Returns the number of gains counted.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Returns a line per bucket: its label × 100, count, percentage and bar, which has 40 signs for the greatest count.
    pub fn histogram(&self) -> String {
        const LONGEST_BAR: usize = 40;
        let total = self.total().max(1) as f64;
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let mut text = String::new();
        for (bucket, count) in self.iter() {
            let length = (LONGEST_BAR as f64 * count as f64 / most).round() as usize;
            // A single task among thousands stays visible.
            let bar = match (count, length) {
                (0, _) => String::new(),
                (_, 0) => "▏".into(),
                (_, length) => "█".repeat(length),
            };
            let share = 100.0 * count as f64 / total;
            let line = format!("{:>5} {count:>7} {share:>6.1} %  {bar}", bucket.signed_label());
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the sentence of the paper: borders belong to the bucket nearer to 0.
    #[test]
    fn borders_belong_to_the_bucket_nearer_to_zero() {
        for (label, gains) in [
            (0, [0.0, 1e-10, f64::NAN]),
            (10, [1e-8, 0.9 - 0.7, 0.7 - 0.5]),
            (30, [0.2001, 0.4, 0.6 - 0.2]),
            (50, [0.4001, 0.5, 0.6]),
            (70, [0.6001, 0.7, 0.8]),
            (90, [0.8001, 0.9, 1.0]),
        ] {
            assert_eq!(gains.map(|gain| Bucket::new(gain).label()), [label; 3]);
            assert_eq!(gains.map(|gain| Bucket::new(-gain).label()), [-label; 3]);
        }
    }

    /// Forty signs for the greatest count, by hand: 8 of 80 are four, and one of 80 is half of one, which rounds up.
    #[test]
    fn bars_are_as_long_as_counts() {
        let gains = [vec![0.0; 80], vec![0.1; 8], vec![-0.1]].concat();
        let text = Buckets::new(gains).histogram();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  -90       0    0.0 %");
        assert_eq!(lines[4], "  -10       1    1.1 %  █");
        assert_eq!(lines[5], format!("    0      80   89.9 %  {}", "█".repeat(40)));
        assert_eq!(lines[6], "  +10       8    9.0 %  ████");
        let gains = [vec![0.0; 800], vec![0.1]].concat();
        assert!(Buckets::new(gains).histogram().contains("  +10       1    0.1 %  ▏\n"));
    }
}
