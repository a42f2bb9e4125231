//! Only predictions of these tasks are scored: a record of another task ends the command, and one warning names records that
//! cannot be checked.

use serde_json::{Value, json};

use crate::support::{Place, Ran, jsonl, judge};

const KINDS: [&str; 2] = ["line", "api"];

/// Line and API tasks of one repository, numbered alike as RepoCoder numbers them, and a prediction of each: its target.
fn place() -> Place {
    let place = Place::empty();
    place.add_samples();
    for kind in KINDS {
        let text = std::fs::read_to_string(format!(
            "{}/data/tasks/{kind}.jsonl",
            env!("CARGO_MANIFEST_DIR")
        ));
        let mut tasks: Vec<Value> = text
            .unwrap()
            .lines()
            .take(20)
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for (number, task) in tasks.iter_mut().enumerate() {
            task["metadata"]["task_id"] = json!(format!("parcelflow/{number}"));
        }
        place.write(&format!("{kind}.jsonl"), jsonl(&tasks));
    }
    place
}

/// Predictions of a kind's tasks, each made from its task.
fn predictions(place: &Place, kind: &str, of: impl Fn(&Value, &str, &str) -> Value) -> String {
    let record = |task: &Value| {
        let id = task["metadata"]["task_id"].as_str().unwrap();
        of(task, id, task["metadata"]["ground_truth"].as_str().unwrap())
    };
    let records: Vec<Value> = place.records(&format!("{kind}.jsonl")).iter().map(record).collect();
    let name = format!("{kind}-predictions.jsonl");
    place.write(&name, jsonl(&records));
    name
}

/// Makes a prediction from a task, its id and its target.
type Form<'a> = &'a dyn Fn(&Value, &str, &str) -> Value;

/// RepoCoder's form, which only the prompt assigns to a task.
fn with_prompt(task: &Value, id: &str, target: &str) -> Value {
    let shown = format!("# retrieved\n# code\n{}", task["prompt"].as_str().unwrap());
    json!({"prompt": shown, "metadata": {"task_id": id}, "choices": [{"text": target}]})
}

fn bare(_: &Value, id: &str, target: &str) -> Value {
    json!({"task_id": id, "pred": target})
}

fn eval(place: &Place, kind: &str, predictions: &str) -> Ran {
    let tasks = format!("{kind}.jsonl");
    place.run(&["eval", "--tasks", &tasks, "--predictions", predictions, "--format", "json"])
}

fn exact_match(ran: &Ran) -> f64 {
    let scores: Value = serde_json::from_str(&ran.stdout).unwrap();
    scores["all"]["repocoder"]["em"].as_f64().unwrap()
}

const ALONE: &str = "have only ids such as \"parcelflow/0\" to identify the task";

/// `line` predictions on `api` tasks were scored with exit status 0. By their files, the first targets are `def supports(…)` and another
/// line, and all 20 prompts end in other lines.
#[test]
fn predictions_of_other_tasks_end_the_command() {
    let place = place();
    let target = |_: &Value, id: &str, target: &str| json!({"task_id": id, "groundtruth": target, "pred": target});
    let in_metadata = |_: &Value, id: &str, target: &str| json!({"metadata": {"task_id": id, "ground_truth": target}, "choices": [{"text": target}]});
    let used = |task: &Value, id: &str, target: &str| json!({"task_id": id, "pred": target, "prompt_used": task["prompt"]});
    let forms: [(Form<'_>, &str); 4] = [
        (&with_prompt, "its prompt lacks the line before the hole"),
        (&target, "its target differs"),
        (&in_metadata, "its target differs"),
        (&used, "its prompt lacks the line before the hole"),
    ];
    for (form, difference) in forms {
        let file = predictions(&place, "line", form);
        eval(&place, "api", &file).failed().says(&[
            "line-predictions.jsonl:1: belongs to a task other than \"parcelflow/0\" of api.jsonl",
            difference,
            "more records)",
            "hint: give the tasks file (--tasks) that this file was made for",
        ]);
        let own = eval(&place, "line", &file).done().silent_on(ALONE);
        assert_eq!(exact_match(&own), 1.0);
    }
}

/// One record of another task among right ones is enough.
#[test]
fn a_single_record_of_another_task_is_named() {
    let place = place();
    let file = predictions(&place, "api", with_prompt);
    let mut records = place.records(&file);
    records[7] = with_prompt(&place.records("line.jsonl")[7], "parcelflow/7", "x");
    place.write("one.jsonl", jsonl(&records));
    eval(&place, "api", "one.jsonl")
        .failed()
        .says(&["one.jsonl:8: belongs to a task other than \"parcelflow/7\" of api.jsonl"])
        .silent_on("more record");
}

#[test]
fn numbered_ids_are_warned_of_once() {
    let place = place();
    let file = predictions(&place, "line", bare);
    let ran = eval(&place, "api", &file).done();
    let warned = ran.stderr.matches(ALONE).count();
    assert_eq!(warned, 1, "{}", ran.stderr);
    ran.says(&["20 records have only ids", "`prompt` or target can be checked"]);
    // File and line assign the record, if it has them.
    let placed = |task: &Value, id: &str, target: &str| {
        let of = |name: &str| task["metadata"][name].clone();
        let place =
            json!({"task_id": id, "fpath_tuple": of("fpath_tuple"), "line_no": of("line_no")});
        json!({"metadata": place, "choices": [{"text": target}]})
    };
    let file = predictions(&place, "line", placed);
    eval(&place, "line", &file).done().silent_on(ALONE);
    eval(&place, "api", &file)
        .failed()
        .says(&["line-predictions.jsonl:1: task \"parcelflow/0\" at"]);
}

/// Ids of `sample` name their hole: the bundled files have none in common, and need no warning.
#[test]
fn drawn_ids_tell_kinds_apart() {
    let place = place();
    let mut ids = std::collections::BTreeSet::new();
    for kind in ["line", "api", "chunk", "function"] {
        let text = std::fs::read_to_string(format!(
            "{}/data/tasks/{kind}.jsonl",
            env!("CARGO_MANIFEST_DIR")
        ));
        for line in text.unwrap().lines() {
            let task: Value = serde_json::from_str(line).unwrap();
            assert!(ids.insert(task["metadata"]["task_id"].to_string()));
        }
    }
    let sample = |kind: &str, seed: &str| {
        let output = format!("{kind}.jsonl");
        let sample = [
            "sample", "--kind", kind, "--repos-dir", "repos", "--per-repo", "9", "--seed", seed,
            "-o", &output,
        ];
        place.run(&sample).done();
        place.records(&output)
    };
    let ids = |records: &[Value]| -> std::collections::BTreeMap<String, String> {
        let id = |r: &Value| r["metadata"]["task_id"].as_str().unwrap().to_owned();
        records.iter().map(|r| (id(r), r["metadata"]["ground_truth"].to_string())).collect()
    };
    let (first, second) = (ids(&sample("line", "1")), ids(&sample("line", "2")));
    assert_eq!((first.len(), second.len()), (27, 27));
    let common: Vec<_> = first.iter().filter(|(id, _)| second.contains_key(*id)).collect();
    assert!(common.iter().all(|(id, target)| second[*id] == **target), "the same hole alone");
    // Predictions of the second seed, on tasks of API calls.
    let file = predictions(&place, "line", bare);
    eval(&place, "line", &file).done().silent_on("to identify the task");
    sample("api", "1");
    eval(&place, "api", &file).failed().says(&["is not in api.jsonl"]);
}

/// The same tasks in other formats have the same holes: white space goes from the target to the left context, and contexts are cut.
#[test]
fn the_same_tasks_in_other_formats_are_the_same() {
    let place = place();
    let file = predictions(&place, "line", with_prompt);
    let target = |_: &Value, id: &str, target: &str| json!({"task_id": id, "target": target, "pred": target});
    for format in ["repoformer", "crosscodeeval", "crosscodelongeval"] {
        let convert =
            ["convert", "line.jsonl", "--to", format, "--repos-dir", "repos", "-o", "other.jsonl"];
        place.run(&convert).done();
        eval(&place, "other", &file).done();
        eval(&place, "other", &predictions(&place, "line", target)).done();
    }
    // Prompts that fill in the middle, with little of the left context and none of their metadata.
    let cut =
        ["--tasks", "line.jsonl", "--repos-dir", "repos", "--unit", "chunks", "--mode", "none"];
    let style = ["--prompt-style", "starcoder"];
    place.run(&[&["window"], &cut[..], &style].concat()).done();
    let prompt = [
        "prompt", "--tasks", "line.jsonl", "--repos-dir", "repos", "--mode", "none", "--unit",
        "chunks", "--prompt-style", "starcoder", "--max-left-tokens", "24", "-o", "prompts.jsonl",
    ];
    place.run(&prompt).done();
    let records = place.records("prompts.jsonl").into_iter().map(|record| {
        let id = &record["metadata"]["task_id"];
        json!({"prompt": record["prompt"], "metadata": {"task_id": id}, "choices": [{"text": "x"}]})
    });
    place.write("fim.jsonl", jsonl(&records.collect::<Vec<_>>()));
    eval(&place, "line", "fim.jsonl").done().silent_on(ALONE);
    eval(&place, "api", "fim.jsonl").failed();
}

/// Every command that joins predictions with tasks refuses them.
#[test]
fn every_command_refuses_predictions_of_other_tasks() {
    let place = place();
    let file = predictions(&place, "line", with_prompt);
    let refused = |args: &[&str]| {
        place.run(args).failed().says(&["line-predictions.jsonl:1: belongs to a task other than"]);
    };
    let of_api = ["--tasks", "api.jsonl", "--repos-dir", "repos", "--predictions", &file];
    refused(&[&["rg-rg"], &of_api[..]].concat());
    refused(&[&["window", "--mode", "rg-rg"], &of_api[..]].concat());
    refused(&[&["eval", "--definitions"], &of_api[..]].concat());
    refused(&[&["report", "-o", "report"], &of_api[..]].concat());
    let own = predictions(&place, "api", with_prompt);
    refused(&judge("api.jsonl", &own, &file));
    refused(&["compare", "--tasks", "api.jsonl", &own, &file]);
    let bare = predictions(
        &place,
        "line",
        |task, id, target| json!({"task_id": id, "pred": target, "prompt": task["prompt"]}),
    );
    refused(&[
        "convert", &bare, "--to", "repocoder-predictions", "--tasks", "api.jsonl", "-o",
        "converted.jsonl",
    ]);
    assert!(!place.path("converted.jsonl").exists());
    if cfg!(target_os = "linux") {
        refused(&[&["eval", "--exec", "--test-cmd", "true"], &of_api[..]].concat());
    }
}

/// Records of prompts name the cut of files; a search with another window size is another system.
#[test]
fn searches_refuse_predictions_of_other_cuts() {
    let place = place();
    let made = |size: &str| {
        let run = [
            "run", "--tasks", "line.jsonl", "--repos-dir", "repos", "--cache-dir", "cache",
            "--mode", "rg1", "--window-size", size,
        ];
        place.run(&run).done();
        let name = format!("{size}.jsonl");
        let records = place
            .records(&place.named("cache/predictions/line", &format!("rg1-one-gram-ws-{size}")));
        place.write(&name, jsonl(&records));
        name
    };
    let rg_rg = |predictions: &str, more: &[&str]| {
        let rg_rg = [
            "rg-rg", "--tasks", "line.jsonl", "--repos-dir", "repos", "--cache-dir", "cache",
            "--predictions", predictions,
        ];
        place.run(&[&rg_rg[..], more].concat())
    };
    let small = made("10");
    rg_rg(&small, &[]).failed().says(&[
        "10.jsonl: was made with window_size 10, but this search has window_size 20",
        "hint: use the same settings for the search",
    ]);
    rg_rg(&small, &["--window-size", "10", "--slice-size", "5"])
        .failed()
        .says(&["was made with slice_size 2, but this search has slice_size 5"]);
    rg_rg(&small, &["--unit", "chunks"])
        .failed()
        .says(&["was made with window_size 10, but this search has chunk_size"]);
    // Neither Python's Infinity nor a size as a text hides the difference.
    let odd = place.read(&small).replace("{\"prompt\"", "{\"perplexity\":NaN,\"prompt\"");
    place.write("odd.jsonl", &odd);
    assert!(place.read("odd.jsonl").contains("NaN"));
    rg_rg("odd.jsonl", &[]).failed().says(&["was made with window_size 10"]);
    place.write("odd.jsonl", odd.replace("\"window_size\":10", "\"window_size\":\"10\""));
    rg_rg("odd.jsonl", &[])
        .failed()
        .says(&["field 'metadata.window_size' must be a whole number, not a string"]);
    rg_rg(&small, &["--window-size", "10"]).done();
    // Prompts of styles say their cut, too.
    let styled = ["--unit", "chunks", "--prompt-style", "starcoder"];
    let run = [
        "run", "--tasks", "line.jsonl", "--repos-dir", "repos", "--cache-dir", "styled", "--mode",
        "rg1", "--chunk-size", "5", "--chunk-stride", "5",
    ];
    place.run(&[&run[..], &styled].concat()).done();
    let records = place.records(&place.named("styled/predictions/line", "rg1-"));
    place.write("styled.jsonl", jsonl(&records));
    rg_rg("styled.jsonl", &styled)
        .failed()
        .says(&["styled.jsonl: was made with chunk_size 5, but this search has chunk_size 20"]);
    let oracle = place.records(&small).into_iter().map(|mut record| {
        record["metadata"]["mode"] = json!("gt");
        record
    });
    place.write("oracle.jsonl", jsonl(&oracle.collect::<Vec<_>>()));
    rg_rg("oracle.jsonl", &["--window-size", "10"]).failed().says(&[
        "oracle.jsonl: has predictions of mode gt, whose prompts show fragments found with \
         the target",
    ]);
}

/// Files of predictions of the lines, without retrieval and with it.
fn both_predictions(place: &Place) -> (String, &'static str) {
    let (own, with) = (predictions(place, "line", with_prompt), "with.jsonl");
    place.write(with, place.read(&own).replace("retrieved", "found"));
    (own, with)
}

/// Times, samples, probabilities, tests and scores are joined by ids as predictions are; only some of them could be checked.
#[test]
fn every_file_that_ids_alone_join_is_warned_of() {
    let place = place();
    let (own, with) = both_predictions(&place);
    let labels = "labels.jsonl";
    let judged = |more: &[&str]| {
        place.run(&[&judge("line.jsonl", &own, with)[..], &["-o", labels], more].concat())
    };
    judged(&[]).done().silent_on("to identify the task");
    let write = |name: &str, record: &dyn Fn(&str) -> Value| {
        let tasks = place.records("line.jsonl");
        let ids = tasks.iter().map(|task| task["metadata"]["task_id"].as_str().unwrap());
        place.write(name, jsonl(&ids.map(record).collect::<Vec<_>>()));
    };
    let warns_once = |ran: &Ran, file: &str| {
        let warning = format!("warning: {file}: 20 records {ALONE}");
        assert_eq!(ran.stderr.matches(&warning).count(), 1, "{warning}\n{}", ran.stderr);
        assert_eq!(ran.stderr.matches("to identify the task").count(), 1, "{}", ran.stderr);
    };
    write("times.jsonl", &|id| json!({"task_id": id, "retrieval_ms": 1, "generation_ms": 2}));
    let sweep =
        ["policy", "sweep", "--labels", labels, "--policy", "never", "--latency", "times.jsonl"];
    warns_once(&place.run(&sweep).done(), "the times of measured");
    warns_once(
        &place.run(&[&sweep[..], &["--base-latency", "times.jsonl"]].concat()).done(),
        "the times of measured",
    );
    write(
        "asked.jsonl",
        &|id| json!({"task_id": id, "next_token": {"text": "<cc>", "probability": 0.5}}),
    );
    warns_once(&judged(&["--probabilities", "asked.jsonl"]).done(), "asked.jsonl");
    write("samples.jsonl", &|id| json!({"task_id": id, "pred": ["x", "y"], "entropy": 0.5}));
    warns_once(&judged(&["--samples-from", "samples.jsonl"]).done(), "samples.jsonl");
    write("scores.jsonl", &|id| json!({"task_id": id, "repocoder": {"em": 0, "es": 0.5}}));
    warns_once(
        &place.run(&["compare", "scores.jsonl", "scores.jsonl"]).done(),
        "scores.jsonl and scores.jsonl",
    );
    write("likely.jsonl", &|id| json!({"task_id": id, "likelihood": {"per_character": 0.5}}));
    place.write("likely-2.jsonl", place.read("likely.jsonl"));
    let by_likelihood =
        [&judge("line.jsonl", "likely.jsonl", "likely-2.jsonl")[..], &["--metric", "likelihood"]];
    warns_once(&place.run(&by_likelihood.concat()).done(), "likely.jsonl");
    let answer = |id: &str| {
        let row = id.rsplit('/').next().unwrap();
        let body = json!({"choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]});
        json!({"custom_id": format!("row-{row}"), "response": {"status_code": 200, "body": body}})
    };
    write("answers.jsonl", &answer);
    let convert = [
        "convert", "answers.jsonl", "--to", "repocoder-predictions", "--tasks", "line.jsonl", "-o",
        "o",
    ];
    place.run(&convert).done().says(&[
        "warning: answers.jsonl: 20 records have only ids such as \"row-0\" to identify the task, \
         and other task files may use the same",
    ]);
    // Scores that say which target they are of are compared.
    let scores = |kind: &str| {
        let (tasks, file) = (format!("{kind}.jsonl"), predictions(&place, kind, with_prompt));
        let output = format!("{kind}-scores.jsonl");
        let eval = [
            "eval", "--tasks", &tasks, "--predictions", &file, "--per-task", "--format", "jsonl",
            "-o", &output,
        ];
        place.run(&eval).done();
        output
    };
    let (of_lines, of_calls) = (scores("line"), scores("api"));
    place.run(&["compare", &of_lines, &of_lines]).done().silent_on("to identify the task");
    place
        .run(&["compare", &of_lines, &of_calls])
        .failed()
        .says(&["targets: different in 20 of 20 tasks"]);
}

/// Samples and probabilities are refused if their prompts are of other tasks.
#[test]
fn samples_and_probabilities_of_other_tasks_are_refused() {
    let place = place();
    let (own, with) = both_predictions(&place);
    let foreign = |name: &str, fields: Value| {
        let records = place.records("api.jsonl").into_iter().map(|task| {
            let id = &task["metadata"]["task_id"];
            let mut record = json!({"task_id": id, "prompt": task["prompt"]});
            record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            record
        });
        place.write(name, jsonl(&records.collect::<Vec<_>>()));
    };
    foreign("samples.jsonl", json!({"pred": ["x", "y"], "entropy": 0.5}));
    foreign("asked.jsonl", json!({"next_token": {"text": "<cc>", "probability": 0.5}}));
    for (flag, file) in [("--samples-from", "samples.jsonl"), ("--probabilities", "asked.jsonl")] {
        let judge = [&judge("line.jsonl", &own, with)[..], &[flag, file]].concat();
        place.run(&judge).failed().says(&[
            &format!("{file}:1: belongs to a task other than \"parcelflow/0\" of line.jsonl"),
            "more records)",
        ]);
    }
}

/// Test results name a row and an id; rows of one file are other tasks in another.
#[test]
fn test_results_of_other_tasks_are_refused() {
    let place = place();
    let (own, with) = both_predictions(&place);
    let results = |of: &dyn Fn(usize) -> String| {
        let record = |row: usize| json!({"task_id": of(row), "row": row, "exec": {"pass_1": 1.0}, "statuses": ["pass"]});
        place.write("exec.jsonl", jsonl(&(0..20).map(record).collect::<Vec<_>>()));
    };
    let report = [
        "report",
        "--tasks",
        "line.jsonl",
        "--repos-dir",
        "repos",
        "--predictions",
        "a=line-predictions.jsonl",
        "--exec",
        "a=exec.jsonl",
        "-o",
        "page",
    ];
    let judge = [
        &judge("line.jsonl", &own, with)[..],
        &["--metric", "pass", "--base-exec", "a=exec.jsonl", "--rag-exec", "a=exec.jsonl"],
    ]
    .concat();
    results(&|row| format!("parcelflow/{}", 19 - row));
    for command in [&report[..], &judge] {
        place.run(command).failed().says(&[
            "exec.jsonl: contains test results of other tasks: its row 0 is \"parcelflow/19\", but \
             \"parcelflow/0\" in line.jsonl",
        ]);
    }
    results(&|row| format!("parcelflow/{row}"));
    place.run(&report).done().says(&["exec.jsonl: 20 records have only ids such as"]);
}

/// A conversion joins records with the tasks that it is given in both directions, and when the form stays.
#[test]
fn conversions_check_predictions_of_every_form() {
    let place = place();
    let bare = |_: &Value, id: &str, target: &str| json!({"task_id": id, "groundtruth": target, "pred": target});
    let forms: [(Form<'_>, &str); 4] = [
        (&with_prompt, "repocoder-predictions"),
        (&with_prompt, "crosscodeeval-predictions"),
        (&bare, "crosscodeeval-predictions"),
        (&bare, "repocoder-predictions"),
    ];
    for (form, to) in forms {
        let file = predictions(&place, "line", form);
        let convert = |tasks: &str| {
            place.run(&["convert", &file, "--to", to, "--tasks", tasks, "-o", "out.jsonl"])
        };
        convert("api.jsonl")
            .failed()
            .says(&["line-predictions.jsonl:1: belongs to a task other than"]);
        assert!(!place.path("out.jsonl").exists(), "{to}");
        convert("line.jsonl").done().silent_on(ALONE);
        std::fs::remove_file(place.path("out.jsonl")).unwrap();
        place.run(&["convert", &file, "--to", "crosscodeeval-predictions"]).done();
    }
}

/// CrossCodeLongEval's tasks name neither file nor line, so a prediction that names them contradicts nothing.
#[test]
fn tasks_without_a_place_take_predictions_that_name_one() {
    let place = place();
    let to = |name: &str, tasks: &str| {
        place
            .run(&[
                "convert", tasks, "--to", "crosscodelongeval", "--repos-dir", "repos", "-o", name,
            ])
            .done();
    };
    to("long.jsonl", "line.jsonl");
    assert!(place.records("long.jsonl")[0]["metadata"].get("fpath_tuple").is_none());
    let placed = |task: &Value, id: &str, target: &str| {
        let of = |name: &str| task["metadata"][name].clone();
        let place =
            json!({"task_id": id, "fpath_tuple": of("fpath_tuple"), "line_no": of("line_no")});
        json!({"metadata": place, "choices": [{"text": target}]})
    };
    let file = predictions(&place, "line", placed);
    let own = eval(&place, "long", &file).done().says(&[ALONE]);
    assert_eq!(exact_match(&own), 1.0);
    // Equal ids take turns, as tasks of one place do.
    for name in ["line.jsonl", "line-predictions.jsonl"] {
        place.write(name, place.read(name).replace("parcelflow/1\"", "parcelflow/0\""));
    }
    to("long.jsonl", "line.jsonl");
    let own = eval(&place, "long", &file).done();
    assert_eq!(exact_match(&own), 1.0);
}
