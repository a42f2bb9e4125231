//! Results of Python's unittest: `Ran 3 tests`, followed by `OK`, `FAILED` or `NO TESTS RAN`.

use super::status::{Counts, Status, Verdict, by_code, verdict};

/// Judges a run by its exit code and its counts.
pub(super) fn judge(code: i32, counts: Option<Counts>, output: &str) -> Verdict {
    let Some(counts) = counts else {
        return match code {
            0 => verdict(Status::Error, "exit code 0 without unittest's summary"),
            code if code > 128 => by_code(code),
            code => verdict(Status::Error, format!("exit code {code} without unittest's summary")),
        };
    };
    match (code, counts) {
        (0, Counts { passed: 0, failed: 0, errors: 0 }) => {
            verdict(Status::NoTests, "unittest ran no test, or skipped all")
        }
        (0, _) => verdict(Status::Pass, ""),
        (5, Counts { failed: 0, errors: 0, .. }) => {
            verdict(Status::NoTests, "unittest ran no test")
        }
        // unittest creates a test for a module that does not load.
        (_, counts)
            if counts.failed == 0 && counts.errors > 0 && output.contains("_FailedTest") =>
        {
            verdict(Status::Error, "the tests could not be loaded")
        }
        (code, _) if code > 128 => by_code(code),
        _ => verdict(Status::Fail, ""),
    }
}

/// Reads `Ran 3 tests in 0.1s`, followed by `OK (skipped=1)`, `FAILED (failures=1, errors=1)` or `NO TESTS RAN`.
pub(super) fn counts(output: &str) -> Option<Counts> {
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let at = lines.iter().rposition(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words[..], ["Ran", _, "test" | "tests", "in", _])
    })?;
    let ran: u64 = lines[at].split(' ').nth(1)?.parse().ok()?;
    let result = lines[at + 1..]
        .iter()
        .find(|line| ["OK", "FAILED", "NO TESTS RAN"].iter().any(|word| line.starts_with(word)))?;
    let number = |name: &str| -> u64 {
        let numbers = result.split(['(', ')', ',']).filter_map(|part| part.trim().split_once('='));
        let named = numbers.filter(|(key, _)| *key == name);
        named.filter_map(|(_, number)| number.parse::<u64>().ok()).sum()
    };
    let failed = number("failures") + number("unexpected successes");
    let errors = number("errors");
    let not_passed = failed + errors + number("skipped") + number("expected failures");
    Some(Counts { passed: ran.saturating_sub(not_passed), failed, errors })
}
