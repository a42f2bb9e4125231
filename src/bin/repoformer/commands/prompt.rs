//! `prompt`

use std::path::Path;

use anyhow::{Result, bail};
use repoformer::pipeline::{self, Experiment, artifact_text};
use repoformer::query::Mode;

use super::session::{WITHOUT_PREDICTION, modes, stage};
use crate::args::PromptArgs;
use crate::output::{Printer, write_data};

pub(crate) fn run(args: &PromptArgs, printer: &mut Printer) -> Result<()> {
    stage("prompt", &args.settings, printer, |experiment, settings| {
        let modes = modes(settings, &WITHOUT_PREDICTION)?;
        let report = pipeline::prompt(experiment, &modes)?;
        if let Some(output) = &args.output {
            copy(experiment, &modes, output)?;
        }
        Ok(report)
    })
}

/// Writes the prompts of the one mode asked for to where the user wants them.
pub(super) fn copy(experiment: &Experiment, modes: &[Mode], output: &Path) -> Result<()> {
    let [mode] = modes else {
        bail!("-o takes the prompts of one mode: choose it with --mode")
    };
    write_data(output, &artifact_text(&experiment.layout.prompts(*mode))?)
}
