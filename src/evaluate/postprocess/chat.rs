//! Removal of the text that chat models write around code.

use std::ops::Range;

use crate::text::lines::{strip, unfinished_line};

/// Special tokens that end a model's turn and that some servers leave in the text.
const ENDS: [&str; 10] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "<|EOT|>",
    "</s>",
    "<eos>",
];

/// Beginnings of sentences that introduce code.
const OPENINGS: [&str; 22] = [
    "sure", "certainly", "of course", "absolutely", "okay", "ok,", "here is", "here's", "here are",
    "here you go", "below is", "the completed", "the complete", "the missing", "the following",
    "the code", "to complete", "i'll ", "i will ", "i've ", "you can ", "assistant:",
];

/// Beginnings of sentences that explain code.
const EXPLANATIONS: [&str; 24] = [
    "this ", "note that", "note:", "**", "### ", "## ", "explanation", "in this ", "the above",
    "the code", "the function", "the completed", "the missing", "here is", "here's", "here,", "i ",
    "i've ", "i have ", "let me ", "please ", "hope ", "you can ", "in the ",
];

/// Returns the ranges of the lines of a text, with their newlines.
fn line_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + line.len();
        start = range.end;
        range
    })
}

/// Keeps the content of the first code fence: the text before a fence that is only closed, the text after one that is only
/// opened. Without a fence, removes single backticks around the whole text.
pub(super) fn inside_fence(text: &str) -> &str {
    let fence = |line: &Range<usize>| {
        let line = strip(&text[line.clone()]);
        line.starts_with("```") || line.starts_with("~~~")
    };
    let mut fences = line_ranges(text).filter(fence);
    match (fences.next(), fences.next()) {
        (None, _) => {
            let bare = strip(text);
            let inner = bare.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            inner.filter(|inner| !inner.contains(['`', '\n'])).unwrap_or(text)
        }
        (Some(open), Some(close)) => &text[open.end..close.start],
        (Some(only), None) => {
            let name = strip(&text[only.clone()]).trim_matches(['`', '~']);
            let is_named = !name.is_empty();
            if is_named || strip(&text[..only.start]).is_empty() {
                &text[only.end..]
            } else {
                &text[..only.start]
            }
        }
    }
}

/// Removes a model's thoughts, the tokens that end its turn, the sentences that introduce the code, and everything from a
/// paragraph that explains it on.
pub(super) fn without_chatter(text: &str) -> &str {
    let text = match text.split_once("</think>") {
        Some((thoughts, rest)) if strip(thoughts).is_empty() || thoughts.contains("<think>") => {
            rest
        }
        _ => text,
    };
    let end = ENDS.iter().filter_map(|token| text.find(token)).min();
    let text = &text[..end.unwrap_or(text.len())];
    let text = &text[code_start(text)..];
    let mut above_is_blank = false;
    for line in line_ranges(text) {
        let content = text[line.clone()].trim_end();
        if above_is_blank && is_sentence(content, &EXPLANATIONS) {
            return text[..line.start].trim_end_matches(['\n', '\r']);
        }
        above_is_blank = content.is_empty();
    }
    text
}

/// Start of the first line that does not introduce code.
fn code_start(text: &str) -> usize {
    let (mut start, mut spoke) = (0, false);
    for line in line_ranges(text) {
        let content = text[line.clone()].trim_end();
        let leads = is_sentence(content, &OPENINGS) && content.ends_with([':', '.', '!']);
        // Blank lines are only removed after a sentence: code may begin with one.
        if !(leads || spoke && content.is_empty()) {
            break;
        }
        (start, spoke) = (line.end, true);
    }
    start
}

/// Whether a line starts with one of these beginnings and continues in words, not in code.
fn is_sentence(line: &str, beginnings: &[&str]) -> bool {
    let lower = line.to_lowercase();
    beginnings.iter().any(|begin| lower.starts_with(begin))
        && !lower.contains(['=', ';', '{', '}', '['])
        && (lower.split_whitespace().count() >= 3
            || line.ends_with([':', '!'])
            || line.starts_with(['*', '#']))
}

/// Removes leading lines that the left context ends with, and the part of its last, unfinished line that is repeated.
pub(super) fn without_echo<'a>(left_context: &str, text: &'a str) -> &'a str {
    let unfinished = unfinished_line(left_context);
    let whole = &left_context[..left_context.len() - unfinished.len()];
    let lines: Vec<&str> = whole.lines().map(str::trim_end).collect();
    let ranges: Vec<Range<usize>> = line_ranges(text).collect();
    let begins: Vec<&str> = ranges.iter().map(|range| text[range.clone()].trim_end()).collect();
    let most = lines.len().min(begins.len());
    let repeats = |&count: &usize| {
        let echo = &lines[lines.len() - count..];
        // Blank lines and single brackets occur anywhere.
        begins[..count] == *echo && echo.iter().any(|line| line.chars().any(char::is_alphanumeric))
    };
    let repeated = (1..=most).rev().find(repeats).unwrap_or(0);
    let rest = match repeated {
        0 => text,
        count => &text[ranges[count - 1].end..],
    };
    let held = strip(unfinished);
    if held.is_empty() {
        return rest;
    }
    let own = rest.trim_start_matches([' ', '\t']).strip_prefix(held);
    own.unwrap_or(rest)
}
