//! `label`: training data for selective retrieval.

mod all;
mod judge;
mod sample;
mod verbalize;

use anyhow::Result;
use clap::Subcommand;

use all::LabelAllArgs;
use judge::LabelJudgeArgs;
use sample::LabelSampleArgs;
use verbalize::LabelVerbalizeArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum LabelCommand {
    /// Draw instances from repositories: holes in varied code, each with its contexts and three retrieved fragments
    Sample(Box<LabelSampleArgs>),
    /// Label instances: does retrieval bring a model's completion closer to the target?
    #[command(visible_alias = "score")]
    Judge(Box<LabelJudgeArgs>),
    /// Turn labels into training sequences with <eof> and <cc>: token ids and masks as JSONL and Parquet
    Verbalize(Box<LabelVerbalizeArgs>),
    /// Sample, judge and verbalize in one command, from repositories to training sequences; an interrupted run resumes
    All(Box<LabelAllArgs>),
}

pub(crate) fn run(command: &LabelCommand) -> Result<()> {
    match command {
        LabelCommand::Sample(args) => sample::run(args),
        LabelCommand::Judge(args) => judge::run(args),
        LabelCommand::Verbalize(args) => verbalize::run(args),
        LabelCommand::All(args) => all::run(args),
    }
}
