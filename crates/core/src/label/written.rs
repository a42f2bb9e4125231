//! Writes instances in the label format, or as tasks of a benchmark.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::draw::{Instance, InstanceKind};
use crate::task::{Format, write_cross_file};

/// Format of the records of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordFormat {
    /// The label format.
    #[default]
    Labels,
    /// Tasks of a benchmark, without retrieved fragments.
    Tasks,
}

impl Instance {
    /// Returns the instance's record, not yet judged. Tasks have no retrieved fragments.
    pub fn to_record(&self, format: RecordFormat, kind: InstanceKind) -> Box<RawValue> {
        let record = match format {
            RecordFormat::Labels => self.label(kind),
            RecordFormat::Tasks => self.task(kind),
        };
        // Texts and numbers can always be serialized.
        to_raw_value(&record).unwrap_or_default()
    }

    fn id(&self) -> String {
        format!("{}/{}_{}", self.path, self.lines.start, self.lines.end)
    }

    fn label(&self, kind: InstanceKind) -> Value {
        json!({
            "metadata": {
                "task_id": self.id(),
                "filename": self.path,
                "start_i": self.lines.start,
                "end_i": self.lines.end,
                "kind": kind.name(),
                "query_has_target": self.query_has_target,
            },
            "prompt": self.left,
            "groundtruth": self.target,
            "right_context": self.right,
            "crossfile_context": write_cross_file(&self.cross_file, Format::CrossCodeEval),
        })
    }

    /// Returns a task in CrossCodeEval's format, which has line numbers.
    fn task(&self, kind: InstanceKind) -> Value {
        let (repository, file) = self.path.split_once('/').unwrap_or(("", &self.path));
        let line = |text: &str| text.matches('\n').count();
        let start = line(&self.left);
        let unfinished = usize::from(!self.target.ends_with('\n'));
        json!({
            "prompt": self.left,
            "groundtruth": self.target,
            "right_context": self.right,
            "metadata": {
                "task_id": self.id(),
                "repository": repository,
                "file": file,
                "kind": kind.name(),
                "context_start_lineno": 0,
                "groundtruth_start_lineno": start,
                "right_context_start_lineno": start + line(&self.target) + unfinished,
            },
            "crossfile_context": {"text": "", "list": []},
        })
    }
}
