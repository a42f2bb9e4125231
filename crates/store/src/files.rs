//! The only module through which files are opened, read, written, synced, renamed and removed.
//!
//! Functions have the names and meanings of those in `std::fs`. A debug build can let one call fail, to test that a run reports
//! the failure and that the next run is complete. `FAULTY_CALL=enospc:17` fails the 17th of the calls that a full disk would
//! fail; `enospc:17+` fails this call and all later ones. `meanwhile:17` runs the shell command `FAULTY_COMMAND` before the
//! 17th call that reads or inspects files, as if somebody changed a file at that moment. A release build has none of this.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use crate::inputs;
pub use std::fs::{DirEntry, Metadata, Permissions, ReadDir, TryLockError};

/// Kind of a call, by the reasons for which it can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Changes files in another way: creates, renames, removes, truncates, syncs.
    Change,
    /// Opens for reading, lists, locks, or queries properties.
    Look,
}

#[cfg(debug_assertions)]
mod fault {
    use std::io;
    use std::path::Path;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Call;

    /// Kind of a fault: a failure of a call, or another event before it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        /// The disk is full.
        NoSpace,
        /// The device fails.
        Device,
        /// A signal arrives before any byte is read or written.
        Interrupted,
        /// Half of the bytes are read or written.
        Short,
        /// The program is killed before the call.
        Killed,
        /// A command of the test runs before the call.
        Meanwhile,
    }

    struct Fault {
        kind: Kind,
        number: u64,
        lasts: bool,
    }

    /// Reads `KIND:NUMBER` or `KIND:NUMBER+`.
    fn parse(text: &str) -> Option<Fault> {
        let (kind, number) = text.split_once(':')?;
        let kind = match kind {
            "enospc" => Kind::NoSpace,
            "eio" => Kind::Device,
            "eintr" => Kind::Interrupted,
            "short" => Kind::Short,
            "kill" => Kind::Killed,
            "meanwhile" => Kind::Meanwhile,
            _ => return None,
        };
        let (number, lasts) = match number.strip_suffix('+') {
            Some(number) => (number, true),
            None => (number, false),
        };
        Some(Fault { kind, number: number.parse().ok()?, lasts })
    }

    fn chosen_fault() -> Option<&'static Fault> {
        static CHOSEN: OnceLock<Option<Fault>> = OnceLock::new();
        let read = || {
            let text = std::env::var("FAULTY_CALL").ok()?;
            Some(parse(&text).unwrap_or_else(|| panic!("FAULTY_CALL={text}: not KIND:NUMBER")))
        };
        CHOSEN.get_or_init(read).as_ref()
    }

    pub(super) fn is_chosen() -> bool {
        chosen_fault().is_some()
    }

    /// Counts a call, and returns true if the call must be cut short.
    #[allow(clippy::print_stderr)] // only in debug builds
    pub(super) fn before(call: Call, name: &str, path: &Path) -> io::Result<bool> {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let Some(fault) = chosen_fault() else { return Ok(false) };
        let applies = match fault.kind {
            Kind::Device => true,
            Kind::NoSpace | Kind::Killed => matches!(call, Call::Write | Call::Change),
            Kind::Interrupted | Kind::Short => matches!(call, Call::Read | Call::Write),
            Kind::Meanwhile => matches!(call, Call::Read | Call::Look),
        };
        if !applies {
            return Ok(false);
        }
        let number = 1 + CALLS.fetch_add(1, Ordering::Relaxed);
        if number != fault.number && !(fault.lasts && number > fault.number) {
            return Ok(false);
        }
        eprintln!("fault {number}: {:?} in {name} of {}", fault.kind, path.display());
        match fault.kind {
            Kind::NoSpace => Err(io::Error::from_raw_os_error(28)),
            Kind::Device => Err(io::Error::from_raw_os_error(5)),
            Kind::Interrupted => Err(io::ErrorKind::Interrupted.into()),
            Kind::Short => Ok(true),
            Kind::Killed => std::process::exit(137),
            Kind::Meanwhile => {
                let command = std::env::var("FAULTY_COMMAND").unwrap_or_default();
                let status = std::process::Command::new("sh").arg("-c").arg(command).status()?;
                assert!(status.success(), "FAULTY_COMMAND: {status}");
                Ok(false)
            }
        }
    }

    #[test]
    fn faults_are_read() {
        let fault = parse("enospc:17+").unwrap();
        assert_eq!((fault.kind, fault.number, fault.lasts), (Kind::NoSpace, 17, true));
        assert!(!parse("kill:1").unwrap().lasts);
        assert!(["", "eio", "eio:", "eio:x", "other:1"].iter().all(|text| parse(text).is_none()));
    }
}

#[cfg(not(debug_assertions))]
mod fault {
    use super::Call;

    pub(super) const fn is_chosen() -> bool {
        false
    }

    #[inline]
    pub(super) const fn before(_: Call, _: &str, _: &std::path::Path) -> std::io::Result<bool> {
        Ok(false)
    }
}

/// Folders that are confined, as absolute paths.
static CONFINED: RwLock<Vec<PathBuf>> = RwLock::new(Vec::new());

/// Confines a folder: from now on, nothing in it is written or removed through a link that leads out of the folder, since
/// somebody else may have put the link there. The folder itself may be a link, and need not exist yet.
pub fn confine(folder: &Path) {
    let mut confined = CONFINED.write().unwrap_or_else(PoisonError::into_inner);
    if let Ok(folder) = std::path::absolute(folder)
        && !confined.contains(&folder)
    {
        confined.push(folder);
    }
}

/// Treatment of a link in the last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FinalLink {
    /// The call works on the link.
    Stays,
    /// The call works on the target of the link.
    Follows,
}

/// Returns true if a path is in a confined folder.
///
/// # Errors
/// A link on the path leads out of that folder.
fn check_confined(path: &Path, last: FinalLink) -> io::Result<bool> {
    let confined = CONFINED.read().unwrap_or_else(PoisonError::into_inner);
    if confined.is_empty() {
        return Ok(false);
    }
    let path = std::path::absolute(path)?;
    let found = confined.iter().find_map(|folder| {
        let real = fs::canonicalize(folder).ok()?;
        let below = path.strip_prefix(folder).or_else(|_| path.strip_prefix(&real)).ok()?;
        Some((folder, below, real))
    });
    let Some((folder, below, real)) = found else { return Ok(false) };
    let names: Vec<Component<'_>> = below.components().collect();
    // The caller itself named a path out of the folder, without a link.
    if names.contains(&Component::ParentDir) {
        return Ok(false);
    }
    let followed = names.len().saturating_sub(usize::from(last == FinalLink::Stays));
    let mut place = real.clone();
    for name in &names[..followed] {
        place.push(name);
        let Ok(metadata) = fs::symlink_metadata(&place) else { break };
        let leads_out = || !fs::canonicalize(&place).is_ok_and(|to| to.starts_with(&real));
        if metadata.is_symlink() && leads_out() {
            let (link, folder) = (place.display(), folder.display());
            let reason = format!("{link} is a link that leads out of {folder}; remove it");
            return Err(io::Error::other(reason));
        }
    }
    Ok(!names.is_empty())
}

/// Returns true if a path is in a confined folder, so that a link at this path must be replaced.
///
/// # Errors
/// A link above the path leads out of the confined folder.
pub(super) fn is_confined(path: &Path) -> io::Result<bool> {
    check_confined(path, FinalLink::Stays)
}

/// Keeps an open call from waiting for a pipe and, if the link stays, from following it (Unix).
#[cfg(unix)]
fn set_flags(options: &mut fs::OpenOptions, last: FinalLink) {
    use rustix::fs::OFlags;
    let flags = match last {
        FinalLink::Follows => OFlags::NONBLOCK,
        FinalLink::Stays => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
}

#[cfg(not(unix))]
fn set_flags(_options: &mut fs::OpenOptions, _last: FinalLink) {}

/// Open file.
#[derive(Debug)]
pub struct File {
    file: fs::File,
    /// Path, for the messages of a debug build.
    #[cfg(debug_assertions)]
    path: PathBuf,
}

/// Returns true for devices that can be read without end.
#[cfg(target_os = "linux")]
fn is_endless(metadata: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    /// Number of the driver of `/dev/null`, `/dev/zero` and similar devices.
    const MEMORY: u32 = 1;
    const NULL: u32 = 3;
    let (kind, device) = (metadata.file_type(), metadata.rdev());
    let is_null = rustix::fs::minor(device) == NULL;
    kind.is_block_device()
        || kind.is_char_device() && rustix::fs::major(device) == MEMORY && !is_null
}

/// Returns false: the device numbers are Linux's.
#[cfg(not(target_os = "linux"))]
fn is_endless(_metadata: &Metadata) -> bool {
    false
}

/// Returns the path of an open file, without links.
#[cfg(unix)]
fn place_of(file: &fs::File) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd as _;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(not(unix))]
fn place_of(_file: &fs::File) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Regular file that is open.
#[derive(Debug)]
pub struct RegularFile {
    /// Open file, positioned at its beginning.
    pub file: File,
    /// Its properties.
    pub metadata: Metadata,
    opened: PathBuf,
}

impl RegularFile {
    /// Protects the file from being overwritten by an output of this program.
    pub fn protect(&self) {
        if let Ok(place) = self.place() {
            inputs::remember(&place);
        }
    }

    /// Returns the file's path without links, even if another file has replaced it since it was opened. Systems other than
    /// Linux return the path without links to which the original path leads now.
    pub fn place(&self) -> io::Result<PathBuf> {
        place_of(&self.file.file).or_else(|_| fs::canonicalize(&self.opened))
    }
}

impl File {
    fn wrap(file: fs::File, _path: &Path) -> Self {
        Self {
            file,
            #[cfg(debug_assertions)]
            path: _path.to_owned(),
        }
    }

    fn before(&self, call: Call, name: &str) -> io::Result<bool> {
        #[cfg(debug_assertions)]
        let path = &*self.path;
        #[cfg(not(debug_assertions))]
        let path = Path::new("");
        fault::before(call, name, path)
    }

    /// Opens a file or pipe that the user names, for reading.
    ///
    /// # Errors
    /// The same as in `std::fs`, here and for all functions below; also an endless device, such as `/dev/zero`.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        fault::before(Call::Look, "open", path)?;
        let file = fs::File::open(path)?;
        let metadata = file.metadata()?;
        if is_endless(&metadata) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device, not a file"));
        }
        if metadata.is_file()
            && let Ok(place) = place_of(&file).or_else(|_| fs::canonicalize(path))
        {
            inputs::remember(&place);
        }
        Ok(Self::wrap(file, path))
    }

    /// Opens a file or folder that a program wrote, to lock it. It is not protected as an input: another process may rename it to its own
    /// output meanwhile.
    pub fn open_to_lock(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        fault::before(Call::Look, "open", path)?;
        fs::File::open(path).map(|file| Self::wrap(file, path))
    }

    /// Opens a regular file for reading; never waits, unlike opening a named pipe. For files that a program wrote into a cache
    /// or next to another file, and that somebody may have replaced.
    pub fn open_regular(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        match Self::open_in_place(path)? {
            Some(open) => Ok(open.file),
            None if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// Opens a file as [`open_regular`](Self::open_regular) does; returns `None` if the path leads to something else. The file
    /// may be replaced at any time, so its properties are read from the open file.
    pub fn open_in_place(path: impl AsRef<Path>) -> io::Result<Option<RegularFile>> {
        Self::open_if_regular(path.as_ref(), FinalLink::Follows)
    }

    /// Opens a file as [`open_in_place`](Self::open_in_place) does.
    ///
    /// # Errors
    /// Also if the path is a link, whose target is not opened (Unix).
    pub fn open_unlinked(path: impl AsRef<Path>) -> io::Result<Option<RegularFile>> {
        Self::open_if_regular(path.as_ref(), FinalLink::Stays)
    }

    fn open_if_regular(path: &Path, last: FinalLink) -> io::Result<Option<RegularFile>> {
        fault::before(Call::Look, "open", path)?;
        let mut options = fs::File::options();
        set_flags(&mut options, last);
        let file = options.read(true).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        Ok(Some(RegularFile { file: Self::wrap(file, path), metadata, opened: path.to_owned() }))
    }

    /// Reads a regular file to its end; returns `None` if it has more than `most` bytes.
    pub fn read_at_most(mut self, most: u64) -> io::Result<Option<Vec<u8>>> {
        if self.metadata()?.len() > most {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= most))
    }

    /// Creates a file for writing; an existing file is emptied.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = fs::File::options();
        Self::open_with(options.write(true).create(true).truncate(true), path)
    }

    /// Creates a file that does not exist yet, for writing.
    pub fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_with(fs::File::options().write(true).create_new(true), path)
    }

    /// Opens a regular file without changing it, or creates an empty one; never waits. For locks.
    ///
    /// # Errors
    /// Also fails if the path is a link or leads to something other than a regular file (Unix).
    pub fn open_or_create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = fs::File::options();
        set_flags(&mut options, FinalLink::Stays);
        let file = Self::open_with(options.write(true).create(true).truncate(false), path)?;
        if file.file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
        }
    }

    /// Opens a file with options.
    pub fn open_with(options: &fs::OpenOptions, path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        fault::before(Call::Change, "open", path)?;
        check_confined(path, FinalLink::Follows)?;
        Ok(Self::wrap(options.open(path)?, path))
    }

    /// Opens the same file again, with the same position.
    pub fn try_clone(&self) -> io::Result<Self> {
        let file = self.file.try_clone()?;
        #[cfg(debug_assertions)]
        let path = &*self.path;
        #[cfg(not(debug_assertions))]
        let path = Path::new("");
        Ok(Self::wrap(file, path))
    }

    /// Returns the properties of the file.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.before(Call::Look, "metadata")?;
        self.file.metadata()
    }

    /// Waits until the whole file is on disk.
    pub fn sync_all(&self) -> io::Result<()> {
        self.before(Call::Change, "sync")?;
        self.file.sync_all()
    }

    /// Waits until the content of the file is on disk.
    pub fn sync_data(&self) -> io::Result<()> {
        self.before(Call::Change, "sync")?;
        self.file.sync_data()
    }

    /// Shortens or lengthens the file.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        self.before(Call::Change, "set the length")?;
        self.file.set_len(length)
    }

    /// Sets the time of the last change.
    pub fn set_modified(&self, time: std::time::SystemTime) -> io::Result<()> {
        self.before(Call::Change, "set the time")?;
        self.file.set_modified(time)
    }

    /// Waits for the lock of the file.
    pub fn lock(&self) -> io::Result<()> {
        self.before(Call::Look, "lock")?;
        self.file.lock()
    }

    /// Locks the file until it is closed.
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        self.before(Call::Look, "lock").map_err(TryLockError::Error)?;
        self.file.try_lock()
    }

    /// Fills a buffer from an offset; the position does not change.
    #[cfg(unix)]
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        if !fault::is_chosen() {
            return self.file.read_exact_at(buffer, offset);
        }
        while !buffer.is_empty() {
            let read = self.before(Call::Read, "read").and_then(|is_short| {
                let length = shorten(buffer.len(), is_short);
                self.file.read_at(&mut buffer[..length], offset)
            });
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => (buffer, offset) = (&mut buffer[read..], offset + read as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the length and modification time of a regular file, which reveal whether its content changed.
    pub(super) fn state(&self) -> FileState {
        let metadata = self.file.metadata().ok().filter(Metadata::is_file);
        FileState(metadata.map(|metadata| (metadata.len(), metadata.modified().ok())))
    }

    /// Checks that the content has not changed since `before`.
    ///
    /// # Errors
    /// The content changed.
    pub(super) fn check_unchanged(&self, before: FileState) -> io::Result<()> {
        if self.state() == before {
            Ok(())
        } else {
            Err(io::Error::other("it changed while it was read; try again"))
        }
    }

    /// Returns the file of the standard library, for readers that need one; their calls are not counted.
    pub fn into_std(self) -> fs::File {
        self.file
    }
}

/// Length and modification time of a file, as the file system stores them; the clock may jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState(Option<(u64, Option<std::time::SystemTime>)>);

/// Returns the length of the buffer for a call that may have to be short.
fn shorten(length: usize, is_short: bool) -> usize {
    if is_short { length.div_ceil(2) } else { length }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = shorten(buffer.len(), self.before(Call::Read, "read")?);
        (&self.file).read(&mut buffer[..length])
    }

    fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        /// Reader that makes single calls, each of which may fail.
        struct Calls<'a>(&'a File);
        impl Read for Calls<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(buffer)
            }
        }
        let before = self.state();
        let read = if fault::is_chosen() {
            Calls(self).read_to_end(buffer)?
        } else {
            (&self.file).read_to_end(buffer)?
        };
        self.check_unchanged(before)?;
        Ok(read)
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = shorten(bytes.len(), self.before(Call::Write, "write")?);
        (&self.file).write(&bytes[..length])
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        if self.before(Call::Write, "write")? {
            let first = parts.iter().find(|part| !part.is_empty());
            let first = first.map_or(&[][..], |part| &part[..shorten(part.len(), true)]);
            (&self.file).write(first)
        } else {
            (&self.file).write_vectored(parts)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.before(Call::Look, "seek")?;
        (&self.file).seek(to)
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        (&*self).read_to_end(buffer)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

/// Reads a whole file.
///
/// # Errors
/// The same as in `std::fs`, here and for all functions below.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Splits `NAME=FILE`, or a path alone, as the user gives it. If the whole text is an existing path, it is a path alone.
pub fn split_name(given: &str) -> (Option<&str>, &str) {
    match given.split_once('=') {
        Some((name, file)) if !name.is_empty() && !Path::new(given).exists() => (Some(name), file),
        _ => (None, given),
    }
}

/// Greatest number of bytes of a manifest or header.
const LONGEST_COMPANION: u64 = 1 << 28;

/// Reads a manifest or header, which a program wrote next to another file: a regular file of at most 256 MiB.
pub fn read_companion(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let read = File::open_regular(path)?.read_at_most(LONGEST_COMPANION)?;
    read.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "longer than 256 MiB"))
}

/// Reads a complete regular file that a program wrote; returns `None` if the file does not exist.
pub fn read_regular_if_there(path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
    match read_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Reads a complete regular file of any length that a program wrote.
pub fn read_regular(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as [`read_companion`] does; returns `None` if the file does not exist.
pub fn read_companion_if_there(path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
    match read_companion(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Reads a whole file as UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let invalid =
        |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(read(path)?).map_err(invalid)
}

/// Writes a whole file in place.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    File::create(path)?.write_all(bytes.as_ref())
}

/// Defines a function of `std::fs` with one path.
macro_rules! of_path {
    ($($doc:literal $name:ident $call:ident $(@ $last:ident)? $result:ty;)*) => {$(
        #[doc = $doc]
        pub fn $name(path: impl AsRef<Path>) -> io::Result<$result> {
            let path = path.as_ref();
            fault::before(Call::$call, stringify!($name), path)?;
            $(check_confined(path, FinalLink::$last)?;)?
            fs::$name(path)
        }
    )*};
}

of_path! {
    "Removes a file." remove_file Change @Stays ();
    "Removes an empty folder." remove_dir Change @Stays ();
    "Creates a folder." create_dir Change @Stays ();
    "Creates a folder and those above it." create_dir_all Change @Follows ();
    "Lists a folder." read_dir Look ReadDir;
    "Properties of a file, or of what a link leads to." metadata Look Metadata;
    "Properties of a file or link." symlink_metadata Look Metadata;
    "The path without links." canonicalize Look PathBuf;
    "Where a link leads to." read_link Look PathBuf;
}

/// Removes a folder with its content, however deep, or a file. Read-only folders are made writable first.
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    fault::before(Call::Change, "remove_dir_all", path)?;
    check_confined(path, FinalLink::Stays)?;
    crate::removal::remove_dir_all(path)
}

/// Moves a file or folder, replacing an existing file.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    fault::before(Call::Change, "rename", to.as_ref())?;
    check_confined(to.as_ref(), FinalLink::Stays)?;
    fs::rename(from, to)
}

/// Creates a link that leads to a file or folder.
#[cfg(unix)]
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    fault::before(Call::Change, "symlink", link.as_ref())?;
    check_confined(link.as_ref(), FinalLink::Stays)?;
    std::os::unix::fs::symlink(target, link)
}

/// Creates a link that leads to a file or folder.
#[cfg(not(unix))]
pub fn symlink(_target: impl AsRef<Path>, _link: impl AsRef<Path>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sets a file's permissions.
pub fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    fault::before(Call::Change, "set_permissions", path.as_ref())?;
    check_confined(path.as_ref(), FinalLink::Follows)?;
    fs::set_permissions(path, permissions)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_through_a_link_out_of_a_confined_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("real/own")).unwrap();
        fs::create_dir(at("outside")).unwrap();
        fs::write(at("outside/mine"), "mine").unwrap();
        // The folder itself may be a link.
        symlink(at("real"), at("cache")).unwrap();
        for (to, link) in [
            ("outside", "out"),
            ("outside/mine", "own/file"),
            ("outside/new", "own/dangling"),
            ("real/own", "in"),
        ] {
            symlink(at(to), at("real").join(link)).unwrap();
        }
        confine(&at("cache"));
        for cache in ["cache", "real"].map(at) {
            let refused = |done: io::Result<()>| {
                let reason = done.unwrap_err().to_string();
                assert!(reason.contains("is a link that leads out of"), "{reason}");
            };
            for path in ["out/mine", "own/file", "own/dangling", "out/new"] {
                let path = cache.join(path);
                let mut options = fs::File::options();
                refused(write(&path, "bad"));
                refused(File::open_with(options.append(true).create(true), &path).map(drop));
                refused(set_permissions(&path, fs::metadata(dir.path()).unwrap().permissions()));
            }
            for path in ["out/mine", "out/new/deeper"] {
                let path = cache.join(path);
                refused(remove_file(&path));
                refused(remove_dir_all(&path));
                refused(create_dir(&path));
                refused(create_dir_all(&path));
                refused(rename(cache.join("own"), &path));
                refused(super::symlink("x", &path));
            }
            refused(create_dir_all(cache.join("out")));
            write(cache.join("in/new"), "x").unwrap();
            create_dir_all(cache.join("in/deep/deeper")).unwrap();
            remove_dir_all(cache.join("own/deep")).unwrap();
            write(cache.join("../outside/by-name"), "x").unwrap();
        }
        assert_eq!(fs::read(at("outside/mine")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 2);
        // The links themselves can be removed.
        for link in ["own/file", "own/dangling", "out"] {
            remove_file(at("cache").join(link)).unwrap();
        }
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 2);
    }
}
