//! InDel distance, in which a substitution costs two, and the ratio computed by `fuzz.ratio`.
//!
//! The distance is `|a| + |b| − 2·LCS(a, b)`. The longest common subsequence is computed with Hyyrö's bit vectors
//! (*Bit-parallel LCS-length computation revisited*, AWOCA 2004): each row in which the column's value rises has a zero bit.

use std::cell::RefCell;

use super::recent::RecentComparison;
use super::symbols::{self, BitParallel, ROWS};

/// Returns the smallest number of insertions and deletions of characters that turn `a` into `b`.
///
/// ```
/// use repoformer_text::distance::indel::distance;
/// assert_eq!(distance("lewenstein", "levenshtein"), 3);
/// assert_eq!(distance("né", "ne"), 2); // characters, not bytes
/// ```
pub fn distance(a: &str, b: &str) -> usize {
    symbols::distance::<Indel>(a, b)
}

/// Returns the similarity `1 − indel(a, b) / (|a| + |b|)`, which is RapidFuzz's `ratio` / 100. Two empty texts have similarity
/// 1.
///
/// ```
/// use repoformer_text::distance::indel::similarity;
/// assert_eq!(similarity("abcd", "abce"), 0.75);
/// assert_eq!(similarity("", ""), 1.0);
/// ```
pub fn similarity(a: &str, b: &str) -> f64 {
    thread_local!(static RECENT: RefCell<RecentComparison> = RefCell::default());
    let compare = |a: &str, b: &str| match a.chars().count() + b.chars().count() {
        0 => 1.0,
        total => 1.0 - distance(a, b) as f64 / total as f64,
    };
    RECENT.with(|recent| RecentComparison::compare(recent, a, b, compare))
}

/// Returns `fuzz.ratio` as the reference programs print it if `python-Levenshtein` is installed: [`similarity`] in whole
/// percent, rounded half to even.
///
/// ```
/// use repoformer_text::distance::indel::fuzz_ratio;
/// assert_eq!(fuzz_ratio("this is a test", "this is a test!"), 97);
/// assert_eq!(fuzz_ratio("aaaaaaab", "aaaaaaac"), 88); // 87.5
/// assert_eq!(fuzz_ratio("", "x"), 0);
/// ```
pub fn fuzz_ratio(a: &str, b: &str) -> u8 {
    // The order of the operations affects some halves, for example with length 80 and distance 46.
    (100.0 * similarity(a, b)).round_ties_even() as u8
}

/// Returns the number of zeros among the lowest `rows` bits.
fn zeros(word: u64, rows: usize) -> usize {
    let unused = ROWS - rows;
    (!word << unused).count_ones() as usize
}

struct Indel;

impl BitParallel for Indel {
    #[inline(always)]
    fn one_word(rows: usize, length: usize, text: impl Iterator<Item = u64>) -> usize {
        let mut column = u64::MAX;
        for matches in text {
            let both = column & matches;
            column = column.wrapping_add(both) | (column - both);
        }
        rows + length - 2 * zeros(column, rows)
    }

    /// Adds up the column's words with carry for each character.
    fn many_words<S: Copy + Into<u32>>(pattern: &[S], text: &[S], symbols: usize) -> usize {
        let words = pattern.len().div_ceil(ROWS);
        let mut matches = vec![0u64; symbols * words];
        for (row, &symbol) in pattern.iter().enumerate() {
            matches[symbol.into() as usize * words + row / ROWS] |= 1 << (row % ROWS);
        }
        let mut column = vec![u64::MAX; words];
        for &symbol in text {
            let matches = &matches[symbol.into() as usize * words..][..words];
            let mut carry = false;
            for at in 0..words {
                let both = column[at] & matches[at];
                let (sum, over) = column[at].overflowing_add(both);
                let (sum, again) = sum.overflowing_add(u64::from(carry));
                carry = over || again;
                column[at] = sum | (column[at] - both);
            }
        }
        let last = pattern.len() - ROWS * (words - 1);
        let full: usize = column[..words - 1].iter().map(|&w| zeros(w, ROWS)).sum();
        let common = full + zeros(column[words - 1], last);
        pattern.len() + text.len() - 2 * common
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the distance by its definition: the full matrix of common subsequences, row by row.
    fn naive(a: &str, b: &str) -> usize {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let mut row = vec![0; b.len() + 1];
        for x in &a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        a.len() + b.len() - 2 * row[b.len()]
    }

    #[test]
    fn by_hand() {
        for (a, b, wanted) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 5), // "ittn" is common
            ("é", "è", 2),
            ("日本語", "日語", 1),
        ] {
            assert_eq!(distance(a, b), wanted, "{a:?} {b:?}");
            assert_eq!(distance(b, a), wanted, "{b:?} {a:?}");
            assert_eq!(naive(a, b), wanted, "{a:?} {b:?}");
        }
        // Halves round to the even neighbour: 12.5 %, 37.5 %, 62.5 %.
        assert_eq!(fuzz_ratio("abcdefgh", "hijklmno"), 12);
        assert_eq!(fuzz_ratio("abcdefgh", "abcxyzuv"), 38);
        assert_eq!(fuzz_ratio("abcdefgh", "abcdexyz"), 62);
    }

    #[test]
    fn lengths_around_the_words() {
        for length in [1, 63, 64, 65, 127, 128, 129, 200, 513] {
            let a: String = (0..length).map(|i| char::from(b'a' + (i * i % 7) as u8)).collect();
            let b: String =
                (0..length + 9).map(|i| char::from(b'a' + (i * 3 % 11) as u8)).collect();
            assert_eq!(distance(&a, &b), naive(&a, &b), "{length}");
            let (a, b) = (a.replace('a', "é"), b.replace('b', "語"));
            assert_eq!(distance(&a, &b), naive(&a, &b), "{length}");
        }
    }

    proptest! {
        #[test]
        fn equals_the_matrix(a in "[ab語é]{0,150}", b in "[abé ]{0,150}") {
            prop_assert_eq!(distance(&a, &b), naive(&a, &b));
        }

        #[test]
        fn equals_the_matrix_on_any_text(a in ".{0,90}", b in ".{0,90}") {
            prop_assert_eq!(distance(&a, &b), naive(&a, &b));
        }
    }
}
