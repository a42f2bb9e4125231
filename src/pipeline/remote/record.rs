//! Prompts' records on their way to a server, and back with its answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::completion::{Completion, Server, drop_retrieved, record_line};
use super::super::experiment::Experiment;
use super::super::prompt::{read_prompts, require_prompts};
use super::latency::Latency;
use crate::complete::server::{CompletionRequest, Confidence, Entry, entropy};
use crate::error::{Error, Result};
use crate::prompt::style::stops_of;
use crate::retrieve::Mode;
use crate::store::jsonl::{self, Fields, Object};

/// Prompts to complete.
#[derive(Debug, Clone)]
pub struct PromptText {
    /// Where they lie.
    pub(super) path: PathBuf,
    /// The mode that they are of, where they are the cache's.
    pub(super) mode: Option<Mode>,
    /// A record a line.
    pub(super) text: Vec<u8>,
}

impl PromptText {
    /// Those of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_file(path: &Path) -> Result<Self> {
        Ok(Self { path: path.to_owned(), mode: None, text: jsonl::read(path)? })
    }

    /// The cached ones of a mode.
    ///
    /// # Errors
    /// They are missing, damaged, or were made otherwise.
    pub fn of_mode(experiment: &Experiment, mode: Mode) -> Result<Self> {
        require_prompts(experiment, mode)?;
        Ok(Self {
            path: experiment.layout.prompts(mode),
            mode: Some(mode),
            text: read_prompts(experiment, mode)?,
        })
    }

    /// How many there are.
    pub fn records(&self) -> usize {
        jsonl::records(&self.text).count()
    }
}

/// A prompt's record on its way.
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) task_id: String,
    pub(super) asking: CompletionRequest,
    /// The record without its retrieved parts; with a text as prompt.
    pub(super) object: Object,
}

impl Record {
    pub(super) fn prompt(&self) -> &str {
        self.object["prompt"].as_str().unwrap_or_default()
    }

    pub(super) fn key(&self) -> String {
        self.asking.key(self.prompt())
    }

    /// A number of the record's metadata.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.object.get("metadata")?.get(name)?.as_u64()
    }

    pub(super) fn failed(&self, path: &Path, reason: &str) -> Error {
        Error::Task {
            path: path.to_owned(),
            line: self.line,
            task_id: self.task_id.clone(),
            reason: reason.to_owned(),
        }
    }

    pub(super) fn latency(&self, entry: &Entry) -> Latency {
        Latency {
            task_id: self.task_id.clone(),
            row: self.number("row"),
            sample: self.number("sample").unwrap_or(0),
            retrieval_ms: None,
            without_embedding: false,
            generation_ms: entry.seconds.map(|seconds| 1e3 * seconds),
            decision_ms: None,
            at_once: entry.at_once,
        }
    }

    /// The record with the answers: each as if the prompt had been sent whole, and as it was written where that differs.
    pub(super) fn answered(self, entry: &Entry) -> Vec<u8> {
        let (mut choices, mut all) = (Vec::new(), Vec::new());
        for (index, sample) in entry.samples.iter().enumerate() {
            let span = self.asking.span(self.prompt(), &sample.text);
            let text = &sample.text[span.clone()];
            let mut choice =
                json!({"text": text, "index": index, "finish_reason": sample.finish_reason});
            if !sample.tokens.is_empty() {
                let (tokens, logprobs): (Vec<&str>, Vec<f64>) =
                    sample.tokens.iter().map(|token| (token.text.as_str(), token.logprob)).unzip();
                choice["logprobs"] = json!({"tokens": tokens, "token_logprobs": logprobs});
            }
            // How sure the model is of the completion, whatever else it wrote.
            let logprobs = sample.logprobs(span);
            if let Some(sure) = Confidence::of(&logprobs) {
                choice["mean_logprob"] = sure.mean_logprob.into();
                choice["min_logprob"] = sure.min_logprob.into();
            }
            if sample.text != text {
                choice["written"] = sample.text.as_str().into();
            }
            choices.push(choice);
            all.push(logprobs);
        }
        let asked = self.asking.to_record();
        let is_drawn = self.asking.temperature == 1.0 && self.asking.top_p.is_none();
        let mut object = self.object;
        object.insert("asked".into(), asked);
        object.remove("entropy");
        if let Some(entropy) = entropy(&all).filter(|_| is_drawn) {
            object.insert("entropy".into(), entropy.into());
        }
        record_line(object, choices.into())
    }
}

impl Server {
    /// The records of a text that can be asked for.
    pub(super) fn records(
        &self,
        path: &Path,
        text: &[u8],
        completion: &Completion,
        problems: &mut Vec<Error>,
    ) -> Vec<Record> {
        let mut records = Vec::new();
        for (at, bytes) in jsonl::records(text) {
            match self.record(path, at.line, bytes, completion) {
                Ok(record) => records.push(record),
                Err(problem) => problems.push(problem),
            }
        }
        records
    }

    fn record(
        &self,
        path: &Path,
        line: usize,
        bytes: &[u8],
        completion: &Completion,
    ) -> Result<Record> {
        let mut object = jsonl::parse(path, line, bytes)?;
        drop_retrieved(&mut object);
        let fields = Fields::new(path, line, "", &object);
        fields.string("prompt")?;
        let metadata = object.get("metadata").and_then(Value::as_object);
        let text = |name: &str| metadata.and_then(|m| m.get(name)?.as_str());
        let mut asking = CompletionRequest {
            model: completion.model.clone(),
            max_tokens: completion.max_tokens,
            ..self.asking.clone()
        };
        asking.add_stops(stops_of(&object));
        Ok(Record {
            line,
            task_id: text("task_id").unwrap_or("without id").to_owned(),
            asking,
            object,
        })
    }
}
