//! Selection of hits from a chunk's counts.

use super::best::{Best, WindowHit, Windows};
use super::block::Block;
use super::kernels::{LANES, Line, lane_of_bit};

/// Maximum number of lanes checked in one go; the others wait until lanes with higher counts have raised the need.
const AT_ONCE: u32 = 24;

/// A chunk of a block, during the search for a query.
pub(super) struct Chunk<'a> {
    block: &'a Block,
    /// Position of the first lane.
    start: usize,
    /// Number of tokens of the query.
    total: u32,
}

/// Some lanes of a chunk, as the bits of a line.
type Lanes = [u64; 8];

impl<'a> Chunk<'a> {
    pub(super) fn new(block: &'a Block, chunk: usize, total: u32) -> Self {
        Self { block, start: chunk * LANES, total }
    }

    /// Offers all windows whose count may suffice, the ones with the highest counts first.
    pub(super) fn select<const P: usize>(
        &self,
        planes: &[Line; P],
        best: &mut Best,
        windows: &impl Windows,
    ) {
        let mut seen = Lanes::default();
        let bound = windows.bound(self.block.end());
        loop {
            let needs = self.needs(best, bound);
            let mut lanes = without(at_least(planes, &needs), &seen);
            let all = population(&lanes) <= AT_ONCE;
            if !all {
                lanes = highest(planes, &needs, &seen);
            }
            self.offer(planes, &lanes, best, windows);
            if all {
                return;
            }
            for word in 0..8 {
                seen[word] |= lanes[word];
            }
        }
    }

    /// Returns the overlap that each group of 64 consecutive lanes needs, determined by its smallest set.
    fn needs(&self, best: &Best, bound: u64) -> [u32; 8] {
        let mut needs = [u32::MAX; 8];
        for (group, need) in needs.iter_mut().enumerate() {
            if let Some(size) = self.block.sizes.get(self.start + 64 * group) {
                *need = best.need(self.total, *size, bound);
            }
        }
        needs
    }

    fn offer<const P: usize>(
        &self,
        planes: &[Line; P],
        lanes: &Lanes,
        best: &mut Best,
        windows: &impl Windows,
    ) {
        for (word, bits) in lanes.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let bit_of = |p: usize| ((planes[p].0[word] >> bit & 1) as u32) << p;
                let count = (0..P).fold(0, |count, p| count | bit_of(p));
                let at = self.start + lane_of_bit(word, bit as usize);
                let window = self.block.first + u32::from(self.block.order[at]);
                let hit = WindowHit::new(window, count, self.block.sizes[at], self.total);
                best.offer(hit, windows);
            }
        }
    }
}

/// Selects, from the lanes not seen yet, the lanes that exceed their need by so much that they are few enough; if even one step
/// leads to too many lanes, selects all of that step.
fn highest<const P: usize>(planes: &[Line; P], needs: &[u32; 8], seen: &Lanes) -> Lanes {
    // With `many` more than the need, there are too many lanes; with `none` more, there are none.
    let (mut many, mut none) = (0, 1_u64 << P);
    let lanes = |more: u64| {
        let mut higher = *needs;
        for need in &mut higher {
            *need = u32::try_from(u64::from(*need) + more).unwrap_or(u32::MAX);
        }
        without(at_least(planes, &higher), seen)
    };
    while none - many > 1 {
        let middle = many + (none - many) / 2;
        let some = lanes(middle);
        match population(&some) {
            0 => none = middle,
            1..=AT_ONCE => return some,
            _ => many = middle,
        }
    }
    lanes(many)
}

/// Returns the lanes whose count is at least the need of their group of 64.
fn at_least<const P: usize>(planes: &[Line; P], needs: &[u32; 8]) -> Lanes {
    // A count of P bits cannot reach a need with more bits.
    let possible = byte_of(|group| u64::from(needs[group]) >> P == 0);
    let mut reached = [possible; 8];
    for (p, plane) in planes.iter().enumerate() {
        let clear = byte_of(|group| needs[group] >> p & 1 == 0);
        for word in 0..8 {
            let (plane, before) = (plane.0[word], reached[word]);
            reached[word] = (plane & before) | (clear & (plane | before));
        }
    }
    for word in &mut reached {
        *word &= possible;
    }
    reached
}

/// Returns a word of equal bytes in which bit j stands for the j-th group of 64 lanes.
#[inline]
fn byte_of(bit: impl Fn(usize) -> bool) -> u64 {
    let byte = (0..8).fold(0, |byte, group| byte | u64::from(bit(group)) << group);
    byte * 0x0101_0101_0101_0101
}

#[inline]
fn without(lanes: Lanes, seen: &Lanes) -> Lanes {
    let mut left = lanes;
    for word in 0..8 {
        left[word] &= !seen[word];
    }
    left
}

#[inline]
fn population(lanes: &Lanes) -> u32 {
    lanes.iter().map(|word| word.count_ones()).sum()
}
