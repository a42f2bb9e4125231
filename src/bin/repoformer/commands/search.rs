//! `search`

use anyhow::Result;
use repoformer::pipeline;

use super::session::{FIRST, modes, stage};
use crate::args::StageArgs;
use crate::output::Printer;

pub(crate) fn run(args: &StageArgs, printer: &mut Printer) -> Result<()> {
    stage("search", &args.settings, printer, |experiment, settings| {
        Ok(pipeline::search(experiment, &modes(settings, &FIRST)?)?)
    })
}
