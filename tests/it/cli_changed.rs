//! A repository that changes between two runs: only what changed is worked on again, and the artifacts are those of a
//! run from nothing.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Place, assert_same, jsonl, source, task};

/// Six files of 50 to 100 lines, some with text in common, and a task in each.
fn place() -> Place {
    let place = Place::empty();
    let shared = source("shared", 40);
    let mut tasks = Vec::new();
    for (n, name) in ["ant", "bee", "cat", "dog", "elk", "fox"]
        .iter()
        .enumerate()
    {
        let text = format!("{}{shared}{}", source(name, 10 * n + 5), source(name, 45));
        let path = format!("gamma/{}{name}.py", if n % 2 == 0 { "" } else { "sub/" });
        tasks.push(task(&format!("gamma/{n}"), &path, &text, 0, 40 + n));
        place.write(&format!("repos/{path}"), text);
    }
    place.write("tasks.jsonl", jsonl(&tasks));
    place
}

fn stages(place: &Place, cache: &str) -> BTreeMap<String, Vec<u8>> {
    for stage in [
        &["window"][..],
        &["vectorize"],
        &["search"],
        &["prompt"],
        &["complete"],
    ] {
        place.stage(&[stage, &["--cache-dir", cache]].concat());
    }
    place.files(cache)
}

/// Waits until the files are old enough to be known again by what the file system says of them: younger ones are read at
/// each run, since their time of change could stay the same.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(3100));
}

type Edit = fn(&Place);

#[test]
fn after_any_change_the_artifacts_are_those_of_a_run_from_nothing() {
    let edits: [(&str, Edit); 9] = [
        ("a line more at a file's end", |place| {
            let text = place.read("repos/gamma/cat.py");
            place.write("repos/gamma/cat.py", text + "more = shared(1)\n");
        }),
        ("a line more at a file's beginning", |place| {
            let text = place.read("repos/gamma/sub/bee.py");
            place.write("repos/gamma/sub/bee.py", format!("import shared\n{text}"));
        }),
        ("a new file, of text that others have", |place| {
            place.write("repos/gamma/a_first.py", source("shared", 40));
        }),
        ("a file less", |place| {
            fs::remove_file(place.path("repos/gamma/elk.py")).unwrap();
        }),
        ("a file that moves", |place| {
            let (from, to) = (
                place.path("repos/gamma/ant.py"),
                place.path("repos/gamma/sub/ant.py"),
            );
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
    settle();
    stages(&place, "warm");
    for (n, (what, edit)) in edits.iter().enumerate() {
        edit(&place);
        println!("{what}");
        let warm = stages(&place, "warm");
        assert_same(&warm, &stages(&place, &format!("cold-{n}")));
    }
}

#[test]
fn a_damaged_or_foreign_note_costs_time_alone() {
    let place = place();
    settle();
    let wanted = stages(&place, "cache");
    let notes: Vec<String> = place.times("cache/.notes").into_keys().collect();
    assert_eq!(
        notes.len(),
        7,
        "stamps, and the inputs of three modes' prompts and predictions: {notes:?}"
    );
    for note in &notes {
        let path = format!("cache/.notes/{note}");
        let bytes = fs::read(place.path(&path)).unwrap();
        for bytes in [
            &b""[..],
            &bytes[..bytes.len() / 2],
            b"something else altogether, longer than a digest",
        ] {
            place.write(&path, bytes);
            assert_same(&stages(&place, "cache"), &wanted);
        }
    }
    // A note that speaks of other artifacts than are there.
    let text = place.read("repos/gamma/cat.py");
    place.write("repos/gamma/cat.py", format!("{text}x = 1\n"));
    let changed = stages(&place, "cache");
    let (windows, other) = (
        "window/repos/gamma_ws20_slice2.bin",
        "vector/repos/gamma_ws20_slice2.one-gram.bin",
    );
    for path in [windows, other] {
        place.write(&format!("cache/{path}"), &wanted[path]);
        assert_same(&stages(&place, "cache"), &changed);
    }
    fs::remove_dir_all(place.path("cache/.notes")).unwrap();
    assert_same(&stages(&place, "cache"), &changed);
}

#[test]
fn a_settled_file_of_the_same_size_and_time_but_another_content_is_noticed() {
    let place = place();
    let wanted = stages(&place, "cache");
    settle();
    assert_same(&stages(&place, "cache"), &wanted);
    let path = place.path("repos/gamma/cat.py");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let text = place
        .read("repos/gamma/cat.py")
        .replacen("cat_0", "tac_0", 1);
    fs::write(&path, &text).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(before).unwrap();
    let changed = stages(&place, "cache");
    let windows = "window/repos/gamma_ws20_slice2.bin";
    assert_ne!(changed[windows], wanted[windows]);
    assert_same(&changed, &stages(&place, "cold"));
}

#[test]
fn stages_that_were_left_out_between_two_changes_are_made_up_for() {
    let place = place();
    settle();
    stages(&place, "cache");
    let path = "repos/gamma/cat.py";
    for (n, run) in [
        &[&["window"][..]][..],
        &[&["window"], &["vectorize"]],
        &[&["window"], &["vectorize"], &["search"]],
        &[&["window"], &["search"]],
    ]
    .iter()
    .enumerate()
    {
        for change in 0..2 {
            let text = place.read(path);
            place.write(path, format!("line_{n}_{change} = shared({n})\n{text}"));
            for stage in *run {
                place.stage(stage);
            }
        }
        assert_same(
            &stages(&place, "cache"),
            &stages(&place, &format!("cold-{n}")),
        );
    }
}

#[test]
fn windows_that_were_damaged_are_cut_from_the_repository_after_a_change() {
    let place = place();
    settle();
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
    place.write(
        "repos/gamma/data.py",
        format!("x = '{}'\n", "y".repeat(1 << 20)),
    );
    settle();
    for _ in 0..2 {
        place
            .stage(&["window"])
            .done()
            .says(&["gamma/data.py:1: a line of 1048582 bytes"]);
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
        place.write(
            &format!("repos/r{n:02}/b.py"),
            text.replace("name", "other"),
        );
    }
    place.write("tasks.jsonl", jsonl(&tasks));
    // Each thread has a few files open.
    let flags = "--repos-dir repos --tasks tasks.jsonl --cache-dir cache --threads 2";
    for stage in ["window", "vectorize", "search", "prompt", "complete"] {
        place
            .shell(&format!("ulimit -n 48; $BIN {stage} {flags}"))
            .done();
    }
    assert_eq!(
        place
            .records("cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl")
            .len(),
        60
    );
}
