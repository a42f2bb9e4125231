//! How prompts are completed, by the embedded model or a server's, and the results.

use std::fmt;
use std::path::{Path, PathBuf};

use repoformer_core::completion::CompletionRequest;
use repoformer_core::task::fields::of_prompt_metadata;
use repoformer_core::task::kind::RecordKind;
use repoformer_models::endpoint::Endpoint;
use repoformer_models::in_context;
use repoformer_models::server::SendSettings;
use repoformer_store::artifact::Identity;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Fields, Object};
use repoformer_store::literal;
use repoformer_store::schema::SkippedValue;
use repoformer_text::lines::{Lines, strip};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::named;
use repoformer_text::reserved::holds_reserved_name;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

use super::remote::Latency;

/// Name of the embedded model.
pub const IN_CONTEXT: &str = "in-context";

/// Settings of completions.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Name of the model in paths: `in-context`.
    pub model: String,
    /// Largest number of tokens in a completion.
    pub max_tokens: usize,
    /// Largest number of lines in a completion; by default, as many as the task's target has non-blank lines. A server's model
    /// has no such limit.
    pub max_lines: Option<usize>,
    /// Server that runs the model; the embedded model needs none.
    pub server: Option<Server>,
}

impl Completion {
    /// True if the model is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.model == IN_CONTEXT
    }

    /// Returns the settings that completions depend on. An unset setting is a value, too: it differs from a set one.
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
    /// No such model exists.
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
        let reason = if self.is_embedded() {
            "is not set; give the model's name on the server".into()
        } else {
            message![
                format!("'{}' is not known; the embedded model is in-context", self.model),
                ", and any other model needs a ",
                UserChoice::CompletionServer
            ]
        };
        Err(Error::Parameter { name: "model", reason })
    }
}

/// End of a server's completion, unless a stop text ends it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompletionBound {
    /// The end of the last of as many non-blank lines as the target has; the server is asked to stream, and is stopped there.
    Lines,
    /// The largest number of tokens.
    #[default]
    Tokens,
}

named! {
    CompletionBound, "end of completions":
    Lines = "lines",
    Tokens = "tokens",
}

/// Model on a server, the parameters of requests, and the source of answers.
#[derive(Debug, Clone)]
pub struct Server {
    /// Parameters of every request; a prompt's own style adds texts that end a completion.
    pub asking: CompletionRequest,
    /// End of completions.
    pub until: CompletionBound,
    /// File that keeps answers as they arrive.
    pub journal: PathBuf,
    /// True if the user chose this file, so that answers in other files belong to another model.
    pub has_own_journal: bool,
    /// Server that is asked for answers that are not kept yet; `None` if all existing answers are kept, such as those of a
    /// batch.
    pub asked: Option<AskedServer>,
}

/// Server that receives requests.
#[derive(Debug, Clone)]
pub struct AskedServer {
    /// Address of the server.
    pub endpoint: Endpoint,
    /// How requests are sent.
    pub sending: SendSettings,
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

    /// Returns the journal as identities name it: by its path, if the user chose one.
    pub(super) fn journal_name(&self) -> String {
        if self.has_own_journal { self.journal.display().to_string() } else { "the cache's".into() }
    }
}

/// Returns the value of a setting in an identity.
fn or_not_set(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "not set".into(), |value| value.to_string())
}

/// Takes each record, a line with its end.
pub type EmitLine<'e> = dyn FnMut(&[u8]) -> Result<()> + 'e;

/// Counts and problems of completions, without the records.
#[derive(Debug, Default)]
pub struct Predictions {
    /// Number of records.
    pub records: usize,
    /// The records that could not be used.
    pub problems: Vec<Error>,
    /// Warnings about the whole file.
    pub warnings: Vec<Message>,
    /// Time of each completion.
    pub latencies: Vec<Latency>,
}

/// Fields of a prompt's metadata with retrieved data, which stay with the prompt; they are most of a record.
const RETRIEVED: [&str; 5] =
    ["query_window", "top_k_context", "shown_context", "right_context", "query"];

/// Parses a prompt's record without the retrieved data.
///
/// # Errors
/// The record is not JSON, or a field is missing or of another type.
pub(super) fn parse_prompt(path: &Path, line: usize, bytes: &[u8]) -> Result<Object> {
    let is_plain = |text: &&str| !literal::may_change(text) && !holds_reserved_name(bytes);
    let text = std::str::from_utf8(bytes).ok().filter(is_plain);
    let mut object =
        match text.and_then(|text| serde_json::from_str::<LeanObject<false>>(text).ok()) {
            Some(LeanObject(object)) => object,
            None => jsonl::parse(path, line, bytes)?,
        };
    RecordKind::Prompt.check(path, line, &object)?;
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        RETRIEVED.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    Ok(object)
}

/// An object in whose metadata the retrieved fields are null, after a check of their types; building their values would take
/// most of the time. With `IS_METADATA`, the object is the metadata itself.
struct LeanObject<const IS_METADATA: bool>(Object);

impl<'de, const IS_METADATA: bool> Deserialize<'de> for LeanObject<IS_METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LeanFields::<IS_METADATA>)
    }
}

struct LeanFields<const IS_METADATA: bool>;

impl<'de, const IS_METADATA: bool> Visitor<'de> for LeanFields<IS_METADATA> {
    type Value = LeanObject<IS_METADATA>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut object = Object::new();
        while let Some(name) = fields.next_key::<String>()? {
            let retrieved = || RETRIEVED.iter().find(|field| **field == name);
            let value = if IS_METADATA
                && let Some(holds) = retrieved().and_then(|name| of_prompt_metadata(name))
            {
                fields.next_value_seed(SkippedValue { holds, or_null: true })?;
                Value::Null
            } else if !IS_METADATA && name == "metadata" {
                Value::Object(fields.next_value::<LeanObject<true>>()?.0)
            } else {
                fields.next_value()?
            };
            object.insert(name, value);
        }
        Ok(LeanObject(object))
    }
}

/// Returns the target in a prompt's record, under any name that the formats use.
pub(super) fn target(object: &Object) -> Option<&str> {
    let metadata = object.get("metadata").and_then(Value::as_object);
    let target = metadata.and_then(|m| m.get("ground_truth")).or_else(|| object.get("groundtruth"));
    target.and_then(Value::as_str)
}

/// Returns the number of non-blank lines of the target in a prompt's record.
pub(super) fn target_lines(fields: &Fields<'_>, object: &Object) -> Result<usize> {
    match target(object) {
        Some(target) => {
            Ok(Lines::new(target).iter().filter(|line| !strip(line).is_empty()).count().max(1))
        }
        None => Err(fields.error(message![
            "field 'metadata.ground_truth' is missing, so the ",
            UserChoice::LinesToWrite,
            " is not known; set it"
        ])),
    }
}

/// Returns a prompt's record with a model's answers.
pub(super) fn record_line(mut object: Object, choices: Value) -> Vec<u8> {
    let metadata = object.remove("metadata").unwrap_or_else(|| json!({}));
    let mut record = Object::new();
    record.insert("prompt".into(), object.remove("prompt").unwrap_or_default());
    record.insert("metadata".into(), metadata);
    record.insert("choices".into(), choices);
    // Unknown fields are kept; answers of another model are not.
    object.remove("choices");
    record.extend(object);
    literal::line(&record.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_parsed_as_ever_but_for_what_was_retrieved() {
        let plain = |line: usize, text: &str| -> Result<String, String> {
            let mut object =
                jsonl::parse(Path::new("p"), line, text.as_bytes()).map_err(|e| e.to_string())?;
            RecordKind::Prompt.check(Path::new("p"), line, &object).map_err(|e| e.to_string())?;
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                RETRIEVED.iter().for_each(|field| drop(metadata.remove(*field)));
            }
            Ok(Value::from(object).to_string())
        };
        for text in [
            r#"{"prompt": "p", "metadata": {"a": 1, "top_k_context": [{"retrieved_chunk": "\ud800"}], "b": 2.50, "query": null, "c": {"query": 3}}, "query": "q"}"#,
            r#"{"prompt": "p", "metadata": {"top_k_context": [{"retrieved_chunk": "x", "filename": null, "score": 1}], "shown_context": [null, {"context": "x"}]}}"#,
            r#"{"prompt": "p", "metadata": {"top_k_context": [{"context": "x", "metadata": [], "sim_score": 0}, {"context": 1}]}}"#,
            r#"{"prompt": "p", "metadata": {"top_k_context": [{"context": "x", "metadata": []}]}}"#,
            r#"{"prompt": "p", "metadata": {"query": "x"}}"#,
            r#"{"prompt": "p", "metadata": {"query": {"text": "x", "hole": 1, "more": []}}}"#,
            r#"{"prompt": "p", "metadata": {"query": {"text": "x", "hole": -1}}}"#,
            "\u{feff}{\"metadata\": {\"query_window\": {\"context\": \"é\"}, \"z\": []}, \"prompt\": \"\"} \n",
            r#"{"metadata": [1], "prompt": "lone \ud800"}"#,
            r#"{"metadata": null}"#,
            r#"{"metadata": {"shown_context": [}}"#,
            r#"{"metadata": {"right_context": "x"}, "metadata": {"d": 1}}"#,
            "[]",
            "{",
            "",
        ] {
            for line in [1, 2] {
                let lean = parse_prompt(Path::new("p"), line, text.as_bytes());
                let lean =
                    lean.map(|object| Value::from(object).to_string()).map_err(|e| e.to_string());
                assert_eq!(lean, plain(line, text), "{text}");
            }
        }
    }
}
