//! `--shard I/N` and `merge`: the shards together are what one process makes, to the byte, in any order and for any N.

use std::fs;

use serde_json::json;

use crate::support::completion;
use crate::support::server::server;
use crate::support::{Place, Ran, assert_same, judge, task};

const DATA: [&str; 4] = ["--repos-dir", "repos", "--tasks", "tasks.jsonl"];

/// Eight repositories with two tasks each, those of a repository not in a row.
fn place() -> Place {
    let place = Place::empty();
    let mut tasks = Vec::new();
    for round in 0..2 {
        for name in ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"] {
            let text: String =
                (0..40).map(|n| format!("{name}_{n} = make_{name}({n}, {})\n", n % 7)).collect();
            place.write(&format!("repos/{name}/a.py"), &text);
            place.write(&format!("repos/{name}/b.py"), text.replace("make", "build"));
            let (id, line) = (format!("{name}/{round}"), 20 + 10 * round);
            tasks.push(task(&id, &format!("{name}/a.py"), &text, 0, line));
        }
    }
    place.write("tasks.jsonl", crate::support::jsonl(&tasks));
    place
}

fn with<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, &DATA, more].concat()
}

const STAGES: [&[&str]; 5] = [&["window"], &["vectorize"], &["search"], &["prompt"], &["complete"]];

#[test]
fn each_shard_has_a_journal_and_no_request_is_sent_again() {
    let place = place();
    let (url, asked) = server(|_| completion("x = 1"));
    let model = ["--model", "tiny", "--max-tokens", "8", "--mode", "none", "--cache-dir", "cache"];
    let asking = [&model[..], &["--endpoint", &url]].concat();
    let merge = || place.run(&with(&["merge"], &[&model[..], &["--shards", "2"]].concat()));
    merge().failed().says(&["holds no prompts of 2 shards"]);
    for shard in ["1/2", "2/2"] {
        place.run(&with(&["window"], &["--cache-dir", "cache", "--shard", shard])).done();
        for (stage, more) in [("prompt", &model[4..]), ("complete", &asking)] {
            place.run(&with(&[stage], &[more, &["--shard", shard]].concat())).done();
        }
    }
    let early = place.run(&with(&["rg-rg"], &["--cache-dir", "cache", "--shard", "1/2"]));
    early.failed().says(&["of all shards are missing"]);
    let requests = asked.lock().unwrap().len();
    merge().done().says(&["2 artifacts (written)"]);
    let again = place.run(&with(&["complete"], &asking)).done();
    again.says(&["16 records in 1 artifact (current)"]);
    assert_eq!(asked.lock().unwrap().len(), requests);
    assert_eq!(place.count("cache/journal"), 2);
    let lost = "cache/prompts/tasks/none-one-gram-ws-20-ss-2.shard-2-of-2.jsonl";
    fs::remove_file(place.path(lost)).unwrap();
    let lost = ["the prompts of shard 2/2 are missing", "`repoformer prompt --mode none`"];
    merge().partly().says(&lost);
}

#[test]
fn files_of_shards_become_the_file_of_one_process() {
    let place = place();
    place.add_samples();
    let raw = ["convert", "--to", "raw", "--repos-dir", "repos", "-o", "raw.jsonl"];
    place.run(&raw).done();
    let draw: [(&str, &[&str]); 3] = [
        ("label", &["label", "sample", "--repos-dir", "repos", "--no-filter"]),
        ("from-raw", &["label", "sample", "--raw", "raw.jsonl", "--no-filter"]),
        ("sample", &["sample", "--repos-dir", "repos", "--kind", "line", "--per-repo", "5"]),
    ];
    for (name, command) in draw {
        let whole = format!("{name}.jsonl");
        place.run(&[command, &["-o", &whole]].concat()).done();
        for shards in [1, 2, 13] {
            let part = |shard: u32| format!("{name}-{shard}-of-{shards}.jsonl.gz");
            for shard in 1..=shards {
                let number = format!("{shard}/{shards}");
                place.run(&[command, &["--shard", &number, "-o", &part(shard)]].concat()).done();
            }
            let mut parts: Vec<String> = (1..=shards).rev().map(part).collect();
            let merge = |parts: &[String]| {
                let parts = parts.iter().map(String::as_str);
                place.run(
                    &["merge"]
                        .into_iter()
                        .chain(parts)
                        .chain(["-o", "merged.jsonl"])
                        .collect::<Vec<_>>(),
                )
            };
            merge(&parts).done();
            assert_eq!(place.read("merged.jsonl"), place.read(&whole), "{name} {shards}");
            fs::remove_file(place.path("merged.jsonl")).unwrap();
            if shards == 1 {
                continue;
            }
            // A lost one, one that is named twice, one that was changed.
            let lost = parts.pop().unwrap();
            let said = merge(&parts).failed().stderr;
            assert!(said.contains(&format!("shards are missing: 1/{shards}")), "{said}");
            parts.extend([lost.clone(), lost.clone()]);
            let said = merge(&parts).failed().stderr;
            assert!(said.contains("would count twice"), "{said}");
            parts.pop();
            place.write(&lost, "{}\n");
            let said = merge(&parts).failed().stderr;
            assert!(said.contains("damaged or changed"), "{said}");
            fs::remove_file(place.path(&format!("{lost}.manifest.json"))).unwrap();
            let said = merge(&parts).failed().stderr;
            assert!(said.contains("not the file of a shard"), "{said}");
            assert!(!place.path("merged.jsonl").exists());
        }
    }
    // Parts of other commands.
    let part = |more: &[&str], file: &str| {
        let command: &[&str] =
            &["label", "sample", "--repos-dir", "repos", "--no-filter", "-o", file];
        place.run(&[command, more].concat()).done();
    };
    part(&["--shard", "1/2"], "a.jsonl");
    part(&["--shard", "2/2", "--seed", "7"], "b.jsonl");
    let said = place.run(&["merge", "a.jsonl", "b.jsonl", "-o", "merged.jsonl"]).failed().stderr;
    assert!(
        said.contains("b.jsonl: does not belong to the same command as a.jsonl: seed differs"),
        "{said}"
    );
    part(&["--shard", "2/3"], "b.jsonl");
    let said = place.run(&["merge", "a.jsonl", "b.jsonl", "-o", "merged.jsonl"]).failed().stderr;
    assert!(said.contains("it is shard 2/3, not one of 2"), "{said}");
}

/// The second of two processes on one shard waits for what the first makes.
#[test]
fn two_workers_on_one_shard_do_nothing_twice() {
    let place = place();
    let (url, asked) = server(|_| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        completion("x = 1")
    });
    let shard = ["--mode", "none", "--cache-dir", "cache", "--shard", "1/2"];
    for stage in ["window", "prompt"] {
        place.run(&with(&[stage], &shard)).done();
    }
    let asking = ["--model", "tiny", "--max-tokens", "8", "--concurrency", "1", "--endpoint", &url];
    let complete = with(&["complete"], &[&shard[..], &asking].concat());
    let mut first = place.command(&complete).spawn().unwrap();
    while asked.lock().unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = place.run(&complete).done();
    assert!(second.stderr.contains("waiting for another process"), "{}", second.stderr);
    assert!(second.stderr.contains("(current)"), "{}", second.stderr);
    assert!(first.wait().unwrap().success());
    let prompts =
        place.records("cache/prompts/tasks/none-one-gram-ws-20-ss-2.shard-1-of-2.jsonl").len();
    assert_eq!(asked.lock().unwrap().len(), prompts);

    place.write("part.jsonl.drawn", "");
    let lock = fs::File::options().write(true).open(place.path("part.jsonl.drawn")).unwrap();
    lock.lock().unwrap();
    let draw = ["label", "sample", "--repos-dir", "repos", "--no-filter", "--shard", "1/2"];
    let draw = [&draw[..], &["-o", "part.jsonl"]].concat();
    let second = place.run(&draw).failed();
    assert!(second.stderr.contains("part.jsonl.drawn: another"), "{}", second.stderr);
    drop(lock);
    place.run(&draw).done();
}

/// The language is that of the shards.
#[test]
fn shards_of_another_language_are_drawn_from() {
    let place = Place::empty();
    let class = |n: usize| {
        format!(
            "package a;\nclass C{n} {{\n  int f(int x) {{\n    int y = x + {n};\n    return C{}.f(y);\n  }}\n}}\n",
            n + 1
        )
    };
    for n in 0..12 {
        place.write(&format!("repos/ann_one/C{n}.java"), class(n).repeat(2));
    }
    let convert = ["convert", "--to", "raw", "--repos-dir", "repos", "--language", "java"];
    place.run(&[&convert[..], &["-o", "raw.jsonl"]].concat()).done();
    let group = ["group", "raw.jsonl", "--language", "java", "--shards", "2", "-o", "grouped"];
    place.run(&group).done();
    let draw = |raw: &str, more: &[&str]| {
        let draw = ["label", "sample", "--raw", raw, "--no-filter", "-o", "i.jsonl"];
        place.run(&[&draw[..], more].concat())
    };
    draw("grouped", &[]).done();
    let drawn = place.records("i.jsonl");
    assert!(
        drawn.iter().all(|one| one["metadata"]["filename"].as_str().unwrap().ends_with(".java"))
    );
    assert!(!drawn.is_empty());
    let said = draw("grouped", &["--language", "python"]).failed().stderr;
    assert!(said.contains("grouped: grouped for java only, not for python"), "{said}");
    let filled = [1, 2].map(|n| format!("grouped/shard-0000{n}-of-00002.jsonl.zst"));
    let sizes = filled.each_ref().map(|name| fs::metadata(place.path(name)).unwrap().len());
    let one = &filled[usize::from(sizes[1] > sizes[0])];
    draw(one, &[]).done();
    assert_eq!(place.records("i.jsonl"), drawn);
}

/// A rank's commands, as docs/workflows/stack.py has them, on shards of which most are empty.
#[test]
fn labels_of_all_shards_are_those_of_one_process() {
    let place = Place::empty();
    place.add_samples();
    let label = |name: &str, shard: Option<&str>| {
        let (instances, labels) = (format!("i-{name}.jsonl"), format!("l-{name}.jsonl"));
        let cache = format!("cache-{name}");
        let draw = ["label", "sample", "--repos-dir", "repos", "--no-filter", "-o", &instances];
        let part = shard.map(|shard| ["--shard", shard]);
        place.run(&[&draw[..], part.as_ref().map_or(&[], |part| &part[..])].concat()).done();
        for stage in ["prompt", "complete"] {
            let style = ["--prompt-style", "starcoder", "--mode", "none,given"];
            let data = ["--benchmark", "b", "--tasks", &instances, "--cache-dir", &cache];
            place.run(&[&[stage][..], &style, &data].concat()).done();
        }
        let of = |mode: &str| format!("{cache}/predictions/b/{mode}-starcoder-in-context.jsonl");
        let (base, rag) = (of("none"), of("given"));
        place.run(&[&judge(&instances, &base, &rag)[..], &["-o", &labels]].concat()).done();
        labels
    };
    let whole = label("whole", None);
    let parts: Vec<String> =
        (1..=5).map(|part| label(&part.to_string(), Some(&format!("{part}/5")))).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let empty = parts.iter().filter(|part| place.read(part).is_empty());
    assert!(empty.count() >= 2);
    place.run(&[&["merge"][..], &parts, &["-o", "labels.jsonl"]].concat()).done();
    assert_eq!(place.read("labels.jsonl"), place.read(&whole));

    // Shards of whole instances.
    let of = |mode: &str| format!("cache-whole/predictions/b/{mode}-starcoder-in-context.jsonl");
    let (base, rag) = (of("none"), of("given"));
    for shards in [1, 2, 7] {
        let part = |number: u32| format!("part-{number}-of-{shards}.jsonl");
        for number in 1..=shards {
            let (shard, labels) = (format!("{number}/{shards}"), part(number));
            let more = ["--shard", &shard, "-o", &labels];
            place.run(&[&judge("i-whole.jsonl", &base, &rag)[..], &more].concat()).done();
        }
        let parts: Vec<String> = (1..=shards).rev().map(part).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        place.run(&[&["merge"][..], &parts, &["-o", "labels.jsonl"]].concat()).done();
        assert_eq!(place.read("labels.jsonl"), place.read(&whole), "{shards}");
    }
    // Judged otherwise, or not all of them.
    let judged = |shard: &str, base: &str, more: &[&str], labels: &str| {
        let all = [&["--shard", shard, "-o", labels][..], more].concat();
        place.run(&[&judge("i-whole.jsonl", base, &rag)[..], &all].concat())
    };
    judged("1/2", &base, &[], "one.jsonl").done();
    judged("2/2", &base, &["--postprocess", "first-line"], "two.jsonl").done();
    let said = place.run(&["merge", "one.jsonl", "two.jsonl", "-o", "both.jsonl"]).failed().stderr;
    assert!(said.contains("postprocess differs"), "{said}");
    let some: Vec<String> =
        place.read(&base).lines().skip(3).map(|line| format!("{line}\n")).collect();
    place.write("some.jsonl", some.concat());
    for (shard, labels) in [("1/2", "one.jsonl"), ("2/2", "two.jsonl")] {
        judged(shard, "some.jsonl", &["--model", "in-context"], labels);
    }
    let said = place.run(&["merge", "one.jsonl", "two.jsonl", "-o", "both.jsonl"]).partly().stderr;
    assert!(
        said.contains(": lacks ") && said.contains("since their inputs were missing"),
        "{said}"
    );
    let more = ["--shard", "1/5", "-o", "labels.jsonl"];
    let said = place.run(&[&judge("i-2.jsonl", &base, &rag)[..], &more].concat()).failed().stderr;
    assert!(
        said.contains("i-2.jsonl: contains the instances of shard 2/5, not of shard 1/5"),
        "{said}"
    );
}

/// Labels of 12 repositories whose names say little about their shards, those of a repository not in a row.
fn labelled(place: &Place) {
    let label = |number: usize| {
        let repository = format!("r{}", number % 12);
        let helps = number.is_multiple_of(3);
        json!({
            "metadata": {"task_id": format!("{repository}/{number}"), "filename": format!("{repository}/a.py"), "start_i": number, "end_i": number + 1},
            "prompt": format!("x_{} = '{repository}'\n", number / 2), "groundtruth": "y = 1", "right_context": "\nz = y\n",
            "crossfile_context": {"text": "# b = 2\n", "list": []}, "es_infile": 0.25,
            "es_rg1": if helps { 0.75 } else { 0.25 }, "generation_model": "m", "label": helps, "threshold": 0.0,
        })
    };
    let mut labels: Vec<_> = (0..60).map(label).collect();
    labels[7]["metadata"]["filename"] = json!("a.py");
    labels[9]["groundtruth"] = json!("");
    place.write("labels.jsonl", crate::support::jsonl(&labels));
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::copy(fixtures.join("tokenizers/starcoder.json"), place.path("tokenizer.json")).unwrap();
}

#[test]
fn sequences_of_all_shards_are_those_of_one_process() {
    let place = Place::empty();
    labelled(&place);
    let verbalize = |folder: &str, more: &[&str]| {
        let labels = ["label", "verbalize", "--labels", "labels.jsonl", "--validation", "0.2"];
        let rest = ["--tokenizer", "tokenizer.json", "-o", folder];
        place.run(&[&labels[..], &rest, more].concat())
    };
    let wrong = ["labels.jsonl:8: field 'metadata.filename'", "labels.jsonl:10: its ground truth"];
    let named = |said: &str| wrong.iter().filter(|wrong| said.contains(*wrong)).count();
    let said = verbalize("whole", &[]).partly().stderr;
    assert_eq!(named(&said), 2, "{said}");
    let whole = place.files("whole");
    let names: Vec<&str> = whole.keys().map(String::as_str).collect();
    let sets = ["train.jsonl", "train.parquet", "validation.jsonl", "validation.parquet"];
    assert_eq!(names, [&["prompt-style.toml", "tokenizer.json"], &sets[..]].concat());
    for shards in [1, 3, 30] {
        let parts: Vec<String> = (1..=shards).rev().map(|n| format!("{n}-of-{shards}")).collect();
        let mut warned = 0;
        for (part, number) in parts.iter().zip((1..=shards).rev()) {
            let said = verbalize(part, &["--shard", &format!("{number}/{shards}")]).stderr;
            warned += named(&said);
            assert!(!place.path(&format!("{part}/train.parquet")).exists(), "{said}");
        }
        assert!(warned >= 2, "nobody knows which shard's they are");
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let merge =
            |parts: &[&str]| place.run(&[&["merge"][..], parts, &["-o", "merged"]].concat());
        merge(&parts).done();
        assert_same(&whole, &place.files("merged"));
        if shards != 3 {
            continue;
        }
        let said = merge(&parts[1..]).failed().stderr;
        assert!(said.contains("shards are missing: 3/3"), "{said}");
        let said = merge(&[&parts[..], &["labels.jsonl"]].concat()).failed().stderr;
        assert!(said.contains("files and folders cannot be merged"), "{said}");
        let tokenizer = place.read("1-of-3/tokenizer.json");
        // In the order of the command's arguments, none of which is the first shard.
        place.write("1-of-3/tokenizer.json", format!("{tokenizer} "));
        let said = merge(&parts).failed().stderr;
        assert!(
            said.contains("not the file that the sequences in this folder were made with"),
            "{said}"
        );
        place.write("1-of-3/tokenizer.json", tokenizer);
        let said = verbalize("2-of-3", &["--shard", "1/3"]).failed().stderr;
        assert!(said.contains("2-of-3: contains the sequences of shard 2/3"), "{said}");
        verbalize("2-of-3", &["--shard", "2/3", "--seed", "7"]).partly();
        let said = merge(&parts).failed().stderr;
        assert!(said.contains("seed differs"), "{said}");
        assert_same(&whole, &place.files("merged"));
        let said = verbalize("whole", &["--shard", "2/3"]).failed().stderr;
        assert!(said.contains("whole: contains the sequences of all shards"), "{said}");
        // A whole run into a shard's folder leaves nothing of the shard.
        verbalize("1-of-3", &[]).partly();
        assert_same(&whole, &place.files("1-of-3"));
        let said = merge(&parts).failed().stderr;
        assert!(said.contains("not the file of a shard"), "{said}");
    }
}

/// Copies of prompts and predictions, scores of each task, and results of unit tests.
#[test]
fn scores_of_all_shards_are_those_of_one_process() {
    let place = place();
    let run = |command: &[&str], more: &[&str]| place.run(&with(command, more));
    let prompts: &[&str] = &["prompt", "--mode", "rg1"];
    let copies: &[&str] = &["complete", "--mode", "rg1"];
    let scores: &[&str] = &["eval", "--mode", "none,rg1", "--per-task"];
    let tested: &[&str] = &[
        "eval",
        "--exec",
        "--isolation",
        "auto",
        "--test-cmd",
        "! grep -qE 'raise|assert|exit' a.py",
        "--runner",
        "exit-code",
        "--mode",
        "none,rg1",
        "--per-task",
    ];
    let outputs =
        [("prompts", prompts), ("copies", copies), ("scores", scores), ("tested", tested)];
    let of_file = |predictions: &str, output: &str, more: &[&str]| {
        let file = ["--predictions", predictions, "--per-task", "-o", output];
        run(&["eval"], &[&file[..], more].concat()).done();
    };
    let cache = ["--cache-dir", "whole"];
    for stage in STAGES {
        run(stage, &cache).done();
    }
    for (name, command) in outputs {
        run(command, &[&["-o", &format!("{name}.jsonl")][..], &cache].concat()).done();
    }
    of_file("copies.jsonl", "of-file.jsonl", &[]);
    for shards in [1, 3] {
        let cache = format!("cache-{shards}");
        let part = |name: &str, number: u32| format!("{name}-{number}-of-{shards}.jsonl");
        for number in 1..=shards {
            let shard = format!("{number}/{shards}");
            let more = ["--cache-dir", &cache, "--shard", &shard];
            for stage in STAGES {
                run(stage, &more).done();
            }
            for (name, command) in outputs {
                run(command, &[&["-o", &part(name, number)][..], &more].concat()).done();
            }
            // Of a shard's prompts, and of the shard's tasks in the predictions of all.
            let (file, own) = (part("prompts", number), part("own", number));
            place.run(&["complete", "--prompts", &file, "-o", &own]).done();
            of_file("copies.jsonl", &part("of-file", number), &more);
            of_file(&own, &part("of-own", number), &more);
        }
        for (name, whole) in [
            ("prompts", "prompts"),
            ("copies", "copies"),
            ("scores", "scores"),
            ("tested", "tested"),
            ("own", "copies"),
            ("of-file", "of-file"),
            ("of-own", "of-file"),
        ] {
            let parts: Vec<String> = (1..=shards).rev().map(|number| part(name, number)).collect();
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            place.run(&[&["merge"][..], &parts, &["-o", "merged.jsonl"]].concat()).done();
            let whole = place.read(&format!("{whole}.jsonl"));
            assert_eq!(place.read("merged.jsonl"), whole, "{name} {shards}");
        }
        // No test runs again.
        let count = shards.to_string();
        let merged = run(&["merge"], &["--cache-dir", &cache, "--shards", &count]).done();
        assert!(merged.stderr.contains("unit-test results to"), "{}", merged.stderr);
        let results = || place.records(&format!("{cache}/exec/tasks/results.jsonl")).len();
        let known = results();
        assert!(known > 0);
        run(tested, &["-o", "tested.jsonl", "--cache-dir", &cache]).done();
        assert_eq!(results(), known);
        run(&["merge"], &["--cache-dir", &cache, "--shards", &count]).done();
        assert_eq!(results(), known);
    }
    // Of other prompts, and of other tasks.
    let rest = place
        .read("tasks.jsonl")
        .lines()
        .skip(2)
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    place.write("other/tasks.jsonl", rest);
    for (shard, tasks, sizes, name) in [
        ("1/2", "tasks.jsonl", "20", "of-1"),
        ("2/2", "tasks.jsonl", "10", "of-2"),
        ("2/2", "other/tasks.jsonl", "20", "of-3"),
    ] {
        let cache = format!("cache-{name}");
        let more = [
            "--repos-dir", "repos", "--tasks", tasks, "--cache-dir", &cache, "--shard", shard,
            "--window-size", sizes,
        ];
        for stage in STAGES {
            place.run(&[stage, &more[..]].concat()).done();
        }
        let copy = format!("copy-{name}.jsonl");
        let scored = format!("scored-{name}.jsonl");
        place.run(&[copies, &more[..], &["-o", &copy]].concat()).done();
        place.run(&[scores, &more[..], &["-o", &scored]].concat()).done();
    }
    for (kind, other, said) in [
        ("copy", "of-2", "input prompts differs"),
        ("scored", "of-2", "input prompts."),
        ("copy", "of-3", "input tasks differs"),
        ("scored", "of-3", "input tasks differs"),
    ] {
        let parts = [format!("{kind}-of-1.jsonl"), format!("{kind}-{other}.jsonl")];
        let merged = place.run(&["merge", &parts[0], &parts[1], "-o", "merged.jsonl"]).failed();
        assert!(merged.stderr.contains(said), "{kind} {other}: {}", merged.stderr);
    }
    let lost = place.path("cache-3/exec/tasks/results.shard-2-of-3.jsonl");
    fs::remove_file(lost).unwrap();
    let merge = ["--cache-dir", "cache-3", "--shards", "3"];
    let said = run(&["merge"], &merge).partly().stderr;
    assert!(said.contains("unit-test results of shard 2/3 are missing"), "{said}");
}

#[test]
fn what_has_no_shards_refuses_them() {
    let place = place();
    let bad = place.run(&with(&["window"], &["--shard", "3/2"])).failed();
    assert!(bad.stderr.contains("2/8 for the second of eight"), "{}", bad.stderr);
    let all = place.command(&with(&["run"], &[])).env("REPOFORMER_SHARD", "1/2").output().unwrap();
    let said = String::from_utf8(all.stderr).unwrap();
    assert!(
        said.contains("REPOFORMER_SHARD is 1/2, but this command works on all repositories"),
        "{said}"
    );
    let iterations = ["--iterations", "2", "--shard", "1/2"];
    let iterated = place.run(&with(&["rg-rg"], &iterations)).failed();
    assert!(iterated.stderr.contains("the completions of all shards"), "{}", iterated.stderr);
    for (more, said) in [
        (&["-o", "s.jsonl"][..], "mean scores of shards"),
        (&["--per-task", "-o", "s.csv"], "mean scores of shards"),
        (
            &["--per-task", "-o", "s.jsonl", "--results", "r"],
            "--shard cannot be used with --results",
        ),
        (
            &["--per-task", "-o", "s.jsonl", "--retrieval"],
            "--shard cannot be used with --retrieval",
        ),
    ] {
        let scored = place.run(&with(&["eval", "--shard", "1/2"], more)).failed();
        assert!(scored.stderr.contains(said), "{}", scored.stderr);
    }
    for command in [&["report"][..], &["label", "all", "--repos-dir", "repos", "-o", "labels"]] {
        let said =
            Ran::new(place.command(command).env("REPOFORMER_SHARD", "1/2").output().unwrap());
        assert!(said.failed().stderr.contains("this command works on all repositories"));
    }
    let file = place.run(&["complete", "--prompts", "tasks.jsonl", "--shard", "1/2"]).failed();
    assert!(file.stderr.contains("--shard cannot be used with --prompts"), "{}", file.stderr);
    let nothing = place.run(&["merge"]).failed();
    assert!(nothing.stderr.contains("nothing to merge"), "{}", nothing.stderr);
    assert_eq!(json!(place.count("cache")), json!(0));
}

/// A manifest may name any number of shards.
#[test]
fn a_part_of_very_many_shards_is_refused_at_once() {
    let place = Place::empty();
    place.write("a.jsonl", "{\"a\":1}\n");
    let shard = json!({"part": format!("1/{}", u64::MAX), "records": [[0, 1]]});
    let manifest = json!({"tool": "repoformer", "kind": "instances", "shard": shard,
        "output": {"bytes": 8, "blake3": "0"}});
    place.write("a.jsonl.manifest.json", manifest.to_string());
    let ran = place.shell("ulimit -v 4000000; repoformer merge a.jsonl -o m.jsonl").failed();
    ran.says(&["shards are missing: 2/18446744073709551615, ", " and 18446744073709551594 more"]);
}
