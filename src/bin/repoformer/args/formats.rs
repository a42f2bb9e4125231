//! Formats of what is printed, shared by several subcommands.

use clap::ValueEnum;

/// Format of tables of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreFormat {
    /// An aligned table
    Text,
    /// The table with tabs
    Tsv,
    /// One JSON object or list; scores between 0 and 1
    Json,
    /// One JSON object per line; scores between 0 and 1
    Jsonl,
}

/// Format of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}
