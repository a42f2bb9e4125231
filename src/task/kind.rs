//! What a record is, told by its fields: every kind of record that the programs of this field exchange.
//!
//! Names of files say nothing here: a file is what its records are.

use serde_json::Value;

use crate::store::jsonl::Object;
use crate::task::Format;

/// Fields of a task's scores, each an object: the unit tests, and the names of the metrics.
const SCORED_BY: [&str; 7] = [
    "exec",
    "repocoder",
    "repoformer",
    "repoformer-difflib",
    "crosscodeeval",
    "repobench",
    "chars",
];

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A task, in one of the formats.
    Task(Format),
    /// A repository window of RepoCoder.
    Window,
    /// A query window of RepoCoder.
    QueryWindow,
    /// A search's result.
    Retrieval,
    /// A prompt of RepoCoder, with what was retrieved for it.
    Prompt,
    /// A prediction with its `choices`, RepoCoder's.
    RepoCoderPrediction,
    /// A prediction with its `pred`, CrossCodeEval's and Repoformer's.
    CrossCodeEvalPrediction,
    /// A target and its prediction.
    Pair,
    /// A task's scores.
    Score,
    /// A source file, as Repoformer's program reads repositories.
    Package,
    /// A whole repository, as Repoformer's training data begins.
    RawRepository,
    /// An instance of Repoformer's training data, labelled or yet to be.
    Label,
    /// A request to a batch endpoint.
    BatchRequest,
    /// Its answer.
    BatchResponse,
    /// A document of BEIR's `corpus.jsonl`.
    BeirDocument,
    /// A query of BEIR's `queries.jsonl`.
    BeirQuery,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 21] = [
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
        Self::Pair,
        Self::Score,
        Self::Package,
        Self::RawRepository,
        Self::Label,
        Self::BatchRequest,
        Self::BatchResponse,
        Self::BeirDocument,
        Self::BeirQuery,
    ];

    /// What a record is, by the fields that it has, whatever they hold; `None` for what is known nowhere.
    ///
    /// ```
    /// use repoformer::task::kind::Kind;
    /// use repoformer::task::Format;
    /// let kind = |json: &str| Kind::of(&serde_json::from_str(json).unwrap());
    /// assert_eq!(kind(r#"{"task_id": "a", "pred": "x"}"#), Some(Kind::CrossCodeEvalPrediction));
    /// assert_eq!(kind(r#"{"pkg": "a", "fpath": "a/b.py", "input": "", "gt": ""}"#), Some(Kind::Task(Format::ReccEval)));
    /// assert_eq!(kind(r#"{"colour": "red"}"#), None);
    /// ```
    pub fn of(record: &Object) -> Option<Self> {
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
        // Scores show the prediction that they are of.
        let is_scored = |name: &&str| record.get(*name).is_some_and(Value::is_object);
        if SCORED_BY.iter().any(is_scored) {
            return Some(Self::Score);
        }
        // A prediction may repeat its whole task, so that this is asked before what a task has.
        if has("pred") {
            return Some(if has("target") {
                Self::Pair
            } else {
                Self::CrossCodeEvalPrediction
            });
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
        if has("_id") {
            return Some(if has("title") {
                Self::BeirDocument
            } else {
                Self::BeirQuery
            });
        }
        match metadata {
            Some(Value::Object(metadata)) => Self::by_metadata(record, metadata),
            Some(Value::Array(_)) => Some(Self::Window),
            _ if has("groundtruth") || has("full_left_context") => {
                Some(Self::without_metadata(record))
            }
            _ if has("task_id") && (has("em") || has("es") || has("repocoder")) => {
                Some(Self::Score)
            }
            _ => None,
        }
    }

    /// A task whose `metadata` is missing or no object.
    fn without_metadata(record: &Object) -> Self {
        Self::Task(if record.contains_key("full_left_context") {
            Format::Repoformer
        } else {
            Format::CrossCodeLongEval
        })
    }

    fn by_metadata(record: &Object, metadata: &Object) -> Option<Self> {
        let has = |name: &str| record.contains_key(name);
        let said = |names: &[&str]| names.iter().any(|name| metadata.contains_key(*name));
        if said(&["top_k_context", "query_window"]) {
            return Some(Self::Prompt);
        }
        let is_task = has("prompt") || has("groundtruth") || has("right_context");
        if !is_task && (has("context") || said(&["start_line_no", "end_line_no"])) {
            return Some(Self::QueryWindow);
        }
        if ["es_infile", "es_rg1", "label"].into_iter().any(has) || said(&["start_i", "end_i"]) {
            return Some(Self::Label);
        }
        if said(&["fpath_tuple"]) {
            return Some(Self::Task(Format::RepoEval));
        }
        if said(&["filepath"]) {
            return Some(Self::Task(Format::Repoformer));
        }
        if said(&[
            "file",
            "groundtruth_start_lineno",
            "right_context_start_lineno",
        ]) {
            return Some(Self::Task(Format::CrossCodeEval));
        }
        if has("full_left_context") || has("full_right_context") {
            return Some(Self::Task(Format::Repoformer));
        }
        if has("groundtruth") {
            return Some(Self::Task(Format::CrossCodeLongEval));
        }
        let is_repo_eval = has("prompt") || said(&["ground_truth", "line_no", "lineno"]);
        is_repo_eval.then_some(Self::Task(Format::RepoEval))
    }

    /// Its name, as `convert` and `validate` say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task(format) => format.name(),
            Self::Window => "windows",
            Self::QueryWindow => "query-windows",
            Self::Retrieval => "retrieval",
            Self::Prompt => "prompts",
            Self::RepoCoderPrediction => "repocoder-predictions",
            Self::CrossCodeEvalPrediction => "crosscodeeval-predictions",
            Self::Pair => "pairs",
            Self::Score => "scores",
            Self::Package => "packages",
            Self::RawRepository => "raw",
            Self::Label => "labels",
            Self::BatchRequest => "batch-requests",
            Self::BatchResponse => "batch-responses",
            Self::BeirDocument => "beir-corpus",
            Self::BeirQuery => "beir-queries",
        }
    }

    /// One record of it, in words, with what it is known by.
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
            Self::Window => "a window (its 'metadata' is a list of places)",
            Self::QueryWindow => "a query window (it has 'metadata.start_line_no')",
            Self::Retrieval => "a search's result (it has 'top_k_context')",
            Self::Prompt => "a prompt (it has 'metadata.top_k_context')",
            Self::RepoCoderPrediction => "a prediction (it has 'choices')",
            Self::CrossCodeEvalPrediction => "a prediction (it has 'pred')",
            Self::Pair => "a pair of target and prediction (it has 'target' and 'pred')",
            Self::Score => "a task's scores (it has 'em' or 'es')",
            Self::Package => "a source file of a packages file (it has 'filepath' and 'content')",
            Self::RawRepository => "a raw repository (it has 'repo_name' and 'files')",
            Self::Label => "a label (it has 'metadata.start_i')",
            Self::BatchRequest => "a batch request (it has 'custom_id' and 'body')",
            Self::BatchResponse => "a batch response (it has 'custom_id' and 'response')",
            Self::BeirDocument => "a document of BEIR (it has '_id' and 'title')",
            Self::BeirQuery => "a query of BEIR (it has '_id')",
        }
    }

    /// What a file of it is good for, where a task file was wanted.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Task(_) => "give it with --tasks",
            Self::Window | Self::QueryWindow | Self::Retrieval => {
                "`repoformer window` and `search` make their own from --repos-dir and --tasks"
            }
            Self::Prompt => "give it to `repoformer complete --prompts`",
            Self::RepoCoderPrediction | Self::CrossCodeEvalPrediction => {
                "give it with --predictions, beside the tasks that it was made for"
            }
            Self::Pair => "give it to `repoformer eval --pairs`",
            Self::Score => "it is what `repoformer eval` writes",
            Self::Package | Self::RawRepository => {
                "`repoformer convert --to repos -o DIR` makes folders of it for --repos-dir"
            }
            Self::Label => "give it with --tasks, or to `repoformer label judge`",
            Self::BatchRequest => "send it to a batch endpoint",
            Self::BatchResponse => {
                "`repoformer convert --to repocoder-predictions --tasks FILE` makes predictions of it"
            }
            Self::BeirDocument | Self::BeirQuery => "it is for retrieval tools that read BEIR",
        }
    }

    /// What a record of no known kind is told: what was looked for.
    pub fn unknown() -> String {
        let looked_for = Self::ALL.map(Self::record).join("; ");
        format!("nothing that is known; looked for were {looked_for}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(json: &str) -> &'static str {
        Kind::of(&serde_json::from_str(json).unwrap()).map_or("?", Kind::name)
    }

    /// Records with the fields of `formats.md`, by hand.
    #[test]
    fn every_kind_is_known_by_its_fields() {
        for (wanted, record) in [
            (
                "repoeval",
                r#"{"prompt": "", "metadata": {"task_id": "a", "ground_truth": "", "fpath_tuple": [], "context_start_lineno": 0, "line_no": 0}}"#,
            ),
            ("repoeval", r#"{"prompt": "", "metadata": {"lineno": 0}}"#),
            (
                "repoformer",
                r#"{"prompt": "", "groundtruth": "", "metadata": {"task_id": "", "filepath": "", "line_no": 3}}"#,
            ),
            (
                "repoformer",
                r#"{"groundtruth": "", "full_left_context": ""}"#,
            ),
            (
                "crosscodeeval",
                r#"{"prompt": "", "groundtruth": "", "metadata": {"task_id": "", "repository": "", "file": ""}, "crossfile_context": {}}"#,
            ),
            (
                "crosscodelongeval",
                r#"{"prompt": "", "groundtruth": "", "metadata": {"task_id": ""}, "crossfile_context": ""}"#,
            ),
            (
                "repobench",
                r#"{"repo_name": "", "file_path": "", "cropped_code": "", "next_line": "", "context": []}"#,
            ),
            (
                "recceval",
                r#"{"pkg": "", "fpath": "", "input": "", "gt": ""}"#,
            ),
            (
                "windows",
                r#"{"context": "", "metadata": [{"fpath_tuple": []}]}"#,
            ),
            (
                "query-windows",
                r#"{"context": "", "metadata": {"fpath_tuple": [], "task_id": "", "start_line_no": 0}}"#,
            ),
            (
                "retrieval",
                r#"{"task_id": "", "query_window": {}, "top_k_context": []}"#,
            ),
            (
                "prompts",
                r#"{"prompt": "", "metadata": {"fpath_tuple": [], "query_window": {}, "top_k_context": []}}"#,
            ),
            (
                "repocoder-predictions",
                r#"{"prompt": "", "metadata": {"fpath_tuple": []}, "choices": []}"#,
            ),
            (
                "crosscodeeval-predictions",
                r#"{"task_id": "", "pred": ""}"#,
            ),
            (
                "crosscodeeval-predictions",
                r#"{"prompt": "", "groundtruth": "", "metadata": {"file": ""}, "task_id": "", "pred": ""}"#,
            ),
            ("pairs", r#"{"task_id": "", "target": "", "pred": ""}"#),
            ("scores", r#"{"task_id": "", "em": 1, "es": 1}"#),
            (
                "packages",
                r#"{"repository": "", "filepath": "", "content": []}"#,
            ),
            ("raw", r#"{"repo_name": "", "files": []}"#),
            (
                "labels",
                r#"{"prompt": "", "groundtruth": "", "metadata": {"task_id": "", "filename": "", "start_i": 0, "end_i": 1}}"#,
            ),
            (
                "labels",
                r#"{"prompt": "", "groundtruth": "", "metadata": {"task_id": ""}, "es_infile": 0.5}"#,
            ),
            (
                "batch-requests",
                r#"{"custom_id": "", "method": "POST", "url": "", "body": {}}"#,
            ),
            (
                "batch-responses",
                r#"{"id": "", "custom_id": "", "response": {}, "error": null}"#,
            ),
            ("beir-corpus", r#"{"_id": "", "title": "", "text": ""}"#),
            ("beir-queries", r#"{"_id": "", "text": ""}"#),
            ("?", r#"{"text": "", "metadata": {}}"#),
            ("?", r#"{}"#),
        ] {
            assert_eq!(kind(record), wanted, "{record}");
        }
        for kind in Kind::ALL {
            assert!(Kind::unknown().contains(kind.record()));
            assert!(!kind.usage().is_empty());
        }
    }
}
