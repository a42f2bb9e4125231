//! Texts to be embedded, and the file with which a user computes their vectors.

use std::path::Path;

use repoformer_store::artifact::write_file;
use repoformer_store::error::Result;
use repoformer_store::jsonl::{self, Fields, Object};
use serde_json::json;

use crate::task::kind::RecordKind;

/// A text and its id in the file of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Id, unique within a file of texts.
    pub id: String,
    /// Text, exactly as it is embedded.
    pub text: String,
}

impl Text {
    /// Reads a record at a line of a file.
    ///
    /// # Errors
    /// A field is missing or of another type, or the digest belongs to another text.
    pub fn read(path: &Path, line: usize, record: &Object) -> Result<Self> {
        RecordKind::BeirQuery.check(path, line, record)?;
        let fields = Fields::new(path, line, "", record);
        let text = Self { id: fields.id("_id")?, text: fields.string("text")?.to_owned() };
        match fields.optional_string("digest")? {
            Some(other) if other != digest(&text.text).to_hex().as_str() => {
                Err(fields.error("field 'digest' does not match field 'text'"))
            }
            _ => Ok(text),
        }
    }
}

/// BLAKE3 of a text.
pub type Digest = blake3::Hash;

/// Returns the beginning of a text, quoted, for messages.
pub fn quote_start(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Returns the digest that identifies a text's vector: BLAKE3 of the text's UTF-8.
///
/// ```
/// let digest = repoformer_core::retrieve::dense::digest("");
/// assert!(digest.to_hex().starts_with("af1349b9f5f9a1a6")); // the first of BLAKE3's published test vectors
/// ```
pub fn digest(text: &str) -> Digest {
    blake3::hash(text.as_bytes())
}

/// Writes a file of texts with one line `{"_id", "digest", "text"}` each, in this order, which the rows of an NPY file must
/// follow.
///
/// # Errors
/// The file cannot be written; no partial file is left.
pub fn write_texts(path: &Path, texts: &[Text]) -> Result<()> {
    let mut bytes = Vec::new();
    for text in texts {
        let digest = digest(&text.text).to_hex();
        let line = json!({"_id": text.id, "digest": digest.as_str(), "text": text.text});
        bytes.extend(format!("{line}\n").into_bytes());
    }
    write_file(path, &bytes)
}

/// Reads a file of texts.
///
/// # Errors
/// The file cannot be read, or a line is wrong: it is not JSON, a field is missing, or the digest belongs to another text.
pub fn read_texts(path: &Path) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    let problems = jsonl::for_each(path, |at, object| {
        texts.push(Text::read(path, at.line, &object)?);
        Ok(())
    })?;
    // If a line were skipped, the rows of an NPY file would belong to other texts.
    problems.into_iter().next().map_or(Ok(texts), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/texts.jsonl");
        let text = |id: &str, text: &str| Text { id: id.into(), text: text.into() };
        let texts =
            vec![text("0", ""), text("r/a.py:0-20", "x = \"é\"\r\n\u{2028}\u{0}"), text("2", "x")];
        write_texts(&path, &texts).unwrap();
        assert_eq!(read_texts(&path).unwrap(), texts);
        let lines = std::fs::read_to_string(&path).unwrap();
        // The digest is BLAKE3's published test vector for no input.
        let first = "{\"_id\":\"0\",\"digest\":\"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262\",\"text\":\"\"}";
        assert_eq!(lines.lines().next(), Some(first));
        assert_eq!(lines.lines().count(), 3);
        std::fs::write(&path, lines.replace("\"text\":\"x\"", "\"text\":\"y\"")).unwrap();
        let error = read_texts(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("texts.jsonl:3: field 'digest' does not match field 'text'"),
            "{error}"
        );
    }
}
