//! Folders: copied, digested, removed whole.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// An empty folder in this place.
pub(super) fn empty(folder: &Path) -> io::Result<()> {
    remove(folder)?;
    fs::create_dir_all(folder)
}

/// Removes whatever is there, folders that were closed to their owner included.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(path)
}

/// Copies a folder's content into another, but for the folders `without`. Times, modes and links are kept; a link that
/// names a place in the folder by its full path leads to the same place of the copy.
pub(super) fn copy_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<()> {
    let from = &fs::canonicalize(from)?;
    let walk = WalkDir::new(from)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(from).unwrap_or(entry.path());
        copy_entry(entry.path(), &to.join(path), (from, to))?;
    }
    Ok(())
}

/// Copies one file, link or folder, that without its content. `root` and `copy` are the folders that are copied whole.
pub(super) fn copy_entry(from: &Path, to: &Path, (root, copy): (&Path, &Path)) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_dir() {
        fs::create_dir_all(to)?;
        return fs::set_permissions(
            to,
            fs::Permissions::from_mode(metadata.mode() & 0o7777 | 0o700),
        );
    }
    if metadata.is_symlink() {
        let target = fs::read_link(from)?;
        let absolute = from.parent().unwrap_or(root).join(&target);
        return match fs::canonicalize(&absolute) {
            Ok(real) if real.starts_with(root) && target.is_absolute() => {
                symlink(copy.join(real.strip_prefix(root).unwrap_or(&real)), to)
            }
            // What leads elsewhere, such as the interpreter of a virtual environment, or nowhere stays as it is.
            _ => symlink(&target, to),
        };
    }
    match metadata.is_file() {
        true => copy_file(from, to, &metadata),
        false => Ok(()), // sockets, pipes and devices are nobody's source
    }
}

fn copy_file(from: &Path, to: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    fs::copy(from, to)?;
    let file = fs::File::open(to)?;
    file.set_modified(metadata.modified()?)
}

/// A digest of the names, kinds and contents of a folder, but for the folders `without`.
pub(super) fn digest(root: &Path, without: &[PathBuf]) -> io::Result<String> {
    let root = &fs::canonicalize(root)?;
    let mut hasher = blake3::Hasher::new();
    let walk = WalkDir::new(root)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let (name, kind) = (path.as_os_str().as_encoded_bytes(), entry.file_type());
        let content = if kind.is_file() {
            fs::read(entry.path())?
        } else if kind.is_symlink() {
            fs::read_link(entry.path())?
                .into_os_string()
                .into_encoded_bytes()
        } else {
            Vec::new()
        };
        let mark = [u8::from(kind.is_dir()), u8::from(kind.is_symlink())];
        for part in [name, &mark, &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
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
