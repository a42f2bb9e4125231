//! `complete`

use std::path::Path;

use anyhow::{Result, anyhow};
use repoformer::pipeline::{self, artifact_text, complete_file};
use repoformer::query::Mode;

use super::prompt::check_one_mode;
use super::session::{
    WITHOUT_PREDICTION, check_completable, check_not_tasks, completion, label, modes, open,
    without_repositories,
};
use crate::args::CompleteArgs;
use crate::output::{Printer, check_output, group, hinted, write_data};

pub(crate) fn run(args: &CompleteArgs, printer: &mut Printer) -> Result<()> {
    let Some(settings) = open(&args.settings)? else {
        return Ok(());
    };
    let completion = completion(&settings, args.max_lines)?;
    if let Some(prompts) = &args.prompts {
        check_output(args.output.as_deref(), &[prompts])?;
        let bar = printer.bar("complete", 0);
        let predictions = complete_file(prompts, &completion, &|| bar.inc(1))?;
        bar.finish_and_clear();
        write_data(
            args.output.as_deref().unwrap_or(Path::new("-")),
            &predictions.text,
        )?;
        printer.problems(&predictions.problems);
        printer.note(format!(
            "complete: {} predictions",
            group(predictions.records() as u64)
        ));
        return Ok(());
    }
    check_not_tasks(&settings, args.output.as_deref())?;
    let experiment = without_repositories(&settings, printer)?;
    if experiment.tasks.is_none() && settings.text("benchmark").is_none() {
        return Err(hinted(
            anyhow!("neither --tasks nor --benchmark is set, so there are no prompts to complete"),
            "name the data set as for `repoformer prompt`, or any prompts with --prompts",
        ));
    }
    check_completable(&experiment)?;
    let modes: Vec<Mode> = modes(&settings, &WITHOUT_PREDICTION)?;
    if args.output.is_some() {
        check_one_mode(&modes)?;
    }
    let total = experiment.tasks.as_ref().map_or(0, |set| set.tasks.len()) * modes.len();
    let bar = printer.bar("complete", total);
    let report = pipeline::complete(&experiment, &modes, &completion, &|| bar.inc(1));
    bar.finish_and_clear();
    printer.report(&label("complete", &experiment), &report?);
    if let Some(output) = &args.output {
        write_data(
            output,
            &artifact_text(&experiment.layout.predictions(modes[0], &completion.model))?,
        )?;
    }
    Ok(())
}
