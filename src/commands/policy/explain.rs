//! `policy explain`: the features that a trained policy uses.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use repoformer_core::policy::model::PolicyModel;
use repoformer_evaluate::sweep::Explanation;

use crate::output::{check_output, write_data};
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// Trained policy, or `bundled`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of features to list, by decreasing weight
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Format of the list [default: from the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// File for the list (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(super) fn run(args: &PolicyExplainArgs) -> Result<()> {
    let format = ScoreFormat::choose(args.format, &args.output)?;
    check_output(Some(&args.output), [&args.file])?;
    let policy = PolicyModel::open(&args.file)?;
    write_data(&args.output, format_results(&Explanation::new(&policy, args.top), format)?)
}
