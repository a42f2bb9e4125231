//! Tests with outputs as the runners print them.

use super::Status::{Error, Fail, NoTests, Pass};
use super::*;

/// Checks that exit codes and outputs give these statuses.
fn assert_judged(runner: Runner, cases: &[(i32, &str, Status)]) {
    for &(code, output, status) in cases {
        let (exit_code, output) = (Some(code), output.to_owned());
        let ended = RunEnd::Exited;
        let outcome = RunOutcome { ended, exit_code, output, ..RunOutcome::default() };
        assert_eq!(judge(runner, &outcome).status, status, "{code} {}", outcome.output);
    }
}

#[test]
fn pytest_as_its_documentation_has_it() {
    let cases = [
        // Exit codes as documented by pytest; summaries as printed by pytest 8.
        (0, "..  [100%]\n2 passed in 0.01s\n", Pass),
        (0, "=== 2 passed, 1 warning in 61.01s (0:01:01) ===", Pass),
        (0, "=== 3 skipped in 0.01s ===", NoTests),
        (0, "1 xfailed in 0.02s", NoTests),
        (0, ".", Error), // os._exit(0) in the middle
        (0, "5 passed soon\n", Error),
        (0, "..s   [100%]\n", Pass), // -qq
        // os._exit(0) after a complete progress line, or within the last one.
        (0, "........ [ 88%]\n....", Error),
        (0, "test_a.py .. [ 50%]\ntest_b.py ", Error),
        (0, "test_a.py .F [ 50%]\ntest_b.py .. [100%]", Error),
        // atexit.register(os._exit, 0), or `pytest | tail`.
        (0, "2 failed, 1 passed in 0.1s", Fail),
        (0, "1 passed, 1 error in 0.1s", Fail),
        (1, "1 failed, 2 passed in 0.12s", Fail),
        (1, "1 passed, 1 error in 0.12s", Error),
        (2, "1 error in 0.12s", Error),
        (5, "no tests ran in 0.00s", NoTests),
        (4, "ERROR: file or directory not found: x", Error),
        (1, "/usr/bin/python3: No module named pytest", Status::EnvironmentBroken),
        (127, "sh: 1: pytest: not found", Status::EnvironmentBroken),
        (139, "", Error),
        // A prediction that imports a missing module is at fault itself, not the environment.
        (2, "E   ModuleNotFoundError: No module named pytest_x\n1 error in 0.1s", Error),
    ];
    assert_judged(Runner::Pytest, &cases);
}

#[test]
fn unittest_as_python_prints_it() {
    let cases = [
        // Printed by Python 3.11 and 3.12.
        (0, "...\n---\nRan 3 tests in 0.001s\n\nOK\n", Pass),
        (0, "Ran 3 tests in 0.001s\n\nOK (skipped=1, expected failures=1)\n", Pass),
        (0, "Ran 2 tests in 0.001s\n\nOK (skipped=2)\n", NoTests),
        (0, "Ran 0 tests in 0.000s\n\nOK\n", NoTests),
        (5, "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", NoTests),
        (1, "Ran 3 tests in 0.001s\n\nFAILED (failures=1)\n", Fail),
        (1, "ERROR: m (_FailedTest.m)\nRan 1 test in 0s\n\nFAILED (errors=1)", Error),
        (0, "", Error),
        (0, "Ran 3 tests in 0.001s\n\nFAILED (failures=2)\n", Fail),
        (0, "Ran 2 tests in 0.1s\n\nOK (expected failures=1)\n", Pass),
        (
            1,
            "m (_FailedTest.m)\nRan 2 tests in 0s\n\nFAILED (errors=1, expected failures=1)",
            Error,
        ),
        (1, "Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)\n", Fail),
        (1, "Traceback", Error),
    ];
    assert_judged(Runner::Unittest, &cases);
}

#[test]
fn other_runners_are_known_by_their_summaries() {
    let cases = [
        (0, "anything", Pass),
        (0, "Tests:       1 failed, 2 passed, 3 total", Fail),
        (3, "anything", Fail),
        (0, "2 passed in 0.01s", Pass),
        (0, "Ran 0 tests in 0.000s\n\nOK", NoTests),
        // Maven Surefire.
        (0, "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1\n[INFO] BUILD SUCCESS", Pass),
        (0, "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2", NoTests),
        (1, "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0", Fail),
        (0, "[INFO] No tests to run.", NoTests),
        // jest, vitest, mocha, node --test.
        (0, "Tests:       1 skipped, 2 passed, 3 total", Pass),
        (1, "Tests:       1 failed, 2 passed, 3 total", Fail),
        (0, "Tests:       2 skipped, 2 total", NoTests),
        (0, "      Tests  3 passed (3)", Pass),
        (0, "  3 passing (10ms)", Pass),
        (0, "  0 passing (1ms)", NoTests),
        (1, "  2 passing (9ms)\n  1 failing", Fail),
        (0, "# tests 2\n# pass 2\n# fail 0", Pass),
        (1, "No tests found, exiting with code 1", NoTests),
        // dotnet test.
        (0, "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3", Pass),
        (1, "Failed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4", Fail),
        (0, "No test is available in a.dll.", NoTests),
    ];
    assert_judged(Runner::Auto, &cases);
    // If only the exit code counts, a summary is ignored.
    assert_judged(Runner::ExitCode, &[(0, "Ran 0 tests in 0.000s\n\nOK", Pass)]);
}

#[test]
fn limits_are_told_apart() {
    let of = |ended| judge(Runner::Auto, &RunOutcome { ended, ..RunOutcome::default() }).status;
    assert_eq!(of(RunEnd::Wall), Status::Timeout);
    // Other programs left the run no processor, so nothing is known about it.
    let of_others = RunOutcome { ended: RunEnd::Wall, is_starved: true, ..RunOutcome::default() };
    let Verdict { status, reason, is_lasting, .. } = judge(Runner::Auto, &of_others);
    assert_eq!((status, is_lasting), (Status::Timeout, false));
    assert!(reason.ends_with("without a processor"), "{reason}");
    assert_eq!(of(RunEnd::Cpu), Status::Timeout);
    assert_eq!(of(RunEnd::Memory), Status::OutOfMemory);
    // A result that other programs may have caused is not kept.
    let lasts =
        |ended| judge(Runner::Auto, &RunOutcome { ended, ..RunOutcome::default() }).is_lasting;
    assert_eq!([RunEnd::Memory, RunEnd::Processes].map(lasts), [true; 2]);
    assert_eq!([RunEnd::SystemMemory, RunEnd::SystemProcesses].map(lasts), [false; 2]);
    assert_eq!(of(RunEnd::Disk), Status::Error);
    assert_eq!(
        judge(Runner::Auto, &RunOutcome::from_refusal("x")).status,
        Status::EnvironmentBroken
    );
    assert_eq!("exit-code".parse::<Runner>().unwrap(), Runner::ExitCode);
    assert_eq!(Runner::Auto.of_command("python -m pytest -q"), Runner::Pytest);
}
