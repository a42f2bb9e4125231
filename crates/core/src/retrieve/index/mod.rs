//! Exact top-k Jaccard over token sets, bit-sliced.
//!
//! 1. The windows are cut into blocks that stay in cache while all queries pass over them, one block after the other.
//! 2. Within a block the windows are sorted by set size and dealt to chunks of 512 lanes.
//! 3. A term that is frequent in the block has a row: a bit a lane. A rarer one has a list of positions.
//! 4. A query's lists increment one byte a window. Its rows are added to these counts, rarest first, eight at a time by
//!    carry-save adders, 512 windows an instruction, each through all chunks, since memory is fast in order (`kernels`).
//! 5. The k-th best hit so far and a chunk's smallest set give the overlap that a window of the chunk needs, exactly,
//!    by cross-multiplication; a chunk is given up once its fullest lane plus the rows left cannot reach it.
//! 6. The few lanes that reach it become hits, compared as fractions; only those are asked whether they are allowed.
//!    While there is no k-th best, a chunk's highest counts go first, so that one soon is.
//! 7. Blocks go from the last to the first: the later window wins among equals, so ties end early too.
//! 8. A query alone is searched by several threads, block by block (`together`); many queries pass over a block together.
//! 9. Windows without a common token fill up what is missing in the end, the later first.

mod best;
mod block;
mod build;
mod kernels;
mod query;
mod select;
mod simd;
mod terms;
#[cfg(test)]
mod tests;
mod together;

use best::LaterFirst;

pub use best::{WindowHit, Windows};
pub use query::SearchScratch;
pub use simd::Level;
pub use together::{Search, search_together};

use block::Block;
use query::Request;
use repoformer_store::progress::Work;
use terms::{Terms, TokenNumbers};

use crate::repository::parallel;
use crate::retrieve::vector::{TokenSet, TokenSets};

/// Windows in a block, at most. Smaller blocks stay in a nearer cache, larger ones spread the search for a query's rows
/// and lists over more windows, and more of a row lies together: of some 150 bytes a window, twice as many are a little
/// faster for one query and slower for many, half as many slower for one and no faster for many.
const BLOCK: usize = 1 << 15;

/// So many queries pass over a block that together they read most of it.
const MANY: usize = 16;

/// Queries in a part, at least, where there is more than one thread: each part reads the whole index.
const PART: usize = 64;

/// An index over token sets: for each token the windows that hold it, as bits or as a list.
#[derive(Debug)]
pub struct TokenSetIndex {
    terms: Terms,
    blocks: Vec<Block>,
    windows: usize,
    level: Level,
}

impl TokenSetIndex {
    /// Indexes token sets; window i is set i.
    pub fn new(sets: &TokenSets) -> Self {
        Self::in_blocks(sets, BLOCK)
    }

    /// With blocks of that many windows at most, 65,536 or fewer.
    fn in_blocks(sets: &TokenSets, block: usize) -> Self {
        let (terms, numbered, census) = terms::census(sets);
        let first = sets.offsets();
        let ranges = build::cut(first, block);
        let blocks = match &numbered {
            TokenNumbers::Narrow(tokens) => build::all(tokens, first, &census, ranges),
            TokenNumbers::Wide(tokens) => build::all(tokens, first, &census, ranges),
        };
        Self { terms, blocks, windows: sets.len(), level: Level::best() }
    }

    /// With the instructions of a level instead of the fastest: to compare them.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Number of tokens of a window.
    ///
    /// # Panics
    /// Where there is no window of this number.
    pub(super) fn size_of(&self, window: u32) -> u32 {
        let block = self.blocks.partition_point(|block| block.end() <= window);
        self.blocks[block].size_of(window)
    }

    /// Bytes that the index holds on the heap.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(Block::bytes).sum::<usize>();
        self.terms.bytes() + size_of_val(&self.blocks[..]) + blocks
    }

    /// The `k` windows most similar to a set of tokens among those that `allowed` lets through, best first:
    /// by Jaccard similarity, then the later window. Windows without a common token count, with similarity 0.
    ///
    /// ```
    /// use repoformer_core::retrieve::{TokenSetIndex, SearchScratch};
    /// use repoformer_core::retrieve::vector::{TokenSet, TokenSets};
    /// let mut sets = TokenSets::default();
    /// for set in [&[1, 2, 3][..], &[2, 3], &[2, 3, 4]] {
    ///     sets.push(set.iter().copied());
    /// }
    /// let query = TokenSet::Narrow(&[2, 3]);
    /// let hits = TokenSetIndex::new(&sets).search(query, 2, |_| true, &mut SearchScratch::default());
    /// assert_eq!(hits.iter().map(|hit| hit.window).collect::<Vec<_>>(), [1, 2]);
    /// assert_eq!((hits[1].overlap, hits[1].union), (2, 3));
    /// ```
    pub fn search(
        &self,
        query: TokenSet<'_>,
        k: usize,
        allowed: impl Fn(u32) -> bool,
        scratch: &mut SearchScratch,
    ) -> Vec<WindowHit> {
        scratch.terms.clear();
        let mut request = Request::new(&self.terms, query, k.min(self.windows), scratch);
        let windows = LaterFirst(&allowed);
        for block in self.blocks.iter().rev() {
            request.search(block, self.level, scratch, &windows);
        }
        request.finish(&self.blocks, allowed)
    }

    /// [`search`](Self::search) for many queries, where `allowed` is also told which of them asks: each query's hits,
    /// in order, the same for any number of threads.
    pub fn search_all(
        &self,
        queries: &TokenSets,
        k: usize,
        allowed: impl Fn(usize, u32) -> bool + Sync,
    ) -> Vec<Vec<WindowHit>> {
        // A few parts a thread, because queries differ in cost, but as many queries as possible over each block.
        let threads = rayon::current_num_threads();
        let share = queries.len().div_ceil(threads).max(1);
        let length = if threads == 1 { share } else { share.div_ceil(4).max(PART.min(share)) };
        let parts = queries.len().div_ceil(length);
        let work = Work::new("search", "blocks of windows", parts * self.blocks.len());
        let part = |start: usize| self.search_part(queries, start, length, k, &allowed, &work);
        parallel::map((0..queries.len()).step_by(length), part).into_iter().flatten().collect()
    }

    /// One thread's share: blocks outermost.
    fn search_part(
        &self,
        queries: &TokenSets,
        start: usize,
        length: usize,
        k: usize,
        allowed: &impl Fn(usize, u32) -> bool,
        work: &Work,
    ) -> Vec<Vec<WindowHit>> {
        let mut scratch = SearchScratch::default();
        let k = k.min(self.windows);
        let range = start..queries.len().min(start + length);
        let mut requests: Vec<(usize, Request)> = range
            .map(|i| (i, Request::new(&self.terms, queries.get(i), k, &mut scratch)))
            .collect();
        let requests_are_many = requests.len() >= MANY;
        for block in self.blocks.iter().rev() {
            if requests_are_many {
                block.warm();
            }
            for (i, request) in &mut requests {
                let windows = LaterFirst(|window| allowed(*i, window));
                request.search(block, self.level, &mut scratch, &windows);
            }
            work.advance(1);
        }
        let finish = |(i, request): (usize, Request)| {
            request.finish(&self.blocks, |window| allowed(i, window))
        };
        requests.into_iter().map(finish).collect()
    }
}
