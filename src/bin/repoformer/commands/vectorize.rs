//! `vectorize`

use anyhow::Result;
use repoformer::pipeline;

use super::session::{FIRST, modes, stage};
use crate::args::StageArgs;
use crate::output::Printer;

pub(crate) fn run(args: &StageArgs, printer: &mut Printer) -> Result<()> {
    stage(
        "vectorize",
        &args.settings,
        printer,
        |experiment, settings| {
            let mut report = pipeline::vectorize_repositories(experiment)?;
            if experiment.tasks.is_some() {
                report.merge(pipeline::vectorize_queries(
                    experiment,
                    &modes(settings, &FIRST)?,
                )?);
            }
            Ok(report)
        },
    )
}
