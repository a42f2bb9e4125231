//! Statuses and verdicts of test runs.

use repoformer_text::named;
use serde::{Deserialize, Serialize};

/// Status of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one test ran, and all tests that ran passed.
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

named! {
    Status, "status":
    Pass = "pass",
    Fail = "fail",
    Error = "error",
    Timeout = "timeout",
    OutOfMemory = "out-of-memory",
    NoTests = "no-tests",
    EnvironmentBroken = "environment-broken",
}

/// Status of a run, with its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Status of the run.
    pub status: Status,
    /// Explanation in a few words, or empty.
    pub reason: String,
    /// Number of tests that passed, if the runner reports it.
    pub passed: Option<u64>,
    /// Whether the status is final; a refusal or kill by the system may not happen again.
    pub is_lasting: bool,
}

pub(super) fn verdict(status: Status, reason: impl Into<String>) -> Verdict {
    Verdict { status, reason: reason.into(), passed: None, is_lasting: true }
}

/// Returns the verdict by exit code alone.
pub(super) fn by_code(code: i32) -> Verdict {
    match code {
        0 => verdict(Status::Pass, ""),
        code if code > 128 => verdict(Status::Error, format!("ended by signal {}", code - 128)),
        code => verdict(Status::Fail, format!("exit code {code}")),
    }
}

/// Counts in a runner's summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) errors: u64,
}
