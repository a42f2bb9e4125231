//! Near duplicates, as datatrove finds them.
//!
//! A [`Signature`] holds what `MinhashDedupSignature` of datatrove 0.10.1 writes for a document, with its default
//! `MinhashConfig`: n-grams of 5 words, hashed by xxHash64; of each of 112 permutations (seed 1) the smallest value; 14 buckets
//! of 8 values. Documents that agree in all 8 values of a bucket are duplicates. Of two that share a part `s` of their n-grams
//! (Jaccard), a share of `1 - (1 - s^8)^14` is found: half of them at 0.68, nine in ten at 0.79.
//!
//! Words are those of the text as `simplify_text` leaves it, split at spaces. datatrove's own default cuts them with
//! spaCy's English rules, which takes longer; its step takes any other `WordTokenizer` in that place.

mod clusters;
mod permutations;
mod simplify;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

pub use clusters::clusters;
use permutations::PERMUTATIONS;

/// Words of an n-gram.
const NGRAM: usize = 5;
/// Buckets, of which one that agrees suffices.
const BUCKETS: usize = 14;
/// Values of a bucket.
const ROWS: usize = 8;
/// `2^61 - 1`, below which the values lie.
const PRIME: u64 = (1 << 61) - 1;
/// N-grams whose values are computed together.
const BATCH: usize = 256;
/// N-grams that are remembered, because code repeats them: a power of two.
const REMEMBERED: usize = 1 << 12;
/// Bytes of words that are kept until they are moved to the front.
const KEPT: usize = 1 << 14;

/// The smallest value of each permutation, bucket by bucket.
type Least = [u64; BUCKETS * ROWS];

/// Signature of a document: of each bucket's eight values a digest of 128 bits, 224 bytes in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    keys: [[u64; 2]; BUCKETS],
}

impl Signature {
    /// The signature of a text; `None` if it has fewer than five words, which is no duplicate of anything.
    pub fn of(text: &str) -> Option<Self> {
        let mut signer = Signer::default();
        signer.add(text);
        signer.finish()
    }

    fn of_least(least: &Least) -> Self {
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

/// Makes the signature of a document whose texts come one after another, as if they were joined by `"\n"`. It holds a few
/// words of them at a time.
///
/// ```
/// use repoformer::formats::group::min_hash::{Signature, Signer};
///
/// let mut signer = Signer::default();
/// ["def f(x):", "    return x + 1"].into_iter().for_each(|text| signer.add(text));
/// assert_eq!(signer.finish(), Signature::of("def f(x):\n    return x + 1"));
/// ```
#[derive(Debug)]
pub struct Signer {
    words: Words,
    ngrams: Ngrams,
}

impl Default for Signer {
    fn default() -> Self {
        Self {
            words: Words { text: Vec::with_capacity(KEPT), starts: [0; NGRAM], count: 0 },
            ngrams: Ngrams {
                batch: Vec::with_capacity(BATCH),
                // A hash lies in the place of its lowest bits, so that none is there yet.
                remembered: (0..REMEMBERED as u64).map(|place| !place).collect(),
                least: [u64::MAX; BUCKETS * ROWS],
            },
        }
    }
}

impl Signer {
    /// Adds the next text.
    pub fn add(&mut self, text: &str) {
        simplify::each_word(text, |word| {
            if let Some(ngram) = self.words.add(word) {
                self.ngrams.add(XxHash64::oneshot(0, ngram));
            }
        });
    }

    /// The signature of all texts; `None` if they have fewer than five words, which are no duplicate of anything.
    pub fn finish(self) -> Option<Signature> {
        self.least().map(|least| Signature::of_least(&least))
    }

    /// The values that datatrove writes.
    fn least(mut self) -> Option<Least> {
        (self.words.count == NGRAM).then(|| {
            self.ngrams.fold();
            self.ngrams.least
        })
    }
}

/// The last words, with a space between.
#[derive(Debug)]
struct Words {
    text: Vec<u8>,
    /// Where the last words begin.
    starts: [usize; NGRAM],
    /// How many of `starts` are words.
    count: usize,
}

impl Words {
    /// Adds a word; returns the n-gram that it ends.
    #[inline]
    fn add(&mut self, word: &[u8]) -> Option<&[u8]> {
        if self.text.len() > KEPT {
            let first = self.starts[1];
            self.text.drain(..first);
            self.starts.iter_mut().for_each(|start| *start = start.saturating_sub(first));
        }
        self.starts.rotate_left(1);
        self.starts[NGRAM - 1] = self.text.len();
        self.count = NGRAM.min(self.count + 1);
        self.text.extend_from_slice(word);
        self.text.push(b' ');
        (self.count == NGRAM).then(|| &self.text[self.starts[0]..self.text.len() - 1])
    }
}

/// N-grams, and what is left of those before.
#[derive(Debug)]
struct Ngrams {
    /// Hashes that are not yet in `least`.
    batch: Vec<u64>,
    remembered: Box<[u64]>,
    least: Least,
}

impl Ngrams {
    #[inline]
    fn add(&mut self, hash: u64) {
        let known = &mut self.remembered[hash as usize % REMEMBERED];
        if *known == hash {
            return;
        }
        *known = hash;
        self.batch.push(hash);
        if self.batch.len() == BATCH {
            self.fold();
        }
    }

    /// Takes the least of the batch's values and those before.
    fn fold(&mut self) {
        let [factors, summands] = &PERMUTATIONS;
        for (number, least) in self.least.iter_mut().enumerate() {
            *least = least_value(&self.batch, factors[number], summands[number], *least);
        }
        self.batch.clear();
    }
}

/// The least of `least` and each `(factor * hash + summand) mod (2^61 - 1)`, where the product and the sum are taken modulo
/// `2^64`, as numpy does.
///
/// A value is the lowest 61 bits of the sum plus the three above, at most seven, minus the prime where that reaches it. So it is
/// below `least` only if those 61 bits are at most `least`, or among the eight highest; that is, if they are at most `least + 8`
/// once 8 is added to them. The loop asks this of eight hashes at a time, on bits moved to the left by three, and computes
/// values of few.
fn least_value(hashes: &[u64], factor: u64, summand: u64, mut least: u64) -> u64 {
    let value = |hash: u64| hash.wrapping_mul(factor).wrapping_add(summand) % PRIME;
    let (moved_factor, moved_summand) = (factor << 3, (summand + 8) << 3);
    let bound = |least: u64| least.saturating_add(8).min(PRIME) << 3;
    let mut most = bound(least);
    let mut eights = hashes.chunks_exact(8);
    for eight in eights.by_ref() {
        let mut any = false;
        for hash in eight {
            any |= hash.wrapping_mul(moved_factor).wrapping_add(moved_summand) <= most;
        }
        if any {
            least = eight.iter().fold(least, |least, &hash| least.min(value(hash)));
            most = bound(least);
        }
    }
    eights.remainder().iter().fold(least, |least, &hash| least.min(value(hash)))
}
