//! One query and its way through the blocks.

use std::ops::Range;

use super::best::{Best, LaterFirst, WindowHit, Windows};
use super::block::{Block, TermEntry};
use super::kernels::{Candidate, LANES, Line, Sweep};
use super::select::Chunk;
use super::simd::{Level, prefetch};
use super::terms::Terms;
use crate::retrieve::vector::TokenSet;

/// Chunks that rows are added to together: more of a row is read at once, and what the first have raises what the next need. Their
/// planes stay in the nearest cache.
const TILE: usize = 32;

/// Buffers of one thread, reused from query to query and block to block.
#[derive(Debug, Default)]
pub struct SearchScratch {
    /// Terms of the queries at hand.
    pub(super) terms: Vec<u32>,
    /// Rows of a query in a block, rarest first, after eight empty ones.
    rows: Vec<u32>,
    /// Its lists.
    lists: Vec<u32>,
    /// Counts of the lists by position, for so many positions.
    counts: Vec<u8>,
    counted: usize,
    /// Counts of everything, where bytes are too narrow.
    wide_counts: Vec<u32>,
    /// Chunks that may have a hit, a tile of them.
    candidates: Vec<Candidate>,
    /// Their counts, some planes each.
    planes: Vec<Line>,
}

impl SearchScratch {
    /// Looks up a query's terms.
    fn find(&mut self, block: &Block, terms: Range<usize>) {
        self.rows.clear();
        self.rows.resize(8, block.empty_row());
        self.lists.clear();
        for term in &self.terms[terms] {
            match block.find(*term) {
                Some(TermEntry::Row(row)) => self.rows.push(row),
                Some(TermEntry::List(list)) => self.lists.push(list),
                None => {}
            }
        }
    }

    /// How many of the query's lists have each position, 512 positions at a time; empty without lists.
    fn count_lists(&mut self, block: &Block) {
        self.counted = 0;
        if !self.lists.is_empty() {
            self.counted = block.chunks() * LANES;
            if self.counts.len() < self.counted {
                self.counts.resize(self.counted, 0);
            }
            let counts = &mut self.counts[..self.counted];
            // One call to clear memory, which to empty and to fill again is not.
            counts.fill(0);
            // They lie all over the block.
            self.lists.iter().for_each(|list| prefetch(&block.starts[*list as usize]));
            let lists = self.lists.iter().flat_map(|list| block.list(*list).iter().step_by(32));
            lists.for_each(prefetch);
            for list in &self.lists {
                for position in block.list(*list) {
                    let count = &mut counts[usize::from(*position)];
                    *count = count.wrapping_add(1);
                }
            }
        }
    }
}

/// A query while it is searched for.
#[derive(Debug)]
pub(super) struct Request {
    /// Its terms in [`SearchScratch::terms`].
    terms: Range<usize>,
    /// Number of its tokens, with those that no window has.
    total: u32,
    pub(super) best: Best,
}

impl Request {
    /// A query for `k` hits; its terms go into the scratch.
    pub(super) fn new(
        terms: &Terms,
        query: TokenSet<'_>,
        k: usize,
        scratch: &mut SearchScratch,
    ) -> Self {
        let start = scratch.terms.len();
        terms.of_query(query, &mut scratch.terms);
        Self { terms: start..scratch.terms.len(), total: query.len() as u32, best: Best::new(k) }
    }

    /// Takes in a block; all blocks before came from behind it.
    pub(super) fn search(
        &mut self,
        block: &Block,
        level: Level,
        scratch: &mut SearchScratch,
        windows: &impl Windows,
    ) {
        scratch.find(block, self.terms.clone());
        let (rows, lists) = (scratch.rows.len() as u32 - 8, scratch.lists.len() as u32);
        let terms = rows + lists;
        if terms == 0 || self.best.k == 0 {
            return;
        }
        if lists > 255 || terms > 65_535 {
            return self.search_wide(block, scratch, windows);
        }
        scratch.count_lists(block);
        if terms <= 255 {
            self.sweep::<8>(block, level, scratch, windows);
        } else {
            self.sweep::<16>(block, level, scratch, windows);
        }
    }

    /// The chunks of a block, those of the query's own size first: they have the best hits.
    fn sweep<const P: usize>(
        &mut self,
        block: &Block,
        level: Level,
        scratch: &mut SearchScratch,
        windows: &impl Windows,
    ) {
        let SearchScratch { rows, lists, counts, counted, candidates, planes, .. } = scratch;
        let terms = (rows.len() - 8 + lists.len()) as u32;
        let chunks = block.chunks();
        let similar = block.bounds.iter().position(|(_, largest)| *largest >= self.total);
        let similar = similar.unwrap_or(chunks - 1);
        let bound = windows.bound(block.end());
        if planes.len() < TILE * P {
            planes.resize(TILE * P, Line::default());
        }
        let planes = planes.as_chunks_mut::<P>().0;
        // Empty rows fill up the first group.
        let skip = if rows.len().is_multiple_of(8) { 8 } else { rows.len() % 8 };
        let sweep = Sweep {
            lines: &block.lines,
            chunks,
            rows: rows[skip..].as_chunks().0,
            counts: counts[..*counted].as_chunks().0,
        };
        let mut next = 0;
        while next < chunks {
            candidates.clear();
            while next < chunks && candidates.len() < TILE {
                let above = similar + next;
                let chunk = if above < chunks { above } else { chunks - 1 - next };
                next += 1;
                let (smallest, largest) = block.bounds[chunk];
                let need = self.best.need(self.total, smallest, bound);
                if need <= largest.min(terms) {
                    candidates.push(Candidate { chunk: chunk as u32, need });
                }
            }
            for at in 0..level.sweep(&sweep, candidates, planes) {
                let chunk = Chunk::new(block, candidates[at].chunk as usize, self.total);
                chunk.select(&planes[at], &mut self.best, windows);
            }
        }
    }

    /// Searches with queries of which bytes or sixteen planes cannot hold the counts: one count after the other.
    fn search_wide(&mut self, block: &Block, scratch: &mut SearchScratch, windows: &impl Windows) {
        let counts = &mut scratch.wide_counts;
        counts.clear();
        counts.resize(block.chunks() * LANES, 0);
        for term in &scratch.terms[self.terms.clone()] {
            match block.find(*term) {
                Some(TermEntry::Row(row)) => block.each_position(row, |at| counts[at] += 1),
                Some(TermEntry::List(list)) => {
                    for position in block.list(list) {
                        counts[usize::from(*position)] += 1;
                    }
                }
                None => {}
            }
        }
        let (counts, _) = counts.as_chunks::<LANES>();
        for (chunk, counts) in counts.iter().enumerate() {
            let planes = super::kernels::planes_of_counts(counts);
            let chunk = Chunk::new(block, chunk, self.total);
            chunk.select::<32>(&planes, &mut self.best, windows);
        }
    }

    /// The hits, best first; windows without a common token where there are too few with one.
    pub(super) fn finish(
        mut self,
        blocks: &[Block],
        allowed: impl Fn(u32) -> bool,
    ) -> Vec<WindowHit> {
        if self.best.missing() > 0 {
            self.fill(blocks, allowed);
        }
        self.best.into_hits()
    }

    /// The hits with a common token, best first.
    pub(super) fn into_hits(self) -> Vec<WindowHit> {
        self.best.into_hits()
    }

    /// All allowed windows with a common token are kept already; the last of the others follow.
    fn fill(&mut self, blocks: &[Block], allowed: impl Fn(u32) -> bool) {
        let mut kept: Vec<u32> = self.best.windows().collect();
        kept.sort_unstable();
        for block in blocks.iter().rev() {
            let mut sizes = vec![0; block.order.len()];
            for (window, size) in block.order.iter().zip(&block.sizes) {
                sizes[usize::from(*window)] = *size;
            }
            for (window, size) in (block.first..block.end()).zip(sizes).rev() {
                if self.best.missing() == 0 {
                    return;
                }
                if kept.pop_if(|last| *last == window).is_none() && allowed(window) {
                    self.best
                        .offer(WindowHit::new(window, 0, size, self.total), &LaterFirst(|_| true));
                }
            }
        }
    }
}
