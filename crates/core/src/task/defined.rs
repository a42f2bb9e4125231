//! Definitions of what a task's target calls, in its metadata.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Task;

/// Field of the metadata.
const FIELD: &str = "definitions";

/// Place where something that a task's target calls is defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetDefinition {
    /// `repository/folder/…/file.py`.
    pub path: String,
    /// 0-based line of the file with its name.
    pub line: usize,
    /// Number of lines before that which are not blank, as chunks count lines.
    pub code_line: usize,
    /// Text of that line.
    pub text: String,
}

impl Task {
    /// Notes where what the target calls is defined.
    pub fn set_definitions(&mut self, definitions: impl IntoIterator<Item = TargetDefinition>) {
        let definitions = definitions.into_iter().map(serde_json::to_value);
        let definitions: Vec<Value> = definitions.filter_map(Result::ok).collect();
        self.metadata.insert(FIELD.to_owned(), definitions.into());
    }

    /// Returns where what the target calls is defined, as `sample` notes it for API tasks; `None` where the metadata says
    /// nothing about it.
    ///
    /// # Errors
    /// Says in words why the metadata cannot be read.
    pub fn definitions(&self) -> Result<Option<Vec<TargetDefinition>>, String> {
        let Some(field) = self.metadata.get(FIELD) else { return Ok(None) };
        let read = Vec::<TargetDefinition>::deserialize(field);
        read.map(Some).map_err(|e| format!("its metadata.{FIELD} cannot be read: {e}"))
    }
}
