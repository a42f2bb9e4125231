//! A few thousand consecutive windows, with the data that a query needs.

use super::kernels::{LANES, Line, lane_of_bit};

/// First term that is in a sorted list instead of a block's table: below it, numbers of entries fit in sixteen bits.
pub(super) const TABLE: usize = (1 << 16) - 1;

/// Index of consecutive windows.
#[derive(Debug)]
pub(super) struct Block {
    /// First window.
    pub(super) first: u32,
    /// Position → window, counted from the first. The positions are ordered by set size, then by window.
    pub(super) order: Vec<u16>,
    /// Position → size of the set.
    pub(super) sizes: Vec<u32>,
    /// Sizes of the smallest and the largest set in each chunk.
    pub(super) bounds: Vec<(u32, u32)>,
    /// For each term below [`TABLE`], 0 or the number of its entry plus one: entries of rows come first, then entries of lists.
    pub(super) table: Vec<u16>,
    /// The block's terms from [`TABLE`] on, ascending; the last lists belong to them.
    pub(super) beyond: Vec<u32>,
    /// List l is `starts[l]..starts[l + 1]` of `postings`.
    pub(super) starts: Vec<u32>,
    /// Positions of each rarer term.
    pub(super) postings: Vec<u16>,
    /// Lines, row by row, with one line per chunk, so that a query reads a few kilobytes sequentially. The last row is empty.
    pub(super) lines: Vec<Line>,
}

/// Storage of a term's windows.
#[derive(Debug, Clone, Copy)]
pub(super) enum TermEntry {
    /// In this row of every chunk.
    Row(u32),
    /// In this list.
    List(u32),
}

impl Block {
    /// Returns a term's row or list, if a window of the block has the term.
    #[inline]
    pub(super) fn find(&self, term: u32) -> Option<TermEntry> {
        let rows = self.empty_row();
        if term as usize >= TABLE {
            let place = self.beyond.binary_search(&term).ok()?;
            let before = self.starts.len() - 1 - self.beyond.len();
            return Some(TermEntry::List((before + place) as u32));
        }
        match u32::from(*self.table.get(term as usize)?) {
            0 => None,
            next if next <= rows => Some(TermEntry::Row(next - 1)),
            next => Some(TermEntry::List(next - 1 - rows)),
        }
    }

    /// Returns the positions in a list.
    #[inline]
    pub(super) fn list(&self, list: u32) -> &[u16] {
        let list = list as usize;
        &self.postings[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// Returns the number of the row that no window has.
    pub(super) fn empty_row(&self) -> u32 {
        (self.lines.len() / self.chunks()) as u32 - 1
    }

    /// Returns the number of chunks; the last may have lanes without a window.
    pub(super) fn chunks(&self) -> usize {
        self.bounds.len()
    }

    /// Returns the lines of a row.
    #[inline]
    pub(super) fn row(&self, row: u32) -> &[Line] {
        let chunks = self.chunks();
        &self.lines[row as usize * chunks..][..chunks]
    }

    /// Calls `visit` with the positions that have a bit in a row.
    pub(super) fn each_position(&self, row: u32, mut visit: impl FnMut(usize)) {
        for (chunk, line) in self.row(row).iter().enumerate() {
            for (word, mut bits) in line.0.into_iter().enumerate() {
                while bits != 0 {
                    visit(chunk * LANES + lane_of_bit(word, bits.trailing_zeros() as usize));
                    bits &= bits - 1;
                }
            }
        }
    }

    /// Returns the size of a window's set, by searching all windows.
    pub(super) fn size_of(&self, window: u32) -> u32 {
        let place = (window - self.first) as u16;
        let position = self.order.iter().position(|one| *one == place);
        self.sizes[position.unwrap_or_default()]
    }

    /// Returns the window after the last one.
    pub(super) fn end(&self) -> u32 {
        self.first + self.order.len() as u32
    }

    /// Reads everything in order, which brings it into the cache faster than the scattered reads of queries.
    #[inline]
    pub(super) fn warm(&self) {
        let lines = self.lines.iter().fold(0, |all, line| all ^ line.0[0]);
        let postings = self.postings.iter().step_by(32).fold(0, |all, posting| all ^ posting);
        let table = self.table.iter().step_by(32).fold(0, |all, entry| all ^ entry);
        std::hint::black_box((lines, postings, table));
    }

    /// Returns the bytes held on the heap.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.order[..])
            + size_of_val(&self.sizes[..])
            + size_of_val(&self.bounds[..])
            + size_of_val(&self.table[..])
            + size_of_val(&self.beyond[..])
            + size_of_val(&self.starts[..])
            + size_of_val(&self.postings[..])
            + size_of_val(&self.lines[..])
    }
}
