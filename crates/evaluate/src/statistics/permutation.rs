//! Paired permutation test of a mean difference.
//!
//! If two systems were equally good, the sign of each task's difference would be random. The test flips signs and counts how
//! often the mean is at least as far from 0 as the observed one, on either side. By task, it treats tasks as independent. Tasks
//! of one repository are not, so its p is too small if the effect differs between repositories. By repository
//! ([`Groups::repositories`]), all differences of a repository flip together. R repositories have 2ᴿ such flips: with four, p
//! is at least 2/16.
//!
//! For differences of −1, 0 or 1, as for exact match, the exact test by task is McNemar's exact test.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::Rng;
use rayon::prelude::*;

use super::gain::SAME;
use super::groups::Groups;
use super::stream::{SIGN_FLIPS, Streams};

/// Number of random flips that are summed at a time: their sums stay in the cache.
const AT_A_TIME: usize = 1024;
/// Distance, relative to the sum of all absolute differences, below which two sums are considered equal: the order of additions
/// changes the last bits.
const TOLERANCE: f64 = 1e-10;

/// Result of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// Fraction of flips whose mean is at least as far from 0, two-sided.
    pub p: f64,
    /// True if all flips were counted, instead of a random sample.
    pub exact: bool,
    /// Number of tasks, or repositories, with a difference other than 0.
    pub units: usize,
}

/// Settings of the permutation test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignFlips {
    /// Number of random flips, used if there are too many to count all.
    pub flips: usize,
    /// Seed of the random flips.
    pub seed: u64,
}

impl Default for SignFlips {
    /// Returns 100,000 flips, seed 0.
    fn default() -> Self {
        Self { flips: 100_000, seed: 0 }
    }
}

impl SignFlips {
    /// Greatest number of differences for which all flips are counted: 2¹⁵ sums of each half, sorted and joined.
    pub const EXACT: usize = 30;

    /// Tests the hypothesis that the mean of the differences, one per task, is 0.
    ///
    /// All flips are counted for up to [`EXACT`](Self::EXACT) units with a difference. With more units, random flips are
    /// counted together with the observed one: p = (1 + extreme) / (1 + flips), never 0 (Phipson and Smyth, 2010).
    ///
    /// ```
    /// use repoformer_evaluate::statistics::{Groups, SignFlips};
    /// let differences = [1.0, 1.0, 1.0, 0.0, -1.0];
    /// // Of 16 sums of ±1 ±1 ±1 ±1, 2 are ±4 and 8 are ±2.
    /// let by_task = SignFlips::default().test(&Groups::tasks(5), &differences);
    /// assert_eq!((by_task.p, by_task.units), (10.0 / 16.0, 4));
    /// // Of the sums of ±2 ±0, all are as far from 0.
    /// let repositories = Groups::new(["a", "a", "b", "b", "b"].map(Some));
    /// assert_eq!(SignFlips::default().test(&repositories, &differences).p, 1.0);
    /// ```
    pub fn test(&self, groups: &Groups, differences: &[f64]) -> PermutationTest {
        let totals = groups.totals(differences.iter().copied().map(Some));
        let sums: Vec<f64> = totals.sums.into_iter().filter(|sum| sum.abs() >= SAME).collect();
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
        PermutationTest { p, exact, units: sums.len() }
    }

    /// Counts the random flips whose sum is at least `least` or at most −`least`.
    ///
    /// A random byte flips eight numbers at once: the 256 sums of each group of eight are computed first.
    fn extreme(&self, numbers: &[f64], least: f64) -> usize {
        let streams = Streams::new(SIGN_FLIPS, self.seed);
        let tables: Vec<[f64; 256]> = numbers.chunks(8).map(signed_sums).collect();
        let block = |number: usize| {
            let size = AT_A_TIME.min(self.flips - number * AT_A_TIME);
            let sums = random_sums(streams.get(number), &tables);
            sums[..size].iter().filter(|sum| sum.abs() >= least).count()
        };
        let blocks = self.flips.div_ceil(AT_A_TIME);
        (0..blocks).into_par_iter().map(block).sum()
    }
}

/// Returns sums of all numbers with random signs, from the tables of each group of eight.
fn random_sums(mut stream: ChaCha8Rng, tables: &[[f64; 256]]) -> [f64; AT_A_TIME] {
    let mut sums = [0.0; AT_A_TIME];
    for table in tables {
        for eight in sums.as_chunks_mut::<8>().0 {
            let signs = stream.next_u64().to_le_bytes();
            for at in 0..8 {
                eight[at] += table[usize::from(signs[at])];
            }
        }
    }
    sums
}

/// Sums up to eight numbers for each byte: numbers whose bit is not set are negated.
fn signed_sums(numbers: &[f64]) -> [f64; 256] {
    let mut sums = [0.0; 256];
    sums[0] = -numbers.iter().sum::<f64>();
    for signs in 1..sums.len() {
        let number = numbers.get(signs.trailing_zeros() as usize).unwrap_or(&0.0);
        sums[signs] = sums[signs & (signs - 1)] + 2.0 * number;
    }
    sums
}

/// Returns the fraction of all flips whose sum is at least `least` (above 0) or at most −`least`.
fn share_of_all(numbers: &[f64], least: f64) -> f64 {
    let (one, other) = numbers.split_at(numbers.len() / 2);
    let (one, other) = (all_sums(one), all_sums(other));
    // The greater the sum of one half, the more sums of the other half reach `least` with it, and the fewer −`least`.
    let (mut high, mut low, mut extreme) = (one.len(), one.len(), 0);
    for half in &other {
        while high > 0 && one[high - 1] + half >= least {
            high -= 1;
        }
        while low > 0 && one[low - 1] + half > -least {
            low -= 1;
        }
        extreme += one.len() - high + low;
    }
    extreme as f64 / (one.len() * other.len()) as f64
}

/// Returns the sums of the numbers with all combinations of signs, in ascending order.
fn all_sums(numbers: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for number in numbers {
        let number = number.abs();
        let mut merged = Vec::with_capacity(2 * sums.len());
        // Both the sums without the number and those with it are sorted.
        let mut without = 0;
        for sum in &sums {
            while without < sums.len() && sums[without] - number <= sum + number {
                merged.push(sums[without] - number);
                without += 1;
            }
            merged.push(sum + number);
        }
        sums = merged;
    }
    sums
}
