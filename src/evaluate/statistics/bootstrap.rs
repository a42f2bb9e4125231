//! Intervals of means by the percentile bootstrap, whole repositories drawn.
//!
//! From R repositories R are drawn with replacement, each with all of its tasks; the mean over the tasks of those drawn is
//! one resample's mean, and the interval holds the middle 95 % of the resamples' means (Efron and Tibshirani, *An
//! Introduction to the Bootstrap*, 1993, §13.3; drawing clusters: Field and Welsh, *Bootstrapping clustered data*, 2007).
//!
//! With thousands of single tasks, resampling is replaced by what it comes to (`normal`): more exact, and linear.
//!
//! Percentiles are kept plain, without a correction of bias or of skew: the interval of B − A is then that of A − B with
//! its signs turned, it never leaves the range of the measure, and one sentence says what it is. Its weakness is that of
//! every such interval: with few repositories it is too short. Where half of the variance is between repositories, 95 %
//! intervals held the true mean of 200 tasks in 80 % of simulations with 4 repositories, 88 % with 8, 90 % with 10, 93 %
//! with 20 and 94 % with 40 (`tests/fixtures/statistics/record.py coverage`).

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::groups::{Groups, Totals, Unit};
use super::stream::{Purpose, Streams, below};
use super::{normal, sparse};

/// Resamples that a thread takes at a time, at least: one of few repositories takes less than handing it over.
const RESAMPLES_AT_A_TIME: usize = 64;

/// Where a mean probably lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// How often to draw anew, and what share of the resamples' means an interval holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// Number of resamples.
    pub resamples: usize,
    /// Between 0 and 1.
    pub level: f64,
    /// Same seed, same groups drawn.
    pub seed: u64,
}

impl Default for Resampling {
    /// 10,000 resamples, 95 %, seed 0.
    fn default() -> Self {
        Self {
            resamples: 10_000,
            level: 0.95,
            seed: 0,
        }
    }
}

impl Resampling {
    /// The interval of a mean over tasks, a value a task; `None` where there are fewer than two groups to draw from.
    ///
    /// ```
    /// use repoformer::evaluate::statistics::{Groups, Interval, Resampling};
    /// // Two repositories: a quarter of the resamples are twice the first, a quarter twice the second.
    /// let groups = Groups::of(["a", "a", "b", "b"].map(Some));
    /// let interval = Resampling::default().interval(&groups, &[0.0, 0.5, 1.0, 1.0]);
    /// assert_eq!(interval, Some(Interval { low: 0.25, high: 1.0 }));
    /// assert_eq!(Resampling::default().interval(&Groups::tasks(1), &[0.5]), None);
    /// ```
    pub fn interval(&self, groups: &Groups, values: &[f64]) -> Option<Interval> {
        let totals = groups.totals(values.iter().copied().map(Some));
        self.of_totals(groups, [totals]).pop().flatten()
    }

    /// The interval of each measure's mean, all from the same resamples; a task may lack a measure's value. `None` where
    /// fewer than two groups have one.
    pub fn intervals<M>(
        &self,
        groups: &Groups,
        measures: impl IntoIterator<Item = M>,
    ) -> Vec<Option<Interval>>
    where
        M: IntoIterator<Item = Option<f64>>,
    {
        let measures = measures.into_iter();
        self.of_totals(
            groups,
            measures.map(|values| groups.totals(values.into_iter())),
        )
    }

    fn of_totals(
        &self,
        groups: &Groups,
        measures: impl IntoIterator<Item = Totals>,
    ) -> Vec<Option<Interval>> {
        let mut open = Vec::new();
        // One measure's totals after the other: those that need no resamples are not kept.
        let known: Vec<Option<Interval>> = measures
            .into_iter()
            .map(|totals| {
                let known = self.without_resamples(groups, &totals);
                if known.is_none() {
                    open.push(totals);
                }
                known
            })
            .collect();
        let mut resampled = self.resampled(groups, &open).into_iter();
        let interval = |known: Option<Interval>| known.or_else(|| resampled.next().flatten());
        known.into_iter().map(interval).collect()
    }

    /// The interval of one value for each of many tasks, where it is known or a few of them have to be drawn.
    fn without_resamples(&self, groups: &Groups, measure: &Totals) -> Option<Interval> {
        let is_whole = measure.counts.iter().all(|count| *count == 1.0);
        if groups.unit() != Unit::Tasks || !is_whole || groups.len() < normal::MANY {
            return None;
        }
        normal::interval(&measure.sums, self.level)
            .or_else(|| sparse::interval(&measure.sums, self))
    }

    fn resampled(&self, groups: &Groups, measures: &[Totals]) -> Vec<Option<Interval>> {
        if measures.is_empty() {
            return Vec::new();
        }
        let streams = Streams::new(Purpose::Resamples, self.seed);
        let measures: Vec<Weighable<'_>> = measures.iter().map(Weighable::new).collect();
        let mut means = vec![f64::NAN; self.resamples * measures.len()];
        means
            .par_chunks_mut(measures.len())
            .with_min_len(RESAMPLES_AT_A_TIME)
            .enumerate()
            .for_each_init(
                || vec![0.0; groups.len()],
                |times, (number, means)| {
                    draw(streams.get(number), times);
                    for (mean, measure) in means.iter_mut().zip(&measures) {
                        *mean = measure.mean(times);
                    }
                },
            );
        let interval = |(place, measure): (usize, &Weighable<'_>)| {
            let means = means.iter().skip(place).step_by(measures.len());
            // A resample that drew no task of the measure has no mean.
            let means = means.copied().filter(|mean| !mean.is_nan()).collect();
            (measure.groups >= 2).then(|| middle(means, self.level))?
        };
        measures.iter().enumerate().map(interval).collect()
    }
}

/// A measure's totals, and what is known of them before any draw.
struct Weighable<'a> {
    totals: &'a Totals,
    /// Groups that have a task.
    groups: usize,
    /// All tasks, where each group has as many as any other: then every resample has that many.
    count: Option<f64>,
}

impl<'a> Weighable<'a> {
    fn new(totals: &'a Totals) -> Self {
        let Totals { counts, .. } = totals;
        let even = counts.windows(2).all(|pair| pair[0] == pair[1]);
        Self {
            totals,
            groups: counts.iter().filter(|count| **count > 0.0).count(),
            count: even.then(|| counts.iter().sum()),
        }
    }

    /// The mean over the tasks of the groups drawn, each so many times.
    fn mean(&self, times: &[f64]) -> f64 {
        let count = self
            .count
            .unwrap_or_else(|| dot(times, &self.totals.counts));
        dot(times, &self.totals.sums) / count
    }
}

/// How many times each group is drawn, where as many are drawn as there are.
fn draw(mut stream: ChaCha8Rng, times: &mut [f64]) {
    times.fill(0.0);
    let n = times.len() as u64;
    for _ in 0..n {
        times[below(&mut stream, n) as usize] += 1.0;
    }
}

/// Added up in eight lanes: in a fixed order, yet as vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (a_eights, b_eights) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a_eights.remainder().iter().zip(b_eights.remainder());
    let rest: f64 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in a_eights.zip(b_eights) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The interval that leaves out as many of the means below as above: of B means the k-th smallest and the k-th largest,
/// k = ⌊(B + 1)(1 − level) / 2⌋ (Efron and Tibshirani, 1993, §12.5).
pub(super) fn middle(mut means: Vec<f64>, level: f64) -> Option<Interval> {
    let tail = (1.0 - level) / 2.0;
    // 1 − 0.9 is a little less than 0.1.
    let rank = ((means.len() + 1) as f64 * tail + 1e-9) as usize;
    let rank = rank.clamp(1, means.len().div_ceil(2).max(1));
    let (low, high) = (rank - 1, means.len().checked_sub(rank)?);
    let mut nth = |place| {
        let (_, value, _) = means.select_nth_unstable_by(place, f64::total_cmp);
        // No −0.
        *value + 0.0
    };
    Some(Interval {
        low: nth(low),
        high: nth(high),
    })
}
