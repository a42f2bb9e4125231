//! Digests of the files that this program read, so that a manifest describes the bytes that were actually used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Length and digest of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// Length in bytes.
    pub bytes: u64,
    /// Digest of the bytes.
    pub digest: String,
}

/// Contents by path; more than one if the file changed between readings.
static READ: Mutex<BTreeMap<PathBuf, Vec<FileDigest>>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<PathBuf, Vec<FileDigest>>> {
    READ.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers the content that was read from a file.
pub(crate) fn remember(path: &Path, hasher: &blake3::Hasher) {
    let digest = hasher.finalize().to_hex().to_string();
    let content = FileDigest { bytes: hasher.count(), digest };
    let mut all = all();
    let known = all.entry(path.to_owned()).or_default();
    if !known.contains(&content) {
        known.push(content);
    }
}

/// Forgets a file that this program rewrites.
pub(crate) fn forget(path: &Path) {
    all().remove(path);
}

/// Returns the digest of a file's content as it was read; `None` if the file was not read.
///
/// # Errors
/// The file was read more than once and changed in between.
pub fn find(path: &Path) -> Result<Option<FileDigest>> {
    match all().get(path).map(Vec::as_slice) {
        None | Some([]) => Ok(None),
        Some([content]) => Ok(Some(content.clone())),
        Some(_) => Err(change_error(path)),
    }
}

/// Returns the error for a file that changed between two readings.
pub fn change_error(path: &Path) -> Error {
    Error::artifact(path, "it changed while this command read it", "run the command again")
}
