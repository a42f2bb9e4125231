//! Writes instances in the label format, or as tasks of a benchmark.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::draw::{Instance, InstanceKind};
use crate::task::cross_file::Fragment;

/// Format of the records of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordFormat {
    /// The label format.
    #[default]
    Labels,
    /// Tasks of a benchmark, without retrieved fragments.
    Tasks,
}

/// A record in the label format.
#[derive(Serialize)]
struct LabelRecord<'i> {
    metadata: LabelMetadata<'i>,
    prompt: &'i str,
    groundtruth: &'i str,
    right_context: &'i str,
    crossfile_context: Retrieved<'i>,
}

#[derive(Serialize)]
struct LabelMetadata<'i> {
    task_id: String,
    filename: &'i str,
    start_i: usize,
    end_i: usize,
    kind: &'static str,
    query_has_target: bool,
}

/// A task in CrossCodeEval's format, which has line numbers.
#[derive(Serialize)]
struct TaskRecord<'i> {
    prompt: &'i str,
    groundtruth: &'i str,
    right_context: &'i str,
    metadata: TaskMetadata<'i>,
    crossfile_context: Retrieved<'i>,
}

#[derive(Serialize)]
struct TaskMetadata<'i> {
    task_id: String,
    repository: &'i str,
    file: &'i str,
    context_start_lineno: usize,
    groundtruth_start_lineno: usize,
    right_context_start_lineno: usize,
}

#[derive(Default, Serialize)]
struct Retrieved<'i> {
    text: &'i str,
    list: Vec<Chunk<'i>>,
}

#[derive(Serialize)]
struct Chunk<'i> {
    retrieved_chunk: &'i str,
    filename: &'i str,
    score: Option<f64>,
}

impl<'i> Chunk<'i> {
    fn of(fragment: &'i Fragment) -> Self {
        Self {
            retrieved_chunk: &fragment.text,
            filename: &fragment.path,
            score: fragment.score,
        }
    }
}

impl Instance {
    fn id(&self) -> String {
        format!("{}/{}_{}", self.path, self.lines.start, self.lines.end)
    }

    /// Returns the instance's record, not yet judged; tasks are without retrieved fragments.
    pub(super) fn to_record(&self, format: RecordFormat, kind: InstanceKind) -> Box<RawValue> {
        let written = match format {
            RecordFormat::Labels => to_raw_value(&self.label(kind)),
            RecordFormat::Tasks => to_raw_value(&self.task()),
        };
        // Texts and numbers can always be written.
        written.unwrap_or_default()
    }

    fn label(&self, kind: InstanceKind) -> LabelRecord<'_> {
        LabelRecord {
            metadata: LabelMetadata {
                task_id: self.id(),
                filename: &self.path,
                start_i: self.lines.start,
                end_i: self.lines.end,
                kind: kind.name(),
                query_has_target: self.query_has_target,
            },
            prompt: &self.left,
            groundtruth: &self.target,
            right_context: &self.right,
            crossfile_context: Retrieved {
                text: &self.cross_file.text,
                list: self.cross_file.fragments.iter().map(Chunk::of).collect(),
            },
        }
    }

    fn task(&self) -> TaskRecord<'_> {
        let (repository, file) = self.path.split_once('/').unwrap_or(("", &self.path));
        let line = |text: &str| text.matches('\n').count();
        let (start, lines) = (line(&self.left), line(&self.target));
        TaskRecord {
            prompt: &self.left,
            groundtruth: &self.target,
            right_context: &self.right,
            metadata: TaskMetadata {
                task_id: self.id(),
                repository,
                file,
                context_start_lineno: 0,
                groundtruth_start_lineno: start,
                right_context_start_lineno: start + lines + 1,
            },
            crossfile_context: Retrieved::default(),
        }
    }
}
