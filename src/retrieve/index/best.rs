//! The k best hits so far, and what a window needs to be one of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::hit::Hit;

/// The k best hits of one query so far.
#[derive(Debug)]
pub(super) struct Best {
    k: usize,
    /// The worst on top.
    kept: BinaryHeap<Worse>,
}

/// A hit in an order where the worse is the greater.
#[derive(Debug, PartialEq, Eq)]
struct Worse(Hit);

impl Ord for Worse {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0.ranks_before(&other.0), other.0.ranks_before(&self.0)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

impl PartialOrd for Worse {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Best {
    /// None yet.
    pub(super) fn new(k: usize) -> Self {
        let kept = BinaryHeap::with_capacity(k.min(64));
        Self { k, kept }
    }

    /// How many hits are wanted.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    /// How many hits are still to find before one has to beat another.
    pub(super) fn missing(&self) -> usize {
        self.k - self.kept.len()
    }

    /// The overlap with a query of `total` tokens that a window of `size` needs, 1 at least, where all windows that
    /// are still to come are below `end`.
    ///
    /// With the worst kept hit at o of u, x/(total + size − x) ≥ o/u is x (u + o) ≥ o (total + size). The windows
    /// come in blocks, the last first, so that an equal similarity is mostly not enough: the kept window is the later.
    pub(super) fn need(&self, total: u32, size: u32, end: u32) -> u32 {
        let worst = match self.kept.peek() {
            Some(Worse(worst)) if self.missing() == 0 => worst,
            _ => return 1,
        };
        let sizes = u64::from(total) + u64::from(size);
        let both = u64::from(worst.union) + u64::from(worst.overlap);
        let product = u64::from(worst.overlap) * sizes;
        let need = if worst.window >= end {
            product / both.max(1) + 1
        } else {
            product.div_ceil(both.max(1))
        };
        u32::try_from(need).unwrap_or(u32::MAX).max(1)
    }

    /// Keeps a hit if it is among the k best and allowed.
    #[inline]
    pub(super) fn offer(&mut self, hit: Hit, allowed: impl Fn(u32) -> bool) {
        if self.missing() > 0 {
            if allowed(hit.window) {
                self.kept.push(Worse(hit));
            }
        } else if let Some(mut worst) = self.kept.peek_mut()
            && hit.ranks_before(&worst.0)
            && allowed(hit.window)
        {
            *worst = Worse(hit);
        }
    }

    /// The windows kept, in no order.
    pub(super) fn windows(&self) -> impl Iterator<Item = u32> {
        self.kept.iter().map(|Worse(hit)| hit.window)
    }

    /// Best first.
    pub(super) fn into_hits(self) -> Vec<Hit> {
        let hits = self.kept.into_sorted_vec();
        hits.into_iter().map(|Worse(hit)| hit).collect()
    }
}
