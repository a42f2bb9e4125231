//! Mounts that this process sees.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use nix::mount::MsFlags;

/// Mount of the system.
pub(super) struct Mount {
    pub(super) path: PathBuf,
    /// Device number of the file system.
    pub(super) device: Vec<u8>,
    /// Part of the file system that is shown.
    pub(super) root: PathBuf,
    /// Flags that a user namespace must not change.
    pub(super) kept: MsFlags,
    /// Whether the mount shows the system itself: its processes, devices, kernel internals, or large pages.
    pub(super) shows_system: bool,
    /// Whether looking up a name in the mount asks a program outside to mount something, usually from a server of that name.
    pub(super) is_automatic: bool,
    /// Whether names that differ only in case may lead to one file without Linux knowing: a server or program outside looks
    /// them up.
    pub(super) may_ignore_case: bool,
    /// Folders whose content the mount shows, if it is an overlay.
    pub(super) layers: Vec<PathBuf>,
}

/// Types of file systems that show the system itself.
const OF_SYSTEM: [&[u8]; 6] =
    [b"proc", b"sysfs", b"debugfs", b"tracefs", b"securityfs", b"hugetlbfs"];

/// Types of file systems whose names Linux compares itself.
const COMPARED: [&[u8]; 11] = [
    b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"f2fs", b"bcachefs", b"tmpfs", b"ramfs",
    b"overlay", b"squashfs",
];

/// Returns the mounts of the system; if several are at one path, the top one.
pub(super) fn mounts() -> io::Result<Vec<Mount>> {
    let text = fs::read("/proc/self/mountinfo")?;
    let mut found: Vec<Mount> = Vec::new();
    for mount in text.split(|byte| *byte == b'\n').filter_map(parse_mount) {
        found.retain(|other| other.path != mount.path);
        found.push(mount);
    }
    Ok(found)
}

/// Parses a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)): the third to sixth fields are the file system's device number, the part
/// of it that is shown, the path, and the mount options; the file system's type, source and own options follow after optional fields and a
/// hyphen.
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
    let mut of_system = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, own_options) = (of_system.next()?, of_system.nth(1).unwrap_or_default());
    Some(Mount {
        path: unescape(path).into(),
        device: device.to_owned(),
        root: unescape(root).into(),
        kept,
        shows_system: OF_SYSTEM.contains(&kind),
        is_automatic: kind == b"autofs",
        may_ignore_case: !COMPARED.contains(&kind) && !OF_SYSTEM.contains(&kind),
        layers: if kind == b"overlay" { layers(own_options) } else { Vec::new() },
    })
}

/// Returns the folders in the options of an overlay.
fn layers(options: &[u8]) -> Vec<PathBuf> {
    let of_option = |option: &[u8]| -> Vec<PathBuf> {
        let names: [&[u8]; 4] = [b"lowerdir=", b"lowerdir+=", b"datadir+=", b"upperdir="];
        let folders = names.iter().find_map(|name| option.strip_prefix(*name));
        let folders = folders.unwrap_or_default().split(|byte| *byte == b':');
        let folders = folders.map(|folder| PathBuf::from(unescape(folder)));
        folders.filter(|folder| folder.is_absolute()).collect()
    };
    options.split(|byte| *byte == b',').flat_map(of_option).collect()
}

/// Replaces `\` followed by three octal digits, which stands for a space, tab, newline or backslash.
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

/// Returns another spelling of a path that leads to another file or folder than the path itself, and is not in its folder's list:
/// what the path leads to was hidden, but its file system ignores case.
pub(super) fn other_spelling(mounts: &[Mount], path: &Path) -> Option<PathBuf> {
    let mount = nearest(mounts, path).filter(|mount| mount.may_ignore_case)?;
    let found = |path: &Path| path.symlink_metadata().map(|found| (found.dev(), found.ino())).ok();
    let is_listed = |path: &Path| {
        let mut entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        entries.iter_mut().flatten().flatten().any(|entry| entry.path() == path)
    };
    unlisted_spelling(&mount.path, path, found, is_listed)
}

/// Returns the other spelling, if `found` identifies what a path leads to, and `is_listed` returns true for names in their folder's list.
fn unlisted_spelling<F: PartialEq>(
    mount: &Path,
    path: &Path,
    found: impl Fn(&Path) -> Option<F>,
    is_listed: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let hidden = found(path)?;
    respelled(mount, path).into_iter().find_map(|(up_to, other)| {
        let is_other = found(&other).is_some_and(|other| other != hidden);
        (is_other && !is_listed(&up_to)).then_some(other)
    })
}

/// Returns a path with the case of one name below a mount changed, for each such name: the path up to that name, and the whole path.
fn respelled(mount: &Path, path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(below) = path.strip_prefix(mount) else { return Vec::new() };
    let names: Vec<&OsStr> = below.iter().collect();
    let respell = |place: usize| {
        let flip = |byte: u8| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { byte };
        let flipped: Vec<u8> = names[place].as_bytes().iter().copied().map(flip).collect();
        let up_to: PathBuf = names[..place].iter().collect();
        let up_to = mount.join(up_to).join(OsStr::from_bytes(&flipped));
        let rest: PathBuf = names[place + 1..].iter().collect();
        let whole = if place + 1 < names.len() { up_to.join(rest) } else { up_to.clone() };
        (up_to, whole)
    };
    (0..names.len()).map(respell).filter(|(_, other)| other != path).collect()
}

/// Maximum number of mounts on the way to one path. An overlay inside one of its own layers contains itself endlessly.
const MOST_STEPS: usize = 4;

/// Returns the other paths of a file or folder: through other mounts of its file system, through the layers of an overlay, and through an
/// overlay one of whose layers contains it. Some of them may not exist.
pub(super) fn other_paths(mounts: &[Mount], path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![path.to_owned()];
    let mut first = 0;
    for _ in 0..MOST_STEPS {
        let end = paths.len();
        for index in first..end {
            for other in next_paths(mounts, &paths[index]) {
                if !paths.contains(&other) {
                    paths.push(other);
                }
            }
        }
        first = end;
    }
    paths.split_off(1)
}

/// Returns the paths that lead to a file or folder through one mount.
fn next_paths(mounts: &[Mount], path: &Path) -> Vec<PathBuf> {
    let Some(own) = nearest(mounts, path) else { return Vec::new() };
    let Ok(below) = path.strip_prefix(&own.path) else { return Vec::new() };
    let within = own.root.join(below);
    let join = |folder: &Path, rest: &Path| folder.components().chain(rest.components()).collect();
    let by_device =
        mounts.iter().filter(|mount| own.path != mount.path && own.device == mount.device);
    let by_device = by_device
        .filter_map(|mount| Some(join(&mount.path, within.strip_prefix(&mount.root).ok()?)));
    let in_layers =
        own.layers.iter().filter_map(|layer| Some(join(layer, within.strip_prefix("/").ok()?)));
    let of_layer = mounts.iter().flat_map(|mount| {
        let rests = mount.layers.iter().filter_map(|layer| path.strip_prefix(layer).ok());
        let shown = rests.filter_map(|rest| {
            Path::new("/").join(rest).strip_prefix(&mount.root).ok().map(Path::to_owned)
        });
        shown.map(|rest| join(&mount.path, &rest)).collect::<Vec<PathBuf>>()
    });
    by_device.chain(in_layers).chain(of_layer).collect()
}

/// Returns the mounts below a path that are not below another such mount.
pub(super) fn topmost_below<'m>(
    mounts: &'m [Mount],
    path: &'m Path,
) -> impl Iterator<Item = &'m Path> {
    let is_below = |folder: &Path, path: &Path| folder != path && folder.starts_with(path);
    let below = mounts.iter().filter(move |mount| is_below(&mount.path, path));
    let is_within = move |other: &Mount, mount: &Mount| {
        is_below(&mount.path, &other.path) && is_below(&other.path, path)
    };
    below
        .filter(move |mount| !mounts.iter().any(|other| is_within(other, mount)))
        .map(|mount| &*mount.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        // The example of proc_pid_mountinfo(5), and a mount with a space in its name.
        let line = br"36 35 98:0 /mnt1 /mnt/par\040ent rw,noatime,nosuid master:1 - ext3 /dev/root rw,errors=continue";
        let mount = parse_mount(line).unwrap();
        assert_eq!(mount.path, Path::new("/mnt/par ent"));
        assert_eq!(mount.kept, MsFlags::MS_NOATIME);
        assert!(!mount.shows_system);
        let other = b"9 8 0:5 / /srv/proc rw,relatime shared:1 master:2 - proc none rw";
        assert!(parse_mount(other).unwrap().shows_system);
        let strict = parse_mount(b"1 1 0:1 / / rw,noexec - tmpfs none rw").unwrap();
        assert_eq!(strict.kept, MsFlags::MS_NOEXEC | MsFlags::MS_STRICTATIME);
        // A part of the first file system, shown at another path, and a different file system.
        let part = parse_mount(b"1 1 0:1 /srv/a /mnt/part rw - tmpfs none rw").unwrap();
        let apart = parse_mount(b"1 1 0:2 / /mnt/apart rw - tmpfs none rw").unwrap();
        let mounts = [strict, part, apart];
        let others = |path: &str| other_paths(&mounts, Path::new(path));
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

    #[test]
    fn an_overlay_and_its_layers_show_the_same() {
        let mounts = [
            b"1 1 0:1 / / rw - ext4 none rw".as_slice(),
            b"1 1 0:2 / /srv/m rw - overlay o rw,lowerdir=/srv/l\\040a:/srv/l2,upperdir=/srv/u,workdir=/srv/w",
            b"1 1 0:1 /srv/u /mnt/u rw - ext4 none rw",
            b"1 1 0:2 /part /mnt/part rw - overlay o rw,lowerdir=/srv/l\\040a:/srv/l2,upperdir=/srv/u,workdir=/srv/w",
        ];
        let mounts: Vec<Mount> = mounts.iter().filter_map(|line| parse_mount(line)).collect();
        let others = |path: &str| {
            let mut found = other_paths(&mounts, Path::new(path));
            found.sort();
            found
        };
        let layers = ["/mnt/u/x", "/srv/l a/x", "/srv/l2/x", "/srv/u/x"].map(PathBuf::from);
        assert_eq!(others("/srv/m/x"), layers);
        assert!(others("/srv/u/x").contains(&"/srv/m/x".into()));
        assert!(others("/mnt/u/part/x").contains(&"/mnt/part/x".into()));
        assert!(others("/srv/w/x").is_empty());
        // Inside one of its own layers.
        let inside = [
            b"1 1 0:1 / / rw - ext4 none rw".as_slice(),
            b"1 1 0:2 / /mnt/m rw - overlay o rw,lowerdir=/,upperdir=/tmp/u,workdir=/tmp/w",
        ];
        let inside: Vec<Mount> = inside.iter().filter_map(|line| parse_mount(line)).collect();
        assert!(other_paths(&inside, Path::new("/srv/x")).contains(&"/mnt/m/srv/x".into()));
    }

    #[test]
    fn names_that_ignore_case_are_found_where_linux_does_not_compare_them() {
        let (mount, path) = (Path::new("/mnt/c"), Path::new("/mnt/c/Work/t.jsonl"));
        let found = |exist: &'static [&'static str], listed: &'static [&'static str]| {
            let found = |path: &Path| exist.iter().position(|there| Path::new(there) == path);
            let is_listed = |path: &Path| listed.iter().any(|there| Path::new(there) == path);
            unlisted_spelling(mount, path, found, is_listed)
        };
        let none: [Option<PathBuf>; 2] = [
            found(&["/mnt/c/Work/t.jsonl", "/mnt/C/Work/t.jsonl"], &[]),
            found(&["/mnt/c/Work/t.jsonl", "/mnt/c/Work/T.JSONL"], &["/mnt/c/Work/T.JSONL"]),
        ];
        assert_eq!(none, [None, None]);
        let file = found(&["/mnt/c/Work/t.jsonl", "/mnt/c/Work/T.JSONL"], &[]);
        assert_eq!(file, Some("/mnt/c/Work/T.JSONL".into()));
        let folder = found(&["/mnt/c/Work/t.jsonl", "/mnt/c/wORK/t.jsonl"], &[]);
        assert_eq!(folder, Some("/mnt/c/wORK/t.jsonl".into()));
        let compares = |line: &[u8]| !parse_mount(line).unwrap().may_ignore_case;
        assert!(compares(b"1 1 0:1 / / rw - ext4 none rw"));
        assert!(!compares(b"1 1 0:1 / /mnt/c rw - 9p C: rw"));
        assert!(!compares(b"1 1 0:1 / /mnt/m rw - fuse.mergerfs m rw"));
    }

    #[test]
    fn mounts_within_automatic_ones_are_found() {
        let mounts = [
            b"1 1 0:1 / / rw - ext4 none rw".as_slice(),
            b"1 1 0:2 / /home rw - autofs none rw,fd=5",
            b"1 1 0:3 / /home/a rw - nfs4 server:/a rw",
            b"1 1 0:4 / /home/a/in rw - nfs4 server:/in rw",
            b"1 1 0:5 / /home/b/c rw - nfs4 server:/b rw",
        ];
        let mounts: Vec<Mount> = mounts.iter().filter_map(|line| parse_mount(line)).collect();
        let automatic: Vec<&Mount> = mounts.iter().filter(|mount| mount.is_automatic).collect();
        let [home] = automatic[..] else { panic!("{} automatic mounts", automatic.len()) };
        let kept: Vec<&Path> = topmost_below(&mounts, &home.path).collect();
        assert_eq!(kept, [Path::new("/home/a"), Path::new("/home/b/c")]);
    }
}
