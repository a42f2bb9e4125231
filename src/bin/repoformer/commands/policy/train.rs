//! `policy train`

use anyhow::Result;
use repoformer::selective::policy::model::train;

use super::explain::trained_on;
use super::labels::read_labels;
use crate::args::PolicyTrainArgs;
use crate::output::{Printer, write_data};

pub(super) fn run(args: &PolicyTrainArgs, printer: &mut Printer) -> Result<()> {
    let (kind, method) = (args.policy.parse()?, args.calibration.parse()?);
    let examples = read_labels(&args.labels, &args.output, printer)?;
    let policy = train(&examples, kind, method)?;
    write_data(&args.output, policy.to_text().as_bytes())?;
    let training = &policy.training;
    if training.repositories.len() < 2 {
        printer.warning(format!(
            "all instances are of one repository ({}), so the held-out quality is measured on it as well",
            training.repositories.join(", ")
        ));
    }
    printer.note(format!("policy train: {kind}: {}", trained_on(training)));
    Ok(())
}
