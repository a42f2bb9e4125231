//! Sockets and named pipes of other programs, which no namespace isolates because they are files.
//!
//! `/proc/net/unix` lists the names under which sockets were bound, in each network separately. A name may be relative to the program's
//! working folder at that time, or to another root, or lead through `/proc/self`, and the file may have been renamed since. Therefore,
//! every socket and named pipe in a folder in which one was bound counts.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use foldhash::{HashMap, HashSet};

use super::mounts::{mounts, other_paths};

/// Folders over which a run sees a layer, so that it reaches no sockets through them. They may contain many files.
const CLOSED: [&str; 2] = ["/tmp", "/var/tmp"];

/// Returns the sockets and named pipes that a run could reach, as far as this user can find them.
pub(super) fn reachable() -> Vec<PathBuf> {
    let (lists, roots) = networks_and_roots();
    let bound: Vec<Bound<'_>> =
        lists.iter().flat_map(|text| records(text)).filter_map(Bound::parse).collect();
    let mut found = BTreeSet::new();
    let mut folders = BTreeSet::new();
    // The name alone is unreliable: a run may name its sockets like other files, or like abstract ones.
    let mounts = mounts().unwrap_or_default();
    let is_listed = |folder: &&Path| !is_closed(folder) || !other_paths(&mounts, folder).is_empty();
    let mut note = |path: PathBuf| {
        if let Some(folder) = path.parent().filter(is_listed) {
            folders.insert(folder.to_owned());
        }
        if fs::symlink_metadata(&path).is_ok_and(|metadata| is_reached(metadata.file_type())) {
            found.insert(path);
        }
    };
    let mut of_processes = Vec::new();
    for socket in &bound {
        match socket.name.is_absolute().then(|| place_of(socket.name, None)).flatten() {
            Some(place) => note(place),
            None => of_processes.push(socket),
        }
        if let Ok(name) = socket.name.strip_prefix("/") {
            roots.iter().filter_map(|root| place_of(&root.join(name), None)).for_each(&mut note);
        }
    }
    places(&of_processes).into_iter().for_each(note);
    for entry in folders.iter().flat_map(fs::read_dir).flatten().flatten() {
        if entry.file_type().is_ok_and(is_reached) {
            found.insert(entry.path());
        }
    }
    // A mount over the canonical path covers the file under all its names.
    found.into_iter().filter_map(|path| path.canonicalize().ok()).collect()
}

fn is_reached(kind: fs::FileType) -> bool {
    kind.is_socket() || kind.is_fifo()
}

fn is_closed(folder: &Path) -> bool {
    CLOSED.iter().any(|closed| folder.starts_with(closed))
}

/// Returns the numbers of all processes, as listed in `/proc`.
fn processes() -> impl Iterator<Item = String> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the socket lists of this network and of other processes' networks, and the roots of processes with a different root, as far as
/// this user can read them. Runs that this program started are omitted, because no other program reaches the files of their networks.
fn networks_and_roots() -> (Vec<Vec<u8>>, BTreeSet<PathBuf>) {
    let mut lists = vec![fs::read("/proc/net/unix").unwrap_or_default()];
    let mut networks: HashSet<_> = fs::read_link("/proc/self/ns/net").into_iter().collect();
    let mut roots = BTreeSet::new();
    for number in others() {
        let folder = Path::new("/proc").join(number);
        roots.extend(fs::read_link(folder.join("root")));
        if fs::read_link(folder.join("ns/net")).is_ok_and(|network| networks.insert(network)) {
            lists.extend(fs::read(folder.join("net/unix")));
        }
    }
    roots.remove(Path::new("/"));
    (lists, roots)
}

/// Returns the numbers of processes that this one did not start, directly or indirectly.
fn others() -> Vec<String> {
    let parent = |number: &String| -> Option<String> {
        let stat = fs::read_to_string(Path::new("/proc").join(number).join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        Some(fields.split_ascii_whitespace().nth(1)?.to_owned())
    };
    let parents: HashMap<String, String> =
        processes().filter_map(|number| parent(&number).map(|parent| (number, parent))).collect();
    let this = std::process::id().to_string();
    let is_own = |number: &String| {
        let chain = std::iter::successors(parents.get(number), |number| parents.get(*number));
        // While the list was read, a number may have been reused for another process.
        chain.take(parents.len()).any(|number| *number == this)
    };
    parents.keys().filter(|number| !is_own(number)).cloned().collect()
}

/// Maximum number of links that a name may lead through, as in the kernel.
const LINKS: usize = 40;

/// Returns the path of a file after resolving links in its folder, but not in its last component. `/proc/self` and `/proc/thread-self` are
/// resolved for the given process; without one, a name through them has no path.
fn place_of(name: &Path, process: Option<&str>) -> Option<PathBuf> {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut rest, mut place, mut links) = (parts(name), PathBuf::new(), 0);
    while let Some(part) = rest.pop() {
        if part == ".." {
            place.pop();
            continue;
        }
        let next = place.join(&part);
        let target = match next.to_str() {
            _ if rest.is_empty() => None,
            Some("/proc/self") => Some(PathBuf::from(process?)),
            Some("/proc/thread-self") => Some(format!("{0}/task/{0}", process?).into()),
            _ => fs::read_link(&next).ok(),
        };
        match target {
            None => place = next,
            Some(_) if links == LINKS => return None,
            Some(target) => {
                links += 1;
                rest.extend(parts(&target));
            }
        }
    }
    Some(place)
}

/// Paths of sockets whose names depend on the process, by the sockets' inodes; empty for sockets whose holder was not found.
static PLACES: Mutex<Option<HashMap<Vec<u8>, BTreeSet<PathBuf>>>> = Mutex::new(None);

/// Returns the paths that the names of sockets have for the processes that hold them. The processes are searched only if there is a new
/// socket.
fn places(bound: &[&Bound<'_>]) -> Vec<PathBuf> {
    let bound: Vec<_> = bound.iter().filter(|socket| socket.waits).collect();
    let mut known = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if bound.iter().any(|socket| !known.contains_key(socket.inode)) {
        let holders: Vec<Holder> = processes().filter_map(Holder::read).collect();
        for socket in &bound {
            let holders = holders.iter().filter(|holder| holder.inodes.contains(socket.inode));
            let places = holders.filter_map(|holder| holder.place_of(socket.name));
            known.entry(socket.inode.to_owned()).or_default().extend(places);
        }
    }
    bound.iter().filter_map(|socket| known.get(socket.inode)).flatten().cloned().collect()
}

/// Splits a list into its records. Each begins a line with an address, of 16 hexadecimal digits (8 on 32-bit machines), and a colon; names
/// may contain newlines.
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

/// Socket that was bound to a file, or that is abstract.
struct Bound<'a> {
    /// Inode of the socket, in decimal digits.
    inode: &'a [u8],
    /// Whether another socket can connect to it.
    waits: bool,
    /// Name of the socket. The name of an abstract socket is shown after `@`, with which a relative name may begin as well.
    name: &'a Path,
}

impl<'a> Bound<'a> {
    /// Parses a record of `/proc/net/unix`: seven columns, of which the last two are the state and the inode, then the name.
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

/// Process that may have bound sockets.
struct Holder {
    process: String,
    /// Working folder of the process.
    folder: PathBuf,
    /// Inodes of the process's sockets, in decimal digits.
    inodes: HashSet<Vec<u8>>,
}

impl Holder {
    /// Reads a process, if this user has permission to.
    fn read(process: String) -> Option<Self> {
        let folder = fs::read_link(format!("/proc/{process}/cwd")).ok()?;
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        let inodes = targets.filter_map(|target| {
            let inode = target.as_os_str().as_bytes().strip_prefix(b"socket:[")?;
            Some(inode.strip_suffix(b"]")?.to_owned())
        });
        let inodes = inodes.collect();
        Some(Self { process, folder, inodes })
    }

    /// Returns the path that a name has for this process.
    fn place_of(&self, name: &Path) -> Option<PathBuf> {
        place_of(&self.folder.join(name), Some(&self.process))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_that_lead_through_a_process_mean_its_files() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::create_dir(real.join("sub")).unwrap();
        symlink("/proc/self/cwd", real.join("link")).unwrap();
        let file = fs::File::open(real.join("sub")).unwrap();
        let own = Holder::read(std::process::id().to_string()).unwrap();
        let fd = file.as_raw_fd();
        for (name, place) in [
            (format!("/proc/self/fd/{fd}/a"), real.join("sub/a")),
            (format!("/proc/self/fd/{fd}/../a"), real.join("a")),
            (format!("/dev/fd/{fd}/./a"), real.join("sub/a")),
            (format!("//proc/../proc/thread-self/fd/{fd}/a"), real.join("sub/a")),
            (format!("{}/link/a", real.display()), own.folder.join("a")),
        ] {
            assert_eq!(place_of(Path::new(&name), None), None, "{name}");
            assert_eq!(own.place_of(Path::new(&name)), Some(place), "{name}");
        }
        let name = format!("/proc/{}/fd/{fd}/a", own.process);
        assert_eq!(place_of(Path::new(&name), None), Some(real.join("sub/a")));
        assert_eq!(own.place_of(Path::new("a")), Some(own.folder.join("a")));
        symlink("circle", real.join("circle")).unwrap();
        assert_eq!(place_of(&real.join("circle/a"), None), None);
    }

    /// Otherwise a run could empty any file for concurrent runs.
    #[test]
    fn what_has_the_name_of_a_socket_but_is_none_is_not_hidden() {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixListener};
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let real = dir.path().canonicalize().unwrap();
        let _socket = UnixListener::bind(real.join("socket")).unwrap();
        let _other = UnixListener::bind(real.join("file")).unwrap();
        fs::remove_file(real.join("file")).unwrap();
        fs::write(real.join("file"), "words").unwrap();
        fs::write(real.join("named"), "words").unwrap();
        let name = format!("/../../../../../../../../..{}", real.join("named").display());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let found = reachable();
        let found: Vec<_> = found.iter().filter_map(|path| path.strip_prefix(&real).ok()).collect();
        assert_eq!(found, [Path::new("socket")]);
        // Processes started by this one have networks without files that others reach.
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own, child_number) = (others(), child.id().to_string());
        child.kill().and_then(|()| child.wait()).unwrap();
        assert!(!own.contains(&child_number) && own.contains(&"1".to_owned()));
    }

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
