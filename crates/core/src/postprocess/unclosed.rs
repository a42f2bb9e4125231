//! Ends of a Python text that leave a bracket or a string open.

use std::ops::Range;

use super::body::WORDS;

/// Greatest number of bytes of a word on either side of a place; longer ones are not looked at.
const MOST_OF_WORD: usize = 128;

/// Places in a text. If the text ended there, a bracket or a string would be open.
#[derive(Debug)]
pub(super) struct UnclosedEnds {
    first: usize,
    are_unclosed: Vec<bool>,
}

impl UnclosedEnds {
    /// Reads the tokens that begin between `start`, which is outside brackets and strings, and `end`; lists places from `first`
    /// on.
    ///
    /// Places within a token are left out, except in strings and comments: a shorter token may be another one, such as `:` of
    /// `:=`. Places in formatted strings, which contain code, are left out unless a bracket is open around the string; reading
    /// stops if such a string has another one with the same quotes.
    pub(super) fn new(text: &str, start: usize, first: usize, end: usize) -> Self {
        let text = text.as_bytes();
        let mut ends = Self { first, are_unclosed: vec![false; text.len() + 1 - first] };
        let (mut at, mut depth) = (start, 0_usize);
        while at < end {
            let next = match text[at] {
                b'"' | b'\'' => {
                    let Some(string) = StringToken::read(&text[start..], at - start) else {
                        break;
                    };
                    if !string.is_formatted || depth > 0 {
                        string.open.for_each(|place| ends.add(start + place));
                    }
                    let Some(end) = string.end else {
                        break;
                    };
                    start + end
                }
                b'#' => memchr::memchr(b'\n', &text[at..end]).map_or(end, |line| at + line),
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    at + 1
                }
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    at + 1
                }
                _ => at + 1,
            };
            if depth > 0 {
                let comment = if text[at] == b'#' { at + 1..next } else { next..next };
                comment.for_each(|place| ends.add(place));
                if next >= first && is_between_tokens(text, next) {
                    ends.add(next);
                }
            }
            at = next;
        }
        ends
    }

    fn add(&mut self, place: usize) {
        let place = place.checked_sub(self.first);
        if let Some(is_unclosed) = place.and_then(|place| self.are_unclosed.get_mut(place)) {
            *is_unclosed = true;
        }
    }

    /// Returns true if a bracket or a string is open at this place.
    pub(super) fn has(&self, place: usize) -> bool {
        let place = place.checked_sub(self.first);
        place.and_then(|place| self.are_unclosed.get(place)) == Some(&true)
    }
}

/// Returns true if a text's tokens before a place stay the same if it ends there, except that a name may be shorter.
fn is_between_tokens(text: &[u8], place: usize) -> bool {
    let (Some(&before), Some(&after)) = (text.get(place - 1), text.get(place)) else {
        return true;
    };
    let is_sign = |byte: u8| b"<>=!:*/-+.%&|^@~".contains(&byte);
    let is_within = if is_word(before) {
        let before = text[..place].iter().rev().take(MOST_OF_WORD);
        let before = before.take_while(|&&byte| is_word(byte)).count();
        let behind = text[place..].iter().take(MOST_OF_WORD);
        let behind = behind.take_while(|&&byte| is_word(byte)).count();
        if before == MOST_OF_WORD || behind == MOST_OF_WORD {
            return false;
        }
        let (start, end) = (place - before, place + behind);
        if text[start].is_ascii_digit()
            || text[..start].ends_with(b".") && start > 1 && text[start - 2].is_ascii_digit()
        {
            // Numbers such as `1e-5` and `1.e5`.
            is_word(after) || is_sign(after)
        } else {
            let is_prefix = text.get(end).is_some_and(|byte| matches!(byte, b'"' | b'\''));
            is_prefix
                || end > place && !(is_name(&text[start..place]) && is_name(&text[start..end]))
        }
    } else {
        is_sign(before) && (is_sign(after) || after.is_ascii_digit()) || before == b'\\'
    };
    !is_within
}

/// Returns true if a word can only be a name.
fn is_name(word: &[u8]) -> bool {
    word.is_ascii() && !WORDS.iter().any(|known| known.as_bytes() == word)
}

/// Returns true if a byte may be part of a name.
fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// String in a text.
struct StringToken {
    /// Places at which the string is open, whatever follows; those of a formatted string may be within code.
    open: Range<usize>,
    is_formatted: bool,
    /// End, after the closing quotes; `None` if it is not closed.
    end: Option<usize>,
}

impl StringToken {
    /// Reads the string whose quotes begin here; `None` if it is not certain where it ends.
    fn read(text: &[u8], quote: usize) -> Option<Self> {
        let prefix = text[..quote].iter().rev().take_while(|&&byte| is_word(byte)).count();
        let prefix = &text[quote - prefix..quote];
        if prefix.len() > 2 || !prefix.iter().all(|byte| b"rRbBuUfFtT".contains(byte)) {
            return None;
        }
        let is_formatted = prefix.iter().any(|byte| b"fFtT".contains(byte));
        let sign = text[quote];
        let width = if text[quote..].starts_with(&[sign; 3]) { 3 } else { 1 };
        let (content, mut end) = (quote + width, quote + width);
        while let Some(&byte) = text.get(end) {
            if text[end..].starts_with(&[sign; 3][..width]) {
                let count = |brace| memchr::memchr_iter(brace, &text[content..end]).count();
                let end = end + width;
                // Otherwise the quotes may be those of a string within braces.
                let is_certain = !is_formatted || count(b'{') == count(b'}');
                let open = content + 1..end;
                return is_certain.then_some(Self { open, is_formatted, end: Some(end) });
            }
            if byte == b'\n' && width == 1 {
                break;
            }
            end += if byte == b'\\' { 2 } else { 1 };
        }
        let open = content + 1..end.min(text.len()) + 1;
        (!is_formatted).then_some(Self { open, is_formatted, end: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks the places of a text with `-`.
    fn marked(text: &str, start: usize) -> String {
        let ends = UnclosedEnds::new(text, start, start, text.len());
        (0..=text.len()).map(|place| if ends.has(place) { '-' } else { ' ' }).collect()
    }

    /// Marked by hand.
    #[test]
    fn places_within_brackets_and_strings() {
        for (text, start, wanted) in [
            ("f(ab, c) + [1]", 0, "  ------    --"),
            ("x = \"\"\"a\nb\"\"\" + 'c", 0, "        -----     -"),
            // Shorter tokens: `:` of `:=`, prefixes of strings, numbers, and names that are or become keywords.
            ("f(a := b)", 0, "  --- ---"),
            ("f(rb'', 1e-5", 0, "  -   ---   -"),
            ("f(a.b + .5", 0, "  ------- -"),
            ("(isa in b", 0, " -- -- ---"),
            ("(f\"{x}\", 1", 0, " -  -------"),
            ("f\"{(x)}\", (1", 0, "           --"),
            ("(f'{d['a']}', 1", 0, " -"),
            (")]; g(1", 4, "      --"),
            ("(# a)\n1", 0, " -------"),
            ("'a\nb(", 0, "  -"),
            ("'\\'' + (", 0, "  --    -"),
        ] {
            assert_eq!(marked(text, start).trim_end(), wanted.trim_end(), "{text}");
        }
    }

    /// Words are looked at from each of their places. In quadratic time, this would take hours.
    #[test]
    fn a_long_word_takes_linear_time() {
        let text = format!("({} b", "a".repeat(2_000_000));
        let ends = UnclosedEnds::new(&text, 0, 0, text.len());
        assert!(!ends.has(1_000_000) && ends.has(text.len()));
    }
}
