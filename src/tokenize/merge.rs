//! Byte pair merging: the ids of one piece that is no token itself.
//!
//! Starting from single bytes, the neighbours whose joined bytes have the
//! lowest rank are joined, the leftmost first, until no two neighbours make a
//! token. Ids are ranks.

use super::vocabulary::{rank, SIZE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pieces of up to this many bytes are merged by scanning, which takes
/// quadratic time but beats a heap while everything stays in registers and
/// first-level cache.
pub(super) const SCANNED: usize = 64;

/// In place of a rank: these neighbours make no token.
const NONE: u16 = u16::MAX;
const _: () = assert!(SIZE <= NONE as usize);

/// Appends the ids of the piece `bytes[start..end]`.
pub(super) fn merge_into(bytes: &[u8], start: usize, end: usize, ids: &mut Vec<u16>) {
    if end - start <= SCANNED {
        merge_short_into(bytes, start, end, ids);
    } else {
        merge_long_into(bytes.get(start..end).unwrap_or_default(), ids);
    }
}

/// Merges by looking for the lowest rank anew after every merge.
fn merge_short_into(bytes: &[u8], start: usize, end: usize, ids: &mut Vec<u16>) {
    let pair = |from: usize, to: usize| rank(bytes, from, to).unwrap_or(NONE);
    // Part `n` is `bytes[bounds[n]..bounds[n + 1]]`, and `ranks[n]` belongs to
    // it joined with part `n + 1`.
    let mut bounds = [end; SCANNED + 1];
    let mut ranks = [NONE; SCANNED];
    let mut parts = end - start;
    for (bound, at) in bounds.iter_mut().zip(start..end) {
        *bound = at;
    }
    for (slot, at) in ranks.iter_mut().zip(start..end - 1) {
        *slot = pair(at, at + 2);
    }
    while parts > 1 {
        let (mut lowest, mut part) = (NONE, 0);
        for (number, &candidate) in ranks[..parts - 1].iter().enumerate() {
            if candidate < lowest {
                (lowest, part) = (candidate, number);
            }
        }
        if lowest == NONE {
            break;
        }
        bounds.copy_within(part + 2..=parts, part + 1);
        ranks.copy_within(part + 1..parts, part);
        parts -= 1;
        ranks[part] = if part + 1 < parts { pair(bounds[part], bounds[part + 2]) } else { NONE };
        if part > 0 {
            ranks[part - 1] = pair(bounds[part - 1], bounds[part + 1]);
        }
    }
    // Every part is a token: a single byte, or a pair that had a rank.
    ids.extend(bounds[..=parts].windows(2).filter_map(|part| rank(bytes, part[0], part[1])));
}

/// Merges with a heap of the possible merges: O(n log n) for n bytes, with
/// some 12 bytes of memory for each.
fn merge_long_into(piece: &[u8], ids: &mut Vec<u16>) {
    let pair = |from: usize, to: usize| rank(piece, from, to).unwrap_or(NONE);
    // A merge in one word, so that the lowest word is the next merge.
    let entry = |rank: u16, at: usize| Reverse(u64::from(rank) << 48 | at as u64);
    let length = piece.len();
    // At a part's first byte: its length, that of the part before it, and the
    // rank of it joined with the next. No token is longer than 128 bytes.
    let mut sizes = vec![1_u8; length];
    let mut before = vec![1_u8; length];
    let mut ranks: Vec<u16> = (0..length).map(|at| if at + 2 <= length { pair(at, at + 2) } else { NONE }).collect();
    let mut heap: BinaryHeap<Reverse<u64>> = ranks
        .iter()
        .enumerate()
        .filter(|&(_, &rank)| rank != NONE)
        .map(|(at, &rank)| entry(rank, at))
        .collect();

    while let Some(Reverse(word)) = heap.pop() {
        let (rank, left) = ((word >> 48) as u16, (word & (!0 >> 16)) as usize);
        if ranks[left] != rank {
            continue; // one of the two parts has been merged otherwise since
        }
        let right = left + usize::from(sizes[left]);
        let size = sizes[left] + sizes[right];
        let end = left + usize::from(size);
        sizes[left] = size;
        ranks[right] = NONE;
        ranks[left] = NONE;
        if end < length {
            before[end] = size;
            ranks[left] = pair(left, end + usize::from(sizes[end]));
            if ranks[left] != NONE {
                heap.push(entry(ranks[left], left));
            }
        }
        if left > 0 {
            let previous = left - usize::from(before[left]);
            ranks[previous] = pair(previous, end);
            if ranks[previous] != NONE {
                heap.push(entry(ranks[previous], previous));
            }
        }
    }
    let mut at = 0;
    while at < length {
        let end = at + usize::from(sizes[at]);
        ids.extend(rank(piece, at, end));
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_heap_merges_as_the_scan_does(piece in "[aehinorst =_#\\-\n]{1,64}|[a-z]{1,64}|\\PC{1,16}") {
            let piece = piece.as_bytes();
            let (mut scanned, mut heaped) = (Vec::new(), Vec::new());
            merge_short_into(piece, 0, piece.len(), &mut scanned);
            merge_long_into(piece, &mut heaped);
            prop_assert_eq!(scanned, heaped);
        }
    }

    #[test]
    fn a_single_byte_is_its_own_token() {
        for merge in [|piece: &[u8], ids: &mut Vec<u16>| merge_short_into(piece, 0, 1, ids), merge_long_into] {
            let mut ids = Vec::new();
            merge(b"a", &mut ids);
            assert_eq!(ids, [64]);
        }
    }
}
