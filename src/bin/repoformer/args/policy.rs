//! What `policy` can be told.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Train a policy on judged instances, calibrated on repositories that it did not learn from
    Train(PolicyTrainArgs),
    /// Say what a trained policy goes by
    Explain(PolicyExplainArgs),
    /// For each policy and threshold: share retrieved for, accuracy, latency
    Sweep(Box<PolicySweepArgs>),
    /// Write what the learned policies see of judged instances, for a learner of one's own
    Features(PolicyFeaturesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTrainArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// What is learned: learned (decides before retrieval), learned-scored (decides whether to show what was retrieved)
    #[arg(long, value_name = "NAME", default_value = "learned")]
    pub(crate) policy: String,
    /// How scores become probabilities: platt, isotonic
    #[arg(long, value_name = "NAME", default_value = "platt")]
    pub(crate) calibration: String,
    /// Where the policy goes (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// The trained policy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Features shown, those that count most first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// As text, or as JSON
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub(crate) format: ExplainFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct PolicySweepArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// A policy: never, always, random, trial-retrieval, trial-generation, entropy, self, oracle, learned, learned-scored
    /// (repeatable, or separated by commas) [default: all that the labels have what they go by for]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// A trained policy (repeatable); without one learned policies are trained here, and score each repository by what they
    /// learned from the others
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// Judged instances that policies trained here learn from, too, but for those of the repository they score (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) train_labels: Vec<PathBuf>,
    /// How scores of policies that are trained here become probabilities: platt, isotonic
    #[arg(long, value_name = "NAME", default_value = "platt")]
    pub(crate) calibration: String,
    /// Retrieve where the score is above this (repeatable, or separated by commas) [default: every fortieth of the instances]
    #[arg(
        long,
        value_name = "T",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub(crate) threshold: Vec<f64>,
    /// Measured times, with or without a retriever's name: JSON lines with task_id, retrieval_ms, generation_ms (repeatable)
    #[arg(long, value_name = "[NAME=]FILE")]
    pub(crate) latency: Vec<String>,
    /// What completions without retrieval took, as --latency has it [default: as long as those with it]
    #[arg(long, value_name = "FILE")]
    pub(crate) base_latency: Option<PathBuf>,
    /// Milliseconds of a retrieval, with or without a retriever's name (repeatable)
    #[arg(long, value_name = "[NAME=]MS")]
    pub(crate) retrieval_ms: Vec<String>,
    /// Milliseconds of a generation
    #[arg(long, value_name = "MS")]
    pub(crate) generation_ms: Option<f64>,
    /// Milliseconds that the generator needs to decide by itself
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) decision_ms: f64,
    /// What `random` draws from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Text: what each policy comes to; or every point
    #[arg(long, value_enum, default_value_t = SweepFormat::Text)]
    pub(crate) format: SweepFormat,
    /// Also leave a page with the curves as figures: index.html and its figures in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
    /// Where the points or the text go (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepFormat {
    Text,
    Tsv,
    Json,
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyFeaturesArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Where the records go (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LabelFlags {
    /// Judged instances: JSONL, plain, gzip or zstd (repeatable)
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) labels: Vec<PathBuf>,
    /// Leave out instances whose fragments were found with the target in the query, as half of those are that `label
    /// sample` draws: no query that is made before completing knows it
    #[arg(long)]
    pub(crate) no_target_queries: bool,
}
