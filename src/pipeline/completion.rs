//! How prompts are completed, and what comes of it: by the embedded model or a server's.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::remote::Latency;
use crate::complete::in_context;
use crate::complete::server::{CompletionRequest, Sending};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result, named};
use crate::store::artifact::Identity;
use crate::store::jsonl::{Fields, Object};
use crate::text::lines::{Lines, strip};

/// How prompts are completed.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The model's name, as it stands in paths: `in-context`.
    pub model: String,
    /// Tokens of a completion, at most.
    pub max_tokens: usize,
    /// Lines of a completion, at most; by default as many as the task's target has non-blank lines. A server's model knows
    /// no such limit.
    pub max_lines: Option<usize>,
    /// The server that has the model; the embedded one needs none.
    pub server: Option<Server>,
}

impl Completion {
    /// Whether the model is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.model == "in-context"
    }

    /// The settings that completions depend on. One that is not set is a value as well: it differs from one that is.
    pub fn identity(&self) -> Identity {
        let identity = Identity::new("predictions")
            .parameter("model", &self.model)
            .parameter("max-tokens", self.max_tokens);
        match &self.server {
            None => identity
                .parameter("model-revision", in_context::REVISION)
                .parameter("max-lines", or_not_set(self.max_lines)),
            Some(server) => server.in_identity(identity),
        }
    }

    /// # Errors
    /// There is no such model.
    pub fn check(&self) -> Result<()> {
        if self.is_embedded() != self.server.is_some() && self.max_tokens > 0 {
            return Ok(());
        }
        if self.max_tokens == 0 {
            return Err(Error::Parameter {
                name: "max-tokens",
                reason: "must be at least 1".into(),
            });
        }
        let reason = match self.is_embedded() {
            true => "is not set; say what the server calls it".into(),
            false => format!(
                "'{}' is not known; the embedded model is in-context, and another one needs a completion server",
                self.model
            ),
        };
        Err(Error::Parameter { name: "model", reason })
    }
}

/// End of a server's completion, which a stop text may bring about before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// The end of the last of as many non-blank lines as the target has; the server is asked to stream, and stops there.
    Lines,
    /// The greatest number of tokens.
    #[default]
    Tokens,
}

named! {
    Until, "end of completions":
    Lines = "lines",
    Tokens = "tokens",
}

/// A model on a server, how it is asked, and where its answers come from.
#[derive(Debug, Clone)]
pub struct Server {
    /// Parameters of every request; a prompt's own style adds the texts that end a completion.
    pub asking: CompletionRequest,
    /// Where a completion ends.
    pub until: Until,
    /// Where answers are kept as they come.
    pub journal: PathBuf,
    /// Whether somebody chose that place, so that answers in others are another model's.
    pub has_own_journal: bool,
    /// Server that is asked for answers that are not kept yet; `None`: all that there are have been kept, such as those of a
    /// batch.
    pub asked: Option<Asked>,
}

/// A server that is asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where it is.
    pub endpoint: Endpoint,
    /// How requests are sent.
    pub sending: Sending,
}

impl Server {
    /// Adds the settings that predictions depend on to their identity.
    pub(super) fn in_identity(&self, identity: Identity) -> Identity {
        let CompletionRequest {
            api,
            temperature,
            top_p,
            seed,
            stop,
            samples,
            ending,
            instruction,
            ..
        } = &self.asking;
        let stop = (!stop.is_empty()).then(|| json!(stop));
        identity
            .parameter("api", api)
            .parameter("temperature", temperature)
            .parameter("samples", samples)
            .parameter("prompt-end", ending)
            .parameter("top-p", or_not_set(top_p.as_ref()))
            .parameter("seed", or_not_set(seed.as_ref()))
            .parameter("stop", or_not_set(stop))
            .parameter("instruction", or_not_set(instruction.as_ref()))
            .parameter("until", self.until)
            .parameter("journal", self.journal_name())
    }

    /// The journal as identities name it: a path where somebody chose one.
    pub(super) fn journal_name(&self) -> String {
        match self.has_own_journal {
            true => self.journal.display().to_string(),
            false => "the cache's".into(),
        }
    }
}

/// The value of a setting in an identity.
fn or_not_set(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "not set".into(), |value| value.to_string())
}

/// Takes each record, a line with its end.
pub type EmitLine<'e> = dyn FnMut(&[u8]) -> Result<()> + 'e;

/// Completions of some prompts, without their records.
#[derive(Debug, Default)]
pub struct Predictions {
    /// Number of records.
    pub records: usize,
    /// The records that could not be used.
    pub problems: Vec<Error>,
    /// Time that each took.
    pub latencies: Vec<Latency>,
}

/// Retrieved windows and contexts stay with the prompt; they are most of a record.
pub(super) fn drop_retrieved(record: &mut Object) {
    if let Some(Value::Object(metadata)) = record.get_mut("metadata") {
        for field in ["query_window", "top_k_context", "shown_context", "right_context", "query"] {
            metadata.remove(field);
        }
    }
}

/// Non-blank lines of the target in a prompt's record, under any name that the field's formats give it.
pub(super) fn target_lines(fields: &Fields<'_>, object: &Object) -> Result<usize> {
    let metadata = object.get("metadata").and_then(Value::as_object);
    let target = metadata.and_then(|m| m.get("ground_truth")).or_else(|| object.get("groundtruth"));
    match target.and_then(Value::as_str) {
        Some(target) => Ok(Lines::new(target).iter().filter(|line| !strip(line).is_empty()).count().max(1)),
        None => Err(fields.error(
            "field 'metadata.ground_truth' is missing, so the number of lines to write is not known; set it",
        )),
    }
}

/// A prompt's record with a model's answers.
pub(super) fn record_line(mut object: Object, choices: Value) -> Vec<u8> {
    let metadata = object.remove("metadata").unwrap_or_else(|| json!({}));
    let mut record = Object::new();
    record.insert("prompt".into(), object.remove("prompt").unwrap_or_default());
    record.insert("metadata".into(), metadata);
    record.insert("choices".into(), choices);
    // Fields that are not known here go along; answers of another model do not.
    object.remove("choices");
    record.extend(object);
    let mut line = serde_json::to_vec(&record).unwrap_or_default();
    line.push(b'\n');
    line
}
