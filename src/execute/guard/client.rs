//! Giving orders to guards.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::{Ended, Files, Limits, Order, Outcome, SUBCOMMAND, processes};
use crate::error::{Error, Result};

/// The variable that all processes of one run have, by which they are found when their guard is gone.
const MARK: &str = "REPOFORMER_RUN";

/// A value of it that no other run has.
fn new_mark() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

/// How far commands are kept to themselves: what the system allowed when it was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosure {
    /// Whether processes and the file system are closed off.
    pub enclosed: bool,
    /// Whether what is written to the copy goes to a layer that vanishes with the run; the copy must be restored else.
    pub layered: bool,
    /// Whether the network is closed off.
    pub network_off: bool,
    /// What is open, and why, in words.
    pub open: Vec<String>,
}

impl Enclosure {
    fn none() -> Self {
        Self {
            enclosed: false,
            layered: false,
            network_off: false,
            open: Vec::new(),
        }
    }

    /// In words, for a manifest and a message.
    pub fn describe(&self) -> String {
        let state = |closed: bool| if closed { "closed off" } else { "open" };
        format!(
            "processes and files {}, network {}",
            state(self.enclosed),
            state(self.network_off)
        )
    }
}

/// Starts guards.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The program whose hidden subcommand is the guard.
    program: OsString,
    /// What its commands are enclosed by.
    enclosure: Enclosure,
    network: bool,
}

impl Guard {
    /// Tries how far this system lets commands be enclosed; with `enclosed` false not at all. `network` says whether they
    /// are to have it. `work` is a folder to try it in.
    ///
    /// # Errors
    /// No guard can be started at all.
    pub fn try_out(program: OsString, work: &Path, enclosed: bool, network: bool) -> Result<Self> {
        let with = |enclosed, layered, network_off| Self {
            program: program.clone(),
            enclosure: Enclosure {
                enclosed,
                layered,
                network_off,
                open: Vec::new(),
            },
            network,
        };
        let mut ways = Vec::new();
        if enclosed {
            for network_off in if network {
                &[false][..]
            } else {
                &[true, false]
            } {
                ways.extend([
                    with(true, true, *network_off),
                    with(true, false, *network_off),
                ]);
            }
        }
        ways.push(with(false, false, false));
        let mut refusals: Vec<String> = Vec::new();
        for mut guard in ways {
            let outcome = guard.run(&trial(work, network))?;
            match outcome.refused {
                Some(refusal) => refusals.push(refusal),
                None if outcome.exit_code == Some(0) => {
                    guard.enclosure.open = guard.what_is_open(&refusals, enclosed, network);
                    guard.enclosure.open.extend(outcome.notes);
                    return Ok(guard);
                }
                None => refusals.push(format!("a trial ended with: {}", outcome.output.trim())),
            }
        }
        refusals.dedup();
        Err(Error::Execution {
            reason: format!("no command can be run: {}", refusals.join("; ")),
            hint: "it needs Linux with /proc and /bin/sh, and a cache folder that can be written"
                .into(),
        })
    }

    fn what_is_open(&self, refusals: &[String], asked: bool, network: bool) -> Vec<String> {
        let why = match refusals.first() {
            Some(refusal) => format!(" ({refusal})"),
            None if !asked => " (--isolation off)".to_owned(),
            None => String::new(),
        };
        let mut open = Vec::new();
        if !self.enclosure.enclosed {
            open.push(format!(
                "tests can write wherever you can, and see your processes{why}"
            ));
        }
        if !self.enclosure.network_off && !network {
            open.push(format!("tests can use the network{why}"));
        }
        open
    }

    /// How far its commands are kept to themselves.
    pub fn enclosure(&self) -> &Enclosure {
        &self.enclosure
    }

    /// Whether its commands are meant to have the network.
    pub fn has_network(&self) -> bool {
        self.network
    }

    /// What its commands are to see of the file system.
    pub fn files(&self) -> Files {
        match self.enclosure.layered {
            true => Files::Layered,
            false => Files::InPlace,
        }
    }

    /// Runs an order in the enclosure (without network where that is closed off), and returns when nothing of it is left.
    ///
    /// # Errors
    /// The guard cannot be started or spoken to.
    pub fn run(&self, order: &Order) -> Result<Outcome> {
        let mut order = order.clone();
        let mark = new_mark();
        order.environment.push((MARK.into(), mark.clone()));
        let set_up = matches!(order.files, Files::Open { .. });
        if !set_up {
            order.files = self.files();
            order.network = self.network || !self.enclosure.network_off;
        }
        let stage = match (self.enclosure.enclosed, order.network) {
            (false, _) => "open",
            (true, false) => "enclosed",
            (true, true) => "enclosed-with-network",
        };
        let outcome = self.serve(stage, &order);
        let is_told = outcome
            .as_ref()
            .is_ok_and(|outcome| outcome.ended != Ended::Lost);
        if stage == "open" && !is_told {
            processes::end_marked(MARK, &mark);
        }
        outcome.map_err(|error| Error::Execution {
            reason: format!("cannot run a guard ({}): {error}", self.program.display()),
            hint: "is the program still there, and can the system start more processes?".into(),
        })
    }

    fn serve(&self, stage: &str, order: &Order) -> std::io::Result<Outcome> {
        let mut command = Command::new(&self.program);
        command
            .args([SUBCOMMAND, stage])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        #[cfg(unix)]
        {
            // An interrupt at the terminal ends the program; its guards end by that, after what they guard.
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        let mut answer = Vec::new();
        if let (Some(stdin), Some(stdout)) = (&stdin, &mut child.stdout) {
            let mut input: &std::process::ChildStdin = stdin;
            // A guard that refuses has not read its order.
            let _ = input.write_all(&line);
            stdout.read_to_end(&mut answer)?;
        }
        let status = child.wait()?;
        drop(stdin); // held till now: its end would be the program's
        match serde_json::from_slice(&answer) {
            Ok(outcome) => Ok(outcome),
            Err(_) => Ok(Outcome {
                notes: vec![format!("the guard ended with {status}")],
                ..Outcome::lost(None)
            }),
        }
    }
}

/// A command that does nothing.
fn trial(work: &Path, network: bool) -> Order {
    Order {
        command: "exit 0".into(),
        folder: work.to_owned(),
        texts: Vec::new(),
        environment: Vec::new(),
        limits: Limits {
            wall_seconds: 60.0,
            cpu_seconds: 60.0,
            memory_mb: 1024,
            disk_mb: 16,
            processes: 64,
        },
        network,
        files: Files::Layered,
        scratch: PathBuf::from("/tmp"),
        collect: None,
    }
}

impl Default for Enclosure {
    fn default() -> Self {
        Self::none()
    }
}
