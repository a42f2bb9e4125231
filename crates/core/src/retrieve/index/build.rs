//! Builds blocks from token sets.

use std::ops::Range;

use rayon::prelude::*;

use super::block::{Block, TABLE};
use super::kernels::{LANES, Line, bit_of_lane};
use super::terms::Census;

/// A term that occurs in at least one of this many lanes of a block has a row; a rarer term has a list. At this frequency, a
/// list's increments start to cost more than a row's lines.
const RARE: usize = 64;

/// Maximum number of tokens in a block, unless one window has more: offsets into the lists have 32 bits.
const TOKENS: usize = 1 << 30;

/// Cuts windows into blocks of about equal size, with at most `block` windows each. `first` has the offsets of their sets.
pub(super) fn cut(first: &[u32], block: usize) -> Vec<Range<usize>> {
    let windows = first.len() - 1;
    let blocks = windows.div_ceil(block).max(1);
    let length = windows.div_ceil(blocks).next_multiple_of(LANES).min(block);
    let mut ranges = Vec::with_capacity(blocks);
    let mut start = 0;
    while start < windows {
        let mut end = windows.min(start + length);
        while end > start + 1 && (first[end] - first[start]) as usize > TOKENS {
            end = start + (end - start) / 2;
        }
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Builds the blocks of these windows, in parallel.
pub(super) fn all<N: Copy + Into<u32> + Sync>(
    tokens: &[N],
    first: &[u32],
    census: &Census,
    windows: Vec<Range<usize>>,
) -> Vec<Block> {
    let builder = || Builder::new(tokens, first, census);
    windows.into_par_iter().map_init(builder, Builder::build).collect()
}

/// Builder of blocks, one after another, with the same buffers.
struct Builder<'a, N> {
    tokens: &'a [N],
    first: &'a [u32],
    number_of_term: &'a [u32],
    /// For each number, how many windows of the block have it; later the position of its next posting.
    next: Vec<u32>,
    /// All postings of the block; the ones that become lists come first.
    postings: Vec<u16>,
    /// Size and window, for sorting.
    keys: Vec<u64>,
    /// Number and count of each row's term.
    rows: Vec<(u32, u32)>,
    /// Number of each list's term, and the term.
    lists: Vec<(u32, u32)>,
}

impl<'a, N: Copy + Into<u32>> Builder<'a, N> {
    fn new(tokens: &'a [N], first: &'a [u32], census: &'a Census) -> Self {
        Self {
            tokens,
            first,
            number_of_term: &census.number_of_term,
            next: vec![0; census.numbers],
            postings: Vec::new(),
            keys: Vec::new(),
            rows: Vec::new(),
            lists: Vec::new(),
        }
    }

    /// Builds the block of some windows, at least one.
    fn build(&mut self, windows: Range<usize>) -> Block {
        self.sort(windows.clone());
        let (from, to) = (self.first[windows.start], self.first[windows.end]);
        for token in &self.tokens[from as usize..to as usize] {
            self.next[(*token).into() as usize] += 1;
        }
        let size = |key: &u64| (key >> 32) as u32;
        let bounds = self.keys.chunks(LANES).map(|chunk| {
            let largest = chunk.last().map_or(0, size);
            (chunk.first().map_or(0, size), largest)
        });
        let mut block = Block {
            first: windows.start as u32,
            order: self.keys.iter().map(|key| *key as u16).collect(),
            sizes: self.keys.iter().map(size).collect(),
            bounds: bounds.collect(),
            table: Vec::new(),
            beyond: Vec::new(),
            starts: Vec::new(),
            postings: Vec::new(),
            lines: Vec::new(),
        };
        let chunks = block.chunks();
        self.describe(&mut block, (chunks * LANES / RARE) as u32);
        self.post(&block);
        let listed = block.starts.last().map_or(0, |end| *end as usize);
        block.postings = self.postings[..listed].to_vec();
        block.lines = vec![Line::default(); chunks * (self.rows.len() + 1)];
        self.fill_rows(&mut block, listed);
        self.clear();
        block
    }

    /// Sorts the windows by size; equal ones keep their order.
    fn sort(&mut self, windows: Range<usize>) {
        self.keys.clear();
        let sizes = self.first[windows.start..=windows.end].windows(2);
        let keys = (0..).zip(sizes.map(|ends| u64::from(ends[1] - ends[0])));
        self.keys.extend(keys.map(|(window, size): (u64, _)| size << 32 | window));
        self.keys.sort_unstable();
    }

    /// Fills in the table and the starts of the lists; the counts become the positions at which each term's postings are
    /// written.
    fn describe(&mut self, block: &mut Block, frequent: u32) {
        let terms = self.number_of_term.len().min(TABLE);
        block.table = vec![0; terms];
        let mut end = 0;
        block.starts.push(0);
        for (term, &number) in self.number_of_term.iter().enumerate() {
            let count = self.next[number as usize];
            if count >= frequent && term < TABLE {
                self.rows.push((number, count));
                block.table[term] = self.rows.len() as u16;
            } else if count > 0 {
                self.lists.push((number, term as u32));
                self.next[number as usize] = end;
                end += count;
                block.starts.push(end);
            }
        }
        for (number, count) in &self.rows {
            self.next[*number as usize] = end;
            end += count;
        }
        for (entry, (_, term)) in (self.rows.len() + 1..).zip(&self.lists) {
            match block.table.get_mut(*term as usize) {
                Some(place) => *place = entry as u16,
                None => block.beyond.push(*term),
            }
        }
        block.starts.shrink_to_fit();
        self.postings.resize(end as usize, 0);
    }

    /// Writes each term's positions in ascending order.
    fn post(&mut self, block: &Block) {
        for position in 0..block.order.len() {
            let window = block.first as usize + usize::from(block.order[position]);
            let set = self.first[window] as usize..self.first[window + 1] as usize;
            for token in &self.tokens[set] {
                let next = &mut self.next[(*token).into() as usize];
                self.postings[*next as usize] = position as u16;
                *next += 1;
            }
        }
    }

    fn fill_rows(&self, block: &mut Block, listed: usize) {
        let mut postings = &self.postings[listed..];
        let chunks = block.chunks();
        for (row, (_, count)) in self.rows.iter().enumerate() {
            let (positions, rest) = postings.split_at(*count as usize);
            postings = rest;
            for position in positions {
                let (chunk, lane) =
                    (usize::from(*position) / LANES, usize::from(*position) % LANES);
                let (word, bit) = bit_of_lane(lane);
                block.lines[row * chunks + chunk].0[word] |= 1 << bit;
            }
        }
    }

    fn clear(&mut self) {
        let rows = self.rows.drain(..).map(|(number, _)| number);
        let lists = self.lists.drain(..).map(|(number, _)| number);
        for number in rows.chain(lists) {
            self.next[number as usize] = 0;
        }
    }
}
