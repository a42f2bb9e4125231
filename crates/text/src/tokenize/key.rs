//! The sixteen-byte form in which pieces are looked up, and its hash.
//!
//! `build.rs` compiles this very file to lay out the vocabulary, so that what
//! the program asks for and what the table holds cannot drift apart.

/// Bytes of a piece that fit a [`Key`] whole; the two bytes above them hold
/// the id in the vocabulary's slots and the length in those of the memo.
pub(crate) const HEAD: usize = 14;

/// Up to [`HEAD`] bytes, the first in the lowest place, filled up with 0xFF.
///
/// 0xFF occurs in no UTF-8 text, so two different pieces never share a key (filling with zeros would confuse `.` and
/// `.\0`), and the length needs no room of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(pub(crate) u128);

/// `FILL[n]` sets every byte but the lowest `n`.
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
    /// The key of `bytes[start..end]`, or of its first [`HEAD`] bytes.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &[u8], start: usize, end: usize) -> Self {
        Self::cut(sixteen(bytes, start), end - start)
    }

    /// The key of the lowest `length` bytes of `word`.
    #[inline(always)]
    fn cut(word: u128, length: usize) -> Self {
        Self(word | FILL[length.min(HEAD)])
    }

    /// A hash whose high bits and whose low bits are both well mixed.
    #[inline(always)]
    pub(crate) fn hash(self, seed: u64) -> u64 {
        fold(self.0 as u64 ^ 0x9E37_79B9_7F4A_7C15, (self.0 >> 64) as u64 ^ seed)
    }
}

/// The 128-bit product of two words, its halves folded together.
#[inline(always)]
pub(crate) fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// The sixteen bytes from `start` on, zeros past the end of `bytes`.
#[inline(always)]
fn sixteen(bytes: &[u8], start: usize) -> u128 {
    match bytes.get(start..).and_then(<[u8]>::first_chunk::<16>) {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => sixteen_at_the_end(bytes, start),
    }
}

/// [`sixteen`] for the last bytes of a text, out of line: it is rare.
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

/// The hash of a piece longer than [`HEAD`]: that of its head, with the rest folded in eight bytes at a time.
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
