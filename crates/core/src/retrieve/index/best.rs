//! Search results: the order of windows, the k best so far, and the overlap that a window needs to be one of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

/// A window and its similarity to the query: |A∩B| and |A∪B|.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowHit {
    /// Index of the window.
    pub window: u32,
    /// Number of tokens that both sets have.
    pub overlap: u32,
    /// Number of tokens that either set has.
    pub union: u32,
}

impl WindowHit {
    /// Creates the hit of a window of `size` tokens that shares `overlap` of them with a query of `total` tokens.
    #[inline]
    pub(super) fn new(window: u32, overlap: u32, size: u32, total: u32) -> Self {
        let union = total + size - overlap;
        Self { window, overlap, union }
    }

    /// Returns the Jaccard similarity; 0 if both sets are empty (the reference program divides by zero).
    pub fn score(&self) -> f64 {
        if self.union == 0 { 0.0 } else { f64::from(self.overlap) / f64::from(self.union) }
    }

    /// Returns true if this similarity is greater than another one. Fractions of 32-bit numbers compare exactly by
    /// cross-multiplication.
    #[inline]
    pub(super) fn beats(&self, other: &Self) -> bool {
        u64::from(self.overlap) * u64::from(other.union.max(1))
            > u64::from(other.overlap) * u64::from(self.union.max(1))
    }
}

/// Windows of a search: the ones that may be retrieved, and the order of equally similar ones.
pub trait Windows {
    /// Returns true if a window may be retrieved.
    fn allows(&self, window: u32) -> bool;

    /// Returns the key of a window among equally similar ones: the greater key comes first. No two windows have the same key.
    fn key(&self, window: u32) -> u64;

    /// Returns a bound on the keys of all windows below this one: they are less than the bound.
    fn bound(&self, window: u32) -> u64;
}

/// Windows of a batch search: of equally similar windows, the later comes first.
pub(super) struct LaterFirst<F>(pub(super) F);

impl<F: Fn(u32) -> bool> Windows for LaterFirst<F> {
    #[inline]
    fn allows(&self, window: u32) -> bool {
        (self.0)(window)
    }

    #[inline]
    fn key(&self, window: u32) -> u64 {
        u64::from(window)
    }

    #[inline]
    fn bound(&self, window: u32) -> u64 {
        u64::from(window)
    }
}

/// The k best hits of one query so far.
#[derive(Debug)]
pub(super) struct Best {
    /// Number of hits wanted.
    pub(super) k: usize,
    /// Hits kept so far, the worst on top.
    kept: BinaryHeap<HitOrder>,
    /// A hit such that at least `k` allowed windows elsewhere are at least as good.
    floor: Option<WindowHit>,
}

/// A hit and the key of its window; in this order, a worse hit is greater.
#[derive(Debug, PartialEq, Eq)]
struct HitOrder(WindowHit, u64);

impl HitOrder {
    /// Returns true if this hit ranks first: by similarity, then by greater key.
    #[inline]
    fn ranks_before(&self, other: &Self) -> bool {
        self.0.beats(&other.0) || (!other.0.beats(&self.0) && self.1 > other.1)
    }
}

impl Ord for HitOrder {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.ranks_before(other), other.ranks_before(self)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

impl PartialOrd for HitOrder {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Best {
    /// Creates an empty list of hits.
    pub(super) fn new(k: usize) -> Self {
        let kept = BinaryHeap::with_capacity(k.min(64));
        Self { k, kept, floor: None }
    }

    /// Returns the worst hit once there are `k`; `None` before.
    pub(super) fn worst(&self) -> Option<WindowHit> {
        let worst = self.kept.peek().filter(|_| self.missing() == 0);
        worst.map(|HitOrder(hit, _)| *hit)
    }

    /// Sets the hit below which nothing is kept from now on.
    pub(super) fn raise(&mut self, floor: Option<WindowHit>) {
        self.floor = floor;
    }

    /// Returns how many hits can still be added before a new one has to beat another.
    #[inline]
    pub(super) fn missing(&self) -> usize {
        self.k - self.kept.len()
    }

    /// Returns the overlap with a query of `total` tokens that a window of `size` tokens and with a key below `bound` needs, at
    /// least 1.
    ///
    /// If the worst kept hit has overlap o and union u, x/(total + size − x) ≥ o/u is equivalent to x (u + o) ≥ o (total +
    /// size). In a batch, the last blocks come first, so an equal similarity is usually not enough: the kept window is the
    /// later one.
    #[inline]
    pub(super) fn need(&self, total: u32, size: u32, bound: u64) -> u32 {
        let own = self.kept.peek().filter(|_| self.missing() == 0);
        let (worst, key) = match (own, &self.floor) {
            (Some(HitOrder(worst, key)), Some(floor)) if !floor.beats(worst) => (worst, *key),
            // An equal similarity may be enough.
            (_, Some(floor)) => (floor, 0),
            (Some(HitOrder(worst, key)), None) => (worst, *key),
            (None, None) => return 1,
        };
        let sizes = u64::from(total) + u64::from(size);
        let both = u64::from(worst.union) + u64::from(worst.overlap);
        let product = u64::from(worst.overlap) * sizes;
        let need =
            if key >= bound { product / both.max(1) + 1 } else { product.div_ceil(both.max(1)) };
        u32::try_from(need).unwrap_or(u32::MAX).max(1)
    }

    /// Keeps a hit if it is among the k best and allowed.
    #[inline]
    pub(super) fn offer(&mut self, hit: WindowHit, windows: &impl Windows) {
        if self.missing() > 0 {
            if windows.allows(hit.window) {
                self.kept.push(HitOrder(hit, windows.key(hit.window)));
            }
        } else if let Some(mut worst) = self.kept.peek_mut()
            && !worst.0.beats(&hit)
        {
            let hit = HitOrder(hit, windows.key(hit.window));
            if hit.ranks_before(&worst) && windows.allows(hit.0.window) {
                *worst = hit;
            }
        }
    }

    /// Returns the windows kept, in no particular order.
    pub(super) fn windows(&self) -> impl Iterator<Item = u32> {
        self.kept.iter().map(|HitOrder(hit, _)| hit.window)
    }

    /// Returns the hits, best first.
    pub(super) fn into_hits(self) -> Vec<WindowHit> {
        let hits = self.kept.into_sorted_vec();
        hits.into_iter().map(|HitOrder(hit, _)| hit).collect()
    }
}
