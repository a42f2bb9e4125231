//! Parts of a repository: of what lies in its folder, all but caches of this program and what links out of it lead to.

use std::path::Path;

use walkdir::{DirEntry, WalkDir};

use crate::store::artifact::is_artifact;
use crate::store::files;

/// Folders of a cache, of which no one removes all.
const STAGES: [&str; 5] = ["window", "vector", "retrieval", "prompts", "predictions"];

/// Whether a folder is a cache of this program: artifacts lie where its stages put them.
pub(super) fn is_cache(folder: &Path) -> bool {
    let holds_artifact = |stage: &str| {
        let files = WalkDir::new(folder.join(stage)).min_depth(2).max_depth(3).into_iter();
        let mut files = files.flatten().filter(|entry| entry.file_type().is_file());
        files.any(|entry| is_artifact(entry.path()).unwrap_or(false))
    };
    STAGES.into_iter().any(holds_artifact)
}

/// Where a path leads if that is out of the folder `real`, a canonical path; in words. A link that leads nowhere does not.
pub(super) fn leads_out(real: &Path, path: &Path) -> Option<String> {
    let target = files::canonicalize(path).ok()?;
    (!target.starts_with(real)).then(|| {
        format!("a link out of the repository, to {}; put a copy in its place", target.display())
    })
}

/// Whether a file or folder belongs to its repository: a cache of this program never does, since it has copies of the
/// repository's files, and hidden ones do where the walk has them.
pub(super) fn is_part(entry: &DirEntry, leaves_hidden: bool) -> bool {
    let is_hidden = || entry.file_name().as_encoded_bytes().starts_with(b".");
    let is_own = || entry.file_type().is_dir() && is_cache(entry.path());
    entry.depth() == 0 || !(leaves_hidden && is_hidden() || is_own())
}
