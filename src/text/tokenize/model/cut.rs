//! Cutting a text to a number of tokens without tokenizing all of it.

use std::ops::Range;

use memchr::memchr_iter;
use memchr::memrchr_iter;

use super::Tokenizer;

/// Tokens beyond those asked for, so that what a tokenizer makes of the edge of a part of a text has no say in the cut.
const MARGIN: usize = 32;
/// Bytes within which a line is looked for to begin or end the part at.
const LINE: usize = 4096;

/// Bytes that mostly hold `tokens` tokens of code and [`MARGIN`] more. Where they do not, more are taken.
pub(super) fn reach(tokens: usize) -> usize {
    tokens.saturating_add(MARGIN).saturating_mul(4)
}

/// Bytes to try after `reach` bytes were only `found` tokens: a little more than so many tokens take at that rate.
fn longer(reach: usize, found: usize, tokens: usize) -> usize {
    let rate = reach / found.max(1) + 1;
    let enough = tokens.saturating_add(2 * MARGIN).saturating_mul(rate);
    enough.max(reach.saturating_add(reach / 4 + 1))
}

/// The end of `text` as [`Tokenizer::keep_end`] says, and its tokens; `reach` is how many bytes are tried first.
pub(super) fn end<'t>(
    tokenizer: &Tokenizer,
    text: &'t str,
    tokens: usize,
    mut reach: usize,
) -> (&'t str, usize) {
    loop {
        let start = line_before(text, text.len().saturating_sub(reach));
        let tail = &text[start..];
        let spans = tokenizer.spans(tail);
        if start > 0 && spans.len() < tokens.saturating_add(MARGIN) {
            reach = longer(reach, spans.len(), tokens);
            continue;
        }
        if spans.len() <= tokens {
            return (tail, spans.len());
        }
        let cuts = (1..=tokens).rev().map(|kept| spans.len() - kept);
        let kept = cuts.filter_map(|first| Some(&tail[boundary(&spans, first, tail)?.start..]));
        return first_that_fits(tokenizer, kept, tokens);
    }
}

/// The start of `text` as [`Tokenizer::keep_start`] says, and its tokens; `reach` is how many bytes are tried first.
pub(super) fn start<'t>(
    tokenizer: &Tokenizer,
    text: &'t str,
    tokens: usize,
    mut reach: usize,
) -> (&'t str, usize) {
    loop {
        let head = &text[..line_after(text, reach)];
        let spans = tokenizer.spans(head);
        if head.len() < text.len() && spans.len() < tokens.saturating_add(MARGIN) {
            reach = longer(reach, spans.len(), tokens);
            continue;
        }
        if spans.len() <= tokens {
            return (head, spans.len());
        }
        let kept = (1..=tokens)
            .rev()
            .filter_map(|kept| Some(&head[..boundary(&spans, kept, head)?.end]));
        return first_that_fits(tokenizer, kept, tokens);
    }
}

/// The gap between token `at` and the one before it; `None` where it is within a character.
fn boundary(spans: &[Range<usize>], at: usize, text: &str) -> Option<Range<usize>> {
    let gap = spans[at - 1].end..spans[at].start;
    let whole = text.is_char_boundary(gap.start) && text.is_char_boundary(gap.end);
    (gap.start <= gap.end && whole).then_some(gap)
}

/// The first text that is at most so many tokens on its own. It nearly always is the first: a tokenizer may cut a part of a
/// text otherwise than the whole, or put a blank before it.
fn first_that_fits<'t>(
    tokenizer: &Tokenizer,
    texts: impl Iterator<Item = &'t str>,
    tokens: usize,
) -> (&'t str, usize) {
    let mut counted = texts.map(|text| (text, tokenizer.count(text)));
    let fits = counted.find(|(_, count)| *count <= tokens);
    fits.unwrap_or(("", 0))
}

/// The start of a line at or a little before `at`, one that does not begin with a blank: no tokenizer's pattern joins such a
/// line with the one before it. Else a character's start.
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

/// The same at or a little after `at`.
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
