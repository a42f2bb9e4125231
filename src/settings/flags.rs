//! Flags of the settings on the command line.

use std::fmt::Display;
use std::ops::Deref;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use repoformer_study::settings::{
    AllowedValues, Arity, DECLARED, Group, Invocation, OtherNames, SETTINGS, Setting,
};

/// Name of the flag that every command with settings has.
pub(crate) const SHOW: &str = "show-settings";

/// Hidden argument whose only value is the name of its command.
const COMMAND: &str = "command-of-settings";

/// Flags of the settings that a subcommand accepts.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    invocation: Invocation,
    /// True if the settings are only to be shown.
    pub(crate) show_settings: bool,
}

impl Deref for SettingFlags {
    type Target = Invocation;

    fn deref(&self) -> &Invocation {
        &self.invocation
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let name = command.get_name().to_owned();
        let show = Arg::new(SHOW)
            .long(SHOW)
            .help("Print the value and source of each setting, then exit")
            .help_heading("Data set")
            .action(ArgAction::SetTrue);
        let flags = SETTINGS.iter().filter_map(|setting| flag(setting, &name));
        // Matches do not say which flags their command has, but for a build with debug assertions.
        let own = Arg::new(COMMAND).long(COMMAND).hide(true);
        let own = own.value_parser([name.clone()]).default_value(name.clone());
        command.args(flags).arg(show).arg(own)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = matches.get_one::<String>(COMMAND).map_or("", String::as_str);
        let has = |setting| is_flag_of(setting, command);
        let mut invocation = Invocation {
            scores: has(&DECLARED.metrics),
            completes: has(&DECLARED.api),
            has_shards: has(&DECLARED.shard),
            edits: !has(&DECLARED.tasks),
            ..Invocation::default()
        };
        for setting in SETTINGS {
            let key = setting.key;
            if !has(setting) || matches.value_source(key) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = match matches.try_get_many::<String>(key) {
                Ok(values) => values.into_iter().flatten().cloned().collect(),
                // A switch.
                Err(_) => vec!["yes".to_owned()],
            };
            let values = values.iter().flat_map(|value| setting.split(value));
            invocation.given.insert(setting, values.collect());
        }
        Ok(Self { invocation, show_settings: matches.get_flag(SHOW) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns true if a subcommand has the flag of a setting.
fn is_flag_of(setting: &Setting, command: &str) -> bool {
    let has_it = setting.commands.is_empty() || setting.commands.contains(&command);
    has_it && !setting.not_for.contains(&command)
}

/// True if a subcommand uses the setting itself, rather than only passing it to other stages.
fn is_own(setting: &Setting, command: &str) -> bool {
    let draws = matches!(command, "sample" | "all");
    match setting.group {
        Group::DataSet => {
            !draws || ![&DECLARED.tasks, &DECLARED.benchmark, &DECLARED.mode].contains(&setting)
        }
        Group::Scores | Group::Policies | Group::Statistics => true,
        Group::Fragments => command == "window" || draws && *setting == DECLARED.language,
        Group::Search => command == "search",
        Group::Embeddings => command == "vectorize",
        Group::Prompts => command == "prompt",
        Group::Model => ["complete", "rg-rg", "run", "all", "eval", "report"].contains(&command),
        Group::Server => command == "complete",
    }
}

/// Returns the flag of a setting for a subcommand; `None` if the subcommand does not have it.
fn flag(setting: &Setting, command: &str) -> Option<Arg> {
    if !is_flag_of(setting, command) {
        return None;
    }
    let mut help = setting.help.to_owned();
    if let Some(unit) = setting.only_for {
        help.push_str(&format!(" (with --unit {unit})"));
    }
    help.push_str(match setting.arity {
        Arity::One => "",
        Arity::Names | Arity::Paths => " (repeatable, or separated by commas)",
        Arity::Texts => " (repeatable)",
    });
    if let Some(words) = setting.default_text {
        help.push_str(&format!(" [default: {words}]"));
    }
    let mut flag = Arg::new(setting.key)
        .long(setting.key)
        .help(help)
        .help_heading(setting.group.heading())
        .hide_short_help(!is_own(setting, command));
    if let Some(alias) = setting.alias {
        flag = flag.visible_alias(alias);
    }
    if matches!(setting.values, AllowedValues::Switch) {
        return Some(flag.action(ArgAction::SetTrue));
    }
    if let AllowedValues::OneOf(names) = setting.values {
        flag = flag.value_parser(ValueList::with_other_names(setting.other_names, names()));
    }
    if let (Some(default), None) = (setting.default, setting.default_text) {
        flag = flag.default_value(default);
    }
    let is_number = matches!(setting.values, AllowedValues::Whole(_) | AllowedValues::Number(..));
    flag = flag.allow_negative_numbers(is_number);
    let action = if setting.is_list() { ArgAction::Append } else { ArgAction::Set };
    Some(flag.value_name(setting.value_name).action(action))
}

/// List of values for help and completion scripts. It accepts any text: the code that parses the value checks it, so that the error
/// of a flag reads like the error of a file.
#[derive(Debug, Clone)]
pub(crate) struct ValueList(Vec<PossibleValue>);

impl ValueList {
    pub(crate) fn new<T: Display>(values: impl IntoIterator<Item = T>) -> Self {
        Self(values.into_iter().map(|value| PossibleValue::new(value.to_string())).collect())
    }

    pub(crate) fn and(mut self, value: &str) -> Self {
        self.0.push(PossibleValue::new(value.to_owned()));
        self
    }

    /// Creates a list of values with aliases, which the help does not show.
    fn with_other_names((names, canonical): OtherNames, values: Vec<String>) -> Self {
        let value = |value: String| {
            let others = names.iter().filter(|name| canonical(name) == value);
            let others: Vec<&str> = others.copied().collect();
            PossibleValue::new(value).aliases(others)
        };
        Self(values.into_iter().map(value).collect())
    }
}

impl TypedValueParser for ValueList {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_for_editors_are_known_by_their_flags() {
        // Each with whether it serves editors, scores, completes, and works on shards.
        for (name, known) in [
            ("serve", [true, false, false, false]),
            ("lsp", [true, false, false, false]),
            ("run", [false, true, true, false]),
            ("window", [false, false, false, true]),
            ("complete", [false, false, true, true]),
        ] {
            let command = SettingFlags::augment_args(Command::new(name));
            let flags = SettingFlags::from_arg_matches(&command.get_matches_from([name])).unwrap();
            let found = [flags.edits, flags.scores, flags.completes, flags.has_shards];
            assert_eq!(found, known, "{name}");
        }
    }
}
