//! Orders for a guard, and their outcomes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::command::NamedPaths;
use super::group::RunGroup;
use super::report::Report;

/// Limits of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock seconds.
    pub wall_seconds: f64,
    /// Seconds of processor time of all processes.
    pub cpu_seconds: f64,
    /// Megabytes (2²⁰ bytes) of memory of all processes together.
    pub memory_mb: u64,
    /// Megabytes of files written.
    pub disk_mb: u64,
    /// Number of concurrent processes.
    pub processes: usize,
}

impl Limits {
    /// Returns the number of processes and threads that the system allows; a process may have many threads.
    pub(super) fn tasks(&self) -> usize {
        2 * self.processes.max(64)
    }

    /// Returns the number of files that a run may write: empty files need space too.
    pub(super) fn files(&self) -> u64 {
        self.disk_mb.saturating_mul(256).max(1 << 16)
    }

    /// Returns the number of bytes that the kernel lets a run hold. Writes to file systems in memory (`layers`) count as memory, so this is
    /// the sum of both limits; the guard enforces each of them.
    pub(super) fn most_memory(&self, layers: bool) -> u64 {
        let in_files = if layers { self.disk_mb } else { 0 };
        self.memory_mb.saturating_add(in_files).saturating_mul(1 << 20)
    }
}

/// View of the file system that a command has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Files {
    /// The copy below a separate layer: writes to the copy, to the home folder and to temporary folders are discarded with the run.
    #[default]
    Layered,
    /// The copy itself; home and temporary folders as above if the command is isolated.
    InPlace,
    /// Everything, with the user's repositories read-only: for setting up a copy.
    Open {
        /// The user's repositories: their folder, and folders outside that its links lead to. The folder of all copies: what is at a
        /// path there must be this program's.
        #[serde(with = "any_paths")]
        protected: Vec<PathBuf>,
    },
}

/// File or folder that a command finds empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenPlace {
    /// Path of the file or folder.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// Folders inside it that stay visible.
    #[serde(with = "any_paths")]
    pub kept: Vec<PathBuf>,
}

/// Path in JSON: text, or bytes if its name is not UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AnyPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl AnyPath {
    fn from_path(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    fn into_path(self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

mod any_path {
    use super::*;

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        AnyPath::from_path(path).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        AnyPath::deserialize(from).map(AnyPath::into_path)
    }
}

mod any_paths {
    use super::*;

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| AnyPath::from_path(path)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<AnyPath>::deserialize(from)?;
        Ok(paths.into_iter().map(AnyPath::into_path).collect())
    }
}

/// Command for a guard to run. Except for a setup, its view of the files and its network are set by [`Guard::run`](super::Guard::run).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOrder {
    /// Command for `sh -c`.
    pub command: String,
    /// Absolute path of the copy, in which the command runs.
    pub folder: PathBuf,
    /// Files of the copy and their new content.
    pub texts: Vec<(String, String)>,
    /// Environment variables in addition to the program's.
    pub environment: Vec<(String, String)>,
    /// Limits of the run.
    pub limits: Limits,
    /// Whether the network is available; without isolation it always is.
    pub network: bool,
    /// Maximum number of other runs at the same time.
    pub beside: usize,
    /// View of the file system.
    pub files: Files,
    /// Paths that the user names in the command.
    #[serde(skip)]
    pub named: NamedPaths,
    /// Files and folders with answers, which the command finds empty if it is isolated.
    pub hidden: Vec<HiddenPlace>,
    /// Home folders in which keys are hidden.
    #[serde(with = "any_paths")]
    pub homes: Vec<PathBuf>,
    /// Whether the command's system calls are filtered.
    pub filtered: bool,
    /// Niceness of the command's processes, from -20 to 19.
    pub niceness: i32,
    /// Folder for temporary files, if the run has no separate `/tmp`.
    pub scratch: PathBuf,
    /// File of the copy to read after the end of the run.
    pub collect: Option<String>,
    /// Whether Python's test libraries report their results to the guard.
    pub reports: bool,
    /// Control group of the run's processes; without one, the guard adds up the values in `/proc`.
    pub group: Option<RunGroup>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// The command ended without reaching a limit.
    Exited,
    /// The limit on wall-clock time was reached.
    Wall,
    /// The limit on processor time was reached.
    Cpu,
    /// The memory limit was reached.
    Memory,
    /// The system ran out of memory, or its memory that belongs to no process grew beyond the limit; other programs may be the cause.
    SystemMemory,
    /// The limit on disk space was reached.
    Disk,
    /// The limit on processes was reached.
    Processes,
    /// The system refused a process although the run had not reached its limit.
    SystemProcesses,
    /// The run held too many of the files that the system can have open.
    Files,
    /// The disk that the run writes to was nearly full, whatever filled it.
    FullDisk,
    /// A file or folder hidden from the run was replaced outside.
    Replaced,
    /// The guard could no longer read the run's resource use.
    Unseen,
    /// The run did not begin, because one of its files cannot be written. The output contains the reason.
    Unwritten,
    /// The program that gave the order has ended.
    Abandoned,
    /// The guard itself was killed.
    #[default]
    Lost,
}

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Reason why there was no run: the system refused a step.
    pub refused: Option<String>,
    /// How the run ended.
    pub ended: RunEnd,
    /// Exit code of the command.
    pub exit_code: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Processor seconds.
    pub cpu_seconds: f64,
    /// Peak memory in megabytes, as far as observed.
    pub peak_memory_mb: f64,
    /// Number of processes that outlived the command and were killed.
    pub left_behind: usize,
    /// Standard output and error, interleaved; head and tail of a long output.
    pub output: String,
    /// Length of the output in bytes.
    pub output_bytes: u64,
    /// Whether the disk was full.
    pub disk_full: bool,
    /// Whether the run reached the wall-clock limit after waiting for a processor most of that time, or after a pause of the machine.
    pub is_starved: bool,
    /// Content of the collected file, or the reason why it was not read; `None` if it does not exist.
    pub collected: Option<Result<String, String>>,
    /// Report of the test libraries, if the order requests one.
    pub report: Option<Report>,
    /// Parts that could not be isolated.
    pub open: Vec<String>,
    /// Other differences from the system outside.
    pub notes: Vec<String>,
}

impl RunOutcome {
    /// Returns the outcome of a run that did not start.
    pub fn from_refusal(reason: impl Into<String>) -> Self {
        Self { refused: Some(reason.into()), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anybody can bind a socket whose name is not UTF-8, which must not keep all runs from starting.
    #[test]
    fn paths_that_are_not_utf8_arrive() {
        let odd = PathBuf::from(OsString::from_vec(b"/tmp/\xff".to_vec()));
        let kept = vec![odd.clone(), PathBuf::from("/a b")];
        let hidden = vec![HiddenPlace { path: odd.clone(), kept: kept.clone() }];
        let files = Files::Open { protected: kept };
        let order =
            RunOrder { hidden: hidden.clone(), files: files.clone(), ..RunOrder::default() };
        let json = serde_json::to_string(&order).unwrap();
        let read: RunOrder = serde_json::from_str(&json).unwrap();
        assert_eq!((read.hidden, read.files), (hidden, files));
    }
}
