//! Completions of a prompt, in as few requests as the server allows.

use std::sync::atomic::{AtomicBool, Ordering};

use super::run::{is_too_long, reason};
use super::{Asking, Sample, samples};
use crate::endpoint::Endpoint;
use crate::error::Result;

/// Asks a server for completions.
#[derive(Debug)]
pub struct Completer<'a> {
    endpoint: &'a Endpoint,
    /// Whether the server gives one sample a request.
    one_by_one: AtomicBool,
}

impl<'a> Completer<'a> {
    /// Of this server.
    pub fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            one_by_one: AtomicBool::new(false),
        }
    }

    /// All samples of a prompt, in one request where the server gives several.
    ///
    /// # Errors
    /// The server refuses, or its answer holds no completion.
    pub fn ask(&self, asking: &Asking, prompt: &str) -> Result<Vec<Sample>> {
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
