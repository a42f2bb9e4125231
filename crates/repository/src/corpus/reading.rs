//! Reading of the files of a repository.

use std::io;
use std::path::{Path, PathBuf};

use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, RegularFile};

use super::names::{path_names, path_names_with_repository};
use super::part::{leads_out, lies_outside};

/// Largest size of a file: offsets into its text have 32 bits.
const LARGEST_FILE: u64 = u32::MAX as u64 - 1;

/// Identity of a file on disk, shared by all its names: symbolic and hard links.
#[cfg(unix)]
pub(super) type FileId = (u64, u64);
#[cfg(not(unix))]
pub(super) type FileId = std::path::PathBuf;

#[cfg(unix)]
pub(super) fn file_id(metadata: &files::Metadata, _path: &Path) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Returns the identity by path: hard links cannot be recognised on this system.
#[cfg(not(unix))]
pub(super) fn file_id(_metadata: &files::Metadata, path: &Path) -> FileId {
    files::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads a file that a task names by its path below `repos_dir`, without changing the line ends.
///
/// # Errors
/// The path leads out of its repository, by its names or by links, or the file cannot be read; the message gives the reason.
pub fn read_named(repos_dir: &Path, path: &str) -> std::result::Result<String, String> {
    let names = path_names_with_repository(path)
        .map_err(|error| format!("{}: its path {error}", repos_dir.join(path).display()))?;
    let on_disk = repos_dir.join(names.join("/"));
    let says = |reason: &str| format!("{}: {reason}", on_disk.display());
    let repository = names[0];
    let real = files::canonicalize(repos_dir.join(repository));
    let real = real.and_then(|real| files::metadata(&on_disk).map(|_| real));
    let real = real.map_err(|error| says(&format!("cannot be read: {error}")))?;
    if let Some(reason) = leads_out(&real, &on_disk) {
        return Err(says(&reason));
    }
    let text = read_bytes(&on_disk, Some(&real)).and_then(|bytes| decode(&on_disk, bytes.content));
    text.map_err(|error| match error {
        Error::SourceFile { reason, .. } => says(&reason.to_string()),
        error => error.to_string(),
    })
}

/// Returns the location on disk of an existing or new file of a repository, or the reason why the path must not be used.
pub fn place_in(
    repos_dir: &Path,
    repository: &str,
    path: &str,
) -> std::result::Result<PathBuf, String> {
    let folder = repos_dir.join(repository);
    let names = path_names(path)
        .map_err(|error| format!("{}: its path {error}", folder.join(path).display()))?;
    let place = folder.join(names.join("/"));
    let says = |reason: &str| format!("{}: {reason}", place.display());
    let real = files::canonicalize(&folder).map_err(|e| says(&format!("cannot be read: {e}")))?;
    // For a new file, check the folders that exist.
    let there = place.ancestors().find(|part| files::symlink_metadata(part).is_ok());
    let Some(there) = there.filter(|there| files::canonicalize(there).is_ok()) else {
        return Err(says("a link that leads nowhere"));
    };
    match leads_out(&real, there) {
        Some(reason) => Err(says(&reason)),
        None => Ok(place),
    }
}

/// Returns the identity on disk of a file or folder, which is the same for all its names. A path that does not exist has an
/// identity of its own.
pub fn identity(path: &Path) -> u64 {
    match files::metadata(path) {
        Ok(metadata) => digest_of_id(&file_id(&metadata, path)),
        Err(_) => digest_of_id(&path),
    }
}

pub(super) fn digest_of_id(id: &impl std::hash::Hash) -> u64 {
    use std::hash::BuildHasher as _;
    foldhash::quality::FixedState::default().hash_one(id)
}

/// Content of a file, and its identity on disk.
#[derive(Debug)]
pub struct Bytes {
    pub(super) id: FileId,
    /// Bytes of the content.
    pub content: Vec<u8>,
}

/// Reads a regular file that fits 32-bit offsets and is in the folder `within`, a canonical path. This also holds if somebody
/// replaces the file, or a folder on its path, with a link or a pipe meanwhile.
pub(super) fn read_bytes(path: &Path, within: Option<&Path>) -> Result<Bytes> {
    let left_out =
        |reason: String| Error::SourceFile { path: path.to_owned(), reason: reason.into() };
    let unreadable = |error| unreadable(path, &error);
    let is_file = files::metadata(path).map_err(unreadable)?.is_file();
    let open = if is_file { files::File::open_in_place(path).map_err(unreadable)? } else { None };
    if let Some(open) = &open {
        open.protect();
    }
    let Some(open) = open else {
        return Err(left_out("not a regular file".into()));
    };
    if let Some(within) = within {
        let place = open.place().map_err(unreadable)?;
        if let Some(reason) = lies_outside(within, &place) {
            return Err(left_out(reason));
        }
    }
    let RegularFile { file, metadata, .. } = open;
    let Some(content) = file.read_at_most(LARGEST_FILE).map_err(unreadable)? else {
        return Err(left_out("larger than 4 GiB".into()));
    };
    Ok(Bytes { id: file_id(&metadata, path), content })
}

/// Decodes UTF-8; the error names the first invalid byte and its line.
pub fn decode(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + memchr::memchr_iter(b'\n', &error.as_bytes()[..at]).count();
        Error::SourceFile {
            path: path.to_owned(),
            reason: format!(
                "not UTF-8 (byte {at}, line {line}); convert it to UTF-8 to have it indexed"
            )
            .into(),
        }
    })
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let reason = match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => "a link that leads nowhere".into(),
        io::ErrorKind::NotFound => "it was removed while the repository was read".into(),
        _ => format!("cannot be read: {error}").into(),
    };
    Error::SourceFile { path: path.to_owned(), reason }
}
