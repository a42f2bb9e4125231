//! Files of a shard's prompts, predictions and scores, as `merge` reads them.

use std::path::Path;

use anyhow::{Result, bail};
use repoformer_core::repository::Shard;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::TaskSet;
use repoformer_formats::merge::{Positions, SHARD_PARAMETERS, ShardFile, with_shard};
use repoformer_pipeline::{Experiment, artifact_text};
use repoformer_store::artifact::{Identity, digest, jsonl_header};
use repoformer_store::manifest::Manifest;
use serde::Deserialize;
use serde_json::Value;

use crate::commands::eval_args::EvalArgs;
use crate::output::{write_data, write_shard_beside};

/// Copies an artifact of prompts or predictions to the output. For a shard, also writes a manifest next to the copy.
pub(super) fn copy(experiment: &Experiment, artifact: &Path, output: &Path) -> Result<()> {
    let text = artifact_text(artifact)?;
    write_data(output, &text)?;
    let (Some(shard), Some(tasks)) = (experiment.layout.shard, &experiment.tasks) else {
        return Ok(());
    };
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut positions = Positions::default();
    for (number, line) in lines.iter().enumerate() {
        let row = match row_of(line) {
            Some(row) => row,
            // Tasks that are written as they are have one line each, without a row.
            None if lines.len() == tasks.tasks().len() => tasks.tasks()[number].row as u64,
            None => bail!("{}: record {} has no row number", artifact.display(), number + 1),
        };
        positions.add(row);
    }
    let mut inputs = vec![("tasks", experiment.all_tasks().map_or(tasks, |all| all).digest())];
    let identity = jsonl_header(artifact)?.identity;
    if let Some(mode) = identity.parameters.get("mode").and_then(|mode| mode.parse().ok()) {
        inputs.extend(prompts_digest(experiment, mode).map(|digest| ("prompts", digest)));
    }
    write_beside(output, &identity, &inputs, shard, &positions)
}

/// Returns a digest of the settings that the prompts of all shards share; `None` if the prompts are not in the cache.
pub(super) fn prompts_digest(experiment: &Experiment, mode: Mode) -> Option<String> {
    let mut parameters = jsonl_header(&experiment.paths().prompts(mode)).ok()?.identity.parameters;
    parameters.retain(|name, _| !SHARD_PARAMETERS.contains(&&**name));
    Some(digest(format!("{parameters:?}").as_bytes()))
}

/// Writes the manifest of a shard's file next to it; `inputs` are names and digests that all shards share.
pub(super) fn write_beside(
    output: &Path,
    identity: &Identity,
    inputs: &[(&str, String)],
    shard: Shard,
    positions: &Positions,
) -> Result<()> {
    let mut manifest = Manifest::new(&identity.kind);
    for (name, value) in
        identity.parameters.iter().filter(|(name, _)| !SHARD_PARAMETERS.contains(&&***name))
    {
        manifest.setting(name, value.as_str());
    }
    inputs.iter().for_each(|(name, digest)| manifest.digest(name, digest));
    manifest.count("records", positions.of_each().count());
    write_shard_beside(output, manifest, shard, positions)
}

/// Returns the row in the record of a prompt or prediction.
fn row_of(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct RowRecord {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        row: u64,
    }
    serde_json::from_slice(line).ok().map(|record: RowRecord| record.metadata.row)
}

/// Returns the positions of records among the records of all shards: `rows` of one set of predictions after another.
pub(super) fn positions(all: &TaskSet, rows: impl Iterator<Item = Vec<usize>>) -> Positions {
    let of_a_set = all.tasks().last().map_or(0, |task| task.row + 1);
    let mut positions = Positions::default();
    for (set, rows) in rows.enumerate() {
        rows.iter().for_each(|row| positions.add((set * of_a_set + row) as u64));
    }
    positions
}

/// Adds the shard and the positions of its records to a manifest, if the file belongs to a shard.
pub(super) fn of_part(manifest: Value, part: Option<(Shard, Positions)>) -> Value {
    match part {
        Some((shard, positions)) => with_shard(manifest, shard, &positions),
        None => manifest,
    }
}

/// Adds predictions to a manifest, except a shard's own cached ones, which differ between shards. Returns their name in the
/// manifest.
pub(super) fn input_predictions(
    manifest: &mut Manifest,
    name: &str,
    path: &Path,
    experiment: &Experiment,
    args: &EvalArgs,
) -> Result<String> {
    let is_file_of_shard = experiment.layout.shard.is_some() && args.predictions.is_some();
    // Files of other shards have other names.
    let name =
        if is_file_of_shard { "predictions".to_owned() } else { format!("predictions.{name}") };
    match (experiment.layout.shard, ShardFile::find(path)?) {
        (Some(_), Some(part)) => manifest.digest(&name, &part.digest()),
        // From the cache.
        (Some(_), None) if args.predictions.is_none() => {}
        _ => manifest.input(&name, path)?,
    }
    Ok(name)
}
