//! `complete`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use repoformer_core::prompt::style::Style;
use repoformer_core::retrieve::Mode;
use repoformer_formats::merge::{Positions, ShardFile};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{
    BatchOf, Completion, EmitLine, Experiment, Predictions, PromptText, TokenQuestion,
    complete_file,
};
use repoformer_study::choices::{WITHOUT_PREDICTION, modes};
use repoformer_study::experiment_settings::layout;
use repoformer_study::experiments::{check_completable, completion_of, without_repositories};
use repoformer_study::server::{self, resumable};
use repoformer_study::stages;

use super::parts;
use super::stages::check_one_mode;
use crate::commands::dry_run::DryRunFlags;
use crate::commands::session::{check_not_tasks, open};
use crate::interruption::keeps_artifacts;
use crate::output::{self, Screen, check_output, fail, format_count, group};
use crate::records_output::RecordsOutput;
use crate::settings::{SettingFlags, SettingValue, Settings};

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    dry_run: DryRunFlags,
    /// Prompts to complete [default: the data set's prompts in the cache, mode by mode]
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    prompts: Option<PathBuf>,
    /// File for the predictions (`-`: standard output) [default: the cache; standard output with --prompts]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the model's probability of each target instead of completions, as a logarithm and in bits per character
    #[arg(long, conflicts_with_all = [
        "probability_of", "samples", "temperature", "top-p", "seed", "api", "stop", "prompt-end", "instruction", "max-lines", "max-tokens", "until",
        "dry_run",
    ])]
    likelihood: bool,
    #[command(flatten)]
    probability: ProbabilityArgs,
    /// Write the unanswered requests to a file for a batch endpoint, instead of asking a server (`-`: standard output)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Batches", conflicts_with_all = ["output", "concurrency", "request-timeout", "retry-failed", "dry_run"]
    )]
    write_batch: Option<PathBuf>,
    /// Read the answers or errors that a batch endpoint wrote, in any order, instead of asking a server (repeatable)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Batches", conflicts_with_all = ["write_batch", "concurrency", "request-timeout", "retry-failed", "dry_run"]
    )]
    read_batch: Vec<PathBuf>,
}

/// The probability of one token.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --endpoint")]
pub(crate) struct ProbabilityArgs {
    /// Write the probability that this token comes next, instead of completions; with `<cc>`, that the model asks for
    /// cross-file context
    #[arg(long, value_name = "TOKEN", conflicts_with_all = [
        "samples", "temperature", "top-p", "seed", "api", "stop", "prompt-end", "instruction", "max-lines", "until", "dry_run",
    ])]
    probability_of: Option<String>,
    /// Text after which each prompt ends, such as `<eof>`: cuts the prompt after its last occurrence, or appends it
    #[arg(long, value_name = "TEXT", requires = "probability_of")]
    after: Option<String>,
    /// Id of the token in the model's vocabulary [default: as the server's /tokenize answers]
    #[arg(long, value_name = "N", requires = "probability_of")]
    token_id: Option<u64>,
}

impl ProbabilityArgs {
    fn question(&self) -> Option<TokenQuestion> {
        let text = self.probability_of.clone()?;
        Some(TokenQuestion { text, id: self.token_id, after: self.after.clone() })
    }
}

pub(crate) fn run(args: &CompleteArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let by_batch = args.write_batch.is_some() || !args.read_batch.is_empty();
    let completion = server::model(&settings, *settings.seed, by_batch)?;
    if completion.server.is_none() && settings.seed.is_flag() {
        return fail(
            "--seed is for sampling from a model on a server; the embedded model does not sample",
            "leave it out",
        );
    }
    let mut data = Data::new(args, &settings)?;
    let mut log = args.dry_run.log();
    if let Data::Cache { experiment, .. } = &mut data {
        log.begin(experiment);
    }
    let completion = match &data {
        Data::Cache { experiment, settings, .. } => {
            completion_of(experiment, settings, *settings.seed, by_batch)?
        }
        Data::File(_) => completion,
    };
    let place = args.output.as_deref().unwrap_or(Path::new("-"));
    // The output must differ from the inputs and from the journal.
    let mut read: Vec<&PathBuf> = args.prompts.iter().chain(&args.read_batch).collect();
    read.extend(completion.server.iter().map(|server| &server.journal));
    check_output(args.output.as_deref(), &read)?;
    check_output(args.write_batch.as_deref(), &read)?;
    let question = args.probability.question();
    let of = match &question {
        Some(question) => BatchOf::Token(question),
        None if args.likelihood => BatchOf::Likelihoods,
        None => BatchOf::Completions,
    };
    if let Some(file) = &args.write_batch {
        return write_batch(file, &data.prompts()?, &completion, of);
    }
    if !args.read_batch.is_empty() {
        read_batch(&args.read_batch, &data.prompts()?, &completion, of)?;
    }
    if let Some(question) = question {
        let what = format!("probabilities of {:?}", question.text);
        let prompts = data.prompts()?.remove(0);
        return write_records(&completion, place, &what, |emit| {
            pipeline::probabilities(&prompts, &completion, &question, emit)
        });
    }
    if args.likelihood {
        let style = layout(&settings)?;
        let prompts = data.prompts()?.remove(0);
        return write_records(&completion, place, "likelihoods", |emit| {
            pipeline::likelihoods(&prompts, &completion, style.style(), emit)
        });
    }
    match &data {
        Data::File(prompts) => {
            complete_one(prompts, &completion, layout(&settings)?.style(), place)
        }
        Data::Cache { experiment, modes, .. } => {
            if !log.is_dry() {
                keeps_artifacts();
            }
            log.stage("complete", experiment, || stages::complete(experiment, modes, &completion))?;
            args.dry_run.finish(&log)?;
            let Some(output) = args.output.as_ref().filter(|_| !log.is_dry()) else {
                return Ok(());
            };
            let path = experiment.paths().predictions(modes[0], &completion.model);
            parts::copy(experiment, &path, output)
        }
    }
}

/// Source of the prompts to complete.
enum Data {
    /// A file of prompts.
    File(PathBuf),
    /// A data set's prompts in the cache.
    Cache {
        experiment: Box<Experiment>,
        /// Settings of its tasks.
        settings: Box<Settings>,
        modes: Vec<Mode>,
    },
}

impl Data {
    fn new(args: &CompleteArgs, settings: &Settings) -> Result<Self> {
        if let Some(prompts) = &args.prompts {
            if settings.shard.is_some() {
                return fail(
                    "--shard cannot be used with --prompts",
                    "pass a file with the prompts of one shard to --prompts, or leave one of the two out",
                );
            }
            return Ok(Self::File(prompts.clone()));
        }
        check_not_tasks(settings, args.output.as_deref())?;
        let (experiment, settings) = without_repositories(settings)?;
        if experiment.tasks.is_none() && settings.benchmark.is_none() {
            return fail(
                "no prompts to complete: neither --tasks nor --benchmark is set",
                "name the data set as in `repoformer prompt`, or a file with --prompts",
            );
        }
        check_completable(&experiment)?;
        let modes = modes(&settings, &WITHOUT_PREDICTION)?;
        if args.output.is_some() || args.probability.probability_of.is_some() || args.likelihood {
            check_one_mode(&modes)?;
        }
        let (experiment, settings) = (Box::new(experiment), Box::new(settings));
        Ok(Self::Cache { experiment, settings, modes })
    }

    fn prompts(&self) -> Result<Vec<PromptText>> {
        Ok(match self {
            Self::File(path) => vec![PromptText::of_file(path)?],
            Self::Cache { experiment, modes, .. } => {
                let prompts = modes.iter().map(|mode| PromptText::of_mode(experiment, *mode));
                prompts.collect::<Result<_, _>>()?
            }
        })
    }
}

fn complete_one(
    prompts: &Path,
    completion: &Completion,
    style: Option<&Style>,
    place: &Path,
) -> Result<()> {
    let mut output = RecordsOutput::new(place);
    let part = ShardFile::find(prompts)?;
    let predictions = resumable(completion, &Screen, || {
        complete_file(prompts, completion, style, &mut |line| output.bytes(line))
    })?;
    let mut positions = Positions::default();
    if part.is_some() {
        for latency in &predictions.latencies {
            positions.add(latency.row.context("a prompt of the shard has no row number")?);
        }
    }
    output.finish()?;
    if let Some(part) = part {
        let inputs = [("prompts", part.digest())];
        parts::write_beside(place, &completion.identity(), &inputs, part.shard, &positions)?;
    }
    output::problems(&predictions.problems);
    predictions.warnings.iter().for_each(output::warning);
    output::note(format!("complete: {} predictions", group(predictions.records)));
    Ok(())
}

/// Writes records other than predictions, such as probabilities, and reports their number; `what` names them.
fn write_records(
    completion: &Completion,
    place: &Path,
    what: &str,
    mut make: impl FnMut(&mut EmitLine<'_>) -> repoformer_store::error::Result<Predictions>,
) -> Result<()> {
    let mut output = RecordsOutput::new(place);
    let found = resumable(completion, &Screen, || make(&mut |line| output.bytes(line)))?;
    output.finish()?;
    output::problems(&found.problems);
    found.warnings.iter().for_each(output::warning);
    output::note(format!("complete: {} {what}", group(found.records)));
    Ok(())
}

fn write_batch(
    file: &Path,
    prompts: &[PromptText],
    completion: &Completion,
    of: BatchOf<'_>,
) -> Result<()> {
    let (mut output, mut bytes) = (RecordsOutput::new(file), 0);
    let batch = pipeline::write_batch(prompts, completion, of, &mut |line| {
        bytes += line.len();
        output.bytes(line)
    })?;
    output.finish()?;
    output::problems(&batch.problems);
    let others = match batch.others {
        0 => String::new(),
        1 => " (1 prompt is already answered, or is a duplicate)".to_owned(),
        n => format!(" ({} prompts are already answered, or are duplicates)", group(n)),
    };
    let requests = format_count(batch.requests as u64, "request");
    output::note(format!("complete: {requests}{others}"));
    if batch.requests > 50_000 || bytes > 200_000_000 {
        output::warning(
            "OpenAI accepts at most 50,000 requests and 200 MB per file; split this file, and read the answers to each part",
        );
    }
    Ok(())
}

fn read_batch(
    files: &[PathBuf],
    prompts: &[PromptText],
    completion: &Completion,
    of: BatchOf<'_>,
) -> Result<()> {
    let read = pipeline::read_batch(files, prompts, completion, of)?;
    output::problems(&read.problems);
    output::note(format!(
        "complete: {} answers, {} failures, {} unreadable or for unknown prompts",
        group(read.answers),
        group(read.failed),
        group(repoformer_store::error::count(&read.problems))
    ));
    Ok(())
}
