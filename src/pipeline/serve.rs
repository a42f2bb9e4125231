//! `complete` by a model on a server: the prompts' records → requests → records with its answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::complete::{Completion, Predictions, drop_retrieved, record_line};
use super::kept::{Input, NotedLine};
use crate::artifact::{Identity, header_path};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::generate::{Asking, Entry, Journal, run};
use crate::jsonl::{self, Fields, Object};
use crate::prompt::style::Style;

/// A server, and how its model is asked.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where it is.
    pub endpoint: Endpoint,
    /// What every request holds; a prompt's own style adds the texts that end a completion.
    pub asking: Asking,
    /// Requests at a time.
    pub connections: usize,
    /// Whether what failed is asked for again.
    pub retry_failed: bool,
    /// Where answers are kept as they come.
    pub journal: PathBuf,
}

impl Server {
    /// What the predictions depend on, added to their identity.
    pub(super) fn in_identity(&self, identity: Identity) -> Identity {
        let Asking {
            api,
            temperature,
            top_p,
            seed,
            stop,
            samples,
            ending,
            instruction,
            ..
        } = &self.asking;
        let mut identity = identity
            .parameter("api", api)
            .parameter("temperature", temperature)
            .parameter("samples", samples)
            .parameter("prompt-end", ending);
        let optional = [
            ("top-p", top_p.map(|p| p.to_string())),
            ("seed", seed.map(|seed| seed.to_string())),
            ("stop", (!stop.is_empty()).then(|| json!(stop).to_string())),
            ("instruction", instruction.clone()),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                identity = identity.parameter(name, value);
            }
        }
        identity
    }

    /// Predictions that lack what failed are made again where that is to be asked for again; what was answered is in the
    /// journal.
    pub(super) fn forget_incomplete(&self, path: &Path) -> Result<()> {
        let header = header_path(path);
        if !self.retry_failed || !header.exists() {
            return Ok(());
        }
        // The header last: predictions without one would be taken for somebody's own.
        for file in [path, &header] {
            match std::fs::remove_file(file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::writing(file, "remove this file", e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Completes every prompt of a text.
    ///
    /// # Errors
    /// The journal cannot be written, or the server answers nothing.
    pub(super) fn complete(
        &self,
        path: &Path,
        text: &[u8],
        completion: &Completion,
        tick: &(dyn Fn() + Sync),
    ) -> Result<Predictions> {
        let mut predictions = Predictions::default();
        let mut records = Vec::new();
        for (at, bytes) in jsonl::records(text) {
            match self.record(path, at.line, bytes, completion) {
                Ok(record) => records.push(record),
                Err(problem) => predictions.problems.push(problem),
            }
        }
        let requests: Vec<(Asking, &str)> = records
            .iter()
            .map(|record| (record.asking.clone(), record.prompt.as_str()))
            .collect();
        let mut journal = Journal::open(&self.journal)?;
        let how = (self.connections, self.retry_failed);
        let outcome = run(&self.endpoint, &requests, how, &mut journal, &|_, _| tick())?;
        for (record, entry) in records.into_iter().zip(outcome.entries) {
            if let Some(reason) = &entry.error {
                predictions.problems.push(Error::Task {
                    path: path.to_owned(),
                    line: record.line,
                    task_id: record.task_id,
                    reason: format!("{reason}; --retry-failed asks again"),
                });
                continue;
            }
            let line = record.answered(&entry);
            predictions.lines.push(NotedLine {
                input: record.input,
                bytes: line.len() as u64,
                adds: (),
            });
            predictions.text.extend_from_slice(&line);
        }
        Ok(predictions)
    }

    fn record(
        &self,
        path: &Path,
        line: usize,
        bytes: &[u8],
        completion: &Completion,
    ) -> Result<Record> {
        let object = jsonl::parse(path, line, bytes)?;
        let fields = Fields::new(path, line, "", &object);
        let prompt = fields.string("prompt")?.to_owned();
        let metadata = object.get("metadata").and_then(Value::as_object);
        let text = |name: &str| metadata.and_then(|m| m.get(name)?.as_str());
        let mut asking = Asking {
            model: completion.model.clone(),
            max_tokens: completion.max_tokens,
            ..self.asking.clone()
        };
        let style = text("prompt_style").and_then(Style::bundled);
        for stop in style.iter().flat_map(|style| style.stop()) {
            if !asking.stop.contains(stop) {
                asking.stop.push(stop.clone());
            }
        }
        Ok(Record {
            line,
            input: Input(*blake3::hash(bytes).as_bytes()),
            task_id: text("task_id").unwrap_or("without id").to_owned(),
            prompt,
            asking,
            object,
        })
    }
}

/// A prompt's record on its way.
struct Record {
    line: usize,
    input: Input,
    task_id: String,
    prompt: String,
    asking: Asking,
    object: Object,
}

impl Record {
    /// The record with the answers: each as if the prompt had been sent whole, and as it was written where that differs.
    fn answered(&self, entry: &Entry) -> Vec<u8> {
        let choice = |(index, sample): (usize, &crate::generate::Sample)| {
            let text = self.asking.completion(&self.prompt, &sample.text);
            let tokens: Vec<&str> = sample
                .tokens
                .iter()
                .map(|token| token.text.as_str())
                .collect();
            let logprobs: Vec<f64> = sample.tokens.iter().map(|token| token.logprob).collect();
            let mut choice =
                json!({"text": text, "index": index, "finish_reason": sample.finish_reason});
            if !tokens.is_empty() {
                choice["logprobs"] = json!({"tokens": tokens, "token_logprobs": logprobs});
            }
            if sample.text != text {
                choice["written"] = sample.text.as_str().into();
            }
            choice
        };
        let choices: Vec<Value> = entry.samples.iter().enumerate().map(choice).collect();
        let mut object = self.object.clone();
        drop_retrieved(&mut object);
        record_line(object, choices.into())
    }
}
