//! `eval --exec`: what code under test attempts, where namespaces can be had and where not: to get out, to look in, to pass.
//!
//! docs/sandbox.md says what is promised.

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
const ATTEMPTS: &[(&str, bool, bool)] = &[
    ("tcp", false, true),
    ("tcp-ipv6", false, true),
    ("udp", false, false), // the test reads it
    ("unix-socket", false, true),
    ("abstract-socket", false, true),
    ("relative-socket", false, true),
    ("renamed-socket", false, true),
    ("pipe-beside", false, true),
    ("at-socket", false, true),
    ("network-socket", false, true),
    ("root-socket", false, true),
    ("line-socket", false, true),
    ("folder-socket", false, true),
    ("descriptor-socket", false, true),
    ("packet-socket", false, false),
    ("vsock", false, false),
    ("netlink-socket", false, false),
    ("raw-socket", false, false),
    ("other-protocols", false, false),
    ("alg-socket", false, false),
    ("key-file", false, true),
    ("password-file", false, true),
    ("tools-files", false, true),
    ("other-file", true, true),
    ("answer-file", false, true),
    ("answer-task", false, true),
    ("answer-cache", false, true),
    ("answer-results", false, true),
    ("answer-predictions", false, true),
    ("answer-tests", false, true),
    ("answer-copy", false, true),
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
    ("change-devices", false, true), // as root
    ("change-hidden", false, true),
    ("change-proc", false, true),
    ("lease", false, false),
    ("open-file-lock", false, false),
    ("write-hint", false, false),
    ("encryption-keys", false, false),
    ("terminal", false, false),
    ("guard-files", false, false),
    ("guard-time", false, false),
    ("guard-size", false, false),
    ("guard-priority", false, false),
    ("real-time", false, false),
    ("linger", false, false),
    ("guard-choice", false, true),
    ("guard-signals", false, false),
    ("attributes", false, false),
    ("flags", false, false),
    ("places", false, false),
    ("moved-pages", false, false),
    ("requests-of-disks", false, false),
    ("socket-settings", false, false),
    ("shared-files", false, false),
    ("kernel-parts", false, false),
    ("share-of-signals", false, true),
    ("share-of-files", false, false),
    ("filters", false, false),
    ("groups", false, true), // as root
    ("own-limits", false, false),
    ("core-limit", false, false),
    ("core", false, false),
    ("large-pages", false, false),
    ("segment-table", false, false),
    ("futex-table", false, false),
    ("locked", false, false),
    ("named-memory", false, false),
    ("merged-memory", false, false),
    ("leave", false, false),
    ("left", false, true), // what lies outside the copy and the scratch folder
];

/// Marks code that passes.
const PASSES: &str = "passes";

/// Code that fakes its verdict, and the reason why it fails. A few pass: docs/sandbox.md.
const FAKES: [(&str, &str, &str); 25] = [
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
        "context-manager",
        "import contextlib; contextlib._GeneratorContextManager.__exit__ = lambda self, *e: [None for _ in self.gen] or True; return 3",
        "_GeneratorContextManager.__exit__",
    ),
    (
        "built-in",
        "import builtins; builtins.print = lambda *a: None; return a + b",
        "builtins.print",
    ),
    (
        "stop",
        "import unittest.case as c\n    if (a, b) == (1, 2): return 3\n    raise c._ShouldStop",
        "unittest.case._ShouldStop",
    ),
    (
        "test-code",
        "import sys; type(sys._getframe(1).f_locals['self']).test_again.__code__ = (lambda self: None).__code__",
        "Case.test_again",
    ),
    (
        "test-of-class",
        "import sys; type(sys._getframe(1).f_locals['self']).test_again = lambda self: None",
        "Case.test_again",
    ),
    (
        "test-of-object",
        "import gc, sys; s = sys._getframe(1).f_locals['self']\n    for o in gc.get_objects():\n        if type(o) is type(s) and o is not s: \
         o.test_again = lambda: None",
        "Case().test_again",
    ),
    (
        "equality-of-type",
        "import sys; sys._getframe(1).f_locals['self'].addTypeEqualityFunc(int, lambda *a, **k: None); return 4",
        "addTypeEqualityFunc: int",
    ),
    ("report", "attempt.fake_report(lambda handle: [b'0' * 32])", "a report of tests was forged"),
    ("report-of-its-own", "attempt.fake_report(attempt.asked)", "ended without their report"),
    (
        "tests",
        "import os\n    for name in os.listdir('tests'): open('tests/' + name, 'w').close()",
        "",
    ),
    // What is not noticed: docs/sandbox.md.
    ("equal", "class E:\n        def __eq__(self, other): return True\n    return E()", PASSES),
    (
        "assert-once",
        "import unittest\n    o = unittest.TestCase.assertEqual\n    def f(*a): unittest.TestCase.assertEqual = o\n    \
         unittest.TestCase.assertEqual = f",
        PASSES,
    ),
    (
        "constant",
        "import sys; return [c for c in sys._getframe(1).f_code.co_consts if isinstance(c, int)][-1]",
        PASSES,
    ),
    ("search", "attempt.fake_report(attempt.searched)", PASSES),
];

/// More code that fakes its verdict, by unittest alone.
const OF_UNITTEST: [(&str, &str, &str); 5] = [
    (
        "expected-failure",
        "import sys; sys._getframe(1).f_locals['self']._outcome.expecting_failure = True; return 4",
        "expecting_failure",
    ),
    (
        "closure",
        "import unittest.result as r\n    for name in ('addFailure', 'addError'):\n        f = getattr(r.TestResult, name)\n        \
         for var, cell in zip(f.__code__.co_freevars, f.__closure__):\n            \
         if var in ('of', 'original'): cell.cell_contents = lambda *x: 'passed'\n    return 4",
        "TestResult.addError",
    ),
    ("counts", "attempt.fake_counts()", PASSES),
    (
        "result-object",
        "import gc, unittest\n    for o in gc.get_objects():\n        if isinstance(o, unittest.TestResult): \
         o.addFailure = lambda test, error, o=o: o.addSuccess(test)\n    return 4",
        "TextTestResult().addFailure",
    ),
    (
        "run-while-loading",
        "return 4\n\n\nimport atexit, unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    \
         def test_b(self): pass\n\n\nunittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))\n\
         atexit.register(attempt.fake_summary)\n\n",
        "failed by their report",
    ),
];

#[derive(Debug)]
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
    let mut files = ["cache/exec/tasks/results.jsonl", "found/results.jsonl"].into_iter();
    let file = files.find(|file| place.path(file).exists());
    let results = file.map(|file| place.records(file)).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found =
        results.iter().filter(|record| record["kind"] == "prediction").map(|record| Outcome {
            status: text(&record["status"]),
            reason: text(&record["reason"]),
            output: text(&record["output_tail"]),
        });
    (ran, found.collect())
}

/// Returns the prefix of a command that takes user namespaces away from it.
fn without_namespaces(place: &Place) -> String {
    let inside = "echo 0 >/proc/sys/user/max_user_namespaces && \"$@\"";
    let prefix = format!("unshare -Ur sh -c '{inside}' sh");
    place.shell(&format!("{prefix} true")).done();
    prefix
}

/// Sockets and a named pipe of a program outside, in a folder that no run gets a layer over.
const SERVER: &str = "\
import ctypes, os, socket, time
kept = []
# In folders of their own: by a name like that of an abstract socket, a name with line feeds, names that lead through the process, from
# another network and another root.
base = os.getcwd()
def listen(name):
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(name)
    kept[-1].listen()
def elsewhere(name, namespaces):
    os.mkdir(name)
    if os.fork() == 0:
        assert ctypes.CDLL(None).unshare(namespaces) == 0
        if name == 'root':
            os.chroot(name)
            listen('/socket')
        else:
            listen(os.path.join(base, name, 'socket'))
        # Ended with its parent.
        ctypes.CDLL(None).prctl(1, 9)
        time.sleep(600)
os.makedirs('line\\n/feed\\n')
assert len(base) < 88, 'the folder of temporary files has too long a name for sockets: ' + base
listen(os.path.join(base, 'line\\n/feed\\n/socket'))
elsewhere('network', 0x50000000)
elsewhere('root', 0x10000000)
while not (os.path.exists('network/socket') and os.path.exists('root/socket')):
    time.sleep(0.01)
for folder, name in ('at', '@at'), ('folder', '/proc/self/cwd/socket'):
    os.mkdir(folder)
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)
        os.chdir(folder)
        listen(name)
        time.sleep(600)
while not (os.path.exists('at/@at') and os.path.exists('folder/socket')):
    time.sleep(0.01)
os.mkdir('descriptor')
kept.append(os.open('descriptor', os.O_RDONLY))
listen('/dev/fd/%d/../descriptor/socket' % kept[-1])
for bound, name in ('relative', 'relative'), ('before', 'renamed'):
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(bound)
    kept[-1].listen()
    os.rename(bound, name)
os.mkfifo('pipe')
kept.append(os.open('pipe', os.O_RDWR))
open('ready', 'w').close()
time.sleep(600)
";

/// Starts a program that listens in a folder.
fn server(folder: &std::path::Path) -> Sleeper {
    let mut python = std::process::Command::new("python3");
    let mut server = Sleeper(python.args(["-c", SERVER]).current_dir(folder).spawn().unwrap());
    while !folder.join("ready").exists() {
        assert_eq!(server.0.try_wait().unwrap(), None, "the sockets are not open");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    server
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
    for name in [
        ".ssh/id_ed25519",
        ".netrc",
        "notes.txt",
        ".cache/huggingface/stored_tokens",
        ".config/github-copilot/apps.json",
        ".config/containers/auth.json",
        ".codex/auth.json",
        ".claude/.credentials.json",
        ".local/share/opencode/auth.json",
        ".m2/settings.xml",
        ".local/share/fish/fish_history",
        "snap/firefox/key4.db",
        ".var/app/x/key4.db",
    ] {
        place.write(&format!("home/{name}"), "private");
    }
    place.write("cache/exec/tasks/earlier.jsonl", "private");
    place.write("copies/demo/7/demo/calc.py", CALC); // of another worker
    // Whoever wrote a repository names its tests; what a user's command names stays.
    let test = ["cache", "p.jsonl", "tasks.jsonl", "map.jsonl"]
        .map(|name| format!("={}", place.path(name).display()))
        .concat();
    place.write("map.jsonl", jsonl(&[json!({"task_id": "demo/0", "tests": [test]})]));
    // Not below the folders for temporary files, nor the home folder.
    let sockets = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _server = server(sockets.path());
    let variables = format!("PORT={port} WORD={word} SOCKETS={}", sockets.path().display());
    let runner = "TESTS={tests} python3 -m unittest";
    let flags = "--tests map.jsonl --exec-results found/results.jsonl --work-dir copies";
    let open = format!("{flags} --isolation auto");
    let mut way = Way { runner, variables: &variables, flags, ..Way::default() };
    let prefix = if enclosed { String::new() } else { without_namespaces(&place) };
    if !enclosed {
        way = Way { prefix: &prefix, flags: &open, ..way };
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

/// Processes of the whole system are not shown by a `/proc` that is mounted elsewhere.
#[test]
#[ignore = "needs python3"]
fn another_list_of_processes_is_empty() {
    let place = Place::empty();
    // Not below the folders for temporary files, whose layers have no mounts in them.
    let other = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = other.path().display();
    let prefix = format!("unshare -Urm sh -c 'mount --rbind /proc {folder} && \"$@\"' sh");
    assert_eq!(place.shell(&format!("{prefix} ls {folder}/self/status")).code, Some(0));
    let code = format!("import os; assert not os.listdir('{folder}'); return a + b");
    let way = Way { prefix: &prefix, ..Way::default() };
    let (ran, found) = outcomes(&place, &[code], &way);
    let Outcome { status, reason, output } = &found[0];
    assert_eq!(status, "pass", "{reason}\n{output}\n{}", ran.stderr);
}

/// A socket has another path by each other mount of its file system.
#[test]
#[ignore = "needs python3"]
fn a_socket_that_another_mount_shows_is_not_reached() {
    let place = Place::empty();
    // Not below the folders for temporary files.
    let folders = [(); 2].map(|()| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let [own, other] = [&folders[0], &folders[1]].map(|folder| folder.path().display());
    let _open = UnixListener::bind(folders[0].path().join("s")).unwrap();
    let prefix = format!("unshare -Urm sh -c 'mount --bind {own} {other} && \"$@\"' sh");
    assert_eq!(place.shell(&format!("{prefix} test -S {other}/s")).code, Some(0));
    let code = format!(
        "import socket, os\n    for path in ['{own}/s', '{other}/s']:\n        try: socket.socket(1).connect(path)\n        \
         except OSError: continue\n        raise SystemExit(path)\n    return a + b"
    );
    let (ran, found) = outcomes(&place, &[code], &Way { prefix: &prefix, ..Way::default() });
    let Outcome { status, reason, output } = &found[0];
    assert_eq!(status, "pass", "{reason}\n{output}\n{}", ran.stderr);
}

/// On NixOS, all programs are in the folder of the services.
#[test]
#[ignore = "needs python3"]
fn of_the_folder_of_services_programs_stay() {
    let place = Place::empty();
    let make = "mkdir -p /run/current-system/sw /run/user/bin && touch /run/bus /run/user/bus /run/user/bin/x /run/current-system/sw/x";
    let prefix = format!("unshare -Urm sh -c 'mount -t tmpfs none /run && {make} && \"$@\"' sh");
    let code = "import os\n    found = [os.path.join(*part) for part in os.walk('/run') for part in [(part[0], n) for n in part[1] + part[2]]]\n    \
                assert sorted(found) == ['/run/current-system', '/run/current-system/sw', '/run/current-system/sw/x', '/run/user', \
                '/run/user/bin', '/run/user/bin/x'], found\n    return a + b";
    let variables = "PATH=\"$PATH:/run/user/bin\"";
    let way = Way { prefix: &prefix, variables, ..Way::default() };
    let (ran, found) = outcomes(&place, &[code.to_owned()], &way);
    let Outcome { status, reason, output } = &found[0];
    assert_eq!(status, "pass", "{reason}\n{output}\n{}", ran.stderr);
}

/// Where namespaces are missing, nothing runs unless the user says so.
#[test]
#[ignore = "needs python3"]
fn what_cannot_be_enclosed_is_refused() {
    let place = Place::empty();
    let prefix = without_namespaces(&place);
    let (ran, found) =
        outcomes(&place, &["return 3".into()], &Way { prefix: &prefix, ..Way::default() });
    assert_eq!(found.len(), 0);
    ran.failed().says(&["runs cannot be isolated here", "--isolation auto"]);
}

fn fake(fakes: &[(&str, &str, &str)], runner: &str, flags: &str) {
    let place = Place::empty();
    // Right for the first test, so that what a code changes is there for the second.
    let code = |(_, code, _): &(&str, &str, &str)| {
        if code.ends_with("\n\n") { (*code).to_owned() } else { format!("{code}\n    return 3") }
    };
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
    let all = [&FAKES[..], &OF_UNITTEST].concat();
    fake(&all, "", "");
    fake(&all, "", "--isolation off");
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

/// Plugins that settings name, and modules that pytest needs itself, are imported before any plugin is asked.
#[test]
#[ignore = "needs python3 with pytest"]
fn code_that_pytest_imports_first_fakes_no_verdict() {
    let place = Place::empty();
    place.write("repos/demo/pytest.ini", "[pytest]\naddopts = -p calc\n");
    let patch = "unittest.TestCase.assertEqual = lambda *a, **k: None";
    let handle = "int(os.environ['_REPOFORMER_REPORT'].split(':')[0])";
    let codes = [
        "return a + b".to_owned(),
        format!("return 3\n\n\nimport unittest\n{patch}\n\n"),
        format!("return 3\n\n\nimport os\nos.write({handle}, b'hello')\n\n"),
    ];
    let way = Way { runner: "python3 -m pytest -q -p no:cacheprovider", ..Way::default() };
    let (ran, found) = outcomes(&place, &codes, &way);
    let passes: Vec<bool> = found.iter().map(|outcome| outcome.status == "pass").collect();
    assert_eq!(passes, [true, false, false], "{found:?}\n{}", ran.stderr);
    assert!(found[1].reason.contains("TestCase.assertEqual"), "{}", found[1].reason);
}

/// Tests are reported however their interpreter is started.
#[test]
#[ignore = "needs python3"]
fn reports_come_through_wrappers() {
    for runner in [
        "python3 -munittest",
        "python3 -B -W ignore -m unittest tests.test_calc",
        "python3 wrap.py exec -m unittest",
        "PYTHONPATH=.:$PYTHONPATH python3 -m unittest",
        "sh -c \"python3 -m unittest 2>&1 | cat\"",
    ] {
        let place = Place::empty();
        place.write(
            "repos/demo/wrap.py",
            "import os, sys\nos.execv(sys.executable, [sys.executable] + sys.argv[2:])\n",
        );
        let codes = ["return b + a".to_owned(), "return 3".to_owned()];
        let (ran, found) = outcomes(&place, &codes, &Way { runner, ..Way::default() });
        let statuses: Vec<&str> = found.iter().map(|outcome| &*outcome.status).collect();
        assert_eq!(statuses, ["pass", "fail"], "{runner}: {}", ran.stderr);
        for record in place.records("cache/exec/tasks/results.jsonl") {
            assert_eq!(record["report"]["ended"], 1, "{runner}: {record}");
        }
        ran.silent_on("which a prediction can fake");
    }
    let place = Place::empty();
    let runner = "PYTHONPATH=. python3 -m unittest";
    let (ran, _) =
        outcomes(&place, &["return b + a".to_owned()], &Way { runner, ..Way::default() });
    ran.done().says(&["1 of 1 task is judged by the exit code and the output of the tests"]);
}

/// What a suite leaves in place of the file that mining reads is not followed, nor read without bound.
#[test]
#[ignore = "needs python3"]
fn mining_reads_no_link_that_a_suite_left() {
    for (put, said) in [
        ("os.symlink('/proc/self/pagemap', 'reached')", "its path contains a link"),
        (
            "os.chdir('..'); os.rename('.repoformer-mining', 'x'); os.symlink('x', '.repoformer-mining')",
            "its path contains a link",
        ),
        ("os.mkfifo('reached')", "not a regular file"),
        ("open('reached', 'w').truncate(1 << 30)", "more than 64 MiB"),
    ] {
        let place = Place::empty();
        let code = "def add(a, b):\n    return a + b\n";
        let tests = format!(
            "import os, unittest, calc\n\n\nclass Case(unittest.TestCase):\n    def test_add(self):\n        \
             calc.add(1, 2)\n        os.chdir('.repoformer-mining')\n        os.remove('reached')\n        {put}\n"
        );
        place.write("repos/demo/calc.py", code);
        place.write("repos/demo/tests/__init__.py", "");
        place.write("repos/demo/tests/test_calc.py", tests);
        place.write("tasks.jsonl", jsonl(&[task("demo/0", "demo/calc.py", code, 1, 1)]));
        let args =
            "--repos-dir repos --tasks tasks.jsonl --cache-dir cache --threads 1 --disk-limit 2000";
        place
            .shell(&format!("repoformer eval --exec --mine-tests {args} -o map.jsonl"))
            .says(&[".repoformer-mining/reached, left by the run", said]);
    }
}

/// A guard can write more than the code under test: into files of the user, and into its own descriptors.
#[test]
#[ignore = "needs python3"]
fn nothing_is_written_through_a_link_of_a_repository() {
    let place = Place::empty();
    let code = "def add(a, b):\n    return a + b\n";
    let tests = "import unittest, calc\n\n\nclass Case(unittest.TestCase):\n    def test_add(self):\n        calc.add(1, 2)\n";
    place.write("repos/demo/calc.py", code);
    place.write("repos/demo/tests/__init__.py", "");
    place.write("repos/demo/tests/test_calc.py", tests);
    place.write("outside/kept", "kept");
    place.write("tasks.jsonl", jsonl(&[task("demo/0", "demo/calc.py", code, 1, 1)]));
    place.shell("mkdir repos/demo/.repoformer-mining").done();
    let args =
        "--repos-dir repos --tasks tasks.jsonl --cache-dir cache --threads 1 --disk-limit 2000";
    for target in
        ["$PWD/outside/kept", "../../../outside/kept", "/proc/self/fd/2", "/proc/self/cwd/x"]
    {
        for flags in ["", "--isolation off"] {
            let link = "repos/demo/.repoformer-mining/repoformer_probe.py";
            place.shell(&format!("ln -sfn {target} {link}")).done();
            place
                .shell(&format!("repoformer eval --exec --mine-tests {args} {flags} -o map.jsonl"))
                .says(&["repoformer_probe.py: a link there leads out of the repository"]);
            assert_eq!(place.read("outside/kept"), "kept");
        }
    }
}

/// Place with a repository `demo`, its tests, a task and its prediction.
fn one_task(tests: &str) -> Place {
    let place = Place::empty();
    let code = "def add(a, b):\n    return a + b\n";
    place.write("repos/demo/calc.py", code);
    place.write("repos/demo/test_calc.py", tests);
    place.write("tasks.jsonl", jsonl(&[task("demo/0", "demo/calc.py", code, 1, 1)]));
    place.write("p.jsonl", jsonl(&[json!({"task_id": "demo/0", "pred": ["    return a + b"]})]));
    place
}

/// A repository chose where its link leads, and the user named a path below it.
#[test]
#[ignore = "needs python3"]
fn a_link_that_a_command_names_shows_nothing_that_is_hidden() {
    let tests = "import os, unittest, calc\n\n\nclass Case(unittest.TestCase):\n    def test_add(self):\n        \
                 calc.add(1, 2)\n        link = os.environ['LINK']\n        \
                 assert os.path.getsize(link + link[:-15] + '/tasks.jsonl') == 0, 'tasks'\n        \
                 assert not os.path.exists(link + '/dev/processes'), 'processes'\n        \
                 assert open(link[:-3] + 'file').read() == 'named', 'a file is shown'\n";
    let place = one_task(tests);
    place.write("repos/demo/file", "named");
    place.shell("ln -s / repos/demo/src").done();
    let args =
        "--repos-dir repos --tasks tasks.jsonl --threads 1 --predictions p.jsonl --cache-dir cache";
    let command = "LINK=$PWD/repos/demo/src PATH=$PWD/repos/{repository}/src/bin:$PATH F=$PWD/repos/demo/file python3 -m unittest";
    place.shell(&format!("repoformer eval --exec {args} --test-cmd \"{command}\"")).done();
    let results = place.read("cache/exec/tasks/results.jsonl");
    assert!(results.contains("\"status\":\"pass\""), "{results}");
}

/// A setup command is code of the repository, too.
#[test]
#[ignore = "needs python3"]
fn a_setup_command_replaces_no_folder_of_the_copies() {
    let place = one_task(TESTS);
    place.write("repos/demo/scratch/notes", "kept");
    let args = "--repos-dir repos --tasks tasks.jsonl --threads 1 --predictions p.jsonl --cache-dir cache --work-dir work";
    for up in ["../..", "..", ".", "../../../.."] {
        let setup = format!(
            "touch built; P=$(realpath {up}); mv $P $P.x && ln -s $PWD/../../../../repos/demo $P; true"
        );
        place.shell(&format!("repoformer eval --exec {args} --setup-cmd '{setup}'")).done();
        assert_eq!(place.read("repos/demo/scratch/notes"), "kept");
        place
            .shell("test ! -e repos/demo/built -a ! -e repos/demo/stamp.json -a ! -L work/demo")
            .done();
    }
    // Folders above them stay in their place, too.
    place.shell("mkdir above && mv repos above").done();
    let args = args.replace(" repos ", " above/repos ").replace(" work", " one/two/work");
    for folder in ["one/two", "one", "above"] {
        let rename = format!("import os; os.rename(\"{folder}\", \"moved\")");
        let setup = format!(
            "cd $PWD/../../../../../../.. && python3 -c \"{}\"",
            rename.replace('"', "\\\"")
        );
        place.shell(&format!("repoformer eval --exec {args} --setup-cmd '{setup}; true'")).done();
        place.shell("test -d one/two/work/demo -a -d above/repos/demo -a ! -e moved").done();
    }
    // Copies may be below the repository.
    let args = "--repos-dir above/repos/demo --tasks tasks.jsonl --threads 1 --predictions p.jsonl --cache-dir above/repos/demo/data";
    let setup = "touch built ../../../../../../../../built ../../../../../../../built; true";
    place.shell(&format!("repoformer eval --exec {args} --setup-cmd '{setup}'")).done();
    place
        .shell("test -d above/repos/demo/data -a -z \"$(find above -name built | grep -v copies)\"")
        .done();
    let built = place.shell("find above -name built").stdout;
    assert!(built.contains("/copies/"), "{built}");
}

/// With an empty part of `LD_LIBRARY_PATH`, the loader looks for libraries in the working folder.
#[test]
#[ignore = "needs python3"]
fn no_library_of_a_repository_is_loaded_before_the_limits() {
    let place = one_task(TESTS);
    place.write("repos/demo/libgcc_s.so.1", "no library\n");
    let args = "--repos-dir repos --tasks tasks.jsonl --threads 1 --predictions p.jsonl";
    for flags in ["--cache-dir one", "--cache-dir two --isolation off"] {
        let eval = format!("LD_LIBRARY_PATH=: repoformer eval --exec {args} {flags}");
        place.shell(&eval).done();
    }
    for cache in ["one", "two"] {
        let results = place.read(&format!("{cache}/exec/tasks/results.jsonl"));
        assert!(results.contains("\"status\":\"pass\""), "{results}");
    }
}

/// Each listed test may be run for each task.
#[test]
fn a_list_of_more_tests_than_mining_takes_is_refused() {
    let place = Place::empty();
    let code = "def add(a, b):\n    return a + b\n";
    place.write("repos/demo/calc.py", code);
    place.write("tasks.jsonl", jsonl(&[task("demo/0", "demo/calc.py", code, 1, 1)]));
    let args =
        "--repos-dir repos --tasks tasks.jsonl --cache-dir cache --threads 1 --isolation auto";
    let list = "--list-tests-cmd 'seq 1 10001' --test-cmd 'true {tests}' -o map.jsonl";
    place
        .shell(&format!("repoformer eval --exec --mine-tests {args} {list}"))
        .says(&["the list command (--list-tests-cmd) lists more than 10000 tests"]);
    let list = "--list-tests-cmd 'echo -- -p' --test-cmd 'true {tests}' -o map.jsonl";
    place
        .shell(&format!("repoformer eval --exec --mine-tests {args} {list}"))
        .says(&["lists \"-- -p\": a name that begins with a hyphen or @"]);
}

/// What tests commonly use sockets for needs none of those that are refused.
#[test]
#[ignore = "needs python3"]
fn common_uses_of_sockets_go_on() {
    let place = Place::empty();
    let code = "import attempt; attempt.common(); return a + b".to_owned();
    let (ran, found) = outcomes(&place, &[code], &Way::default());
    let Outcome { status, reason, output } = &found[0];
    assert_eq!(status, "pass", "{reason}\n{output}\n{}", ran.stderr);
}

/// Ways to take more than the limits allow, and their statuses if the kernel counts and if the guard does.
const HOGS: [(&str, &str, &str); 44] = [
    ("memory", "out-of-memory", "out-of-memory"),
    ("time", "timeout", "timeout"),
    ("processes", "error", "error"),
    ("tampered-memory", "out-of-memory", "out-of-memory"),
    ("tampered-time", "timeout", "timeout"),
    ("tampered-processes", "error", "error"),
    ("small-processes", "out-of-memory", "out-of-memory"),
    ("spinning-processes", "timeout", "timeout"),
    ("segments", "out-of-memory", "fail"),
    ("sent-memory", "out-of-memory", "fail"),
    ("socket-buffers", "out-of-memory", "out-of-memory"),
    ("datagrams", "out-of-memory", "out-of-memory"),
    ("internet-sockets", "out-of-memory", "out-of-memory"),
    ("multipath-tcp", "fail", "fail"),
    ("udp-lite", "fail", "fail"),
    ("netlink-messages", "fail", "fail"),
    ("netlink-answers", "fail", "fail"),
    ("first-thread-ended", "out-of-memory", "out-of-memory"),
    ("page-tables", "out-of-memory", "out-of-memory"),
    ("messages", "out-of-memory", "fail"),
    ("unreadable", "out-of-memory", "out-of-memory"),
    ("shared-by-children", "out-of-memory", "out-of-memory"),
    ("shared-let-go", "out-of-memory", "out-of-memory"),
    ("shared-by-ended-children", "out-of-memory", "out-of-memory"),
    ("shared-in-part", "out-of-memory", "out-of-memory"),
    ("shared-hardly-used", "pass", "pass"),
    ("mappings", "out-of-memory", "out-of-memory"),
    ("memory-of-ended", "out-of-memory", "out-of-memory"),
    ("long-list", "out-of-memory", "error"),
    ("unnoticed-children", "timeout", "timeout"),
    ("threads", "error", "fail"),
    ("pipes", "fail", "fail"),
    ("locks", "out-of-memory", "out-of-memory"),
    ("files-in-memory", "error", "error"),
    ("mapped-files", "error", "error"),
    ("files-in-two-places", "error", "error"),
    ("files-in-hidden-folders", "error", "error"),
    ("many-pipes", "out-of-memory", "out-of-memory"),
    ("pipes-of-threads", "fail", "fail"),
    ("waiting-events", "out-of-memory", "fail"),
    ("rule-sets", "pass", "fail"),
    ("unaccepted", "out-of-memory", "out-of-memory"),
    ("page-fragments", "out-of-memory", "out-of-memory"),
    ("secret-memory", "fail", "fail"),
];

/// More of them, of little memory: the kernel's own, that it counts for nobody.
const UNCOUNTED: [(&str, &str, &str); 1] = [("lists-of-folders", "out-of-memory", "out-of-memory")];

/// More of them, with busy processes. If the system frees memory in time, the second test starts too many.
const BUSY: [(&str, &str, &str); 1] = [("slow-ends", "out-of-memory or error", "error")];

fn hog(prefix: &str, is_counted: bool) {
    let flags = "--disk-limit 100 --cpu-limit 4 --process-limit 20 --memory-limit";
    hogs(&HOGS, &format!("{flags} 200"), prefix, is_counted);
    hogs(&UNCOUNTED, &format!("{flags} 64"), prefix, is_counted);
    let flags = "--cpu-limit 200 --process-limit 40 --memory-limit 300";
    hogs(&BUSY, flags, prefix, is_counted);
}

fn hogs(hogs: &[(&str, &str, &str)], flags: &str, prefix: &str, is_counted: bool) {
    let place = Place::empty();
    let code = |(name, ..): &(&str, &str, &str)| format!("attempt.HOGS['{name}'](); return a + b");
    let codes: Vec<String> = hogs.iter().map(code).collect();
    let (ran, found) = outcomes(&place, &codes, &Way { prefix, flags, ..Way::default() });
    assert_eq!(found.len(), hogs.len(), "{}\n{}", ran.stderr, ran.stdout);
    let mut wrong = Vec::new();
    for ((name, counted, watched), outcome) in hogs.iter().zip(&found) {
        let expected = if is_counted { counted } else { watched };
        if !expected.split(" or ").any(|status| status == outcome.status) {
            wrong
                .push(format!("{name}: {} {}\n{}", outcome.status, outcome.reason, outcome.output));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether the kernel counts what runs use.
fn is_counted(prefix: &str) -> bool {
    let ran = Place::empty().shell(&format!("{prefix} repoformer doctor --format json"));
    let findings: Value = serde_json::from_str(&ran.stdout).unwrap();
    findings["sandbox"]["limits_counted_by"] == "kernel"
}

#[test]
#[ignore = "needs python3"]
fn no_limit_is_passed_that_the_kernel_counts() {
    if is_counted("") {
        hog("", true);
    }
}

#[test]
#[ignore = "needs python3"]
fn no_limit_is_passed_that_the_guard_watches() {
    // Hidden control groups cannot be used.
    let prefix = "unshare -Urm sh -c 'mount -t tmpfs none /sys/fs/cgroup && \"$@\"' sh";
    if is_counted("") {
        assert!(!is_counted(prefix));
        hog(prefix, false);
    } else {
        hog("", false);
    }
}

/// A copy that is an overlay of an overlay gets no layer.
#[test]
#[ignore = "needs python3"]
fn a_run_without_a_layer_cannot_fill_the_disk() {
    let place = Place::empty();
    place.write("disk/empty", "");
    place.write("cache/empty", "");
    let layer = |lower: &str, number: u8, to: &str| {
        format!(
            "mkdir disk/u{number} disk/w{number} && mount -t overlay none -o lowerdir={lower},upperdir=disk/u{number},workdir=disk/w{number} {to}"
        )
    };
    let mounts = format!(
        "mount -t tmpfs -o size=700m none disk && mkdir disk/l disk/o && {} && {}",
        layer("disk/l", 1, "disk/o"),
        layer("disk/o", 2, "cache")
    );
    let prefix = format!("unshare -Urm sh -c '{mounts} && \"$@\"' sh");
    let codes = [
        "unnamed_files_of_the_copy",
        "files_behind_long_paths",
        "empty_files_of_the_copy",
        "takes_the_disk_at_once",
    ];
    let codes = codes.map(|name| format!("attempt.{name}(); return a + b"));
    let way = Way {
        prefix: &prefix,
        flags: "--disk-limit 50 --memory-limit 2000 --exec-results found/results.jsonl",
        ..Way::default()
    };
    let (ran, found) = outcomes(&place, &codes, &way);
    let note = "the disk space that tests use is watched, not limited by the system";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let found: Vec<(&str, &str)> =
        found.iter().map(|outcome| (&*outcome.status, &*outcome.reason)).collect();
    assert_eq!(found[..3], [("error", "limit of disk space"); 3], "{}", ran.stderr);
    assert_eq!(found[3], ("pass", ""), "{}", ran.stderr);
}

/// Memory that no process maps, memory that processes share, files that sockets hold after the end.
#[test]
#[ignore = "needs python3"]
fn limits_hold_for_memory_and_files_that_are_hard_to_see() {
    let place = Place::empty();
    let codes = [
        "import mmap\n    m = mmap.mmap(-1, 400 << 20)\n    for i in range(0, 400 << 20, 4096): m[i] = 1\n    return a + b",
        "import os, time\n    for i in range(8): os.write(os.memfd_create('x'), bytes(60 << 20))\n    time.sleep(20)",
        "for i in range(200000): open('/dev/shm/%d' % i, 'w').close()\n    return a + b",
        "import socket, array\n    x, y = socket.socketpair()\n    put = lambda s, f: s.sendmsg([b'x'], [(socket.SOL_SOCKET, \
         socket.SCM_RIGHTS, array.array('i', f))])\n    for s in x, y: put(s, [x.fileno(), y.fileno(), 1, 2])\n    return a + b",
        // Reads no answer of the guard, and lets the guard's queue hold the ends of all channels.
        "import socket, array, os, time\n    s = socket.socket(fileno=os.dup(200))\n    s.setblocking(False)\n    for i in range(340):\n        \
         try: s.send(b'hello')\n        except BlockingIOError: time.sleep(0.01)\n    s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, \
         array.array('i', [200, 1, 2]))])\n    return a + b",
    ];
    let codes = codes.map(str::to_owned);
    let way = Way { flags: "--memory-limit 200 --disk-limit 100", ..Way::default() };
    let (ran, found) = outcomes(&place, &codes, &way);
    let found: Vec<(&str, &str)> =
        found.iter().map(|outcome| (&*outcome.status, &*outcome.reason)).collect();
    assert_eq!(found[..2], [("out-of-memory", "limit of memory"); 2], "{}", ran.stderr);
    let full = ("error", "no space left to write: limit of disk space");
    assert_eq!(found[2], full, "{}", ran.stderr);
    assert_eq!(found[3], ("pass", ""), "{}", ran.stderr);
    assert_eq!(found[4], ("fail", "a report of tests was forged"), "{}", ran.stderr);
}
