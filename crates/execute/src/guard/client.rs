//! Starts guards and sends them orders.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use repoformer_store::error::{Error, Result};
use repoformer_store::program::program;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde::{Deserialize, Serialize};

use super::group::{Bounds, Group};
use super::order::{Files, HiddenPlace, Limits, RunEnd, RunOrder, RunOutcome};
use super::processes::SUBCOMMAND;
use super::{priority, processes, secrets, sockets};

/// Entity that counts a run's memory, processes and processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// The kernel, in a separate control group for each run.
    Kernel,
    /// The guard, which adds up the values in `/proc`.
    #[default]
    Guard,
}

/// Isolation of commands, as far as the system allowed it in a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Enclosure {
    /// Whether processes and the file system are isolated.
    pub enclosed: bool,
    /// Whether writes to the copy go to a layer that is discarded with the run; otherwise the copy must be restored.
    pub layered: bool,
    /// Whether the network is isolated.
    pub network_off: bool,
    /// Whether system calls are filtered.
    pub filtered: bool,
    /// Counter of memory, processes and processor time.
    pub counter: Counter,
    /// Parts that are not isolated, with reasons.
    pub open: Vec<Message>,
    /// Other harmless differences from the system outside.
    pub notes: Vec<String>,
}

impl Enclosure {
    /// Describes the isolation for a manifest and a message.
    pub fn describe(&self) -> String {
        let state = |closed: bool| if closed { "closed off" } else { "open" };
        let counter = match self.counter {
            Counter::Kernel => "counted by the kernel",
            Counter::Guard => "watched",
        };
        format!(
            "processes and files {}, network {}, limits {counter}",
            state(self.enclosed),
            state(self.network_off)
        )
    }
}

/// Launcher of guards.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Program whose hidden subcommand is the guard.
    program: OsString,
    /// Isolation of the guard's commands.
    pub enclosure: Enclosure,
    /// Whether commands may use the network.
    pub network: bool,
    /// Control group of all processes.
    group: Group,
}

impl Guard {
    /// Determines how far this system can isolate commands; they are not isolated at all if `enclosed` is false. `network` tells whether
    /// commands may use the network, and `work` is a folder for the trial.
    ///
    /// # Errors
    /// No guard can be started.
    pub fn try_out(program: OsString, work: &Path, enclosed: bool, network: bool) -> Result<Self> {
        let group = Group::make(&program);
        let with = |group: &Group, enclosed, layered, network_off, filtered| Self {
            program: program.clone(),
            group: group.clone(),
            enclosure: Enclosure {
                counter: if group.exists() { Counter::Kernel } else { Counter::Guard },
                enclosed,
                layered,
                network_off,
                filtered,
                ..Enclosure::default()
            },
            network,
        };
        let mut ways = Vec::new();
        // Some systems allow creating a group but not entering it.
        let groups = if group.exists() { vec![group, Group::default()] } else { vec![group] };
        for group in &groups {
            if enclosed {
                let choices = if network { &[false][..] } else { &[true, false] };
                for &off in choices {
                    let layered = [true, false];
                    ways.extend(layered.map(|layered| with(group, true, layered, off, true)));
                }
            }
        }
        for filtered in if enclosed { &[true, false][..] } else { &[false] } {
            ways.extend(groups.iter().map(|group| with(group, false, false, false, *filtered)));
        }
        drop(groups);
        let mut refusals: Vec<String> = Vec::new();
        for mut guard in ways {
            let outcome = guard.run(trial(work))?;
            match outcome.refused {
                Some(refusal) => refusals.push(refusal),
                None if outcome.exit_code == Some(0) => {
                    guard.enclosure.open = guard.what_is_open(&refusals, enclosed, network);
                    guard.enclosure.open.extend(outcome.open.into_iter().map(Message::from));
                    guard.enclosure.notes = outcome.notes;
                    if !guard.enclosure.layered {
                        let note =
                            "the disk space that tests use is watched, not limited by the system";
                        guard.enclosure.notes.push(note.into());
                    }
                    return Ok(guard);
                }
                None => refusals.push(format!("a trial ended with: {}", outcome.output.trim())),
            }
        }
        refusals.dedup();
        let reason = format!("no command can be run: {}", refusals.join("; "));
        let hint = message![
            "this needs Linux with /proc and /bin/sh, and a writable ",
            UserChoice::CacheFolder
        ];
        Err(Error::execution(reason, hint))
    }

    fn what_is_open(&self, refusals: &[String], asked: bool, network: bool) -> Vec<Message> {
        let why = match refusals.first() {
            Some(refusal) => format!(" ({refusal})").into(),
            None if !asked => message![" (", UserChoice::IsolationOff, ")"],
            None => Message::default(),
        };
        let mut open = Vec::new();
        if !self.enclosure.enclosed {
            open.push(message!["tests can write wherever you can, and see your processes", &why]);
        }
        if !self.enclosure.enclosed && !self.group.exists() {
            open.push(message![
                "tests can start any number of processes until they are killed",
                &why
            ]);
        }
        if !self.enclosure.filtered {
            open.push(message!["tests can make any system call", &why]);
        }
        if !self.enclosure.network_off && !network {
            open.push(message!["tests can use the network", &why]);
        }
        open
    }

    /// Runs an order in isolation (including from the network, if that is possible); returns when all its processes have ended.
    ///
    /// # Errors
    /// The guard cannot be started, or communication with it fails.
    pub fn run(&self, mut order: RunOrder) -> Result<RunOutcome> {
        order.niceness = priority::of_commands();
        let set_up = matches!(order.files, Files::Open { .. });
        if !set_up {
            order.files = if self.enclosure.layered { Files::Layered } else { Files::InPlace };
            order.network = self.network || !self.enclosure.network_off;
            order.filtered = self.enclosure.filtered;
        }
        if !set_up {
            order.homes = secrets::homes();
        }
        if self.enclosure.enclosed && !order.network && !set_up {
            // Hide sockets in the file system, which no namespace isolates.
            let hidden = |path| HiddenPlace { path, kept: Vec::new() };
            order.hidden.extend(sockets::reachable().into_iter().map(hidden));
        }
        let stage = match (self.enclosure.enclosed, order.network) {
            (false, _) => "open",
            (true, false) => "enclosed",
            (true, true) => "enclosed-with-network",
        };
        // An isolated run writes to memory, a setup to the disk.
        let layers = self.enclosure.enclosed && !set_up;
        let bounds =
            Bounds { tasks: order.limits.tasks(), memory: order.limits.most_memory(layers) };
        let admitted = match self.group.admit(bounds) {
            Ok(admitted) => admitted,
            Err(error) => return Ok(RunOutcome::from_refusal(format!("a control group: {error}"))),
        };
        order.group = admitted.own();
        if stage == "open" {
            // If the guard is killed, this program becomes the parent of its processes and ends them. Old kernels lack the call.
            let _ = prctl::set_child_subreaper(true);
        }
        let outcome = self.serve(stage, &order);
        drop(admitted);
        let is_told = outcome.as_ref().is_ok_and(|outcome| outcome.ended != RunEnd::Lost);
        if stage == "open" && !is_told {
            processes::end_orphans();
        }
        outcome.map_err(|error| {
            let reason = format!("cannot run a guard ({}): {error}", self.program.display());
            Error::execution(
                reason,
                "check that the program still exists and that the system can start more processes",
            )
        })
    }

    fn serve(&self, stage: &str, order: &RunOrder) -> io::Result<RunOutcome> {
        // The guard runs next to the command and needs no keys.
        let mut command = program(&self.program);
        command
            .args([SUBCOMMAND, stage])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = processes::start(&mut command)?;
        let stdin = child.stdin.take();
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        let mut answer = Vec::new();
        let number = Pid::from_raw(child.id().cast_signed());
        if let (Some(stdin), Some(stdout)) = (&stdin, &mut child.stdout) {
            let mut input: &std::process::ChildStdin = stdin;
            // A guard that refuses to start does not read its order.
            let _ = input.write_all(&line);
            let (answered, waits) = mpsc::channel::<()>();
            let until = Instant::now()
                + Duration::from_secs_f64(order.limits.wall_seconds.min(1e9))
                + GRACE;
            thread::scope(|scope| {
                scope.spawn(move || end_if_stuck(number, stage != "open", until, &waits));
                let read = stdout.read_to_end(&mut answer);
                drop(answered);
                read
            })?;
        }
        let status = processes::wait(&mut child)?;
        drop(stdin); // kept until now: closing it tells the guard that the program is gone
        Ok(serde_json::from_slice(&answer).unwrap_or_else(|_| RunOutcome {
            notes: vec![format!("the guard ended with {status}")],
            ..RunOutcome::default()
        }))
    }
}

/// Time that a guard may take beyond the time limit of its command, to end processes and unmount layers.
const GRACE: Duration = Duration::from_secs(60);

/// Number of successive looks, 200 ms apart, at a guard that waits for the kernel before the guard counts as stuck.
const STUCK: u32 = 25;

/// Kills a guard that is stopped, waits for the kernel for seconds (such as for the list of a process's mappings, which the process can
/// keep locked), or exceeds its time: such a guard enforces no limit. `has_inner` means that the guard starts a second one in its
/// namespaces. Returns once the guard's answer has been read.
fn end_if_stuck(guard: Pid, has_inner: bool, until: Instant, waits: &mpsc::Receiver<()>) {
    let (mut seen, mut waited) = (0, 0);
    while waits.recv_timeout(Duration::from_millis(200)) == Err(mpsc::RecvTimeoutError::Timeout) {
        let inner = if has_inner { processes::children(guard) } else { Vec::new() };
        let guards: Vec<Pid> = inner.into_iter().chain([guard]).collect();
        let is_waiting = guards.iter().any(|pid| processes::state(*pid) == Some('D'));
        waited = if is_waiting { waited + 1 } else { 0 };
        if waited >= STUCK || Instant::now() > until {
            for pid in guards {
                // It may have ended.
                let _ = kill(pid, Signal::SIGKILL);
            }
            continue;
        }
        let mut stopped = guards.into_iter();
        let is_stopped =
            |pid: &Pid| processes::state(*pid).is_some_and(|state| matches!(state, 'T' | 't'));
        let Some(stopped) = stopped.find(is_stopped) else {
            seen = 0;
            continue;
        };
        seen += 1;
        // A single stop may be accidental; let the guard continue.
        let signal = if seen < 3 { Signal::SIGCONT } else { Signal::SIGKILL };
        let _ = kill(stopped, signal);
    }
}

/// Returns an order whose command does nothing.
fn trial(work: &Path) -> RunOrder {
    RunOrder {
        command: "exit 0".into(),
        folder: work.to_owned(),
        limits: Limits {
            wall_seconds: 60.0,
            cpu_seconds: 60.0,
            memory_mb: 1024,
            disk_mb: 16,
            processes: 64,
        },
        scratch: work.join("scratch"),
        ..RunOrder::default()
    }
}
