//! Content of a repository: everything in its folder except caches of this program, which contain copies of the repository's
//! files, and the targets of links out of the repository.

use std::path::{Path, PathBuf};

use foldhash::HashSet;
use repoformer_store::artifact::is_artifact;
use repoformer_store::error::Error;
use repoformer_store::files;
use walkdir::{DirEntry, WalkDir};

use super::reading::{FileId, file_id};

/// Folders of a cache. Nobody removes all of them and keeps the cache.
const STAGES: [&str; 5] = ["window", "vector", "retrieval", "prompts", "predictions"];

/// Returns true if a folder is a cache of this program: it has artifacts in the folders to which the stages write.
pub(super) fn is_cache(folder: &Path) -> bool {
    STAGES.into_iter().any(|stage| holds_artifact(&folder.join(stage)))
}

/// Returns true if the folder of a stage has artifacts at the paths to which the stage writes.
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

/// Returns true if a folder holds copies of repositories that a cache keeps for test runs: `exec/TASKS/copies`.
fn is_of_copies(cache: &Path, folder: &Path) -> bool {
    let below = folder.strip_prefix(cache).unwrap_or(folder);
    let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
    matches!(&names[..], [exec, _, copies] if exec == "exec" && copies.starts_with("copies"))
}

/// Returns the number of source files in a folder that looks like a cache of this program, except copies of repositories; the
/// program itself writes none elsewhere.
pub(super) fn count_sources(cache: &Path, is_source: impl Fn(&Path) -> bool) -> usize {
    let entries = WalkDir::new(cache).into_iter();
    let entries = entries.filter_entry(|entry| !is_of_copies(cache, entry.path()));
    let is_file = |entry: &DirEntry| !entry.file_type().is_dir() && is_source(entry.path());
    entries.flatten().filter(is_file).count()
}

/// Describes the target of a path, if it is outside of the folder `real`, a canonical path. A broken link does not lead out.
pub(super) fn leads_out(real: &Path, path: &Path) -> Option<String> {
    lies_outside(real, &files::canonicalize(path).ok()?)
}

/// Describes a file, given by its path without links, if it is outside of the folder `real`, a canonical path.
pub(super) fn lies_outside(real: &Path, place: &Path) -> Option<String> {
    (!place.starts_with(real)).then(|| {
        format!(
            "a link that leads out of the repository, to {}; replace it with a copy",
            place.display()
        )
    })
}

/// Targets of a repository's links. Links may lead to the same file or folder repeatedly, in exponentially many ways; a walk
/// keeps only a limited number and total length of these repeats.
#[derive(Debug, Default)]
pub(super) struct LinkTargets {
    /// Depth of the link below which the walk is.
    link: Option<usize>,
    ids: HashSet<FileId>,
    repeats: usize,
    bytes: u64,
    /// First path that the walk left out.
    first_lost: Option<PathBuf>,
}

impl LinkTargets {
    const MOST_REPEATS: usize = 20_000;
    const MOST_BYTES: u64 = 256 << 20;

    /// Returns true if the walk keeps an entry: it was not reached by a link, or not by an earlier one, or it is one of the
    /// repeats that are kept. The entries must be passed in the order of the walk.
    pub(super) fn keep(&mut self, entry: &DirEntry) -> bool {
        self.link = self.link.filter(|link| entry.depth() > *link);
        if self.link.is_none() && entry.path_is_symlink() && entry.depth() > 0 {
            self.link = Some(entry.depth());
        }
        if self.link.is_none() {
            return true;
        }
        let Ok(metadata) = files::metadata(entry.path()) else { return true };
        if self.ids.insert(file_id(&metadata, entry.path())) {
            return true;
        }
        self.repeats += 1;
        self.bytes += if metadata.is_file() { metadata.len() } else { 0 };
        let is_kept = self.repeats <= Self::MOST_REPEATS && self.bytes <= Self::MOST_BYTES;
        if !is_kept && self.first_lost.is_none() {
            self.first_lost = Some(entry.path().to_owned());
        }
        is_kept
    }

    /// Returns an error that names the first repeat that was left out, if any.
    pub(super) fn problem(self) -> Option<Error> {
        let reason = "links repeat more than 20,000 files or 256 MiB; this repetition and later \
                      ones are left out";
        self.first_lost.map(|path| Error::SourceFile { path, reason: reason.into() })
    }
}

/// Returns true if an entry of a walk is hidden; the walk's starting folder is not.
pub(super) fn is_hidden(entry: &DirEntry) -> bool {
    entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
}
