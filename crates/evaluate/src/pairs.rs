//! Reading of pairs of a target and a prediction, which need no task file.

use std::path::Path;

use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Fields, Object, Reader, RecordAddress};
use repoformer_text::language::Language;
use serde::Deserialize;

use crate::predictions::samples;

/// Target and its prediction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// 0-based row in the file.
    pub row: usize,
    /// Id in the file.
    pub task_id: String,
    /// Expected text.
    pub target: String,
    /// Predicted texts; at least one.
    pub samples: Vec<String>,
    /// Text before the hole, if the file contains it.
    pub prompt: Option<String>,
    /// Programming language, if the file names it.
    pub language: Option<Language>,
}

/// Content of a file of pairs.
#[derive(Debug)]
pub struct ReadPairs {
    /// Pairs that can be scored.
    pub pairs: Vec<Pair>,
    /// Lines that cannot be used.
    pub problems: Vec<Error>,
}

/// Reads pairs, `{"task_id", "target", "pred"[, "prompt", "language"]}`; `pred` is a text or a list of samples.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<ReadPairs> {
    let mut reader = Reader::open(path)?;
    let (mut pairs, mut problems) = (Vec::new(), Vec::new());
    while let Some((at, bytes)) = reader.next_record()? {
        let pair = match PlainPair::read(at, bytes) {
            Some(pair) => Ok(pair),
            None => {
                jsonl::parse(path, at.line, bytes).and_then(|object| read_pair(path, at, &object))
            }
        };
        match pair {
            Ok(pair) => pairs.push(pair),
            Err(problem) => keep(&mut problems, path, problem),
        }
    }
    Ok(ReadPairs { pairs, problems })
}

/// Reads a pair from a record of any form.
///
/// # Errors
/// A field is missing or of another type, or the language is unknown.
pub fn read_pair(
    path: &Path,
    RecordAddress { line, row }: RecordAddress,
    object: &Object,
) -> Result<Pair> {
    let fields = Fields::new(path, line, "", object);
    let optional = |name: &str| fields.optional_string(name).map(|text| text.map(str::to_owned));
    Ok(Pair {
        row,
        task_id: fields.task_id()?,
        target: fields.string("target")?.to_owned(),
        samples: samples(path, line, object)?,
        prompt: optional("prompt")?,
        language: optional("language")?
            .map(|name| {
                let language = name.parse::<Language>();
                language.map_err(|reason| fields.error(format!("field 'language': {reason}")))
            })
            .transpose()?,
    })
}

/// Fields of nearly every record. They are read without a map, since reading takes half of the time of scoring lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainPair {
    task_id: String,
    target: String,
    pred: String,
    prompt: Option<String>,
    language: Option<String>,
}

impl PlainPair {
    /// Reads a record with exactly these fields; returns `None` for any other record, valid or not.
    fn read(RecordAddress { row, .. }: RecordAddress, bytes: &[u8]) -> Option<Pair> {
        let text = std::str::from_utf8(bytes).ok()?;
        let plain: Self = serde_json::from_str(text.trim_ascii_end()).ok()?;
        let language = match plain.language {
            Some(name) => Some(name.parse().ok()?),
            None => None,
        };
        Some(Pair {
            row,
            task_id: plain.task_id,
            target: plain.target,
            samples: vec![plain.pred],
            prompt: plain.prompt,
            language,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_lines_are_kept_and_bad_ones_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.jsonl");
        let lines = [
            r#"{"task_id": "a", "target": "x", "pred": "y"}"#,
            r#"{"task_id": "b", "pred": "y"}"#,
            r#"{"task_id": 7, "target": "", "pred": ["y", ""], "prompt": "p", "language": "python"}"#,
            r#"{"task_id": "c", "target": "x", "pred": ["y", 1]}"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let ReadPairs { pairs, problems } = read(&path).unwrap();
        let first = Pair {
            row: 0,
            task_id: "a".into(),
            target: "x".into(),
            samples: vec!["y".into()],
            prompt: None,
            language: None,
        };
        let second = Pair {
            row: 2,
            task_id: "7".into(),
            target: String::new(),
            samples: vec!["y".into(), String::new()],
            prompt: Some("p".into()),
            language: Some(Language::Python),
        };
        assert_eq!(pairs, [first, second]);
        let [missing, odd] = &problems[..] else { panic!("{problems:?}") };
        assert!(missing.to_string().ends_with("p.jsonl:2: field 'target' is missing"));
        assert!(odd.to_string().ends_with("field 'pred[1]' must be a string, not a number"));
    }
}
