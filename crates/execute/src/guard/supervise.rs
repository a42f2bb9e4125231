//! Supervises a command, from its start to the end of every process it started.

use std::fs;
use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::{Statvfs, statvfs};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};

use super::calls::FilterScope;
use super::disk::DiskWatch;
use super::enclose::{HiddenFile, View};
use super::launch::{self, Launch};
use super::order::{Files, RunEnd, RunOrder, RunOutcome};
use super::output::HeadAndTail;
use super::report::{Channel, Listener, Report};
use super::run_files;
use super::secrets::is_secret;
use super::usage::{self, Mappings, SystemFiles, SystemMemory};
use super::watch::{EndingWatch, FileWatch, HeldResources, LookChecks, LookWatch, MemoryWatch};
use super::{enclose, processes};

/// Longest interval between checks of memory, processor time and processes.
const WATCH: Duration = Duration::from_millis(20);
/// Longest interval between two turns of the guard that does not count as a pause.
const LONG_TURN: Duration = Duration::from_secs(1);
/// Time limit for processes to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of bytes by which the kernel's own memory may grow during a run beyond the run's limit, to allow for other programs; applied once
/// for the run and once for each concurrent run.
const KERNEL_ROOM: u64 = 256 << 20;
/// Runs an order to its end. `alone` means that this is the first process of its own namespace; `abandoned` becomes true when nobody waits
/// for the outcome any more.
pub(super) fn run(order: &RunOrder, view: View, alone: bool, abandoned: &AtomicBool) -> RunOutcome {
    if let Err(output) = run_files::put(order) {
        return RunOutcome { ended: RunEnd::Unwritten, output, ..RunOutcome::default() };
    }
    match start(order, view, alone) {
        Ok(started) => started.watch(order, abandoned),
        Err(reason) => RunOutcome::from_refusal(reason),
    }
}

struct StartedRun {
    child: Pid,
    alone: bool,
    output: JoinHandle<HeadAndTail>,
    report: Option<JoinHandle<Report>>,
    begin: Instant,
    /// Number of processes that the system had killed for lack of memory before the start.
    kernel_kills: u64,
    kernel: MemoryWatch,
    unlisted: MemoryWatch,
    /// Number of sockets in the guard's network before the start; `None` if the system does not report it.
    sockets: Option<u64>,
    anonymous: MemoryWatch,
    files: FileWatch,
    ending: EndingWatch,
    looks: LookWatch,
    /// Watch on the disk, if no file system of limited size enforces the limit.
    disk: Option<DiskWatch>,
    /// Exit status of the command itself.
    status: Option<WaitStatus>,
    peak: u64,
    disk_full: bool,
    view: View,
    mappings: Mappings,
}

fn start(order: &RunOrder, view: View, alone: bool) -> Result<StartedRun, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    let disk = (order.files == Files::InPlace).then(|| DiskWatch::new(order));
    let disk = disk.transpose().map_err(failed("read the copy"))?;
    if !alone {
        prctl::set_child_subreaper(true).map_err(|e| format!("cannot adopt orphans: {e}"))?;
    }
    let (reader, writer): (PipeReader, _) = io::pipe().map_err(failed("make a pipe"))?;
    // A command that could inspect the guard could write its own outcome.
    prctl::set_dumpable(false).map_err(|e| format!("cannot close off the guard: {e}"))?;
    let mut command = launch::command();
    command
        .stderr(writer.try_clone().map_err(failed("make a pipe"))?)
        .stdout(writer)
        .envs(order.environment.iter().map(|(name, value)| (name, value)));
    for (name, value) in std::env::vars_os() {
        // These variables may contain a server's key.
        let is_own = name.to_string_lossy().starts_with("REPOFORMER_");
        let is_for_setup = matches!(order.files, Files::Open { .. });
        if is_own
            || name == "FORCE_COLOR"
            || (!is_for_setup && is_secret(&name.to_string_lossy(), &value.to_string_lossy()))
        {
            command.env_remove(name);
        }
    }
    let channel = if order.reports {
        Some(Channel::open(&order.scratch).map_err(failed("make a channel"))?)
    } else {
        None
    };
    if let Some(channel) = &channel {
        if alone {
            // A command with several steps must not replace the reporter.
            enclose::keep(&channel.folder).map_err(|e| format!("cannot keep the reporter: {e}"))?;
        }
        let ordered = order.environment.iter().rev().find(|(name, _)| name == "PYTHONPATH");
        let own = std::env::var("PYTHONPATH").ok();
        let paths = ordered.map(|(_, value)| value.as_str()).or(own.as_deref());
        command.envs(channel.variables(paths).map_err(failed("make a channel"))?);
    }
    let kernel_kills = kernel_kills();
    let system = SystemMemory::now().map_err(failed("read the system's memory"))?;
    let at_hand = usage::at_hand().map_err(failed("read the system's memory"))?;
    let sockets = usage::sockets().ok();
    // Start these threads first: a command may leave no room for threads of its guard.
    let thread = || thread::Builder::new();
    let output =
        thread().spawn(move || HeadAndTail::read(reader)).map_err(failed("start a thread"))?;
    let (listener, commands) = channel.map(Channel::apart).unzip();
    let listen = |listener: Listener| thread().spawn(move || listener.listen());
    let report = listener.map(listen).transpose().map_err(failed("start a thread"))?;
    let checks =
        look_checks(order, alone, disk.as_ref().map_or(Duration::ZERO, |disk| disk.first_sum));
    let looks = LookWatch::start(checks).map_err(failed("start a thread"))?;
    let guarded = order
        .filtered
        .then(|| FilterScope::this(alone, view.group.is_some(), order.files != Files::InPlace));
    let child = Launch::new(order, alone, guarded).start(command, &view)?;
    drop(commands);
    let begin = Instant::now();
    Ok(StartedRun {
        child: Pid::from_raw(child.id().cast_signed()),
        alone,
        output,
        report,
        begin,
        kernel_kills,
        kernel: MemoryWatch::new(system.kernel),
        unlisted: MemoryWatch::new(system.unlisted.saturating_sub(at_hand)),
        sockets,
        anonymous: MemoryWatch::new(system.anonymous),
        files: FileWatch::new(),
        ending: EndingWatch::default(),
        looks,
        disk,
        status: None,
        peak: 0,
        disk_full: false,
        view,
        mappings: Mappings::default(),
    })
}

/// Converts megabytes to bytes.
fn mega(megabytes: u64) -> u64 {
    megabytes.saturating_mul(1 << 20)
}

impl StartedRun {
    fn watch(mut self, order: &RunOrder, abandoned: &AtomicBool) -> RunOutcome {
        let mut watched = self.begin;
        let (mut turned, mut paused) = (self.begin, Duration::ZERO);
        let mut ended = loop {
            // Between two turns, the machine may have been paused, or have had no processor for the guard.
            let turn = Instant::now();
            paused += (turn - turned).saturating_sub(LONG_TURN);
            turned = turn;
            self.collect_ended();
            if self.status.is_some() {
                break RunEnd::Exited;
            }
            let elapsed = self.begin.elapsed();
            if abandoned.load(Ordering::Relaxed) {
                break RunEnd::Abandoned;
            }
            if elapsed.as_secs_f64() >= order.limits.wall_seconds {
                break RunEnd::Wall;
            }
            // Short commands are hardly delayed, and a growing number of processes is noticed soon.
            let pause = (elapsed / 20).clamp(Duration::from_millis(1), WATCH);
            if watched.elapsed() >= pause {
                watched = Instant::now();
                if let Some(limit) = self.look(order) {
                    break limit;
                }
            }
            thread::sleep(pause);
        };
        let seconds = self.begin.elapsed().as_secs_f64();
        let mut left_behind = 0;
        if ended == RunEnd::Exited {
            match self.processes() {
                Ok(processes) => {
                    left_behind = processes.iter().filter(|process| process.is_alive()).count();
                }
                Err(_) => ended = RunEnd::Unseen,
            }
        }
        let is_paused =
            ended == RunEnd::Wall && paused.as_secs_f64() * 10.0 > order.limits.wall_seconds;
        let waits = ended == RunEnd::Wall
            && self.processes().is_ok_and(|processes| {
                usage::longest_wait(&processes).as_secs_f64() * 2.0 > order.limits.wall_seconds
            });
        if ended == RunEnd::Exited && order.group.is_some() {
            // The kernel may have enforced a limit since the last check.
            ended = self.beyond_counts(order).unwrap_or(ended);
        }
        if left_behind > order.limits.processes {
            // The run started all of them since the last check, and may have ended because the system refused further ones.
            (ended, left_behind) = (RunEnd::Processes, 0);
        }
        self.look_at_disk(order);
        self.end_all();
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
        let counted = order.group.as_ref().and_then(|group| group.counts(0).ok());
        let cpu_seconds =
            counted.map_or_else(reaped_seconds, |counts| counts.nanoseconds as f64 / 1e9);
        // A run that got half a processor did not lack one, however many of its processes were waiting.
        let is_starved = is_paused || waits && cpu_seconds * 2.0 < seconds;
        // The largest process may have started and ended between two checks.
        let largest = usage.map_or(0, |usage| usage.max_rss() as u64 * 1024);
        let (exit_code, signal) = match self.status {
            Some(WaitStatus::Exited(_, code)) => (Some(code), None),
            Some(WaitStatus::Signaled(_, signal, _)) => (None, Some(signal as i32)),
            _ => (None, None),
        };
        let killed = signal == Some(Signal::SIGKILL as i32) || exit_code == Some(128 + 9);
        if ended == RunEnd::Exited {
            ended = match signal {
                _ if killed && kernel_kills() > self.kernel_kills => RunEnd::SystemMemory,
                Some(signal) if signal == Signal::SIGXCPU as i32 => RunEnd::Cpu,
                Some(signal) if signal == Signal::SIGXFSZ as i32 => RunEnd::Disk,
                _ => ended,
            };
        }
        if ended == RunEnd::Exited {
            // The command may have ignored that a file reached the size limit.
            self.disk_full |= self.disk.as_ref().is_some_and(DiskWatch::is_full);
        }
        let end = Instant::now() + PATIENCE;
        let kept = last_of(self.output, end);
        let report = self.report.map(|report| last_of(report, end));
        let collected =
            order.collect.as_ref().and_then(|name| run_files::collect(&order.folder, name));
        RunOutcome {
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
            is_starved,
            collected,
            report,
            ..RunOutcome::default()
        }
    }

    /// Collects the status of all children that have ended, including orphans. Returns whether no child is left.
    fn collect_ended(&mut self) -> bool {
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return false,
                Ok(status @ (WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)))
                    if pid == self.child =>
                {
                    self.status = Some(status)
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Looks whether the run has exceeded a limit.
    fn look(&mut self, order: &RunOrder) -> Option<RunEnd> {
        let looks = self.looks.clone();
        looks.look(|| self.beyond(order))
    }

    /// Returns the limit that the run has exceeded, if any.
    fn beyond(&mut self, order: &RunOrder) -> Option<RunEnd> {
        let limits = &order.limits;
        if self.alone && processes::many(limits.tasks()) {
            // Including ended ones, there are so many that reading each would take longer than ending all.
            return Some(RunEnd::Processes);
        }
        if self.alone && usage::many_locks() {
            return Some(RunEnd::Memory);
        }
        self.look_at_disk(order);
        if self.view.hidden.iter().any(HiddenFile::is_replaced) {
            return Some(RunEnd::Replaced);
        }
        let Ok(processes) = self.processes() else { return Some(RunEnd::Unseen) };
        // As in a control group, ended processes count until they are waited for.
        if processes.len() > limits.processes {
            return Some(RunEnd::Processes);
        }
        match self.disk.as_mut().map_or(Ok(None), |disk| disk.look(&processes)) {
            Ok(None) => {}
            Ok(limit) => return limit,
            Err(_) => return Some(RunEnd::Unseen),
        }
        let now = Instant::now();
        self.ending.note(&processes, now);
        let ending = self.ending.memory(now);
        match self.files.look(&processes, order.beside, ending.is_some()) {
            Ok(None) => {}
            Ok(limit) => return limit,
            Err(_) => return Some(RunEnd::Unseen),
        }
        let Ok(system) = SystemMemory::now() else { return Some(RunEnd::Unseen) };
        let room = KERNEL_ROOM.saturating_mul(order.beside as u64 + 1);
        // A control group already counts the texts of `/proc`.
        let lists = || usage::of_lists(&processes, order.group.is_none());
        if self.kernel.is_beyond(system.kernel, mega(limits.memory_mb), room, lists) {
            return Some(RunEnd::SystemMemory);
        }
        match self.is_beyond_in_sockets(system, mega(limits.memory_mb), room) {
            Ok(false) => {}
            Ok(true) => return Some(RunEnd::SystemMemory),
            Err(_) => return Some(RunEnd::Unseen),
        }
        if order.group.is_some() {
            return self.beyond_counts(order);
        }
        let Ok(usage) = usage::usage(&processes, self.alone && !order.network) else {
            return Some(RunEnd::Unseen);
        };
        if usage.cpu_seconds + reaped_seconds() > limits.cpu_seconds {
            return Some(RunEnd::Cpu);
        }
        self.ending.note_memory(&usage.by_process);
        let (most, memory) = (mega(limits.memory_mb), usage.memory);
        let unseen = system.anonymous.saturating_sub(memory.anonymous);
        if let Some(ending) = ending {
            // Processes that end may hold memory that the guard never saw, and so may other runs.
            let most_unseen = most.saturating_mul(order.beside as u64 + 1);
            if memory.own.saturating_add(ending) > most
                || self.anonymous.growth(unseen) > most_unseen
            {
                return Some(RunEnd::Unseen);
            }
        }
        let signs = || if usage::look_into_memory(&processes) { u64::MAX } else { 0 };
        if self.anonymous.is_beyond(unseen, most, u64::MAX, signs) {
            return Some(RunEnd::SystemMemory);
        }
        let Ok(hidden) = self.mappings.unseen_memory(&processes, memory, most) else {
            return Some(RunEnd::Unseen);
        };
        self.peak = self.peak.max(memory.with(hidden));
        if memory.with(hidden).saturating_add(memory.files) > most {
            // Forked processes share unchanged memory and pipes; only this calculation counts them once.
            let Ok(files) = usage::of_files(&processes) else { return Some(RunEnd::Unseen) };
            let exact = memory.once(&processes).with(hidden).saturating_add(files);
            return (exact > most).then_some(RunEnd::Memory);
        }
        None
    }

    /// Returns whether memory that appears in no list grew beyond the limit while the run has sockets.
    fn is_beyond_in_sockets(
        &mut self,
        system: SystemMemory,
        most: u64,
        room: u64,
    ) -> io::Result<bool> {
        let most = most.saturating_add(room);
        let is_large = self.unlisted.growth(system.unlisted) > most;
        // If the sockets cannot be counted, assume that there are some.
        let has_sockets =
            || self.sockets.zip(usage::sockets().ok()).is_none_or(|(old, now)| now > old);
        let unlisted = if is_large && has_sockets() {
            system.unlisted.saturating_sub(usage::at_hand()?)
        } else {
            0
        };
        Ok(self.unlisted.is_beyond(unlisted, most, 0, || 0))
    }

    /// Returns the limit that the run has exceeded according to the kernel's counts, if any.
    fn beyond_counts(&mut self, order: &RunOrder) -> Option<RunEnd> {
        let group = order.group.as_ref()?;
        let used = |path: &PathBuf| {
            let fs = statvfs(path).ok()?;
            Some((fs.blocks() - fs.blocks_free()) as u64 * fs.fragment_size() as u64)
        };
        let in_files = self.view.in_memory.iter().filter_map(used).sum();
        let Ok(mut counts) = group.counts(in_files) else { return Some(RunEnd::Unseen) };
        if self.alone && !order.network {
            let Ok(unaccepted) = usage::of_unaccepted() else { return Some(RunEnd::Unseen) };
            counts.memory += unaccepted;
            counts.apart += unaccepted;
        }
        let (limits, most) = (&order.limits, mega(order.limits.memory_mb));
        if counts.refused > 0 {
            let is_own = counts.is_crowded;
            return Some(if is_own { RunEnd::Processes } else { RunEnd::SystemProcesses });
        }
        if counts.nanoseconds as f64 / 1e9 > limits.cpu_seconds {
            return Some(RunEnd::Cpu);
        }
        let bound = limits.most_memory(!self.view.in_memory.is_empty());
        let left = (most + in_files).saturating_sub(counts.apart);
        let is_over = counts.memory > most
            && self.view.group.as_ref().is_none_or(|group| group.holds_more(left, bound));
        if counts.killed > 0 || is_over {
            self.peak = self.peak.max(counts.memory.min(bound));
            let is_own = is_over || counts.is_full;
            return Some(if is_own { RunEnd::Memory } else { RunEnd::SystemMemory });
        }
        self.peak = self.peak.max(counts.memory.min(most));
        None
    }

    /// Returns the processes of the run, including ended ones that were not waited for.
    fn processes(&self) -> io::Result<Vec<processes::Process>> {
        run_processes(self.alone)
    }

    fn look_at_disk(&mut self, order: &RunOrder) {
        if order.files == Files::Layered {
            let full = |path: &Path| {
                // A file system without a bound on its files has no number of them.
                let is_full = |fs: &Statvfs| fs.files() > 0 && fs.files_available() == 0;
                statvfs(path).is_ok_and(|fs| fs.blocks_available() == 0 || is_full(&fs))
            };
            self.disk_full |= full(&order.folder);
        }
    }

    /// Kills every process of the run, and waits until none is left.
    fn end_all(&mut self) {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let is_empty = kill_all(self.alone);
            if self.collect_ended() || is_empty {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the processes of a run, including ended ones that were not waited for. `alone` as for [`run`].
fn run_processes(alone: bool) -> io::Result<Vec<processes::Process>> {
    if alone { processes::all_others() } else { processes::below() }
}

/// Kills every process of a run. `alone` as for [`run`]. Returns whether there was none.
fn kill_all(alone: bool) -> bool {
    if alone {
        // Kill everything in the namespace except this process at once, including processes that are just being forked.
        return kill(Pid::from_raw(-1), Signal::SIGKILL) == Err(Errno::ESRCH);
    }
    let below = processes::all_below().unwrap_or_default();
    // Stop all processes first, so that none forks while another is killed.
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        below.iter().for_each(|process| process.send(signal));
    }
    below.is_empty()
}

/// Most processor time of a look, and how often a look may add up the files of the disk in it.
const LOOK_TIME: Duration = Duration::from_secs(1);
const LOOK_SUMS: u32 = 8;

/// Returns what a thread needs to watch the looks of this one. `sum` is the time for adding up the files of the disk.
fn look_checks(order: &RunOrder, alone: bool, sum: Duration) -> LookChecks {
    let (looker, most) = (gettid(), mega(order.limits.memory_mb));
    let ticks = usage::ticks_per_second();
    let time = move || {
        let ticks_used = processes::thread_ticks(looker).unwrap_or(0);
        Duration::from_millis(ticks_used.saturating_mul(1000) / ticks)
    };
    // The kernel enforces the memory limit of a control group.
    let memory = if order.group.is_some() { u64::MAX } else { most.saturating_add(KERNEL_ROOM) };
    LookChecks {
        is_waiting: Box::new(move || processes::state(looker) == Some('D')),
        time: Box::new(time),
        most_time: LOOK_TIME + sum * LOOK_SUMS,
        held: Box::new(move || {
            let files = SystemFiles::now()?.open;
            Ok(HeldResources { memory: usage::visible_memory(&run_processes(alone)?)?, files })
        }),
        most_growth: HeldResources {
            memory,
            files: SystemFiles::now().map_or(u64::MAX, |files| files.share(order.beside)),
        },
        end: Box::new(move || {
            kill_all(alone);
        }),
    }
}

/// Waits for the end of a stream that no process holds any more. Sockets may still hold it: sockets that were sent through each other and
/// never received are only freed when another socket is closed. A stream that stays open nevertheless counts as empty.
fn last_of<T: Default>(reader: JoinHandle<T>, end: Instant) -> T {
    let mut pause = Duration::from_micros(100);
    while !reader.is_finished() && Instant::now() < end {
        thread::sleep(pause);
        pause = (pause * 2).min(WATCH);
        drop(std::os::unix::net::UnixStream::pair());
    }
    if reader.is_finished() { reader.join().unwrap_or_default() } else { T::default() }
}

/// Returns the processor seconds of all children that were waited for.
fn reaped_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    })
}

/// Returns the number of processes that the system has killed for lack of memory since it started.
fn kernel_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
