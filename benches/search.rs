//! Searching in growing numbers of windows with the same queries: our index, and plain implementations with the same results.
//!
//! `one_query` and its twins use a different query each time, so their median is over queries.

use std::cell::Cell;

use crate::support::growth::{GROWTH, QUERIES, sizes};
use crate::support::sets::{Searcher, Sets, TOP_K};
use crate::support::term_at_a_time::TermAtATime;
use crate::support::twins;
use divan::Bencher;
use divan::counter::ItemsCount;

/// Returns the sizes for which linear twins are fast enough.
fn small_sizes() -> Vec<usize> {
    sizes().into_iter().filter(|&size| size <= 50_000).collect()
}

/// Returns a function that cycles through the numbers of the queries.
fn in_turn() -> impl Fn() -> usize {
    let next = Cell::new(0);
    move || next.replace((next.get() + 1) % QUERIES)
}

mod build {
    use super::*;

    #[divan::bench(args = sizes(), max_time = 5)]
    fn ours(bencher: Bencher<'_, '_>, windows: usize) {
        let sets = GROWTH.sets.prefix(windows);
        bencher.counter(ItemsCount::new(windows)).bench(|| Searcher::new(&sets, &GROWTH.queries));
    }

    #[divan::bench(args = sizes(), max_time = 5)]
    fn term_at_a_time(bencher: Bencher<'_, '_>, windows: usize) {
        bencher.counter(ItemsCount::new(windows)).bench(|| TermAtATime::new(&GROWTH.sets, windows));
    }
}

/// Measures all queries at once; `items/s` are queries.
#[divan::bench(args = sizes(), max_time = 5)]
fn batch(bencher: Bencher<'_, '_>, windows: usize) {
    let mut searcher = Searcher::new(&GROWTH.sets.prefix(windows), &GROWTH.queries);
    bencher.counter(ItemsCount::new(QUERIES)).bench_local(|| searcher.batch());
}

mod one_query {
    use super::*;

    #[divan::bench(args = sizes(), sample_count = 200, sample_size = 1)]
    fn ours(bencher: Bencher<'_, '_>, windows: usize) {
        let mut searcher = Searcher::new(&GROWTH.sets.prefix(windows), &GROWTH.queries);
        bencher.with_inputs(in_turn()).bench_local_values(|query| searcher.one(query));
    }

    #[divan::bench(args = sizes(), sample_count = 200, sample_size = 1)]
    fn term_at_a_time(bencher: Bencher<'_, '_>, windows: usize) {
        let index = TermAtATime::new(&GROWTH.sets, windows);
        let (queries, mut counters) = (Sets::of(&GROWTH.queries), Vec::new());
        bencher
            .with_inputs(in_turn())
            .bench_local_values(|query| index.search(queries.get(query), TOP_K, &mut counters));
    }

    #[divan::bench(args = small_sizes(), sample_count = 20, sample_size = 1)]
    fn sorted_merge(bencher: Bencher<'_, '_>, windows: usize) {
        let queries = Sets::of(&GROWTH.queries);
        bencher.with_inputs(in_turn()).bench_local_values(|query| {
            twins::by_sorted_merge(&GROWTH.sets, windows, queries.get(query), TOP_K)
        });
    }

    /// Measures the reference program's method with Rust's hash sets: an intersection with every window.
    #[divan::bench(args = small_sizes(), sample_count = 20, sample_size = 1)]
    fn hash_sets(bencher: Bencher<'_, '_>, windows: usize) {
        let (sets, queries) = (twins::hash_sets(&GROWTH.sets, windows), Sets::of(&GROWTH.queries));
        bencher
            .with_inputs(in_turn())
            .bench_local_values(|query| twins::by_hash_sets(&sets, queries.get(query), TOP_K));
    }
}
