//! Control groups: the kernel counts the resources that a run uses, and enforces the run's limits.
//!
//! All runs of a program share one group, in which their number of processes is bounded and which together receives the processor time of
//! one ordinary program, however many runs and sessions there are. Each run has a [group of its own](RunGroup) inside it, in which the
//! kernel counts its memory (of any kind, whether or not a process holds it), its processes and its processor time. Guards stay outside, so
//! that a run's limits never end its guard, and no run takes its guard's time.
//!
//! Creating a group requires a permission, which root usually has, and users have in a part of the tree that was delegated to them. Both
//! versions of the interface are supported, cgroups(7).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::processes::{self, SUBCOMMAND};

/// Prefix of a group's name; the number of the program's process follows.
const NAME: &str = "repoformer-";
/// Prefix, after [`NAME`], of the name of a group that a program moved to.
const OWN: &str = "own-";
/// Controllers of version 2; the last one is optional, because it only divides processor time.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// Controllers of version 1, which counts processor time with a separate controller.
const CONTROLLERS_OF_FIRST: [&str; 4] = ["memory", "pids", "cpuacct", "cpu"];

/// Bytes of a large page.
const LARGE_PAGE: u64 = 2 << 20;

/// File with version 1's memory limit.
const BOUND_OF_FIRST: &str = "memory.limit_in_bytes";

/// Group of all runs, with one folder per hierarchy; it is removed when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    folders: Arc<Folders>,
}

#[derive(Debug, Default)]
struct Folders {
    paths: Vec<PathBuf>,
    /// Maximum number of processes and threads of the runs admitted now.
    admitted: Mutex<usize>,
    /// Number of runs admitted so far.
    runs: AtomicUsize,
    /// Process that removes the folders if this program cannot.
    sweeper: Option<Child>,
}

impl Group {
    /// Creates a group for this program, or none if the system does not allow it. Removes groups of programs that have ended. `program` is
    /// this program.
    pub(super) fn make(program: &OsStr) -> Self {
        let mut made = Folders::default();
        for parent in parents() {
            remove_left(&parent);
            let folder = parent.join(format!("{NAME}{}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => {
                    // Version 2 does not pass controllers to groups inside automatically; version 1 has no such file.
                    for controller in CONTROLLERS {
                        let _ = fs::write(
                            folder.join("cgroup.subtree_control"),
                            format!("+{controller}"),
                        );
                    }
                    made.paths.push(folder);
                }
                Err(_) => return Self::default(), // dropping `made` removes its folders
            }
        }
        if !made.paths.is_empty() {
            // Without a sweeper, the next program removes them.
            made.sweeper = start_sweeper(program, &made.paths).ok();
        }
        Self { folders: Arc::new(made) }
    }

    /// Returns whether the group exists.
    pub(super) fn exists(&self) -> bool {
        !self.folders.paths.is_empty()
    }

    /// Admits a run within these limits, until the result is dropped.
    ///
    /// # Errors
    /// The run's group cannot be created. If there is no group of the program, the run is admitted without one.
    pub(super) fn admit(&self, bounds: Bounds) -> io::Result<Admission<'_>> {
        let tasks = bounds.tasks;
        self.folders.change(|admitted| admitted + tasks);
        let mut admitted =
            Admission { folders: &self.folders, tasks, own: RunGroup { folders: Vec::new() } };
        let number = self.folders.runs.fetch_add(1, Ordering::Relaxed).to_string();
        for path in &self.folders.paths {
            let folder = path.join(&number);
            fs::create_dir(&folder)?;
            admitted.own.folders.push(folder);
        }
        if self.exists() {
            admitted.own.bound(bounds)?;
        }
        Ok(admitted)
    }
}

/// Limits of a run that the kernel enforces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Number of processes and threads.
    pub(super) tasks: usize,
    /// Bytes of memory.
    pub(super) memory: u64,
}

/// Permission of a run to start its processes.
pub(super) struct Admission<'g> {
    folders: &'g Folders,
    tasks: usize,
    own: RunGroup,
}

impl Admission<'_> {
    /// Returns the group of the run.
    pub(super) fn own(&self) -> Option<RunGroup> {
        (!self.own.folders.is_empty()).then(|| self.own.clone())
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.own.end();
        self.own.folders.iter().for_each(|folder| remove(folder));
        self.folders.change(|admitted| admitted - self.tasks);
    }
}

impl Folders {
    /// Changes the maximum number of processes and threads.
    fn change(&self, next: impl FnOnce(usize) -> usize) {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        *admitted = next(*admitted);
        for file in self.paths.iter().map(|path| path.join("pids.max")).filter(|file| file.exists())
        {
            // Without this limit, the run's own limit still applies.
            let _ = fs::write(file, admitted.to_string());
        }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        self.paths.iter().for_each(|folder| remove(folder));
        if let Some(mut sweeper) = self.sweeper.take() {
            drop(sweeper.stdin.take());
            let _ = processes::wait(&mut sweeper);
        }
    }
}

/// Starts a process that waits for the end of this program, whatever its cause, and then [sweeps](sweep) the folders of its group.
fn start_sweeper(program: &OsStr, folders: &[PathBuf]) -> io::Result<Child> {
    let mut line = serde_json::to_vec(folders)?;
    line.push(b'\n');
    let mut command = repoformer_store::program::program(program);
    command.args([SUBCOMMAND, "sweep"]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut sweeper = processes::start(&mut command)?;
    // Standard input stays open as long as the program runs.
    sweeper.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(&line))?;
    Ok(sweeper)
}

/// Reads the folders of a group (a line of JSON) from standard input, waits for the end of the input, kills the processes that are left in
/// the folders, and removes the folders.
pub(super) fn sweep() -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut line = String::new();
    stdin.read_line(&mut line)?;
    io::copy(&mut stdin, &mut io::sink())?;
    let folders: Vec<PathBuf> = serde_json::from_str(&line)?;
    for _ in 0..1000 {
        let runs = folders.iter().flat_map(fs::read_dir).flatten().flatten();
        let runs = runs.map(|entry| entry.path()).filter(|path| path.is_dir());
        runs.for_each(|run| RunGroup { folders: vec![run] }.end());
        folders.iter().for_each(|folder| remove(folder));
        if !folders.iter().any(|folder| folder.exists()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Control group of one run, with one folder per hierarchy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunGroup {
    folders: Vec<PathBuf>,
}

/// Resources of a run, as counted by the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// Bytes of memory that the run holds: its processes' own memory, shared memory, and the kernel's memory for them, without caches of
    /// files.
    pub(super) memory: u64,
    /// Bytes of `memory` in internet sockets, which version 1 counts separately, and which neither version counts before a connection is
    /// accepted.
    pub(super) apart: u64,
    /// Nanoseconds of processor time, including ended processes.
    pub(super) nanoseconds: u64,
    /// Number of processes that the kernel killed for lack of memory.
    pub(super) killed: u64,
    /// Whether the run reached its memory limit; otherwise the system had no memory left.
    pub(super) is_full: bool,
    /// Number of processes and threads that the kernel refused to start.
    pub(super) refused: u64,
    /// Whether the run reached its limit on processes; otherwise the system has too many.
    pub(super) is_crowded: bool,
}

impl RunGroup {
    /// Sets the kernel's limits.
    fn bound(&self, bounds: Bounds) -> io::Result<()> {
        self.write("pids.max", &bounds.tasks.to_string())?;
        let bytes = bounds.memory.to_string();
        if self.file("memory.max").is_ok() {
            self.write("memory.max", &bytes)?;
            // Systems without swap have no such file.
            let _ = self.write("memory.swap.max", "0");
            // Kill all processes together: if only one were killed, the run would be judged by the output of the others.
            let _ = self.write("memory.oom.group", "1");
        } else {
            self.write(BOUND_OF_FIRST, &bytes)?;
            let _ = self.write("memory.memsw.limit_in_bytes", &bytes);
            // This memory is counted only after a limit was set, and separately from the rest.
            self.write("memory.kmem.tcp.limit_in_bytes", &bytes)?;
        }
        Ok(())
    }

    /// Returns the path of a file in the folder that contains it.
    fn file(&self, name: &str) -> io::Result<PathBuf> {
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.exists());
        found.ok_or_else(|| io::Error::other(format!("no control group has a file {name}")))
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.file(name)?, text)
    }

    fn read(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.file(name)?)
    }

    /// Opens the files that a guard writes to. `place` returns the path under which a folder is writable.
    pub(super) fn open<E: From<io::Error>>(
        &self,
        mut place: impl FnMut(&Path) -> Result<PathBuf, E>,
    ) -> Result<Handles, E> {
        let mut handles = Handles { members: Vec::new(), bound: None };
        for folder in &self.folders {
            let seen = place(folder)?;
            let open = |name| File::options().write(true).open(seen.join(name));
            handles.members.push(open("cgroup.procs")?);
            if seen.join(BOUND_OF_FIRST).exists() {
                handles.bound = Some(open(BOUND_OF_FIRST)?);
            }
        }
        Ok(handles)
    }

    /// Reads the counts. `in_files` is the number of bytes in file systems in memory, which have a separate limit.
    pub(super) fn counts(&self, in_files: u64) -> io::Result<Counts> {
        let number = |text: String| {
            text.trim().parse::<u64>().map_err(|_| io::Error::other(format!("no number: {text:?}")))
        };
        let stat = self.read("memory.stat")?;
        let (used, apart, cached, killed, is_full) = match self.file("memory.current") {
            Ok(_) => {
                let caches = value_of(&stat, "file")? + value_of(&stat, "slab_reclaimable")?;
                let used = number(self.read("memory.current")?)?;
                let events = self.read("memory.events")?;
                let is_full = value_of(&events, "oom")? > 0;
                (used, 0, caches, events, is_full)
            }
            Err(_) => {
                let used = number(self.read("memory.usage_in_bytes")?)?;
                let apart = number(self.read("memory.kmem.tcp.usage_in_bytes")?)?;
                // New kernels do not count failures, and a large page may fail below the limit.
                let peak = number(self.read("memory.max_usage_in_bytes")?)?;
                let is_full =
                    peak.saturating_add(LARGE_PAGE) >= number(self.read(BOUND_OF_FIRST)?)?;
                let killed = self.read("memory.oom_control")?;
                (used, apart, value_of(&stat, "cache")?, killed, is_full)
            }
        };
        let refused = value_of(&self.read("pids.events")?, "max")?;
        // Refusals by a group above count, too. Older systems do not tell the peak.
        let is_crowded = refused > 0
            && match self.read("pids.peak") {
                Ok(peak) => number(peak)? >= number(self.read("pids.max")?)?,
                Err(_) => true,
            };
        let kept = value_of(&stat, "shmem")?.saturating_add(value_of(&stat, "unevictable")?);
        let nanoseconds = match self.file("cpuacct.usage") {
            Ok(_) => number(self.read("cpuacct.usage")?)?,
            Err(_) => value_of(&self.read("cpu.stat")?, "usage_usec")?.saturating_mul(1000),
        };
        // Caches include shared memory and locked files, which cannot be dropped.
        let held = used.saturating_sub(cached.saturating_sub(kept));
        Ok(Counts {
            memory: held.saturating_sub(in_files) + apart,
            apart,
            nanoseconds,
            killed: value_of(&killed, "oom_kill")?,
            is_full,
            refused,
            is_crowded,
        })
    }

    /// Kills every process in the group; without `cgroup.kill`, waits about a second for the processes to end.
    fn end(&self) {
        if self.write("cgroup.kill", "1").is_ok() {
            return;
        }
        for _ in 0..1000 {
            let members = self.read("cgroup.procs").unwrap_or_default();
            let pids = members.lines().filter_map(|line| line.parse().ok()).map(Pid::from_raw);
            let pids: Vec<Pid> = pids.filter(|pid| pid.as_raw() > 0).collect();
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Open files of a group, which the command can only read.
#[derive(Debug)]
pub(super) struct Handles {
    members: Vec<File>,
    /// Version 1's memory limit.
    bound: Option<File>,
}

impl Handles {
    /// Moves a process into the group, with everything that it will start.
    pub(super) fn take(&self, pid: u32) -> io::Result<()> {
        self.members.iter().try_for_each(|mut file| file.write_all(pid.to_string().as_bytes()))
    }

    /// Returns whether the run holds more than `most` bytes after the kernel has dropped what it can. Version 1 does not report how much of
    /// the kernel's memory can be dropped, but it rejects a limit that it cannot reach.
    pub(super) fn holds_more(&self, most: u64, usual: u64) -> bool {
        let Some(mut bound) = self.bound.as_ref() else {
            return true;
        };
        let is_refused = bound.write_all(most.to_string().as_bytes()).is_err();
        let is_back = bound.write_all(usual.to_string().as_bytes()).is_ok();
        is_refused || !is_back
    }
}

/// Returns the value in a line `name value`.
fn value_of(text: &str, name: &str) -> io::Result<u64> {
    let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines()
        .find_map(of_line)
        .ok_or_else(|| io::Error::other(format!("a control group does not tell {name}")))
}

/// Removes a group and the groups of its runs. This fails while a group contains a process; the next program then removes it.
fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Only folders can be removed there.
        let _ = fs::remove_dir(entry.path());
    }
    let _ = fs::remove_dir(folder);
}

/// Removes the groups of programs that have ended.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let process = process.map(|name| name.strip_prefix(OWN).unwrap_or(name));
        if process.is_some_and(|pid| pid.parse::<u32>().is_ok() && !is_running(pid)) {
            remove(&entry.path());
        }
    }
}

fn is_running(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// Returns the folders in which to create a group: one for all controllers, or several.
fn parents() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Controllers are either all in version 2's only hierarchy, or in hierarchies of version 1.
    if let Some((top, folder)) = own_folder(&own, &mounts, "") {
        let delegates = |folder: &&Path| {
            let file = folder.join("cgroup.subtree_control");
            let given = fs::read_to_string(file).unwrap_or_default();
            let is_given = |name: &&str| given.split_whitespace().any(|given| given == *name);
            CONTROLLERS.iter().take(2).all(is_given)
        };
        let within = folder.ancestors().take_while(|folder| folder.starts_with(&top));
        if let Some(found) = within.filter(delegates).find(|folder| is_writable(folder)) {
            return vec![found.to_owned()];
        }
        if step_aside(&folder).is_ok() {
            return vec![folder];
        }
    }
    let folders =
        CONTROLLERS_OF_FIRST.map(|name| own_folder(&own, &mounts, name).map(|(_, folder)| folder));
    if folders.iter().take(3).any(Option::is_none) {
        return Vec::new();
    }
    let mut folders: Vec<PathBuf> = folders.into_iter().flatten().collect();
    folders.dedup();
    folders
}

/// Enables the controllers of a folder that was delegated to this program alone, such as a systemd scope. Only a folder without processes
/// can do so, so the program moves to a group inside it.
fn step_aside(folder: &Path) -> io::Result<()> {
    let controllers = fs::read_to_string(folder.join("cgroup.controllers"))?;
    let has = |name: &&str| controllers.split_whitespace().any(|given| given == *name);
    if !CONTROLLERS.iter().take(2).all(has) || !is_writable(folder) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    remove_left(folder);
    let aside = folder.join(format!("{NAME}{OWN}{}", std::process::id()));
    let enter =
        |group: &Path| fs::write(group.join("cgroup.procs"), std::process::id().to_string());
    fs::create_dir(&aside)?;
    let give = fs::File::options().write(true).open(folder.join("cgroup.subtree_control"));
    let moved = give.and_then(|mut file| {
        enter(&aside)?;
        file.write_all(b"+memory +pids")
    });
    if moved.is_err() {
        // The folder contains other processes.
        let _ = (enter(folder), fs::remove_dir(&aside));
    }
    moved
}

fn is_writable(folder: &Path) -> bool {
    nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// Returns the root of a controller's hierarchy, as far as it is mounted, and this process's folder in it. `own` is `/proc/self/cgroup`,
/// with lines of `number:controllers:path`; `mounts` is `/proc/self/mountinfo`. For version 2, whose lines list no controllers, the name is
/// empty.
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
