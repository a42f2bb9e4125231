//! An inverted index over token sets: exact top-k Jaccard, a term at a time.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::vector::TokenSets;

/// A window and its similarity to the query: |A∩B| and |A∪B|.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Index of the window.
    pub window: u32,
    /// Tokens that both have.
    pub overlap: u32,
    /// Tokens that either has.
    pub union: u32,
}

impl Hit {
    /// Jaccard similarity; 0 where both sets are empty (the reference divides by zero).
    pub fn score(&self) -> f64 {
        if self.union == 0 {
            0.0
        } else {
            f64::from(self.overlap) / f64::from(self.union)
        }
    }

    /// Whether this similarity is above another's. Fractions of 32-bit numbers compare exactly by cross-multiplication.
    fn beats(&self, other: &Self) -> bool {
        u64::from(self.overlap) * u64::from(other.union.max(1))
            > u64::from(other.overlap) * u64::from(self.union.max(1))
    }

    /// Best first: by similarity, then the later window.
    pub(super) fn ranks_before(&self, other: &Self) -> bool {
        self.beats(other) || (!other.beats(self) && self.window > other.window)
    }
}

/// For each token the windows that hold it.
#[derive(Debug)]
pub struct Index {
    /// Token id → number among the tokens that occur.
    terms: FxHashMap<u32, u32>,
    /// `first[t]..first[t + 1]` are the windows of term t, ascending.
    first: Vec<u32>,
    windows: Vec<u32>,
    /// Size of each window's set.
    sizes: Vec<u32>,
}

/// Buffers of one thread, reused from query to query.
#[derive(Debug, Default)]
pub struct Scratch {
    overlaps: Vec<u32>,
    best: Vec<Hit>,
}

impl Index {
    /// Indexes token sets; window i is set i.
    pub fn new(sets: &TokenSets) -> Self {
        let mut terms = FxHashMap::default();
        let mut counts: Vec<u32> = Vec::new();
        let mut numbers: Vec<u32> = Vec::with_capacity(sets.token_count());
        for set in sets.iter() {
            for token in set {
                let next = counts.len() as u32;
                let term = *terms.entry(*token).or_insert(next);
                if term == next {
                    counts.push(0);
                }
                counts[term as usize] += 1;
                numbers.push(term);
            }
        }
        let mut first = Vec::with_capacity(counts.len() + 1);
        first.push(0);
        for (term, count) in counts.iter().enumerate() {
            first.push(first[term] + count);
        }
        let mut next = first.clone();
        let mut windows = vec![0; numbers.len()];
        let mut numbers = numbers.into_iter();
        for (window, set) in sets.iter().enumerate() {
            for term in numbers.by_ref().take(set.len()) {
                windows[next[term as usize] as usize] = window as u32;
                next[term as usize] += 1;
            }
        }
        let sizes = sets.iter().map(|set| set.len() as u32).collect();
        Self {
            terms,
            first,
            windows,
            sizes,
        }
    }

    /// The `k` windows most similar to a set of tokens among those that `allowed` lets through, best first:
    /// by Jaccard similarity, then the later window. Windows without a common token count, with similarity 0.
    ///
    /// ```
    /// use repoformer::retrieve::{Index, Scratch};
    /// use repoformer::vector::TokenSets;
    /// let mut sets = TokenSets::default();
    /// for set in [&[1, 2, 3][..], &[2, 3], &[2, 3, 4]] {
    ///     sets.push(set.iter().copied());
    /// }
    /// let hits = Index::new(&sets).search(&[2, 3], 2, |_| true, &mut Scratch::default());
    /// assert_eq!(hits.iter().map(|hit| hit.window).collect::<Vec<_>>(), [1, 2]);
    /// assert_eq!((hits[1].overlap, hits[1].union), (2, 3));
    /// ```
    pub fn search(
        &self,
        query: &[u32],
        k: usize,
        allowed: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Hit> {
        let Scratch { overlaps, best } = scratch;
        overlaps.clear();
        overlaps.resize(self.sizes.len(), 0);
        best.clear();
        for term in query.iter().filter_map(|token| self.terms.get(token)) {
            let (from, to) = (
                self.first[*term as usize] as usize,
                self.first[*term as usize + 1] as usize,
            );
            for window in &self.windows[from..to] {
                overlaps[*window as usize] += 1;
            }
        }
        if k == 0 {
            return Vec::new();
        }
        let total = query.len() as u32;
        if k > LARGE_K {
            return self.rank_all(total, k, overlaps, allowed);
        }
        for (window, (&overlap, &size)) in overlaps.iter().zip(&self.sizes).enumerate() {
            let hit = Hit {
                window: window as u32,
                overlap,
                union: total + size - overlap,
            };
            // Windows come in ascending order, so one that is as similar as the worst kept replaces it.
            if best.len() == k && best[k - 1].beats(&hit) {
                continue;
            }
            if !allowed(hit.window) {
                continue;
            }
            best.truncate(k - 1);
            let at = best.partition_point(|kept| kept.ranks_before(&hit));
            best.insert(at, hit);
        }
        best.clone()
    }

    /// The same for a large k: rank all that are allowed, keep the first k.
    fn rank_all(
        &self,
        total: u32,
        k: usize,
        overlaps: &[u32],
        allowed: impl Fn(u32) -> bool,
    ) -> Vec<Hit> {
        let hit = |(window, (&overlap, &size)): (usize, (&u32, &u32))| Hit {
            window: window as u32,
            overlap,
            union: total + size - overlap,
        };
        let hits = overlaps.iter().zip(&self.sizes).enumerate().map(hit);
        let mut hits: Vec<Hit> = hits.filter(|hit| allowed(hit.window)).collect();
        hits.sort_unstable_by(|a, b| {
            if a.ranks_before(b) {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        });
        hits.truncate(k);
        hits
    }
}

/// Above this many, keeping the best in order as they come costs more than sorting all once.
const LARGE_K: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference's loop: every window, one float division, a stable ascending sort read from its end.
    fn slow(
        sets: &[Vec<u32>],
        query: &[u32],
        k: usize,
        allowed: impl Fn(u32) -> bool,
    ) -> Vec<(u32, f64)> {
        let mut scored: Vec<(u32, f64)> = Vec::new();
        for (window, set) in sets
            .iter()
            .enumerate()
            .filter(|(window, _)| allowed(*window as u32))
        {
            let overlap = set.iter().filter(|token| query.contains(token)).count();
            let union = set.len() + query.len() - overlap;
            let score = if union == 0 {
                0.0
            } else {
                overlap as f64 / union as f64
            };
            scored.push((window as u32, score));
        }
        scored.sort_by(|a, b| a.1.total_cmp(&b.1));
        scored.into_iter().rev().take(k).collect()
    }

    fn token_sets(sets: &[Vec<u32>]) -> TokenSets {
        let mut all = TokenSets::default();
        sets.iter().for_each(|set| all.push(set.iter().copied()));
        all
    }

    fn sets(vocabulary: u32, longest: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
        let set = prop::collection::btree_set(0..vocabulary, 0..longest);
        prop::collection::vec(set.prop_map(|set| set.into_iter().collect()), 0..60)
    }

    proptest! {
        #[test]
        fn equals_the_reference_loop(
            sets in prop_oneof![sets(8, 6), sets(300, 40), sets(1 << 20, 30)],
            query in prop_oneof![prop::collection::btree_set(0_u32..12, 0..10), prop::collection::btree_set(0_u32..400, 200..300)],
            k in prop_oneof![0_usize..25, Just(LARGE_K + 1)],
            hidden in 1_u32..6,
        ) {
            let query: Vec<u32> = query.into_iter().collect();
            let index = Index::new(&token_sets(&sets));
            let allowed = |window: u32| window % hidden != 1;
            let mut scratch = Scratch::default();
            for _ in 0..2 {
                let fast = index.search(&query, k, allowed, &mut scratch);
                let fast: Vec<_> = fast.iter().map(|hit| (hit.window, hit.score())).collect();
                prop_assert_eq!(fast, slow(&sets, &query, k, allowed));
            }
        }
    }

    #[test]
    fn empty_sets_score_zero_and_the_later_window_comes_first() {
        let index = Index::new(&token_sets(&[vec![], vec![1], vec![]]));
        let hits = index.search(&[], 2, |_| true, &mut Scratch::default());
        assert_eq!(
            hits.iter()
                .map(|hit| (hit.window, hit.score()))
                .collect::<Vec<_>>(),
            [(2, 0.0), (1, 0.0)]
        );
    }
}
