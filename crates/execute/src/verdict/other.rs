//! Summaries of other languages' runners: Maven, Gradle, jest, vitest, mocha, node, dotnet.

use super::status::{Counts, Status, Verdict, by_code, verdict};
use super::{pytest, unittest};

/// Judges by the last known summary in the output, or else by the exit code alone.
pub(super) fn judge(code: i32, output: &str) -> (Option<Counts>, Verdict) {
    let nothing = [
        "No tests found", "No test files found", "No tests to run", "No test is available",
        "No test matches", "> Task :test NO-SOURCE",
    ];
    if let Some(counts) = counts(output) {
        return (Some(counts), by_counts(code, counts));
    }
    if let Some(counts) = unittest::counts(output) {
        return (Some(counts), unittest::judge(code, Some(counts), output));
    }
    if let Some(counts) = pytest::counts(output) {
        return (Some(counts), pytest::judge(code, Some(counts), output));
    }
    let found = match nothing.iter().find(|text| output.contains(**text)) {
        Some(text) => verdict(Status::NoTests, *text),
        None => by_code(code),
    };
    (None, found)
}

fn by_counts(code: i32, counts: Counts) -> Verdict {
    match (code, counts) {
        (0, Counts { passed: 0, .. }) => {
            verdict(Status::NoTests, "no test ran, or all were skipped")
        }
        (0, _) => verdict(Status::Pass, ""),
        (code, _) if code > 128 => by_code(code),
        _ if counts == Counts::default() => verdict(Status::Error, format!("exit code {code}")),
        _ => verdict(Status::Fail, ""),
    }
}

/// Reads the summaries of Java's, JavaScript's and .NET's runners; the summaries of several modules are added up.
fn counts(output: &str) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in output.lines().map(str::trim) {
        let number = |name: &str, separator: char| -> Option<u64> {
            let after = &line[line.find(name)? + name.len()..];
            let digits = after.trim_start_matches([separator, ' ']);
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().ok()
        };
        let before = |name: &str| -> u64 {
            let words: Vec<&str> =
                line.split([' ', ',', '|']).filter(|word| !word.is_empty()).collect();
            let at = words.iter().position(|word| *word == name);
            at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok()).unwrap_or(0)
        };
        let (passed, failed, errors) = if let Some(ran) = number("Tests run:", ':') {
            // Maven prints one summary per class (with the time) and one overall, which counts.
            let of = |name| number(name, ':').unwrap_or(0);
            let (failed, errors) = (of("Failures:"), of("Errors:"));
            let passed = ran.saturating_sub(failed + errors + of("Skipped:"));
            if line.contains("Time elapsed") {
                continue;
            }
            (passed, failed, errors)
        } else if line.starts_with("Tests:") || (line.starts_with("Tests ") && line.ends_with(')'))
        {
            (before("passed"), before("failed"), 0)
        } else if let Some(passed) = number("# pass ", ' ').filter(|_| line.starts_with("# pass "))
        {
            (passed, 0, 0)
        } else if let Some(failed) = number("# fail ", ' ').filter(|_| line.starts_with("# fail "))
        {
            (0, failed, 0)
        } else if line.ends_with(" passing") || line.contains(" passing (") {
            (before("passing"), 0, 0)
        } else if line.ends_with(" failing") {
            (0, before("failing"), 0)
        } else if let (Some(failed), Some(passed)) =
            (number("Failed:", ':'), number("Passed:", ':'))
        {
            (passed, failed, 0)
        } else {
            continue;
        };
        let all = found.get_or_insert_with(Counts::default);
        all.passed += passed;
        all.failed += failed;
        all.errors += errors;
    }
    found
}
