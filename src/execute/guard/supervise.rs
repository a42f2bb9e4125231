//! A command from its start to the end of all that it started.

use std::fs;
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::output::HeadAndTail;
use super::processes::{self, Usage};
use super::{Ended, Files, Order, Outcome};

/// How often memory, processor time and processes are looked at, at least.
const WATCH: Duration = Duration::from_millis(20);
/// How often files are added up, where no file system of bounded size does it.
const ADD_UP: Duration = Duration::from_millis(500);
/// How long what must end is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a collected file, at most.
const LARGEST_COLLECTED: u64 = 64 << 20;

/// Runs an order to its end; `alone` where this is the first process of its own namespace. `abandoned` turns true when
/// nobody waits for the outcome any more.
pub(super) fn run(order: &Order, alone: bool, abandoned: &AtomicBool) -> Outcome {
    match start(order, alone) {
        Ok(started) => started.watch(order, abandoned),
        Err(reason) => Outcome::refused(reason),
    }
}

struct Started {
    child: Pid,
    alone: bool,
    output: JoinHandle<HeadAndTail>,
    begin: Instant,
    /// How often the system had ended a process for want of memory before.
    kernel_kills: u64,
    /// Bytes of its folders before.
    disk_before: u64,
    /// What the command itself ended with.
    status: Option<WaitStatus>,
    peak: u64,
    disk_full: bool,
}

fn start(order: &Order, alone: bool) -> Result<Started, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    put_texts(order)?;
    let disk_before = match order.files {
        Files::InPlace => bytes_below(&order.folder) + bytes_below(&order.scratch),
        Files::Layered | Files::Open { .. } => 0,
    };
    if !alone {
        prctl::set_child_subreaper(true).map_err(|e| format!("cannot adopt orphans: {e}"))?;
    }
    limit(order, alone).map_err(|e| format!("cannot limit the command: {e}"))?;
    let (reader, writer): (PipeReader, _) = io::pipe().map_err(failed("make a pipe"))?;
    // What a command can look into, it can write its own outcome to.
    prctl::set_dumpable(false).map_err(|e| format!("cannot close off the guard: {e}"))?;
    let mut command = Command::new("/bin/sh");
    command
        // When memory runs out in all, the system is to choose the command, not who watches it.
        .args([
            "-c",
            "{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec /bin/sh -c \"$0\"",
        ])
        .arg(&order.command)
        .current_dir(&order.folder)
        .stdin(Stdio::null())
        .stderr(writer.try_clone().map_err(failed("make a pipe"))?)
        .stdout(writer)
        .process_group(0)
        .envs(order.environment.iter().map(|(name, value)| (name, value)));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("REPOFORMER_") {
            command.env_remove(name); // the key of a server may be among them
        }
    }
    let kernel_kills = kernel_kills();
    let begin = Instant::now();
    let spawned = command.spawn();
    drop(command); // and with it this side's ends of the pipe
    let child = spawned.map_err(failed("start /bin/sh"))?;
    Ok(Started {
        child: Pid::from_raw(child.id().cast_signed()),
        alone,
        output: thread::spawn(move || HeadAndTail::read(reader)),
        begin,
        kernel_kills,
        disk_before,
        status: None,
        peak: 0,
        disk_full: false,
    })
}

/// Writes the files that the order names, with a time that no compiled form of what stood there before has.
fn put_texts(order: &Order) -> Result<(), String> {
    for (name, text) in &order.texts {
        let path = order.folder.join(name);
        let put = || -> io::Result<()> {
            if let (Some(parent), false) = (path.parent(), path.exists()) {
                fs::create_dir_all(parent)?;
                return fs::write(&path, text);
            }
            let before = fs::metadata(&path)?.modified()?;
            let mut now = SystemTime::now();
            if now
                .duration_since(before)
                .is_ok_and(|since| since < Duration::from_secs(2))
            {
                now = before + Duration::from_secs(2);
            }
            let file = fs::File::options().write(true).truncate(true).open(&path)?;
            io::Write::write_all(&mut &file, text.as_bytes())?;
            file.set_modified(now)
        };
        put().map_err(|e| format!("cannot put a text into {}: {e}", path.display()))?;
    }
    Ok(())
}

/// Limits that the system itself keeps; those that it does not know are [watched](Started::watch).
fn limit(order: &Order, alone: bool) -> Result<(), Errno> {
    prctl::set_no_new_privs()?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let cpu = order.limits.cpu_seconds.ceil() as u64 + 2;
    setrlimit(Resource::RLIMIT_CPU, cpu, cpu + 2)?;
    if !matches!(order.files, Files::Open { .. }) {
        let bytes = mega(order.limits.disk_mb);
        setrlimit(Resource::RLIMIT_FSIZE, bytes, bytes)?;
    }
    if alone {
        // Elsewhere the user's other processes would count.
        let most = tasks(order.limits.processes) as u64;
        setrlimit(Resource::RLIMIT_NPROC, most, most)?;
    }
    Ok(())
}

/// Bytes of so many megabytes.
fn mega(megabytes: u64) -> u64 {
    megabytes.saturating_mul(1 << 20)
}

/// Processes and threads that the system itself lets be: of the latter a process may have many.
pub(super) fn tasks(processes: usize) -> usize {
    (4 * processes).max(512)
}

impl Started {
    fn watch(mut self, order: &Order, abandoned: &AtomicBool) -> Outcome {
        let (mut watched, mut added_up) = (self.begin, self.begin);
        let mut ended = loop {
            self.collect_ended();
            if self.status.is_some() {
                break Ended::Exited;
            }
            let elapsed = self.begin.elapsed();
            if abandoned.load(Ordering::Relaxed) {
                break Ended::Abandoned;
            }
            if elapsed.as_secs_f64() >= order.limits.wall_seconds {
                break Ended::Wall;
            }
            // What is over soon is not waited for long, and what multiplies is seen soon.
            let pause = (elapsed / 20).clamp(Duration::from_millis(1), WATCH);
            if watched.elapsed() >= pause {
                watched = Instant::now();
                if let Some(limit) = self.beyond(order) {
                    break limit;
                }
            }
            if matches!(order.files, Files::InPlace) && added_up.elapsed() >= ADD_UP {
                let bytes = bytes_below(&order.folder) + bytes_below(&order.scratch);
                added_up = Instant::now();
                if bytes.saturating_sub(self.disk_before) > mega(order.limits.disk_mb) {
                    break Ended::Disk;
                }
            }
            thread::sleep(pause);
        };
        let seconds = self.begin.elapsed().as_secs_f64();
        let still_there = processes::all_below();
        let left_behind = match ended {
            Ended::Exited => still_there
                .iter()
                .filter(|process| process.is_alive())
                .count(),
            _ => 0,
        };
        self.look_at_disk(order);
        self.end_all();
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
        let cpu_seconds = usage.map_or(0.0, |usage| {
            (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64
                / 1e6
        });
        // The largest of its processes may have come and gone between two looks.
        let largest = usage.map_or(0, |usage| usage.max_rss() as u64 * 1024);
        let (exit_code, signal) = match self.status {
            Some(WaitStatus::Exited(_, code)) => (Some(code), None),
            Some(WaitStatus::Signaled(_, signal, _)) => (None, Some(signal as i32)),
            _ => (None, None),
        };
        let killed = signal == Some(Signal::SIGKILL as i32) || exit_code == Some(128 + 9);
        if ended == Ended::Exited && killed && kernel_kills() > self.kernel_kills {
            ended = Ended::Memory;
        }
        if ended == Ended::Exited && signal == Some(Signal::SIGXCPU as i32) {
            ended = Ended::Cpu;
        }
        if ended == Ended::Exited && signal == Some(Signal::SIGXFSZ as i32) {
            ended = Ended::Disk;
        }
        if ended == Ended::Exited && matches!(order.files, Files::InPlace) {
            // Of a file at its limit the command itself may have made nothing.
            let bytes = bytes_below(&order.folder) + bytes_below(&order.scratch);
            self.disk_full |= bytes.saturating_sub(self.disk_before) >= mega(order.limits.disk_mb);
        }
        let kept = self.output.join().unwrap_or_default();
        let collected = order.collect.as_ref().and_then(|name| {
            let path = order.folder.join(name);
            let is_small = fs::metadata(&path).is_ok_and(|m| m.len() <= LARGEST_COLLECTED);
            let bytes = is_small.then(|| fs::read(&path).ok()).flatten()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        Outcome {
            refused: None,
            ended,
            exit_code,
            signal,
            seconds,
            cpu_seconds,
            peak_memory_mb: self.peak.max(largest) as f64 / f64::from(1 << 20),
            left_behind,
            output: kept.text(),
            output_bytes: kept.bytes(),
            disk_full: self.disk_full,
            collected,
            notes: Vec::new(),
        }
    }

    /// Takes leave of all children that have ended; orphans are among them.
    fn collect_ended(&mut self) {
        while let Ok(status) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            match status {
                WaitStatus::StillAlive => return,
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) if pid == self.child => {
                    self.status = Some(status);
                }
                _ => {}
            }
        }
    }

    /// The limit that is exceeded.
    fn beyond(&mut self, order: &Order) -> Option<Ended> {
        let limits = &order.limits;
        let processes = processes::below();
        let Usage {
            processes: count,
            cpu_seconds,
            memory,
        } = processes::usage(&processes);
        self.look_at_disk(order);
        self.peak = self.peak.max(memory);
        if count > limits.processes {
            return Some(Ended::Processes);
        }
        let reaped = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
            (usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds()) as f64
                / 1e3
        });
        if cpu_seconds + reaped > limits.cpu_seconds {
            return Some(Ended::Cpu);
        }
        let most = mega(limits.memory_mb);
        if memory > most {
            // Forked processes share what they have not changed: only this counts it once.
            let exact = processes::exact_memory(&processes).unwrap_or(memory);
            if exact > most {
                return Some(Ended::Memory);
            }
        }
        None
    }

    fn look_at_disk(&mut self, order: &Order) {
        if order.files == Files::Layered {
            let full = |path: &Path| statvfs(path).is_ok_and(|fs| fs.blocks_available() == 0);
            self.disk_full |= full(&order.folder);
        }
    }

    /// Ends every process below this one, and waits until there is none.
    fn end_all(&mut self) {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if self.alone {
                let _ = kill(Pid::from_raw(-1), Signal::SIGKILL); // all of the namespace but this
            } else {
                let there = processes::all_below();
                // Stopped first, lest one forks while another is ended.
                there
                    .iter()
                    .for_each(|process| process.send(Signal::SIGSTOP));
                there
                    .iter()
                    .for_each(|process| process.send(Signal::SIGKILL));
            }
            self.collect_ended();
            if processes::all_below().is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How many processes the system has ended for want of memory since it was started.
fn kernel_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Bytes on the disk of all files of a folder.
fn bytes_below(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.blocks() * 512)
        .sum()
}
