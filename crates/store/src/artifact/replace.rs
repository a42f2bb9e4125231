//! Files that are written atomically.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::files::{self, File, TryLockError};
use crate::inputs;
use crate::readings;

/// Writes a file atomically, creating its folder.
///
/// # Errors
/// The folder or file cannot be written, or is an input of this program; nothing is left behind.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = Replacement::of_file(path)?;
    file.write(&[bytes])?;
    file.finish()
}

/// Writes a file as [`write_file`] does, whose content is `write`n piece by piece. Returns the content's BLAKE3, in hex.
///
/// # Errors
/// The same as for [`write_file`].
pub fn write_file_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<String> {
    let file = BufWriter::with_capacity(1 << 16, Replacement::of_file(path)?);
    let mut digested = Digested { file, hasher: blake3::Hasher::new() };
    let written = write(&mut digested);
    let Digested { file, hasher } = digested;
    let file = written.and_then(|()| file.into_inner().map_err(io::IntoInnerError::into_error));
    file.map_err(|e| Error::writing(path, "write this file", e))?.finish()?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// File whose digest is computed while it is written.
struct Digested {
    file: BufWriter<Replacement>,
    hasher: blake3::Hasher,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file from several parts.
pub(super) fn replace_file(path: &Path, parts: &[&[u8]]) -> Result<()> {
    let mut file = Replacement::new(path)?;
    file.write(parts)?;
    file.finish()
}

/// Returns the path of the folder that contains a file.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Creates a folder for output, and its parent folders.
pub fn create_folder(folder: &Path) -> Result<()> {
    files::create_dir_all(folder)
        .map_err(|e| Error::writing(folder, "create this folder to write into it", e))
}

/// Prefix of the names of temporary files and folders, which the same number of random letters follows.
const TEMPORARY: &str = ".writing-";
const RANDOM: usize = 6;

/// Returns true if a file or folder has the name of a temporary one.
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(TEMPORARY).is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Returns the name of a temporary file, made unique by letters and digits.
pub(super) fn temporary_name(letters: &str) -> String {
    format!("{TEMPORARY}{}", &letters[..RANDOM])
}

/// Creates a temporary file or folder, locked as long as the result of `make` is open.
///
/// A process that removes abandoned files holds their lock while it does so. If this process gets the lock and the name still
/// exists, the file is therefore its own.
fn create_locked<F>(
    folder: &Path,
    mut make: impl FnMut(&Path) -> io::Result<F>,
    file: impl Fn(&F) -> Option<&File>,
) -> io::Result<NamedTempFile<F>> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY).rand_bytes(RANDOM);
    loop {
        let temporary = builder.make_in(folder, &mut make)?;
        // On a file system without locks, it is never considered abandoned either.
        let lock = file(temporary.as_file()).map(File::try_lock);
        let is_taken = matches!(lock, Some(Err(TryLockError::WouldBlock)));
        if !is_taken && temporary.path().exists() {
            return Ok(temporary);
        }
    }
}

/// Returns true if a program may still be writing a temporary file or folder: the program holds its lock, or there are no
/// locks.
pub fn is_held(path: &Path) -> bool {
    // Opening a pipe would wait for its writer.
    (path.is_file() || path.is_dir())
        && !File::open_to_lock(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Removes a file or folder if it is a temporary one whose program was killed.
pub fn remove_abandoned(path: &Path) {
    let is_either = |kind: files::Metadata| kind.is_file() || kind.is_dir();
    // The lock is held until the file is gone. A file that cannot be removed does no harm.
    if is_temporary(path)
        && files::symlink_metadata(path).is_ok_and(is_either)
        && let Ok(file) = File::open_to_lock(path)
        && file.try_lock().is_ok()
    {
        let _ = if path.is_dir() { files::remove_dir_all(path) } else { files::remove_file(path) };
    }
}

fn remove_abandoned_in(folder: &Path) {
    for entry in files::read_dir(folder).into_iter().flatten().flatten() {
        remove_abandoned(&entry.path());
    }
}

/// Removes the abandoned files of a folder, once per run of a program: before its first write there.
fn remove_abandoned_once(folder: &Path) {
    static DONE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = DONE.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    if is_new {
        remove_abandoned_in(folder);
    }
}

/// Temporary folder inside another folder; it is removed with its content when this value is dropped.
#[derive(Debug)]
pub struct TemporaryFolder(NamedTempFile<Option<File>>);

impl TemporaryFolder {
    /// Creates a temporary folder in an existing folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        remove_abandoned_once(folder);
        let make = |path: &Path| {
            files::create_dir(path)?;
            // Other systems do not open folders, so a folder left by a killed program stays there.
            if cfg!(unix) { File::open(path).map(Some) } else { Ok(None) }
        };
        create_locked(folder, make, Option::as_ref).map(Self)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = files::remove_dir_all(self.0.path());
    }
}

/// Temporary file next to the one that it will replace. If dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// True if the file is in a confined folder.
    is_confined: bool,
    /// True if the file may be an input of this program, as a cache's own files are.
    may_be_input: bool,
    file: Target,
}

#[derive(Debug)]
enum Target {
    Temporary(NamedTempFile<File>),
    /// Device or pipe (`/dev/full`, `/dev/stdout`), which can only be written directly.
    Device(File),
}

impl Replacement {
    /// Creates the folder and a temporary file in it.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let is_confined =
            files::is_confined(path).map_err(|e| Error::writing(path, "write this file", e))?;
        // Write to the target of the user's own link; renaming over the link would replace it with a file.
        let target = files::canonicalize(path).ok().filter(|_| !is_confined && path.is_symlink());
        let path = target.as_deref().unwrap_or(path);
        let folder = folder_of(path);
        create_folder(folder)?;
        remove_abandoned_once(folder);
        let is_other = |kind: files::Metadata| !kind.is_file() && !kind.is_dir();
        let is_device = !is_confined && files::metadata(path).is_ok_and(is_other);
        let file = if is_device {
            let device = File::open_with(std::fs::File::options().write(true), path);
            Target::Device(device.map_err(|e| Error::writing(path, "write this file", e))?)
        } else {
            let temporary = create_locked(folder, |path| File::create_new(path), |file| Some(file));
            Target::Temporary(
                temporary.map_err(|e| Error::writing(folder, "write into this folder", e))?,
            )
        };
        let path = path.to_owned();
        Ok(Self { path, is_confined, may_be_input: true, file })
    }

    /// Creates a temporary file for a file that may be an input only if it is a cache's own: those are read and written again.
    ///
    /// # Errors
    /// This program read the file as an input.
    fn of_file(path: &Path) -> Result<Self> {
        let mut file = Self::new(path)?;
        file.may_be_input = file.is_confined;
        file.check_input()?;
        Ok(file)
    }

    /// Creates a temporary file for an output that the user chose.
    ///
    /// # Errors
    /// This program read the file as an input.
    pub(super) fn for_output(path: &Path) -> Result<Self> {
        let file = Self { may_be_input: false, ..Self::new(path)? };
        file.check_input()?;
        Ok(file)
    }

    /// Returns an error if the file is an input that would be lost.
    fn check_input(&self) -> Result<()> {
        let cannot_write = |e| Error::writing(&self.path, "write this file", e);
        if self.may_be_input || !inputs::is_input(&self.path).map_err(cannot_write)? {
            return Ok(());
        }
        let reason = "the output would overwrite an input of this command";
        Err(Error::artifact(&self.path, reason, "name another file for the output"))
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

    /// Moves the file into place after it was synced to disk.
    pub(super) fn finish(self) -> Result<()> {
        let cannot_write = |e| Error::writing(&self.path, "write this file", e);
        self.check_input()?;
        let Target::Temporary(temporary) = self.file else {
            return Ok(());
        };
        temporary.as_file().sync_all().map_err(cannot_write)?;
        files::rename(temporary.path(), &self.path).map_err(cannot_write)?;
        readings::forget(&self.path);
        inputs::release(&self.path);
        // The temporary name no longer exists, so nothing is left to remove.
        let (_file, path) = temporary.into_parts();
        path.keep().map(|_| ()).map_err(|e| cannot_write(e.error))
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

/// Number of parts passed to the system in one call.
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
    use std::fs;

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

    /// Between the opening of a temporary file and the question for its name, its owner may rename it to an output.
    #[test]
    fn temporary_files_of_others_are_no_inputs() {
        let dir = tempfile::tempdir().unwrap();
        let temporary = dir.path().join(temporary_name("abcdefgh"));
        files::write(&temporary, "").unwrap();
        let held = File::open(&temporary).unwrap();
        held.try_lock().unwrap();
        inputs::release(&temporary); // known by `File::open` alone
        let other = dir.path().join(temporary_name("ijklmnop"));
        files::write(&other, "").unwrap();
        assert!(!is_held(&other));
        assert!(!inputs::is_input(&other).unwrap());
        remove_abandoned_in(dir.path());
        assert!(temporary.exists() && !other.exists());
    }

    /// Temporary files without a lock are removed, but not those being written, nor other files with similar names.
    #[cfg(unix)]
    #[test]
    fn what_is_abandoned_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let written = Replacement::new(&at("file")).unwrap();
        let folder = TemporaryFolder::create(dir.path()).unwrap();
        let Target::Temporary(temporary) = &written.file else { panic!() };
        for path in [".writing-aB3dEf", ".writing-notes.md", "writing-aB3dEf"] {
            fs::write(at(path), b"half").unwrap();
        }
        fs::create_dir_all(at(".writing-xxxxxx/deep")).unwrap();
        std::os::unix::fs::symlink(at("writing-aB3dEf"), at(".writing-linked")).unwrap();
        remove_abandoned_in(dir.path());
        assert!(temporary.path().exists() && folder.path().exists());
        assert!(!at(".writing-aB3dEf").exists() && !at(".writing-xxxxxx").exists());
        for path in [".writing-notes.md", "writing-aB3dEf", ".writing-linked"] {
            assert!(at(path).exists(), "{path}");
        }
        written.finish().unwrap();
        let inside = folder.path().to_owned();
        drop(folder);
        assert!(at("file").exists() && !inside.exists());
    }

    /// A temporary file that is being created survives while another program removes abandoned files.
    #[test]
    fn what_is_being_created_is_never_removed() {
        let dir = tempfile::tempdir().unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_abandoned_in(dir.path());
                }
            });
            for number in 0..300 {
                let path = dir.path().join(number.to_string());
                write_file(&path, b"x").unwrap();
                assert_eq!(fs::read(&path).unwrap(), b"x");
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 300);
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

    /// A file that was read is not overwritten, whatever it is called; a file of the program's own may be.
    #[cfg(unix)]
    #[test]
    fn what_was_read_as_an_input_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (input, link) = (dir.path().join("tasks.jsonl"), dir.path().join("link.jsonl"));
        fs::write(&input, b"tasks").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        let early = Replacement::for_output(&input).unwrap();
        files::read(&link).unwrap();
        assert!(early.finish().is_err());
        for path in [&input, &link] {
            let error = write_file(path, b"scores").unwrap_err();
            assert!(error.to_string().contains("overwrite an input of this command"), "{error}");
        }
        assert_eq!(fs::read(&input).unwrap(), b"tasks");
        let output = dir.path().join("scores.json");
        for _ in 0..2 {
            write_file(&output, b"scores").unwrap();
            files::read(&output).unwrap();
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_names_itself_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = write_file(&file.join("sub/x.bin"), b"x").unwrap_err();
        assert!(error.to_string().contains("cannot create this folder"), "{error}");
        assert!(error.hint().unwrap().to_string().contains("cache folder"));
    }
}
