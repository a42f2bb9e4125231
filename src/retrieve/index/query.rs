//! One query and its way through the blocks.

use std::ops::Range;

use super::best::{Best, Hit, Later, Windows};
use super::block::{Block, Entry};
use super::kernels::{Column, LANES, Line};
use super::select::Chunk;
use super::simd::{Level, prefetch};
use super::terms::Terms;
use crate::retrieve::vector::TokenSet;

/// Chunks whose first rows are asked for before they are needed, where a block is cold.
const AHEAD: usize = 2;
/// Groups of eight rows that are asked for.
const FIRST: usize = 8;

/// Buffers of one thread, reused from query to query and block to block.
#[derive(Debug, Default)]
pub struct Scratch {
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
}

impl Scratch {
    /// Looks up a query's terms.
    fn find(&mut self, block: &Block, terms: Range<usize>, is_cold: bool) {
        self.rows.clear();
        self.rows.resize(8, block.empty_row());
        self.lists.clear();
        if is_cold {
            let entries = self.terms[terms.clone()].iter();
            let entries = entries.filter_map(|term| block.table.get(*term as usize));
            entries.for_each(prefetch);
        }
        for term in &self.terms[terms] {
            match block.find(*term) {
                Some(Entry::Row(row)) => self.rows.push(row),
                Some(Entry::List(list)) => self.lists.push(list),
                None => {}
            }
        }
    }

    /// How many of the query's lists have each position, 512 positions at a time; empty without lists.
    fn count_lists(&mut self, block: &Block, is_cold: bool) {
        self.counted = 0;
        if !self.lists.is_empty() {
            self.counted = block.chunks() * LANES;
            if self.counts.len() < self.counted {
                self.counts.resize(self.counted, 0);
            }
            let counts = &mut self.counts[..self.counted];
            // One call to clear memory, which to empty and to fill again is not.
            counts.fill(0);
            if is_cold {
                self.lists.iter().for_each(|list| prefetch(&block.starts[*list as usize]));
                let lists = self.lists.iter().flat_map(|list| block.list(*list).iter().step_by(32));
                lists.for_each(prefetch);
            }
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
    /// Its terms in [`Scratch::terms`].
    terms: Range<usize>,
    /// Number of its tokens, with those that no window has.
    total: u32,
    pub(super) best: Best,
}

impl Request {
    /// A query for `k` hits; its terms go into the scratch.
    pub(super) fn new(terms: &Terms, query: TokenSet<'_>, k: usize, scratch: &mut Scratch) -> Self {
        let start = scratch.terms.len();
        terms.of_query(query, &mut scratch.terms);
        Self { terms: start..scratch.terms.len(), total: query.len() as u32, best: Best::new(k) }
    }

    /// Takes in a block; all blocks before came from behind it. Where it is cold, more of it is asked for than is needed.
    pub(super) fn search(
        &mut self,
        block: &Block,
        is_cold: bool,
        level: Level,
        scratch: &mut Scratch,
        windows: &impl Windows,
    ) {
        scratch.find(block, self.terms.clone(), is_cold);
        let (rows, lists) = (scratch.rows.len() as u32 - 8, scratch.lists.len() as u32);
        let terms = rows + lists;
        if terms == 0 || self.best.k == 0 {
            return;
        }
        if lists > 255 || terms > 65_535 {
            return self.search_wide(block, scratch, windows);
        }
        // Empty rows fill up the first group.
        let skip = if rows.is_multiple_of(8) { 8 } else { rows as usize % 8 };
        scratch.count_lists(block, is_cold);
        let pass = Pass {
            block,
            rows: scratch.rows[skip..].as_chunks().0,
            counts: scratch.counts[..scratch.counted].as_chunks().0,
            terms,
            is_cold,
        };
        if terms <= 255 {
            self.pass::<8>(&pass, level, windows);
        } else {
            self.pass::<16>(&pass, level, windows);
        }
    }

    /// The chunks of a block, those of the query's own size first: they have the best hits.
    fn pass<const P: usize>(&mut self, pass: &Pass<'_>, level: Level, windows: &impl Windows) {
        let block = pass.block;
        let chunks = block.chunks();
        let similar = (0..chunks)
            .position(|chunk| block.sizes_of(chunk).1 >= self.total)
            .unwrap_or(chunks - 1);
        let bound = windows.bound(block.end());
        let mut planes = [Line::default(); P];
        let order = (similar..chunks).chain((0..similar).rev());
        let mut coming = order.clone();
        if pass.is_cold {
            coming.by_ref().take(AHEAD).for_each(|chunk| self.prefetch(pass, chunk, bound));
        }
        for chunk in order {
            if pass.is_cold {
                coming.next().into_iter().for_each(|chunk| self.prefetch(pass, chunk, bound));
            }
            let Some(need) = self.need(pass, chunk, bound) else { continue };
            let column = Column {
                lines: block.chunk(chunk),
                rows: pass.rows,
                counts: pass.counts.get(chunk),
                need,
            };
            if level.count(&column, &mut planes) {
                let chunk = Chunk::new(block, chunk, self.total);
                chunk.select(&planes, &mut self.best, windows);
            }
        }
    }

    /// Overlap that a window of a chunk needs; `None` where none can have it.
    #[inline]
    fn need(&self, pass: &Pass<'_>, chunk: usize, bound: u64) -> Option<u32> {
        let (smallest, largest) = pass.block.sizes_of(chunk);
        let need = self.best.need(self.total, smallest, bound);
        (need <= largest.min(pass.terms)).then_some(need)
    }

    /// Asks for the rows of a chunk that are read first, and often are all that is read.
    #[inline]
    fn prefetch(&self, pass: &Pass<'_>, chunk: usize, bound: u64) {
        if self.need(pass, chunk, bound).is_some() {
            let lines = pass.block.chunk(chunk);
            for row in pass.rows.iter().take(FIRST).flatten() {
                prefetch(&lines[*row as usize]);
            }
        }
    }

    /// Searches with queries of which bytes or sixteen planes cannot hold the counts: one count after the other.
    fn search_wide(&mut self, block: &Block, scratch: &mut Scratch, windows: &impl Windows) {
        let counts = &mut scratch.wide_counts;
        counts.clear();
        counts.resize(block.chunks() * LANES, 0);
        for term in &scratch.terms[self.terms.clone()] {
            match block.find(*term) {
                Some(Entry::Row(row)) => block.each_position(row, |at| counts[at] += 1),
                Some(Entry::List(list)) => {
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
    pub(super) fn finish(mut self, blocks: &[Block], allowed: impl Fn(u32) -> bool) -> Vec<Hit> {
        if self.best.missing() > 0 {
            self.fill(blocks, allowed);
        }
        self.best.into_hits()
    }

    /// The hits with a common token, best first.
    pub(super) fn into_hits(self) -> Vec<Hit> {
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
                    self.best.offer(Hit::new(window, 0, size, self.total), &Later(|_| true));
                }
            }
        }
    }
}

/// Rows and counts that the chunks of a block share for a query.
struct Pass<'a> {
    block: &'a Block,
    rows: &'a [[u32; 8]],
    /// Counts of the lists; none without lists.
    counts: &'a [[u8; LANES]],
    /// Rows and lists together: the largest overlap there can be.
    terms: u32,
    /// Whether the block is hardly in a cache.
    is_cold: bool,
}
