//! `label`: training data for selective retrieval.

mod all;
mod judge;
mod sample;
mod verbalize;

use anyhow::Result;

use crate::args::{LabelArgs, LabelCommand};
use crate::output::Printer;

pub(crate) fn run(args: &LabelArgs, printer: &mut Printer) -> Result<()> {
    match &args.command {
        LabelCommand::Sample(args) => sample::run(args, printer),
        LabelCommand::Judge(args) => judge::run(args, printer),
        LabelCommand::Verbalize(args) => verbalize::run(args, printer),
        LabelCommand::All(args) => all::run(args, printer),
    }
}
