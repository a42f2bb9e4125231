//! Truncation of a text to a number of tokens without tokenizing the whole text.

use std::ops::Range;

use memchr::memchr_iter;
use memchr::memrchr_iter;

use super::Tokenizer;

/// Number of extra tokens to read, so that the edge of a part of the text does not affect the cut.
const MARGIN: usize = 32;
/// Number of bytes in which to search for the start of a line, at which the part can begin or end.
const LINE: usize = 4096;

impl Tokenizer {
    /// Returns the longest prefix of a text that ends at the end of one of its first `tokens` tokens, between two characters,
    /// and has at most that many tokens when tokenized alone.
    ///
    /// ```
    /// use repoformer_text::tokenize::model::Tokenizer;
    /// assert_eq!(Tokenizer::words().keep_start("a = b\n", 2), "a = ");
    /// assert_eq!(Tokenizer::words().keep_start("a = b\n", 3), "a = b\n");
    /// ```
    pub fn keep_start<'t>(&self, text: &'t str, tokens: usize) -> &'t str {
        self.start_of(text, tokens).0
    }

    /// Returns the longest suffix of a text that begins at one of its last `tokens` tokens, between two characters, and has at
    /// most that many tokens when tokenized alone.
    ///
    /// ```
    /// use repoformer_text::tokenize::model::Tokenizer;
    /// assert_eq!(Tokenizer::p50k_base().keep_end("return value\n", 2), " value\n");
    /// ```
    pub fn keep_end<'t>(&self, text: &'t str, tokens: usize) -> &'t str {
        self.end_of(text, tokens).0
    }

    /// Returns [`keep_start`](Self::keep_start) and the number of tokens kept.
    pub fn start_of<'t>(&self, text: &'t str, tokens: usize) -> (&'t str, usize) {
        start(self, text, tokens, reach(tokens))
    }

    /// Returns [`keep_end`](Self::keep_end) and the number of tokens kept.
    pub fn end_of<'t>(&self, text: &'t str, tokens: usize) -> (&'t str, usize) {
        end(self, text, tokens, reach(tokens))
    }
}

/// Returns a number of bytes that usually contains `tokens` tokens of code and [`MARGIN`] more; if it does not, more bytes are
/// read.
fn reach(tokens: usize) -> usize {
    tokens.saturating_add(MARGIN).saturating_mul(4)
}

/// Returns the end of `text` as described in [`Tokenizer::keep_end`], and its tokens; `reach` bytes are tried first.
pub(super) fn end<'t>(
    tokenizer: &Tokenizer,
    text: &'t str,
    tokens: usize,
    reach: usize,
) -> (&'t str, usize) {
    let tail = |reach| &text[line_before(text, text.len().saturating_sub(reach))..];
    let (tail, spans) = with_margin(tokenizer, text, tokens, reach, tail);
    if spans.len() <= tokens {
        return (tail, spans.len());
    }
    let cuts = (1..=tokens).rev().map(|kept| spans.len() - kept);
    let kept = cuts.filter_map(|first| Some(&tail[boundary(&spans, first, tail)?.start..]));
    first_that_fits(tokenizer, kept, tokens)
}

/// Returns the start of `text` as described in [`Tokenizer::keep_start`], and its tokens; `reach` bytes are tried first.
pub(super) fn start<'t>(
    tokenizer: &Tokenizer,
    text: &'t str,
    tokens: usize,
    reach: usize,
) -> (&'t str, usize) {
    let head = |reach| &text[..line_after(text, reach)];
    let (head, spans) = with_margin(tokenizer, text, tokens, reach, head);
    if spans.len() <= tokens {
        return (head, spans.len());
    }
    let cuts = (1..=tokens).rev();
    let kept = cuts.filter_map(|kept| Some(&head[..boundary(&spans, kept, head)?.end]));
    first_that_fits(tokenizer, kept, tokens)
}

/// Reads more and more of a text until it contains enough tokens and a margin, or is the whole text; returns it with its
/// tokens.
fn with_margin<'t>(
    tokenizer: &Tokenizer,
    text: &str,
    tokens: usize,
    mut reach: usize,
    take: impl Fn(usize) -> &'t str,
) -> (&'t str, Vec<Range<usize>>) {
    loop {
        let part = take(reach);
        let spans = tokenizer.spans(part);
        if part.len() == text.len() || spans.len() >= tokens.saturating_add(MARGIN) {
            return (part, spans);
        }
        // Slightly more than needed at the rate of bytes per token in this part.
        let rate = reach / spans.len().max(1) + 1;
        let enough = tokens.saturating_add(2 * MARGIN).saturating_mul(rate);
        reach = enough.max(reach.saturating_add(reach / 4 + 1));
    }
}

/// Returns the gap between token `at` and the one before it; `None` if the gap is inside a character.
fn boundary(spans: &[Range<usize>], at: usize, text: &str) -> Option<Range<usize>> {
    let gap = spans[at - 1].end..spans[at].start;
    let whole = text.is_char_boundary(gap.start) && text.is_char_boundary(gap.end);
    (gap.start <= gap.end && whole).then_some(gap)
}

/// Returns the first text that has at most `tokens` tokens when tokenized alone. It is usually the first candidate, but a
/// tokenizer may split a part of a text differently from the whole, or put a blank before it.
fn first_that_fits<'t>(
    tokenizer: &Tokenizer,
    texts: impl Iterator<Item = &'t str>,
    tokens: usize,
) -> (&'t str, usize) {
    let mut counted = texts.map(|text| (text, tokenizer.count(text)));
    let fits = counted.find(|(_, count)| *count <= tokens);
    fits.unwrap_or(("", 0))
}

/// Returns the start of a line at or shortly before `at` that does not begin with a blank: no tokenizer's pattern joins such a
/// line with the line before it. If there is no such line, returns the start of a character.
fn line_before(text: &str, at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    let from = at.saturating_sub(LINE);
    let newlines = memrchr_iter(b'\n', &text.as_bytes()[from..at]);
    let mut lines = newlines.map(|newline| from + newline + 1);
    let line = lines.find(|&line| starts_unindented(text, line));
    line.unwrap_or_else(|| text.floor_char_boundary(at))
}

/// Returns the start of a line at or shortly after `at` that does not begin with a blank, or else the start of a character.
fn line_after(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let to = at.saturating_add(LINE).min(text.len());
    let mut lines = memchr_iter(b'\n', &text.as_bytes()[at..to]).map(|newline| at + newline + 1);
    let line = lines.find(|&line| starts_unindented(text, line));
    line.unwrap_or_else(|| text.ceil_char_boundary(at))
}

fn starts_unindented(text: &str, line: usize) -> bool {
    let start = text.get(line..).and_then(|rest| rest.chars().next());
    start.is_some_and(|character| !character.is_whitespace())
}
