//! `policy`: when to retrieve.

mod clocks;
mod explain;
mod labels;
mod page;
pub(super) mod scored;
mod sweep;
mod tables;

use anyhow::Result;

use crate::args::{PolicyArgs, PolicyCommand};

pub(crate) fn run(args: &PolicyArgs) -> Result<()> {
    match &args.command {
        PolicyCommand::Train(args) => labels::run_train(args),
        PolicyCommand::Explain(args) => explain::run(args),
        PolicyCommand::Sweep(args) => sweep::run(args),
        PolicyCommand::Features(args) => labels::run_features(args),
    }
}
