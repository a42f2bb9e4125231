//! Bad repositories and bad task files: each is named with its path, line or task and the way out, costs nothing else,
//! and shows in the exit code.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Place, jsonl, source, task};
use serde_json::{Value, json};

const MODES: [&str; 4] = ["none", "rg1", "rg-rg", "gt"];
const OTHER_VERSION: &str = "is this the version that the tasks were made from?";

/// Rows that have a prediction in each mode.
fn rows_served(place: &Place, mode: &str) -> Vec<Value> {
    let path = format!("cache/predictions/tasks/{mode}-one-gram-ws-20-ss-2-in-context.jsonl");
    let row = |record: &Value| record["metadata"]["row"].clone();
    place.records(&path).iter().map(row).collect()
}

/// Every mode served these rows.
fn assert_served(place: &Place, rows: &[usize]) {
    for mode in MODES {
        assert_eq!(rows_served(place, mode), rows, "{mode}");
    }
}

#[test]
fn a_source_file_that_is_not_utf8() {
    let place = Place::new();
    place.write("repos/alpha/latin.py", b"# ok\nname = 'caf\xe9'\n");
    let ran = place.stage(&["window"]).partly().says(&[
        "error: repos/alpha/latin.py: left out: not UTF-8 (byte 16, line 2); convert it",
        "hint: repair or remove it",
        "17 records in 6 artifacts (written), 1 skipped",
    ]);
    assert_eq!(ran.stderr.matches("latin.py").count(), 1, "told once");
    // What was found once is found again, though the artifacts are current.
    place.stage(&["window"]).partly().says(&["latin.py", "(current), 1 skipped"]);
    place.stage(&["run"]).partly();
    assert_served(&place, &[0, 1, 2]);
}

#[test]
fn a_task_line_that_is_not_utf8_or_no_json() {
    let place = Place::new();
    let mut text = place.read("tasks.jsonl").into_bytes();
    text.extend(b"{\"prompt\": \"caf\xe9\"}\n\n{\"prompt\": \n[1]\n");
    place.write("tasks.jsonl", text);
    place.stage(&["run"]).partly().says(&[
        "error: tasks.jsonl:4: not JSON: invalid unicode code point (column ",
        "error: tasks.jsonl:6: not JSON: EOF while parsing a value (column ",
        "error: tasks.jsonl:7: a JSON object is expected, not a list",
        "hint: correct the line or remove it; the other lines are read",
    ]);
    assert_served(&place, &[0, 1, 2]);
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_read() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.shell("mkfifo repos/alpha/pipe.py").done();
    let socket = std::os::unix::net::UnixListener::bind(place.path("repos/alpha/socket.py"));
    symlink("gone.py", place.path("repos/alpha/link.py")).unwrap();
    symlink("self.py", place.path("repos/alpha/self.py")).unwrap();
    symlink("gone.txt", place.path("repos/alpha/other.txt")).unwrap();
    let ran = place.stage_within(&["window"], 20).partly().says(&[
        "error: repos/alpha/pipe.py: left out: not a regular file",
        "error: repos/alpha/socket.py: left out: not a regular file",
        "error: repos/alpha/link.py: left out: a link that leads nowhere",
        "error: repos/alpha/self.py: left out: cannot be read: Too many levels of symbolic links",
        "hint: repair or remove it and run this again; all other files are used",
        "17 records in 6 artifacts (written)",
    ]);
    // Python's glob does not see a link that leads nowhere either, unless it is named as a source file.
    ran.silent_on("other.txt");
    drop(socket);
}

#[cfg(unix)]
#[test]
fn a_folder_that_lies_in_itself_is_read_once() {
    let (place, plain) = (Place::new(), Place::new());
    std::os::unix::fs::symlink(".", place.path("repos/alpha/again")).unwrap();
    std::os::unix::fs::symlink("..", place.path("repos/beta/pkg/up")).unwrap();
    for place in [&place, &plain] {
        place.stage_within(&["window"], 20).done();
    }
    crate::support::assert_same(&place.files("cache"), &plain.files("cache"));
    std::os::unix::fs::symlink(".", place.path("repos/alpha/again.py")).unwrap();
    place.stage_within(&["window"], 20).partly().says(&[
        "error: repos/alpha/again.py: left out: a link to a folder that it lies in",
        "hint: repair or remove it",
    ]);
}

#[cfg(unix)]
#[test]
fn files_and_folders_without_the_right_to_read_them() {
    use std::fs::{Permissions, read, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("repos/alpha/secret.py", "x = 1\n");
    place.write("repos/alpha/closed/a.py", "x = 1\n");
    for path in ["repos/alpha/secret.py", "repos/alpha/closed"] {
        set_permissions(place.path(path), Permissions::from_mode(0o000)).unwrap();
    }
    if read(place.path("repos/alpha/secret.py")).is_err() {
        place.stage(&["window"]).partly().says(&[
            "error: repos/alpha/secret.py: left out: cannot be read: Permission denied",
            "error: repos/alpha/closed: left out: cannot be read: Permission denied",
            "17 records in 6 artifacts (written)",
        ]);
    }
    // The temporary folder must be removable again.
    set_permissions(place.path("repos/alpha/closed"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn task_and_repository_folders_that_are_not_there() {
    let place = Place::new();
    place
        .stage(&["run", "--tasks", "no.jsonl"])
        .failed()
        .says(&["error: no.jsonl: cannot open this file: No such file", "hint: check the path"]);
    place
        .stage(&["run", "--tasks", "repos/alpha"])
        .failed()
        .says(&["error: repos/alpha: cannot read this file: Is a directory", "hint: name a file"]);
    place.stage(&["run", "--repos-dir", "no"]).failed().says(&[
        "error: no: cannot list the repositories folder: No such file",
        "hint: check the path",
    ]);
    place
        .stage(&["run", "--repos-dir", "tasks.jsonl"])
        .failed()
        .says(&["error: tasks.jsonl: cannot list the repositories folder: Not a directory"]);
    place.write("none.jsonl", "\n");
    place
        .stage(&["run", "--tasks", "none.jsonl"])
        .failed()
        .says(&["error: none.jsonl: the file holds no task", "hint: "]);
    std::fs::create_dir(place.path("bare")).unwrap();
    place
        .stage(&["run", "--repos-dir", "bare"])
        .failed()
        .says(&["error: bare: holds no folder", "--repos-dir"]);
}

#[test]
fn a_repository_that_is_not_there() {
    let place = Place::new();
    place.add_tasks(&[task("gamma/0", "gamma/a.py", &source("a", 9), 0, 5)]);
    place.stage(&["run"]).partly().says(&[
        "error: repos/gamma: there is no such repository folder, so that 1 task cannot be carried out",
        "--repo",
    ]);
    assert_served(&place, &[0, 1, 2]);
    place
        .stage(&["window", "--repo", "delta"])
        .failed()
        .says(&["error: repos/delta: there is no such repository folder"]);
}

#[test]
fn a_task_whose_file_or_line_does_not_exist() {
    let place = Place::new();
    let long = source("store", 300);
    place.add_tasks(&[
        task("alpha/2", "alpha/gone.py", &long, 0, 5),
        task("alpha/3", "alpha/store.py", &long, 20, 25),
        task("alpha/4", "alpha/store.py", &long, 4, 24),
    ]);
    let wanted = [
        "error: tasks.jsonl:4: task alpha/2: its file alpha/gone.py is not among the repository's Python files",
        "error: tasks.jsonl:5: task alpha/3: its hole is at line 25 (from 0) of alpha/store.py, which has 25 lines",
        OTHER_VERSION,
    ];
    place.stage(&["window"]).partly().says(&wanted);
    place.stage(&["run"]).partly().says(&wanted);
    assert_served(&place, &[0, 1, 2, 5]);
    place
        .stage(&["eval"])
        .failed()
        .says(&["tasks.jsonl:4: task alpha/2: it has no prediction (2 of 6 tasks have none)"]);
    let ran =
        place.stage(&["eval", "--missing", "skip", "--mode", "gt", "--format", "tsv"]).partly();
    assert!(ran.stdout.contains("gt\tall\t4\t"), "{}", ran.stdout);
}

#[test]
fn ids_that_repeat_keep_their_tasks_apart() {
    let place = Place::new();
    let store = source("store", 25);
    place.add_tasks(&[
        task("alpha/0", "alpha/store.py", &store, 0, 24),
        task("alpha/0", "alpha/store.py", &store, 10, 12),
    ]);
    place
        .stage(&["run", "-v"])
        .done()
        .says(&["tasks.jsonl: 2 tasks repeat an id; their rows distinguish them"]);
    assert_served(&place, &[0, 1, 2, 3, 4]);
    let ran = place.stage(&["eval", "--mode", "gt", "--per-task", "--format", "jsonl"]).done();
    assert_eq!(ran.stdout.lines().count(), 5);
}

#[test]
fn a_wrong_field_type_in_line_731() {
    let place = Place::new();
    let text = source("store", 25);
    let mut records: Vec<Value> = (0..800)
        .map(|n| task(&format!("alpha/{n}"), "alpha/store.py", &text, 0, n % 24 + 1))
        .collect();
    records[730]["metadata"]["line_no"] = json!("12");
    place.write("tasks.jsonl", jsonl(&records));
    let wanted =
        "error: tasks.jsonl:731: field 'metadata.line_no' must be a whole number, not a string";
    for stage in ["window", "vectorize", "search", "prompt"] {
        let ran = place.stage(&[stage, "--mode", "rg1"]).partly();
        let errors: Vec<&str> =
            ran.stderr.lines().filter(|line| line.starts_with("error")).collect();
        assert_eq!(errors, [wanted]);
    }
    let prompts = place.records("cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl");
    assert_eq!(prompts.len(), 799);
    assert_eq!(prompts[730]["metadata"]["row"], 731, "a row is a place in the file");
}

#[test]
fn of_many_bad_lines_twenty_are_shown_and_all_are_counted() {
    let place = Place::new();
    let bad: Vec<Value> = (0..30).map(|n| json!({"prompt": n})).collect();
    place.add_tasks(&bad);
    let shown = |ran: &crate::support::Ran| ran.stderr.matches("error: tasks.jsonl:").count();
    let ran = place.stage(&["window"]).partly();
    assert_eq!(shown(&ran), 20);
    ran.says(&["… and 10 more like these (-v shows all)"]);
    assert_eq!(shown(&place.stage(&["window", "-v"]).partly()), 30);
}

#[test]
fn paths_never_lead_out_of_the_repositories_folder() {
    let place = Place::new();
    place.write("outside/secret.py", source("secret", 30));
    let hostile = |names: &[&str]| {
        let mut record = task("alpha/x", "alpha/store.py", &source("store", 25), 0, 12);
        record["metadata"]["fpath_tuple"] = json!(names);
        record
    };
    let absolute = place.path("outside").display().to_string();
    let names: [&[&str]; 7] = [
        &["alpha", "..", "..", "outside", "secret.py"],
        &["..", "outside", "secret.py"],
        &[&absolute, "secret.py"],
        &["alpha", "../../outside/secret.py"],
        &["alpha/../../outside", "secret.py"],
        &[".", "secret.py"],
        &["alpha", "", "secret.py"],
    ];
    let records: Vec<Value> = names.iter().map(|names| hostile(names)).collect();
    place.add_tasks(&records);
    let ran = place.stage(&["run"]).partly();
    for line in 4..11 {
        let wanted = format!(
            "error: tasks.jsonl:{line}: field 'metadata.fpath_tuple' leads out of the repository: "
        );
        assert!(ran.stderr.contains(&wanted), "{wanted}\n{}", ran.stderr);
    }
    assert_served(&place, &[0, 1, 2]);
    for (name, bytes) in place.files("cache") {
        assert!(!String::from_utf8_lossy(&bytes).contains("secret_1"), "{name}");
    }
    place.write("outside.jsonl", jsonl(&records));
    place.stage(&["run", "--tasks", "outside.jsonl"]).failed().says(&["outside.jsonl:1: "]);
    for name in ["../outside", "/etc", "."] {
        place
            .stage(&["window", "--repo", name])
            .failed()
            .says(&["there is no such repository folder"]);
        place
            .stage(&["window", "--benchmark", name])
            .failed()
            .says(&["cannot name the benchmark's cache folders", "hint: "]);
    }
}

#[test]
fn an_empty_repository_and_one_without_python() {
    let place = Place::new();
    std::fs::create_dir(place.path("repos/empty")).unwrap();
    place.write("repos/prose/README.md", "words\n");
    place.write("repos/prose/UPPER.PY", "x = 1\n");
    place.write("repos/prose/blank.pyi", "x = 1\n");
    let all = ["window", "--repos-dir", "repos", "--cache-dir", "cache"];
    place.run(&all).partly().says(&[
        "error: repos/empty: holds no Python file that can be read",
        "error: repos/prose: holds no Python file that can be read",
        "choose other repositories",
        "window: 11 records in 4 artifacts (written), 2 skipped",
    ]);
    place.run(&["vectorize", "--repos-dir", "repos", "--cache-dir", "cache"]).done();
    place.add_tasks(&[task("empty/0", "empty/a.py", &source("a", 9), 0, 5)]);
    place.stage(&["run"]).partly().says(&[
        "error: repos/empty: holds no Python file",
        "error: tasks.jsonl:4: task empty/0: its file empty/a.py is not among the repository's Python files",
    ]);
    assert_served(&place, &[0, 1, 2]);
    // Files without a line are files all the same.
    place.write("repos/empty/a.py", "");
    place.stage(&["run"]).partly().says(&["tasks.jsonl:4: task empty/0: its hole is at line 5 (from 0) of empty/a.py, which has 0 lines"]);
    assert_served(&place, &[0, 1, 2]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_repository_whose_name_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(place.path("repos").join(name)).unwrap();
    for stage in ["window", "vectorize"] {
        place.run(&[stage, "--repos-dir", "repos", "--cache-dir", "cache"]).partly().says(&[
            "caf",
            "there is no such repository folder",
            "11 records in 2 artifacts",
        ]);
    }
}

#[test]
fn a_line_of_ten_megabytes() {
    let place = Place::new();
    let long = format!("blob = '{}'\n", "abc xyz0".repeat(10 << 17));
    place.write(
        "repos/alpha/blob.py",
        format!("{}{long}{}", source("before", 30), source("after", 30)),
    );
    place.write("repos/alpha/word.py", "a".repeat(10 << 20));
    let text = source("before", 30);
    place.add_tasks(&[task("alpha/2", "alpha/blob.py", &text, 0, 25)]);
    for stage in ["window", "vectorize", "search", "prompt"] {
        let ran = place.stage_within(&[stage, "--mode", "rg1"], 120).done();
        if stage == "window" {
            ran.says(&[
                "alpha/blob.py:31: a line of 104857",
                "alpha/word.py:1: a line of 10485760 bytes",
            ]);
        }
    }
    let prompts = place.records("cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl");
    assert_eq!(prompts.len(), 4);
    for prompt in &prompts {
        assert!(
            prompt["metadata"]["prompt_tokens"].as_u64().unwrap() < 3000,
            "the long line is too long for a prompt"
        );
        assert!(!prompt["metadata"]["top_k_context"].as_array().unwrap().is_empty());
    }
}

#[test]
fn files_that_come_and_go_while_they_are_read() {
    let place = Place::new();
    let file = |n: usize| place.path(&format!("repos/alpha/passing_{n}.py"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for n in 0..200 {
                    std::fs::write(file(n), "x = 1\n").unwrap();
                }
                for n in 0..200 {
                    std::fs::remove_file(file(n)).unwrap();
                }
            }
        });
        for _ in 0..15 {
            let ran = place.stage_within(&["window", "--mode", "rg1"], 60);
            let errors: Vec<&str> =
                ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
            let named = |line: &&str| {
                line.starts_with("error: repos/alpha/passing_")
                    && line.ends_with("it vanished while the repository was read")
            };
            assert!(errors.iter().all(named), "{}", ran.stderr);
            assert_eq!(ran.code, Some(i32::from(!errors.is_empty())), "{}", ran.stderr);
        }
        done.store(true, Ordering::Relaxed);
    });
    place.stage(&["run"]).done();
    let undisturbed = Place::new();
    undisturbed.stage(&["run"]).done();
    crate::support::assert_same(&place.files("cache"), &undisturbed.files("cache"));
}
