//! Processes below this one, as listed in `/proc`.

use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getsid};

/// Name of the hidden subcommand that serves an order.
pub const SUBCOMMAND: &str = "__guard";

/// State and resource use of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) pid: i32,
    parent: i32,
    session: i32,
    is_zombie: bool,
    /// Ticks used by the process and its ended children.
    pub(super) cpu_ticks: u64,
    /// Whether the first thread has a memory map.
    has_map: bool,
}

/// Returns the descendants of this process, including zombies, using each process's list of children. A process that forks meanwhile may be
/// missed, which is good enough for watching.
///
/// # Errors
/// An existing process cannot be read.
pub(super) fn below() -> io::Result<Vec<Process>> {
    let children = |pid: i32| -> Option<Vec<i32>> {
        let mut found = Vec::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let path = thread.ok()?.path().join("children");
            let text = fs::read_to_string(path).ok()?;
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        Some(found)
    };
    let Some(mut pids) = children(Pid::this().as_raw()) else {
        return all_below(); // a kernel without these lists
    };
    let mut next = 0;
    while let Some(&pid) = pids.get(next) {
        pids.extend(children(pid).unwrap_or_default());
        next += 1;
    }
    pids.into_iter().filter_map(|pid| read(pid).transpose()).collect()
}

/// Returns the descendants of this process, using a list of all processes.
///
/// # Errors
/// As for [`below`].
pub(super) fn all_below() -> io::Result<Vec<Process>> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::default();
    for process in all_pids()?.filter_map(|pid| read(pid).transpose()) {
        let process = process?;
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&Pid::this().as_raw()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let of_it = children.remove(&process.pid);
        found.extend(of_it.into_iter().flatten());
        next += 1;
    }
    Ok(found)
}

/// Returns all processes except this one; for the first process of a namespace, these are the processes of the run.
///
/// # Errors
/// As for [`below`].
pub(super) fn all_others() -> io::Result<Vec<Process>> {
    let own = Pid::this().as_raw();
    let others = all_pids()?.filter(|pid| *pid != own);
    others.filter_map(|pid| read(pid).transpose()).collect()
}

/// Returns whether there are more than `most` processes, including this one and ended ones, or they cannot be listed. Opens none of them.
pub(super) fn many(most: usize) -> bool {
    all_pids().map_or(true, |mut pids| pids.nth(most).is_some())
}

/// Iterates over the numbers of all processes.
pub(super) fn all_pids() -> io::Result<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Reads a file of a process; returns `None` if the process no longer exists.
pub(super) fn read_file(path: &str) -> io::Result<Option<String>> {
    match fs::read(path) {
        // The name of a process may contain any bytes.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a process; returns `None` if it no longer exists.
pub(super) fn read(pid: i32) -> io::Result<Option<Process>> {
    let path = format!("/proc/{pid}/stat");
    let Some(stat) = read_file(&path)? else { return Ok(None) };
    let parse = || {
        // The name, in parentheses, may contain anything.
        let fields: Vec<&str> = stat.get(stat.rfind(')')? + 2..)?.split(' ').collect();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let times: Option<Vec<u64>> = (11..15).map(number).collect(); // utime, stime, cutime, cstime
        let threads = number(17)?;
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            // The first thread may have ended before the others.
            is_zombie: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
            cpu_ticks: times?.iter().sum(),
            has_map: number(20)? > 0,
        })
    };
    parse().map(Some).ok_or_else(|| io::Error::other(format!("{path}: {stat:?}")))
}

/// Returns the children of a process's first thread; returns none if the kernel does not list them.
pub(super) fn children(pid: Pid) -> Vec<Pid> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

/// Returns the processor ticks that a thread of this process has used; `None` if they cannot be read.
pub(super) fn thread_ticks(thread: Pid) -> Option<u64> {
    let stat = read_file(&format!("/proc/self/task/{thread}/stat")).ok()??;
    let fields = stat.get(stat.rfind(')')? + 2..)?.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Returns the letter of a process's state, such as `T` if it is stopped; `None` if it cannot be read.
pub(super) fn state(pid: Pid) -> Option<char> {
    let stat = read_file(&format!("/proc/{pid}/stat")).ok()??;
    stat.get(stat.rfind(')')? + 2..)?.chars().next()
}

impl Process {
    pub(super) fn is_alive(&self) -> bool {
        !self.is_zombie
    }

    /// Returns whether the process is ending: it is alive, but has given up its memory map. The kernel frees the memory and closes the files
    /// later, and nothing shows them until then.
    pub(super) fn is_ending(&self) -> bool {
        let has_memory = || self.status().is_ok_and(|status| has_memory(&status));
        self.is_alive() && !self.has_map && !has_memory()
    }

    pub(super) fn send(&self, signal: Signal) {
        // The process may no longer exist, which is the aim.
        let _ = kill(Pid::from_raw(self.pid), signal);
    }

    /// Reads the memory values in the process's status; empty if the process has no memory left.
    pub(super) fn status(&self) -> io::Result<String> {
        let status = read_file(&format!("/proc/{}/status", self.pid))?.unwrap_or_default();
        if has_memory(&status) || !self.is_alive() {
            return Ok(status);
        }
        // The first thread has ended, and only the others have the values.
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return Ok(status);
        };
        for thread in threads.flatten() {
            let path = thread.path().join("status").display().to_string();
            let of_thread = read_file(&path)?.unwrap_or_default();
            if has_memory(&of_thread) {
                return Ok(of_thread);
            }
        }
        Ok(status)
    }
}

/// Returns whether a process's status has values of its memory.
fn has_memory(status: &str) -> bool {
    status.contains("\nRssAnon:")
}

/// Numbers of the processes that this program started and has not waited for yet.
static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Starts a process and remembers its number, by which [`end_orphans`] distinguishes it from orphans.
pub(super) fn start(command: &mut Command) -> io::Result<Child> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    started.push(child.id());
    Ok(child)
}

/// Waits for the end of a process that [`start`] started.
pub(super) fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let status = child.wait()?;
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain(|&number| number != child.id());
    Ok(status)
}

/// Kills every process that a killed guard without namespaces left to this one: children of this process in another session, like all
/// processes of a guard, that [`start`] did not start, and their descendants.
pub(super) fn end_orphans() {
    for _ in 0..1000 {
        // Hold the lock, so that nothing is started while the list is made.
        let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let below = all_below().unwrap_or_default();
        let is_orphan = |process: &Process| {
            process.parent == Pid::this().as_raw()
                && getsid(None).is_ok_and(|own| own.as_raw() != process.session)
                && !started.contains(&process.pid.cast_unsigned())
        };
        let mut orphans: Vec<Process> = Vec::new();
        for process in below {
            // Parents precede their children.
            if is_orphan(&process) || orphans.iter().any(|other| other.pid == process.parent) {
                orphans.push(process);
            }
        }
        drop(started);
        if orphans.is_empty() {
            return;
        }
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            orphans.iter().for_each(|process| process.send(signal));
        }
        for process in &orphans {
            // The others are not children of this process yet.
            let _ = waitpid(Pid::from_raw(process.pid), Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
