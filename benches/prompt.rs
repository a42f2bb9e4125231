//! Building prompts and their JSON lines from search results: rg1's extended windows, and gt's plain ones.

use crate::support::corpus::{GT, LINE_TASKS, RG1, Searched};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Builds the prompts with a new builder in each run, as the program does: a builder counts a file's lines on first use.
fn build(bencher: Bencher<'_, '_>, searched: &'static Searched) {
    let found = searched.retrieval.found.iter().zip(&searched.queries.queries);
    bencher.counter(ItemsCount::new(found.len())).bench(|| {
        let builder = searched.builder();
        let line = |(found, query): (&repoformer_core::retrieve::RankedFragments, _)| {
            let task = &LINE_TASKS.tasks()[found.row as usize];
            let prompt = builder.build(task, Some(found));
            builder.line(task, Some(query), &prompt).len()
        };
        found.clone().map(line).sum::<usize>()
    });
}

#[divan::bench]
fn rg1(bencher: Bencher<'_, '_>) {
    build(bencher, &RG1);
}

#[divan::bench]
fn gt(bencher: Bencher<'_, '_>) {
    build(bencher, &GT);
}
