//! A cache that is damaged, read-only or full, and runs that were interrupted.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Place, Ran, assert_same};

/// Files that the program was writing when it was killed: hidden, and never read again.
fn without_temporary(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    files.retain(|name, _| !name.contains("/.writing-"));
    files
}

fn ran() -> (Place, BTreeMap<String, Vec<u8>>) {
    let place = Place::new();
    place.stage(&["run"]).done();
    let files = place.files("cache");
    (place, files)
}

#[cfg(unix)]
#[test]
fn a_read_only_cache_serves_what_is_current() {
    use std::os::unix::fs::PermissionsExt;
    let (place, wanted) = ran();
    let mode = |mode| place.shell(&format!("find cache -type d -exec chmod {mode} {{}} +"));
    mode("a-w").done();
    let writable = std::fs::write(place.path("cache/window/probe"), "").is_ok(); // root writes everywhere
    place.stage(&["run"]).done();
    if !writable {
        place
            .stage(&["window", "--window-size", "10"])
            .failed()
            .says(&["Permission denied", "hint: choose a writable cache folder (--cache-dir)"]);
    }
    mode("u+w").done();
    let _ = std::fs::remove_file(place.path("cache/window/probe"));
    assert!(std::fs::metadata(place.path("cache")).unwrap().permissions().mode() & 0o200 != 0);
    assert_same(&place.files("cache"), &wanted);
}

#[cfg(unix)]
#[test]
fn a_full_disk_keeps_what_was_whole_and_nothing_half_written() {
    let (_, wanted) = ran();
    let place = Place::new();
    let args = place.args(&["run", "--threads", "1"]).join(" ");
    // No file may grow beyond 1, 2, … blocks of 512 bytes: it fails as on a full disk, each time a little later.
    let mut failed = 0;
    for blocks in [1, 2, 4, 8, 16, 32] {
        let ran = place.shell(&format!("trap '' XFSZ; ulimit -f {blocks}; repoformer {args}"));
        if ran.code == Some(0) {
            break;
        }
        failed += 1;
        ran.failed().says(&[
            "error: cache/",
            "cannot write this file: File too large",
            "hint: free some space",
        ]);
        for (name, bytes) in place.files("cache") {
            assert!(bytes == wanted[&name], "{name} is half-written");
        }
    }
    assert!(failed >= 2, "the limits were too high to matter");
    place.stage(&["run"]).done().silent_on("warning");
    assert_same(&place.files("cache"), &wanted);
    place.stage(&["prompt", "--mode", "gt", "-o", "/dev/full"]).failed().says(&[
        "error: /dev/full: ",
        "No space left on device",
        "hint: free some space",
    ]);
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let (_, wanted) = ran();
    let place = Place::new();
    let runs: Vec<_> = (0..4)
        .map(|_| {
            let mut command = place.command(&place.args(&["run"]));
            let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            piped.spawn().unwrap()
        })
        .collect();
    for run in runs {
        Ran::new(run.wait_with_output().unwrap()).done();
    }
    assert_same(&place.files("cache"), &wanted);
}

/// Starts `run` and kills it when the cache has so many files; tells whether it was still at work.
fn killed_after(place: &Place, files: usize) -> bool {
    let mut command = place.command(&place.args(&["run"]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while place.count("cache") < files && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
    let at_work = child.try_wait().unwrap().is_none();
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    at_work
}

#[test]
fn an_interrupted_run_is_taken_up_where_it_stopped() {
    let (_, wanted) = ran();
    let whole = wanted.len();
    // From nothing, killed later and later; then killed again and again on the same cache.
    let mut interrupted = 0;
    for step in 0..30 {
        let place = Place::new();
        interrupted += usize::from(killed_after(&place, whole * step / 30));
        for (name, bytes) in without_temporary(place.files("cache")) {
            assert!(bytes == wanted[&name], "{name} is half-written after {step}/30");
        }
        place.stage(&["run"]).done().silent_on("warning");
        assert_same(&place.files("cache"), &wanted);
    }
    assert!(interrupted >= 5, "only {interrupted} runs were interrupted");
    let place = Place::new();
    for step in 0..10 {
        killed_after(&place, whole * step / 20);
    }
    place.stage(&["run"]).done().silent_on("warning");
    assert_same(&place.files("cache"), &wanted);
    place.stage(&["run"]).done().silent_on("written");
}

/// Found by faults of each call: a time, a header or a manifest that is there and cannot be read was taken for none, and the result
/// lacked what it says, without a word. A folder in its place cannot be read either.
#[cfg(unix)]
#[test]
fn what_lies_beside_a_file_is_read_or_its_reader_stops() {
    let place = Place::new();
    place.stage(&["run", "--mode", "none,rg1"]).done();
    let predictions = place.named("cache/predictions/tasks", "rg1");
    let beside = |path: &str, begin: &str, end: &str| {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        format!("{folder}/{begin}{}{end}", name.rsplit_once('.').unwrap().0)
    };
    let header = beside(&predictions, ".", ".header.json");
    let time = "cache/retrieval/tasks/rg1/.alpha_ws20_slice2.one-gram.top20.time.json";
    let scores = ["eval", "--predictions", &predictions, "--per-task", "--format", "jsonl"];
    place.stage(&[&scores[..], &["-o", "a.jsonl"]].concat()).done();
    let unreadable = |path: &str, stops: &dyn Fn() -> Ran| {
        let bytes = std::fs::read(place.path(path)).unwrap();
        std::fs::remove_file(place.path(path)).unwrap();
        std::fs::create_dir(place.path(path)).unwrap();
        stops().says(&[path.trim_start_matches("./")]);
        std::fs::remove_dir(place.path(path)).unwrap();
        place.write(path, bytes);
    };
    unreadable(time, &|| place.stage(&["run", "--mode", "none,rg1"]).failed());
    unreadable(time, &|| place.stage(&["search", "--mode", "rg1"]).partly());
    unreadable(&header, &|| place.stage(&scores).failed());
    unreadable("a.jsonl.manifest.json", &|| place.run(&["compare", "a.jsonl", "a.jsonl"]).failed());
}

/// A cache may come from somebody else: links in it, of files and of folders, choose no place to write to.
#[cfg(unix)]
#[test]
fn links_in_a_cache_lead_no_writing_out_of_it() {
    use std::os::unix::fs::symlink;

    let (place, whole) = ran();
    let outside = place.path("outside");
    std::fs::create_dir(&outside).unwrap();
    for (number, path) in whole.keys().enumerate() {
        let (path, victim) = (place.path("cache").join(path), outside.join(number.to_string()));
        std::fs::write(&victim, "mine\n").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
    }
    place.stage(&["run"]);
    let again = place.stage(&["run"]);
    again.done();
    let count = whole.len();
    assert!((0..count).all(|n| std::fs::read(outside.join(n.to_string())).unwrap() == b"mine\n"));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), count);
    let links = place.shell("find cache -type l").done();
    assert_eq!(links.stdout, "", "links are replaced");
    assert_eq!(without_temporary(place.files("cache")), whole);

    // A folder.
    std::fs::remove_dir_all(place.path("cache/scores")).unwrap();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    symlink("../elsewhere", place.path("cache/scores")).unwrap();
    let refused = place.stage(&["run"]).failed();
    refused.says(&["cache/scores is a link that leads out of", "remove it"]);
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
    // The cache itself may lie elsewhere.
    std::fs::remove_file(place.path("cache/scores")).unwrap();
    std::fs::rename(place.path("cache"), place.path("elsewhere/cache")).unwrap();
    symlink("elsewhere/cache", place.path("cache")).unwrap();
    place.stage(&["run"]).done();
    assert_eq!(without_temporary(place.files("cache")), whole);
}

/// A pipe to which nobody writes and a device without end, in the place of each file of a cache and of a manifest.
#[cfg(target_os = "linux")]
#[test]
fn what_is_no_file_next_to_a_file_or_in_a_cache_is_named() {
    let (place, wanted) = ran();
    let run = place.args(&["run"]).join(" ");
    let bounded = "ulimit -v 4000000; timeout 60 repoformer";
    let others = ["mkfifo", "ln -s /dev/zero"];
    place.shell("cp -a cache whole").done();
    for name in wanted.keys() {
        let path = format!("cache/{name}");
        for make in others {
            let line = format!(
                "rm -rf cache && cp -a whole cache && rm '{path}' && {make} '{path}' && {bounded} {run}"
            );
            let ran = place.shell(&line);
            assert!(matches!(ran.code, Some(0..=2)), "{make} {path}: {:?}", ran.code);
            assert!(ran.stderr.contains(name.as_str()), "{make} {path}: {}", ran.stderr);
        }
    }
    place.shell("rm -rf cache && cp -a whole cache").done();
    place.stage(&["eval", "--per-task", "--format", "jsonl", "-o", "a.jsonl"]).done();
    place.shell("cp a.jsonl b.jsonl && cp a.jsonl.manifest.json b.jsonl.manifest.json").done();
    let damage = ["echo garbage >", "echo '{}' >", "echo '[]' >", ":>"];
    for make in others.iter().chain(&damage) {
        place.shell(&format!("rm a.jsonl.manifest.json && {make} a.jsonl.manifest.json")).done();
        for command in ["compare a.jsonl b.jsonl", "validate a.jsonl"] {
            let ran = place.shell(&format!("{bounded} {command}"));
            assert!(matches!(ran.code, Some(1 | 2)), "{make}, {command}: {:?}", ran.code);
            let said = ran.stdout + &ran.stderr;
            assert!(said.contains("a.jsonl.manifest.json"), "{make}, {command}: {said}");
        }
    }
    let report = place.args(&["report"]).join(" ");
    for make in others.iter().chain(&["echo garbage >"]) {
        place
            .shell(&format!(
                "rm -rf report; mkdir -p report/figures && {make} report/figures/manifest.json"
            ))
            .done();
        let ran = place.shell(&format!("{bounded} {report}"));
        assert_eq!(ran.code, Some(2), "{make}: {}", ran.stderr);
        assert!(ran.stderr.contains("figures/manifest.json"), "{make}: {}", ran.stderr);
    }
}
