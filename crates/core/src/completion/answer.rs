//! A server's answers: texts, and the log-probabilities of their tokens.

use std::ops::Range;

use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Api;
use super::excerpt::error_in;

/// Result of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Completions.
    pub samples: Vec<Sample>,
    /// Seconds from the request to the answer; the sum if there were several requests.
    pub seconds: f64,
}

/// One completion as written by the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Text of the completion.
    pub text: String,
    /// Finish reason (`stop`, `length`); `None` if it is unknown, or if the stream was closed before the end.
    pub finish_reason: Option<String>,
    /// Tokens of the completion, if the server returns them.
    pub tokens: Vec<TokenProbability>,
}

impl Sample {
    /// Creates a completion written by another program, with its log-probabilities if they are known.
    pub fn new(text: &str, logprobs: Option<&Value>) -> Self {
        let tokens = logprobs.and_then(|logprobs| tokens(logprobs).ok()).unwrap_or_default();
        Self { text: text.to_owned(), finish_reason: None, tokens }
    }

    /// Removes the tokens if, joined, they spell a secret in their texts, bytes or numbers. Also removes them if a secret was
    /// masked in the text and the tokens do not spell the remaining text.
    fn drop_secret_tokens(&mut self, is_secret: impl Fn(&str) -> bool) {
        let is_masked = self.text.contains("***") && !self.is_spelled();
        if is_masked || spell_secret(&self.tokens.iter().collect::<Vec<_>>(), is_secret) {
            self.tokens.clear();
        }
    }

    /// Returns the tokens that begin before byte `end` of the text; empty if the tokens do not spell the text.
    pub fn tokens_before(&self, end: usize) -> &[TokenProbability] {
        let mut at = 0;
        let begins_before = |token: &&TokenProbability| {
            let begin = at;
            at += token.text_bytes().len();
            begin < end
        };
        if self.is_spelled() {
            &self.tokens[..self.tokens.iter().take_while(begins_before).count()]
        } else {
            &[]
        }
    }

    /// Returns the log-probabilities of the tokens in a byte range of the text. The tokens of a text that ended the completion,
    /// which some servers also list, are left out. The result is empty if the tokens do not spell the text, because it is then
    /// unknown which tokens belong to the text: for example, if the model's thoughts precede the text, or if tokens are parts
    /// of a character and the server does not list their bytes.
    ///
    /// ```
    /// use repoformer_core::completion::{Sample, TokenProbability};
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
            let end = at + token.text_bytes().len();
            if at < part.end && end > part.start {
                found.push(token.logprob);
            }
            at = end;
        }
        found
    }

    /// Returns true if the tokens begin with the text.
    fn is_spelled(&self) -> bool {
        let whole: Vec<u8> =
            self.tokens.iter().flat_map(|token| token.text_bytes()).copied().collect();
        whole.starts_with(self.text.as_bytes())
    }
}

/// Removes the tokens of each sample whose tokens spell a secret.
///
/// # Errors
/// The samples, joined, spell a secret, for example if each is one of its characters.
pub fn drop_secrets(
    samples: &mut [Sample],
    is_secret: impl Fn(&str) -> bool,
) -> Result<(), AnswerError> {
    samples.iter_mut().for_each(|sample| sample.drop_secret_tokens(&is_secret));
    if samples.len() < 2 {
        return Ok(());
    }
    let texts: Vec<&str> = samples.iter().map(|sample| sample.text.as_str()).collect();
    let tokens: Vec<_> = samples.iter().flat_map(|sample| &sample.tokens).collect();
    if is_secret(&texts.join(",")) || spell_secret(&tokens, is_secret) {
        Err(AnswerError::Secret)
    } else {
        Ok(())
    }
}

/// Returns true if the tokens, joined, spell a secret in their texts, bytes or numbers.
fn spell_secret(tokens: &[&TokenProbability], is_secret: impl Fn(&str) -> bool) -> bool {
    let list = |of: fn(&TokenProbability) -> String| {
        tokens.iter().map(|token| of(token)).collect::<Vec<_>>().join(",")
    };
    let texts: String = tokens.iter().map(|token| token.text.as_str()).collect();
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.text_bytes()).copied().collect();
    is_secret(&texts)
        || is_secret(&String::from_utf8_lossy(&bytes))
        || is_secret(&list(|token| token.text.clone()))
        || is_secret(&list(|token| String::from_utf8_lossy(token.text_bytes()).into_owned()))
        || is_secret(&list(|token| token.id.map_or_else(String::new, |id| id.to_string())))
        || is_secret(&list(|token| token.logprob.to_string()))
}

/// A token and the logarithm of its probability.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenProbability {
    /// Number in the model's vocabulary, if the server returns it; special tokens have no text.
    pub id: Option<u64>,
    /// Text of the token.
    pub text: String,
    /// Bytes of the token, if the server returns them and they differ from the bytes of `text`: part of a character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<u8>>,
    /// Natural logarithm of the model's probability.
    pub logprob: f64,
}

impl TokenProbability {
    /// Returns the bytes that the token adds to a completion.
    pub(super) fn text_bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// Greatest length of a model's name in an answer, in bytes.
pub const LONGEST_NAME: usize = 4 << 10;

/// Reason why an answer has no completion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The answer does not have the form of the API.
    #[error("{0}")]
    Form(&'static str),
    /// The answer has no choice.
    #[error("the answer's 'choices' are empty")]
    NoChoice,
    /// A choice has no text.
    #[error("the answer's choices[{choice}] has no '{field}'{}", finish.as_ref().map_or_else(String::new, |finish| format!(" (finish_reason {finish:?})")))]
    NoText {
        /// Index of the choice.
        choice: u64,
        /// Field that has the text in this API.
        field: &'static str,
        /// Finish reason, if the choice has one.
        finish: Option<String>,
    },
    /// The server reports an error.
    #[error("the answer is an error: {0}")]
    Reported(String),
    /// The server reports an error in a choice.
    #[error("the answer's choices[{choice}] is an error: {message}")]
    FailedChoice {
        /// Index of the choice.
        choice: u64,
        /// The server's message.
        message: String,
    },
    /// The finish reason does not belong to a completed text.
    #[error(
        "the answer's choices[{choice}] ended with finish_reason {finish:?}, which is not the end of a completion"
    )]
    Unfinished {
        /// Index of the choice.
        choice: u64,
        /// Finish reason.
        finish: String,
    },
    /// The completions, joined, spell a secret.
    #[error("the answer's completions, joined together, contain an API key")]
    Secret,
    /// The model's name is too long.
    #[error("the answer's model name is longer than {LONGEST_NAME} bytes")]
    LongName,
    /// A stream has more choices than were requested.
    #[error("the answer has more choices than requested ({most})")]
    TooManyChoices {
        /// Number of choices that were requested.
        most: usize,
    },
}

impl AnswerError {
    /// Returns a hint for the user.
    pub fn hint(&self) -> Message {
        match self {
            Self::Form(_) => message![
                "is this an OpenAI-compatible server? The ",
                UserChoice::ChatApi,
                " needs messages"
            ],
            Self::NoChoice | Self::Reported(_) | Self::FailedChoice { .. } => {
                "see the server's log, or the provider's status page".into()
            }
            Self::NoText { field: TEXT, .. } => {
                "use a server with OpenAI's /v1/completions (chat models lack it)".into()
            }
            Self::NoText { .. } => {
                "a reasoning model may have used up its tokens: allow more".into()
            }
            Self::Secret => "the server repeats your API key: do not trust this server".into(),
            Self::TooManyChoices { .. } | Self::LongName => {
                "is this an OpenAI-compatible server?".into()
            }
            Self::Unfinished { .. } => {
                "see the server's log, or look up this reason in its documentation".into()
            }
        }
    }
}

/// Reason why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model ended the completion, or a stop text did and the server does not distinguish the two.
    Stop,
    /// A stop text ended the completion.
    StopText,
    /// The completion reached its maximum length.
    Length,
}

/// Finish reasons of complete texts.
///
/// OpenAI, llama.cpp and Ollama write `stop` and `length`. vLLM also writes `repetition`, a limit like `length`. TGI writes
/// `eos_token` and `stop_sequence`, Mistral `model_length`, and Together `eos`. The others are the names of Anthropic, Gemini,
/// Cohere, watsonx and LM Studio, which gateways pass on. Every other reason is a failure, such as `error`, `abort`,
/// `content_filter`, `tool_calls` (the text is in the call), `load` (Ollama loaded the model), `insufficient_system_resource`,
/// `cancelled`, `safety` and `refusal`.
const FINISHES: [(&str, Finish); 16] = [
    ("stop", Finish::Stop),
    ("length", Finish::Length),
    ("repetition", Finish::Length),
    ("eos", Finish::Stop),
    ("eos_token", Finish::Stop),
    ("stop_sequence", Finish::StopText),
    ("stop_token", Finish::Stop),
    ("model_length", Finish::Length),
    ("max_length", Finish::Length),
    ("max_tokens", Finish::Length),
    ("token_limit", Finish::Length),
    ("end_turn", Finish::Stop),
    ("complete", Finish::Stop),
    ("eosfound", Finish::Stop),
    ("stopstringfound", Finish::StopText),
    ("maxpredictedtokensreached", Finish::Length),
];

impl Finish {
    /// Returns the meaning of a server's finish reason, ignoring case; `None` if a text with this reason is not a completion.
    pub fn of_reason(reason: &str) -> Option<Self> {
        let found = FINISHES.iter().find(|(name, _)| name.eq_ignore_ascii_case(reason));
        found.map(|(_, finish)| *finish)
    }
}

/// Returns true if a text with this finish reason is a completion. An empty reason also counts as complete.
pub fn is_complete(finish_reason: &str) -> bool {
    finish_reason.is_empty() || Finish::of_reason(finish_reason).is_some()
}

/// Maximum number of characters shown in a message for a finish reason that is not a string.
const SHOWN_FINISH: usize = 48;

/// Name of the field that has a completion's text.
const TEXT: &str = "text";

/// Location of a choice's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPlace {
    /// In an answer of this API.
    Answer(Api),
    /// In an answer of any API.
    AnyAnswer,
    /// In an event of this API.
    Event(Api),
}

impl TextPlace {
    fn of(self, choice: &Value) -> Option<&str> {
        let content = |pointer| choice.pointer(pointer);
        let text = match self {
            Self::Answer(Api::Completions) | Self::Event(Api::Completions) => choice.get(TEXT),
            Self::Answer(Api::Chat) => content("/message/content"),
            Self::Event(Api::Chat) => content("/delta/content"),
            Self::AnyAnswer => choice.get(TEXT).or_else(|| content("/message/content")),
        };
        text.and_then(Value::as_str)
    }

    /// Returns the name of the field.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer(Api::Completions) | Self::Event(Api::Completions) => TEXT,
            Self::Answer(Api::Chat) | Self::Event(Api::Chat) => "message.content",
            Self::AnyAnswer => "text' or 'message.content",
        }
    }
}

/// One choice of an answer, or one addition to a choice in an event.
#[derive(Debug)]
pub struct Choice<'a> {
    /// Index of the choice; by default its position in the list.
    pub index: u64,
    /// Text; `None` if the choice has none, as in an event that ends a completion.
    pub text: Option<&'a str>,
    /// Finish reason.
    pub finish: Option<&'a str>,
    /// Stop text that ended the completion, if the server names it (vLLM).
    pub stop_text: Option<&'a str>,
    /// The tokens' log-probabilities, as the server wrote them.
    pub logprobs: Option<&'a Value>,
}

/// Reads the choices of an answer or of an event.
///
/// # Errors
/// The answer has no choices, or it reports an error, as a whole or in one choice.
pub fn choices(answer: &Value, place: TextPlace) -> Result<Vec<Choice<'_>>, AnswerError> {
    if let Some(message) = error_in(answer) {
        return Err(AnswerError::Reported(message));
    }
    let choices = match answer.get("choices") {
        Some(Value::Array(choices)) => choices,
        Some(_) => return Err(AnswerError::Form("the answer's 'choices' are not a list")),
        None => return Err(AnswerError::Form("the answer has no 'choices'")),
    };
    choices.iter().zip(0..).map(|(choice, number)| self::choice(choice, number, place)).collect()
}

fn choice(choice: &Value, number: u64, place: TextPlace) -> Result<Choice<'_>, AnswerError> {
    let index = choice.get("index").and_then(Value::as_u64).unwrap_or(number);
    if let Some(message) = error_in(choice) {
        return Err(AnswerError::FailedChoice { choice: index, message });
    }
    // OpenAI puts the words of a model that refuses into this field and leaves the text empty.
    let refusal = ["/message/refusal", "/delta/refusal"].iter().find_map(|at| choice.pointer(at));
    if let Some(words) = refusal.and_then(Value::as_str).filter(|words| !words.is_empty()) {
        let message = format!("the model refused: {words}");
        return Err(AnswerError::FailedChoice { choice: index, message });
    }
    // SGLang's native API reports an object.
    let finish = choice.get("finish_reason").filter(|finish| !finish.is_null());
    let name = finish.and_then(|finish| finish.as_str().or_else(|| finish.get("type")?.as_str()));
    if let Some(finish) = finish.filter(|_| !name.is_some_and(is_complete)) {
        let shown = || finish.to_string().chars().take(SHOWN_FINISH).collect();
        let finish = name.map_or_else(shown, str::to_owned);
        return Err(AnswerError::Unfinished { choice: index, finish });
    }
    Ok(Choice {
        index,
        text: place.of(choice),
        finish: name.filter(|name| !name.is_empty()),
        stop_text: choice.get("stop_reason").and_then(Value::as_str),
        logprobs: choice.get("logprobs"),
    })
}

/// Returns the completions of an answer, in the order of their indices.
///
/// ```
/// use repoformer_core::completion::{Api, samples};
/// let answer = serde_json::json!({"choices": [{"text": "x", "index": 0, "finish_reason": "stop",
///     "logprobs": {"tokens": ["x"], "token_logprobs": [-0.5]}}]});
/// let found = samples(&answer, Api::Completions).unwrap();
/// assert_eq!((found[0].text.as_str(), found[0].tokens[0].logprob), ("x", -0.5));
/// let failed = serde_json::json!({"choices": [{"text": "", "finish_reason": "abort"}]});
/// assert!(samples(&failed, Api::Completions).is_err());
/// ```
///
/// # Errors
/// The answer contains no completion, or a choice failed or has no text.
pub fn samples(answer: &Value, api: Api) -> Result<Vec<Sample>, AnswerError> {
    samples_at(answer, TextPlace::Answer(api))
}

/// Returns the completions of an answer of any API, as [`samples`] does.
///
/// # Errors
/// As for [`samples`].
pub fn samples_of_any(answer: &Value) -> Result<Vec<Sample>, AnswerError> {
    samples_at(answer, TextPlace::AnyAnswer)
}

fn samples_at(answer: &Value, place: TextPlace) -> Result<Vec<Sample>, AnswerError> {
    let mut choices = choices(answer, place)?;
    if choices.is_empty() {
        return Err(AnswerError::NoChoice);
    }
    choices.sort_by_key(|choice| choice.index);
    let sample = |choice: Choice<'_>| {
        let finish_reason = choice.finish.map(str::to_owned);
        let Some(text) = choice.text else {
            let (choice, field) = (choice.index, place.name());
            return Err(AnswerError::NoText { choice, field, finish: finish_reason });
        };
        let tokens = choice.logprobs.map(tokens).transpose()?.unwrap_or_default();
        Ok(Sample { text: text.to_owned(), finish_reason, tokens })
    };
    choices.into_iter().map(sample).collect()
}

/// Checks that an answer does not report an error, regardless of its text and form.
///
/// # Errors
/// The answer failed.
pub fn check_answer(answer: &Value) -> Result<(), AnswerError> {
    match choices(answer, TextPlace::AnyAnswer) {
        Ok(_) | Err(AnswerError::Form(_)) => Ok(()),
        Err(failed) => Err(failed),
    }
}

/// Checks that the choice with this number does not report an error.
///
/// # Errors
/// The choice failed.
pub fn check_choice(choice: &Value, number: usize) -> Result<(), AnswerError> {
    self::choice(choice, number as u64, TextPlace::AnyAnswer).map(|_| ())
}

/// Reads tokens in the style of the chat API (`content`, a list of objects) or in the older style (`tokens` and
/// `token_logprobs`).
///
/// # Errors
/// A log-probability is greater than rounding errors explain (`ROUNDED`).
pub fn tokens(logprobs: &Value) -> Result<Vec<TokenProbability>, AnswerError> {
    let mut tokens = written_tokens(logprobs);
    for token in &mut tokens {
        token.logprob = logarithm(token.logprob)?;
    }
    Ok(tokens)
}

/// Largest log-probability that is accepted: rounding makes some greater than 0.
pub const ROUNDED: f64 = 1e-3;

/// Returns a log-probability; a value that rounding made greater than 0 becomes 0.
///
/// # Errors
/// The value is greater than `ROUNDED`.
pub fn logarithm(value: f64) -> Result<f64, AnswerError> {
    if value > ROUNDED {
        Err(AnswerError::Form("a log-probability of the answer is above 0"))
    } else {
        Ok(value.min(0.0))
    }
}

fn written_tokens(logprobs: &Value) -> Vec<TokenProbability> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_that_spell_a_secret_are_dropped() {
        let is_secret = |text: &str| {
            ["secret", "115,101,99", "-115,-101,-99"].iter().any(|secret| text.contains(secret))
        };
        let kept = |text: &str, tokens: Value| {
            let tokens = json!({"content": tokens});
            let mut sample = Sample::new(text, Some(&tokens));
            assert!(!sample.tokens.is_empty());
            sample.drop_secret_tokens(is_secret);
            sample.tokens.len()
        };
        let of = |texts: [&str; 3]| -> Value {
            texts.iter().map(|text| json!({"token": text, "logprob": -0.5})).collect()
        };
        assert_eq!(kept("a b", of(["a", " ", "b"])), 3);
        assert_eq!(kept("a", of(["s", "ecr", "et"])), 0);
        assert_eq!(kept("a", of(["115", "101", "99"])), 0);
        // The secret is masked in the text, in a form that appears only there.
        assert_eq!(kept("x ***", of(["x ", "te", "rces"])), 0);
        assert_eq!(kept("x ***", of(["x ", "**", "*"])), 3);
        let numbers = |name: &str, numbers: [i32; 3]| -> Value {
            let token = |number: i32| {
                let mut token = json!({"token": "a", "logprob": -0.5});
                token[name] = number.into();
                token
            };
            numbers.map(token).into_iter().collect()
        };
        assert_eq!(kept("a", numbers("id", [115, 101, 99])), 0);
        assert_eq!(kept("a", numbers("logprob", [-115, -101, -99])), 0);
        let bytes: Value = b"secret"
            .iter()
            .map(|byte| json!({"token": "", "bytes": [byte], "logprob": -1}))
            .collect();
        assert_eq!(kept("a", bytes), 0);
    }

    #[test]
    fn samples_that_spell_a_secret_together_are_refused() {
        let is_secret = |text: &str| text.replace([',', '\n'], "").contains("secret");
        let sample = |text: &str, token: &str| {
            Sample::new(text, Some(&json!({"tokens": [token], "token_logprobs": [-0.5]})))
        };
        let refused = |one: Sample, other: Sample| drop_secrets(&mut [one, other], is_secret);
        assert_eq!(refused(sample("sec", "a"), sample("tre", "a")), Ok(()));
        let error = Err(AnswerError::Secret);
        assert_eq!(refused(sample("\nsec", "a"), sample("\nret", "a")), error);
        assert_eq!(refused(sample("a", "sec"), sample("a", "ret")), error);
        // One that spells it alone loses its tokens.
        let mut one = [sample("a", "secret"), sample("b", "c")];
        assert_eq!(drop_secrets(&mut one, is_secret), Ok(()));
        assert_eq!(one.map(|sample| sample.tokens.len()), [0, 1]);
    }

    #[test]
    fn a_finish_reason_that_is_no_text_is_shown_in_part() {
        let finish: Vec<u32> = (0..1000).collect();
        let answer = json!({"choices": [{"text": "x", "finish_reason": finish}]});
        let failed = samples(&answer, Api::Completions).unwrap_err().to_string();
        assert!(failed.contains("[0,1,2,3") && failed.len() < 200, "{failed}");
    }
}
