//! Some thousand windows in a row and what a query needs to know of them.

use super::kernels::{LANES, Line, lane_of_bit};

/// Terms from this on are not in a block's table but in a sorted list: below it, numbers of entries fit sixteen bits.
pub(super) const TABLE: usize = (1 << 16) - 1;

/// An index of windows in a row.
#[derive(Debug)]
pub(super) struct Block {
    /// The first window.
    pub(super) first: u32,
    /// Position → window, counted from the first. The positions are in order of set size, then of window.
    pub(super) order: Vec<u16>,
    /// Position → size of the set.
    pub(super) sizes: Vec<u32>,
    /// The smallest and the largest set of each chunk.
    pub(super) bounds: Vec<(u32, u32)>,
    /// For each term below [`TABLE`] 0, or the number of its entry plus one: the rows come first, then the lists.
    pub(super) table: Vec<u16>,
    /// The block's terms from [`TABLE`] on, ascending; they have the last lists.
    pub(super) beyond: Vec<u32>,
    /// `starts[l]..starts[l + 1]` of `postings` is list l.
    pub(super) starts: Vec<u32>,
    /// The positions of each rarer term.
    pub(super) postings: Vec<u16>,
    /// Row by row, so that a query reads a few kilobytes in a row: a line a chunk. The last row is empty.
    pub(super) lines: Vec<Line>,
}

/// Where a term's windows are.
#[derive(Debug, Clone, Copy)]
pub(super) enum TermEntry {
    /// In this row of every chunk.
    Row(u32),
    /// In this list.
    List(u32),
}

impl Block {
    /// A term's row or list, if a window of the block has it.
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

    /// The positions of a list.
    #[inline]
    pub(super) fn list(&self, list: u32) -> &[u16] {
        let list = list as usize;
        &self.postings[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// The number of the row that no window has.
    pub(super) fn empty_row(&self) -> u32 {
        (self.lines.len() / self.chunks()) as u32 - 1
    }

    /// Number of chunks; the last may have lanes without a window.
    pub(super) fn chunks(&self) -> usize {
        self.bounds.len()
    }

    /// The lines of a row.
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

    /// Size of a window's set; windows are looked through for it.
    pub(super) fn size_of(&self, window: u32) -> u32 {
        let place = (window - self.first) as u16;
        let position = self.order.iter().position(|one| *one == place);
        self.sizes[position.unwrap_or_default()]
    }

    /// The window after the last.
    pub(super) fn end(&self) -> u32 {
        self.first + self.order.len() as u32
    }

    /// Reads everything in order, which brings it into the cache faster than the queries' scattered reads would.
    #[inline]
    pub(super) fn warm(&self) {
        let lines = self.lines.iter().fold(0, |all, line| all ^ line.0[0]);
        let postings = self.postings.iter().step_by(32).fold(0, |all, posting| all ^ posting);
        let table = self.table.iter().step_by(32).fold(0, |all, entry| all ^ entry);
        std::hint::black_box((lines, postings, table));
    }

    /// Bytes held on the heap.
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
