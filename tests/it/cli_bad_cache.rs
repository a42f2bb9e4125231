//! A cache that is damaged, of another version, read-only or full, and runs that were interrupted.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Place, Ran, assert_same, source, task};

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

/// Damages each file of a finished cache in turn; `run` must warn, name it, and leave the same as before.
fn rebuilds_each(damage: impl Fn(&[u8]) -> Vec<u8>, says: &str) {
    let (place, wanted) = ran();
    for (name, bytes) in &wanted {
        let path = format!("cache/{name}");
        place.write(&path, damage(bytes));
        let said = place.stage(&["run"]).done().stderr;
        let artifact = path.replace("/.", "/").replace(".header.json", ""); // a header's damage is its artifact's
        let warning = said.lines().find(|line| line.starts_with(&format!("warning: {artifact}")));
        let warning = warning.unwrap_or_else(|| panic!("{path}: no warning in\n{said}"));
        assert!(warning.contains(says) && warning.contains("rebuilt"), "{warning}");
        assert_same(&place.files("cache"), &wanted);
    }
}

#[test]
fn a_truncated_file_is_rebuilt_with_a_warning() {
    rebuilds_each(|bytes| bytes[..bytes.len() / 2].to_vec(), "");
}

#[test]
fn an_emptied_file_is_rebuilt_with_a_warning() {
    rebuilds_each(|_| Vec::new(), "");
}

#[test]
fn a_file_with_a_changed_byte_is_rebuilt_with_a_warning() {
    let flip_last_digit_or_bit = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let at = bytes.len() - 5;
        bytes[at] ^= 0x01;
        bytes
    };
    rebuilds_each(flip_last_digit_or_bit, "");
}

#[test]
fn a_cache_of_another_version_is_rebuilt_and_names_both_versions() {
    let replace = |bytes: &[u8], from: &str, to: &str| -> Vec<u8> {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    let version = env!("CARGO_PKG_VERSION");
    let (place, wanted) = ran();
    let path = "cache/window/repos/alpha_ws20_slice2.bin";
    let bytes = std::fs::read(place.path(path)).unwrap();
    place.write(path, replace(&bytes, &format!("\"tool\":\"{version}\""), "\"tool\":\"0.0.7\""));
    let said = "warning: cache/window/repos/alpha_ws20_slice2.bin: stale (it was written by repoformer 0.0.7), rebuilt";
    place.stage(&["run"]).done().says(&[said]);
    assert_same(&place.files("cache"), &wanted);
    let later = replace(&bytes, "\"format\":2", "\"format\":9");
    place.write(path, &later);
    let both = format!(
        "written by repoformer {version} in format 9; this is repoformer {version} with format 2"
    );
    place.stage(&["vectorize"]).failed().says(&[
        path,
        &both,
        "hint: make it again with `repoformer window`",
    ]);
    place.run(&["inspect", path]).failed().says(&[&both, "hint: ", "--cache-dir"]);
    place.stage(&["run"]).done().says(&[&format!("warning: {path}: {both}; rebuilt")]);
    assert_same(&place.files("cache"), &wanted);
}

#[test]
fn a_damaged_artifact_upstream_names_the_command_that_makes_it_again() {
    let (place, _) = ran();
    let cut = |path: &str| {
        let bytes = std::fs::read(place.path(path)).unwrap();
        place.write(path, &bytes[..bytes.len() - 1]);
    };
    let prompts = "cache/prompts/tasks/gt-one-gram-ws-20-ss-2.jsonl";
    let vectors = "cache/vector/tasks/gt/beta_ws20_slice2.one-gram.bin";
    cut(vectors);
    place.stage(&["search", "--mode", "gt"]).failed().says(&[
        vectors,
        "damaged: ",
        "hint: make it again with `repoformer vectorize --mode gt`",
    ]);
    cut(prompts);
    place.stage(&["complete", "--mode", "gt"]).failed().says(&[
        prompts,
        "damaged: ",
        "hint: ",
        "`repoformer prompt --mode gt`",
    ]);
}

#[test]
fn a_cache_folder_that_cannot_be_written() {
    let place = Place::new();
    place.write("file", "mine");
    place
        .stage(&["run", "--cache-dir", "file"])
        .failed()
        .says(&[
            "error: file/window/repos: cannot create this folder",
            "hint: a file is in the place of a folder; choose another cache folder (--cache-dir) or output path (-o)",
        ]);
    place.stage(&["run", "--cache-dir", "file/below"]).failed().says(&[
        "error: file/below/window/repos: ",
        "hint: ",
        "--cache-dir",
    ]);
    assert_eq!(place.read("file"), "mine");
    #[cfg(target_os = "linux")]
    place.stage(&["run", "--cache-dir", "/proc/nowhere"]).failed().says(&[
        "error: /proc/nowhere/window/repos: cannot create this folder",
        "hint: ",
        "--cache-dir",
    ]);
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

#[cfg(unix)]
#[test]
fn predictions_that_stopped_at_their_header_are_not_taken_for_somebodys_own() {
    let place = Place::new();
    place.write(
        "tasks.jsonl",
        task("alpha/0", "alpha/store.py", &source("store", 25), 0, 1).to_string(),
    );
    // The name makes the header longer than a block of 512 bytes; the one prediction is shorter.
    let name = "n".repeat(200);
    let stage =
        |stage: &str| place.args(&[stage, "--mode", "none", "--benchmark", &name]).join(" ");
    for before in ["window", "prompt"] {
        place.shell(&format!("repoformer {}", stage(before))).done();
    }
    let complete = stage("complete");
    place
        .shell(&format!("trap '' XFSZ; ulimit -f 1; repoformer {complete}"))
        .failed()
        .says(&[".header.json: cannot write this file: File too large"]);
    place.shell(&format!("repoformer {complete}")).done();
    let predictions = format!("cache/predictions/{name}/none-one-gram-ws-20-ss-2-in-context.jsonl");
    assert!(place.read(&predictions).len() < 512, "or the limit does not part the two");
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
        Ran::of(run.wait_with_output().unwrap()).done();
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
        assert_same(&without_temporary(place.files("cache")), &wanted);
    }
    assert!(interrupted >= 5, "only {interrupted} runs were interrupted");
    let place = Place::new();
    for step in 0..10 {
        killed_after(&place, whole * step / 20);
    }
    place.stage(&["run"]).done().silent_on("warning");
    assert_same(&without_temporary(place.files("cache")), &wanted);
    place.stage(&["run"]).done().silent_on("written");
}

#[test]
fn each_missing_file_is_made_again_alone() {
    let (place, wanted) = ran();
    // What an interruption leaves out. The headers of predictions are written before them, so none is alone in missing.
    let texts = wanted
        .keys()
        .filter(|name| !(name.starts_with("predictions/") && name.ends_with(".header.json")));
    for name in texts {
        std::fs::remove_file(place.path("cache").join(name)).unwrap();
        place.stage(&["run"]).done();
        assert_same(&place.files("cache"), &wanted);
    }
}
