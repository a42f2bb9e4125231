//! Mounts that this process sees.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use nix::mount::MsFlags;

/// A mount of the system.
pub(super) struct Mount {
    pub(super) path: PathBuf,
    /// Number of its file system.
    pub(super) device: Vec<u8>,
    /// Shown part of the file system.
    pub(super) root: PathBuf,
    /// Flags that a user namespace must not change.
    pub(super) kept: MsFlags,
    /// Whether it shows the system itself: its processes, devices, or kernel internals.
    pub(super) shows_system: bool,
}

/// Kinds of file systems that show the system itself.
const OF_SYSTEM: [&[u8]; 5] = [b"proc", b"sysfs", b"debugfs", b"tracefs", b"securityfs"];

/// Returns the mounts of the system; of several at one path, the top one.
pub(super) fn mounts() -> io::Result<Vec<Mount>> {
    let text = fs::read("/proc/self/mountinfo")?;
    let mut found: Vec<Mount> = Vec::new();
    for mount in text.split(|byte| *byte == b'\n').filter_map(parse_mount) {
        found.retain(|other| other.path != mount.path);
        found.push(mount);
    }
    Ok(found)
}

/// Parses a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)): the third to sixth fields are the file system's number, its
/// part that is shown, the path, and the options; the kind of file system comes after others and a hyphen.
fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let (device, root, path) = (fields.next()?, fields.next()?, fields.next()?);
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let mut kept = MsFlags::empty();
    let mut keeps_times = false;
    for option in options.split(',') {
        kept |= match option {
            "noexec" => MsFlags::MS_NOEXEC,
            "nodev" => MsFlags::MS_NODEV,
            "noatime" => MsFlags::MS_NOATIME,
            "nodiratime" => MsFlags::MS_NODIRATIME,
            "relatime" => MsFlags::MS_RELATIME,
            _ => MsFlags::empty(),
        };
        keeps_times |= matches!(option, "noatime" | "relatime");
    }
    kept.set(MsFlags::MS_STRICTATIME, !keeps_times);
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(Mount {
        path: unescape(path).into(),
        device: device.to_owned(),
        root: unescape(root).into(),
        kept,
        shows_system: OF_SYSTEM.contains(&kind),
    })
}

/// Replaces `\` and three octal digits, which stand for blanks, tabs, newlines and backslashes.
fn unescape(text: &[u8]) -> OsString {
    let mut parts = text.split(|byte| *byte == b'\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                plain.push(code);
                plain.extend_from_slice(&part[3..]);
            }
            None => {
                plain.push(b'\\');
                plain.extend_from_slice(part);
            }
        }
    }
    OsString::from_vec(plain)
}

/// Returns the mount that contains a path.
pub(super) fn nearest<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.path));
    around.max_by_key(|mount| mount.path.as_os_str().len())
}

/// Iterates over the paths by which other mounts of its file system show a file or folder.
pub(super) fn other_paths<'m>(
    mounts: &'m [Mount],
    path: &Path,
) -> impl Iterator<Item = PathBuf> + use<'m> {
    let own = nearest(mounts, path);
    let within = own.and_then(|own| Some(own.root.join(path.strip_prefix(&own.path).ok()?)));
    let others = mounts.iter().filter(move |mount| {
        own.is_some_and(|own| own.path != mount.path && own.device == mount.device)
    });
    others.filter_map(move |mount| {
        let rest = within.as_ref()?.strip_prefix(&mount.root).ok()?;
        Some(mount.path.components().chain(rest.components()).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        // The example of proc_pid_mountinfo(5), and one with a blank in its name.
        let line = br"36 35 98:0 /mnt1 /mnt/par\040ent rw,noatime,nosuid master:1 - ext3 /dev/root rw,errors=continue";
        let mount = parse_mount(line).unwrap();
        assert_eq!(mount.path, Path::new("/mnt/par ent"));
        assert_eq!(mount.kept, MsFlags::MS_NOATIME);
        assert!(!mount.shows_system);
        let other = b"9 8 0:5 / /srv/proc rw,relatime shared:1 master:2 - proc none rw";
        assert!(parse_mount(other).unwrap().shows_system);
        let strict = parse_mount(b"1 1 0:1 / / rw,noexec - tmpfs none rw").unwrap();
        assert_eq!(strict.kept, MsFlags::MS_NOEXEC | MsFlags::MS_STRICTATIME);
        // A part of the first file system, shown elsewhere, and another one.
        let part = parse_mount(b"1 1 0:1 /srv/a /mnt/part rw - tmpfs none rw").unwrap();
        let apart = parse_mount(b"1 1 0:2 / /mnt/apart rw - tmpfs none rw").unwrap();
        let mounts = [strict, part, apart];
        let others =
            |path: &str| -> Vec<PathBuf> { other_paths(&mounts, Path::new(path)).collect() };
        assert_eq!(others("/srv/a/b/x"), [Path::new("/mnt/part/b/x")]);
        assert_eq!(others("/mnt/part/x"), [Path::new("/srv/a/x")]);
        assert_eq!(others("/srv/a"), [Path::new("/mnt/part")]);
        assert!(others("/srv/b").is_empty() && others("/mnt/apart/x").is_empty());
        let [strict, ..] = mounts;
        let mounts = [strict, mount];
        let of = |path: &str| nearest(&mounts, Path::new(path)).unwrap().path.clone();
        assert_eq!(of("/mnt/par ent/x"), Path::new("/mnt/par ent"));
        assert_eq!(of("/mnt/other"), Path::new("/"));
        assert_eq!(unescape(br"a\134b\9"), *r"a\b\9");
    }
}
