//! `convert` and `validate` through the binary: what a file is, its records tell; every problem has its line and shows in
//! the exit code.

use std::path::{Path, PathBuf};

use crate::support::{Place, jsonl, parse_jsonl};
use repoformer::complete::server::{Api, samples};
use serde_json::{Value, json};

fn fixture(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(path).display().to_string()
}

#[test]
fn tasks_go_through_every_format_and_back() {
    let place = Place::new();
    let original = place.read("tasks.jsonl");
    for format in ["repoformer", "crosscodeeval"] {
        let there = format!("{format}.jsonl.zst");
        place
            .run(&["convert", "tasks.jsonl", "--to", format, "--repos-dir", "repos", "-o", &there])
            .done()
            .says(&[&format!("convert: 3 records to {format}")]);
        place.run(&["validate", &there, "--repos-dir", "repos", "--strict"]).done();
        let back = place
            .run(&["convert", &there, "--to", "repoeval"])
            .done()
            .says(&["warning: 'right_context' of 3 tasks is dropped: repoeval has no such field"]);
        assert_eq!(parse_jsonl(&back.stdout), parse_jsonl(&original), "{format}");
    }
    let ran = place.run(&["convert", "tasks.jsonl", "--to", "repoformer"]).failed();
    ran.says(&["error: tasks.jsonl:1: task alpha/0: 'right_context' is missing: repoeval has none; name the folder of repositories (--repos-dir)"]);
    place
        .run(&[
            "convert",
            "tasks.jsonl",
            "--to",
            "crosscodelongeval",
            "--repos-dir",
            "repos",
            "-o",
            "long.jsonl.gz",
        ])
        .done();
    assert_eq!(
        place.run(&["validate", "long.jsonl.gz"]).done().stdout,
        "long.jsonl.gz: crosscodelongeval, 3 records, 0 errors, 0 notes\n"
    );
    place
        .run(&["convert", "long.jsonl.gz", "--to", "repoeval"])
        .failed()
        .says(&["'metadata.fpath_tuple' is missing: crosscodelongeval names no file"]);
}

#[test]
fn a_conversion_costs_no_record_but_those_that_it_tells_of() {
    let place = Place::new();
    place.write("repos/alpha/view.py", "other = 1\n");
    let ran = place
        .run(&["convert", "tasks.jsonl", "--to", "repoformer", "--repos-dir", "repos"])
        .partly();
    assert_eq!(parse_jsonl(&ran.stdout).len(), 2);
    ran.says(&["error: tasks.jsonl:2: task alpha/1: its hole is at line 20 (from 0) of alpha/view.py, which has 1 lines", "convert: 2 records to repoformer, 1 skipped"]);
    place
        .run(&["convert", "tasks.jsonl", "--to", "repoeval", "-o", "tasks.jsonl"])
        .failed()
        .says(&["-o would overwrite tasks.jsonl"]);
    place
        .run(&["convert", "tasks.jsonl", "--to", "swebench"])
        .failed()
        .says(&["--to: unknown target format 'swebench'; known: repoeval, repoformer"]);
    place
        .run(&["convert", "tasks.jsonl", "--to", "labels", "-o", "none.jsonl"])
        .failed()
        .says(&["this is a task of RepoEval", "cannot become labels"]);
    assert!(!place.path("none.jsonl").exists());
    place.run(&["convert", "--to", "raw"]).failed();
    let piped =
        place.shell("cat tasks.jsonl | repoformer convert - --to repoeval | cmp - tasks.jsonl").done();
    assert_eq!(piped.stdout, "");
    place.shell("repoformer convert tasks.jsonl --to repoeval | true").done();
}

#[test]
fn repositories_leave_their_records_and_come_back() {
    let place = Place::empty();
    let packages = fixture("repoformer/edge_cases.packages.jsonl.gz");
    place
        .run(&["convert", &packages, "--to", "repos", "-o", "repos"])
        .done()
        .says(&["convert: 42 files to repos"]);
    place
        .run(&["convert", &packages, "--to", "repos", "-o", "repos"])
        .failed()
        .says(&["repos/edge_cases is there already; remove it or choose another -o"]);
    place
        .run(&["convert", &packages, "--to", "repos"])
        .failed()
        .says(&["not to standard output", "hint: name the folder"]);
    place.run(&["convert", "--repos-dir", "repos", "--to", "raw", "-o", "raw.jsonl"]).done();
    let raw = place.records("raw.jsonl");
    assert_eq!(raw[0]["repo_name"], "edge_cases");
    place.run(&["validate", "raw.jsonl"]).done();
    place.run(&["convert", "raw.jsonl", "--to", "repos", "-o", "again"]).done();
    place.run(&["convert", "--repos-dir", "again", "--to", "raw", "-o", "raw2.jsonl"]).done();
    assert_eq!(place.read("raw.jsonl"), place.read("raw2.jsonl"));
    place
        .run(&[
            "convert",
            "--repos-dir",
            "again",
            "--repo",
            "edge_cases",
            "--to",
            "packages",
            "-o",
            "packages.jsonl",
        ])
        .done();
    place.run(&["convert", "packages.jsonl", "--to", "raw", "-o", "raw3.jsonl"]).done();
    assert_eq!(place.read("raw.jsonl"), place.read("raw3.jsonl"));
    // Hidden files are no source files here, as for every other stage.
    let paths: Vec<String> = place.files("again/edge_cases").into_keys().collect();
    assert!(
        paths.contains(&"order/été.py".to_owned())
            && !paths.iter().any(|path| path.starts_with('.')),
        "{paths:?}"
    );

    place.write("repos/edge_cases/web/App.tsx", "let x = 1;\n");
    let raw_of = |language: &str| {
        let args = ["convert", "--repos-dir", "repos", "--to", "raw"];
        place.run(&[&args[..], &["--language", language]].concat())
    };
    let file = &parse_jsonl(&raw_of("typescript").done().stdout)[0]["files"][0];
    assert_eq!(file["filepath"], "web/App.tsx");
    assert_eq!(file["metadata"]["lang"], "TypeScript");
    let refused = raw_of("cobol").failed();
    refused.says(&["--language: unknown language 'cobol'; known: python"]);

    let hostile =
        json!({"repository": "r", "filepath": "r/../../escaped.py", "content": [{"content": "x"}]});
    place.write("hostile.jsonl", jsonl(&[hostile]));
    place
        .run(&["convert", "hostile.jsonl", "--to", "repos", "-o", "a/b"])
        .failed()
        .says(&["field 'filepath' leads out of the repository: \"..\""]);
    assert!(!place.path("escaped.py").exists() && !place.path("a/escaped.py").exists());
}

#[test]
fn prompts_go_to_a_batch_endpoint_and_its_answers_are_scored() {
    let place = Place::new();
    for stage in ["window", "vectorize", "search"] {
        place.stage(&[stage]).done();
    }
    place.stage(&["prompt", "--mode", "rg1", "-o", "prompts.jsonl"]).done();
    assert_eq!(
        place.run(&["validate", "prompts.jsonl"]).done().stdout,
        "prompts.jsonl: prompts, 3 records, 0 errors, 0 notes\n"
    );
    place.run(&["convert", "prompts.jsonl", "--to", "batch-requests"]).failed().says(&["--model"]);
    place
        .run(&[
            "convert",
            "prompts.jsonl",
            "--to",
            "batch-requests",
            "--model",
            "m",
            "--stop",
            "\n",
            "-o",
            "requests.jsonl",
        ])
        .done();
    place.run(&["validate", "requests.jsonl", "--strict"]).done();
    let requests = place.records("requests.jsonl");
    assert_eq!(
        (&requests[1]["custom_id"], &requests[1]["body"]["stop"]),
        (&json!("row-1"), &json!(["\n"]))
    );
    // In any order.
    let answer = |(request, (_, target)): (&Value, &(&str, &str))| {
        json!({
            "id": "x", "custom_id": request["custom_id"], "error": null,
            "response": {"status_code": 200, "request_id": "y", "body": {"choices": [{"index": 0, "text": target}]}},
        })
    };
    let mut answers: Vec<Value> =
        requests.iter().zip(&crate::support::TARGETS).map(answer).collect();
    answers.reverse();
    place.write("answers.jsonl", jsonl(&answers));
    place
        .run(&["convert", "answers.jsonl", "--to", "repocoder-predictions"])
        .failed()
        .says(&["the tasks file (--tasks) of the requests is needed"]);
    for format in ["repocoder-predictions", "crosscodeeval-predictions"] {
        let file = format!("{format}.jsonl");
        place
            .run(&[
                "convert",
                "answers.jsonl",
                "--to",
                format,
                "--tasks",
                "tasks.jsonl",
                "-o",
                &file,
            ])
            .done();
        place.run(&["validate", &file, "--strict"]).done();
        let ran = place
            .run(&["eval", "--tasks", "tasks.jsonl", "--predictions", &file, "--format", "tsv"])
            .done();
        assert!(ran.stdout.lines().last().unwrap().contains("100.00"), "{}", ran.stdout);
    }
    place.write("answers.jsonl", jsonl(&answers[..2]));
    place
        .run(&[
            "convert",
            "answers.jsonl",
            "--to",
            "repocoder-predictions",
            "--tasks",
            "tasks.jsonl",
        ])
        .partly()
        .says(&["error: tasks.jsonl:1: task alpha/0: it has no answer"]);
}

#[test]
fn every_problem_is_listed_with_its_line() {
    let place = Place::new();
    let sound = place.run(&["validate", "tasks.jsonl", "--repos-dir", "repos", "--strict"]).done();
    assert_eq!(
        (sound.stdout.as_str(), sound.stderr.as_str()),
        ("tasks.jsonl: repoeval, 3 records, 0 errors, 0 notes\n", "")
    );
    let mut repeated = place.records("tasks.jsonl")[0].clone();
    repeated["mine"] = json!(1);
    place.add_tasks(&[repeated]);
    let notes = [
        "note: tasks.jsonl:4: task alpha/0: its id equals that of line 1; tasks are identified by their row",
        "note: tasks.jsonl:4: unknown field 'mine' of repoeval; it is kept",
    ];
    place.run(&["validate", "tasks.jsonl"]).done().says(&notes);
    place
        .run(&["validate", "tasks.jsonl", "--strict"])
        .partly()
        .says(&["error: tasks.jsonl:4: task alpha/0: its id"]);
    place.add_tasks(&[
        json!({"prompt": 3, "metadata": {"task_id": "bad", "fpath_tuple": []}}),
        json!([1]),
    ]);
    let ran = place.run(&["validate", "tasks.jsonl", "gone.jsonl"]).partly().says(&[
        "error: tasks.jsonl:5: task bad: field 'prompt' must be a string, not a number",
        "error: tasks.jsonl:5: task bad: field 'metadata.ground_truth' is missing",
        "error: tasks.jsonl:5: task bad: field 'metadata.context_start_lineno' is missing",
        "error: tasks.jsonl:5: task bad: field 'metadata.line_no' is missing",
        "error: tasks.jsonl:6: a JSON object is expected, not a list",
        "error: gone.jsonl: cannot open this file",
    ]);
    assert_eq!(ran.stdout, "tasks.jsonl: repoeval, 6 records, 5 errors, 2 notes\n");
    let ran = place.run(&["validate", "tasks.jsonl", "--format", "json"]).partly();
    let report = &parse_jsonl(&ran.stdout)[0];
    assert_eq!(
        (&report["kind"], &report["errors"], report["findings"].as_array().unwrap().len()),
        (&json!("repoeval"), &json!(5), 7)
    );
    assert_eq!(ran.stderr, "");
    place.run(&["validate", "gone.jsonl"]).failed();
}

/// Repoformer's converter on the odd repository: the same records, but for three tasks behind a form feed, where it counts
/// only `\n` and takes another line; and the ids that it leaves out.
#[test]
fn the_references_converter_is_matched_record_by_record() {
    let place = Place::empty();
    let archive = std::fs::File::open(fixture("edge_cases.tar.gz")).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    archive.unpack(place.path("repos")).unwrap();
    let convert = |file: &str, to: &str| {
        let ran =
            place.run(&["convert", &fixture(file), "--to", to, "--repos-dir", "repos"]).done();
        let mut records = parse_jsonl(&ran.stdout);
        for record in &mut records {
            // The reference was told a URL, and drops where the RepoEval prompt began.
            let metadata = record["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| {
                !["repository", "url", "context_start_lineno"].contains(&name.as_str())
            });
        }
        records
    };
    let ours = convert("repocoder/edge_cases.tasks.jsonl.gz", "repoformer");
    let theirs = convert("repoformer/edge_cases.input.jsonl.gz", "repoformer");
    assert_eq!((ours.len(), theirs.len()), (198, 191));
    let differ: Vec<&Value> = theirs
        .iter()
        .filter(|record| !ours.contains(record))
        .map(|record| &record["metadata"]["task_id"])
        .collect();
    assert_eq!(differ, ["edge_cases/43", "edge_cases/44", "edge_cases/45"]);
}

/// Every stage takes the formats whose tasks name a file of a repository.
#[test]
fn the_stages_run_on_converted_tasks() {
    let place = Place::new();
    for format in ["repoformer", "crosscodeeval"] {
        let file = format!("{format}.jsonl");
        place
            .run(&["convert", "tasks.jsonl", "--to", format, "--repos-dir", "repos", "-o", &file])
            .done();
        for stage in ["window", "vectorize", "search", "prompt", "complete"] {
            place.stage(&[stage, "--tasks", &file, "--mode", "rg1"]).done().silent_on("warning");
        }
        let cached = format!("cache/prompts/{format}/rg1-one-gram-ws-20-ss-2.jsonl");
        let prompts = place.records(&cached);
        assert_eq!(prompts.len(), 3);
        assert_eq!(prompts[0]["metadata"]["fpath_tuple"], json!(["alpha", "store.py"]));
        place.stage(&["eval", "--tasks", &file, "--mode", "rg1"]).done();
    }
    let mixed = place.read("tasks.jsonl") + &place.read("crosscodeeval.jsonl");
    place.write("mixed.jsonl", mixed);
    place.stage(&["window", "--tasks", "mixed.jsonl"]).done().says(&["warning: mixed.jsonl: holds tasks of several formats, 3 of repoeval, 3 of crosscodeeval; each is read as its own"]);
    place.run(&["validate", "mixed.jsonl"]).partly().says(&["error: mixed.jsonl:4: mixed kinds: the file begins with repoeval, and from this line on there are 3 records of crosscodeeval"]);
    place.write("p.jsonl", "{\"task_id\": \"alpha/0\", \"pred\": \"x\"}\n");
    place.stage(&["window", "--tasks", "p.jsonl"]).failed().says(&["p.jsonl:1: this is a prediction (it has 'pred'), not a task; use it as the predictions file (--predictions)"]);
}

/// Over a folder with the reference's fixtures (`repocoder/`, `repoformer/`) and, for the tasks of real repositories, their
/// sources below `repos/`: `REPOFORMER_FIXTURES=… cargo test --test it -- --ignored cli_formats`.
#[test]
#[ignore = "needs a folder of fixtures in REPOFORMER_FIXTURES"]
fn the_references_own_files() {
    let folder = PathBuf::from(std::env::var_os("REPOFORMER_FIXTURES").unwrap());
    let place = Place::empty();
    for name in ["edge_cases", "huggingface_evaluate", "awslabs_fortuna"] {
        let input = folder.join(format!("repoformer/{name}.input.jsonl.gz"));
        let tasks = folder.join(format!("repocoder/{name}.tasks.jsonl.gz"));
        for (file, kind) in [(&input, "repoformer"), (&tasks, "repoeval")] {
            let ran = place.run(&["validate", file.to_str().unwrap()]);
            assert!(ran.stdout.contains(&format!(": {kind}, ")), "{}", ran.stdout);
            println!("{}{}", ran.stdout, ran.stderr);
        }
        let ran = place.run(&["convert", input.to_str().unwrap(), "--to", "repoformer"]).done();
        let plain = place.run(&["convert", tasks.to_str().unwrap(), "--to", "repoeval"]).done();
        assert!(!ran.stdout.is_empty() && !plain.stdout.is_empty());
        let repos = folder.join("repos");
        if !repos.join(name).is_dir() {
            continue;
        }
        // What Repoformer's converter made of the same tasks, less what only it knows.
        let ours = place.run(&[
            "convert",
            tasks.to_str().unwrap(),
            "--to",
            "repoformer",
            "--repos-dir",
            repos.to_str().unwrap(),
        ]);
        let bare = |text: &str| {
            let mut records = parse_jsonl(text);
            for record in &mut records {
                let metadata = record["metadata"].as_object_mut().unwrap();
                metadata.retain(|name, _| ["task_id", "filepath"].contains(&name.as_str()));
            }
            records
        };
        let (ours, theirs) = (bare(&ours.stdout), bare(&ran.stdout));
        let differ = theirs.iter().filter(|record| !ours.contains(record)).count();
        println!("{name}: {} of {} records differ", differ, theirs.len());
        if name != "edge_cases" {
            assert_eq!(differ, 0, "{name}");
        }
    }
}

/// `REPOFORMER_FIXTURES=DIR` holds exchanges that two servers were recorded with: `endpoint/SERVER/*.json`.
#[test]
#[ignore = "reads recorded exchanges: set REPOFORMER_FIXTURES"]
fn every_recorded_answer_is_read() {
    let fixtures = std::env::var("REPOFORMER_FIXTURES").unwrap();
    let mut read = 0;
    for server in std::fs::read_dir(format!("{fixtures}/endpoint")).unwrap() {
        for file in std::fs::read_dir(server.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let exchange: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let (request, answer) = (&exchange["request"], &exchange["response"]);
            let api = match request["path"].as_str().unwrap() {
                "/v1/completions" => Api::Completions,
                "/v1/chat/completions" => Api::Chat,
                _ => continue,
            };
            let found = samples(answer, api);
            if exchange["status"] != 200 {
                assert!(found.is_err(), "{}", path.display());
                continue;
            }
            let (found, choices) = (found.unwrap(), answer["choices"].as_array().unwrap());
            assert_eq!(found.len(), choices.len(), "{}", path.display());
            // Where probabilities were asked for, every token has one, but for the first of an echoed prompt; of several
            // prompts one server counts the tokens of one.
            let asked = &request["json"];
            let is_odd = asked["echo"] == true || asked["prompt"].is_array();
            if asked.get("logprobs").is_some() && !is_odd {
                let tokens: u64 = found.iter().map(|sample| sample.tokens.len() as u64).sum();
                assert_eq!(answer["usage"]["completion_tokens"], tokens, "{}", path.display());
            }
            read += 1;
        }
    }
    assert!(read >= 20, "{read}");
}
