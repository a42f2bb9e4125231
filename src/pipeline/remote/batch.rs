//! Batches: requests that have no answer yet → a file for a batch endpoint; its answers, in any order → the journal.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::super::completion::{Completion, Server};
use super::record::{PromptText, Record};
use crate::complete::batch::{SEPARATOR, answer, custom_id};
use crate::complete::server::{Entry, Journal, samples, unanswered};
use crate::error::{Error, Result};
use crate::store::jsonl;

/// Digits of a request's key in its `custom_id`, by which its answer is known: it is that of this prompt and these settings.
const DIGITS: usize = 16;

/// A file for a batch endpoint.
#[derive(Debug, Default)]
pub struct BatchWritten {
    /// A request a line.
    pub text: Vec<u8>,
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

/// The requests of those prompts that have no answer yet, in the form of OpenAI's and vLLM's batch files.
///
/// # Errors
/// The journal cannot be read.
pub fn write_batch(prompts: &[PromptText], completion: &Completion) -> Result<BatchWritten> {
    let server = server(completion)?;
    let mut written = BatchWritten::default();
    let requests = requests(server, prompts, completion, &mut written.problems)?;
    let journal = Journal::open(&server.journal)?;
    // An answer that a server streamed, and that ends after the target's lines, is one as well.
    let keys: Vec<String> =
        requests.iter().map(|request| server.key(&request.record, Some(&journal))).collect();
    let open = unanswered(&keys, Some(&journal), true);
    written.requests = open.len();
    written.others = requests.len() - open.len();
    for place in open {
        let Request { id, record, .. } = &requests[place];
        let asking = &record.asking;
        let body = asking.body(record.prompt(), 0, asking.samples);
        let line =
            json!({"custom_id": id, "method": "POST", "url": asking.api.path(), "body": body});
        written.text.extend_from_slice(line.to_string().as_bytes());
        written.text.push(b'\n');
    }
    Ok(written)
}

/// Takes the answers of a batch endpoint, and what it says of requests that failed, into the journal.
///
/// # Errors
/// A file cannot be read, or the journal cannot be written.
pub fn read_batch(
    files: &[PathBuf],
    prompts: &[PromptText],
    completion: &Completion,
) -> Result<BatchRead> {
    let server = server(completion)?;
    let mut read = BatchRead::default();
    let requests = requests(server, prompts, completion, &mut Vec::new())?;
    let by_digits: FxHashMap<&str, &Request> =
        requests.iter().map(|request| (digits(&request.key), request)).collect();
    let mut journal = Journal::open(&server.journal)?;
    for file in files {
        let text = jsonl::read(file)?;
        for (at, bytes) in jsonl::records(&text) {
            match entry(file, at.line, bytes, &by_digits) {
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

fn server(completion: &Completion) -> Result<&Server> {
    completion.check()?;
    completion.server.as_ref().ok_or_else(|| Error::Parameter {
        name: "model",
        reason: "is the embedded one, which needs no batch; name that of the batch endpoint".into(),
    })
}

struct Request {
    key: String,
    id: String,
    record: Record,
}

fn requests(
    server: &Server,
    prompts: &[PromptText],
    completion: &Completion,
    problems: &mut Vec<Error>,
) -> Result<Vec<Request>> {
    let mut requests = Vec::new();
    for prompts in prompts {
        let mode = prompts.mode();
        for record in server.records(prompts, completion, problems)? {
            let key = record.whole_key();
            let number = |name: &str| record.number(name).map(|number| number as usize);
            let row = number("row").unwrap_or(record.line - 1);
            let name = custom_id(row, number("sample").unwrap_or(0));
            let mode = mode.map_or(String::new(), |mode| format!("{mode}-"));
            let id = format!("{name}{SEPARATOR}{mode}{}", digits(&key));
            requests.push(Request { key, id, record });
        }
    }
    Ok(requests)
}

fn digits(key: &str) -> &str {
    &key[..DIGITS]
}

/// The request that a record of answers belongs to.
fn entry(
    path: &Path,
    line: usize,
    bytes: &[u8],
    requests: &FxHashMap<&str, &Request>,
) -> Result<Entry> {
    let object = jsonl::parse(path, line, bytes)?;
    let (id, answer) = answer(path, line, &object)?;
    let key = id.rsplit('-').next().unwrap_or_default();
    let Some(request) = requests.get(key) else {
        let reason = format!(
            "the answer to {id:?} belongs to none of these prompts, or was asked for with another model or other settings"
        );
        return Err(Error::record(path, line, reason));
    };
    let asking = &request.record.asking;
    let found = answer.and_then(|body| {
        let found = samples(&Value::Object(body.clone()), asking.api)?;
        match found.len() < asking.samples {
            true => Err(format!("{} of {} samples came", found.len(), asking.samples)),
            false => Ok(found),
        }
    });
    let (mut samples, error) = match found {
        Ok(samples) => (samples, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    samples.truncate(asking.samples);
    Ok(Entry { key: request.key.clone(), samples, error, seconds: None, at_once: None })
}
