//! Repositories whose files cannot be read, or change while they are read. What is said of bad
//! repositories and tasks otherwise stands in `tests/cmd/bad_input`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use repoformer_core::completion::{Api, samples};
use repoformer_core::task::kind::RecordKind;
use serde_json::{Value, json};

use crate::cli_policy::labels;
use crate::support::{Place, Ran, jsonl, source, task};

#[cfg(unix)]
#[test]
fn a_socket_is_left_out() {
    let place = Place::new();
    let socket = std::os::unix::net::UnixListener::bind(place.path("repos/alpha/socket.py"));
    place
        .stage_within(&["window"], 20)
        .partly()
        .says(&["error: repos/alpha/socket.py: left out: not a regular file"]);
    drop(socket);
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
fn files_that_come_and_go_while_they_are_read() {
    let place = Place::new();
    let file = |n: usize| place.path(&format!("repos/alpha/passing_{n}.py"));
    let done = AtomicBool::new(false);
    /// Ends the writer, whether or not the test fails.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _done = Done(&done);
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
                    && line.ends_with("it was removed while the repository was read")
            };
            assert!(errors.iter().all(named), "{}", ran.stderr);
            assert_eq!(ran.code, Some(i32::from(!errors.is_empty())), "{}", ran.stderr);
        }
    });
    place.stage(&["run"]).done();
    let undisturbed = Place::new();
    undisturbed.stage(&["run"]).done();
    crate::support::assert_same(&place.files("cache"), &undisturbed.files("cache"));
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::empty();
    for flag in ["--bogus", "--benchmark"] {
        let output =
            place.command(&["run", flag]).arg(OsStr::from_bytes(b"\xff")).output().unwrap();
        Ran::new(output).failed().says(&["error: "]);
    }
}

/// A record with a wrong field is named with its file, line and field by every command that reads it and by `validate`.
#[track_caller]
fn named_everywhere(place: &Place, file: &str, commands: &[&[&str]], wanted: &str) {
    for command in commands.iter().copied().chain([&["validate", file][..]]) {
        let ran = place.run(command);
        assert!(ran.code != Some(0), "{command:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(wanted), "{command:?} does not say {wanted}: {}", ran.stderr);
    }
}

#[test]
fn a_score_that_is_no_number_or_out_of_its_range_is_named() {
    let place = Place::empty();
    let score =
        |id: &str, em: Value, es: f64| json!({"task_id": id, "repocoder": {"em": em, "es": es}});
    let good = [score("r/0", json!(1), 1.0), score("r/1", json!(0), 0.5)];
    place.write("a.jsonl", jsonl(&good));
    for (wrong, wanted) in [
        (score("r/1", json!("x"), 0.5), "field 'repocoder.em' must be a number, not a string"),
        (score("r/1", json!(true), 0.5), "field 'repocoder.em' must be a number, not a boolean"),
        (score("r/1", json!(0), 1.5), "field 'repocoder.es' must be between 0 and 1, not 1.5"),
    ] {
        place.write("b.jsonl", jsonl(&[good[0].clone(), wrong]));
        let compare = ["compare", "a.jsonl", "b.jsonl"];
        named_everywhere(&place, "b.jsonl", &[&compare], wanted);
        assert!(place.run(&compare).stderr.contains("b.jsonl:2: "));
        // The measures are of the same tasks.
        let json = place.run(&[&compare[..], &["--format", "json"]].concat()).stdout;
        assert_eq!(json.matches("\"n\": 1,").count(), json.matches("\"n\": ").count(), "{json}");
    }
}

#[test]
fn a_label_of_a_wrong_type_or_beyond_its_range_is_named() {
    let place = Place::empty();
    let good = labels(0..3);
    let wrong = |at: usize, field: &str, value: Value| {
        let mut all = good.clone();
        match field.split_once('.') {
            Some((outer, inner)) => all[at][outer][inner] = value,
            None => all[at][field] = value,
        }
        place.write("labels.jsonl", jsonl(&all));
    };
    let commands: [&[&str]; 2] = [
        &["policy", "sweep", "--labels", "labels.jsonl", "--policy", "always"],
        &["policy", "train", "--labels", "labels.jsonl", "-o", "policy.json"],
    ];
    let flag = "field 'metadata.query_has_target' must be a boolean, not a";
    for (field, value, wanted) in [
        ("metadata.query_has_target", json!("true"), flag),
        ("metadata.query_has_target", json!(1), flag),
        ("metadata.row", json!("7"), "field 'metadata.row' must be a whole number, not a string"),
        ("es_rg1", json!(-0.5), "field 'es_rg1' must be between 0 and 100, not -0.5"),
        ("em_rg1", json!(101), "field 'em_rg1' must be between 0 and 100, not 101"),
        ("likelihood_rg1", json!(1.5), "field 'likelihood_rg1' must be between 0 and 1, not 1.5"),
    ] {
        wrong(4, field, value);
        named_everywhere(&place, "labels.jsonl", &commands, wanted);
        assert!(place.run(commands[0]).stderr.contains("labels.jsonl:5: "));
    }
    // One that is beyond the scale of its file changes no other.
    let es = |place: &Place| -> f64 {
        let sweep = [commands[0], &["--format", "jsonl"]].concat();
        let ran = place.run(&sweep);
        serde_json::from_str::<Value>(ran.stdout.lines().next().unwrap()).unwrap()["es"]
            .as_f64()
            .unwrap()
    };
    wrong(4, "more", json!(1));
    let before = es(&place);
    wrong(4, "es_rg1", json!(1.000_000_1));
    let ran = place.run(commands[0]).partly();
    let said = "labels.jsonl:5: task repo0/pkg/m4.py/4_5: field 'es_rg1' must be between 0 and 1";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!((es(&place) - before).abs() < 0.02, "{before}");
    // The released program's are percentages, of which some are small.
    let percent: Vec<Value> = good
        .iter()
        .cloned()
        .map(|mut label| {
            for name in ["es_infile", "es_rg1", "em_infile", "em_rg1"] {
                label[name] = json!(100.0 * label[name].as_f64().unwrap());
            }
            label
        })
        .collect();
    place.write("labels.jsonl", jsonl(&percent));
    assert!((es(&place) - before).abs() < 1e-9);
}

#[test]
fn a_prediction_has_its_texts_once() {
    let place = Place::new();
    let both = |pred: &str| json!({"task_id": "alpha/0", "pred": pred, "choices": [{"text": "store_12 = store(12)"}]});
    let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl"];
    place.write("p.jsonl", jsonl(&[both("other")]));
    let wanted = "fields 'choices' and 'pred' have different texts: remove one of them";
    named_everywhere(&place, "p.jsonl", &[&eval], wanted);
    place.write("p.jsonl", jsonl(&[both("store_12 = store(12)")]));
    assert!(!place.run(&eval).stderr.contains("have different texts"));
}

#[test]
fn a_prediction_that_names_two_tasks_or_a_failure_is_refused() {
    let place = Place::new();
    let good = json!({"task_id": "alpha/0", "metadata": {"task_id": "alpha/0"}, "pred": "store_12 = store(12)"});
    let with = |place: &str, name: &str, value: Value| {
        let mut record = good.clone();
        record.pointer_mut(place).unwrap()[name] = value;
        record
    };
    let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl", "--missing", "skip"];
    place.write("p.jsonl", jsonl(std::slice::from_ref(&good)));
    place.run(&eval).partly();
    let two = "fields 'task_id' and 'metadata.task_id' name different tasks: remove one of them";
    for (record, wanted) in [
        (with("/metadata", "task_id", json!("alpha/1")), two),
        (with("", "errors", json!(["full"])), "full"),
        (with("", "success", json!(false)), "an error"),
        (with("", "object", json!("error")), "an error"),
    ] {
        place.write("p.jsonl", jsonl(&[record]));
        place.run(&eval).failed().says(&[wanted]);
    }
}

#[test]
fn a_time_that_cannot_be_is_named() {
    let place = Place::empty();
    place.write("labels.jsonl", jsonl(&labels(0..1)));
    let time = |retrieval: Value, more: Value| {
        let id = "repo0/pkg/m0.py/4_5";
        place.write("t.jsonl", jsonl(&[json!({
            "task_id": id, "row": 0, "retrieval_ms": retrieval, "generation_ms": 5, "without_embedding": more,
        })]));
    };
    let sweep: &[&str] = &[
        "policy", "sweep", "--labels", "labels.jsonl", "--latency", "t.jsonl", "--policy", "always",
    ];
    time(json!(-1), json!(false));
    let wanted = "t.jsonl:1: field 'retrieval_ms' must be a number from 0, not -1";
    assert!(place.run(sweep).stderr.contains(wanted), "{}", place.run(sweep).stderr);
    named_everywhere(
        &place,
        "t.jsonl",
        &[sweep],
        "field 'retrieval_ms' must be a number from 0, not -1",
    );
    time(json!(1), json!("yes"));
    named_everywhere(
        &place,
        "t.jsonl",
        &[sweep],
        "field 'without_embedding' must be a boolean, not a string",
    );
}

#[test]
fn a_task_without_a_target_is_left_out_by_all() {
    let place = Place::new();
    let mut empty = task("alpha/9", "alpha/store.py", &source("store", 25), 10, 14);
    empty["metadata"]["ground_truth"] = json!("");
    place.add_tasks(&[empty]);
    let wanted = "task alpha/9: its ground truth is empty: there is nothing to predict";
    assert!(place.stage(&["window"]).partly().stderr.contains(wanted));
    place.write("p.jsonl", jsonl(&[json!({"task_id": "alpha/0", "pred": "x"})]));
    let eval: &[&str] = &["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl"];
    named_everywhere(&place, "tasks.jsonl", &[eval, &["stats", "tasks.jsonl"]], wanted);
}

#[test]
fn a_shard_whose_manifest_has_no_checksum_is_not_merged() {
    let place = Place::new();
    place.add_samples();
    for part in ["1/2", "2/2"] {
        let name = format!("{}.jsonl", &part[..1]);
        let draw =
            ["sample", "--repos-dir", "repos", "--kind", "line", "--shard", part, "-o", &name];
        place.run(&draw).done();
    }
    let manifest: Value = serde_json::from_str(&place.read("2.jsonl.manifest.json")).unwrap();
    for (output, wanted) in [
        (Value::Null, "lacks the checksum 'output.blake3'"),
        (json!({"blake3": 3}), "lacks the checksum 'output.blake3'"),
    ] {
        let mut changed = manifest.clone();
        let fields = changed.as_object_mut().unwrap();
        fields.shift_remove("record_checksum");
        fields.shift_remove("output");
        if !output.is_null() {
            fields.insert("output".into(), output);
        }
        place.write("2.jsonl.manifest.json", changed.to_string());
        let merge = ["merge", "1.jsonl", "2.jsonl", "-o", "both.jsonl"];
        let said = place.run(&merge).failed().stderr;
        assert!(said.contains("2.jsonl") && said.contains(wanted), "{said}");
        assert!(!place.path("both.jsonl").exists());
    }
}

#[test]
fn a_signal_of_a_wrong_type_is_named() {
    let place = Place::new();
    let eval: &[&str] = &["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl"];
    for (field, value, wanted) in [
        ("entropy", json!("0.5"), "field 'entropy' must be a number, not a string"),
        (
            "next_token",
            json!({"probability": 1.5}),
            "field 'next_token.probability' must be between 0 and 1, not 1.5",
        ),
        (
            "next_token",
            json!({"probability": 0.5, "is_likeliest": 1}),
            "field 'next_token.is_likeliest' must be a boolean, not a number",
        ),
        (
            "choices",
            json!([{"text": "x", "min_logprob": "-1"}]),
            "field 'choices[0].min_logprob' must be a number, not a string",
        ),
    ] {
        let mut record = json!({"metadata": {"task_id": "alpha/0"}, "choices": [{"text": "x"}]});
        record[field] = value;
        place.write("p.jsonl", jsonl(&[record]));
        named_everywhere(&place, "p.jsonl", &[eval], wanted);
    }
}

/// A kind of record, and the commands that read it.
struct Reading {
    good: Value,
    commands: Vec<Vec<&'static str>>,
    /// Whether the commands stop at the first wrong record.
    is_first_only: bool,
    /// Texts of these fields tell one record from others: other ones are right, and belong to nothing here.
    names: &'static [&'static str],
}

const F: &str = "records.jsonl";

fn place_of_window(number_field: &str) -> Value {
    json!({
        "fpath_tuple": ["alpha", "view.py"], number_field: 10, "start_line_no": 0, "end_line_no": 20,
        "window_size": 20, "repo": "alpha", "slice_size": 2,
    })
}

/// Good records, of which each field is known and there.
fn readings() -> Vec<Reading> {
    let cross_file = json!({"text": "# x", "list": [{"retrieved_chunk": "x", "filename": "a.py", "score": 0.5}]});
    let signals = json!({"text": "<cc>", "probability": 0.5, "is_likeliest": true});
    let of_prompt = json!({
        "task_id": "alpha/0", "fpath_tuple": ["alpha", "store.py"], "line_no": 12, "context_start_lineno": 10,
        "ground_truth": "store_12 = store(12)", "row": 0, "sample": 0, "mode": "rg1", "prompt_style_digest": "d",
        "window_size": 20, "slice_size": 2, "right_context": "x", "stop": ["</s>"], "prompt_tokens": 3,
        "query_window": {"context": "x", "metadata": {
            "task_id": "alpha/0", "row": 0, "fpath_tuple": ["alpha", "store.py"], "line_no": 12, "start_line_no": 0,
            "end_line_no": 12, "context_start_lineno": 10, "window_size": 20, "slice_size": 2, "repo": "alpha",
        }},
        "top_k_context": [{"context": "x", "metadata": [place_of_window("line_no")], "sim_score": 0.5}],
        "shown_context": [{"context": "x", "start_line_no": 1, "end_line_no": 2}],
    });
    let label = labels(0..1).remove(0);
    let stats = vec![vec!["stats", F, "-v"]];
    let to_predictions = |form: &'static str| {
        ["convert", F, "--tasks", "tasks.jsonl", "--to", form, "-o", "p.jsonl", "-v"]
    };
    let eval = vec![
        vec!["eval", "--tasks", "tasks.jsonl", "--predictions", F, "-v"],
        to_predictions("crosscodeeval-predictions").to_vec(),
        to_predictions("repocoder-predictions").to_vec(),
    ];
    let to_tasks =
        vec![vec!["convert", F, "--to", "repoeval", "--repos-dir", "repos", "-o", "t.jsonl", "-v"]];
    let to_folders = vec![vec!["convert", F, "--to", "repos", "-o", "out", "-v"]];
    let completions = vec![to_predictions("crosscodeeval-predictions").to_vec()];
    let reading = |good, commands: &[Vec<&'static str>], names| Reading {
        good,
        commands: commands.to_vec(),
        is_first_only: false,
        names,
    };
    let function = "def f(x):\n    y = x\n    return y\n";
    vec![
        reading(task("alpha/0", "alpha/store.py", &source("store", 25), 10, 12), &stats, &[]),
        reading(
            json!({"prompt": "a\n", "groundtruth": "b", "right_context": "c", "full_left_context": "a\n",
                "full_right_context": "c", "crossfile_context": "# x", "ranking_latency": 0.5,
                "metadata": {"task_id": "r/0", "filepath": "r/a.py", "repository": "r", "url": "u", "context_start_lineno": 0}}),
            &stats,
            &[],
        ),
        reading(
            json!({"prompt": "a\n", "groundtruth": "b", "right_context": "c", "crossfile_context": cross_file,
                "metadata": {"task_id": "r/0", "repository": "r", "file": "a.py", "context_start_lineno": 0,
                    "groundtruth_start_lineno": 1, "right_context_start_lineno": 2}}),
            &stats,
            &[],
        ),
        reading(
            json!({"prompt": "a\n", "groundtruth": "b", "right_context": "c", "crossfile_context": cross_file,
                "metadata": {"task_id": "r/0"}}),
            &stats,
            &[],
        ),
        reading(
            json!({"repo_name": "o/r", "file_path": "a.py", "context": [{"identifier": "x", "path": "b.py", "snippet": "x = 1"}],
                "import_statement": "import b", "token_num": 3, "cropped_code": "a", "all_code": "a\nb", "next_line": "b",
                "gold_snippet_index": 0, "created_at": "2023", "level": "2k"}),
            &stats,
            &[],
        ),
        reading(json!({"pkg": "p", "fpath": "p/a.py", "input": "x\n", "gt": "y"}), &stats, &[]),
        reading(
            label,
            &[
                vec!["stats", F, "-v"],
                vec!["policy", "sweep", "--labels", F, "--policy", "always", "-v"],
                vec!["policy", "train", "--labels", F, "-o", "policy.json", "-v"],
            ],
            &["generation_model", "metric", "fragments"],
        ),
        reading(
            json!({"prompt": "", "metadata": of_prompt, "choices": [{"text": "x", "index": 0, "finish_reason": "stop", "min_logprob": -0.5}],
                "entropy": 0.5, "next_token": signals,
                "asked": {"model": "m", "max_tokens": 8, "temperature": 0.5, "top_p": 0.5, "stop": ["x"]}}),
            &eval,
            &["prompt", "metadata.ground_truth"],
        ),
        reading(
            json!({"task_id": "alpha/0", "pred": "x", "pred_raw": "x", "retrieval_prob": 0.5, "do_retrieval": true}),
            &eval,
            &[],
        ),
        reading(
            serde_json::from_str(
                include_str!("../fixtures/lm_eval/none.jsonl").lines().next().unwrap(),
            )
            .unwrap(),
            &eval,
            &["filter", "doc.target", "doc.prompt", "doc.withheld"],
        ),
        reading(
            json!({"task_id": "a", "target": "x", "pred": "y", "prompt": "p", "language": "python"}),
            &[vec!["eval", "--pairs", F, "-v"]],
            &[],
        ),
        reading(
            json!({"task_id": "a", "row": 0, "repository": "r", "target_digest": "0f", "repocoder": {"em": 1, "es": 1.0}}),
            &[vec!["compare", F, F, "-v"]],
            &[],
        ),
        reading(
            json!({"task_id": "a", "row": 0, "repository": "r", "likelihood": {"per_character": 0.5},
                "log_probability": -2.5, "bits_per_character": 0.5, "characters": 5, "asked": {"model": "m"}}),
            &[vec!["compare", F, F, "-v"]],
            &[],
        ),
        reading(
            json!({"source": "s", "url": "u", "license": "l", "patent": "p", "repository": "r", "filepath": "r/a.py",
                "content": [{"type": "code", "lang": "python", "content": "x = 1\n"}]}),
            &to_folders,
            &[],
        ),
        reading(
            json!({"repo_name": "o/r", "stars_count": 3, "files": [{"filepath": "a.py", "content": "x = 1\n", "metadata": {
                "size": 6, "lang": "Python", "ext": "py", "hexsha": "00", "avg_line_length": 5.0, "max_line_length": 5,
                "line_count": 1, "non_empty_line_count": 1, "imports": ["os"], "local_imports": ["b"], "functions": [[[0, 0], [1, 2]]],
            }}], "repo_size": {"number_of_files": 1, "lines_of_code": 1}}),
            &[
                to_folders[0].clone(),
                vec!["label", "sample", "--raw", F, "--no-filter", "-o", "drawn.jsonl", "-v"],
            ],
            &[],
        ),
        reading(
            json!({"id": "b", "custom_id": "row-0", "response": {"status_code": 200, "request_id": "r", "body": {
                "choices": [{"index": 0, "text": "x"}]}}, "error": null}),
            &completions,
            &[],
        ),
        reading(json!({"namespace": "alpha/0", "completion": "x", "idx": 0}), &completions, &[]),
        reading(
            json!({"namespace": "a.f", "type": "function", "project_path": "T/a", "completion_path": "T/a/b.py",
                "signature_position": [1, 1], "body_position": [2, 3], "tests": ["t.py::x"], "indent": 4,
                "dependency": {"intra_class": [], "intra_file": ["a.g"], "cross_file": ["a.h"]},
                "requirement": {"Functionality": "f", "Arguments": "a"}}),
            &to_tasks,
            &[],
        ),
        reading(
            json!({"problem_ids": 0, "project": "test-apps/a", "focal_function": function, "module": "b", "code": function,
                "entry_point": "f", "test": "t", "test_list": ["t"]}),
            &to_tasks,
            &[],
        ),
        reading(
            json!({"prompt": "store_1 = store(1)\n", "metadata": of_prompt}),
            &[
                vec![
                    "complete", "--prompts", F, "--max-lines", "1", "--max-tokens", "4", "-o",
                    "out.jsonl", "-v",
                ],
                vec!["complete", "--likelihood", "--prompts", F, "-o", "likely.jsonl", "-v"],
                vec!["convert", F, "--to", "batch-requests", "--model", "m", "-o", "b.jsonl", "-v"],
            ],
            &[],
        ),
        Reading {
            is_first_only: true,
            ..reading(
                json!({"task_id": "repo0/pkg/m0.py/4_5", "row": 0, "sample": 0, "at_once": 1, "retrieval_ms": 1,
                    "generation_ms": 5, "decision_ms": 1, "without_embedding": false}),
                &[vec![
                    "policy", "sweep", "--labels", "labels.jsonl", "--latency", F, "--policy",
                    "always",
                ]],
                &[],
            )
        },
    ]
}

/// A record with one field otherwise, in the words of a message.
fn variants(good: &Value) -> Vec<(String, Value)> {
    fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(object) => {
                object.iter().map(|(name, inner)| (format!("{path}/{name}"), inner)).collect()
            }
            Value::Array(list) => {
                list.first().map(|inner| (format!("{path}/0"), inner)).into_iter().collect()
            }
            _ => Vec::new(),
        };
        for (path, inner) in inner {
            paths(inner, &path, found);
            found.push(path);
        }
    }
    let mut found = Vec::new();
    paths(good, "", &mut found);
    let mut variants = Vec::new();
    for path in found {
        let (above, name) = path.rsplit_once('/').unwrap();
        let mut without = good.clone();
        match without.pointer_mut(above).unwrap() {
            Value::Object(object) => drop(object.shift_remove(name)),
            Value::Array(list) => drop(list.remove(0)),
            _ => unreachable!(),
        }
        variants.push((format!("{path} removed"), without));
        for value in [
            json!(null),
            json!(true),
            json!(1),
            json!(-1),
            json!(0.25),
            json!(u64::MAX),
            json!("@1e999"),
            json!("@NaN"),
            json!(""),
            json!("x"),
            json!([]),
            json!([[]]),
            json!([null]),
            json!({}),
            json!({"x": []}),
        ] {
            let mut other = good.clone();
            let text = value.to_string();
            *other.pointer_mut(&path).unwrap() = value;
            variants.push((format!("{path} = {text}"), other));
        }
    }
    variants
}

/// A line of a file: numbers that are no JSON values among the fields.
fn line(record: &Value) -> String {
    let text = record.to_string();
    text.replace("\"@1e999\"", "1e999").replace("\"@NaN\"", "NaN") + "\n"
}

/// Reasons by line in what a command prints.
fn refused(stderr: &str) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    for told in stderr.lines() {
        let Some((_, place)) = told.split_once(&format!("{F}:")) else { continue };
        let Some((line, reason)) = place.split_once(':') else { continue };
        if let Ok(line) = line.parse() {
            found.entry(line).or_insert_with(|| reason.trim().to_owned());
        }
    }
    found
}

/// What is said of records that are right, and that other records, files or settings do not fit.
const OF_OTHERS: [&str; 11] = [
    "is not in tasks.jsonl", "in that row", "was answered before", "belongs to no task",
    "is there twice", "equals that of line", "same custom_id", "this prediction", "; set it",
    "the target is empty", "ends within a line",
];

fn is_of_others(reason: &str) -> bool {
    let is_of_its_text = reason.starts_with("task ") && !reason.contains("ground truth");
    is_of_its_text || OF_OTHERS.iter().any(|said| reason.contains(said))
}

/// Reasons for which a command refuses lines of a file.
fn refused_by(
    place: &Place,
    reading: &Reading,
    command: &[&str],
    lines: &[String],
) -> BTreeMap<usize, String> {
    if !reading.is_first_only {
        return refused(&place.run(command).stderr);
    }
    let each = (1..).zip(lines).filter_map(|(number, line)| {
        place.write(F, line);
        Some((number, refused(&place.run(command).stderr).remove(&1)?))
    });
    each.collect()
}

#[test]
fn a_probability_above_1_is_none() {
    let answer = |logprob: f64| {
        let logprobs = json!({"tokens": ["x"], "token_logprobs": [logprob]});
        json!({"choices": [{"text": "x", "logprobs": logprobs}]})
    };
    let rounded = samples(&answer(1e-7), Api::Completions).unwrap();
    assert_eq!(rounded[0].tokens[0].logprob, 0.0);
    let refused = samples(&answer(5.0), Api::Completions).unwrap_err().to_string();
    assert!(refused.contains("above 0"), "{refused}");
}

/// Whatever is wrong with a field of a record, `validate` and the commands that read it find it alike.
#[test]
fn what_is_refused_is_refused_by_all() {
    let kind = |record: &Value| RecordKind::from_record(record.as_object().unwrap());
    let mut disagreements = Vec::new();
    for reading in readings() {
        let good = &reading.good;
        let place = Place::new();
        place.write("repos/a/b.py", "def f(x):\n    y = x\n    return y\n");
        place.write("labels.jsonl", jsonl(&labels(0..1)));
        let mut tasks = place.records("tasks.jsonl");
        tasks.iter_mut().for_each(|task| task["metadata"]["indent"] = json!(4));
        place.write("tasks.jsonl", jsonl(&tasks));
        let is_name = |what: &str| {
            let paths =
                reading.names.iter().map(|name| format!("/{} = \"", name.replace('.', "/")));
            paths.into_iter().any(|path| what.starts_with(&path))
        };
        // The good one is first: some files are of what their first record is. Other kinds are for other commands.
        let mut all = vec![("nothing".to_owned(), good.clone())];
        all.extend(variants(good));
        all.retain(|(what, record)| !is_name(what) && kind(record) == kind(good));
        let lines: Vec<String> = all.iter().map(|(_, record)| line(record)).collect();
        place.write(F, lines.concat());
        let of_kind = kind(good).map_or("?", RecordKind::name);
        let report = place.run(&["validate", F, "--format", "json"]).stdout;
        let report: Value = serde_json::from_str(&report).unwrap();
        let mut wrong = BTreeMap::new();
        for found in report["findings"].as_array().unwrap() {
            let reason = found["message"].as_str().unwrap();
            if found["severity"] == "error" && !reason.contains("equals that of line") {
                wrong.entry(found["line"].as_u64().unwrap() as usize).or_insert(reason);
            }
        }
        assert!(!wrong.contains_key(&1) && wrong.len() > 10, "{of_kind}: {wrong:?}");
        for command in &reading.commands {
            let said = refused_by(&place, &reading, command, &lines);
            for (number, (what, _)) in (1..).zip(&all) {
                let told = format!("{of_kind}: {command:?} on {what}: ");
                match (wrong.get(&number), said.get(&number)) {
                    (Some(reason), None) => {
                        disagreements.push(format!("{told}only validate: {reason}"))
                    }
                    (None, Some(reason)) if !is_of_others(reason) => {
                        disagreements.push(format!("{told}not validate: {reason}"));
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(disagreements.is_empty(), "{}:\n{}", disagreements.len(), disagreements.join("\n"));
}
