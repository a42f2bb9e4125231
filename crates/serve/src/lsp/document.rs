//! Texts of open documents, and positions in them.

use serde_json::Value;

/// Units that the characters of a line are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
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

/// Text of a document. The two parts meet where it was changed last: changes mostly lie near each other, or follow one
/// another through the document, so that little moves from one part to the other.
#[derive(Debug, Default)]
struct Text {
    before: Vec<u8>,
    /// Backwards.
    behind: Vec<u8>,
    /// Where it was changed last, from where on positions are counted.
    known: DocumentPosition,
}

/// A place in a document.
#[derive(Debug, Clone, Copy, Default)]
struct DocumentPosition {
    line: usize,
    character: usize,
    /// Bytes before it.
    offset: usize,
}

impl Text {
    fn new(text: &str) -> Self {
        Self { behind: text.bytes().rev().collect(), ..Self::default() }
    }

    fn whole(&self) -> String {
        let bytes = self.before.iter().copied().chain(self.behind.iter().rev().copied()).collect();
        // Parts meet between characters.
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// The place of a position; a character behind the end of its line is its end, a line behind the last the end of the text.
    fn place(&self, position: &Value, encoding: Encoding) -> Option<DocumentPosition> {
        let number = |name: &str| Some(position[name].as_u64()? as usize);
        let (line, character) = (number("line")?, number("character")?);
        let mut at = self.known;
        if at.line != line {
            // Lines are counted from the beginning of one.
            at = self.line_start(at);
            while at.line > line {
                let end =
                    DocumentPosition { line: at.line - 1, character: 0, offset: at.offset - 1 };
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
    fn within_line(
        &self,
        mut at: DocumentPosition,
        character: usize,
        encoding: Encoding,
    ) -> DocumentPosition {
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
    fn line_start(&self, mut at: DocumentPosition) -> DocumentPosition {
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

    /// Replaces what is between two places.
    fn replace(&mut self, start: DocumentPosition, end: DocumentPosition, new: &str) {
        let removed = end.offset.saturating_sub(start.offset);
        self.known = start;
        self.part_at(start.offset);
        self.behind.truncate(self.behind.len() - removed);
        self.before.extend_from_slice(new.as_bytes());
        let has_joined = start.offset < self.len() && self.byte(start.offset) == b'\n';
        if has_joined && self.before[..start.offset].ends_with(b"\r") {
            // The carriage return ended a line, and is half of a line's end now: positions are counted from that line on.
            let end = DocumentPosition {
                line: start.line.saturating_sub(1),
                character: 0,
                offset: start.offset - 1,
            };
            self.known = self.line_start(end);
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

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    text: Text,
    version: Option<i64>,
    /// Why the text is no longer known to be the editor's.
    lost: Option<String>,
}

impl Document {
    /// Opens a `TextDocumentItem`.
    ///
    /// # Errors
    /// It has no text.
    pub(crate) fn open(item: &Value) -> Result<Self, String> {
        let text = item["text"].as_str().ok_or("textDocument.text is not a text")?;
        Ok(Self { text: Text::new(text), version: version(item)?, lost: None })
    }

    /// Takes the text of a document that was opened again. An older one leaves the text unknown, as a wrong change does.
    ///
    /// # Errors
    /// It is of an older version.
    pub(crate) fn open_again(&mut self, other: Self) -> Result<(), String> {
        let opened = check_order(other.version, self.version);
        match &opened {
            Ok(()) => *self = other,
            Err(reason) => {
                self.version = other.version;
                self.lost = Some(reason.clone());
            }
        }
        opened
    }

    /// The text, or why it is not known.
    pub(crate) fn text(&self) -> Result<String, &str> {
        self.lost.as_deref().map_or_else(|| Ok(self.text.whole()), Err)
    }

    /// Bytes before a position; a character behind the end of its line is its end, a line behind the last the end of the text.
    pub(crate) fn offset_of(&self, position: &Value, encoding: Encoding) -> Option<usize> {
        Some(self.text.place(position, encoding)?.offset)
    }

    /// Applies the parameters of `textDocument/didChange`. A wrong change leaves the text unknown, until another one replaces all of it.
    ///
    /// # Errors
    /// One of the changes is wrong.
    pub(crate) fn change(&mut self, params: &Value, encoding: Encoding) -> Result<(), String> {
        let changed = self.try_change(params, encoding);
        if let Err(reason) = &changed {
            self.lost = Some(reason.clone());
        }
        changed
    }

    fn try_change(&mut self, params: &Value, encoding: Encoding) -> Result<(), String> {
        let version = version(&params["textDocument"])?;
        let known = self.version;
        // Behind a refused change, whatever version it had, another one may follow.
        self.version = version.or(known);
        check_order(version, known)?;
        let edits = params["contentChanges"].as_array().ok_or("contentChanges is not a list")?;
        (0..).zip(edits).try_for_each(|(number, edit)| {
            let edited = self.edit(edit, encoding);
            edited.map_err(|reason| format!("contentChanges[{number}].{reason}"))
        })
    }

    /// Replaces a range of the text, or all of it if the edit names no range.
    fn edit(&mut self, edit: &Value, encoding: Encoding) -> Result<(), String> {
        let (new, range) = (edit["text"].as_str().ok_or("text is not a text")?, &edit["range"]);
        if range.is_null() {
            self.text = Text::new(new);
            self.lost = None;
            return Ok(());
        }
        if self.lost.is_some() {
            return Ok(());
        }
        let place = |name: &str| {
            let place = self.text.place(&range[name], encoding);
            let wrong = || format!("range.{name} is {}, not a line and a character", range[name]);
            place.ok_or_else(wrong)
        };
        let (start, end) = (place("start")?, place("end")?);
        if end.offset < start.offset {
            return Err("range ends before it starts".into());
        }
        self.text.replace(start, end, new);
        Ok(())
    }
}

fn check_order(version: Option<i64>, known: Option<i64>) -> Result<(), String> {
    match version.zip(known).filter(|(new, known)| new < known) {
        None => Ok(()),
        Some((new, known)) => Err(format!("textDocument.version is {new}, behind version {known}")),
    }
}

/// The version of a document, which editors may leave out.
fn version(document: &Value) -> Result<Option<i64>, String> {
    match &document["version"] {
        Value::Null => Ok(None),
        Value::Number(number) if number.is_i64() => Ok(number.as_i64()),
        other => Err(format!("textDocument.version is {other}, not a whole number")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn at(text: &str, line: usize, character: usize, encoding: Encoding) -> usize {
        let position = json!({"line": line, "character": character});
        Text::new(text).place(&position, encoding).unwrap().offset
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
        assert!(Text::new(text).place(&json!({"line": -1}), Encoding::Utf16).is_none());
    }

    #[test]
    fn changes_replace_a_part_or_all_and_wrong_ones_are_told() {
        let mut document = Document::open(&json!({"text": "one\ntwo\n", "version": 3})).unwrap();
        let at = |line: i64, character: i64| json!({"line": line, "character": character});
        let part = |start: Value, end: Value| json!({"range": {"start": start, "end": end}, "text": "2\n3"});
        let mut change = |version: Value, edit: Value| {
            let params = json!({"textDocument": {"version": version}, "contentChanges": [edit]});
            let changed = document.change(&params, Encoding::Utf16);
            (changed, document.text().map_err(str::to_owned))
        };
        let (_, text) = change(json!(4), part(at(1, 0), at(1, 3)));
        assert_eq!(text.as_deref(), Ok("one\n2\n3\n"));
        for (version, edit, says) in [
            (json!(5), part(at(-1, 0), at(1, 0)), "contentChanges[0].range.start"),
            (json!(5), part(at(0, 0), at(0, -1)), "contentChanges[0].range.end"),
            (json!(5), part(at(0, 0), json!({"line": 0})), "contentChanges[0].range.end"),
            (json!(5), part(at(0, 0), json!(7)), "contentChanges[0].range.end"),
            (json!(5), part(at(1, 0), at(0, 0)), "ends before it starts"),
            (json!(5), json!({"text": 7}), "contentChanges[0].text"),
            (json!(1), part(at(0, 0), at(0, 0)), "version is 1, behind version 5"),
            (json!(2), json!({"text": "stale"}), "version is 2, behind version 5"),
            (json!(5.5), json!({"text": "of no version"}), "version is 5.5"),
        ] {
            let (changed, text) = change(version, edit);
            let reason = changed.unwrap_err();
            assert!(reason.contains(says), "{reason}");
            assert_eq!(text, Err(reason), "it is not known");
            // A part of it does not help; all of it does.
            assert!(change(json!(5), part(at(0, 0), at(0, 0))).1.is_err());
            let (_, text) = change(json!(5), json!({"text": "all\n"}));
            assert_eq!(text.as_deref(), Ok("all\n"));
        }
        // Beyond its end there is its end, and a version may be missing.
        let (_, text) = change(Value::Null, part(at(0, 9), at(9, 0)));
        assert_eq!(text.as_deref(), Ok("all2\n3"));
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
            let (mut plain, mut document) = (begin.clone(), Text::new(&begin));
            for (start, end, text) in edits {
                let offset = |(line, character)| {
                    let position = json!({"line": line, "character": character});
                    Text::new(&plain).place(&position, encoding).unwrap().offset
                };
                let (from, to) = (offset(start), offset(end));
                plain.replace_range(from..to.max(from), &text);
                let place = |(line, character)| {
                    document.place(&json!({"line": line, "character": character}), encoding).unwrap()
                };
                let (start, end) = (place(start), place(end));
                document.replace(start, end, &text);
                prop_assert_eq!(&document.whole(), &plain);
            }
        }
    }
}
