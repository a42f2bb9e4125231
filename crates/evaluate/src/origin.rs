//! How predictions, prompts and probabilities were made, according to their files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use repoformer_core::prompt::style::{DecisionFrame, Style};
use repoformer_core::repository::fragment::Cut;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::fields::{ASKED, MADE};
use repoformer_store::artifact;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Object};
use repoformer_store::schema::{has_type, require};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::lm_eval;

/// Values that a file gives for each setting. A file from another program may give none.
#[derive(Debug)]
pub struct Origin {
    path: PathBuf,
    said: BTreeMap<String, BTreeSet<String>>,
}

const MODEL: &str = "model";
const MODE: &str = "mode";
const STYLE: &str = "prompt style";
const STYLE_DIGEST: &str = "prompt style's digest";
const TOKEN: &str = "token";
// The same names as in `Cut::fields`.
const WINDOW_SIZE: &str = "window_size";
const SLICE_SIZE: &str = "slice_size";
const CHUNK_SIZE: &str = "chunk_size";
const CHUNK_STRIDE: &str = "chunk_stride";

/// Settings that are checked separately from the model's settings.
const APART: [&str; 9] =
    [MODEL, MODE, STYLE, STYLE_DIGEST, TOKEN, WINDOW_SIZE, SLICE_SIZE, CHUNK_SIZE, CHUNK_STRIDE];

/// Settings that a header names but a record need not name.
const OF_HEADER: [&str; 5] = ["max-tokens", "max-lines", "model-revision", "until", MODEL];
/// Default values of settings that a record leaves out, used if the record names the temperature. A server's record leaves out
/// settings that are not set; records of version 0.1 and of lm-evaluation-harness leave out where completions end.
const LEFT_OUT: [(&str, &str); 6] = [
    ("instruction", "not set"),
    ("samples", "not set"),
    ("seed", "not set"),
    ("stop", "not set"),
    ("top-p", "not set"),
    ("until", "tokens"),
];

/// Fields of a record that describe how it was made.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OriginFields {
    asked: Option<Value>,
    metadata: Metadata,
    next_token: Token,
    /// Present only in samples of lm-evaluation-harness, which have these values in other fields.
    resps: Option<IgnoredAny>,
}

impl OriginFields {
    /// Reads a record. A record that cannot be used gives no values here; the reader of its contents reports it.
    fn read(path: &Path, line: usize, bytes: &[u8]) -> Self {
        let record: serde_json::Result<Self> = serde_json::from_slice(bytes);
        if let Ok(record) = record
            && record.resps.is_none()
            && record.asked.as_ref().is_none_or(|asked| has_type(&ASKED, asked))
        {
            return record;
        }
        // The record contains NaN or a null, or is a sample of lm-evaluation-harness.
        let read = || {
            let object = lm_eval::as_prediction(path, line, jsonl::parse(path, line, bytes)?)?;
            require(path, line, MADE, &object)?;
            Ok::<_, Error>(Self::from_object(&object))
        };
        read().unwrap_or_default()
    }

    /// Reads the fields of a record that have the right types.
    fn from_object(object: &Object) -> Self {
        let metadata = |name: &str| object.get("metadata")?.get(name);
        let text = |name: &str| metadata(name)?.as_str().map(str::to_owned);
        let number = |name: &str| metadata(name)?.as_u64();
        let token = |name: &str| object.get("next_token")?.get(name)?.as_str().map(str::to_owned);
        Self {
            asked: object.get("asked").cloned(),
            metadata: Metadata {
                mode: text("mode"),
                prompt_style: text("prompt_style"),
                prompt_style_digest: text("prompt_style_digest"),
                window_size: number("window_size"),
                slice_size: number("slice_size"),
                chunk_size: number("chunk_size"),
                chunk_stride: number("chunk_stride"),
            },
            next_token: Token { text: token("text") },
            resps: None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    mode: Option<String>,
    prompt_style: Option<String>,
    prompt_style_digest: Option<String>,
    window_size: Option<u64>,
    slice_size: Option<u64>,
    chunk_size: Option<u64>,
    chunk_stride: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Token {
    text: Option<String>,
}

/// Returns the values of a setting as one text.
fn join(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
}

impl Origin {
    /// Reads a file's header and records.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let mut origin = Self { path: path.to_owned(), said: BTreeMap::new() };
        match artifact::read_jsonl_header(path) {
            Ok(header) => {
                for name in OF_HEADER {
                    origin.add(name, header.identity.parameters.get(name).cloned());
                }
            }
            Err(Error::Io { reason, .. }) if reason.kind() == ErrorKind::NotFound => {}
            Err(error @ Error::Io { .. }) => return Err(error),
            // The header does not belong to this file.
            Err(_) => {}
        }
        let mut reader = jsonl::Reader::open(path)?;
        while let Some((at, bytes)) = reader.next_record()? {
            let OriginFields { asked, metadata, next_token, .. } =
                OriginFields::read(path, at.line, bytes);
            // RepoCoder's prompts record their mode, but no style.
            let repocoder = metadata.mode.is_some().then(|| "repocoder".to_owned());
            origin.add(STYLE, metadata.prompt_style.or(repocoder));
            origin.add(MODE, metadata.mode.map(|mode| Mode::canonical(&mode).to_owned()));
            for (name, number) in [
                (WINDOW_SIZE, metadata.window_size),
                (SLICE_SIZE, metadata.slice_size),
                (CHUNK_SIZE, metadata.chunk_size),
                (CHUNK_STRIDE, metadata.chunk_stride),
            ] {
                origin.add(name, number.map(|number| number.to_string()));
            }
            origin.add(STYLE_DIGEST, metadata.prompt_style_digest);
            origin.add(TOKEN, next_token.text);
            let Some(Value::Object(asked)) = asked else { continue };
            for (name, value) in &asked {
                let value = match (value.as_str(), value.as_f64()) {
                    (Some(text), _) => text.to_owned(),
                    (None, Some(number)) => number.to_string(),
                    (None, None) => value.to_string(),
                };
                origin.add(&name.replace('_', "-"), Some(value));
            }
            let is_whole = asked.contains_key("temperature");
            let left_out = |(name, _): &&(&str, _)| !asked.contains_key(&name.replace('-', "_"));
            for (name, value) in LEFT_OUT.iter().filter(left_out).filter(|_| is_whole) {
                origin.add(name, Some((*value).into()));
            }
        }
        Ok(origin)
    }

    fn add(&mut self, setting: &str, value: Option<String>) {
        if let Some(value) = value {
            match self.said.get_mut(setting) {
                Some(values) if values.contains(&value) => {}
                Some(values) => drop(values.insert(value)),
                None => drop(self.said.insert(setting.to_owned(), BTreeSet::from([value]))),
            }
        }
    }

    pub(super) fn of(&self, setting: &str) -> impl Iterator<Item = &str> {
        self.said.get(setting).into_iter().flatten().map(String::as_str)
    }

    /// Returns the settings of the model that the records name, including the value "not set"; several values are joined in one
    /// text.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let settings = self.said.iter().filter(|(setting, _)| !APART.contains(&setting.as_str()));
        settings.map(|(setting, values)| (setting.clone(), join(values))).collect()
    }

    /// Returns the model, and the mode and style of the prompts, as far as they are known.
    pub(crate) fn of_prompts(&self) -> BTreeMap<String, String> {
        let known = [MODEL, MODE, STYLE, STYLE_DIGEST].map(|name| (name, self.said.get(name)));
        let known = known.into_iter().filter_map(|(name, values)| Some((name, values?)));
        known.map(|(name, values)| (name.to_owned(), join(values))).collect()
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the models.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.of(MODEL)
    }

    fn wrong(&self, reason: String, hint: &str) -> Error {
        Error::artifact(&self.path, reason, hint)
    }

    /// Checks that the prompts show no retrieved fragments.
    pub fn check_without(&self) -> Result<()> {
        match self.of(MODE).find(|mode| *mode != Mode::Without.name()) {
            None => Ok(()),
            Some(mode) => Err(self.wrong(
                format!("has predictions of mode {mode}, but mode {} is needed", Mode::Without),
                "pass the predictions made without retrieval",
            )),
        }
    }

    /// Checks that the prompts show retrieved fragments.
    pub(crate) fn check_with(&self) -> Result<()> {
        if self.of(MODE).any(|mode| mode == Mode::Without.name()) {
            Err(self.wrong(
                format!(
                    "has predictions of mode {}, but a mode that retrieves is needed",
                    Mode::Without
                ),
                "pass the predictions made with retrieval",
            ))
        } else {
            Ok(())
        }
    }

    /// Checks that the prompts show fragments of this cut, according to the records.
    pub fn check_cut(&self, cut: Cut) -> Result<()> {
        let hint = "use the same settings for the search";
        let own = cut.fields();
        for (name, value) in own {
            if let Some(other) = self.of(name).find(|said| *said != value.to_string()) {
                let reason =
                    format!("was made with {name} {other}, but this search has {name} {value}");
                return Err(self.wrong(reason, hint));
            }
        }
        let others = [WINDOW_SIZE, CHUNK_SIZE].into_iter().filter(|name| *name != own[0].0);
        let mut others = others.flat_map(|name| self.of(name).map(move |said| (name, said)));
        match (others.next(), own[0]) {
            (Some((name, said)), (own, value)) => {
                let reason =
                    format!("was made with {name} {said}, but this search has {own} {value}");
                Err(self.wrong(reason, hint))
            }
            (None, _) => Ok(()),
        }
    }

    /// Checks that no query for the prompts contained the target.
    pub fn check_no_target(&self) -> Result<()> {
        match self.of(MODE).find(|mode| *mode == Mode::GroundTruth.name()) {
            None => Ok(()),
            Some(mode) => Err(self.wrong(
                format!("has predictions of mode {mode}, whose prompts show fragments found with the target"),
                "pass predictions of another mode",
            )),
        }
    }

    /// Returns true if the fragments are known to come from a new search, and not from the tasks.
    pub(crate) fn asks_anew(&self) -> bool {
        let mut modes = self.of(MODE).peekable();
        modes.peek().is_some() && modes.all(|mode| mode != Mode::Given.name())
    }

    /// Checks that the mode is the same as in another file.
    pub(crate) fn check_mode_of(&self, other: &Self) -> Result<()> {
        self.check(other, MODE)
    }

    /// Checks that the model is the same as in another file.
    pub fn check_model_of(&self, other: &Self) -> Result<()> {
        self.check(other, MODEL)
    }

    /// Checks that the prompts have the same style as in another file.
    pub fn check_style_of(&self, other: &Self) -> Result<()> {
        let has_digest = |one: &Self| one.said.contains_key(STYLE_DIGEST);
        let by_digest = has_digest(self) && has_digest(other);
        match self.check(other, STYLE) {
            // A style may have several names.
            Err(_) if by_digest && self.said[STYLE_DIGEST] == other.said[STYLE_DIGEST] => Ok(()),
            Ok(()) if by_digest => self.check(other, STYLE_DIGEST),
            checked => checked,
        }
    }

    /// Returns true if the prompts have this style, according to their records.
    pub fn is_of_style(&self, style: &Style) -> bool {
        match self.of(STYLE_DIGEST).next() {
            Some(_) => self.of(STYLE_DIGEST).all(|digest| digest == style.file_digest()),
            None => self.of(STYLE).all(|name| name == style.name()),
        }
    }

    /// Checks that the settings are the same as in another file, except model, mode and style, which are checked separately.
    pub(crate) fn check_settings_of(&self, other: &Self) -> Result<()> {
        let settings = self.said.keys().filter(|setting| !APART.contains(&setting.as_str()));
        settings.into_iter().try_for_each(|setting| self.check(other, setting))
    }

    fn check(&self, other: &Self, setting: &str) -> Result<()> {
        let (Some(here), Some(there)) = (self.said.get(setting), other.said.get(setting)) else {
            return Ok(());
        };
        if here == there && here.len() == 1 {
            return Ok(());
        }
        Err(self.wrong(
            format!(
                "was made with {setting} {}, but {} with {}",
                join(here),
                other.path.display(),
                join(there)
            ),
            "make both with the same settings",
        ))
    }

    /// Checks that all probabilities belong to one token, and that this token requests retrieval in their prompt style, if the
    /// style is known.
    pub fn check_token(&self) -> Result<()> {
        let tokens: Vec<&str> = self.of(TOKEN).collect();
        if let [one, other, ..] = tokens[..] {
            let reason = format!("has probabilities of two tokens, '{one}' and '{other}'");
            return Err(
                self.wrong(reason, "pass only probabilities of the token that requests retrieval")
            );
        }
        let bundled = |name: &str| {
            let style = Style::find_bundled(name)?;
            let is_other = self.of(STYLE_DIGEST).any(|digest| digest != style.file_digest());
            DecisionFrame::new(style, None, None).ok().filter(|_| !is_other)
        };
        let styles: Vec<&str> = self.of(STYLE).collect();
        if let ([token], [style]) = (&tokens[..], &styles[..])
            && let Some(frame) = bundled(style)
            && frame.cc() != *token
        {
            let reason = format!(
                "has probabilities of token '{token}', but prompt style {style} requests retrieval with '{}'",
                frame.cc()
            );
            return Err(self.wrong(reason, "ask the model for the probability of that token"));
        }
        Ok(())
    }
}
