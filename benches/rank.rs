//! Ranking chunks by Repoformer's rankers: building the index, and one query at a time among all chunks except one file's.
//!
//! `one_query` uses other candidates for each query; `same_file` keeps them, as for the tasks of one file.

use std::cell::Cell;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use repoformer_core::retrieve::rank::{
    DocumentHit, DocumentIndex, RankScratch, Ranker, Vocabulary, Words,
};
use repoformer_text::language::Language;

use crate::support::chunks::{CHUNKS, Chunks, sizes};

const TOP_K: usize = 10;

/// Rankers, and two fusions.
const RANKERS: [&str; 9] = [
    "jaccard",
    "bm25",
    "bm25-by-line",
    "bm25-by-line-exponential",
    "tf-idf",
    "weighted-ngram",
    "codebleu",
    "rrf:jaccard,bm25",
    "rrf:jaccard,bm25,tf-idf,weighted-ngram",
];

fn runs() -> Vec<(&'static str, usize)> {
    let with = |size| RANKERS.map(|ranker| (ranker, size));
    sizes().into_iter().flat_map(with).collect()
}

fn index(words: Words, texts: &[&str], ranker: &Ranker) -> DocumentIndex {
    let rankers = std::slice::from_ref(ranker);
    DocumentIndex::new(words, texts, rankers, Language::Python, Vocabulary::Words)
}

#[divan::bench(args = sizes())]
fn words(bencher: Bencher<'_, '_>, chunks: usize) {
    let texts = CHUNKS.texts(chunks);
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| Words::new(&texts));
}

#[divan::bench(args = ["jaccard", "tf-idf", "weighted-ngram", "codebleu"])]
fn build(bencher: Bencher<'_, '_>, ranker: &str) {
    let ranker: Ranker = ranker.parse().unwrap();
    let size = sizes()[0];
    let texts = CHUNKS.texts(size);
    let bencher = bencher.counter(ItemsCount::new(size)).with_inputs(|| Words::new(&texts));
    bencher.bench_values(|words| index(words, &texts, &ranker));
}

/// Runs one query at a time, with other candidates each time if `turn` is set.
fn each(bencher: Bencher<'_, '_>, (name, size): (&str, usize), turn: bool) {
    let chunks: &Chunks = &CHUNKS;
    let ranker: Ranker = name.parse().unwrap();
    let texts = chunks.texts(size);
    let index = index(Words::new(&texts), &texts, &ranker);
    let priorities = chunks.priorities(size);
    let (mut scratch, next) = (RankScratch::default(), Cell::new(0));
    bencher.bench_local(|| -> Vec<DocumentHit> {
        let number = next.replace(next.get() + 1);
        let priority = &priorities[if turn { number % priorities.len() } else { 0 }];
        let query = chunks.query(number);
        index.rank(&ranker, &query, priority, TOP_K, &mut scratch)
    });
}

#[divan::bench(args = runs(), sample_count = 200, sample_size = 1)]
fn one_query(bencher: Bencher<'_, '_>, run: (&str, usize)) {
    each(bencher, run, true);
}

#[divan::bench(args = runs(), sample_count = 200, sample_size = 1)]
fn same_file(bencher: Bencher<'_, '_>, run: (&str, usize)) {
    each(bencher, run, false);
}
