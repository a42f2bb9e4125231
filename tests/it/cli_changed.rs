//! A repository that changes between two runs: the artifacts are those of a run from nothing.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Place, assert_same, jsonl, source, task};

/// Six files of 50 to 100 lines, some with text in common, and a task in each.
fn place() -> Place {
    let place = Place::empty();
    let shared = source("shared", 40);
    let mut tasks = Vec::new();
    for (n, name) in ["ant", "bee", "cat", "dog", "elk", "fox"].iter().enumerate() {
        let text = format!("{}{shared}{}", source(name, 10 * n + 5), source(name, 45));
        let path = format!("gamma/{}{name}.py", if n % 2 == 0 { "" } else { "sub/" });
        tasks.push(task(&format!("gamma/{n}"), &path, &text, 0, 40 + n));
        place.write(&format!("repos/{path}"), text);
    }
    place.write("tasks.jsonl", jsonl(&tasks));
    place
}

fn stages(place: &Place, cache: &str) -> BTreeMap<String, Vec<u8>> {
    for stage in [&["window"][..], &["vectorize"], &["search"], &["prompt"], &["complete"]] {
        place.stage(&[stage, &["--cache-dir", cache]].concat());
    }
    place.files(cache)
}

type Edit = fn(&Place);

#[test]
fn after_any_change_the_artifacts_are_those_of_a_run_from_nothing() {
    let edits: [(&str, Edit); 10] = [
        ("a line more at a file's end", |place| {
            let text = place.read("repos/gamma/cat.py");
            place.write("repos/gamma/cat.py", text + "more = shared(1)\n");
        }),
        ("a line more at a file's beginning", |place| {
            let text = place.read("repos/gamma/sub/bee.py");
            place.write("repos/gamma/sub/bee.py", format!("import shared\n{text}"));
        }),
        ("another text of the same size and time", |place| {
            let path = place.path("repos/gamma/cat.py");
            let before = fs::metadata(&path).unwrap().modified().unwrap();
            let text = place.read("repos/gamma/cat.py");
            fs::write(&path, text.replacen("cat_0", "tac_0", 1)).unwrap();
            let file = fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(before).unwrap();
        }),
        ("a new file, of text that others have", |place| {
            place.write("repos/gamma/a_first.py", source("shared", 40));
        }),
        ("a file less", |place| {
            fs::remove_file(place.path("repos/gamma/elk.py")).unwrap();
        }),
        ("a file that moves", |place| {
            let (from, to) =
                (place.path("repos/gamma/ant.py"), place.path("repos/gamma/sub/ant.py"));
            fs::rename(from, to).unwrap();
        }),
        ("a link to a file", |place| {
            std::os::unix::fs::symlink("cat.py", place.path("repos/gamma/link.py")).unwrap();
        }),
        ("a link that is a file of its own again", |place| {
            let text = place.read("repos/gamma/cat.py");
            fs::remove_file(place.path("repos/gamma/link.py")).unwrap();
            place.write("repos/gamma/link.py", text);
        }),
        ("a file that is no text", |place| {
            place.write("repos/gamma/sub/dog.py", b"\xff\xfe");
        }),
        ("nothing", |_| {}),
    ];
    let place = place();
    stages(&place, "warm");
    for (n, (edited, edit)) in edits.iter().enumerate() {
        edit(&place);
        println!("{edited}");
        let warm = stages(&place, "warm");
        assert_same(&warm, &stages(&place, &format!("cold-{n}")));
    }
}

#[test]
fn windows_that_were_damaged_are_cut_from_the_repository_after_a_change() {
    let place = place();
    stages(&place, "cache");
    let windows = "cache/window/repos/gamma_ws20_slice2.bin";
    let mut bytes = fs::read(place.path(windows)).unwrap();
    let at = bytes.len() - 3; // in the text of sub/fox.py
    bytes[at] ^= 1;
    place.write(windows, bytes);
    let text = place.read("repos/gamma/ant.py");
    place.write("repos/gamma/ant.py", text + "more = 1\n");
    place.stage(&["window"]).done();
    assert_same(&stages(&place, "cache"), &stages(&place, "cold"));
}

#[test]
fn a_line_too_long_is_warned_of_each_time() {
    let place = place();
    place.write("repos/gamma/data.py", format!("x = '{}'\n", "y".repeat(1 << 20)));
    for _ in 0..2 {
        place.stage(&["window"]).done().says(&["gamma/data.py:1: a line of 1048582 bytes"]);
    }
}

#[test]
fn hundreds_of_repositories_are_not_held_open_at_once() {
    let place = Place::empty();
    let mut tasks = Vec::new();
    for n in 0..60 {
        let (text, path) = (source(&format!("name_{n}"), 30), format!("r{n:02}/a.py"));
        tasks.push(task(&format!("r{n:02}/0"), &path, &text, 0, 20));
        place.write(&format!("repos/{path}"), &text);
        place.write(&format!("repos/r{n:02}/b.py"), text.replace("name", "other"));
    }
    place.write("tasks.jsonl", jsonl(&tasks));
    // Each thread has a few files open.
    let flags = "--repos-dir repos --tasks tasks.jsonl --cache-dir cache --threads 2";
    for stage in ["window", "vectorize", "search", "prompt", "complete"] {
        place.shell(&format!("ulimit -n 48; repoformer {stage} {flags}")).done();
    }
    assert_eq!(place.records("cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl").len(), 60);
}
