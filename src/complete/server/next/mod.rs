//! The probability of one given next token, such as Repoformer's `<cc>` behind `<eof>`: does the model ask for cross-file
//! context?
//!
//! A request makes the server write that token and read its probability. Servers differ in what they offer, so the ways
//! are tried in turn, and an answer counts only where it tells of the token that was asked for, by its number in the
//! vocabulary where servers tell it. Some servers read the probability after they forced the token, which is then 1: the
//! first reading above one half is checked against a request that forces nothing.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::run::{is_refused, reason};
use super::{Answer, Api, Sample, TokenProbability, samples};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};

const COMPLETIONS: &str = "/v1/completions";

/// A token of a model's vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextToken {
    /// Its text.
    pub text: String,
    /// Its number.
    pub id: u64,
}

impl NextToken {
    /// The token that a text is to a server's model.
    ///
    /// # Errors
    /// The server does not tell, or the text is no single token of its model.
    pub fn find(endpoint: &Endpoint, model: &str, text: &str) -> Result<Self> {
        // llama.cpp's fields, vLLM's, and TGI's; each knows its own.
        let body = json!({
            "content": text, "parse_special": true, "add_special": false,
            "model": model, "prompt": text, "add_special_tokens": false,
            "inputs": text,
        });
        let path = "/tokenize";
        let answer = match endpoint.post_json(path, &body) {
            Ok(answer) => answer,
            Err(error) if is_refused(&error) => {
                let why = format!(
                    "the server does not say which token {text:?} is ({})",
                    reason(&error)
                );
                let hint = "give its number in the model's vocabulary with --token-id; its tokenizer.json lists it";
                return Err(endpoint.error(path, why, hint));
            }
            Err(error) => return Err(error),
        };
        let tokens = answer.get("tokens").unwrap_or(&answer).as_array();
        let id = |token: &Value| token.as_u64().or_else(|| token.get("id")?.as_u64());
        let ids: Option<Vec<u64>> = tokens.and_then(|tokens| tokens.iter().map(id).collect());
        match ids.as_deref() {
            Some(&[id]) => Ok(Self {
                text: text.to_owned(),
                id,
            }),
            Some(ids) => {
                let why = format!(
                    "{text:?} is {} tokens of this model ({ids:?}), and a probability is that of one",
                    ids.len()
                );
                let hint = "name one token of its vocabulary, such as one of its special tokens, or give --token-id";
                Err(endpoint.error(path, why, hint))
            }
            None => {
                let why = format!("the answer names no tokens: {answer}");
                Err(endpoint.error(path, why, "give the token's number with --token-id"))
            }
        }
    }
}

/// How a server is made to tell the probability of a token of our choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `logit_bias` makes the token the next one; vLLM is asked to name tokens by number.
    BiasByNumber,
    /// The same for servers that refuse a field which they do not know.
    Bias,
    /// vLLM's `allowed_token_ids`.
    Allowed,
    /// vLLM's `prompt_logprobs` of the prompt with the token behind it.
    PromptLogprobs,
}

const WAYS: [Way; 4] = [
    Way::BiasByNumber,
    Way::Bias,
    Way::Allowed,
    Way::PromptLogprobs,
];

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BiasByNumber | Self::Bias => "logit_bias",
            Self::Allowed => "allowed_token_ids",
            Self::PromptLogprobs => "prompt_logprobs",
        })
    }
}

/// Asks a server for the probability of a token behind prompts.
#[derive(Debug)]
pub struct Prober<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
    token: &'a NextToken,
    /// The way that this server offers, once that is known.
    way: Mutex<Option<Way>>,
    /// Whether a reading showed that the server reads before it forces.
    is_unforced: AtomicBool,
}

/// Why a way did not lead to a probability.
enum Refusal {
    /// The server does not offer it.
    Way(String),
    /// Something else is wrong with this request.
    Request(Error),
}

impl<'a> Prober<'a> {
    /// For a token of a server's model.
    pub fn new(endpoint: &'a Endpoint, model: &'a str, token: &'a NextToken) -> Self {
        Self {
            endpoint,
            model,
            token,
            way: Mutex::new(None),
            is_unforced: AtomicBool::new(false),
        }
    }

    /// A digest of all that the probability behind a prompt depends on, but for the server.
    pub fn key(model: &str, token: &NextToken, prompt: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [
            "probability 1",
            model,
            &token.text,
            &token.id.to_string(),
            prompt,
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The token with its probability behind a prompt, as the one sample of an answer.
    ///
    /// # Errors
    /// The server refuses the prompt, or offers none of the ways.
    pub fn ask(&self, prompt: &str) -> Result<Answer> {
        let begin = Instant::now();
        let logprob = self.logprob(prompt)?;
        let token = TokenProbability {
            id: Some(self.token.id),
            text: self.token.text.clone(),
            logprob,
        };
        let sample = Sample {
            text: self.token.text.clone(),
            finish_reason: None,
            tokens: vec![token],
        };
        Ok(Answer {
            samples: vec![sample],
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    fn logprob(&self, prompt: &str) -> Result<f64> {
        let known = *self.way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = known {
            return self.checked(way, prompt).map_err(|refusal| match refusal {
                Refusal::Way(why) => self.no_probability(format!("{way}: {why}")),
                Refusal::Request(error) => error,
            });
        }
        // One request at a time until the way is known.
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons = Vec::new();
        for candidate in way.map_or(WAYS.to_vec(), |known| vec![known]) {
            match self.checked(candidate, prompt) {
                Ok(logprob) => {
                    *way = Some(candidate);
                    return Ok(logprob);
                }
                Err(Refusal::Way(why)) => reasons.push(format!("{candidate}: {why}")),
                Err(Refusal::Request(error)) => return Err(error),
            }
        }
        reasons.dedup();
        Err(self.no_probability(reasons.join("; ")))
    }

    fn no_probability(&self, why: String) -> Error {
        let reason = format!(
            "the server does not tell the probability of token {} ({:?}): {why}",
            self.token.id, self.token.text
        );
        let hint = "llama.cpp's server and vLLM do; check the token's number (--token-id)";
        self.endpoint.error(COMPLETIONS, reason, hint)
    }

    /// A reading that is not that of a forced token.
    fn checked(&self, way: Way, prompt: &str) -> Result<f64, Refusal> {
        let logprob = self.read(way, prompt)?;
        let is_plain = way == Way::PromptLogprobs || self.is_unforced.load(Ordering::Relaxed);
        if is_plain {
            return Ok(logprob);
        }
        if logprob < 0.5_f64.ln() {
            self.is_unforced.store(true, Ordering::Relaxed);
            return Ok(logprob);
        }
        let body = json!({"model": self.model, "prompt": prompt, "max_tokens": 1, "temperature": 0.0, "logprobs": 1});
        let likeliest = self.first_token(&body)?;
        // Of more than one half it is the likeliest, and what is read there is nothing's doing.
        match self.is_token(&likeliest) {
            true => Ok(likeliest.logprob),
            false => Err(Refusal::Way(
                "what is read is the probability after the token was forced".into(),
            )),
        }
    }

    fn read(&self, way: Way, prompt: &str) -> Result<f64, Refusal> {
        let id = self.token.id;
        let mut body =
            json!({"model": self.model, "prompt": prompt, "max_tokens": 1, "temperature": 0.0});
        match way {
            Way::BiasByNumber | Way::Bias => {
                body["logprobs"] = 1.into();
                body["logit_bias"] = json!({id.to_string(): 100});
                if way == Way::BiasByNumber {
                    body["return_tokens_as_token_ids"] = true.into();
                }
            }
            Way::Allowed => {
                body["logprobs"] = 1.into();
                body["allowed_token_ids"] = json!([id]);
                body["return_tokens_as_token_ids"] = true.into();
            }
            Way::PromptLogprobs => {
                body["prompt"] = format!("{prompt}{}", self.token.text).into();
                body["prompt_logprobs"] = 1.into();
                return self.last_of_prompt(&body);
            }
        }
        let token = self.first_token(&body)?;
        match self.is_token(&token) {
            true if token.logprob <= 1e-3 => Ok(token.logprob.min(0.0)),
            true => Err(Refusal::Way(format!(
                "{} is the logarithm of no probability",
                token.logprob
            ))),
            false => {
                let number = token.id.map_or(String::new(), |id| format!("{id} "));
                let why = format!(
                    "the server wrote the token {number}{:?} instead",
                    token.text
                );
                Err(Refusal::Way(why))
            }
        }
    }

    /// Whether a token of an answer is the one asked for: by number, where the server tells it.
    fn is_token(&self, token: &TokenProbability) -> bool {
        let numbered = token.text.strip_prefix("token_id:");
        match token.id.or_else(|| numbered?.parse().ok()) {
            Some(id) => id == self.token.id,
            None => !token.text.is_empty() && token.text == self.token.text,
        }
    }

    fn post(&self, body: &Value) -> Result<Value, Refusal> {
        self.endpoint
            .post_json(COMPLETIONS, body)
            .map_err(|error| match is_refused(&error) {
                true => Refusal::Way(reason(&error)),
                false => Refusal::Request(error),
            })
    }

    fn first_token(&self, body: &Value) -> Result<TokenProbability, Refusal> {
        let answer = self.post(body)?;
        let found = samples(&answer, Api::Completions).map_err(Refusal::Way)?;
        let token = found.into_iter().flat_map(|sample| sample.tokens).next();
        token.ok_or_else(|| Refusal::Way("the answer has no log-probability".into()))
    }

    fn last_of_prompt(&self, body: &Value) -> Result<f64, Refusal> {
        let answer = self.post(body)?;
        let choice = answer.pointer("/choices/0/prompt_logprobs");
        let tokens = choice.or_else(|| answer.get("prompt_logprobs"));
        let last = tokens
            .and_then(Value::as_array)
            .and_then(|tokens| tokens.last());
        let Some(last) = last else {
            return Err(Refusal::Way("the answer has no such field".into()));
        };
        let own = last.get(self.token.id.to_string());
        match own.and_then(|token| token.get("logprob")?.as_f64()) {
            Some(logprob) => Ok(logprob.min(0.0)),
            None => Err(Refusal::Way(
                "the prompt's last token is another, so this text is not one token there".into(),
            )),
        }
    }
}
