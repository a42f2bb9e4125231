//! Signatures of documents.

use serde::{Deserialize, Serialize};

/// Number of buckets; two signatures match if one bucket agrees.
pub(super) const BUCKETS: usize = 14;
/// Number of values in a bucket.
pub(super) const ROWS: usize = 8;
/// `2^61 - 1`, the exclusive upper bound of the values.
pub(super) const PRIME: u64 = (1 << 61) - 1;

/// Smallest value of each permutation, bucket by bucket.
pub(super) type Least = [u64; BUCKETS * ROWS];

/// Signature of a document: a 128-bit digest of each bucket's eight values, 224 bytes in total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub(super) keys: [[u64; 2]; BUCKETS],
}

impl Signature {
    pub(super) fn of_least(least: &Least) -> Self {
        let mut keys = [[0; 2]; BUCKETS];
        for (key, values) in keys.iter_mut().zip(least.chunks_exact(ROWS)) {
            let mut hasher = blake3::Hasher::new();
            for value in values {
                hasher.update(&value.to_le_bytes());
            }
            let mut digest = [0; 16];
            hasher.finalize_xof().fill(&mut digest);
            let digest = u128::from_le_bytes(digest);
            *key = [digest as u64, (digest >> 64) as u64];
        }
        Self { keys }
    }
}
