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

/// Calls `take` with `count` uniform numbers below `n`, which is at most 2³² (Lemire, *Fast random integer generation in an interval*, 2019).
/// Each number takes the next 32 bits of the stream that do not favour some numbers.
#[inline]
pub(super) fn draw_below(stream: &mut ChaCha8Rng, n: u64, count: usize, mut take: impl FnMut(u64)) {
    let Some(least) = (1u64 << 32).checked_rem(n) else { return };
    let mut left = count;
    while left > 0 {
        // Two at a time cost little more than one.
        let both = stream.next_u64();
        for word in [both & 0xffff_ffff, both >> 32] {
            let product = word * n;
            if left > 0 && product & 0xffff_ffff >= least {
                take(product >> 32);
                left -= 1;
            }
        }
    }
}
