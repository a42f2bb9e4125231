//! Many requests to one server.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Asking, Entry, Journal, samples};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};

/// So many failures one after the other, without an answer between them, are the server's and not the prompts'.
const HOPELESS: usize = 5;

/// What came of each prompt.
#[derive(Debug, Default)]
pub struct Outcome {
    /// In the order of the prompts.
    pub entries: Vec<Entry>,
    /// How many were asked for now; the others were known.
    pub asked: usize,
}

/// Asks for the completions of all requests, each a prompt and how it is asked for, that the journal does not know, `connections` at a time. A request that fails is
/// kept as such, and asked for again the next time where `retry_failed` says so. `progress` is told how many are done and
/// how many of them failed.
///
/// # Errors
/// The journal cannot be written, or one request after the other fails: what came until then is kept.
pub fn run(
    endpoint: &Endpoint,
    requests: &[(Asking, &str)],
    (connections, retry_failed): (usize, bool),
    journal: &mut Journal,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome> {
    let keys = requests.iter().map(|(asking, prompt)| asking.key(prompt));
    let keys: Vec<String> = keys.collect();
    let mut open = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    for (place, key) in keys.iter().enumerate() {
        let known = journal.get(key)?;
        let is_open = known.is_none_or(|entry| retry_failed && entry.error.is_some());
        // Equal prompts are one request.
        if is_open && seen.insert(key) {
            open.push(place);
        }
    }
    let work = Work {
        endpoint,
        one_by_one: AtomicBool::new(false),
        next: AtomicUsize::new(0),
        state: Mutex::new(State {
            journal,
            done: 0,
            failed: 0,
            in_a_row: 0,
            end: None,
        }),
    };
    let asked = open.len();
    std::thread::scope(|scope| {
        for _ in 0..connections.clamp(1, asked.max(1)) {
            scope.spawn(|| work.ask_all(requests, &keys, &open, progress));
        }
    });
    let state = work
        .state
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = state.end {
        return Err(error);
    }
    let mut outcome = Outcome {
        entries: Vec::with_capacity(requests.len()),
        asked,
    };
    for key in keys {
        let known = state.journal.get(&key)?;
        outcome.entries.push(known.unwrap_or_else(|| Entry {
            key,
            samples: Vec::new(),
            error: Some("its answer is not in the journal any more".into()),
            seconds: 0.0,
        }));
    }
    Ok(outcome)
}

struct Work<'a> {
    endpoint: &'a Endpoint,
    /// Whether the server gives one sample a request.
    one_by_one: AtomicBool,
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

    fn ask_all(
        &self,
        requests: &[(Asking, &str)],
        keys: &[String],
        open: &[usize],
        progress: &(dyn Fn(usize, usize) + Sync),
    ) {
        while let Some(&place) = open.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.state().end.is_some() {
                return;
            }
            let begin = Instant::now();
            let (asking, prompt) = &requests[place];
            let answer = self.ask(asking, prompt);
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
                key: keys[place].clone(),
                samples,
                error,
                seconds,
            };
            state.done += 1;
            if let Err(error) = state.journal.append(&entry) {
                state.end.get_or_insert(error);
                return;
            }
            progress(state.done, state.failed);
        }
    }

    /// All samples of a prompt, in one request where the server gives several.
    fn ask(&self, asking: &Asking, prompt: &str) -> Result<Vec<super::Sample>> {
        let wanted = asking.samples.max(1);
        let mut found = Vec::with_capacity(wanted);
        while found.len() < wanted {
            let left = wanted - found.len();
            let number = match self.one_by_one.load(Ordering::Relaxed) {
                true => 1,
                false => left,
            };
            let body = asking.body(prompt, found.len(), number);
            let path = asking.api.path();
            let answer = match self.endpoint.post_json(path, &body) {
                Ok(answer) => answer,
                // llama.cpp refuses more samples than it has slots.
                Err(error) if number > 1 && !is_too_long(&reason(&error)) => {
                    self.one_by_one.store(true, Ordering::Relaxed);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let new = samples(&answer, asking.api).map_err(|reason| {
                let hint = "is this an OpenAI-compatible server? --api chat asks for messages";
                self.endpoint.error(path, reason, hint)
            })?;
            // Some servers take the number and give one all the same.
            if new.len() < number {
                self.one_by_one.store(true, Ordering::Relaxed);
            }
            found.extend(new.into_iter().take(left));
        }
        Ok(found)
    }
}

fn reason(error: &Error) -> String {
    match error {
        Error::Endpoint { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

/// Whether a server refuses one prompt for its length, as llama.cpp, vLLM, OpenAI and TGI say it.
fn is_too_long(reason: &str) -> bool {
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
