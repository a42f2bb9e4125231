//! Probability of a given text after a prompt.
//!
//! It is computed from the log-probabilities of a prompt that ends in the text: vLLM's `prompt_logprobs`, or `echo` of the original
//! completions API, which batches use. One request is enough, and it generates nothing except one token that is discarded.
//!
//! Tokens may span the end of the prompt, such as a newline with the following indentation. They are counted in full, so the text of the
//! tokens may begin before the given text; a model is trained on such tokens.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use repoformer_core::completion::{
    Answer, AnswerError, Api, Sample, TokenProbability, check_answer, logarithm,
};
use repoformer_store::artifact::digest_parts;
use repoformer_store::error::{Error, Result};
use repoformer_text::message::Message;
use serde_json::{Value, json};

use super::completer::answer_error;
use super::run::{is_refused, reason};
use crate::endpoint::Endpoint;

const COMPLETIONS: &str = "/v1/completions";
const TOKENIZE: &str = "/tokenize";

/// Method by which a server returns the log-probabilities of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// vLLM's `prompt_logprobs`, for tokens whose numbers its `/tokenize` returns.
    PromptLogprobs,
    /// `echo`.
    Echo,
}

impl Way {
    const ALL: [Self; 2] = [Self::PromptLogprobs, Self::Echo];

    fn name(self) -> &'static str {
        match self {
            Self::PromptLogprobs => "prompt_logprobs",
            Self::Echo => "echo",
        }
    }
}

/// Client that requests the probability of texts after prompts.
#[derive(Debug)]
pub struct TextProber<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
    /// Method that the server supports, once it is known.
    way: Mutex<Option<Way>>,
}

/// Reason why an answer has no log-probabilities of a text's tokens.
#[derive(Debug)]
pub enum LikelihoodGap {
    /// The server or the model failed.
    Failed(AnswerError),
    /// The answer is not in the requested form.
    Form(&'static str),
    /// No token precedes the text's first one.
    NothingBefore,
    /// No token belongs to the text.
    NoToken,
}

impl LikelihoodGap {
    /// Returns the reason and a hint.
    pub fn explain(&self) -> (Cow<'static, str>, Message) {
        match self {
            Self::Failed(error) => (error.to_string().into(), error.hint()),
            Self::Form(why) => {
                ((*why).into(), "ask a server whose answers have log-probabilities of prompts".into())
            }
            Self::NothingBefore => (
                "no token of the prompt stands before the text, so its first one has no probability".into(),
                "complete prompts that are not empty".into(),
            ),
            Self::NoToken => (
                "no token of the model holds the text, so it has no probability".into(),
                "the tokenizer drops it: leave this task out".into(),
            ),
        }
    }
}

/// Returns a request for the log-probabilities of a text after a prompt, by `echo`.
pub fn echo_body(model: &str, prompt: &str, text: &str) -> Value {
    json!({
        "model": model, "prompt": format!("{prompt}{text}"), "max_tokens": 1, "temperature": 0.0, "echo": true, "logprobs": 1,
    })
}

/// Reads the answer to [that request](echo_body). Returns a sample of the tokens that contain the text, which is at the bytes `text`;
/// `is_whole` checks that the echoed prompt and text are the requested ones.
///
/// # Errors
/// The answer has no such log-probabilities, or is the answer to another text.
pub fn read_echo(
    answer: &Value,
    text: Range<usize>,
    is_whole: impl Fn(&str) -> bool,
) -> Result<Sample, LikelihoodGap> {
    check_answer(answer).map_err(LikelihoodGap::Failed)?;
    let logprobs = answer.pointer("/choices/0/logprobs");
    let list = |name: &str| logprobs.and_then(|logprobs| logprobs.get(name)?.as_array());
    let (Some(texts), Some(values)) = (list("tokens"), list("token_logprobs")) else {
        return Err(LikelihoodGap::Form("the answer has no log-probabilities"));
    };
    let all: Option<Vec<&str>> = texts.iter().map(Value::as_str).collect();
    let Some(texts) = all.filter(|texts| texts.len() == values.len()) else {
        return Err(LikelihoodGap::Form(
            "the answer has not a text and a log-probability for each token",
        ));
    };
    let has_text = |skip: &usize| {
        let all = texts.get(*skip..).map(<[&str]>::concat);
        all.is_some_and(|all| all.get(..text.end).is_some_and(&is_whole))
    };
    // The token that marks the beginning of a text is not always echoed.
    let Some(first) = [0, 1].into_iter().find(has_text) else {
        return Err(LikelihoodGap::Form("the tokens of the answer are not those of the prompt"));
    };
    let (mut tokens, mut at) = (Vec::new(), 0);
    for (place, (token, value)) in texts.iter().zip(values).enumerate().skip(first) {
        let begin = at;
        at += token.len();
        // A token without a text is part of the preceding character.
        let is_behind = begin >= text.end + usize::from(token.is_empty());
        if at <= text.start || is_behind {
            continue;
        }
        let logprob = value.as_f64().ok_or(match place {
            0 => LikelihoodGap::NothingBefore,
            _ => LikelihoodGap::Form("the answer lacks the log-probability of a token"),
        })?;
        tokens.push(TokenProbability { text: (*token).into(), logprob, ..Default::default() });
    }
    sample(tokens)
}

/// Returns a sample of the tokens that contain a text.
fn sample(mut tokens: Vec<TokenProbability>) -> Result<Sample, LikelihoodGap> {
    if tokens.is_empty() {
        return Err(LikelihoodGap::NoToken);
    }
    for token in &mut tokens {
        token.logprob = logarithm(token.logprob).map_err(|_| {
            LikelihoodGap::Form("it returns what is not the logarithm of a probability")
        })?;
    }
    let text = tokens.iter().map(|token| token.text.as_str()).collect();
    Ok(Sample { text, finish_reason: None, tokens })
}

/// Returns whether tokens spell a text, preceded at most by the end of the prompt. Only visible ASCII characters are compared, because a
/// token may contain part of another character. If the server spells no tokens, they cannot be checked.
fn is_of_text(tokens: &str, prompt: &str, text: &str) -> bool {
    let visible = |text: &str| -> String { text.chars().filter(char::is_ascii_graphic).collect() };
    let (tokens, prompt, text) = (visible(tokens), visible(prompt), visible(text));
    tokens.is_empty() || tokens.strip_suffix(&*text).is_some_and(|before| prompt.ends_with(before))
}

/// Reason why a method did not return log-probabilities.
enum Refusal {
    /// The server does not support the method.
    Way(String),
    /// The request failed for another reason.
    Request(Error),
}

impl<'a> TextProber<'a> {
    /// Creates a client for a server's model.
    pub fn new(endpoint: &'a Endpoint, model: &'a str) -> Self {
        Self { endpoint, model, way: Mutex::new(None) }
    }

    /// Returns a digest of everything the probability depends on, except the server.
    pub fn key(model: &str, prompt: &str, text: &str) -> String {
        digest_parts(["likelihood 1", model, prompt, text])
    }

    /// Requests the probability of a text after a prompt: an answer whose only sample has the text's tokens. If the first token begins
    /// before the end of the prompt, so does the sample's text.
    ///
    /// # Errors
    /// The server rejects the prompt, or supports none of the methods.
    pub fn ask(&self, prompt: &str, text: &str) -> Result<Answer> {
        let begin = Instant::now();
        let sample = self.sample(prompt, text)?;
        Ok(Answer { samples: vec![sample], seconds: begin.elapsed().as_secs_f64() })
    }

    fn sample(&self, prompt: &str, text: &str) -> Result<Sample> {
        let known = *self.way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = known {
            return self.read(way, prompt, text).map_err(|refusal| match refusal {
                Refusal::Way(why) => self.no_probability(format!("{}: {why}", way.name())),
                Refusal::Request(error) => error,
            });
        }
        // Send one request at a time until the method is known.
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons = Vec::new();
        for candidate in way.map_or(Way::ALL.to_vec(), |known| vec![known]) {
            match self.read(candidate, prompt, text) {
                Ok(sample) => {
                    *way = Some(candidate);
                    return Ok(sample);
                }
                Err(Refusal::Way(why)) => reasons.push(format!("{}: {why}", candidate.name())),
                Err(Refusal::Request(error)) => return Err(error),
            }
        }
        Err(self.no_probability(reasons.join("; ")))
    }

    fn no_probability(&self, why: String) -> Error {
        let reason = format!("the server does not return the probabilities of a prompt: {why}");
        let hint = "vLLM does; llama.cpp's server and Ollama do not";
        self.endpoint.error(COMPLETIONS, reason, hint)
    }

    fn read(&self, way: Way, prompt: &str, text: &str) -> Result<Sample, Refusal> {
        match way {
            Way::PromptLogprobs => self.of_numbers(prompt, text),
            Way::Echo => {
                let answer = self.post(COMPLETIONS, &echo_body(self.model, prompt, text))?;
                let whole = format!("{prompt}{text}");
                read_echo(&answer, prompt.len()..whole.len(), |echoed| echoed == whole)
                    .map_err(|unread| self.refusal(unread))
            }
        }
    }

    fn refusal(&self, unread: LikelihoodGap) -> Refusal {
        match unread {
            LikelihoodGap::Form(why) => Refusal::Way(why.into()),
            LikelihoodGap::Failed(error) => {
                Refusal::Request(answer_error(self.endpoint, Api::Completions, &error))
            }
            LikelihoodGap::NothingBefore | LikelihoodGap::NoToken => {
                let (reason, hint) = unread.explain();
                Refusal::Request(self.endpoint.error(COMPLETIONS, reason, hint))
            }
        }
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let refusal = |error| {
            if is_refused(&error) { Refusal::Way(reason(&error)) } else { Refusal::Request(error) }
        };
        self.endpoint.post_json(path, body).map_err(refusal)
    }

    /// Returns the numbers of a text's tokens, including any that the model puts before every text.
    fn numbers(&self, text: &str) -> Result<Vec<u64>, Refusal> {
        let body = json!({"model": self.model, "prompt": text, "add_special_tokens": true});
        let answer = self.post(TOKENIZE, &body)?;
        let tokens = answer.get("tokens").and_then(Value::as_array);
        let numbers = tokens.and_then(|tokens| tokens.iter().map(Value::as_u64).collect());
        numbers.ok_or_else(|| Refusal::Way("/tokenize returns no token numbers".into()))
    }

    fn of_numbers(&self, prompt: &str, text: &str) -> Result<Sample, Refusal> {
        let before = self.numbers(prompt)?;
        let whole = self.numbers(&format!("{prompt}{text}"))?;
        let shared = before.iter().zip(&whole).take_while(|(one, other)| one == other).count();
        let body = json!({
            "model": self.model, "prompt": whole, "max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0,
        });
        let answer = self.post(COMPLETIONS, &body)?;
        check_answer(&answer).map_err(|error| self.refusal(LikelihoodGap::Failed(error)))?;
        let found = answer.pointer("/choices/0/prompt_logprobs");
        let Some(found) = found.and_then(Value::as_array) else {
            return Err(Refusal::Way("the answer has no such field".into()));
        };
        if found.len() != whole.len() {
            let why = format!("{} log-probabilities of {} tokens", found.len(), whole.len());
            return Err(Refusal::Way(why));
        }
        let read = |(id, entry): (&u64, &Value)| {
            let own = entry.get(id.to_string())?;
            let text = own.get("decoded_token").and_then(Value::as_str).unwrap_or_default();
            let logprob = own.get("logprob")?.as_f64()?;
            Some(TokenProbability { id: Some(*id), text: text.into(), bytes: None, logprob })
        };
        let tokens: Option<Vec<_>> = whole.iter().zip(found).skip(shared).map(read).collect();
        let lacking = match shared {
            0 => LikelihoodGap::NothingBefore,
            _ => LikelihoodGap::Form("the answer lacks the log-probability of a token"),
        };
        let found = tokens.ok_or(lacking).and_then(sample).and_then(|sample| {
            if is_of_text(&sample.text, prompt, text) {
                Ok(sample)
            } else {
                Err(LikelihoodGap::Form("its tokens are not those of the prompt"))
            }
        });
        found.map_err(|unread| self.refusal(unread))
    }
}
