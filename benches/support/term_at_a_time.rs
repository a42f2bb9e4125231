//! The plain twin of the index: an inverted file, counted a term at a time in sixteen bits a window.

use repoformer::retrieve::Hit;
use repoformer::vector::{TokenSet, TokenSets};

/// For each token the windows that hold it.
pub(crate) struct TermAtATime {
    /// `first[t]..first[t + 1]` of `windows` hold token t.
    first: Vec<u32>,
    windows: Vec<u32>,
    sizes: Vec<u32>,
    counts: Vec<u16>,
}

impl TermAtATime {
    /// Of narrow token sets.
    pub(crate) fn new(sets: &TokenSets) -> Self {
        let mut first = vec![0_u32; (1 << 16) + 1];
        let TokenSet::Narrow(tokens) = sets.tokens() else {
            panic!("the twin is for ids of sixteen bits")
        };
        for token in tokens {
            first[usize::from(*token) + 1] += 1;
        }
        for token in 1..first.len() {
            first[token] += first[token - 1];
        }
        let mut next = first.clone();
        let mut windows = vec![0; tokens.len()];
        for (window, set) in (0_u32..).zip(sets.iter()) {
            let TokenSet::Narrow(set) = set else { continue };
            for token in set {
                let next = &mut next[usize::from(*token)];
                windows[*next as usize] = window;
                *next += 1;
            }
        }
        let sizes: Vec<u32> = sets.iter().map(|set| set.len() as u32).collect();
        let counts = vec![0; sizes.len()];
        Self {
            first,
            windows,
            sizes,
            counts,
        }
    }

    /// The k most similar windows, best first, the later first among equals; windows without a common token count.
    pub(crate) fn search(
        &mut self,
        query: &[u16],
        k: usize,
        allowed: impl Fn(u32) -> bool,
    ) -> Vec<Hit> {
        self.counts.fill(0);
        for token in query {
            let token = usize::from(*token);
            let range = self.first[token] as usize..self.first[token + 1] as usize;
            for window in &self.windows[range] {
                self.counts[*window as usize] += 1;
            }
        }
        let total = query.len() as u32;
        let mut best: Vec<Hit> = Vec::with_capacity(k + 1);
        // The similarity of the k-th best as a fraction; at first below all.
        let (mut overlap, mut union) = (0_u64, 1_u64);
        for (window, (&count, &size)) in (0_u32..).zip(self.counts.iter().zip(&self.sizes)) {
            let all = total + size - u32::from(count);
            if u64::from(count) * union < overlap * u64::from(all) || !allowed(window) {
                continue;
            }
            let hit = Hit {
                window,
                overlap: count.into(),
                union: all,
            };
            let product = |a: &Hit, b: &Hit| u64::from(a.overlap) * u64::from(b.union.max(1));
            let at = best.partition_point(|kept| product(kept, &hit) > product(&hit, kept));
            best.insert(at, hit);
            best.truncate(k);
            if let (Some(worst), true) = (best.last(), best.len() == k) {
                (overlap, union) = (worst.overlap.into(), worst.union.max(1).into());
            }
        }
        best
    }
}
