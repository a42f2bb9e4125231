//! Levenshtein distance over Unicode scalar values, 64 rows of the matrix at a time.
//!
//! The algorithm is Myers' bit vector in Hyyrö's form. Two words represent a column of the dynamic-programming matrix: one
//! marks the rows at which the column's value rises from the row above, the other the rows at which it falls.
//!
//! - G. Myers, *A fast bit-vector algorithm for approximate string matching based on dynamic programming*, J. ACM 46(3), 1999.
//! - H. Hyyrö, *A bit-vector algorithm for computing Levenshtein and Damerau edit distances*, Nordic J. Computing 10(1), 2003.

use std::cell::RefCell;
use std::cmp::max;

use super::recent::RecentComparison;
use super::symbols::{self, ASCII, BitParallel, ROWS, number_symbols};

/// Number of words processed together: enough to keep the processor busy while carries propagate, and few enough for their
/// table to fit the first-level cache.
const STRIPE: usize = 4;

/// Returns the smallest number of insertions, deletions and substitutions of characters that turn `a` into `b`.
///
/// ```
/// use repoformer_text::distance::levenshtein::distance;
/// assert_eq!(distance("kitten", "sitting"), 3);
/// assert_eq!(distance("naïve", "naive"), 1); // characters, not bytes
/// assert_eq!(distance("", "abc"), 3);
/// ```
pub fn distance(a: &str, b: &str) -> usize {
    symbols::distance::<Levenshtein>(a, b)
}

/// Returns the edit similarity `1 − lev(a, b) / max(|a|, |b|)`, with lengths in Unicode scalar values. Two empty texts have
/// similarity 1.
///
/// ```
/// use repoformer_text::distance::levenshtein::similarity;
/// assert_eq!(similarity("abcd", "abce"), 0.75);
/// assert_eq!(similarity("", "x"), 0.0);
/// assert_eq!(similarity("", ""), 1.0);
/// ```
pub fn similarity(a: &str, b: &str) -> f64 {
    thread_local!(static RECENT: RefCell<RecentComparison> = RefCell::default());
    let compare = |a: &str, b: &str| match max(a.chars().count(), b.chars().count()) {
        0 => 1.0,
        longest => 1.0 - distance(a, b) as f64 / longest as f64,
    };
    RECENT.with(|recent| RecentComparison::compare(recent, a, b, compare))
}

/// Returns, for each prefix of the text (from 0 characters to all), the smallest distance between the pattern and any run of
/// characters that ends with the prefix. These values are the last row of the matrix when row 0 costs nothing (P. H. Sellers,
/// *The theory and computation of evolutionary distances: pattern recognition*, J. Algorithms 1(4), 1980). One pass over a text
/// therefore bounds the distance to every substring.
///
/// ```
/// use repoformer_text::distance::levenshtein::nearest_ends;
/// // Nothing, "x", "xa" (or "a"), "xab" (or "ab"), "abd": the pattern without its c.
/// assert_eq!(nearest_ends("abcd", "xabd"), [4, 4, 3, 2, 1]);
/// ```
pub fn nearest_ends(pattern: &str, text: &str) -> Vec<u32> {
    if pattern.is_ascii() && text.is_ascii() {
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        return row_values(pattern.len(), &last_row(pattern, text, ASCII, 0));
    }
    let (pattern, text, symbols) = number_symbols(pattern, text);
    row_values(pattern.len(), &last_row(&pattern, &text, symbols, 0))
}

/// Computes the values of a row from its first value and its steps.
fn row_values(first: usize, steps: &[u8]) -> Vec<u32> {
    let mut value = first as u32;
    let mut values = Vec::with_capacity(steps.len() + 1);
    values.push(value);
    values.extend(steps.iter().map(|&bits| {
        value = value + u32::from(bits & 1) - u32::from(bits >> 1);
        value
    }));
    values
}

/// Bits of the rows in which a column of the matrix rises or falls by one from the row above.
#[derive(Clone, Copy)]
struct Column {
    rises: u64,
    falls: u64,
}

/// Bits of the rows in which the step to the next column rises or falls by one.
#[derive(Clone, Copy)]
struct Step {
    rises: u64,
    falls: u64,
}

impl Column {
    /// Column 0, whose values are the row numbers.
    const FIRST: Self = Self { rises: u64::MAX, falls: 0 };

    /// Advances by one character of the text. `matches` has a bit for each row whose pattern character equals the text's
    /// character; the lowest bits of `above` are the step in the row above this word. Returns this word's steps (Hyyrö 2003,
    /// with the carry of the blocked form).
    #[inline(always)]
    fn advance(&mut self, matches: u64, above: Step) -> Step {
        let Self { rises, falls } = *self;
        let seen = matches | above.falls;
        let diagonal = (((seen & rises).wrapping_add(rises)) ^ rises) | seen | falls;
        let step = Step { rises: falls | !(diagonal | rises), falls: diagonal & rises };
        let (up, down) = ((step.rises << 1) | above.rises, (step.falls << 1) | above.falls);
        self.rises = down | !(diagonal | up);
        self.falls = up & diagonal;
        step
    }
}

/// Step in row 0 if each further character of the text costs one.
const TOP: Step = Step { rises: 1, falls: 0 };

struct Levenshtein;

impl BitParallel for Levenshtein {
    #[inline(always)]
    fn one_word(rows: usize, _: usize, text: impl Iterator<Item = u64>) -> usize {
        let (mut column, mut distance) = (Column::FIRST, rows);
        let last = rows - 1;
        for matches in text {
            let step = column.advance(matches, TOP);
            distance += (step.rises >> last & 1) as usize;
            distance -= (step.falls >> last & 1) as usize;
        }
        distance
    }

    fn many_words<S: Copy + Into<u32>>(pattern: &[S], text: &[S], symbols: usize) -> usize {
        let last_row = last_row(pattern, text, symbols, TOP_BITS);
        let rises: usize = last_row.iter().map(|&bits| usize::from(bits & 1)).sum();
        let falls: usize = last_row.iter().map(|&bits| usize::from(bits >> 1)).sum();
        pattern.len() + rises - falls
    }
}

/// Computes the steps in the last row if each step in row 0 is `top`. Stripes of words process the whole text one after
/// another; each stripe passes the steps in its last row to the next stripe.
#[inline]
fn last_row<S: Copy + Into<u32>>(pattern: &[S], text: &[S], symbols: usize, top: u8) -> Vec<u8> {
    let mut last_row = vec![top; text.len()];
    let mut matches = vec![[0; STRIPE]; symbols];
    for rows in pattern.chunks(STRIPE * ROWS) {
        matches.fill([0; STRIPE]);
        for (row, &symbol) in rows.iter().enumerate() {
            matches[symbol.into() as usize][row / ROWS] |= 1 << (row % ROWS);
        }
        let last = (rows.len() - 1) % ROWS;
        // A separate function for each height keeps its columns in registers.
        match rows.len().div_ceil(ROWS) {
            1 => stripe::<1, S>(text, &matches, last, &mut last_row),
            2 => stripe::<2, S>(text, &matches, last, &mut last_row),
            3 => stripe::<3, S>(text, &matches, last, &mut last_row),
            _ => stripe::<STRIPE, S>(text, &matches, last, &mut last_row),
        }
    }
    last_row
}

/// Step in row 0 if each further character costs one, encoded in two bits: rises, falls.
const TOP_BITS: u8 = 1;

/// Processes a stripe of `WORDS` words. On entry, `above` has the steps, one per column, in the row above the stripe; on
/// return, the steps in the stripe's last row, which is bit `last` of its last word.
#[inline]
fn stripe<const WORDS: usize, S: Copy + Into<u32>>(
    text: &[S],
    matches: &[[u64; STRIPE]],
    last: usize,
    above: &mut [u8],
) {
    let mut columns = [Column::FIRST; WORDS];
    for (&symbol, bits) in text.iter().zip(above) {
        let matches = &matches[symbol.into() as usize];
        let mut carry = Step { rises: u64::from(*bits & 1), falls: u64::from(*bits >> 1) };
        let mut step = carry;
        for word in 0..WORDS {
            step = columns[word].advance(matches[word], carry);
            carry = Step { rises: step.rises >> (ROWS - 1), falls: step.falls >> (ROWS - 1) };
        }
        *bits = (step.rises >> last & 1) as u8 | ((step.falls >> last & 1) as u8) << 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the distance by its definition: the full matrix, row by row.
    fn naive(a: &str, b: &str) -> usize {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, y) in b.iter().enumerate() {
                let cheapest = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
                diagonal = std::mem::replace(&mut row[j + 1], cheapest);
            }
        }
        row[b.len()]
    }

    #[test]
    fn by_hand() {
        for (a, b, wanted) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("flaw", "lawn", 2),
            ("saturday", "sunday", 3),
            // é and è share their first byte; é and ũ (c3 a9, c5 a9) share their last. No character may be split.
            ("é", "è", 1),
            ("xéy", "xũy", 1),
            ("日本語", "日語", 1),
            ("😀", "é", 1),
        ] {
            assert_eq!(distance(a, b), wanted, "{a:?} {b:?}");
            assert_eq!(distance(b, a), wanted, "{b:?} {a:?}");
            assert_eq!(naive(a, b), wanted, "{a:?} {b:?}");
        }
    }

    #[test]
    fn long_texts() {
        // Texts shifted by one, and texts with nothing in common; 5,000 rows are ten stripes.
        let (ab, ba) = ("ab".repeat(2500), "ba".repeat(2500));
        assert_eq!(distance(&ab, &ba), 2);
        assert_eq!(distance(&ab, &"c".repeat(5001)), 5001);
        assert_eq!(distance(&ab, &"é".repeat(4000)), 5000);
        let different: String = ('\u{4e00}'..'\u{5800}').collect();
        let backwards: String = different.chars().rev().collect();
        assert_eq!(distance(&different, &backwards), naive(&different, &backwards));
    }

    #[test]
    fn every_length_around_the_word_and_stripe_bounds() {
        let text = |length: usize, step: usize, alphabet: &str| -> String {
            let alphabet: Vec<char> = alphabet.chars().collect();
            (0..length).map(|i| alphabet[i * step % 7 % alphabet.len()]).collect()
        };
        let sizes = [0, 1, 63, 64, 65, 127, 128, 129, 200, 511, 512, 513, 577];
        for alphabet in ["abcd", "aéb語"] {
            for a in sizes {
                for b in sizes {
                    let (a, b) = (text(a, 3, alphabet), text(b, 5, alphabet));
                    assert_eq!(distance(&a, &b), naive(&a, &b), "{a} {b}");
                }
            }
        }
    }

    /// Computes each value by its definition: the minimum over all runs that end at the position.
    fn naive_ends(pattern: &str, text: &str) -> Vec<u32> {
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let nearest = |end: usize| {
            let starts = text[..end].char_indices().map(|(at, _)| at).chain([end]);
            let distances = starts.map(|start| naive(pattern, &text[start..end]) as u32);
            distances.min().unwrap()
        };
        ends.map(nearest).collect()
    }

    #[test]
    fn a_pattern_in_a_longer_text() {
        // By hand: "s", "su", "sur" lack five to three characters. "surg" has g instead of v and lacks two; "surge" lacks y,
        // "surger" has r instead of y, and "surgery" has an extra r.
        let ends = nearest_ends("survey", "surgery");
        assert_eq!(ends, [6, 5, 4, 3, 3, 2, 2, 2]);
        assert_eq!(ends, naive_ends("survey", "surgery"));
        assert_eq!(nearest_ends("", "ab"), [0, 0, 0]);
        assert_eq!(nearest_ends("", "é"), [0, 0]);
        assert_eq!(nearest_ends("ab", ""), [2]);
    }

    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![0..12usize, 60..68usize, 124..132usize, 190..260usize, 505..520usize]
    }

    fn text(characters: &'static [char]) -> impl Strategy<Value = String> {
        length().prop_flat_map(move |length| {
            prop::collection::vec(prop::sample::select(characters), length)
                .prop_map(|characters| characters.into_iter().collect())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn equals_the_matrix(
            (a, b) in (text(&['a', 'b', ' ', '\n']), text(&['a', 'b', 'c', '\n'])),
            (c, d) in (text(&['a', 'é', 'è', '語', '😀']), text(&['a', 'ũ', 'è', '語', '😁'])),
        ) {
            prop_assert_eq!(distance(&a, &b), naive(&a, &b));
            prop_assert_eq!(distance(&c, &d), naive(&c, &d));
        }

        #[test]
        fn ends_equal_their_definition(a in "[abé]{0,9}|[ab]{60,70}", b in "[abé]{0,9}|[ab]{20,24}") {
            prop_assert_eq!(nearest_ends(&a, &b), naive_ends(&a, &b));
        }

        #[test]
        fn equals_the_matrix_after_edits(
            a in text(&['a', 'b', 'c', 'd', 'e', 'é']),
            edits in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(prop::sample::select(&['x', 'a', 'ß'][..]))), 0..20),
        ) {
            let mut b: Vec<char> = a.chars().collect();
            for (at, edit) in edits {
                match edit {
                    Some(c) => b.insert(at.index(b.len() + 1), c),
                    None if b.is_empty() => {}
                    None => { b.remove(at.index(b.len())); }
                }
            }
            let b: String = b.into_iter().collect();
            prop_assert_eq!(distance(&a, &b), naive(&a, &b));
        }
    }
}
