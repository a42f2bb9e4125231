//! Repositories, task files and servers of a stranger: nothing outside of a repository is read, and no key is kept.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::server::{answer, events, ok, refusal, server_listing};
use crate::support::{Place, Ran, jsonl, source, task};

/// A text that stands in files outside of the repositories alone.
const SECRET: &str = "the_key_of_the_user";

/// Repositories with links to a file and a folder outside, directly, by way of another link, and with an absolute path.
fn hostile() -> Place {
    let place = Place::new();
    let secret: String = (0..25).map(|n| format!("{SECRET}_{n} = {n}\n")).collect();
    place.write("private/notes.py", secret);
    let to =
        |target: &str, link: &str| symlink(target, place.path("repos/alpha").join(link)).unwrap();
    to("../../private/notes.py", "aaa.py");
    to("../../private", "folder");
    to("folder/notes.py", "by_way.py");
    symlink(place.path("private/notes.py"), place.path("repos/alpha/absolute.py")).unwrap();
    symlink("/proc/self/environ", place.path("repos/alpha/environment.py")).unwrap();
    place
}

const LINKS: [&str; 5] = ["aaa.py", "folder", "by_way.py", "absolute.py", "environment.py"];

#[test]
fn links_out_of_a_repository_are_named_and_nothing_of_what_they_lead_to_is_kept() {
    let clean = Place::new();
    let place = hostile();
    for (stage, here) in [["run"], ["window"]].iter().map(|stage| (stage, place.stage(stage))) {
        let here = here.partly();
        for link in LINKS {
            let path = format!("alpha/{link}");
            assert!(here.stderr.contains(&path), "{stage:?} does not name {path}: {}", here.stderr);
        }
        assert!(here.stderr.contains("a link that leads out of the repository"), "{}", here.stderr);
    }
    clean.stage(&["run"]).done();
    let (found, wanted) = (place.files("cache"), clean.files("cache"));
    assert!(wanted.len() > 20 && found.keys().eq(wanted.keys()));
    for (path, bytes) in &wanted {
        assert!(found[path] == *bytes, "{path} is another with links than without");
    }
}

#[test]
fn what_is_drawn_and_converted_has_nothing_from_outside() {
    let place = hostile();
    place.add_samples();
    for command in [
        "sample --kind line --repos-dir repos --min-tokens 1",
        "label sample --repos-dir repos --min-files 0 --min-lines 0 --ratio 1",
        "convert --to raw --repos-dir repos",
        "convert --to packages --repos-dir repos",
        "sample --walk rglob --kind line --repos-dir repos --min-tokens 1",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = place.run(&args);
        assert!(ran.code != Some(2) && ran.stdout.len() > 100, "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains("alpha/aaa.py"), "{command}: {}", ran.stderr);
        assert!(!ran.stdout.contains(SECRET), "{command}");
    }
    // By the user's own word.
    let asked = "sample --walk glob-anywhere --kind line --repos-dir repos --repo alpha --min-tokens 1 --data-tables draw";
    let args: Vec<&str> = asked.split(' ').collect();
    assert!(place.run(&args).stdout.contains(SECRET));
}

#[test]
fn a_task_names_no_file_outside_of_its_repository() {
    let place = hostile();
    let secret = place.read("private/notes.py");
    let absolute = place.path("private/notes.py");
    let paths = [
        "alpha/aaa.py",
        "alpha/folder/notes.py",
        "alpha/../../private/notes.py",
        "../private/notes.py",
    ];
    let mut paths: Vec<String> = paths.map(str::to_owned).to_vec();
    paths.push(absolute.to_str().unwrap().to_owned());
    for path in paths {
        // Its record holds the hole alone; the rest of the file would come from the disk.
        let mut record = task("alpha/0", &path, &secret, 12, 12);
        record["metadata"]["fpath_tuple"] = json!(path.split('/').collect::<Vec<_>>());
        record["metadata"]["ground_truth"] = json!("x = 1");
        place.write("tasks.jsonl", format!("{record}\n"));
        for to in ["crosscodeeval", "repoformer", "crosscodelongeval"] {
            let args = ["convert", "--to", to, "--repos-dir", "repos", "tasks.jsonl"];
            let ran = place.run(&args);
            assert!(!ran.stdout.contains(SECRET), "{path}, {to}: {}", ran.stdout);
            assert!(!ran.stderr.contains(SECRET), "{path}, {to}: {}", ran.stderr);
        }
        let ran = place.stage(&["run", "--profile", "repoformer-paper"]);
        assert!(ran.code == Some(1) || ran.code == Some(2), "{path}: {}", ran.stderr);
        for (file, bytes) in place.files("cache") {
            assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{path}: {file}");
        }
        std::fs::remove_dir_all(place.path("cache")).ok();
    }
}

/// Git runs the program that `fsmonitor` names whenever it looks at a folder.
#[test]
fn what_programs_of_version_control_would_run_is_left_out_of_written_repositories() {
    let place = Place::empty();
    let config = format!("[core]\n\tfsmonitor = touch {}\n", place.path("ran").display());
    let paths = [
        ".git/HEAD",
        ".git/config",
        ".git/objects/x",
        ".git/refs/x",
        "sub/.GIT/hooks/post-checkout",
        "git~1/config",
        ".g\u{200c}it. ./config",
        ".hg/hgrc",
        "bare/HEAD",
        "bare/HEAD. ",
        "bare/head::$DATA",
    ];
    let kept = [
        ".gitmodules", "a.py", "bare/config", "bare/objects/x", "bare/refs/x", "stra\u{df}e.py",
        "sub/b.py", "\u{e9}.py",
    ];
    // Case, dots and blanks at the end, full case folding, composition, and characters that nobody sees.
    let alike = [
        "A.py", "SUB/b.py", "a.py.", "sub /b.py", "STRASSE.py", "stra\u{1e9e}e.py", "e\u{301}.py",
        "a\u{ad}.py", "a.py:stream",
    ];
    let settings = ["sub/Repoformer.toml"];
    let content = |path: &str| match path.rsplit('/').next() {
        Some(name) if name.to_lowercase().starts_with("head") => {
            "ref: refs/heads/main\n".to_owned()
        }
        _ => config.clone(),
    };
    let all: Vec<&str> =
        paths.iter().chain(&kept).chain(&alike).chain(&settings).copied().collect();
    let file = |path: &&str| json!({"filepath": path, "content": content(path)});
    let files: Vec<_> = all.iter().map(file).collect();
    place.write("raw.jsonl", format!("{}\n", json!({"repo_name": "o/r", "files": files})));
    let package = |path: &&str| {
        let content = json!([{"content": content(path)}]);
        format!(
            "{}\n",
            json!({"repository": "r", "filepath": format!("r/{path}"), "content": content})
        )
    };
    place.write("packages.jsonl", all.iter().map(package).collect::<String>());
    let mut archive = tar::Builder::new(Vec::new());
    for path in &all {
        let (mut header, content) = (tar::Header::new_gnu(), content(path));
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        archive.append_data(&mut header, format!("r/{path}"), content.as_bytes()).unwrap();
    }
    place.write("r.tar", archive.into_inner().unwrap());
    for (input, repository) in [("raw.jsonl", "o_r"), ("packages.jsonl", "r"), ("r.tar", "r")] {
        let out = format!("out-{input}");
        let ran = place.run(&["convert", input, "--to", "repos", "-o", &out]).done();
        ran.says(&[
            "left out: 11 files in folders of version control, from which programs run commands; \
             the first is '",
            ".git/HEAD",
            "left out: 1 file of settings, which this program would apply",
            "left out: 9 files whose names equal other names on some file systems",
            "A.py",
            "convert: 8 files to repos",
        ]);
        let found = place.files(&format!("{out}/{repository}"));
        assert!(found.keys().eq(kept), "{input}: {:?}", found.keys());
        for folder in ["", "sub", "bare"] {
            place.shell(&format!("cd {out}/{repository}/{folder} && git status"));
            assert!(!place.path("ran").exists(), "{input}: git ran a command in {folder:?}");
        }
    }
    // A folder that is left out still marks the archive as one repository.
    place
        .shell("mkdir -p one/pkg one/.git && echo 'x = 1' >one/pkg/a.py && echo >one/.git/HEAD")
        .done();
    place.shell("tar -cf one.tar -C one .").done();
    place.run(&["convert", "one.tar", "--to", "repos", "-o", "ones"]).done().says(&["it has .git"]);
    assert!(place.files("ones").keys().eq(["one/pkg/a.py"]));
    // Where nothing else is in it, that is said.
    for folder in [".", "r"] {
        place.shell(&format!("mkdir -p all/{folder} && cp -r one/.git all/{folder}/")).done();
        place.shell("tar -cf all.tar -C all . && rm -r all").done();
        let ran = place.run(&["convert", "all.tar", "--to", "repos", "-o", "none"]).failed();
        ran.says(&["contains only files of version control, which are left out", "git archive"]);
    }
}

/// A key that servers see in each request.
const KEY: &str = "sk-live-0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d";

/// Servers repeat the key: in completions, token by token, in errors, and in the names of their models.
#[test]
fn a_server_that_repeats_the_key_has_it_kept_and_printed_nowhere() {
    let place = Place::new();
    let models = json!({"data": [{"id": format!("model-{KEY}")}]}).to_string();
    let (url, seen) = server_listing(answer("200 OK", "", models), |request| {
        let said = format!("Bearer {KEY}\n and {KEY}");
        if request.prompt().contains("main_") {
            return refusal("400 Bad Request", &format!("the key {}… is too short", &KEY[..30]));
        }
        if request.prompt().contains("view_") {
            let choice =
                json!({"index": 0, "text": "", "finish_reason": KEY, "error": {"message": said}});
            return ok(&json!({"choices": [choice]}));
        }
        let parts: Vec<&str> =
            said.as_bytes().chunks(5).map(|part| str::from_utf8(part).unwrap()).collect();
        let logprobs = |parts: &[&str]| -> Vec<_> {
            parts.iter().map(|part| json!({"token": part, "logprob": -0.5})).collect()
        };
        if request.body["stream"] != true {
            let choice = json!({"index": 0, "text": said, "finish_reason": "stop", "stop_reason": KEY, "logprobs": {"content": logprobs(&parts)}});
            return ok(&json!({"choices": [choice]}));
        }
        let parts = parts.iter().map(|part| {
            let choice = json!({"index": 0, "text": part, "finish_reason": null, "logprobs": {"content": logprobs(&[part])}});
            json!({"choices": [choice]})
        });
        events(&parts.collect::<Vec<_>>())
    });
    let asked = ["--endpoint", &url, "--model", "m", "--max-tokens", "64", "--cache-dir"];
    for (cache, more) in [("streamed", &[][..]), ("whole", &["--until", "tokens"]), ("doctor", &[])]
    {
        let stage: &[&str] = if cache == "doctor" { &["doctor"] } else { &["run", "--report"] };
        let args = [stage, &asked, &[cache], more].concat();
        let args = if cache == "doctor" { args } else { place.args(&args) };
        let ran = Ran::new(place.command(&args).env("REPOFORMER_API_KEY", KEY).output().unwrap());
        for (what, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            assert_no_part(text.as_bytes(), &format!("{what} of {cache}"));
        }
        assert!(cache == "doctor" || ran.stderr.contains("is too short"), "{}", ran.stderr);
    }
    assert!(seen.lock().unwrap().len() > 4);
    let files: Vec<_> = walkdir::WalkDir::new(place.path(".")).into_iter().flatten().collect();
    let files = files.iter().filter(|entry| entry.file_type().is_file());
    let mut masked = 0;
    for file in files {
        let bytes = std::fs::read(file.path()).unwrap();
        assert_no_part(file.path().as_os_str().as_encoded_bytes(), "a name");
        assert_no_part(&bytes, &file.path().display().to_string());
        masked += usize::from(String::from_utf8_lossy(&bytes).contains("Bearer ***"));
    }
    assert!(masked > 3, "completions are kept: {masked}");
}

/// Asserts that no twelve characters of the key stand in a text.
fn assert_no_part(text: &[u8], what: &str) {
    let text = String::from_utf8_lossy(text);
    for at in 0..=KEY.len() - 12 {
        assert!(!text.contains(&KEY[at..at + 12]), "{what} has a part of the key");
    }
}

/// Source files that take gigabytes, minutes, or the whole stack of a parser without bounds, by language, and one function.
fn endless() -> [(&'static str, &'static str, &'static str, Vec<String>); 6] {
    let repeated = |parts: &[(&str, usize)]| -> Vec<String> {
        parts.iter().map(|(part, count)| part.repeat(*count)).collect()
    };
    let java = "class A {\n  int twice(int x) {\n    int y = x;\n    int z = y;\n    return y + z;\n  }\n}\n";
    let script = "function twice(x) {\n  const y = x;\n  const z = y;\n  return y + z;\n}\n";
    let python = "def twice(x):\n    y = x\n    z = y\n    return y + z\n";
    let go = "package a\n\nfunc twice(x int) int {\n\ty := x\n\tz := y\n\treturn y + z\n}\n";
    let script_files = repeated(&[("/[", 60_000), ("}a=>", 7_500), ("[", 200_000)]);
    [
        ("python", "py", python, repeated(&[("\\\n", 200_000), ("f(", 50_000), ("(", 200_000)])),
        (
            "java",
            "java",
            java,
            repeated(&[("class H {\n", 5_000), ("x=>", 50_000), ("x=>", 5_000)]),
        ),
        (
            "csharp",
            "cs",
            java,
            repeated(&[("f{", 50_000), ("class A {as &", 2_307), ("(", 200_000)]),
        ),
        ("typescript", "ts", script, script_files.clone()),
        ("javascript", "js", script, script_files),
        ("go", "go", go, repeated(&[("&#*/else", 3_333), ("<-}", 10_000), ("{", 200_000)])),
    ]
}

/// The program with 2 GB of addresses; without bounds, texts of these lengths take 3 to 7 GB.
fn within_memory(place: &Place, line: &str) -> Ran {
    place.shell(&format!("ulimit -v 2000000; RAYON_NUM_THREADS=2 repoformer {line}"))
}

#[test]
fn files_whose_parse_takes_too_much_are_named_and_the_others_are_kept() {
    for (language, ending, function, files) in endless() {
        let place = Place::empty();
        place.write(&format!("repos/r/good.{ending}"), function);
        // A deep tree that is parsed, for whatever reads trees.
        place
            .write(&format!("repos/r/deep.{ending}"), format!("x = {}a;\n", "a + ".repeat(30_000)));
        let names: Vec<String> = (0..files.len()).map(|n| format!("bad{n}.{ending}")).collect();
        for (name, file) in names.iter().zip(&files) {
            place.write(&format!("repos/r/{name}"), file);
        }
        let sample = format!(
            "sample --kind function --language {language} --repos-dir repos --min-tokens 1 -o tasks.jsonl"
        );
        let ran = within_memory(&place, &sample).done();
        let said = format!("nothing is drawn from {} files that cannot be parsed", files.len());
        let ran = ran.says(&[&said]);
        names.iter().for_each(|name| assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr));
        let tasks = place.records("tasks.jsonl");
        assert_eq!(tasks.len(), 1, "{language}");
        assert_eq!(tasks[0]["metadata"]["fpath_tuple"][1], format!("good.{ending}"));
        for (cache, flags) in [
            ("one", "--ranker definitions --unit chunks"),
            ("two", "--align enclosing --unit windows"),
        ] {
            let run = format!(
                "run --language {language} --tasks tasks.jsonl --repos-dir repos --mode rg1 --cache-dir {cache} {flags}"
            );
            let ran = within_memory(&place, &run).done();
            names
                .iter()
                .for_each(|name| assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr));
        }
    }
}

#[test]
fn predictions_whose_parse_takes_too_much_are_kept_whole_and_counted() {
    for (language, ending, function, texts) in endless() {
        let place = Place::empty();
        let at = function.find('\n').unwrap() + 1;
        let task = |n: usize| {
            let name = format!("good.{ending}");
            json!({"prompt": function[..at], "metadata": {
                "task_id": format!("r/{n}"), "ground_truth": "y = x", "fpath_tuple": ["r", name],
                "context_start_lineno": 0, "line_no": 1,
            }})
        };
        let tasks: Vec<_> = (0..=texts.len()).map(task).collect();
        place.write("tasks.jsonl", jsonl(&tasks));
        let texts = std::iter::once("y = x").chain(texts.iter().map(String::as_str));
        let predictions =
            texts.enumerate().map(|(n, text)| json!({"task_id": format!("r/{n}"), "pred": text}));
        place.write("preds.jsonl", jsonl(&predictions.collect::<Vec<_>>()));
        for steps in ["comments", "function-body", "statement"] {
            let eval = format!(
                "eval --tasks tasks.jsonl --predictions preds.jsonl --metrics chars --postprocess {steps} --format json"
            );
            let ran = within_memory(&place, &eval).done();
            let record: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(record["all"]["n"], tasks.len(), "{language} {steps}: {record}");
            if steps == "comments" {
                ran.says(&[
                    "3 of 4 predictions are compared without being cut, because parsing would take too \
                            much time or memory: r/1, r/2, r/3",
                ]);
            }
        }
    }
}

/// What commands a terminal, or makes a text look like another: an escape sequence, a carriage return, C1 and bidi controls, and
/// characters without width; and a line that looks like a message of the program.
const HOSTILE: &str =
    "x\nerror: forged\u{1b}[2J\u{1b}]0;t\u{7}\r\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}y";

/// The way in which a person sees it.
const WRITTEN_OUT: &str = "error: forged⟨U+001B⟩[2J⟨U+001B⟩]0;t⟨U+0007⟩⟨U+000D⟩⟨U+009B⟩31m⟨U+202E⟩⟨U+2066⟩⟨U+200B⟩⟨U+FEFF⟩y";

fn commands_a_terminal(text: &str) -> bool {
    text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'))
        || text.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'])
}

/// Asserts that a person sees the name as it is, and that no byte of it reaches the terminal.
fn assert_visible(what: &str, ran: &Ran) {
    for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        assert!(!commands_a_terminal(text), "{stream} of {what}: {text:?}");
    }
    let mut lines = ran.stderr.lines().chain(ran.stdout.lines()).map(str::trim_start);
    let is_forged = lines.any(|line| line.starts_with("error: forged"));
    assert!(!is_forged, "{what}: {} {}", ran.stdout, ran.stderr);
    let is_shown = |text: &String| text.contains(WRITTEN_OUT);
    assert!(
        is_shown(&ran.stdout) || is_shown(&ran.stderr),
        "{what}: {} {}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn names_of_a_stranger_command_no_terminal() {
    let place = Place::empty();
    let text = source("store", 25);
    let (file, id) = (format!("{HOSTILE}/{HOSTILE}.py"), format!("{HOSTILE}/0"));
    place.write(&format!("repos/{file}"), &text);
    place.write(&format!("repos/{HOSTILE}/view.py"), source("view", 30));
    let link = place.path(&format!("repos/{HOSTILE}/{HOSTILE}-link.py"));
    symlink("/proc/self/environ", link).unwrap();
    let tasks = format!("{HOSTILE}.tasks.jsonl");
    place.write(&tasks, jsonl(&[task(&id, &file, &text, 0, 12)]));
    let models = json!({"data": [{"id": HOSTILE}]}).to_string();
    let (url, _) = server_listing(answer("200 OK", "", models), |_| {
        refusal("400 Bad Request", &format!("no: {HOSTILE}"))
    });
    let (given, settings) = (format!("{HOSTILE}.jsonl"), format!("{HOSTILE}.toml"));
    place.write(&given, jsonl(&[json!({"task_id": id, "pred": "store_12 = store(12)"})]));
    place.write("wrong.jsonl", jsonl(&[json!({"task_id": id, "pred": 3})]));
    place.write(&settings, "tokenizer = 3\n");
    for what in [
        &["run", "--dry-run"][..],
        &["run", "--model", HOSTILE, "--endpoint", &url],
        &["run", "--model", "other", "--endpoint", &url, "--color", "never"],
        &["run"],
        &["window", "-v"],
        &["window", "--repo", HOSTILE, "--repo", "other"],
        &["window", "--config", &settings],
        &["window", "--ranker", HOSTILE],
    ] {
        assert_visible(&what.join(" "), &place.stage(&[what, &["--tasks", &tasks]].concat()));
    }
    let eval = ["eval", "--tasks", &tasks, "--predictions", &given];
    for what in [
        &eval[..],
        &["eval", "--tasks", &tasks, "--predictions", "wrong.jsonl"],
        &["cache", "list", "--cache-dir", "cache"],
        &["stats", &tasks],
        &["validate", &given],
        &["validate", &given, "wrong.jsonl"],
        &["policy", "explain", &given],
        &["doctor", "--endpoint", &url, "--model", "other"],
        &["doctor", "--cache-dir", HOSTILE],
        &[HOSTILE],
        &["eval", "--top-k", HOSTILE],
        &["eval", "--format", HOSTILE],
    ] {
        assert_visible(&what.join(" "), &place.run(what));
    }
    let scores = json!({"task_id": id, "row": 0, "repository": HOSTILE, "target_digest": "0f", "repocoder": {"em": 1, "es": 1, HOSTILE: 0.5}});
    place.write("scores.jsonl", jsonl(&[scores]));
    let files = place.shell("find cache/window -name '*.bin'").done().stdout;
    let windows = files.split_inclusive(".bin").next().unwrap();
    for what in [
        &["compare", "scores.jsonl", "scores.jsonl", "--by-repository"][..],
        &["inspect", windows],
        &["cache", "prune", "--cache-dir", "cache", "--stage", "window"],
    ] {
        assert_visible(&what.join(" "), &place.run(what));
    }
    // A program reads these, to the byte.
    let lines = place.run(&[&eval[..], &["--format", "jsonl"]].concat()).stdout;
    let read: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(read["predictions"], HOSTILE);
    // A setting is what it was when it is read again.
    let model = |text: &str| {
        place.write("repoformer.toml", text);
        let shown = place.run(&["run", "--show-settings"]).done().stdout;
        assert!(!commands_a_terminal(&shown), "{shown:?}");
        shown.lines().find(|line| line.starts_with("model =")).unwrap().to_owned()
    };
    let shown = model(&format!("model = {}\n", json!(HOSTILE)));
    assert_eq!(model(&shown), shown);
    // Colours of the program itself stay, and columns end below each other.
    let colours = place.run(&["eval", "--color", "always", "--top-k", HOSTILE]).stderr;
    let coloured = "\u{1b}[1;31merror\u{1b}[0m: ";
    assert!(colours.starts_with(coloured) && colours.contains(WRITTEN_OUT), "{colours:?}");
    assert!(!commands_a_terminal(
        &colours.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", "").replace("\u{1b}[1;36m", "")
    ));
    let table = place.run(&eval).done().stdout;
    let rows = table.lines().take_while(|line| !line.is_empty());
    let ends: Vec<usize> = rows.map(|line| line.chars().count()).collect();
    assert!(ends.windows(2).all(|two| two[0] == two[1]), "{table}");
}

/// A thousand wrong lines of a file are kept; the others are counted, and counted as wrong.
#[test]
fn wrong_lines_without_end_are_counted_and_not_all_listed() {
    let place = Place::new();
    let wrong = 3000;
    place.write("wrong.jsonl", place.read("tasks.jsonl") + &"{}\n".repeat(wrong));
    let said = ["… and 2,000 more errors like these"];
    let ran = place.run(&["validate", "wrong.jsonl"]).partly().says(&said);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1000);
    assert!(ran.stdout.contains("3003 records, 3000 errors"), "{}", ran.stdout);
    let ran = place.run(&["validate", "wrong.jsonl", "--format", "json"]).partly();
    let record: Value = serde_json::from_str(&ran.stdout).unwrap();
    let listed = record["findings"].as_array().unwrap();
    let errors = listed.iter().filter(|finding| finding["severity"] == "error").count();
    assert_eq!(
        (errors, &record["errors"], &record["more_errors"]),
        (1000, &3000.into(), &2000.into())
    );
    let said = ["wrong.jsonl:4:", "… and 2,980 more like these (-v shows more)"];
    place.run(&["stats", "wrong.jsonl"]).partly().says(&said);
    let ran = place.run(&["stats", "wrong.jsonl", "-v"]).partly();
    let ran = ran.says(&["… and 2,000 more like these\n"]);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1000);
    let convert = ["convert", "wrong.jsonl", "--to", "repoeval", "-o", "out.jsonl"];
    place.run(&convert).partly().says(&["convert: 3 records to repoeval, 3000 skipped"]);
    let pair = json!({"task_id": "a", "target": "x", "pred": "x"});
    place.write("pairs.jsonl", jsonl(&[pair]) + &"{}\n".repeat(wrong));
    let eval = ["eval", "--pairs", "pairs.jsonl", "--format", "json"];
    let ran = place.run(&eval).partly().says(&["pairs.jsonl:2:", "… and 2,980 more like these"]);
    assert!(ran.stdout.contains("\"unusable\": 3000"), "{}", ran.stdout);
}
