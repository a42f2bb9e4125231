//! What a server is asked.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde_json::{Value, json};

use super::Ending;
use crate::error::Error;

/// Which of a server's two ways of completing is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// `/v1/completions`: the text goes on where the prompt ends.
    #[default]
    Completions,
    /// `/v1/chat/completions`: the model is told to write what comes next.
    Chat,
}

impl Api {
    /// Where requests go.
    pub fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Completions => "completions",
            Self::Chat => "chat",
        })
    }
}

impl FromStr for Api {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "completions" => Ok(Self::Completions),
            "chat" => Ok(Self::Chat),
            other => Err(Error::Parameter {
                name: "api",
                reason: format!("'{other}' is not one of completions, chat"),
            }),
        }
    }
}

/// What a chat model is told unless told otherwise.
const INSTRUCTION: &str = "You complete source code. The user's message is the beginning of a file. Answer with the code that comes \
next and with nothing else: no explanation, no Markdown, and nothing of what is there already.";

/// What every request of a run holds beside its prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    /// Which API.
    pub api: Api,
    /// The model, as the server calls it.
    pub model: String,
    /// Tokens of a completion, at most.
    pub max_tokens: usize,
    /// 0: the likeliest token at each step.
    pub temperature: f64,
    /// The share of probability that tokens are drawn from; the server's own where it is not set.
    pub top_p: Option<f64>,
    /// The first sample's seed; each further one has the next.
    pub seed: Option<u64>,
    /// Texts that end a completion.
    pub stop: Vec<String>,
    /// Completions of a prompt.
    pub samples: usize,
    /// Where a prompt ends.
    pub ending: Ending,
    /// What a chat model is told first; `None`: a sentence of ours.
    pub instruction: Option<String>,
}

impl Asking {
    /// Greedy, one sample, as the prompt is.
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

    /// The request for `number` samples from the `first` on.
    pub(crate) fn body(&self, prompt: &str, first: usize, number: usize) -> Value {
        let (asked, removed) = self.ending.split(prompt);
        let mut body = json!({"model": self.model});
        match self.api {
            Api::Completions => {
                body["prompt"] = asked.into();
                body["logprobs"] = 1.into();
            }
            Api::Chat => {
                let instruction = self.instruction.as_deref().unwrap_or(INSTRUCTION);
                body["messages"] = json!([
                    {"role": "system", "content": instruction}, {"role": "user", "content": asked},
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
        let stop: Vec<&String> = self
            .stop
            .iter()
            .filter(|stop| !is_held_back(stop, removed))
            .collect();
        if !stop.is_empty() {
            body["stop"] = json!(stop);
        }
        // Servers that know one sample only refuse the field.
        if number > 1 {
            body["n"] = number.into();
        }
        body
    }

    /// How a completion was asked for, to stand beside it.
    pub(crate) fn to_record(&self) -> Value {
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

    /// A digest of all that the answer to a prompt depends on, but for the server.
    pub fn key(&self, prompt: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        let body = self.body(prompt, 0, self.samples).to_string();
        // What is done to the answer is part of it.
        let (_, removed) = self.ending.split(prompt);
        for part in [
            "completion 1",
            &self.api.to_string(),
            &body,
            removed,
            &self.stop.join("\0"),
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// A completion from what the server wrote: as if the prompt had been sent whole, up to the first stop text.
    pub fn completion<'w>(&self, prompt: &str, written: &'w str) -> &'w str {
        &written[self.span(prompt, written)]
    }

    /// Where in what the server wrote the completion stands.
    pub fn span(&self, prompt: &str, written: &str) -> Range<usize> {
        let (_, removed) = self.ending.split(prompt);
        let text = match self.api {
            Api::Completions => self.ending.restore(removed, written),
            Api::Chat => self.ending.restore_answer(removed, written),
        };
        let held_back = self.stop.iter().filter(|stop| is_held_back(stop, removed));
        let ends = held_back.filter_map(|stop| text.find(stop.as_str()));
        let start = written.len() - text.len();
        start..start + ends.min().unwrap_or(text.len())
    }
}

/// Whether a stop text could begin in the white space that was taken from its prompt, where it ends nothing: such a text is
/// looked for in what is written behind.
fn is_held_back(stop: &str, removed: &str) -> bool {
    let mut ends = removed.char_indices().map(|(at, _)| &removed[at..]);
    ends.any(|end| end.starts_with(stop) || stop.starts_with(end))
}
