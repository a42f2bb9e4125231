//! `completions`: prints the script by which a shell asks this program for completions, and answers such requests.
//!
//! The program answers on each press of Tab. Lists separated by commas, your own profiles and the available repositories are
//! completed, and the script does not change with the program's version.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap::{Arg, Args, Command, ValueEnum};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter, complete,
};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{CompleteEnv, env};
use repoformer_core::repository::corpus::RepositoryFolders;

use super::demonstration;
use crate::output::{screen, write_data};
use crate::settings::{COMPLETION, FlagCompletion, Settings, completable};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to write the script for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Shell that can ask for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

const SHELLS: Shells<'static> = Shells(&[&Bash, &Zsh, &Fish, &Elvish, &Powershell]);

/// Prints the script for a shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let name = args.shell.to_possible_value().map(|value| value.get_name().to_owned());
    let shell = name.as_deref().and_then(|name| SHELLS.completer(name));
    let shell = shell.context("this shell cannot be completed")?;
    let mut script = Vec::new();
    shell.write_registration(COMPLETION, PROGRAM, PROGRAM, &program()?, &mut script)?;
    write_data(Path::new("-"), script)
}

const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// Returns the program that the script calls: its name, or its absolute path if it was started by a path.
fn program() -> Result<String> {
    let called = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    if called.components().count() < 2 {
        return Ok(PROGRAM.into());
    }
    Ok(std::path::absolute(called)?.to_string_lossy().into_owned())
}

/// Answers a shell that asks for completions, and ends the program; returns if no shell asks.
pub(crate) fn answer(program: impl Fn() -> Command) {
    let shell = std::env::var(COMPLETION).unwrap_or_default();
    // By its own means or by the script of this program.
    let is_quoting = ["bash", "zsh", "fish"].contains(&&*shell);
    let unquote = |word: OsString| if is_quoting { unquote(&word) } else { word };
    let complete = CompleteEnv::with_factory(|| add_completions(program(), is_quoting))
        .var(COMPLETION)
        .shells(SHELLS);
    let folder = std::env::current_dir().ok();
    match complete.try_complete(std::env::args_os().map(unquote), folder.as_deref()) {
        Ok(false) => {}
        Ok(true) => std::process::exit(0),
        Err(error) => error.exit(),
    }
}

/// Removes quotes, of which the last may be open, and backslashes from a word of a command line.
fn unquote(word: &OsStr) -> OsString {
    let Some(text) = word.to_str() else { return word.to_owned() };
    let (mut plain, mut quote, mut signs) = (String::new(), None, text.chars());
    while let Some(sign) = signs.next() {
        match (sign, quote) {
            ('\'' | '"', None) => quote = Some(sign),
            (_, Some(open)) if sign == open => quote = None,
            ('\\', None | Some('"')) => plain.extend(signs.next()),
            _ => plain.push(sign),
        }
    }
    plain.into()
}

/// Adds the known values of flags to a command. Flags that its short help leaves out are offered only if no other fits.
fn add_completions(command: Command, is_quoting: bool) -> Command {
    command
        .mut_args(|arg| with_values(arg, is_quoting))
        .mut_subcommands(|command| add_completions(command, is_quoting))
}

fn with_values(arg: Arg, is_quoting: bool) -> Arg {
    let is_hidden = arg.is_hide_set() || arg.is_hide_short_help_set();
    let arg = arg.hide(is_hidden);
    if !arg.get_action().takes_values() {
        return arg;
    }
    let value_name =
        arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    let value_name = value_name.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    let FlagCompletion { names, is_list } = completable(arg.get_id().as_str()).unwrap_or_default();
    let mut known = arg.get_possible_values();
    if known.is_empty() {
        known.extend(names.into_iter().map(PossibleValue::new));
    }
    let separators = match () {
        () if value_name.contains('=') => "=",
        () if known.iter().any(|value| value.get_name() == "bm25") => ":,",
        () if is_list || arg.get_value_delimiter() == Some(',') => ",",
        () => "",
    };
    let is_of = |names: &[&str]| value_name.split(['|', '=']).any(|part| names.contains(&part));
    let values = FlagValues {
        is_repository: arg.get_long() == Some("repo"),
        separators,
        files: match () {
            () if is_of(&["DIR"]) => Some(PathCompleter::dir()),
            () if is_of(&["FILE", "FILES", "A", "B", "]FILE"]) => Some(PathCompleter::file()),
            () if is_of(&["PATH"]) => Some(PathCompleter::any()),
            () => None,
        },
        known,
        is_quoting,
    };
    arg.add(ArgValueCompleter::new(values))
}

/// Characters that mean something to a shell.
const SPECIAL: &[char] = &[
    '\'', '"', '`', '$', '&', '|', ';', '<', '>', '(', ')', '{', '}', '#', '@', '*', '?', '[', ']',
    '~', '^', '!', '\\', ' ',
];

/// Values of a flag.
struct FlagValues {
    known: Vec<PossibleValue>,
    /// True if the names of repositories are values.
    is_repository: bool,
    /// Characters that separate several values, of which the last is completed.
    separators: &'static str,
    files: Option<PathCompleter>,
    /// True if the shell quotes values with special characters.
    is_quoting: bool,
}

impl ValueCompleter for FlagValues {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let text = current.to_string_lossy();
        let start = text.rfind(|sign| self.separators.contains(sign)).map_or(0, |at| at + 1);
        let (before, last) = text.split_at(start);
        let is_new = |name: &str| !before.split(',').any(|part| part == name);
        let known = || {
            let known = self.known.iter().filter(|value| !value.is_hide_set());
            known.filter(|value| !value.get_name_and_aliases().any(|name| !is_new(name)))
        };
        let candidate = |name: &str, value: &PossibleValue| {
            CompletionCandidate::new(name).help(value.get_help().cloned())
        };
        let named = known().filter(|value| value.get_name().starts_with(last));
        let mut found: Vec<CompletionCandidate> =
            named.map(|value| candidate(value.get_name(), value)).collect();
        if found.is_empty() {
            // Aliases, if no value begins like this.
            found.extend(known().flat_map(|value| {
                let names = value.get_name_and_aliases().filter(|name| name.starts_with(last));
                names.map(|name| candidate(name, value))
            }));
        }
        if self.is_repository {
            let names =
                repositories().into_iter().filter(|name| name.starts_with(last) && is_new(name));
            found.extend(names.map(CompletionCandidate::new));
        }
        if let Some(files) = &self.files {
            found.extend(files.complete(OsStr::new(last)));
        }
        // Names of a stranger's files must not end a command line, or begin a command where the shell's script cannot quote them.
        let is_safe = |candidate: &CompletionCandidate| {
            let value = candidate.get_value().to_string_lossy();
            !value.contains(char::is_control) && (self.is_quoting || !value.contains(SPECIAL))
        };
        let found = found.into_iter().filter(is_safe);
        found.map(|candidate| candidate.add_prefix(before)).collect()
    }
}

/// Returns the repositories in the folder that the command line or the settings name; for `run` without a folder, the
/// demonstration's repositories.
fn repositories() -> Vec<String> {
    let words: Vec<String> =
        std::env::args_os().map(|word| unquote(&word).to_string_lossy().into()).collect();
    let mut behind = words.iter().skip_while(|word| *word != "--repos-dir").skip(1);
    let behind = behind.find(|word| *word != "=").map(PathBuf::from);
    let joined = words.iter().find_map(|word| word.strip_prefix("--repos-dir=").map(Into::into));
    let known = || Settings::without_flags(screen()).ok()?.repos_dir.get().clone();
    match behind.or(joined).or_else(known) {
        Some(folder) => RepositoryFolders::below(&folder).unwrap_or_default().names,
        None if words.iter().any(|word| word == "run") => demonstration::repositories(),
        None => Vec::new(),
    }
}

/// Begin of the part of Bash's function that asks for values: turns off the expansion of patterns.
const BEFORE_VALUES: &str = r#"    local is_expanding=
    [[ $- == *f* ]] || is_expanding=1
    set -f
    COMPREPLY=( $("#;

/// Part behind it: turns the expansion on again.
const BEHIND_VALUES: &str = r#"    local status=$?
    [[ -z $is_expanding ]] || set +f
    if [[ $status != 0 ]]; then"#;

/// End of Bash's function: quotes values with special characters. If the word already has a quote, which may be closed, only plain
/// names are kept, with blanks if the quote is certainly open.
const QUOTING: &str = r#"
    local at blank= word="${COMP_WORDS[COMP_CWORD]-}"
    [[ "${word:1}" == *[\'\"]* ]] || blank=" "
    for at in "${!COMPREPLY[@]}"; do
        if [[ "$word" == *[\'\"]* ]]; then
            [[ "${COMPREPLY[at]}" == *[^[:alnum:]$blank/_.:@%+,=-]* ]] && unset "COMPREPLY[at]"
        elif [[ "${COMPREPLY[at]}" == *[\ \'\"\\\$\&\(\)\;\<\>\|\`\*\?\[\!\#\{\}\~\^]* ]]; then
            printf -v "COMPREPLY[at]" '%q' "${COMPREPLY[at]}"
        fi
    done
    return 0
}
"#;

/// Bash, which splits words at `=` and `:`; here they are joined again.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut script = Vec::new();
        env::Bash.write_registration(variable, name, program, completer, &mut script)?;
        let script = String::from_utf8_lossy(&script);
        // The values are names, not patterns. Insert the quoting at the end of the function.
        let script = script.replacen("    COMPREPLY=( $(", BEFORE_VALUES, 1);
        let script = script.replacen("    if [[ $? != 0 ]]; then", BEHIND_VALUES, 1);
        let script = script.replacen("\n}\n", QUOTING, 1);
        out.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let of_shell = |name: &str| std::env::var(name).ok();
        let place = of_shell("_CLAP_COMPLETE_INDEX").and_then(|place| place.parse().ok());
        let separator = of_shell("_CLAP_IFS").unwrap_or_else(|| "\n".into());
        let JoinedWords { words, place, before } =
            JoinedWords::new(words, place.unwrap_or_default());
        for (number, candidate) in complete(command, words, place, folder)?.iter().enumerate() {
            let value = candidate.get_value().to_string_lossy();
            let value = value.strip_prefix(&before).unwrap_or(&value);
            write!(out, "{}{value}", if number > 0 { &separator } else { "" })?;
        }
        Ok(())
    }
}

/// Words of a command line that Bash split at `=` and `:`.
struct JoinedWords {
    words: Vec<OsString>,
    /// Index of the word to complete.
    place: usize,
    /// Part of this word that Bash does not replace.
    before: String,
}

impl JoinedWords {
    fn new(parts: Vec<OsString>, place: usize) -> Self {
        let mut joined = Self { words: Vec::new(), place: 0, before: String::new() };
        let mut is_open = false;
        for (number, part) in parts.into_iter().enumerate() {
            let text = part.to_string_lossy();
            let is_sign = !text.is_empty() && text.chars().all(|sign| "=:".contains(sign));
            match joined.words.last_mut() {
                Some(word) if is_sign || is_open => {
                    if number == place {
                        joined.before = word.to_string_lossy().into_owned();
                    }
                    word.push(&part);
                }
                _ => joined.words.push(part),
            }
            is_open = is_sign;
            if number == place {
                joined.place = joined.words.len() - 1;
                break;
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(parts: &[&str], place: usize) -> (Vec<String>, usize, String) {
        let parts = parts.iter().map(OsString::from).collect();
        let JoinedWords { words, place, before } = JoinedWords::new(parts, place);
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        (words.collect(), place, before)
    }

    #[test]
    fn quotes_and_backslashes_of_words_are_undone() {
        for (word, wanted) in [
            ("plain", "plain"),
            (r"my\ tasks", "my tasks"),
            (r#""my ta"#, "my ta"),
            (r#"'a\b'"c\"d"e"#, r#"a\bc"de"#),
            ("", ""),
        ] {
            assert_eq!(unquote(OsStr::new(word)), wanted, "{word}");
        }
    }

    #[test]
    fn words_that_bash_parts_are_joined() {
        let of = |words: &[&str], place, before: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            (words, place, before.to_owned())
        };
        assert_eq!(joined(&["r", "run", "--mo"], 2), of(&["r", "run", "--mo"], 2, ""));
        assert_eq!(
            joined(&["r", "run", "--mode", "=", "rg"], 4),
            of(&["r", "run", "--mode=rg"], 2, "--mode=")
        );
        assert_eq!(
            joined(&["r", "run", "--ranker", "rrf", ":", "jac", "--mode"], 5),
            of(&["r", "run", "--ranker", "rrf:jac"], 3, "rrf:")
        );
    }
}
