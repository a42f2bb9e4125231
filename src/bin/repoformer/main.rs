//! The command line: parse, run, report.

mod args;
mod commands;
mod output;
mod records_output;
mod settings;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::init(cli.screen);
    match run(cli.command) {
        Ok(()) if output::all_done() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(1),
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Window(args) => commands::stages::window(&args),
        Command::Vectorize(args) => commands::stages::vectorize(&args),
        Command::Search(args) => commands::stages::search(&args),
        Command::Prompt(args) => commands::stages::prompt(&args),
        Command::Complete(args) => commands::complete::run(&args),
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
        Command::Validate(args) => commands::validate::run(&args),
        #[cfg(target_os = "linux")]
        Command::Guard(args) => Ok(repoformer::execute::guard::serve(&args.stage)?),
    }
}
