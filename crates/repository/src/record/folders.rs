//! Folders of repositories, written from records.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::artifact::{TemporaryFolder, folder_of};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use walkdir::WalkDir;

use crate::corpus::{PathError, abbreviate, file_of, is_git_head, is_version_control, path_names};

/// Number of folder and file names allowed in any case, in addition to an allowance for each file: a folder takes a block of
/// the disk, and a path of a few hundred bytes can create dozens.
const NAMES: usize = 10_000;
const NAMES_OF_EACH: usize = 16;
/// Folder of unpacked files, next to the repositories.
const UNPACKED: &str = ".unpacked";

/// Repositories while they are being written: in a temporary folder until all of them are complete. If dropped before, they are
/// removed.
///
/// If their final folder does not exist yet, all repositories appear at once. In an existing folder, each repository is either
/// complete or absent; if the program is killed between two of them, the next run keeps the repositories that already exist
/// with the same files.
#[derive(Debug)]
pub struct Folders {
    dir: PathBuf,
    temporary: TemporaryFolder,
    /// Whether the temporary folder is next to `dir`, which does not exist yet, and can be renamed to it.
    is_beside: bool,
    /// Repositories that an earlier run already moved into place.
    there: BTreeSet<String>,
    /// Number of files in each repository's folder so far.
    files: HashMap<String, usize>,
    /// Names of files and folders so far.
    names: Names,
    /// Number of files written.
    written: usize,
    /// Number of files that are left out because of their names, and the first of them.
    left_out: BTreeMap<LeftOutReason, (usize, String)>,
    /// Paths of `.git` and other folders of version control that are left out.
    controls: BTreeSet<PathBuf>,
}

/// Outcome of writing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum WriteOutcome {
    /// The file is written.
    Whole,
    /// The file is left out, and counted.
    LeftOut,
    /// The file cannot be written, for this reason.
    Refused(String),
}

/// Reason why a file is left out although it could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LeftOutReason {
    Control,
    Settings,
    Alike,
}

impl LeftOutReason {
    const fn reason(self) -> &'static str {
        match self {
            Self::Control => "in folders of version control, from which programs run commands",
            Self::Settings => "of settings, which this program would apply",
            Self::Alike => "whose names equal other names on some file systems",
        }
    }
}

/// Names in folders, as every file system sees them. Maps the number of the folder and the name to the name as first written
/// and its number.
#[derive(Debug, Default)]
struct Names(HashMap<(usize, String), (String, usize)>);

impl Names {
    /// Adds the names on a path; returns false if a file system would confuse one with another existing name.
    fn add<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let mut folder = 0;
        for name in names {
            let number = self.0.len() + 1;
            let key = (folder, file_of(name));
            let (there, number) = self.0.entry(key).or_insert_with(|| (name.to_owned(), number));
            if there != name {
                return false;
            }
            folder = *number;
        }
        true
    }
}

impl Folders {
    /// Starts writing to a folder, which is created together with the repositories.
    ///
    /// # Errors
    /// The folder cannot be created or written.
    pub fn create(dir: &Path) -> Result<Self> {
        let cannot_write = |e| Error::writing(dir, "write into this folder", e);
        let is_beside = dir.symlink_metadata().is_err();
        let folder = if is_beside { folder_of(dir) } else { dir };
        files::create_dir_all(folder)
            .map_err(|e| Error::writing(folder, "create this folder", e))?;
        // Its name hides it from programs that list the repositories meanwhile.
        let temporary = TemporaryFolder::create(folder).map_err(cannot_write)?;
        Ok(Self {
            dir: dir.to_owned(),
            temporary,
            is_beside,
            there: BTreeSet::new(),
            files: HashMap::default(),
            names: Names::default(),
            written: 0,
            left_out: BTreeMap::new(),
            controls: BTreeSet::new(),
        })
    }

    /// Writes a file of a repository. Refuses paths that lead out of the repository, to an existing file, or through another
    /// file, and names that the file system refuses. Leaves out files that programs of version control would run, and names
    /// that some file systems would confuse with others.
    ///
    /// # Errors
    /// Writing failed.
    pub fn write(&mut self, repository: &str, path: &str, content: &[u8]) -> Result<WriteOutcome> {
        if let Err(reason) = self.check(repository) {
            return Ok(WriteOutcome::Refused(reason));
        }
        let written = self.write_below(repository, path, content)?;
        if written == WriteOutcome::Whole {
            *self.files.entry(repository.to_owned()).or_default() += 1;
        }
        Ok(written)
    }

    /// Writes a file of an archive, to be [adopted](Self::adopt) by a repository after the whole archive has been read.
    ///
    /// # Errors
    /// The same as for [`write`](Self::write).
    pub fn unpack(&mut self, path: &str, content: &[u8]) -> Result<WriteOutcome> {
        self.write_below(UNPACKED, path, content)
    }

    /// Describes the files that are left out.
    pub fn describe_left_out(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|(why, (count, first))| {
            let (files, reason) = (if *count == 1 { "file" } else { "files" }, why.reason());
            format!("left out: {count} {files} {reason}; the first is '{first}'")
        })
    }

    /// Returns the paths of folders of version control that are left out, as if they existed.
    pub fn controls(&self) -> &BTreeSet<PathBuf> {
        &self.controls
    }

    /// Returns the folder of the unpacked files.
    pub fn unpacked_folder(&self) -> PathBuf {
        self.temporary.path().join(UNPACKED)
    }

    /// Turns an unpacked folder, or all unpacked files (""), into a repository, and returns the number of its files.
    ///
    /// # Errors
    /// Moving failed. If the name cannot be used, the result is `Ok(Err)` with the reason.
    pub fn adopt(&mut self, repository: &str, within: &str) -> Result<Result<usize, String>> {
        if let Err(reason) = self.check(repository) {
            return Ok(Err(reason));
        }
        let folder = self.unpacked_folder().join(within);
        let files = count_files(&folder)?;
        files::rename(&folder, self.temporary.path().join(repository))
            .map_err(|e| Error::writing(&folder, "move this folder", e))?;
        self.files.insert(repository.to_owned(), files);
        Ok(Ok(files))
    }

    /// Returns the number of files that were unpacked and not adopted.
    ///
    /// # Errors
    /// The files cannot be listed.
    pub fn count_left(&self) -> Result<usize> {
        count_files(&self.unpacked_folder())
    }

    /// Checks that a repository can have this name; the error is the reason.
    fn check(&mut self, repository: &str) -> Result<(), String> {
        path_names(repository).map_err(|error| error.to_string())?;
        let is_hidden = repository.starts_with('.') || is_version_control(repository);
        if repository.contains('/') || is_hidden {
            return Err(format!("'{repository}' cannot be used as a folder name"));
        }
        let place = self.dir.join(repository);
        match place.symlink_metadata() {
            _ if self.files.contains_key(repository) => {}
            Err(_) => {}
            // Its files are compared once all are known.
            Ok(metadata) if metadata.is_dir() => {
                self.there.insert(repository.to_owned());
            }
            Ok(_) => {
                let place = place.display();
                return Err(format!("{place} already exists; remove it or choose another -o"));
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, why: LeftOutReason, of: &str, path: &str) -> WriteOutcome {
        let first = || format!("{}{of}", abbreviate(path));
        self.left_out.entry(why).or_insert_with(|| (0, first())).0 += 1;
        WriteOutcome::LeftOut
    }

    fn write_below(&mut self, folder: &str, path: &str, content: &[u8]) -> Result<WriteOutcome> {
        let shown = abbreviate(path);
        let of = if folder == UNPACKED { "" } else { &format!(" in {}", abbreviate(folder)) };
        let names = match path_names(path) {
            Ok(names) => names,
            Err(error @ PathError::TooLong(_)) => {
                return Ok(WriteOutcome::Refused(format!(
                    "a path{of} {error}; its file is left out"
                )));
            }
            Err(error) => return Ok(WriteOutcome::Refused(error.to_string())),
        };
        if self.names.0.len() > NAMES + NAMES_OF_EACH * self.written {
            let many = format!("there are more than {NAMES_OF_EACH} folders for each file");
            return Ok(WriteOutcome::Refused(format!("'{shown}'{of} is left out: {many}")));
        }
        // The temporary folder contains only files written here, so no link leads elsewhere.
        let below = self.temporary.path().join(folder);
        if let Some(at) = names.iter().position(|name| is_version_control(name)) {
            self.controls.insert(below.join(names[..=at].join("/")));
            return Ok(self.leave_out(LeftOutReason::Control, of, path));
        }
        if names.last().is_some_and(|name| is_git_head(name, content)) {
            return Ok(self.leave_out(LeftOutReason::Control, of, path));
        }
        if names.last().is_some_and(|name| file_of(name) == "repoformer.toml") {
            return Ok(self.leave_out(LeftOutReason::Settings, of, path));
        }
        if !self.names.add(std::iter::once(folder).chain(names.iter().copied())) {
            return Ok(self.leave_out(LeftOutReason::Alike, of, path));
        }
        let place = below.join(names.join("/"));
        let parent = place.parent().unwrap_or(self.temporary.path());
        let refused = |error: std::io::Error| {
            self.remove_empty(parent);
            Ok(WriteOutcome::Refused(format!(
                "'{shown}'{of} is left out because the file system refuses its name: {error}"
            )))
        };
        match files::create_dir_all(parent) {
            Err(error) if is_taken(&error) => {
                return Ok(WriteOutcome::Refused(format!("'{shown}' is below a file")));
            }
            Err(error) if is_refused_name(&error) => return refused(error),
            _ => {}
        }
        let file =
            files::File::open_with(std::fs::File::options().write(true).create_new(true), &place);
        let mut file = match file {
            Err(error) if is_taken(&error) => {
                return Ok(WriteOutcome::Refused(format!("'{shown}' is there twice{of}")));
            }
            Err(error) if is_refused_name(&error) => return refused(error),
            other => other.map_err(|e| Error::writing(&place, "write this file", e))?,
        };
        file.write_all(content).map_err(|e| Error::writing(&place, "write this file", e))?;
        self.written += 1;
        Ok(WriteOutcome::Whole)
    }

    /// Removes a folder and its parent folders, as long as they are empty.
    fn remove_empty(&self, folder: &Path) {
        let folders = folder.ancestors().take_while(|above| *above != self.temporary.path());
        for folder in folders {
            // Nothing was created below the refused name.
            let is_absent = |error: &std::io::Error| {
                is_refused_name(error) || error.kind() == std::io::ErrorKind::NotFound
            };
            if files::remove_dir(folder).is_err_and(|error| !is_absent(&error)) {
                break;
            }
        }
    }

    /// Moves all folders into place.
    ///
    /// # Errors
    /// A folder cannot be moved into place.
    pub fn finish(self) -> Result<Placement> {
        let mut placed = Placement::default();
        for name in &self.there {
            let place = self.dir.join(name);
            let is_same = have_same_files(&self.temporary.path().join(name), &place);
            if is_same.map_err(|e| Error::reading(&place, "compare this folder", e))? {
                placed.same.push(name.clone())
            } else {
                placed.refused.push(name.clone())
            }
        }
        let mut folders: Vec<(String, usize)> = self.files.into_iter().collect();
        folders.sort_unstable();
        folders.retain(|(name, _)| !placed.refused.contains(name));
        placed.files = folders.iter().map(|(_, files)| files).sum();
        folders.retain(|(name, _)| !placed.same.contains(name));
        if self.is_beside {
            // Unpacked files that belong to no repository.
            let _ = files::remove_dir_all(self.temporary.path().join(UNPACKED));
            if files::rename(self.temporary.path(), &self.dir).is_ok() {
                return Ok(placed);
            }
            // Somebody created the folder meanwhile.
        }
        for (number, (name, _)) in folders.iter().enumerate() {
            let place = self.dir.join(name);
            if let Err(e) = files::rename(self.temporary.path().join(name), &place) {
                // All or none: folders already in place would make the next attempt fail.
                for (name, _) in &folders[..number] {
                    let _ = files::rename(self.dir.join(name), self.temporary.path().join(name));
                }
                return Err(Error::writing(&place, "put this folder in its place", e));
            }
        }
        Ok(placed)
    }
}

/// Result of moving repositories into place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Number of written files that are now in place.
    pub files: usize,
    /// Names of the repositories that already existed with the same files.
    pub same: Vec<String>,
    /// Names of the repositories that already existed with other files, which stay unchanged.
    pub refused: Vec<String>,
}

/// Returns true if two folders have the same files.
fn have_same_files(one: &Path, other: &Path) -> std::io::Result<bool> {
    let list = |root: &Path| -> std::io::Result<Vec<(PathBuf, [bool; 2])>> {
        let entries = WalkDir::new(root).min_depth(1).sort_by_file_name().into_iter();
        let listed = entries.map(|entry| {
            let entry = entry?;
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
            let kind = entry.file_type();
            Ok((path.to_owned(), [kind.is_file(), kind.is_dir()]))
        });
        listed.collect()
    };
    let (entries, others) = (list(one)?, list(other)?);
    if entries != others {
        return Ok(false);
    }
    for (path, [is_file, _]) in entries {
        if is_file && files::read(one.join(&path))? != files::read(other.join(&path))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn count_files(folder: &Path) -> Result<usize> {
    let mut files = 0;
    for entry in WalkDir::new(folder) {
        let entry = entry.map_err(|e| Error::reading(folder, "list this folder", e.into()))?;
        files += usize::from(entry.file_type().is_file());
    }
    Ok(files)
}

fn is_taken(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    matches!(error.kind(), Kind::AlreadyExists | Kind::NotADirectory | Kind::IsADirectory)
}

/// Returns true if the file system cannot store the name: it is too long, or has unsupported characters.
fn is_refused_name(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    /// Linux: a name that is not in the file system's encoding.
    const EILSEQ: i32 = 84;
    matches!(error.kind(), Kind::InvalidFilename | Kind::InvalidInput)
        || (cfg!(target_os = "linux") && error.raw_os_error() == Some(EILSEQ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(folders: &mut Folders, repository: &str, path: &str) {
        assert_eq!(folders.write(repository, path, b"x").unwrap(), WriteOutcome::Whole);
    }

    fn reason_of(written: Result<WriteOutcome>) -> String {
        let WriteOutcome::Refused(reason) = written.unwrap() else { panic!("it is not refused") };
        reason
    }

    /// Linux has names of at most 255 bytes.
    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_the_file_system_refuses_are_left_out_alone() {
        let dir = tempfile::tempdir().unwrap();
        let repos = dir.path().join("repos");
        let mut folders = Folders::create(&repos).unwrap();
        write(&mut folders, "r", "a.py");
        let [fits, long] =
            [255, 256].map(|length| "é".repeat(length / 2) + &"n".repeat(length % 2));
        write(&mut folders, "r", &format!("only/{fits}"));
        for path in [&long, &format!("in/{long}"), &format!("{long}/a.py")] {
            let reason = reason_of(folders.write("r", path, b"x"));
            assert!(
                reason.contains("' in r is left out because the file system refuses"),
                "{reason}"
            );
            assert!(reason.contains("File name too long") && reason.len() < 300, "{reason}");
        }
        let reason = reason_of(folders.write(&long, "a.py", b"x"));
        assert!(reason.contains("File name too long"), "{reason}");
        assert_eq!(folders.finish().unwrap().files, 2);
        let mut names: Vec<_> = fs::read_dir(repos.join("r"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["a.py", "only"], "no folder is left empty");
        assert_eq!(fs::read_dir(&repos).unwrap().count(), 1);
    }

    /// Each file has 40 folders of its own.
    #[test]
    fn folders_do_not_grow_out_of_proportion_to_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut folders = Folders::create(&dir.path().join("repos")).unwrap();
        let path = |number: usize, depth: usize| format!("{number}/{}a.py", "d/".repeat(depth));
        let reason = reason_of(folders.write("r", &path(0, 100), b"x"));
        assert!(reason.starts_with("a path in r has more than 64 names"), "{reason}");
        let written = |number| folders.write("r", &path(number, 39), b"x").unwrap();
        let written: Vec<WriteOutcome> = (0..500).map(written).collect();
        let whole = written.iter().take_while(|written| **written == WriteOutcome::Whole).count();
        // Each file needs 41 names; 16 per file are allowed in addition to the 10,000.
        assert_eq!(whole, 400);
        for refused in &written[whole..] {
            let WriteOutcome::Refused(reason) = refused else { panic!("{refused:?}") };
            assert!(reason.contains("more than 16 folders for each file"), "{reason}");
        }
        assert_eq!(folders.finish().unwrap().files, 400);
    }

    #[test]
    fn folders_are_whole_or_not_there_and_nothing_escapes() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        let repos = dir.path().join("repos");
        fs::create_dir(&outside).unwrap();
        let mut folders = Folders::create(&repos).unwrap();
        assert_eq!(folders.write("r", "a/b.py", b"x\r\n").unwrap(), WriteOutcome::Whole);
        for (repository, path, wanted) in [
            ("r", "../x.py", "leads out"),
            ("r", "/etc/x.py", "leads out"),
            ("r", "a\\x.py", "contains a backslash"),
            ("r", "a//b.py", "is there twice"),
            ("..", "x.py", "leads out"),
            ("a/b", "x.py", "cannot be used"),
            (".git", "x.py", "cannot be used"),
            ("GIT~1", "config", "cannot be used"),
            ("r", "a/b.py", "is there twice"),
            ("r", "a", "is there twice"),
            ("r", "a/b.py/c.py", "is below a file"),
        ] {
            let reason = reason_of(folders.write(repository, path, b"bad"));
            assert!(reason.contains(wanted), "{repository} {path}: {reason}");
        }
        assert!(!repos.join("r").exists(), "not before the end");
        assert_eq!(folders.finish().unwrap(), Placement { files: 1, ..Placement::default() });
        assert_eq!(fs::read(repos.join("r/a/b.py")).unwrap(), b"x\r\n");
        assert_eq!(fs::read_dir(&repos).unwrap().count(), 1);

        #[cfg(unix)]
        std::os::unix::fs::symlink(&outside, repos.join("link")).unwrap();
        // In an existing folder, repositories with the same files are accepted, and those with other files stay unchanged.
        for (text, same, others) in
            [("x\r\n", vec!["r".to_owned()], vec![]), ("y", vec![], vec!["r".to_owned()])]
        {
            let mut folders = Folders::create(&repos).unwrap();
            #[cfg(unix)]
            assert!(reason_of(folders.write("link", "c.py", b"")).contains("already exists"));
            assert_eq!(folders.write("r", "a/b.py", text.as_bytes()).unwrap(), WriteOutcome::Whole);
            write(&mut folders, &format!("new{}", same.len()), "c.py");
            let placed = folders.finish().unwrap();
            assert_eq!(placed, Placement { files: 1 + same.len(), same, refused: others });
        }
        assert_eq!(fs::read(repos.join("r/a/b.py")).unwrap(), b"x\r\n");
        assert!(repos.join("new0/c.py").exists() && repos.join("new1/c.py").exists());
        assert!(fs::read_dir(&outside).unwrap().next().is_none());
    }
}
