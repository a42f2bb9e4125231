//! Byte pair merging: the ids of one piece that is not a token itself.
//!
//! Starting from single bytes, the adjacent parts whose joined bytes have the lowest rank are merged, the leftmost pair first,
//! until no two adjacent parts form a token. Ids are ranks.

use super::vocabulary::{SIZE, rank};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Greatest length in bytes of pieces that are merged by scanning. Scanning takes quadratic time, but beats a queue while
/// everything fits registers and the first-level cache.
pub(super) const SCANNED: usize = 64;

/// Rank of adjacent parts that do not form a token.
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

/// Merges by searching for the lowest rank again after every merge.
fn merge_short_into(bytes: &[u8], start: usize, end: usize, ids: &mut Vec<u16>) {
    let pair = |from: usize, to: usize| rank(bytes, from, to).unwrap_or(NONE);
    // Part `n` is `bytes[bounds[n]..bounds[n + 1]]`, and `ranks[n]` is the rank of part `n` joined with part `n + 1`.
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

/// Merges with a queue of the possible merges: O(n log n) for n bytes, with up to about 20 bytes of memory for each.
fn merge_long_into(piece: &[u8], ids: &mut Vec<u16>) {
    let length = piece.len();
    // Stored at a part's first byte: its length, the length of the part before it, and the rank of this part joined with the
    // next. No token is longer than 128 bytes.
    let mut sizes = vec![1_u8; length];
    let mut before = vec![1_u8; length];
    let mut ranks = vec![NONE; length];
    let mut pending = MergeQueue::default();
    for (at, slot) in ranks.iter_mut().enumerate().take(length - 1) {
        *slot = pending.pair(piece, at, at + 2);
    }
    while let Some((rank, left)) = pending.pop() {
        if ranks[left] != rank {
            continue; // one of the two parts has since been merged with another
        }
        let right = left + usize::from(sizes[left]);
        let size = sizes[left] + sizes[right];
        let end = left + usize::from(size);
        sizes[left] = size;
        ranks[right] = NONE;
        ranks[left] = NONE;
        if end < length {
            before[end] = size;
            ranks[left] = pending.pair(piece, left, end + usize::from(sizes[end]));
        }
        if left > 0 {
            let previous = left - usize::from(before[left]);
            ranks[previous] = pending.pair(piece, previous, end);
        }
    }
    let mut at = 0;
    while at < length {
        let end = at + usize::from(sizes[at]);
        ids.extend(rank(piece, at, end));
        at = end;
    }
}

/// Possible merges, by rank and then by position.
#[derive(Default)]
struct MergeQueue(BTreeMap<u16, Places>);

/// Positions to be merged at one rank. They arrive nearly in order; a queue handles ordered positions in constant time, while a
/// single heap for all ranks would miss the cache at every step.
#[derive(Default)]
struct Places {
    ordered: VecDeque<usize>,
    late: BinaryHeap<Reverse<usize>>,
}

impl MergeQueue {
    /// Returns the rank of two parts `piece[from..to]`, and queues the merge if they form a token.
    #[inline]
    fn pair(&mut self, piece: &[u8], from: usize, to: usize) -> u16 {
        let Some(rank) = rank(piece, from, to) else {
            return NONE;
        };
        let places = self.0.entry(rank).or_default();
        if places.ordered.back().is_none_or(|&last| last <= from) {
            places.ordered.push_back(from);
        } else {
            places.late.push(Reverse(from));
        }
        rank
    }

    /// Removes and returns the lowest rank and its leftmost position.
    fn pop(&mut self) -> Option<(u16, usize)> {
        let mut entry = self.0.first_entry()?;
        let (rank, places) = (*entry.key(), entry.get_mut());
        let late = match (places.ordered.front(), places.late.peek()) {
            (Some(ordered), Some(Reverse(late))) => late < ordered,
            (ordered, _) => ordered.is_none(),
        };
        let place = if late {
            places.late.pop().map(|Reverse(place)| place)
        } else {
            places.ordered.pop_front()
        };
        if places.ordered.is_empty() && places.late.is_empty() {
            entry.remove();
        }
        place.map(|place| (rank, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_queue_merges_as_the_scan_does(piece in "[aehinorst =_#\\-\n]{1,64}|[a-z]{1,64}|\\PC{1,16}") {
            let piece = piece.as_bytes();
            let (mut scanned, mut queued) = (Vec::new(), Vec::new());
            merge_short_into(piece, 0, piece.len(), &mut scanned);
            merge_long_into(piece, &mut queued);
            prop_assert_eq!(scanned, queued);
        }
    }
}
