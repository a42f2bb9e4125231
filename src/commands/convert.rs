//! `convert`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use repoformer_core::completion::Ending;
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::FunctionBodies;
use repoformer_core::repository::corpus::Walk;
use repoformer_core::task::kind::RecordKind;
use repoformer_formats::convert;
use repoformer_formats::convert::lm_eval::{self, LmEvalSettings, LmEvalTask};
use repoformer_formats::convert::{Conversion, Emit, TargetFormat};
use repoformer_models::batch::BatchSettings;
use repoformer_store::artifact::write_file;
use repoformer_store::error::{self, Error};
use repoformer_store::files;
use repoformer_study::checkout::one_repository;
use repoformer_study::choices::repositories_in;
use repoformer_study::experiments::read_tasks;
use repoformer_study::settings::mask_found_keys;
use repoformer_text::language::Language;

use super::unparsed::keep_gaps;
use crate::choices::in_flags;
use crate::output::{self, Screen, add_hint, check_output, fail, group, plural};
use crate::records_output::RecordsOutput;
use crate::settings::ValueList;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// File to convert: JSONL, plain, gzip or zstd (`-`: standard input); its format is detected. For --to repos also a tar
    /// archive, such as a Python source distribution (.tar.gz)
    #[arg(required_unless_present = "repos_dir")]
    file: Option<PathBuf>,
    /// Target format. From tasks (DevEval, EvoCodeBench and RepoExec too): repoeval, repoformer, crosscodeeval,
    /// crosscodelongeval. From predictions: repocoder-predictions, crosscodeeval-predictions. From prompts or tasks:
    /// batch-requests. From prompts: lm-eval (a task of lm-evaluation-harness, in folder -o). From labels: labels. From
    /// repositories: repos (folders in -o), packages, raw
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = ValueList::new(TargetFormat::ALL))]
    to: String,
    /// File for the records (`-`: standard output; compressed if the name ends in .gz or .zst); folder for repos and lm-eval
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Folder that holds one folder per repository, to read packages and raw records from, and texts that records lack
    #[arg(long, value_name = "DIR")]
    repos_dir: Option<PathBuf>,
    /// Use only this repository of --repos-dir (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    repo: Vec<String>,
    /// Language of the files of --repos-dir to write as packages or raw records
    #[arg(long, value_name = "NAME", default_value = "python", value_parser = ValueList::new(Language::ALL))]
    language: String,
    /// Source files of --repos-dir to write as packages or raw records; the values are those of `window --walk`
    #[arg(long, value_name = "NAME", default_value = "glob", value_parser = ValueList::new(Walk::ALL))]
    walk: String,
    /// Tasks that the predictions, batch answers or prompts (for lm-eval) belong to
    #[arg(long, value_name = "FILE", required_if_eq("to", "lm-eval"))]
    tasks: Option<PathBuf>,
    /// Model of batch requests
    #[arg(long, value_name = "NAME", required_if_eq("to", "batch-requests"))]
    model: Option<String>,
    /// Maximum tokens of a completion [default: 50 in batch requests; 500 in lm-eval, as in `complete`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Temperature of batch requests [default: 0]
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Text that ends a completion; replaces the prompt style's texts in batch requests, and is added to them in lm-eval
    /// (repeatable)
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    #[command(flatten)]
    lm_eval: LmEvalArgs,
}

/// How a task of lm-evaluation-harness is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --to lm-eval")]
struct LmEvalArgs {
    /// Name of the task [default: repoformer_TASKS_MODE, followed by the prompt style unless it is repocoder]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Metric of the task (repeatable, or separated by commas) [default: repocoder]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = ValueList::new(lm_eval::METRICS))]
    metrics: Vec<String>,
    /// White space at the end of a prompt: as-is (is sent) or before-whitespace (is not sent, and is removed from the start of
    /// the completion, as `complete` does) [default: as-is]
    #[arg(long, value_name = "NAME", value_parser = ValueList::new(Ending::ALL))]
    prompt_end: Option<String>,
}

impl ConvertArgs {
    /// Rejects flags that the target format does not use.
    fn check_flags(&self, to: TargetFormat) -> Result<()> {
        let LmEvalArgs { name, metrics, prompt_end } = &self.lm_eval;
        let is_lm_eval = to == TargetFormat::LmEval;
        let of_lm_eval = [
            ("--name", name.is_some()),
            ("--metrics", !metrics.is_empty()),
            ("--prompt-end", prompt_end.is_some()),
        ];
        let of_batches =
            [("--model", self.model.is_some()), ("--temperature", self.temperature.is_some())];
        let unused = if is_lm_eval { &of_batches[..] } else { &of_lm_eval[..] };
        match unused.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) if is_lm_eval => fail(
                format!(
                    "{flag} is not used by --to lm-eval, whose tasks name no model and decode greedily"
                ),
                "leave it out; name the model with lm-eval's --model_args",
            ),
            Some((flag, _)) => fail(format!("{flag} works only with --to lm-eval"), "leave it out"),
        }
    }
}

pub(crate) fn run(args: &ConvertArgs) -> Result<()> {
    let to: TargetFormat = args.to.parse().context("--to")?;
    args.check_flags(to)?;
    check_output(Some(&args.output), args.file.iter().chain(&args.tasks))?;
    mask_found_keys();
    let (outcome, notes) = match to {
        TargetFormat::Folders => (folders(args)?, Vec::new()),
        TargetFormat::LmEval => lm_eval_task(args)?,
        TargetFormat::Records(kind) => (records(args, kind)?, Vec::new()),
    };
    outcome.notes.iter().for_each(|note| output::note(in_flags(note)));
    for warning in &outcome.warnings {
        output::warning(warning);
    }
    output::problems(&outcome.problems);
    keep_gaps(outcome.gaps);
    let noun = match to {
        TargetFormat::Folders => "file",
        TargetFormat::LmEval => "document",
        TargetFormat::Records(_) => "record",
    };
    let (count, noun) = (group(outcome.records), plural(outcome.records, noun));
    let skipped = match error::count(&outcome.problems) {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    output::note(format!("convert: {count} {noun} to {to}{skipped}"));
    notes.iter().for_each(output::note);
    Ok(())
}

/// Returns the file to read, for conversions that need one.
fn input(args: &ConvertArgs) -> Result<&Path> {
    args.file.as_deref().ok_or_else(|| {
        add_hint(
            anyhow!("no file to convert to {}", args.to),
            "name a file; only --to raw and --to packages need just --repos-dir",
        )
    })
}

fn folders(args: &ConvertArgs) -> Result<Conversion> {
    if args.output == Path::new("-") {
        return fail(
            "--to repos cannot write to standard output, since it writes folders",
            "name a folder with -o",
        );
    }
    let mut outcome = convert::to_folders(input(args)?, &args.output)?;
    nothing_done(&mut outcome)?;
    Ok(outcome)
}

/// Converts prompts to a task of lm-evaluation-harness; also returns instructions for running it.
fn lm_eval_task(args: &ConvertArgs) -> Result<(Conversion, Vec<String>)> {
    let folder = &args.output;
    if folder == Path::new("-") {
        return fail(
            "--to lm-eval cannot write to standard output, since it writes a folder",
            "name a folder with -o",
        );
    }
    let file = input(args)?;
    let Some(tasks) = args.tasks.as_deref().map(|file| read_tasks(file, &Screen)).transpose()?
    else {
        bail!("--tasks is not set, so the targets of the prompts are not known")
    };
    let own = &args.lm_eval;
    let mut metrics: Vec<Metric> = Vec::new();
    for name in &own.metrics {
        let metric = name.parse()?;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let bodies = FunctionBodies::new(tasks.tasks(), args.repos_dir.as_deref());
    let settings = LmEvalSettings {
        tasks: &tasks,
        bodies,
        metrics: if metrics.is_empty() { &[Metric::RepoCoder] } else { &metrics },
        name: own.name.as_deref(),
        max_tokens: args.max_tokens.unwrap_or(500) as usize,
        stop: &args.stop,
        ending: own.prompt_end.as_deref().map(str::parse).transpose()?.unwrap_or(Ending::AsIs),
    };
    let LmEvalTask { name, files, conversion: mut outcome } =
        lm_eval::lm_eval(file, &settings).map_err(|error| match error {
            Error::Parameter { name: "metrics", .. } => add_hint(
                error,
                "remove it from --metrics, and score lm-eval's logged samples with `repoformer eval --predictions`",
            ),
            error => error.into(),
        })?;
    nothing_done(&mut outcome)?;
    check_utils(folder)?;
    for (name, text) in &files {
        write_file(&folder.join(name), text.as_bytes())?;
    }
    let mut notes = vec![format!(
        "run it with: lm_eval --model local-completions --model_args \
         model=NAME,base_url=http://HOST/v1/completions,tokenizer_backend=None --include_path {} --tasks {name} --log_samples \
         --output_path FOLDER",
        folder.display()
    )];
    if bodies.are_all() {
        notes.push(
            "lm-eval cannot score function bodies with metric repoformer; score its logged samples with `repoformer eval --predictions`"
                .into(),
        );
    }
    Ok((outcome, notes))
}

/// Refuses to replace a file of functions that this program did not write.
fn check_utils(folder: &Path) -> Result<()> {
    let path = folder.join(lm_eval::UTILS_NAME);
    let first_line = |text: &[u8]| text.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec);
    match files::read_companion(&path) {
        Ok(text) if first_line(&text) != first_line(lm_eval::UTILS.as_bytes()) => fail(
            format!("{}: this file exists, and `convert` did not write it", path.display()),
            "name another folder with -o",
        ),
        _ => Ok(()),
    }
}

fn records(args: &ConvertArgs, kind: RecordKind) -> Result<Conversion> {
    let mut output = RecordsOutput::new(&args.output);
    let mut outcome = work(args, kind, &mut |record| output.line(record))?;
    nothing_done(&mut outcome)?;
    output.finish()?;
    Ok(outcome)
}

/// Returns the first problem as an error if nothing could be converted; no file is written then.
fn nothing_done(outcome: &mut Conversion) -> Result<()> {
    if outcome.records == 0 && !outcome.problems.is_empty() {
        return Err(outcome.problems.swap_remove(0).into());
    }
    Ok(())
}

fn work(args: &ConvertArgs, kind: RecordKind, emit: &mut Emit<'_>) -> Result<Conversion> {
    let settled = (args.repos_dir.as_deref())
        .and_then(|dir| one_repository(dir, &args.repo, args.file.as_slice(), &Screen));
    let repos_dir = settled.as_ref().map(|found| found.dir.as_path()).or(args.repos_dir.as_deref());
    let named = settled.as_ref().map_or(&args.repo, |found| &found.named);
    let language: Language = args.language.parse().context("--language")?;
    Ok(match (kind, &args.file, repos_dir) {
        (RecordKind::Package | RecordKind::RawRepository, None, Some(dir)) => {
            let names = repositories_in(dir, named, &Screen)?;
            let walk = args.walk.parse().context("--walk")?;
            convert::from_folders(dir, &names, language, walk, kind, emit)?
        }
        (RecordKind::Package | RecordKind::RawRepository, _, _) => {
            convert::records(input(args)?, kind, emit)?
        }
        (RecordKind::Task(format), _, _) => convert::tasks(input(args)?, format, repos_dir, emit)?,
        (RecordKind::Label, _, _) => convert::labels(input(args)?, emit)?,
        (RecordKind::BatchRequest, _, _) => {
            let sampling = BatchSettings {
                model: args.model.clone().unwrap_or_default(),
                max_tokens: args.max_tokens.unwrap_or(50) as usize,
                temperature: args.temperature.unwrap_or(0.0),
                stop: args.stop.clone(),
            };
            convert::requests(input(args)?, &sampling, emit)?
        }
        _ => {
            let file = input(args)?;
            let tasks = args.tasks.as_deref().map(|file| read_tasks(file, &Screen)).transpose()?;
            convert::predictions(file, kind, tasks.as_ref(), emit)?
        }
    })
}
