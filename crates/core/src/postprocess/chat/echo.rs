//! Lines of the left context that an answer repeats at its beginning.

use std::borrow::Cow;

use repoformer_text::lines::{strip, unfinished_line};

use super::literal::line_ranges;
use super::steps;

/// Maximum number of lines of a left context that an answer may repeat.
const MOST: usize = 2_000;

/// Maximum number of bytes of indentation by which the rest of an answer is shifted; no code lacks more.
const WIDEST_SHIFT: usize = 200;

/// Removes leading lines that repeat the end of the left context, ignoring blank lines, and the repeated part of the context's
/// last, unfinished line. If these lines have less indentation in the answer than in the left context, the rest of the answer
/// is indented by the difference. Lines that lack more than [`WIDEST_SHIFT`] bytes of indentation do not count as repeated, so
/// that the result is not far longer than the answer.
pub(in super::super) fn without_echo<'a>(left_context: &str, text: &'a str) -> Cow<'a, str> {
    LeftEnd::new(left_context).without_echo(text)
}

/// End of a left context, which an answer may repeat. It is read once for all blocks of an answer.
pub(super) struct LeftEnd<'c> {
    /// Last lines with code, without the unfinished line; at most [`MOST`].
    lines: Vec<ContextLine<'c>>,
    /// Number of blank lines at the end, before the unfinished line.
    blank: usize,
    /// The unfinished line, if it has a name or a number: without its indentation, and without any white space around it.
    unfinished: Option<[&'c str; 2]>,
}

/// Line of a left context without white space at its end.
struct ContextLine<'c> {
    text: &'c str,
    /// True if the line has a letter or a digit. Lines of brackets alone occur anywhere, so they show nothing.
    has_name: bool,
}

impl<'c> LeftEnd<'c> {
    pub(super) fn new(left_context: &'c str) -> Self {
        steps::add(left_context.len());
        let unfinished = unfinished_line(left_context);
        let whole = &left_context[..left_context.len() - unfinished.len()];
        let is_blank = |line: &&str| strip(line).is_empty();
        let has_name = |line: &str| line.chars().any(char::is_alphanumeric);
        let code = whole.lines().rev().map(str::trim_end).filter(|line| !is_blank(line));
        let mut lines: Vec<ContextLine<'_>> =
            code.take(MOST).map(|text| ContextLine { text, has_name: has_name(text) }).collect();
        lines.reverse();
        let held = unfinished.trim_start();
        Self {
            lines,
            blank: whole.lines().rev().take_while(is_blank).count(),
            unfinished: has_name(held).then_some([held, strip(held)]),
        }
    }

    /// Returns the number of lines with code in an answer after the repeated lines.
    pub(super) fn own_lines(&self, text: &str) -> usize {
        let own = self.without_echo(text);
        own.lines().filter(|line| !strip(line).is_empty()).count()
    }

    /// Returns an answer as described in [`without_echo`].
    fn without_echo<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let (rest, shift) = self.behind_repeated_lines(text);
        let rest =
            if shift.is_empty() { Cow::Borrowed(rest) } else { shift_lines(rest, shift).into() };
        let Some(unfinished) = self.unfinished else { return rest };
        let own = rest.trim_start_matches([' ', '\t']);
        match unfinished.iter().find_map(|held| own.strip_prefix(*held)) {
            Some(own) => own.to_owned().into(),
            None => rest,
        }
    }

    /// Returns the rest of an answer after the lines that it repeats, and the indentation that they lack.
    fn behind_repeated_lines<'a>(&self, text: &'a str) -> (&'a str, &'c str) {
        let lines = &self.lines;
        let begins: Vec<(&str, usize)> = line_ranges(text)
            .map(|range| (text[range.clone()].trim_end(), range.end))
            .filter(|(line, _)| !strip(line).is_empty())
            .take(MOST)
            .collect();
        let most = lines.len().min(begins.len());
        let repeated = (1..=most).rev().find_map(|count| {
            let shift = shift(&lines[lines.len() - count..], &begins[..count])?;
            Some((count, shift))
        });
        match repeated {
            Some((count, shift)) => {
                let end = begins[count - 1].1;
                (behind_blank_lines(&text[end..], self.blank), shift)
            }
            None => (text, ""),
        }
    }
}

/// Returns the indentation that the repeated lines lack; `None` if the answer repeats other lines.
fn shift<'c>(lines: &[ContextLine<'c>], begins: &[(&str, usize)]) -> Option<&'c str> {
    let has_name = || lines.iter().any(|line| line.has_name);
    let pairs = || lines.iter().map(|line| line.text).zip(begins.iter().map(|(begin, _)| *begin));
    if pairs().all(|(line, begin)| line == begin) {
        return has_name().then_some("");
    }
    let (first, begin) = pairs().next()?;
    let shift = first.strip_suffix(begin).filter(|shift| shift.len() <= WIDEST_SHIFT)?;
    if !strip(shift).is_empty() {
        return None;
    }
    // A single line may belong to another block.
    let opens_block = lines.last().is_some_and(|line| line.text.ends_with([':', '{']));
    let is_shifted = pairs().all(|(line, begin)| line.strip_prefix(shift) == Some(begin));
    (is_shifted && has_name() && (lines.len() > 1 || opens_block)).then_some(shift)
}

fn behind_blank_lines(text: &str, most: usize) -> &str {
    let blank =
        line_ranges(text).take(most).take_while(|line| strip(&text[line.clone()]).is_empty());
    &text[blank.last().map_or(0, |line| line.end)..]
}

fn shift_lines(text: &str, shift: &str) -> String {
    let mut shifted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if !strip(line).is_empty() {
            shifted += shift;
        }
        shifted += line;
    }
    steps::add(shifted.len());
    shifted
}
