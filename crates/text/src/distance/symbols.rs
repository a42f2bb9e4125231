//! Symbols of two texts for the bit-parallel distances: common ends are removed, and characters are looked up or numbered.

/// Number of ASCII symbols.
pub(super) const ASCII: usize = 128;
/// Number of rows of the matrix in one word.
pub(super) const ROWS: usize = u64::BITS as usize;

/// Distance computed with bit vectors over the rows of a pattern.
pub(super) trait BitParallel {
    /// Returns the distance of a pattern of `rows` characters, 1 to 64, to a text of `length` characters. `text` yields, for
    /// each character of the text, the bits of the matching rows.
    fn one_word(rows: usize, length: usize, text: impl Iterator<Item = u64>) -> usize;

    /// Returns the distance of a pattern of any length; symbols are below `symbols`.
    fn many_words<S: Copy + Into<u32>>(pattern: &[S], text: &[S], symbols: usize) -> usize;
}

/// Returns the distance of two texts; the shorter text is the pattern.
pub(super) fn distance<D: BitParallel>(a: &str, b: &str) -> usize {
    let (a, b) = without_common_ends(a, b);
    if a.is_ascii() && b.is_ascii() {
        let (pattern, text) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        return match pattern.len() {
            0 => text.len(),
            rows @ 1..=ROWS => {
                let mut matches = [0; ASCII];
                for (row, &c) in pattern.iter().enumerate() {
                    matches[usize::from(c) % ASCII] |= 1 << row;
                }
                let matches = text.iter().map(|&c| matches[usize::from(c) % ASCII]);
                D::one_word(rows, text.len(), matches)
            }
            _ => D::many_words(pattern, text, ASCII),
        };
    }
    let (mut pattern, mut text) = ((a, a.chars().count()), (b, b.chars().count()));
    if pattern.1 > text.1 {
        std::mem::swap(&mut pattern, &mut text);
    }
    let ((pattern, rows), (text, length)) = (pattern, text);
    match rows {
        0 => length,
        1..=ROWS => {
            // On the stack; at most half of the slots are used.
            let mut others = [('\0', 0); 2 * ROWS];
            let mut matches = Table { ascii: [0; ASCII], others: &mut others };
            for (row, c) in pattern.chars().enumerate() {
                *matches.at(c) |= 1 << row;
            }
            D::one_word(rows, length, text.chars().map(|c| matches.get(c)))
        }
        _ => {
            let (pattern, text, symbols) = number_symbols(pattern, text);
            D::many_words(&pattern, &text, symbols)
        }
    }
}

/// Removes the common beginning and end of two texts, which cost nothing in an optimal alignment.
fn without_common_ends<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    // Both texts agree up to the cut, so a boundary between characters in one is a boundary in the other.
    let mut start = common_prefix(a.as_bytes(), b.as_bytes());
    while !a.is_char_boundary(start) || !b.is_char_boundary(start) {
        start -= 1;
    }
    let (a, b) = (&a[start..], &b[start..]);
    let mut end = common_suffix(a.as_bytes(), b.as_bytes());
    while !a.is_char_boundary(a.len() - end) || !b.is_char_boundary(b.len() - end) {
        end -= 1;
    }
    (&a[..a.len() - end], &b[..b.len() - end])
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Eight bytes at a time, then the rest one by one.
    let (least, mut same) = (a.len().min(b.len()), 0);
    while same + 8 <= least && a[same..same + 8] == b[same..same + 8] {
        same += 8;
    }
    while same < least && a[same] == b[same] {
        same += 1;
    }
    same
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let (least, mut same) = (a.len().min(b.len()), 0);
    let (a, b) = (&a[a.len() - least..], &b[b.len() - least..]);
    while same + 8 <= least
        && a[least - same - 8..least - same] == b[least - same - 8..least - same]
    {
        same += 8;
    }
    while same < least && a[least - same - 1] == b[least - same - 1] {
        same += 1;
    }
    same
}

/// Replaces characters by numbers in both texts: 1 and up for the pattern's characters, 0 for all others. Also returns the
/// count of numbers, so that tables are as small as the pattern's alphabet in any script.
pub(super) fn number_symbols(pattern: &str, text: &str) -> (Vec<u32>, Vec<u32>, usize) {
    let mut others = vec![('\0', 0); (2 * pattern.chars().count()).next_power_of_two()];
    let mut numbers = Table { ascii: [0; ASCII], others: &mut others };
    let mut count = 0;
    let pattern = pattern.chars().map(|c| {
        let number = numbers.at(c);
        if *number == 0 {
            count += 1;
            *number = count;
        }
        *number as u32
    });
    let pattern: Vec<u32> = pattern.collect();
    let text = text.chars().map(|c| numbers.get(c) as u32).collect();
    (pattern, text, count as usize + 1)
}

/// Values by character, 0 by default.
struct Table<'a> {
    ascii: [u64; ASCII],
    /// Open addressing table; its length is a power of two, and it is never more than half full.
    others: &'a mut [(char, u64)],
}

impl Table<'_> {
    /// Returns the slot of a non-ASCII character.
    fn slot(&self, c: char) -> usize {
        let mask = self.others.len() - 1;
        // Fibonacci hashing spreads neighbours in a script far apart.
        let mut slot = (u32::from(c).wrapping_mul(0x9e37_79b9) >> 7) as usize & mask;
        while self.others[slot].1 != 0 && self.others[slot].0 != c {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn get(&self, c: char) -> u64 {
        match self.ascii.get(c as usize) {
            Some(&value) => value,
            None => self.others[self.slot(c)].1,
        }
    }

    /// Returns a reference to the value of a character, which the caller must set to something other than 0.
    fn at(&mut self, c: char) -> &mut u64 {
        if c.is_ascii() {
            return &mut self.ascii[c as usize];
        }
        let slot = self.slot(c);
        self.others[slot].0 = c;
        &mut self.others[slot].1
    }
}
