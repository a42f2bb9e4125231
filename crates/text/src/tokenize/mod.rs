//! Exact and fast implementation of the tokenizer p50k_base of OpenAI's Codex models.
//!
//! [`P50k::encode`] returns the same result as tiktoken's `encode_ordinary`. A text is cut into *pieces* by a fixed pattern,
//! and each piece becomes one or more *ids*; no id spans two pieces. Three things make it fast: hand-written code cuts the text
//! instead of a regular expression, a piece that is one token is found with one probe of a table that the build script lays
//! out, and the ids of all other pieces are memorised in a [`PieceCache`].
//!
//! [`LineTokens`] tokenizes a text once and then returns the ids of any run of its lines, as if that run had been tokenized
//! alone.
//!
//! [`model`] contains the tokenizers of other models, which are used for prompt budgets.
//!
//! [`each_word`] is another tokenizer: it finds the words that the lexical rankers (`repoformer_core::retrieve::rank`) compare.
//! [`Dictionary`] numbers them.

mod cache;
mod classes;
mod dictionary;
mod key;
mod lines;
mod merge;
pub mod model;
mod pieces;
mod set;
mod vocabulary;
pub mod words;

pub use cache::PieceCache;
pub use classes::{is_decimal_digit, is_nonspacing_mark, is_word};
pub use dictionary::Dictionary;
pub use lines::LineTokens;
pub use set::IdSet;
pub use words::{Nltk, each_word};

use cache::Ids;

/// Tokenizer: an empty handle to tables in the program itself, which costs nothing to create, copy or share among threads.
///
/// ```
/// use repoformer_text::tokenize::P50k;
/// let p50k = P50k;
/// assert_eq!(p50k.encode("def f(x):\n        return x"), [4299, 277, 7, 87, 2599, 198, 50262, 1441, 2124]);
/// assert_eq!(p50k.count("def f(x):\n        return x"), 9);
/// assert_eq!(p50k.decode(&[4299, 277, 7]), b"def f(");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct P50k;

impl P50k {
    /// Number of ids, which run from 0 to 50,280 and fit `u16`. [`P50k::encode`] returns all of them except 50,256 (end of
    /// text).
    ///
    /// ```
    /// assert_eq!(repoformer_text::tokenize::P50k::VOCABULARY, 50_281);
    /// ```
    pub const VOCABULARY: usize = vocabulary::SIZE;

    /// Returns the ids of `text` in order; special tokens are read as plain text.
    ///
    /// ```
    /// use repoformer_text::tokenize::P50k;
    /// assert_eq!(P50k.encode("\n\nl'été"), [198, 198, 75, 6, 25125, 2634]);
    /// assert!(P50k.encode("").is_empty());
    /// ```
    pub fn encode(&self, text: &str) -> Vec<u16> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 8);
        self.encode_into(text, &mut PieceCache::default(), &mut ids);
        ids
    }

    /// Appends the ids of `text` to `out`. Reusing one `cache` for many texts is the fastest way to tokenize them.
    ///
    /// ```
    /// use repoformer_text::tokenize::{P50k, PieceCache};
    /// let mut ids = vec![7];
    /// P50k.encode_into("lambda: 0", &mut PieceCache::default(), &mut ids);
    /// assert_eq!(ids, [7, 50033, 25, 657]);
    /// ```
    pub fn encode_into(&self, text: &str, cache: &mut PieceCache, out: &mut Vec<u16>) {
        self.each_piece(text, text.len(), cache, |_, _, ids| ids.push_into(out));
    }

    /// Returns the number of ids of `text`: the length of the result of [`P50k::encode`].
    ///
    /// ```
    /// use repoformer_text::tokenize::P50k;
    /// assert_eq!(P50k.count("import numpy as np\n"), 6);
    /// ```
    pub fn count(&self, text: &str) -> usize {
        self.count_with(text, &mut PieceCache::default())
    }

    /// Returns the number of ids of `text`, with a memo that is reused across texts.
    ///
    /// ```
    /// use repoformer_text::tokenize::{P50k, PieceCache};
    /// assert_eq!(P50k.count_with("np.zeros(3)", &mut PieceCache::default()), 7);
    /// ```
    pub fn count_with(&self, text: &str, cache: &mut PieceCache) -> usize {
        let mut count = 0;
        self.each_piece(text, text.len(), cache, |_, _, ids| count += ids.count());
        count
    }

    /// Calls `visit` with the end (a byte offset) and the number of ids of every piece that starts before `until`, in order.
    /// One pass thus counts all parts of the text that end at the end of a piece.
    #[inline(always)]
    pub fn each_count(
        &self,
        text: &str,
        until: usize,
        cache: &mut PieceCache,
        mut visit: impl FnMut(usize, usize),
    ) {
        self.each_piece(text, until, cache, |_, end, ids| visit(end, ids.count()));
    }

    /// Returns the bytes of `ids`. They may not be valid UTF-8, since an id may be a part of a character. 50,256 gives
    /// `<|endoftext|>`, as in tiktoken; an invalid id gives nothing.
    ///
    /// ```
    /// use repoformer_text::tokenize::P50k;
    /// let p50k = P50k;
    /// assert_eq!(p50k.decode(&p50k.encode("naïve 漢字")), "naïve 漢字".as_bytes());
    /// assert_eq!(p50k.decode(&[50_256, 60_000]), b"<|endoftext|>");
    /// ```
    pub fn decode(&self, ids: &[u16]) -> Vec<u8> {
        ids.iter().copied().filter_map(vocabulary::bytes_of).flatten().copied().collect()
    }

    /// Calls `visit` with start, end (byte offsets) and ids of every piece that starts before `until`, in order.
    #[inline(always)]
    fn each_piece(
        &self,
        text: &str,
        until: usize,
        cache: &mut PieceCache,
        mut visit: impl FnMut(usize, usize, Ids<'_>),
    ) {
        let mut start = 0;
        while start < until {
            let end = pieces::end_of_piece(text, start);
            visit(start, end, cache.ids_of(text.as_bytes(), start, end));
            start = end;
        }
    }
}

#[cfg(test)]
mod oracle_tests;
