//! Files that this program read because the user named them or because they belong to a repository: no output overwrites them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files;

/// True for each input; false for each file that the program wrote, which stays its own even if it is read. The keys are digests
/// of paths without links: a corpus has millions of files.
static INPUTS: Mutex<BTreeMap<u64, bool>> = Mutex::new(BTreeMap::new());

fn digest(place: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    hasher.finish()
}

/// Remembers a file that the program read, given by its path without links.
pub(crate) fn remember(place: &Path) {
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner).entry(digest(place)).or_insert(true);
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = place.parent().filter(|folder| !folders.contains_key(*folder)) {
        folders.insert(folder.to_owned(), identity(folder));
    }
}

/// Protects a file that the program reads by other means than this crate's from being overwritten by an output.
pub fn protect(path: &Path) {
    if let Ok(place) = files::canonicalize(path) {
        remember(&place);
    }
}

/// Folders of inputs, with their identities: a mount may show a folder under another path.
static FOLDERS: Mutex<BTreeMap<PathBuf, Option<FolderIdentity>>> = Mutex::new(BTreeMap::new());

/// Device and number of a folder.
type FolderIdentity = (u64, u64);

#[cfg(unix)]
fn identity(folder: &Path) -> Option<FolderIdentity> {
    use std::os::unix::fs::MetadataExt as _;
    files::metadata(folder).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<FolderIdentity> {
    None
}

/// Returns the paths of a file in other mounts from which an input was read.
fn elsewhere(place: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return Vec::new() };
    let Some(own) = identity(folder) else { return Vec::new() };
    let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |known: &(&PathBuf, &Option<FolderIdentity>)| {
        known.1.is_some_and(|known| known == own) && known.0 != folder
    };
    folders.iter().filter(is_same).map(|(folder, _)| folder.join(name)).collect()
}

/// Marks a file as written by this program, now or in an earlier run: it may be overwritten although this run has read it.
pub fn release(path: &Path) {
    if let Ok(place) = files::canonicalize(path) {
        INPUTS.lock().unwrap_or_else(PoisonError::into_inner).insert(digest(&place), false);
    }
}

/// Returns true if this program read the file at a path as an input.
pub(crate) fn is_input(path: &Path) -> io::Result<bool> {
    let place = match files::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        place => place?,
    };
    let others = elsewhere(&place);
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_read = |place: &Path| inputs.get(&digest(place)) == Some(&true);
    Ok(is_read(&place) || others.iter().any(|place| is_read(place)))
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn an_input_is_known_through_another_mount() {
        use super::*;
        let dir = tempfile::tempdir().unwrap();
        let real = files::canonicalize(dir.path()).unwrap();
        files::write(real.join("tasks"), "").unwrap();
        files::write(real.join("other"), "").unwrap();
        // As if the folder had been mounted there, too.
        let mounted = Path::new("/mounted/elsewhere");
        FOLDERS.lock().unwrap().insert(mounted.to_owned(), identity(&real));
        remember(&mounted.join("tasks"));
        let found = ["tasks", "other"].map(|name| is_input(&real.join(name)).unwrap());
        assert_eq!(found, [true, false]);
        protect(&real.join("other"));
        assert!(is_input(&real.join("other")).unwrap());
    }
}
