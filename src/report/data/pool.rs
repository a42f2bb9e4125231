//! The lines of all texts, nearly each kept once.

use rustc_hash::FxHashMap;

/// As many bytes of lines as a block holds, but for a line longer than that.
const BLOCK: usize = 128 * 1024;

/// Lines up to this many bytes are kept again rather than break a run: a blank line or a lone bracket stands in every
/// file, and where text follows the pool line by line its record compresses to almost nothing.
const SHORT: usize = 32;

/// Lines by their numbers, in the order in which they were first seen: what is seen together stands together.
#[derive(Debug, Default)]
pub(super) struct Pool<'a> {
    lines: Vec<&'a str>,
    /// Where a line stands first.
    places: FxHashMap<&'a str, u32>,
    /// The number of each block's first line.
    pub(super) firsts: Vec<u32>,
    /// Lines with `\n` between them.
    pub(super) blocks: Vec<Vec<u8>>,
}

impl<'a> Pool<'a> {
    /// The numbers of a text's lines: the pieces between its newlines, at least one.
    pub(super) fn lines(&mut self, text: &'a str) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        for line in text.split('\n') {
            let next = numbers.last().map(|number| *number as usize + 1);
            numbers.push(self.line(line, next));
        }
        numbers
    }

    /// The line's number: the `next` one where that is the same line.
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
