//! Resamples of many values of which few differ from all others.

use rand_chacha::rand_core::Rng;
use rayon::prelude::*;

use super::bootstrap::{Interval, Resampling, middle};
use super::stream::{Purpose, Streams, below};

/// Of so many values one at most may differ.
const RARE: usize = 8;

/// The percentile interval of the mean of values most of which are equal. Of n draws with replacement as many meet one of the m
/// others as Binomial(n, m / n) says, so that these alone are drawn.
pub(super) fn interval(values: &[f64], resampling: &Resampling) -> Option<Interval> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let common = sorted
        .chunk_by(|a, b| a == b)
        .max_by_key(|equal| equal.len())?[0];
    // In the tasks' order: turned signs then give the turned interval.
    let others: Vec<f64> = values.iter().copied().filter(|v| *v != common).collect();
    let (n, m) = (values.len(), others.len());
    if m == 0 || m > n / RARE {
        return None;
    }
    let met = Binomial::new(n, m as f64 / n as f64);
    let streams = Streams::new(Purpose::Resamples, resampling.seed);
    let means = (0..resampling.resamples).into_par_iter().map(|number| {
        let mut stream = streams.get(number);
        let count = met.draw((stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64);
        let drawn = (0..count).map(|_| others[below(&mut stream, m as u64) as usize]);
        (drawn.sum::<f64>() + common * (n - count) as f64) / n as f64
    });
    middle(means.collect(), resampling.level)
}

/// A binomial distribution as the sums of its probabilities, where these are not nothing.
struct Binomial {
    first: usize,
    sums: Vec<f64>,
}

impl Binomial {
    fn new(n: usize, p: f64) -> Self {
        let mean = n as f64 * p;
        let spread = 12.0 * (mean * (1.0 - p)).sqrt() + 12.0;
        let first = (mean - spread).max(0.0) as usize;
        let last = ((mean + spread) as usize).min(n);
        // Each probability from that of the mode on, relative to it.
        let ratio = |k: usize| (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        let mode = (mean as usize).clamp(first, last);
        let mut weights = vec![1.0; last - first + 1];
        for k in mode..last {
            weights[k + 1 - first] = weights[k - first] * ratio(k);
        }
        for k in (first..mode).rev() {
            weights[k - first] = weights[k + 1 - first] / ratio(k);
        }
        let total: f64 = weights.iter().sum();
        let sums = weights.iter().scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        });
        Self {
            first,
            sums: sums.collect(),
        }
    }

    /// The number that a share between 0 and 1 falls to.
    fn draw(&self, share: f64) -> usize {
        let place = self.sums.partition_point(|sum| *sum <= share);
        self.first + place.min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy.stats.binom.cdf, scipy 1.17.1.
    #[test]
    fn sums_are_scipys() {
        let of = |n, p, k: usize| {
            let binomial = Binomial::new(n, p);
            binomial.sums[k - binomial.first]
        };
        for (n, p, k, wanted) in [
            (10, 0.1, 0, 0.3486784401),
            (10, 0.1, 2, 0.9298091736),
            (100_000, 0.0003, 20, 0.0352645025),
            (100_000, 0.0003, 40, 0.9677113408),
        ] {
            assert!(
                (of(n, p, k) - wanted).abs() < 1e-7,
                "{n} {p} {k}: {}",
                of(n, p, k)
            );
        }
        let binomial = Binomial::new(10, 0.1);
        assert_eq!(
            (binomial.draw(0.3), binomial.draw(0.35), binomial.draw(1.0)),
            (0, 1, 10)
        );
    }

    #[test]
    fn as_drawing_every_value_does() {
        let value = |task: usize| match task {
            0..9 => 1.0,
            9..12 => 0.25,
            _ => 0.5,
        };
        let values: Vec<f64> = (0..3_000).map(value).collect();
        let resampling = Resampling::default();
        let rare = interval(&values, &resampling).unwrap();
        let names: Vec<String> = (0..3_000).map(|task| task.to_string()).collect();
        let groups =
            crate::evaluate::statistics::Groups::of(names.iter().map(|name| Some(&**name)));
        let all = resampling.interval(&groups, &values).unwrap();
        // One value more or less of nine is 1/6,000.
        assert!(
            (rare.low - all.low).abs() < 1.1 / 6_000.0,
            "{rare:?} {all:?}"
        );
        assert!(
            (rare.high - all.high).abs() < 1.1 / 6_000.0,
            "{rare:?} {all:?}"
        );
        assert_eq!(interval(&[0.0; 10], &resampling), None);
        assert_eq!(interval(&[0.0, 0.0, 1.0, 1.0], &resampling), None);
    }
}
