//! Snapshots of a copy's state, and restoring them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use repoformer_store::files;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::folder::{copy_entry, remove};

/// Metadata of every path in a folder.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    entries: BTreeMap<PathBuf, PathMetadata>,
}

/// Metadata of a path. Most changes update the change time, which programs cannot set; writing to a mapped file in memory (tmpfs) does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct PathMetadata {
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl PathMetadata {
    fn from_metadata(metadata: &files::Metadata) -> Self {
        let is_folder = metadata.is_dir();
        // The size and times of a folder reflect its entries, which are compared separately.
        let unless_folder = |pair| if is_folder { (0, 0) } else { pair };
        Self {
            inode: metadata.ino(),
            mode: metadata.mode(),
            size: if is_folder { 0 } else { metadata.size() },
            modified: unless_folder((metadata.mtime(), metadata.mtime_nsec())),
            changed: unless_folder((metadata.ctime(), metadata.ctime_nsec())),
        }
    }
}

impl Snapshot {
    pub(super) fn from_folder(folder: &Path) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for entry in WalkDir::new(folder).min_depth(1) {
            let entry = entry?;
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            entries.insert(path.to_owned(), PathMetadata::from_metadata(&entry.metadata()?));
        }
        Ok(Self { entries })
    }
}

/// Restores a folder from an unchanged copy to the state of its snapshot, and updates the snapshot.
pub(super) fn restore(folder: &Path, pristine: &Path, snapshot: &mut Snapshot) -> io::Result<()> {
    files::create_dir_all(folder)?; // a run may have removed it
    // If it were a link out of here, its target would be emptied.
    if files::canonicalize(folder)? != folder {
        return Err(io::Error::other("a run left a link in its place"));
    }
    let mode = files::symlink_metadata(folder)?.mode();
    if mode & 0o700 != 0o700 {
        files::set_permissions(folder, files::Permissions::from_mode(mode & 0o7777 | 0o700))?;
    }
    let mut seen = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(root) = folders.pop() {
        let mut walk = WalkDir::new(&root).follow_root_links(false).min_depth(1).into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => match error.path() {
                    // Its owner had no permissions on it; they were restored when its parent was visited.
                    Some(path) if *path != root => {
                        folders.push(path.to_owned());
                        continue;
                    }
                    _ => return Err(error.into()),
                },
            };
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_owned();
            let is_folder = entry.file_type().is_dir();
            let now = PathMetadata::from_metadata(&entry.metadata()?);
            match snapshot.entries.get(&path) {
                Some(before)
                    if *before == now
                        && (!entry.file_type().is_file()
                            || is_same_file(entry.path(), &pristine.join(&path))) =>
                {
                    seen.insert(path);
                }
                Some(before) if is_folder && before.inode == now.inode => {
                    let mode = files::Permissions::from_mode(before.mode & 0o7777);
                    files::set_permissions(entry.path(), mode)?;
                    seen.insert(path);
                }
                _ => {
                    if is_folder {
                        walk.skip_current_dir();
                    }
                    remove(entry.path())?;
                }
            }
        }
    }
    let lost: Vec<PathBuf> =
        snapshot.entries.keys().filter(|path| !seen.contains(*path)).cloned().collect();
    for path in lost {
        let to = folder.join(&path);
        copy_entry(pristine, folder, &path, u64::MAX)?;
        snapshot.entries.insert(path, PathMetadata::from_metadata(&files::symlink_metadata(&to)?));
    }
    Ok(())
}

/// Returns true if two files can be read and have the same content.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let compare = || {
        let open = |path| files::File::open(path).map(BufReader::new);
        let (mut one, mut other) = (open(one)?, open(other)?);
        loop {
            let (left, right) = (one.fill_buf()?, other.fill_buf()?);
            let count = left.len().min(right.len());
            if count == 0 || left[..count] != right[..count] {
                return io::Result::Ok(left.is_empty() && right.is_empty());
            }
            one.consume(count);
            other.consume(count);
        }
    };
    compare().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::folder::{copy_folder, digest};
    use super::*;

    #[test]
    fn whatever_a_run_does_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let (from, copy, pristine) =
            (dir.path().join("r"), dir.path().join("c"), dir.path().join("p"));
        for name in ["a/b", "kept/deep", "listed/deep"] {
            fs::create_dir_all(from.join(name)).unwrap();
        }
        for (name, text) in [("x.py", "x"), ("a/y.py", "y"), ("a/b/z.py", "z"), ("out.py", "o")] {
            fs::write(from.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("a/y.py", from.join("inside")).unwrap();
        std::os::unix::fs::symlink(from.join("x.py"), from.join("absolute")).unwrap();
        std::os::unix::fs::symlink(from.join("a/y.py"), from.join("a/absolute")).unwrap();
        std::os::unix::fs::symlink("nowhere", from.join("broken")).unwrap();
        for to in [&copy, &pristine] {
            fs::create_dir(to).unwrap();
        }
        copy_folder(&from, &copy, &[]).unwrap();
        copy_folder(&copy, &pristine, &[]).unwrap();
        for (link, target) in [("absolute", "x.py"), ("a/absolute", "../a/y.py")] {
            assert_eq!(fs::read_link(copy.join(link)).unwrap(), Path::new(target));
            assert_eq!(fs::read_link(pristine.join(link)).unwrap(), Path::new(target));
        }
        assert_eq!(fs::read_link(copy.join("broken")).unwrap(), Path::new("nowhere"));
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(&copy.join("x.py")), modified(&from.join("x.py")));

        let mut snapshot = Snapshot::from_folder(&copy).unwrap();
        let before = digest(&copy, &[]).unwrap();
        for _ in 0..2 {
            let old = modified(&copy.join("x.py"));
            fs::write(copy.join("x.py"), "X").unwrap(); // the same size, and its time set back
            fs::File::open(copy.join("x.py")).unwrap().set_modified(old).unwrap();
            fs::remove_dir_all(copy.join("a")).unwrap();
            fs::write(copy.join("a"), "a file now").unwrap();
            fs::create_dir_all(copy.join("new/deep")).unwrap();
            fs::write(copy.join("new/deep/f"), "").unwrap();
            fs::set_permissions(copy.join("new/deep"), fs::Permissions::from_mode(0o000)).unwrap();
            fs::remove_file(copy.join("inside")).unwrap();
            fs::set_permissions(copy.join("out.py"), fs::Permissions::from_mode(0o700)).unwrap();
            for (name, mode) in
                [("kept", 0o000), ("kept/deep", 0o000), ("listed", 0o400)].iter().rev()
            {
                fs::set_permissions(copy.join(name), fs::Permissions::from_mode(*mode)).unwrap();
            }
            restore(&copy, &pristine, &mut snapshot).unwrap();
            assert_eq!(digest(&copy, &[]).unwrap(), before);
            assert_eq!(fs::read_to_string(copy.join("x.py")).unwrap(), "x");
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&copy.join("out.py")), mode(&pristine.join("out.py")));
            assert_eq!(snapshot, Snapshot::from_folder(&copy).unwrap());
        }
        fs::remove_dir_all(&copy).unwrap();
        restore(&copy, &pristine, &mut snapshot).unwrap();
        assert_eq!(digest(&copy, &[]).unwrap(), before);
    }

    /// Writing to a mapped file in memory changes no time; here, the snapshot is of the changed file.
    #[test]
    fn content_that_changed_without_its_time_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let (copy, pristine) = (dir.path().join("c"), dir.path().join("p"));
        for (folder, text) in [(&copy, "y"), (&pristine, "x")] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("a.py"), text.repeat(100_000)).unwrap();
            fs::write(folder.join("same.py"), "x").unwrap();
        }
        let mut snapshot = Snapshot::from_folder(&copy).unwrap();
        let same = fs::metadata(copy.join("same.py")).unwrap().ino();
        restore(&copy, &pristine, &mut snapshot).unwrap();
        assert_eq!(fs::read_to_string(copy.join("a.py")).unwrap(), "x".repeat(100_000));
        assert_eq!(fs::metadata(copy.join("same.py")).unwrap().ino(), same, "it is left as it is");
    }

    /// If a run replaced the folder by a link, restoring it would empty the link's target.
    #[test]
    fn nothing_behind_a_link_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let (copy, other) = (dir.path().join("place/c"), dir.path().join("other"));
        for folder in [&copy, &other.join("c")] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("x"), "x").unwrap();
        }
        let mut snapshot = Snapshot::from_folder(&copy).unwrap();
        for (from, to) in
            [(copy.clone(), other.join("c")), (dir.path().join("place"), other.clone())]
        {
            fs::remove_dir_all(&from).unwrap();
            std::os::unix::fs::symlink(&to, &from).unwrap();
            let failed = restore(&copy, &copy, &mut snapshot).unwrap_err();
            assert!(failed.to_string().contains("link"), "{failed}");
            assert!(other.join("c/x").exists());
        }
    }
}
