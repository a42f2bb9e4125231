//! Hand-written splitting of a text by the pattern of p50k_base.
//!
//! The pattern is `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`. A *piece* is one match of
//! the pattern; every character is in exactly one piece. The end of a piece does not depend on anything before the piece, so a
//! text is split from left to right without state. Runs of ASCII are measured eight bytes at a time.

use super::classes::Class;

/// Returns the end of the piece that starts at byte `at`, which must be the start of a piece before the end of `text`.
#[inline(always)]
pub(super) fn end_of_piece(text: &str, at: usize) -> usize {
    let first = text.as_bytes().get(at).copied();
    let body = at + usize::from(first == Some(b' '));
    match Class::at(text, body) {
        Some(Class::Letter) => end_of_run(text, body, Class::Letter, not_letters),
        Some(Class::Number) => end_of_run(text, body, Class::Number, not_digits),
        Some(Class::Other) => {
            // A space before the apostrophe makes it punctuation.
            if first == Some(b'\'')
                && let Some(end) = end_of_contraction(text.as_bytes(), at)
            {
                return end;
            }
            end_of_run(text, body, Class::Other, not_others)
        }
        Some(Class::Space) | None => end_of_whitespace(text, at),
    }
}

/// Matches `'(?:[sdmt]|ll|ve|re)` at an apostrophe, and returns the end.
#[inline(always)]
fn end_of_contraction(bytes: &[u8], at: usize) -> Option<usize> {
    match (bytes.get(at + 1)?, bytes.get(at + 2)) {
        (b's' | b'd' | b'm' | b't', _) => Some(at + 2),
        (b'l', Some(b'l')) | (b'v' | b'r', Some(b'e')) => Some(at + 3),
        _ => None,
    }
}

/// Matches `\s++$|\s+(?!\S)|\s`, and returns the end: a run that is followed by other text leaves out its last character, which
/// becomes a piece of its own or the start of the next piece.
#[inline(always)]
fn end_of_whitespace(text: &str, at: usize) -> usize {
    let end = end_of_run(text, at, Class::Space, not_spaces);
    if end == text.len() {
        return end;
    }
    let mut last = end - 1;
    while !text.is_char_boundary(last) {
        last -= 1;
    }
    if last > at { last } else { end }
}

/// Returns the end of the run of `class` that contains `at`; `stops` marks the bytes of a word that are not ASCII characters of
/// the class.
#[inline(always)]
fn end_of_run(text: &str, mut at: usize, class: Class, stops: impl Fn(u64) -> u64) -> usize {
    loop {
        let stop = stops(eight(text.as_bytes(), at));
        if stop == 0 {
            at += 8;
            continue;
        }
        at += stop.trailing_zeros() as usize / 8;
        match text.as_bytes().get(at) {
            Some(0x80..) => match after_if(text, at, class) {
                Some(after) => at = after,
                None => return at,
            },
            _ => return at,
        }
    }
}

/// Returns the end of the run of non-ASCII characters of `class` that starts at `at`; `None` if the first character is not one.
#[inline(never)]
fn after_if(text: &str, at: usize, class: Class) -> Option<usize> {
    let run: usize = text
        .get(at..)?
        .chars()
        .take_while(|&character| !character.is_ascii() && Class::from_character(character) == class)
        .map(char::len_utf8)
        .sum();
    (run > 0).then_some(at + run)
}

/// Returns the eight bytes starting at `at`, with 0xFF past the end, which stops every run.
#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => eight_at_the_end(bytes, at),
    }
}

#[cold]
fn eight_at_the_end(bytes: &[u8], at: usize) -> u64 {
    let mut chunk = [0xFF; 8];
    if let Some(rest) = bytes.get(at..) {
        for (to, from) in chunk.iter_mut().zip(rest) {
            *to = *from;
        }
    }
    u64::from_le_bytes(chunk)
}

/// Highest bit of every byte, in which the functions below return their result.
const HIGH: u64 = each(0x80);

/// Returns a word of eight equal bytes.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Marks the bytes that are at least `least` in a word without high bits.
#[inline(always)]
const fn at_least(word: u64, least: u8) -> u64 {
    // No sum exceeds 0x7F + 0x7F, so nothing carries into the next byte.
    (word + each(0x80 - least)) & HIGH
}

#[inline(always)]
fn not_letters(word: u64) -> u64 {
    let lower = (word | each(0x20)) & !HIGH;
    (!at_least(lower, b'a') | at_least(lower, b'z' + 1) | word) & HIGH
}

#[inline(always)]
fn not_digits(word: u64) -> u64 {
    let low = word & !HIGH;
    (!at_least(low, b'0') | at_least(low, b'9' + 1) | word) & HIGH
}

#[inline(always)]
fn not_spaces(word: u64) -> u64 {
    let low = word & !HIGH;
    let blank = !at_least(low ^ each(b' '), 1);
    let control = at_least(low, b'\t') & !at_least(low, b'\r' + 1);
    (!(blank | control) | word) & HIGH
}

#[inline(always)]
fn not_others(word: u64) -> u64 {
    !(not_letters(word) & not_digits(word) & not_spaces(word)) & HIGH | word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_stops_exactly_the_runs_of_other_classes() {
        type Stops = fn(u64) -> u64;
        let runs: [(Class, Stops); 4] = [
            (Class::Letter, not_letters),
            (Class::Number, not_digits),
            (Class::Space, not_spaces),
            (Class::Other, not_others),
        ];
        for (class, stops) in runs {
            for byte in 0..=u8::MAX {
                let character = char::from(byte);
                let goes_on = byte < 0x80 && Class::from_character(character) == class;
                for place in 0..8 {
                    for around in [0x00, 0x7F, 0x80, 0xFF, b'a', b'0', b' ', b'!'] {
                        let mut bytes = [around; 8];
                        bytes[place] = byte;
                        let stop = stops(u64::from_le_bytes(bytes)) >> (8 * place) & 0xFF;
                        assert_eq!(stop, if goes_on { 0 } else { 0x80 }, "{class:?} {byte:#x}");
                    }
                }
            }
        }
    }
}
