//! Kinds of records: every kind that programs in this field exchange, recognised by its fields.
//!
//! File names are ignored; the kind of a file is the kind of its records.

use repoformer_store::jsonl::Object;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::Value;

use crate::task::Format;

/// Fields of a task's scores, each an object: the unit tests, and the names of the metrics.
pub const SCORED_BY: [&str; 9] = [
    "exec", "repocoder", "repoformer", "repoformer-difflib", "crosscodeeval", "repobench", "chars",
    "likelihood", "definitions",
];

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// A task, in one of the formats.
    Task(Format),
    /// A repository window of RepoCoder.
    Window,
    /// A query window of RepoCoder.
    QueryWindow,
    /// A retrieval result.
    Retrieval,
    /// A prompt, with the fragments retrieved for it.
    Prompt,
    /// RepoCoder's prediction, with `choices`.
    RepoCoderPrediction,
    /// CrossCodeEval's and Repoformer's prediction, with `pred`.
    CrossCodeEvalPrediction,
    /// A document of lm-evaluation-harness with its answers, which is a prediction.
    LmEvalSample,
    /// A target with its prediction.
    Pair,
    /// Scores of a task.
    Score,
    /// A source file, as Repoformer's program reads repositories.
    Package,
    /// A whole repository, the source of Repoformer's training data.
    RawRepository,
    /// An instance of Repoformer's training data, labelled or not.
    Label,
    /// A request to a batch endpoint.
    BatchRequest,
    /// A response of a batch endpoint.
    BatchResponse,
    /// A document of BEIR's `corpus.jsonl`.
    BeirDocument,
    /// A query of BEIR's `queries.jsonl`.
    BeirQuery,
    /// Times of a task's prompt.
    Latency,
    /// A training sequence.
    Sequence,
    /// A function of DevEval or EvoCodeBench.
    DevEval,
    /// A completion of such a function.
    DevEvalCompletion,
    /// A function of RepoExec.
    RepoExec,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 27] = [
        Self::Task(Format::RepoEval),
        Self::Task(Format::Repoformer),
        Self::Task(Format::CrossCodeEval),
        Self::Task(Format::CrossCodeLongEval),
        Self::Task(Format::RepoBench),
        Self::Task(Format::ReccEval),
        Self::Window,
        Self::QueryWindow,
        Self::Retrieval,
        Self::Prompt,
        Self::RepoCoderPrediction,
        Self::CrossCodeEvalPrediction,
        Self::LmEvalSample,
        Self::Pair,
        Self::Score,
        Self::Package,
        Self::RawRepository,
        Self::Label,
        Self::BatchRequest,
        Self::BatchResponse,
        Self::BeirDocument,
        Self::BeirQuery,
        Self::Latency,
        Self::Sequence,
        Self::DevEval,
        Self::DevEvalCompletion,
        Self::RepoExec,
    ];

    /// Recognises a record by the presence of its fields, regardless of their values; `None` if unknown.
    ///
    /// ```
    /// use repoformer_core::task::kind::RecordKind;
    /// use repoformer_core::task::Format;
    /// let kind = |json: &str| RecordKind::from_record(&serde_json::from_str(json).unwrap());
    /// assert_eq!(kind(r#"{"task_id": "a", "pred": "x"}"#), Some(RecordKind::CrossCodeEvalPrediction));
    /// assert_eq!(kind(r#"{"pkg": "a", "fpath": "a/b.py", "input": "", "gt": ""}"#), Some(RecordKind::Task(Format::ReccEval)));
    /// assert_eq!(kind(r#"{"colour": "red"}"#), None);
    /// ```
    pub fn from_record(record: &Object) -> Option<Self> {
        let has = |name: &str| record.contains_key(name);
        let metadata = record.get("metadata");
        if has("custom_id") {
            let answer = has("response") || has("error");
            return Some(if answer && !has("body") {
                Self::BatchResponse
            } else {
                Self::BatchRequest
            });
        }
        // Samples contain their document and, under other names, scores.
        if has("doc_id") && has("doc") && has("resps") {
            return Some(Self::LmEvalSample);
        }
        // Scores contain their prediction, so they are recognised first.
        let is_scored = |name: &&str| record.get(*name).is_some_and(Value::is_object);
        if SCORED_BY.iter().any(is_scored) {
            return Some(Self::Score);
        }
        // A prediction may repeat its whole task, so it is recognised before tasks.
        let says = |name: &str| record.get(name).is_some_and(|value| !value.is_null());
        if says("pred") || has("pred") && !says("choices") {
            return Some(if has("target") { Self::Pair } else { Self::CrossCodeEvalPrediction });
        }
        if has("choices") {
            return Some(Self::RepoCoderPrediction);
        }
        if has("files") && (has("repo_name") || has("repo_size")) {
            return Some(Self::RawRepository);
        }
        if has("content") && has("filepath") {
            return Some(Self::Package);
        }
        if has("top_k_context") && has("query_window") {
            return Some(Self::Retrieval);
        }
        if has("next_line") || has("cropped_code") {
            return Some(Self::Task(Format::RepoBench));
        }
        if has("fpath") || (has("pkg") && has("gt")) {
            return Some(Self::Task(Format::ReccEval));
        }
        if has("namespace") && has("body_position") {
            return Some(Self::DevEval);
        }
        if has("namespace") && has("completion") {
            return Some(Self::DevEvalCompletion);
        }
        if has("focal_function") && has("entry_point") {
            return Some(Self::RepoExec);
        }
        if has("_id") {
            return Some(if has("title") { Self::BeirDocument } else { Self::BeirQuery });
        }
        if has("retrieval_ms") && has("generation_ms") {
            return Some(Self::Latency);
        }
        if has("input_ids") {
            return Some(Self::Sequence);
        }
        match metadata {
            Some(Value::Object(metadata)) => Self::by_metadata(record, metadata),
            Some(Value::Array(_)) => Some(Self::Window),
            _ if has("full_left_context") => Some(Self::Task(Format::Repoformer)),
            _ if has("groundtruth") => Some(Self::Task(Format::CrossCodeLongEval)),
            _ if has("task_id") && ["em", "es", "repocoder", "excluded"].into_iter().any(has) => {
                Some(Self::Score)
            }
            _ => None,
        }
    }

    fn by_metadata(record: &Object, metadata: &Object) -> Option<Self> {
        let has = |name: &str| record.contains_key(name);
        let within = |names: &[&str]| names.iter().any(|name| metadata.contains_key(*name));
        // Without fragments, only the fields added by the prompt stage distinguish a prompt from its task.
        let is_made = has("prompt") && ["row", "mode"].iter().all(|name| within(&[name]));
        if is_made || within(&["top_k_context", "query_window"]) {
            return Some(Self::Prompt);
        }
        let is_task = has("prompt") || has("groundtruth") || has("right_context");
        if !is_task && (has("context") || within(&["start_line_no", "end_line_no", "hole"])) {
            return Some(Self::QueryWindow);
        }
        if ["es_infile", "es_rg1", "label"].into_iter().any(has) || within(&["start_i", "end_i"]) {
            return Some(Self::Label);
        }
        if within(&["fpath_tuple"]) {
            return Some(Self::Task(Format::RepoEval));
        }
        if within(&["filepath"]) {
            return Some(Self::Task(Format::Repoformer));
        }
        if within(&["file", "groundtruth_start_lineno", "right_context_start_lineno"]) {
            return Some(Self::Task(Format::CrossCodeEval));
        }
        if has("full_left_context") || has("full_right_context") {
            return Some(Self::Task(Format::Repoformer));
        }
        if has("groundtruth") {
            return Some(Self::Task(Format::CrossCodeLongEval));
        }
        let is_repo_eval = has("prompt") || within(&["ground_truth", "line_no", "lineno"]);
        is_repo_eval.then_some(Self::Task(Format::RepoEval))
    }

    /// Returns the name used to select and to report the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task(format) => format.name(),
            Self::Window => "windows",
            Self::QueryWindow => "query-windows",
            Self::Retrieval => "retrieval",
            Self::Prompt => "prompts",
            Self::RepoCoderPrediction => "repocoder-predictions",
            Self::CrossCodeEvalPrediction => "crosscodeeval-predictions",
            Self::LmEvalSample => "lm-eval-samples",
            Self::Pair => "pairs",
            Self::Score => "scores",
            Self::Package => "packages",
            Self::RawRepository => "raw",
            Self::Label => "labels",
            Self::BatchRequest => "batch-requests",
            Self::BatchResponse => "batch-responses",
            Self::BeirDocument => "beir-corpus",
            Self::BeirQuery => "beir-queries",
            Self::Latency => "latencies",
            Self::Sequence => "sequences",
            Self::DevEval => "deveval",
            Self::DevEvalCompletion => "deveval-completions",
            Self::RepoExec => "repoexec",
        }
    }

    /// Describes one record and the field by which it is recognised.
    pub fn record(self) -> &'static str {
        match self {
            Self::Task(Format::RepoEval) => "a task of RepoEval (it has 'metadata.fpath_tuple')",
            Self::Task(Format::Repoformer) => "a task of Repoformer (it has 'metadata.filepath')",
            Self::Task(Format::CrossCodeEval) => "a task of CrossCodeEval (it has 'metadata.file')",
            Self::Task(Format::CrossCodeLongEval) => {
                "a task of CrossCodeLongEval (it has 'groundtruth')"
            }
            Self::Task(Format::RepoBench) => "a task of RepoBench (it has 'next_line')",
            Self::Task(Format::ReccEval) => "a task of ReccEval (it has 'fpath')",
            Self::Window => "a window (its 'metadata' is a list of positions)",
            Self::QueryWindow => "a query window (it has 'metadata.start_line_no')",
            Self::Retrieval => "a retrieval result (it has 'top_k_context')",
            Self::Prompt => {
                "a prompt (it has 'metadata.top_k_context', or 'metadata.row' and 'metadata.mode')"
            }
            Self::RepoCoderPrediction => "a prediction (it has 'choices')",
            Self::CrossCodeEvalPrediction => "a prediction (it has 'pred')",
            Self::LmEvalSample => {
                "a sample of lm-evaluation-harness (it has 'doc_id', 'doc' and 'resps')"
            }
            Self::Pair => "a pair of target and prediction (it has 'target' and 'pred')",
            Self::Score => "a task's scores (it has 'em' or 'es')",
            Self::Package => "a source file of a packages file (it has 'filepath' and 'content')",
            Self::RawRepository => "a raw repository (it has 'repo_name' and 'files')",
            Self::Label => "a label (it has 'metadata.start_i')",
            Self::BatchRequest => "a batch request (it has 'custom_id' and 'body')",
            Self::BatchResponse => "a batch response (it has 'custom_id' and 'response')",
            Self::BeirDocument => "a document of BEIR (it has '_id' and 'title')",
            Self::BeirQuery => "a query of BEIR (it has '_id')",
            Self::Latency => "the times of a prompt (it has 'retrieval_ms' and 'generation_ms')",
            Self::Sequence => "a training sequence (it has 'input_ids')",
            Self::DevEval => {
                "a function of DevEval or EvoCodeBench (it has 'namespace' and 'body_position')"
            }
            Self::DevEvalCompletion => {
                "a completion of DevEval or EvoCodeBench (it has 'namespace' and 'completion')"
            }
            Self::RepoExec => "a function of RepoExec (it has 'focal_function' and 'entry_point')",
        }
    }

    /// Suggests how to use a file of this kind that was given as a task file.
    pub fn usage(self) -> Message {
        match self {
            Self::Task(_) => message!["use it as the ", UserChoice::TasksFile],
            Self::Window | Self::QueryWindow | Self::Retrieval => {
                message![
                    "the ",
                    UserChoice::WindowAndSearchStages,
                    " build their own from a ",
                    UserChoice::RepositoriesFolder,
                    " and the ",
                    UserChoice::TasksFile
                ]
            }
            Self::Prompt => message!["use it as the ", UserChoice::PromptsFile],
            Self::RepoCoderPrediction | Self::CrossCodeEvalPrediction | Self::LmEvalSample => {
                message![
                    "use it as the ",
                    UserChoice::PredictionsFile,
                    ", with the tasks that it was generated for"
                ]
            }
            Self::Pair => message!["use it as the ", UserChoice::PairsFile],
            Self::Score => message!["it is the ", UserChoice::ResultOfEvaluation],
            Self::Package | Self::RawRepository => {
                message![
                    UserChoice::ConvertToFolders,
                    " for use as a ",
                    UserChoice::RepositoriesFolder
                ]
            }
            Self::Label => message![
                "use it as the ",
                UserChoice::TasksFile,
                ", or ",
                UserChoice::ScoreAsLabels
            ],
            Self::BatchRequest => "send it to a batch endpoint".into(),
            Self::BatchResponse => UserChoice::ConvertToPredictions.into(),
            Self::BeirDocument | Self::BeirQuery => {
                "use it with retrieval tools that read BEIR".into()
            }
            Self::Latency => "use it as the latency file of a policy sweep".into(),
            Self::Sequence => "train a model with it".into(),
            Self::DevEval | Self::RepoExec => {
                "convert it to tasks, and pass the folder of its repositories".into()
            }
            Self::DevEvalCompletion => {
                message![UserChoice::ConvertToPredictions, ", with its tasks"]
            }
        }
    }

    /// Describes a record of an unknown kind, with all known kinds.
    pub fn unknown() -> String {
        let known = Self::ALL.map(Self::record).join("; ");
        format!("unknown kind of record; known: {known}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records with the fields by which `formats.md` distinguishes them, written by hand.
    #[test]
    fn every_kind_is_known_by_its_fields() {
        for (wanted, record) in [
            ("repoeval", r#"{"prompt": "", "metadata": {"fpath_tuple": [], "line_no": 0}}"#),
            ("repoeval", r#"{"prompt": "", "metadata": {"lineno": 0}}"#),
            ("repoformer", r#"{"groundtruth": "", "metadata": {"filepath": "", "line_no": 3}}"#),
            ("repoformer", r#"{"groundtruth": "", "full_left_context": ""}"#),
            ("crosscodeeval", r#"{"groundtruth": "", "metadata": {"repository": "", "file": ""}}"#),
            ("crosscodelongeval", r#"{"groundtruth": "", "metadata": {"task_id": ""}}"#),
            ("repobench", r#"{"repo_name": "", "next_line": "", "context": []}"#),
            ("recceval", r#"{"pkg": "", "fpath": "", "input": "", "gt": ""}"#),
            ("windows", r#"{"context": "", "metadata": [{"fpath_tuple": []}]}"#),
            ("query-windows", r#"{"context": "", "metadata": {"fpath_tuple": [], "task_id": ""}}"#),
            ("query-windows", r#"{"metadata": {"fpath_tuple": [], "query": "", "hole": 0}}"#),
            ("retrieval", r#"{"task_id": "", "query_window": {}, "top_k_context": []}"#),
            ("prompts", r#"{"prompt": "", "metadata": {"fpath_tuple": [], "query_window": {}}}"#),
            ("prompts", r#"{"prompt": "", "metadata": {"file": "", "row": 0, "mode": "none"}}"#),
            ("prompts", r#"{"prompt": "", "metadata": {"start_i": 0, "row": 0, "mode": "none"}}"#),
            ("labels", r#"{"prompt": "", "metadata": {"start_i": 0, "row": 0}}"#),
            ("repocoder-predictions", r#"{"metadata": {"fpath_tuple": []}, "choices": []}"#),
            ("crosscodeeval-predictions", r#"{"task_id": "", "pred": ""}"#),
            ("crosscodeeval-predictions", r#"{"metadata": {"file": ""}, "pred": ""}"#),
            ("lm-eval-samples", r#"{"doc_id": 0, "doc": {}, "target": "", "resps": [[""]]}"#),
            ("pairs", r#"{"task_id": "", "target": "", "pred": ""}"#),
            ("scores", r#"{"task_id": "", "em": 1, "es": 1}"#),
            ("packages", r#"{"repository": "", "filepath": "", "content": []}"#),
            ("raw", r#"{"repo_name": "", "files": []}"#),
            ("labels", r#"{"groundtruth": "", "metadata": {"filename": "", "start_i": 0}}"#),
            ("labels", r#"{"groundtruth": "", "metadata": {}, "es_infile": 0.5}"#),
            ("batch-requests", r#"{"custom_id": "", "method": "POST", "url": "", "body": {}}"#),
            ("batch-responses", r#"{"id": "", "custom_id": "", "response": {}, "error": null}"#),
            ("beir-corpus", r#"{"_id": "", "title": "", "text": ""}"#),
            ("beir-queries", r#"{"_id": "", "text": ""}"#),
            ("latencies", r#"{"task_id": "", "retrieval_ms": null, "generation_ms": 1.5}"#),
            ("deveval", r#"{"namespace": "", "completion_path": "", "body_position": []}"#),
            ("deveval-completions", r#"{"namespace": "", "completion": "", "idx": 0}"#),
            ("repoexec", r#"{"focal_function": "", "entry_point": "", "module": ""}"#),
            ("sequences", r#"{"input_ids": [], "labels": [], "task_id": ""}"#),
            ("?", r#"{"text": "", "metadata": {}}"#),
            ("?", r#"{}"#),
        ] {
            let kind = RecordKind::from_record(&serde_json::from_str(record).unwrap());
            assert_eq!(kind.map_or("?", RecordKind::name), wanted, "{record}");
        }
        for kind in RecordKind::ALL {
            assert!(RecordKind::unknown().contains(kind.record()));
        }
    }
}
