//! Sockets and named pipes of other programs, which no namespace closes off: they are files.
//!
//! `/proc/net/unix` has the names by which sockets were bound. A name may be relative to the folder that the program was in, and the
//! file may have been renamed since. So every socket and named pipe in a folder where one was bound counts.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;
use rustc_hash::FxHashSet;

/// Folders of which a run sees a layer: no socket in them is reached. They may hold many files.
const CLOSED: [&str; 2] = ["/tmp", "/var/tmp"];

/// Returns the sockets and named pipes that a run could reach, as far as this user can find them.
pub(super) fn reachable() -> Vec<PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let bound: Vec<Bound<'_>> =
        text.split(|byte| *byte == b'\n').filter_map(Bound::parse).collect();
    let mut found = BTreeSet::new();
    let mut folders = BTreeSet::new();
    let mut note = |path: PathBuf| {
        if let Some(folder) = path.parent().filter(|folder| !is_closed(folder)) {
            folders.insert(folder.to_owned());
        }
        found.insert(path);
    };
    let mut relative = Vec::new();
    for socket in bound {
        if socket.name.is_absolute() { note(socket.name.to_owned()) } else { relative.push(socket) }
    }
    if !relative.is_empty() {
        for (folder, inodes) in holders() {
            let own = relative.iter().filter(|socket| inodes.contains(socket.inode));
            own.for_each(|socket| note(folder.join(socket.name)));
        }
    }
    for entry in folders.iter().flat_map(fs::read_dir).flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_socket() || kind.is_fifo()) {
            found.insert(entry.path());
        }
    }
    found.into_iter().filter(|path| path.exists()).collect()
}

fn is_closed(folder: &Path) -> bool {
    CLOSED.iter().any(|closed| folder.starts_with(closed))
}

/// A socket that was bound to a file.
struct Bound<'a> {
    /// Inode of the socket, in decimal digits.
    inode: &'a [u8],
    name: &'a Path,
}

impl<'a> Bound<'a> {
    /// Parses a line of `/proc/net/unix`: seven columns, the last one the inode, and the name. That of an abstract socket begins
    /// with `@`.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut column = &line[..0];
        for _ in 0..7 {
            rest = rest.trim_ascii_start();
            let end = memchr::memchr(b' ', rest)?;
            (column, rest) = rest.split_at(end);
        }
        let name = rest.strip_prefix(b" ").filter(|name| !name.is_empty() && name[0] != b'@')?;
        let is_number = column.iter().all(u8::is_ascii_digit);
        is_number.then(|| Self { inode: column, name: Path::new(OsStr::from_bytes(name)) })
    }
}

/// Working folders of all processes, and the inodes of their sockets; of those that this user can look into.
fn holders() -> impl Iterator<Item = (PathBuf, FxHashSet<Vec<u8>>)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.map(Pid::from_raw).filter_map(|pid: Pid| {
        let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        let inodes = targets.filter_map(|target| {
            let inode = target.as_os_str().as_bytes().strip_prefix(b"socket:[")?;
            Some(inode.strip_suffix(b"]")?.to_owned())
        });
        Some((folder, inodes.collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sockets_are_read_as_the_kernel_writes_them() {
        let of = |line: &'static str| {
            let bound = Bound::parse(line.as_bytes())?;
            Some((std::str::from_utf8(bound.inode).ok()?, bound.name.to_str()?))
        };
        assert_eq!(of("Num       RefCount Protocol Flags    Type St Inode Path"), None);
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 31463 /run/a b";
        assert_eq!(of(line), Some(("31463", "/run/a b")));
        assert_eq!(of("00: 00000002 00000000 00010000 0001 01    63 sub/x"), Some(("63", "sub/x")));
        assert_eq!(of("00: 00000002 00000000 00010000 0001 01 31463 @/abstract"), None);
        assert_eq!(of("00: 00000003 00000000 00000000 0001 03 31463"), None);
    }
}
