//! Requests of editors, in the protocols that they use.

use serde_json::{Map, Value};

use crate::live::RequestPosition;

/// Protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenAI's `/v1/completions`.
    OpenAi,
    /// llama.cpp's `/infill`.
    Infill,
    /// Tabby's `/v1/completions`, with segments.
    Tabby,
    /// The language server's `textDocument/inlineCompletion`.
    Document,
}

impl Protocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Infill => "infill",
            Self::Tabby => "tabby",
            Self::Document => "lsp",
        }
    }
}

/// Request for a completion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EditorRequest {
    pub(crate) protocol: Protocol,
    /// Text before the cursor.
    pub(crate) prefix: String,
    /// Text after the cursor.
    pub(crate) suffix: String,
    /// Name of the file, if the editor sends it.
    pub(crate) file: Option<String>,
    pub(crate) stream: bool,
    pub(crate) max_tokens: Option<u64>,
    /// Texts that end the completion.
    pub(crate) stop: Vec<String>,
    /// Fields that are passed to the model's server unchanged.
    pub(crate) passed: Map<String, Value>,
    /// Fields of the answer that the editor wants, if it names any.
    pub(crate) response_fields: Vec<String>,
    pub(crate) model: String,
    pub(crate) include_usage: bool,
    /// Whether the text is hypothetical, as if an entry of the editor's list had been accepted.
    pub(crate) is_supposed: bool,
}

/// Fields of requests that are passed to the model's server unchanged.
const PASSED: [&str; 12] = [
    "temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty",
    "repeat_penalty", "repetition_penalty", "logit_bias", "t_max_predict_ms", "samplers",
];
/// Other fields of requests that are read.
const READ: [&str; 17] = [
    "prompt", "suffix", "input_prefix", "input_suffix", "segments", "model", "stream",
    "stream_options", "stop", "max_tokens", "max_completion_tokens", "n_predict", "n", "best_of",
    "echo", "logprobs", "response_fields",
];
/// Maximum number of bytes of a file's or a model's name: the longest path on Linux.
const LONGEST_NAME: usize = 4096;
/// Maximum number of bytes of all stop texts: the automaton that searches for them needs a hundred times as many.
const LONGEST_STOPS: usize = 1 << 16;
/// Fields in which editors send the name of the file.
const FILE_NAMES: [&str; 5] = ["filepath", "filename", "file", "path", "file_path"];

/// Returns whether a field of a request is read; any other is skipped.
pub(crate) fn is_read(name: &str) -> bool {
    READ.contains(&name) || PASSED.contains(&name) || FILE_NAMES.contains(&name)
}

impl EditorRequest {
    /// Reads the body of a request to `/v1/completions`.
    ///
    /// # Errors
    /// The request is invalid; the error is the reason in words.
    pub(crate) fn completion(body: &Value) -> Result<Self, String> {
        let body = object(body)?;
        match body.get("segments") {
            Some(segments) => Self::tabby(body, segments),
            None => Self::openai(body),
        }
    }

    fn openai(body: &Map<String, Value>) -> Result<Self, String> {
        let prefix = match body.get("prompt") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(texts)) if texts.len() == 1 && texts[0].is_string() => {
                texts[0].as_str().unwrap_or_default().to_owned()
            }
            Some(Value::Array(_)) => return Err("'prompt' must be one text".into()),
            _ => return Err("'prompt' is missing: the text before the cursor".into()),
        };
        for name in ["n", "best_of"] {
            if body.get(name).is_some_and(|value| !value.is_null() && *value != 1) {
                return Err(format!("'{name}' must be 1: each request returns one completion"));
            }
        }
        for name in ["echo", "logprobs"] {
            let is_off = |value: &Value| value.is_null() || *value == false || *value == 0;
            if body.get(name).is_some_and(|value| !is_off(value)) {
                return Err(format!("'{name}' is not supported"));
            }
        }
        Ok(Self {
            protocol: Protocol::OpenAi,
            prefix,
            suffix: text(body, "suffix")?,
            max_tokens: match whole(body, "max_tokens")? {
                None => whole(body, "max_completion_tokens")?,
                tokens => tokens,
            },
            ..Self::new(body, Protocol::OpenAi)?
        })
    }

    /// Reads the body of a request to `/infill`.
    ///
    /// # Errors
    /// The request is invalid; the error is the reason in words.
    pub(crate) fn infill(body: &Value) -> Result<Self, String> {
        let body = object(body)?;
        if !body.contains_key("input_prefix") {
            return Err("'input_prefix' is missing: the text before the cursor".into());
        }
        Ok(Self {
            // As in llama.cpp, the prompt is the beginning of the cursor's line.
            prefix: text(body, "input_prefix")? + &text(body, "prompt")?,
            suffix: text(body, "input_suffix")?,
            max_tokens: match whole(body, "n_predict") {
                // A negative number means no limit.
                Err(_) if body.get("n_predict").is_some_and(Value::is_i64) => None,
                tokens => tokens?,
            },
            ..Self::new(body, Protocol::Infill)?
        })
    }

    fn tabby(body: &Map<String, Value>, segments: &Value) -> Result<Self, String> {
        let segments = object(segments).map_err(|_| "'segments' must be an object")?;
        let mut wanted = Self {
            prefix: text(segments, "prefix")?,
            suffix: text(segments, "suffix")?,
            ..Self::new(body, Protocol::Tabby)?
        };
        wanted.file = file(segments)?.or(wanted.file);
        wanted.stream = false;
        Ok(wanted)
    }

    /// Returns the request for a cursor in an open document.
    pub(crate) fn of_document(prefix: &str, suffix: &str, file: String) -> Self {
        Self {
            protocol: Protocol::Document,
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            file: Some(file),
            stream: false,
            max_tokens: None,
            stop: Vec::new(),
            passed: Map::new(),
            response_fields: Vec::new(),
            model: String::new(),
            include_usage: false,
            is_supposed: false,
        }
    }

    /// Returns the request's file and cursor, as far as it states them.
    pub(crate) fn place(&self) -> RequestPosition<'_> {
        RequestPosition {
            prefix: &self.prefix,
            suffix: &self.suffix,
            name: self.file.as_deref(),
            is_whole: self.protocol == Protocol::Document,
        }
    }

    /// Reads the fields that all protocols share.
    fn new(body: &Map<String, Value>, protocol: Protocol) -> Result<Self, String> {
        let stop = match body.get("stop") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(texts)) => {
                let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or("'stop' must contain only texts")?
            }
            Some(_) => return Err("'stop' must be a text or a list of texts".into()),
        };
        let length: usize = stop.iter().map(String::len).sum();
        if length > LONGEST_STOPS {
            return Err(format!("'stop' has {length} bytes; at most {LONGEST_STOPS} are allowed"));
        }
        let passed = PASSED.iter().filter_map(|name| {
            let value = body.get(*name).filter(|value| !value.is_null())?;
            Some(((*name).to_owned(), value.clone()))
        });
        let response_fields = match body.get("response_fields") {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(fields) => fields.as_array().and_then(|fields| {
                fields.iter().map(|field| field.as_str().map(str::to_owned)).collect()
            }),
        };
        let include_usage = match body.get("stream_options") {
            None | Some(Value::Null) => None,
            Some(options) => {
                let options = options.as_object().ok_or("'stream_options' must be an object")?;
                options.get("include_usage").filter(|value| !value.is_null())
            }
        };
        Ok(Self {
            protocol,
            prefix: String::new(),
            suffix: String::new(),
            file: file(body)?,
            stream: match body.get("stream") {
                None | Some(Value::Null) => false,
                Some(Value::Bool(stream)) => *stream,
                Some(_) => return Err("'stream' must be true or false".into()),
            },
            max_tokens: None,
            stop: stop.into_iter().filter(|text| !text.is_empty()).collect(),
            passed: passed.collect(),
            response_fields: response_fields.ok_or("'response_fields' must be a list of texts")?,
            model: short_text(body, "model")?,
            include_usage: match include_usage {
                None => false,
                Some(include) => {
                    include.as_bool().ok_or("'include_usage' must be true or false")?
                }
            },
            is_supposed: false,
        })
    }
}

fn object(body: &Value) -> Result<&Map<String, Value>, String> {
    body.as_object().ok_or_else(|| "the body must be a JSON object".into())
}

fn text(body: &Map<String, Value>, name: &str) -> Result<String, String> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("'{name}' must be a text")),
    }
}

fn whole(body: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => match number.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("'{name}' must be a whole number")),
        },
    }
}

fn file(body: &Map<String, Value>) -> Result<Option<String>, String> {
    let named = FILE_NAMES.iter().find(|name| body.get(**name).is_some_and(|it| !it.is_null()));
    named.map(|name| short_text(body, name)).transpose()
}

/// Reads a name, which must be short because it is stored with the decision and searched for.
fn short_text(body: &Map<String, Value>, name: &str) -> Result<String, String> {
    let text = text(body, name)?;
    match text.len() {
        0..=LONGEST_NAME => Ok(text),
        length => Err(format!("'{name}' has {length} bytes; at most {LONGEST_NAME} are allowed")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_protocol_says_where_the_cursor_is() {
        let openai = json!({"model": "m", "prompt": "a\nb", "suffix": "c", "stream": true, "max_tokens": 5,
            "filepath": "x.py", "stop": "\n", "temperature": 0.5, "user": "u"});
        let wanted = EditorRequest::completion(&openai).unwrap();
        assert_eq!((&*wanted.prefix, &*wanted.suffix, wanted.stream), ("a\nb", "c", true));
        assert_eq!((wanted.max_tokens, wanted.file.as_deref()), (Some(5), Some("x.py")));
        assert_eq!(wanted.passed.keys().collect::<Vec<_>>(), ["temperature"]);
        let infill = json!({"input_prefix": "a\n", "prompt": "b", "input_suffix": "c", "n_predict": -1,
            "response_fields": ["content"], "top_k": 40});
        let wanted = EditorRequest::infill(&infill).unwrap();
        assert_eq!((&*wanted.prefix, wanted.max_tokens), ("a\nb", None));
        let tabby = json!({"language": "python", "segments": {"prefix": "a", "suffix": null, "filepath": "y.py"}});
        let wanted = EditorRequest::completion(&tabby).unwrap();
        assert_eq!((wanted.protocol, wanted.file.as_deref()), (Protocol::Tabby, Some("y.py")));
    }

    #[test]
    fn what_cannot_be_served_is_said() {
        let says = |body: Value| EditorRequest::completion(&body).unwrap_err();
        assert!(says(json!([])).contains("object"));
        assert!(says(json!({})).contains("'prompt' is missing"));
        assert!(says(json!({"prompt": ["a", "b"]})).contains("one text"));
        for (name, value) in [
            ("n", json!(2)),
            ("n", json!(-1)),
            ("n", json!("3")),
            ("best_of", json!(3)),
            ("echo", json!("yes")),
            ("logprobs", json!(true)),
            ("stream", json!("true")),
            ("filepath", json!(7)),
            ("filepath", json!("a/".repeat(2049))),
            ("model", json!("m".repeat(4097))),
            ("stop", json!(vec!["s".repeat(1000); 66])),
            ("response_fields", json!(["content", 1])),
            ("stream_options", json!(true)),
            ("stream_options", json!({"include_usage": "yes"})),
        ] {
            let says = says(json!({"prompt": "a", name: value}));
            assert!(says.contains(name) || says.contains("include_usage"), "{name}: {says}");
        }
        let off = json!({"prompt": "a", "n": 1, "echo": false, "logprobs": null, "stream": null, "max_completion_tokens": 7});
        assert_eq!(EditorRequest::completion(&off).unwrap().max_tokens, Some(7));
        assert!(says(json!({"prompt": "a", "max_tokens": "x"})).contains("'max_tokens'"));
        assert!(says(json!({"prompt": "a", "suffix": 3})).contains("'suffix'"));
        assert!(says(json!({"segments": []})).contains("'segments'"));
        assert!(EditorRequest::infill(&json!({"prompt": "a"})).is_err());
    }
}
