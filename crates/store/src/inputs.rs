//! Files that this program read because the user named them or because they belong to a repository: no output overwrites them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;
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
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(inputs.get(&digest(&place)) == Some(&true))
}
