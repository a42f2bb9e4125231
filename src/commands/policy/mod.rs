//! `policy`: when to retrieve.

mod explain;
mod labels;
mod sweep;

use anyhow::Result;
use clap::Subcommand;
use explain::PolicyExplainArgs;
use labels::{PolicyFeaturesArgs, PolicyTrainArgs};
use sweep::PolicySweepArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Train a policy on labelled instances, calibrated on repositories outside its training data
    Train(PolicyTrainArgs),
    /// List the features with the largest weights in a trained policy
    Explain(PolicyExplainArgs),
    /// Measure retrieval rate, accuracy and latency for each policy and threshold
    Sweep(Box<PolicySweepArgs>),
    /// Write the features of labelled instances, to train a classifier of your own
    Features(PolicyFeaturesArgs),
}

pub(crate) fn run(command: &PolicyCommand) -> Result<()> {
    match command {
        PolicyCommand::Train(args) => labels::run_train(args),
        PolicyCommand::Explain(args) => explain::run(args),
        PolicyCommand::Sweep(args) => sweep::run(args),
        PolicyCommand::Features(args) => labels::run_features(args),
    }
}
