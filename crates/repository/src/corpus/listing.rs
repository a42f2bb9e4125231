//! Finding of a repository's files: a walk over the folder, then each file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::progress::Work;
use repoformer_text::counts::format_count;
use repoformer_text::language::Language;
use repoformer_text::lines::universal_newlines;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use walkdir::{DirEntry, WalkDir};

use super::ignored::GitRules;
use super::part::{LinkTargets, cache_around, count_sources, is_cache, is_hidden, leads_out};
use super::reading::{Bytes, FileId, decode, digest_of_id, read_bytes, unreadable};
use super::{Repository, RepositoryReading, SourceFile, Walk, check_name, is_folder_name};
use crate::parallel;

/// Greatest length in bytes of a saved file that is read for a request, as that of a request: several may be in memory.
const LONGEST_SAVED: u64 = 8 << 20;

impl Repository {
    /// Reads the files of one language in `<repos_dir>/<name>`. Files that are not UTF-8, vanish or cannot be opened are
    /// skipped and reported.
    ///
    /// # Errors
    /// The folder does not exist or is not a folder, or `name` is not a single folder name.
    pub fn read(repos_dir: &Path, name: &str, language: Language) -> Result<RepositoryReading> {
        Self::read_with(repos_dir, name, language, Walk::Glob)
    }

    /// Reads the files of one language that a walk finds.
    ///
    /// # Errors
    /// The same as for [`read`](Self::read).
    pub fn read_with(
        repos_dir: &Path,
        name: &str,
        language: Language,
        walk: Walk,
    ) -> Result<RepositoryReading> {
        let listing = Listing::new(repos_dir, name, language, walk)?;
        let (found, mut skipped) = listing.all()?;
        let work = Work::new(format!("reading {name}"), "files", found.len());
        let read = |file: &SourcePath| {
            work.advance(1);
            let bytes = listing.read_bytes(file)?;
            let text = decode(&file.on_disk, bytes.content)?;
            Ok((bytes.id, universal_newlines(text)))
        };
        let read: Vec<Result<(FileId, String)>> = parallel::map(&found, read);
        let mut first_name: HashMap<FileId, u32> = HashMap::default();
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
        Ok(RepositoryReading { repository: Repository { name: name.to_owned(), files }, skipped })
    }
}

/// Returns the number of source files of each language in repositories, most frequent first; languages without files are left
/// out.
pub fn languages(repos_dir: &Path, names: &[String], walk: Walk) -> Vec<(Language, usize)> {
    let listings =
        names.iter().map(|name| Listing::from_repos_dir(repos_dir, name, &Language::ALL, walk));
    let listed = listings.filter_map(|listing| Some(listing.ok()?.all().ok()?.0));
    let files: Vec<SourcePath> = listed.flatten().collect();
    let count = |language: Language| files.iter().filter(|file| language.holds(&file.path)).count();
    let counts = Language::ALL.into_iter().map(|language| (language, count(language)));
    let mut found: Vec<(Language, usize)> = counts.filter(|(_, files)| *files > 0).collect();
    found.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
    found
}

/// Source file found by a walk.
#[derive(Debug)]
pub struct SourcePath {
    /// `repository/folder/…/file.py`, with an extension of its language.
    pub path: String,
    /// Path on disk.
    pub on_disk: PathBuf,
}

/// Files of some languages in a repository's folder, as a walk finds them.
#[derive(Debug)]
pub struct Listing<'a> {
    repos_dir: &'a Path,
    name: &'a str,
    root: PathBuf,
    /// Root without links.
    real: PathBuf,
    languages: Cow<'a, [Language]>,
    walk: Walk,
    /// Git's rules, if the walk uses them.
    rules: Option<GitRules>,
}

impl<'a> Listing<'a> {
    /// Opens the folder `<repos_dir>/<name>` for files of one language.
    ///
    /// # Errors
    /// The same as for [`Repository::read`].
    pub fn new(repos_dir: &'a Path, name: &'a str, language: Language, walk: Walk) -> Result<Self> {
        Self::from_repos_dir(repos_dir, name, vec![language], walk)
    }

    fn from_repos_dir(
        repos_dir: &'a Path,
        name: &'a str,
        languages: impl Into<Cow<'a, [Language]>>,
        walk: Walk,
    ) -> Result<Self> {
        check_name(repos_dir, name)?;
        let root = repos_dir.join(name);
        let metadata = files::metadata(&root)
            .map_err(|e| Error::reading(&root, "open this repository folder", e))?;
        if !metadata.is_dir() {
            return Err(Error::Repository { path: root, reason: "is not a folder".into() });
        }
        let real = files::canonicalize(&root)
            .map_err(|e| Error::reading(&root, "open this repository folder", e))?;
        let rules = (walk == Walk::Git).then(|| GitRules::new(&root)).transpose()?;
        Ok(Self { repos_dir, name, root, real, languages: languages.into(), walk, rules })
    }

    /// Returns the repository's folder without links.
    pub fn real_root(&self) -> &Path {
        &self.real
    }

    /// Lists all files in the code-point order of their paths, and the files and folders that cannot be listed.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn all(&self) -> Result<(Vec<SourcePath>, Vec<Error>)> {
        // Following links asks the system about every entry, so links are followed only if there are any.
        let without_links =
            self.follows_links().then(|| self.find_without_links(&self.root)).flatten();
        let (mut found, mut skipped) = match without_links {
            Some(found) => (found, Vec::new()),
            None => self.find()?,
        };
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        skipped.extend(self.rules.iter().flat_map(GitRules::take_problems));
        Ok((found, skipped))
    }

    /// Lists the files in a folder, given by its path in the repository. Returns `None` if links may lead from or to the
    /// folder, or if it cannot be listed; [`all`](Self::all) then reports the reason.
    pub fn below(&self, folder: &str) -> Option<Vec<SourcePath>> {
        let on_disk = self.root.join(folder);
        if files::canonicalize(&on_disk).ok()? != self.real.join(folder) {
            return None;
        }
        let mut way = Path::new(folder).ancestors().filter(|folder| *folder != Path::new(""));
        let is_left_out = self.is_hidden(folder) || self.is_ignored(folder, true);
        if is_left_out || way.any(|folder| is_cache(&self.root.join(folder))) {
            return Some(Vec::new());
        }
        self.find_without_links(&on_disk)
    }

    /// Reads a file and its identity on disk. Returns `None` if it is not a file of the repository: it does not exist, has
    /// another language's extension, or is left out by the walk.
    ///
    /// # Errors
    /// The file cannot be read or is not UTF-8, or a link leads out of the repository.
    pub fn read(&self, path: &str) -> Result<Option<(SourceFile, u64)>> {
        let below = path.strip_prefix(self.name).and_then(|path| path.strip_prefix('/'));
        if below.is_some_and(|below| self.is_ignored(below, false)) {
            Ok(None)
        } else {
            self.read_at_most(path, u64::MAX)
        }
    }

    /// Reads a file as [`read`](Self::read) does, even if git ignores it; `None` also if the file has more than 8 MiB.
    ///
    /// # Errors
    /// The same as for [`read`](Self::read).
    pub fn read_saved(&self, path: &str) -> Result<Option<(SourceFile, u64)>> {
        self.read_at_most(path, LONGEST_SAVED)
    }

    fn read_at_most(&self, path: &str, most: u64) -> Result<Option<(SourceFile, u64)>> {
        let on_disk = self.repos_dir.join(path);
        let Some(below) = path.strip_prefix(self.name).and_then(|path| path.strip_prefix('/'))
        else {
            return Ok(None);
        };
        if !below.split('/').all(is_folder_name)
            || !self.is_source_name(&on_disk)
            || self.is_hidden(below)
            || !files::metadata(&on_disk).is_ok_and(|metadata| metadata.len() <= most)
        {
            return Ok(None);
        }
        let bytes = read_bytes(&on_disk, self.within())?;
        let text = universal_newlines(decode(&on_disk, bytes.content)?);
        let file = SourceFile { path: path.to_owned(), text, same_as: 0 };
        Ok(Some((file, digest_of_id(&bytes.id))))
    }

    /// Reads a listed file. Its owner may have replaced the file meanwhile.
    ///
    /// # Errors
    /// The file no longer exists, cannot be read, or is now a link out of the repository.
    pub fn read_bytes(&self, file: &SourcePath) -> Result<Bytes> {
        read_bytes(&file.on_disk, self.within())
    }

    /// Returns the folder that must contain all files, if links out of the repository are not followed.
    fn within(&self) -> Option<&Path> {
        (self.walk != Walk::GlobAnywhere).then_some(&self.real)
    }

    fn follows_links(&self) -> bool {
        self.walk != Walk::Rglob
    }

    /// Returns true if the walk leaves out a path because of one of its names.
    fn is_hidden(&self, below: &str) -> bool {
        self.walk != Walk::Rglob && below.split('/').any(|name| name.starts_with('.'))
    }

    /// Returns true if git ignores a path and the walk uses git's rules.
    fn is_ignored(&self, below: &str, is_folder: bool) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.ignore_within(below.as_ref(), is_folder))
    }

    /// Returns true if the name of a file is in one of the languages.
    fn is_source_name(&self, path: &Path) -> bool {
        let mut endings = self.languages.iter().flat_map(|language| language.extensions());
        path.file_name().is_some_and(|name| {
            endings.any(|end| name.as_encoded_bytes().ends_with(end.as_bytes()))
        })
    }

    /// Returns true if an entry of a folder in the repository belongs to the repository. A cache that the entry reveals is
    /// added to `caches`.
    fn is_part(&self, entry: &DirEntry, caches: &mut Vec<PathBuf>) -> bool {
        if let Some(cache) = cache_around(entry) {
            caches.push(cache.to_owned());
            return false;
        }
        !(self.follows_links() && is_hidden(entry))
            && self.rules.as_ref().is_none_or(|rules| {
                let leads_to_folder = entry.file_type().is_dir();
                // Git treats a link as a file.
                let is_folder = leads_to_folder && !entry.path_is_symlink();
                let below = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
                let is_listed = leads_to_folder || self.is_source_name(below);
                entry.depth() == 0 || !is_listed || !rules.ignore(below, is_folder)
            })
    }

    fn check_entry(&self, entry: DirEntry) -> std::result::Result<SourcePath, PathBuf> {
        let relative = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
        match to_slashes(self.name, relative) {
            Some(path) => Ok(SourcePath { path, on_disk: entry.into_path() }),
            None => Err(entry.into_path()),
        }
    }

    fn find(&self) -> Result<(Vec<SourcePath>, Vec<Error>)> {
        let (root, real, follows) = (&self.root, &self.real, self.follows_links());
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        let (mut led_out, mut caches) = (Vec::new(), Vec::new());
        let mut walk = WalkDir::new(root).follow_links(follows);
        if follows {
            // Sorted, so that the same repeats are kept each time.
            walk = walk.sort_by_file_name();
        }
        let entries = walk.into_iter();
        let mut targets = LinkTargets::default();
        let mut is_taken = |entry: &DirEntry| {
            if !self.is_part(entry, &mut caches) {
                return false;
            }
            let is_read = self.is_source_name(entry.path()) || entry.file_type().is_dir();
            let is_link = entry.depth() > 0 && entry.path_is_symlink() && is_read;
            match is_link.then(|| leads_out(real, entry.path())).flatten() {
                Some(_) if self.walk == Walk::GlobAnywhere => targets.keep(entry),
                Some(reason) => {
                    let reason = message![
                        reason,
                        ", or read such links with ",
                        UserChoice::Walk,
                        format!(" {}", Walk::GlobAnywhere)
                    ];
                    led_out.push(Error::SourceFile { path: entry.path().to_owned(), reason });
                    false
                }
                None => !is_read || targets.keep(entry),
            }
        };
        for entry in entries.filter_entry(&mut is_taken) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(root);
                    // Python's glob skips broken links, unless they look like source files.
                    if path.is_symlink() && !self.is_source_name(path) {
                        continue;
                    }
                    skipped.push(not_walked(path, &error));
                    continue;
                }
            };
            if entry.depth() == 0
                || !self.is_source_name(entry.path())
                || entry.file_type().is_dir()
                || (!follows && entry.path().is_dir())
            {
                continue;
            }
            match self.check_entry(entry) {
                Ok(file) => found.push(file),
                Err(path) => skipped.push(Error::SourceFile {
                    path,
                    reason: "its name is not UTF-8; rename it".into(),
                }),
            }
        }
        skipped.extend(led_out);
        skipped.extend(targets.problem());
        let is_own = |path: &Path| caches.iter().any(|cache| path.starts_with(cache));
        found.retain(|file| !is_own(&file.on_disk));
        skipped.retain(|error| !matches!(error, Error::SourceFile { path, .. } if is_own(path)));
        skipped.extend(self.sources_in_caches(caches));
        Ok((found, skipped))
    }

    /// Reports folders that look like caches of this program, but hold source files.
    fn sources_in_caches(&self, mut caches: Vec<PathBuf>) -> impl Iterator<Item = Error> {
        caches.sort_unstable();
        caches.dedup_by(|next, cache| next.starts_with(cache));
        caches.into_iter().filter_map(|path| {
            let files = count_sources(&path, |file| self.is_source_name(file));
            let reason = format!(
                "it looks like a cache of this program, but has {}; move these or the cache to another folder",
                format_count(files as u64, "source file")
            );
            (files > 0).then(|| Error::SourceFile { path, reason: reason.into() })
        })
    }

    /// Finds the files of a folder if it contains no links, every name is UTF-8, every folder can be listed and no cache holds
    /// source files; otherwise returns `None`.
    fn find_without_links(&self, folder: &Path) -> Option<Vec<SourcePath>> {
        let (mut found, mut caches) = (Vec::new(), Vec::new());
        let entries = WalkDir::new(folder).into_iter();
        for entry in entries.filter_entry(|entry| self.is_part(entry, &mut caches)) {
            let entry = entry.ok()?;
            let kind = entry.file_type();
            if kind.is_symlink() && entry.depth() > 0 {
                return None;
            }
            if !kind.is_dir() && entry.depth() > 0 && self.is_source_name(entry.path()) {
                found.push(self.check_entry(entry).ok()?);
            }
        }
        found.retain(|file| !caches.iter().any(|cache| file.on_disk.starts_with(cache)));
        self.sources_in_caches(caches).next().is_none().then_some(found)
    }
}

fn not_walked(path: &Path, error: &walkdir::Error) -> Error {
    if let Some(io) = error.io_error() {
        return unreadable(path, io);
    }
    Error::SourceFile {
        path: path.to_owned(),
        reason: "a link to one of its parent folders".into(),
    }
}

fn to_slashes(name: &str, relative: &Path) -> Option<String> {
    let mut path = name.to_owned();
    for component in relative.components() {
        path.push('/');
        path.push_str(component.as_os_str().to_str()?);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_file_is_read_for_the_index_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("r")).unwrap();
        let text = "#".repeat(LONGEST_SAVED as usize + 1);
        for (name, text) in [("huge.py", &*text), ("large.py", &text[1..])] {
            std::fs::write(dir.path().join("r").join(name), text).unwrap();
        }
        let listing = Listing::new(dir.path(), "r", Language::Python, Walk::Glob).unwrap();
        let is_read = |path: &str| {
            let [any, saved] = [listing.read(path), listing.read_saved(path)].map(Result::unwrap);
            (any.is_some(), saved.is_some())
        };
        assert_eq!(is_read("r/large.py"), (true, true));
        assert_eq!(is_read("r/huge.py"), (true, false));
    }
}
