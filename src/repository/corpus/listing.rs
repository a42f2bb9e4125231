//! Finding and reading a repository's files: a walk over the folder, then each file.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use walkdir::{DirEntry, WalkDir};

use super::part::{is_part, leads_out};
use super::{Reading, Repository, SourceFile, Walk, check_name, is_folder_name};
use crate::error::{Error, Result};
use crate::repository::parallel;
use crate::store::files;
use crate::store::progress::Work;
use crate::text::language::Language;
use crate::text::lines::universal_newlines;

/// Offsets into a file's text are 32 bits wide.
const LARGEST_FILE: u64 = u32::MAX as u64 - 1;

impl Repository {
    /// Reads the files of one language in `<repos_dir>/<name>`. Files that are not UTF-8, vanish or cannot be opened are
    /// stepped over and reported.
    ///
    /// # Errors
    /// The folder does not exist, is no folder, or `name` is not a single folder name.
    pub fn read(repos_dir: &Path, name: &str, language: Language) -> Result<Reading> {
        Self::read_with(repos_dir, name, language, Walk::Glob)
    }

    /// Reads the files of one language that a walk finds.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with(
        repos_dir: &Path,
        name: &str,
        language: Language,
        walk: Walk,
    ) -> Result<Reading> {
        let (found, mut skipped) = source_files(repos_dir, name, language, walk)?;
        let work = Work::of(format!("reading {name}"), "files", found.len());
        let read = |file: &Found| {
            work.done(1);
            let bytes = read_bytes(&file.on_disk)?;
            let text = decode(&file.on_disk, bytes.content)?;
            Ok((bytes.id, universal_newlines(text)))
        };
        let read: Vec<Result<(FileId, String)>> = parallel::map(&found, read);
        let mut first_name: FxHashMap<FileId, u32> = FxHashMap::default();
        let mut files: Vec<SourceFile> = Vec::with_capacity(found.len());
        for (found, read) in found.into_iter().zip(read) {
            match read {
                Ok((id, text)) => {
                    let index = files.len() as u32;
                    files.push(SourceFile {
                        path: found.path,
                        text,
                        same_as: *first_name.entry(id).or_insert(index),
                    });
                }
                Err(error) => skipped.push(error),
            }
        }
        Ok(Reading { repository: Repository { name: name.to_owned(), files }, skipped })
    }
}

/// Number of source files of each language in repositories, the most first; languages without any are left out.
pub fn languages(repos_dir: &Path, names: &[String]) -> Vec<(Language, usize)> {
    let count = |language| {
        let of_one = |name: &String| source_files(repos_dir, name, language, Walk::Glob).ok();
        names.iter().filter_map(of_one).map(|(files, _)| files.len()).sum()
    };
    let counts = Language::ALL.into_iter().map(|language| (language, count(language)));
    let mut found: Vec<(Language, usize)> = counts.filter(|(_, files)| *files > 0).collect();
    found.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
    found
}

/// A source file that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// `repository/folder/…/file.py`, with the ending of its language.
    pub(crate) path: String,
    /// Where it lies.
    pub(crate) on_disk: PathBuf,
}

/// Identity of a file on disk, shared by all its names: symbolic and hard links.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = PathBuf;

#[cfg(unix)]
fn file_id(metadata: &files::Metadata, _path: &Path) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Hard links cannot be told here.
#[cfg(not(unix))]
fn file_id(_metadata: &files::Metadata, path: &Path) -> FileId {
    files::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Lists the files of one language in `<repos_dir>/<name>` in the code-point order of their paths, and the files and
/// folders that cannot be listed.
///
/// # Errors
/// As [`Repository::read`].
pub(crate) fn source_files(
    repos_dir: &Path,
    name: &str,
    language: Language,
    walk: Walk,
) -> Result<(Vec<Found>, Vec<Error>)> {
    check_name(repos_dir, name)?;
    let root = &repos_dir.join(name);
    let metadata = files::metadata(root)
        .map_err(|e| Error::reading(root, "open this repository folder", e))?;
    if !metadata.is_dir() {
        return Err(Error::Repository { path: root.to_owned(), reason: "is not a folder".into() });
    }
    let follows = walk != Walk::Rglob;
    // Following links asks the system about every entry, so it is done where there are links.
    if follows && let Some(found) = find_without_links(root, name, language) {
        return Ok((found, Vec::new()));
    }
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let real = files::canonicalize(root)
        .map_err(|e| Error::reading(root, "open this repository folder", e))?;
    let mut led_out = Vec::new();
    let entries = WalkDir::new(root).follow_links(follows).into_iter();
    let mut is_taken = |entry: &DirEntry| {
        if !is_part(entry, follows) {
            return false;
        }
        let is_read = is_source_name(entry.path(), language) || entry.file_type().is_dir();
        let is_link = entry.depth() > 0 && entry.path_is_symlink() && is_read;
        match is_link.then(|| leads_out(&real, entry.path())).flatten() {
            Some(_) if walk == Walk::GlobAnywhere => true,
            Some(reason) => {
                let way =
                    format!("{reason}, or read such links with --walk {}", Walk::GlobAnywhere);
                led_out.push(Error::SourceFile { path: entry.path().to_owned(), reason: way });
                false
            }
            None => true,
        }
    };
    for entry in entries.filter_entry(&mut is_taken) {
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
            Some(path) => found.push(Found { path, on_disk: entry.into_path() }),
            None => skipped.push(Error::SourceFile {
                path: entry.into_path(),
                reason: "its name is not UTF-8; rename it".into(),
            }),
        }
    }
    skipped.extend(led_out);
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok((found, skipped))
}

/// Reads a file that a task names by its path from `repos_dir` on, without changing its line ends.
///
/// # Errors
/// The path leads out of its repository, by its names or by links, or the file cannot be read; the message says why.
pub(crate) fn read_named(repos_dir: &Path, path: &str) -> std::result::Result<String, String> {
    let on_disk = repos_dir.join(path);
    let says = |reason: &str| format!("{}: {reason}", on_disk.display());
    let repository = path.split('/').next().unwrap_or_default();
    if !path.split('/').all(is_folder_name) {
        return Err(says("its path leads out of its repository"));
    }
    let real = files::canonicalize(repos_dir.join(repository));
    let real = real.and_then(|real| files::metadata(&on_disk).map(|_| real));
    let real = real.map_err(|error| says(&format!("cannot be read: {error}")))?;
    if let Some(reason) = leads_out(&real, &on_disk) {
        return Err(says(&reason));
    }
    let text = read_bytes(&on_disk).and_then(|bytes| decode(&on_disk, bytes.content));
    text.map_err(|error| match error {
        Error::SourceFile { reason, .. } => says(&reason),
        error => error.to_string(),
    })
}

/// Reads a source file of a repository, and its identity on disk; `None` where it is no file of the repository: it is not
/// there, has another language's ending, or is left out by the walk.
///
/// # Errors
/// It cannot be read or is not UTF-8, or a link leads out of the repository.
pub(crate) fn read_source(
    repos_dir: &Path,
    path: &str,
    language: Language,
    walk: Walk,
) -> Result<Option<(SourceFile, u64)>> {
    let mut names = path.split('/');
    let root = repos_dir.join(names.next().unwrap_or_default());
    let is_hidden = |name: &str| name.starts_with('.') && walk != Walk::Rglob;
    let on_disk = repos_dir.join(path);
    if !path.split('/').all(is_folder_name)
        || names.any(is_hidden)
        || !is_source_name(&on_disk, language)
        || files::metadata(&on_disk).is_err()
    {
        return Ok(None);
    }
    let real = files::canonicalize(&root)
        .map_err(|e| Error::reading(&root, "open this repository folder", e))?;
    if walk != Walk::GlobAnywhere
        && let Some(reason) = leads_out(&real, &on_disk)
    {
        return Err(Error::SourceFile { path: on_disk, reason });
    }
    let bytes = read_bytes(&on_disk)?;
    let text = universal_newlines(decode(&on_disk, bytes.content)?);
    let file = SourceFile { path: path.to_owned(), text, same_as: 0 };
    Ok(Some((file, digest_of_id(&bytes.id))))
}

/// Identity on disk of a file, the same for all its names; one of its own for a file that is not there.
pub(crate) fn identity(path: &Path) -> u64 {
    match files::metadata(path) {
        Ok(metadata) => digest_of_id(&file_id(&metadata, path)),
        Err(_) => digest_of_id(&path),
    }
}

fn digest_of_id(id: &impl std::hash::Hash) -> u64 {
    use std::hash::BuildHasher as _;
    rustc_hash::FxBuildHasher.hash_one(id)
}

/// Finds the files of a folder without links, where every name is UTF-8 and every folder can be listed; `None` elsewhere.
fn find_without_links(root: &Path, name: &str, language: Language) -> Option<Vec<Found>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(root).into_iter().filter_entry(|entry| is_part(entry, true)) {
        let entry = entry.ok()?;
        let kind = entry.file_type();
        if kind.is_symlink() && entry.depth() > 0 {
            return None;
        }
        if !kind.is_dir() && entry.depth() > 0 && is_source_name(entry.path(), language) {
            let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
            found.push(Found { path: slashed(name, relative)?, on_disk: entry.into_path() });
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Some(found)
}

fn not_walked(path: &Path, error: &walkdir::Error) -> Error {
    if let Some(io) = error.io_error() {
        return unreadable(path, io);
    }
    Error::SourceFile { path: path.to_owned(), reason: "a link to a folder that it lies in".into() }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let reason = match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => "a link that leads nowhere".into(),
        io::ErrorKind::NotFound => "it vanished while the repository was read".into(),
        _ => format!("cannot be read: {error}"),
    };
    Error::SourceFile { path: path.to_owned(), reason }
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

/// The content of a file, and its identity on disk.
pub(crate) struct Bytes {
    id: FileId,
    pub(crate) content: Vec<u8>,
}

/// Reads a regular file whose offsets fit 32 bits.
pub(crate) fn read_bytes(path: &Path) -> Result<Bytes> {
    let metadata = files::metadata(path).map_err(|e| unreadable(path, &e))?;
    let left_out =
        |reason: &str| Error::SourceFile { path: path.to_owned(), reason: reason.into() };
    if !metadata.is_file() {
        return Err(left_out("not a regular file"));
    }
    if metadata.len() > LARGEST_FILE {
        return Err(left_out("larger than 4 GiB"));
    }
    let mut content = Vec::with_capacity(metadata.len() as usize + 1);
    let read = files::File::open(path).and_then(|mut file| file.read_to_end(&mut content));
    read.map_err(|e| unreadable(path, &e))?;
    Ok(Bytes { id: file_id(&metadata, path), content })
}

/// Decodes UTF-8; the error names the first byte that is not, and its line.
pub(crate) fn decode(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + memchr::memchr_iter(b'\n', &error.as_bytes()[..at]).count();
        Error::SourceFile {
            path: path.to_owned(),
            reason: format!("not UTF-8 (byte {at}, line {line}); convert it to have it indexed"),
        }
    })
}
