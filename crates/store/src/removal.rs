//! Removal of a folder with its content, however deeply its folders are nested.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Removes a folder with its content, or a file. Read-only folders are made writable first.
///
/// Nested folders are moved up into the folder itself, one level in each round. No path becomes long, and neither the stack nor
/// the number of open files grows with the depth.
///
/// # Errors
/// Something cannot be read, moved or removed.
pub(crate) fn remove_dir_all(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let mut number = 0;
    loop {
        let mut is_empty = true;
        for entry in list(path)? {
            let entry = entry?;
            is_empty = false;
            if !entry.file_type()?.is_dir() {
                accept_missing(fs::remove_file(entry.path()))?;
                continue;
            }
            let folder = entry.path();
            for inner in list(&folder)? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    move_up(&inner.path(), path, &mut number)?
                } else {
                    accept_missing(fs::remove_file(inner.path()))?
                }
            }
            accept_missing(fs::remove_dir(&folder))?;
        }
        if is_empty {
            return fs::remove_dir(path);
        }
    }
}

/// Lists a folder after making it writable, so that its entries can be moved and removed.
fn list(folder: &Path) -> io::Result<fs::ReadDir> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::symlink_metadata(folder)?.permissions().mode();
        if mode & 0o700 != 0o700 {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
    }
    fs::read_dir(folder)
}

/// Number of names that are tried before a folder counts as one that cannot be moved.
const MOST_NAMES: usize = 1000;

/// Moves a folder into a folder further up, under a free name.
fn move_up(folder: &Path, into: &Path, number: &mut u64) -> io::Result<()> {
    list(folder)?; // a read-only folder cannot be moved either
    for _ in 0..MOST_NAMES {
        *number += 1;
        match fs::rename(folder, into.join(format!(".removed-{number}"))) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists
                        | ErrorKind::DirectoryNotEmpty
                        | ErrorKind::NotADirectory
                ) => {}
            moved => return moved,
        }
    }
    // Some file systems refuse to move certain folders with the error of a name that is taken.
    Err(io::Error::other("this folder cannot be moved, so it cannot be removed"))
}

/// Accepts that another program has already removed the file.
fn accept_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recursion would overflow the stack, and a whole path would be too long.
    #[test]
    fn nested_folders_without_end_are_removed() {
        // On some disks, removing a folder takes milliseconds.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        // Built from the innermost folder outwards, since the path of so many folders is too long for any call.
        for number in 0..20_000 {
            let (outer, kept) = (dir.path().join("outer"), root.join("deep"));
            fs::create_dir(&outer).unwrap();
            if number > 0 {
                fs::rename(&kept, outer.join("d")).unwrap();
            }
            fs::rename(&outer, &kept).unwrap();
        }
        remove_dir_all(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    #[cfg(unix)]
    fn only_what_is_in_a_folder_is_removed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["other", "root/a/b/c", "root/.removed-1/x", "root/.removed-2"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["other/file", "root/a/b/file", "root/.removed-2/file", "root/.removed-3"] {
            fs::write(at(file), "").unwrap();
        }
        for link in ["root/link", "root/a/link", "root/a/b/link", "link"] {
            symlink(at("other"), at(link)).unwrap();
        }
        for folder in ["root/a/b/c", "root/a/b", "root/a"] {
            fs::set_permissions(at(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_dir_all(&at("root")).unwrap();
        remove_dir_all(&at("link")).unwrap();
        let left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["other"]);
        assert!(at("other/file").exists());
        let missing = remove_dir_all(&at("root")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
