//! `prompt`

use std::path::Path;

use anyhow::{Result, bail};
use repoformer::pipeline::{self, Experiment, artifact_text};
use repoformer::retrieve::Mode;

use super::session::{
    WITHOUT_PREDICTION, check_not_tasks, check_single, experiments_of, label, modes, open,
};
use crate::args::PromptArgs;
use crate::output::{self, write_data};

pub(crate) fn run(args: &PromptArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let modes = modes(&settings, &WITHOUT_PREDICTION)?;
    if args.output.is_some() {
        check_not_tasks(&settings, args.output.as_deref())?;
        check_single(&settings)?;
        check_one_mode(&modes)?;
    }
    for experiment in experiments_of(&settings, &modes)? {
        let report = pipeline::prompt(&experiment, &modes)?;
        if let Some(output) = &args.output {
            copy(&experiment, modes[0], output)?;
        }
        output::report(&label("prompt", &experiment), &report);
    }
    Ok(())
}

/// Checks that `-o` takes the records of one mode.
pub(super) fn check_one_mode(modes: &[Mode]) -> Result<()> {
    match modes {
        [_] => Ok(()),
        _ => bail!("-o takes the records of one mode: choose it with --mode"),
    }
}

/// Writes a mode's prompts to where the user wants them.
pub(super) fn copy(experiment: &Experiment, mode: Mode, output: &Path) -> Result<()> {
    write_data(output, &artifact_text(&experiment.layout.prompts(mode))?)
}
