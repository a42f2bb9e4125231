//! Files that a guard writes into a run's folder before the run, and reads from it afterwards. A repository, a set-up command or the run
//! may have replaced any file or folder with a link, a pipe or a device. A guard can open more than a run, so it neither follows a link out
//! of the folder nor waits for a pipe.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, mkdirat};

use super::order::RunOrder;

/// Maximum size of a collected file, in bytes; also of its text as JSON, in which it is passed on.
const LARGEST_COLLECTED: u64 = 64 << 20;

/// Flags of every call that opens something in a run's folder.
const CALM: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_CLOEXEC).union(OFlag::O_NOCTTY);

/// Writes the order's files, with modification times that differ from those recorded in any compiled form of the previous content.
///
/// # Errors
/// A file cannot be written, or its path leads out of the folder or is not a regular file.
pub(super) fn put(order: &RunOrder) -> Result<(), String> {
    if order.texts.is_empty() {
        return Ok(());
    }
    let says = |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
    let folder = open(&order.folder, CALM | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty());
    let folder = folder.map_err(|error| says(&order.folder, error.into()))?;
    for (name, text) in &order.texts {
        let put = put_one(&folder, Path::new(name), text);
        put.map_err(|error| says(&order.folder.join(name), error))?;
    }
    Ok(())
}

fn put_one(folder: &OwnedFd, name: &Path, text: &str) -> io::Result<()> {
    let (file, is_new) = match open_within(folder, name, OFlag::O_WRONLY) {
        Ok(file) => (file, false),
        Err(Errno::ENOENT) => {
            make_folders(folder, name.parent().unwrap_or(Path::new("")))?;
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
            (open_within(folder, name, flags)?, true)
        }
        Err(Errno::EXDEV | Errno::ELOOP) => {
            return Err(io::Error::other("a link there leads out of the repository"));
        }
        Err(error) => return Err(error.into()),
    };
    let mut file = fs::File::from(file);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    if is_new {
        return Ok(());
    }
    file.set_modified(SystemTime::now().max(metadata.modified()? + Duration::from_secs(2)))
}

/// Number of times that a path is opened.
const TRIES: usize = 1000;

/// Opens a path inside a folder. Follows links, but not out of the folder.
fn open_within(folder: &OwnedFd, name: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let within = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags | CALM).mode(mode_of(flags)).resolve(within);
    // The kernel gives up if anything on the system is renamed or mounted meanwhile.
    let mut tries = std::iter::repeat_with(|| openat2(folder, name, how)).take(TRIES);
    match tries.find(|opened| !matches!(opened, Err(Errno::EAGAIN))) {
        // Linux before 5.6, or a surrounding sandbox that does not know the call.
        Some(Err(Errno::ENOSYS | Errno::EPERM)) => open_without_links(folder, name, flags),
        opened => opened.unwrap_or(Err(Errno::EAGAIN)),
    }
}

/// Opens a path inside a folder, unless a part of the path is a link.
fn open_without_links(folder: &OwnedFd, name: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let walk = CALM | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let mut place = openat(folder, ".", walk, Mode::empty())?;
    let mut parts: Vec<_> = name.components().collect();
    let last = parts.pop();
    for part in parts {
        match part {
            Component::Normal(part) => place = openat(&place, part, walk, Mode::empty())?,
            Component::CurDir => {}
            _ => return Err(Errno::EXDEV),
        }
    }
    match last {
        Some(Component::Normal(last)) => {
            openat(&place, last, flags | CALM | OFlag::O_NOFOLLOW, mode_of(flags))
        }
        Some(Component::CurDir) => openat(&place, ".", flags | CALM, Mode::empty()),
        _ => Err(Errno::EXDEV),
    }
}

/// Returns the mode of a file that is created.
fn mode_of(flags: OFlag) -> Mode {
    if flags.contains(OFlag::O_CREAT) { Mode::from_bits_truncate(0o666) } else { Mode::empty() }
}

/// Creates the missing folders of a path inside a folder.
fn make_folders(folder: &OwnedFd, path: &Path) -> nix::Result<()> {
    let mut parent = PathBuf::from(".");
    for part in path {
        let place = open_within(folder, &parent, OFlag::O_DIRECTORY)?;
        match mkdirat(&place, part, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => parent.push(part),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a file that a run was expected to write; returns `None` if it does not exist. The run may have replaced it, or a folder around it,
/// with a link, a device, or an endless pipe.
pub(super) fn collect(folder: &Path, name: &str) -> Option<Result<String, String>> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let read = || -> io::Result<String> {
        let mut place = open(folder, flags, Mode::empty())?;
        for part in Path::new(name) {
            place = openat(&place, part, flags, Mode::empty())?;
        }
        let file = fs::File::from(place);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_COLLECTED + 1).read_to_end(&mut bytes)?;
        let check = |size: u64, how: &str| {
            if size > LARGEST_COLLECTED {
                let most = LARGEST_COLLECTED >> 20;
                Err(io::Error::other(format!("more than {most} MiB{how}")))
            } else {
                Ok(())
            }
        };
        check(bytes.len() as u64, "")?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        check(text.bytes().map(bytes_of_json).sum(), ", as JSON writes it")?;
        Ok(text)
    };
    match read() {
        Ok(text) => Some(Ok(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            let is_link = error.raw_os_error() == Some(Errno::ELOOP as i32);
            let why = if is_link {
                "its path contains a link, which is not followed"
            } else {
                &error.to_string()
            };
            Some(Err(format!("{}, left by the run: {why}", folder.join(name).display())))
        }
    }
}

/// Returns the number of bytes that JSON needs for a byte of a text.
fn bytes_of_json(byte: u8) -> u64 {
    match byte {
        b'\n' | b'\r' | b'\t' | 0x08 | 0x0c | b'"' | b'\\' => 2,
        0..=0x1f => 6, // `\u0001`
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put_text(folder: &Path, name: &str) -> Result<(), String> {
        let texts = vec![(name.to_owned(), "new".to_owned())];
        put(&RunOrder { folder: folder.to_owned(), texts, ..RunOrder::default() })
    }

    #[test]
    fn nothing_is_written_through_a_link_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, other) = (dir.path().join("copy"), dir.path().join("other"));
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "old").unwrap();
        let descriptor = fs::File::options().write(true).open(other.join("file")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&descriptor);
        let at = |name: &str| folder.join(name);
        symlink(other.join("file"), at("absolute")).unwrap();
        symlink("../other/file", at("relative")).unwrap();
        symlink(format!("/proc/self/fd/{number}"), at("descriptor")).unwrap();
        symlink("../../../../../../../../proc/self/cwd", at("magic")).unwrap();
        symlink(&other, at("folder")).unwrap();
        symlink("../nowhere", at("dangling")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        for name in [
            "absolute", "relative", "descriptor", "magic", "folder/file", "folder/new",
            "folder/new/file", "dangling", "../other/file", "pipe", "inner",
        ] {
            assert!(put_text(&folder, name).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "old");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
        symlink(&other, dir.path().join("link")).unwrap();
        assert!(put_text(&dir.path().join("link"), "new").is_err());
    }

    #[test]
    fn a_system_without_the_call_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), "x").unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        symlink("file", dir.path().join("a/b/link")).unwrap();
        let folder = open(dir.path(), CALM | OFlag::O_DIRECTORY, Mode::empty()).unwrap();
        let opened = |name: &str| open_without_links(&folder, Path::new(name), OFlag::O_RDONLY);
        for name in [".", "a", "./a/b", "a/b/file"] {
            assert!(opened(name).is_ok(), "{name}");
        }
        for name in ["link", "link/b/file", "a/b/link", "..", "a/../a", "/etc/passwd", "none"] {
            assert!(opened(name).is_err(), "{name}");
        }
        let new = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        assert!(open_without_links(&folder, Path::new("a/new"), new).is_ok());
        assert!(dir.path().join("a/new").is_file());
    }

    #[test]
    fn files_are_written_within_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/b/file"), "a longer text").unwrap();
        symlink("a/b", folder.join("link")).unwrap();
        symlink("../a/b/file", folder.join("a/file")).unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        let file = fs::File::options().write(true).open(folder.join("a/b/file")).unwrap();
        file.set_modified(later).unwrap();
        for (name, place) in [
            ("a/file", "a/b/file"),
            ("link/other", "a/b/other"),
            ("new/folders/file", "new/folders/file"),
            ("link/new/file", "a/b/new/file"),
        ] {
            put_text(folder, name).unwrap();
            assert_eq!(fs::read_to_string(folder.join(place)).unwrap(), "new", "{name}");
        }
        let modified = fs::metadata(folder.join("a/b/file")).unwrap().modified().unwrap();
        assert!(modified > later, "a compiled form of the old text is not used");
    }

    #[test]
    fn what_a_run_left_is_collected_from_regular_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| collect(dir.path(), name);
        let refused = |name: &str, why: &str| {
            let said = of(name).unwrap().unwrap_err();
            assert!(said.contains(name) && said.contains(why), "{name}: {said}");
        };
        fs::create_dir(dir.path().join("own")).unwrap();
        fs::write(dir.path().join("own/found"), "a test").unwrap();
        assert_eq!(of("own/found"), Some(Ok("a test".into())));
        assert_eq!(of("own/nothing"), None);
        assert_eq!(of("nothing/found"), None);
        symlink("found", dir.path().join("own/link")).unwrap();
        symlink("/proc/self/pagemap", dir.path().join("own/endless")).unwrap();
        symlink("own", dir.path().join("folder")).unwrap();
        for name in ["own/link", "own/endless", "folder/found"] {
            refused(name, "link");
        }
        nix::unistd::mkfifo(&dir.path().join("own/pipe"), Mode::S_IRWXU).unwrap();
        refused("own/pipe", "not a regular file");
        refused("own", "not a regular file");
        fs::File::create(dir.path().join("own/large")).unwrap().set_len(1 << 40).unwrap();
        refused("own/large", "more than 64 MiB");
        // 12 MiB, which become 72 MiB in JSON.
        fs::write(dir.path().join("own/controls"), vec![1; 12 << 20]).unwrap();
        refused("own/controls", "more than 64 MiB, as JSON writes it");
        // 24 MiB, each byte of which is decoded to a three-byte character.
        fs::write(dir.path().join("own/bytes"), vec![0xff; 24 << 20]).unwrap();
        refused("own/bytes", "more than 64 MiB, as JSON writes it");
        for text in ["\n\r\t\u{8}\u{c}\"\\", "\u{1}\u{b}\u{1f}", "aé\u{7f}"] {
            let counted: u64 = text.bytes().map(bytes_of_json).sum();
            assert_eq!(
                counted as usize + 2,
                serde_json::to_string(text).unwrap().len(),
                "{text:?}"
            );
        }
        fs::write(dir.path().join("own/latin"), b"caf\xe9").unwrap();
        assert_eq!(of("own/latin"), Some(Ok("caf\u{fffd}".into())));
    }
}
