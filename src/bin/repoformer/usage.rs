//! Errors of the command line itself: unknown commands, flags and values, with what was probably meant.

use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use repoformer::error::did_you_mean;

use crate::output::{self, fail, unknown};

/// Prints what parsing answered: help, the version, or an error.
pub(crate) fn tell(answer: &Error, program: Command) -> ExitCode {
    match explained(answer, program) {
        Some(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
        None => {
            // Like `Error::exit`; help that cannot be printed any more is not missed.
            let _ = answer.print();
            ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
        }
    }
}

/// The error in the program's words, where it is a name that does not exist; clap explains all others.
fn explained(answer: &Error, program: Command) -> Option<anyhow::Error> {
    let given = |kind| match answer.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let mut program = program;
    program.build(); // Global flags belong to every command from then on.
    let arguments = std::env::args_os().skip(1).map(|one| one.to_string_lossy().into_owned());
    let (command, path) = chosen(&program, arguments);
    let told: anyhow::Result<()> = match answer.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = given(ContextKind::InvalidSubcommand)?;
            let hint = did_you_mean(name, subcommands(command))
                .or_else(|| nested(command, name))
                .unwrap_or_else(|| format!("`{path} --help` lists the commands"));
            let of = if path.contains(' ') { format!(" of `{path}`") } else { String::new() };
            fail(format!("unknown command '{name}'{of}"), hint)
        }
        ErrorKind::UnknownArgument => {
            let flag = given(ContextKind::InvalidArg).filter(|flag| is_flag(flag))?;
            let name = flag.split('=').next().unwrap_or(flag);
            let others = having(&program, name);
            let known = flags(command);
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            let hint = match (others.is_empty(), hint) {
                // What such a command does without it is a dry run.
                _ if name == "--dry-run" && known.iter().any(|flag| flag == "--yes") => {
                    "leave it out: nothing is done without --yes, and what would be is listed"
                        .into()
                }
                (true, Some(hint)) => hint,
                (true, None) => format!("`{path} --help` lists its flags"),
                (false, _) => format!("{name} is a flag of {}", others.join(", ")),
            };
            fail(format!("unknown flag '{name}' of `{path}`"), hint)
        }
        ErrorKind::InvalidValue => {
            let value = given(ContextKind::InvalidValue).filter(|value| !value.is_empty())?;
            let Some(ContextValue::Strings(known)) = answer.get(ContextKind::ValidValue) else {
                return None;
            };
            let flag = given(ContextKind::InvalidArg)?;
            let key = flag.split([' ', '=']).next()?.trim_matches(['-', '<', '>']).to_lowercase();
            unknown(format!("unknown {key}"), value, known)
        }
        _ => return None,
    };
    told.err()
}

/// Whether an argument looks like a flag; a number that begins with a hyphen does not.
fn is_flag(argument: &str) -> bool {
    let rest = argument.trim_start_matches('-');
    rest.len() < argument.len() && rest.starts_with(char::is_alphabetic)
}

/// The subcommand that the arguments choose, and its name with those above it.
fn chosen(program: &Command, arguments: impl Iterator<Item = String>) -> (&Command, String) {
    let (mut command, mut path) = (program, program.get_name().to_owned());
    for argument in arguments {
        match command.find_subcommand(&argument) {
            Some(next) => {
                path = format!("{path} {}", next.get_name());
                command = next;
            }
            None if is_flag(&argument) => {}
            None => break,
        }
    }
    (command, path)
}

fn subcommands(command: &Command) -> impl Iterator<Item = &str> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.flat_map(Command::get_name_and_visible_aliases).chain(["help"])
}

/// Hint at a subcommand of a subcommand that has this name.
fn nested(command: &Command, name: &str) -> Option<String> {
    let below = command
        .get_subcommands()
        .flat_map(|of| of.get_subcommands().map(move |sub| (of.get_name(), sub.get_name())));
    let (of, sub) = below.into_iter().find(|(_, sub)| *sub == name)?;
    Some(format!("did you mean '{of} {sub}'?"))
}

/// The long flags of a subcommand, with their hyphens.
fn flags(command: &Command) -> Vec<String> {
    let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
    let names = flags.filter_map(|flag| flag.get_long_and_visible_aliases());
    names.flatten().map(|name| format!("--{name}")).collect()
}

/// The subcommands that have a flag, with all names above theirs.
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
