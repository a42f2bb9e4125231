//! `fuzz.ratio` as computed if `python-Levenshtein` is not installed: Python's `difflib.SequenceMatcher`.
//!
//! The ratio is `2·M / (|a| + |b|)`. M is the total length of the matching blocks, which are found by taking the longest common
//! run of characters, then the longest runs to its left and right, and so on (Ratcliff and Obershelp's pattern matching). If
//! the second text has 200 characters or more, a character that makes up over 1 % of it starts no block ("autojunk"). The ratio
//! of two similar function bodies can therefore be near 0.

use std::ops::Range;

use foldhash::HashMap;

/// Minimum length of the second text at which its frequent characters start no block.
const AUTOJUNK_FROM: usize = 200;

/// Returns the ratio in whole percent; halves are rounded to even.
///
/// ```
/// use repoformer_core::metrics::difflib::fuzz_ratio;
/// // "bcd" is common: 2 · 3 of 8 characters.
/// assert_eq!(fuzz_ratio("abcd", "bcde"), 75);
/// assert_eq!(fuzz_ratio("", ""), 100);
/// ```
pub fn fuzz_ratio(a: &str, b: &str) -> u8 {
    if a == b {
        return 100;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let ratio = 2.0 * matching(&a, &b) as f64 / (a.len() + b.len()) as f64;
    (100.0 * ratio).round_ties_even() as u8
}

/// Returns the number of characters in matching blocks.
fn matching(a: &[char], b: &[char]) -> usize {
    Blocks::new(a, b).matching()
}

/// Search for the matching blocks of two texts.
struct Blocks<'a> {
    a: &'a [char],
    b: &'a [char],
    /// Positions in `b` of the characters that start blocks.
    places: HashMap<char, Vec<usize>>,
    /// Lengths of the runs that end at each position of `b`, for the current row and the one before it. A row is a position of
    /// `a`. Each length is stored with the number of its row, because it is invalid in later rows.
    lengths: [Vec<(usize, usize)>; 2],
    /// Number of rows read.
    rows: usize,
}

impl<'a> Blocks<'a> {
    fn new(a: &'a [char], b: &'a [char]) -> Self {
        let lengths = [vec![(0, 0); b.len() + 1], vec![(0, 0); b.len() + 1]];
        Self { a, b, places: places(b), lengths, rows: 0 }
    }

    /// Returns the number of characters in matching blocks.
    ///
    /// All blocks of one size come from one pass over the rows: the next block is found after the previous one, and the parts
    /// between them contain only smaller blocks.
    fn matching(&mut self) -> usize {
        let (mut total, mut work) = (0, vec![(0..self.a.len(), 0..self.b.len(), usize::MAX)]);
        while let Some((in_a, in_b, most)) = work.pop() {
            let (run, [start, end]) = self.longest(in_a.clone(), in_b.clone(), most);
            if start == end {
                continue;
            }
            total += end.0 - start.0;
            work.push((in_a.start..start.0, in_b.start..start.1, run.saturating_sub(1)));
            work.push((end.0..in_a.end, end.1..in_b.end, run));
        }
        total
    }

    /// Finds the longest block within two ranges; of equally long blocks, the one that comes first in `a`, then in `b`. No run
    /// of characters that start blocks may be longer than `most` there. Returns the length of the block's run, and its start
    /// and end in both texts.
    fn longest(
        &mut self,
        in_a: Range<usize>,
        in_b: Range<usize>,
        most: usize,
    ) -> (usize, [(usize, usize); 2]) {
        let (a, b) = (self.a, self.b);
        let (mut at_a, mut at_b, mut run) = (in_a.start, in_b.start, 0);
        // Skip a row number, so that no row of an earlier call counts as the row before the first.
        self.rows += 1;
        for i in in_a.clone() {
            if run == most {
                break;
            }
            self.rows += 1;
            let [row, above] = &mut self.lengths;
            std::mem::swap(row, above);
            let places = self.places.get(&a[i]).map_or(&[][..], Vec::as_slice);
            let from = places.partition_point(|&j| j < in_b.start);
            for &j in places[from..].iter().take_while(|&&j| j < in_b.end) {
                let (number, before) = above[j];
                let length = if number + 1 == self.rows { before + 1 } else { 1 };
                row[j + 1] = (self.rows, length);
                if length > run {
                    (at_a, at_b, run) = (i + 1 - length, j + 1 - length, length);
                }
            }
        }
        let mut size = run;
        // Frequent characters start no block, but extend one.
        while at_a > in_a.start && at_b > in_b.start && a[at_a - 1] == b[at_b - 1] {
            (at_a, at_b, size) = (at_a - 1, at_b - 1, size + 1);
        }
        while at_a + size < in_a.end && at_b + size < in_b.end && a[at_a + size] == b[at_b + size] {
            size += 1;
        }
        (run, [(at_a, at_b), (at_a + size, at_b + size)])
    }
}

/// Returns the positions of each character in the second text, except characters that are too frequent.
fn places(b: &[char]) -> HashMap<char, Vec<usize>> {
    let mut places: HashMap<char, Vec<usize>> = HashMap::default();
    for (at, &c) in b.iter().enumerate() {
        places.entry(c).or_default().push(at);
    }
    if b.len() >= AUTOJUNK_FROM {
        places.retain(|_, places| places.len() <= b.len() / 100 + 1);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_characters_begin_no_block() {
        // Each of the ten characters is a tenth of the text, so none starts a block (Python 3.11's difflib also returns 0).
        let text = "abcdefghij".repeat(20);
        assert_eq!(fuzz_ratio(&format!("x{text}"), &text), 0);
        // Two texts that begin alike nevertheless share a block.
        assert_eq!(fuzz_ratio(&format!("{text}x"), &text), 100);
        // With one character fewer than 200, the whole text is a block.
        assert_eq!(fuzz_ratio(&format!("x{}", &text[..199]), &text[..199]), 100);
    }

    /// Searches all rows for each block: the obvious implementation.
    fn matching_one_by_one(a: &[char], b: &[char]) -> usize {
        let places = places(b);
        let (mut total, mut work) = (0, vec![(0..a.len(), 0..b.len())]);
        while let Some((in_a, in_b)) = work.pop() {
            let (at_a, at_b, size) = longest_block(a, b, &places, in_a.clone(), in_b.clone());
            if size == 0 {
                continue;
            }
            total += size;
            work.push((in_a.start..at_a, in_b.start..at_b));
            work.push((at_a + size..in_a.end, at_b + size..in_b.end));
        }
        total
    }

    /// Finds the longest block within two ranges; of equally long blocks, the one that comes first in `a`, then in `b`. Returns
    /// its starts and size.
    fn longest_block(
        a: &[char],
        b: &[char],
        places: &HashMap<char, Vec<usize>>,
        in_a: Range<usize>,
        in_b: Range<usize>,
    ) -> (usize, usize, usize) {
        let (mut at_a, mut at_b, mut size) = (in_a.start, in_b.start, 0);
        // Length of the block that ends in the previous row, by position in `b`.
        let (mut above, mut row): (HashMap<usize, usize>, HashMap<usize, usize>) =
            Default::default();
        for i in in_a.clone() {
            row.clear();
            let places = places.get(&a[i]).map_or(&[][..], Vec::as_slice);
            let from = places.partition_point(|&j| j < in_b.start);
            for &j in places[from..].iter().take_while(|&&j| j < in_b.end) {
                let length = 1 + j.checked_sub(1).and_then(|j| above.get(&j)).unwrap_or(&0);
                row.insert(j, length);
                if length > size {
                    (at_a, at_b, size) = (i + 1 - length, j + 1 - length, length);
                }
            }
            std::mem::swap(&mut above, &mut row);
        }
        // Frequent characters start no block, but extend one.
        while at_a > in_a.start && at_b > in_b.start && a[at_a - 1] == b[at_b - 1] {
            (at_a, at_b, size) = (at_a - 1, at_b - 1, size + 1);
        }
        while at_a + size < in_a.end && at_b + size < in_b.end && a[at_a + size] == b[at_b + size] {
            size += 1;
        }
        (at_a, at_b, size)
    }

    #[test]
    fn blocks_are_those_found_one_by_one() {
        let mut random = 1_u64;
        let mut below = |bound: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % bound
        };
        for round in 0..2000 {
            let kinds = [2, 3, 8, 150][round % 4];
            let most = if kinds == 150 { 700 } else { 60 };
            let mut text = |kinds: usize| -> Vec<char> {
                let length = below(most);
                (0..length).map(|_| char::from_u32(0x4e00 + below(kinds) as u32).unwrap()).collect()
            };
            let mut b = text(kinds);
            let mut a = text(kinds);
            // Insert parts of the second text, and a frequent character that extends blocks.
            for _ in 0..4 {
                let (from, at) = (below(b.len() + 1), below(a.len() + 1));
                let to = from + below(b.len() + 1 - from);
                a.splice(at..at, b[from..to].iter().copied());
                let every = 2 + below(9);
                b.iter_mut().step_by(every).for_each(|c| *c = ' ');
            }
            assert_eq!(matching(&a, &b), matching_one_by_one(&a, &b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn blocks_of_one_size_take_one_pass() {
        let text = |numbers: &mut dyn Iterator<Item = u32>| -> Vec<char> {
            numbers.map(|number| char::from_u32(0x4e00 + number % 150).unwrap()).collect()
        };
        let (a, b) = (text(&mut (0..3000)), text(&mut (0..3000).rev()));
        let mut blocks = Blocks::new(&a, &b);
        blocks.matching();
        assert!(blocks.rows < 4 * a.len(), "{} rows", blocks.rows);
    }
}
