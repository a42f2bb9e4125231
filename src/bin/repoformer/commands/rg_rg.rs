//! `rg-rg`: the same stages as any other mode, with predictions as the query source.

use std::path::Path;

use anyhow::Result;
use repoformer::pipeline::{self, Experiment, Report};
use repoformer::predictions::Joined;
use repoformer::query::Mode;

use super::prompt::copy;
use super::session::{check_not_tasks, label, open, single};
use super::window::read_predictions;
use crate::args::RgRgArgs;
use crate::output::{Printer, check_output};

pub(crate) fn run(args: &RgRgArgs, printer: &mut Printer) -> Result<()> {
    let Some(settings) = open(&args.settings)? else {
        return Ok(());
    };
    check_not_tasks(&settings, args.output.as_deref())?;
    let predictions: Vec<&Path> = args.predictions.as_deref().into_iter().collect();
    check_output(args.output.as_deref(), &predictions)?;
    let experiment = single(&settings, printer)?;
    let joined = read_predictions(&experiment, &settings, args.predictions.as_deref())?;
    let report = stages(&experiment, &joined)?;
    printer.problems(&joined.problems);
    printer.report(&label("rg-rg", &experiment), &report);
    if let Some(output) = &args.output {
        copy(&experiment, Mode::Prediction, output)?;
    }
    Ok(())
}

/// Windows of the predictions, their vectors, the search, the prompts.
pub(super) fn stages(experiment: &Experiment, joined: &Joined) -> Result<Report> {
    let mode = [Mode::Prediction];
    let mut report = pipeline::window_queries(experiment, &mode, Some(joined))?;
    report.merge(pipeline::vectorize_queries(experiment, &mode)?);
    report.merge(pipeline::search(experiment, &mode)?);
    report.merge(pipeline::prompt(experiment, &mode)?);
    Ok(report)
}
