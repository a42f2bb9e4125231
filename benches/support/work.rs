//! Operations that several programs time, and the number of operations in one run.

use foldhash::HashSet;
use repoformer_core::metrics::Metric;
use repoformer_core::retrieve::Level;
use repoformer_core::retrieve::rank::{DocumentIndex, RankScratch, Ranker, Vocabulary, Words};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_text::distance::levenshtein;
use repoformer_text::language::Language;
use repoformer_text::tokenize::{P50k, PieceCache};

use super::chunks::CHUNKS;
use super::corpus::{FUNCTION_TASKS, LINE_TASKS, PROMPTS, SAMPLE, SAMPLE_WINDOWS, pairs};
use super::growth::{GROWTH, QUERIES};
use super::sets::{Searcher, Sets, TOP_K};
use super::term_at_a_time::TermAtATime;
use super::twins;

/// Tokenizes every file; returns the number of ids.
pub fn tokenize_files() -> usize {
    let (mut cache, mut ids, mut count) = (PieceCache::default(), Vec::new(), 0);
    for file in &SAMPLE.files {
        ids.clear();
        P50k.encode_into(&file.text, &mut cache, &mut ids);
        count += ids.len();
    }
    count
}

/// Counts the tokens of all prompts; returns the sum.
pub fn count_prompts() -> usize {
    let mut cache = PieceCache::default();
    let count = |prompt: &String| P50k.count_with(prompt, &mut cache);
    PROMPTS.iter().map(count).sum()
}

/// Computes the token sets of all windows of the sample; returns the sum of their sizes.
pub fn window_sets() -> usize {
    TokenSets::of_fragments(&SAMPLE_WINDOWS, &P50k).token_count()
}

pub fn edit_distances(pairs: &[(&str, &str)]) -> usize {
    pairs.iter().map(|(a, b)| levenshtein::distance(a, b)).sum()
}

/// Scores one prediction per target; returns the sum of the edit similarities.
pub fn metric(pairs: &[(&str, &str)]) -> f64 {
    let score = |&(target, prediction): &(_, _)| {
        Metric::RepoCoder.score(target, &[prediction], Language::Python)[1]
    };
    pairs.iter().map(score).sum()
}

/// One run of operations; its result depends only on the input.
pub struct Work {
    pub run: Box<dyn FnMut() -> usize>,
    /// Number of operations in a run, and their unit.
    pub operations: usize,
    pub unit: &'static str,
}

/// Names that [`prepare`] accepts; the first nine operations are the library's own.
pub const NAMES: [&str; 13] = [
    "files", "prompt-counts", "window-sets", "index", "batch", "one-query", "lines", "bodies",
    "metric", "term-at-a-time", "sorted-merge", "hash-sets", "bm25",
];

/// Prepares an operation, so that a run contains nothing else. Collections have `size` windows or chunks.
pub fn prepare(name: &str, size: usize) -> Option<Work> {
    let queries = || Sets::of(&GROWTH.queries);
    let (run, operations, unit): (Box<dyn FnMut() -> usize>, _, _) = match name {
        "files" => (Box::new(tokenize_files), super::corpus::bytes(&SAMPLE), "byte"),
        "prompt-counts" => {
            let bytes = PROMPTS.iter().map(String::len).sum();
            (Box::new(count_prompts), bytes, "byte")
        }
        "window-sets" => (Box::new(window_sets), SAMPLE_WINDOWS.len(), "window"),
        "index" => {
            let sets = GROWTH.sets.prefix(size);
            let run = move || {
                std::hint::black_box(Searcher::new(&sets, &GROWTH.queries));
                size
            };
            (Box::new(run), size, "window")
        }
        "batch" => return Some(batch(searcher(size))),
        "one-query" => return Some(one_query(searcher(size))),
        "lines" | "bodies" => {
            let pairs = pairs(if name == "lines" { LINE_TASKS.tasks() } else { &FUNCTION_TASKS });
            let count = pairs.len();
            (Box::new(move || edit_distances(&pairs)), count, "pair")
        }
        "metric" => {
            let pairs = pairs(LINE_TASKS.tasks());
            let count = pairs.len();
            (Box::new(move || metric(&pairs) as usize), count, "pair")
        }
        "term-at-a-time" => {
            let index = TermAtATime::new(&GROWTH.sets, size);
            let (queries, mut counters) = (queries(), Vec::new());
            let run = move || {
                let search = |query| index.search(query, TOP_K, &mut counters).len();
                queries.iter().map(search).sum()
            };
            (Box::new(run), QUERIES, "query")
        }
        "sorted-merge" => {
            let queries = queries();
            let run = move || {
                let queries = queries.iter().step_by(QUERIES / LINEAR);
                let search = |query| twins::by_sorted_merge(&GROWTH.sets, size, query, TOP_K).len();
                queries.map(search).sum()
            };
            (Box::new(run), LINEAR, "query")
        }
        "hash-sets" => {
            let (queries, sets) = (queries(), twins::hash_sets(&GROWTH.sets, size));
            let run = move || {
                let search = |query| twins::by_hash_sets(&sets, query, TOP_K).len();
                queries.iter().step_by(QUERIES / LINEAR).map(search).sum()
            };
            (Box::new(run), LINEAR, "query")
        }
        "bm25" => (bm25(size), QUERIES, "query"),
        _ => return None,
    };
    Some(Work { run, operations, unit })
}

/// Ranks the ten best of the first `size` chunks by BM25 for every query, one after another, starting from its text.
fn bm25(size: usize) -> Box<dyn FnMut() -> usize> {
    let texts = CHUNKS.texts(size);
    let (words, rankers) = (Words::new(&texts), [Ranker::Bm25]);
    let index = DocumentIndex::new(words, &texts, &rankers, Language::Python, Vocabulary::Words);
    let (mut scratch, priority) = (RankScratch::default(), Vec::from_iter(0..size as u32));
    Box::new(move || {
        let mut rank = |number| {
            let query = CHUNKS.query(number);
            index.rank(&Ranker::Bm25, &query, &priority, 10, &mut scratch).len()
        };
        (0..QUERIES).map(&mut rank).sum()
    })
}

/// Returns the queries of the growing collections, with an index of their first `size` windows.
pub fn searcher(size: usize) -> Searcher<'static> {
    Searcher::new(&GROWTH.sets.prefix(size), &GROWTH.queries)
}

/// Searches with all queries at once.
pub fn batch(mut searcher: Searcher<'static>) -> Work {
    Work {
        run: Box::new(move || searcher.batch().iter().map(Vec::len).sum()),
        operations: QUERIES,
        unit: "query",
    }
}

/// Searches with one query after another.
pub fn one_query(mut searcher: Searcher<'static>) -> Work {
    Work {
        run: Box::new(move || (0..QUERIES).map(|query| searcher.one(query).len()).sum()),
        operations: QUERIES,
        unit: "query",
    }
}

/// Number of queries for the twins that compare every window, an even sample of all queries, since these twins are slow.
const LINEAR: usize = 5;

/// Panics if the results of a twin, or of another level of instructions, differ from the library's for any query.
pub fn check_twins(size: usize) {
    let (queries, mut counters) = (Sets::of(&GROWTH.queries), Vec::new());
    let mut searcher = searcher(size);
    let index = TermAtATime::new(&GROWTH.sets, size);
    let hash_sets: Vec<HashSet<u16>> = twins::hash_sets(&GROWTH.sets, size);
    let found = searcher.batch();
    for level in Level::available() {
        searcher = searcher.with_level(level);
        assert_eq!(searcher.batch(), found, "{level}");
    }
    for (number, batched) in found.into_iter().enumerate() {
        let query = queries.get(number);
        assert_eq!(searcher.one(number), batched, "one query, query {number}");
        let twin = index.search(query, TOP_K, &mut counters);
        assert_eq!(twin, batched, "a term at a time, query {number}");
        if number < LINEAR {
            let twin = twins::by_hash_sets(&hash_sets, query, TOP_K);
            assert_eq!(twin, batched, "hash sets, query {number}");
            let twin = twins::by_sorted_merge(&GROWTH.sets, size, query, TOP_K);
            assert_eq!(twin, batched, "sorted merge, query {number}");
        }
    }
}
