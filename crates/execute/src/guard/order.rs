//! Orders to a guard, and their outcomes.

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
    /// Processor seconds of all its processes.
    pub cpu_seconds: f64,
    /// Megabytes (2²⁰ bytes) of memory of all its processes together.
    pub memory_mb: u64,
    /// Megabytes of files written.
    pub disk_mb: u64,
    /// Number of processes at a time.
    pub processes: usize,
}

impl Limits {
    /// Number of processes and threads that the system allows; a process may have many threads.
    pub(super) fn tasks(&self) -> usize {
        2 * self.processes.max(64)
    }

    /// Number of files written: an empty one takes room, too.
    pub(super) fn files(&self) -> u64 {
        self.disk_mb.saturating_mul(256).max(1 << 16)
    }

    /// Bytes that the kernel lets a run hold. What it writes to file systems in memory (`layers`) counts there, so there is room for
    /// both limits; its guard holds it to each.
    pub(super) fn most_memory(&self, layers: bool) -> u64 {
        let in_files = if layers { self.disk_mb } else { 0 };
        self.memory_mb.saturating_add(in_files).saturating_mul(1 << 20)
    }
}

/// View of the file system that a command gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Files {
    /// The copy below a layer of its own: writes to it, to the home folder and to temporary folders vanish with the run.
    #[default]
    Layered,
    /// The copy itself; home and temporary folders as above if the command is enclosed.
    InPlace,
    /// Everything, with the user's repositories read-only: for setting a copy up.
    Open {
        /// The user's repositories: their folder, and folders elsewhere that links in it lead to.
        #[serde(with = "any_paths")]
        protected: Vec<PathBuf>,
    },
}

/// A file or folder that a command finds empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenPlace {
    /// The file or folder.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// Folders in it that stay.
    #[serde(with = "any_paths")]
    pub kept: Vec<PathBuf>,
}

/// A path in JSON: text, or bytes if others chose a name that is not UTF-8.
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

/// A command for a guard to run. Its folders, its view of the files and the network are chosen for it, but for a setup.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOrder {
    /// For `sh -c`.
    pub command: String,
    /// The copy, in which the command runs; an absolute path.
    pub folder: PathBuf,
    /// Files of the copy and their new content.
    pub texts: Vec<(String, String)>,
    /// Environment variables besides those of the program.
    pub environment: Vec<(String, String)>,
    /// Limits of the run.
    pub limits: Limits,
    /// Whether the network is available; without an enclosure it always is.
    pub network: bool,
    /// Number of runs that there may be beside this one.
    pub beside: usize,
    /// View of the file system.
    pub files: Files,
    /// What the command's user names.
    #[serde(skip)]
    pub named: NamedPaths,
    /// Files and folders that the command finds empty, if it is enclosed: those that hold answers.
    pub hidden: Vec<HiddenPlace>,
    /// Whether its system calls are filtered.
    pub filtered: bool,
    /// Niceness of its processes, from -20 to 19.
    pub niceness: i32,
    /// Folder for temporary files, if the run has no `/tmp` of its own.
    pub scratch: PathBuf,
    /// File of the copy to read after the end.
    pub collect: Option<String>,
    /// Whether Python's test libraries report their results to the guard.
    pub reports: bool,
    /// Control group of its processes; without one, the guard adds up what `/proc` shows.
    pub group: Option<RunGroup>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// By itself.
    Exited,
    /// At the limit of wall-clock time.
    Wall,
    /// At the limit of processor time.
    Cpu,
    /// At the limit of memory, or when the system ran out of it.
    Memory,
    /// At the limit of disk space.
    Disk,
    /// At the limit of processes.
    Processes,
    /// When it held too many of the files that the system can have open.
    Files,
    /// When the disk that it writes to was nearly full, whoever filled it.
    FullDisk,
    /// When a file or folder that it must not see was replaced outside.
    Replaced,
    /// When the guard could no longer read what it uses.
    Unseen,
    /// Before it began: one of its files cannot be written. The output says why.
    Unwritten,
    /// The program that gave the order is gone.
    Abandoned,
    /// The guard itself was killed.
    #[default]
    Lost,
}

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Why there was no run: the system refused a step.
    pub refused: Option<String>,
    /// How the run ended.
    pub ended: RunEnd,
    /// Exit code of the command.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Processor seconds.
    pub cpu_seconds: f64,
    /// Peak memory in megabytes, as far as it was observed.
    pub peak_memory_mb: f64,
    /// Number of processes that outlived the command and were killed.
    pub left_behind: usize,
    /// Standard output and error, interleaved; head and tail of a long output.
    pub output: String,
    /// Length of the output in bytes.
    pub output_bytes: u64,
    /// Whether the disk was full.
    pub disk_full: bool,
    /// Whether it reached the limit of seconds and had waited for a processor for most of them.
    pub is_starved: bool,
    /// Content of the collected file, or why it is not read; `None` if there is none.
    pub collected: Option<Result<String, String>>,
    /// Report of the test libraries, where the order asks for one.
    pub report: Option<Report>,
    /// Parts that could not be enclosed.
    pub open: Vec<String>,
    /// Other differences from the system that the program runs on.
    pub notes: Vec<String>,
}

impl RunOutcome {
    /// Outcome of a run that did not start.
    pub fn from_refusal(reason: impl Into<String>) -> Self {
        Self { refused: Some(reason.into()), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anybody can bind a socket whose name is not UTF-8, and no run could start any more.
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
