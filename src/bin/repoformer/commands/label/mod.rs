//! `label`: training data for selective retrieval.

mod all;
mod judge;
mod sample;
mod verbalize;

use anyhow::Result;

use crate::args::{LabelArgs, LabelCommand};

pub(crate) fn run(args: &LabelArgs) -> Result<()> {
    match &args.command {
        LabelCommand::Sample(args) => sample::run(args),
        LabelCommand::Judge(args) => judge::run(args),
        LabelCommand::Verbalize(args) => verbalize::run(args),
        LabelCommand::All(args) => all::run(args),
    }
}
