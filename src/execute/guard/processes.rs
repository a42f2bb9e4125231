//! Processes below this one, as listed in `/proc`.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use rustc_hash::FxHashMap;

/// State and resource use of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) pid: i32,
    parent: i32,
    is_zombie: bool,
    /// Ticks used by the process and its ended children.
    cpu_ticks: u64,
}

/// Resource use of several processes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Usage {
    pub(super) processes: usize,
    pub(super) cpu_seconds: f64,
    /// Bytes of private memory; memory shared by parent and child is counted twice.
    pub(super) memory: u64,
}

/// Returns the processes below this one at any depth, zombies included, from each process's list of children. A process
/// that forks meanwhile may be missed, which suffices for watching.
pub(super) fn below() -> Vec<Process> {
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
    pids.into_iter().filter_map(read).collect()
}

/// Returns the processes below this one from a list of all processes.
pub(super) fn all_below() -> Vec<Process> {
    let mut children: FxHashMap<i32, Vec<Process>> = FxHashMap::default();
    for process in all_pids().filter_map(read) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&Pid::this().as_raw()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let of_it = children.remove(&process.pid);
        found.extend(of_it.into_iter().flatten());
        next += 1;
    }
    found
}

/// Returns all processes but this one: those of the run, for the first process of a namespace.
pub(super) fn all_others() -> Vec<Process> {
    let own = Pid::this().as_raw();
    all_pids().filter(|pid| *pid != own).filter_map(read).collect()
}

/// Whether there are more processes than `most`, this one and those that ended included. It opens none of them.
pub(super) fn many(most: usize) -> bool {
    all_pids().nth(most).is_some()
}

/// Iterates over the numbers of all processes.
fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reads a process; `None` if it no longer exists.
fn read(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 2..)?.split(' ').collect();
    let number = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok());
    let cpu_ticks = (11..15).filter_map(number).sum(); // utime, stime, cutime, cstime
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        cpu_ticks,
    })
}

impl Process {
    pub(super) fn is_alive(&self) -> bool {
        !self.is_zombie
    }

    pub(super) fn send(&self, signal: Signal) {
        // The process may no longer exist, which is the aim.
        let _ = kill(Pid::from_raw(self.pid), signal);
    }

    /// Resident memory that is not backed by files, shared memory included, in bytes.
    fn memory(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        kilobytes(&text, "RssAnon:") + kilobytes(&text, "RssShmem:")
    }
}

/// Kills every process of the system that was started with this environment variable, left behind by a guard that is gone.
pub(super) fn end_marked(name: &str, value: &str) {
    let wanted = format!("{name}={value}");
    let marked = || {
        let has_it = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        all_pids().filter(has_it).collect::<Vec<i32>>()
    };
    for _ in 0..1000 {
        let left = marked();
        if left.is_empty() {
            return;
        }
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for &pid in &left {
                let _ = kill(Pid::from_raw(pid), signal);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Returns the resource use of processes.
pub(super) fn usage(processes: &[Process]) -> Usage {
    let system = |variable, or| match sysconf(variable) {
        Ok(Some(value)) => value as u64,
        _ => or,
    };
    let ticks = system(SysconfVar::CLK_TCK, 100);
    let cpu_ticks: u64 = processes.iter().map(|process| process.cpu_ticks).sum();
    Usage {
        processes: processes.iter().filter(|process| process.is_alive()).count(),
        cpu_seconds: cpu_ticks as f64 / ticks as f64,
        memory: processes.iter().map(|process| process.memory()).sum(),
    }
}

/// Bytes of memory with shared memory counted once, which takes the system longer; `None` if that is not available.
pub(super) fn exact_memory(processes: &[Process]) -> Option<u64> {
    let mut total = 0;
    for process in processes.iter().filter(|process| process.is_alive()) {
        let Ok(text) = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)) else {
            // The process has ended, or may not be inspected.
            match fs::exists(format!("/proc/{}", process.pid)) {
                Ok(false) => continue,
                _ => return None,
            }
        };
        total += kilobytes(&text, "Pss_Anon:") + kilobytes(&text, "Pss_Shmem:");
    }
    Some(total)
}

/// Bytes of files in memory without a name (`memfd_create`) that processes hold open. What is mapped, too, counts for each
/// process that maps it, but here once.
pub(super) fn unnamed_files(processes: &[Process]) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut sizes: FxHashMap<u64, u64> = FxHashMap::default();
    for process in processes.iter().filter(|process| process.is_alive()) {
        let handles = fs::read_dir(format!("/proc/{}/fd", process.pid));
        for handle in handles.into_iter().flatten().flatten() {
            let is_unnamed = fs::read_link(handle.path())
                .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
            if let (true, Ok(metadata)) = (is_unnamed, fs::metadata(handle.path())) {
                sizes.insert(metadata.ino(), metadata.blocks() * 512);
            }
        }
    }
    sizes.into_values().sum()
}

/// Reads `Name:  12 kB` of a status; in bytes.
fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    number.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}
