//! Sixteen-byte key by which pieces are looked up, and its hash.
//!
//! `build.rs` compiles this same file to lay out the vocabulary, so that the program's lookups and the table cannot diverge.

/// Number of bytes of a piece that fit a [`Key`]; the two bytes above them hold the id in the vocabulary's slots and the length
/// in the memo's slots.
pub(crate) const HEAD: usize = 14;

/// Up to [`HEAD`] bytes, with the first in the lowest place, padded with 0xFF.
///
/// 0xFF does not occur in UTF-8, so two different pieces never share a key (padding with zeros would confuse `.` and `.\0`),
/// and the length does not have to be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(pub(crate) u128);

/// `FILL[n]` sets every byte except the lowest `n`.
const FILL: [u128; HEAD + 1] = {
    let mut fill = [0; HEAD + 1];
    let mut length = 0;
    while length <= HEAD {
        fill[length] = !0 << (8 * length);
        length += 1;
    }
    fill
};

impl Key {
    /// Returns the key of `bytes[start..end]`, or of its first [`HEAD`] bytes.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &[u8], start: usize, end: usize) -> Self {
        Self::cut(sixteen(bytes, start), end - start)
    }

    /// Returns the key of the lowest `length` bytes of `word`.
    #[inline(always)]
    fn cut(word: u128, length: usize) -> Self {
        Self(word | FILL[length.min(HEAD)])
    }

    /// Returns a hash whose high and low bits are both well mixed.
    #[inline(always)]
    pub(crate) fn hash(self, seed: u64) -> u64 {
        fold(self.0 as u64 ^ 0x9E37_79B9_7F4A_7C15, (self.0 >> 64) as u64 ^ seed)
    }
}

/// Returns the 128-bit product of two words, its halves folded together.
#[inline(always)]
pub(crate) fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the sixteen bytes starting at `start`, with zeros past the end of `bytes`.
#[inline(always)]
fn sixteen(bytes: &[u8], start: usize) -> u128 {
    match bytes.get(start..).and_then(<[u8]>::first_chunk::<16>) {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => sixteen_at_the_end(bytes, start),
    }
}

/// Returns [`sixteen`] for the last bytes of a text, in a separate function because it is rare.
#[cold]
fn sixteen_at_the_end(bytes: &[u8], start: usize) -> u128 {
    let mut chunk = [0; 16];
    if let Some(rest) = bytes.get(start..) {
        for (to, from) in chunk.iter_mut().zip(rest) {
            *to = *from;
        }
    }
    u128::from_le_bytes(chunk)
}

/// Returns the hash of a piece longer than [`HEAD`]: the hash of its head, with the rest folded in eight bytes at a time.
pub(crate) fn hash_long(piece: &[u8], seed: u64) -> u64 {
    let mut hash = Key::from_bytes(piece, 0, piece.len()).hash(seed);
    let mut words = piece.get(HEAD..).unwrap_or_default().chunks_exact(8);
    for word in words.by_ref() {
        let word = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        hash = fold(hash ^ word, 0xD6E8_FEB8_6659_FD93);
    }
    let mut last = [0xFF; 8];
    for (to, from) in last.iter_mut().zip(words.remainder()) {
        *to = *from;
    }
    fold(hash ^ u64::from_le_bytes(last), 0xA076_1D64_78BD_642F)
}
