//! Requests for completions.

use std::ops::Range;

use foldhash::HashSet;
use repoformer_store::artifact::digest_parts;
use repoformer_text::named;
use serde_json::{Map, Value, json};

use super::cut::{AnswerCut, MOST_STOPS, find_withheld, holds_any};
use super::{CompletionCut, Ending};

/// A server's API for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// `/v1/completions`: the text continues the prompt.
    #[default]
    Completions,
    /// `/v1/chat/completions`: the model is instructed to write the code that comes next.
    Chat,
}

named! {
    Api, "API":
    Completions = "completions",
    Chat = "chat",
}

impl Api {
    /// Returns the path of requests.
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
    /// Sampling temperature; with 0, the most probable token is chosen at each step.
    pub temperature: f64,
    /// Probability mass from which tokens are drawn (nucleus sampling); the server's default if `None`.
    pub top_p: Option<f64>,
    /// Seed of the first sample; each further sample has the next seed.
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
    /// Creates settings for one greedy sample of the whole prompt.
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

    /// Returns the body of a request for `number` samples, starting with sample `first`. The body has as many stop texts as
    /// servers accept; [`span`](Self::span) ends a completion at all stop texts.
    pub fn body(&self, prompt: &str, first: usize, number: usize) -> Value {
        self.body_with(prompt, first, number, MOST_STOPS)
    }

    /// Returns the body of a request for one completion that is passed on while it is written: without log-probabilities, and
    /// with token counts at its end. `fields` override the fields of the settings. Without a model name, the server uses its
    /// only model.
    pub fn stream_body(&self, prompt: &str, fields: &Map<String, Value>) -> Value {
        let mut body = self.sampling_body(prompt, 0, MOST_STOPS, false);
        body["stream"] = true.into();
        body["stream_options"] = json!({"include_usage": true});
        if let Some(body) = body.as_object_mut() {
            if self.model.is_empty() {
                body.shift_remove("model");
            }
            body.extend(fields.clone());
        }
        body
    }

    fn body_with(&self, prompt: &str, first: usize, number: usize, stops: usize) -> Value {
        let mut body = self.sampling_body(prompt, first, stops, true);
        // Servers that support only one sample reject the field.
        if number > 1 {
            body["n"] = number.into();
        }
        body
    }

    /// Returns the fields that all requests for completions share.
    fn sampling_body(&self, prompt: &str, first: usize, stops: usize, logprobs: bool) -> Value {
        let (sent, removed) = self.ending.split(prompt);
        let mut body = json!({"model": self.model});
        match self.api {
            Api::Completions => {
                body["prompt"] = sent.into();
                if logprobs {
                    body["logprobs"] = 1.into();
                }
            }
            Api::Chat => {
                let instruction = self.instruction.as_deref().unwrap_or(INSTRUCTION);
                body["messages"] = json!([
                {"role": "system", "content": instruction}, {"role": "user", "content": sent},
                                ]);
                if logprobs {
                    body["logprobs"] = true.into();
                }
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
        let held_back = find_withheld(&self.stop, removed);
        let stop = self.stop.iter().zip(held_back).filter(|(_, is_held_back)| !is_held_back);
        let stop: Vec<&String> = stop.map(|(stop, _)| stop).take(stops).collect();
        if !stop.is_empty() {
            body["stop"] = json!(stop);
        }
        body
    }

    /// Returns the settings as a record to store with the completions.
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

    /// Adds the stop texts of a prompt style.
    pub fn add_stops(&mut self, stops: Vec<String>) {
        let mut known: HashSet<String> = self.stop.iter().cloned().collect();
        let is_new = |stop: &String| !stop.is_empty() && known.insert(stop.clone());
        self.stop.extend(stops.into_iter().filter(is_new));
    }

    /// Returns the first stop text that is not sent with this prompt.
    pub fn withheld_stop(&self, prompt: &str) -> Option<&str> {
        let (_, removed) = self.ending.split(prompt);
        let at =
            find_withheld(&self.stop, removed).into_iter().position(|is_held_back| is_held_back)?;
        Some(&self.stop[at])
    }

    /// Returns true if the text contains a stop text.
    pub fn holds_stop(&self, text: &str) -> bool {
        holds_any(&self.stop, text)
    }

    /// Returns a digest of everything that the answer to a prompt depends on, except the server.
    pub fn key(&self, prompt: &str) -> String {
        // Completions end at all stop texts, regardless of how many are sent to the server.
        let body = self.body_with(prompt, 0, self.samples, usize::MAX).to_string();
        // The treatment of the answer is also part of the key.
        let (_, removed) = self.ending.split(prompt);
        digest_parts(["completion 1", self.api.name(), &body, removed, &self.stop.join("\0")])
    }

    /// Returns the completion in the server's text: as if the whole prompt had been sent, up to the first stop text.
    pub fn completion<'w>(&self, prompt: &str, written: &'w str) -> &'w str {
        &written[self.span(prompt, written)]
    }

    /// Returns the cut for a completion that arrives in pieces from `/v1/completions`; the result is the same as from
    /// [`span`](Self::span).
    pub fn cut(&self, prompt: &str) -> CompletionCut {
        let (_, removed) = self.ending.split(prompt);
        CompletionCut::new(self.stop.iter().cloned(), removed)
    }

    /// Returns the range of the completion in the server's text.
    pub fn span(&self, prompt: &str, written: &str) -> Range<usize> {
        let (_, removed) = self.ending.split(prompt);
        AnswerCut::new(&self.stop, removed).span_with(written, |text| match self.api {
            Api::Completions => self.ending.restore(removed, text),
            Api::Chat => self.ending.restore_answer(removed, text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_the_settings_but_for_the_fields_of_the_editor() {
        let settings = CompletionRequest {
            temperature: 0.5,
            top_p: Some(0.9),
            ending: Ending::BeforeWhitespace,
            stop: ["a", "b", "\n", "c", "d", "e"].map(str::to_owned).to_vec(),
            ..CompletionRequest::new("m", 7)
        };
        let fields = json!({"temperature": 0.1, "top_k": 3});
        let body = settings.stream_body("x =\n", fields.as_object().unwrap());
        // Stop texts that may begin in withheld white space are not sent, and at most four are.
        let wanted = json!({
            "model": "m", "prompt": "x =", "max_tokens": 7, "temperature": 0.1, "top_p": 0.9,
            "stop": ["a", "b", "c", "d"], "stream": true,
            "stream_options": {"include_usage": true}, "top_k": 3,
        });
        assert_eq!(body, wanted);
        let unnamed = CompletionRequest::new("", 7).stream_body("x", &Map::new());
        assert!(unnamed.get("model").is_none() && unnamed.get("stop").is_none(), "{unnamed}");
    }

    #[test]
    fn pieces_are_cut_where_the_whole_is() {
        for (ending, prompt, written) in [
            (Ending::BeforeWhitespace, "def f():\n    ", "\n    return 1\nprint"),
            (Ending::BeforeWhitespace, "x =\n", "\ny = 1\n\nz"),
            (Ending::AsIs, "def f():\n", "    pass<end>more"),
        ] {
            let stop = ["\n\n", "<end>", "\nprint"].map(str::to_owned).to_vec();
            let settings = CompletionRequest { ending, stop, ..CompletionRequest::new("m", 7) };
            let mut cut = settings.cut(prompt);
            let pieces = written.chars().map(|one| cut.pass(&one.to_string()));
            let text = pieces.collect::<String>() + &cut.finish();
            assert_eq!(text, settings.completion(prompt, written), "{prompt:?} {written:?}");
        }
    }
}
