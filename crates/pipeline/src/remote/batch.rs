//! Batches: writes requests without an answer to a file for a batch endpoint, and reads the answers, in any order, into the
//! journal.

use std::ops::Range;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet};
use repoformer_core::completion::{Api, Sample, drop_secrets, samples};
use repoformer_core::retrieve::Mode;
use repoformer_models::batch::{SEPARATOR, answer, custom_id};
use repoformer_models::endpoint::holds_key;
use repoformer_models::server::{
    Journal, JournalEntry, NextToken, Prober, TextProber, echo_body, read_echo,
};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl;
use serde_json::{Value, json};

use super::super::completion::{Completion, EmitLine, Server};
use super::super::likelihood::find_target;
use super::TokenQuestion;
use super::record::{OpenRecord, PromptText};

/// Number of digits of a request's key in its `custom_id`; they show that an answer belongs to this prompt and these settings.
const DIGITS: usize = 16;

/// Summary of the requests that were written for a batch endpoint.
#[derive(Debug, Default)]
pub struct BatchSummary {
    /// Number of requests.
    pub requests: usize,
    /// Number of prompts that need no request: they have an answer, or repeat another prompt.
    pub others: usize,
    /// Records that could not be used.
    pub problems: Vec<Error>,
}

/// Summary of the answers that were read from a batch endpoint.
#[derive(Debug, Default)]
pub struct BatchRead {
    /// Number of answers.
    pub answers: usize,
    /// Number of requests that failed.
    pub failed: usize,
    /// Records that could not be used, or that belong to no request.
    pub problems: Vec<Error>,
}

/// Question that a batch asks about each prompt.
#[derive(Debug, Clone, Copy)]
pub enum BatchOf<'a> {
    /// The prompt's completion.
    Completions,
    /// Probability of a token after the prompt, by vLLM's `prompt_logprobs`.
    Token(&'a TokenQuestion),
    /// Probability of the target after the prompt, by `echo` of the completions API.
    Likelihoods,
}

/// A [`BatchOf`] with the token's id.
enum Sort<'a> {
    Completions,
    Token(&'a TokenQuestion, NextToken),
    Likelihoods,
}

/// A request of a batch.
struct BatchRequest {
    key: String,
    /// Bytes of the target in the prompt, which ends with the target.
    target: Range<usize>,
}

struct BatchQuestion<'a> {
    server: &'a Server,
    model: &'a str,
    sort: Sort<'a>,
}

impl<'a> BatchQuestion<'a> {
    fn new(completion: &'a Completion, of: BatchOf<'a>) -> Result<Self> {
        completion.check()?;
        let server = completion.server.as_ref().ok_or_else(|| Error::Parameter {
            name: "model",
            reason: "is the embedded model, which needs no batch; name the batch endpoint's model"
                .into(),
        })?;
        let model = &*completion.model;
        let sort = match of {
            BatchOf::Completions => Sort::Completions,
            BatchOf::Token(token) => Sort::Token(token, token.token(server, model)?),
            BatchOf::Likelihoods => Sort::Likelihoods,
        };
        Ok(Self { server, model, sort })
    }

    /// Returns the target of a record; empty unless the question is about it.
    fn target<'r>(&self, record: &'r OpenRecord, path: &Path) -> Result<&'r str> {
        match self.sort {
            Sort::Likelihoods => {
                find_target(&record.object).map_err(|reason| record.failure_error(path, reason))
            }
            _ => Ok(""),
        }
    }

    /// Returns the key of the request for a record.
    fn key(&self, record: &OpenRecord, target: &str) -> String {
        match &self.sort {
            Sort::Token(question, token) => {
                Prober::key(self.model, token, &question.prompt(record.prompt()))
            }
            Sort::Likelihoods => TextProber::key(self.model, record.prompt(), target),
            Sort::Completions => record.whole_key(),
        }
    }

    /// Returns the key of the answer that a record has, or of the request for it.
    fn key_in(&self, record: &OpenRecord, target: &str, journal: &Journal) -> String {
        match self.sort {
            // A streamed answer that ends after the target's lines counts, too.
            Sort::Completions => self.server.key(record, Some(journal)),
            _ => self.key(record, target),
        }
    }

    /// Returns the line with the request for a record.
    fn request(&self, record: &OpenRecord, target: &str, mode: Option<Mode>) -> Vec<u8> {
        let number = |name: &str| record.number(name).map(|number| number as usize);
        let name =
            custom_id(number("row").unwrap_or(record.line - 1), number("sample").unwrap_or(0));
        let mode = mode.map_or(String::new(), |mode| format!("{mode}-"));
        let id = format!("{name}{SEPARATOR}{mode}{}", digits(&self.key(record, target)));
        let asking = &record.asking;
        let (api, body) = match &self.sort {
            Sort::Token(question, token) => {
                let prompt = question.prompt(record.prompt());
                (Api::Completions, token.behind(self.model, &prompt))
            }
            Sort::Likelihoods => (Api::Completions, echo_body(self.model, record.prompt(), target)),
            Sort::Completions => (asking.api, asking.body(record.prompt(), 0, asking.samples)),
        };
        let url = api.path();
        let line = json!({"custom_id": id, "method": "POST", "url": url, "body": body});
        let mut line = line.to_string().into_bytes();
        line.push(b'\n');
        line
    }

    /// Returns the samples of an answer.
    fn samples(&self, body: &Value, asked: &BatchRequest) -> Result<Vec<Sample>, String> {
        match &self.sort {
            Sort::Token(_, token) => {
                let sample = token.read_behind(body);
                return Ok(vec![sample.map_err(|error| error.to_string())?]);
            }
            Sort::Likelihoods => {
                let begin = asked.target.start;
                let is_asked = |echoed: &str| {
                    echoed.split_at_checked(begin).is_some_and(|(prompt, target)| {
                        TextProber::key(self.model, prompt, target) == asked.key
                    })
                };
                let sample = read_echo(body, asked.target.clone(), is_asked);
                return Ok(vec![sample.map_err(|unread| unread.explain().0.into_owned())?]);
            }
            Sort::Completions => {}
        }
        let asking = &self.server.asking;
        let mut found = samples(body, asking.api).map_err(|error| error.to_string())?;
        drop_secrets(&mut found, holds_key).map_err(|error| error.to_string())?;
        if found.len() < asking.samples {
            return Err(format!(
                "only {} of {} samples were answered",
                found.len(),
                asking.samples
            ));
        }
        found.truncate(asking.samples);
        Ok(found)
    }
}

/// Writes the requests for prompts without an answer, one per line, in the format of OpenAI's batch files. vLLM's runner accepts
/// only requests to the chat API in this format.
///
/// # Errors
/// The prompts or the journal cannot be read, the token's id is not known, or `emit` returns an error.
pub fn write_batch(
    prompts: &[PromptText],
    completion: &Completion,
    of: BatchOf<'_>,
    emit: &mut EmitLine<'_>,
) -> Result<BatchSummary> {
    let question = BatchQuestion::new(completion, of)?;
    let mut written = BatchSummary::default();
    let journal = Journal::open(&question.server.journal)?;
    let mut keys = HashSet::default();
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
            let target = match question.target(&record, prompts.path()) {
                Ok(target) => target,
                Err(problem) => {
                    written.problems.push(problem);
                    return Ok(());
                }
            };
            let key = question.key_in(&record, target, &journal);
            if !journal.is_open(&key, true) || !keys.insert(key) {
                written.others += 1;
                return Ok(());
            }
            written.requests += 1;
            emit(&question.request(&record, target, mode))
        })?;
    }
    Ok(written)
}

/// Reads the answers of a batch endpoint, and its reports of failed requests, into the journal.
///
/// # Errors
/// A file cannot be read, the token's id is not known, or the journal cannot be written.
pub fn read_batch(
    files: &[PathBuf],
    prompts: &[PromptText],
    completion: &Completion,
    of: BatchOf<'_>,
) -> Result<BatchRead> {
    let question = BatchQuestion::new(completion, of)?;
    let mut read = BatchRead::default();
    let mut keys = HashMap::default();
    for prompts in prompts {
        question.server.for_each_record(prompts, completion, &mut |record| {
            // Records that cannot be requested are reported when predictions are made.
            if let Ok(record) = record
                && let Ok(target) = question.target(&record, prompts.path())
            {
                let (key, begin) = (question.key(&record, target), record.prompt().len());
                let asked = BatchRequest { target: begin..begin + target.len(), key };
                keys.insert(digits(&asked.key).to_owned(), asked);
            }
            Ok(())
        })?;
    }
    let mut journal = Journal::open(&question.server.journal)?;
    let mut answered: HashMap<String, (&Path, usize)> = HashMap::default();
    for file in files {
        let text = jsonl::read(file)?;
        for (at, bytes) in jsonl::records(&text) {
            match entry(file, at.line, bytes, &keys, &question) {
                Ok(entry) => {
                    let known = journal.get(&entry.key)?;
                    if entry.error.is_none() {
                        let first = *answered.entry(entry.key.clone()).or_insert((file, at.line));
                        if first != (file, at.line) && known.as_ref() != Some(&entry) {
                            let (other, line) = (first.0.display(), first.1);
                            let reason =
                                format!("another answer to the same request is at {other}:{line}");
                            keep(&mut read.problems, file, Error::record(file, at.line, reason));
                            continue;
                        }
                    }
                    // A failure does not undo an answer.
                    let is_answered = known.as_ref().is_some_and(|known| known.error.is_none());
                    read.answers += usize::from(entry.error.is_none());
                    read.failed += usize::from(entry.error.is_some());
                    if known.as_ref() != Some(&entry) && !(is_answered && entry.error.is_some()) {
                        journal.append(&entry)?;
                    }
                }
                Err(problem) => keep(&mut read.problems, file, problem),
            }
        }
    }
    Ok(read)
}

fn digits(key: &str) -> &str {
    &key[..DIGITS]
}

/// Returns the journal entry for a line of a batch endpoint's answers.
fn entry(
    path: &Path,
    line: usize,
    bytes: &[u8],
    keys: &HashMap<String, BatchRequest>,
    question: &BatchQuestion<'_>,
) -> Result<JournalEntry> {
    let object = jsonl::parse(path, line, bytes)?;
    let (id, answer) = answer(path, line, &object)?;
    let Some(asked) = keys.get(id.rsplit('-').next().unwrap_or_default()) else {
        let reason = format!(
            "the answer to {id:?} belongs to none of these prompts, or was requested with another model or other settings"
        );
        return Err(Error::record(path, line, reason));
    };
    let found = answer.and_then(|body| question.samples(&body, asked));
    let key = &asked.key;
    Ok(match found {
        Err(reason) => JournalEntry::from_failure(key, reason),
        Ok(samples) => {
            let key = key.clone();
            JournalEntry {
                key,
                samples,
                error: None,
                seconds: None,
                at_once: None,
                is_checked: true,
            }
        }
    })
}
