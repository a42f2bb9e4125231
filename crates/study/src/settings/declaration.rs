//! One setting: its key, values, default and help, from which its flag, its variable and its checks follow.

use std::ops::RangeInclusive;

use anyhow::{Result, anyhow, bail};
use repoformer_store::error::Error;
use repoformer_text::message::{Message, MessagePart};
use repoformer_text::names::did_you_mean;

/// Start of the names of environment variables.
pub(super) const PREFIX: &str = "REPOFORMER_";

/// Name of a setting's environment variable.
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('-', "_").to_uppercase())
}

/// Settings that one source gives, and their values as text.
#[derive(Debug, Clone, Default)]
pub struct SettingTexts(Vec<(&'static Setting, Vec<String>)>);

impl SettingTexts {
    /// Adds a setting with its values.
    pub fn insert(&mut self, setting: &'static Setting, texts: Vec<String>) {
        self.0.retain(|(one, _)| *one != setting);
        self.0.push((setting, texts));
    }

    /// Whether the source gives the setting.
    pub fn has(&self, setting: &Setting) -> bool {
        self.get(setting).is_some()
    }

    /// The values that the source gives.
    pub fn get(&self, setting: &Setting) -> Option<&[String]> {
        self.0.iter().find(|(one, _)| *one == setting).map(|(_, texts)| &**texts)
    }

    /// The settings with their values, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &[String])> {
        self.0.iter().map(|(setting, texts)| (*setting, &**texts))
    }
}

impl FromIterator<(&'static Setting, Vec<String>)> for SettingTexts {
    fn from_iter<I: IntoIterator<Item = (&'static Setting, Vec<String>)>>(given: I) -> Self {
        Self(given.into_iter().collect())
    }
}

/// A command as its front end invokes it: the settings that it gives, and what the command does.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// The settings that stand on the command line.
    pub given: SettingTexts,
    /// Whether it scores predictions.
    pub scores: bool,
    /// Whether it completes prompts.
    pub completes: bool,
    /// Whether it can work on a part of the repositories.
    pub has_shards: bool,
    /// Whether it serves editors, which start it in a folder of anybody's.
    pub edits: bool,
}

impl Invocation {
    /// An invocation that gives settings alone.
    pub fn giving(given: impl IntoIterator<Item = (&'static Setting, Vec<String>)>) -> Self {
        Self { given: given.into_iter().collect(), ..Self::default() }
    }

    /// Whether it gives the setting.
    pub fn has(&self, setting: &Setting) -> bool {
        self.given.has(setting)
    }
}

/// Heading that a setting's flag stands under in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Repositories, tasks, cache, modes.
    DataSet,
    /// How files are cut.
    Fragments,
    /// How fragments are found.
    Search,
    /// Where dense vectors come from.
    Embeddings,
    /// How prompts are laid out.
    Prompts,
    /// The model that completes.
    Model,
    /// How a server is asked.
    Server,
    /// How predictions are scored.
    Scores,
    /// Policies of selective retrieval.
    Policies,
    /// Random numbers and intervals.
    Statistics,
}

impl Group {
    /// The heading, as help shows it.
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
    /// It decides it.
    Always,
    /// It follows from the data, the model or the machine, and decides it if the profile sets it.
    IfInProfile,
    /// It follows from the model, and decides it in papers that have one layout of prompts for all models.
    Layout,
    Never,
}

impl Effect {
    /// The effect of a group's settings that declare no other.
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

/// Values that a setting takes.
#[derive(Debug, Clone)]
pub enum Allowed {
    /// Any text: a name, a path, a URL.
    Text,
    /// A whole number within bounds.
    Whole(RangeInclusive<u64>),
    /// A number that a check accepts, and what the check demands.
    Number(fn(f64) -> bool, &'static str),
    /// One of these names.
    OneOf(fn() -> Vec<String>),
    /// One of these names, or text of other forms: a check that recognises them, and their description.
    OneOfOr(fn() -> Vec<String>, fn(&str) -> bool, &'static str),
    /// A flag without a value; `yes` or `no` elsewhere.
    Switch,
}

/// How many values a setting has, and how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one, or none.
    One,
    /// Repeatable; commas separate names as well.
    Names,
    /// Repeatable; commas separate paths, unless the whole is the path of a file.
    Paths,
    /// Repeatable; a comma is part of the text.
    Texts,
}

/// Aliases of values, and the function that returns the name for an alias.
pub type OtherNames = (&'static [&'static str], fn(&str) -> &str);

/// A setting.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Key in a file, and name of the flag.
    pub key: &'static str,
    /// Default value, as text.
    pub default: Option<&'static str>,
    /// Values that it takes.
    pub values: Allowed,
    /// How many values it has.
    pub arity: Arity,
    /// Whether a file can hold it.
    pub in_files: bool,
    /// The only unit that it has a meaning for, if it has not for both.
    pub only_for: Option<&'static str>,
    /// Another name of its flag.
    pub alias: Option<&'static str>,
    /// Aliases of its values.
    pub other_names: OtherNames,
    /// Default in words, where it is not a value.
    pub default_text: Option<&'static str>,
    /// Subcommands that have the flag; none means all. The environment and files serve every subcommand.
    pub commands: &'static [&'static str],
    /// Subcommands that lack the flag all the same.
    pub not_for: &'static [&'static str],
    /// Heading of its flag.
    pub group: Group,
    /// Effect on what an experiment measures.
    pub effect: Effect,
    /// Name of the value in help, such as `DIR`.
    pub value_name: &'static str,
    /// One sentence; `{names}` stands for the known names.
    pub help: &'static str,
}

/// Keys differ.
impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// Front ends write it as their users set it, such as by a flag.
impl From<&Setting> for Message {
    fn from(setting: &Setting) -> Self {
        MessagePart::Setting(setting.key).into()
    }
}

impl Setting {
    /// A setting of one value that every file can hold and every subcommand has a flag for, without a default.
    pub const fn new(
        group: Group,
        key: &'static str,
        value_name: &'static str,
        values: Allowed,
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

    /// Whether it takes several values.
    pub fn is_list(&self) -> bool {
        self.arity != Arity::One
    }

    /// The values that one text gives, as a flag or a variable has it.
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

    /// Returns the value's name, also for an alias.
    pub fn canonical(&self, value: &str) -> String {
        let (_, canonical) = self.other_names;
        canonical(value).to_owned()
    }

    /// The names that are known, where values are names.
    pub fn names(&self) -> Vec<String> {
        match &self.values {
            Allowed::OneOf(names) | Allowed::OneOfOr(names, ..) => names(),
            Allowed::Switch => vec!["yes".into(), "no".into()],
            Allowed::Text | Allowed::Whole(_) | Allowed::Number(..) => Vec::new(),
        }
    }

    /// The known names and other forms, in words.
    pub fn known(&self) -> String {
        let names = self.names().join(", ");
        match self.values {
            Allowed::OneOfOr(_, _, others) => format!("{names}, or {others}"),
            _ => names,
        }
    }

    /// Checks one value; `source` tells the reader of the error where it came from.
    pub fn check(&self, value: &str, source: &str) -> Result<()> {
        let key = self.key;
        let invalid =
            |expected: &str| bail!("invalid {key} '{value}' (from {source}): expected {expected}");
        match &self.values {
            Allowed::Text => Ok(()),
            Allowed::Whole(bounds) => match value.parse::<u64>() {
                Ok(number) if bounds.contains(&number) => Ok(()),
                _ => invalid(&expected_whole(bounds)),
            },
            Allowed::Number(is_valid, expected) => match value.parse::<f64>() {
                Ok(number) if is_valid(number) => Ok(()),
                _ => invalid(expected),
            },
            Allowed::OneOfOr(_, is_other, _) if is_other(value) => Ok(()),
            Allowed::OneOf(_) | Allowed::OneOfOr(..) | Allowed::Switch => {
                let names = self.names();
                if names.iter().any(|name| name == value) {
                    return Ok(());
                }
                let error =
                    format!("unknown {key} '{value}' (from {source}); known: {}", self.known());
                let names = || names.iter().map(String::as_str);
                // Of several names in one value, the unknown one counts: graph:rrf:jaccard,bm26, lerned@0.2.
                let parts = value.trim_start_matches("graph:").trim_start_matches("rrf:");
                let parts = parts.split([',', '@']);
                let unknown = parts.into_iter().find(|part| !names().any(|name| name == *part));
                Err(match did_you_mean(unknown.unwrap_or(value), names()) {
                    Some(hint) => Error::refused(error, hint).into(),
                    None => anyhow!(error),
                })
            }
        }
    }
}

/// Values of a flag that its definition does not hold.
#[derive(Debug, Default)]
pub struct Completable {
    /// Names to complete.
    pub names: Vec<String>,
    /// Whether commas separate several.
    pub is_list: bool,
}

/// The whole numbers that are accepted, in words.
pub fn expected_whole(bounds: &RangeInclusive<u64>) -> String {
    match (bounds.start(), bounds.end()) {
        (0, &u64::MAX) => "a whole number".into(),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}
