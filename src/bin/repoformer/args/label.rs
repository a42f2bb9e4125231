//! What `label` can be told.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ServerArgs, SettingFlags};

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    #[command(subcommand)]
    pub(crate) command: LabelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Draw instances from repositories: holes of varied code, each with its contexts and three fragments of other files
    Sample(Box<LabelSampleArgs>),
    /// Label instances: does retrieval make a model's completion more similar to what stood there?
    Judge(LabelJudgeArgs),
    /// Turn labels into training sequences with <eof> and <cc>: token ids and masks as JSON lines and Parquet
    Verbalize(Box<LabelVerbalizeArgs>),
    /// All of it with one model, from repositories to training sequences; what is there already is kept
    All(Box<LabelAllArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct LabelSampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Repositories as records instead of folders: JSONL, plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) drawing: DrawingFlags,
    /// A part of the repositories: 2/8 is the second of eight
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Write a benchmark's tasks, without what was retrieved, as CrossCodeLongEval has them
    #[arg(long)]
    pub(crate) as_benchmark: bool,
    /// Same seed, same bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where the instances go (`-`: standard output; compressed where the name ends in .gz or .zst). Until all are drawn they
    /// are kept in FILE.drawn: the same command goes on from there
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// What is drawn, from which repositories.
#[derive(Debug, Clone, Args)]
pub(crate) struct DrawingFlags {
    /// What is cut out: chunk (about three lines), function (a body of 3 to 30 lines)
    #[arg(long, value_name = "KIND", default_value = "chunk")]
    pub(crate) kind: String,
    /// Clusters, and so instances, for each chunk or function of a repository [default: 0.2; 0.1 with --profile
    /// repoformer-release]
    #[arg(long, value_name = "R")]
    pub(crate) ratio: Option<f64>,
    /// Take every repository, not only those whose files import one another
    #[arg(long)]
    pub(crate) no_filter: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabelJudgeArgs {
    /// The instances that `label sample` drew
    #[arg(long, value_name = "FILE")]
    pub(crate) instances: PathBuf,
    /// A model's predictions without what was retrieved (mode none)
    #[arg(long, value_name = "FILE")]
    pub(crate) base: PathBuf,
    /// The same model's with it (mode given)
    #[arg(long, value_name = "FILE")]
    pub(crate) rag: PathBuf,
    /// The prompts of --rag, where the instances do not carry what was retrieved: tasks of a benchmark
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// The model's probabilities of the token that asks for retrieval, from `complete --probability-of`: what policy self goes by
    #[arg(long, value_name = "FILE")]
    pub(crate) probabilities: Option<PathBuf>,
    /// The model's name [default: what the predictions say]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The least gain in edit similarity (0 to 1) that does not count as help
    #[arg(
        long,
        value_name = "T",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub(crate) threshold: f64,
    /// Where the labels go (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LabelVerbalizeArgs {
    /// What `label judge` wrote, of one model
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// The model's tokenizer.json, or the folder with it; tokens that it lacks are added in the copy below -o
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: PathBuf,
    /// Whose fill-in-the-middle tokens: starcoder, deepseek-coder, qwen2.5-coder, codellama, …; repoformer and
    /// repoformer-released have their own place for the decision
    #[arg(long, value_name = "NAME|FILE", default_value = "starcoder")]
    pub(crate) prompt_style: String,
    /// Tokens of a sequence, at most
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_tokens: usize,
    /// Same seed, same repositories held out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads [default: all cores]; output never depends on it
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
    /// Folder of train.jsonl, train.parquet, the other splits, tokenizer.json and prompt-style.toml
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) sequences: SequenceFlags,
}

/// How training sequences are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sequences")]
pub(crate) struct SequenceFlags {
    /// The token that ends the current file, after which the model decides [default: the style's, or <eof>]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) eof_token: Option<String>,
    /// The token that asks for cross-file context, which follows it [default: the style's, or <cc>]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) cc_token: Option<String>,
    /// A token after each target, such as <|endoftext|>, so that the model learns to stop [default: none, as in the released
    /// program]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) end_token: Option<String>,
    /// Tokens of a cross-file context, at most, of which the first are kept
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) max_cc_tokens: usize,
    /// How much the decision weighs against the completion, in loss_weights
    #[arg(long, value_name = "L", default_value_t = 1.0)]
    pub(crate) lambda: f32,
    /// Share of the repositories that is held out for validation
    #[arg(long, value_name = "R", default_value_t = 0.1)]
    pub(crate) validation: f64,
    /// Share of the repositories that is held out for tests
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub(crate) test: f64,
}

#[derive(Debug, Args)]
pub(crate) struct LabelAllArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    #[command(flatten)]
    pub(crate) drawing: DrawingFlags,
    /// The least gain in edit similarity (0 to 1) that does not count as help
    #[arg(
        long,
        value_name = "T",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub(crate) threshold: f64,
    /// Tokens of a training sequence, at most
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_sequence_tokens: usize,
    /// Same seed, same instances and same repositories held out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder of instances.jsonl, labels.jsonl, what `label verbalize` writes, and the cache
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) sequences: SequenceFlags,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
