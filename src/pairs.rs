//! Pairs of target and prediction that carry all that scoring needs, without any task file.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::jsonl::{self, At, Fields};
use crate::language::Language;
use crate::predictions::{id, samples};

/// One line of a file of pairs: a target and its prediction, without any task file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// 0-based place in the file.
    pub row: usize,
    /// The id the file gives it.
    pub task_id: String,
    /// What should have been predicted.
    pub target: String,
    /// What was; at least one.
    pub samples: Vec<String>,
    /// The text before the hole, where the file has it.
    pub prompt: Option<String>,
    /// The programming language, where the file has it.
    pub language: Option<Language>,
}

/// What reading a file of pairs gave.
#[derive(Debug)]
pub struct Reading {
    /// The pairs that can be scored.
    pub pairs: Vec<Pair>,
    /// The lines that cannot.
    pub problems: Vec<Error>,
}

/// Reads pairs, `{"task_id", "target", "pred"[, "prompt", "language"]}`; `pred` is a text or a list of samples.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<Reading> {
    let mut pairs = Vec::new();
    let problems = jsonl::for_each(path, |At { line, row }, object| {
        let fields = Fields::new(path, line, "", &object);
        let optional = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => fields.string(name).map(|text| Some(text.to_owned())),
        };
        pairs.push(Pair {
            row,
            task_id: id(path, line, "", &object)?,
            target: fields.string("target")?.to_owned(),
            samples: samples(path, line, &object)?,
            prompt: optional("prompt")?,
            language: optional("language")?
                .map(|name| {
                    let language = name.parse::<Language>();
                    language.map_err(|reason| fields.error(format!("field 'language': {reason}")))
                })
                .transpose()?,
        });
        Ok(())
    })?;
    Ok(Reading { pairs, problems })
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
        let Reading { pairs, problems } = read(&path).unwrap();
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
        let wanted = [
            "p.jsonl:2: field 'target' is missing",
            "p.jsonl:4: field 'pred' must be a list of strings, not a number",
        ];
        assert_eq!(problems.len(), wanted.len());
        for (problem, wanted) in problems.iter().zip(wanted) {
            assert!(problem.to_string().ends_with(wanted), "{problem}");
        }
    }
}
