//! Statuses and verdicts of test runs.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::error::parse_by_name;

/// Status of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one test ran, and all that ran passed.
    Pass,
    /// A test failed.
    Fail,
    /// The tests could not be completed: code that does not load, a crash, a full disk.
    Error,
    /// A time limit was reached.
    Timeout,
    /// The memory limit was reached.
    OutOfMemory,
    /// No test ran, or all were skipped.
    NoTests,
    /// A program that the tests need is missing, or the setup failed.
    EnvironmentBroken,
}

impl Status {
    /// Every status, in the order of a results table.
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Fail,
        Self::Error,
        Self::Timeout,
        Self::OutOfMemory,
        Self::NoTests,
        Self::EnvironmentBroken,
    ];

    /// Returns the name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out-of-memory",
            Self::NoTests => "no-tests",
            Self::EnvironmentBroken => "environment-broken",
        }
    }
}

parse_by_name!(Status, "status");

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A status and its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Status of the run.
    pub status: Status,
    /// Explanation in a few words, or empty.
    pub reason: String,
    /// Number of tests that passed, if the runner says so.
    pub passed: Option<u64>,
    /// Whether it is final; a refusal or kill by the system may not happen again.
    pub is_lasting: bool,
}

pub(super) fn verdict(status: Status, reason: impl Into<String>) -> Verdict {
    Verdict { status, reason: reason.into(), passed: None, is_lasting: true }
}

/// Verdict by exit code alone.
pub(super) fn by_code(code: i32) -> Verdict {
    match code {
        0 => verdict(Status::Pass, ""),
        code if code > 128 => verdict(Status::Error, format!("ended by signal {}", code - 128)),
        code => verdict(Status::Fail, format!("exit code {code}")),
    }
}

/// Counts of a runner's summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) errors: u64,
}
