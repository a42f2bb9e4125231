//! Page that lists every command with its flags.

use std::collections::BTreeMap;

use clap::{Arg, Command};

/// Command with its full name: `label sample`.
pub(crate) struct NamedCommand<'c> {
    pub(crate) name: String,
    pub(crate) command: &'c Command,
}

const HEAD: &str = "\
# Every command

<!-- generated: by `repoformer manual DIR --format markdown`; change the help in the source instead -->

Find the flags of a command. `repoformer COMMAND -h` prints its most used flags and an example, `repoformer COMMAND --help` all
of its flags, and `repoformer help FLAG` explains one.
";

const SHARED: &str = "\
## Shared flags

Flags that several commands take, under the headings of the help. Each is also a setting with a key in configuration files and
an environment variable: see [Every setting](every-setting.md). A command takes some flags only so that all commands can be
called with the same ones; the lists below say which commands use them.
";

/// Returns the page, from the program's definition.
pub(super) fn page(program: &Command) -> String {
    let commands = name_commands("", program);
    let shared = SharedFlags::from_commands(&commands);
    let mut page = format!("{HEAD}\n| command | does |\n|---|---|\n");
    for NamedCommand { name, command } in &commands {
        let (link, about) = (anchor(&format!("repoformer {name}")), about(command));
        page += &format!("| [`{name}`](#{link}) | {about} |\n");
    }
    page += "\nEvery command also takes `-h`, `--help` and `-V`, `--version`.\n";
    if let Some(more) = program.get_after_help() {
        page += &format!("\n{more}\n");
    }
    let mut printed: BTreeMap<String, String> = BTreeMap::new();
    for NamedCommand { name, command } in &commands {
        page += &format!("\n## `repoformer {name}`\n\n{}.\n\n", about(command));
        page += &format!("```text\n{}\n```\n", usage(command));
        if command.has_subcommands() {
            let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
            let links = below.map(|sub| {
                let link = anchor(&format!("repoformer {name} {}", sub.get_name()));
                format!("[`{}`](#{link})", sub.get_name())
            });
            page += &format!("\nCommands: {}.\n", links.collect::<Vec<_>>().join(", "));
            continue;
        }
        for (heading, args) in groups(command, |arg| !shared.has(arg)) {
            let list: String = args.iter().map(|arg| item(arg)).collect();
            let title = if heading.is_empty() { "" } else { heading };
            // An earlier command has the same flags.
            if let Some(other) = printed.get(&list).filter(|_| args.len() > 1) {
                let link = anchor(&format!("repoformer {other}"));
                page += &format!("\n**{title}**: the flags of [`{other}`](#{link}).\n");
                continue;
            }
            page += &if title.is_empty() { "\n".to_owned() } else { format!("\n**{title}**\n\n") };
            page += &list;
            printed.insert(list, name.clone());
        }
        page += &shared.links(command);
    }
    page += &format!("\n{SHARED}");
    page + &shared.text(&commands)
}

/// Returns all subcommands of a command, each followed by its own subcommands.
pub(crate) fn name_commands<'c>(above: &str, command: &'c Command) -> Vec<NamedCommand<'c>> {
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let of = |sub: &'c Command| {
        let name = format!("{above}{}", sub.get_name());
        let mut all = name_commands(&format!("{name} "), sub);
        all.insert(0, NamedCommand { name, command: sub });
        all
    };
    below.flat_map(of).collect()
}

/// Groups the visible flags that pass a filter by their headings; help and version are explained above.
fn groups(command: &Command, is_in: impl Fn(&Arg) -> bool) -> Vec<(&str, Vec<&Arg>)> {
    let mut groups: Vec<(&str, Vec<&Arg>)> = Vec::new();
    let usual = ["help", "version"];
    let flags = command.get_arguments();
    for arg in flags.filter(|arg| !arg.is_hide_set() && !usual.contains(&arg.get_id().as_str())) {
        if !is_in(arg) {
            continue;
        }
        let heading = arg.get_help_heading().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, args)) => args.push(arg),
            None => groups.push((heading, vec![arg])),
        }
    }
    // A command's own flags come first.
    groups.sort_by_key(|(heading, _)| !heading.is_empty());
    groups
}

/// Flags that several commands have with the same help.
struct SharedFlags<'c> {
    groups: Vec<(&'c str, Vec<&'c Arg>)>,
}

/// True if a command's flag is one of these; a flag without a heading is the command's own, even if its text is the same.
fn is_among(args: &[&Arg], arg: &Arg) -> bool {
    arg.get_help_heading().is_some() && args.iter().any(|known| item(known) == item(arg))
}

impl<'c> SharedFlags<'c> {
    fn from_commands(commands: &[NamedCommand<'c>]) -> Self {
        let is_leaf = |named: &&NamedCommand<'_>| !named.command.has_subcommands();
        let leaves: Vec<&NamedCommand<'c>> = commands.iter().filter(is_leaf).collect();
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for arg in leaves.iter().flat_map(|named| named.command.get_arguments()) {
            *count.entry(item(arg)).or_default() += 1;
        }
        // Flags of only two commands are explained with the first.
        let is_shared = |arg: &Arg| arg.get_help_heading().is_some() && count[&item(arg)] > 2;
        let mut groups: Vec<(&str, Vec<&Arg>)> = Vec::new();
        for (heading, args) in
            leaves.iter().flat_map(|named| self::groups(named.command, is_shared))
        {
            let place = groups.iter().position(|(known, _)| *known == heading);
            let place = place.unwrap_or_else(|| {
                groups.push((heading, Vec::new()));
                groups.len() - 1
            });
            let group = &mut groups[place].1;
            let is_new = |arg: &&Arg| !group.iter().any(|known| item(known) == item(arg));
            let new: Vec<&Arg> = args.into_iter().filter(is_new).collect();
            group.extend(new);
        }
        groups.sort_by_key(|(heading, _)| *heading == "Output");
        Self { groups }
    }

    fn has(&self, arg: &Arg) -> bool {
        self.groups.iter().any(|(_, args)| is_among(args, arg))
    }

    /// Returns links to the groups from which a command has flags.
    fn links(&self, command: &Command) -> String {
        let groups = groups(command, |arg| self.has(arg));
        let links = |is_main: bool| {
            let is_one =
                |args: &[&Arg]| args.iter().any(|arg| !arg.is_hide_short_help_set()) == is_main;
            let of = groups.iter().filter(|(_, args)| is_one(args));
            let links = of.map(|(heading, _)| format!("[{heading}](#{})", anchor(heading)));
            links.collect::<Vec<_>>().join(", ")
        };
        let (main, more) = (links(true), links(false));
        let main = if main.is_empty() { main } else { format!("\nShared flags: {main}.\n") };
        let more = if more.is_empty() { more } else { format!("Also accepted: {more}.\n") };
        main + &more
    }

    fn text(&self, commands: &[NamedCommand<'_>]) -> String {
        let mut text = String::new();
        for (heading, args) in &self.groups {
            text += &format!("\n### {heading}\n\n");
            for arg in args {
                text += &item(arg);
            }
            let takes = |named: &NamedCommand<'_>, is_main: bool| {
                let known = |arg: &&Arg| is_among(args, arg);
                let mut own = named.command.get_arguments().filter(known);
                own.any(|arg| !is_main || !arg.is_hide_short_help_set())
            };
            let leaves = || commands.iter().filter(|named| !named.command.has_subcommands());
            let users: Vec<String> = leaves()
                .filter(|named| takes(named, true))
                .map(|named| format!("`{}`", named.name))
                .collect();
            let users = if users.len() == leaves().count() {
                "every command".into()
            } else {
                users.join(", ")
            };
            text += &format!("\nUsed by {users}.\n");
        }
        text
    }
}

/// Returns a flag as an item of a list.
pub(crate) fn item(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut more = Vec::new();
    if arg.get_action().takes_values() {
        let values = arg.get_possible_values();
        let values = values.iter().filter(|_| !arg.is_hide_possible_values_set());
        let with_help = values.clone().any(|value| value.get_help().is_some());
        let values: Vec<String> = values
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({help})", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !values.is_empty() {
            more.push(format!("values: {}", values.join(if with_help { "; " } else { ", " })));
        }
        let default: Vec<String> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect();
        if !default.is_empty() && !arg.is_hide_default_value_set() {
            more.push(format!("default: `{}`", default.join(",")));
        }
        let aliases: Vec<String> = arg
            .get_visible_aliases()
            .unwrap_or_default()
            .iter()
            .map(|alias| format!("`--{alias}`"))
            .collect();
        if !aliases.is_empty() {
            more.push(format!("also {}", aliases.join(", ")));
        }
    }
    let more = if more.is_empty() { String::new() } else { format!(" [{}]", more.join("; ")) };
    format!("- `{}`: {}{more}\n", spell(arg), escape(&help))
}

/// Returns a flag with its value: `-o, --output <FILE>`.
fn spell(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
    let values = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    if arg.is_positional() {
        return values;
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flag = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let is_optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    match (values.is_empty(), is_optional) {
        (true, _) => flag,
        (false, true) => format!("{flag}[={values}]"),
        (false, false) => format!("{flag} {values}"),
    }
}

/// Escapes characters that have a meaning in Markdown or HTML, except in code.
fn escape(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| {
        if number % 2 == 1 { part.to_owned() } else { part.replace('<', "\\<").replace('*', "\\*") }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns the usage of a command: `repoformer inspect [OPTIONS] <FILE>`.
pub(super) fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").trim().to_owned()
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    escape(&about)
}

/// Returns the anchor of a heading, as mdBook and GitHub create it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|sign| sign.is_alphanumeric() || "-_".contains(*sign)).collect()
}
