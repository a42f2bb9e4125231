//! Fields of prediction records.

use serde_json::{Value, json};

use crate::task::{Format, Task};

/// CrossCodeEval's `pred`: one sample is a string, several are a list.
pub(super) fn pred(mut texts: Vec<String>) -> Value {
    match texts.len() {
        1 => texts.swap_remove(0).into(),
        _ => texts.into(),
    }
}

/// RepoCoder's `choices`.
pub(super) fn choices(texts: &[String]) -> Value {
    texts.iter().map(|text| json!({ "text": text })).collect()
}

/// A task's metadata as RepoCoder's programs read it, if the task names a file.
pub(super) fn metadata(task: &Task) -> Value {
    let written = task.to_format(Format::RepoEval);
    let metadata = written.map(|mut written| written.record["metadata"].take());
    let mut metadata = metadata.unwrap_or_else(|_| task.metadata.clone().into());
    metadata["row"] = task.row.into();
    metadata
}
