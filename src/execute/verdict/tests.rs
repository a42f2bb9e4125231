//! Outputs as the runners print them.

use super::*;

fn status(runner: Runner, code: i32, output: &str) -> Status {
    let outcome = RunOutcome {
        ended: Ended::Exited,
        exit_code: Some(code),
        output: output.to_owned(),
        ..RunOutcome::default()
    };
    judge(runner, &outcome).status
}

#[test]
fn pytest_as_its_documentation_has_it() {
    // Exit codes of pytest's documentation; summaries as pytest 8 prints them.
    let of = |code, output: &str| status(Runner::Pytest, code, output);
    assert_eq!(of(0, "..  [100%]\n2 passed in 0.01s\n"), Status::Pass);
    assert_eq!(of(0, "=== 2 passed, 1 warning in 61.01s (0:01:01) ==="), Status::Pass);
    assert_eq!(of(0, "=== 3 skipped in 0.01s ==="), Status::NoTests);
    assert_eq!(of(0, "1 xfailed in 0.02s"), Status::NoTests);
    assert_eq!(of(0, "."), Status::Error); // os._exit(0) in the middle
    assert_eq!(of(0, "5 passed soon\n"), Status::Error);
    assert_eq!(of(0, "..s   [100%]\n"), Status::Pass); // -qq
    // os._exit(0) after a whole line of progress, or in the last.
    assert_eq!(of(0, "........ [ 88%]\n...."), Status::Error);
    assert_eq!(of(0, "test_a.py .. [ 50%]\ntest_b.py "), Status::Error);
    assert_eq!(of(0, "test_a.py .F [ 50%]\ntest_b.py .. [100%]"), Status::Error);
    // atexit.register(os._exit, 0), or `pytest | tail`.
    assert_eq!(of(0, "2 failed, 1 passed in 0.1s"), Status::Fail);
    assert_eq!(of(0, "1 passed, 1 error in 0.1s"), Status::Fail);
    assert_eq!(of(1, "1 failed, 2 passed in 0.12s"), Status::Fail);
    assert_eq!(of(1, "1 passed, 1 error in 0.12s"), Status::Error);
    assert_eq!(of(2, "1 error in 0.12s"), Status::Error);
    assert_eq!(of(5, "no tests ran in 0.00s"), Status::NoTests);
    assert_eq!(of(4, "ERROR: file or directory not found: x"), Status::Error);
    assert_eq!(of(1, "/usr/bin/python3: No module named pytest"), Status::EnvironmentBroken);
    assert_eq!(of(127, "sh: 1: pytest: not found"), Status::EnvironmentBroken);
    assert_eq!(of(139, ""), Status::Error);
    // A prediction that imports something that is not there breaks itself, not the environment.
    let own = "E   ModuleNotFoundError: No module named pytest_x\n1 error in 0.1s";
    assert_eq!(of(2, own), Status::Error);
}

#[test]
fn unittest_as_python_prints_it() {
    // Printed by Python 3.11 and 3.12.
    let of = |code, output: &str| status(Runner::Unittest, code, output);
    assert_eq!(of(0, "...\n---\nRan 3 tests in 0.001s\n\nOK\n"), Status::Pass);
    assert_eq!(
        of(0, "Ran 3 tests in 0.001s\n\nOK (skipped=1, expected failures=1)\n"),
        Status::Pass
    );
    assert_eq!(of(0, "Ran 2 tests in 0.001s\n\nOK (skipped=2)\n"), Status::NoTests);
    assert_eq!(of(0, "Ran 0 tests in 0.000s\n\nOK\n"), Status::NoTests);
    assert_eq!(of(5, "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n"), Status::NoTests);
    assert_eq!(of(1, "Ran 3 tests in 0.001s\n\nFAILED (failures=1)\n"), Status::Fail);
    let unloaded =
        "ERROR: m (unittest.loader._FailedTest.m)\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n";
    assert_eq!(of(1, unloaded), Status::Error);
    assert_eq!(of(0, ""), Status::Error);
    assert_eq!(of(0, "Ran 3 tests in 0.001s\n\nFAILED (failures=2)\n"), Status::Fail);
    let expected = "Ran 2 tests in 0.1s\n\nOK (expected failures=1)\n";
    assert_eq!(of(0, expected), Status::Pass);
    let one_more = "ERROR: m (unittest.loader._FailedTest.m)\nRan 2 tests in 0.1s\n\nFAILED (errors=1, expected failures=1)\n";
    assert_eq!(of(1, one_more), Status::Error);
    let surprise = "Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)\n";
    assert_eq!(of(1, surprise), Status::Fail);
    assert_eq!(of(1, "Traceback"), Status::Error);
}

#[test]
fn other_runners_are_known_by_their_summaries() {
    let of = |code, output: &str| status(Runner::Auto, code, output);
    assert_eq!(of(0, "anything"), Status::Pass);
    assert_eq!(of(0, "Tests:       1 failed, 2 passed, 3 total"), Status::Fail);
    assert_eq!(of(3, "anything"), Status::Fail);
    assert_eq!(of(0, "2 passed in 0.01s"), Status::Pass);
    assert_eq!(of(0, "Ran 0 tests in 0.000s\n\nOK"), Status::NoTests);
    // Maven Surefire.
    assert_eq!(
        of(0, "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1\n[INFO] BUILD SUCCESS"),
        Status::Pass
    );
    assert_eq!(
        of(0, "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2"),
        Status::NoTests
    );
    assert_eq!(of(1, "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0"), Status::Fail);
    assert_eq!(of(0, "[INFO] No tests to run."), Status::NoTests);
    // jest, vitest, mocha, node --test.
    assert_eq!(of(0, "Tests:       1 skipped, 2 passed, 3 total"), Status::Pass);
    assert_eq!(of(1, "Tests:       1 failed, 2 passed, 3 total"), Status::Fail);
    assert_eq!(of(0, "Tests:       2 skipped, 2 total"), Status::NoTests);
    assert_eq!(of(0, "      Tests  3 passed (3)"), Status::Pass);
    assert_eq!(of(0, "  3 passing (10ms)"), Status::Pass);
    assert_eq!(of(0, "  0 passing (1ms)"), Status::NoTests);
    assert_eq!(of(1, "  2 passing (9ms)\n  1 failing"), Status::Fail);
    assert_eq!(of(0, "# tests 2\n# pass 2\n# fail 0"), Status::Pass);
    assert_eq!(of(1, "No tests found, exiting with code 1"), Status::NoTests);
    // dotnet test.
    assert_eq!(
        of(0, "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3"),
        Status::Pass
    );
    assert_eq!(
        of(1, "Failed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4"),
        Status::Fail
    );
    assert_eq!(of(0, "No test is available in a.dll."), Status::NoTests);
    // By exit code alone a summary says nothing.
    assert_eq!(status(Runner::ExitCode, 0, "Ran 0 tests in 0.000s\n\nOK"), Status::Pass);
}

#[test]
fn limits_are_told_apart() {
    let of = |ended| judge(Runner::Auto, &RunOutcome { ended, ..RunOutcome::default() }).status;
    assert_eq!(of(Ended::Wall), Status::Timeout);
    assert_eq!(of(Ended::Cpu), Status::Timeout);
    assert_eq!(of(Ended::Memory), Status::OutOfMemory);
    assert_eq!(of(Ended::Disk), Status::Error);
    assert_eq!(judge(Runner::Auto, &RunOutcome::refused("x")).status, Status::EnvironmentBroken);
    assert_eq!("exit-code".parse::<Runner>().unwrap(), Runner::ExitCode);
    assert_eq!(Runner::Auto.of_command("python -m pytest -q"), Runner::Pytest);
}
