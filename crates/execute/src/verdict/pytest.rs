//! Results of pytest: exit codes 0 passed, 1 failed, 2 to 4 error, 5 no tests, and a summary in the last line.

use super::status::{Counts, Status, Verdict, by_code, verdict};

/// Judges a run by its exit code and its counts.
pub(super) fn judge(code: i32, counts: Option<Counts>, output: &str) -> Verdict {
    match (code, counts) {
        (0, Some(Counts { passed: 0, failed: 0, errors: 0 })) => {
            verdict(Status::NoTests, "every test was skipped")
        }
        (0, Some(_)) => verdict(Status::Pass, ""),
        (0, None) if all_passed(output) => verdict(Status::Pass, ""),
        (0, None) => verdict(Status::Error, "exit code 0 without pytest's summary"),
        (1, Some(counts)) if counts.failed == 0 && counts.errors > 0 => {
            verdict(Status::Error, "a test could not be set up")
        }
        (1, Some(_)) => verdict(Status::Fail, ""),
        // An interpreter that cannot start pytest also exits with 1.
        (1, None) if output.contains("FAILED ") || !progress(output).0.is_empty() => {
            verdict(Status::Fail, "")
        }
        (5, _) => verdict(Status::NoTests, "pytest collected no test"),
        // `make` exits with 2 when one of its commands fails.
        (2, Some(counts)) if counts.failed > 0 => verdict(Status::Fail, ""),
        (2, _) => verdict(Status::Error, "the tests could not be collected"),
        (4, _) => verdict(Status::Error, "pytest does not know such tests or options"),
        (code, _) if code > 128 => by_code(code),
        (code, _) => verdict(Status::Error, format!("exit code {code}")),
    }
}

/// Returns the marks in pytest's progress lines, and whether the last line shows 100 %; with `-qq` this is the only summary.
fn progress(output: &str) -> (String, bool) {
    let (mut all, mut is_whole) = (String::new(), false);
    for line in output.lines() {
        let Some((before, percent)) =
            line.trim_end().strip_suffix("%]").and_then(|line| line.rsplit_once('['))
        else {
            continue;
        };
        let marks = before.split_whitespace().last().unwrap_or("");
        if !marks.is_empty() && marks.chars().all(|c| ".sxXFE".contains(c)) {
            all += marks;
            is_whole = percent.trim() == "100";
        }
    }
    (all, is_whole)
}

/// Returns whether the progress is complete, with at least one passed test and no failed one.
fn all_passed(output: &str) -> bool {
    let (marks, is_whole) = progress(output);
    is_whole && marks.contains('.') && !marks.contains(['F', 'E'])
}

/// Reads `=== 1 failed, 2 passed, 1 warning in 0.12s (0:00:00) ===`, with or without the equals signs.
pub(super) fn counts(output: &str) -> Option<Counts> {
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
