//! Sockets and named pipes of other programs, which no namespace closes off: they are files.
//!
//! `/proc/net/unix` has the names by which sockets were bound, each network's its own. A name may be relative to the folder that
//! the program was in, or to another root, and the file may have been renamed since. So every socket and named pipe in a folder
//! where one was bound counts.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

/// Folders of which a run sees a layer: no socket in them is reached. They may hold many files.
const CLOSED: [&str; 2] = ["/tmp", "/var/tmp"];

/// Returns the sockets and named pipes that a run could reach, as far as this user can find them.
pub(super) fn reachable() -> Vec<PathBuf> {
    let (lists, roots) = networks_and_roots();
    let bound: Vec<Bound<'_>> =
        lists.iter().flat_map(|text| records(text)).filter_map(Bound::parse).collect();
    let mut found = BTreeSet::new();
    let mut folders = BTreeSet::new();
    let mut note = |path: PathBuf| {
        if let Some(folder) = path.parent().filter(|folder| !is_closed(folder)) {
            folders.insert(folder.to_owned());
        }
        found.insert(path);
    };
    for socket in bound.iter().filter(|socket| socket.name.is_absolute()) {
        note(socket.name.to_owned());
        for root in &roots {
            note(root.join(socket.name.strip_prefix("/").unwrap_or(socket.name)));
        }
    }
    for (folder, name) in in_folders(&bound) {
        note(folder.join(name));
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

/// Numbers of all processes, as `/proc` names them.
fn processes() -> impl Iterator<Item = String> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the lists of sockets of this network and of those of other processes, and the roots of processes that have another than
/// this one; of those that this user can look into.
fn networks_and_roots() -> (Vec<Vec<u8>>, BTreeSet<PathBuf>) {
    let mut lists = vec![fs::read("/proc/net/unix").unwrap_or_default()];
    let mut networks: FxHashSet<_> = fs::read_link("/proc/self/ns/net").into_iter().collect();
    let mut roots = BTreeSet::new();
    for number in processes() {
        let folder = Path::new("/proc").join(number);
        roots.extend(fs::read_link(folder.join("root")));
        if fs::read_link(folder.join("ns/net")).is_ok_and(|network| networks.insert(network)) {
            lists.extend(fs::read(folder.join("net/unix")));
        }
    }
    roots.remove(Path::new("/"));
    (lists, roots)
}

/// Folders in which sockets were bound by relative names, by the sockets' inodes; empty for those whose holder is not found.
static FOLDERS: Mutex<Option<FxHashMap<Vec<u8>, Vec<PathBuf>>>> = Mutex::new(None);

/// Returns the folders of the processes that hold sockets with relative names, and these. Processes are searched if there is a
/// socket that was not there before.
fn in_folders<'a>(bound: &[Bound<'a>]) -> Vec<(PathBuf, &'a Path)> {
    let relative = bound.iter().filter(|socket| !socket.name.is_absolute() && socket.waits);
    let relative: Vec<&Bound<'a>> = relative.collect();
    let mut known = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if relative.iter().any(|socket| !known.contains_key(socket.inode)) {
        for socket in &relative {
            known.entry(socket.inode.to_owned()).or_default();
        }
        for (folder, inodes) in holders() {
            for inode in inodes {
                if let Some(folders) = known.get_mut(&inode).filter(|of| !of.contains(&folder)) {
                    folders.push(folder.clone());
                }
            }
        }
    }
    let of = |socket: &&Bound<'a>| known.get(socket.inode).cloned().unwrap_or_default();
    let pairs = relative
        .iter()
        .flat_map(|socket| of(socket).into_iter().map(|folder| (folder, socket.name)));
    pairs.collect()
}

/// Splits a list into its records. Each begins a line with an address, of 16 hexadecimal digits (8 on small machines), and a colon;
/// a name may have line feeds.
fn records(text: &[u8]) -> Vec<&[u8]> {
    let begins = |line: &[u8]| {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        matches!(digits, 8 | 16) && line.get(digits) == Some(&b':')
    };
    let ends = memchr::memchr_iter(b'\n', text).map(|end| end + 1);
    let starts: Vec<usize> =
        std::iter::once(0).chain(ends).filter(|&start| begins(&text[start..])).collect();
    let next = starts.iter().skip(1).copied().chain([text.len()]);
    let record = |(&start, next): (&usize, usize)| {
        let record = &text[start..next];
        record.strip_suffix(b"\n").unwrap_or(record)
    };
    starts.iter().zip(next).map(record).collect()
}

/// A socket that was bound to a file, or that is abstract.
struct Bound<'a> {
    /// Inode of the socket, in decimal digits.
    inode: &'a [u8],
    /// Whether another socket can connect to it.
    waits: bool,
    /// Its name. That of an abstract socket is shown behind `@`, with which a relative name may begin as well.
    name: &'a Path,
}

impl<'a> Bound<'a> {
    /// Parses a record of `/proc/net/unix`: seven columns, the last two the state and the inode, and the name.
    fn parse(record: &'a [u8]) -> Option<Self> {
        let mut rest = record;
        let mut columns = [&record[..0]; 7];
        for column in &mut columns {
            rest = rest.trim_ascii_start();
            let end = memchr::memchr(b' ', rest)?;
            (*column, rest) = rest.split_at(end);
        }
        let [.., state, inode] = columns;
        let name = rest.strip_prefix(b" ").filter(|name| !name.is_empty())?;
        let is_number = inode.iter().all(u8::is_ascii_digit);
        let (waits, name) = (state == b"01", Path::new(OsStr::from_bytes(name)));
        is_number.then_some(Self { inode, waits, name })
    }
}

/// Working folders of all processes, and the inodes of their sockets; of those that this user can look into.
fn holders() -> impl Iterator<Item = (PathBuf, FxHashSet<Vec<u8>>)> {
    processes().filter_map(|pid| {
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
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 31463 /run/a b
0000000000000000: 00000002 00000000 00010000 0001 01    63 sub/x
0000000000000000: 00000002 00000000 00010000 0001 01    64 @/abstract
0000000000000000: 00000003 00000000 00000000 0001 03 31463
0000000000000000: 00000003 00000000 00000000 0001 03    65 /srv/two
lines
/and more:

00000000: 00000002 00000000 00010000 0001 01    66 /last
";
        let read = |record| {
            let bound = Bound::parse(record)?;
            Some((std::str::from_utf8(bound.inode).ok()?, bound.waits, bound.name.to_str()?))
        };
        let found: Vec<_> = records(list).into_iter().map(read).collect();
        assert_eq!(
            found,
            [
                Some(("31463", true, "/run/a b")),
                Some(("63", true, "sub/x")),
                Some(("64", true, "@/abstract")),
                None,
                Some(("65", false, "/srv/two\nlines\n/and more:\n")),
                Some(("66", true, "/last")),
            ]
        );
        assert!(records(b"").is_empty());
    }
}
