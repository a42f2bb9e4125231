//! From the end of a run of tests to its status.
//!
//! A pass needs both: exit code 0 and, where the runner tells, at least one test that passed. What a runner tells is read
//! from the last summary in its output:
//!
//! | runner | summary | exit codes |
//! |---|---|---|
//! | pytest | `3 passed, 1 skipped in 0.12s` | 0 passed, 1 failed, 2 to 4 error, 5 no tests |
//! | unittest | `Ran 3 tests`, then `OK`, `OK (skipped=3)`, `FAILED (…)`, `NO TESTS RAN` | 0, 1, 5 no tests (since 3.12) |
//! | Maven, Gradle | `Tests run: 3, Failures: 0, Errors: 0, Skipped: 0`; `No tests found`, `NO-SOURCE` | 0, 1 |
//! | jest, vitest, mocha, node | `Tests: 3 passed, 3 total`, `Tests 3 passed (3)`, `3 passing`, `# pass 3` | 0, else |
//! | dotnet | `Failed: 0, Passed: 3, Skipped: 0`; `No test is available` | 0, 1 |
//!
//! A command of another kind passes by exit code 0 alone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::guard::{Ended, Outcome};
use crate::error::Error;

/// What a run of tests says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one test ran, and all that ran passed.
    Pass,
    /// A test failed.
    Fail,
    /// The tests could not be run to their end: code that does not load, a crash, a full disk.
    Error,
    /// A limit of time was reached.
    Timeout,
    /// The limit of memory was reached.
    OutOfMemory,
    /// Nothing ran, or all was skipped.
    NoTests,
    /// What tests need is missing, or setting up failed.
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

    /// Its name in results.
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

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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
}

fn verdict(status: Status, reason: impl Into<String>) -> Verdict {
    let reason = reason.into();
    Verdict { status, reason }
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
        return verdict(Status::EnvironmentBroken, reason.as_str());
    }
    match outcome.ended {
        Ended::Exited => by_end(runner, outcome),
        Ended::Wall => verdict(Status::Timeout, "limit of seconds (--timeout)"),
        Ended::Cpu => verdict(Status::Timeout, "limit of processor time (--cpu-limit)"),
        Ended::Memory => verdict(Status::OutOfMemory, "limit of memory (--memory-limit)"),
        Ended::Disk => verdict(Status::Error, "limit of what it may write (--disk-limit)"),
        Ended::Processes => verdict(Status::Error, "limit of processes (--process-limit)"),
        Ended::Abandoned | Ended::Lost => verdict(Status::Error, "its guard was ended"),
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
    let found = match runner {
        Runner::Pytest => by_pytest(code, pytest_counts(output), output),
        Runner::Unittest => by_unittest(code, unittest_counts(output), output),
        Runner::Auto => by_any(code, output),
        Runner::ExitCode => by_code(code),
    };
    if outcome.disk_full && found.status != Status::Pass {
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

fn by_pytest(code: i32, counts: Option<Counts>, output: &str) -> Verdict {
    match (code, counts) {
        (0, Some(Counts { passed: 0, .. })) => verdict(Status::NoTests, "every test was skipped"),
        (0, Some(_)) => verdict(Status::Pass, ""),
        (0, None) if dots(output) => verdict(Status::Pass, ""),
        (0, None) => verdict(Status::Error, "exit code 0 without pytest's summary"),
        (
            1,
            Some(Counts {
                failed: 0,
                errors: 1..,
                ..
            }),
        ) => verdict(Status::Error, "a test could not be set up"),
        (1, Some(_)) => verdict(Status::Fail, ""),
        // pytest is not the only one that exits with 1: so does an interpreter that cannot start it.
        (1, None) if output.contains("FAILED ") || dots(output) => verdict(Status::Fail, ""),
        (5, _) => verdict(Status::NoTests, "pytest collected no test"),
        (2, _) => verdict(Status::Error, "the tests could not be collected"),
        (4, _) => verdict(Status::Error, "pytest does not know such tests or options"),
        (code, _) if code > 128 => by_code(code),
        (code, _) => verdict(Status::Error, format!("exit code {code}")),
    }
}

/// pytest's line of progress with a test that passed; all that `-qq` leaves of a summary.
fn dots(output: &str) -> bool {
    output.lines().any(|line| {
        let progress = line
            .split_once('[')
            .filter(|(_, rest)| rest.trim_end().ends_with("%]"));
        let (marks, _) = progress.unwrap_or(("", ""));
        let marks = marks.split_whitespace().last().unwrap_or("");
        marks.contains('.') && marks.chars().all(|c| ".sxXFE".contains(c))
    })
}

fn by_unittest(code: i32, counts: Option<Counts>, output: &str) -> Verdict {
    let Some(counts) = counts else {
        return match code {
            0 => verdict(Status::Error, "exit code 0 without unittest's summary"),
            code if code > 128 => by_code(code),
            code => verdict(
                Status::Error,
                format!("exit code {code} without unittest's summary"),
            ),
        };
    };
    match (code, counts) {
        (0, Counts { passed: 0, .. }) => {
            verdict(Status::NoTests, "unittest ran no test, or skipped all")
        }
        (0, _) => verdict(Status::Pass, ""),
        (
            5,
            Counts {
                failed: 0,
                errors: 0,
                ..
            },
        ) => verdict(Status::NoTests, "unittest ran no test"),
        // A module that does not load is a "test" of unittest's own making.
        (
            _,
            Counts {
                failed: 0,
                errors: 1..,
                ..
            },
        ) if output.contains("_FailedTest") => {
            verdict(Status::Error, "the tests could not be loaded")
        }
        (code, _) if code > 128 => by_code(code),
        _ => verdict(Status::Fail, ""),
    }
}

/// Any summary that is known, the last one printed; without one the exit code alone.
fn by_any(code: i32, output: &str) -> Verdict {
    let nothing = [
        "No tests found",
        "No test files found",
        "No tests to run",
        "No test is available",
        "No test matches",
        "> Task :test NO-SOURCE",
    ];
    if let Some(counts) = other_counts(output) {
        return match (code, counts) {
            (0, Counts { passed: 0, .. }) => {
                verdict(Status::NoTests, "no test ran, or all were skipped")
            }
            (0, _) => verdict(Status::Pass, ""),
            (code, _) if code > 128 => by_code(code),
            (
                _,
                Counts {
                    passed: 0,
                    failed: 0,
                    errors: 0,
                },
            ) => verdict(Status::Error, format!("exit code {code}")),
            _ => verdict(Status::Fail, ""),
        };
    }
    if let Some(counts) = unittest_counts(output) {
        return by_unittest(code, Some(counts), output);
    }
    if let Some(counts) = pytest_counts(output) {
        return by_pytest(code, Some(counts), output);
    }
    match nothing.iter().find(|text| output.contains(**text)) {
        Some(text) => verdict(Status::NoTests, *text),
        None => by_code(code),
    }
}

/// `=== 1 failed, 2 passed, 1 warning in 0.12s (0:00:00) ===`, or without the signs.
fn pytest_counts(output: &str) -> Option<Counts> {
    output.lines().rev().find_map(|line| {
        let line = line.trim().trim_matches('=').trim();
        let (counted, time) = line.rsplit_once(" in ")?;
        let seconds = time.split_whitespace().next()?.strip_suffix('s')?;
        seconds.parse::<f64>().ok()?;
        let mut counts = Counts::default();
        if counted == "no tests ran" {
            return Some(counts);
        }
        for part in counted.split(", ") {
            let (number, what) = part.split_once(' ')?;
            let number: u64 = number.parse().ok()?;
            match what {
                "passed" | "xpassed" => counts.passed += number,
                "failed" => counts.failed += number,
                "error" | "errors" => counts.errors += number,
                "skipped" | "xfailed" | "deselected" | "warning" | "warnings" | "rerun" => {}
                _ if what.starts_with("subtests ") => {}
                _ => return None,
            }
        }
        Some(counts)
    })
}

/// `Ran 3 tests in 0.1s`, and below it `OK (skipped=1)`, `FAILED (failures=1, errors=1)` or `NO TESTS RAN`.
fn unittest_counts(output: &str) -> Option<Counts> {
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let at = lines.iter().rposition(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words[..], ["Ran", _, "test" | "tests", "in", _])
    })?;
    let ran: u64 = lines[at].split(' ').nth(1)?.parse().ok()?;
    let result = lines[at + 1..].iter().find(|line| {
        ["OK", "FAILED", "NO TESTS RAN"]
            .iter()
            .any(|word| line.starts_with(word))
    })?;
    let number = |name: &str| -> u64 {
        let numbers = result
            .split(['(', ')', ',', ' '])
            .filter_map(|part| part.split_once('='));
        let named = numbers.filter(|(key, _)| *key == name);
        named
            .filter_map(|(_, number)| number.parse::<u64>().ok())
            .sum()
    };
    let (failed, errors) = (
        number("failures") + u64::from(result.contains("unexpected successes=")),
        number("errors"),
    );
    let not_passed = failed + errors + number("skipped") + number("expected");
    Some(Counts {
        passed: ran.saturating_sub(not_passed),
        failed,
        errors,
    })
}

/// The summaries of Java's, JavaScript's and .NET's runners; those of several modules are added up.
fn other_counts(output: &str) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in output.lines().map(str::trim) {
        let number = |name: &str, separator: char| -> Option<u64> {
            let after = &line[line.find(name)? + name.len()..];
            let digits = after.trim_start_matches([separator, ' ']);
            let end = digits
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(digits.len());
            digits[..end].parse().ok()
        };
        let before = |name: &str| -> u64 {
            let words: Vec<&str> = line
                .split([' ', ',', '|'])
                .filter(|word| !word.is_empty())
                .collect();
            let at = words.iter().position(|word| *word == name);
            at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok())
                .unwrap_or(0)
        };
        let counts = if let Some(ran) = number("Tests run:", ':') {
            // Maven prints one a class (with the time) and one for all: the last word stands.
            let of = |name| number(name, ':').unwrap_or(0);
            let (failed, errors) = (of("Failures:"), of("Errors:"));
            let passed = ran.saturating_sub(failed + errors + of("Skipped:"));
            if line.contains("Time elapsed") {
                continue;
            }
            Counts {
                passed,
                failed,
                errors,
            }
        } else if line.starts_with("Tests:") || (line.starts_with("Tests ") && line.ends_with(')'))
        {
            Counts {
                passed: before("passed"),
                failed: before("failed"),
                errors: 0,
            }
        } else if let Some(passed) = number("# pass ", ' ').filter(|_| line.starts_with("# pass "))
        {
            Counts {
                passed,
                ..Counts::default()
            }
        } else if let Some(failed) = number("# fail ", ' ').filter(|_| line.starts_with("# fail "))
        {
            Counts {
                failed,
                ..Counts::default()
            }
        } else if line.ends_with(" passing") || line.contains(" passing (") {
            Counts {
                passed: before("passing"),
                ..Counts::default()
            }
        } else if line.ends_with(" failing") {
            Counts {
                failed: before("failing"),
                ..Counts::default()
            }
        } else if let (Some(failed), Some(passed)) =
            (number("Failed:", ':'), number("Passed:", ':'))
        {
            Counts {
                passed,
                failed,
                errors: 0,
            }
        } else {
            continue;
        };
        let all = found.get_or_insert_with(Counts::default);
        all.passed += counts.passed;
        all.failed += counts.failed;
        all.errors += counts.errors;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(runner: Runner, code: i32, output: &str) -> Status {
        let outcome = Outcome {
            ended: Ended::Exited,
            exit_code: Some(code),
            output: output.to_owned(),
            ..Outcome::lost(None)
        };
        judge(runner, &outcome).status
    }

    #[test]
    fn pytest_as_its_documentation_has_it() {
        // Exit codes of pytest's documentation; summaries as pytest 8 prints them.
        let of = |code, output: &str| status(Runner::Pytest, code, output);
        assert_eq!(of(0, "..  [100%]\n2 passed in 0.01s\n"), Status::Pass);
        assert_eq!(
            of(0, "=== 2 passed, 1 warning in 61.01s (0:01:01) ==="),
            Status::Pass
        );
        assert_eq!(of(0, "=== 3 skipped in 0.01s ==="), Status::NoTests);
        assert_eq!(of(0, "1 xfailed in 0.02s"), Status::NoTests);
        assert_eq!(of(0, "."), Status::Error); // os._exit(0) in the middle
        assert_eq!(of(0, "5 passed soon\n"), Status::Error);
        assert_eq!(of(0, "..s   [100%]\n"), Status::Pass); // -qq
        assert_eq!(of(1, "1 failed, 2 passed in 0.12s"), Status::Fail);
        assert_eq!(of(1, "1 passed, 1 error in 0.12s"), Status::Error);
        assert_eq!(of(2, "1 error in 0.12s"), Status::Error);
        assert_eq!(of(5, "no tests ran in 0.00s"), Status::NoTests);
        assert_eq!(
            of(4, "ERROR: file or directory not found: x"),
            Status::Error
        );
        assert_eq!(
            of(1, "/usr/bin/python3: No module named pytest"),
            Status::EnvironmentBroken
        );
        assert_eq!(
            of(127, "sh: 1: pytest: not found"),
            Status::EnvironmentBroken
        );
        assert_eq!(of(139, ""), Status::Error);
        // A prediction that imports something that is not there breaks itself, not the environment.
        let own = "E   ModuleNotFoundError: No module named pytest_x\n1 error in 0.1s";
        assert_eq!(of(2, own), Status::Error);
    }

    #[test]
    fn unittest_as_python_prints_it() {
        // Printed by Python 3.11 and 3.12.
        let of = |code, output: &str| status(Runner::Unittest, code, output);
        assert_eq!(
            of(0, "...\n---\nRan 3 tests in 0.001s\n\nOK\n"),
            Status::Pass
        );
        assert_eq!(
            of(
                0,
                "Ran 3 tests in 0.001s\n\nOK (skipped=1, expected failures=1)\n"
            ),
            Status::Pass
        );
        assert_eq!(
            of(0, "Ran 2 tests in 0.001s\n\nOK (skipped=2)\n"),
            Status::NoTests
        );
        assert_eq!(of(0, "Ran 0 tests in 0.000s\n\nOK\n"), Status::NoTests);
        assert_eq!(
            of(5, "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n"),
            Status::NoTests
        );
        assert_eq!(
            of(1, "Ran 3 tests in 0.001s\n\nFAILED (failures=1)\n"),
            Status::Fail
        );
        let unloaded =
            "ERROR: m (unittest.loader._FailedTest.m)\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n";
        assert_eq!(of(1, unloaded), Status::Error);
        assert_eq!(of(0, ""), Status::Error);
        assert_eq!(of(1, "Traceback"), Status::Error);
    }

    #[test]
    fn other_runners_are_known_by_their_summaries() {
        let of = |code, output: &str| status(Runner::Auto, code, output);
        assert_eq!(of(0, "anything"), Status::Pass);
        assert_eq!(of(3, "anything"), Status::Fail);
        assert_eq!(of(0, "2 passed in 0.01s"), Status::Pass);
        assert_eq!(of(0, "Ran 0 tests in 0.000s\n\nOK"), Status::NoTests);
        // Maven Surefire.
        assert_eq!(
            of(
                0,
                "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1\n[INFO] BUILD SUCCESS"
            ),
            Status::Pass
        );
        assert_eq!(
            of(
                0,
                "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2"
            ),
            Status::NoTests
        );
        assert_eq!(
            of(
                1,
                "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0"
            ),
            Status::Fail
        );
        assert_eq!(of(0, "[INFO] No tests to run."), Status::NoTests);
        // jest, vitest, mocha, node --test.
        assert_eq!(
            of(0, "Tests:       1 skipped, 2 passed, 3 total"),
            Status::Pass
        );
        assert_eq!(
            of(1, "Tests:       1 failed, 2 passed, 3 total"),
            Status::Fail
        );
        assert_eq!(of(0, "Tests:       2 skipped, 2 total"), Status::NoTests);
        assert_eq!(of(0, "      Tests  3 passed (3)"), Status::Pass);
        assert_eq!(of(0, "  3 passing (10ms)"), Status::Pass);
        assert_eq!(of(0, "  0 passing (1ms)"), Status::NoTests);
        assert_eq!(of(1, "  2 passing (9ms)\n  1 failing"), Status::Fail);
        assert_eq!(of(0, "# tests 2\n# pass 2\n# fail 0"), Status::Pass);
        assert_eq!(
            of(1, "No tests found, exiting with code 1"),
            Status::NoTests
        );
        // dotnet test.
        assert_eq!(
            of(
                0,
                "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3"
            ),
            Status::Pass
        );
        assert_eq!(
            of(
                1,
                "Failed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4"
            ),
            Status::Fail
        );
        assert_eq!(of(0, "No test is available in a.dll."), Status::NoTests);
        // By exit code alone a summary says nothing.
        assert_eq!(
            status(Runner::ExitCode, 0, "Ran 0 tests in 0.000s\n\nOK"),
            Status::Pass
        );
    }

    #[test]
    fn limits_are_told_apart() {
        let of = |ended| {
            judge(
                Runner::Auto,
                &Outcome {
                    ended,
                    ..Outcome::lost(None)
                },
            )
            .status
        };
        assert_eq!(of(Ended::Wall), Status::Timeout);
        assert_eq!(of(Ended::Cpu), Status::Timeout);
        assert_eq!(of(Ended::Memory), Status::OutOfMemory);
        assert_eq!(of(Ended::Disk), Status::Error);
        assert_eq!(
            judge(Runner::Auto, &Outcome::refused("x")).status,
            Status::EnvironmentBroken
        );
        assert_eq!("exit-code".parse::<Runner>().unwrap(), Runner::ExitCode);
        assert_eq!(
            Runner::Auto.of_command("python -m pytest -q"),
            Runner::Pytest
        );
    }
}
