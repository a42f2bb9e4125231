//! Numbers that a JSON value cannot hold: integers and decimals beyond 64 bits, and `NaN`, `Infinity` and `-Infinity` from
//! Python's json.
//!
//! Such a number is read as a marked object that contains its text; this object has none of the types that readers look for.
//! [`VerbatimValue`] writes the number unchanged, or null if JSON cannot express it. The integer `-0` is read as 0, as in
//! Python, not as the decimal -0.0. `serde_json` has a feature for long integers, `arbitrary_precision`, but with that feature,
//! the enums in tokenizers' files could not be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Key of a marked object: a character that has no meaning in any text.
const MARK: &str = "\u{10fffe}";

/// Number of digits of the shortest integer that may exceed 64 bits.
const LONG: usize = 19;

/// Returns the text of a number that a JSON value cannot hold.
pub fn literal(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(MARK)?.as_str().filter(|text| is_literal(text))
}

/// Returns true if a number is an integer, and not a decimal, infinity or NaN.
pub fn is_integer(literal: &str) -> bool {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if JSON can express a number.
fn is_json(literal: &str) -> bool {
    literal.ends_with(|last: char| last.is_ascii_digit())
}

/// Returns true if a text may contain integers that would be read as other numbers, even in strings. Other numbers that a JSON
/// value cannot hold cause errors instead.
pub fn may_change(text: &str) -> bool {
    may_hold_long_integer(text) || may_hold_negative_zero(text)
}

/// Returns true if a text may contain the integer `-0`.
fn may_hold_negative_zero(text: &str) -> bool {
    memchr::memmem::find_iter(text.as_bytes(), "-0").any(|at| {
        let next = text.as_bytes().get(at + 2);
        !next.is_some_and(|next| next.is_ascii_digit() || b".eE".contains(next))
    })
}

/// Returns true if a text may contain an integer beyond 64 bits: at least [`LONG`] digits in a row. One digit of such a run is
/// at a multiple of [`LONG`], so most bytes need no check.
fn may_hold_long_integer(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    (LONG - 1..bytes.len()).step_by(LONG).filter(|&at| is_digit(at)).any(|at| {
        let before = (0..at).rev().take_while(|&at| is_digit(at)).count();
        before + (at..at + LONG).take_while(|&at| is_digit(at)).count() >= LONG
    })
}

/// Marks the numbers of a JSON text that a JSON value cannot hold; returns `None` if the text has no such number.
pub(super) fn mark_numbers(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut plain, mut from, mut at) = (String::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at + 1),
            b'-' | b'0'..=b'9' | b'I' | b'N' => {
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let end = at + bytes[at..].iter().take_while(is_part).count();
                let number = &text[at..end];
                let marked = match number {
                    "-0" => Some("0".to_owned()),
                    _ if is_literal(number) => Some(format!("{{\"{MARK}\":\"{number}\"}}")),
                    _ => None,
                };
                if let Some(marked) = marked {
                    plain += &text[from..at];
                    plain += &marked;
                    from = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    (from > 0).then(|| plain + &text[from..])
}

/// Returns the position after a string whose content begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Returns true if a JSON value cannot hold a number.
fn is_literal(text: &str) -> bool {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") {
        return true;
    }
    let is_beyond = if is_integer(text) {
        text.len() >= LONG && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
    } else {
        // Python reads `1e400` as infinity.
        text.parse().is_ok_and(f64::is_infinite)
    };
    is_beyond && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Files and lines with a NaN or an Infinity; each line counts once, no matter how often it is read.
static NOT_JSON: Mutex<BTreeMap<PathBuf, BTreeSet<usize>>> = Mutex::new(BTreeMap::new());

/// Remembers a line whose marked text contains a NaN or an Infinity.
pub(super) fn remember(path: &Path, line: usize, marked: &str) {
    let mark = format!("{{\"{MARK}\":\"");
    let mut numbers = marked.split(&mark).skip(1).filter_map(|rest| rest.split('"').next());
    if numbers.any(|number| !is_json(number)) {
        let mut all = NOT_JSON.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(path.to_owned()).or_default().insert(line);
    }
}

/// Returns the remembered files and lines, and forgets them.
pub fn take_not_json() -> BTreeMap<PathBuf, BTreeSet<usize>> {
    std::mem::take(&mut NOT_JSON.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Value whose marked numbers are written as they were read, or as null if JSON cannot express them.
#[derive(Debug, Clone, Copy)]
pub struct VerbatimValue<'a>(pub &'a Value);

impl Serialize for VerbatimValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(values) => {
                let mut sequence = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    sequence.serialize_element(&VerbatimValue(value))?;
                }
                sequence.end()
            }
            Value::Object(fields) => match literal(self.0) {
                Some(number) => {
                    let number = Some(number).filter(|number| is_json(number));
                    let number =
                        number.and_then(|number| RawValue::from_string(number.into()).ok());
                    number.serialize(serializer)
                }
                None => {
                    let mut map = serializer.serialize_map(Some(fields.len()))?;
                    for (name, value) in fields {
                        map.serialize_entry(name, &VerbatimValue(value))?;
                    }
                    map.end()
                }
            },
            other => other.serialize(serializer),
        }
    }
}

/// Returns a record as a line with a line end.
pub fn line(record: &Value) -> Vec<u8> {
    // Writing our values to memory cannot fail: all keys are texts.
    let mut line = serde_json::to_vec(&VerbatimValue(record)).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::super::jsonl::{kind, parse};
    use super::*;

    /// 2^64 and larger, as Python reads and writes them; 2^64 − 1 and −2^63 are 64-bit integers.
    #[test]
    fn long_integers_keep_their_digits() {
        let text = r#"{"a":[18446744073709551616,-9223372036854775809],"b":{"c":123456789012345678901234567890},"d":18446744073709551615,"e":-9223372036854775808,"f":"18446744073709551616","g":0.125}"#;
        let object = Value::Object(parse(Path::new("x"), 1, text.as_bytes()).unwrap());
        assert_eq!(serde_json::to_string(&VerbatimValue(&object)).unwrap(), text);
        assert_eq!(kind(&object["a"][0]), "an integer beyond 64 bits");
        assert_eq!((object["a"][0].as_f64(), object["d"].as_u64()), (None, Some(u64::MAX)));
    }

    #[test]
    fn what_python_writes_for_infinite_numbers_is_null_again() {
        let text = r#"{"a": NaN, "b": [Infinity, -Infinity, "NaN", "\"Infinity", "\\"], "c": 1e5}"#;
        let object = Value::Object(parse(Path::new("x"), 1, text.as_bytes()).unwrap());
        let written = serde_json::to_string(&VerbatimValue(&object)).unwrap();
        assert_eq!(written, r#"{"a":null,"b":[null,null,"NaN","\"Infinity","\\"],"c":100000.0}"#);
        assert_eq!([&object["a"], &object["b"][1]].map(kind), ["NaN", "-Infinity"]);
        for other in ["nan", "-NaN", "Inf", "+Infinity", "NaNa", "1e", "01234567890123456789012"] {
            let text = format!("{{\"a\": {other}}}");
            assert!(parse(Path::new("x"), 1, text.as_bytes()).is_err(), "{other}");
        }
    }

    /// As in Python, -0 is 0 and 1e400 is infinity. Strings do not change.
    #[test]
    fn negative_zeros_and_huge_decimals_are_read_as_python_reads_them() {
        let text = r#"{"a":[-0,-0.0,1e400,-1E+999],"b":-0,"c":"-0, 1e400","d":-0e1,"e":[ -0 ]}"#;
        let object = Value::Object(parse(Path::new("x"), 1, text.as_bytes()).unwrap());
        let written = serde_json::to_string(&VerbatimValue(&object)).unwrap();
        let wanted = r#"{"a":[0,-0.0,1e400,-1E+999],"b":0,"c":"-0, 1e400","d":-0.0,"e":[0]}"#;
        assert_eq!(written, wanted);
        assert_eq!((object["b"].as_u64(), object["a"][2].as_f64()), (Some(0), None));
        assert_eq!(
            [&object["a"][2], &object["a"][1]].map(kind),
            ["a number beyond 64 bits", "a number"]
        );
        for other in ["01e400", "1.e400", "infinity", "-00"] {
            let text = format!("{{\"a\": {other}}}");
            assert!(parse(Path::new("x"), 1, text.as_bytes()).is_err(), "{other}");
        }
    }

    /// Runs of digits at every position: one digit too short, and just long enough.
    #[test]
    fn a_long_run_of_digits_is_found_wherever_it_is() {
        for before in 0..60 {
            let text = |digits: usize| format!("{}{}x", "x".repeat(before), "7".repeat(digits));
            assert!(!may_hold_long_integer(&text(LONG - 1)), "{before}");
            assert!(
                may_hold_long_integer(&text(LONG)) && may_hold_long_integer(&text(45)),
                "{before}"
            );
        }
    }
}
