//! Sends many requests to one server.

use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;
use repoformer_core::completion::Answer;
use repoformer_store::error::{Error, Result};
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::Message;

use super::{Journal, JournalEntry};

/// Number of consecutive failures after which the server is considered unavailable.
const HOPELESS: usize = 5;
/// Number of rejected prompts and failed answers before the first completion after which the server is considered unusable.
const ALL_REFUSED: usize = 25;

/// Reasons of unanswered requests by key, if the journal does not contain them.
pub type Failures = HashMap<String, Message>;

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The prompt is too long for the model.
    Length,
    /// The server rejects this request, but possibly not others.
    Request,
    /// The response is not an answer of this API.
    Form,
    /// The answer reports a failure, as a whole or for a choice, or has no text.
    Answer,
    /// The server is overloaded, has an internal error or does not answer. This may be temporary.
    Server,
    /// The address, the key or the model is wrong: every request will fail.
    Everything,
}

impl Fault {
    fn from_error(error: &Error) -> Self {
        let (status, reason) = match error {
            Error::FailedAnswer { .. } => return Self::Answer,
            Error::Endpoint { status, reason, .. } => (status, reason),
            _ => return Self::Server,
        };
        match status {
            Some(400 | 413 | 422 | 500) if is_too_long(reason) => Self::Length,
            Some(400 | 413 | 422) => Self::Request,
            Some(200..300) => Self::Form,
            Some(401 | 403 | 404 | 405) => Self::Everything,
            _ => Self::Server,
        }
    }
}

/// Settings for sending requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendSettings {
    /// Number of concurrent requests.
    pub connections: usize,
    /// Whether failed requests are sent again.
    pub retry_failed: bool,
}

/// Returns the indices of the requests, given by their keys, that have no answer in a journal; equal keys count once. Failed requests come
/// last, if they are sent again.
pub fn find_unanswered(
    keys: &[String],
    journal: Option<&Journal>,
    retry_failed: bool,
) -> Vec<usize> {
    let mut seen = foldhash::HashSet::default();
    let is_open_if =
        |key: &String, retry: bool| journal.is_none_or(|journal| journal.is_open(key, retry));
    let is_open = |key: &String| is_open_if(key, retry_failed);
    let mut open: Vec<usize> = (0..keys.len())
        .filter(|place| is_open(&keys[*place]) && seen.insert(&keys[*place]))
        .collect();
    open.sort_by_key(|place| !is_open_if(&keys[*place], false));
    open
}

/// Sends these requests on several connections. Calls `prepare` with the index of each request, in order, and then `ask` with the result,
/// from several threads. A failure of a single request is recorded; a failure of the server is not, so that the next run repeats the
/// request.
///
/// # Errors
/// The journal cannot be written, several consecutive requests fail, or every request would fail; answers received so far are recorded.
pub fn run<R>(
    keys: &[String],
    open: Vec<usize>,
    connections: usize,
    journal: &mut Journal,
    work: &Work,
    prepare: &mut (dyn FnMut(usize) -> Result<R> + Send),
    ask: &(dyn Fn(R) -> Result<Answer> + Sync),
) -> Result<Failures> {
    let at_once = connections.clamp(1, open.len().max(1));
    let next = Mutex::new((open.into_iter(), prepare));
    let next = || {
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, prepare) = &mut *next;
        let place = open.next()?;
        Some((place, prepare(place)))
    };
    let state = Mutex::new(SendState {
        journal,
        at_once,
        done: 0,
        failed: 0,
        in_a_row: 0,
        refused: 0,
        is_answering: false,
        failures: Failures::default(),
        own: Vec::new(),
        end: None,
        is_unwritable: false,
    });
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let ask_all = || {
        while let Some((place, request)) = next() {
            if lock().end.is_some() {
                return;
            }
            let answer = request.and_then(ask);
            let mut state = lock();
            // Write nothing more after an error.
            if state.is_unwritable {
                return;
            }
            let noted = match answer {
                Ok(answer) => state.record_answer(&keys[place], answer),
                Err(error) => state.handle_failure(&keys[place], error),
            };
            if let Err(error) = noted {
                state.is_unwritable = true;
                state.end.get_or_insert(error);
                return;
            }
            state.done += 1;
            work.advance(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(ask_all);
        }
    });
    let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = state.end.take() {
        return Err(error);
    }
    // No completion arrived and there were too few failed answers to blame the server, so blame the prompts.
    state.keep_own(|fault| fault == Fault::Answer)?;
    Ok(state.failures)
}

struct SendState<'a> {
    journal: &'a mut Journal,
    /// Number of concurrent requests.
    at_once: usize,
    done: usize,
    failed: usize,
    /// Number of server failures since the last answer.
    in_a_row: usize,
    /// Number of rejected prompts and failed answers before the first completion.
    refused: usize,
    /// Whether an answer has arrived.
    is_answering: bool,
    /// Unrecorded failures: of the server, or of single requests before the first completion.
    failures: Failures,
    /// Keys and faults of the single requests among `failures`.
    own: Vec<(String, Fault)>,
    /// Reason why no more requests are sent.
    end: Option<Error>,
    /// Whether the journal can no longer be written.
    is_unwritable: bool,
}

impl SendState<'_> {
    /// Records an answer, and the failures of single requests before it.
    fn record_answer(&mut self, key: &str, answer: Answer) -> Result<()> {
        self.in_a_row = 0;
        self.is_answering = true;
        self.keep_own(|_| true)?;
        self.journal.append(&JournalEntry {
            key: key.to_owned(),
            samples: answer.samples,
            error: None,
            seconds: Some((1000.0 * answer.seconds).round() / 1000.0),
            at_once: Some(self.at_once),
            is_checked: true,
        })
    }

    /// Counts a failure, and records it if it is the prompt's; a hopeless one ends the run.
    fn handle_failure(&mut self, key: &str, error: Error) -> Result<()> {
        let fault = Fault::from_error(&error);
        let mut why = Message::from(reason(&error));
        if let Some(hint) = error.hint() {
            why = message![why, "; ", hint];
        }
        self.failed += 1;
        let is_of_request = matches!(fault, Fault::Request | Fault::Form | Fault::Answer);
        // Once the server has completed another prompt, such a failure is the prompt's.
        let is_own = fault == Fault::Length || self.is_answering && is_of_request;
        let is_hopeless = match fault {
            _ if is_own => false,
            Fault::Request | Fault::Answer => {
                self.refused += 1;
                self.refused >= ALL_REFUSED
            }
            Fault::Form | Fault::Server => {
                self.in_a_row += 1;
                self.in_a_row >= HOPELESS
            }
            Fault::Everything => true,
            Fault::Length => false,
        };
        if is_hopeless {
            self.end.get_or_insert(error);
            return Ok(());
        }
        if is_own {
            return self.keep(key, why);
        }
        if is_of_request {
            self.own.push((key.to_owned(), fault));
        }
        self.failures.insert(key.to_owned(), why);
        Ok(())
    }

    /// Records the failures of single requests that were not recorded before.
    fn keep_own(&mut self, is_kept: impl Fn(Fault) -> bool) -> Result<()> {
        for (key, _) in std::mem::take(&mut self.own).iter().filter(|(_, fault)| is_kept(*fault)) {
            if let Some(why) = self.failures.remove(key) {
                self.keep(key, why)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, key: &str, why: Message) -> Result<()> {
        self.journal.append(&JournalEntry::from_failure(key, why))
    }
}

/// Returns the reason of a server's failure.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::Endpoint { reason, .. } | Error::FailedAnswer { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// Returns whether a server rejects a request permanently.
pub(super) fn is_refused(error: &Error) -> bool {
    let Error::Endpoint { status, .. } = error else {
        return false;
    };
    matches!(status, Some(400 | 404 | 405 | 413 | 415 | 422 | 501))
        && Fault::from_error(error) != Fault::Length
}

/// Returns whether an error message mentions a prompt's length, in the words of llama.cpp, vLLM, OpenAI and TGI.
fn is_too_long(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    let has = |words: &str| reason.contains(words);
    let of_context = [
        "context size", "context length", "context_length", "context window", "maximum context",
        "too many tokens", "inputs tokens",
    ];
    // A list of stop texts may be too long as well, so require a word for the prompt.
    let of_text = has("too long") && ["prompt", "input", "token"].into_iter().any(has);
    of_context.into_iter().any(has) || of_text
}
