//! Operations on whole folders: copy, digest, remove.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use repoformer_store::files;
use walkdir::{DirEntry, WalkDir};

/// Makes an empty folder, removing what exists.
pub(super) fn empty(folder: &Path) -> io::Result<()> {
    remove(folder)?;
    files::create_dir_all(folder)
}

/// Removes a file or folder, including folders without permissions for their owner.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let Ok(metadata) = files::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.is_dir() {
        return files::remove_file(path);
    }
    if files::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        files::set_permissions(&folder, files::Permissions::from_mode(0o700))?;
        for entry in files::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    files::remove_dir_all(path)
}

/// Copies a folder's content into another, except the folders `without`. Times, modes and links are kept; an absolute link
/// to a place within the folder is made to point to the same place of the copy.
pub(super) fn copy_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<()> {
    let from = &files::canonicalize(from)?;
    let walk = WalkDir::new(from).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(from).unwrap_or(entry.path());
        copy_entry(entry.path(), &to.join(path), from, to)?;
    }
    Ok(())
}

/// Copies one file, link or folder (without its content). `root` and `copy` are the folders that are copied as a whole.
pub(super) fn copy_entry(from: &Path, to: &Path, root: &Path, copy: &Path) -> io::Result<()> {
    let metadata = files::symlink_metadata(from)?;
    if metadata.is_dir() {
        files::create_dir_all(to)?;
        return files::set_permissions(
            to,
            files::Permissions::from_mode(metadata.mode() & 0o7777 | 0o700),
        );
    }
    if metadata.is_symlink() {
        let target = files::read_link(from)?;
        let absolute = from.parent().unwrap_or(root).join(&target);
        return match files::canonicalize(&absolute) {
            Ok(real) if real.starts_with(root) && target.is_absolute() => {
                symlink(copy.join(real.strip_prefix(root).unwrap_or(&real)), to)
            }
            // A link to elsewhere, such as a virtual environment's interpreter, or to nothing stays as it is.
            _ => symlink(&target, to),
        };
    }
    if metadata.is_file() {
        files::copy(from, to)?;
        files::File::open(to)?.set_modified(metadata.modified()?)?;
    }
    Ok(()) // sockets, pipes and devices are not source code
}

/// Returns a digest of the names, kinds and contents of a folder, except the folders `without`.
pub(super) fn digest(root: &Path, without: &[PathBuf]) -> io::Result<String> {
    digest_with(root, without, |_| Ok(0))
}

/// Returns a digest of a folder as [`digest`] does, and of which files are programs.
pub(super) fn digest_with_modes(root: &Path) -> io::Result<String> {
    let is_program = |entry: &DirEntry| {
        let is_program = entry.file_type().is_file() && entry.metadata()?.mode() & 0o111 != 0;
        Ok(u8::from(is_program) << 1)
    };
    digest_with(root, &[], is_program)
}

fn digest_with(
    root: &Path,
    without: &[PathBuf],
    mark: impl Fn(&DirEntry) -> io::Result<u8>,
) -> io::Result<String> {
    let root = &files::canonicalize(root)?;
    let mut hasher = blake3::Hasher::new();
    let walk = WalkDir::new(root).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let (name, kind) = (path.as_os_str().as_encoded_bytes(), entry.file_type());
        let content = if kind.is_file() {
            files::read(entry.path())?
        } else if kind.is_symlink() {
            files::read_link(entry.path())?.into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        let marks = [u8::from(kind.is_dir()), u8::from(kind.is_symlink()) | mark(&entry)?];
        for part in [name, &marks, &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_digest_tells_content_names_and_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let of = || digest(dir.path(), &[dir.path().join("work")]).unwrap();
        let mut seen = vec![of()];
        let mut changed = |path: &str, text: &str| {
            fs::write(dir.path().join(path), text).unwrap();
            let now = of();
            assert!(!seen.contains(&now), "{path} {text}");
            seen.push(now);
        };
        changed("a", "");
        changed("a", "b");
        changed("ab", "");
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::write(dir.path().join("work/x"), "left out").unwrap();
        assert_eq!(&of(), seen.last().unwrap());
    }
}
