//! The distinct lines of all texts.

use rustc_hash::FxHashMap;

/// As many bytes of lines as a block holds, but for a line longer than that.
const BLOCK: usize = 128 * 1024;

/// Lines by their numbers, in the order in which they were first seen: what is seen together stands together.
#[derive(Debug, Default)]
pub(super) struct Pool<'a> {
    numbers: FxHashMap<&'a str, u32>,
    /// The number of each block's first line.
    pub(super) firsts: Vec<u32>,
    /// Lines with `\n` between them.
    pub(super) blocks: Vec<Vec<u8>>,
}

impl<'a> Pool<'a> {
    /// The numbers of a text's lines: the pieces between its newlines, at least one.
    pub(super) fn lines(&mut self, text: &'a str) -> Vec<u32> {
        text.split('\n').map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: &'a str) -> u32 {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(line).or_insert(next);
        if number == next {
            self.append(line, number);
        }
        number
    }

    fn append(&mut self, line: &str, number: u32) {
        match self.blocks.last_mut() {
            Some(block) if block.len() + line.len() < BLOCK => {
                block.push(b'\n');
                block.extend_from_slice(line.as_bytes());
            }
            _ => {
                self.firsts.push(number);
                self.blocks.push(line.as_bytes().to_vec());
            }
        }
    }
}
