//! A tuned inverted index that processes one term at a time: the speed of a good conventional implementation.
//!
//! Windows are in blocks whose 16-bit counters fit into the nearest cache, and posting lists have 16-bit positions in the block.
//! Within a block, windows are sorted by size, so that all windows of one size are compared with one least overlap, and most are
//! skipped 32 at a time.

use repoformer_core::retrieve::index::WindowHit;

use super::sets::Sets;
use super::twins::rank;

/// Number of windows in a block, whose counters take 32 KiB.
const BLOCK: usize = 16_384;

pub struct TermAtATime {
    blocks: Vec<Block>,
    vocabulary: usize,
}

struct Block {
    /// Windows by their position in the block, and the end of each run of equal set size.
    windows: Vec<u32>,
    runs: Vec<(u32, usize)>,
    /// `first[t]..first[t + 1]` are the postings of token t.
    first: Vec<u32>,
    postings: Vec<u16>,
}

impl TermAtATime {
    pub fn new(sets: &Sets, count: usize) -> Self {
        let tokens = &sets.tokens[..sets.first[count] as usize];
        let mut vocabulary = 0;
        for token in tokens {
            vocabulary = vocabulary.max(usize::from(*token) + 1);
        }
        let blocks = (0..count)
            .step_by(BLOCK)
            .map(|from| Block::new(sets, from..count.min(from + BLOCK), vocabulary))
            .collect();
        Self { blocks, vocabulary }
    }

    pub fn search(&self, query: &[u16], k: usize, counters: &mut Vec<u16>) -> Vec<WindowHit> {
        let mut best = Vec::with_capacity(k + 1);
        for block in &self.blocks {
            counters.clear();
            counters.resize(BLOCK, 0);
            let places: &mut [u16; BLOCK] = counters.first_chunk_mut().expect("just resized");
            for &token in query.iter().filter(|&&t| usize::from(t) < self.vocabulary) {
                let token = usize::from(token);
                let list = block.first[token] as usize..block.first[token + 1] as usize;
                for &place in &block.postings[list] {
                    places[usize::from(place) % BLOCK] += 1; // needs no bounds check
                }
            }
            block.select(query.len() as u32, k, counters, &mut best);
        }
        best
    }
}

impl Block {
    fn new(sets: &Sets, range: std::ops::Range<usize>, vocabulary: usize) -> Self {
        let mut windows: Vec<u32> = range.map(|window| window as u32).collect();
        windows.sort_by_key(|&window| sets.get(window as usize).len());
        let set = |place: usize| sets.get(windows[place] as usize);
        let mut first = vec![0_u32; vocabulary + 1];
        let mut runs: Vec<(u32, usize)> = Vec::new();
        for place in 0..windows.len() {
            let size = set(place).len() as u32;
            match runs.last_mut() {
                Some(run) if run.0 == size => run.1 = place + 1,
                _ => runs.push((size, place + 1)),
            }
            for &token in set(place) {
                first[usize::from(token) + 1] += 1;
            }
        }
        for token in 0..vocabulary {
            first[token + 1] += first[token];
        }
        let mut next = first.clone();
        let mut postings = vec![0; first[vocabulary] as usize];
        for (place, window) in (0_u16..).zip(&windows) {
            fill(sets.get(*window as usize), place, &mut next, &mut postings);
        }
        Self { windows, runs, first, postings }
    }

    fn select(&self, total: u32, k: usize, counters: &[u16], best: &mut Vec<WindowHit>) {
        let mut from = 0;
        for &(size, to) in &self.runs {
            let mut least = least_overlap(best, k, total + size);
            for start in (from..to).step_by(32) {
                let end = to.min(start + 32);
                if counters[start..end].iter().fold(0, |a, b| a.max(*b)) < least {
                    continue;
                }
                for (place, &counter) in (start..end).zip(&counters[start..end]) {
                    if counter < least {
                        continue;
                    }
                    let overlap = u32::from(counter);
                    let hit = WindowHit {
                        window: self.windows[place],
                        overlap,
                        union: total + size - overlap,
                    };
                    let at = best.partition_point(|kept| rank(kept, &hit).is_lt());
                    best.insert(at, hit);
                    best.truncate(k);
                    least = least_overlap(best, k, total + size);
                }
            }
            from = to;
        }
    }
}

/// Adds a position to the postings of each token.
fn fill(set: &[u16], place: u16, next: &mut [u32], postings: &mut [u16]) {
    for token in set {
        let next = &mut next[usize::from(*token)];
        let at = *next as usize;
        *next += 1;
        postings[at] = place;
    }
}

/// Returns the least overlap at which two sets with `sizes` elements in total are as similar as the worst kept result: o / (sizes −
/// o) ≥ kept / union, so o ≥ kept · sizes / (union + kept).
fn least_overlap(best: &[WindowHit], k: usize, sizes: u32) -> u16 {
    match best.last() {
        Some(worst) if best.len() == k => {
            let (overlap, both) = (u64::from(worst.overlap), worst.overlap + worst.union);
            (overlap * u64::from(sizes)).div_ceil(u64::from(both).max(1)) as u16
        }
        _ => 0,
    }
}
