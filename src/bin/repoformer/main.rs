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
use output::{Printer, is_closed_pipe};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut printer = Printer::new(&cli.screen);
    match run(cli.command, &mut printer) {
        Ok(()) if printer.all_done() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            Printer::error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, printer: &mut Printer) -> Result<()> {
    match command {
        Command::Window(args) => commands::window::run(&args, printer),
        Command::Vectorize(args) => commands::vectorize::run(&args, printer),
        Command::Search(args) => commands::search::run(&args, printer),
        Command::Prompt(args) => commands::prompt::run(&args, printer),
        Command::Complete(args) => commands::complete::run(&args, printer),
        Command::RgRg(args) => commands::rg_rg::run(&args, printer),
        Command::Eval(args) => commands::eval::run(&args, printer),
        Command::Compare(args) => commands::compare::run(&args, printer),
        Command::Report(args) => commands::report::run(&args, printer),
        Command::Run(args) => commands::run::run(&args, printer),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Sample(args) => commands::sample::run(&args, printer),
        Command::Label(args) => commands::label::run(&args, printer),
        Command::Policy(args) => commands::policy::run(&args, printer),
        Command::Convert(args) => commands::convert::run(&args, printer),
        Command::Validate(args) => commands::validate::run(&args, printer),
        #[cfg(target_os = "linux")]
        Command::Guard(args) => commands::guard::run(&args),
    }
}
