//! Finding and reading a repository's files: a walk over the folder, then each file that is not known already.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use super::{Walk, check_name};
use crate::error::{Error, Result};
use crate::text::language::Language;
use crate::text::lines::universal_newlines;

/// Offsets into a file's text are 32 bits wide.
const LARGEST_FILE: u64 = u32::MAX as u64 - 1;

/// What the file system says of a file: equal stamps, equal content, unless the file was written to at the moment that
/// the stamp was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Device and inode.
    id: (u64, u64),
    size: u64,
    /// Seconds and nanoseconds of the last change of the content, and of the file's entry.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// A file of a repository whose content may be known already.
#[derive(Debug)]
pub struct Listed {
    /// `repository/folder/…/file.py`, with the ending of its language.
    pub path: String,
    /// As [`SourceFile::same_as`](super::SourceFile::same_as).
    pub same_as: u32,
    /// What its content can be known by; `None` where that cannot be trusted.
    pub stamp: Option<Stamp>,
    /// Its text with `\n` for every newline; `None` where its stamp was known.
    pub text: Option<String>,
}

/// What listing a repository gave.
#[derive(Debug)]
pub struct Listing {
    /// Its files in the code-point order of their paths.
    pub files: Vec<Listed>,
    /// The files and folders that cannot be read, each with its reason.
    pub skipped: Vec<Error>,
}

impl Listing {
    /// Lists the files of one language in `<repos_dir>/<name>` and reads those that are not `known` by their path and
    /// stamp.
    ///
    /// # Errors
    /// As [`Repository::read`](super::Repository::read).
    pub fn read(
        repos_dir: &Path,
        name: &str,
        which: (Language, Walk),
        known: impl Fn(&str, &Stamp) -> bool + Sync,
    ) -> Result<Self> {
        check_name(repos_dir, name)?;
        let begin = SystemTime::now();
        let (found, mut skipped) = find_source_files(&repos_dir.join(name), name, which)?;
        let read: Vec<Result<Read>> = found
            .par_iter()
            .map(|file| read_file(file, begin, &known))
            .collect();
        let mut first_name: FxHashMap<FileId, u32> = FxHashMap::default();
        let mut files: Vec<Listed> = Vec::with_capacity(found.len());
        for (found, read) in found.into_iter().zip(read) {
            match read {
                Ok(Read { id, stamp, text }) => {
                    let index = files.len() as u32;
                    let same_as = *first_name.entry(id).or_insert(index);
                    files.push(Listed {
                        path: found.path,
                        same_as,
                        stamp,
                        text,
                    });
                }
                Err(error) => skipped.push(error),
            }
        }
        Ok(Self { files, skipped })
    }
}

struct Found {
    path: String,
    on_disk: PathBuf,
}

/// What a file is on disk, whatever its names: symbolic and hard links share it.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = PathBuf;

#[cfg(unix)]
fn file_id(metadata: &fs::Metadata, _path: &Path) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Hard links cannot be told here.
#[cfg(not(unix))]
fn file_id(_metadata: &fs::Metadata, path: &Path) -> FileId {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn find_source_files(
    root: &Path,
    name: &str,
    (language, walk): (Language, Walk),
) -> Result<(Vec<Found>, Vec<Error>)> {
    let metadata =
        fs::metadata(root).map_err(|e| Error::reading(root, "open this repository folder", e))?;
    if !metadata.is_dir() {
        return Err(Error::Repository {
            path: root.to_owned(),
            reason: "is no folder".into(),
        });
    }
    let follows = walk == Walk::Glob;
    // Following links asks the system about every entry, so it is done where there are links.
    if follows && let Some(found) = find_without_links(root, name, language) {
        return Ok((found, Vec::new()));
    }
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let entries = WalkDir::new(root).follow_links(follows).into_iter();
    for entry in entries.filter_entry(|entry| !follows || is_visible(entry)) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(root);
                // Python's glob never sees a link that leads nowhere unless it looks like a source file.
                if path.is_symlink() && !is_source_name(path, language) {
                    continue;
                }
                skipped.push(not_walked(path, &error));
                continue;
            }
        };
        if entry.depth() == 0
            || !is_source_name(entry.path(), language)
            || entry.file_type().is_dir()
            || (!follows && entry.path().is_dir())
        {
            continue;
        }
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        match slashed(name, relative) {
            Some(path) => found.push(Found {
                path,
                on_disk: entry.into_path(),
            }),
            None => skipped.push(Error::SourceFile {
                path: entry.into_path(),
                reason: "its name is not UTF-8; rename it".into(),
            }),
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok((found, skipped))
}

fn is_visible(entry: &DirEntry) -> bool {
    entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// The same for a folder without links, where every name is UTF-8 and every folder can be listed; `None` elsewhere.
fn find_without_links(root: &Path, name: &str, language: Language) -> Option<Vec<Found>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(root).into_iter().filter_entry(is_visible) {
        let entry = entry.ok()?;
        let kind = entry.file_type();
        if kind.is_symlink() && entry.depth() > 0 {
            return None;
        }
        if !kind.is_dir() && entry.depth() > 0 && is_source_name(entry.path(), language) {
            let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
            found.push(Found {
                path: slashed(name, relative)?,
                on_disk: entry.into_path(),
            });
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Some(found)
}

fn not_walked(path: &Path, error: &walkdir::Error) -> Error {
    if let Some(io) = error.io_error() {
        return unreadable(path, io);
    }
    Error::SourceFile {
        path: path.to_owned(),
        reason: "a link to a folder that it lies in".into(),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let reason = match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => "a link that leads nowhere".into(),
        io::ErrorKind::NotFound => "it vanished while the repository was read".into(),
        _ => format!("cannot be read: {error}"),
    };
    Error::SourceFile {
        path: path.to_owned(),
        reason,
    }
}

fn is_source_name(path: &Path, language: Language) -> bool {
    let endings = language.extensions();
    path.file_name().is_some_and(|name| {
        let name = name.as_encoded_bytes();
        endings.iter().any(|end| name.ends_with(end.as_bytes()))
    })
}

fn slashed(name: &str, relative: &Path) -> Option<String> {
    let mut path = name.to_owned();
    for component in relative.components() {
        path.push('/');
        path.push_str(component.as_os_str().to_str()?);
    }
    Some(path)
}

/// What was read of a file.
struct Read {
    id: FileId,
    stamp: Option<Stamp>,
    text: Option<String>,
}

fn read_file(
    file: &Found,
    begin: SystemTime,
    known: &impl Fn(&str, &Stamp) -> bool,
) -> Result<Read> {
    let path = &file.on_disk;
    let metadata = fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    let left_out = |reason: &str| Error::SourceFile {
        path: path.to_owned(),
        reason: reason.into(),
    };
    if !metadata.is_file() {
        return Err(left_out("not a regular file"));
    }
    if metadata.len() > LARGEST_FILE {
        return Err(left_out("larger than 4 GiB"));
    }
    let stamp = stamp(&metadata, begin);
    let is_known = stamp.is_some_and(|stamp| known(&file.path, &stamp));
    let text = if is_known {
        None
    } else {
        Some(read_text(path, metadata.len())?)
    };
    Ok(Read {
        id: file_id(&metadata, path),
        stamp,
        text,
    })
}

/// A file that was written to this shortly before it is read may be written to again within one tick of its file
/// system's clock, and bear the same stamp with another content.
const SETTLED: Duration = Duration::from_secs(2);

#[cfg(unix)]
fn stamp(metadata: &fs::Metadata, begin: SystemTime) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let settled = begin
        .checked_sub(SETTLED)?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    let newest = metadata.mtime().max(metadata.ctime());
    (newest < settled.as_secs() as i64).then(|| Stamp {
        id: (metadata.dev(), metadata.ino()),
        size: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// Without the time at which a file's entry changed, nothing can be trusted.
#[cfg(not(unix))]
fn stamp(_metadata: &fs::Metadata, _begin: SystemTime) -> Option<Stamp> {
    None
}

/// `size` is what the file system says, to make room for.
fn read_text(path: &Path, size: u64) -> Result<String> {
    let mut bytes = Vec::with_capacity(size as usize + 1);
    // `take` keeps the file from being asked for its size once more.
    let read = fs::File::open(path).and_then(|file| file.take(u64::MAX).read_to_end(&mut bytes));
    read.map_err(|e| unreadable(path, &e))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(universal_newlines(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + memchr::memchr_iter(b'\n', &error.as_bytes()[..at]).count();
            let reason =
                format!("not UTF-8 (byte {at}, line {line}); convert it to have it indexed");
            Err(Error::SourceFile {
                path: path.to_owned(),
                reason,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_with_a_known_stamp_is_not_read_and_a_young_one_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r/a.py");
        fs::create_dir(dir.path().join("r")).unwrap();
        fs::write(&path, "x = 1\n").unwrap();
        let list = |known: Option<Stamp>| {
            let is_known = |_: &str, stamp: &Stamp| Some(*stamp) == known;
            Listing::read(dir.path(), "r", (Language::Python, Walk::Glob), is_known)
                .unwrap()
                .files
                .remove(0)
        };
        assert_eq!(list(None).stamp, None, "it was written just now");
        std::thread::sleep(SETTLED + Duration::from_millis(1100));
        let first = list(None);
        assert_eq!(first.text.as_deref(), Some("x = 1\n"));
        assert_eq!(first.stamp.unwrap().size(), 6);
        assert_eq!(list(first.stamp).text, None);
    }
}
