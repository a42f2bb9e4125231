//! Search for one query in the blocks.

use std::ops::Range;

use super::best::{Best, LaterFirst, WindowHit, Windows};
use super::block::{Block, TermEntry};
use super::kernels::{Candidate, LANES, Line, Sweep};
use super::select::Chunk;
use super::simd::{Level, prefetch};
use super::terms::Terms;
use crate::retrieve::vector::TokenSet;

/// Number of chunks to which rows are added together. More of a row is then read at once, and hits in the first chunks raise
/// the need of the next ones. The planes of these chunks stay in the nearest cache.
const TILE: usize = 32;

/// Buffers of one thread, reused for all queries and blocks.
#[derive(Debug, Default)]
pub struct SearchScratch {
    /// Terms of the current queries.
    pub(super) terms: Vec<u32>,
    /// Rows of a query in a block, rarest first, after eight empty ones.
    rows: Vec<u32>,
    /// Lists of the query in the block.
    lists: Vec<u32>,
    /// Counts of the lists by position; `counted` is the number of positions.
    counts: Vec<u8>,
    counted: usize,
    /// Counts of lists and rows, if bytes are too narrow.
    wide_counts: Vec<u32>,
    /// Chunks that may have a hit, up to one tile.
    candidates: Vec<Candidate>,
    /// Counts of these chunks, several planes each.
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

    /// Counts how many of the query's lists have each position, 512 positions at a time; empty if there are no lists.
    fn count_lists(&mut self, block: &Block) {
        self.counted = 0;
        if !self.lists.is_empty() {
            self.counted = block.chunks() * LANES;
            if self.counts.len() < self.counted {
                self.counts.resize(self.counted, 0);
            }
            let counts = &mut self.counts[..self.counted];
            // `fill` compiles to one call that clears memory; clearing and resizing does not.
            counts.fill(0);
            // The lists' data are scattered over the block, so they are prefetched.
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

/// A query during its search.
#[derive(Debug)]
pub(super) struct Request {
    /// Terms of the query, as a range of [`SearchScratch::terms`].
    terms: Range<usize>,
    /// Number of the query's tokens, including tokens that no window has.
    total: u32,
    pub(super) best: Best,
}

impl Request {
    /// Creates a request for `k` hits; appends the query's terms to the scratch.
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

    /// Searches a block for better hits.
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

    /// Counts the chunks of a block, starting with chunks of the query's own size, because they have the best hits.
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

    /// Searches for queries whose counts do not fit in bytes or sixteen planes, one count after another.
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

    /// Returns the hits, best first; adds windows without a common token if there are too few others.
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

    /// Returns the hits with a common token, best first.
    pub(super) fn into_hits(self) -> Vec<WindowHit> {
        self.best.into_hits()
    }

    /// Adds windows without a common token, the last first. All allowed windows with one are already kept.
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
