//! Ranks of p50k_base: mapping between byte strings and ids.
//!
//! `build.rs` places every token of at most [`HEAD`] bytes into a perfect hash table. A lookup is therefore one small load for
//! the displacement of its group, one load of a slot that holds both key and id, and one comparison, whether or not the token
//! exists. The 270 longer tokens have a separate table.

use super::key::{HEAD, Key, hash_long};

include!(concat!(env!("OUT_DIR"), "/vocabulary.rs"));

/// Alignment that keeps sixteen-byte slots from straddling two cache lines.
#[repr(align(64))]
struct CacheLines<T>(T);

static PILOTS: CacheLines<[u8; 2 << PILOT_BITS]> =
    CacheLines(*include_bytes!(concat!(env!("OUT_DIR"), "/pilots.bin")));
static TABLE: CacheLines<[u8; 16 * SLOTS]> =
    CacheLines(*include_bytes!(concat!(env!("OUT_DIR"), "/slots.bin")));
static LONG: [u8; 2 * LONG_SLOTS] = *include_bytes!(concat!(env!("OUT_DIR"), "/long_slots.bin"));
static ENDS: [u8; 4 * VOCABULARY] = *include_bytes!(concat!(env!("OUT_DIR"), "/token_ends.bin"));
static BYTES: [u8; TEXT] = *include_bytes!(concat!(env!("OUT_DIR"), "/token_bytes.bin"));

/// Number of ids, including the unused end of text: they run from 0 to 50,280.
pub(super) const SIZE: usize = VOCABULARY;

/// Returns the hash with which [`of_key`] and the memo look a key up.
#[inline(always)]
pub(super) fn hash(key: Key) -> u64 {
    key.hash(SEED)
}

/// Returns the hash of a piece that is longer than its key.
pub(super) fn hash_of_long(piece: &[u8]) -> u64 {
    hash_long(piece, SEED)
}

/// Returns the id of a complete key whose [`hash`] is known.
#[inline(always)]
pub(super) fn of_key(key: Key, hash: u64) -> Option<u16> {
    let (pilots, _) = PILOTS.0.as_chunks::<2>();
    let pilot = u16::from_le_bytes(pilots[(hash >> (64 - PILOT_BITS)) as usize]);
    let (slots, _) = TABLE.0.as_chunks::<16>();
    let slot = u128::from_le_bytes(slots[usize::from(hash as u16 ^ pilot)]);
    // The id is above the key's bytes and is shifted out of the comparison.
    ((slot ^ key.0) << (128 - 8 * HEAD) == 0).then_some((slot >> (8 * HEAD)) as u16)
}

/// Returns the id of a token longer than [`HEAD`] bytes.
pub(super) fn of_long(piece: &[u8]) -> Option<u16> {
    if piece.len() > LONGEST {
        return None;
    }
    let (slots, _) = LONG.as_chunks::<2>();
    let first = hash_of_long(piece) as usize;
    (0..LONG_SLOTS)
        .map(|step| u16::from_le_bytes(slots[first.wrapping_add(step) % LONG_SLOTS]))
        .take_while(|&id| id != u16::MAX)
        .find(|&id| bytes_of(id) == Some(piece))
}

/// Returns the id of `bytes[start..end]`, which must not be empty.
#[inline]
pub(super) fn rank(bytes: &[u8], start: usize, end: usize) -> Option<u16> {
    if end - start <= HEAD {
        let key = Key::from_bytes(bytes, start, end);
        of_key(key, hash(key))
    } else {
        of_long(bytes.get(start..end)?)
    }
}

/// Returns the bytes of an id; `None` for an invalid number.
pub(super) fn bytes_of(id: u16) -> Option<&'static [u8]> {
    let (ends, _) = ENDS.as_chunks::<4>();
    let id = usize::from(id);
    let end = u32::from_le_bytes(*ends.get(id)?) as usize;
    let start = match id.checked_sub(1) {
        Some(before) => u32::from_le_bytes(ends[before]) as usize,
        None => 0,
    };
    BYTES.get(start..end)
}
