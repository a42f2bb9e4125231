//! `manual`: writes the commands and settings as manual pages, or as pages of the book.

mod commands_page;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{Arg, Args, Command, ValueEnum};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use repoformer_store::artifact::write_file;

use self::commands_page::usage;
pub(crate) use self::commands_page::{item, name_commands};
use crate::output::{fail, note};
use crate::settings::{KEY_VARIABLES, SHOW, settings_page, variable_of};

#[derive(Debug, Args)]
pub(crate) struct ManualArgs {
    /// Folder for the pages
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Format of the pages: a manual page for each command, for `man` (man); or commands.md and every-setting.md (markdown)
    #[arg(long, value_name = "FORMAT", default_value = "man")]
    format: ManualFormat,
}

/// Format of the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ManualFormat {
    Man,
    Markdown,
}

/// Date of this version; manual pages require one.
const DATE: &str = "2026-11-24";

pub(crate) fn run(args: &ManualArgs, program: Command) -> Result<()> {
    if args.dir.exists() && !args.dir.is_dir() {
        return fail(
            format!("{}: not a folder", args.dir.display()),
            "name a folder for the pages",
        );
    }
    let mut program = explicit(program);
    program.build();
    let pages = match args.format {
        ManualFormat::Man => manual_pages(&program, &exit_statuses(&program))?,
        ManualFormat::Markdown => vec![
            ("commands.md".into(), commands_page::page(&program).into_bytes()),
            ("every-setting.md".into(), settings_page().into_bytes()),
        ],
    };
    for (name, text) in &pages {
        write_file(&args.dir.join(name), text)?;
    }
    note(format!("manual: {} pages in {}", pages.len(), Path::new(&args.dir).display()));
    Ok(())
}

/// Copies the help of each flag to its long help, which the pages read.
fn explicit(command: Command) -> Command {
    let command = command.mut_args(|arg| match (arg.get_long_help(), arg.get_help().cloned()) {
        (None, Some(help)) => arg.long_help(help),
        _ => arg,
    });
    command.mut_subcommands(explicit)
}

/// Returns the page of each command with its file name.
fn manual_pages(command: &Command, statuses: &Items) -> Result<Vec<(String, Vec<u8>)>> {
    let mut pages = vec![manual_page(command, statuses)?];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages.extend(manual_pages(below, statuses)?);
    }
    Ok(pages)
}

fn manual_page(command: &Command, statuses: &Items) -> Result<(String, Vec<u8>)> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    // The synopsis would otherwise list dozens of flags.
    let short = command.clone().override_usage(usage(command)).mut_args(with_values);
    let man = Man::new(short).date(DATE).manual("repoformer");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    let mut roff = Roff::new();
    section(&mut roff, "EXIT STATUS", statuses);
    section(&mut roff, "ENVIRONMENT", &variables(command));
    let notes: Vec<String> =
        paragraphs(command).into_iter().filter(|text| !text.starts_with(EXIT)).collect();
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
        for (number, paragraph) in notes.iter().enumerate() {
            if number > 0 {
                roff.control("PP", []);
            }
            roff.text([roman(paragraph)]);
        }
    }
    roff.to_writer(&mut page)?;
    Ok((format!("{name}.1"), page))
}

/// Terms of a section and their descriptions.
type Items = Vec<(String, String)>;

fn section(roff: &mut Roff, title: &str, items: &Items) {
    roff.control("SH", [title]);
    for (term, text) in items {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(text)]);
    }
}

/// Returns the paragraphs below the flags of a command's help.
fn paragraphs(command: &Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    text.split("\n\n").filter(|text| !text.is_empty()).map(Into::into).collect()
}

/// Beginning of the paragraph that lists the exit statuses.
const EXIT: &str = "Exit status: ";

/// Returns the exit statuses of every command, as the program's help lists them.
fn exit_statuses(program: &Command) -> Items {
    let paragraphs = paragraphs(program);
    let listed = paragraphs.iter().find_map(|text| text.strip_prefix(EXIT)).unwrap_or_default();
    let items = listed.trim_end_matches('.').split(", ").filter_map(|item| item.split_once(' '));
    items.map(|(status, text)| (status.to_owned(), text.to_owned())).collect()
}

/// Returns the environment variables that a command reads: for its settings, the keys of its servers, and the terminal.
fn variables(command: &Command) -> Items {
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let flags = command.get_arguments().filter(|_| has(SHOW)).map(|arg| arg.get_id().as_str());
    let mut items: Items =
        flags.filter_map(|key| Some((variable_of(key)?, format!("Same as --{key}.")))).collect();
    for (setting, variable) in &KEY_VARIABLES {
        if has(setting.key) {
            items
                .push(((*variable).into(), format!("API key of the server at --{}.", setting.key)));
        }
    }
    items.push(("NO_COLOR".into(), "If set and not empty, output has no colours.".into()));
    items
}

/// Appends the possible values of a flag to its help; `clap_mangen` would print a paragraph for each value.
pub(crate) fn with_values(arg: Arg) -> Arg {
    let values = arg.get_possible_values();
    if values.is_empty() || arg.is_hide_possible_values_set() || !arg.get_action().takes_values() {
        return arg;
    }
    let value = |value: &PossibleValue| match value.get_help() {
        Some(help) => format!("{} ({help})", value.get_name()),
        None => value.get_name().to_owned(),
    };
    let values = values.iter().map(value).collect::<Vec<_>>().join(", ");
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = format!("{help} [possible values: {values}]");
    arg.help(help.clone()).long_help(help).hide_possible_values(true)
}
