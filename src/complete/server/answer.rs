//! Answers of a server: texts, and the log-probabilities of their tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Api;

/// Result of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The completions.
    pub samples: Vec<Sample>,
    /// Seconds from the request to the answer; of several requests their sum.
    pub seconds: f64,
}

/// One completion as written by the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The text.
    pub text: String,
    /// Why it ended: `stop`, `length`.
    pub finish_reason: Option<String>,
    /// Its tokens, if the server returns them.
    pub tokens: Vec<TokenProbability>,
}

impl Sample {
    /// A completion from another program, with the log-probabilities beside it.
    pub(crate) fn of(text: &str, logprobs: Option<&Value>) -> Self {
        let tokens = logprobs.map(tokens).unwrap_or_default();
        Self { text: text.to_owned(), finish_reason: None, tokens }
    }

    /// Returns the tokens that begin before this byte of the text; none if the tokens do not spell the text.
    pub(crate) fn tokens_before(&self, end: usize) -> &[TokenProbability] {
        let mut at = 0;
        let begins_before = |token: &&TokenProbability| {
            let begin = at;
            at += token.spelled().len();
            begin < end
        };
        match self.is_spelled() {
            true => &self.tokens[..self.tokens.iter().take_while(begins_before).count()],
            false => &[],
        }
    }

    /// Returns the log-probabilities of the tokens in a part of the text, given in bytes: not those of a text that ended it, which
    /// some servers list as well. None if the tokens do not spell the text, such as those of a model's thoughts before it, or
    /// tokens that are parts of a character and whose bytes the server does not list: nobody knows which are the text's own.
    ///
    /// ```
    /// use repoformer::complete::server::{Sample, TokenProbability};
    /// let token = |text: &str, logprob| TokenProbability { text: text.into(), logprob, ..Default::default() };
    /// let tokens = vec![token("\n  ", -3.0), token("x", -0.5), token("\ny", -2.0)];
    /// let sample = Sample { text: "\n  x\ny".into(), finish_reason: None, tokens };
    /// assert_eq!(sample.logprobs(3..4), [-0.5]);
    /// assert_eq!(sample.logprobs(1..4), [-3.0, -0.5]);
    /// let ended = Sample { text: "\n  x".into(), ..sample.clone() };
    /// assert_eq!(ended.logprobs(0..4), [-3.0, -0.5]);
    /// let other = Sample { text: "z".into(), ..sample };
    /// assert!(other.logprobs(0..1).is_empty());
    /// ```
    pub fn logprobs(&self, part: Range<usize>) -> Vec<f64> {
        let (mut found, mut at) = (Vec::new(), 0);
        if !self.is_spelled() {
            return found;
        }
        for token in &self.tokens {
            let end = at + token.spelled().len();
            if at < part.end && end > part.start {
                found.push(token.logprob);
            }
            at = end;
        }
        found
    }

    /// Whether the tokens begin with the text.
    fn is_spelled(&self) -> bool {
        let whole: Vec<u8> =
            self.tokens.iter().flat_map(|token| token.spelled()).copied().collect();
        whole.starts_with(self.text.as_bytes())
    }
}

/// A token and the logarithm of its probability.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenProbability {
    /// Number in the model's vocabulary, if the server returns it; special tokens have no text.
    pub id: Option<u64>,
    /// Its text.
    pub text: String,
    /// Its bytes, if the server returns them and they are not those of the text: a part of a character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<u8>>,
    /// Natural logarithm of the model's probability.
    pub logprob: f64,
}

impl TokenProbability {
    /// The bytes that it adds to a completion.
    fn spelled(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// Returns the completions of an answer, in the order of their indices.
///
/// ```
/// use repoformer::complete::server::{Api, samples};
/// let answer = serde_json::json!({"choices": [{"text": "x", "index": 0, "finish_reason": "stop",
///     "logprobs": {"tokens": ["x"], "token_logprobs": [-0.5]}}]});
/// let found = samples(&answer, Api::Completions).unwrap();
/// assert_eq!((found[0].text.as_str(), found[0].tokens[0].logprob), ("x", -0.5));
/// ```
///
/// # Errors
/// The answer contains no completion, or one without text; the message says which.
pub fn samples(answer: &Value, api: Api) -> Result<Vec<Sample>, String> {
    let choices = match answer.get("choices") {
        Some(Value::Array(choices)) if !choices.is_empty() => choices,
        Some(Value::Array(_)) => return Err("the answer's 'choices' are empty".into()),
        Some(_) => return Err("the answer's 'choices' are not a list".into()),
        None => return Err("the answer has no 'choices'".into()),
    };
    let mut found = Vec::with_capacity(choices.len());
    for (place, choice) in choices.iter().enumerate() {
        let (text, field) = match api {
            Api::Completions => (choice.get("text"), "text"),
            Api::Chat => (choice.pointer("/message/content"), "message.content"),
        };
        let Some(text) = text.and_then(Value::as_str) else {
            return Err(format!("the answer's choices[{place}] has no '{field}'"));
        };
        let index = choice.get("index").and_then(Value::as_u64);
        let finish = choice.get("finish_reason").and_then(Value::as_str);
        found.push((
            index.unwrap_or(place as u64),
            Sample {
                text: text.to_owned(),
                finish_reason: finish.map(str::to_owned),
                tokens: choice.get("logprobs").map(tokens).unwrap_or_default(),
            },
        ));
    }
    found.sort_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, sample)| sample).collect())
}

/// Completions that come in parts, as a server writes them.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By index; a server may name those of several samples in any order.
    found: BTreeMap<u64, Sample>,
    /// Those that had a text, if only an empty one.
    with_text: BTreeSet<u64>,
}

impl Parts {
    /// Adds an event's parts.
    ///
    /// # Errors
    /// The event has no `choices`.
    pub(super) fn add(&mut self, event: &Value, api: Api) -> Result<(), String> {
        let Some(choices) = event.get("choices").and_then(Value::as_array) else {
            return Err("an event of the answer has no 'choices'".into());
        };
        for (place, choice) in choices.iter().enumerate() {
            let text = match api {
                Api::Completions => choice.get("text"),
                Api::Chat => choice.pointer("/delta/content"),
            };
            let index = choice.get("index").and_then(Value::as_u64).unwrap_or(place as u64);
            let sample = self.found.entry(index).or_insert_with(|| Sample::of("", None));
            if let Some(text) = text.and_then(Value::as_str) {
                sample.text += text;
                self.with_text.insert(index);
            }
            sample.tokens.extend(choice.get("logprobs").map(tokens).unwrap_or_default());
            let finish = choice.get("finish_reason").and_then(Value::as_str);
            sample.finish_reason = finish.map(str::to_owned).or(sample.finish_reason.take());
        }
        Ok(())
    }

    /// Whether so many samples have come, and each is finished or long enough.
    pub(super) fn are_enough(&self, number: usize, is_enough: &dyn Fn(&str) -> bool) -> bool {
        let is_done = |sample: &Sample| sample.finish_reason.is_some() || is_enough(&sample.text);
        self.found.len() >= number && self.found.values().all(is_done)
    }

    /// The completions as far as they came, in the order of their indices.
    ///
    /// # Errors
    /// One of them has no text, such as that of a model that had no token left after its thoughts.
    pub(super) fn into_samples(self, api: Api) -> Result<Vec<Sample>, String> {
        if let Some(index) = self.found.keys().find(|index| !self.with_text.contains(*index)) {
            let field = match api {
                Api::Completions => "text",
                Api::Chat => "message.content",
            };
            return Err(format!("the answer's choices[{index}] has no '{field}'"));
        }
        Ok(self.found.into_values().collect())
    }
}

/// Reads tokens in the style of chats (`content`, a list of objects) or the older one (`tokens` and `token_logprobs`).
fn tokens(logprobs: &Value) -> Vec<TokenProbability> {
    if let Some(content) = logprobs.get("content").and_then(Value::as_array) {
        let token = |token: &Value| {
            let text = token.get("token")?.as_str()?;
            let bytes = token.get("bytes").and_then(Value::as_array);
            let bytes = bytes.and_then(|bytes| {
                bytes
                    .iter()
                    .map(|byte| u8::try_from(byte.as_u64()?).ok())
                    .collect::<Option<Vec<u8>>>()
            });
            Some(TokenProbability {
                id: token.get("id").and_then(Value::as_u64),
                bytes: bytes.filter(|bytes| !bytes.is_empty() && bytes != text.as_bytes()),
                text: text.to_owned(),
                logprob: token.get("logprob")?.as_f64()?,
            })
        };
        return content.iter().filter_map(token).collect();
    }
    let list = |name: &str| logprobs.get(name).and_then(Value::as_array);
    let (Some(texts), Some(values)) = (list("tokens"), list("token_logprobs")) else {
        return Vec::new();
    };
    let token = |(text, value): (&Value, &Value)| {
        Some(TokenProbability {
            text: text.as_str()?.to_owned(),
            logprob: value.as_f64()?,
            ..TokenProbability::default()
        })
    };
    texts.iter().zip(values).filter_map(token).collect()
}
