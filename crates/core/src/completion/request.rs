//! Requests for completions.

use std::ops::Range;

use repoformer_store::artifact::digest_parts;
use repoformer_text::named;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use super::Ending;
use super::cut::{self, MOST_STOPS, is_held_back};

/// A server's API for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// `/v1/completions`: the text continues the prompt.
    #[default]
    Completions,
    /// `/v1/chat/completions`: the model is instructed to write what comes next.
    Chat,
}

named! {
    Api, "API":
    Completions = "completions",
    Chat = "chat",
}

impl Api {
    /// Path of requests.
    pub fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// Default instruction for a chat model.
const INSTRUCTION: &str = "You complete source code. The user's message is the beginning of a file. Answer with the code that comes \
next and with nothing else: no explanation, no Markdown, and nothing of what is there already.";

/// Settings of all requests of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// API of the server.
    pub api: Api,
    /// The server's name for the model.
    pub model: String,
    /// Largest number of tokens in a completion.
    pub max_tokens: usize,
    /// 0: the most probable token at each step.
    pub temperature: f64,
    /// Share of probability from which tokens are drawn; the server's default if `None`.
    pub top_p: Option<f64>,
    /// Seed of the first sample; each further one has the next.
    pub seed: Option<u64>,
    /// Stop texts.
    pub stop: Vec<String>,
    /// Number of completions per prompt.
    pub samples: usize,
    /// Treatment of white space at the end of a prompt.
    pub ending: Ending,
    /// Instruction for a chat model; `None` for the default one.
    pub instruction: Option<String>,
}

impl CompletionRequest {
    /// Settings for one greedy sample of the whole prompt.
    pub fn new(model: &str, max_tokens: usize) -> Self {
        Self {
            api: Api::Completions,
            model: model.to_owned(),
            max_tokens,
            temperature: 0.0,
            top_p: None,
            seed: None,
            stop: Vec::new(),
            samples: 1,
            ending: Ending::AsIs,
            instruction: None,
        }
    }

    /// Returns the body of a request for `number` samples, starting with sample `first`. It has as many stop texts as servers accept;
    /// [`span`](Self::span) ends a completion at all of them.
    pub fn body(&self, prompt: &str, first: usize, number: usize) -> Value {
        self.body_with(prompt, first, number, MOST_STOPS)
    }

    fn body_with(&self, prompt: &str, first: usize, number: usize, stops: usize) -> Value {
        let (sent, removed) = self.ending.split(prompt);
        let mut body = json!({"model": self.model});
        match self.api {
            Api::Completions => {
                body["prompt"] = sent.into();
                body["logprobs"] = 1.into();
            }
            Api::Chat => {
                let instruction = self.instruction.as_deref().unwrap_or(INSTRUCTION);
                body["messages"] = json!([
                {"role": "system", "content": instruction}, {"role": "user", "content": sent},
                                ]);
                body["logprobs"] = true.into();
            }
        }
        body["max_tokens"] = self.max_tokens.into();
        body["temperature"] = self.temperature.into();
        if let Some(top_p) = self.top_p {
            body["top_p"] = top_p.into();
        }
        if let Some(seed) = self.seed {
            body["seed"] = (seed + first as u64).into();
        }
        let stop = self.stop.iter().filter(|stop| !is_held_back(stop, removed));
        let stop: Vec<&String> = stop.take(stops).collect();
        if !stop.is_empty() {
            body["stop"] = json!(stop);
        }
        // Servers that support one sample only reject the field.
        if number > 1 {
            body["n"] = number.into();
        }
        body
    }

    /// Returns the settings as a record to store beside completions.
    pub fn to_record(&self) -> Value {
        let mut record = json!({
            "model": self.model, "api": self.api.to_string(), "max_tokens": self.max_tokens,
            "temperature": self.temperature, "prompt_end": self.ending.to_string(),
        });
        if self.samples > 1 {
            record["samples"] = self.samples.into();
        }
        if let Some(instruction) = &self.instruction {
            record["instruction"] = instruction.as_str().into();
        }
        if let Some(top_p) = self.top_p {
            record["top_p"] = top_p.into();
        }
        if let Some(seed) = self.seed {
            record["seed"] = seed.into();
        }
        if !self.stop.is_empty() {
            record["stop"] = json!(self.stop);
        }
        record
    }

    /// Adds the stop texts of a prompt's style.
    pub fn add_stops(&mut self, stops: Vec<String>) {
        let mut known: FxHashSet<String> = self.stop.iter().cloned().collect();
        let is_new = |stop: &String| !stop.is_empty() && known.insert(stop.clone());
        self.stop.extend(stops.into_iter().filter(is_new));
    }

    /// A stop text that is not sent with this prompt.
    pub fn withheld_stop(&self, prompt: &str) -> Option<&str> {
        let (_, removed) = self.ending.split(prompt);
        self.stop.iter().map(String::as_str).find(|stop| is_held_back(stop, removed))
    }

    /// Returns a digest of everything the answer to a prompt depends on, except the server.
    pub fn key(&self, prompt: &str) -> String {
        // Completions end at all stop texts, however many a server is told.
        let body = self.body_with(prompt, 0, self.samples, usize::MAX).to_string();
        // The treatment of the answer counts too.
        let (_, removed) = self.ending.split(prompt);
        digest_parts(["completion 1", self.api.name(), &body, removed, &self.stop.join("\0")])
    }

    /// Returns the completion in the server's text: as if the whole prompt had been sent, up to the first stop text.
    pub fn completion<'w>(&self, prompt: &str, written: &'w str) -> &'w str {
        &written[self.span(prompt, written)]
    }

    /// Range of the completion in the server's text.
    pub fn span(&self, prompt: &str, written: &str) -> Range<usize> {
        let (_, removed) = self.ending.split(prompt);
        cut::span(&self.stop, removed, written, |text| match self.api {
            Api::Completions => self.ending.restore(removed, text),
            Api::Chat => self.ending.restore_answer(removed, text),
        })
    }
}
