//! The paired permutation test: could the sign of the differences be chance?
//!
//! Were the two systems alike, each task's difference could as well stand with the other sign. The test flips signs and
//! counts how often the mean is then as far from 0 as it was found, on either side. By task it takes tasks as
//! independent, which tasks of one repository are not, so that its p is too small where repositories differ in what the
//! system does for them; by repository ([`Groups::repositories`]) all of a repository's differences flip together, which R
//! repositories can do in 2ᴿ ways: with four, no p is below 2/16.
//!
//! Of differences that are all −1, 0 or 1, as those of exact match are, the exact test by task is McNemar's exact test.

use rand_chacha::rand_core::Rng;
use rayon::prelude::*;

use super::gain::SAME;
use super::groups::Groups;
use super::stream::{Purpose, Streams};

/// Random flips that are added up at a time: their sums stay near the processor.
const AT_A_TIME: usize = 1024;
/// Sums closer to each other than this, relative to all differences added up, are equal: sums of the same numbers differ
/// in their last bits with the order.
const TOLERANCE: f64 = 1e-10;

/// What the test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// The share of flips whose mean is at least as far from 0, two-sided.
    pub p: f64,
    /// Whether all ways to flip were counted, and not a random part.
    pub exact: bool,
    /// How many tasks, or repositories, have a difference that is not 0; the others flip to themselves.
    pub units: usize,
}

/// How often to flip, where all ways are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignFlips {
    /// Number of random flips.
    pub flips: usize,
    /// Same seed, same flips.
    pub seed: u64,
}

impl Default for SignFlips {
    /// 100,000 flips, seed 0.
    fn default() -> Self {
        Self {
            flips: 100_000,
            seed: 0,
        }
    }
}

impl SignFlips {
    /// Up to so many differences all ways to flip them are counted: 2¹⁵ sums of each half, sorted and joined.
    pub const EXACT: usize = 30;

    /// Tests that the mean of the differences, one a task, is 0.
    ///
    /// Up to [`EXACT`](Self::EXACT) units that differ are flipped in every way. With more, random flips are counted, and the differences as
    /// they are as one of them: p = (1 + extreme) / (1 + flips), never 0 (Phipson and Smyth, 2010).
    ///
    /// ```
    /// use repoformer::evaluate::statistics::{Groups, SignFlips};
    /// let differences = [1.0, 1.0, 1.0, 0.0, -1.0];
    /// // Of 16 sums of ±1 ±1 ±1 ±1, 2 are ±4 and 8 are ±2.
    /// let by_task = SignFlips::default().test(&Groups::tasks(5), &differences);
    /// assert_eq!((by_task.p, by_task.units), (10.0 / 16.0, 4));
    /// // Of the sums of ±2 ±0, all are as far from 0.
    /// let repositories = Groups::of(["a", "a", "b", "b", "b"].map(Some));
    /// assert_eq!(SignFlips::default().test(&repositories, &differences).p, 1.0);
    /// ```
    pub fn test(&self, groups: &Groups, differences: &[f64]) -> PermutationTest {
        let totals = groups.totals(differences.iter().copied().map(Some));
        let sums: Vec<f64> = totals
            .sums
            .into_iter()
            .filter(|sum| sum.abs() >= SAME)
            .collect();
        let exact = sums.len() <= Self::EXACT;
        let all: f64 = sums.iter().map(|sum| sum.abs()).sum();
        let least = sums.iter().sum::<f64>().abs() - TOLERANCE * all;
        let p = if least <= 0.0 {
            1.0
        } else if exact {
            share_of_all(&sums, least)
        } else {
            (1 + self.extreme(&sums, least)) as f64 / (1 + self.flips) as f64
        };
        PermutationTest {
            p,
            exact,
            units: sums.len(),
        }
    }

    /// How many random flips give a sum of at least `least`, or of at most −`least`.
    ///
    /// A random byte flips eight numbers at once: the 256 sums of each eight are computed before.
    fn extreme(&self, numbers: &[f64], least: f64) -> usize {
        let streams = Streams::new(Purpose::SignFlips, self.seed);
        let tables: Vec<[f64; 256]> = numbers.chunks(8).map(signed_sums).collect();
        let block = |number: usize| {
            let (mut sums, mut signs) = ([0.0; AT_A_TIME], [0u8; AT_A_TIME]);
            let mut stream = streams.get(number);
            for table in &tables {
                stream.fill_bytes(&mut signs);
                for (sum, &sign) in sums.iter_mut().zip(&signs) {
                    *sum += table[usize::from(sign)];
                }
            }
            let size = AT_A_TIME.min(self.flips - number * AT_A_TIME);
            sums[..size].iter().filter(|sum| sum.abs() >= least).count()
        };
        let blocks = self.flips.div_ceil(AT_A_TIME);
        (0..blocks).into_par_iter().map(block).sum()
    }
}

/// The sum of up to eight numbers for each byte: those whose bit is set with their own sign, the others with the other.
fn signed_sums(numbers: &[f64]) -> [f64; 256] {
    let mut sums = [0.0; 256];
    sums[0] = -numbers.iter().sum::<f64>();
    for signs in 1..sums.len() {
        let number = numbers.get(signs.trailing_zeros() as usize).unwrap_or(&0.0);
        sums[signs] = sums[signs & (signs - 1)] + 2.0 * number;
    }
    sums
}

/// Which share of all ways to flip gives a sum of at least `least` (above 0), or of at most −`least`.
fn share_of_all(numbers: &[f64], least: f64) -> f64 {
    let (one, other) = numbers.split_at(numbers.len() / 2);
    let (mut sorted, other) = (all_sums(one), all_sums(other));
    sorted.sort_unstable_by(f64::total_cmp);
    let extreme = |half: &f64| {
        let high = sorted.len() - sorted.partition_point(|sum| sum + half < least);
        let low = sorted.partition_point(|sum| sum + half <= -least);
        high + low
    };
    let extreme: usize = other.iter().map(extreme).sum();
    extreme as f64 / (sorted.len() * other.len()) as f64
}

/// The sums of the numbers with all combinations of signs.
fn all_sums(numbers: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for number in numbers {
        sums = sums
            .iter()
            .flat_map(|sum| [sum - number, sum + number])
            .collect();
    }
    sums
}
