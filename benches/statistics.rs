//! Intervals and tests over 5,000 tasks: `items/s` are resamples or flips.

use std::sync::LazyLock;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use divan::Bencher;
use divan::counter::ItemsCount;
use repoformer_evaluate::statistics::{Groups, Resampling, SignFlips};

const TASKS: usize = 5_000;

/// Differences as they occur in edit similarities: most are 0, and the others have many digits.
static DIFFERENCES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let mut stream = ChaCha8Rng::seed_from_u64(0);
    let mut uniform = || f64::from(stream.next_u32()) / f64::from(u32::MAX);
    let mut difference = |_| match uniform() {
        share if share < 0.6 => 0.0,
        _ => uniform() - 0.48,
    };
    (0..TASKS).map(&mut difference).collect()
});

fn repositories(number: usize) -> Groups {
    let names: Vec<String> = (0..TASKS).map(|task| (task % number).to_string()).collect();
    Groups::new(names.iter().map(|name| Some(&**name)))
}

/// Measures the interval of one mean.
#[divan::bench(args = [7, 100, 1_000, TASKS])]
fn interval_by_repositories(bencher: Bencher<'_, '_>, number: usize) {
    let (groups, resampling) = (repositories(number), Resampling::default());
    bencher
        .counter(ItemsCount::new(resampling.resamples))
        .bench(|| resampling.interval(&groups, &DIFFERENCES));
}

/// Measures the intervals of `compare` from the same resamples: two systems and their difference, for two measures.
#[divan::bench]
fn six_intervals_by_task(bencher: Bencher<'_, '_>) {
    let (groups, resampling) = (Groups::tasks(TASKS), Resampling::default());
    let values: Vec<Option<f64>> = DIFFERENCES.iter().copied().map(Some).collect();
    let measures = vec![values; 6];
    bencher.counter(ItemsCount::new(resampling.resamples)).bench(|| {
        resampling.intervals(&groups, measures.iter().map(|values| values.iter().copied()))
    });
}

#[divan::bench]
fn sign_flips(bencher: Bencher<'_, '_>) {
    let (groups, flips) = (Groups::tasks(TASKS), SignFlips::default());
    bencher.counter(ItemsCount::new(flips.flips)).bench(|| flips.test(&groups, &DIFFERENCES));
}

/// Measures the exact test with the largest number of differences for which all flips are counted.
#[divan::bench]
fn exact_sign_flips(bencher: Bencher<'_, '_>) {
    let differences: Vec<f64> = DIFFERENCES.iter().copied().filter(|d| *d != 0.0).collect();
    let differences = &differences[..SignFlips::EXACT];
    let groups = Groups::tasks(differences.len());
    bencher.bench(|| SignFlips::default().test(&groups, differences));
}
