//! The library's types for searching, `TokenSets` and `TokenSetIndex`, as the benches use them. Only this module depends on how
//! they are called.

use repoformer_core::retrieve::index::WindowHit;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Level, SearchScratch, TokenSetIndex};

/// Number of windows kept per query.
pub const TOP_K: usize = 20;

/// Token sets in one buffer, as the twins search them and as they are exported for other languages.
#[derive(Default)]
pub struct Sets {
    /// `first[i]..first[i + 1]` is set i.
    pub first: Vec<u32>,
    pub tokens: Vec<u16>,
}

impl Sets {
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    #[inline]
    pub fn get(&self, index: usize) -> &[u16] {
        &self.tokens[self.first[index] as usize..self.first[index + 1] as usize]
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u16]> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub fn of(sets: &TokenSets) -> Self {
        let mut flat = Self { first: vec![0], tokens: Vec::with_capacity(sets.token_count()) };
        for set in sets.iter() {
            flat.tokens.extend(set.iter().map(|token| token as u16));
            flat.first.push(flat.tokens.len() as u32);
        }
        flat
    }

    /// Returns the first `count` sets as the library's type.
    pub fn prefix(&self, count: usize) -> TokenSets {
        let mut sets = TokenSets::default();
        for set in self.iter().take(count) {
            sets.push(set.iter().copied().map(u32::from));
        }
        sets
    }
}

/// The library's index, and the queries to search with.
pub struct Searcher<'a> {
    index: TokenSetIndex,
    queries: &'a TokenSets,
    scratch: SearchScratch,
}

impl<'a> Searcher<'a> {
    pub fn new(windows: &TokenSets, queries: &'a TokenSets) -> Self {
        Self { index: TokenSetIndex::new(windows), queries, scratch: SearchScratch::default() }
    }

    /// Uses the instructions of one level instead of the fastest.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.index = self.index.with_level(level);
        self
    }

    /// Returns the size of the index in bytes.
    pub fn bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Searches with one query.
    pub fn one(&mut self, query: usize) -> Vec<WindowHit> {
        let Self { index, queries, scratch } = self;
        index.search(queries.get(query), TOP_K, |_| true, scratch)
    }

    /// Searches with all queries at once.
    pub fn batch(&mut self) -> Vec<Vec<WindowHit>> {
        self.index.search_all(self.queries, TOP_K, |_, _| true)
    }
}
