//! Texts of open documents, and positions in them.

use serde_json::Value;

/// Units that the characters of a line are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
        }
    }

    /// Units of a character, all of which its first byte counts.
    fn units(self, byte: u8) -> usize {
        match (self, byte) {
            (_, 0x00..=0x7f) => 1,
            // It continues a character.
            (_, 0x80..=0xbf) => 0,
            (Self::Utf16, _) => 1 + usize::from(byte >= 0xf0),
            (Self::Utf8, 0xc0..=0xdf) => 2,
            (Self::Utf8, 0xe0..=0xef) => 3,
            (Self::Utf8, _) => 4,
        }
    }
}

/// Text of an open document. The two parts meet where it was changed last: changes mostly lie near each other, or follow one
/// another through the document, so that little moves from one part to the other.
#[derive(Debug, Default)]
pub(super) struct Document {
    before: Vec<u8>,
    /// Backwards.
    behind: Vec<u8>,
    /// Where it was changed last, from where on positions are counted.
    known: Place,
}

/// A place in a document.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    line: usize,
    character: usize,
    /// Bytes before it.
    offset: usize,
}

impl Document {
    pub(super) fn new(text: &str) -> Self {
        Self { behind: text.bytes().rev().collect(), ..Self::default() }
    }

    pub(super) fn text(&self) -> String {
        let bytes = self.before.iter().copied().chain(self.behind.iter().rev().copied()).collect();
        // Parts meet between characters.
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Bytes before a position; a character behind the end of its line is its end, a line behind the last the end of the text.
    pub(super) fn offset_of(&self, position: &Value, encoding: Encoding) -> Option<usize> {
        Some(self.place(position, encoding)?.offset)
    }

    fn place(&self, position: &Value, encoding: Encoding) -> Option<Place> {
        let number = |name: &str| Some(position[name].as_u64()? as usize);
        let (line, character) = (number("line")?, number("character")?);
        let mut at = self.known;
        if at.line != line {
            // Lines are counted from the beginning of one.
            at = self.line_start(at);
            while at.line > line {
                let end = Place { line: at.line - 1, character: 0, offset: at.offset - 1 };
                at = self.line_start(end);
            }
            while at.line < line {
                if at.offset == self.len() {
                    return Some(self.within_line(self.line_start(at), usize::MAX, encoding));
                }
                at.line += usize::from(self.ends_line(at.offset));
                at.offset += 1;
            }
        }
        Some(self.within_line(at, character, encoding))
    }

    /// A place in the line of another one.
    fn within_line(&self, mut at: Place, character: usize, encoding: Encoding) -> Place {
        while at.character > character {
            at.offset -= 1;
            // A character's first byte counts for all of them.
            at.character -= encoding.units(self.byte(at.offset));
        }
        while at.offset < self.len() && !matches!(self.byte(at.offset), b'\n' | b'\r') {
            let units = encoding.units(self.byte(at.offset));
            if at.character + units > character && units > 0 {
                break;
            }
            at.character += units;
            at.offset += 1;
        }
        at
    }

    /// The beginning of a place's line.
    fn line_start(&self, mut at: Place) -> Place {
        at.character = 0;
        while at.offset > 0 && !self.ends_line(at.offset - 1) {
            at.offset -= 1;
        }
        at
    }

    /// Whether a line ends with a byte: lines of the protocol end with `\n`, `\r\n` or `\r`.
    fn ends_line(&self, at: usize) -> bool {
        let is_followed = || at + 1 < self.len() && self.byte(at + 1) == b'\n';
        match self.byte(at) {
            b'\n' => true,
            b'\r' => !is_followed(),
            _ => false,
        }
    }

    fn len(&self) -> usize {
        self.before.len() + self.behind.len()
    }

    fn byte(&self, at: usize) -> u8 {
        match at.checked_sub(self.before.len()) {
            None => self.before[at],
            Some(behind) => self.behind[self.behind.len() - 1 - behind],
        }
    }

    /// Changes a part of the text, or all where no range is named.
    pub(super) fn change(&mut self, edit: &Value, encoding: Encoding) {
        let new = edit["text"].as_str().unwrap_or_default();
        let place = |name: &str| self.place(&edit["range"][name], encoding);
        let Some((start, end)) = place("start").zip(place("end")) else {
            *self = Self::new(new);
            return;
        };
        let removed = end.offset.saturating_sub(start.offset);
        self.known = start;
        self.part_at(start.offset);
        self.behind.truncate(self.behind.len() - removed);
        self.before.extend_from_slice(new.as_bytes());
        if self.before[..start.offset].ends_with(b"\r") {
            // It may have become half of a line's end.
            self.known = Place::default();
        }
    }

    /// Moves bytes from one part to the other.
    fn part_at(&mut self, offset: usize) {
        if offset < self.before.len() {
            self.behind.extend(self.before.drain(offset..).rev());
        } else {
            let from = self.behind.len() - (offset - self.before.len());
            self.before.extend(self.behind.drain(from..).rev());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn at(text: &str, line: usize, character: usize, encoding: Encoding) -> usize {
        let position = json!({"line": line, "character": character});
        Document::new(text).offset_of(&position, encoding).unwrap()
    }

    #[test]
    fn positions_count_units_of_the_encoding() {
        let text = "é𝄞x\r\nb\rc\n";
        assert_eq!(at(text, 0, 3, Encoding::Utf16), "é𝄞".len());
        assert_eq!(at(text, 0, 6, Encoding::Utf8), "é𝄞".len());
        assert_eq!(at(text, 0, 99, Encoding::Utf16), "é𝄞x".len());
        // Within a pair of units: before it.
        assert_eq!(at(text, 0, 2, Encoding::Utf16), "é".len());
        assert_eq!(at(text, 1, 1, Encoding::Utf16), "é𝄞x\r\nb".len());
        assert_eq!(at(text, 2, 0, Encoding::Utf16), "é𝄞x\r\nb\r".len());
        assert_eq!(at(text, 9, 0, Encoding::Utf16), text.len());
        let nowhere = Document::new(text).offset_of(&json!({"line": -1}), Encoding::Utf16);
        assert_eq!(nowhere, None);
    }

    #[test]
    fn changes_replace_a_part_or_all() {
        let mut document = Document::new("one\ntwo\n");
        let position = |line: u32, character: u32| json!({"line": line, "character": character});
        let edit =
            json!({"range": {"start": position(1, 0), "end": position(1, 3)}, "text": "2\n3"});
        document.change(&edit, Encoding::Utf16);
        assert_eq!(document.text(), "one\n2\n3\n");
        document.change(&json!({"text": "all"}), Encoding::Utf16);
        assert_eq!(document.text(), "all");
    }

    proptest! {
        /// As in a text in one part, whose lines are counted from its beginning.
        #[test]
        fn any_changes_are_those_of_a_plain_text(
            begin in "[aé𝄞\r\n]{0,12}",
            edits in proptest::collection::vec(
                ((0..5_u32, 0..6_u32), (0..5_u32, 0..6_u32), "[xé𝄞\r\n]{0,3}"), 0..12),
            is_utf8: bool,
        ) {
            let encoding = if is_utf8 { Encoding::Utf8 } else { Encoding::Utf16 };
            let (mut plain, mut document) = (begin.clone(), Document::new(&begin));
            for (start, end, text) in edits {
                let offset = |(line, character)| {
                    Document::new(&plain)
                        .offset_of(&json!({"line": line, "character": character}), encoding)
                        .unwrap()
                };
                let (from, to) = (offset(start), offset(end));
                plain.replace_range(from..to.max(from), &text);
                let position = |(line, character)| json!({"line": line, "character": character});
                let range = json!({"start": position(start), "end": position(end)});
                document.change(&json!({"range": range, "text": text}), encoding);
                prop_assert_eq!(&document.text(), &plain);
            }
        }
    }
}
