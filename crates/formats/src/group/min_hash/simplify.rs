//! Words of a text as datatrove simplifies it before comparing texts: `simplify_text` of its `utils/text.py` with the default
//! settings, split at spaces.
//!
//! The steps, in order: lower case; each number becomes `0`; punctuation and control characters become spaces; white space
//! becomes a space; canonical decomposition, without nonspacing marks. Every step keeps line ends as separators of words, and
//! none looks across them, so lines are simplified one by one. The Unicode version is this program's: for characters that are
//! newer than Python's Unicode, the result may differ from datatrove's.

use repoformer_text::tokenize::{is_decimal_digit, is_nonspacing_mark};
use unicode_normalization::UnicodeNormalization as _;

/// datatrove's `PUNCTUATION` beyond ASCII, without U+0080 to U+009F. In ASCII, it contains all punctuation and all control
/// characters except tab and newline, which are white space.
const PUNCTUATION: &str = "—”％１〈、━【「」，】；“《„’∶´．（–？！：～«〉》）。…►»";

/// Calls `visit` with each word, in order.
pub(super) fn each_word(text: &str, mut visit: impl FnMut(&[u8])) {
    let mut word = Vec::new();
    for line in text.split('\n') {
        if line.is_ascii() {
            ascii(line.as_bytes(), &mut word, &mut visit);
        } else {
            general(line, &mut visit);
        }
    }
}

/// Visits the words of an ASCII line, reading each byte once.
fn ascii(line: &[u8], word: &mut Vec<u8>, visit: &mut impl FnMut(&[u8])) {
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        at += 1;
        match SIMPLE[usize::from(byte & 0x7F)] {
            0 => end(word, visit),
            b'0' => {
                word.push(b'0');
                at = end_of_digits(line, at);
                let fraction = matches!(line.get(at), Some(b'.' | b','))
                    && line.get(at + 1).is_some_and(u8::is_ascii_digit);
                if fraction {
                    at = end_of_digits(line, at + 2);
                }
            }
            letter => word.push(letter),
        }
    }
    end(word, visit);
}

#[inline]
fn end(word: &mut Vec<u8>, visit: &mut impl FnMut(&[u8])) {
    if !word.is_empty() {
        visit(word);
        word.clear();
    }
}

#[inline]
fn end_of_digits(line: &[u8], mut at: usize) -> usize {
    while line.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Simplified ASCII characters: letters in lower case, `0` for digits, 0 for all characters that end a word.
static SIMPLE: [u8; 128] = {
    let mut simple = [0; 128];
    let mut code = 0;
    while code < 128 {
        let byte = code as u8;
        if byte.is_ascii_digit() {
            simple[code] = b'0';
        } else if byte.is_ascii_alphabetic() {
            simple[code] = byte.to_ascii_lowercase();
        }
        code += 1;
    }
    simple
};

/// Visits the words of any line, step by step.
fn general(line: &str, visit: &mut impl FnMut(&[u8])) {
    let text = without_numbers(&line.to_lowercase());
    let spaced = text.chars().map(|one| if is_punctuation(one) { ' ' } else { one });
    let simple: String = spaced.nfd().filter(|&one| !is_nonspacing_mark(one)).collect();
    simple.split_whitespace().for_each(|word| visit(word.as_bytes()));
}

/// Marks between a number and its fraction.
const SEPARATORS: [char; 7] = ['.', ',', '\u{60c}', '\u{66b}', '\u{2396}', '\u{2397}', '\u{2398}'];

/// Replaces each run of digits, with the fraction that follows, by `0`.
fn without_numbers(text: &str) -> String {
    let mut simple = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !is_decimal_digit(first) {
            simple.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        simple.push('0');
        rest = rest.trim_start_matches(is_decimal_digit);
        if let Some(fraction) = rest.strip_prefix(SEPARATORS)
            && fraction.starts_with(is_decimal_digit)
        {
            rest = fraction.trim_start_matches(is_decimal_digit);
        }
    }
    simple
}

fn is_punctuation(character: char) -> bool {
    match character {
        '\t' | '\n' => false,
        '\0'..='\u{7f}' => character.is_ascii_punctuation() || character.is_ascii_control(),
        '\u{80}'..='\u{9f}' => true,
        _ => PUNCTUATION.contains(character),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(of: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Vec<String> {
        let mut words = Vec::new();
        of(&mut |word| words.push(String::from_utf8(word.to_owned()).unwrap()));
        words
    }

    proptest! {
        #[test]
        fn ascii_is_simplified_as_any_text(line in "[ -~]{0,40}|[\\x00-\\x7f]{0,40}|[0-9., aB]{0,20}") {
            let line = line.replace('\n', "");
            let fast = words(|mut visit| ascii(line.as_bytes(), &mut Vec::new(), &mut visit));
            prop_assert_eq!(fast, words(|mut visit| general(&line, &mut visit)));
        }

        #[test]
        fn lines_are_simplified_one_by_one(text in "[ΣσA\u{301}\u{345}1. \n]{0,20}|\\PC{0,20}") {
            let whole = words(|mut visit| general(&text, &mut visit));
            prop_assert_eq!(words(|visit| each_word(&text, visit)), whole);
        }
    }
}
