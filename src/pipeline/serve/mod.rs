//! `complete` by a model on a server: the prompts' records → requests → records with its answers.

mod batch;
mod latency;
mod probability;

pub use batch::{BatchRead, BatchWritten, read_batch, write_batch};
pub(super) use latency::keep as keep_latencies;
pub use latency::{Latency, latencies};
pub use probability::{TokenQuestion, probabilities};

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Experiment;
use super::complete::{Completion, Predictions, drop_retrieved, record_line};
use super::kept::Input;
use super::prompt::{read_prompts, require_prompts};
use crate::artifact::{self, Identity, header_path};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::generate::{
    Answer, Asking, Completer, Confidence, Entry, Failures, Journal, Sending, entropy, run,
    unanswered,
};
use crate::jsonl::{self, Fields, Object};
use crate::prompt::style::Style;
use crate::query::Mode;

/// A model on a server, how it is asked, and where its answers come from.
#[derive(Debug, Clone)]
pub struct Server {
    /// What every request holds; a prompt's own style adds the texts that end a completion.
    pub asking: Asking,
    /// Where answers are kept as they come.
    pub journal: PathBuf,
    /// Whether somebody chose that place, so that answers in others are another model's.
    pub has_own_journal: bool,
    /// Who is asked for those that are not kept yet; `None`: nobody, all that there are have been kept, such as those of a
    /// batch.
    pub asked: Option<Asked>,
}

/// A server that is asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where it is.
    pub endpoint: Endpoint,
    /// How requests are sent.
    pub sending: Sending,
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
            (
                "journal",
                self.has_own_journal
                    .then(|| self.journal.display().to_string()),
            ),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                identity = identity.parameter(name, value);
            }
        }
        identity
    }

    /// Whether predictions that lack some prompts' are made again: where what failed is to be asked for again, where answers
    /// may have come meanwhile, or where nothing was ever heard of a request.
    fn completes(&self, prompts: &PromptText, completion: &Completion) -> Result<bool> {
        let Some(Asked { sending, .. }) = &self.asked else {
            return Ok(true);
        };
        let PromptText { path, text, .. } = prompts;
        let records = self.records(path, text, completion, &mut Vec::new());
        let keys: Vec<String> = records.iter().map(Record::key).collect();
        let journal = Journal::open(&self.journal)?;
        Ok(!unanswered(&keys, &journal, sending.retry_failed).is_empty())
    }

    /// Why prompts have no answer that were not answered before, one by one.
    pub(super) fn failures(
        &self,
        prompts: &PromptText,
        completion: &Completion,
    ) -> Result<Vec<Error>> {
        let PromptText { path, text, .. } = prompts;
        let mut problems = Vec::new();
        let records = self.records(path, text, completion, &mut problems);
        let known = (Journal::open(&self.journal)?, Failures::default());
        for record in records {
            if let Some(reason) = self.entry(&known, &record.key())?.error {
                problems.push(record.failed(path, &reason));
            }
        }
        Ok(problems)
    }

    /// Forgets a mode's predictions where they lack what can be had; what was answered is in the journal.
    pub(super) fn forget_incomplete(
        &self,
        experiment: &Experiment,
        mode: Mode,
        path: &Path,
        completion: &Completion,
    ) -> Result<()> {
        let header = header_path(path);
        let is_whole = |prompts: &PromptText| match artifact::read_jsonl_header(path) {
            Ok(found) => found.records >= prompts.records() as u64,
            Err(_) => true,
        };
        if !header.exists() {
            return Ok(());
        }
        let prompts = PromptText::of_mode(experiment, mode)?;
        if is_whole(&prompts) || !self.completes(&prompts, completion)? {
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
        text: Vec<u8>,
        completion: &Completion,
        tick: &(dyn Fn() + Sync),
    ) -> Result<Predictions> {
        let mut predictions = Predictions::default();
        let records = self.records(path, &text, completion, &mut predictions.problems);
        // Most of it is what was retrieved, and a server may take hours.
        drop(text);
        let keys: Vec<String> = records.iter().map(Record::key).collect();
        let completer = self
            .asked
            .as_ref()
            .map(|asked| Completer::new(&asked.endpoint));
        let ask = |place: usize| match &completer {
            Some(completer) => completer.ask(&records[place].asking, records[place].prompt()),
            None => Ok(Answer::none()),
        };
        let answers = self.answered(&keys, tick, &ask)?;
        for (record, key) in records.into_iter().zip(&keys) {
            let entry = self.entry(&answers, key)?;
            match &entry.error {
                Some(reason) => predictions.problems.push(record.failed(path, reason)),
                None => {
                    predictions.latencies.push(record.latency(&entry));
                    let input = record.input;
                    predictions.push(input, &record.answered(&entry));
                }
            }
        }
        Ok(predictions)
    }

    /// The journal, once all requests are answered that can be, and why others could not.
    fn answered(
        &self,
        keys: &[String],
        tick: &(dyn Fn() + Sync),
        ask: &(dyn Fn(usize) -> Result<Answer> + Sync),
    ) -> Result<(Journal, Failures)> {
        let mut journal = Journal::open(&self.journal)?;
        let Some(Asked { endpoint, sending }) = &self.asked else {
            return Ok((journal, Failures::default()));
        };
        let open = unanswered(keys, &journal, sending.retry_failed);
        (open.len()..keys.len()).for_each(|_| tick());
        if open.is_empty() {
            return Ok((journal, Failures::default()));
        }
        endpoint.greet()?;
        let connections = sending.connections;
        let failures = run(keys, open, connections, &mut journal, &|_, _| tick(), ask)?;
        Ok((journal, failures))
    }

    /// What is known of a request; why it failed ends with what to do.
    fn entry(&self, (journal, failures): &(Journal, Failures), key: &str) -> Result<Entry> {
        let failed = |reason: String| Entry {
            key: key.to_owned(),
            samples: Vec::new(),
            error: Some(reason),
            seconds: None,
        };
        if let Some(reason) = failures.get(key) {
            return Ok(failed(format!("{reason}; the same command asks again")));
        }
        let way_out = match self.asked {
            Some(_) => "--retry-failed asks again",
            None => "--write-batch writes what has no answer",
        };
        let mut entry = match journal.get(key)? {
            Some(entry) => entry,
            None => failed("it has no answer yet".into()),
        };
        entry.error = entry.error.map(|reason| format!("{reason}; {way_out}"));
        Ok(entry)
    }

    /// The records of a text that can be asked for.
    fn records(
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
        let mut asking = Asking {
            model: completion.model.clone(),
            max_tokens: completion.max_tokens,
            ..self.asking.clone()
        };
        // Prompts of a style say what ends a completion; those that somebody wrote by hand may name the style alone.
        let said = metadata.and_then(|metadata| metadata.get("stop")?.as_array());
        let style = text("prompt_style").and_then(Style::bundled);
        let stops: Vec<String> = match (said, style) {
            (Some(said), _) => said
                .iter()
                .filter_map(|stop| Some(stop.as_str()?.to_owned()))
                .collect(),
            (None, style) => style.map_or(Vec::new(), |style| style.stop().to_vec()),
        };
        for stop in stops {
            if !stop.is_empty() && !asking.stop.contains(&stop) {
                asking.stop.push(stop);
            }
        }
        Ok(Record {
            line,
            input: Input(*blake3::hash(bytes).as_bytes()),
            task_id: text("task_id").unwrap_or("without id").to_owned(),
            asking,
            object,
        })
    }
}

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
        Ok(Self {
            path: path.to_owned(),
            mode: None,
            text: jsonl::read(path)?,
        })
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
struct Record {
    line: usize,
    input: Input,
    task_id: String,
    asking: Asking,
    /// What is not retrieved; with a text as prompt.
    object: Object,
}

impl Record {
    fn prompt(&self) -> &str {
        self.object["prompt"].as_str().unwrap_or_default()
    }

    fn key(&self) -> String {
        self.asking.key(self.prompt())
    }

    /// A number of the record's metadata.
    fn number(&self, name: &str) -> Option<u64> {
        self.object.get("metadata")?.get(name)?.as_u64()
    }

    fn failed(&self, path: &Path, reason: &str) -> Error {
        Error::Task {
            path: path.to_owned(),
            line: self.line,
            task_id: self.task_id.clone(),
            reason: reason.to_owned(),
        }
    }

    fn latency(&self, entry: &Entry) -> Latency {
        Latency {
            task_id: self.task_id.clone(),
            row: self.number("row"),
            sample: self.number("sample").unwrap_or(0),
            retrieval_ms: None,
            generation_ms: entry.seconds.map(|seconds| 1e3 * seconds),
        }
    }

    /// The record with the answers: each as if the prompt had been sent whole, and as it was written where that differs.
    fn answered(self, entry: &Entry) -> Vec<u8> {
        let (mut choices, mut all) = (Vec::new(), Vec::new());
        for (index, sample) in entry.samples.iter().enumerate() {
            let span = self.asking.span(self.prompt(), &sample.text);
            let text = &sample.text[span.clone()];
            let mut choice =
                json!({"text": text, "index": index, "finish_reason": sample.finish_reason});
            if !sample.tokens.is_empty() {
                let (tokens, logprobs): (Vec<&str>, Vec<f64>) = sample
                    .tokens
                    .iter()
                    .map(|token| (token.text.as_str(), token.logprob))
                    .unzip();
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
