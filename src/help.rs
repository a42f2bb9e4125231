//! `-h`, `--help` and `help`: a screen with an example, every flag, or one topic.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Args, Command};
use repoformer_study::settings::{SETTINGS, Setting};
use repoformer_text::names::did_you_mean;

use crate::commands::manual::{item, name_commands, with_values};
use crate::output::{fail, note, write_data};
use crate::settings::{ValueList, explain};

/// Screen that `-h` prints for a command: its most used flags and an example.
struct Screen {
    /// Command with those above it, such as `label sample`.
    path: &'static str,
    example: &'static str,
    /// Long flags, without hyphens; all of the command's own flags if empty.
    flags: &'static [&'static str],
}

/// Defines screens from rows: path, example, flags.
macro_rules! screens {
    ($($path:literal $example:literal $($flag:literal)*;)*) => {
        &[$(Screen { path: $path, example: $example, flags: &[$($flag),*] },)*]
    };
}

static SCREENS: &[Screen] = screens! {
    "window" "repoformer window --repos-dir repos --tasks tasks.jsonl --mode rg1"
        "repos-dir" "tasks" "mode" "unit" "window-size" "slice-size" "predictions" "dry-run";
    "vectorize" "repoformer vectorize --repos-dir repos --tasks tasks.jsonl --mode rg1"
        "repos-dir" "tasks" "mode" "vectorizer" "tokenizer" "embedding-model" "endpoint" "vectors" "write-texts" "dry-run";
    "search" "repoformer search --repos-dir repos --tasks tasks.jsonl --mode rg1 --ranker bm25"
        "repos-dir" "tasks" "mode" "ranker" "top-k" "query" "export" "dry-run";
    "prompt" "repoformer prompt --repos-dir repos --tasks tasks.jsonl --mode rg1 -o prompts.jsonl"
        "repos-dir" "tasks" "mode" "prompt-style" "max-prompt-tokens" "max-blocks" "output" "dry-run";
    "complete" "repoformer complete --repos-dir repos --tasks tasks.jsonl --mode rg1 -o predictions.jsonl"
        "repos-dir" "tasks" "mode" "prompts" "model" "endpoint" "max-tokens" "samples" "concurrency" "output" "dry-run";
    "merge" "repoformer merge part-1.jsonl part-2.jsonl -o predictions.jsonl"
        "repos-dir" "tasks" "mode" "shards" "output";
    "rg-rg" "repoformer rg-rg --repos-dir repos --tasks tasks.jsonl --predictions rg1.jsonl"
        "repos-dir" "tasks" "predictions" "model" "endpoint" "iterations" "output" "dry-run";
    "eval" "repoformer eval --repos-dir repos --tasks tasks.jsonl --predictions predictions.jsonl"
        "repos-dir" "tasks" "mode" "predictions" "metrics" "exec" "retrieval" "pairs" "per-task" "missing" "output";
    "compare" "repoformer compare none.jsonl rg1.jsonl --tasks tasks.jsonl"
        "tasks" "metrics" "measure" "by-repository" "per-task" "format" "output";
    "report" "repoformer report --repos-dir repos --tasks tasks.jsonl -o report"
        "repos-dir" "tasks" "mode" "predictions" "exec" "baseline" "title" "output";
    "run" "repoformer run --repos-dir repos --tasks tasks.jsonl --mode none,rg1 --report"
        "repos-dir" "tasks" "mode" "profile" "model" "endpoint" "metrics" "policy" "report" "output" "dry-run";
    "inspect" "repoformer inspect data/cache/FILE --format jsonl";
    "sample" "repoformer sample --repos-dir repos --kind line --per-repo 200 -o tasks.jsonl"
        "repos-dir" "kind" "per-repo" "language" "no-tests" "from-commits" "seed" "output";
    "label" "repoformer label all --repos-dir repos --tokenizer model/tokenizer.json -o sequences";
    "label all" "repoformer label all --repos-dir repos --tokenizer model/tokenizer.json -o sequences"
        "repos-dir" "tokenizer" "model" "endpoint" "threshold" "prompt-style" "seed" "output";
    "label sample" "repoformer label sample --repos-dir repos -o instances.jsonl"
        "repos-dir" "kind" "fragments" "shard" "seed" "output";
    "label judge" "repoformer label judge --instances i.jsonl --base none.jsonl --rag rg1.jsonl -o labels.jsonl"
        "instances" "base" "rag" "metric" "threshold" "output";
    "label verbalize" "repoformer label verbalize --labels labels.jsonl --tokenizer tokenizer.json -o train.jsonl"
        "labels" "tokenizer" "prompt-style" "max-sequence-tokens" "validation" "seed" "output";
    "policy" "repoformer policy train --labels labels.jsonl -o policy.json";
    "policy train" "repoformer policy train --labels labels.jsonl -o policy.json";
    "policy explain" "repoformer policy explain policy.json --top 20";
    "policy sweep" "repoformer policy sweep --labels labels.jsonl --policy learned,random --latency latency.jsonl"
        "labels" "policy" "model" "metric" "threshold" "latency" "report" "format" "output";
    "policy features" "repoformer policy features --labels labels.jsonl -o features.csv";
    "convert" "repoformer convert records.jsonl --to repoeval -o tasks.jsonl"
        "to" "repos-dir" "repo" "tasks" "language" "output";
    "group" "repoformer group stack.parquet -o shards"
        "dedup" "decontaminate" "max-repository" "shards" "output";
    "stats" "repoformer stats tasks.jsonl --repos-dir repos";
    "validate" "repoformer validate tasks.jsonl --repos-dir repos";
    "cache" "repoformer cache list --stale";
    "cache list" "repoformer cache list --stale";
    "cache prune" "repoformer cache prune --stale --yes";
    "doctor" "repoformer doctor --endpoint http://localhost:8000";
    "completions" "repoformer completions bash";
    "manual" "repoformer manual man";
    "serve" "repoformer serve --repos-dir . --endpoint http://localhost:8080 --model NAME"
        "repos-dir" "endpoint" "model" "listen" "policy" "prompt-style" "learn" "max-tokens";
    "lsp" "repoformer lsp --repos-dir . --endpoint http://localhost:8080 --model NAME"
        "repos-dir" "endpoint" "model" "policy" "prompt-style" "learn" "max-tokens";
    "replay" "repoformer replay --tasks tasks.jsonl --repos-dir repos --limit 100"
        "tasks" "repos-dir" "server" "limit" "lines" "speed" "format";
    "help" "repoformer help top-k";
};

/// Commands by their purpose, as the screen of the whole program lists them.
const PURPOSES: [(&str, &str); 6] = [
    ("Experiments", "run, report, eval, compare"),
    ("Stages", "window, vectorize, search, prompt, complete, rg-rg, merge"),
    ("When to retrieve", "label, policy"),
    ("Data", "sample, convert, group, stats, validate, inspect"),
    ("Editors", "serve, lsp, replay"),
    ("This program", "cache, doctor, completions, manual, help"),
];

/// Width of the longest purpose.
const PURPOSE_WIDTH: usize = 16;

/// Longest help of a flag that fits on its line of a screen.
const BRIEF_WIDTH: usize = 70;

/// Least number of words of a help that is cut.
const BRIEF_WORDS: usize = 2;

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Command (`run`, `label sample`), setting (`top-k`), flag (`--missing`) or value (`rg1`) [default: all commands]
    #[arg(value_name = "TOPIC", allow_hyphen_values = true, hide_possible_values = true, value_parser = topics())]
    topic: Vec<String>,
}

/// Topics that a shell completes.
fn topics() -> ValueList {
    let commands = SCREENS.iter().map(|screen| screen.path).filter(|path| !path.contains(' '));
    let names: BTreeSet<&str> =
        commands.chain(SETTINGS.iter().map(|setting| setting.key)).collect();
    ValueList::new(names)
}

/// Prints the help of a topic.
pub(crate) fn run(args: &HelpArgs, mut program: Command) -> Result<()> {
    program.build();
    let topic = args.topic.join(" ");
    let mut words = topic.split_whitespace();
    let command = words.try_fold(&program, |command, word| command.find_subcommand(word));
    let Some(command) = command else {
        return write_data(Path::new("-"), explain_flag(&program, &topic)?);
    };
    print(&full(command, &topic));
    if SETTINGS.iter().any(|setting| setting.key == topic) {
        note(format!("`repoformer help --{topic}` explains the flag of this name"));
    }
    Ok(())
}

/// Prints a help text, in colours if the terminal supports them.
pub(crate) fn print(text: &StyledStr) {
    // Ignores a closed pipe.
    let _ = writeln!(anstream::stdout(), "{}", text.ansi().to_string().trim_end());
}

/// Returns one screen about a command.
pub(crate) fn brief(command: &Command, path: &str) -> StyledStr {
    if path.is_empty() {
        return overview(command);
    }
    let screen = SCREENS.iter().find(|screen| screen.path == path);
    let is_shown = |arg: &Arg| {
        let is_listed = |flags: &[&str]| arg.get_long().is_some_and(|long| flags.contains(&long));
        let is_own = arg.get_help_heading().is_none() && !arg.is_global_set();
        let flags = screen.map(|screen| screen.flags).unwrap_or_default();
        !arg.is_hide_set()
            && (arg.is_positional() || is_listed(flags) || flags.is_empty() && is_own)
            && !["help", "version"].contains(&arg.get_id().as_str())
    };
    let short = command.clone().mut_args(|arg| {
        let is_hidden = !is_shown(&arg);
        let help = shorten(&arg);
        let arg = arg.hide(is_hidden).help(help).long_help(None::<&str>).help_heading(None::<&str>);
        let arg = arg.hide_short_help(false).hide_possible_values(true);
        arg.hide_default_value(true).next_line_help(false)
    });
    let example = screen.map(|screen| screen.example).unwrap_or_default();
    let more = if command.has_subcommands() {
        format!("`repoformer {path} COMMAND -h` shows an example.")
    } else {
        format!("All flags: `repoformer {path} --help`. One flag: `repoformer help FLAG`.")
    };
    let mut short = short.after_help(format!("Example:\n  {example}\n\n{more}"));
    short.render_help()
}

/// Returns one screen about the whole program.
fn overview(program: &Command) -> StyledStr {
    let purposes: String = PURPOSES
        .iter()
        .map(|(purpose, commands)| format!("  {purpose:PURPOSE_WIDTH$}  {commands}\n"))
        .collect();
    let short = program.clone().mut_args(|arg| arg.hide(true));
    let short = short.mut_subcommands(|command| command.hide(true));
    let mut short = short.override_usage("repoformer COMMAND [OPTIONS]").after_help(format!(
        "{purposes}\nStart with `repoformer run --report`, the embedded demonstration.\n`repoformer COMMAND -h` shows an example; `repoformer --help` describes every command."
    ));
    short.render_help()
}

/// Returns the help of a flag without its default, and without its details if it would not fit on a line.
fn shorten(arg: &Arg) -> String {
    let text = full_text(arg);
    let text = text.split(" [default").next().unwrap_or_default();
    let text = text.split(" (repeatable").next().unwrap_or_default();
    if text.chars().count() <= BRIEF_WIDTH {
        return text.to_owned();
    }
    let ends = [": ", "; ", " (", ", "].iter().flat_map(|sign| text.match_indices(sign));
    let starts = ends.map(|(end, _)| &text[..end]);
    let is_whole = |start: &&str| {
        let count = |sign| start.matches(sign).count();
        count('(') == count(')') && count('`') % 2 == 0
    };
    let starts = starts.filter(|start| start.split(' ').count() >= BRIEF_WORDS).filter(is_whole);
    if let Some(start) = starts.min_by_key(|start| start.len())
        && start.len() <= BRIEF_WIDTH
    {
        return start.to_owned();
    }
    let start: String = text.chars().take(BRIEF_WIDTH).collect();
    format!("{} …", start.rsplit_once(' ').map_or(&*start, |(start, _)| start))
}

fn full_text(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the help with every flag of a command; settings that the command only passes on are listed by name.
pub(crate) fn full(command: &Command, path: &str) -> StyledStr {
    let mut others: BTreeMap<usize, (String, Vec<String>)> = BTreeMap::new();
    for (at, arg) in command.get_arguments().enumerate() {
        if let (true, Some(long)) = (is_passed_on(arg), arg.get_long()) {
            let heading = arg.get_help_heading().unwrap_or_default();
            let known = others.values_mut().find(|(known, _)| known == heading);
            match known {
                Some((_, flags)) => flags.push(format!("--{long}")),
                None => {
                    others.insert(at, (heading.to_owned(), vec![format!("--{long}")]));
                }
            }
        }
    }
    let long = command.clone().mut_args(|arg| {
        let (is_hidden, help) = (arg.is_hide_set() || is_passed_on(&arg), full_text(&arg));
        let arg = arg.hide(is_hidden).help(help).long_help(None::<&str>).hide_short_help(false);
        let explains = |value: &PossibleValue| value.get_help().is_some();
        if arg.get_possible_values().iter().any(explains) { with_values(arg) } else { arg }
    });
    let mut after = Vec::new();
    if !others.is_empty() {
        let lists =
            others.values().map(|(heading, flags)| format!("{heading}: {}", flags.join(", ")));
        let lists = lists.collect::<Vec<_>>().join("\n");
        after.push(format!(
            "Settings of other stages (`repoformer help SETTING` explains one):\n{lists}"
        ));
    }
    if let Some(screen) = SCREENS.iter().find(|screen| screen.path == path) {
        after.push(format!("Example:\n  {}", screen.example));
    }
    after.extend(command.get_after_help().map(ToString::to_string));
    let mut long = long.after_help(after.join("\n\n"));
    long.render_help()
}

/// Returns true if a command accepts a setting only so that all stages can be called with the same ones.
fn is_passed_on(arg: &Arg) -> bool {
    arg.is_hide_short_help_set() && arg.get_help_heading().is_some()
}

/// Returns the meaning of a setting, of each flag with this name, or of the settings with this value.
fn explain_flag(program: &Command, topic: &str) -> Result<String> {
    let name = topic.trim_start_matches('-').replace('_', "-");
    let is_named = |key: &str, alias: Option<&str>| key == name || alias == Some(&*name);
    let setting = SETTINGS.iter().find(|one| is_named(one.key, one.alias));
    let is_setting = |arg: &Arg| {
        let heading = setting.map(|setting| setting.group.heading());
        heading.is_some() && arg.get_help_heading() == heading
    };
    let mut uses: Vec<(String, Vec<String>)> = Vec::new();
    let mut known: Vec<String> = SETTINGS.iter().map(|setting| setting.key.to_owned()).collect();
    for named in name_commands("", program) {
        known.push(named.name.clone());
        for arg in named.command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let Some(long) = arg.get_long() else { continue };
            known.push(long.to_owned());
            let is_short = arg.get_short().is_some_and(|short| topic == format!("-{short}"));
            if (long == name || is_short) && !is_setting(arg) {
                let text = item(arg);
                let text = text.trim_start_matches("- ").to_owned();
                match uses.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, commands)) => commands.push(named.name.clone()),
                    None => uses.push((text, vec![named.name.clone()])),
                }
            }
        }
    }
    // A value such as `rg1` or `learned@0.2`.
    let value = topic.split('@').next().unwrap_or(topic);
    let has_value = |setting: &&Setting| setting.names().iter().any(|known| known == value);
    let settings: Vec<&Setting> = match setting {
        Some(setting) => vec![setting],
        None if uses.is_empty() => SETTINGS.iter().copied().filter(has_value).collect(),
        None => Vec::new(),
    };
    if uses.is_empty() && settings.is_empty() {
        let hint = did_you_mean(&name, known.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| "`repoformer --help` lists the commands".into());
        return fail(format!("no command, setting, flag or value is named '{topic}'"), hint);
    }
    let one = |(text, commands): &(String, Vec<String>)| {
        format!("{text}Commands: {}\n", commands.join(", "))
    };
    let texts = settings.into_iter().map(explain).chain(uses.iter().map(one));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_fits_a_screen_and_has_an_example_that_parses() {
        let mut program = Cli::command();
        program.build();
        let (mut paths, mut problems) = (BTreeSet::new(), Vec::new());
        for named in name_commands("", &program) {
            let path = named.name.as_str();
            paths.insert(path.to_owned());
            let text = brief(named.command, path).to_string();
            assert!(text.lines().count() <= 24, "{path}: {text}");
            let long = full(named.command, path).to_string();
            assert!(long.lines().count() <= 200, "{path}: {}", long.lines().count());
            let screen = SCREENS.iter().find(|screen| screen.path == path);
            let screen = screen.unwrap_or_else(|| panic!("{path} has no screen"));
            assert!(text.contains(screen.example) && long.contains(screen.example), "{path}");
            if let Err(error) = Cli::try_parse_from(screen.example.split(' ')) {
                problems.push(format!("{}: {error}", screen.example));
            }
            for flag in screen.flags {
                let has = named.command.get_arguments().any(|arg| arg.get_long() == Some(flag));
                if !has {
                    problems.push(format!("{path}: --{flag}"));
                }
            }
        }
        let screens: BTreeSet<String> = SCREENS.iter().map(|screen| screen.path.into()).collect();
        assert_eq!(screens, paths);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn the_screen_of_the_program_names_every_command() {
        let mut program = Cli::command();
        program.build();
        let text = overview(&program).to_string();
        assert!(text.lines().count() <= 24, "{text}");
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let named = PURPOSES.iter().flat_map(|(_, names)| names.split(", "));
            assert!(named.into_iter().any(|name| name == command.get_name()), "{command}");
        }
    }

    #[test]
    fn every_setting_and_flag_is_explained() {
        let mut program = Cli::command();
        program.build();
        for named in name_commands("", &program) {
            for arg in named.command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(long) = arg.get_long() else { continue };
                let text = explain_flag(&program, &format!("--{long}")).expect(long);
                assert!(text.contains(long), "{long}: {text}");
            }
        }
        for setting in SETTINGS {
            let text = explain_flag(&program, setting.key).expect(setting.key);
            assert!(text.starts_with(&format!("{}: ", setting.key)), "{text}");
        }
        assert!(explain_flag(&program, "nothing-like-it").is_err());
        // A setting, and a flag of the same name with another meaning; a short flag.
        let text = explain_flag(&program, "model").unwrap();
        assert!(text.contains("REPOFORMER_MODEL") && text.contains("policy sweep"), "{text}");
        assert!(explain_flag(&program, "-o").unwrap().contains("--output"));
    }
}
