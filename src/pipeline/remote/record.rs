//! Prompts' records on their way to a server, and back with its answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::completion::{
    Completion, Server, Until, drop_retrieved, record_line, target_lines,
};
use super::super::experiment::Experiment;
use super::super::prompt::{for_each_prompts, require_prompts};
use super::latency::Latency;
use crate::complete::server::{CompletionRequest, Confidence, Entry, Journal, Sending, entropy};
use crate::error::{Error, Result};
use crate::evaluate::postprocess::{Hole, Recipe};
use crate::prompt::style::stops_of;
use crate::retrieve::Mode;
use crate::store::artifact::{Header, digest_parts};
use crate::store::jsonl::{self, Fields, Object};
use crate::text::language::Language;
use crate::text::lines::strip;

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
        Self::of_header(experiment, mode, &require_prompts(experiment, mode)?)
    }

    /// Those of a mode that this header is of.
    ///
    /// # Errors
    /// They are damaged, or others by now.
    pub(in crate::pipeline) fn of_header(
        experiment: &Experiment,
        mode: Mode,
        header: &Header,
    ) -> Result<Self> {
        let mut text = Vec::new();
        for_each_prompts(experiment, mode, header, &mut |piece| {
            text.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(Self { path: experiment.layout.prompts(mode), mode: Some(mode), text })
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
    /// Number of non-blank lines that the completion ends after; `None`: after the last token.
    lines: Option<usize>,
    /// The record without its retrieved parts; with a text as prompt.
    pub(super) object: Object,
}

impl Record {
    pub(super) fn prompt(&self) -> &str {
        self.object["prompt"].as_str().unwrap_or_default()
    }

    /// Key of the request for all tokens.
    pub(super) fn whole_key(&self) -> String {
        self.asking.key(self.prompt())
    }

    /// Key of the request whose answer is used, or that is to be sent: that which ends after the lines, unless the journal has the
    /// answer for all tokens, or knows no more than that this one failed. `None` for `sending`: to be sent in a batch, which
    /// does not stream.
    pub(super) fn key(&self, journal: Option<&Journal>, sending: Option<Sending>) -> String {
        let whole = self.whole_key();
        let Some(lines) = self.lines else {
            return whole;
        };
        let ended = digest_parts(["until lines 1", &whole, &lines.to_string()]);
        let has_answer = |key: &str| journal.is_some_and(|journal| journal.has_answer(key));
        let is_failed = |Sending { retry_failed, .. }: Sending| {
            journal.is_some_and(|journal| !journal.is_open(&whole, retry_failed))
        };
        let is_whole = has_answer(&whole) || (!has_answer(&ended) && sending.is_none_or(is_failed));
        if is_whole { whole } else { ended }
    }

    /// Whether a server has written all lines of a completion.
    pub(super) fn is_enough(&self) -> Option<impl Fn(&str) -> bool + '_> {
        let lines = self.lines?;
        Some(move |written: &str| {
            let text = self.asking.completion(self.prompt(), written);
            self.end_of_lines(text, lines).is_some()
        })
    }

    /// Where the lines end in a completion, before the newline; `None` if more may follow. They are counted as they are written,
    /// and again as they are without what chat models write around code.
    fn end_of_lines(&self, text: &str, lines: usize) -> Option<usize> {
        let chat = Recipe::chat();
        let (left_context, language) = (self.prompt(), Language::default());
        let hole = Hole { left_context, whole_left_context: None, target: "", language };
        let has_lines = |text: &str| {
            text.split('\n').filter(|line| !strip(line).is_empty()).nth(lines - 1).is_some()
        };
        let is_end = |end: &usize| {
            has_lines(&text[..*end]) && has_lines(&chat.apply(hole, &text[..*end]).prediction)
        };
        memchr::memchr_iter(b'\n', text.as_bytes()).find(is_end)
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

    /// Whether an answer was written beyond the lines that the completion ends after: its time is not that of the completion.
    fn is_longer(&self, entry: &Entry) -> bool {
        let has_end = |lines: usize, written: &str| {
            self.end_of_lines(self.asking.completion(self.prompt(), written), lines).is_some()
        };
        entry.key == self.whole_key()
            && self.lines.is_some_and(|lines| {
                entry.samples.iter().any(|sample| has_end(lines, &sample.text))
            })
    }

    /// Times of its answer.
    pub(super) fn latency(&self, entry: &Entry) -> Latency {
        let seconds = entry.seconds.filter(|_| !self.is_longer(entry));
        Latency {
            task_id: self.task_id.clone(),
            row: self.number("row"),
            sample: self.number("sample").unwrap_or(0),
            retrieval_ms: None,
            without_embedding: false,
            generation_ms: seconds.map(|seconds| 1e3 * seconds),
            decision_ms: None,
            at_once: entry.at_once,
        }
    }

    /// The record with the answers: each as if the prompt had been sent whole, and as it was written where that differs.
    pub(super) fn answered(self, entry: &Entry) -> Vec<u8> {
        let (mut choices, mut all) = (Vec::new(), Vec::new());
        for (index, sample) in entry.samples.iter().enumerate() {
            let mut span = self.asking.span(self.prompt(), &sample.text);
            let (mut written, mut finish) = (&*sample.text, sample.finish_reason.as_deref());
            let mut tokens = &sample.tokens[..];
            let text = &sample.text[span.clone()];
            if let Some(end) = self.lines.and_then(|lines| self.end_of_lines(text, lines)) {
                // As much as comes before a server stops depends on how fast it is told to.
                span.end = span.start + end;
                written = &written[..span.end];
                tokens = sample.tokens_before(span.end);
                finish = Some("stop");
            }
            let text = &sample.text[span.clone()];
            let mut choice = json!({"text": text, "index": index, "finish_reason": finish});
            if !tokens.is_empty() {
                let (tokens, logprobs): (Vec<&str>, Vec<f64>) =
                    tokens.iter().map(|token| (token.text.as_str(), token.logprob)).unzip();
                choice["logprobs"] = json!({"tokens": tokens, "token_logprobs": logprobs});
            }
            // How sure the model is of the completion, whatever else it wrote; not said where that is not known.
            let logprobs = sample.logprobs(span);
            if let Some(sure) = Confidence::of(&logprobs) {
                choice["mean_logprob"] = sure.mean_logprob.into();
                choice["min_logprob"] = sure.min_logprob.into();
            }
            if written != text {
                choice["written"] = written.into();
            }
            choices.push(choice);
            all.push(logprobs);
        }
        let mut asked = self.asking.to_record();
        let until = if self.lines.is_some() { Until::Lines } else { Until::Tokens };
        asked["until"] = until.name().into();
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
        let lines = match self.until {
            Until::Lines => Some(target_lines(&fields, &object)?),
            Until::Tokens => None,
        };
        Ok(Record {
            line,
            task_id: text("task_id").unwrap_or("without id").to_owned(),
            asking,
            lines,
            object,
        })
    }
}
