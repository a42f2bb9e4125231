//! Value of a setting, its type and its source.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use repoformer_core::completion::{Api, Ending};
use repoformer_core::metrics::Metric;
use repoformer_core::policy::Policy;
use repoformer_core::policy::sweep::Clock;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::prompt::style::Style;
use repoformer_core::repository::Shard;
use repoformer_core::repository::corpus::Walk;
use repoformer_core::repository::fragment::Center;
use repoformer_core::retrieve::rank::Ranker;
use repoformer_core::retrieve::{Align, HoleGuard, Mode, QueryForm, Ties};
use repoformer_pipeline::CompletionBound;
use repoformer_store::inputs;
use repoformer_text::language::Language;
use repoformer_text::named;
use repoformer_text::tokenize::model::{Tokenizer, tokenizer_file};

use super::declaration::{Setting, variable};

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// The setting has no value.
    Unset,
    /// The default value, which nobody chose.
    Default,
    /// The default of a subcommand.
    Subcommand(&'static str),
    /// A profile of this name.
    Profile(String),
    /// A file of settings.
    File(PathBuf),
    /// An environment variable.
    Environment,
    /// The command line.
    Flag,
}

impl SettingSource {
    /// Returns the source of a setting's value, in words.
    pub fn of(&self, setting: &Setting) -> String {
        match self {
            Self::Unset => "not set".into(),
            Self::Default => "default".into(),
            Self::Subcommand(name) => (*name).into(),
            Self::Profile(name) => format!("profile {name}"),
            Self::File(path) => path.display().to_string(),
            Self::Environment => format!("environment {}", variable(setting.key)),
            Self::Flag => "command line".into(),
        }
    }
}

/// Value of a setting that can be written as text.
pub trait Scalar: Clone + Debug + PartialEq {
    /// Reads a text that the setting's check has accepted.
    fn read(text: &str) -> Result<Self>;

    /// Writes the value in the form that `read` accepts.
    fn write(&self) -> String;
}

macro_rules! scalars {
    ($($type:ty),* $(,)?) => {
        $(impl Scalar for $type {
            fn read(text: &str) -> Result<Self> {
                Ok(text.parse()?)
            }

            fn write(&self) -> String {
                self.to_string()
            }
        })*
    };
}

scalars!(
    String, u64, usize, f64, Align, Api, Center, Clock, Ending, FragmentPaths, HoleGuard, Language,
    MetricName, Mode, OtherModel, PolicyName, Postprocess, QueryForm, Ranker, Shard, StyleName,
    Ties, TokenizerName, FragmentUnit, CompletionBound, Vectorizer, Walk,
);

impl Scalar for PathBuf {
    fn read(text: &str) -> Result<Self> {
        Ok(text.into())
    }

    fn write(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}

impl Scalar for bool {
    fn read(text: &str) -> Result<Self> {
        Ok(text == "yes")
    }

    fn write(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

/// Number of values of a setting: [`One`], an `Option`, or a `Vec`.
pub trait ValueCount: Clone + Debug {
    type Value: Clone + Debug + PartialEq;

    /// Returns the value of an unset setting; `None` if the setting must have a value.
    fn unset() -> Option<Self::Value>;

    fn read(texts: &[String]) -> Result<Self::Value>;

    fn write(value: &Self::Value) -> Vec<String>;
}

/// Exactly one value.
#[derive(Debug, Clone)]
pub struct One<T>(PhantomData<T>);

impl<T: Scalar> ValueCount for One<T> {
    type Value = T;

    fn unset() -> Option<T> {
        None
    }

    fn read(texts: &[String]) -> Result<T> {
        let text = texts.first().ok_or_else(|| anyhow!("there is no value"))?;
        T::read(text)
    }

    fn write(value: &T) -> Vec<String> {
        vec![value.write()]
    }
}

impl<T: Scalar> ValueCount for Option<T> {
    type Value = Self;

    fn unset() -> Option<Self> {
        Some(None)
    }

    fn read(texts: &[String]) -> Result<Self> {
        texts.first().map(|text| T::read(text)).transpose()
    }

    fn write(value: &Self) -> Vec<String> {
        value.iter().map(Scalar::write).collect()
    }
}

impl<T: Scalar> ValueCount for Vec<T> {
    type Value = Self;

    fn unset() -> Option<Self> {
        Some(Self::new())
    }

    fn read(texts: &[String]) -> Result<Self> {
        texts.iter().map(|text| T::read(text)).collect()
    }

    fn write(value: &Self) -> Vec<String> {
        value.iter().map(Scalar::write).collect()
    }
}

/// Value in force, and its source.
#[derive(Debug, Clone)]
pub struct SourcedValue<N: ValueCount> {
    setting: &'static Setting,
    value: N::Value,
    source: SettingSource,
}

impl<N: ValueCount> SourcedValue<N> {
    /// Returns the default of a setting.
    pub fn usual(setting: &'static Setting) -> Result<Self> {
        let (value, source) = match setting.default {
            Some(default) => (N::read(&[default.to_owned()])?, SettingSource::Default),
            None => {
                let unset = N::unset().ok_or_else(|| anyhow!("{} has no default", setting.key))?;
                (unset, SettingSource::Unset)
            }
        };
        Ok(Self { setting, value, source })
    }

    /// Sets a value that a subcommand requires or uses by default.
    pub fn fix(&mut self, value: N::Value, subcommand: &'static str) {
        self.value = value;
        self.source = SettingSource::Subcommand(subcommand);
    }

    /// Sets a subcommand's default for a setting without a value.
    pub fn fix_unset(&mut self, value: N::Value, subcommand: &'static str) {
        if self.source == SettingSource::Unset {
            self.fix(value, subcommand);
        }
    }

    /// Sets a value that depends on other settings, unless the user chose one.
    pub fn follow(&mut self, value: N::Value) {
        if self.is_default() {
            self.value = value;
            self.source = SettingSource::Default;
        }
    }

    /// Returns the value in force.
    pub fn get(&self) -> &N::Value {
        &self.value
    }

    /// Replaces the value and keeps its source.
    pub fn replace(&mut self, value: N::Value) {
        self.value = value;
    }

    /// Replaces the value, and replaces its source with the source of another setting.
    pub fn replace_from(&mut self, value: N::Value, source: &SettingSource) {
        self.value = value;
        self.source = source.clone();
    }

    /// Returns the value if the command line, the environment or a file sets it; a value from a profile does not count.
    pub fn own(&self) -> Option<&N::Value> {
        let is_own = matches!(
            self.source,
            SettingSource::Flag | SettingSource::Environment | SettingSource::File(_)
        );
        is_own.then_some(&self.value)
    }

    /// Opens the object that the value names.
    ///
    /// # Errors
    /// The value cannot be opened; the error names the setting, the value and its source.
    pub fn open<T, E>(&self, open: impl FnOnce(&N::Value) -> Result<T, E>) -> Result<T>
    where
        Result<T, E>: Context<T, E>,
    {
        open(&self.value).with_context(|| {
            let (key, text) = (self.setting.key, N::write(&self.value).join(","));
            format!("{key} '{text}' (from {})", self.source.of(self.setting))
        })
    }
}

impl<N: ValueCount> Deref for SourcedValue<N> {
    type Target = N::Value;

    fn deref(&self) -> &N::Value {
        &self.value
    }
}

/// Setting of any type.
pub trait SettingValue {
    /// Returns the declaration.
    fn setting(&self) -> &'static Setting;

    /// Returns the source of the value.
    fn source(&self) -> &SettingSource;

    /// Returns the values as text; none if the setting is not set.
    fn texts(&self) -> Vec<String>;

    /// Sets the values that a source gives.
    ///
    /// # Errors
    /// A value is invalid; the error names the setting and the source.
    fn put(&mut self, texts: &[String], source: &SettingSource) -> Result<()>;

    /// Returns the key of the setting.
    fn key(&self) -> &'static str {
        self.setting().key
    }

    /// Returns true if the value was chosen for this run, on the command line or in the environment.
    fn is_chosen(&self) -> bool {
        matches!(self.source(), SettingSource::Flag | SettingSource::Environment)
    }

    /// Returns true if the value was given on the command line.
    fn is_flag(&self) -> bool {
        *self.source() == SettingSource::Flag
    }

    /// Returns true if nobody chose the value.
    fn is_default(&self) -> bool {
        matches!(self.source(), SettingSource::Unset | SettingSource::Default)
    }
}

impl<N: ValueCount> SettingValue for SourcedValue<N> {
    fn setting(&self) -> &'static Setting {
        self.setting
    }

    fn source(&self) -> &SettingSource {
        &self.source
    }

    fn texts(&self) -> Vec<String> {
        N::write(&self.value)
    }

    fn put(&mut self, texts: &[String], source: &SettingSource) -> Result<()> {
        let texts: Vec<String> = texts.iter().map(|text| self.setting.canonical(text)).collect();
        let named = source.of(self.setting);
        for text in &texts {
            self.setting.check(text, &named)?;
        }
        let key = self.setting.key;
        self.value = N::read(&texts)
            .with_context(|| format!("{key} '{}' (from {named})", texts.join(",")))?;
        self.source = source.clone();
        Ok(())
    }
}

/// Kind of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentUnit {
    /// Overlapping windows of lines.
    Windows,
    /// Chunks of non-blank lines.
    Chunks,
}

named! {
    FragmentUnit, "unit":
    Windows = "windows",
    Chunks = "chunks",
}

/// Terms that lexical rankers compare, or dense vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectorizer {
    /// The tokenizer's tokens.
    OneGram,
    /// Words of code.
    Words,
    /// Words as NLTK 3.8 splits them.
    WordsNltk38,
    /// Vectors of an embedding model.
    Dense,
}

named! {
    Vectorizer, "vectorizer":
    OneGram = "one-gram",
    Words = "words",
    WordsNltk38 = "words-nltk-3.8",
    Dense = "dense",
}

/// Path shown for a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentPaths {
    /// Relative to its repository.
    Repository,
    /// With the repository's folder.
    Full,
}

named! {
    FragmentPaths, "fragment paths":
    Repository = "repository",
    Full = "full",
}

/// Tokenizer that is not opened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenizerName {
    /// OpenAI's `p50k_base`.
    P50k,
    /// Words of code.
    Words,
    /// Model's `tokenizer.json`.
    File(PathBuf),
}

impl TokenizerName {
    /// Returns the path of the tokenizer's file, or the tokenizer's name if it has no file.
    pub fn path(&self) -> PathBuf {
        self.to_string().into()
    }

    /// Opens the tokenizer.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn open(&self) -> Result<Tokenizer> {
        Ok(match self {
            Self::P50k => Tokenizer::p50k_base(),
            Self::Words => Tokenizer::words(),
            Self::File(path) => {
                inputs::protect(&tokenizer_file(path));
                Tokenizer::open(path)?
            }
        })
    }
}

impl fmt::Display for TokenizerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::P50k => f.write_str("p50k_base"),
            Self::Words => f.write_str("words"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl FromStr for TokenizerName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "p50k_base" => Self::P50k,
            "words" => Self::Words,
            path => Self::File(path.into()),
        })
    }
}

/// Layout of prompts that is not opened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StyleName {
    /// RepoCoder's.
    RepoCoder,
    /// Tasks with their cross-file context.
    Attach,
    /// Bundled style, or the path of a style's file.
    Style(String),
}

impl StyleName {
    /// Returns the path of the style's file, or the style's name if it has no file.
    pub fn path(&self) -> PathBuf {
        self.name().into()
    }

    /// Opens a style.
    ///
    /// # Errors
    /// The file cannot be read. `repocoder` and `attach` are not styles, so they are unknown.
    pub fn open(&self) -> Result<Style> {
        Ok(self.name().parse()?)
    }

    fn name(&self) -> &str {
        match self {
            Self::RepoCoder => "repocoder",
            Self::Attach => "attach",
            Self::Style(name) => name,
        }
    }
}

impl fmt::Display for StyleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for StyleName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "repocoder" => Self::RepoCoder,
            "attach" => Self::Attach,
            name => Self::Style(name.to_owned()),
        })
    }
}

/// Metric, or all metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricName {
    /// All metrics.
    All,
    /// One metric.
    One(Metric),
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::One(metric) => write!(f, "{metric}"),
        }
    }
}

impl FromStr for MetricName {
    type Err = <Metric as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// Policy as requested: `NAME` or `NAME@THRESHOLD`. The default threshold depends on the tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyName {
    /// Policy.
    pub policy: Policy,
    /// Text after the at sign.
    pub threshold: Option<String>,
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.policy)?;
        self.threshold.iter().try_for_each(|threshold| write!(f, "@{threshold}"))
    }
}

impl FromStr for PolicyName {
    type Err = <Policy as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A name may contain an at sign: self@greedy.
        if let Ok(policy) = text.parse() {
            return Ok(Self { policy, threshold: None });
        }
        let (name, threshold) = match text.rsplit_once('@') {
            Some((name, threshold)) => (name, Some(threshold.to_owned())),
            None => (text, None),
        };
        Ok(Self { policy: name.parse()?, threshold })
    }
}

/// Another model in a figure, `MODEL` or `MODEL@STYLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherModel {
    /// Name of the model.
    pub model: String,
    /// Layout of its prompts, if it differs from the run's.
    pub style: Option<StyleName>,
}

impl fmt::Display for OtherModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.model)?;
        self.style.iter().try_for_each(|style| write!(f, "@{style}"))
    }
}

impl FromStr for OtherModel {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.rsplit_once('@') {
            Some((model, style)) => {
                Self { model: model.to_owned(), style: Some(StyleName::from_str(style)?) }
            }
            None => Self { model: text.to_owned(), style: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_they_are_read() {
        fn check<T: Scalar>(texts: &[&str]) {
            for text in texts {
                assert_eq!(T::read(text).unwrap().write(), *text);
            }
        }
        check::<TokenizerName>(&["p50k_base", "words", "a/tokenizer.json"]);
        check::<StyleName>(&["repocoder", "attach", "starcoder", "a/style.toml"]);
        check::<MetricName>(&["all", "repocoder"]);
        check::<PolicyName>(&["learned", "learned@0.2", "learned@30%", "self@greedy", "self@0.5"]);
        check::<OtherModel>(&["m", "m@starcoder", "org/m@v2@starcoder"]);
        check::<Postprocess>(&["own", "none", "chat", "chat,own", "lines"]);
        check::<Ranker>(&["jaccard", "rrf:jaccard,bm25", "graph:rrf:jaccard,bm25"]);
        check::<bool>(&["yes", "no"]);
        check::<f64>(&["0", "0.2", "600"]);
        check::<PathBuf>(&["a/b"]);
    }
}
