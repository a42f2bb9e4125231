//! Computation of documents' signatures.

use twox_hash::XxHash64;

use super::permutations::PERMUTATIONS;
use super::signature::{BUCKETS, Least, PRIME, ROWS, Signature};
use super::simplify;

/// Number of words in an n-gram.
pub(super) const NGRAM: usize = 5;
/// Number of n-grams whose values are computed together.
const BATCH: usize = 256;
/// Number of n-grams that are remembered because code repeats them; a power of two.
const REMEMBERED: usize = 1 << 12;
/// Number of bytes of words that are kept before they are moved to the front.
const KEPT: usize = 1 << 14;

impl Signature {
    /// Returns the signature of a text; `None` if it has fewer than five words, since it then duplicates nothing.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut signer = Signer::default();
        signer.add(text);
        signer.finish()
    }
}

/// Accumulator of the signature of a document whose texts arrive one after another, as if they were joined by `"\n"`. It keeps only a
/// few words in memory.
///
/// ```
/// use repoformer_formats::group::min_hash::{Signature, Signer};
///
/// let mut signer = Signer::default();
/// ["def f(x):", "    return x + 1"].into_iter().for_each(|text| signer.add(text));
/// assert_eq!(signer.finish(), Signature::from_text("def f(x):\n    return x + 1"));
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
                // A hash is stored at the index of its lowest bits; the initial values do not match their index, so that
                // nothing is remembered yet.
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

    /// Returns the signature of all texts; `None` if they have fewer than five words, since they then duplicate nothing.
    pub fn finish(self) -> Option<Signature> {
        self.least().map(|least| Signature::of_least(&least))
    }

    /// Returns the values that datatrove writes.
    pub(super) fn least(mut self) -> Option<Least> {
        (self.words.count == NGRAM).then(|| {
            self.ngrams.fold();
            self.ngrams.least
        })
    }
}

/// Last words, separated by spaces.
#[derive(Debug)]
struct Words {
    text: Vec<u8>,
    /// Start of each of the last words.
    starts: [usize; NGRAM],
    /// Number of elements of `starts` that are words.
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

/// N-grams, and the least values of earlier ones.
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

    /// Updates the least values with the hashes of the batch.
    fn fold(&mut self) {
        let [factors, summands] = &PERMUTATIONS;
        for (number, least) in self.least.iter_mut().enumerate() {
            *least = least_value(&self.batch, factors[number], summands[number], *least);
        }
        self.batch.clear();
    }
}

/// Returns the minimum of `least` and each `(factor * hash + summand) mod (2^61 - 1)`, in which the product and the sum are
/// computed modulo `2^64`, as in numpy.
///
/// A value is the lowest 61 bits of the sum plus its three highest bits, which are at most seven, minus the prime if the result
/// reaches it. The value is therefore below `least` only if those 61 bits are at most `least` or among the eight highest
/// numbers. That is the case if, after adding 8, they are at most `least + 8`. The loop tests this for eight hashes at a time,
/// on bits shifted left by three, and computes only a few values.
pub(super) fn least_value(hashes: &[u64], factor: u64, summand: u64, mut least: u64) -> u64 {
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
