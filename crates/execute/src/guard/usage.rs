//! Resource use of processes: processor time, memory, the kernel's memory for files and sockets, locks.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{SysconfVar, sysconf};

use super::processes::{Process, read_file};

/// Resource use of several processes.
#[derive(Debug, Default, Clone)]
pub(super) struct Usage {
    pub(super) cpu_seconds: f64,
    /// Memory; pages shared by parent and child count twice.
    pub(super) memory: Memory,
    /// The processes' own memory in bytes, by process; 0 for processes that are ending.
    pub(super) by_process: Vec<(i32, u64)>,
}

/// Memory of several processes, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Memory {
    /// Anonymous memory and page tables; part of `own`.
    pub(super) anonymous: u64,
    /// The processes' own memory, the kernel's memory for them, and socket memory.
    pub(super) own: u64,
    /// Visible memory that may be shared and is not backed by a file on a disk.
    shared: u64,
    /// Kernel memory if every slot of the file lists contained a file of the costliest kind.
    pub(super) files: u64,
}

impl Memory {
    /// Returns the sum of this memory and unseen memory.
    pub(super) fn with(self, hidden: UnseenMemory) -> u64 {
        self.own + self.shared.max(hidden.shared) + hidden.kernel
    }

    /// Subtracts shared memory that was counted more than once; reading it takes longer. Memory that cannot be read counts as not shared.
    pub(super) fn once(self, processes: &[Process]) -> Self {
        let of_process = |process: &Process| {
            let rollup = read_file(&format!("/proc/{}/smaps_rollup", process.pid)).ok()??;
            let status = process.status().ok()?;
            let twice =
                |whole, share| kilobytes(&status, whole).saturating_sub(kilobytes(&rollup, share));
            (!rollup.is_empty())
                .then(|| (twice(RESIDENT, "Pss_Anon:"), twice(SHARED, "Pss_Shmem:")))
        };
        let alive = processes.iter().filter(|process| process.is_alive());
        let (own, shared): (Vec<u64>, Vec<u64>) = alive.filter_map(of_process).unzip();
        let less = |all: u64, twice: Vec<u64>| all.saturating_sub(twice.into_iter().sum());
        Self { own: less(self.own, own), shared: less(self.shared, shared), ..self }
    }
}

/// Returns the resource use of processes. `own_network` means that no other process uses the network of this one.
///
/// # Errors
/// An existing process cannot be read.
pub(super) fn usage(processes: &[Process], own_network: bool) -> io::Result<Usage> {
    let ticks = ticks_per_second();
    let cpu_ticks: u64 = processes.iter().map(|process| process.cpu_ticks).sum();
    let own = if own_network { of_sockets()? } else { 0 };
    let mut memory = Memory { own, ..Memory::default() };
    let mut by_process = Vec::new();
    for process in processes.iter().filter(|process| process.is_alive()) {
        let status = process.status()?;
        memory.shared += kilobytes(&status, SHARED);
        memory.files += room_for_files(&status) * (FILE + DESCRIPTION);
        let anonymous = kilobytes(&status, RESIDENT);
        memory.anonymous += anonymous + kilobytes(&status, TABLES);
        let own = anonymous + OTHER.map(|name| kilobytes(&status, name)).iter().sum::<u64>();
        memory.own += own;
        by_process.push((process.pid, own));
    }
    Ok(Usage { cpu_seconds: cpu_ticks as f64 / ticks as f64, memory, by_process })
}

/// Returns the number of processor ticks per second in `/proc`.
pub(super) fn ticks_per_second() -> u64 {
    match sysconf(SysconfVar::CLK_TCK) {
        Ok(Some(ticks)) if ticks > 0 => ticks as u64,
        _ => 100,
    }
}

/// Returns memory that a run may hold, in bytes, from values that no process can lock: its processes' own memory, as far as the system's has
/// it, and the system's shared memory and kernel memory.
///
/// # Errors
/// As for [`usage`].
pub(super) fn visible_memory(processes: &[Process]) -> io::Result<u64> {
    let own = usage(processes, false)?.memory.own.min(SystemMemory::now()?.anonymous);
    let system = UnseenMemory::of_system()?;
    Ok(own.saturating_add(system.shared).saturating_add(system.kernel))
}

/// Returns the longest time that a thread of the processes has waited for a processor; zero if the kernel does not measure it.
pub(super) fn longest_wait(processes: &[Process]) -> Duration {
    let of_thread = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let of_process = |process: &Process| {
        let threads = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        threads.flatten().filter_map(of_thread).max()
    };
    Duration::from_nanos(processes.iter().filter_map(of_process).max().unwrap_or(0))
}

/// Bytes that the kernel uses for an open file, and for a pipe, which has two pages however many pipes there are.
const FILE: u64 = 512;
const PIPE: u64 = 10 << 10;
/// Bytes of an ended process's memory that stay allocated while a file of `/proc` that describes the process is open: the description
/// itself and the top-level page table.
const DESCRIPTION: u64 = 16 << 10;

/// Returns the number of open files for which a process's file list has room, from its status.
fn room_for_files(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Returns the bytes that the kernel uses for open files of processes. A list that cannot be read counts as full of the costliest files.
///
/// # Errors
/// An existing process cannot be read.
pub(super) fn of_files(processes: &[Process]) -> io::Result<u64> {
    let (mut pipes, mut held) = (HashSet::default(), 0);
    for process in processes.iter().filter(|process| process.is_alive()) {
        let folder = format!("/proc/{}", process.pid);
        let mut found = files_in(&format!("{folder}/fd"), &mut pipes);
        if found == Some(0) {
            // The first thread has ended; read the others.
            for thread in fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten() {
                let of_thread = files_in(&thread.path().join("fd").to_string_lossy(), &mut pipes);
                found = found.max(of_thread);
            }
        }
        held += match found {
            Some(found) => found,
            None => room_for_files(&process.status()?) * (FILE + DESCRIPTION),
        };
    }
    Ok(held + pipes.len() as u64 * PIPE)
}

/// Returns the bytes of the open files in a list, and records the pipes among them by device and inode.
fn files_in(list: &str, pipes: &mut HashSet<(u64, u64)>) -> Option<u64> {
    let mut found = 0;
    for entry in fs::read_dir(list).ok()?.flatten() {
        found += if is_of_memory(&entry, &OF_MEMORY) { FILE + DESCRIPTION } else { FILE };
        if let Ok(metadata) = fs::metadata(entry.path())
            && metadata.file_type().is_fifo()
        {
            pipes.insert((metadata.dev(), metadata.ino()));
        }
    }
    Some(found)
}

/// Bytes of memory that the whole system cannot reclaim.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SystemMemory {
    /// The kernel's own memory.
    pub(super) kernel: u64,
    /// Memory that appears in no list, such as pages of sockets: a single unread byte keeps its whole page.
    pub(super) unlisted: u64,
    /// Anonymous memory and page tables of all processes.
    pub(super) anonymous: u64,
}

impl SystemMemory {
    /// Reads the current values.
    ///
    /// # Errors
    /// The values cannot be read.
    pub(super) fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/meminfo")?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        const KERNEL: [&str; 3] = ["SUnreclaim:", "VmallocUsed:", "Percpu:"];
        const OTHER_LISTED: [&str; 11] = [
            "MemFree:", "Buffers:", "Cached:", "SwapCached:", "AnonPages:", "SReclaimable:",
            "PageTables:", "SecPageTables:", "Hugetlb:", "Balloon:", "Zswap:",
        ];
        let sum = |names: &[&str]| names.iter().map(|name| kilobytes(text, name)).sum::<u64>();
        let kernel = sum(&KERNEL);
        let listed = kernel + sum(&OTHER_LISTED);
        let unlisted = kilobytes(text, "MemTotal:").saturating_sub(listed);
        Self { kernel, unlisted, anonymous: sum(&["AnonPages:", "PageTables:"]) }
    }
}

/// Returns the number of sockets in this process's network.
///
/// # Errors
/// The system does not report it.
pub(super) fn sockets() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/net/sockstat")?;
    let number = text.lines().find_map(|line| line.strip_prefix("sockets: used "));
    number.and_then(|number| number.trim().parse().ok()).ok_or(io::ErrorKind::InvalidData.into())
}

/// Returns the bytes of unused memory that the kernel keeps in reserve for each processor, which do not count as free; 0 on systems without
/// such a list.
///
/// # Errors
/// The list cannot be read.
pub(super) fn at_hand() -> io::Result<u64> {
    let page = sysconf(SysconfVar::PAGE_SIZE)?.map_or(4096, |bytes| bytes as u64);
    let text = match fs::read_to_string("/proc/zoneinfo") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        text => text?,
    };
    let counts = text.lines().filter_map(|line| line.trim_start().strip_prefix("count:"));
    let pages: u64 = counts.filter_map(|count| count.trim().parse::<u64>().ok()).sum();
    Ok(pages.saturating_mul(page))
}

/// Numbers of files that the whole system has open, by descriptors, mappings and messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemFiles {
    /// Current number.
    pub(super) open: u64,
    /// Maximum number.
    pub(super) most: u64,
}

impl SystemFiles {
    /// Reads the current numbers.
    ///
    /// # Errors
    /// The numbers cannot be read.
    pub(super) fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/sys/fs/file-nr")?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        let (open, most) = (numbers.next(), numbers.nth(1));
        match (open, most) {
            (Some(Ok(open)), Some(Ok(most))) => Ok(Self { open, most }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Returns the share of a run in a quarter of the maximum, if `beside` other runs are in progress.
    pub(super) fn share(self, beside: usize) -> u64 {
        self.most / 4 / (beside as u64 + 1)
    }
}

/// Returns the number of files that processes have open, by descriptors and mappings; more than `most` count as `most + 1`.
pub(super) fn held_files(processes: &[Process], most: u64) -> u64 {
    let descriptors =
        |thread: &Path| fs::read_dir(thread.join("fd")).map_or(0, |list| list.count());
    let mappings = |thread: &Path| {
        let mut files = 0;
        let list = MappingList::open(&thread.join("maps"));
        // A list that cannot be read counts as too long.
        let is_read = list.and_then(|list| {
            list.read(|line| {
                files += usize::from(line.contains(&b'/'));
                true
            })
        });
        if is_read.is_ok() { files } else { usize::try_from(most).unwrap_or(usize::MAX) }
    };
    let mut held = 0;
    for process in processes.iter().filter(|process| process.is_alive()) {
        let threads = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        let threads: Vec<_> = threads.flatten().map(|thread| thread.path()).collect();
        // Threads share both; a thread that has ended shows neither.
        let descriptors = threads.iter().map(|thread| descriptors(thread)).find(|count| *count > 0);
        let mappings = threads.iter().map(|thread| mappings(thread)).find(|count| *count > 0);
        let both = descriptors.unwrap_or(0).saturating_add(mappings.unwrap_or(0));
        held += both as u64;
        if held > most {
            return most + 1;
        }
    }
    held
}

/// Files of a process in `/proc` that keep the description of its memory: first the six that read the memory or its tables, then others.
const OF_MEMORY: [&str; 9] = [
    "clear_refs", "mem", "numa_maps", "pagemap", "smaps", "smaps_rollup", "auxv", "environ", "maps",
];

/// Returns whether an entry in a list of open files has one of these names of [`OF_MEMORY`].
fn is_of_memory(file: &fs::DirEntry, names: &[&str]) -> bool {
    let target = fs::read_link(file.path()).unwrap_or_default();
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    names.contains(&name.trim_end_matches(" (deleted)"))
}

/// Returns whether a process has a file open through which it may be reading another process's memory: as long as such a read lasts, the
/// memory stays allocated, even if the other process has ended and no process shows it.
pub(super) fn look_into_memory(processes: &[Process]) -> bool {
    let (looking, _) = OF_MEMORY.split_at(6);
    let of_thread = |thread: fs::DirEntry| {
        let files = fs::read_dir(thread.path().join("fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| is_of_memory(&file, looking))
    };
    processes.iter().filter(|process| process.is_alive()).any(|process| {
        let threads = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        threads.flatten().any(of_thread)
    })
}

/// Returns the bytes that the kernel may use for lists that processes have open: the names in each folder, for which a layer stores one
/// list per change, and with `of_processes` the text of each file of `/proc`, up to 8 MB.
pub(super) fn of_lists(processes: &[Process], of_processes: bool) -> u64 {
    const TEXT: u64 = 8 << 20;
    // A folder in memory has 20 bytes per name, and a list uses up to 360 for it. The sizes of folders below a layer are unknown.
    let of_folder = |size: u64| size.saturating_mul(18).max(1 << 20);
    let device = fs::metadata("/proc").map(|metadata| metadata.dev()).ok();
    let of_file = |file: fs::DirEntry| match fs::metadata(file.path()) {
        Ok(metadata) if metadata.is_dir() => of_folder(metadata.size()),
        Ok(metadata) if of_processes && device == Some(metadata.dev()) => TEXT,
        _ => 0,
    };
    let of_thread = |thread: fs::DirEntry| -> u64 {
        let files = fs::read_dir(thread.path().join("fd")).into_iter().flatten().flatten();
        files.map(of_file).sum()
    };
    // Threads usually have the same files.
    let of_process = |process: &Process| {
        let threads = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        threads.flatten().map(of_thread).max().unwrap_or(0)
    };
    processes.iter().filter(|process| process.is_alive()).map(of_process).sum()
}

/// Memory of a process that is not backed by a file.
const RESIDENT: &str = "RssAnon:";
/// Shared memory and files of file systems in memory, as far as the process uses them now.
const SHARED: &str = "RssShmem:";
/// Other memory of a process: swapped out, page tables, and large pages.
const OTHER: [&str; 3] = ["VmSwap:", TABLES, "HugetlbPages:"];
/// Page tables of a process.
const TABLES: &str = "VmPTE:";

/// Memory that does not appear in the sizes of processes, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UnseenMemory {
    /// Shared regions not backed by a file. They keep their content, even if an ended process wrote it, until nobody maps them.
    shared: u64,
    /// The kernel's own memory, which describes mappings.
    kernel: u64,
}

/// Mappings of a run's processes. Their memory is at most their capacity, and at most the whole system's memory of this kind; a large,
/// hardly used region is therefore harmless unless the system is full of others.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// For each shared region, by device and inode, the largest part that was seen mapped.
    regions: HashMap<Vec<u8>, u64>,
}

/// Bytes that the kernel uses for each mapping.
const MAPPING: u64 = 256;
/// Minimum number of bytes that a shared region counts as: the part that is still mapped may be its smallest, and the rest may have been
/// unmapped unnoticed.
const REGION: u64 = 16 << 20;
/// Prefixes of the names of shared regions that are not backed by a file.
const REGIONS: [&[u8]; 4] = [b"/dev/zero (deleted)", b"/anon_hugepage", b"/memfd:", b"/SYSV"];

impl Mappings {
    /// Returns the processes' unseen memory; zero if they cannot hold more than `most` bytes together.
    ///
    /// # Errors
    /// The mappings of an existing process cannot be read.
    pub(super) fn unseen_memory(
        &mut self,
        processes: &[Process],
        memory: Memory,
        most: u64,
    ) -> io::Result<UnseenMemory> {
        let system = UnseenMemory::of_system()?;
        if memory.own.saturating_add(system.shared).saturating_add(system.kernel) <= most {
            return Ok(UnseenMemory::default());
        }
        let (mut regions, mut kernel) = (HashMap::default(), 0);
        for process in processes.iter().filter(|process| process.is_alive()) {
            let folder = format!("/proc/{}", process.pid);
            let mut found = read_mappings(&format!("{folder}/maps"), most, &mut regions)?;
            if found == 0 {
                // The first thread has ended; read the others.
                for thread in fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten()
                {
                    let path = thread.path().join("maps").display().to_string();
                    found = found.max(read_mappings(&path, most, &mut regions)?);
                }
            }
            kernel += found * MAPPING;
            if kernel > most {
                break;
            }
        }
        for (region, extent) in &mut regions {
            *extent = self.regions.get(region).copied().unwrap_or(REGION).max(*extent);
        }
        let shared = regions.values().fold(0, |sum: u64, extent| sum.saturating_add(*extent));
        self.regions = regions;
        Ok(UnseenMemory { shared: shared.min(system.shared), kernel: kernel.min(system.kernel) })
    }
}

impl UnseenMemory {
    /// Returns the whole system's memory of this kind. Unreported values are unbounded.
    fn of_system() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/meminfo")?;
        let of = |name: &str| if text.contains(name) { kilobytes(&text, name) } else { 1 << 60 };
        let on_disk = kilobytes(&text, "SwapTotal:").saturating_sub(kilobytes(&text, "SwapFree:"));
        let large = kilobytes(&text, "Hugetlb:");
        Ok(Self { shared: of("Shmem:") + large + on_disk, kernel: of("SUnreclaim:") })
    }
}

/// Reads a list of mappings and records how far each shared region in it extends. Returns the number of mappings, which is 0 if the process
/// has ended. It stops when the mappings alone use more than `most` bytes.
fn read_mappings(path: &str, most: u64, regions: &mut HashMap<Vec<u8>, u64>) -> io::Result<u64> {
    let mut found = 0;
    MappingList::open(Path::new(path))?.read(|line| {
        found += 1;
        if let Some((region, extent)) = shared_region(line) {
            let before = regions.entry(region).or_insert(0);
            *before = extent.max(*before);
        }
        found * MAPPING <= most
    })?;
    Ok(found)
}

/// List of the mappings of a process (proc_pid_maps(5)).
pub(super) struct MappingList(Option<fs::File>);

/// Longest list of mappings that is read, in bytes: the names of mapped files may make it so long that reading it takes minutes.
const LONGEST_LIST: u64 = 16 << 20;

impl MappingList {
    /// Opens a list; the list of a process that has ended is empty.
    ///
    /// # Errors
    /// The list of an existing process cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match fs::File::open(path) {
            Ok(file) => Ok(Self(Some(file))),
            Err(error) if is_gone(&error) => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }

    /// Passes each line to `take` until it returns false.
    ///
    /// # Errors
    /// The list of an existing process cannot be read, or is too long.
    pub(super) fn read(self, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        let Some(file) = self.0 else { return Ok(()) };
        let (mut file, mut line, mut read) = (BufReader::new(file), Vec::new(), 0);
        loop {
            line.clear();
            match file.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(bytes) => read += bytes as u64,
                Err(error) if is_gone(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            if read > LONGEST_LIST {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            if !take(line.strip_suffix(b"\n").unwrap_or(&line)) {
                return Ok(());
            }
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// Returns the region in a line of the mappings if it is not backed by a file: its device and inode, and the end of the mapped part.
fn shared_region(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let name = &line[memchr::memchr(b'/', line)?..];
    if !REGIONS.iter().any(|beginning| name.starts_with(beginning)) {
        return None;
    }
    mapped_region(line).map(|(region, extent)| (region.into_bytes(), extent))
}

/// Returns the device and inode in a line of the mappings, and the end of the mapped part of the file.
pub(super) fn mapped_region(line: &[u8]) -> Option<(String, u64)> {
    // A name may contain any bytes.
    let end = memchr::memchr(b'/', line).unwrap_or(line.len());
    let (line, _) = line.split_at(end);
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let (device, inode) = (fields.next()?, fields.next()?);
    let extent = hex(offset)?.saturating_add(hex(end)? - hex(start)?);
    Some((format!("{device} {inode}"), extent))
}

/// Returns the bytes that the sockets of this network may hold. The lists include sockets that no process holds because they are being
/// passed to another one. The system reports how many bytes internet sockets hold, but not Unix sockets, each of which counts as full.
fn of_sockets() -> io::Result<u64> {
    let buffer = getsockopt(&UnixDatagram::unbound()?, sockopt::SndBuf)? as u64;
    // New networks have this length, whatever the system's is; old kernels do not show it.
    let queue = fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").ok();
    let queue = queue.and_then(|number| number.trim().parse().ok()).unwrap_or(10);
    let list = fs::read("/proc/net/unix")?;
    let mut held = of_unix_sockets(&String::from_utf8_lossy(&list), buffer, queue);
    for name in ["tcp", "tcp6", "udp", "udp6"] {
        // Without IPv6 these files do not exist.
        let text = read_file(&format!("/proc/net/{name}"))?.unwrap_or_default();
        let queues = text.lines().skip(1).filter_map(|line| {
            let (sent, received) = line.split_ascii_whitespace().nth(4)?.split_once(':')?;
            let bytes = |hex| u64::from_str_radix(hex, 16).ok();
            Some(bytes(sent)? + bytes(received)?)
        });
        held += queues.sum::<u64>();
    }
    Ok(held)
}

/// Returns the bytes that the Unix sockets in a list can hold. Streams are filled until the sender's `buffer` is full. A datagram may be as
/// long as the buffer, and uses up to twice its length. A named socket accepts one datagram more than `queue`, from any sender; an unnamed
/// one accepts them only from its peer, whose buffer may be nearly full before the last datagram.
fn of_unix_sockets(list: &str, buffer: u64, queue: u64) -> u64 {
    const DATAGRAM: &str = "0002";
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(4);
        let is_datagram = fields.next() == Some(DATAGRAM);
        // A name may consist of white space.
        let is_named = fields.nth(2).is_some() || line.ends_with(|c: char| c.is_ascii_whitespace());
        match (is_datagram, is_named) {
            (false, _) => buffer,
            (true, false) => 3 * buffer,
            (true, true) => queue.saturating_add(1).saturating_mul(2 * buffer),
        }
    };
    list.lines().skip(1).map(of_line).fold(0, u64::saturating_add)
}

/// Returns the number of TCP sockets of this network, from a summary, because reading the list of sockets takes milliseconds even if there
/// are few.
fn sockets_in_use(summary: &str) -> io::Result<u64> {
    // Without IPv6 the file does not exist.
    let text = read_file(&format!("/proc/net/{summary}"))?.unwrap_or_default();
    let of_line = |line: &str| {
        let rest =
            line.strip_prefix("TCP: inuse ").or_else(|| line.strip_prefix("TCP6: inuse "))?;
        rest.split(' ').next()?.parse().ok()
    };
    Ok(text.lines().find_map(of_line).unwrap_or(0))
}

/// Returns the bytes that wait in connections of this network which no process has accepted, because no control group counts these earlier.
/// Such a connection is open on at least one side and has no inode. Each counts as at least 16 KB, which the kernel uses even for a few
/// bytes. If there are few sockets, the result is 0.
pub(super) fn of_unaccepted() -> io::Result<u64> {
    const STATES: [&str; 2] = ["01", "08"];
    const LEAST: u64 = 16 << 10;
    // A server and a few clients.
    const FEW: u64 = 8;
    let mut held = 0;
    for (name, kind) in [("tcp", "sockstat"), ("tcp6", "sockstat6")] {
        if sockets_in_use(kind)? <= FEW {
            continue;
        }
        let text = read_file(&format!("/proc/net/{name}"))?.unwrap_or_default();
        let waiting = text.lines().skip(1).filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
            let is_unaccepted = STATES.contains(fields.get(3)?) && *fields.get(9)? == "0";
            let (_, received) = fields.get(4)?.split_once(':')?;
            let bytes = u64::from_str_radix(received, 16).ok()?;
            is_unaccepted.then(|| bytes.max(LEAST))
        });
        held += waiting.sum::<u64>();
    }
    Ok(held)
}

/// Returns whether processes of this namespace hold more file locks than ordinary programs do: the kernel charges their memory to nobody.
pub(super) fn many_locks() -> bool {
    /// Greatest number of locks.
    const MOST: usize = 15_000;
    /// Bytes of the list that are read.
    const LONGEST: u64 = 16 << 20;
    let mut text = String::new();
    let read = |file: fs::File| file.take(LONGEST).read_to_string(&mut text);
    match fs::File::open("/proc/locks").and_then(read) {
        Ok(_) => own_locks(&text) > MOST,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Counts the locks in a list whose process is in this namespace. Locks of an open file description belong to no process and are listed
/// in every namespace, with the number -1; code under test cannot take any ([`OPEN_FILE_LOCKS`](super::calls::OPEN_FILE_LOCKS)).
fn own_locks(list: &str) -> usize {
    let process = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        fields.find(|field| matches!(*field, "READ" | "WRITE" | "UNLCK"))?;
        fields.next()?.parse::<i64>().ok()
    };
    list.lines().filter_map(process).filter(|process| *process > 0).count()
}

/// Reads `Name:  12 kB` from a status, and returns bytes.
fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    number.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::super::processes;
    use super::*;

    #[test]
    fn locks_of_others_are_not_counted() {
        let list = "1: POSIX  ADVISORY  WRITE 3568 fd:00:2531452 0 EOF\n\
                    1: -> POSIX  ADVISORY  WRITE 17 fd:00:2531452 0 EOF\n\
                    2: FLOCK  ADVISORY  READ 12 fd:00:253 0 EOF\n\
                    3: OFDLCK ADVISORY  READ -1 00:06:10265 0 EOF\n\
                    4: POSIX  ADVISORY  WRITE 0 00:2a:4 0 EOF\n";
        assert_eq!(own_locks(list), 3);
    }

    #[test]
    fn sockets_count_as_what_they_can_hold() {
        let head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
        let of = |line: &str| of_unix_sockets(&format!("{head}{line}"), 100, 10);
        let start = "0000000000000000: 00000002 00000000 00000000";
        assert_eq!(of(""), 0);
        assert_eq!(of(&format!("{start} 0001 03 31463\n")), 100);
        assert_eq!(of(&format!("{start} 0002 01    63\n")), 300);
        for name in ["@a", "a b", " ", "\u{fffd}"] {
            assert_eq!(of(&format!("{start} 0002 01    63 {name}\n")), 2200, "{name:?}");
        }
        assert_eq!(of(&format!("{start} 0002 01    63 \n\n")), 2300, "a line feed");
        assert_eq!(of(&format!("{start} 0005 01    63 /a\n")), 100);
    }

    #[test]
    fn lists_that_a_process_has_open_are_counted() {
        let own = [processes::read(Pid::this().as_raw()).unwrap().unwrap()];
        let count = |of_processes| of_lists(&own, of_processes);
        let dir = tempfile::tempdir().unwrap();
        let _kept: Vec<fs::File> = (0..10).map(|_| fs::File::open(dir.path()).unwrap()).collect();
        // Other tests also open and close files, so only a minimum is known.
        assert!(count(false) >= 10 << 20);
        let _texts: Vec<fs::File> =
            (0..10).map(|_| fs::File::open("/proc/self/status").unwrap()).collect();
        assert!(count(true) >= 90 << 20);
    }

    #[test]
    fn what_an_open_file_of_proc_keeps_is_counted() {
        let own = [processes::read(Pid::this().as_raw()).unwrap().unwrap()];
        let _kept: Vec<fs::File> =
            (0..50).map(|_| fs::File::open("/proc/self/maps").unwrap()).collect();
        // Other tests open files too.
        assert!(of_files(&own).unwrap() >= 50 * (16 << 10));
        let status = own[0].status().unwrap();
        assert!(room_for_files(&status) * (FILE + DESCRIPTION) >= of_files(&own).unwrap());
    }

    #[test]
    fn files_of_descriptors_and_mappings_are_counted() {
        let own = [processes::read(Pid::this().as_raw()).unwrap().unwrap()];
        let text = fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = text.lines().filter(|line| line.contains('/')).count() as u64;
        let _kept: Vec<fs::File> =
            (0..50).map(|_| fs::File::open("/proc/self/exe").unwrap()).collect();
        assert!(mapped > 0 && held_files(&own, u64::MAX) >= mapped + 50);
        assert_eq!(held_files(&own, 3), 4);
        let system = SystemFiles::now().unwrap();
        assert!((50..system.most).contains(&system.open), "{system:?}");
    }
}
