//! Finds the line of a test run's output that best explains how the run ended.

/// Maximum number of characters of a line that are shown.
const SHOWN: usize = 200;

/// Prefixes of lines in which runners report a failure, or a reason why they cannot run.
const BEGINNINGS: [&str; 10] = [
    "FAILED ", "ERROR ", "ERROR:", "E   ", "INTERNALERROR> ", "FAIL:", "[ERROR] ", "not ok ", "✕ ",
    "● ",
];
/// Other parts of such lines.
const PARTS: [&str; 5] = ["Error: ", "error: ", "Exception: ", "not found", "No such file"];

/// Returns the last line that names a failure, or else the last line with text; `None` if the output has none.
pub(super) fn telling_line(output: &str) -> Option<String> {
    let lines = || output.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let names_a_failure = |line: &&str| {
        BEGINNINGS.iter().any(|begin| line.starts_with(begin))
            || PARTS.iter().any(|part| line.contains(part))
    };
    let line = lines().find(names_a_failure).or_else(|| lines().next())?;
    Some(match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_names_a_failure_is_found() {
        for (output, wanted) in [
            ("", None),
            (" \n\n", None),
            ("3 passed\nwriting report\n\n", Some("writing report")),
            (
                "..F\nE   assert 1 == 2\nFAILED tests/t.py::test_a - assert 1 == 2\n1 failed, 2 passed in 0.1s\n",
                Some("FAILED tests/t.py::test_a - assert 1 == 2"),
            ),
            (
                "INTERNALERROR> Traceback\nINTERNALERROR> KeyError: 'x'\n\nno tests ran in 0.1s\n",
                Some("INTERNALERROR> KeyError: 'x'"),
            ),
            (
                "usage: pytest\npytest: error: unrecognized arguments: --cov\n  inifile: x\n",
                Some("pytest: error: unrecognized arguments: --cov"),
            ),
            (
                "FAIL: test_a (t.T)\nTraceback\nAssertionError: 1 != 2\n\nRan 3 tests\n",
                Some("AssertionError: 1 != 2"),
            ),
        ] {
            assert_eq!(telling_line(output).as_deref(), wanted, "{output}");
        }
        let long = telling_line(&"é".repeat(300)).unwrap();
        assert_eq!(long.chars().count(), 201);
    }
}
