//! `search`

use std::path::Path;

use anyhow::{Result, bail};
use repoformer::pipeline::{self, Experiment, trec_run, write_beir};
use repoformer::query::Mode;

use super::prompt::check_one_mode;
use super::session::{FIRST, check_not_tasks, check_single, modes, stage};
use crate::args::{ExportFormat, SearchArgs};
use crate::output::{Printer, write_data};

pub(crate) fn run(args: &SearchArgs, printer: &mut Printer) -> Result<()> {
    stage("search", &args.settings, printer, |experiment, settings| {
        let modes = modes(settings, &FIRST)?;
        let export = args.export.zip(args.output.as_deref());
        if let Some((_, output)) = export {
            check_not_tasks(settings, Some(output))?;
            check_single(settings)?;
            check_one_mode(&modes)?;
            if experiment.chunks.is_none() {
                bail!(
                    "--export writes rankings of chunks; add --unit chunks, or a --profile that searches them"
                );
            }
        }
        let report = pipeline::search(experiment, &modes)?;
        if let Some((format, output)) = export {
            write(experiment, modes[0], format, output)?;
        }
        Ok(report)
    })
}

fn write(experiment: &Experiment, mode: Mode, format: ExportFormat, output: &Path) -> Result<()> {
    match format {
        ExportFormat::Trec => write_data(output, &trec_run(experiment, mode)?),
        ExportFormat::Beir if output == Path::new("-") => {
            bail!("a BEIR collection is a folder; name it with -o")
        }
        ExportFormat::Beir => Ok(write_beir(experiment, mode, output)?),
    }
}
