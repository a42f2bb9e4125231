//! Odd files and names: the program counts and names what it skips, and reads the rest.

use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Place, jsonl, parse_jsonl};

/// A name that no file system of Linux has: 258 bytes.
fn long_name() -> String {
    format!("{}.py", "n".repeat(255))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Whatever flag names an output, and whatever name a file next to it has.
#[cfg(unix)]
#[test]
fn what_a_command_reads_is_not_overwritten() {
    let place = Place::new();
    place.all_stages(&[]);
    let predictions = place.read(&place.named("cache/predictions/tasks", "rg1"));
    for path in ["R/prediction_truncated.jsonl", "S/detailed_results.json", "table.manifest.json"] {
        place.write(path, &predictions);
    }
    let tasks = place.read("tasks.jsonl");
    for path in ["out/index.html", "t.jsonl", "e.json.manifest.json"] {
        place.write(path, &tasks);
    }
    place.write("style.toml", "template = \"{#cross_file}{cross_file}\\n{/cross_file}{left}\"\n");
    place.write("tokenizer.json", include_str!("../fixtures/tokenizers/starcoder.json"));
    let prompts = place.named("cache/prompts/tasks", "rg1");
    let source = "repos/alpha/store.py";
    let data = ["--repos-dir", "repos", "--cache-dir", "cache"];
    for (input, args) in [
        (
            "R/prediction_truncated.jsonl",
            &[
                "eval",
                "--tasks",
                "t.jsonl",
                "--predictions",
                "R/prediction_truncated.jsonl",
                "--results",
                "R",
            ][..],
        ),
        (
            "S/detailed_results.json",
            &[
                "eval",
                "--tasks",
                "t.jsonl",
                "--predictions",
                "S/detailed_results.json",
                "--results",
                "S",
            ],
        ),
        (
            "e.json.manifest.json",
            &[
                "eval",
                "--tasks",
                "e.json.manifest.json",
                "--predictions",
                "S/detailed_results.json",
                "-o",
                "e.json",
            ],
        ),
        (
            "table.manifest.json",
            &["eval", "--tasks", "t.jsonl", "--predictions", "table.manifest.json", "-o", "table"],
        ),
        (
            "out/index.html",
            &[
                "report",
                "--tasks",
                "out/index.html",
                "--predictions",
                "S/detailed_results.json",
                "-o",
                "out",
            ],
        ),
        (
            "style.toml",
            &[
                "run", "--tasks", "t.jsonl", "--mode", "none", "--prompt-style", "style.toml",
                "-o", "style.toml",
            ],
        ),
        (
            "tasks.jsonl",
            &[
                "vectorize", "--tasks", "tasks.jsonl", "--ranker", "dense", "--write-texts",
                "tasks.jsonl",
            ],
        ),
        (&*prompts, &["complete", "--prompts", &prompts, "-o", &prompts]),
        (source, &["sample", "--kind", "line", "--per-repo", "3", "-o", source]),
        (
            "tokenizer.json",
            &["stats", "tasks.jsonl", "--tokenizer", "tokenizer.json", "-o", "tokenizer.json"],
        ),
        (
            "tokenizer.json",
            &[
                "run", "--tasks", "tasks.jsonl", "--tokenizer", "tokenizer.json", "-o",
                "tokenizer.json",
            ],
        ),
    ] {
        let before = place.read(input);
        let data: &[&str] = match args[0] {
            "sample" | "stats" => &data[..2],
            _ => &data,
        };
        let args = [args, data].concat();
        let ran = place.run(&args);
        assert_eq!(place.read(input), before, "{args:?}\n{}", ran.stderr);
        ran.failed().says(&["overwrite"]);
    }
}

/// TypeScript 4.7 and later: `.mts` and `.cts` are modules, and imports name them `.mjs` and `.cjs`.
#[test]
fn typescript_has_modules_of_two_more_endings() {
    let place = Place::empty();
    let code = |name: &str| {
        (0..8)
            .map(|n| format!("const {name}{n} = compute({n}, {name}, 'x');\n"))
            .collect::<String>()
    };
    place.write(
        "repos/r/src/lib.mts",
        format!("export function compute(n: number) {{\n  return n;\n}}\n{}", code("a")),
    );
    place.write("repos/r/src/old.cts", code("b"));
    let using = format!("import {{ compute }} from './lib.mjs';\n\n{}", code("c"));
    place.write("repos/r/src/main.mts", using);
    let sample = |kind| {
        let flags = ["--repos-dir", "repos", "--language", "typescript", "--per-repo", "50"];
        let args = [&["sample", "--kind", kind][..], &flags].concat();
        parse_jsonl(&place.run(&args).done().stdout)
    };
    let paths = |tasks: Vec<Value>| {
        let path = |task: &Value| task["metadata"]["fpath_tuple"][2].as_str().unwrap().to_owned();
        tasks.iter().map(path).collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(paths(sample("line")), ["lib.mts", "main.mts", "old.cts"].map(String::from).into());
    assert_eq!(paths(sample("api")), ["main.mts".to_owned()].into(), "its import leads to lib.mts");
}

/// Linux has names of 255 bytes at most.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_the_file_system_refuses_costs_one_file() {
    let place = Place::empty();
    let long = long_name();
    let file = |path: &str| json!({"filepath": path, "content": "x = 1\n"});
    let raw = [
        json!({"repo_name": "o/one", "files": [file("a.py"), file(&long), file("./b//c.py"), file(&format!("{long}/d.py"))]}),
        json!({"repo_name": "o/two", "files": [file("a.py")]}),
        json!({"repo_name": "o".repeat(300), "files": [file("a.py")]}),
        json!({"repo_name": "o/win", "files": [file("pkg\\win.py")]}),
    ];
    place.write("raw.jsonl", jsonl(&raw));
    let package = |path: &str| json!({"repository": "r", "filepath": path, "content": [{"content": "x = 1\n"}]});
    let packages = [package("r/a.py"), package(&format!("r/{long}")), package("r/./b.py")];
    place.write("packages.jsonl", jsonl(&packages));
    let mut archive = tar::Builder::new(Vec::new());
    for path in ["r/setup.py", &format!("r/{long}"), "r/b.py"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(6);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, &b"x = 1\n"[..]).unwrap();
    }
    place.write("r.tar.gz", gzip(&archive.into_inner().unwrap()));
    for (input, said, files) in [
        (
            "raw.jsonl",
            &[
                "raw.jsonl:1: 'nnnn",
                "in o_one is left out because the file system refuses its name: File name too long",
                "raw.jsonl:3: 'a.py' in oooo",
                "raw.jsonl:4: field 'files[0].filepath' contains a backslash: \"pkg\\\\win.py\"",
                "convert: 3 files to repos, 4 skipped",
            ][..],
            &["o_one/a.py", "o_one/b/c.py", "o_two/a.py"][..],
        ),
        (
            "packages.jsonl",
            &["packages.jsonl:2: 'nnnn", "convert: 2 files to repos, 1 skipped"],
            &["r/a.py", "r/b.py"],
        ),
        (
            "r.tar.gz",
            &["r.tar.gz: 'r/nnnn", "convert: 2 files to repos, 1 skipped"],
            &["r/b.py", "r/setup.py"],
        ),
    ] {
        let out = format!("out-{input}");
        let ran = place.run(&["convert", input, "--to", "repos", "-o", &out]).partly();
        ran.says(said);
        let found: Vec<String> = place.files(&out).into_keys().collect();
        let wanted: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        assert_eq!(found, wanted);
        let folders = std::fs::read_dir(place.path(&out)).unwrap().count();
        assert!(folders <= 2, "no folder of what was refused");
    }
    // Shards may have such names, because they are not names of files there.
    place
        .run(&["group", "raw.jsonl", "--shards", "1", "-o", "shards"])
        .partly()
        .says(&["backslash"]);
}

/// A tree of git may have names that a checkout cannot have.
#[cfg(target_os = "linux")]
#[test]
fn a_commit_with_a_name_that_the_file_system_refuses_costs_one_file() {
    let place = Place::empty();
    let git = |date: &str, args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(place.path("made")).args(args).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for (name, value) in [("NAME", "n"), ("EMAIL", "n@example.org"), ("DATE", date)] {
            for who in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{who}_{name}"), value);
            }
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let code = |name: &str| {
        (0..9).map(|n| format!("{name}_{n} = compute({n}, {name})\n")).collect::<String>()
    };
    place.write("made/a.py", code("a"));
    let (old, new) = ("2024-01-01T00:00:00Z", "2025-02-01T00:00:00Z");
    git("", &["init", "-q"]);
    let blob = git("", &["hash-object", "-w", "a.py"]);
    let entry = format!("100644,{blob},{}", long_name());
    git("", &["add", "a.py"]);
    git("", &["update-index", "--add", "--cacheinfo", &entry]);
    git(old, &["commit", "-qm", "old"]);
    place.write("made/a.py", code("a") + &code("b"));
    git("", &["add", "a.py"]);
    git(new, &["commit", "-qm", "new"]);
    let sample = [
        "sample", "--from-commits", "made", "--since", "2025-01-01", "--trees", "trees", "--kind",
        "line", "--per-repo", "1", "-o", "tasks.jsonl",
    ];
    place
        .run(&sample)
        .partly()
        .says(&["'nnnn", "is left out because the file system refuses its name"]);
    assert_eq!(place.records("tasks.jsonl").len(), 1);
    assert_eq!(place.files("trees").len(), 1);
}

/// Names of models, benchmarks and repositories are parts of file names in the cache.
#[test]
fn long_names_fit_into_the_cache() {
    let place = Place::empty();
    let (repository, benchmark) = ("r".repeat(240), "b".repeat(240));
    let text = crate::support::source("store", 30);
    place.write(&format!("repos/{repository}/a.py"), &text);
    place.write(&format!("repos/{repository}/b.py"), crate::support::source("view", 30));
    let task = crate::support::task("t/0", &format!("{repository}/a.py"), &text, 0, 20);
    place.write("tasks.jsonl", jsonl(&[task]));
    let run = ["run", "--mode", "none,rg1", "--benchmark", &benchmark];
    place.stage(&run).done();
    place.stage(&run).done().says(&["(current)"]);
    let (url, _) = crate::support::server::server(|_| crate::support::completion("x"));
    let model = format!("org/{}", "m".repeat(400));
    let run = ["run", "--mode", "none", "--endpoint", &url, "--model", &model, "--max-tokens", "8"];
    place.stage(&run).done();
}

/// As gunzip and Python's gzip read them.
#[test]
fn zeros_behind_gzip_are_skipped() {
    let place = Place::new();
    let tasks = gzip(place.read("tasks.jsonl").as_bytes());
    let padded = [&tasks[..], &[0; 4096]].concat();
    place.write("padded.jsonl.gz", &padded);
    place.run(&["validate", "padded.jsonl.gz"]).done();
    place.write("two.jsonl.gz", [&padded[..], &tasks].concat());
    let ran = place.run(&["validate", "two.jsonl.gz"]);
    assert!(ran.stdout.contains("6 records"), "{}", ran.stdout);
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(6);
    archive.append_data(&mut header, "r/setup.py", &b"x = 1\n"[..]).unwrap();
    let archive = gzip(&archive.into_inner().unwrap());
    place.write("r.tar.gz", [&archive[..], &[0; 512]].concat());
    place.run(&["convert", "r.tar.gz", "--to", "repos", "-o", "out"]).done();
    place.write("junk.jsonl.gz", [&tasks[..], b"junk"].concat());
    let said = ["junk.jsonl.gz: cannot read this file: bytes that are not gzip follow"];
    place.run(&["validate", "junk.jsonl.gz"]).failed().says(&said);
}

/// Defaults of type parameters (PEP 696), which Python's grammar does not know.
#[test]
fn code_that_a_grammar_cannot_parse_is_counted_and_named() {
    let place = Place::empty();
    let function = |head: &str| format!("def {head}:\n    y = x\n    z = y\n    return z\n\n\n");
    let text = function("f[T = int](x)") + &function("g(x)");
    place.write("repos/r/a.py", &text);
    place.write("repos/r/b.py", function("h(x)"));
    let warned = ["the Python grammar cannot parse", "of 1 file", "r/a.py:1"];
    let sample = ["sample", "--kind", "function", "--repos-dir", "repos", "-o", "tasks.jsonl"];
    place.run(&sample).done().says(&warned);
    let label = [
        "label", "sample", "--kind", "function", "--no-filter", "--repos-dir", "repos", "-o",
        "instances.jsonl",
    ];
    place.run(&label).done().says(&warned);
    // The body of `g` is behind the unparsed code.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (prompt, target) = (lines[..7].concat(), lines[7..10].concat());
    let task = json!({"prompt": prompt, "metadata": {
        "task_id": "r/0", "ground_truth": target, "fpath_tuple": ["r", "a.py"],
        "context_start_lineno": 0, "line_no": 7,
    }});
    place.write("tasks.jsonl", jsonl(&[task]));
    let pred = format!("{target}\n\ndef more():\n    pass\n");
    place.write("preds.jsonl", jsonl(&[json!({"task_id": "r/0", "pred": pred})]));
    let eval = [
        "eval", "--tasks", "tasks.jsonl", "--predictions", "preds.jsonl", "--metrics",
        "repoformer", "--postprocess", "function-body", "--format", "jsonl",
    ];
    let ran = place.run(&[&eval[..], &["--per-task"]].concat()).done();
    let ran = ran.says(&[
        "preds.jsonl: repoformer: 1 of 1 prediction is compared without being cut, because the \
         grammar cannot parse the file up to the end of the hole: r/0",
    ]);
    let task = parse_jsonl(&ran.stdout).into_iter().find(|record| record["task_id"] == "r/0");
    assert_eq!(task.unwrap()["uncut"], json!({"repoformer": {"file": 1}}));
}

/// Functions and names in code that is not parsed are not found by searches either.
#[test]
fn searches_name_the_files_that_they_cannot_parse() {
    let place = Place::empty();
    let function = |head: &str| format!("def {head}:\n    y = x\n    z = y\n    return z\n\n\n");
    place.write("repos/r/a.py", function("f[T = int](x)") + &function("g(x)"));
    let using = format!("from a import g\n\n\n{}", function("h(x)"));
    place.write("repos/r/b.py", &using);
    let (prompt, target) = using.split_at(using.find("    y").unwrap());
    let task = json!({"prompt": prompt, "metadata": {
        "task_id": "r/b", "ground_truth": target.lines().next(), "fpath_tuple": ["r", "b.py"],
        "context_start_lineno": 0, "line_no": 4,
    }});
    place.write("tasks.jsonl", jsonl(&[task]));
    let warning = "warning: the Python grammar cannot parse all of 1 file; functions, classes and names there may not be found: r/a.py:1";
    for (cache, flags) in [("one", ["--ranker", "definitions"]), ("two", ["--align", "enclosing"])]
    {
        let run = [
            "run", "--tasks", "tasks.jsonl", "--repos-dir", "repos", "--mode", "rg1", "--unit",
            "chunks", "--cache-dir", cache,
        ];
        let ran = place.run(&[&run[..], &flags].concat()).done();
        assert_eq!(ran.stderr.matches(warning).count(), 1, "{flags:?}: {}", ran.stderr);
    }
    let run = [
        "run", "--tasks", "tasks.jsonl", "--repos-dir", "repos", "--mode", "rg1", "--cache-dir",
        "three",
    ];
    place.run(&run).done().silent_on("cannot parse");
}

/// `..` leads out of a folder, and out of the repository only behind its own folder.
#[test]
fn paths_with_parent_folders_are_resolved() {
    let place = Place::empty();
    let file = |path: &str| json!({"filepath": path, "content": "x = 1\n"});
    let files = [file("a/../c.py"), file("a/b/../../../d.py"), file("a/./b/../e.py")];
    place.write("raw.jsonl", jsonl(&[json!({"repo_name": "o/one", "files": files})]));
    let ran = place.run(&["convert", "raw.jsonl", "--to", "repos", "-o", "out"]);
    assert_eq!(ran.code, Some(1));
    ran.says(&["raw.jsonl:1: field 'files[1].filepath' leads out of the repository: \"..\"; the file is left out"]);
    assert!(place.path("out/o_one/c.py").exists() && place.path("out/o_one/a/e.py").exists());
    assert_eq!(place.count("out"), 2);
    // The first name of a task's path is its repository.
    let task = |path: &str| json!({"prompt": "a = 1\n", "groundtruth": "x = 1", "right_context": "", "metadata": {"task_id": path, "filepath": path}});
    place.write("tasks.jsonl", jsonl(&[task("r/a/../c.py"), task("r/../s/c.py")]));
    let ran = place.run(&["validate", "tasks.jsonl"]);
    assert!(!ran.stdout.contains(":1"), "{}", ran.stdout);
    let said = ran.stdout + &ran.stderr;
    assert!(
        said.contains("field 'metadata.filepath' leads out of the repository: \"..\""),
        "{said}"
    );
}

/// Python reads the integer -0 as 0, and 1e400 as infinite.
#[test]
fn numbers_are_read_as_python_reads_them() {
    let place = Place::new();
    let record = r#"{"task_id": "alpha/0", "pred": "x", "metadata": {"row": -0}, "free": [-0, 1e400, -1E999, 0.5]}"#;
    place.write("p.jsonl", format!("{record}\n"));
    let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl", "--missing", "skip"];
    let ran = place.run(&eval);
    ran.silent_on("not JSON").silent_on("whole number");
    let convert = ["convert", "p.jsonl", "--to", "crosscodeeval-predictions"];
    let kept = place.run(&convert).done().stdout;
    assert!(
        kept.contains(r#""row":0"#) && kept.contains(r#""free":[0,1e400,-1E999,0.5]"#),
        "{kept}"
    );
    place.write("s.jsonl", "{\"task_id\": \"a\", \"repocoder\": {\"es\": 1e400}}\n");
    place
        .run(&["compare", "s.jsonl", "s.jsonl"])
        .failed()
        .says(&["field 'repocoder.es' must be a number, not a number beyond 64 bits"]);
}
