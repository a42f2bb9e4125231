//! `vectorize`

use anyhow::Result;
use repoformer::pipeline;
use repoformer::retrieve::dense::write_texts;

use super::session::{FIRST, modes, stage};
use crate::args::VectorizeArgs;

pub(crate) fn run(args: &VectorizeArgs) -> Result<()> {
    stage("vectorize", &args.settings, |experiment, settings| {
        if let Some(path) = &args.write_texts {
            let modes = match experiment.tasks {
                Some(_) => modes(settings, &FIRST)?,
                None => Vec::new(),
            };
            write_texts(path, &pipeline::dense_texts(experiment, &modes)?)?;
            return Ok(pipeline::StageReport::default());
        }
        let mut report = pipeline::vectorize_repositories(experiment)?;
        if experiment.tasks.is_some() {
            report.merge(pipeline::vectorize_queries(experiment, &modes(settings, &FIRST)?)?);
        }
        Ok(report)
    })
}
