//! Setting: its key, values, default and help, from which its flag, its variable and its checks are derived.

use std::ops::RangeInclusive;

use anyhow::{Result, anyhow, bail};
use repoformer_models::endpoint::mask_keys_of;
use repoformer_store::error::Error;
use repoformer_text::message::{Message, MessagePart};
use repoformer_text::names::did_you_mean;

/// Prefix of the names of environment variables.
pub(super) const PREFIX: &str = "REPOFORMER_";

/// Returns the name of a setting's environment variable.
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('-', "_").to_uppercase())
}

/// Settings that one source gives, with their values as text.
#[derive(Debug, Clone, Default)]
pub struct SettingTexts(Vec<(&'static Setting, Vec<String>)>);

impl SettingTexts {
    /// Adds a setting with its values. Keys in URLs among them are masked from now on, even if no server is asked there: another one, or
    /// a file of answers, may repeat them.
    pub fn insert(&mut self, setting: &'static Setting, texts: Vec<String>) {
        texts.iter().for_each(|text| mask_keys_of(text));
        self.0.retain(|(one, _)| *one != setting);
        self.0.push((setting, texts));
    }

    /// Returns true if the source gives the setting.
    pub fn has(&self, setting: &Setting) -> bool {
        self.get(setting).is_some()
    }

    /// Returns the values that the source gives.
    pub fn get(&self, setting: &Setting) -> Option<&[String]> {
        self.0.iter().find(|(one, _)| *one == setting).map(|(_, texts)| &**texts)
    }

    /// Iterates over the settings and their values, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &[String])> {
        self.0.iter().map(|(setting, texts)| (*setting, &**texts))
    }
}

impl FromIterator<(&'static Setting, Vec<String>)> for SettingTexts {
    fn from_iter<I: IntoIterator<Item = (&'static Setting, Vec<String>)>>(given: I) -> Self {
        Self(given.into_iter().collect())
    }
}

/// Command as its front end invokes it: the settings given, and the properties of the command.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Settings given on the command line.
    pub given: SettingTexts,
    /// True if the command scores predictions.
    pub scores: bool,
    /// True if the command completes prompts.
    pub completes: bool,
    /// True if the command can work on a shard of the repositories.
    pub has_shards: bool,
    /// True if the command serves editors, which may start it in a folder that somebody else wrote.
    pub edits: bool,
}

impl Invocation {
    /// Returns an invocation that only gives settings.
    pub fn giving(given: impl IntoIterator<Item = (&'static Setting, Vec<String>)>) -> Self {
        Self { given: given.into_iter().collect(), ..Self::default() }
    }

    /// Returns true if the invocation gives the setting.
    pub fn has(&self, setting: &Setting) -> bool {
        self.given.has(setting)
    }
}

/// Heading of a setting's flag in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Repositories, tasks, cache, modes.
    DataSet,
    /// Cutting of files.
    Fragments,
    /// Search of fragments.
    Search,
    /// Source of dense vectors.
    Embeddings,
    /// Layout of prompts.
    Prompts,
    /// Model that completes.
    Model,
    /// Requests to a server.
    Server,
    /// Scoring of predictions.
    Scores,
    /// Policies of selective retrieval.
    Policies,
    /// Random numbers and intervals.
    Statistics,
}

impl Group {
    /// Returns the heading as help shows it.
    pub fn heading(self) -> &'static str {
        match self {
            Self::DataSet => "Data set",
            Self::Fragments => "Fragments",
            Self::Search => "Search",
            Self::Embeddings => "Embeddings",
            Self::Prompts => "Prompts",
            Self::Model => "Model",
            Self::Server => "With --endpoint",
            Self::Scores => "Scores",
            Self::Policies => "Selective retrieval",
            Self::Statistics => "Random numbers and intervals",
        }
    }
}

/// Effect of a setting on what an experiment measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The setting determines the measurement.
    Always,
    /// The setting follows from the data, the model or the machine, and determines the measurement only if the profile sets it.
    IfInProfile,
    /// The setting follows from the model, and determines the measurement in papers with one prompt layout for all models.
    Layout,
    Never,
}

impl Effect {
    /// Returns the default effect of a group's settings.
    const fn from_group(group: Group) -> Self {
        match group {
            Group::Fragments | Group::Search | Group::Prompts => Self::Always,
            Group::Model | Group::Server => Self::IfInProfile,
            Group::DataSet
            | Group::Embeddings
            | Group::Scores
            | Group::Policies
            | Group::Statistics => Self::Never,
        }
    }
}

/// Values that a setting accepts.
#[derive(Debug, Clone)]
pub enum AllowedValues {
    /// Any text: a name, a path, a URL.
    Text,
    /// A whole number within bounds.
    Whole(RangeInclusive<u64>),
    /// A number that passes a check, and the requirement in words.
    Number(fn(f64) -> bool, &'static str),
    /// One of these names.
    OneOf(fn() -> Vec<String>),
    /// One of these names, or text of another form: a check that recognises such texts, and their description.
    OneOfOr(fn() -> Vec<String>, fn(&str) -> bool, &'static str),
    /// A flag without a value; `yes` or `no` elsewhere.
    Switch,
}

/// Number of a setting's values, and the notation for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// At most one.
    One,
    /// Repeatable; commas also separate names.
    Names,
    /// Repeatable; commas separate paths, unless the whole text is the path of a file.
    Paths,
    /// Repeatable; a comma is part of the text.
    Texts,
}

/// Aliases of values, and the function that returns the name for an alias.
pub type OtherNames = (&'static [&'static str], fn(&str) -> &str);

/// Setting.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Key in a file, and name of the flag.
    pub key: &'static str,
    /// Default value, as text.
    pub default: Option<&'static str>,
    /// Accepted values.
    pub values: AllowedValues,
    /// Number of its values.
    pub arity: Arity,
    /// True if a file can set the setting.
    pub in_files: bool,
    /// Only unit to which it applies; `None` if it applies to both units.
    pub only_for: Option<&'static str>,
    /// Alias of its flag.
    pub alias: Option<&'static str>,
    /// Aliases of its values.
    pub other_names: OtherNames,
    /// Default in words, if it is not a value.
    pub default_text: Option<&'static str>,
    /// Subcommands that have the flag; empty for all. The environment and files apply to every subcommand.
    pub commands: &'static [&'static str],
    /// Subcommands that lack the flag nevertheless.
    pub not_for: &'static [&'static str],
    /// Heading of its flag.
    pub group: Group,
    /// Effect on what an experiment measures.
    pub effect: Effect,
    /// Name of the value in help, such as `DIR`.
    pub value_name: &'static str,
    /// Help text, one sentence, which explains each known name.
    pub help: &'static str,
}

/// Settings are equal if their keys are.
impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// Front ends write a setting in the way their users set it, such as a flag.
impl From<&Setting> for Message {
    fn from(setting: &Setting) -> Self {
        MessagePart::Setting(setting.key).into()
    }
}

impl Setting {
    /// Returns a setting of one value without a default, which every file can set and for which every subcommand has a flag.
    pub const fn new(
        group: Group,
        key: &'static str,
        value_name: &'static str,
        values: AllowedValues,
        help: &'static str,
    ) -> Self {
        Self {
            key,
            default: None,
            values,
            arity: Arity::One,
            in_files: true,
            only_for: None,
            alias: None,
            other_names: (&[], |name| name),
            group,
            effect: Effect::from_group(group),
            value_name,
            help,
            default_text: None,
            commands: &[],
            not_for: &[],
        }
    }

    /// Returns true if it accepts several values.
    pub fn is_list(&self) -> bool {
        self.arity != Arity::One
    }

    /// Splits a text, as a flag or a variable gives it, into its values.
    pub fn split(&self, text: &str) -> Vec<String> {
        let is_split = match self.arity {
            Arity::One | Arity::Texts => false,
            Arity::Names => true,
            Arity::Paths => !std::path::Path::new(text).exists(),
        };
        if is_split {
            text.split(',').map(|part| part.trim().into()).collect()
        } else {
            vec![text.to_owned()]
        }
    }

    /// Returns the name of the value, which may be given by an alias.
    pub fn canonical(&self, value: &str) -> String {
        let (_, canonical) = self.other_names;
        canonical(value).to_owned()
    }

    /// Returns the known names, if values are names.
    pub fn names(&self) -> Vec<String> {
        match &self.values {
            AllowedValues::OneOf(names) | AllowedValues::OneOfOr(names, ..) => names(),
            AllowedValues::Switch => vec!["yes".into(), "no".into()],
            AllowedValues::Text | AllowedValues::Whole(_) | AllowedValues::Number(..) => Vec::new(),
        }
    }

    /// Returns the known names and other forms, in words.
    pub fn known_values(&self) -> String {
        let names = self.names().join(", ");
        match self.values {
            AllowedValues::OneOfOr(_, _, others) => format!("{names}, or {others}"),
            _ => names,
        }
    }

    /// Checks one value; `source` names its origin in the error.
    pub fn check(&self, value: &str, source: &str) -> Result<()> {
        let key = self.key;
        let invalid =
            |expected: &str| bail!("invalid {key} '{value}' (from {source}): expected {expected}");
        match &self.values {
            AllowedValues::Text => Ok(()),
            AllowedValues::Whole(bounds) => match value.parse::<u64>() {
                Ok(number) if bounds.contains(&number) => Ok(()),
                _ => invalid(&expected_whole(bounds)),
            },
            AllowedValues::Number(is_valid, expected) => match value.parse::<f64>() {
                Ok(number) if is_valid(number) => Ok(()),
                _ => invalid(expected),
            },
            AllowedValues::OneOfOr(_, is_other, _) if is_other(value) => Ok(()),
            AllowedValues::OneOf(_) | AllowedValues::OneOfOr(..) | AllowedValues::Switch => {
                let names = self.names();
                if names.iter().any(|name| name == value) {
                    return Ok(());
                }
                let error = format!(
                    "unknown {key} '{value}' (from {source}); known: {}",
                    self.known_values()
                );
                let names = || names.iter().map(String::as_str);
                // If one value has several names, compare only the unknown one: graph:rrf:jaccard,bm26, lerned@0.2.
                let parts = value.trim_start_matches("graph:").trim_start_matches("rrf:");
                let parts = parts.split([',', '@']);
                let unknown = parts.into_iter().find(|part| !names().any(|name| name == *part));
                Err(match did_you_mean(unknown.unwrap_or(value), names()) {
                    Some(hint) => Error::from_refusal(error, hint).into(),
                    None => anyhow!(error),
                })
            }
        }
    }
}

/// Values for completing a flag in a shell, if the flag's definition does not list them.
#[derive(Debug, Default)]
pub struct FlagCompletion {
    /// Names to complete.
    pub names: Vec<String>,
    /// True if commas separate several names.
    pub is_list: bool,
}

/// Returns the accepted whole numbers, in words.
pub fn expected_whole(bounds: &RangeInclusive<u64>) -> String {
    match (bounds.start(), bounds.end()) {
        (0, &u64::MAX) => "a whole number".into(),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}
