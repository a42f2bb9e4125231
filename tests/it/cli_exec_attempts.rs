//! `eval --exec`: what code under test attempts, where namespaces can be had and where not: to get out, to look in, to pass.
//!
//! docs/reliability.md has the table.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::support::{Place, Ran, jsonl, task};
use serde_json::{Value, json};

const CALC: &str = "import attempt\n\n\ndef add(a, b):\n    return a + b\n";
const TESTS: &str = "\
import unittest
import calc


class Case(unittest.TestCase):
    def test_add(self):
        found = calc.add(1, 2)
        self.assertEqual(found, 3)

    def test_again(self):
        found = calc.add(2, 2)
        self.assertEqual(found, 4)

    @unittest.skip('always')
    def test_skipped(self):
        pass
";

/// Attempts, and whether each succeeds where namespaces enclose it and where none can be had.
const ATTEMPTS: [(&str, bool, bool); 49] = [
    ("tcp", false, true),
    ("tcp-ipv6", false, true),
    ("udp", false, false), // the test reads it
    ("unix-socket", false, true),
    ("abstract-socket", false, true),
    ("packet-socket", false, false),
    ("vsock", false, false),
    ("alg-socket", false, false),
    ("key-file", false, true),
    ("password-file", false, true),
    ("other-file", true, true),
    ("answer-file", false, true),
    ("answer-task", false, true),
    ("answer-results", false, true),
    ("variable", false, false),
    ("write-outside", false, false), // the test looks for it
    ("write-home", false, false),
    ("write-etc", false, true),
    ("write-sys", false, false),
    ("write-proc-sys", false, true), // as root
    ("mount", false, false),
    ("unmount", false, false),
    ("mount-new", false, false),
    ("pivot", false, false),
    ("chroot", false, false),
    ("namespace", false, false),
    ("namespace-clone3", false, false),
    ("namespace-enter", false, false),
    ("processes", false, true),
    ("kill", false, true),
    ("guard-memory", false, true), // as root
    ("ptrace", false, false),
    ("read-memory", false, false),
    ("compare", false, false),
    ("descriptors", false, false),
    ("keys", false, false),
    ("bpf", false, false),
    ("perf", false, false),
    ("userfaultfd", false, false),
    ("io-uring", false, false),
    ("module", false, false),
    ("kernel-log", false, false),
    ("host-name", false, false),
    ("clock", false, false),
    ("unfiltered", false, false),
    ("devices", false, true),
    ("terminal", false, false),
    ("leave", false, false),
    ("left", false, true), // what lies outside the copy and the scratch folder
];

/// Marks code that passes.
const PASSES: &str = "passes";

/// Code that fakes its verdict, and the reason why it fails. A few pass: docs/reliability.md.
const FAKES: [(&str, &str, &str); 18] = [
    ("exit", "import os; os._exit(0)", "without unittest's summary"),
    ("exit-kindly", "import sys; sys.exit(0)", ""),
    ("summary", "attempt.fake_summary()", "ended without their report"),
    (
        "at-exit",
        "import atexit; atexit.register(attempt.fake_summary); return None",
        "failed by their report",
    ),
    ("skip", "import unittest; raise unittest.SkipTest('x')", "unittest ran no test"),
    (
        "assert",
        "import unittest; unittest.TestCase.assertEqual = lambda *a, **k: None",
        "TestCase.assertEqual",
    ),
    (
        "assert-code",
        "import unittest\n    def f(self, a, b, msg=None): pass\n    unittest.TestCase.assertEqual.__code__ = f.__code__",
        "TestCase.assertEqual",
    ),
    (
        "assert-of-case",
        "import sys; sys._getframe(1).f_locals['self'].assertEqual = lambda *a, **k: None",
        "Case().assertEqual",
    ),
    (
        "assert-of-class",
        "import sys; type(sys._getframe(1).f_locals['self']).assertEqual = lambda *a, **k: None",
        "Case.assertEqual",
    ),
    (
        "result",
        "import unittest; r = unittest.TestResult; r.addFailure = r.addError = lambda *a: None; r.wasSuccessful = lambda s: True",
        "TestResult.addError",
    ),
    (
        "outcome",
        "import contextlib, unittest.case as c\n    @contextlib.contextmanager\n    def f(self, *a, **k):\n        try: yield\n        \
         except BaseException: pass\n    c._Outcome.testPartExecutor = f",
        "_Outcome.testPartExecutor",
    ),
    (
        "built-in",
        "import builtins; builtins.print = lambda *a: None; return a + b",
        "builtins.print",
    ),
    ("report", "attempt.fake_report(lambda handle: [b'0' * 32])", "a report of tests was forged"),
    ("report-of-its-own", "attempt.fake_report(attempt.asked)", "ended without their report"),
    (
        "tests",
        "import os\n    for name in os.listdir('tests'): open('tests/' + name, 'w').close()",
        "",
    ),
    // What is not noticed: docs/reliability.md.
    ("equal", "class E:\n        def __eq__(self, other): return True\n    return E()", PASSES),
    (
        "assert-once",
        "import unittest\n    o = unittest.TestCase.assertEqual\n    def f(*a): unittest.TestCase.assertEqual = o\n    \
         unittest.TestCase.assertEqual = f",
        PASSES,
    ),
    ("search", "attempt.fake_report(attempt.searched)", PASSES),
];

struct Outcome {
    status: String,
    reason: String,
    output: String,
}

/// How predictions are run.
#[derive(Default)]
struct Way<'a> {
    /// Test command, unittest's if it is empty.
    runner: &'a str,
    /// Command that runs the program.
    prefix: &'a str,
    /// More environment variables, as words of a shell.
    variables: &'a str,
    /// More flags.
    flags: &'a str,
}

/// Runs each code as a prediction of its own, one after another.
fn outcomes(place: &Place, codes: &[String], way: &Way<'_>) -> (Ran, Vec<Outcome>) {
    place.write("repos/demo/calc.py", CALC);
    place.write("repos/demo/attempt.py", include_str!("../fixtures/attempts/attempt.py"));
    place.write("repos/demo/tests/__init__.py", "");
    place.write("repos/demo/tests/test_calc.py", TESTS);
    place.write("tasks.jsonl", jsonl(&[task("demo/0", "demo/calc.py", CALC, 3, 4)]));
    place.write("home/empty", "");
    let predictions: Vec<String> = codes.iter().map(|code| format!("    {code}")).collect();
    place.write("p.jsonl", jsonl(&[json!({"task_id": "demo/0", "pred": predictions})]));
    let Way { runner, prefix, variables, flags } = way;
    let runner = if runner.is_empty() { "python3 -m unittest" } else { runner };
    let ran = place.shell(&format!(
        "export HOME=\"$PWD/home\" OUTSIDE=\"$PWD\" GITHUB_TOKEN=secret {variables}
         {prefix} repoformer eval --exec --test-cmd '{runner}' --predictions p.jsonl --repos-dir repos --tasks tasks.jsonl \
             --cache-dir cache --threads 1 --per-task --format json --timeout 30 {flags}"
    ));
    let results = match place.path("cache/exec/tasks/results.jsonl").exists() {
        true => place.records("cache/exec/tasks/results.jsonl"),
        false => Vec::new(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found =
        results.iter().filter(|record| record["kind"] == "prediction").map(|record| Outcome {
            status: text(&record["status"]),
            reason: text(&record["reason"]),
            output: text(&record["output_tail"]),
        });
    (ran, found.collect())
}

/// Prefix of a command that runs it where no user namespace can be made; none if this machine has none anyway.
fn without_namespaces(place: &Place) -> Option<String> {
    let inside = "echo 0 >/proc/sys/user/max_user_namespaces && \"$@\"";
    let prefix = format!("unshare -Ur sh -c '{inside}' sh");
    (place.shell(&format!("{prefix} true")).code == Some(0)).then_some(prefix)
}

/// A process outside, whose command line has this word; ended with the test.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

fn attempt(word: &str, enclosed: bool) {
    let place = Place::empty();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let _tcp6 = TcpListener::bind(("::1", port));
    let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    udp.set_nonblocking(true).unwrap();
    let _file = UnixListener::bind(place.path("socket")).unwrap();
    let name = format!("repoformer-{word}");
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    let _sleeper = Sleeper(std::process::Command::new("sleep").arg(word).spawn().unwrap());
    for name in ["home/.ssh/id_ed25519", "home/.netrc", "home/notes.txt"] {
        place.write(name, "private");
    }
    let variables = format!("PORT={port} WORD={word}");
    let mut way = Way { variables: &variables, ..Way::default() };
    let prefix = without_namespaces(&place);
    if !enclosed {
        let Some(prefix) = &prefix else {
            return;
        };
        way = Way { prefix, flags: "--isolation auto", ..way };
    }
    let code = |(name, ..): &(&str, bool, bool)| format!("attempt.run('{name}'); return a + b");
    let codes: Vec<String> = ATTEMPTS.iter().map(code).collect();
    let (ran, found) = outcomes(&place, &codes, &way);
    assert_eq!(found.len(), ATTEMPTS.len(), "{}\n{}", ran.stderr, ran.stdout);
    let mut wrong = Vec::new();
    for ((name, where_enclosed, elsewhere), outcome) in ATTEMPTS.iter().zip(&found) {
        let wanted = if enclosed { where_enclosed } else { elsewhere };
        let said = |word: &str| outcome.output.contains(&format!("{word} {name}\n"));
        if said("SUCCESS") != *wanted || said("failure") == *wanted || outcome.status != "pass" {
            wrong
                .push(format!("{name}: {} {}\n{}", outcome.status, outcome.reason, outcome.output));
        }
    }
    // No IPv6, or another program on its port.
    wrong.retain(|line| !line.starts_with("tcp-ipv6") || enclosed);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(place.path("escaped").exists(), !enclosed);
    assert_eq!(place.path("home/escaped").exists(), !enclosed);
    assert_eq!(udp.recv(&mut [0; 8]).is_ok(), !enclosed);
    let left = format!("/tmp/left-behind-{word}");
    assert_eq!(std::fs::remove_file(left).is_ok(), !enclosed);
}

#[test]
#[ignore = "needs python3"]
fn nothing_gets_out_of_namespaces() {
    attempt("4343.1", true);
}

#[test]
#[ignore = "needs python3"]
fn without_namespaces_calls_are_refused_all_the_same() {
    attempt("4343.2", false);
}

/// Where namespaces are missing, nothing runs unless the user says so.
#[test]
#[ignore = "needs python3"]
fn what_cannot_be_enclosed_is_refused() {
    let place = Place::empty();
    let Some(prefix) = without_namespaces(&place) else {
        return;
    };
    let (ran, found) =
        outcomes(&place, &["return 3".into()], &Way { prefix: &prefix, ..Way::default() });
    assert_eq!(found.len(), 0);
    ran.failed().says(&["runs cannot be isolated here", "--isolation auto"]);
}

fn fake(fakes: &[(&str, &str, &str)], runner: &str, flags: &str) {
    let place = Place::empty();
    // Right for the first test, so that what a code changes is there for the second.
    let code = |(_, code, _): &(&str, &str, &str)| format!("{code}\n    return 3");
    let codes: Vec<String> = fakes.iter().map(code).collect();
    let (ran, found) = outcomes(&place, &codes, &Way { runner, flags, ..Way::default() });
    assert_eq!(found.len(), fakes.len(), "{}\n{}", ran.stderr, ran.stdout);
    for ((name, _, reason), Outcome { status, reason: said, output }) in fakes.iter().zip(&found) {
        let passes = *reason == PASSES;
        assert_eq!(status == "pass", passes, "{name}: {said}\n{output}");
        assert!(passes || said.contains(reason), "{name}: {said}, not {reason}\n{output}");
    }
}

#[test]
#[ignore = "needs python3"]
fn a_faked_verdict_of_unittest_does_not_pass() {
    fake(&FAKES, "", "");
    fake(&FAKES, "", "--isolation off");
}

#[test]
#[ignore = "needs python3 with pytest"]
fn a_faked_verdict_of_pytest_does_not_pass() {
    // Its captured output and its words differ; what passes does not.
    let of_both =
        FAKES.map(|(name, code, reason)| (name, code, if reason == PASSES { reason } else { "" }));
    let own = [
        ("plugin", "attempt.plugin()", ""),
        ("leave", "import pytest; pytest.exit('enough', returncode=0)", ""),
    ];
    fake(&[&of_both[..], &own].concat(), "python3 -m pytest -q -p no:cacheprovider", "");
}
