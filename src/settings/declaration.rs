//! One setting: its key, values, default and help, from which its flag, its variable and its checks follow.

use std::fmt::Display;
use std::ops::RangeInclusive;

use anyhow::{Result, anyhow, bail};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction};
use repoformer_text::names::did_you_mean;

use super::declared::DECLARED;
use crate::output::hinted;

/// Start of the names of environment variables.
pub(super) const PREFIX: &str = "REPOFORMER_";

/// Name of a setting's environment variable.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('-', "_").to_uppercase())
}

/// Settings that one source gives, and their values as text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given(Vec<(&'static Setting, Vec<String>)>);

impl Given {
    pub(super) fn insert(&mut self, setting: &'static Setting, texts: Vec<String>) {
        self.0.push((setting, texts));
    }

    pub(super) fn has(&self, setting: &Setting) -> bool {
        self.get(setting).is_some()
    }

    pub(super) fn get(&self, setting: &Setting) -> Option<&[String]> {
        self.0.iter().find(|(one, _)| *one == setting).map(|(_, texts)| &**texts)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static Setting, &[String])> {
        self.0.iter().map(|(setting, texts)| (*setting, &**texts))
    }
}

impl FromIterator<(&'static Setting, Vec<String>)> for Given {
    fn from_iter<I: IntoIterator<Item = (&'static Setting, Vec<String>)>>(given: I) -> Self {
        Self(given.into_iter().collect())
    }
}

/// Heading that a setting's flag stands under in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    DataSet,
    Fragments,
    Search,
    Embeddings,
    Prompts,
    Model,
    Server,
    Scores,
    Policies,
    Statistics,
}

impl Group {
    pub(super) fn heading(self) -> &'static str {
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
pub(crate) enum Effect {
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
    const fn of(group: Group) -> Self {
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
pub(crate) enum Values {
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
pub(crate) enum Arity {
    One,
    /// Repeatable; commas separate names as well.
    Names,
    /// Repeatable; commas separate paths, unless the whole is the path of a file.
    Paths,
    /// Repeatable; a comma is part of the text.
    Texts,
}

/// Aliases of values, and the function that returns the name for an alias.
pub(crate) type OtherNames = (&'static [&'static str], fn(&str) -> &str);

/// A setting.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(super) default: Option<&'static str>,
    pub(super) values: Values,
    pub(super) arity: Arity,
    /// Whether a file can hold it.
    pub(super) in_files: bool,
    /// The only unit that it has a meaning for, if it has not for both.
    pub(super) only_for: Option<&'static str>,
    /// Another name of its flag.
    pub(super) alias: Option<&'static str>,
    /// Aliases of its values.
    pub(super) other_names: OtherNames,
    /// Default in words, where it is not a value.
    pub(super) default_text: Option<&'static str>,
    /// Subcommands that have the flag; none means all. The environment and files serve every subcommand.
    pub(super) commands: &'static [&'static str],
    /// Subcommands that lack the flag all the same.
    pub(super) not_for: &'static [&'static str],
    pub(super) group: Group,
    pub(super) effect: Effect,
    pub(super) value_name: &'static str,
    /// One sentence; `{names}` stands for the known names.
    pub(super) help: &'static str,
}

/// Keys differ.
impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Setting {
    /// A setting of one value that every file can hold and every subcommand has a flag for, without a default.
    pub(super) const fn new(
        group: Group,
        key: &'static str,
        value_name: &'static str,
        values: Values,
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
            effect: Effect::of(group),
            value_name,
            help,
            default_text: None,
            commands: &[],
            not_for: &[],
        }
    }

    pub(super) fn is_list(&self) -> bool {
        self.arity != Arity::One
    }

    /// The values that one text gives, as a flag or a variable has it.
    pub(super) fn split(&self, text: &str) -> Vec<String> {
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
    pub(super) fn canonical(&self, value: &str) -> String {
        let (_, canonical) = self.other_names;
        canonical(value).to_owned()
    }

    /// The names that are known, where values are names.
    pub(super) fn names(&self) -> Vec<String> {
        match &self.values {
            Values::OneOf(names) | Values::OneOfOr(names, ..) => names(),
            Values::Switch => vec!["yes".into(), "no".into()],
            Values::Text | Values::Whole(_) | Values::Number(..) => Vec::new(),
        }
    }

    /// The known names and other forms, in words.
    fn known(&self) -> String {
        let names = self.names().join(", ");
        match self.values {
            Values::OneOfOr(_, _, others) => format!("{names}, or {others}"),
            _ => names,
        }
    }

    /// Checks one value; `source` tells the reader of the error where it came from.
    pub(super) fn check(&self, value: &str, source: &str) -> Result<()> {
        let key = self.key;
        let invalid =
            |expected: &str| bail!("invalid {key} '{value}' (from {source}): expected {expected}");
        match &self.values {
            Values::Text => Ok(()),
            Values::Whole(bounds) => match value.parse::<u64>() {
                Ok(number) if bounds.contains(&number) => Ok(()),
                _ => invalid(&expected_whole(bounds)),
            },
            Values::Number(is_valid, expected) => match value.parse::<f64>() {
                Ok(number) if is_valid(number) => Ok(()),
                _ => invalid(expected),
            },
            Values::OneOfOr(_, is_other, _) if is_other(value) => Ok(()),
            Values::OneOf(_) | Values::OneOfOr(..) | Values::Switch => {
                let names = self.names();
                if names.iter().any(|name| name == value) {
                    return Ok(());
                }
                let error =
                    anyhow!("unknown {key} '{value}' (from {source}); known: {}", self.known());
                let names = || names.iter().map(String::as_str);
                // Of several names in one value, the unknown one counts: graph:rrf:jaccard,bm26, lerned@0.2.
                let parts = value.trim_start_matches("graph:").trim_start_matches("rrf:");
                let parts = parts.split([',', '@']);
                let unknown = parts.into_iter().find(|part| !names().any(|name| name == *part));
                Err(match did_you_mean(unknown.unwrap_or(value), names()) {
                    Some(hint) => hinted(error, hint),
                    None => error,
                })
            }
        }
    }

    /// Whether the short help (`-h`) of a subcommand shows the flag.
    fn is_in_short_help(&self, command: &str) -> bool {
        let draws = matches!(command, "sample" | "all");
        match self.group {
            Group::DataSet => {
                !draws || ![&DECLARED.tasks, &DECLARED.benchmark, &DECLARED.mode].contains(&self)
            }
            Group::Scores | Group::Policies | Group::Statistics => true,
            Group::Fragments => command == "window" || draws && *self == DECLARED.language,
            Group::Search => command == "search",
            Group::Embeddings => command == "vectorize",
            Group::Prompts => command == "prompt",
            Group::Model => {
                ["complete", "rg-rg", "run", "all", "eval", "report"].contains(&command)
            }
            Group::Server => command == "complete",
        }
    }

    /// The help without the meaning of each value, where the values are listed behind it.
    fn short_help(&self, help: &str) -> String {
        let meaning = &help[..help.find(" [default:").unwrap_or(help.len())];
        let end = [": ", "; "].iter().filter_map(|sign| meaning.find(sign)).min();
        match (&self.values, end) {
            (Values::OneOf(_), Some(end)) => {
                let rest = &help[end..];
                let more = [" (with --unit", " (repeatable", " [default:"].iter();
                let more = more.filter_map(|mark| rest.find(mark)).min();
                format!("{}{}", &help[..end], more.map_or("", |at| &rest[at..]))
            }
            _ => help.to_owned(),
        }
    }

    /// Its flag, as a subcommand has it.
    pub(super) fn flag(&self, command: &str) -> Option<Arg> {
        let has_it = self.commands.is_empty() || self.commands.contains(&command);
        if !has_it || self.not_for.contains(&command) {
            return None;
        }
        let mut help = self.help.replace("{names}", &self.known());
        if let Some(unit) = self.only_for {
            help.push_str(&format!(" (with --unit {unit})"));
        }
        help.push_str(match self.arity {
            Arity::One => "",
            Arity::Names | Arity::Paths => " (repeatable, or separated by commas)",
            Arity::Texts => " (repeatable)",
        });
        if let Some(words) = self.default_text {
            help.push_str(&format!(" [default: {words}]"));
        }
        let mut flag = Arg::new(self.key)
            .long(self.key)
            .help(self.short_help(&help))
            .long_help(help)
            .help_heading(self.group.heading())
            .hide_short_help(!self.is_in_short_help(command));
        if let Some(alias) = self.alias {
            flag = flag.visible_alias(alias);
        }
        if matches!(self.values, Values::Switch) {
            return Some(flag.action(ArgAction::SetTrue));
        }
        if let Values::OneOf(names) = self.values {
            flag = flag.value_parser(Listed::with_other_names(self.other_names, names()));
        }
        if let (Some(default), None) = (self.default, self.default_text) {
            flag = flag.default_value(default);
        }
        let is_number = matches!(self.values, Values::Whole(_) | Values::Number(..));
        flag = flag.allow_negative_numbers(is_number);
        let action = if self.is_list() { ArgAction::Append } else { ArgAction::Set };
        Some(flag.value_name(self.value_name).action(action))
    }
}

/// Values of a flag that its definition does not hold.
#[derive(Debug, Default)]
pub(crate) struct Completable {
    pub(crate) names: Vec<String>,
    /// Whether commas separate several.
    pub(crate) is_list: bool,
}

pub(super) fn expected_whole(bounds: &RangeInclusive<u64>) -> String {
    match (bounds.start(), bounds.end()) {
        (0, &u64::MAX) => "a whole number".into(),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}

/// Lists values in help and completion scripts. Any text passes: the check belongs to whoever parses the value, so that a
/// flag's error reads like a file's.
#[derive(Debug, Clone)]
pub(crate) struct Listed(Vec<PossibleValue>);

impl Listed {
    pub(crate) fn of<T: Display>(values: impl IntoIterator<Item = T>) -> Self {
        Self(values.into_iter().map(|value| PossibleValue::new(value.to_string())).collect())
    }

    pub(crate) fn and(mut self, value: &str) -> Self {
        self.0.push(PossibleValue::new(value.to_owned()));
        self
    }

    /// Lists values with aliases, which the help does not show.
    fn with_other_names((names, canonical): OtherNames, values: Vec<String>) -> Self {
        let value = |value: String| {
            let others = names.iter().filter(|name| canonical(name) == value);
            let others: Vec<&str> = others.copied().collect();
            PossibleValue::new(value).aliases(others)
        };
        Self(values.into_iter().map(value).collect())
    }
}

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}
