//! Operations on whole folders: copy, digest, remove.

use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use foldhash::HashSet;
use repoformer_store::files;
use walkdir::WalkDir;

/// Creates an empty folder, removing any existing content.
pub(super) fn empty(folder: &Path) -> io::Result<()> {
    remove(folder)?;
    files::create_dir_all(folder)
}

/// Removes a file or folder, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match files::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Mode bits that copies keep: not set-user-ID and set-group-ID, which make a program run as its owner, and not the sticky bit.
const MODE: u32 = 0o777;

/// Maximum number of bytes in the files of a folder that is digested or copied; a sparse file counts with its length.
const MOST_BYTES: u64 = 16 << 30;
/// Largest number of names in a path of a repository.
const MOST_NAMES: usize = 256;

/// Opens a file of a folder whose owner may replace it at any time by a link, or by a pipe without a writer.
/// Also returns its length and mode.
///
/// # Errors
/// The path is not a regular file, or a folder on the path is a link.
fn open_regular(path: &Path) -> io::Result<(impl io::Read + use<>, files::Metadata)> {
    match files::File::open_unlinked(path)? {
        Some(open) if open.place()? == path => Ok((open.file, open.metadata)),
        _ => Err(io::Error::other(format!("{}: it changed while it was read", path.display()))),
    }
}

/// Removes the bits that make a program run as its owner from all files and folders of a folder, because a command may have set them.
pub(super) fn remove_special_modes(folder: &Path) -> io::Result<()> {
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        let mode = entry.metadata()?.mode();
        if !entry.file_type().is_symlink() && mode & 0o7777 & !MODE != 0 {
            files::set_permissions(entry.path(), files::Permissions::from_mode(mode & MODE))?;
        }
    }
    Ok(())
}

/// Returns the error for a folder with too many bytes.
fn too_large(root: &Path) -> io::Error {
    io::Error::other(format!("{}: its files have more than 16 GiB", root.display()))
}

/// Copies a folder's content into another, except the folders `without`. Times, modes and links are kept, except the bits that make a
/// program run as its owner; an absolute link into the folder becomes a relative link to the same path in the copy.
pub(super) fn copy_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<()> {
    let from = &files::canonicalize(from)?;
    let mut copy = FolderCopy::new(from, to);
    let walk = WalkDir::new(from).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        copy.add(entry.path().strip_prefix(from).unwrap_or(entry.path()))?;
    }
    Ok(())
}

/// Copy of a folder whose owner may replace parts of it by links while it is copied.
struct FolderCopy<'a> {
    from: &'a Path,
    to: &'a Path,
    /// Folders of the copy so far.
    folders: HashSet<PathBuf>,
    /// Number of bytes that may still be copied.
    left: u64,
}

impl<'a> FolderCopy<'a> {
    fn new(from: &'a Path, to: &'a Path) -> Self {
        Self { from, to, folders: HashSet::from_iter([PathBuf::new()]), left: MOST_BYTES }
    }

    /// Copies the path, whose parent must be in the copy.
    ///
    /// # Errors
    /// Also if the parent was a link when it was copied: the copy would be written to the link's target.
    fn add(&mut self, path: &Path) -> io::Result<()> {
        if !path.parent().is_some_and(|parent| self.folders.contains(parent)) {
            let path = self.from.join(path);
            let reason = format!("{}: it changed while it was read", path.display());
            return Err(io::Error::other(reason));
        }
        if path.components().count() > MOST_NAMES {
            let from = self.from.display();
            let reason = format!("{from}: a path in it has more than {MOST_NAMES} names");
            return Err(io::Error::other(reason));
        }
        let copied = copy_entry(self.from, self.to, path, self.left)?;
        self.left -= copied.bytes;
        if copied.is_folder {
            self.folders.insert(path.to_owned());
        }
        Ok(())
    }
}

/// Result of copying a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CopiedEntry {
    is_folder: bool,
    /// Length of a file.
    bytes: u64,
}

/// Copies the file, link or folder (without its content) at a path from one folder into another.
///
/// # Errors
/// Also if a file has more than `most` bytes, or if the other folder has something at this path.
pub(super) fn copy_entry(
    root: &Path,
    copy: &Path,
    path: &Path,
    most: u64,
) -> io::Result<CopiedEntry> {
    let (from, to) = (&root.join(path), &copy.join(path));
    let metadata = files::symlink_metadata(from)?;
    if metadata.is_dir() {
        files::create_dir(to)?;
        let mode = metadata.mode() & MODE | 0o700;
        files::set_permissions(to, files::Permissions::from_mode(mode))?;
        return Ok(CopiedEntry { is_folder: true, bytes: 0 });
    }
    if metadata.is_symlink() {
        let target = files::read_link(from)?;
        let real = target.is_absolute().then(|| files::canonicalize(&target).ok()).flatten();
        match real.as_ref().and_then(|real| real.strip_prefix(root).ok()) {
            Some(inside) => {
                let up = path.ancestors().skip(2).map(|_| Path::new(".."));
                let target: PathBuf = up.chain([inside]).collect();
                symlink(if target == Path::new("") { Path::new(".") } else { &target }, to)?;
            }
            // A link out of the folder, such as a virtual environment's interpreter, or to a missing file, is kept.
            None => symlink(&target, to)?,
        }
    }
    if metadata.is_file() {
        let (source, metadata) = open_regular(from)?;
        if metadata.len() > most {
            return Err(too_large(root));
        }
        let mut file = files::File::create_new(to)?;
        io::copy(&mut source.take(metadata.len()), &mut file)?;
        file.set_modified(metadata.modified()?)?;
        files::set_permissions(to, files::Permissions::from_mode(metadata.mode() & MODE))?;
        return Ok(CopiedEntry { is_folder: false, bytes: metadata.len() });
    }
    Ok(CopiedEntry::default()) // sockets, pipes and devices are not source code
}

/// Returns a digest of the names, types and contents of a folder's files, and of which files are executable, except the folders `without`.
pub(super) fn digest(root: &Path, without: &[PathBuf]) -> io::Result<String> {
    let root = &files::canonicalize(root)?;
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    let walk = WalkDir::new(root).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let (name, kind) = (path.as_os_str().as_encoded_bytes(), entry.file_type());
        let is_program = kind.is_file() && entry.metadata()?.mode() & 0o111 != 0;
        let is_link = u8::from(kind.is_symlink());
        let is_other = !(kind.is_dir() || kind.is_symlink() || kind.is_file());
        let marks = [
            u8::from(kind.is_dir()),
            is_link | u8::from(is_program) << 1 | u8::from(is_other) << 2,
        ];
        for part in [name, &marks] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        if kind.is_file() {
            let (file, metadata) = open_regular(entry.path())?;
            bytes += metadata.len();
            if bytes > MOST_BYTES {
                return Err(too_large(root));
            }
            hasher.update(&metadata.len().to_le_bytes());
            let before = hasher.count();
            hasher.update_reader(file.take(metadata.len()))?;
            if hasher.count() - before != metadata.len() {
                let reason = format!("{}: it changed while it was read", entry.path().display());
                return Err(io::Error::other(reason));
            }
            continue;
        }
        let target = if kind.is_symlink() {
            files::read_link(entry.path())?.into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        hasher.update(&(target.len() as u64).to_le_bytes());
        hasher.update(&target);
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
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let with_pipe = of();
        fs::remove_file(dir.path().join("pipe")).unwrap();
        fs::write(dir.path().join("pipe"), "").unwrap();
        assert_ne!(of(), with_pipe);
        fs::remove_file(dir.path().join("pipe")).unwrap();
        fs::set_permissions(dir.path().join("ab"), fs::Permissions::from_mode(0o744)).unwrap();
        assert!(!seen.contains(&of()), "a program");
        seen.push(of());
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::write(dir.path().join("work/x"), "left out").unwrap();
        assert_eq!(&of(), seen.last().unwrap());
    }

    /// The owner may replace a file at any time.
    #[test]
    fn only_a_regular_file_at_its_own_place_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/file"), "x").unwrap();
        symlink("folder/file", at("link")).unwrap();
        symlink("folder", at("way")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open_regular(&at("folder/file")).is_ok());
        for name in ["link", "way/file", "pipe", "folder", "none"] {
            assert!(open_regular(&at(name)).is_err(), "{name}");
        }
        // Opening the target of a link, such as a tape, could change it.
        let error = open_regular(&at("link")).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(nix::libc::ELOOP));
    }

    /// While a folder is listed, its owner may replace it by a link and put it back.
    #[test]
    fn nothing_is_copied_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for folder in ["from/b", "from/c", "to", "elsewhere"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("from/b/file"), "new").unwrap();
        fs::write(at("elsewhere/file"), "old").unwrap();
        fs::rename(at("from/b"), at("b")).unwrap();
        symlink(at("elsewhere"), at("from/b")).unwrap();
        let (from, to) = (at("from"), at("to"));
        let mut copy = FolderCopy::new(&from, &to);
        copy.add(Path::new("b")).unwrap();
        fs::remove_file(at("from/b")).unwrap();
        fs::rename(at("b"), at("from/b")).unwrap();
        assert!(copy.add(Path::new("b/file")).is_err());
        // A name that is listed twice.
        symlink(at("elsewhere/file"), at("to/c")).unwrap();
        assert!(copy.add(Path::new("c")).is_err());
        fs::remove_dir(at("from/c")).unwrap();
        fs::write(at("from/c"), "new").unwrap();
        assert!(copy.add(Path::new("c")).is_err());
        assert_eq!(fs::read_to_string(at("elsewhere/file")).unwrap(), "old");
    }

    #[test]
    fn programs_of_an_owner_lose_their_bits() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        fs::create_dir_all(from.join("folder")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("program"), "").unwrap();
        set(&from.join("program"), 0o6755);
        set(&from.join("folder"), 0o3775);
        copy_folder(&from, &to, &[]).unwrap();
        assert_eq!((mode(&to.join("program")), mode(&to.join("folder"))), (0o755, 0o775));
        remove_special_modes(&from).unwrap();
        assert_eq!((mode(&from.join("program")), mode(&from.join("folder"))), (0o755, 0o775));
    }

    #[test]
    fn a_folder_of_files_without_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::File::create(dir.path().join("holes")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let copy = tempfile::tempdir().unwrap();
        let copied = || copy_folder(dir.path(), copy.path(), &[]);
        for refused in [digest(dir.path(), &[]).map(drop), copied()] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("more than 16 GiB"), "{error}");
        }
        assert!(!copy.path().join("holes").exists());
        // Together, the files exceed the limit.
        fs::write(dir.path().join("a"), "1").unwrap();
        fs::File::options().write(true).open(dir.path().join("holes")).unwrap().set_len(0).unwrap();
        let copy_of = |most| copy_entry(dir.path(), copy.path(), Path::new("a"), most);
        assert!(copy_of(0).is_err());
        assert_eq!(copy_of(1).unwrap().bytes, 1);
        fs::remove_file(copy.path().join("a")).unwrap();
        copied().unwrap();
    }

    /// Each folder is created by a path through all those above it.
    #[test]
    fn a_folder_of_folders_without_end_is_refused() {
        let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let deep = |names: usize| dir.path().join("d/".repeat(names));
        fs::create_dir_all(deep(MOST_NAMES)).unwrap();
        copy_folder(dir.path(), copy.path(), &[]).unwrap();
        fs::create_dir(deep(MOST_NAMES + 1)).unwrap();
        let copy = tempfile::tempdir().unwrap();
        let error = copy_folder(dir.path(), copy.path(), &[]).unwrap_err().to_string();
        assert!(error.ends_with("a path in it has more than 256 names"), "{error}");
    }
}
