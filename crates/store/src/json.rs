//! Reading of JSON that other programs wrote.

use std::fmt;

use repoformer_text::reserved::{RESERVED, holds_reserved_name};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_json::Value;
use serde_json::de::StrRead;

/// Parses a JSON text. An escaped lone half of a surrogate pair (`"\ud83d"`) becomes U+FFFD. JavaScript writes such halves for
/// strings that are cut inside a character, Python for bytes that are not UTF-8; no Unicode text can contain them.
///
/// ```
/// use repoformer_store::json::parse;
/// assert_eq!(parse(br#"["\ud83d!", "\ud83d\ude00"]"#).unwrap(), serde_json::json!(["\u{fffd}!", "😀"]));
/// ```
///
/// # Errors
/// The text is not JSON, or has a field of the [reserved name](RESERVED). The error has the line and column in `text`.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    // If the text is known to be UTF-8, the strings need no validation of their own.
    match std::str::from_utf8(text) {
        Ok(text) => parse_with(text, |json| Value::deserialize(json)),
        Err(_) => serde_json::from_slice(text),
    }
}

/// Parses a JSON text as [`parse`] does, with a reader that may skip parts.
///
/// # Errors
/// The same as for [`parse`], and the errors of the reader.
pub fn parse_with<T>(
    text: &str,
    read: impl Fn(&mut serde_json::Deserializer<StrRead<'_>>) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    check_names(text.as_bytes())?;
    let parse = |text: &str| {
        let mut json = serde_json::Deserializer::from_str(text);
        let value = read(&mut json)?;
        json.end()?;
        Ok(value)
    };
    parse(text).or_else(|error| match without_lone_surrogates(text) {
        Some(text) => parse(&text),
        None => Err(error),
    })
}

/// Checks that no field has the [reserved name](RESERVED).
pub(super) fn check_names(text: &[u8]) -> serde_json::Result<()> {
    if holds_reserved_name(text) {
        Err(serde_json::Error::custom(format_args!(
            "a field has the reserved name '{RESERVED}'; rename it"
        )))
    } else {
        Ok(())
    }
}

/// Returns an upper bound for the number of values in a JSON text, in which names of fields count too. Texts that are not JSON
/// may have a lower count.
///
/// ```
/// use repoformer_store::json::count_values;
/// assert_eq!(count_values(br#"{"a": [1, "b, [c]"]}"#), 5);
/// ```
pub fn count_values(text: &[u8]) -> u64 {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Replaces each escaped lone surrogate with U+FFFD, in the same number of bytes; returns `None` if the text has none.
pub(super) fn without_lone_surrogates(text: &str) -> Option<String> {
    let code = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut plain, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let escape = at + found;
        at = match code(escape) {
            Some(0xd800..=0xdbff) if matches!(code(escape + 6), Some(0xdc00..=0xdfff)) => {
                escape + 12
            }
            Some(0xd800..=0xdfff) => {
                plain += &text[from..escape];
                plain += "\\ufffd";
                from = escape + 6;
                from
            }
            _ => (escape + 2).min(text.len()),
        };
        // The character after a backslash may have several bytes.
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    (from > 0).then(|| plain + &text[from..])
}

/// Removes the byte-order mark that some programs write before a text.
pub fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Returns true if a JSON text is UTF-8 and has no lone surrogate, so that [`parse`] changes none of its characters.
pub fn is_unicode(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| without_lone_surrogates(text).is_none())
}

/// Bytes of a JSON string with any content; a lone surrogate takes three bytes, as in WTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringBytes(pub Vec<u8>);

impl<'de> Deserialize<'de> for StringBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = StringBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<StringBytes, E> {
                Ok(StringBytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Decoder of a text that arrives in pieces. A piece may end inside a character: between its bytes in UTF-8, or between the
/// halves of its surrogate pair. Bytes that form no character become U+FFFD.
///
/// ```
/// use repoformer_store::json::PieceDecoder;
/// let mut decoder = PieceDecoder::default();
/// let pieces = [&b"a \xf0\x9f"[..], b"\x98\x80", b"\xf0"].map(|piece| decoder.decode(piece));
/// assert_eq!((pieces.concat(), decoder.finish()), ("a 😀".into(), "\u{fffd}"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct PieceDecoder {
    /// Start of a character that the next piece may complete.
    half: Vec<u8>,
}

impl PieceDecoder {
    /// Decodes a piece, and returns the characters that it completes.
    pub fn decode(&mut self, piece: &[u8]) -> String {
        let bytes = [&std::mem::take(&mut self.half), piece].concat();
        let (mut text, mut rest) = (String::new(), &bytes[..]);
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => return text + valid,
                Err(error) => error,
            };
            let (valid, behind) = rest.split_at(error.valid_up_to());
            text += &String::from_utf8_lossy(valid);
            let (character, length) = match behind {
                // A high surrogate followed by a low one.
                [0xed, 0xa0..=0xaf, 0x80..=0xbf, 0xed, 0xb0..=0xbf, 0x80..=0xbf, ..] => {
                    let bits = |at: usize| u32::from(behind[at] & 0x3f);
                    let [high, low] = [1, 4].map(|at| (bits(at) << 6 | bits(at + 1)) & 0x3ff);
                    (char::from_u32(0x10000 + (high << 10 | low)), 6)
                }
                [0xed, 0xa0..=0xaf, 0x80..=0xbf] => (None, 0),
                [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => (None, 3),
                _ => (None, error.error_len().unwrap_or(0)),
            };
            if length == 0 {
                self.half = behind.to_vec();
                return text;
            }
            text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = &behind[length..];
        }
    }

    /// Returns U+FFFD if the text ends inside a character.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.half).is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_pairs_are_replaced() {
        let of = |text: &str| {
            parse(text.as_bytes()).map(|value| value["a"].as_str().unwrap().to_owned())
        };
        for (text, wanted) in [
            (r#"{"a": "\ud800"}"#, "\u{fffd}"),
            (r#"{"a": "é\\\udfff é\ud83d\ude00\ud83dx"}"#, "é\\\u{fffd} é😀\u{fffd}x"),
            (r#"{"a": "\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
            (r#"{"a": "\\ud800"}"#, "\\ud800"),
            (r#"{"\udc00": 1, "a": ""}"#, ""),
        ] {
            assert_eq!(of(text).unwrap(), wanted, "{text}");
        }
        assert!(of(r#"{"a": "\ud80"}"#).is_err());
        assert!(of(r#"{"a": "\"#).is_err());
        assert!(of(r#"{"a": "\é"}"#).is_err());
        let wrong = parse(br#"{"a": "\ud800", b}"#).unwrap_err();
        assert_eq!((wrong.line(), wrong.column()), (1, 17));
    }

    /// `serde_json` would read another value, nested more deeply than it allows.
    #[test]
    fn a_field_of_the_reserved_name_is_refused() {
        for text in [
            r#"{"a": [{"$serde_json::private::RawValue": "[1]"}]}"#,
            r#"{"\u0024serde_json::private::RawValue": "}{"}"#,
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            let reason =
                "a field has the reserved name '$serde_json::private::RawValue'; rename it";
            assert_eq!(error.to_string(), reason);
            let path = std::path::Path::new("x.jsonl");
            let error = super::super::jsonl::parse(path, 3, text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("x.jsonl:3: {reason}"));
        }
        assert!(parse(br#"{"a": "$serde_json::private::RawValue"}"#).is_ok());
    }

    #[test]
    fn pieces_make_whole_characters() {
        let of = |pieces: &[&[u8]]| {
            let mut decoder = PieceDecoder::default();
            let text: String = pieces.iter().map(|piece| decoder.decode(piece)).collect();
            text + decoder.finish()
        };
        let bytes = |text: &str| serde_json::from_str::<StringBytes>(text).unwrap().0;
        let (high, low) = (bytes(r#""\ud83d""#), bytes(r#""\ude00""#));
        assert_eq!((&*high, &*low), (&b"\xed\xa0\xbd"[..], &b"\xed\xb8\x80"[..]));
        for (pieces, wanted) in [
            (&[&high[..], &low][..], "😀"),
            (&[b"a", &high, b"", &low, b"b"], "a😀b"),
            (&[&high, b"b", &low], "\u{fffd}b\u{fffd}"),
            (&[&high, &high, &low], "\u{fffd}😀"),
            (&[&low, &high], "\u{fffd}\u{fffd}"),
            (&["é😀".as_bytes()], "é😀"),
            (&[b"\xc3", b"\xa9\xe2\x82", b"\xac"], "é€"),
            (&[b"\xc3", b"x"], "\u{fffd}x"),
            (&[b"\xff\xc3(", b"\xf0\x9f\x98"], "\u{fffd}\u{fffd}(\u{fffd}"),
        ] {
            assert_eq!(of(pieces), wanted, "{pieces:?}");
        }
        // The last code point of Unicode, split at every position.
        let last = "\u{10ffff}";
        for at in 0..=4 {
            let (one, other) = last.as_bytes().split_at(at);
            assert_eq!(of(&[one, other]), last);
        }
        assert_eq!(of(&[&bytes(r#""\udbff""#), &bytes(r#""\udfff""#)]), last);
        assert!(is_unicode(br#""\ud83d\ude00""#) && !is_unicode(br#""\ud83d""#));
        assert!(!is_unicode(b"\"\xff\""));
    }
}
