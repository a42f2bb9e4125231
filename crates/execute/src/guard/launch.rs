//! Last step before a command: a process that applies the command's limits to itself, and then becomes the command.
//!
//! Everything that the command starts inherits limits, priority and system call filters. Its guard has none of them, so that a command that
//! exhausts them does not stop the guard.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::calls::{FilterScope, Filters};
use super::enclose::View;
use super::order::{Files, RunOrder};
use super::priority;
use super::processes::SUBCOMMAND;
use super::usage::SystemFiles;

/// Largest and smallest limit on the open files of each process.
const OPEN_FILES: (u64, u64) = (4096, 256);

/// Maximum number of queued signals with data, and of timers, of all processes of a run: a user's number of these is limited.
const SIGNALS: u64 = 256;

/// Largest memory that a process locks, in bytes: nobody counts the system's files that it locks.
const LOCKED: u64 = 64 << 10;

/// Start of a command, with its limits, priority and filters.
#[derive(Serialize, Deserialize)]
pub(super) struct Launch {
    /// Command for `sh -c`.
    command: String,
    /// Working folder of the command. The launch itself does not work there: the loader could take libraries of this program from it, if
    /// `LD_LIBRARY_PATH` has an empty part.
    folder: PathBuf,
    /// Limit on processor time, in seconds.
    cpu_seconds: u64,
    /// Limit on a file's size, in bytes.
    file_bytes: Option<u64>,
    /// Limit on the open files of each process: a run's processes together must leave enough of the system's files to others.
    open_files: Option<u64>,
    /// Limit on the user's processes and threads.
    tasks: Option<u64>,
    niceness: i32,
    /// Processes that system call filters protect; `None` without filters.
    guarded: Option<FilterScope>,
}

impl Launch {
    /// Describes the start of an order's command. `alone` means that no other process of the user counts together with the command's.
    pub(super) fn new(order: &RunOrder, alone: bool, guarded: Option<FilterScope>) -> Self {
        let has_files = matches!(order.files, Files::Open { .. });
        Self {
            command: order.command.clone(),
            folder: order.folder.clone(),
            cpu_seconds: order.limits.cpu_seconds.ceil() as u64 + 2,
            file_bytes: (!has_files).then(|| order.limits.disk_mb.saturating_mul(1 << 20)),
            open_files: (!has_files).then(|| open_files(order.limits.tasks() as u64)),
            tasks: alone.then(|| order.limits.tasks() as u64),
            niceness: order.niceness,
            guarded,
        }
    }

    /// Starts a process of this program that becomes the command in this view and in its control group. `command` has its
    /// environment and output set.
    ///
    /// # Errors
    /// The step that failed, in words.
    pub(super) fn start(&self, mut command: Command, view: &View) -> Result<Child, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot start the command: {error}");
        let (mut own, its) = UnixStream::pair().map_err(|e| failed(&e))?;
        command.stdin(OwnedFd::from(its)).current_dir("/").process_group(0);
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        drop(command); // it holds the other end
        let mut begin = || -> io::Result<String> {
            // If memory runs out, the system should kill the command and not its guard. Some systems do not allow this choice.
            let choice = format!("{}/oom_score_adj", child.id());
            let _ = fs::write(view.processes().join(choice), "1000");
            if let Some(group) = &view.group {
                let in_group = |e: io::Error| io::Error::other(format!("its control group: {e}"));
                group.take(child.id()).map_err(in_group)?;
            }
            own.write_all(&serde_json::to_vec(self)?)?;
            own.shutdown(Shutdown::Write)?;
            let mut refusal = String::new();
            own.read_to_string(&mut refusal)?; // closed by the exec
            Ok(refusal)
        };
        let refusal = match begin() {
            Ok(refusal) if refusal.is_empty() => return Ok(child),
            Ok(refusal) => refusal,
            Err(error) => error.to_string(),
        };
        let _ = (child.kill(), child.wait());
        Err(failed(&refusal))
    }

    /// Applies the limits of this launch, and becomes its command; returns only if a step fails, with the reason.
    fn become_command(&self) -> String {
        let step = |step: &'static str| move |error: Errno| format!("{step}: {error}");
        let limited = || -> Result<(), String> {
            prctl::set_no_new_privs().map_err(step("privileges"))?;
            let limit = |resource, soft, hard| {
                setrlimit(resource, soft, hard).map_err(step("a limit of the system"))
            };
            // No file fits into this limit, and it is the only value for which the kernel does not start a program to receive the dump,
            // core(5). A system that disallows dumps but starts programs for them was rejected before.
            let (_, most) =
                getrlimit(Resource::RLIMIT_CORE).map_err(step("the limit of core dumps"))?;
            if most > 0 {
                limit(Resource::RLIMIT_CORE, 1, 1)?;
            }
            let (soft, hard) =
                getrlimit(Resource::RLIMIT_MEMLOCK).map_err(step("a limit of the system"))?;
            limit(Resource::RLIMIT_MEMLOCK, soft.min(LOCKED), hard.min(LOCKED))?;
            // With a real-time priority, or a higher one than the guard's, the command would run instead of its guard.
            for resource in [Resource::RLIMIT_RTPRIO, Resource::RLIMIT_NICE] {
                limit(resource, 0, 0)?;
            }
            limit(Resource::RLIMIT_CPU, self.cpu_seconds, self.cpu_seconds + 2)?;
            if let Some(bytes) = self.file_bytes {
                limit(Resource::RLIMIT_FSIZE, bytes, bytes)?;
            }
            if let Some(most) = self.open_files {
                let (soft, hard) =
                    getrlimit(Resource::RLIMIT_NOFILE).map_err(step("a limit of the system"))?;
                limit(Resource::RLIMIT_NOFILE, soft.min(most), hard.min(most))?;
            }
            if let Some(most) = self.tasks {
                limit(Resource::RLIMIT_NPROC, most, most)?;
                let (soft, hard) = getrlimit(Resource::RLIMIT_SIGPENDING)
                    .map_err(step("a limit of the system"))?;
                limit(Resource::RLIMIT_SIGPENDING, soft.min(SIGNALS), hard.min(SIGNALS))?;
            }
            priority::set(self.niceness).map_err(|e| format!("its priority: {e}"))?;
            match &self.guarded {
                Some(guarded) => Filters::new(guarded)?.set().map_err(|e| e.to_string()),
                None => Ok(()),
            }
        };
        match limited() {
            Ok(()) => {
                let mut shell = Command::new("/bin/sh");
                format!(
                    "/bin/sh: {}",
                    shell
                        .args(["-c", &self.command])
                        .current_dir(&self.folder)
                        .stdin(Stdio::null())
                        .exec()
                )
            }
            Err(refusal) => refusal,
        }
    }
}

/// Returns the limit on open files per process for a number of processes: together they may use about a quarter of the system's files.
fn open_files(processes: u64) -> u64 {
    let (most, least) = OPEN_FILES;
    let all = SystemFiles::now().map_or(u64::MAX, |files| files.most);
    (all / 4 / processes.max(1)).clamp(least, most)
}

/// Becomes the command that standard input describes; returns only if that fails.
pub(super) fn serve() -> io::Result<()> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let mut guard = UnixStream::from(stdin);
    let mut order = Vec::new();
    guard.read_to_end(&mut order)?;
    let refusal = serde_json::from_slice::<Launch>(&order)?.become_command();
    guard.write_all(refusal.as_bytes())
}

/// Returns the command that starts this stage.
pub(super) fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([SUBCOMMAND, "command"]);
    command
}
