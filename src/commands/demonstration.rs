//! Demonstration: the data embedded in the program, and the settings of a run without data of its own.

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer_pipeline::{PlanVerdict, PlannedArtifact};
use repoformer_store::artifact::write_file;
use repoformer_store::files;
use tempfile::TempDir;

use crate::commands::session::begin;
use crate::output::screen;
use crate::settings::{SettingFlags, Settings};

/// Data of the demonstration, for a program that runs outside its project.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));
}

/// Folder of the repositories, as in `configs/demo.toml`.
const REPOS: &str = "data/repos";
/// Task files, as in `configs/demo.toml`.
const TASKS: [&str; 3] =
    ["data/tasks/line.jsonl", "data/tasks/api.jsonl", "data/tasks/function.jsonl"];

/// Paths and texts of the demonstration's files.
pub(super) const FILES: &[(&str, &str)] = embedded::FILES;

/// Returns the names of the demonstration's repositories.
pub(super) fn repositories() -> Vec<String> {
    let below = |path: &str| Some(path.strip_prefix(REPOS)?.split('/').nth(1)?.to_owned());
    let mut names: Vec<String> = FILES.iter().filter_map(|(path, _)| below(path)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Settings of a run, and the location of the demonstration's files.
pub(super) struct DemonstrationStart {
    pub(super) settings: Settings,
    /// True if the demonstration's files are read from the cache, because they are not in the working folder.
    pub(super) is_elsewhere: bool,
    /// Folder of a dry run's files, which is removed together with this value.
    pub(super) removed: Option<TempDir>,
}

/// Returns the folder for the demonstration's files if they are not in the working folder.
fn folder(settings: &Settings) -> PathBuf {
    settings.cache_dir.join("demo")
}

/// Returns the paths of the demonstration's files in a folder, their texts, and whether they exist with these texts.
fn files(root: &Path) -> impl Iterator<Item = (PathBuf, &'static str, bool)> {
    FILES.iter().map(move |(path, text)| {
        let path = root.join(path);
        let is_there = files::read_companion(&path).ok().as_deref() == Some(text.as_bytes());
        (path, *text, is_there)
    })
}

/// Returns the plan for writing the demonstration's files.
pub(super) fn plan(settings: &Settings) -> Vec<PlannedArtifact> {
    let root = folder(settings);
    let planned = files(&root).map(|(path, _, is_there)| {
        let verdict = match (is_there, path.exists()) {
            (true, _) => PlanVerdict::Current,
            (false, false) => PlanVerdict::Missing,
            (false, true) => PlanVerdict::Damaged("its text differs from the program's".into()),
        };
        PlannedArtifact::file(path, "file of the demonstration", verdict)
    });
    planned.collect()
}

/// Returns the given settings, or the demonstration's settings if these name no data.
pub(super) fn settings(flags: &SettingFlags, is_dry: bool) -> Result<DemonstrationStart> {
    let given = Settings::resolve(flags, screen())?;
    if given.repos_dir.is_some() || !given.tasks.is_empty() {
        return Ok(DemonstrationStart {
            settings: begin(given, flags)?,
            is_elsewhere: false,
            removed: None,
        });
    }
    let has_settings = given.profile.is_some() || given.config.is_some();
    let settings = Settings::with_presets(flags, screen(), |preset| {
        if has_settings {
            // Settings without data use the demonstration's.
            preset.repos_dir.fix(Some(REPOS.into()), "run");
            preset.tasks.fix(TASKS.map(PathBuf::from).to_vec(), "run");
        } else {
            preset.profile.fix(Some("demo".into()), "run");
        }
    })?;
    let mut settings = begin(settings, flags)?;
    // Another project's data/repos is not the demonstration's.
    let here = settings.repos_dir.iter().chain(settings.tasks.iter()).all(|path| path.exists());
    let is_elsewhere = !here && settings.repos_dir.is_some();
    let mut removed = None;
    if is_elsewhere {
        let root = if is_dry {
            removed.insert(tempfile::tempdir()?).path().to_owned()
        } else {
            folder(&settings)
        };
        for (path, text, _) in files(&root).filter(|(.., is_there)| !is_there) {
            write_file(&path, text.as_bytes())?;
        }
        settings.change(|values| values.move_paths(&root));
    }
    Ok(DemonstrationStart { settings, is_elsewhere, removed })
}
