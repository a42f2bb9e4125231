//! Random streams that depend only on a purpose, a seed and a number, on every platform and in any order of use.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Purposes of random numbers; each has separate streams.
pub(super) const RESAMPLES: &[u8] = b"repoformer bootstrap 1\0";
pub(super) const SIGN_FLIPS: &[u8] = b"repoformer sign flips 1\0";

/// Streams of one purpose and seed, represented by their digest, which is computed once.
pub(super) struct Streams([u8; 32]);

impl Streams {
    pub(super) fn new(purpose: &[u8], seed: u64) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose);
        hasher.update(&seed.to_le_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// Returns stream `number`, from its beginning.
    pub(super) fn get(&self, number: usize) -> ChaCha8Rng {
        let mut stream = ChaCha8Rng::from_seed(self.0);
        stream.set_stream(number as u64);
        stream
    }

    /// Turns a stream into stream `number`, from its beginning, which is faster than [`get`](Self::get).
    pub(super) fn switch(stream: &mut ChaCha8Rng, number: usize) {
        stream.set_word_pos(0);
        stream.set_stream(number as u64);
    }
}

/// Draws a uniform number below `n`, which is at most 2³² (Lemire, *Fast random integer generation in an
/// interval*, 2019).
#[inline]
pub(super) fn below(stream: &mut ChaCha8Rng, n: u64) -> u64 {
    loop {
        let product = u64::from(stream.next_u32()) * n;
        let low = product & 0xffff_ffff;
        // Rejects the products that would favour some numbers; the division is rarely needed.
        if low >= n || low >= (1u64 << 32).checked_rem(n).unwrap_or(0) {
            return product >> 32;
        }
    }
}
