//! `merge`: combines the files of shards.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use repoformer_core::repository::Shard;
use repoformer_core::retrieve::Mode;
use repoformer_formats::merge::{merge, merge_sequences};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Experiment, IN_CONTEXT};
use repoformer_study::choices::modes;
use repoformer_study::experiments::{check_completable, completion_of, experiments_of};

use super::dry_run::stage_log;
use crate::commands::session::{check_not_tasks, open};
use crate::output::{self, check_folder, check_output, fail, format_count, group};
use crate::settings::{SettingFlags, Settings};

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Files of all shards of one command, in any order, or folders of `label verbalize` [default: the data set's prompts and
    /// predictions in the cache]
    #[arg(value_name = "PART", requires = "output", conflicts_with = "shards")]
    parts: Vec<PathBuf>,
    /// Number of shards, the N of --shard I/N in the stages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    shards: Option<u64>,
    /// File for the combined records (compressed if the name ends in .gz or .zst), or a folder if the inputs are folders
    #[arg(short, long, value_name = "FILE|DIR", requires = "parts")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    open_many();
    match (&args.output, args.shards) {
        (Some(output), _) => of_files(&args.parts, output, &settings),
        (None, Some(shards)) => of_cache(shards, &settings),
        (None, None) => fail(
            "nothing to merge: neither files nor --shards are named",
            "name the files of all shards and -o FILE, or the data set and --shards N",
        ),
    }
}

/// Raises the limit of open files as far as the system allows: all parts are open at once, possibly thousands.
fn open_many() {
    #[cfg(target_os = "linux")]
    if let Ok((_, most)) =
        nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)
    {
        // If this fails, the error for the file that cannot be opened is clear enough.
        let _ =
            nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, most, most);
    }
}

fn of_files(parts: &[PathBuf], output: &Path, settings: &Settings) -> Result<()> {
    if output == Path::new("-") {
        bail!(
            "-o cannot be standard output, since the file is written only when it is complete; name a file"
        );
    }
    check_not_tasks(settings, Some(output))?;
    check_output(Some(output), parts)?;
    let are_folders: Vec<bool> = parts.iter().map(|part| part.is_dir()).collect();
    let merged = match (are_folders.contains(&true), are_folders.contains(&false)) {
        (true, false) => {
            check_folder(output, "merge")?;
            merge_sequences(parts, output)?
        }
        (true, true) => {
            return fail(
                "files and folders cannot be merged together",
                "name only folders of `label verbalize`, or only files of one other command",
            );
        }
        _ => merge(parts, output)?,
    };
    for (part, lacking) in &merged.lacking {
        output::count_failure(format!(
            "{}: lacks {}, since their inputs were missing, as the command that wrote the file reported",
            part.display(),
            format_count(*lacking, "record")
        ));
    }
    let (records, parts) = (group(merged.records as usize), group(merged.parts));
    output::note(format!("merge: {records} records of {parts} shards to {}", output.display()));
    Ok(())
}

fn of_cache(shards: u64, settings: &Settings) -> Result<()> {
    let mut log = stage_log(false);
    let is_embedded = settings.model.as_str() == IN_CONTEXT;
    // No server is asked.
    for (experiment, settings) in experiments_of(settings, &[Mode::Without])? {
        check_completable(&experiment)?;
        let has_results = results_of_tests(&experiment, shards);
        let modes =
            there(&experiment, shards, modes(&settings, experiment.known_modes())?, has_results)?;
        let completion = completion_of(&experiment, &settings, *settings.seed, !is_embedded)?;
        log.stage("merge", &experiment, || {
            Ok(pipeline::merge(&experiment, shards, &modes, &completion)?)
        })?;
    }
    Ok(())
}

/// Merges the shards' unit-test results. Returns false if no shard has any.
#[cfg(target_os = "linux")]
fn results_of_tests(experiment: &Experiment, count: u64) -> bool {
    let path = |shard| experiment.paths().of_shard(shard).exec_results();
    let (there, lost): (Vec<Shard>, Vec<Shard>) =
        Shard::all(count).partition(|shard| path(*shard).exists());
    if there.is_empty() {
        return false;
    }
    for shard in lost {
        output::count_failure(format!(
            "unit-test results of shard {shard} are missing; run `eval --exec --shard {shard}`"
        ));
    }
    let whole = experiment.paths().exec_results();
    let parts: Vec<PathBuf> = there.into_iter().map(path).collect();
    match repoformer_execute::gather(&whole, &parts) {
        Ok(results) => output::note(format!(
            "merge: {} unit-test results to {}",
            group(results),
            whole.display()
        )),
        // Prompts and predictions are merged nevertheless.
        Err(error) => output::problems(&[error]),
    }
    true
}

#[cfg(not(target_os = "linux"))]
fn results_of_tests(_: &Experiment, _: u64) -> bool {
    false
}

/// Returns the modes for which at least one shard has prompts.
fn there(
    experiment: &Experiment,
    count: u64,
    mut modes: Vec<Mode>,
    has_results: bool,
) -> Result<Vec<Mode>> {
    let path = |mode, shard| experiment.paths().of_shard(shard).prompts(mode);
    let has = |mode: Mode| Shard::all(count).any(|shard| path(mode, shard).exists());
    modes.retain(|mode| has(*mode));
    if modes.is_empty() && !has_results {
        let first = path(Mode::Without, Shard { index: 0, count });
        let folder = first.parent().unwrap_or(&first).display();
        return fail(
            format!("{folder}: holds no prompts of {count} shards"),
            "run `prompt --shard I/N` for each shard, and use the same N and settings here",
        );
    }
    Ok(modes)
}
