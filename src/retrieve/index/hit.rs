//! A window that was found, and how hits rank.

use serde::{Deserialize, Serialize};

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
    /// Hit of a window of `size` tokens that shares `overlap` of them with a query of `total`.
    pub(super) fn new(window: u32, overlap: u32, size: u32, total: u32) -> Self {
        let union = total + size - overlap;
        Self { window, overlap, union }
    }

    /// Jaccard similarity; 0 where both sets are empty (the reference divides by zero).
    pub fn score(&self) -> f64 {
        if self.union == 0 { 0.0 } else { f64::from(self.overlap) / f64::from(self.union) }
    }

    /// Whether this similarity is above another's. Fractions of 32-bit numbers compare exactly by cross-multiplication.
    fn beats(&self, other: &Self) -> bool {
        u64::from(self.overlap) * u64::from(other.union.max(1))
            > u64::from(other.overlap) * u64::from(self.union.max(1))
    }

    /// Best first: by similarity, then the later window.
    pub(in crate::retrieve) fn ranks_before(&self, other: &Self) -> bool {
        self.beats(other) || (!other.beats(self) && self.window > other.window)
    }
}
