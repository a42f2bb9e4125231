//! Location of a repository's history. The author of a repository must not be able to choose which other history is read, or
//! what git opens.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, File};

/// Files and folders of git's folder that contain a history.
const HOLDERS: [&str; 4] = ["HEAD", "objects", "packed-refs", "refs"];

/// Greatest number of bytes of a file that names a branch, a commit or a folder.
pub(super) const MOST_NAME: u64 = 4 << 10;
/// Greatest number of bytes of a list of folders, and of settings.
const MOST_LIST: u64 = 1 << 20;
/// Greatest number of folders of objects.
const MOST_FOLDERS: usize = 64;

/// Folder that the user names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFolder<'n> {
    /// Path as the user writes it.
    pub(super) dir: &'n Path,
    /// Path without links.
    pub(super) root: &'n Path,
}

impl NamedFolder<'_> {
    pub(super) fn refusal(&self, reason: impl AsRef<str>) -> Error {
        Error::Repository { path: self.dir.to_owned(), reason: reason.as_ref().into() }
    }

    /// Returns the name of a file in messages.
    pub(super) fn name<'p>(&self, path: &'p Path) -> impl Display + use<'p> {
        path.strip_prefix(self.root).unwrap_or(path).display()
    }

    fn leads_out(&self, way: &Path, target: &Path) -> Error {
        self.refusal(format!(
            "{} leads out of the repository, to {}; copy it with `git clone --no-local`",
            self.name(way),
            target.display()
        ))
    }

    /// Reads one of git's files; returns `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, is not a regular file, or is too long.
    pub(super) fn read(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
        let failed = |e| Error::reading(path, "read this file of git's", e);
        match files::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Ok(None),
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(self.neither(path)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(e) => return Err(failed(e)),
        }
        let Some(open) = File::open_in_place(path).map_err(failed)? else {
            return Err(self.neither(path));
        };
        match open.file.read_at_most(most).map_err(failed)? {
            None => Err(self.refusal(format!("{} has more than {most} bytes", self.name(path)))),
            some => Ok(some),
        }
    }

    fn neither(&self, path: &Path) -> Error {
        let name = self.name(path);
        self.refusal(format!("{name} is neither a file nor a folder; remove it"))
    }
}

/// Location of a history; its paths contain no links.
#[derive(Debug)]
pub(super) struct HistoryPath {
    /// Git's folder; for a worktree, the worktree's own.
    pub(super) git_dir: PathBuf,
    /// Git's folder that all worktrees share.
    pub(super) common: PathBuf,
    /// Folders of objects.
    pub(super) objects: Vec<PathBuf>,
}

impl HistoryPath {
    /// Finds the history of a repository, and checks that it is inside the repository's folder. The history of a worktree or
    /// submodule may be stored with the repository that it belongs to, which must name the folder.
    ///
    /// # Errors
    /// The history does not exist, is stored elsewhere, or contains something other than files and folders, which the error
    /// names.
    pub(super) fn find(named: NamedFolder<'_>) -> Result<Self> {
        check_kinds(named)?;
        let root = named.root;
        let git_dir = git_dir(named)?;
        let common = common_dir(named, &git_dir)?;
        let is_worktree = git_dir.parent() == Some(&common.join("worktrees"));
        if !common.starts_with(root) && common != git_dir && !is_worktree {
            return Err(named.leads_out(&git_dir.join("commondir"), &common));
        }
        let roots = [root, &git_dir, &common];
        let mut walk = Walk {
            named,
            roots: &roots,
            folders: Vec::new(),
            seen: BTreeSet::new(),
            objects: Vec::new(),
            out: None,
        };
        for folder in [&git_dir, &common] {
            HOLDERS.iter().for_each(|name| walk.add(folder.join(name)));
        }
        walk.objects.extend(common.join("objects").canonicalize());
        walk.all()?;
        let Walk { objects, out, .. } = walk;
        match out {
            Some((path, target)) => Err(named.leads_out(&path, &target)),
            None => Ok(Self { objects, git_dir, common }),
        }
    }
}

/// Returns true if a file, folder or link exists.
fn is_there(path: &Path) -> bool {
    files::symlink_metadata(path).is_ok()
}

/// Returns true if a folder looks like git's.
fn is_git_dir(path: &Path) -> bool {
    let is_there = |name: &str| is_there(&path.join(name));
    is_there("HEAD") && (is_there("commondir") || (is_there("objects") && is_there("refs")))
}

/// Finds git's folder of a repository.
fn git_dir(named: NamedFolder<'_>) -> Result<PathBuf> {
    let root = named.root;
    let inner = root.join(".git");
    let is_file = files::metadata(&inner).is_ok_and(|metadata| metadata.is_file());
    let pointed = if is_file { read_pointer(named, &inner)? } else { inner };
    if let Ok(git_dir) = pointed.canonicalize() {
        if !git_dir.starts_with(root) && !names_back(named, &git_dir) {
            return Err(named.leads_out(Path::new(".git"), &git_dir));
        }
        if is_git_dir(&git_dir) {
            return Ok(git_dir);
        }
    }
    if is_file {
        return Err(
            named.refusal(".git does not point to a git folder; clone the repository again")
        );
    }
    if is_git_dir(root) {
        return Ok(root.to_owned());
    }
    let is_repository = |path: &&Path| {
        let inner = path.join(".git");
        is_git_dir(&inner) || is_git_dir(path) || inner.is_file()
    };
    Err(match root.ancestors().skip(1).find(is_repository) {
        Some(path) => named.refusal(format!(
            "is not a Git repository, but a folder inside the repository {}; pass that repository",
            path.display()
        )),
        None => named.refusal("is not a Git repository"),
    })
}

/// Returns the folder that a file `.git` names.
fn read_pointer(named: NamedFolder<'_>, path: &Path) -> Result<PathBuf> {
    let failed = |e| Error::reading(path, "open this file", e);
    let target = path.canonicalize().map_err(failed)?;
    if !target.starts_with(named.root) {
        return Err(named.leads_out(path, &target));
    }
    let text = named.read(&target, MOST_NAME)?.unwrap_or_default();
    match str::from_utf8(&text).ok().and_then(|text| text.strip_prefix("gitdir: ")) {
        Some(folder) => Ok(named.root.join(folder.trim_end_matches(['\n', '\r']))),
        None => {
            Err(named.refusal(".git does not point to a git folder; clone the repository again"))
        }
    }
}

/// Returns git's folder that all worktrees share.
fn common_dir(named: NamedFolder<'_>, git_dir: &Path) -> Result<PathBuf> {
    let path = git_dir.join("commondir");
    if let Ok(target) = path.canonicalize()
        && ![named.root, git_dir].iter().any(|root| target.starts_with(root))
    {
        return Err(named.leads_out(&path, &target));
    }
    let Some(text) = named.read(&path, MOST_NAME)? else { return Ok(git_dir.to_owned()) };
    let text = String::from_utf8_lossy(&text);
    let common = git_dir.join(text.trim_end_matches(['\n', '\r']));
    common.canonicalize().map_err(|e| Error::reading(&common, "open this folder", e))
}

/// Returns true if git's folder of a worktree or submodule names the folder that leads to it. Only the owner of git's folder
/// could write that.
fn names_back(named: NamedFolder<'_>, git_dir: &Path) -> bool {
    let is_at = |path: &str, wanted: &Path| {
        let path = git_dir.join(path).canonicalize();
        path.is_ok_and(|path| wanted.canonicalize().is_ok_and(|wanted| wanted == path))
    };
    let text = |name: &str| -> Option<String> {
        let bytes = named.read(&git_dir.join(name), MOST_LIST).ok()??;
        String::from_utf8(bytes).ok()
    };
    let of_worktree = text("gitdir");
    let of_submodule = text("config").and_then(|config| worktree_setting(&config));
    of_worktree.is_some_and(|link| is_at(link.trim_end_matches('\n'), &named.root.join(".git")))
        || of_submodule.is_some_and(|tree| is_at(&tree, named.root))
}

/// Returns the value of `core.worktree` in git's settings.
fn worktree_setting(config: &str) -> Option<String> {
    let (mut is_core, mut found) = (false, None);
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_core = section.trim_end_matches(']').eq_ignore_ascii_case("core");
        } else if let Some((key, value)) = line.split_once('=')
            && is_core
            && key.trim_end().eq_ignore_ascii_case("worktree")
        {
            found = setting_value(value.trim_start());
        }
    }
    found
}

/// Returns the text of a value as git writes it: in quotes if it has blanks at an end or the sign of a comment. Returns `None`
/// for escapes that git writes only for paths with control characters.
fn setting_value(written: &str) -> Option<String> {
    let (mut value, mut is_quoted, mut characters) = (String::new(), false, written.chars());
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => value.push(characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            other => value.push(other),
        }
    }
    Some(value)
}

/// Checks the folders that a repository names as git's: a named pipe would block anyone who opens it forever, and a device may
/// do anything.
///
/// # Errors
/// The folders contain something other than files and folders, which the error names.
fn check_kinds(named: NamedFolder<'_>) -> Result<()> {
    let root = named.root;
    let mut folders = match (is_there(&root.join(".git")), is_there(&root.join("HEAD"))) {
        (true, _) => vec![root.join(".git")],
        (false, true) => vec![root.to_owned()],
        (false, false) => return Ok(()),
    };
    let mut seen = BTreeSet::new();
    while let Some(path) = folders.pop() {
        let kind = match path.metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(_) => continue, // git cannot open it either
        };
        if !kind.is_file() && !kind.is_dir() {
            return Err(named.neither(&path));
        }
        let Ok(target) = path.canonicalize() else { continue };
        if !target.starts_with(root) || !seen.insert(target.clone()) {
            continue;
        }
        if kind.is_dir() {
            let entries = files::read_dir(&target).into_iter().flatten().flatten();
            let others = entries.filter(|entry| !entry.file_type().is_ok_and(|it| it.is_file()));
            folders.extend(others.map(|entry| entry.path()));
            // Other folders of git's that these files name.
            folders.extend(["commondir", "info/alternates"].map(|name| target.join(name)));
        } else if let Some(folder) = target.parent()
            && [".git", "commondir", "alternates"].iter().any(|name| path.ends_with(name))
        {
            let text = named.read(&target, MOST_LIST)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let folder =
                if path.ends_with("info/alternates") { folder.join("..") } else { folder.into() };
            let lines = text.lines().map(|line| line.strip_prefix("gitdir: ").unwrap_or(line));
            folders.extend(lines.map(|line| folder.join(line)));
        }
    }
    Ok(())
}

/// Walk over a history's files.
struct Walk<'r> {
    named: NamedFolder<'r>,
    /// Folders that may contain the history.
    roots: &'r [&'r Path],
    /// Folders yet to be checked.
    folders: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// Folders of objects, without links.
    objects: Vec<PathBuf>,
    /// First path that leads elsewhere, and its target.
    out: Option<(PathBuf, PathBuf)>,
}

impl Walk<'_> {
    /// Checks a file or folder; skips it if git cannot open it either.
    fn add(&mut self, path: PathBuf) {
        let Ok(target) = path.canonicalize() else { return };
        if !self.roots.iter().any(|root| target.starts_with(root)) {
            self.out.get_or_insert((path, target));
        } else if target.is_dir() && self.seen.insert(target.clone()) {
            self.folders.push(target);
        }
    }

    fn all(&mut self) -> Result<()> {
        let mut alternates_read = 0;
        while self.out.is_none() {
            if self.objects.len() > MOST_FOLDERS {
                let reason = format!("has more than {MOST_FOLDERS} folders of objects; clone it");
                return Err(self.named.refusal(reason));
            }
            if let Some(objects) = self.objects.get(alternates_read).cloned() {
                alternates_read += 1;
                self.alternates(&objects)?;
            } else if let Some(folder) = self.folders.pop() {
                for entry in files::read_dir(&folder).into_iter().flatten().flatten() {
                    if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                        self.add(entry.path());
                    }
                }
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Checks the other folders of objects that `info/alternates` lists.
    fn alternates(&mut self, objects: &Path) -> Result<()> {
        let list = objects.join("info/alternates");
        self.add(list.clone());
        if self.out.is_some() {
            return Ok(());
        }
        let listed = self.named.read(&list, MOST_LIST)?.unwrap_or_default();
        for line in listed.split(|byte| *byte == b'\n') {
            match str::from_utf8(line) {
                Ok("") => {}
                Ok(line) if line.starts_with('#') => {}
                // Git unquotes lines that begin with a quote.
                Ok(line) if !line.starts_with('"') => {
                    let before = self.out.is_some();
                    let folder = objects.join(line);
                    if let Ok(folder) = folder.canonicalize()
                        && folder.is_dir()
                        && !self.objects.contains(&folder)
                    {
                        self.objects.push(folder);
                    }
                    self.add(folder);
                    if let (false, Some((path, _))) = (before, &mut self.out) {
                        path.clone_from(&list);
                    }
                }
                _ => {
                    let line = String::from_utf8_lossy(line).into_owned();
                    self.out.get_or_insert((list.clone(), line.into()));
                }
            }
        }
        Ok(())
    }
}
