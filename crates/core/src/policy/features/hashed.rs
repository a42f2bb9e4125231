//! Hashed words near a hole, for information that no other feature has.

use super::Context;
use super::tokens::{NEWLINE, Tokens, is_word};

/// Number of buckets of words.
pub const BUCKETS: usize = 256;

/// Set of buckets that contain a word near the hole. A word is hashed together with its position: in the last line, in the five
/// lines before it, in the three lines after the hole, as the first word of one of these lines, or in the file's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordBuckets([u64; BUCKETS / 64]);

impl WordBuckets {
    /// Computes the buckets.
    pub fn new(context: &Context<'_>) -> Self {
        let mut hashed = Self::default();
        let (left, right) = (&context.left, &context.right);
        let lines = left.lines.iter().rev().take(6).enumerate();
        let mut end = left.all.len();
        for (number, &start) in lines {
            let place = if number == 0 { 1 } else { 2 };
            hashed.insert_line(&left.all[start as usize..end], place, 8 + number.min(2) as u32);
            end = start as usize;
        }
        for (number, line) in right.all.split(|&token| token == NEWLINE).take(3).enumerate() {
            hashed.insert_line(line, 3, if number == 0 { 11 } else { 3 });
        }
        let path = context.request.path.split_once('/').map_or("", |(_, path)| path);
        for token in Tokens::from_text(path).all {
            hashed.insert(token, 4);
        }
        hashed
    }

    fn insert_line(&mut self, line: &[u32], place: u32, first: u32) {
        let mut words = line.iter().filter(|token| is_word(**token)).peekable();
        if let Some(&&word) = words.peek() {
            self.insert(word, first);
        }
        for &word in words {
            self.insert(word, place);
        }
    }

    fn insert(&mut self, token: u32, place: u32) {
        let hash = (token ^ place.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0x9e37_79b1);
        let bucket = (hash >> 24) as usize;
        self.0[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Returns the buckets that contain a word, in order.
    pub fn buckets(&self) -> Vec<usize> {
        (0..BUCKETS).filter(|&bucket| self.has(bucket)).collect()
    }

    /// Returns true if a bucket contains a word.
    pub fn has(&self, bucket: usize) -> bool {
        self.0[bucket / 64] >> (bucket % 64) & 1 == 1
    }

    /// Sums the weights of the buckets that contain a word; `weights` has one weight per bucket.
    pub fn sum(&self, weights: &[f64]) -> f64 {
        let of_word = |(number, &word): (usize, &u64)| {
            let mut bits = word;
            let mut sum = 0.0;
            while bits != 0 {
                sum += weights[64 * number + bits.trailing_zeros() as usize];
                bits &= bits - 1;
            }
            sum
        };
        self.0.iter().enumerate().map(of_word).sum()
    }
}
