//! Checksums in JSON: the last field of a line or a document, which shows that the record has not been changed.
//!
//! The field is `record_checksum`. A record without this field is accepted: it comes from an older version or another program.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::error::{Error, Result};

/// Name of the field.
pub(crate) const FIELD: &str = "record_checksum";
/// Format of the lines of logs, and of files with a manifest. A line or file in another format has a field `format`.
const FORMAT: u64 = 1;
/// Number of hex digits of the checksum, which is the beginning of the BLAKE3 digest.
const DIGITS: usize = 16;
/// Start of the field in a record of one line.
const MARK: &[u8] = b",\"record_checksum\":\"";

/// Adds the checksum to an object: as another field of its line, or as another line of an indented document.
///
/// ```
/// use repoformer_store::seal::{Seal, check, seal};
/// let line = String::from_utf8(seal(br#"{"a":1}"#.to_vec())).unwrap();
/// assert!(line.starts_with(r#"{"a":1,"record_checksum":""#));
/// assert_eq!(check(line.as_bytes()), Seal::Whole);
/// assert_eq!(check(line.replacen('1', "3", 1).as_bytes()), Seal::Broken);
/// ```
pub fn seal(json: Vec<u8>) -> Vec<u8> {
    let text = json.trim_ascii_end();
    let Some(fields) = text.strip_suffix(b"}") else {
        return json;
    };
    let fields = fields.trim_ascii_end();
    if fields.ends_with(b"{") {
        return json;
    }
    let digest = blake3::hash(fields).to_hex();
    let digits = &digest[..DIGITS];
    let mut sealed = fields.to_vec();
    let field = if fields.contains(&b'\n') {
        format!(",\n  \"{FIELD}\": \"{digits}\"\n}}")
    } else {
        format!(",\"{FIELD}\":\"{digits}\"}}")
    };
    sealed.extend_from_slice(field.as_bytes());
    sealed.extend_from_slice(&json[text.len()..]);
    sealed
}

/// State of a record's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// The record is unchanged.
    Whole,
    /// The record was changed.
    Broken,
    /// The record has no checksum.
    Without,
}

/// Verifies the checksum of a record.
pub fn check(json: &[u8]) -> Seal {
    let name = format!("\"{FIELD}\"");
    let Some(at) = memchr::memmem::rfind(json, name.as_bytes()) else {
        return Seal::Without;
    };
    let Some(fields) = json[..at].trim_ascii_end().strip_suffix(b",") else {
        return Seal::Broken;
    };
    let again = seal([fields, b"}"].concat());
    if again == json.trim_ascii_end() { Seal::Whole } else { Seal::Broken }
}

/// Returns true if a line was written with a checksum, valid or not.
pub(crate) fn is_sealed(line: &[u8]) -> bool {
    memchr::memmem::find(line, MARK).is_some()
}

/// Describes how the format of a record differs from this program's, if it does: `written in format 2; this is …`.
pub(crate) fn other_format(record: &Value) -> Option<String> {
    let format = record["format"].as_u64().filter(|format| *format != FORMAT)?;
    let version = env!("CARGO_PKG_VERSION");
    Some(format!("in format {format}; this is repoformer {version} with format {FORMAT}"))
}

/// Describes how the format of a line differs from this program's, if it does.
pub(crate) fn other_format_of_line(line: &[u8]) -> Option<String> {
    memchr::memmem::find(line, b"\"format\":")?;
    other_format(&serde_json::from_slice(line).ok()?)
}

/// Checks that a document is unchanged.
///
/// # Errors
/// The document was changed.
pub(crate) fn check_document(path: &Path, json: &[u8]) -> Result<()> {
    match check(json) {
        Seal::Broken => Err(Error::artifact(path, DAMAGED, WAY_OUT)),
        Seal::Whole | Seal::Without => Ok(()),
    }
}

/// Reason given when a document is rejected.
pub(crate) const DAMAGED: &str = "damaged: its checksum does not match";
/// Hint given when a document is rejected.
const WAY_OUT: &str =
    "write it again; if you edited it on purpose, remove its field `record_checksum`";

/// Damage that was found and skipped because the damaged content is rebuilt.
static FOUND: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Remembers a line that is skipped because it is damaged or written in another `format`.
pub(crate) fn pass_over(path: &Path, line: usize, format: Option<&str>) {
    let (reason, end) = match format {
        Some(format) => (format!("written {format}"), "use the later version"),
        None => ("damaged".to_owned(), "remove the line"),
    };
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.insert(format!(
        "{}:{line}: {reason}: left out, and rebuilt when needed; {end} to stop this warning",
        path.display()
    ));
}

/// Remembers a copy that is rebuilt.
pub fn make_again(path: &Path, reason: &str) {
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.insert(format!("{}: rebuilt: {reason}", path.display()));
}

/// Returns the remembered sentences, one for each damaged line or copy, and forgets them.
pub fn take_passed_over() -> BTreeSet<String> {
    std::mem::take(&mut FOUND.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flip_is_seen_in_lines_and_documents() {
        for text in ["{\"a\":1,\"b\":\"x\"}", "{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n"] {
            let sealed = seal(text.as_bytes().to_vec());
            assert_eq!(check(&sealed), Seal::Whole);
            let value: serde_json::Value = serde_json::from_slice(&sealed).unwrap();
            assert_eq!((&value["a"], &value["b"]), (&1.into(), &"x".into()));
            let end = sealed.trim_ascii_end().len();
            let field = memchr::memmem::find(&sealed, b"record_checksum").unwrap();
            for at in 0..end {
                for bit in 0..8 {
                    let mut flipped = sealed.clone();
                    flipped[at] ^= 1 << bit;
                    // Without the field's name, the record looks like one of another program; its own fields are intact.
                    let is_name = (field - 1..field + FIELD.len() + 1).contains(&at);
                    let wanted = if is_name { Seal::Without } else { Seal::Broken };
                    assert_eq!(check(&flipped), wanted, "byte {at}, bit {bit}");
                }
            }
        }
        assert_eq!(check(b"{\"a\":1}"), Seal::Without);
        assert_eq!(seal(b"{}".to_vec()), b"{}");
    }
}
