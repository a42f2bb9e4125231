//! Dry runs of a stage.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use repoformer_study::stage_log::StageLog;

use crate::output::{is_verbose, write_data};
use crate::table::{ScoreFormat, format_results};

/// Flags of a stage that can run dry.
#[derive(Debug, Clone, Args)]
pub(crate) struct DryRunFlags {
    /// Print what would be built, and why, without building it
    #[arg(long)]
    dry_run: bool,
    /// Format of the --dry-run output
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "dry_run")]
    format: ScoreFormat,
}

impl DryRunFlags {
    /// Returns an empty log of the stage.
    pub(crate) fn log(&self) -> StageLog {
        stage_log(self.dry_run)
    }

    /// Prints the artifacts of a dry run.
    pub(crate) fn finish(&self, log: &StageLog) -> Result<()> {
        if log.is_dry() {
            write_data(Path::new("-"), format_results(log, self.format)?)
        } else {
            Ok(())
        }
    }
}

/// Returns an empty log of stages, which are run or planned.
pub(crate) fn stage_log(is_dry: bool) -> StageLog {
    StageLog::new(is_dry, is_verbose())
}
