//! Location of a repository's history: the author of a repository must not choose which other history is read.

use std::collections::BTreeSet;

use std::path::{Path, PathBuf};

use repoformer_store::error::{Error, Result};
use repoformer_store::files;

use super::git::Git;

/// Files and folders of git's folder that hold a history.
const HOLDERS: [&str; 5] = ["HEAD", "objects", "packed-refs", "refs", "reftable"];

/// Checks that the history of a repository in the folder `root` is stored below it. That of a worktree or submodule may be stored with
/// the repository that it belongs to, which must name the folder.
///
/// # Errors
/// The history is stored elsewhere, which is named.
pub(super) fn check(dir: &Path, root: &Path, git: &Git) -> Result<()> {
    let refused = |way: &Path, target: &Path| {
        let (way, target) = (way.strip_prefix(root).unwrap_or(way).display(), target.display());
        let reason = format!(
            "{way} leads out of the repository, to {target}; copy it with `git clone --no-local`"
        );
        Error::Repository { path: dir.to_owned(), reason: reason.as_str().into() }
    };
    let place = |arguments: &[&str]| -> Result<PathBuf> {
        let said = git.text(&[&["rev-parse"][..], arguments].concat())?;
        let path = root.join(said.trim_end_matches('\n'));
        path.canonicalize().map_err(|e| Error::reading(&path, "open this folder", e))
    };
    let git_dir = place(&["--absolute-git-dir"])?;
    let common = place(&["--git-common-dir"])?;
    let is_own = git_dir.starts_with(root);
    if !is_own && !names_back(git, &git_dir, root) {
        return Err(refused(Path::new(".git"), &git_dir));
    }
    let is_worktree = git_dir.parent() == Some(&common.join("worktrees"));
    if !common.starts_with(root) && common != git_dir && !is_worktree {
        return Err(refused(&git_dir.join("commondir"), &common));
    }
    let roots = [root, &git_dir, &common];
    let mut walk = Walk { roots: &roots, folders: Vec::new(), seen: BTreeSet::new(), out: None };
    for folder in [&git_dir, &common] {
        HOLDERS.iter().for_each(|name| walk.add(folder.join(name)));
    }
    for name in ["objects", "refs"] {
        walk.add(place(&["--git-path", name])?);
    }
    walk.all();
    match walk.out {
        Some((path, target)) => Err(refused(&path, &target)),
        None => Ok(()),
    }
}

/// Whether git's folder of a worktree or submodule names the folder that leads to it. Only its owner could write that.
fn names_back(git: &Git, git_dir: &Path, root: &Path) -> bool {
    let is_at = |path: &Path, wanted: &Path| {
        path.canonicalize().is_ok_and(|path| wanted.canonicalize().is_ok_and(|w| w == path))
    };
    let of_worktree = files::read_to_string(git_dir.join("gitdir"));
    let is_worktree = of_worktree
        .is_ok_and(|link| is_at(&git_dir.join(link.trim_end_matches('\n')), &root.join(".git")));
    let config = git_dir.join("config");
    let config = config.to_str().unwrap_or_default();
    let of_submodule = git.text(&["config", "--file", config, "--get", "core.worktree"]);
    is_worktree
        || of_submodule.is_ok_and(|tree| is_at(&git_dir.join(tree.trim_end_matches('\n')), root))
}

/// Checks that git can open what lies in the folders that a repository in the folder `root` names as git's: a named pipe would hold it up
/// for ever, a device may do anything.
///
/// # Errors
/// There is something else than files and folders, which is named.
pub(super) fn check_kinds(dir: &Path, root: &Path) -> Result<()> {
    let is_there = |name: &str| root.join(name).symlink_metadata().is_ok();
    let mut folders = match (is_there(".git"), is_there("HEAD")) {
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
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            let reason = format!("{name} is neither a file nor a folder; remove it");
            return Err(Error::Repository { path: dir.to_owned(), reason: reason.as_str().into() });
        }
        let Ok(target) = path.canonicalize() else { continue };
        if !target.starts_with(root) || !seen.insert(target.clone()) {
            continue;
        }
        if kind.is_dir() {
            let entries = files::read_dir(&target).into_iter().flatten().flatten();
            let others = entries.filter(|entry| !entry.file_type().is_ok_and(|it| it.is_file()));
            folders.extend(others.map(|entry| entry.path()));
            // Other folders of git's, which these files name.
            folders.extend(["commondir", "info/alternates"].map(|name| target.join(name)));
        } else if let Some(folder) = target.parent()
            && [".git", "commondir", "alternates"].iter().any(|name| path.ends_with(name))
        {
            let text = files::read(&target).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let folder =
                if path.ends_with("info/alternates") { folder.join("..") } else { folder.into() };
            let named = text.lines().map(|line| line.strip_prefix("gitdir: ").unwrap_or(line));
            folders.extend(named.map(|named| folder.join(named)));
        }
    }
    Ok(())
}

/// Walk over what holds a history.
struct Walk<'r> {
    /// Folders that it may be in.
    roots: &'r [&'r Path],
    /// Folders that are still to be looked at.
    folders: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// First path that leads elsewhere, and where.
    out: Option<(PathBuf, PathBuf)>,
}

impl Walk<'_> {
    /// Looks at a file or folder; what git cannot open either is passed over.
    fn add(&mut self, path: PathBuf) {
        let Ok(target) = path.canonicalize() else { return };
        if !self.roots.iter().any(|root| target.starts_with(root)) {
            self.out.get_or_insert((path, target));
        } else if target.is_dir() && self.seen.insert(target.clone()) {
            self.folders.push(target);
        }
    }

    fn all(&mut self) {
        while self.out.is_none()
            && let Some(folder) = self.folders.pop()
        {
            self.alternates(&folder);
            for entry in files::read_dir(&folder).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                    self.add(entry.path());
                }
            }
        }
    }

    /// Looks at other folders of objects, which `info/alternates` lists.
    fn alternates(&mut self, objects: &Path) {
        let list = objects.join("info/alternates");
        let Ok(listed) = files::read(&list) else { return };
        for line in listed.split(|byte| *byte == b'\n') {
            match str::from_utf8(line) {
                Ok("") => {}
                Ok(line) if line.starts_with('#') => {}
                // Git unquotes what begins so.
                Ok(line) if !line.starts_with('"') => {
                    let before = self.out.is_some();
                    self.add(objects.join(line));
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
    }
}
