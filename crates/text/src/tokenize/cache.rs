//! Memo of the ids of pieces that are not a single short token.
//!
//! Most pieces are in the vocabulary and are never looked up here. The others (rarer names, a newline with its indentation) are
//! repeated so often in code that merging each of them only once is worth a table.

use super::key::{HEAD, Key};
use super::merge::merge_into;
use super::vocabulary;

/// Greatest length of a memorised piece. Longer pieces are merged every time: they rarely repeat, and keeping them would let
/// one odd file fill the memory.
const LONGEST_KEPT: usize = 64;
/// Slots of the first table.
const FEWEST_SLOTS: usize = 1 << 8;
/// Slots of the largest table, which is emptied when it is half full.
const MOST_SLOTS: usize = 1 << 17;
/// Number of slots examined for one piece. If all are occupied, the piece replaces another, so that no sequence of pieces makes
/// a lookup slow.
const PROBES: usize = 8;
/// Number of ids that fit the slot itself.
const INLINE: usize = 3;
/// Capacity (in ids) that the scratch of a long piece may keep afterwards.
const SCRATCH_KEPT: usize = 1 << 16;

/// Memo of the ids of pieces, for one thread, to be reused across texts.
///
/// It affects how fast a text is tokenized, but never the result. It is initially empty and allocates nothing. It holds at most
/// about 65,000 pieces of at most 64 bytes: 4 MiB of slots, and 12 MiB more if all pieces have the greatest length.
///
/// ```
/// use repoformer_text::tokenize::{P50k, PieceCache};
/// let (p50k, mut cache, mut ids) = (P50k, PieceCache::default(), Vec::new());
/// for text in ["def main", "():\n    pass\n"] {
///     p50k.encode_into(text, &mut cache, &mut ids);
/// }
/// assert_eq!(ids, [4299, 1388, 33529, 198, 50258, 1208, 198]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct PieceCache {
    slots: Vec<Slot>,
    /// Number of pieces added since the table was last emptied.
    used: usize,
    /// Pieces longer than a key, concatenated.
    pieces: Vec<u8>,
    /// Ids of the pieces that have more than [`INLINE`].
    ids: Vec<u16>,
    /// Ids of the current piece if it is not kept.
    scratch: Vec<u16>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Key of the piece with its length above it.
    head: u128,
    /// Offset in [`PieceCache::pieces`] of a piece longer than its key.
    piece: u32,
    /// Offset in [`PieceCache::ids`] if the ids do not fit the slot.
    ids: u32,
    count: u8,
    inline: [u16; INLINE],
}

/// No piece has this head, since no memorised piece has 65,535 bytes.
const EMPTY: Slot = Slot { head: u128::MAX, piece: 0, ids: 0, count: 0, inline: [0; INLINE] };

impl PieceCache {
    /// Returns the ids of the piece `bytes[start..end]`, which must not be empty.
    #[inline(always)]
    pub(super) fn ids_of(&mut self, bytes: &[u8], start: usize, end: usize) -> Ids<'_> {
        let key = Key::from_bytes(bytes, start, end);
        if end - start <= HEAD {
            let hash = vocabulary::hash(key);
            match vocabulary::of_key(key, hash) {
                Some(id) => Ids::One(id),
                None => Ids::Many(self.recall(key, hash, bytes, start, end)),
            }
        } else {
            Ids::Many(self.recall_long(key, bytes, start, end))
        }
    }

    fn recall_long(&mut self, key: Key, bytes: &[u8], start: usize, end: usize) -> &[u16] {
        if end - start > LONGEST_KEPT {
            return self.work_out(bytes, start, end);
        }
        let hash = vocabulary::hash_of_long(&bytes[start..end]);
        self.recall(key, hash, bytes, start, end)
    }

    /// Returns the ids of a piece, computed and stored if the memo does not contain it.
    #[inline]
    fn recall(&mut self, key: Key, hash: u64, bytes: &[u8], start: usize, end: usize) -> &[u16] {
        let length = end - start;
        // The bits of a key above its head are all ones.
        let head = key.0 ^ ((!length as u16 as u128) << (8 * HEAD));
        let found = probes(hash, self.slots.len()).find(|&at| {
            let slot = &self.slots[at];
            slot.head == head && (length <= HEAD || self.piece(slot) == &bytes[start..end])
        });
        match found {
            Some(at) => self.ids_in(at),
            None => self.learn(head, hash, bytes, start, end),
        }
    }

    #[inline(always)]
    fn ids_in(&self, at: usize) -> &[u16] {
        let slot = &self.slots[at];
        let count = usize::from(slot.count);
        slot.inline.get(..count).unwrap_or_else(|| &self.ids[slot.ids as usize..][..count])
    }

    /// Returns the bytes of a memorised piece that is longer than its key.
    fn piece(&self, slot: &Slot) -> &[u8] {
        &self.pieces[slot.piece as usize..][..usize::from(slot.length())]
    }

    #[inline(never)]
    fn learn(&mut self, head: u128, hash: u64, bytes: &[u8], start: usize, end: usize) -> &[u16] {
        self.work_out(bytes, start, end);
        self.make_room();
        self.used += 1;
        let mut slot = Slot { head, count: self.scratch.len() as u8, ..EMPTY };
        if end - start > HEAD {
            slot.piece = self.pieces.len() as u32;
            self.pieces.extend_from_slice(&bytes[start..end]);
        }
        if self.scratch.len() <= INLINE {
            slot.inline[..self.scratch.len()].copy_from_slice(&self.scratch);
        } else {
            slot.ids = self.ids.len() as u32;
            self.ids.extend_from_slice(&self.scratch);
        }
        self.put(slot, hash);
        &self.scratch
    }

    /// Merges a piece into the scratch.
    fn work_out(&mut self, bytes: &[u8], start: usize, end: usize) -> &[u16] {
        if self.scratch.capacity() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
        self.scratch.clear();
        match vocabulary::rank(bytes, start, end) {
            Some(id) => self.scratch.push(id),
            None => merge_into(bytes, start, end, &mut self.scratch),
        }
        &self.scratch
    }

    /// Keeps the table at most half full.
    fn make_room(&mut self) {
        if 2 * self.used < self.slots.len() {
            return;
        }
        if self.slots.len() == MOST_SLOTS {
            self.slots.fill(EMPTY);
            self.used = 0;
            self.pieces.clear();
            self.ids.clear();
            return;
        }
        let size = (2 * self.slots.len()).max(FEWEST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; size]);
        for slot in old.into_iter().filter(|slot| slot.head != EMPTY.head) {
            let hash = if usize::from(slot.length()) > HEAD {
                vocabulary::hash_of_long(self.piece(&slot))
            } else {
                vocabulary::hash(Key(slot.head | !0 << (8 * HEAD)))
            };
            self.put(slot, hash);
        }
    }

    fn put(&mut self, slot: Slot, hash: u64) {
        let mut places = probes(hash, self.slots.len());
        let home = places.clone().next();
        let free = places.find(|&at| self.slots[at].head == EMPTY.head);
        if let Some(at) = free.or(home) {
            self.slots[at] = slot;
        }
    }
}

impl Slot {
    fn length(&self) -> u16 {
        (self.head >> (8 * HEAD)) as u16
    }
}

/// Returns the slots in which a piece may be, in order; none if the table has no slots.
#[inline(always)]
fn probes(hash: u64, slots: usize) -> impl Iterator<Item = usize> + Clone {
    // The low bits select the vocabulary's slot; use other bits here.
    let home = (hash >> 24) as usize;
    (0..PROBES.min(slots)).map(move |step| home.wrapping_add(step) & (slots - 1))
}

/// Ids of one piece.
pub(super) enum Ids<'a> {
    One(u16),
    Many(&'a [u16]),
}

impl Ids<'_> {
    #[inline(always)]
    pub(super) fn push_into(&self, out: &mut Vec<u16>) {
        match self {
            Self::One(id) => out.push(*id),
            Self::Many(ids) => out.extend_from_slice(ids),
        }
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u16] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(ids) => ids.len(),
        }
    }
}
