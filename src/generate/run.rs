//! Many requests to one server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Entry, Journal, Sample};
use crate::error::{Error, Result};

/// So many failures one after the other, without an answer between them, are the server's and not the prompts'.
const HOPELESS: usize = 5;

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Requests at a time.
    pub connections: usize,
    /// Whether what failed before is asked for again.
    pub retry_failed: bool,
}

/// Places of the requests, given by their keys, that a journal has no answer to; equal ones are one request. What failed
/// is among them where it is to be asked for again.
pub fn unanswered(keys: &[String], journal: &Journal, retry_failed: bool) -> Vec<usize> {
    let mut seen = rustc_hash::FxHashSet::default();
    let is_open = |key: &String| journal.is_open(key, retry_failed);
    (0..keys.len())
        .filter(|place| is_open(&keys[*place]) && seen.insert(&keys[*place]))
        .collect()
}

/// Answers these open requests on so many connections: `ask` is called with the place of each, from several threads. A
/// request that fails is kept as such. `progress` is told how many are done and how many of them failed.
///
/// # Errors
/// The journal cannot be written, or one request after the other fails: what came until then is kept.
pub fn run(
    keys: &[String],
    open: Vec<usize>,
    connections: usize,
    journal: &mut Journal,
    progress: &(dyn Fn(usize, usize) + Sync),
    ask: &(dyn Fn(usize) -> Result<Vec<Sample>> + Sync),
) -> Result<()> {
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
            end: None,
        }),
    };
    std::thread::scope(|scope| {
        for _ in 0..connections.clamp(1, asked.max(1)) {
            scope.spawn(|| work.ask_all());
        }
    });
    let state = work.state.into_inner();
    match state.unwrap_or_else(PoisonError::into_inner).end {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

struct Work<'a> {
    keys: &'a [String],
    /// Places of the requests that are to be sent.
    open: Vec<usize>,
    ask: &'a (dyn Fn(usize) -> Result<Vec<Sample>> + Sync),
    progress: &'a (dyn Fn(usize, usize) + Sync),
    next: AtomicUsize,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    journal: &'a mut Journal,
    done: usize,
    failed: usize,
    /// Failures since the last answer.
    in_a_row: usize,
    /// Why no more is asked.
    end: Option<Error>,
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
            let begin = Instant::now();
            let answer = (self.ask)(place);
            let seconds = (begin.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
            let mut state = self.state();
            let (samples, error) = match answer {
                Ok(samples) => {
                    state.in_a_row = 0;
                    (samples, None)
                }
                Err(error) => {
                    let reason = reason(&error);
                    state.failed += 1;
                    if !is_too_long(&reason) {
                        state.in_a_row += 1;
                    }
                    let hint = error
                        .hint()
                        .map_or_else(String::new, |hint| format!("; {hint}"));
                    if state.in_a_row >= HOPELESS {
                        state.end.get_or_insert(error);
                        return;
                    }
                    (Vec::new(), Some(reason + &hint))
                }
            };
            let entry = Entry {
                key: self.keys[place].clone(),
                samples,
                error,
                seconds: Some(seconds),
            };
            state.done += 1;
            if let Err(error) = state.journal.append(&entry) {
                state.end.get_or_insert(error);
                return;
            }
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

/// Whether a server refuses one prompt for its length, as llama.cpp, vLLM, OpenAI and TGI say it.
pub(super) fn is_too_long(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    [
        "context size",
        "context length",
        "context_length",
        "context window",
        "maximum context",
        "too long",
        "too many tokens",
        "inputs tokens",
    ]
    .iter()
    .any(|words| reason.contains(words))
}
