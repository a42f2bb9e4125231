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

    fn length(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
        }
    }
}

/// Bytes before a position; a character behind the end of its line is its end, a line behind the last the end of the text.
pub(super) fn offset_of(text: &str, position: &Value, encoding: Encoding) -> Option<usize> {
    let number = |name: &str| Some(position[name].as_u64()? as usize);
    let (line, character) = (number("line")?, number("character")?);
    let start = match line {
        0 => 0,
        line => match line_ends(text).nth(line - 1) {
            Some(end) => end,
            None => return Some(text.len()),
        },
    };
    let (mut counted, mut offset) = (0, start);
    for c in text[start..].chars() {
        if matches!(c, '\n' | '\r') || counted + encoding.length(c) > character {
            break;
        }
        counted += encoding.length(c);
        offset += c.len_utf8();
    }
    Some(offset)
}

/// Where lines end, in bytes: lines of the protocol end with `\n`, `\r\n` or `\r`.
fn line_ends(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).filter_map(move |at| match bytes[at] {
        b'\n' => Some(at + 1),
        b'\r' if bytes.get(at + 1) != Some(&b'\n') => Some(at + 1),
        _ => None,
    })
}

/// Changes a text: a part of it, or all where no range is named.
pub(super) fn change(text: &mut String, edit: &Value, encoding: Encoding) {
    let new = edit["text"].as_str().unwrap_or_default();
    let place = |name: &str| offset_of(text, &edit["range"][name], encoding);
    match place("start").zip(place("end")) {
        Some((start, end)) => text.replace_range(start..end.max(start), new),
        None => new.clone_into(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str, line: usize, character: usize, encoding: Encoding) -> usize {
        offset_of(text, &json!({"line": line, "character": character}), encoding).unwrap()
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
        assert_eq!(offset_of(text, &json!({"line": -1}), Encoding::Utf16), None);
    }

    #[test]
    fn changes_replace_a_part_or_all() {
        let mut text = "one\ntwo\n".to_owned();
        let position = |line: u32, character: u32| json!({"line": line, "character": character});
        let edit =
            json!({"range": {"start": position(1, 0), "end": position(1, 3)}, "text": "2\n3"});
        change(&mut text, &edit, Encoding::Utf16);
        assert_eq!(text, "one\n2\n3\n");
        change(&mut text, &json!({"text": "all"}), Encoding::Utf16);
        assert_eq!(text, "all");
    }
}
