//! Lines of all texts, most of them stored once.

use foldhash::HashMap;

/// Greatest size of a block in bytes, unless a single line is longer.
const BLOCK: usize = 128 * 1024;

/// Greatest length in bytes of lines that are stored again instead of interrupting a run. Blank lines and single brackets are
/// in every file, and the record of a text that follows the pool line by line compresses to almost nothing.
const SHORT: usize = 32;

/// Numbered lines, in the order of first occurrence.
#[derive(Debug, Default)]
pub(super) struct Pool<'a> {
    lines: Vec<&'a str>,
    /// Number of the first occurrence of a line.
    places: HashMap<&'a str, u32>,
    /// Number of each block's first line.
    pub(super) firsts: Vec<u32>,
    /// Lines with `\n` between them.
    pub(super) blocks: Vec<Vec<u8>>,
}

impl<'a> Pool<'a> {
    /// Returns the numbers of a text's lines: the pieces between its newlines, at least one.
    pub(super) fn lines(&mut self, text: &'a str) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        for line in text.split('\n') {
            let next = numbers.last().map(|number| *number as usize + 1);
            numbers.push(self.line(line, next));
        }
        numbers
    }

    /// Returns the number of a line: `next` if that is the same line.
    fn line(&mut self, line: &'a str, next: Option<usize>) -> u32 {
        if let Some(next) = next.filter(|&next| self.lines.get(next) == Some(&line)) {
            return next as u32;
        }
        let end = self.lines.len();
        let again = next == Some(end) && line.len() <= SHORT;
        match self.places.get(line) {
            Some(&place) if !again => place,
            _ => {
                self.places.entry(line).or_insert(end as u32);
                self.append(line);
                end as u32
            }
        }
    }

    /// Returns the blocks without the look-up of lines.
    pub(super) fn into_blocks(self) -> Vec<Vec<u8>> {
        self.blocks
    }

    fn append(&mut self, line: &'a str) {
        match self.blocks.last_mut() {
            Some(block) if block.len() + line.len() < BLOCK => {
                block.push(b'\n');
                block.extend_from_slice(line.as_bytes());
            }
            _ => {
                self.firsts.push(self.lines.len() as u32);
                self.blocks.push(line.as_bytes().to_vec());
            }
        }
        self.lines.push(line);
    }
}
