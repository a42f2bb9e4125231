//! Batches: requests that have no answer yet → a file for a batch endpoint; its answers, in any order → the journal.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::super::completion::{Completion, EmitLine, Server};
use super::TokenQuestion;
use super::record::{PromptText, Record};
use crate::complete::batch::{SEPARATOR, answer, custom_id};
use crate::complete::server::{Api, Entry, Journal, NextToken, Prober, Sample, samples};
use crate::error::{Error, Result};
use crate::retrieve::Mode;
use crate::store::jsonl;

/// Digits of a request's key in its `custom_id`, by which its answer is known: it is that of this prompt and these settings.
const DIGITS: usize = 16;

/// Requests that were written for a batch endpoint.
#[derive(Debug, Default)]
pub struct BatchWritten {
    /// How many there are.
    pub requests: usize,
    /// How many prompts need none: they are answered, or the same as another.
    pub others: usize,
    /// The records that could not be used.
    pub problems: Vec<Error>,
}

/// Predictions from a batch's answers.
#[derive(Debug, Default)]
pub struct BatchRead {
    /// Answers taken.
    pub answers: usize,
    /// Requests that the endpoint did not fulfil.
    pub failed: usize,
    /// The records that could not be used, or that belong to no request.
    pub problems: Vec<Error>,
}

/// Question of a batch about each prompt: how it goes on, or how likely a token comes next.
struct BatchQuestion<'a> {
    server: &'a Server,
    model: &'a str,
    token: Option<(&'a TokenQuestion, NextToken)>,
}

impl<'a> BatchQuestion<'a> {
    fn of(completion: &'a Completion, token: Option<&'a TokenQuestion>) -> Result<Self> {
        completion.check()?;
        let server = completion.server.as_ref().ok_or_else(|| Error::Parameter {
            name: "model",
            reason: "is the embedded one, which needs no batch; name that of the batch endpoint"
                .into(),
        })?;
        let model = &*completion.model;
        let token = token.map(|token| Ok((token, token.token(server, model)?))).transpose()?;
        Ok(Self { server, model, token })
    }

    /// Key of the request for a record.
    fn key(&self, record: &Record) -> String {
        match &self.token {
            Some((question, token)) => {
                Prober::key(self.model, token, &question.prompt(record.prompt()))
            }
            None => record.whole_key(),
        }
    }

    /// Key of the answer that a record has, or of the request for it.
    fn key_in(&self, record: &Record, journal: &Journal) -> String {
        match self.token {
            Some(_) => self.key(record),
            // An answer that a server streamed, and that ends after the target's lines, is one as well.
            None => self.server.key(record, Some(journal)),
        }
    }

    /// The request for a record, a line.
    fn request(&self, record: &Record, mode: Option<Mode>) -> Vec<u8> {
        let number = |name: &str| record.number(name).map(|number| number as usize);
        let name =
            custom_id(number("row").unwrap_or(record.line - 1), number("sample").unwrap_or(0));
        let mode = mode.map_or(String::new(), |mode| format!("{mode}-"));
        let id = format!("{name}{SEPARATOR}{mode}{}", digits(&self.key(record)));
        let asking = &record.asking;
        let (url, body) = match &self.token {
            Some((question, token)) => {
                let prompt = question.prompt(record.prompt());
                (Api::Completions.path(), token.behind(self.model, &prompt))
            }
            None => (asking.api.path(), asking.body(record.prompt(), 0, asking.samples)),
        };
        let line = json!({"custom_id": id, "method": "POST", "url": url, "body": body});
        let mut line = line.to_string().into_bytes();
        line.push(b'\n');
        line
    }

    /// The samples of an answer.
    fn samples(&self, body: &Value) -> Result<Vec<Sample>, String> {
        if let Some((_, token)) = &self.token {
            return Ok(vec![token.read_behind(body)?]);
        }
        let asking = &self.server.asking;
        let mut found = samples(body, asking.api)?;
        if found.len() < asking.samples {
            return Err(format!("{} of {} samples came", found.len(), asking.samples));
        }
        found.truncate(asking.samples);
        Ok(found)
    }
}

/// Writes the requests of those prompts that have no answer yet, in the form of OpenAI's batch files, one a line; vLLM's
/// runner takes those of its chat API alone. With a `token`, they ask for its probability, by vLLM's `prompt_logprobs`.
///
/// # Errors
/// The prompts or the journal cannot be read, the token has no number, or an error of `emit`.
pub fn write_batch(
    prompts: &[PromptText],
    completion: &Completion,
    token: Option<&TokenQuestion>,
    emit: &mut EmitLine<'_>,
) -> Result<BatchWritten> {
    let question = BatchQuestion::of(completion, token)?;
    let mut written = BatchWritten::default();
    let journal = Journal::open(&question.server.journal)?;
    let mut keys = FxHashSet::default();
    for prompts in prompts {
        let mode = prompts.mode();
        question.server.for_each_record(prompts, completion, &mut |record| {
            let record = match record {
                Ok(record) => record,
                Err(problem) => {
                    written.problems.push(problem);
                    return Ok(());
                }
            };
            let key = question.key_in(&record, &journal);
            if !journal.is_open(&key, true) || !keys.insert(key) {
                written.others += 1;
                return Ok(());
            }
            written.requests += 1;
            emit(&question.request(&record, mode))
        })?;
    }
    Ok(written)
}

/// Takes the answers of a batch endpoint, and what it says of requests that failed, into the journal. `token`: as for
/// [`write_batch`].
///
/// # Errors
/// A file cannot be read, the token has no number, or the journal cannot be written.
pub fn read_batch(
    files: &[PathBuf],
    prompts: &[PromptText],
    completion: &Completion,
    token: Option<&TokenQuestion>,
) -> Result<BatchRead> {
    let question = BatchQuestion::of(completion, token)?;
    let mut read = BatchRead::default();
    let mut keys = FxHashMap::default();
    for prompts in prompts {
        question.server.for_each_record(prompts, completion, &mut |record| {
            // Why others cannot be asked for is told when predictions are made.
            if let Ok(key) = record.map(|record| question.key(&record)) {
                keys.insert(digits(&key).to_owned(), key);
            }
            Ok(())
        })?;
    }
    let mut journal = Journal::open(&question.server.journal)?;
    for file in files {
        let text = jsonl::read(file)?;
        for (at, bytes) in jsonl::records(&text) {
            match entry(file, at.line, bytes, &keys, &question) {
                Ok(entry) => {
                    let known = journal.get(&entry.key)?;
                    // A failure does not undo an answer.
                    let is_answered = known.as_ref().is_some_and(|known| known.error.is_none());
                    read.answers += usize::from(entry.error.is_none());
                    read.failed += usize::from(entry.error.is_some());
                    if known.as_ref() != Some(&entry) && !(is_answered && entry.error.is_some()) {
                        journal.append(&entry)?;
                    }
                }
                Err(problem) => read.problems.push(problem),
            }
        }
    }
    Ok(read)
}

fn digits(key: &str) -> &str {
    &key[..DIGITS]
}

/// The request that a record of answers belongs to.
fn entry(
    path: &Path,
    line: usize,
    bytes: &[u8],
    keys: &FxHashMap<String, String>,
    question: &BatchQuestion<'_>,
) -> Result<Entry> {
    let object = jsonl::parse(path, line, bytes)?;
    let (id, answer) = answer(path, line, &object)?;
    let Some(key) = keys.get(id.rsplit('-').next().unwrap_or_default()) else {
        let reason = format!(
            "the answer to {id:?} belongs to none of these prompts, or was asked for with another model or other settings"
        );
        return Err(Error::record(path, line, reason));
    };
    let found = answer.and_then(|body| question.samples(&Value::Object(body.clone())));
    let (samples, error) = match found {
        Ok(samples) => (samples, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    Ok(Entry { key: key.clone(), samples, error, seconds: None, at_once: None })
}
