//! `policy train`

use anyhow::Result;
use repoformer::selective::policy::model::train;

use super::explain::trained_on;
use super::labels::read_labels;
use crate::args::PolicyTrainArgs;
use crate::output::{self, write_data};

pub(super) fn run(args: &PolicyTrainArgs) -> Result<()> {
    let (kind, method) = (args.policy.parse()?, args.calibration.parse()?);
    let examples = read_labels(&args.labels, &args.output)?;
    let policy = train(&examples, kind, method)?;
    write_data(&args.output, policy.to_text().as_bytes())?;
    let training = &policy.training;
    if training.repositories.len() < 2 {
        output::warning(format!(
            "all instances are of one repository ({}), so the held-out quality is measured on it as well",
            training.repositories.join(", ")
        ));
    }
    output::note(format!("policy train: {kind}: {}", trained_on(training)));
    Ok(())
}
