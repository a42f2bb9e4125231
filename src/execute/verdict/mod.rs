//! From the end of a run of tests to its status.
//!
//! A pass needs exit code 0 and, where the runner tells, a test that passed and none that failed: a shell's `… | tail` or a
//! test's `os._exit(0)` can hide the code of a failure. What a runner tells is read from the last summary in its output:
//!
//! | runner | summary | exit codes |
//! |---|---|---|
//! | pytest | `3 passed, 1 skipped in 0.12s` | 0 passed, 1 failed, 2 to 4 error, 5 no tests |
//! | unittest | `Ran 3 tests`, then `OK`, `OK (skipped=3)`, `FAILED (…)`, `NO TESTS RAN` | 0, 1, 5 no tests (since 3.12) |
//! | Maven, Gradle | `Tests run: 3, Failures: 0, Errors: 0, Skipped: 0`; `No tests found`, `NO-SOURCE` | 0, 1 |
//! | jest, vitest, mocha, node | `Tests: 3 passed, 3 total`, `Tests 3 passed (3)`, `3 passing`, `# pass 3` | 0, else |
//! | dotnet | `Failed: 0, Passed: 3, Skipped: 0`; `No test is available` | 0, 1 |
//!
//! A command of another kind passes by exit code 0 alone. A text that forges the whole summary and leaves with 0 passes:
//! nothing that shares a process with the runner can be kept from that.

mod other;
mod pytest;
mod status;
mod unittest;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::status::Status;
use super::guard::{Ended, Outcome};
use crate::error::Error;

/// How a test command's end is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runner {
    /// By what the command names, or else by any summary that it prints.
    #[default]
    Auto,
    /// pytest's exit codes and summary.
    Pytest,
    /// unittest's.
    Unittest,
    /// The exit code alone.
    ExitCode,
}

impl FromStr for Runner {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "auto" => Ok(Self::Auto),
            "pytest" => Ok(Self::Pytest),
            "unittest" => Ok(Self::Unittest),
            "exit-code" => Ok(Self::ExitCode),
            other => Err(Error::Parameter {
                name: "runner",
                reason: format!("'{other}' is not one of auto, pytest, unittest, exit-code"),
            }),
        }
    }
}

impl Runner {
    /// The runner of a command, where that is not given.
    #[must_use]
    pub fn of_command(self, command: &str) -> Self {
        match self {
            Self::Auto if command.contains("pytest") || command.contains("py.test") => Self::Pytest,
            Self::Auto if command.contains("unittest") => Self::Unittest,
            other => other,
        }
    }
}

/// A status and, where it says more, the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The status.
    pub status: Status,
    /// In a few words.
    pub reason: String,
    /// How many tests passed, where the runner tells.
    pub passed: Option<u64>,
    /// Whether it says something of the tests; what the system refused or ended another time may not.
    pub is_lasting: bool,
}

fn verdict(status: Status, reason: impl Into<String>) -> Verdict {
    Verdict {
        status,
        reason: reason.into(),
        passed: None,
        is_lasting: true,
    }
}

/// Of a run of which nothing can be said, for a reason that is not its own.
fn lost(status: Status, reason: &str) -> Verdict {
    Verdict {
        is_lasting: false,
        ..verdict(status, reason)
    }
}

/// What a runner counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    passed: u64,
    failed: u64,
    errors: u64,
}

/// Judges the outcome of a run.
pub fn judge(runner: Runner, outcome: &Outcome) -> Verdict {
    if let Some(reason) = &outcome.refused {
        return lost(Status::EnvironmentBroken, reason);
    }
    match outcome.ended {
        Ended::Exited => by_end(runner, outcome),
        Ended::Wall => verdict(Status::Timeout, "limit of seconds (--timeout)"),
        Ended::Cpu => verdict(Status::Timeout, "limit of processor time (--cpu-limit)"),
        Ended::Memory => verdict(Status::OutOfMemory, "limit of memory (--memory-limit)"),
        Ended::Disk => verdict(Status::Error, "limit of what it may write (--disk-limit)"),
        Ended::Processes => verdict(Status::Error, "limit of processes (--process-limit)"),
        Ended::Abandoned | Ended::Lost => lost(Status::Error, "its guard was ended"),
    }
}

fn by_end(runner: Runner, outcome: &Outcome) -> Verdict {
    let Some(code) = outcome.exit_code else {
        let signal = outcome.signal.unwrap_or_default();
        return verdict(Status::Error, format!("ended by signal {signal}"));
    };
    let output = &outcome.output;
    if let Some(reason) = broken(code, output) {
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
        let reason = format!(
            "{} tests failed, though the exit code is 0",
            failed + errors
        );
        return Verdict {
            status: Status::Fail,
            reason,
            ..found
        };
    }
    if outcome.disk_full {
        return verdict(Status::Error, "no room left to write (--disk-limit)");
    }
    found
}

/// What is missing for any test to run.
fn broken(code: i32, output: &str) -> Option<String> {
    let line = |what: &str| output.lines().rev().find(|line| line.contains(what));
    match code {
        126 => Some("the command cannot be executed (exit code 126)".into()),
        127 => Some(match line("not found") {
            Some(line) => line.trim().to_owned(),
            None => "the command is not found (exit code 127)".into(),
        }),
        0 => None,
        // Said by the interpreter itself, of the runner that it was to start.
        _ => ["No module named pytest", "No module named unittest"]
            .into_iter()
            .find_map(line)
            .filter(|line| !line.contains("Error"))
            .map(|line| line.trim().to_owned()),
    }
}

fn by_code(code: i32) -> Verdict {
    match code {
        0 => verdict(Status::Pass, ""),
        code if code > 128 => verdict(Status::Error, format!("ended by signal {}", code - 128)),
        code => verdict(Status::Fail, format!("exit code {code}")),
    }
}

#[cfg(test)]
mod tests;
