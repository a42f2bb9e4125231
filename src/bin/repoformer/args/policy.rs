//! Flags of `policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use repoformer::selective::policy::Policy;
use repoformer::selective::policy::model::LearnedPolicy;

use super::formats::{ReportFormat, ScoreFormat};
use crate::settings::Listed;

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Train a policy on labelled instances, calibrated on repositories outside its training data
    Train(PolicyTrainArgs),
    /// List the features that a trained policy weighs most
    Explain(PolicyExplainArgs),
    /// For each policy and threshold: share of retrievals, accuracy, latency
    Sweep(Box<PolicySweepArgs>),
    /// Write the features of labelled instances, for a learner of your own
    Features(PolicyFeaturesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTrainArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Policy to train: learned (decides before retrieval), learned-scored (decides whether to show the retrieved fragments)
    #[arg(long, value_name = "NAME", default_value = "learned",
        value_parser = Listed::of([LearnedPolicy::Learned, LearnedPolicy::LearnedScored].map(LearnedPolicy::name)))]
    pub(crate) policy: String,
    /// Method that turns scores into probabilities
    #[arg(long, value_name = "NAME", default_value = "platt", value_parser = Listed::of(["platt", "isotonic"]))]
    pub(crate) calibration: String,
    /// File for the policy (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// Trained policy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Number of features to list, the weightiest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Format of the list
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct PolicySweepArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Policy (repeatable, or separated by commas) [default: all whose signals the labels have]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Listed::of(Policy::ALL))]
    pub(crate) policy: Vec<String>,
    /// Trained policy (repeatable) [default: learned policies are trained here, and score each repository after training on
    /// the others]
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// More labelled instances for policies trained here; those of the scored repository are left out (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) train_labels: Vec<PathBuf>,
    /// Method that turns scores of policies trained here into probabilities
    #[arg(long, value_name = "NAME", default_value = "platt", value_parser = Listed::of(["platt", "isotonic"]))]
    pub(crate) calibration: String,
    /// Retrieve where the score is above this (repeatable, or separated by commas) [default: at every fortieth of the
    /// instances]
    #[arg(long, value_name = "T", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) threshold: Vec<f64>,
    /// Measured times, of a retriever if named: JSONL with task_id, retrieval_ms, generation_ms (repeatable)
    #[arg(long, value_name = "[NAME=]FILE")]
    pub(crate) latency: Vec<String>,
    /// Measured times of completions without retrieval, in the same format [default: those with retrieval]
    #[arg(long, value_name = "FILE")]
    pub(crate) base_latency: Option<PathBuf>,
    /// Time of a retrieval in milliseconds, of a retriever if named (repeatable)
    #[arg(long, value_name = "[NAME=]MS")]
    pub(crate) retrieval_ms: Vec<String>,
    /// Time of a generation in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) generation_ms: Option<f64>,
    /// Time of the generator's own decision in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) decision_ms: f64,
    /// Seed of policy random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Format: a summary of each policy (text), or every point
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ScoreFormat,
    /// Also write a page with the curves to this folder: index.html and its figures
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
    /// File for the summary or the points (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyFeaturesArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// File for the records (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LabelFlags {
    /// Labelled instances: JSONL, plain, gzip or zstd (repeatable)
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) labels: Vec<PathBuf>,
    /// Leave out instances whose query contained the target (half of those from `label sample`): no query made before
    /// completing does
    #[arg(long)]
    pub(crate) no_target_queries: bool,
}
