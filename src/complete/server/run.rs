//! Many requests to one server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::{Answer, Entry, Journal};
use crate::error::{Error, Result};

/// So many failures one after the other, without an answer between them, are the server's and not the prompts'.
const HOPELESS: usize = 5;
/// So many refusals of prompts before the first answer are not the prompts' either.
const ALL_REFUSED: usize = 25;

/// Why requests have no answer, by their keys, where the journal does not know.
pub type Failures = FxHashMap<String, String>;

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// This prompt is too long for the model.
    Length,
    /// The server refuses this request, but perhaps not others.
    Request,
    /// What came is no completion.
    Answer,
    /// The server's: overload, a fault, silence. It may pass.
    Server,
    /// The address, the key or the model is wrong: every request will fail.
    Everything,
}

impl Fault {
    fn of(error: &Error) -> Self {
        let Error::Endpoint { status, reason, .. } = error else {
            return Self::Server;
        };
        match status {
            Some(400 | 413 | 422 | 500) if is_too_long(reason) => Self::Length,
            Some(400 | 413 | 422) => Self::Request,
            Some(200..300) => Self::Answer,
            Some(401 | 403 | 404 | 405) => Self::Everything,
            _ => Self::Server,
        }
    }
}

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Requests at a time.
    pub connections: usize,
    /// Whether what failed before is asked for again.
    pub retry_failed: bool,
}

/// Places of the requests, given by their keys, that a journal has no answer to; equal ones are one request. What failed
/// comes last, where it is to be asked for again.
pub fn unanswered(keys: &[String], journal: &Journal, retry_failed: bool) -> Vec<usize> {
    let mut seen = rustc_hash::FxHashSet::default();
    let is_open = |key: &String| journal.is_open(key, retry_failed);
    let mut open: Vec<usize> = (0..keys.len())
        .filter(|place| is_open(&keys[*place]) && seen.insert(&keys[*place]))
        .collect();
    open.sort_by_key(|place| !journal.is_open(&keys[*place], false));
    open
}

/// Answers these open requests on so many connections: `ask` is called with the place of each, from several threads. A
/// request that fails by itself is kept as such; one that fails by the server's fault is not, so that the next run asks again.
/// `progress` is told how many are done and how many of them failed.
///
/// # Errors
/// The journal cannot be written, one request after the other fails, or all must: what came until then is kept.
pub fn run(
    keys: &[String],
    open: Vec<usize>,
    connections: usize,
    journal: &mut Journal,
    progress: &(dyn Fn(usize, usize) + Sync),
    ask: &(dyn Fn(usize) -> Result<Answer> + Sync),
) -> Result<Failures> {
    let asked = open.len();
    let work = Work {
        keys,
        open,
        ask,
        progress,
        next: AtomicUsize::new(0),
        state: Mutex::new(State {
            journal,
            done: 0,
            failed: 0,
            in_a_row: 0,
            refused: 0,
            is_answering: false,
            failures: Failures::default(),
            own: Vec::new(),
            end: None,
            is_unwritable: false,
        }),
    };
    std::thread::scope(|scope| {
        for _ in 0..connections.clamp(1, asked.max(1)) {
            scope.spawn(|| work.ask_all());
        }
    });
    let state = work.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    match state.end {
        Some(error) => Err(error),
        None => Ok(state.failures),
    }
}

struct Work<'a> {
    keys: &'a [String],
    /// Places of the requests that are to be sent.
    open: Vec<usize>,
    ask: &'a (dyn Fn(usize) -> Result<Answer> + Sync),
    progress: &'a (dyn Fn(usize, usize) + Sync),
    next: AtomicUsize,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    journal: &'a mut Journal,
    done: usize,
    failed: usize,
    /// Failures by the server's fault since the last answer.
    in_a_row: usize,
    /// Refusals of prompts before the first answer.
    refused: usize,
    /// Whether any answer came.
    is_answering: bool,
    /// What failed by the server's fault, or by itself while no answer has come: nothing is kept of it.
    failures: Failures,
    /// Keys of those among them that failed by themselves.
    own: Vec<String>,
    /// Why no more is asked.
    end: Option<Error>,
    /// Whether the journal takes no more.
    is_unwritable: bool,
}

impl State<'_> {
    /// Keeps an answer, and what failed by itself before it.
    fn answered(&mut self, key: &str, answer: Answer) -> Result<()> {
        self.in_a_row = 0;
        self.is_answering = true;
        for own in std::mem::take(&mut self.own) {
            if let Some(why) = self.failures.remove(&own) {
                self.keep(&own, why)?;
            }
        }
        self.journal.append(&Entry {
            key: key.to_owned(),
            samples: answer.samples,
            error: None,
            seconds: Some((1000.0 * answer.seconds).round() / 1000.0),
        })
    }

    /// Takes note of a failure.
    fn failed(&mut self, key: &str, error: Error) -> Result<()> {
        let fault = Fault::of(&error);
        let hint = error
            .hint()
            .map_or_else(String::new, |hint| format!("; {hint}"));
        let why = reason(&error) + &hint;
        self.failed += 1;
        // Once the server answers others, what it refuses is that prompt's fault.
        let is_own = self.is_answering && matches!(fault, Fault::Request | Fault::Answer);
        let is_hopeless = match fault {
            Fault::Length => false,
            _ if is_own => false,
            Fault::Request => {
                self.refused += 1;
                self.refused >= ALL_REFUSED
            }
            Fault::Answer | Fault::Server => {
                self.in_a_row += 1;
                self.in_a_row >= HOPELESS
            }
            Fault::Everything => true,
        };
        if is_hopeless {
            self.end.get_or_insert(error);
            return Ok(());
        }
        match fault {
            Fault::Length => return self.keep(key, why),
            _ if is_own => return self.keep(key, why),
            Fault::Request | Fault::Answer => self.own.push(key.to_owned()),
            Fault::Server | Fault::Everything => {}
        }
        self.failures.insert(key.to_owned(), why);
        Ok(())
    }

    fn keep(&mut self, key: &str, why: String) -> Result<()> {
        self.journal.append(&Entry {
            key: key.to_owned(),
            samples: Vec::new(),
            error: Some(why),
            seconds: None,
        })
    }
}

impl<'a> Work<'a> {
    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask_all(&self) {
        while let Some(&place) = self.open.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.state().end.is_some() {
                return;
            }
            let answer = (self.ask)(place);
            let mut state = self.state();
            // Nothing more is written where that went wrong.
            if state.is_unwritable {
                return;
            }
            let key = &self.keys[place];
            let noted = match answer {
                Ok(answer) => state.answered(key, answer),
                Err(error) => state.failed(key, error),
            };
            if let Err(error) = noted {
                state.is_unwritable = true;
                state.end.get_or_insert(error);
                return;
            }
            state.done += 1;
            (self.progress)(state.done, state.failed);
        }
    }
}

/// What a server answered instead, in words.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::Endpoint { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// Whether a failure is that of one prompt's length.
pub(super) fn is_of_length(error: &Error) -> bool {
    Fault::of(error) == Fault::Length
}

/// Whether a server refuses what it is asked, and not only for now.
pub(super) fn is_refused(error: &Error) -> bool {
    let Error::Endpoint { status, .. } = error else {
        return false;
    };
    matches!(status, Some(400 | 404 | 405 | 413 | 415 | 422 | 501)) && !is_of_length(error)
}

/// Whether a refusal speaks of a prompt's length, as llama.cpp, vLLM, OpenAI and TGI say it.
fn is_too_long(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    let has = |words: &str| reason.contains(words);
    let of_context = [
        "context size",
        "context length",
        "context_length",
        "context window",
        "maximum context",
        "too many tokens",
        "inputs tokens",
    ];
    // A list of stop texts may be too long as well.
    let of_text = has("too long") && ["prompt", "input", "token"].into_iter().any(has);
    of_context.into_iter().any(has) || of_text
}
