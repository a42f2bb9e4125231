//! Flags of `label`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use repoformer::selective::label::InstanceKind;

use crate::settings::{Listed, SettingFlags};

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    #[command(subcommand)]
    pub(crate) command: LabelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Draw instances from repositories: holes in varied code, each with its contexts and three retrieved fragments
    Sample(Box<LabelSampleArgs>),
    /// Label instances: does retrieval bring a model's completion closer to the target?
    #[command(visible_alias = "score")]
    Judge(LabelJudgeArgs),
    /// Turn labels into training sequences with <eof> and <cc>: token ids and masks as JSONL and Parquet
    Verbalize(Box<LabelVerbalizeArgs>),
    /// Sample, judge and verbalize with one model, from repositories to training sequences; finished work is kept
    All(Box<LabelAllArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct LabelSampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Read repositories from records instead of folders: JSONL, plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) drawing: DrawingFlags,
    /// Part of the repositories: 2/8 is the second of eight
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Write tasks of a benchmark, without retrieved fragments, as in CrossCodeLongEval
    #[arg(long)]
    pub(crate) as_benchmark: bool,
    /// File for the instances (`-`: standard output; compressed if the name ends in .gz or .zst). Until all are drawn,
    /// FILE.drawn holds them: the same command resumes there
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// Instances to draw, and repositories to draw from.
#[derive(Debug, Clone, Args)]
pub(crate) struct DrawingFlags {
    /// Kind of the holes: chunk (about three lines), function (a body of 3 to 30 lines)
    #[arg(long, value_name = "KIND", default_value = "chunk",
        value_parser = Listed::of([InstanceKind::Chunk, InstanceKind::Function].map(InstanceKind::name)))]
    pub(crate) kind: String,
    /// Number of clusters, and so of instances, per chunk or function of a repository [default: 0.2; 0.1 with --profile
    /// repoformer-release]
    #[arg(long, value_name = "R")]
    pub(crate) ratio: Option<f64>,
    /// Use every repository, not only those whose files import one another
    #[arg(long)]
    pub(crate) no_filter: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabelJudgeArgs {
    /// Instances from `label sample`
    #[arg(long, value_name = "FILE")]
    pub(crate) instances: PathBuf,
    /// Predictions of a model without retrieval (mode none)
    #[arg(long, value_name = "FILE")]
    pub(crate) base: PathBuf,
    /// Predictions of the same model with retrieval (mode given)
    #[arg(long, value_name = "FILE")]
    pub(crate) rag: PathBuf,
    /// Prompts of --rag, for instances that do not carry their retrieved fragments: tasks of a benchmark
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// Probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of`
    #[arg(long, value_name = "FILE")]
    pub(crate) probabilities: Option<PathBuf>,
    /// Name of the model [default: the predictions' own]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Retrieval helps where it raises the edit similarity (0 to 1) by more than this
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) threshold: f64,
    /// File for the labels (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LabelVerbalizeArgs {
    /// Labels of one model, from `label judge`
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// The model's tokenizer.json, or its folder; missing tokens are added to the copy in -o
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: PathBuf,
    /// Style whose fill-in-the-middle tokens are used, as in `prompt`; repoformer and repoformer-released have their own
    /// place for the decision
    #[arg(long, value_name = "NAME|FILE", default_value = "starcoder")]
    pub(crate) prompt_style: String,
    /// Maximum tokens of a training sequence
    #[arg(long, alias = "max-tokens", value_name = "N", default_value_t = 2048)]
    pub(crate) max_sequence_tokens: usize,
    /// Seed of the choice of held-out repositories
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of threads; the output does not depend on it [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
    /// Folder for train.jsonl, train.parquet, the other splits, tokenizer.json and prompt-style.toml
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) sequences: SequenceFlags,
}

/// Layout of training sequences.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sequences")]
pub(crate) struct SequenceFlags {
    /// Token that ends the current file; the model decides after it [default: the style's, or <eof>]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) eof_token: Option<String>,
    /// Token that asks for cross-file context, which follows it [default: the style's, or <cc>]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) cc_token: Option<String>,
    /// Token after each target that teaches the model to stop, such as <|endoftext|> [default: none, as in the released
    /// program]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) end_token: Option<String>,
    /// Maximum tokens of a cross-file context; the first are kept
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) max_cc_tokens: usize,
    /// Weight of the decision relative to the completion, in loss_weights
    #[arg(long, value_name = "L", default_value_t = 1.0)]
    pub(crate) lambda: f32,
    /// Share of the repositories held out for validation
    #[arg(long, value_name = "R", default_value_t = 0.1)]
    pub(crate) validation: f64,
    /// Share of the repositories held out for tests
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub(crate) test: f64,
}

#[derive(Debug, Args)]
pub(crate) struct LabelAllArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    #[command(flatten)]
    pub(crate) drawing: DrawingFlags,
    /// Retrieval helps where it raises the edit similarity (0 to 1) by more than this
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) threshold: f64,
    /// Maximum tokens of a training sequence
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_sequence_tokens: usize,
    /// Folder for instances.jsonl, labels.jsonl, the output of `label verbalize`, and the cache
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) sequences: SequenceFlags,
}
