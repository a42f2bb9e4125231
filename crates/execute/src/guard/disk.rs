//! Watches the disk that a run writes to, if no layer of limited size receives its writes.
//!
//! Adding up all files takes time, so it is done only at intervals, and whenever the free space of the file system has fallen so far that
//! the run may have exceeded its limit.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use foldhash::{HashMap, HashSet};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, fstatvfs, major, minor, open, openat, statat,
};
use rustix::io::Errno;

use super::order::{Limits, RunEnd, RunOrder};
use super::processes::Process;
use super::usage::{MappingList, mapped_region};

/// Shortest interval between two sums, unless the free space requires one earlier.
const INTERVAL: Duration = Duration::from_millis(500);

/// Free space that a run must leave to others. Some of a run's files cannot be added up, such as files that are being passed to another
/// process.
const RESERVE: DiskSpace = DiskSpace { bytes: 256 << 20, files: 4096 };

/// Flags of every call that opens one of a run's folders.
const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Amount of disk space: bytes and number of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiskSpace {
    bytes: u64,
    files: u64,
}

impl DiskSpace {
    /// Returns the free space of the file system that contains a folder.
    fn free(folder: &OwnedFd) -> io::Result<Self> {
        let system = fstatvfs(folder)?;
        // Some file systems do not limit the number of files.
        let files = if system.f_files == 0 { u64::MAX } else { system.f_favail };
        Ok(Self { bytes: system.f_bavail.saturating_mul(system.f_frsize), files })
    }

    fn minus(self, other: Self) -> Self {
        let bytes = self.bytes.saturating_sub(other.bytes);
        Self { bytes, files: self.files.saturating_sub(other.files) }
    }

    fn exceeds(self, other: Self) -> bool {
        self.bytes > other.bytes || self.files > other.files
    }

    /// Returns whether hardly any space is left, after a large loss of space during the run.
    fn is_scarce(self, fallen: Self) -> bool {
        let is_of = |free, fallen, reserve| free < reserve && fallen > reserve;
        is_of(self.bytes, fallen.bytes, RESERVE.bytes)
            || is_of(self.files, fallen.files, RESERVE.files)
    }
}

/// Watch on the folders that a run writes to.
pub(super) struct DiskWatch {
    /// The copy, and the folder for temporary files if it exists.
    folders: Vec<OwnedFd>,
    /// Device of the copy.
    device: u64,
    most: DiskSpace,
    /// Space that the folders used before the start.
    before: DiskSpace,
    free_before: DiskSpace,
    /// Free space below which the run may have exceeded its limit.
    floor: DiskSpace,
    added_up: Instant,
    interval: Duration,
    /// Time that the first sum took.
    pub(super) first_sum: Duration,
}

impl DiskWatch {
    /// Starts to watch the folders of an order.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(super) fn new(order: &RunOrder) -> io::Result<Self> {
        Self::from_folders(&[&order.folder, &order.scratch], &order.limits)
    }

    fn from_folders(folders: &[&Path], limits: &Limits) -> io::Result<Self> {
        let opened = folders.iter().map(|folder| open(*folder, FOLDER, Mode::empty()));
        let opened = opened.filter(|opened| !matches!(opened, Err(Errno::NOENT)));
        let folders = opened.collect::<Result<Vec<OwnedFd>, _>>()?;
        let copy = folders.first().ok_or(io::ErrorKind::NotFound)?;
        let (free, device) = (DiskSpace::free(copy)?, fstat(copy)?.st_dev);
        let most =
            DiskSpace { bytes: limits.disk_mb.saturating_mul(1 << 20), files: limits.files() };
        let mut watch = Self {
            folders,
            device,
            most,
            before: DiskSpace::default(),
            free_before: free,
            floor: free.minus(most),
            added_up: Instant::now(),
            interval: INTERVAL,
            first_sum: Duration::ZERO,
        };
        watch.before = watch.add_up(&[]).space;
        watch.first_sum = watch.added_up.elapsed();
        Ok(watch)
    }

    /// Returns the limit that the run has exceeded, if any.
    ///
    /// # Errors
    /// The disk lost more space than the run's limit, and some of the run's files cannot be read.
    pub(super) fn look(&mut self, processes: &[Process]) -> io::Result<Option<RunEnd>> {
        let free = DiskSpace::free(&self.folders[0])?;
        let fallen = self.free_before.minus(free);
        let is_scarce = free.is_scarce(fallen);
        let is_due = is_scarce || self.floor.exceeds(free);
        if !is_due && self.added_up.elapsed() < self.interval {
            return Ok(None);
        }
        let begin = Instant::now();
        let sum = self.add_up(processes);
        self.added_up = Instant::now();
        self.interval = INTERVAL.max(begin.elapsed() * 10);
        let used = sum.space.minus(self.before);
        if used.exceeds(self.most) {
            return Ok(Some(RunEnd::Disk));
        }
        if is_scarce {
            return Ok(Some(RunEnd::FullDisk));
        }
        if !sum.is_complete && fallen.exceeds(self.most) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // Other programs use the disk too, so from here on only the space that this run may still use counts.
        self.floor = free.minus(self.most.minus(used));
        Ok(None)
    }

    /// Returns whether the folders have reached the limit.
    pub(super) fn is_full(&self) -> bool {
        let sum = self.add_up(&[]);
        let used = sum.space.minus(self.before);
        !sum.is_complete || used.bytes >= self.most.bytes || used.files >= self.most.files
    }

    fn add_up(&self, processes: &[Process]) -> Sum {
        let mut sum = Sum { is_complete: true, ..Sum::default() };
        for folder in &self.folders {
            sum.add_folder(folder);
        }
        for process in processes.iter().filter(|process| process.is_alive()) {
            sum.add_nameless(process, self.device);
        }
        sum
    }
}

/// Sum of the space of files.
#[derive(Default)]
struct Sum {
    space: DiskSpace,
    /// Inodes of counted files that may be encountered again.
    met: HashSet<u64>,
    /// Whether everything could be read.
    is_complete: bool,
}

impl Sum {
    fn add(&mut self, blocks: u64) {
        self.space.bytes = self.space.bytes.saturating_add(blocks.saturating_mul(512));
        self.space.files += 1;
    }

    fn add_entry(&mut self, entry: &Stat) {
        let is_folder = FileType::from_raw_mode(entry.st_mode) == FileType::Directory;
        if is_folder || entry.st_nlink <= 1 || self.met.insert(entry.st_ino) {
            self.add(entry.st_blocks.cast_unsigned());
        }
    }

    /// Adds everything in a folder, opening each folder by its name in the parent, because a full path may exceed the system's limit.
    fn add_folder(&mut self, folder: &OwnedFd) {
        let mut folders = Vec::new();
        let mut next = Some(openat(folder, c".", FOLDER, Mode::empty()));
        loop {
            match next.take().map(|opened| opened.and_then(Dir::new)) {
                Some(Ok(opened)) => folders.push(opened),
                // It was removed or replaced meanwhile.
                None | Some(Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {}
                Some(Err(_)) => self.is_complete = false,
            }
            let Some(last) = folders.last_mut() else { return };
            let entry = match last.read() {
                Some(Ok(entry)) => entry,
                end => {
                    self.is_complete &= end.is_none();
                    folders.pop();
                    continue;
                }
            };
            let (name, Ok(parent)) = (entry.file_name(), last.fd()) else { continue };
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(entry) => {
                    self.add_entry(&entry);
                    if FileType::from_raw_mode(entry.st_mode) == FileType::Directory {
                        next = Some(openat(parent, name, FOLDER, Mode::empty()));
                    }
                }
                Err(Errno::NOENT) => {}
                Err(_) => self.is_complete = false,
            }
        }
    }

    /// Adds files without a name that a process has open or, on this device, mapped.
    fn add_nameless(&mut self, process: &Process, device: u64) {
        let folder = format!("/proc/{}/task", process.pid);
        let threads = fs::read_dir(folder).into_iter().flatten().flatten();
        // Threads share files and mappings; a thread that has ended shows neither.
        for thread in threads.map(|thread| thread.path()) {
            match fs::read_dir(thread.join("fd")) {
                Ok(list) => {
                    for path in list.flatten().map(|entry| entry.path()) {
                        if let Ok(file) = fs::metadata(&path)
                            && file.is_file()
                            && file.nlink() == 0
                            && (file.dev() == device || is_on_disk(&path, &file))
                            && self.met.insert(file.ino())
                        {
                            self.add(file.blocks());
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.is_complete = false;
                }
                Err(_) => {}
            }
            if self.add_mapped(&thread.join("maps"), device) {
                return;
            }
        }
    }

    /// Adds the mapped files in a list of mappings. Returns whether the list has any mapping.
    fn add_mapped(&mut self, list: &Path, device: u64) -> bool {
        let device = format!("{:02x}:{:02x} ", major(device), minor(device));
        let (mut extents, mut is_any) = (HashMap::default(), false);
        let mut add = |line: &[u8]| {
            is_any = true;
            let region = if line.ends_with(b" (deleted)") { mapped_region(line) } else { None };
            let Some((region, extent)) = region else { return true };
            let inode = region.strip_prefix(&*device).and_then(|inode| inode.parse::<u64>().ok());
            if let Some(inode) = inode {
                let before = extents.entry(inode).or_insert(0);
                *before = extent.max(*before);
            }
            true
        };
        let is_read = MappingList::open(list).and_then(|list| list.read(&mut add));
        self.is_complete &= is_read.is_ok();
        for (inode, extent) in extents {
            if self.met.insert(inode) {
                self.add(extent / 512);
            }
        }
        is_any
    }
}

/// Returns whether an open file uses disk space. Overlays report the devices below them, which for a run's own layers are in memory, like
/// `/dev`.
fn is_on_disk(path: &Path, file: &fs::Metadata) -> bool {
    fs::metadata("/dev").is_ok_and(|memory| memory.dev() != file.dev())
        && statfs(path).is_ok_and(|system| system.filesystem_type() != TMPFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::super::processes;
    use super::*;

    fn limits(disk_mb: u64) -> Limits {
        Limits { disk_mb, ..Limits::default() }
    }

    /// Writes that many megabytes so that the disk really stores them.
    fn fill(file: &fs::File, mega: usize) {
        use std::io::Write as _;
        let mut file = file;
        file.write_all(&vec![1; mega << 20]).unwrap();
    }

    #[test]
    fn files_with_long_paths_or_without_a_name_are_added_up() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let own = [processes::read(Pid::this().as_raw()).unwrap().unwrap()];
        let watch = DiskWatch::from_folders(&[dir.path(), &dir.path().join("none")], &limits(64));
        let watch = watch.unwrap();
        let used = |processes: &[Process]| {
            let sum = watch.add_up(processes);
            assert!(sum.is_complete);
            sum.space.minus(watch.before).bytes >> 20
        };
        let name = "n".repeat(200);
        let mut folder = open(dir.path(), FOLDER, Mode::empty()).unwrap();
        for _ in 0..25 {
            rustix::fs::mkdirat(&folder, &*name, Mode::RWXU).unwrap();
            folder = openat(&folder, &*name, FOLDER, Mode::empty()).unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        fill(&openat(&folder, c"deep", flags, Mode::RUSR).unwrap().into(), 3);
        assert_eq!(used(&[]), 3, "a path of 5,000 bytes");
        let nameless = fs::File::create(dir.path().join("x")).unwrap();
        fill(&nameless, 5);
        fs::hard_link(dir.path().join("x"), dir.path().join("y")).unwrap();
        assert_eq!(used(&own), 8, "once, whatever its names");
        fs::remove_file(dir.path().join("x")).unwrap();
        fs::remove_file(dir.path().join("y")).unwrap();
        assert_eq!((used(&[]), used(&own)), (3, 8));
        drop(nameless);
        assert_eq!(used(&own), 3);
    }

    #[test]
    fn a_limit_that_is_passed_ends_a_run_at_once() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut watch = DiskWatch::from_folders(&[dir.path()], &limits(4)).unwrap();
        watch.interval = Duration::MAX;
        assert_eq!(watch.look(&[]).unwrap(), None);
        fill(&fs::File::create(dir.path().join("x")).unwrap(), 5);
        // As if nobody else had freed any space.
        watch.floor = watch.free_before;
        assert_eq!(watch.look(&[]).unwrap(), Some(RunEnd::Disk));
        assert!(watch.is_full());
        fs::remove_file(dir.path().join("x")).unwrap();
        watch.floor = DiskSpace { bytes: u64::MAX, files: u64::MAX };
        assert_eq!(watch.look(&[]).unwrap(), None);
        assert!(watch.floor.bytes < u64::MAX && !watch.is_full(), "others wrote the rest");
        watch.most.files = 2;
        for name in ["a", "b", "c"] {
            assert_eq!(watch.look(&[]).unwrap(), None);
            fs::write(dir.path().join(name), "").unwrap();
        }
        // Others may have freed files meanwhile.
        watch.interval = Duration::ZERO;
        assert_eq!(watch.look(&[]).unwrap(), Some(RunEnd::Disk), "files");
    }

    #[test]
    fn a_disk_that_others_need_is_left_to_them() {
        let of = |mega: u64| DiskSpace { bytes: mega << 20, files: 1 << 20 };
        assert!(of(200).is_scarce(of(300)));
        assert!(!of(300).is_scarce(of(300)));
        assert!(!of(200).is_scarce(of(100)), "others took it before");
        let of = |files: u64| DiskSpace { bytes: 1 << 40, files };
        assert!(of(1000).is_scarce(DiskSpace { files: 5000, ..DiskSpace::default() }));
        assert!(!of(u64::MAX).is_scarce(DiskSpace::default()), "no fixed number");
    }
}
