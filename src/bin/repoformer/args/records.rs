//! Flags of the subcommands that read and write records: `inspect`, `sample`, `convert`, `validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use repoformer::task::sample::Kind;
use repoformer::text::language::Language;

use super::formats::ReportFormat;
use crate::settings::{Listed, SettingFlags};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Artifact in a cache folder
    pub(crate) file: PathBuf,
    /// Part to print: the header (text), or the records (jsonl)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: InspectFormat,
    /// Include the texts of windows, chunks and queries
    #[arg(long)]
    pub(crate) context: bool,
}

/// Part of an artifact that `inspect` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    Text,
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Kind of the holes: line (a line of code), api (a call of a definition in another file), function (a body of 3 to 30
    /// lines), chunk (a few lines)
    #[arg(long, value_name = "KIND", value_parser = Listed::of(Kind::ALL))]
    pub(crate) kind: String,
    /// Maximum number of tasks per repository
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) per_repo: usize,
    /// Maximum tokens of the left context
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) context_tokens: usize,
    /// Minimum tokens of a sampled line
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) min_tokens: usize,
    /// File for the tasks (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// File to convert: JSONL, plain, gzip or zstd (`-`: standard input); its format is detected
    #[arg(required_unless_present = "repos_dir")]
    pub(crate) file: Option<PathBuf>,
    /// Target format. Tasks: repoeval, repoformer, crosscodeeval, crosscodelongeval. Predictions: repocoder-predictions,
    /// crosscodeeval-predictions. From prompts or tasks: batch-requests. From labels: labels. Repositories: repos (folders
    /// in -o), packages, raw
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: String,
    /// File for the records (`-`: standard output; compressed if the name ends in .gz or .zst); folder for repos
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Folder that holds one folder per repository: source of packages and raw, and of what records lack
    #[arg(long, value_name = "DIR")]
    pub(crate) repos_dir: Option<PathBuf>,
    /// Use only this repository of --repos-dir (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) repo: Vec<String>,
    /// Language of the files of --repos-dir that packages and raw records take
    #[arg(long, value_name = "NAME", default_value = "python", value_parser = Listed::of(Language::ALL))]
    pub(crate) language: String,
    /// Tasks that the predictions or batch answers belong to
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,
    /// Model of batch requests
    #[arg(long, value_name = "NAME", required_if_eq("to", "batch-requests"))]
    pub(crate) model: Option<String>,
    /// Maximum tokens of a completion in batch requests
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) max_tokens: usize,
    /// Temperature of batch requests
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub(crate) temperature: f64,
    /// Text that ends a completion in batch requests (repeatable)
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Files to check: JSONL, plain, gzip or zstd (`-`: standard input); their formats are detected
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Also compare tasks with their files in this folder, which holds one folder per repository
    #[arg(long, value_name = "DIR")]
    pub(crate) repos_dir: Option<PathBuf>,
    /// Treat notes as errors: repeated ids, `lineno`, `owner--name`, empty contexts, unknown fields
    #[arg(long)]
    pub(crate) strict: bool,
    /// Format of the summary: text, a line per file with the findings on stderr; json, an object per file with its findings
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ReportFormat,
}
