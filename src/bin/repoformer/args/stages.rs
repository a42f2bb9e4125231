//! Flags of the stages, from `window` to `run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::formats::ScoreFormat;
use crate::settings::SettingFlags;

#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions for mode rg-rg [default: the model's for mode rg1, in the cache]
    #[arg(long, value_name = "FILE")]
    pub(crate) predictions: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VectorizeArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Instead of vectors, write the texts that need dense vectors, to be embedded elsewhere: lines `{"_id", "digest",
    /// "text"}`
    #[arg(long, value_name = "FILE")]
    pub(crate) write_texts: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Also write the rankings of one mode in an information-retrieval format (chunks only)
    #[arg(long, value_name = "FORMAT", requires = "output")]
    pub(crate) export: Option<ExportFormat>,
    /// Destination of the export: for trec a file (`-`: standard output), for beir a folder
    #[arg(short, long, value_name = "PATH", requires = "export")]
    pub(crate) output: Option<PathBuf>,
}

/// Format of exported rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Lines of a TREC run
    Trec,
    /// A BEIR collection; its relevance judgements come from mode gt (search with --mode gt first)
    Beir,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Also write the prompts of one mode to this file (`-`: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Prompts to complete [default: the data set's in the cache, mode by mode]
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// File for the predictions (`-`: standard output) [default: the cache; standard output with --prompts]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) probability: ProbabilityArgs,
    /// Instead of asking a server, write the requests without an answer for a batch endpoint (`-`: standard output)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Batches", conflicts_with_all = ["output", "concurrency", "request-timeout", "retry-failed"]
    )]
    pub(crate) write_batch: Option<PathBuf>,
    /// Instead of asking a server, read a batch endpoint's answers, in any order, and its file of errors (repeatable)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Batches", conflicts_with_all = ["write_batch", "concurrency", "request-timeout", "retry-failed"]
    )]
    pub(crate) read_batch: Vec<PathBuf>,
}

/// The probability of one token.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --endpoint")]
pub(crate) struct ProbabilityArgs {
    /// Instead of completing, write the probability that this token comes next (`<cc>`: the model asks for cross-file
    /// context)
    #[arg(long, value_name = "TOKEN", conflicts_with_all = [
        "samples", "temperature", "top-p", "seed", "api", "stop", "prompt-end", "instruction", "max-lines", "write_batch", "read_batch",
    ])]
    pub(crate) probability_of: Option<String>,
    /// First cut prompts after the last occurrence of this text, or append it (`<eof>`)
    #[arg(long, value_name = "TEXT", requires = "probability_of")]
    pub(crate) after: Option<String>,
    /// Id of the token in the model's vocabulary [default: the answer of the server's /tokenize]
    #[arg(long, value_name = "N", requires = "probability_of")]
    pub(crate) token_id: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RgRgArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions to search with, of any model [default: the model's for mode rg1, in the cache]
    #[arg(long, value_name = "FILE")]
    pub(crate) predictions: Option<PathBuf>,
    /// Also write the prompts to this file (`-`: standard output); with --iterations, those of the last one
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also complete, and search again with the completions, this many times; prints a table of the iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) iterations: Option<u32>,
    /// Format of the table
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "iterations")]
    pub(crate) format: ScoreFormat,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Format of the table
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ScoreFormat,
    /// Also write a report of each task file, as BENCHMARK/index.html in this folder [default: report in the cache folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(crate) report: Option<Option<PathBuf>>,
    /// Probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of` (repeatable)
    /// [default: the server's, where the prompt style names the token]
    #[arg(long, value_name = "FILE", help_heading = "Selective retrieval")]
    pub(crate) probabilities: Vec<PathBuf>,
}
