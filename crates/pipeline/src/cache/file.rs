//! A file of a cache folder, its condition, and its removal.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldhash::HashMap;
use repoformer_core::repository::corpus::Walk;
use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, File};
use repoformer_text::language::Language;

/// Names of the stages, which are the folders of a cache; `dense` is the folder `vector/dense`.
pub const STAGES: [&str; 13] = [
    "window", "vector", "dense", "retrieval", "prompts", "predictions", "scores", "latency",
    "probabilities", "journal", "exec", "report", "demo",
];

/// Stages whose files cost server requests or hours of tests.
const PAID: [&str; 4] = ["dense", "probabilities", "journal", "exec"];

/// Condition of a cached file compared with the current sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Built from the current sources, as far as they are known.
    Current,
    /// Built from other inputs, or by another version of the program.
    Stale(String),
    /// Changed since it was written.
    Damaged(String),
    /// Its inputs cannot be compared.
    Unknown(String),
    /// Its content cannot be read, so its kind is not known.
    Unreadable(String),
    /// A file without a header, kept whatever changes: answers, times, test results, pages.
    Kept,
    /// A temporary file that a program is writing.
    InUse,
    /// A temporary file left behind by a program that was killed.
    Temporary,
    /// A file that this program did not write.
    Foreign,
}

impl Condition {
    /// Returns the name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stale(_) => "stale",
            Self::Damaged(_) => "damaged",
            Self::Unknown(_) => "unknown",
            Self::Unreadable(_) => "unreadable",
            Self::Kept => "kept",
            Self::InUse => "in use",
            Self::Temporary => "temporary",
            Self::Foreign => "foreign",
        }
    }

    /// Returns why the file is not current, if the reason is known.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Stale(reason) | Self::Damaged(reason) => Some(reason),
            Self::Unknown(reason) | Self::Unreadable(reason) => Some(reason),
            _ => None,
        }
    }
}

/// A file of a cache, with its companion files.
#[derive(Debug, Clone)]
pub struct CacheFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Companion files in the same folder: its header, the time of its search.
    pub beside: Vec<PathBuf>,
    /// Stage whose folder contains the file, one of [`STAGES`]; `None` for other folders.
    pub stage: Option<&'static str>,
    /// Benchmark; `repos` for the artifacts of repositories.
    pub benchmark: Option<String>,
    /// Mode.
    pub mode: Option<String>,
    /// Kind of file, in words.
    pub kind: String,
    /// Size of the file and its companions.
    pub bytes: u64,
    /// Time of the last change.
    pub modified: Option<SystemTime>,
    /// Condition compared with the current sources.
    pub condition: Condition,
    /// Parameters in the header.
    pub parameters: BTreeMap<String, String>,
}

/// Sources outside the cache that artifacts are compared with.
#[derive(Debug, Default)]
pub struct CacheSources {
    /// Folder of the repositories.
    pub repos_dir: Option<PathBuf>,
    /// Tasks of each benchmark.
    pub tasks: BTreeMap<String, TaskSet>,
    /// Files of the demonstration, which the program writes to `demo`.
    pub demo: Vec<(PathBuf, &'static str)>,
    /// Digests of the repositories that were read; empty at first.
    pub digests: RepositoryDigests,
}

/// Digests of repositories, or why they are not known: each repository is read once, whatever the number of its artifacts.
#[derive(Debug, Default)]
pub struct RepositoryDigests(RefCell<HashMap<RepositoryKey, RepositoryDigest>>);

/// Name, language and walk of a repository, and whether it is cut to chunks.
pub(super) type RepositoryKey = (String, Language, Walk, bool);

/// Digest of a repository, or why it is not known; `None` if the repository is missing.
pub(super) type RepositoryDigest = Option<Result<String, String>>;

impl RepositoryDigests {
    /// Returns a known digest, or the one that `read` returns.
    pub(super) fn get_or_read(
        &self,
        key: RepositoryKey,
        read: impl FnOnce(&RepositoryKey) -> RepositoryDigest,
    ) -> RepositoryDigest {
        let known = self.0.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let digest = read(&key);
            self.0.borrow_mut().insert(key, digest.clone());
            digest
        })
    }
}

impl CacheFile {
    /// True if the content cannot be made again without a server or hours of tests.
    pub fn is_paid(&self) -> bool {
        self.stage.is_some_and(|stage| PAID.contains(&stage))
    }

    /// Returns the error for a file that cannot be read.
    pub fn unreadable(&self) -> Option<Error> {
        let Condition::Unreadable(reason) = &self.condition else { return None };
        let hint = "check the disk and the file's permissions; the file is not changed";
        Some(Error::artifact(&self.path, reason, hint))
    }

    /// Removes the file, and folders that become empty.
    ///
    /// # Errors
    /// This program did not write the file, another program is writing to it, or it cannot be removed.
    pub fn remove(&self, cache: &Path) -> Result<()> {
        let refused = |reason: &str| {
            Err(Error::artifact(&self.path, reason, "leave it, or remove it by hand"))
        };
        if self.condition == Condition::Foreign {
            return refused("not a file of this program");
        }
        if let Some(error) = self.unreadable() {
            return Err(error);
        }
        let lock = if self.path.is_dir() { self.path.join(LOCK) } else { self.path.clone() };
        let is_open = |file: File| matches!(file.try_lock(), Err(files::TryLockError::WouldBlock));
        if File::open_regular(lock).is_ok_and(is_open) {
            return refused("another program is writing to it");
        }
        let removed = if self.path.is_dir() {
            files::remove_dir_all(&self.path)
        } else {
            files::remove_file(&self.path)
        };
        removed.map_err(|e| Error::writing(&self.path, "remove this file", e))?;
        for path in &self.beside {
            files::remove_file(path).map_err(|e| Error::writing(path, "remove this file", e))?;
        }
        for folder in self.path.ancestors().skip(1).take_while(|folder| *folder != cache) {
            if files::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Name of the lock file in a folder with copies of repositories.
pub(super) const LOCK: &str = ".lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_read_once_per_walk_and_cut() {
        let (digests, reads) = (RepositoryDigests::default(), std::cell::Cell::new(0));
        let key = |are_chunks| ("r".to_owned(), Language::Python, Walk::Glob, are_chunks);
        let found = [false, false, true, false].map(|are_chunks| {
            digests.get_or_read(key(are_chunks), |_| {
                reads.set(reads.get() + 1);
                Some(Ok(reads.get().to_string()))
            })
        });
        let found = found.map(|digest| digest.unwrap().unwrap());
        assert_eq!((found, reads.get()), (["1", "1", "2", "1"].map(str::to_owned), 2));
    }
}
