//! `run`: every stage for one configuration, then a table of modes × metrics.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_study::run::RunRequest;

use super::demonstration::{self, DemonstrationStart};
use crate::commands::session::check_not_tasks;
use crate::interruption::keeps_artifacts;
use crate::output::{self, is_verbose, write_data};
use crate::settings::SettingFlags;
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Print what would be built, and why, without building it or asking a server
    #[arg(long)]
    dry_run: bool,
    /// Format of the table, or of the --dry-run output [default: from the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// File for the table (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Also write a report of each task file to this folder, as BENCHMARK/index.html; with several task files, index.html
    /// links them [default: report in the cache folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    report: Option<Option<PathBuf>>,
    /// Probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of` (repeatable)
    /// [default: the server's, if the prompt style names the token]
    #[arg(long, value_name = "FILE", help_heading = "Selective retrieval")]
    probabilities: Vec<PathBuf>,
    /// Samples of completions without retrieval, for policy entropy, from `complete --mode none --samples 20 --temperature 1`
    #[arg(long, value_name = "FILE", help_heading = "Selective retrieval")]
    samples_from: Option<PathBuf>,
    /// Unit-test results of a mode's predictions, from `eval --exec --per-task --format jsonl`; shown in column UT (repeatable)
    #[arg(long, value_name = "MODE=FILE", help_heading = "Scores")]
    exec: Vec<String>,
}

pub(crate) fn run(args: &RunArgs) -> Result<()> {
    let DemonstrationStart { settings, is_elsewhere, removed: _removed } =
        demonstration::settings(&args.settings, args.dry_run)?;
    if !args.dry_run {
        keeps_artifacts();
    }
    // A plan does not replace earlier results.
    let output = if args.dry_run { Path::new("-") } else { &args.output };
    let format = ScoreFormat::choose(args.format, output)?;
    if args.dry_run && args.output != output {
        output::note(format!(
            "a dry run prints its plan, and does not write {}",
            args.output.display()
        ));
    }
    check_not_tasks(&settings, Some(&args.output))?;
    let request = RunRequest {
        is_dry: args.dry_run,
        lists_all: is_verbose(),
        copied: if is_elsewhere { demonstration::plan(&settings) } else { Vec::new() },
        report: args.report.clone(),
        probabilities: args.probabilities.clone(),
        samples: args.samples_from.clone(),
        exec: args.exec.clone(),
    };
    let done = repoformer_study::run::run(&settings, request)?;
    write_data(output, format_results(done.result.printable(), format)?)?;
    done.tell(&*settings.messages);
    Ok(())
}
