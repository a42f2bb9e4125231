//! JSON that other programs wrote.

use serde_json::Value;

/// Parses a JSON text. Each half of a surrogate pair that is escaped alone (`"\ud83d"`) becomes U+FFFD: JavaScript writes
/// such halves for strings that are cut within a character, Python for bytes that are not UTF-8, and no Unicode text can
/// contain them.
///
/// ```
/// use repoformer::store::json::parse;
/// assert_eq!(parse(br#"["\ud83d!", "\ud83d\ude00"]"#).unwrap(), serde_json::json!(["\u{fffd}!", "😀"]));
/// ```
///
/// # Errors
/// The text is not JSON. The error has the line and column in `text`.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    // Text that is known to be UTF-8 need not be validated string by string.
    match std::str::from_utf8(text) {
        Ok(text) => {
            serde_json::from_str(text).or_else(|error| match without_lone_surrogates(text) {
                Some(text) => serde_json::from_str(&text),
                None => Err(error),
            })
        }
        Err(_) => serde_json::from_slice(text),
    }
}

/// Replaces each escaped lone surrogate by U+FFFD, in as many bytes; `None` if the text has none.
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
}
