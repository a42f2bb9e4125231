//! Files that are written atomically.

use std::fs::{self, File};
use std::io::{IoSlice, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Writes a file atomically, creating its folder.
///
/// # Errors
/// The folder or file cannot be written; nothing is left behind.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_file(path, &[bytes])
}

/// Writes a file from several parts.
pub(super) fn replace_file(path: &Path, parts: &[&[u8]]) -> Result<()> {
    let mut file = Replacement::new(path)?;
    file.write(parts)?;
    file.finish()
}

/// Path of the folder that contains a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Creates a folder for output, and those above it.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|e| Error::writing(folder, "create this folder to write into it", e))
}

/// Beginning of the names of temporary files.
const TEMPORARY: &str = ".writing-";

/// Time after creation within which a temporary file is locked.
const UNTIL_LOCKED: Duration = Duration::from_secs(60);

/// Whether a file has the name of a temporary file.
pub fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

/// Whether a program may still be writing a temporary file: it holds the lock, or no lock can tell.
pub fn is_held(path: &Path) -> bool {
    // A pipe would wait for its writer.
    path.is_file() && !File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Whether the program that wrote a temporary file was killed, with a margin for one that has only just created it.
fn is_abandoned(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = age.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > UNTIL_LOCKED) && !is_held(path)
}

/// Removes from a folder the temporary files of programs that were killed.
pub(super) fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_temporary(&entry.path()) && is_abandoned(&entry.path()) {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A temporary file beside the one that it will replace. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Replacement {
    path: PathBuf,
    file: Target,
}

#[derive(Debug)]
enum Target {
    Temporary(NamedTempFile),
    /// A device or pipe (`/dev/full`, `/dev/stdout`) can only be written through.
    Device(File),
}

impl Replacement {
    /// Creates the folder and a temporary file in it.
    pub(super) fn new(path: &Path) -> Result<Self> {
        // A link is followed; renaming over it would replace the link by a file.
        let target = fs::canonicalize(path).ok().filter(|_| path.is_symlink());
        let path = target.as_deref().unwrap_or(path);
        let folder = folder_of(path);
        create_folder(folder)?;
        let is_device =
            fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let file = if is_device {
            let device = File::options().write(true).open(path);
            Target::Device(device.map_err(|e| Error::writing(path, "write this file", e))?)
        } else {
            let mut builder = tempfile::Builder::new();
            builder.prefix(TEMPORARY);
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            let temporary = builder
                .tempfile_in(folder)
                .map_err(|e| Error::writing(folder, "write into this folder", e))?;
            // The lock marks the file as in use; on a file system without locks, it is never considered abandoned either.
            let _ = temporary.as_file().try_lock();
            Target::Temporary(temporary)
        };
        let path = path.to_owned();
        Ok(Self { path, file })
    }

    /// Appends parts.
    pub(super) fn write(&mut self, parts: &[&[u8]]) -> Result<()> {
        let written = write_all(self.target(), parts);
        written.map_err(|e| Error::writing(&self.path, "write this file", e))
    }

    fn target(&mut self) -> &mut File {
        match &mut self.file {
            Target::Temporary(temporary) => temporary.as_file_mut(),
            Target::Device(device) => device,
        }
    }

    /// Moves the file into place, after the disk has it.
    pub(super) fn finish(self) -> Result<()> {
        let cannot_write = |e| Error::writing(&self.path, "write this file", e);
        let Target::Temporary(temporary) = self.file else {
            return Ok(());
        };
        temporary.as_file().sync_all().map_err(cannot_write)?;
        let placed = temporary.persist(&self.path);
        placed.map(|_| ()).map_err(|e| cannot_write(e.error))
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.target().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.target().flush()
    }
}

/// Number of parts passed to the system at once.
const SLICES: usize = 1024;

fn write_all(file: &mut File, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0); // skips empty parts
    while !left.is_empty() {
        let most = left.len().min(SLICES);
        match file.write_vectored(&left[..most]) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_parts_is_one_file_and_a_dropped_one_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/file");
        let parts: Vec<Vec<u8>> = (0..3000_u32).map(|n| vec![n as u8; (n % 5) as usize]).collect();
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        replace_file(&path, &slices).unwrap();
        assert_eq!(fs::read(&path).unwrap(), parts.concat());
        let mut dropped = Replacement::new(&path).unwrap();
        dropped.write(&[b"half"]).unwrap();
        drop(dropped);
        assert_eq!(fs::read(&path).unwrap(), parts.concat());
        assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 1);
    }

    /// Among a file that is being written, one that was abandoned, and a new one that is not locked yet, the second goes.
    #[test]
    fn what_is_abandoned_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let written = Replacement::new(&dir.path().join("file")).unwrap();
        let (old, new) = (dir.path().join(".writing-old"), dir.path().join(".writing-new"));
        fs::write(&new, b"half").unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * UNTIL_LOCKED;
        let Target::Temporary(temporary) = &written.file else { panic!() };
        temporary.as_file().set_modified(long_ago).unwrap();
        fs::write(&old, b"half").unwrap();
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        remove_abandoned(dir.path());
        assert!(!old.exists() && new.exists() && temporary.path().exists());
        written.finish().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_are_written_through_and_folders_are_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, folder) = (dir.path().join("file"), dir.path().join("folder"));
        fs::write(&file, b"old").unwrap();
        fs::create_dir(&folder).unwrap();
        for (link, to) in [("to-file", &file), ("to-folder", &folder)] {
            std::os::unix::fs::symlink(to, dir.path().join(link)).unwrap();
        }
        write_file(&dir.path().join("to-file"), b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(dir.path().join("to-file").is_symlink());
        for path in ["to-folder", "folder"] {
            assert!(write_file(&dir.path().join(path), b"x").is_err());
        }
        assert!(folder.is_dir() && dir.path().join("to-folder").is_symlink());
    }

    #[test]
    fn a_folder_that_cannot_be_written_names_itself_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = write_file(&file.join("sub/x.bin"), b"x").unwrap_err();
        assert!(error.to_string().contains("cannot create this folder"), "{error}");
        assert!(error.hint().unwrap().contains("cache folder"));
    }
}
