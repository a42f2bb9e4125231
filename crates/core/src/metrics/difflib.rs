//! `fuzz.ratio` where `python-Levenshtein` is not installed: Python's `difflib.SequenceMatcher`.
//!
//! The ratio is `2·M / (|a| + |b|)`, where M sums the matching blocks that are found by taking the longest common run
//! of characters, then the longest left and right of it, and so on (Ratcliff and Obershelp's pattern matching). In a second text
//! of 200 characters or more, a character that makes up over 1 % of it starts no block ("autojunk"). The ratio of two similar
//! function bodies can therefore be near 0.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Least length of the second text for which its frequent characters start no block.
const AUTOJUNK_FROM: usize = 200;

/// Returns the ratio in whole percent, halves rounded to even.
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

/// Number of characters in matching blocks.
fn matching(a: &[char], b: &[char]) -> usize {
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

/// Positions of each character in the second text, without the too frequent ones.
fn places(b: &[char]) -> FxHashMap<char, Vec<usize>> {
    let mut places: FxHashMap<char, Vec<usize>> = FxHashMap::default();
    for (at, &c) in b.iter().enumerate() {
        places.entry(c).or_default().push(at);
    }
    if b.len() >= AUTOJUNK_FROM {
        places.retain(|_, places| places.len() <= b.len() / 100 + 1);
    }
    places
}

/// Finds the longest block within two ranges, of equal ones the first in `a`, then in `b`. Returns its starts and size.
fn longest_block(
    a: &[char],
    b: &[char],
    places: &FxHashMap<char, Vec<usize>>,
    in_a: Range<usize>,
    in_b: Range<usize>,
) -> (usize, usize, usize) {
    let (mut at_a, mut at_b, mut size) = (in_a.start, in_b.start, 0);
    // Length of the block that ends in the row above, by position in `b`.
    let (mut above, mut row): (FxHashMap<usize, usize>, FxHashMap<usize, usize>) =
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_characters_begin_no_block() {
        // Each of the ten characters is a tenth of the text, so none begins a block (Python 3.11's difflib says 0 too).
        let text = "abcdefghij".repeat(20);
        assert_eq!(fuzz_ratio(&format!("x{text}"), &text), 0);
        // But two texts that begin alike share a block all the same.
        assert_eq!(fuzz_ratio(&format!("{text}x"), &text), 100);
        // One character short of 200: all of it is a block.
        assert_eq!(fuzz_ratio(&format!("x{}", &text[..199]), &text[..199]), 100);
    }
}
