//! Command line: parses flags, runs a command, and reports.

mod bars;
mod choices;
mod commands;
#[cfg(test)]
mod error_tests;
mod help;
mod interruption;
mod near_files;
mod output;
mod records_output;
mod settings;
mod table;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, Parser, Subcommand};
use commands::cache::CacheCommand;
use commands::compare::CompareArgs;
use commands::complete::CompleteArgs;
use commands::completions::CompletionsArgs;
use commands::convert::ConvertArgs;
use commands::doctor::DoctorArgs;
use commands::eval_args::EvalArgs;
use commands::group::GroupArgs;
use commands::inspect::InspectArgs;
use commands::label::LabelCommand;
use commands::manual::ManualArgs;
use commands::merge::MergeArgs;
use commands::policy::PolicyCommand;
use commands::replay::ReplayArgs;
use commands::report::ReportArgs;
use commands::rg_rg::RgRgArgs;
use commands::run::RunArgs;
use commands::sample::SampleArgs;
use commands::serve_args::{LspArgs, ServeArgs};
use commands::stages::{PromptArgs, SearchArgs, VectorizeArgs, WindowArgs};
use commands::stats::StatsArgs;
use commands::validate::ValidateArgs;
use output::ScreenFlags;
use repoformer_store::seal::take_passed_over;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Repository-level code completion experiments: window, retrieve, prompt, complete, retrieve again, score
#[derive(Debug, Parser)]
#[command(name = "repoformer", version, styles = STYLES, propagate_version = true, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "`repoformer run` runs the embedded demonstration.

Every setting that `--show-settings` lists is a flag (--top-k), an environment variable (REPOFORMER_TOP_K) and a key of a \
configuration file (top-k). Flags beat the environment, which beats the file, which beats the profile.

Exit status: 0 done, 1 done but something was skipped or a check failed, 2 could not run.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    screen: ScreenFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Cut repositories into windows or chunks, and tasks into the queries of each mode
    Window(WindowArgs),
    /// Turn windows, chunks and queries into vectors
    Vectorize(VectorizeArgs),
    /// Find the fragments most similar to each query
    Search(SearchArgs),
    /// Build prompts from tasks and retrieval results
    Prompt(PromptArgs),
    /// Complete prompts with the embedded model, with a model on a server, or in batches
    Complete(CompleteArgs),
    /// Combine the prompts and predictions of a data set's shards
    Merge(MergeArgs),
    /// Retrieve again with predictions as queries: windows, vectors, search and prompts
    RgRg(RgRgArgs),
    /// Score predictions against tasks, or pairs of texts
    Eval(EvalArgs),
    /// Compare two sets of scores task by task: differences, intervals, tests
    Compare(CompareArgs),
    /// Write an HTML report: tables, figures, gains, and every task with its fragments and predictions
    Report(ReportArgs),
    /// Run all stages and print a table of scores; without flags, the embedded demonstration
    Run(RunArgs),
    /// Print a cached artifact: its header, or its records as JSONL
    Inspect(InspectArgs),
    /// Create a benchmark from repositories: holes with their prompts, in RepoEval's format
    Sample(SampleArgs),
    /// Create training data for selective retrieval: draw instances, label them, verbalize the labels
    #[command(subcommand)]
    Label(LabelCommand),
    /// Train, explain and evaluate policies that decide when to retrieve
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Convert records between formats: tasks, predictions, repositories, batch requests and answers
    Convert(ConvertArgs),
    /// Group the files of a corpus such as The Stack into repositories, in shards of raw records
    Group(GroupArgs),
    /// Count the tasks in files, and the lines and tokens of their contexts and targets
    Stats(StatsArgs),
    /// Check files of records and list every problem with its line
    Validate(ValidateArgs),
    /// List the files in the cache, and remove selected ones
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Check this machine and the settings: cache, isolation of tests, server
    Doctor(DoctorArgs),
    /// Print a script that lets a shell complete commands, flags and values
    Completions(CompletionsArgs),
    /// Write the manual: a page for each command
    Manual(ManualArgs),
    /// Complete code in editors: search the repository as you edit, retrieve if it helps, and ask a model's server
    Serve(ServeArgs),
    /// Complete code in editors as a language server, over standard input and output
    Lsp(LspArgs),
    /// Type the lines of tasks into `serve`, and measure its latency, tokens and completions
    Replay(ReplayArgs),
    /// Explain a command, a setting or a flag
    Help(help::HelpArgs),
    /// Run one test command in isolation (started by `eval --exec`)
    #[cfg(target_os = "linux")]
    #[command(name = repoformer_execute::guard::SUBCOMMAND, hide = true)]
    Guard {
        /// enclosed, enclosed-with-network, inside or open
        stage: String,
    },
}

fn main() -> ExitCode {
    keep_keys_in_memory();
    commands::completions::answer(Cli::command);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return usage::tell(&answer, Cli::command()),
    };
    if !is_guard(&cli.command) {
        output::init(cli.screen);
    }
    let done = interruption::check_children()
        .and_then(|()| settings::check_environment())
        .and_then(|()| run(cli.command));
    bars::end();
    take_passed_over().iter().for_each(output::warning);
    output::warn_of_not_json();
    commands::unparsed::tell_unfound();
    match done {
        Ok(()) if output::all_done() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(1),
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}

/// Prevents core dumps, and debuggers of the same user, from revealing servers' keys, including keys in URLs, or clients' tokens.
/// Without such secrets, crashes can be examined.
fn keep_keys_in_memory() {
    let is_secret = |(name, value): &(OsString, OsString)| {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        name.strip_prefix("REPOFORMER_").is_some_and(|name| {
            name.ends_with("_KEY") || name.ends_with("_TOKEN") || value.contains('?')
        })
    };
    #[cfg(target_os = "linux")]
    if std::env::vars_os().any(|variable| is_secret(&variable)) {
        // This fails only for invalid values.
        let _ = nix::sys::prctl::set_dumpable(false);
    }
}

/// True if the program is a guard. A guard draws no bars: only a process with one thread can enter namespaces.
fn is_guard(command: &Command) -> bool {
    #[cfg(target_os = "linux")]
    return matches!(command, Command::Guard { .. });
    #[cfg(not(target_os = "linux"))]
    return false;
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Window(args) => commands::stages::window(&args),
        Command::Vectorize(args) => commands::stages::vectorize(&args),
        Command::Search(args) => commands::stages::search(&args),
        Command::Prompt(args) => commands::stages::prompt(&args),
        Command::Complete(args) => commands::complete::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::RgRg(args) => commands::rg_rg::run(&args),
        Command::Eval(args) => commands::eval::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Sample(args) => commands::sample::run(&args),
        Command::Label(args) => commands::label::run(&args),
        Command::Policy(args) => commands::policy::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Group(args) => commands::group::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Cache(args) => commands::cache::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Help(args) => help::run(&args, Cli::command()),
        Command::Manual(args) => commands::manual::run(&args, Cli::command()),
        #[cfg(feature = "serve")]
        Command::Lsp(args) => commands::serve::lsp(&args),
        Command::Replay(args) => commands::replay::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::serve(&args),
        #[cfg(not(feature = "serve"))]
        Command::Lsp(_) | Command::Serve(_) => commands::serve_args::refuse_servers(),
        #[cfg(target_os = "linux")]
        Command::Guard { stage } => Ok(repoformer_execute::guard::serve(&stage)?),
    }
}

#[cfg(test)]
mod tests {
    use repoformer_text::message::UserChoice;

    use super::*;
    use crate::choices::way;

    /// Returns a command and all its subcommands.
    fn commands(of: &clap::Command) -> Vec<&clap::Command> {
        let below = of.get_subcommands().flat_map(commands);
        std::iter::once(of).chain(below).collect()
    }

    fn has_flag(command: &clap::Command, flag: &str) -> bool {
        command.get_arguments().any(|argument| match flag.strip_prefix("--") {
            Some(long) => argument.get_long() == Some(long),
            None => argument.get_short() == flag.chars().nth(1),
        })
    }

    /// Returns the command that the first words name, and the remaining words.
    fn named<'c, 't>(cli: &'c clap::Command, text: &'t str) -> (&'c clap::Command, Vec<&'t str>) {
        let mut words: Vec<&str> = text.split(' ').filter(|word| *word != "repoformer").collect();
        let mut command = cli;
        while let Some(next) = words.first().and_then(|word| command.find_subcommand(word)) {
            command = next;
            words.remove(0);
        }
        (command, words)
    }

    #[test]
    fn every_way_has_flags_and_commands_that_exist() {
        let mut cli = Cli::command();
        cli.build();
        for choice in UserChoice::ALL {
            // Every second piece is between backticks.
            for (number, text) in way(choice).split('`').enumerate() {
                let is_command = number % 2 == 1 && !text.starts_with('-');
                let (command, words) = named(&cli, if is_command { text } else { "" });
                assert!(!is_command || command.get_name() != cli.get_name(), "{choice}: {text}");
                let flags = if is_command { words } else { text.split([' ', ',']).collect() };
                for flag in flags.into_iter().filter(|word| word.starts_with('-')) {
                    let exists = if is_command {
                        has_flag(command, flag)
                    } else {
                        commands(&cli).into_iter().any(|one| has_flag(one, flag))
                    };
                    assert!(exists, "{choice}: {text}: {flag}");
                }
            }
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
