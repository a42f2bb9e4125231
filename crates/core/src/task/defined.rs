//! Definitions of the functions that a task's target calls, in the task's metadata.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Task;

/// Name of the metadata field.
const FIELD: &str = "definitions";

/// Place at which something that a task's target calls is defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetDefinition {
    /// `repository/folder/…/file.py`.
    pub path: String,
    /// 0-based line of the file that has the defined name.
    pub line: usize,
    /// Number of non-blank lines before this line, as chunks count lines.
    pub code_line: usize,
    /// Text of this line.
    pub text: String,
}

impl Task {
    /// Stores where the functions that the target calls are defined.
    pub fn set_definitions(&mut self, definitions: impl IntoIterator<Item = TargetDefinition>) {
        let definitions = definitions.into_iter().map(serde_json::to_value);
        let definitions: Vec<Value> = definitions.filter_map(Result::ok).collect();
        self.metadata.insert(FIELD, definitions.into());
    }

    /// Returns where the functions that the target calls are defined, as `sample` stores it for API tasks; `None` if the
    /// metadata does not have the field.
    ///
    /// # Errors
    /// The metadata cannot be read; the error describes why.
    pub fn definitions(&self) -> Result<Option<Vec<TargetDefinition>>, String> {
        let Some(field) = self.metadata.get(FIELD) else { return Ok(None) };
        let read = Vec::<TargetDefinition>::deserialize(field);
        read.map(Some).map_err(|e| format!("its metadata.{FIELD} cannot be read: {e}"))
    }
}
