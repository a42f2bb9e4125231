//! Lines as Python counts them: newlines of text mode and `str.splitlines`.
//!
//! Every `line_no` of a benchmark counts these lines: a form feed or a U+2028 in a file shifts all later holes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use memchr::memchr;

/// Text divided into lines: the lines joined by `\n`, and the start of each. A run of lines is one slice of the text.
///
/// ```
/// use repoformer_text::lines::Lines;
/// let lines = Lines::new("def f():\u{0c}    return 1\n\n");
/// assert_eq!(lines.count(), 3);
/// assert_eq!(lines.line(1), "    return 1");
/// assert_eq!(lines.range(0, 2), "def f():\n    return 1");
/// assert_eq!(lines.range(2, 3), "");
/// ```
#[derive(Debug, Clone)]
pub struct Lines {
    /// Text that contains the lines joined by `\n`, and may be shared with others; `None` if it was left on disk.
    text: Option<Arc<String>>,
    part: Range<usize>,
    count: u32,
    /// Byte offset of each line's first character, computed when first needed, for all clones.
    starts: Arc<OnceLock<Vec<u32>>>,
}

impl Lines {
    /// Splits a text into lines like `str.splitlines`: at `\n \r \r\n \v \f \x1c \x1d \x1e \x85 U+2028 U+2029`. A separator at
    /// the end does not start another line.
    pub fn new(text: &str) -> Self {
        Self::from_text(text.to_owned())
    }

    /// Splits a text that the caller no longer needs.
    pub fn from_text(text: String) -> Self {
        let mut text = if has_rare_separator(&text) { split_rare(&text) } else { text };
        let newlines = newlines(&text);
        let count = if text.ends_with('\n') {
            text.pop();
            newlines
        } else {
            newlines + usize::from(!text.is_empty())
        };
        let range = 0..text.len();
        Self::with_count(Arc::new(text), range, count)
    }

    /// Creates lines that only `\n` separates.
    pub fn with_line_feeds(text: String) -> Self {
        let count = if text.is_empty() { 0 } else { newlines(&text) + 1 };
        let range = 0..text.len();
        Self::with_count(Arc::new(text), range, count)
    }

    fn with_count(text: Arc<String>, part: Range<usize>, count: usize) -> Self {
        Self { text: Some(text), part, count: count as u32, starts: Arc::default() }
    }

    /// Rebuilds lines from their joined text, which is part of another text. Returns `None` if it does not have `count` lines;
    /// an empty text has 0 or 1.
    pub fn from_joined(text: &Arc<String>, part: Range<usize>, count: usize) -> Option<Self> {
        let lines = newlines(text.get(part.clone())?) + 1;
        let fits = count == lines || (count == 0 && part.is_empty());
        fits.then(|| Self::with_count(Arc::clone(text), part, count))
    }

    /// Creates lines of which only the number is known. Reading their text is a bug and panics.
    pub fn unread(count: usize) -> Self {
        Self { text: None, part: 0..0, count: count as u32, starts: Arc::default() }
    }

    /// Returns true if their text is available.
    pub fn is_read(&self) -> bool {
        self.text.is_some()
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns all lines joined by `\n`.
    pub fn text(&self) -> &str {
        let text = self.text.as_ref().expect("these lines were left on disk");
        &text[self.part.clone()]
    }

    fn starts(&self) -> &[u32] {
        self.starts.get_or_init(|| {
            let mut starts = Vec::with_capacity(self.count());
            if self.count > 0 {
                starts.push(0);
                each_newline(self.text().as_bytes(), |at| starts.push(at as u32 + 1));
            }
            starts
        })
    }

    /// Returns the byte range in [`text`](Self::text) of lines `start..end`, joined by `\n`.
    ///
    /// # Panics
    /// If `end` is beyond the last line.
    pub fn byte_range(&self, start: usize, end: usize) -> Range<usize> {
        assert!(end <= self.count(), "line {end} of {}", self.count());
        if start >= end {
            return 0..0;
        }
        let starts = self.starts();
        let to = starts.get(end).map_or(self.text().len(), |&next| next as usize - 1);
        starts[start] as usize..to
    }

    /// Returns lines `start..end` (0-based, end excluded) joined by `\n`.
    ///
    /// # Panics
    /// If `end` is beyond the last line.
    #[inline]
    pub fn range(&self, start: usize, end: usize) -> &str {
        &self.text()[self.byte_range(start, end)]
    }

    /// Returns a line without its separator.
    pub fn line(&self, number: usize) -> &str {
        self.range(number, number + 1)
    }

    /// Iterates over the lines in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.count()).map(|number| self.line(number))
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        let same_text = || match (self.is_read(), other.is_read()) {
            (true, true) => self.text() == other.text(),
            (one, other) => one == other,
        };
        self.count == other.count && same_text()
    }
}

impl Eq for Lines {}

/// Calls `visit` with the position of each `\n`. Newlines are about thirty bytes apart, too close together for a library search
/// to pay off. Therefore eight bytes are examined at once, and newlines are marked in their highest bits.
fn each_newline(bytes: &[u8], mut visit: impl FnMut(usize)) {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let at = 8 * number;
        let word = u64::from_le_bytes(*word) ^ u64::from_le_bytes([b'\n'; 8]);
        // No sum carries into the next byte: 0x7f + 0x7f is the greatest.
        let mut zeros = !(((word & LOW) + LOW) | word | LOW);
        while zeros != 0 {
            visit(at + zeros.trailing_zeros() as usize / 8);
            zeros &= zeros - 1;
        }
    }
    let begin = bytes.len() - rest.len();
    for (place, byte) in rest.iter().enumerate() {
        if *byte == b'\n' {
            visit(begin + place);
        }
    }
}

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// Replaces `\r\n` and `\r` by `\n`, like Python's text mode on reading.
pub fn universal_newlines(text: String) -> String {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return text;
    }
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Implements Python's `str.strip()`: white space is Unicode's plus the four separators U+001C to U+001F.
///
/// ```
/// assert_eq!(repoformer_text::lines::strip("\t\u{a0}x = 1\u{1f} "), "x = 1");
/// ```
pub fn strip(line: &str) -> &str {
    line.trim_matches(is_space)
}

/// Implements Python's `str.isspace()` for one character, which is also what `\s` matches in Python.
#[inline]
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Returns true if a character separates lines for `str.splitlines`.
#[inline]
pub fn is_separator(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r'
            | '\x0b'
            | '\x0c'
            | '\x1c'
            | '\x1d'
            | '\x1e'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
    )
}

/// Returns the number of lines that end in a text, which is the 0-based number of the line after it.
///
/// ```
/// use repoformer_text::lines::line_ends;
/// assert_eq!(line_ends("a\nb\r\n    "), 2);
/// assert_eq!(line_ends("a\nb\u{0c}"), 2);
/// assert_eq!(line_ends(""), 0);
/// ```
pub fn line_ends(text: &str) -> usize {
    if !has_rare_separator(text) {
        return newlines(text);
    }
    line_starts(text).count() - 1
}

/// Returns the byte offset at which a line begins, by its 0-based number.
///
/// ```
/// use repoformer_text::lines::line_start;
/// assert_eq!((line_start("a\nb\n", 1), line_start("a\nb\n", 2), line_start("a\nb\n", 3)), (Some(2), Some(4), None));
/// ```
pub fn line_start(text: &str, number: usize) -> Option<usize> {
    match number {
        0 => Some(0),
        _ if has_rare_separator(text) => line_starts(text).nth(number),
        _ => memchr::memchr_iter(b'\n', text.as_bytes()).nth(number - 1).map(|at| at + 1),
    }
}

/// Iterates over the byte offsets at which lines begin, including the one after a separator at the end.
pub fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    let ends = text.char_indices().filter_map(|(at, c)| {
        let next = at + c.len_utf8();
        let goes_on = c == '\r' && text.as_bytes().get(next) == Some(&b'\n');
        (is_separator(c) && !goes_on).then_some(next)
    });
    std::iter::once(0).chain(ends)
}

/// Text with the positions of its lines, for many look-ups.
#[derive(Debug, Clone)]
pub struct IndexedText<'t> {
    text: Cow<'t, str>,
    /// Start of each line.
    starts: Vec<usize>,
    /// For each line, the number of the last non-blank line up to and including it; `usize::MAX` if there is none.
    filled: Vec<usize>,
}

impl<'t> IndexedText<'t> {
    /// Finds the lines of a text.
    ///
    /// ```
    /// let lines = repoformer_text::lines::IndexedText::new("a\n\nb\n");
    /// assert_eq!((lines.start(2), lines.start(4)), (Some(3), None));
    /// assert_eq!(lines.last_filled(3), Some("a"));
    /// ```
    pub fn new(text: impl Into<Cow<'t, str>>) -> Self {
        let text = text.into();
        let starts: Vec<usize> = if has_rare_separator(&text) {
            line_starts(&text).collect()
        } else {
            let ends = memchr::memchr_iter(b'\n', text.as_bytes());
            std::iter::once(0).chain(ends.map(|at| at + 1)).collect()
        };
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let mut last = usize::MAX;
        let filled = (0..).zip(starts.iter().zip(ends)).map(|(number, (&start, end))| {
            if !strip(&text[start..end]).is_empty() {
                last = number;
            }
            last
        });
        let filled = filled.collect();
        Self { text, starts, filled }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the byte offset at which a line starts, by its 0-based number, including the one after a separator at the end.
    pub fn start(&self, number: usize) -> Option<usize> {
        self.starts.get(number).copied()
    }

    /// Returns the last line before a byte offset that is not blank, stripped.
    pub fn last_filled(&self, offset: usize) -> Option<&str> {
        let number = self.starts.partition_point(|&start| start <= offset) - 1;
        let begun = strip(&self.text[self.starts[number]..offset]);
        if !begun.is_empty() {
            return Some(begun);
        }
        let before = self.filled[number.checked_sub(1)?];
        let start = *self.starts.get(before)?;
        Some(strip(&self.text[start..self.starts[before + 1]]))
    }
}

/// Returns the last line of a text if it has no line end. For the text before a hole, this is the part of the hole's line
/// before the hole.
///
/// ```
/// assert_eq!(repoformer_text::lines::unfinished_line("a = 1\n    b = "), "    b = ");
/// assert_eq!(repoformer_text::lines::unfinished_line("a = 1\n"), "");
/// ```
pub fn unfinished_line(text: &str) -> &str {
    text.rsplit(is_separator).next().unwrap_or(text)
}

/// Returns the leading white space of a text, as Python's `lstrip` defines it.
pub fn indent(text: &str) -> &str {
    let rest = text.trim_start_matches(is_space);
    &text[..text.len() - rest.len()]
}

fn has_rare_separator(text: &str) -> bool {
    // A control character other than \t and \n, or the first byte of U+0085, U+2028 or U+2029. Whole chunks are tested without
    // branches, so that the compiler can vectorize the test.
    let suspicious = |byte: u8| -> u8 {
        u8::from(byte.wrapping_sub(0x0b) < 3)
            | u8::from(byte.wrapping_sub(0x1c) < 3)
            | u8::from(byte == 0xc2)
            | u8::from(byte == 0xe2)
    };
    let any = |chunk: &[u8]| chunk.iter().fold(0, |any, byte| any | suspicious(*byte)) != 0;
    text.as_bytes().chunks(256).any(any) && text.contains(|c| c != '\n' && is_separator(c))
}

fn split_rare(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\r' && characters.peek() == Some(&'\n') {
            continue;
        }
        joined.push(if is_separator(c) { '\n' } else { c });
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits by Python's definition, one character at a time.
    fn splitlines(text: &str) -> Vec<String> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        let characters: Vec<char> = text.chars().collect();
        let mut i = 0;
        while i < characters.len() {
            if is_separator(characters[i]) {
                lines.push(std::mem::take(&mut line));
                i += usize::from(characters[i] == '\r' && characters.get(i + 1) == Some(&'\n'));
            } else {
                line.push(characters[i]);
            }
            i += 1;
        }
        if !line.is_empty() {
            lines.push(line);
        }
        lines
    }

    #[test]
    fn python_examples() {
        // Expected values from the Python documentation of str.splitlines.
        let lines = |text: &str| Lines::new(text).iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines("ab c\n\nde fg\rkl\r\n"), ["ab c", "", "de fg", "kl"]);
        assert_eq!(lines(""), [""; 0]);
        assert_eq!(lines("One line\n"), ["One line"]);
        assert_eq!(lines("\n"), [""]);
        assert_eq!(universal_newlines("a\r\nb\rc\n".into()), "a\nb\nc\n");
    }

    #[test]
    fn white_space_is_pythons() {
        // [c for c in map(chr, range(0x110000)) if c.isspace()] of Python 3.
        let mut python: Vec<u32> = vec![0x20, 0x85, 0xa0, 0x1680, 0x202f, 0x205f, 0x3000];
        python.extend((0x9..=0xd).chain(0x1c..=0x1f).chain(0x2000..=0x200a));
        python.extend([0x2028, 0x2029]);
        for c in '\0'..=char::MAX {
            assert_eq!(strip(&format!("{c}x{c}")) == "x", python.contains(&u32::from(c)), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn indexed_lines_are_those_of_the_text(text in "[a \n\r\x0b\u{85}\u{2028}é]{0,40}") {
            let indexed = IndexedText::new(&*text);
            let starts: Vec<usize> = line_starts(&text).collect();
            for number in 0..starts.len() + 2 {
                prop_assert_eq!(indexed.start(number), starts.get(number).copied());
            }
            for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
                let mut before = text[..offset].rsplit(is_separator).map(strip);
                prop_assert_eq!(indexed.last_filled(offset), before.find(|line| !line.is_empty()));
            }
        }

        #[test]
        fn newlines_are_found_as_a_search_finds_them(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\x0b'), Just(b'\x8a'), any::<u8>()], 0..80)) {
            let mut found = Vec::new();
            each_newline(&bytes, |at| found.push(at));
            prop_assert_eq!(found, memchr::memchr_iter(b'\n', &bytes).collect::<Vec<_>>());
        }

        #[test]
        fn line_ends_and_starts_are_those_of_the_definition(text in "[ab\n\r\x0b\x0c\x1c\x1d\x1e\u{85}\u{2028}\u{2029}é]{0,40}") {
            let slow = splitlines(&format!("{text}é"));
            prop_assert_eq!(line_ends(&text), slow.len() - 1);
            let starts: Vec<usize> = line_starts(&text).collect();
            prop_assert_eq!(starts.len(), slow.len());
            for (start, line) in starts.iter().zip(&slow) {
                prop_assert!(text[*start..].starts_with(line.trim_end_matches('é')));
            }
            prop_assert_eq!(unfinished_line(&text), &text[starts[starts.len() - 1]..]);
        }

        #[test]
        fn equals_the_definition(text in "[ab\n\r\x0b\x0c\x1c\x1d\x1e\u{85}\u{2028}\u{2029}é\u{a0}\u{2027}]{0,40}") {
            let lines = Lines::new(&text);
            let slow = splitlines(&text);
            prop_assert_eq!(lines.iter().map(str::to_owned).collect::<Vec<_>>(), slow.clone());
            let (joined, length) = (Arc::new(format!("{}é", lines.text())), lines.text().len());
            prop_assert_eq!(Lines::from_joined(&joined, 0..length, lines.count()), Some(lines.clone()));
            prop_assert_eq!(Lines::from_joined(&joined, 0..length, lines.count() + 2), None);
            for start in 0..slow.len() {
                for end in start + 1..=slow.len() {
                    prop_assert_eq!(lines.range(start, end), slow[start..end].join("\n"));
                }
            }
        }
    }
}
