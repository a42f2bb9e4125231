//! Probability of one given next token, such as Repoformer's `<cc>` after `<eof>`, with which the model asks for cross-file context.
//!
//! A request makes the server write that token and reads its probability. Servers support different methods, so several are tried one after
//! another. An answer counts only if it is about the requested token, identified by its number in the vocabulary if possible. Some servers
//! compute the probability after forcing the token, which makes it 1; the first value above one half is therefore verified by a request
//! that forces nothing.

#[cfg(test)]
mod tests;

use std::f64::consts::LN_2;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use repoformer_core::completion::{
    Answer, AnswerError, Api, Sample, TokenProbability, check_answer, excerpt, logarithm, samples,
};
use repoformer_store::artifact::digest_parts;
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::{Value, json};

use super::completer::answer_error;
use super::run::{is_refused, reason};
use crate::endpoint::Endpoint;

const COMPLETIONS: &str = "/v1/completions";

/// A token of a model's vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextToken {
    /// Text of the token.
    pub text: String,
    /// Number of the token in the vocabulary.
    pub id: u64,
}

impl NextToken {
    /// Returns whether a token of an answer is this one, compared by number if the server returns it.
    pub fn is(&self, token: &TokenProbability) -> bool {
        let numbered = token.text.strip_prefix("token_id:");
        match token.id.or_else(|| numbered?.parse().ok()) {
            Some(id) => id == self.id,
            None => !token.text.is_empty() && token.text == self.text,
        }
    }

    /// Finds the token for a text in the vocabulary of a server's model.
    ///
    /// # Errors
    /// The server does not support the lookup, or the text is not a single token of its model.
    pub fn find(endpoint: &Endpoint, model: &str, text: &str) -> Result<Self> {
        // Fields of llama.cpp, vLLM and TGI; each server ignores the others.
        let body = json!({
            "content": text, "parse_special": true, "add_special": false,
            "model": model, "prompt": text, "add_special_tokens": false,
            "inputs": text,
        });
        let path = "/tokenize";
        let answer = match endpoint.post_json(path, &body) {
            Ok(answer) => answer,
            Err(error) if is_refused(&error) => {
                let message = reason(&error);
                let why = format!("the server does not say which token {text:?} is ({message})");
                return Err(endpoint.unknown_token(path, why));
            }
            Err(error) => return Err(error),
        };
        let tokens = answer.get("tokens").unwrap_or(&answer).as_array();
        let id = |token: &Value| token.as_u64().or_else(|| token.get("id")?.as_u64());
        let ids: Option<Vec<u64>> = tokens.and_then(|tokens| tokens.iter().map(id).collect());
        match ids.as_deref() {
            Some(&[id]) => Ok(Self { text: text.to_owned(), id }),
            Some(ids) => {
                let (count, shown) = (ids.len(), excerpt(format!("{ids:?}").as_bytes()));
                let why =
                    format!("{text:?} is {count} tokens of this model ({shown}); one is needed");
                let hint = message![
                    "choose one token, such as a special token, or give its ",
                    UserChoice::TokenNumber
                ];
                Err(endpoint.error(path, why, hint))
            }
            None => {
                let shown = excerpt(answer.to_string().as_bytes());
                let why = format!("the answer contains no tokens: {shown}");
                Err(endpoint.unknown_token(path, why))
            }
        }
    }

    /// Returns a request for vLLM's log-probabilities of a prompt that ends with the token.
    pub fn behind(&self, model: &str, prompt: &str) -> Value {
        json!({
            "model": model, "prompt": format!("{prompt}{}", self.text), "max_tokens": 1,
            "temperature": 0.0, "prompt_logprobs": 1,
        })
    }

    /// Reads the answer to [that request](Self::behind), as [`Prober::ask`] returns it.
    ///
    /// # Errors
    /// The answer is a failure, it has no such field, or its last token is not this one.
    pub fn read_behind(&self, answer: &Value) -> Result<Sample, AnswerError> {
        check_answer(answer)?;
        let choice = answer.pointer("/choices/0/prompt_logprobs");
        let tokens = choice.or_else(|| answer.get("prompt_logprobs"));
        let last = tokens.and_then(Value::as_array).and_then(|tokens| tokens.last());
        let Some(last) = last.and_then(Value::as_object) else {
            return Err(AnswerError::Form("the answer has no such field"));
        };
        let read = |id: &str, token: &Value| {
            let text = token.get("decoded_token").and_then(Value::as_str).unwrap_or_default();
            let logprob = logarithm(token.get("logprob")?.as_f64()?).ok()?;
            let id = id.parse().ok()?;
            Some(TokenProbability { id: Some(id), text: text.to_owned(), bytes: None, logprob })
        };
        let own = last.get(&self.id.to_string()).and_then(|own| read(&self.id.to_string(), own));
        let Some(own) = own else {
            return Err(AnswerError::Form(
                "the prompt's last token differs, so the text is not one token there",
            ));
        };
        // The token is listed together with the likeliest one, unless that is the same token.
        let all: Option<Vec<_>> = last.iter().map(|(id, token)| read(id, token)).collect();
        let likeliest = all.and_then(|all| {
            let of = |token: &TokenProbability| (token.logprob, token.id == own.id);
            all.into_iter()
                .max_by(|a, b| of(a).partial_cmp(&of(b)).unwrap_or(std::cmp::Ordering::Equal))
        });
        let own = TokenProbability { text: self.text.clone(), ..own };
        let tokens = [Some(own), likeliest].into_iter().flatten().collect();
        Ok(Sample { text: self.text.clone(), finish_reason: None, tokens })
    }
}

/// Method by which a server returns the probability of a given token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `logit_bias` forces the token; vLLM is asked to name tokens by number.
    BiasByNumber,
    /// `logit_bias` without the field that other servers may reject.
    Bias,
    /// vLLM's `allowed_token_ids`.
    Allowed,
    /// vLLM's `prompt_logprobs` of the prompt followed by the token.
    PromptLogprobs,
}

const WAYS: [Way; 4] = [Way::BiasByNumber, Way::Bias, Way::Allowed, Way::PromptLogprobs];

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BiasByNumber | Self::Bias => "logit_bias",
            Self::Allowed => "allowed_token_ids",
            Self::PromptLogprobs => "prompt_logprobs",
        })
    }
}

/// Returns a hint for the case that no method returns a probability.
pub(super) fn check_number() -> Message {
    message!["llama.cpp's server and vLLM do; check the ", UserChoice::TokenNumber]
}

/// Client that requests the probability of a token after prompts.
#[derive(Debug)]
pub struct Prober<'a> {
    endpoint: &'a Endpoint,
    model: &'a str,
    token: &'a NextToken,
    /// Method that the server supports, once it is known.
    way: Mutex<Option<Way>>,
    /// Whether the server is known to compute the probability before forcing the token.
    is_unforced: AtomicBool,
}

/// Reason why a method did not return a probability.
enum Refusal {
    /// The server does not support the method.
    Way(String),
    /// The request failed for another reason.
    Request(Error),
}

impl<'a> Prober<'a> {
    /// Creates a client for a token of a server's model.
    pub fn new(endpoint: &'a Endpoint, model: &'a str, token: &'a NextToken) -> Self {
        Self { endpoint, model, token, way: Mutex::new(None), is_unforced: AtomicBool::new(false) }
    }

    /// Returns a digest of everything the probability after a prompt depends on, except the server.
    pub fn key(model: &str, token: &NextToken, prompt: &str) -> String {
        digest_parts(["probability 2", model, &token.text, &token.id.to_string(), prompt])
    }

    /// Requests the probability of the token after a prompt, and the likeliest token there. Returns both as the tokens of an answer's only
    /// sample, or only the first if the server does not name the other. The answer's time excludes the request for the likeliest token,
    /// which no decision needs.
    ///
    /// # Errors
    /// The server rejects the prompt, or supports none of the methods.
    pub fn ask(&self, prompt: &str) -> Result<Answer> {
        let begin = Instant::now();
        let logprob = self.logprob(prompt)?;
        let seconds = begin.elapsed().as_secs_f64();
        let text = self.token.text.clone();
        let token =
            TokenProbability { id: Some(self.token.id), text: text.clone(), bytes: None, logprob };
        // A token with a probability above one half is the likeliest.
        let likeliest = if logprob > -LN_2 {
            Ok(token.clone())
        } else {
            let way = *self.way.lock().unwrap_or_else(PoisonError::into_inner);
            self.likeliest(prompt, way)
        };
        let tokens = match likeliest {
            Ok(likeliest) => vec![token, likeliest],
            // Return the probability alone.
            Err(Refusal::Way(_)) => vec![token],
            Err(Refusal::Request(error)) => return Err(error),
        };
        let sample = Sample { text, finish_reason: None, tokens };
        Ok(Answer { samples: vec![sample], seconds })
    }

    /// Returns the token that the server writes after a prompt when nothing is forced.
    fn likeliest(&self, prompt: &str, way: Option<Way>) -> Result<TokenProbability, Refusal> {
        let mut body = json!({"model": self.model, "prompt": prompt, "max_tokens": 1, "temperature": 0.0, "logprobs": 1});
        if matches!(way, Some(Way::BiasByNumber | Way::Allowed)) {
            body["return_tokens_as_token_ids"] = true.into();
        }
        self.first_token(&body)
    }

    fn logprob(&self, prompt: &str) -> Result<f64> {
        let known = *self.way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = known {
            return self.check_forced(way, prompt).map_err(|refusal| match refusal {
                Refusal::Way(why) => self.no_probability(format!("{way}: {why}")),
                Refusal::Request(error) => error,
            });
        }
        // Send one request at a time until the method is known.
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons = Vec::new();
        for candidate in way.map_or(WAYS.to_vec(), |known| vec![known]) {
            match self.check_forced(candidate, prompt) {
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
            "the server does not return the probability of token {} ({:?}): {why}",
            self.token.id, self.token.text
        );
        self.endpoint.error(COMPLETIONS, reason, check_number())
    }

    /// Returns the log-probability of the token, after verifying that it was not computed for a forced token.
    fn check_forced(&self, way: Way, prompt: &str) -> Result<f64, Refusal> {
        let logprob = self.read(way, prompt)?;
        let is_plain = way == Way::PromptLogprobs || self.is_unforced.load(Ordering::Relaxed);
        if is_plain {
            return Ok(logprob);
        }
        if logprob < -LN_2 {
            self.is_unforced.store(true, Ordering::Relaxed);
            return Ok(logprob);
        }
        let likeliest = self.likeliest(prompt, Some(way))?;
        // A token with a probability above one half is the likeliest.
        if !self.is_token(&likeliest) {
            let why = "the probability is computed after the token was forced";
            return Err(Refusal::Way(why.into()));
        }
        Ok(likeliest.logprob.min(0.0))
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
                return self.last_of_prompt(&self.token.behind(self.model, prompt));
            }
        }
        let token = self.first_token(&body)?;
        if !self.is_token(&token) {
            let number = token.id.map_or(String::new(), |id| format!("{id} "));
            let why = format!("the server wrote the token {number}{:?} instead", token.text);
            return Err(Refusal::Way(why));
        }
        if token.logprob > 1e-3 {
            let why = format!("{} is not the logarithm of a probability", token.logprob);
            return Err(Refusal::Way(why));
        }
        Ok(token.logprob.min(0.0))
    }

    fn is_token(&self, token: &TokenProbability) -> bool {
        self.token.is(token)
    }

    fn post(&self, body: &Value) -> Result<Value, Refusal> {
        let refusal = |error| {
            if is_refused(&error) { Refusal::Way(reason(&error)) } else { Refusal::Request(error) }
        };
        self.endpoint.post_json(COMPLETIONS, body).map_err(refusal)
    }

    fn first_token(&self, body: &Value) -> Result<TokenProbability, Refusal> {
        let answer = self.post(body)?;
        let found = samples(&answer, Api::Completions).map_err(|error| self.refusal(&error))?;
        let token = found.into_iter().flat_map(|sample| sample.tokens).next();
        token.ok_or_else(|| Refusal::Way("the answer has no log-probability".into()))
    }

    fn last_of_prompt(&self, body: &Value) -> Result<f64, Refusal> {
        let sample = self.token.read_behind(&self.post(body)?);
        Ok(sample.map_err(|error| self.refusal(&error))?.tokens[0].logprob)
    }

    fn refusal(&self, error: &AnswerError) -> Refusal {
        match error {
            AnswerError::Form(why) => Refusal::Way((*why).into()),
            _ => Refusal::Request(answer_error(self.endpoint, Api::Completions, error)),
        }
    }
}
