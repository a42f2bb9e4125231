//! `sample`, and files that stages take from elsewhere: tasks drawn, compressed, piped; prompts of any origin.

use std::io::Write;

use crate::support::{Place, assert_same};

/// With a repository that tasks can be drawn from.
fn place() -> Place {
    let place = Place::new();
    let source = "import os\n\n\ndef size(path, follow):\n    found = os.stat(path, follow_symlinks=follow)\n    return found.st_size\n";
    for n in 0..6 {
        let text = source.replace("size", &format!("size_{n}")).repeat(4);
        place.write(&format!("repos/gamma/part_{n}.py"), text);
    }
    place
}

#[test]
fn drawn_tasks_depend_on_the_seed_alone_and_run() {
    let place = place();
    let drawn = |more: &[&str]| {
        let args = [&["sample", "--kind", "line", "--repos-dir", "repos", "--per-repo", "5"], more]
            .concat();
        place.run(&args).done().stdout
    };
    let tasks = drawn(&["--seed", "1", "--threads", "1"]);
    assert_eq!(drawn(&["--seed", "1", "--threads", "4"]), tasks);
    assert_ne!(drawn(&["--seed", "2"]), tasks);
    assert_eq!(drawn(&["--seed", "1", "-o", "drawn.jsonl"]), "");
    assert_eq!(place.read("drawn.jsonl"), tasks);
    let ran =
        place.stage(&["run", "--tasks", "drawn.jsonl", "--mode", "rg1", "--format", "tsv"]).done();
    let count = tasks.lines().count();
    assert!(ran.stdout.contains(&format!("drawn\trg1\t{count}\t")), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_drawn_from_is_named() {
    let place = place();
    place.write("repos/alpha/bad.py", b"\xff");
    let args = ["sample", "--kind", "line", "--repos-dir", "repos"];
    let ran = place.run(&args).partly().says(&["error: repos/alpha/bad.py: left out: not UTF-8"]);
    assert!(ran.stdout.contains("gamma"));
    place
        .run(&[&args[..], &["--repo", "nowhere"]].concat())
        .failed()
        .says(&["nowhere", "No such file"]);
    place
        .run(&["sample", "--kind", "lines", "--repos-dir", "repos"])
        .failed()
        .says(&["lines", "line"]);
    place.run(&["sample", "--kind", "line"]).failed().says(&["--repos-dir is not set", "hint: "]);
}

#[test]
fn compressed_and_piped_tasks_are_the_same_tasks() {
    let (plain, packed) = (Place::new(), Place::new());
    plain.stage(&["run"]).done();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(packed.read("tasks.jsonl").as_bytes()).unwrap();
    packed.write("tasks.jsonl.gz", encoder.finish().unwrap());
    packed.stage(&["run", "--tasks", "tasks.jsonl.gz"]).done();
    assert_same(&packed.files("cache"), &plain.files("cache"));
    let line =
        "repoformer run --repos-dir repos --tasks - --cache-dir piped --benchmark tasks < tasks.jsonl";
    plain.shell(line).done();
    assert_same(&plain.files("piped"), &plain.files("cache"));
    // Half of a compressed file is no task file.
    let bytes = std::fs::read(packed.path("tasks.jsonl.gz")).unwrap();
    packed.write("half.jsonl.gz", &bytes[..bytes.len() / 2]);
    packed
        .stage(&["run", "--tasks", "half.jsonl.gz"])
        .failed()
        .says(&["error: half.jsonl.gz: cannot read this file: "]);
}

#[test]
fn a_bad_prompt_costs_no_other() {
    let place = Place::empty();
    let records = [
        r#"{"prompt": "x = 1\nx = 1\n", "metadata": {"ground_truth": "x = 1"}, "kept": [1]}"#,
        r#"{"prompt": 3, "metadata": {"ground_truth": "x = 1"}}"#,
        r#"{"prompt": "x = 1\n"}"#,
        r#"{"prompt": "#,
    ];
    place.write("prompts.jsonl", records.join("\n"));
    let args = ["complete", "--prompts", "prompts.jsonl", "-o", "-"];
    let ran = place.run(&args).partly().says(&[
        "error: prompts.jsonl:2: field 'prompt' must be a string, not a number",
        "error: prompts.jsonl:3: field 'metadata.ground_truth' is missing",
        "--max-lines",
        "error: prompts.jsonl:4: not JSON: ",
        "hint: correct the line or remove it",
        "complete: 1 predictions",
    ]);
    assert_eq!(ran.stdout.lines().count(), 1);
    let with_limit = place.run(&[&args[..], &["--max-lines", "2"]].concat());
    assert_eq!(with_limit.partly().stdout.lines().count(), 2);
    let missing = place.run(&["complete", "--prompts", "no.jsonl"]);
    missing.failed().says(&["no.jsonl: cannot open this file", "hint: check the path"]);
}
