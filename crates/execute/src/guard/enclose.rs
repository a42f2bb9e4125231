//! Isolation of a command by Linux namespaces; no privilege is needed.
//!
//! First, [`leave`] moves the guard into new namespaces. Then [`mount_view`], in the first process of the new namespaces, mounts the file
//! system that the command sees: every file system read-only and without devices, layers in memory above the folders that commands write
//! to, a `/dev` with harmless devices, and a `/proc` with the command's processes. Devices and `/proc` are read-only too, because their
//! owners and modes belong to the whole system. Finally, a second user namespace is entered, within which the mounts of the first one
//! cannot be undone.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, sendto, socket,
};
use nix::sys::stat::{Mode, SFlag, fstat, stat};
use nix::unistd::{getegid, geteuid};

use super::group::{Handles, RunGroup};
use super::mounts::{Mount, mounts, nearest, other_paths, other_spelling, topmost_below};
use super::order::{Files, HiddenPlace, RunOrder};
use super::secrets::secret_places;

/// Reason why isolation failed: the step and the system's error.
pub(super) type Refusal = String;

fn at<E: std::fmt::Display>(step: &str) -> impl Fn(E) -> Refusal {
    move |error| format!("{step}: {error}")
}

/// Moves this process into new user, mount, message and (without `network`) network namespaces, and its children into a new process
/// namespace. The process must have only one thread.
pub(super) fn leave(network: bool) -> Result<(), Refusal> {
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    flags.set(CloneFlags::CLONE_NEWNET, !network);
    // As root of the namespace: other users lose their privileges when they start the inner guard.
    into_namespaces(flags, 0, 0, Path::new("/proc"))
}

/// Enters new namespaces, including a user namespace, as this user and group. `processes` is a writable `/proc`.
fn into_namespaces(
    flags: CloneFlags,
    user: u32,
    group: u32,
    processes: &Path,
) -> Result<(), Refusal> {
    let (own_user, own_group) = (geteuid(), getegid());
    // Outside of the namespaces, the soft limit at this moment holds for all processes of the user.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NPROC) {
        let _ = setrlimit(Resource::RLIMIT_NPROC, hard, hard);
    }
    unshare(flags).map_err(|error| match error {
        Errno::ENOSPC => {
            "namespaces: the system's limit is reached (user.max_user_namespaces)".into()
        }
        error => format!("namespaces: {error}"),
    })?;
    let write = |file: &str, text: String| {
        fs::write(processes.join(file), text).map_err(at(&format!("/proc/{file}")))
    };
    write("self/setgroups", "deny".into())?;
    write("self/uid_map", format!("{user} {own_user} 1"))?;
    write("self/gid_map", format!("{group} {own_group} 1"))
}

/// Returns the user and group outside this namespace that correspond to its root.
fn outer_user() -> Result<(u32, u32), Refusal> {
    let of = |file: &str| {
        let text = fs::read_to_string(file).map_err(at(file))?;
        let mut numbers = text.split_whitespace().skip(1);
        let number = numbers.next().and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("{file}: {text:?}"))
    };
    Ok((of("/proc/self/uid_map")?, of("/proc/self/gid_map")?))
}

/// View of the system that a command has, and the handles that the guard keeps.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Parts that could not be isolated.
    pub(super) open: Vec<String>,
    /// Parts that could not be mounted, without harm.
    pub(super) notes: Vec<String>,
    /// File systems in memory that the command writes to, each given by one of its folders.
    pub(super) in_memory: Vec<PathBuf>,
    /// The run's control group.
    pub(super) group: Option<Handles>,
    /// Hidden files and folders with answers.
    pub(super) hidden: Vec<HiddenFile>,
    /// A writable `/proc`, if the command's is read-only.
    processes: Option<HeldFolder>,
}

impl View {
    /// Opens a view without isolation.
    pub(super) fn open(order: &RunOrder) -> Result<Self, Refusal> {
        Ok(Self { group: open_group(order)?, ..Self::default() })
    }

    /// Returns the path of a `/proc` that the guard can write to.
    pub(super) fn processes(&self) -> PathBuf {
        self.processes.as_ref().map_or_else(|| "/proc".into(), HeldFolder::reach)
    }
}

/// Rejects a system that passes core dumps out of the namespaces whatever limit a run sets.
fn check_core_pattern() -> Result<(), Refusal> {
    let file = "/proc/sys/kernel/core_pattern";
    let pattern = fs::read_to_string(file).map_err(at(file))?;
    let (_, most) = getrlimit(Resource::RLIMIT_CORE).map_err(at("the limit of core dumps"))?;
    match pattern.chars().next() {
        Some('@') => Err(format!("{file}: core dumps go to a socket, {}", pattern.trim())),
        Some('|') if most == 0 => Err(format!(
            "{file}: core dumps go to a program, {}; the hard limit of core dumps must be at least 1 (`ulimit -Hc`), at which it is not started",
            pattern.trim()
        )),
        _ => Ok(()),
    }
}

/// Mounts the view of the system that an order's command sees; called in the first process of a new process namespace. Any failure is an
/// error, except those that the result lists.
pub(super) fn mount_view(order: &RunOrder) -> Result<View, Refusal> {
    let mut view = View::default();
    check_core_pattern()?;
    mount(NONE, "/", NONE, MsFlags::MS_PRIVATE | MsFlags::MS_REC, NONE).map_err(at("mounts"))?;
    let mounts = mounts().map_err(at("/proc/self/mountinfo"))?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), quiet, NONE).map_err(at("/proc"))?;
    let (user, group) = outer_user()?;
    if !bound_processes(order.limits.tasks()) && user == 0 && order.group.is_none() {
        let open = "the number of processes is watched, but the system does not bound it";
        view.open.push(open.into());
    }
    match &order.files {
        Files::Open { protected } => {
            view.group = open_group(order)?;
            // Both are inside the protected folder of copies. Mount points cannot be replaced.
            let own = [&order.folder, &order.scratch].map(|folder| HeldFolder::new(folder));
            // The folders above become mount points, too.
            let above = protected.iter().flat_map(|folder| folder.ancestors().skip(1));
            let mut above: Vec<&Path> = above.filter(|folder| folder.parent().is_some()).collect();
            above.sort();
            above.dedup();
            for folder in &above {
                bind(folder, folder, MsFlags::MS_REC).map_err(at("a folder above the copies"))?;
            }
            for folder in protected {
                bind(folder, folder, MsFlags::MS_REC).map_err(at("the repositories"))?;
                let mut flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                flags |= nearest(&mounts, folder).map_or(MsFlags::empty(), |mount| mount.kept);
                read_only(folder, flags).map_err(at("the repositories, read-only"))?;
                let below =
                    |mount: &&Mount| mount.path.starts_with(folder) && mount.path != *folder;
                mounts.iter().filter(below).try_for_each(keep_mount)?;
                for inside in above.iter().filter(|path| path.starts_with(folder)) {
                    read_only(inside, flags).map_err(at("a folder in a repository, read-only"))?;
                }
            }
            for folder in own {
                let folder = folder?;
                bind(&folder.reach(), &folder.path, MsFlags::MS_REC).map_err(at("the copy"))?;
            }
        }
        Files::Layered | Files::InPlace => {
            layers(order, &mounts, &mut view)?;
            if order.group.is_none() {
                bound_watches()?;
            }
            read_only(Path::new("/proc"), quiet).map_err(at("/proc, read-only"))?;
        }
    }
    if !order.network
        && let Err(error) = loopback_up()
    {
        view.notes.push(format!("no loopback device: {error}"));
    }
    // Tests expect to run as the ordinary user.
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
    into_namespaces(flags, user, group, &view.processes())?;
    std::env::set_current_dir(&order.folder).map_err(at("the copy"))?;
    Ok(view)
}

const NONE: Option<&str> = None;

/// Limits the number of processes for root, to whom the ordinary limit does not apply. Since Linux 6.14, every process namespace has its
/// own maximum process number; before, there was only one for the whole system, which must not be changed. Returns whether the limit was
/// set.
fn bound_processes(tasks: usize) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next())
        && (major, minor) >= (6, 14)
    {
        // Users other than root may not set it, and are limited without it. The lowest numbers are not reused.
        return fs::write("/proc/sys/kernel/pid_max", (300 + tasks).to_string()).is_ok();
    }
    false
}

/// Limits the total number of inotify(7) instances and watches of the namespaces' users: the kernel stores up to 8 MB of events for each
/// instance and, without a control group, charges them to nobody.
fn bound_watches() -> Result<(), Refusal> {
    for (name, most) in [("max_inotify_instances", 8), ("max_inotify_watches", 16384)] {
        let file = format!("/proc/sys/user/{name}");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // a kernel without
            Err(error) => return Err(format!("{file}: {error}")),
        };
        if text.trim().parse::<u64>().is_ok_and(|now| now > most) {
            fs::write(&file, most.to_string()).map_err(at(&file))?;
        }
    }
    Ok(())
}

fn bind(from: &Path, to: &Path, more: MsFlags) -> nix::Result<()> {
    mount(Some(from), to, NONE, MsFlags::MS_BIND | more, NONE)
}

fn read_only(path: &Path, flags: MsFlags) -> nix::Result<()> {
    let again = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(NONE, path, NONE, again | flags, NONE)
}

/// Makes one of the system's mounts read-only.
fn keep_mount(mount: &Mount) -> Result<(), Refusal> {
    let flags = mount.kept | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    match read_only(&mount.path, flags) {
        Ok(()) => Ok(()),
        Err(error) => {
            // A mount hidden below another one cannot be reached by the command either.
            let reachable = fs::metadata(&mount.path).is_ok() && error != Errno::EINVAL;
            if reachable || mount.path == Path::new("/") {
                Err(format!("{}, read-only: {error}", mount.path.display()))
            } else {
                Ok(())
            }
        }
    }
}

/// Folder or file that stays reachable when another file system is mounted over it.
#[derive(Debug)]
struct HeldFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl HeldFolder {
    fn new(path: &Path) -> Result<Self, Refusal> {
        let handle = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
            .map_err(|e| format!("{}: {e}", path.display()))?;
        let path = path.to_owned();
        Ok(Self { path, handle })
    }

    fn reach(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.handle.as_raw_fd()).into()
    }
}

/// Returns the folders that commands write to, other than the copy.
fn private_folders(order: &RunOrder) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/tmp", "/var/tmp"].map(PathBuf::from).into();
    folders.extend(std::env::var_os("HOME").map(PathBuf::from));
    folders.retain(|path| path.is_dir() && path.is_absolute() && path != Path::new("/"));
    folders.retain(|path| *path != order.folder);
    folders.sort();
    folders.dedup();
    folders
}

/// Opens the run's control group; called while the view still allows writing to it.
fn open_group(order: &RunOrder) -> Result<Option<Handles>, Refusal> {
    let open = |group: &RunGroup| group.open(|folder| io::Result::Ok(folder.to_owned()));
    order.group.as_ref().map(open).transpose().map_err(at("a control group"))
}

/// Makes everything read-only except the copy, and mounts a layer over each of the home and temporary folders.
fn layers(order: &RunOrder, mounts: &[Mount], view: &mut View) -> Result<(), Refusal> {
    let size = format!("size={}m,nr_inodes={}", order.limits.disk_mb, order.limits.files());
    let copy = HeldFolder::new(&order.folder)?;
    let folders: Vec<HeldFolder> = private_folders(order)
        .iter()
        .map(|path| HeldFolder::new(path))
        .collect::<Result<_, _>>()?;
    let devices: Vec<HeldFolder> = ["null", "zero", "full", "random", "urandom", "tty"]
        .iter()
        .filter_map(|name| HeldFolder::new(&Path::new("/dev").join(name)).ok())
        .collect();
    // The layers are stored where the command cannot see them: below the mount point of the new /dev.
    tmpfs("/dev", &size).map_err(at("a file system in memory"))?;
    let stage = Path::new("/dev/devices");
    make_devices(stage, &devices, mounts)?;
    view.in_memory.push("/dev".into());
    let processes = Path::new("/dev/processes");
    fs::create_dir(processes).map_err(at("/proc"))?;
    bind(Path::new("/proc"), processes, MsFlags::empty()).map_err(at("/proc"))?;
    view.processes = Some(HeldFolder::new(processes)?);
    if let Some(group) = &order.group {
        // A mount with files open for writing cannot be made read-only, so these are opened through separate mounts.
        let mut number = 0;
        let place = |folder: &Path| -> io::Result<PathBuf> {
            number += 1;
            let place = PathBuf::from(format!("/dev/groups/{number}"));
            fs::create_dir_all(&place)?;
            bind(folder, &place, MsFlags::empty())?;
            Ok(place)
        };
        view.group = Some(group.open(place).map_err(at("a control group"))?);
    }
    for mount in mounts {
        let hidden = ["/proc", "/dev"].iter().any(|own| mount.path.starts_with(own));
        if hidden {
            continue;
        }
        keep_mount(mount)?;
    }
    for (number, folder) in folders.iter().enumerate() {
        // A surrounding folder may have been emptied, because the system cannot layer a folder that contains mounts.
        let _ = fs::create_dir_all(&folder.path);
        if let Err(error) = layer(folder, &format!("/dev/{number}")) {
            let of_system =
                !folder.path.starts_with("/tmp") && !folder.path.starts_with("/var/tmp");
            let path = folder.path.display();
            if of_system {
                view.notes.push(format!("{path} is read-only: {error}"));
            } else {
                empty(&folder.path, &format!("/dev/{number}")).map_err(at("a temporary folder"))?;
                view.notes.push(format!("{path} starts empty: {error}"));
            }
        }
    }
    if !order.network {
        // Hide the sockets of system services, which are files that no network namespace isolates.
        hide(&services(), &stage.join("null"), "/dev/run").map_err(at("/run"))?;
        let is_own = |path: &Path| ["/proc", "/dev"].iter().any(|own| path.starts_with(own));
        let automatic = mounts.iter().filter(|mount| mount.is_automatic && !is_own(&mount.path));
        for (number, mount) in automatic.enumerate() {
            // A program outside would query the network for each name that a run looks up.
            let kept = topmost_below(mounts, &mount.path).map(Path::to_owned).collect();
            let hidden = HiddenPlace { path: mount.path.clone(), kept };
            hide(&hidden, &stage.join("null"), &format!("/dev/automatic-{number}"))
                .map_err(at(&mount.path.display().to_string()))?;
        }
    }
    fs::create_dir("/dev/hidden").map_err(at("hide"))?;
    let whole = |path: PathBuf| HiddenPlace { path, kept: Vec::new() };
    let secrets = secret_places(&order.homes).into_iter().map(whole);
    // Another `/proc` would show all processes and accept writes to the user's own.
    let of_system = mounts.iter().filter(|mount| {
        mount.shows_system
            && !mount.path.starts_with("/proc")
            && !mount.path.starts_with("/dev")
            && mount.path != Path::new("/sys")
    });
    let of_system = of_system.map(|mount| whole(mount.path.clone()));
    let mut all: Vec<HiddenPlace> = order.hidden.iter().cloned().chain(secrets).collect();
    let others = all.iter().flat_map(|hidden| elsewhere(mounts, hidden));
    let others = others.filter(|other| !order.folder.starts_with(&other.path));
    all.extend(others.collect::<Vec<_>>());
    all.extend(of_system);
    for (number, hidden) in all.iter().enumerate() {
        let place = format!("/dev/hidden/{number}");
        hide(hidden, &stage.join("null"), &place)
            .map_err(at(&hidden.path.display().to_string()))?;
    }
    for hidden in &all {
        if let Some(other) = other_spelling(mounts, &hidden.path) {
            return Err(format!(
                "{}: its file system ignores case, so that {} still shows it (copy it to a local disk)",
                hidden.path.display(),
                other.display()
            ));
        }
    }
    fs::create_dir_all(&order.folder).map_err(at("the copy"))?;
    match order.files {
        Files::Layered => layer(&copy, "/dev/copy").map_err(at("a layer over the copy"))?,
        _ => {
            bind(&copy.reach(), &order.folder, MsFlags::empty()).map_err(at("the copy"))?;
            let kept = nearest(mounts, &order.folder).map_or(MsFlags::empty(), |m| m.kept);
            let again = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID;
            let flags = again | MsFlags::MS_NODEV | kept;
            mount(NONE, &order.folder, NONE, flags, NONE).map_err(at("the copy, writable"))?;
        }
    }
    bind(stage, Path::new("/dev"), MsFlags::MS_REC).map_err(at("/dev"))?;
    view.hidden = order.hidden.iter().filter_map(|hidden| HiddenFile::read(&hidden.path)).collect();
    Ok(())
}

/// Returns the other places of a hidden file or folder: a path may lead to it through links, and mounts may show it again.
fn elsewhere(mounts: &[Mount], hidden: &HiddenPlace) -> Vec<HiddenPlace> {
    let real = hidden.path.canonicalize().unwrap_or_else(|_| hidden.path.clone());
    let place = |path: PathBuf| {
        let kept = hidden.kept.iter().filter(|kept| kept.starts_with(&path));
        HiddenPlace { kept: kept.cloned().collect(), path }
    };
    other_paths(mounts, &real).into_iter().map(place).collect()
}

/// Returns the folder of the system's services, in which disks and programs stay visible: on NixOS, all programs are there.
fn services() -> HiddenPlace {
    let folders = [
        "media", "current-system", "booted-system", "opengl-driver", "opengl-driver-32", "wrappers",
    ];
    let path = PathBuf::from("/run");
    let own = folders.map(|folder| path.join(folder));
    let variable = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::split_paths(&variable).filter(|folder| {
        folder.starts_with(&path)
            && *folder != path
            && !own.iter().any(|own| folder.starts_with(own))
    });
    let kept = own.iter().cloned().chain(named).filter(|folder| folder.is_dir()).collect();
    HiddenPlace { path, kept }
}

/// File or folder that a run finds in place of a hidden one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HiddenFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl HiddenFile {
    /// Reads the file or folder that is at a path now.
    fn read(path: &Path) -> Option<Self> {
        let metadata = stat(path).ok()?;
        Some(Self { path: path.to_owned(), device: metadata.st_dev, inode: metadata.st_ino })
    }

    /// Returns whether another file or folder is at the path now: if somebody outside renames a file over the hidden one, the mount that
    /// covers it disappears with the name.
    pub(super) fn is_replaced(&self) -> bool {
        // Programs recreate their sockets when they start.
        let is_content = |metadata: &fs::Metadata| metadata.is_file() || metadata.is_dir();
        fs::metadata(&self.path).is_ok_and(|metadata| {
            is_content(&metadata) && (metadata.dev(), metadata.ino()) != (self.device, self.inode)
        })
    }
}

/// Empties a file, or a folder except for its kept parts. Writes to the folder are stored at `place`.
fn hide(hidden: &HiddenPlace, null: &Path, place: &str) -> Result<(), Refusal> {
    // This call triggers no automatic mount.
    let Ok(metadata) = stat(&hidden.path) else {
        return Ok(()); // not there, or in one that was hidden before
    };
    if SFlag::from_bits_truncate(metadata.st_mode) & SFlag::S_IFMT != SFlag::S_IFDIR {
        return bind(null, &hidden.path, MsFlags::empty()).map_err(at("hide"));
    }
    let kept: BTreeSet<&PathBuf> = hidden.kept.iter().filter(|path| path.exists()).collect();
    let kept: Vec<KeptPart> =
        kept.into_iter().map(|path| KeptPart::new(path)).collect::<Result<_, _>>()?;
    empty(&hidden.path, place).map_err(at("hide"))?;
    kept.iter().try_for_each(|part| part.put_back())
}

/// File or folder that stays visible in a hidden folder.
enum KeptPart {
    Folder(HeldFolder),
    File(HeldFolder),
    /// A link leads to what the command sees at its target: the owner of a repository chose the target.
    Link {
        path: PathBuf,
        target: PathBuf,
    },
}

impl KeptPart {
    fn new(path: &Path) -> Result<Self, Refusal> {
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let handle = open(path, flags, Mode::empty()).map_err(|e| failed(&e))?;
        let kind = fstat(&handle).map_err(|e| failed(&e))?.st_mode;
        let held = HeldFolder { path: path.to_owned(), handle };
        match SFlag::from_bits_truncate(kind) & SFlag::S_IFMT {
            SFlag::S_IFDIR => Ok(Self::Folder(held)),
            SFlag::S_IFLNK => {
                let target = fs::read_link(path).map_err(|e| failed(&e))?;
                Ok(Self::Link { path: held.path, target })
            }
            _ => Ok(Self::File(held)),
        }
    }

    /// Shows the part again in its folder, which is empty now.
    fn put_back(&self) -> Result<(), Refusal> {
        let held = match self {
            Self::Link { path, target } => return symlink(target, path).map_err(at("hide")),
            Self::Folder(held) => {
                fs::create_dir_all(&held.path).map_err(at("hide"))?;
                held
            }
            Self::File(held) => {
                File::create_new(&held.path).map_err(at("hide"))?;
                held
            }
        };
        bind(&held.reach(), &held.path, MsFlags::MS_REC).map_err(at("hide"))
    }
}

/// Makes a folder read-only in the guard's own view.
pub(crate) fn keep(folder: &Path) -> nix::Result<()> {
    bind(folder, folder, MsFlags::empty())?;
    read_only(folder, MsFlags::MS_NOSUID | MsFlags::MS_NODEV)
}

fn tmpfs<P: ?Sized + nix::NixPath>(path: &P, size: &str) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(size))
}

/// Mounts an empty, writable folder over `folder`. Its files are stored at `place`, so that they count towards the limit of all layers.
fn empty(folder: &Path, place: &str) -> io::Result<()> {
    let _ = fs::remove_dir_all(place);
    fs::create_dir(place)?;
    fs::set_permissions(place, Permissions::from_mode(0o1777))?;
    Ok(bind(Path::new(place), folder, MsFlags::empty())?)
}

/// Mounts an overlay over a folder and stores its changes below `place`.
fn layer(folder: &HeldFolder, place: &str) -> Result<(), Refusal> {
    for part in ["changes", "work"] {
        fs::create_dir_all(format!("{place}/{part}")).map_err(at(place))?;
    }
    let mode = fs::metadata(folder.reach()).map_err(at("mode"))?.permissions();
    fs::set_permissions(format!("{place}/changes"), mode).map_err(at("mode"))?;
    let lower = folder.reach();
    let options =
        format!("lowerdir={},upperdir={place}/changes,workdir={place}/work", lower.display());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let overlay = |options: &str| {
        let kind = Some("overlay");
        mount(kind, folder.path.as_path(), kind, flags, Some(options))
    };
    // With user attributes, folders can be replaced as well; older systems do not have these in memory.
    overlay(&format!("{options},userxattr")).or_else(|_| overlay(&options)).map_err(at("overlay"))
}

/// Creates the harmless devices that programs expect in `/dev`. On a read-only mount, devices can still be written to, but their mode and
/// owner, which are the system's, cannot be changed.
fn make_devices(stage: &Path, devices: &[HeldFolder], mounts: &[Mount]) -> Result<(), Refusal> {
    let failed = at("/dev");
    let make = || -> io::Result<()> {
        fs::create_dir_all(stage.join("pts"))?;
        fs::create_dir_all(stage.join("shm"))?;
        for device in devices {
            let place = stage.join(device.path.file_name().unwrap_or_default());
            File::create(&place)?;
            bind(&device.reach(), &place, MsFlags::empty())?;
            let kept = nearest(mounts, &device.path).map_or(MsFlags::empty(), |m| m.kept);
            read_only(&place, kept | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC)?;
        }
        for (name, to) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            symlink(to, stage.join(name))?;
        }
        Ok(())
    };
    make().map_err(failed)?;
    // Terminals are optional.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    // The kernel uses up to 150 KB for each terminal and charges it to nobody.
    let options = Some("newinstance,ptmxmode=0666,mode=0620,max=256");
    let _ = mount(Some("devpts"), &stage.join("pts"), Some("devpts"), flags, options);
    Ok(())
}

/// Asks the kernel (rtnetlink(7)) to start the first network device: `127.0.0.1`.
fn loopback_up() -> nix::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST: u16 = 1;
    const UP: u32 = 1;
    const LOOPBACK: i32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes()); // its length
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST.to_ne_bytes());
    message.extend_from_slice(&[0; 8]); // number, port
    message.extend_from_slice(&[0; 4]); // family, padding, type
    message.extend_from_slice(&LOOPBACK.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes()); // flags
    message.extend_from_slice(&UP.to_ne_bytes()); // mask of the flags to change
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &message, &kernel, MsgFlags::empty()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_takes_the_place_of_a_hidden_one_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["tasks", "other", "socket"] {
            fs::write(at(name), "").unwrap();
        }
        let [tasks, socket] = ["tasks", "socket"].map(|name| HiddenFile::read(&at(name)).unwrap());
        assert_eq!(HiddenFile::read(&at("none")), None);
        assert!(!tasks.is_replaced() && !socket.is_replaced());
        fs::rename(at("other"), at("tasks")).unwrap();
        assert!(tasks.is_replaced());
        fs::remove_file(at("socket")).unwrap();
        assert!(!socket.is_replaced(), "nothing shows");
        let _open = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(!socket.is_replaced());
    }
}
