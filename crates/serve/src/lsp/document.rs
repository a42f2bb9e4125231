//! Texts of open documents, and positions in them.

use ropey::Rope;
use serde_json::Value;

/// Units in which the characters of a line are counted.
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
}

/// Returns the character at a position: the end of the line if the position is beyond it, or the end of the text if the line is beyond the
/// last one.
fn char_at(text: &Rope, position: &Value, encoding: Encoding) -> Option<usize> {
    let number = |name: &str| usize::try_from(position[name].as_u64()?).ok();
    let (line, character) = (number("line")?, number("character")?);
    if line >= text.len_lines() {
        return Some(text.len_chars());
    }
    let start = text.line_to_char(line);
    let index = match encoding {
        Encoding::Utf8 => {
            let at = text.line_to_byte(line).saturating_add(character);
            text.byte_to_char(at.min(text.len_bytes()))
        }
        Encoding::Utf16 => {
            let at = text.char_to_utf16_cu(start).saturating_add(character);
            text.utf16_cu_to_char(at.min(text.len_utf16_cu()))
        }
    };
    Some(index.min(line_end(text, line)))
}

/// Returns the character at the end of a line, before its line break: `\n`, `\r\n` or `\r`.
fn line_end(text: &Rope, line: usize) -> usize {
    let start = text.line_to_char(line);
    let mut end = text.line_to_char(line + 1);
    for line_break in ['\n', '\r'] {
        if end > start && text.char(end - 1) == line_break {
            end -= 1;
        }
    }
    end
}

/// Document that is open in the editor.
#[derive(Debug)]
pub(crate) struct Document {
    text: Rope,
    version: Option<i64>,
    /// Reason why the text may differ from the editor's.
    lost: Option<String>,
}

impl Document {
    /// Opens the document of a `TextDocumentItem`.
    ///
    /// # Errors
    /// The item has no text.
    pub(crate) fn open(item: &Value) -> Result<Self, String> {
        let text = item["text"].as_str().ok_or("textDocument.text is not a text")?;
        Ok(Self { text: Rope::from_str(text), version: version(item)?, lost: None })
    }

    /// Replaces the document by one that was opened again. If that one is older, the text becomes unknown, as after an invalid change.
    ///
    /// # Errors
    /// The document has an older version.
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

    /// Makes the text unknown, as after an invalid change.
    pub(crate) fn lose(&mut self, reason: &str) {
        self.lost.get_or_insert_with(|| reason.to_owned());
    }

    /// Returns the text, or the reason why it is not known.
    pub(crate) fn text(&self) -> Result<String, &str> {
        self.lost.as_deref().map_or_else(|| Ok(self.text.to_string()), Err)
    }

    /// Returns the number of bytes before a position. A character beyond the end of its line means the line's end, and a line beyond the
    /// last one means the end of the text.
    pub(crate) fn offset_of(&self, position: &Value, encoding: Encoding) -> Option<usize> {
        Some(self.text.char_to_byte(char_at(&self.text, position, encoding)?))
    }

    /// Applies the parameters of `textDocument/didChange`. After an invalid change the text is unknown, until a change replaces all of it.
    ///
    /// # Errors
    /// A change is invalid.
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
        // A rejected change still sets the version, so that the next change can follow it.
        self.version = version.or(known);
        check_order(version, known)?;
        let edits = params["contentChanges"].as_array().ok_or("contentChanges is not a list")?;
        (0..).zip(edits).try_for_each(|(number, edit)| {
            let edited = self.edit(edit, encoding);
            edited.map_err(|reason| format!("contentChanges[{number}].{reason}"))
        })
    }

    /// Replaces a range of the text, or the whole text if the edit has no range.
    fn edit(&mut self, edit: &Value, encoding: Encoding) -> Result<(), String> {
        let (new, range) = (edit["text"].as_str().ok_or("text is not a text")?, &edit["range"]);
        if range.is_null() {
            self.text = Rope::from_str(new);
            self.lost = None;
            return Ok(());
        }
        if self.lost.is_some() {
            return Ok(());
        }
        let boundary = |name: &str| {
            let at = char_at(&self.text, &range[name], encoding);
            at.ok_or_else(|| format!("range.{name} is {}, not a line and a character", range[name]))
        };
        let (start, end) = (boundary("start")?, boundary("end")?);
        if end < start {
            return Err("range ends before it starts".into());
        }
        self.text.remove(start..end);
        self.text.insert(start, new);
        Ok(())
    }
}

fn check_order(version: Option<i64>, known: Option<i64>) -> Result<(), String> {
    match version.zip(known).filter(|(new, known)| new < known) {
        None => Ok(()),
        Some((new, known)) => Err(format!("textDocument.version is {new}, behind version {known}")),
    }
}

/// Returns the version of a document, which editors may omit.
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
        let text = Rope::from_str(text);
        let position = json!({"line": line, "character": character});
        text.char_to_byte(char_at(&text, &position, encoding).unwrap())
    }

    #[test]
    fn positions_count_units_of_the_encoding() {
        let text = "é𝄞x\r\nb\rc\n";
        assert_eq!(at(text, 0, 3, Encoding::Utf16), "é𝄞".len());
        assert_eq!(at(text, 0, 6, Encoding::Utf8), "é𝄞".len());
        assert_eq!(at(text, 0, 99, Encoding::Utf16), "é𝄞x".len());
        // A position within a surrogate pair means the position before the pair.
        assert_eq!(at(text, 0, 2, Encoding::Utf16), "é".len());
        assert_eq!(at(text, 1, 1, Encoding::Utf16), "é𝄞x\r\nb".len());
        assert_eq!(at(text, 2, 0, Encoding::Utf16), "é𝄞x\r\nb\r".len());
        assert_eq!(at(text, 9, 0, Encoding::Utf16), text.len());
        assert!(char_at(&Rope::from_str(text), &json!({"line": -1}), Encoding::Utf16).is_none());
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
            // Replacing a part does not help; replacing the whole text does.
            assert!(change(json!(5), part(at(0, 0), at(0, 0))).1.is_err());
            let (_, text) = change(json!(5), json!({"text": "all\n"}));
            assert_eq!(text.as_deref(), Ok("all\n"));
        }
        // A position beyond the text's end means its end, and the version may be missing.
        let (_, text) = change(Value::Null, part(at(0, 9), at(9, 0)));
        assert_eq!(text.as_deref(), Ok("all2\n3"));
    }

    /// Returns the byte of a position, counted character by character.
    fn plain_offset(text: &str, line: usize, character: usize, encoding: Encoding) -> usize {
        let (mut at, mut rest) = ((0, 0), text);
        while let Some(char) = rest.chars().next() {
            let line_break = ["\r\n", "\n", "\r"].into_iter().find(|end| rest.starts_with(end));
            let units = match encoding {
                Encoding::Utf8 => char.len_utf8(),
                Encoding::Utf16 => char.len_utf16(),
            };
            let is_there = at.0 == line && (line_break.is_some() || at.1 + units > character);
            if is_there {
                break;
            }
            at = if line_break.is_some() { (at.0 + 1, 0) } else { (at.0, at.1 + units) };
            rest = &rest[line_break.map_or(char.len_utf8(), str::len)..];
        }
        text.len() - rest.len()
    }

    proptest! {
        /// A plain text, whose positions are counted from its beginning, must change in the same way.
        #[test]
        fn any_changes_are_those_of_a_plain_text(
            begin in "[aé𝄞\r\n\u{2028}\u{b}]{0,12}",
            edits in proptest::collection::vec(
                ((0..5_usize, 0..6_usize), (0..5_usize, 0..6_usize), "[xé𝄞\r\n\u{85}]{0,3}"), 0..12),
            is_utf8: bool,
        ) {
            let encoding = if is_utf8 { Encoding::Utf8 } else { Encoding::Utf16 };
            let mut plain = begin.clone();
            let mut document = Document::open(&json!({"text": begin})).unwrap();
            for (start, end, new) in edits {
                let [from, to] = [start, end].map(|(line, character)| plain_offset(&plain, line, character, encoding));
                let [start, end] = [start, end].map(|(line, character)| json!({"line": line, "character": character}));
                let edited = document.edit(&json!({"range": {"start": start, "end": end}, "text": new}), encoding);
                prop_assert_eq!(edited.is_ok(), from <= to);
                if from <= to {
                    plain.replace_range(from..to, &new);
                }
                prop_assert_eq!(document.text().unwrap(), plain.as_str());
            }
        }
    }
}
