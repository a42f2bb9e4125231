//! Errors of the command line: unknown commands, flags and values, with suggestions.

use std::error::Error as _;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, ArgAction, Command};
use repoformer_text::names::did_you_mean;
use repoformer_text::visible::is_hidden;

use crate::help::{brief, full, print};
use crate::output::{self, fail, unknown};
use crate::settings::completable;

/// Prints the result of parsing: help, the version, or an error.
pub(crate) fn tell(answer: &Error, mut program: Command) -> ExitCode {
    if answer.kind() == ErrorKind::DisplayHelp {
        program.build(); // Global flags belong to every command from then on.
        let arguments = given_arguments();
        let (command, path) = find_chosen(&program, &arguments);
        let path = path.strip_prefix("repoformer").unwrap_or(&path).trim_start();
        let is_full = arguments.iter().any(|one| one == "--help");
        print(&if is_full { full(command, path) } else { brief(command, path) });
        return ExitCode::SUCCESS;
    }
    if answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        program.build();
        let (command, path) = find_chosen(&program, &given_arguments());
        let path = path.strip_prefix("repoformer").unwrap_or(&path).trim_start();
        output::announce(brief(command, path).to_string().trim_end());
        return ExitCode::from(2);
    }
    match explain(answer, program) {
        Some(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
        None => {
            let mut arguments = std::env::args_os();
            if arguments.any(|one| one.to_string_lossy().contains(is_hidden)) {
                // Clap repeats arguments without escaping them.
                output::announce(answer.render().to_string().trim_end());
            } else {
                // Like `Error::exit`; a closed pipe is ignored.
                let _ = answer.print();
            }
            ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
        }
    }
}

/// Explains an error in the program's own words; `None` if clap's words are used.
fn explain(answer: &Error, program: Command) -> Option<anyhow::Error> {
    let given = |kind| match answer.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let mut program = program;
    program.build(); // Global flags belong to every command from then on.
    let arguments = given_arguments();
    let (command, path) = find_chosen(&program, &arguments);
    let told: anyhow::Result<()> = match answer.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = given(ContextKind::InvalidSubcommand)?;
            let hint = did_you_mean(name, subcommands(command))
                .or_else(|| suggest_nested(command, name))
                .or_else(|| beginning(command, name))
                .unwrap_or_else(|| format!("`{path} --help` lists the commands"));
            let of = if path.contains(' ') { format!(" of `{path}`") } else { String::new() };
            fail(format!("unknown command '{name}'{of}"), hint)
        }
        ErrorKind::MissingSubcommand => {
            fail(format!("`{path}` needs a command"), format!("`{path} --help` lists the commands"))
        }
        ErrorKind::UnknownArgument => {
            let argument = given(ContextKind::InvalidArg)?;
            if is_flag(argument) {
                let name = argument.split('=').next().unwrap_or(argument);
                let hint = hint_at_flag(&program, command, &path, name, &arguments);
                fail(format!("unknown flag '{name}' of `{path}`"), hint)
            } else {
                let hint = hint_at_value(command, argument, &arguments)
                    .unwrap_or_else(|| format!("`{path} --help` lists its arguments"));
                fail(format!("unexpected argument '{argument}' of `{path}`"), hint)
            }
        }
        ErrorKind::InvalidValue
            if given(ContextKind::InvalidValue).is_some_and(|value| !value.is_empty()) =>
        {
            let value = given(ContextKind::InvalidValue)?;
            let Some(ContextValue::Strings(known)) = answer.get(ContextKind::ValidValue) else {
                return None;
            };
            let flag = given(ContextKind::InvalidArg)?;
            let key = spell(command, flag).trim_start_matches('-').to_lowercase();
            unknown(format!("unknown {key}"), value, known)
        }
        ErrorKind::ArgumentConflict => {
            let flag = spell(command, given(ContextKind::InvalidArg)?);
            let others = match answer.get(ContextKind::PriorArg) {
                Some(ContextValue::String(other)) => vec![spell(command, other)],
                Some(ContextValue::Strings(others)) => {
                    others.iter().map(|one| spell(command, one)).collect()
                }
                _ => return None,
            };
            if others == [flag.clone()] {
                let hint = match flag.as_str() {
                    "--predictions" => {
                        "score each file with its own `eval -o`, and compare them with `compare`"
                    }
                    _ => "give it once",
                };
                fail(format!("{flag} is given more than once"), hint)
            } else {
                let others = others.join(", ");
                fail(format!("{flag} cannot be used with {others}"), "leave one of them out")
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let Some(ContextValue::Strings(missing)) = answer.get(ContextKind::InvalidArg) else {
                return None;
            };
            let hint = format!("`{path} -h` has an example");
            fail(format!("`{path}` needs {}", missing.join(", ")), hint)
        }
        ErrorKind::ValueValidation => {
            let (flag, value) =
                (given(ContextKind::InvalidArg)?, given(ContextKind::InvalidValue)?);
            let reason = answer.source().map(|source| format!(": {source}")).unwrap_or_default();
            let flag = spell(command, flag);
            let hint = format!("`repoformer help {flag}` lists its values");
            fail(format!("invalid value '{value}' of {flag}{reason}"), hint)
        }
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            let flag = given(ContextKind::InvalidArg)?;
            fail(format!("{flag} has no value"), format!("`{path} -h` has an example"))
        }
        ErrorKind::TooManyValues => {
            let (flag, value) =
                (given(ContextKind::InvalidArg)?, given(ContextKind::InvalidValue)?);
            fail(
                format!("{} accepts no value, but '{value}' is given", spell(command, flag)),
                "leave the value out",
            )
        }
        _ => return None,
    };
    told.err()
}

/// Returns the arguments of the command line.
fn given_arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|one| one.to_string_lossy().into_owned()).collect()
}

/// Returns the name of an argument that clap names with its value (`--tasks <FILE>`): its flag, or the name of its value.
fn spell(command: &Command, shown: &str) -> String {
    let arg = command.get_arguments().find(|arg| arg.to_string() == shown);
    let name = arg.and_then(|arg| {
        let value = || arg.get_value_names().and_then(|names| names.first());
        names(arg).next().or_else(|| value().map(ToString::to_string))
    });
    name.unwrap_or_else(|| shown.to_owned())
}

/// True if an argument looks like a flag; a number that begins with a hyphen does not.
fn is_flag(argument: &str) -> bool {
    let rest = argument.trim_start_matches('-');
    rest.len() < argument.len() && rest.starts_with(char::is_alphabetic)
}

/// Returns the subcommand that the arguments choose, and its full name.
fn find_chosen<'c>(program: &'c Command, arguments: &[String]) -> (&'c Command, String) {
    let (mut command, mut path) = (program, program.get_name().to_owned());
    let mut is_value = false;
    for argument in arguments {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match command.find_subcommand(argument) {
            Some(next) => {
                path = format!("{path} {}", next.get_name());
                command = next;
            }
            None if is_flag(argument) => {
                is_value = flag_of(command, argument).is_some_and(takes_next);
            }
            None => break,
        }
    }
    (command, path)
}

/// Returns the flag of a command that an argument names, ignoring a value after `=`.
fn flag_of<'c>(command: &'c Command, argument: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|flag| names(flag).any(|name| name == argument))
}

/// Returns the names of a flag, with their hyphens.
fn names(flag: &Arg) -> impl Iterator<Item = String> {
    let long = flag.get_long_and_visible_aliases().unwrap_or_default();
    let short = flag.get_short_and_visible_aliases().unwrap_or_default();
    long.into_iter()
        .map(|name| format!("--{name}"))
        .chain(short.into_iter().map(|name| format!("-{name}")))
}

/// True if the argument after a flag is its value.
fn takes_next(flag: &Arg) -> bool {
    flag.get_action().takes_values() && !flag.is_require_equals_set()
}

/// Returns a hint for an unknown flag: the similar known one, the place where it belongs, or the commands that have it.
fn hint_at_flag(
    program: &Command,
    command: &Command,
    path: &str,
    name: &str,
    arguments: &[String],
) -> String {
    let others = having(program, name);
    let known = flags(command);
    if name == "--dry-run" && known.iter().any(|flag| flag == "--yes") {
        // Without that flag, such a command is a dry run.
        return "leave it out: without --yes, the command only lists what it would do".into();
    }
    let meant = did_you_mean(name, known.iter().map(String::as_str));
    if others.is_empty() {
        return meant.unwrap_or_else(|| format!("`{path} --help` lists its flags"));
    }
    let is_first = path == program.get_name();
    let later = arguments.iter().find_map(|argument| program.find_subcommand(argument));
    if let Some(later) = later.filter(|_| is_first)
        && let Some(flag) = flag_of(later, name)
    {
        let place = arguments.iter().position(|argument| argument == name);
        let value = place.and_then(|place| arguments.get(place + 1));
        let value = value.filter(|_| takes_next(flag)).map(|value| format!(" {value}"));
        let (later, value) = (later.get_name(), value.unwrap_or_default());
        return format!("put flags of a command after it: `{path} {later} {name}{value}`");
    }
    let others = format!("{name} is a flag of {}", others.join(", "));
    match meant {
        Some(meant) => format!("{meant} {others}"),
        None => others,
    }
}

/// Returns a hint for an argument where no value is expected: the flag that it belongs to.
fn hint_at_value(command: &Command, argument: &str, arguments: &[String]) -> Option<String> {
    let flag_at = |at: usize| arguments.get(at).and_then(|flag| flag_of(command, flag));
    let is_value = |at: usize| at > 0 && flag_at(at - 1).is_some_and(takes_next);
    let mut places = arguments.iter().enumerate().filter(|(_, one)| *one == argument);
    let Some((at, _)) = places.find(|(at, _)| !is_value(*at)) else {
        let at = arguments.iter().position(|one| one == argument)?;
        let flag = arguments.get(at.checked_sub(1)?)?;
        return Some(format!("{flag} accepts no value that begins with a hyphen"));
    };
    if at.checked_sub(1).and_then(flag_at).is_some_and(Arg::is_require_equals_set) {
        let name = &arguments[at - 1];
        return Some(format!("give the value of {name} after an equals sign: {name}={argument}"));
    }
    let before = at.checked_sub(1).map(|before| arguments[before].as_str());
    let given = match before.and_then(|before| before.split_once('=')) {
        Some(given) => Some(given),
        None if at > 1 && is_value(at - 1) => before.map(|value| (&*arguments[at - 2], value)),
        None => None,
    };
    let given = given.and_then(|(name, first)| Some((flag_of(command, name)?, name, first)));
    if let Some((flag, name, first)) = given {
        let is_list = completable(flag.get_id().as_str()).is_some_and(|known| known.is_list);
        if is_list || flag.get_value_delimiter() == Some(',') {
            return Some(format!(
                "separate the values of {name} by commas: {name} {first},{argument}"
            ));
        }
        if matches!(flag.get_action(), ArgAction::Append) {
            return Some(format!(
                "repeat {name} before each value: {name} {first} {name} {argument}"
            ));
        }
    }
    if path_of_one(command) {
        return Some("give one file at a time".into());
    }
    hint_at_file(command, argument)
        .or_else(|| given.map(|(_, name, _)| format!("{name} accepts only one value")))
}

/// True if a command reads exactly one file, without a flag.
fn path_of_one(command: &Command) -> bool {
    let mut files = command.get_positionals();
    let one = files.next().filter(|file| !matches!(file.get_action(), ArgAction::Append));
    one.is_some_and(|file| file.get_id() == "file") && files.next().is_none()
}

/// Returns a hint with the flag for a file or folder like this, if the command has no positional arguments.
fn hint_at_file(command: &Command, argument: &str) -> Option<String> {
    let file = Path::new(argument);
    let is_records = ["jsonl", "json", "gz", "zst"].iter().any(|end| argument.ends_with(end));
    let flag = if file.is_dir() { "--repos-dir" } else { "--tasks" };
    let is_meant = command.get_positionals().next().is_none() && (file.exists() || is_records);
    flag_of(command, flag).filter(|_| is_meant)?;
    Some(match flag_of(command, "--predictions").filter(|_| flag == "--tasks") {
        Some(_) => format!("name it with its flag: --tasks {argument} or --predictions {argument}"),
        None => format!("name it with its flag: {flag} {argument}"),
    })
}

fn subcommands(command: &Command) -> impl Iterator<Item = &str> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.flat_map(Command::get_name_and_visible_aliases).chain(["help"])
}

/// Returns a hint for the name of a nested subcommand.
fn suggest_nested(command: &Command, name: &str) -> Option<String> {
    let below = command
        .get_subcommands()
        .flat_map(|of| of.get_subcommands().map(move |sub| (of.get_name(), sub.get_name())));
    let (of, sub) = below.into_iter().find(|(_, sub)| *sub == name)?;
    Some(format!("did you mean '{of} {sub}'?"))
}

/// Returns a hint for a longer or shorter form of a subcommand or flag, such as `evaluate` or `version`.
fn beginning(command: &Command, name: &str) -> Option<String> {
    let is_form = |known: &&str| {
        known.len().min(name.len()) > 2 && (name.starts_with(known) || known.starts_with(name))
    };
    let flag = format!("--{name}");
    let known = subcommands(command).find(is_form);
    let meant = known.or_else(|| (flag == "--version").then_some(flag.as_str()))?;
    Some(format!("did you mean '{meant}'?"))
}

/// Returns the long flags of a subcommand, with their hyphens.
fn flags(command: &Command) -> Vec<String> {
    let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
    let names = flags.filter_map(|flag| flag.get_long_and_visible_aliases());
    names.flatten().map(|name| format!("--{name}")).collect()
}

/// Returns the full names of the subcommands that have a flag.
fn having(command: &Command, flag: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting: Vec<(String, &Command)> = vec![(command.get_name().to_owned(), command)];
    while let Some((path, command)) = waiting.pop() {
        if flags(command).iter().any(|known| known == flag) {
            found.push(format!("`{path}`"));
        }
        let below =
            command.get_subcommands().map(|sub| (format!("{path} {}", sub.get_name()), sub));
        waiting.extend(below.collect::<Vec<_>>().into_iter().rev());
    }
    found
}
