//! Plain twins of the fast paths, which are measured next to them and checked against them.

use std::cmp::Ordering;

use foldhash::HashSet;
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::index::WindowHit;
use tiktoken_rs::CoreBPE;

use super::sets::Sets;

/// Orders the best results first, and equal ones by the later window.
pub fn rank(a: &WindowHit, b: &WindowHit) -> Ordering {
    let by_score = (u64::from(b.overlap) * u64::from(a.union.max(1)))
        .cmp(&(u64::from(a.overlap) * u64::from(b.union.max(1))));
    by_score.then(b.window.cmp(&a.window))
}

/// Finds the best sets as the reference program does: an intersection with every window, then a sort.
pub fn by_hash_sets(sets: &[HashSet<u16>], query: &[u16], k: usize) -> Vec<WindowHit> {
    best(k, query.len(), sets.iter(), |set| {
        let mut common = 0;
        for token in query {
            common += usize::from(set.contains(token));
        }
        (common, set.len())
    })
}

pub fn hash_sets(sets: &Sets, count: usize) -> Vec<HashSet<u16>> {
    sets.iter().take(count).map(|set| set.iter().copied().collect()).collect()
}

/// Finds the best sets by merging sorted runs.
pub fn by_sorted_merge(sets: &Sets, count: usize, query: &[u16], k: usize) -> Vec<WindowHit> {
    best(k, query.len(), sets.iter().take(count), |set| {
        let (mut i, mut j, mut common) = (0, 0, 0);
        while i < query.len() && j < set.len() {
            let (a, b) = (query[i], set[j]);
            common += usize::from(a == b);
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        (common, set.len())
    })
}

fn best<S>(
    k: usize,
    query: usize,
    sets: impl Iterator<Item = S>,
    overlap_and_size: impl Fn(S) -> (usize, usize),
) -> Vec<WindowHit> {
    let mut hits: Vec<WindowHit> = sets
        .enumerate()
        .map(|(window, set)| {
            let (overlap, size) = overlap_and_size(set);
            WindowHit {
                window: window as u32,
                overlap: overlap as u32,
                union: (query + size - overlap) as u32,
            }
        })
        .collect();
    if hits.len() > k {
        hits.select_nth_unstable_by(k, rank);
        hits.truncate(k);
    }
    hits.sort_unstable_by(rank);
    hits
}

/// Tokenizes the text of each window; returns the total size of the token sets.
pub fn window_sets(windows: &RepoFragments, tiktoken: &CoreBPE) -> usize {
    (0..windows.len())
        .map(|window| {
            let mut ids = tiktoken.encode_ordinary(windows.text(window));
            ids.sort_unstable();
            ids.dedup();
            ids.len()
        })
        .sum()
}
