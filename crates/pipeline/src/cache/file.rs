//! A file of a cache folder, its condition, and its removal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, File};

/// Folders of a cache, and names of what they hold; `dense` lies below `vector`.
pub const STAGES: [&str; 13] = [
    "window", "vector", "dense", "retrieval", "prompts", "predictions", "scores", "latency",
    "probabilities", "journal", "exec", "report", "demo",
];

/// Stages whose files took a server's answers, or hours of tests.
const PAID: [&str; 4] = ["dense", "probabilities", "journal", "exec"];

/// How a file compares with what is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Made from what is there now, as far as that is known.
    Current,
    /// Made from something else, or by another version of the program.
    Stale(String),
    /// Not as it was written.
    Damaged(String),
    /// Its inputs cannot be compared.
    Unknown(String),
    /// It cannot be read, so nobody knows what it is.
    Unreadable(String),
    /// It has no header, and is kept whatever changes: answers, times, results of tests, pages.
    Kept,
    /// A temporary file that a program is writing.
    InUse,
    /// Left behind by a program that was killed.
    Temporary,
    /// Not this program's.
    Foreign,
}

impl Condition {
    /// Its name.
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

    /// Why it is not current, where that is known.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Stale(reason) | Self::Damaged(reason) => Some(reason),
            Self::Unknown(reason) | Self::Unreadable(reason) => Some(reason),
            _ => None,
        }
    }
}

/// A file of a cache, with those that belong to it.
#[derive(Debug, Clone)]
pub struct CacheFile {
    /// Its path.
    pub path: PathBuf,
    /// Files beside it that go with it: its header, the time of its search.
    pub beside: Vec<PathBuf>,
    /// Folder of the cache that it lies in, one of [`STAGES`]; none for foreign files elsewhere.
    pub stage: Option<&'static str>,
    /// Its benchmark; `repos` for what belongs to repositories.
    pub benchmark: Option<String>,
    /// Its mode.
    pub mode: Option<String>,
    /// Kind of file, in words.
    pub kind: String,
    /// Length of all its files.
    pub bytes: u64,
    /// Time of the last change.
    pub modified: Option<SystemTime>,
    /// How it compares with what is there now.
    pub condition: Condition,
    /// Parameters that it was made with.
    pub parameters: BTreeMap<String, String>,
}

/// Sources that artifacts are compared with, besides each other.
#[derive(Debug, Default)]
pub struct CacheSources {
    /// The folder of repositories.
    pub repos_dir: Option<PathBuf>,
    /// Each benchmark's tasks.
    pub tasks: BTreeMap<String, TaskSet>,
    /// Files of the demonstration, which the program writes below `demo`.
    pub demo: Vec<(PathBuf, &'static str)>,
}

impl CacheFile {
    /// Whether its content cannot be made again without a server or hours of tests.
    pub fn is_paid(&self) -> bool {
        self.stage.is_some_and(|stage| PAID.contains(&stage))
    }

    /// The problem of a file that cannot be read.
    pub fn unreadable(&self) -> Option<Error> {
        let Condition::Unreadable(reason) = &self.condition else { return None };
        let hint = "check the disk and the file's permissions; the file is not changed";
        Some(Error::artifact(&self.path, reason, hint))
    }

    /// Removes it, and folders that are empty then.
    ///
    /// # Errors
    /// It is not this program's own, another program is writing to it, or it cannot be removed.
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
            // A folder with anything in it stays.
            if files::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Name of the lock of a folder of copies of repositories.
pub(super) const LOCK: &str = ".lock";
