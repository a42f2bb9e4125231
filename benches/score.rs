//! Scoring: the edit distance on which edit similarity is based, and the metric as it is called for every prediction.

use crate::support::corpus::{FUNCTION_TASKS, LINE_TASKS, pairs};
use crate::support::work;
use divan::Bencher;
use divan::counter::ItemsCount;

/// Levenshtein distances of neighbouring targets: `items/s` are pairs.
mod edit_distance {
    use super::*;

    fn distances(bencher: Bencher<'_, '_>, pairs: &[(&str, &str)]) {
        bencher.counter(ItemsCount::new(pairs.len())).bench(|| work::edit_distances(pairs));
    }

    #[divan::bench]
    fn lines(bencher: Bencher<'_, '_>) {
        distances(bencher, &pairs(LINE_TASKS.tasks()));
    }

    #[divan::bench]
    fn function_bodies(bencher: Bencher<'_, '_>) {
        distances(bencher, &pairs(&FUNCTION_TASKS));
    }
}

/// Measures exact match and edit similarity of one prediction per line task.
#[divan::bench]
fn repocoder_metric(bencher: Bencher<'_, '_>) {
    let pairs = pairs(LINE_TASKS.tasks());
    bencher.counter(ItemsCount::new(pairs.len())).bench(|| work::metric(&pairs));
}
