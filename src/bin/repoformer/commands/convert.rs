//! `convert`

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use repoformer::complete::batch::Sampling;
use repoformer::formats::convert::{self, Conversion, Emit, TargetFormat};
use repoformer::task::kind::RecordKind;
use repoformer::text::language::Language;

use super::experiments::read_tasks;
use super::session::repositories_in;
use crate::output::{self, check_output, fail, group, hinted, plural};
use crate::records_output::RecordsOutput;
use crate::settings::Listed;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// File to convert: JSONL, plain, gzip or zstd (`-`: standard input); its format is detected
    #[arg(required_unless_present = "repos_dir")]
    file: Option<PathBuf>,
    /// Target format. Tasks: repoeval, repoformer, crosscodeeval, crosscodelongeval. Predictions: repocoder-predictions,
    /// crosscodeeval-predictions. From prompts or tasks: batch-requests. From labels: labels. Repositories: repos (folders
    /// in -o), packages, raw
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// File for the records (`-`: standard output; compressed if the name ends in .gz or .zst); folder for repos
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Folder that holds one folder per repository: source of packages and raw, and of what records lack
    #[arg(long, value_name = "DIR")]
    repos_dir: Option<PathBuf>,
    /// Use only this repository of --repos-dir (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    repo: Vec<String>,
    /// Language of the files of --repos-dir that packages and raw records take
    #[arg(long, value_name = "NAME", default_value = "python", value_parser = Listed::of(Language::ALL))]
    language: String,
    /// Tasks that the predictions or batch answers belong to
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// Model of batch requests
    #[arg(long, value_name = "NAME", required_if_eq("to", "batch-requests"))]
    model: Option<String>,
    /// Maximum tokens of a completion in batch requests
    #[arg(long, value_name = "N", default_value_t = 50)]
    max_tokens: usize,
    /// Temperature of batch requests
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f64,
    /// Text that ends a completion in batch requests (repeatable)
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
}

pub(crate) fn run(args: &ConvertArgs) -> Result<()> {
    let to: TargetFormat = args.to.parse().map_err(|e| anyhow!("--to: {e}"))?;
    check_output(Some(&args.output), args.file.iter().chain(&args.tasks))?;
    let outcome = match to {
        TargetFormat::Folders => folders(args)?,
        TargetFormat::Records(kind) => records(args, kind)?,
    };
    for warning in &outcome.warnings {
        output::warning(warning);
    }
    output::problems(&outcome.problems);
    let noun = match to {
        TargetFormat::Folders => "file",
        TargetFormat::Records(_) => "record",
    };
    let (count, noun) = (group(outcome.records), plural(outcome.records, noun));
    let skipped = match outcome.problems.len() {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    output::note(format!("convert: {count} {noun} to {to}{skipped}"));
    Ok(())
}

/// The file to read, for conversions that need one.
fn input(args: &ConvertArgs) -> Result<&Path> {
    args.file.as_deref().ok_or_else(|| {
        hinted(
            anyhow!("no file to convert to {}", args.to),
            "name one; --repos-dir alone is for --to raw and --to packages",
        )
    })
}

fn folders(args: &ConvertArgs) -> Result<Conversion> {
    if args.output == Path::new("-") {
        return fail(
            "--to repos writes folders, not to standard output",
            "name the folder for them with -o",
        );
    }
    let mut outcome = convert::to_folders(input(args)?, &args.output)?;
    nothing_done(&mut outcome)?;
    Ok(outcome)
}

fn records(args: &ConvertArgs, kind: RecordKind) -> Result<Conversion> {
    let mut output = RecordsOutput::new(&args.output);
    let mut outcome = work(args, kind, &mut |record| output.line(record))?;
    nothing_done(&mut outcome)?;
    output.finish()?;
    Ok(outcome)
}

/// The first problem, where nothing could be converted; then no file is written.
fn nothing_done(outcome: &mut Conversion) -> Result<()> {
    if outcome.records == 0 && !outcome.problems.is_empty() {
        return Err(outcome.problems.swap_remove(0).into());
    }
    Ok(())
}

fn work(args: &ConvertArgs, kind: RecordKind, emit: &mut Emit<'_>) -> Result<Conversion> {
    let repos_dir = args.repos_dir.as_deref();
    let language: Language = args.language.parse().map_err(|e| anyhow!("--language: {e}"))?;
    Ok(match (kind, &args.file, repos_dir) {
        (RecordKind::Package | RecordKind::RawRepository, None, Some(dir)) => {
            let names = repositories_in(dir, &args.repo)?;
            convert::from_folders(dir, &names, language, kind, emit)?
        }
        (RecordKind::Package | RecordKind::RawRepository, _, _) => {
            convert::records(input(args)?, kind, emit)?
        }
        (RecordKind::Task(format), _, _) => convert::tasks(input(args)?, format, repos_dir, emit)?,
        (RecordKind::Label, _, _) => convert::labels(input(args)?, emit)?,
        (RecordKind::BatchRequest, _, _) => {
            let sampling = Sampling {
                model: args.model.clone().unwrap_or_default(),
                max_tokens: args.max_tokens,
                temperature: args.temperature,
                stop: args.stop.clone(),
            };
            convert::requests(input(args)?, &sampling, emit)?
        }
        _ => {
            let file = input(args)?;
            let tasks = args.tasks.as_deref().map(read_tasks).transpose()?;
            convert::predictions(file, kind, tasks.as_ref(), emit)?
        }
    })
}
