//! One command run so that it can harm nothing and leave nothing behind.
//!
//! Every run has a guard: the program starts itself anew ([`serve`], a subcommand that no help shows), hands it an [`Order`]
//! on standard input and gets an [`Outcome`] from its standard output. The guard
//!
//! - **encloses** the command where the system allows it (`enclose`): its own processes, network (none), messages, and
//!   a view of the file system that is read-only but for the copy, the home folder and the temporary folders, whose
//!   changes go to memory of bounded size and vanish with the run. No privilege is needed for it, only user namespaces;
//! - **watches** it (`supervise`): wall and processor time, memory, disk, number of processes, and output of which only
//!   head and tail are kept;
//! - **ends** everything that is left, however it was daemonised, when the command ends or the program that gave the
//!   order does, even by `kill -9`: then the guard's standard input closes.
//!
//! Without namespaces the last two still hold: orphans fall to the guard, which finds them through `/proc`.

mod client;
mod enclose;
mod output;
mod processes;
mod serve;
mod supervise;

pub use client::{Enclosure, Guard};
pub use serve::serve;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Name of the hidden subcommand that [`serve`]s.
pub const SUBCOMMAND: &str = "__guard";

/// What a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds on the clock.
    pub wall_seconds: f64,
    /// Seconds of all its processes on the processors.
    pub cpu_seconds: f64,
    /// Megabytes (2²⁰ bytes) of memory of all its processes together.
    pub memory_mb: u64,
    /// Megabytes of files written.
    pub disk_mb: u64,
    /// Processes at a time.
    pub processes: usize,
}

/// What a command sees of the file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Files {
    /// Its copy under a layer of its own: what it writes there, in its home and its temporary folders vanishes with it.
    Layered,
    /// The copy itself; home and temporary folders as above where the command is enclosed.
    InPlace,
    /// Everything as it is but for this folder, which is read-only: for setting a copy up.
    Open {
        /// The user's repositories.
        protected: PathBuf,
    },
}

/// What a guard is asked to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// For `sh -c`.
    pub command: String,
    /// The copy: where the command runs. An absolute path.
    pub folder: PathBuf,
    /// Files of the copy and what they are to hold.
    pub texts: Vec<(String, String)>,
    /// Variables set beside those of the program.
    pub environment: Vec<(String, String)>,
    /// What it may use.
    pub limits: Limits,
    /// Whether the network is there; without an enclosure it is, always.
    pub network: bool,
    /// What it sees of the file system.
    pub files: Files,
    /// Where it may write what is temporary, where `/tmp` is not its own.
    pub scratch: PathBuf,
    /// A file of the copy that is read when it has ended.
    pub collect: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// By itself.
    Exited,
    /// At the limit of seconds on the clock.
    Wall,
    /// At the limit of processor time.
    Cpu,
    /// At the limit of memory, or by the system's want of it.
    Memory,
    /// At the limit of what it may write.
    Disk,
    /// At the limit of processes.
    Processes,
    /// The program that gave the order is gone.
    Abandoned,
    /// The guard itself was ended.
    Lost,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why there was no run: what the system refused, or what could not be prepared.
    pub refused: Option<String>,
    /// How it ended.
    pub ended: Ended,
    /// What the command exited with.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Seconds on the clock.
    pub seconds: f64,
    /// Seconds on the processors.
    pub cpu_seconds: f64,
    /// Megabytes of memory at the most, as far as it was seen.
    pub peak_memory_mb: f64,
    /// Processes that outlived the command and were ended.
    pub left_behind: usize,
    /// What it printed, standard output and error as they came: head and tail where it is long.
    pub output: String,
    /// How many bytes it printed.
    pub output_bytes: u64,
    /// Whether it had no room left to write.
    pub disk_full: bool,
    /// The file that was asked for.
    pub collected: Option<String>,
    /// What could not be enclosed.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Of a run that never was.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self {
            refused: Some(reason.into()),
            ..Self::lost(None)
        }
    }

    /// Of a run whose guard was ended.
    pub(crate) fn lost(signal: Option<i32>) -> Self {
        Self {
            refused: None,
            ended: Ended::Lost,
            exit_code: None,
            signal,
            seconds: 0.0,
            cpu_seconds: 0.0,
            peak_memory_mb: 0.0,
            left_behind: 0,
            output: String::new(),
            output_bytes: 0,
            disk_full: false,
            collected: None,
            notes: Vec::new(),
        }
    }
}
