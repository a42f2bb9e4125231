//! `policy`: when to retrieve.

mod clocks;
mod explain;
mod features;
mod labels;
mod page;
pub(super) mod scored;
mod sweep;
mod tables;
mod train;

use anyhow::Result;

use crate::args::{PolicyArgs, PolicyCommand};
use crate::output::Printer;

pub(crate) fn run(args: &PolicyArgs, printer: &mut Printer) -> Result<()> {
    match &args.command {
        PolicyCommand::Train(args) => train::run(args, printer),
        PolicyCommand::Explain(args) => explain::run(args),
        PolicyCommand::Sweep(args) => sweep::run(args, printer),
        PolicyCommand::Features(args) => features::run(args, printer),
    }
}
