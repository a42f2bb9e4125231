//! What `label` can be told.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SettingFlags;

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
}

#[derive(Debug, Args)]
pub(crate) struct LabelSampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Repositories as records instead of folders: JSONL, plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
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
    /// A part of the repositories: 2/8 is the second of eight
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Write a benchmark's tasks, without what was retrieved, as CrossCodeLongEval has them
    #[arg(long)]
    pub(crate) as_benchmark: bool,
    /// Same seed, same bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where the instances go (`-`: standard output; compressed where the name ends in .gz or .zst)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
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
