//! Files of a cache folder: their kinds, whether they are current as far as their headers show, and their removal.
//!
//! This program owns a file if it is in the folder of a stage and has the content that the stage writes: a header, or first lines
//! as the stage writes them. All other files are foreign, and never removed.

mod compare;
mod file;
mod recognise;

use std::path::Path;

use compare::{HeadedFile, compare_inputs, compare_prompts, spread};
use recognise::{copies, is_beside, is_copies, read_file};
use repoformer_store::artifact;
use repoformer_store::error::{Error, Result};
use walkdir::WalkDir;

pub use file::{CacheFile, CacheSources, Condition, RepositoryDigests, STAGES};

/// Removes from a cache the temporary files of programs that were killed.
pub fn remove_abandoned(cache: &Path) {
    for stage in STAGES {
        let walk = WalkDir::new(cache.join(stage)).into_iter();
        for entry in walk.filter_entry(|entry| !is_copies(entry, cache)).flatten() {
            artifact::remove_abandoned(entry.path());
        }
    }
}

/// Lists the files of a cache in the order of the stages, then of their paths.
///
/// # Errors
/// The folder cannot be read.
pub fn cache_files(cache: &Path, sources: &CacheSources) -> Result<Vec<CacheFile>> {
    let mut found: Vec<HeadedFile> = Vec::new();
    let mut walk = WalkDir::new(cache).min_depth(1).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|e| {
            let path = e.path().unwrap_or(cache).to_owned();
            Error::reading(&path, "list this folder", e.into())
        })?;
        if entry.file_type().is_dir() {
            if is_copies(&entry, cache) {
                walk.skip_current_dir();
                found.push((copies(&entry, cache), None));
            }
            continue;
        }
        if !is_beside(entry.path()) {
            found.push(read_file(&entry, cache, sources));
        }
    }
    compare_inputs(&mut found);
    spread(&mut found);
    compare_prompts(&mut found, sources);
    spread(&mut found);
    let place = |file: &CacheFile| STAGES.iter().position(|stage| Some(*stage) == file.stage);
    let mut files: Vec<CacheFile> = found.into_iter().map(|(file, _)| file).collect();
    files.sort_by_key(|file| (place(file).unwrap_or(STAGES.len()), file.path.clone()));
    Ok(files)
}
