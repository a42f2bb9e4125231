//! `search`

use std::path::Path;

use anyhow::{Result, bail};
use repoformer::pipeline::{self, Experiment, trec_run, write_beir};
use repoformer::retrieve::Mode;
use repoformer::store::artifact::{digest, write_file};
use repoformer::store::manifest::Manifest;

use super::prompt::check_one_mode;
use super::session::{FIRST, check_not_tasks, check_single, modes, stage};
use crate::args::{ExportFormat, SearchArgs};
use crate::output::write_data;

pub(crate) fn run(args: &SearchArgs) -> Result<()> {
    stage("search", &args.settings, |experiment, settings| {
        let modes = modes(settings, &FIRST)?;
        let export = args.export.zip(args.output.as_deref());
        if let Some((_, output)) = export {
            check_not_tasks(settings, Some(output))?;
            check_single(settings)?;
            check_one_mode(&modes)?;
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
        ExportFormat::Trec => {
            let run = trec_run(experiment, mode)?.into_bytes();
            write_data(output, &run)?;
            // A run has no place for it, so that it lies beside.
            if output.is_file() {
                let mut name = output.as_os_str().to_owned();
                name.push(".manifest.json");
                let mut manifest = manifest("trec-run", experiment, mode)?;
                manifest.count("lines", run.iter().filter(|&&byte| byte == b'\n').count());
                manifest.digest("run", &digest(&run));
                write_file(Path::new(&name), manifest_text(&manifest)?.as_bytes())?;
            }
            Ok(())
        }
        ExportFormat::Beir if output == Path::new("-") => {
            bail!("a BEIR collection is a folder; name it with -o")
        }
        ExportFormat::Beir => {
            write_beir(experiment, mode, output)?;
            let manifest = manifest("beir-collection", experiment, mode)?;
            let path = output.join("manifest.json");
            Ok(write_file(&path, manifest_text(&manifest)?.as_bytes())?)
        }
    }
}

fn manifest_text(manifest: &Manifest) -> Result<String> {
    Ok(serde_json::to_string_pretty(&manifest.to_record())? + "\n")
}

/// Manifest of an exported search.
fn manifest(kind: &str, experiment: &Experiment, mode: Mode) -> Result<Manifest> {
    let layout = &experiment.layout;
    let mut manifest = Manifest::new(kind);
    manifest.setting("mode", mode.name());
    manifest.setting("top-k", layout.top_k);
    manifest.setting("language", layout.language.name());
    manifest.setting("repositories", experiment.repositories.clone());
    manifest.setting("query", layout.form.to_string());
    manifest.setting("query-lines", layout.query_lines);
    manifest.setting("ranker", layout.ranker.clone());
    manifest.setting("align", layout.align.clone());
    if let Some(tasks) = &experiment.tasks {
        manifest.input("tasks", &tasks.path)?;
        manifest.count("tasks", tasks.tasks.len());
    }
    Ok(manifest)
}
