//! A control group for all processes of a program's runs: their number is bounded, and together they get the processor time
//! of one ordinary program, however many they are and whatever sessions they open. Each run has a group of its own in it, so
//! that none takes the processes that another is admitted for.
//!
//! It needs the right to make one: root has it as a rule, and users in a part of the tree that was delegated to them. Both
//! versions of the interface are used, cgroups(7).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Environment variable with the folders that a guard enters, as in `PATH`; the underscore tells it from the user's settings.
pub(super) const FOLDERS: &str = "_REPOFORMER_GROUPS";
/// Beginning of a group's name; the number of the program's process follows.
const NAME: &str = "repoformer-";
/// Processes and threads of a run's two guards.
const OF_GUARDS: usize = 16;
/// Controllers that are needed.
const CONTROLLERS: [&str; 2] = ["cpu", "pids"];

/// A group, in one folder a hierarchy; it is removed with the last copy of this.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    folders: Arc<Folders>,
}

#[derive(Debug, Default)]
struct Folders {
    paths: Vec<PathBuf>,
    /// Processes and threads that may be in it now.
    admitted: Mutex<usize>,
    /// Number of runs that were admitted so far.
    runs: AtomicUsize,
}

impl Group {
    /// Makes a group for this program, or none where that is not possible. Groups of programs that are gone are removed.
    pub(super) fn make() -> Self {
        let mut made = Folders::default();
        for parent in parents() {
            remove_left(&parent);
            let folder = parent.join(format!("{NAME}{}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => {
                    // The second version gives groups within it no controllers by itself; the first has no such file.
                    let _ = fs::write(folder.join("cgroup.subtree_control"), "+cpu +pids");
                    made.paths.push(folder);
                }
                Err(_) => return Self::default(), // what was made is removed
            }
        }
        Self { folders: Arc::new(made) }
    }

    /// Whether there is one.
    pub(super) fn exists(&self) -> bool {
        !self.folders.paths.is_empty()
    }

    /// Admits a run with so many processes and threads, until the result is dropped.
    pub(super) fn admit(&self, tasks: usize) -> Admitted<'_> {
        let tasks = tasks + OF_GUARDS;
        self.folders.change(|admitted| admitted + tasks);
        Admitted { folders: &self.folders, tasks, own: self.folders.make_own(tasks) }
    }
}

/// Whether this process is in a group of the program.
pub(super) fn is_entered() -> bool {
    std::env::var_os(FOLDERS).is_some()
}

/// Enters the group that the environment names, for this process and all that it starts.
pub(super) fn enter() -> io::Result<()> {
    let folders = std::env::var_os(FOLDERS).unwrap_or_default();
    std::env::split_paths(&folders)
        .filter(|folder| !folder.as_os_str().is_empty())
        .try_for_each(|folder| fs::write(folder.join("cgroup.procs"), "0"))
}

/// A run that may start its processes.
pub(super) struct Admitted<'g> {
    folders: &'g Folders,
    tasks: usize,
    /// Folders of the run's own group.
    own: Vec<PathBuf>,
}

impl Admitted<'_> {
    /// Returns the environment variable for a guard that [enters](enter) the run's group.
    pub(super) fn variable(&self) -> Option<(&'static str, std::ffi::OsString)> {
        let joined = std::env::join_paths(&self.own).ok()?;
        (!self.own.is_empty()).then_some((FOLDERS, joined))
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        for folder in self.own.iter().filter(|folder| !self.folders.paths.contains(folder)) {
            // While a process is in it, this fails; it goes with the whole group then.
            let _ = fs::remove_dir(folder);
        }
        self.folders.change(|admitted| admitted - self.tasks);
    }
}

impl Folders {
    /// Makes a group for one run, with so many processes and threads. Where that is not possible, the run is in the group of all.
    fn make_own(&self, tasks: usize) -> Vec<PathBuf> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let own = |path: &PathBuf| {
            let folder = path.join(number.to_string());
            if fs::create_dir(&folder).is_err() {
                return path.clone();
            }
            let bound = folder.join("pids.max");
            if bound.exists() {
                // Without this bound, that of all runs remains.
                let _ = fs::write(bound, tasks.to_string());
            }
            folder
        };
        self.paths.iter().map(own).collect()
    }

    /// Changes the largest number of processes and threads.
    fn change(&self, next: impl FnOnce(usize) -> usize) {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        *admitted = next(*admitted);
        for file in self.paths.iter().map(|path| path.join("pids.max")).filter(|file| file.exists())
        {
            // Without this bound, that of the run remains.
            let _ = fs::write(file, admitted.to_string());
        }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        self.paths.iter().for_each(|folder| remove(folder));
    }
}

/// Removes a group and those of its runs. It fails while a process is in one; the next program removes it then.
fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Only folders can be removed there.
        let _ = fs::remove_dir(entry.path());
    }
    let _ = fs::remove_dir(folder);
}

/// Removes groups of programs that are gone.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if process.is_some_and(|pid| pid.parse::<u32>().is_ok() && !is_running(pid)) {
            remove(&entry.path());
        }
    }
}

fn is_running(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// Returns the folders in which a group is made: one for both controllers, or one each.
fn parents() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Controllers are either all in the second version's only hierarchy, or in hierarchies of the first.
    if let Some((top, folder)) = own_folder(&own, &mounts, "") {
        let delegates = |folder: &&Path| {
            let file = folder.join("cgroup.subtree_control");
            let given = fs::read_to_string(file).unwrap_or_default();
            CONTROLLERS.iter().all(|name| given.split_whitespace().any(|given| given == *name))
        };
        let within = folder.ancestors().take_while(|folder| folder.starts_with(&top));
        if let Some(found) = within.filter(delegates).find(|folder| is_writable(folder)) {
            return vec![found.to_owned()];
        }
    }
    let folders = CONTROLLERS.map(|name| own_folder(&own, &mounts, name).map(|(_, folder)| folder));
    let mut folders: Vec<PathBuf> = folders.into_iter().flatten().collect();
    if folders.len() < CONTROLLERS.len() {
        return Vec::new();
    }
    folders.dedup();
    folders
}

fn is_writable(folder: &Path) -> bool {
    nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// Returns the top of a controller's hierarchy, as far as it is mounted, and this process's folder in it. `own` is
/// `/proc/self/cgroup`, lines of `number:controllers:path`; `mounts` is `/proc/self/mountinfo`. The second version has no
/// controllers there: its name is empty.
fn own_folder(own: &str, mounts: &str, controller: &str) -> Option<(PathBuf, PathBuf)> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let (root, top) = mounts.lines().find_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, top) = (place.next()?, place.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let fits = match controller {
            "" => kind == "cgroup2",
            name => kind == "cgroup" && options.split(',').any(|option| option == name),
        };
        fits.then_some((root, top))
    })?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    Some((top.into(), Path::new(top).join(below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_finds_its_folder_in_every_hierarchy() {
        let own = "8:pids:/box/1\n4:cpu,cpuacct:/\n0::/user.slice/a.scope\n";
        let mounts = "30 20 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 20 0:27 /box /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      32 20 0:28 / /sys/fs/cgroup/cpu rw master:1 - cgroup cgroup rw,cpu,cpuacct\n\
                      33 20 0:29 / / rw - ext4 /dev/cpu rw,pids\n";
        let found = |controller: &str| {
            let (top, folder) = own_folder(own, mounts, controller)?;
            Some((top.display().to_string(), folder.display().to_string()))
        };
        let both = |top: &str, folder: &str| Some((top.to_owned(), folder.to_owned()));
        assert_eq!(found("pids"), both("/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids/1"));
        assert_eq!(found("cpu"), both("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/"));
        let unified = "/sys/fs/cgroup/unified";
        assert_eq!(found(""), both(unified, &format!("{unified}/user.slice/a.scope")));
        assert_eq!(found("memory"), None);
    }
}
