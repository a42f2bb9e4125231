//! Exact top-k Jaccard search over token sets, bit-sliced.
//!
//! 1. The windows are cut into blocks that stay in cache while all queries pass over them, one block after another.
//! 2. Within a block, the windows are sorted by set size and assigned to chunks of 512 lanes.
//! 3. A term that is frequent in the block has a row, with one bit per lane. A rarer term has a list of positions.
//! 4. The lists of a query increment one byte per window. The query's rows are added to these counts, rarest first, eight at
//!    a time by carry-save adders, with 512 windows per instruction. Each row is added in all chunks, because memory is fast
//!    in order (`kernels`).
//! 5. The k-th best hit so far and a chunk's smallest set determine the overlap that a window of the chunk needs, exactly, by
//!    cross-multiplication. A chunk is dropped once its fullest lane plus the remaining rows cannot reach this overlap.
//! 6. The few lanes that reach it become hits, which are compared as fractions; only these are checked for whether they are
//!    allowed. Until there is a k-th best hit, a chunk's highest counts come first, so that there soon is one.
//! 7. Blocks are processed from the last to the first. Because the later of equally similar windows wins, ties also end
//!    early.
//! 8. Several threads search for a single query, block by block (`together`); many queries pass over a block together.
//! 9. If hits are still missing in the end, windows without a common token are added, the later first.

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

/// Maximum number of windows in a block. Smaller blocks stay in a nearer cache. Larger ones spread the search for a query's
/// rows and lists over more windows, and store more of a row together. With about 150 bytes per window, doubling the size is a
/// little faster for one query and slower for many; halving it is slower for one and no faster for many.
const BLOCK: usize = 1 << 15;

/// Minimum number of queries for which a block is first read in order, because together they read most of it.
const MANY: usize = 16;

/// Minimum number of queries in a part if there is more than one thread, because each part reads the whole index.
const PART: usize = 64;

/// Index over token sets: for each token, the windows that contain it, as bits or as a list.
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

    /// Builds an index with at most this many windows per block; the number must be at most 65,536.
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

    /// Uses the instructions of a level instead of the fastest ones, for comparisons.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Returns the number of tokens of a window.
    ///
    /// # Panics
    /// The window does not exist.
    pub(super) fn size_of(&self, window: u32) -> u32 {
        let block = self.blocks.partition_point(|block| block.end() <= window);
        self.blocks[block].size_of(window)
    }

    /// Returns the bytes that the index holds on the heap.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(Block::bytes).sum::<usize>();
        self.terms.bytes() + size_of_val(&self.blocks[..]) + blocks
    }

    /// Returns the `k` windows most similar to a set of tokens, among the windows for which `allowed` returns true, best first:
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

    /// Searches like [`search`](Self::search) for many queries; `allowed` also receives the number of the query. Returns each
    /// query's hits, in order, which are the same for any number of threads.
    pub fn search_all(
        &self,
        queries: &TokenSets,
        k: usize,
        allowed: impl Fn(usize, u32) -> bool + Sync,
    ) -> Vec<Vec<WindowHit>> {
        // Use a few parts per thread, because queries differ in cost, but as many queries as possible per block.
        let threads = rayon::current_num_threads();
        let share = queries.len().div_ceil(threads).max(1);
        let length = if threads == 1 { share } else { share.div_ceil(4).max(PART.min(share)) };
        let parts = queries.len().div_ceil(length);
        let work = Work::new("search", "blocks of windows", parts * self.blocks.len());
        let part = |start: usize| self.search_part(queries, start, length, k, &allowed, &work);
        parallel::map((0..queries.len()).step_by(length), part).into_iter().flatten().collect()
    }

    /// Searches for one thread's part of the queries, with blocks in the outer loop.
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
