//! What belongs to a repository: everything in its folder except caches of this program, which hold copies of the repository's
//! files, and the targets of links out of it.

use std::path::Path;

use repoformer_store::artifact::is_artifact;
use repoformer_store::files;
use walkdir::{DirEntry, WalkDir};

/// Folders of a cache; nobody removes all of them and keeps the cache.
const STAGES: [&str; 5] = ["window", "vector", "retrieval", "prompts", "predictions"];

/// True if a folder is a cache of this program: it has artifacts where the stages write them.
pub(super) fn is_cache(folder: &Path) -> bool {
    STAGES.into_iter().any(|stage| holds_artifact(&folder.join(stage)))
}

/// True if the folder of a stage has artifacts where the stage writes them.
fn holds_artifact(stage: &Path) -> bool {
    let files = WalkDir::new(stage).min_depth(2).max_depth(3).into_iter();
    let mut files = files.flatten().filter(|entry| entry.file_type().is_file());
    files.any(|entry| is_artifact(entry.path()).unwrap_or(false))
}

/// Returns the cache of this program that a walk has entered, if an entry is the folder of one of its stages. Checking only
/// such folders is cheaper than calling [`is_cache`] for every folder.
pub(super) fn cache_around(entry: &DirEntry) -> Option<&Path> {
    let is_stage = entry.depth() > 1
        && entry.file_type().is_dir()
        && STAGES.iter().any(|stage| entry.file_name() == *stage);
    entry.path().parent().filter(|_| is_stage && holds_artifact(entry.path()))
}

/// Describes the target of a path, if it is outside of the folder `real`, a canonical path. A link that leads nowhere does not
/// lead out.
pub(super) fn leads_out(real: &Path, path: &Path) -> Option<String> {
    lies_outside(real, &files::canonicalize(path).ok()?)
}

/// Describes a file, by its path without links, if it is outside of the folder `real`, a canonical path.
pub(super) fn lies_outside(real: &Path, place: &Path) -> Option<String> {
    (!place.starts_with(real)).then(|| {
        format!("a link out of the repository, to {}; put a copy in its place", place.display())
    })
}

/// True if an entry of a walk is hidden; the folder where the walk begins is not.
pub(super) fn is_hidden(entry: &DirEntry) -> bool {
    entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
}
