//! The settings that stand on the command line.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::declaration::{Given, Setting};
use super::declared::{DECLARED, SETTINGS};

/// Name of the flag that every command with settings has.
pub(crate) const SHOW: &str = "show-settings";

/// Flags of the settings that a subcommand takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    pub(super) given: Given,
    /// Whether the settings are only to be shown.
    pub(crate) show_settings: bool,
    /// Whether the subcommand scores predictions.
    pub(super) scores: bool,
    /// Whether the subcommand completes prompts.
    pub(super) completes: bool,
    /// Whether the subcommand can work on a part of the repositories.
    pub(crate) has_shards: bool,
}

impl SettingFlags {
    /// Settings of a subcommand that has flags of its own for them.
    pub(crate) fn of(given: impl IntoIterator<Item = (&'static Setting, Vec<String>)>) -> Self {
        Self { given: given.into_iter().collect(), ..Self::default() }
    }

    /// Whether the flag was given.
    pub(crate) fn has(&self, setting: &Setting) -> bool {
        self.given.has(setting)
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let name = command.get_name().to_owned();
        let show = Arg::new(SHOW)
            .long(SHOW)
            .help("Print each setting in force and its source, then exit")
            .help_heading("Data set")
            .action(ArgAction::SetTrue);
        let flags = SETTINGS.iter().filter_map(|setting| setting.flag(&name));
        command.args(flags).arg(show)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self { show_settings: matches.get_flag(SHOW), ..Self::default() };
        for setting in SETTINGS {
            let key = setting.key;
            let known = matches.try_contains_id(key);
            flags.scores |= *setting == &DECLARED.metrics && known.is_ok();
            flags.completes |= *setting == &DECLARED.api && known.is_ok();
            flags.has_shards |= *setting == &DECLARED.shard && known.is_ok();
            let is_known = known.unwrap_or_default();
            if !is_known || matches.value_source(key) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = match matches.try_get_many::<String>(key) {
                Ok(values) => values.into_iter().flatten().cloned().collect(),
                // A switch.
                Err(_) => vec!["yes".to_owned()],
            };
            let values = values.iter().flat_map(|value| setting.split(value));
            flags.given.insert(setting, values.collect());
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
