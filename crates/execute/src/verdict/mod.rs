//! Derives the status of a test run from how it ended.
//!
//! A pass requires exit code 0 and, if the runner prints a summary, at least one passed test and no failed test: a shell's `… | tail` or a
//! test's `os._exit(0)` can hide the exit code of a failure. The last summary in the output counts:
//!
//! | runner | summary | exit codes |
//! |---|---|---|
//! | pytest | `3 passed, 1 skipped in 0.12s` | 0 passed, 1 failed, 2 to 4 error, 5 no tests |
//! | unittest | `Ran 3 tests`, then `OK`, `OK (skipped=3)`, `FAILED (…)`, `NO TESTS RAN` | 0, 1, 5 no tests (since 3.12) |
//! | Maven, Gradle | `Tests run: 3, Failures: 0, Errors: 0, Skipped: 0`; `No tests found`, `NO-SOURCE` | 0, 1 |
//! | jest, vitest, mocha, node | `Tests: 3 passed, 3 total`, `Tests 3 passed (3)`, `3 passing`, `# pass 3` | 0, else |
//! | dotnet | `Failed: 0, Passed: 3, Skipped: 0`; `No test is available` | 0, 1 |
//!
//! Any other command passes by exit code 0 alone. A prediction can forge a whole summary and exit with 0. If pytest or unittest report the
//! reference text's tests to the guard themselves ([`Report`](super::guard::Report)), a pass therefore requires such a report too.

mod other;
mod pytest;
mod status;
mod unittest;

use serde::{Deserialize, Serialize};

use self::status::{Counts, by_code, verdict};
pub use self::status::{Status, Verdict};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::named;

use super::guard::{Limits, RunEnd, RunOutcome};

/// Test runner, which determines how the end of a test command is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runner {
    /// The runner that the command names, or else any summary in the output.
    #[default]
    Auto,
    /// pytest: exit codes and summary.
    Pytest,
    /// unittest: exit codes and summary.
    Unittest,
    /// Any command: the exit code alone.
    ExitCode,
}

named! {
    Runner, "runner":
    Auto = "auto",
    Pytest = "pytest",
    Unittest = "unittest",
    ExitCode = "exit-code",
}

impl Runner {
    /// Determines the runner from a command if it is `Auto`.
    #[must_use]
    pub fn of_command(self, command: &str) -> Self {
        match self {
            Self::Auto if command.contains("pytest") || command.contains("py.test") => Self::Pytest,
            Self::Auto if command.contains("unittest") => Self::Unittest,
            other => other,
        }
    }
}

/// Limit that a run reached, as named in the reason of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReachedLimit {
    Time,
    /// The time limit, reached by a run that had no processor for a long time, because of other programs or a pause of the machine.
    TimeOfOthers,
    ProcessorTime,
    Memory,
    /// The memory limit, reached by memory of the whole system that other programs may have used.
    SystemMemory,
    Disk,
    Processes,
    /// A write failed for lack of space, and the run went on.
    FullDisk,
}

named! {
    ReachedLimit, "limit":
    Time = "limit of seconds",
    TimeOfOthers = "limit of seconds, many of them without a processor",
    ProcessorTime = "limit of processor time",
    Memory = "limit of memory",
    SystemMemory = "limit of memory, or other programs left too little",
    Disk = "limit of disk space",
    Processes = "limit of processes",
    FullDisk = "no space left to write: limit of disk space",
}

impl ReachedLimit {
    /// Returns the reason, with the limit as the user's setting, and with its value for a time.
    pub(super) fn message(self, limits: &Limits) -> Message {
        let seconds = message![UserChoice::TimeLimit, format!(", {} s", limits.wall_seconds)];
        match self {
            Self::Time => seconds,
            Self::TimeOfOthers => {
                message![seconds, ", many of them without a processor; run fewer at a time"]
            }
            Self::ProcessorTime => UserChoice::ProcessorTimeLimit.into(),
            Self::Memory => UserChoice::MemoryLimit.into(),
            Self::SystemMemory => {
                message![UserChoice::MemoryLimit, ", or other programs left too little"]
            }
            Self::Disk => UserChoice::DiskLimit.into(),
            Self::Processes => UserChoice::ProcessLimit.into(),
            Self::FullDisk => message!["no space left to write: ", UserChoice::DiskLimit],
        }
    }
}

/// Returns a verdict that the run itself did not cause and that is not final.
fn provisional(status: Status, reason: &str) -> Verdict {
    Verdict { is_lasting: false, ..verdict(status, reason) }
}

/// Judges the outcome of a run.
pub fn judge(runner: Runner, outcome: &RunOutcome) -> Verdict {
    if let Some(reason) = &outcome.refused {
        return provisional(Status::EnvironmentBroken, reason);
    }
    match outcome.ended {
        RunEnd::Exited => by_end(runner, outcome),
        RunEnd::Wall if outcome.is_starved => {
            provisional(Status::Timeout, ReachedLimit::TimeOfOthers.name())
        }
        RunEnd::Wall => verdict(Status::Timeout, ReachedLimit::Time.name()),
        RunEnd::Cpu => verdict(Status::Timeout, ReachedLimit::ProcessorTime.name()),
        RunEnd::Memory => verdict(Status::OutOfMemory, ReachedLimit::Memory.name()),
        RunEnd::SystemMemory => provisional(Status::OutOfMemory, ReachedLimit::SystemMemory.name()),
        RunEnd::Disk => verdict(Status::Error, ReachedLimit::Disk.name()),
        RunEnd::Processes => verdict(Status::Error, ReachedLimit::Processes.name()),
        RunEnd::SystemProcesses => provisional(Status::Error, "the system refused it a process"),
        RunEnd::Files => verdict(Status::Error, "it held too many of the system's open files"),
        // Another run may have used up the system's open files.
        RunEnd::Unseen => {
            provisional(Status::Error, "its use of memory and time could not be read")
        }
        RunEnd::FullDisk => provisional(Status::Error, "the disk was nearly full"),
        RunEnd::Replaced => {
            provisional(Status::Error, "a hidden file or folder was replaced while it ran")
        }
        RunEnd::Unwritten => provisional(Status::Error, &outcome.output),
        RunEnd::Abandoned | RunEnd::Lost => provisional(Status::Error, "its guard was killed"),
    }
}

fn by_end(runner: Runner, outcome: &RunOutcome) -> Verdict {
    let Some(code) = outcome.exit_code else {
        let signal = outcome.signal.unwrap_or_default();
        return verdict(Status::Error, format!("ended by signal {signal}"));
    };
    let output = &outcome.output;
    if let Some(reason) = missing_requirement(code, output) {
        return verdict(Status::EnvironmentBroken, reason);
    }
    let (counts, found) = match runner {
        Runner::Pytest => {
            let counts = pytest::counts(output);
            (counts, pytest::judge(code, counts, output))
        }
        Runner::Unittest => {
            let counts = unittest::counts(output);
            (counts, unittest::judge(code, counts, output))
        }
        Runner::Auto => other::judge(code, output),
        Runner::ExitCode => (None, by_code(code)),
    };
    let passed = counts.map(|counts| counts.passed);
    let found = Verdict { passed, ..found };
    if let (0, Status::Pass, Some(Counts { failed, errors, .. })) = (code, found.status, counts)
        && failed + errors > 0
    {
        let failed = failed + errors;
        return Verdict {
            status: Status::Fail,
            reason: format!("{failed} tests failed, though the exit code is 0"),
            ..found
        };
    }
    if outcome.disk_full {
        return verdict(Status::Error, ReachedLimit::FullDisk.name());
    }
    found
}

/// Returns the requirement without which no test can run, if one is missing.
fn missing_requirement(code: i32, output: &str) -> Option<String> {
    let line = |what: &str| output.lines().rev().find(|line| line.contains(what));
    match code {
        126 => Some("the command cannot be executed (exit code 126)".into()),
        127 => Some(match line("not found") {
            Some(line) => line.trim().to_owned(),
            None => "the command is not found (exit code 127)".into(),
        }),
        0 => None,
        // Printed by the interpreter itself when the runner is missing.
        _ => ["No module named pytest", "No module named unittest"]
            .into_iter()
            .find_map(line)
            .filter(|line| !line.contains("Error"))
            .map(|line| line.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests;
