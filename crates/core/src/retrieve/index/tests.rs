//! Compares the index with its plain twin, on every instruction level that the machine has.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Level, Search, SearchScratch, TokenSetIndex, Windows, search_together};
use crate::retrieve::vector::{TokenSet, TokenSets};

/// A window, and its score as the reference program computes it.
type Scored = (u32, f64);

/// Runs the reference program's loop: every window, one float division, a stable ascending sort read from its end.
fn slow(sets: &[Vec<u32>], query: &[u32], k: usize, allowed: impl Fn(u32) -> bool) -> Vec<Scored> {
    let mut scored: Vec<Scored> = Vec::new();
    for (window, set) in (0..).zip(sets).filter(|(window, _)| allowed(*window)) {
        let overlap = set.iter().filter(|token| query.binary_search(token).is_ok()).count();
        let union = set.len() + query.len() - overlap;
        let score = if union == 0 { 0.0 } else { overlap as f64 / union as f64 };
        scored.push((window, score));
    }
    scored.sort_by(|a, b| a.1.total_cmp(&b.1));
    scored.into_iter().rev().take(k).collect()
}

fn token_sets(sets: &[Vec<u32>]) -> TokenSets {
    let mut all = TokenSets::default();
    sets.iter().for_each(|set| all.push(set.iter().copied()));
    all
}

/// A query for which the earlier of equally similar windows comes first.
struct EarlierFirstQuery {
    index: Arc<TokenSetIndex>,
    queries: Arc<TokenSets>,
    query: usize,
    k: usize,
    hidden: u32,
}

impl Search for EarlierFirstQuery {
    fn index(&self) -> &TokenSetIndex {
        &self.index
    }

    fn query(&self) -> TokenSet<'_> {
        self.queries.get(self.query)
    }

    fn k(&self) -> usize {
        self.k
    }

    fn is_before(&self, window: u32) -> bool {
        window < 97 * self.query as u32
    }
}

fn is_allowed(query: usize, window: u32, hidden: u32) -> bool {
    !(window + query as u32).is_multiple_of(hidden)
}

impl Windows for EarlierFirstQuery {
    fn allows(&self, window: u32) -> bool {
        is_allowed(self.query, window, self.hidden)
    }

    fn key(&self, window: u32) -> u64 {
        u64::from(u32::MAX - window)
    }

    fn bound(&self, _: u32) -> u64 {
        u64::MAX
    }
}

/// Checks that some queries over some sets, one by one and all at once, on every level, give the results of the twin.
fn check(sets: &[Vec<u32>], queries: &[Vec<u32>], k: usize, hidden: u32, block: usize) {
    let query_sets = Arc::new(token_sets(queries));
    let allowed = |query: usize, window: u32| is_allowed(query, window, hidden);
    let wanted: Vec<Vec<Scored>> = queries
        .iter()
        .enumerate()
        .map(|(i, query)| slow(sets, query, k, |window| allowed(i, window)))
        .collect();
    let mut scratch = SearchScratch::default();
    for level in Level::available() {
        let index = Arc::new(TokenSetIndex::in_blocks(&token_sets(sets), block).with_level(level));
        let scored = |hits: Vec<super::WindowHit>| -> Vec<Scored> {
            hits.iter().map(|hit| (hit.window, hit.score())).collect()
        };
        let all = index.search_all(&query_sets, k, allowed);
        let all: Vec<_> = all.into_iter().map(scored).collect();
        assert_eq!(all, wanted, "{level}");
        for (i, wanted) in wanted.iter().enumerate() {
            let hits =
                index.search(query_sets.get(i), k, |window| allowed(i, window), &mut scratch);
            assert_eq!(scored(hits), *wanted, "{level}");
            // In an order given by the caller; here the earlier window comes first.
            let (index, queries_of) = (Arc::clone(&index), Arc::clone(&query_sets));
            let asked = EarlierFirstQuery { index, queries: queries_of, query: i, k, hidden };
            let mut hits = search_together(asked, &mut scratch);
            hits.sort_by(|a, b| b.score().total_cmp(&a.score()).then(a.window.cmp(&b.window)));
            hits.truncate(k);
            let windows = (0..sets.len() as u32).filter(|window| allowed(i, *window));
            let mut all = slow(sets, &queries[i], usize::MAX, |window| allowed(i, window));
            all.retain(|(_, score)| *score > 0.0);
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(k.min(windows.count()));
            assert_eq!(scored(hits), all, "{level}");
        }
    }
}

fn set(vocabulary: u32, longest: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::btree_set(0..vocabulary, 0..=longest)
        .prop_map(|set| set.into_iter().collect())
}

fn sets(vocabulary: u32, longest: usize, most: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(set(vocabulary, longest), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn equals_the_reference_loop(
        sets in prop_oneof![sets(8, 6, 300), sets(60, 30, 300), sets(300, 40, 150), sets(1 << 20, 30, 60)],
        queries in prop::collection::vec(prop_oneof![set(12, 10), set(60, 30), set(400, 300), set(1 << 20, 30)], 0..4),
        k in prop_oneof![Just(0_usize), Just(1), 2_usize..25, Just(1_000)],
        hidden in prop_oneof![2_u32..6, Just(u32::MAX)],
        block in prop_oneof![Just(1_usize), Just(64), Just(100), Just(512), Just(1 << 16)],
    ) {
        check(&sets, &queries, k, hidden, block);
    }

    /// Tokens as frequent as in code: a few are in almost every window, most in hardly any; queries resemble windows.
    #[test]
    fn equals_the_reference_loop_on_skewed_tokens(
        seeds in prop::collection::vec((0_u64..u64::MAX, 1_usize..120), 600..1_500),
        k in prop_oneof![Just(1_usize), Just(20)],
        block in prop_oneof![Just(128_usize), Just(1_024), Just(1 << 14)],
    ) {
        let sets: Vec<Vec<u32>> = seeds.iter().map(|(seed, size)| skewed(*seed, *size)).collect();
        let like = |set: &Vec<u32>| set.iter().map(|id| id + u32::from(id % 7 == 0)).collect();
        let mut queries: Vec<Vec<u32>> = sets.iter().step_by(200).map(like).collect();
        queries.iter_mut().for_each(Vec::dedup);
        check(&sets, &queries, k, 5, block);
    }
}

/// Returns a set of about this many tokens; small ids are more probable.
fn skewed(seed: u64, size: usize) -> Vec<u32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut set: Vec<u32> = (0..size)
        .map(|_| {
            let bits = next() % 12;
            (next() % (2 << bits)) as u32
        })
        .collect();
    set.sort_unstable();
    set.dedup();
    set
}

#[test]
fn empty_sets_score_zero_and_the_later_window_comes_first() {
    let index = TokenSetIndex::new(&token_sets(&[vec![], vec![1], vec![]]));
    let hits = index.search(TokenSet::Narrow(&[]), 2, |_| true, &mut SearchScratch::default());
    let hits: Vec<Scored> = hits.iter().map(|hit| (hit.window, hit.score())).collect();
    assert_eq!(hits, [(2, 0.0), (1, 0.0)]);
}

#[test]
fn nothing_is_found_in_nothing() {
    check(&[], &[vec![], vec![1]], 3, u32::MAX, 64);
    check(&[vec![1]], &[], 3, u32::MAX, 64);
}

/// 255 and 256 lists, rows and planes: the limit of bytes.
#[test]
fn queries_around_255_tokens() {
    for length in [254, 255, 256, 257, 600] {
        let all: Vec<u32> = (0..length).collect();
        // With a single set, all its terms have lists. With fifty equal sets, all have rows.
        for copies in [1, 50] {
            let mut sets = vec![all.clone(); copies];
            sets.extend((0..40).map(|i| all[i as usize..].to_vec()));
            check(&sets, &[all.clone(), all[1..].to_vec()], 20, 9, 1 << 14);
            check(&sets, std::slice::from_ref(&all), 20, 9, 64);
        }
    }
}

#[test]
fn sets_and_queries_beyond_sixteen_bits() {
    let all: Vec<u32> = (0..70_000).map(|id| 3 * id).collect();
    let cut = |length: usize| all[..length].to_vec();
    let mut sets: Vec<Vec<u32>> = (0..10).map(|i| cut(65_530 + i)).collect();
    sets.extend([cut(70_000), cut(1), vec![], vec![5]]);
    check(&sets, &[cut(65_534), cut(65_537), cut(70_000), cut(300)], 20, 7, 1 << 14);
}

#[test]
fn vocabularies_beyond_sixteen_bits() {
    // 90,000 tokens, each in only one of the sets, except a few that are in every third set.
    let set = |i: u32| (0..3 * (i % 3 / 2)).chain((0..60).map(|j| 10 + 1_500 * j + i)).collect();
    let sets: Vec<Vec<u32>> = (0..1_500).map(set).collect();
    let query = |i: usize| {
        let mut query = [&sets[i][..], &sets[i + 1][30..], &[u32::MAX]].concat();
        query.sort_unstable();
        query.dedup();
        query
    };
    let queries: Vec<Vec<u32>> = [1, 700, 1_400].map(query).to_vec();
    check(&sets, &queries, 20, 10, 1 << 14);
    check(&sets, &queries, 20, 10, 200);
}

#[test]
fn one_and_two_threads_find_the_same() {
    let sets: Vec<Vec<u32>> = (1..3_000).map(|seed| skewed(seed * 0x9e37_79b9, 60)).collect();
    let sets = token_sets(&sets);
    let queries: Vec<Vec<u32>> = (1..300).map(|seed| skewed(seed * 0x1234_5677, 50)).collect();
    let queries = token_sets(&queries);
    let found = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads").install(|| {
            let index = TokenSetIndex::in_blocks(&sets, 512);
            index.search_all(&queries, 20, |query, window| query as u32 != window)
        })
    };
    assert_eq!(found(1), found(2));
}

/// The sizes follow from the documented format; an index of fewer bytes would have lost something.
#[test]
fn bytes_counts_what_is_held() {
    let index = TokenSetIndex::new(&token_sets(&vec![vec![1, 2]; 512]));
    // Two rows and the empty row of one chunk, and a size and a place per window.
    assert!(index.bytes() >= 3 * 64 + 512 * (4 + 2), "{}", index.bytes());
}
