//! Lines of the left context that an answer repeats at its beginning.

use std::borrow::Cow;

use repoformer_text::lines::{strip, unfinished_line};

use super::literal::line_ranges;

/// Maximum number of lines of a left context that an answer may repeat.
const MOST: usize = 2_000;

/// Removes leading lines that repeat the end of the left context, ignoring blank lines, and the repeated part of the context's
/// last, unfinished line. If these lines have less indentation in the answer than in the left context, the rest of the answer
/// is indented by the difference.
pub(in super::super) fn without_echo<'a>(left_context: &str, text: &'a str) -> Cow<'a, str> {
    let unfinished = unfinished_line(left_context);
    let whole = &left_context[..left_context.len() - unfinished.len()];
    let is_code = |line: &&str| !strip(line).is_empty();
    let lines: Vec<&str> = {
        let mut lines: Vec<&str> =
            whole.lines().rev().map(str::trim_end).filter(is_code).take(MOST).collect();
        lines.reverse();
        lines
    };
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
    let (rest, shift) = match repeated {
        Some((count, shift)) => {
            let end = begins[count - 1].1;
            let blank = whole.lines().rev().take_while(|line| strip(line).is_empty()).count();
            (behind_blank_lines(&text[end..], blank), shift)
        }
        None => (text, ""),
    };
    let rest = if shift.is_empty() { Cow::Borrowed(rest) } else { shift_lines(rest, shift).into() };
    let held = unfinished.trim_start();
    if strip(held).is_empty() || !held.chars().any(char::is_alphanumeric) {
        return rest;
    }
    let own = rest.trim_start_matches([' ', '\t']);
    match own.strip_prefix(held).or_else(|| own.strip_prefix(strip(held))) {
        Some(own) => own.to_owned().into(),
        None => rest,
    }
}

/// Returns the indentation that the repeated lines lack; `None` if the answer repeats other lines.
fn shift<'a>(lines: &[&'a str], begins: &[(&str, usize)]) -> Option<&'a str> {
    // Lines of brackets alone occur anywhere, so they show nothing.
    let is_name = |line: &&str| line.chars().any(char::is_alphanumeric);
    let pairs = || lines.iter().zip(begins);
    if pairs().all(|(line, (begin, _))| line == begin) {
        return lines.iter().any(is_name).then_some("");
    }
    let (first, (begin, _)) = pairs().next()?;
    let shift = first.strip_suffix(begin).filter(|shift| strip(shift).is_empty())?;
    // A single line may belong to another block.
    let opens_block = lines.last().is_some_and(|line| line.ends_with([':', '{']));
    let is_shifted = pairs().all(|(line, (begin, _))| line.strip_prefix(shift) == Some(begin));
    (is_shifted && lines.iter().any(is_name) && (lines.len() > 1 || opens_block)).then_some(shift)
}

fn behind_blank_lines(text: &str, most: usize) -> &str {
    let blank =
        line_ranges(text).take(most).take_while(|line| strip(&text[line.clone()]).is_empty());
    &text[blank.last().map_or(0, |line| line.end)..]
}

fn shift_lines(text: &str, shift: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.fold(String::new(), |mut shifted, line| {
        if !strip(line).is_empty() {
            shifted += shift;
        }
        shifted + line
    })
}

/// Returns the number of lines with code in an answer after the repeated lines.
pub(super) fn own_lines(left_context: &str, text: &str) -> usize {
    let own = without_echo(left_context, text);
    own.lines().filter(|line| !strip(line).is_empty()).count()
}
