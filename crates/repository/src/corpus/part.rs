//! Parts of a repository: of what lies in its folder, all but caches of this program, since these have copies of the repository's
//! files, and what links out of it lead to.

use std::path::Path;

use repoformer_store::artifact::is_artifact;
use repoformer_store::files;
use walkdir::{DirEntry, WalkDir};

/// Folders of a cache, of which no one removes all.
const STAGES: [&str; 5] = ["window", "vector", "retrieval", "prompts", "predictions"];

/// Whether a folder is a cache of this program: artifacts lie where its stages put them.
pub(super) fn is_cache(folder: &Path) -> bool {
    STAGES.into_iter().any(|stage| holds_artifact(&folder.join(stage)))
}

/// Whether the folder of a stage has artifacts where they are put.
fn holds_artifact(stage: &Path) -> bool {
    let files = WalkDir::new(stage).min_depth(2).max_depth(3).into_iter();
    let mut files = files.flatten().filter(|entry| entry.file_type().is_file());
    files.any(|entry| is_artifact(entry.path()).unwrap_or(false))
}

/// The cache of this program that a walk has come into, where an entry is the folder of one of its stages. To ask it of these alone
/// is cheaper than [`is_cache`] of every folder.
pub(super) fn cache_around(entry: &DirEntry) -> Option<&Path> {
    let is_stage = entry.depth() > 1
        && entry.file_type().is_dir()
        && STAGES.iter().any(|stage| entry.file_name() == *stage);
    entry.path().parent().filter(|_| is_stage && holds_artifact(entry.path()))
}

/// Where a path leads if that is out of the folder `real`, a canonical path; in words. A link that leads nowhere does not.
pub(super) fn leads_out(real: &Path, path: &Path) -> Option<String> {
    let target = files::canonicalize(path).ok()?;
    (!target.starts_with(real)).then(|| {
        format!("a link out of the repository, to {}; put a copy in its place", target.display())
    })
}

/// Whether an entry of a walk is hidden; the folder where it begins is not.
pub(super) fn is_hidden(entry: &DirEntry) -> bool {
    entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
}
