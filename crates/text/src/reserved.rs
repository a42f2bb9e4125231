//! Field name that is refused in JSON from outside.

/// Field name that `serde_json` treats specially in an object that is read as a value: it parses the field's text as JSON. The
/// result is different data, which may exceed the limit on nesting.
pub const RESERVED: &str = "$serde_json::private::RawValue";

/// Returns true if an object in a JSON text, at any level, has a field of the [reserved name](RESERVED).
///
/// ```
/// use repoformer_text::reserved::holds_reserved_name;
/// assert!(holds_reserved_name(br#"[{"$serde_json::private::RawValue": "1"}]"#));
/// assert!(!holds_reserved_name(br#"["$serde_json::private::RawValue"]"#));
/// ```
pub fn holds_reserved_name(json: &[u8]) -> bool {
    let holds = |bytes: &[u8]| memchr::memmem::find(json, bytes).is_some();
    // Any character of the name may be escaped.
    (holds(RESERVED.as_bytes()) || holds(b"\\u00")) && names(json).any(is_reserved)
}

/// Returns true if the text of a JSON string, with its quotes, is the reserved name.
fn is_reserved(string: &[u8]) -> bool {
    const LONGEST: usize = RESERVED.len() * "\\u0000".len() + 2;
    let is_near = (RESERVED.len() + 2..=LONGEST).contains(&string.len());
    is_near && serde_json::from_slice::<String>(string).is_ok_and(|name| name == RESERVED)
}

/// Returns the texts of the strings that a colon follows, with their quotes.
fn names(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = json;
    let strings = std::iter::from_fn(move || {
        let string = &rest[memchr::memchr(b'"', rest)?..];
        let mut end = 1;
        loop {
            end += memchr::memchr2(b'"', b'\\', string.get(end..)?)?;
            if string[end] == b'"' {
                break;
            }
            end += 2;
        }
        let (string, behind) = string.split_at_checked(end + 1)?;
        rest = behind;
        Some((string, behind))
    });
    let is_name = |behind: &[u8]| behind.trim_ascii_start().first() == Some(&b':');
    strings.filter(move |(_, behind)| is_name(behind)).map(|(string, _)| string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_however_it_is_written() {
        let escaped: String =
            RESERVED.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect();
        for name in [RESERVED, &escaped, "\\u0024serde_json::private::Raw\\u0056alue"] {
            for text in [
                format!("{{\"{name}\":1}}"),
                format!("{{\"a\\\\\": \"\\\"\", \"b\": [0, {{\"c\": 1, \"{name}\" \n: \"1\"}}]}}"),
            ] {
                assert!(holds_reserved_name(text.as_bytes()), "{text}");
            }
            for text in [
                format!("{{\"a\": \"{name}\"}}"),
                format!("{{\"x{name}\": 1}}"),
                format!("{{\"a\": \"\\\"{name}\\\": 1\"}}"),
                format!("{{\"\\\\{name}\": 1}}"),
                format!("{{\"a\": \"{name}"),
                format!("{{\"a\": \"{name}\\"),
            ] {
                assert!(!holds_reserved_name(text.as_bytes()), "{text}");
            }
        }
    }
}
