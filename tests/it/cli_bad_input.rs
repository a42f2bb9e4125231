//! Repositories whose files cannot be read, or change while they are read. What is said of bad
//! repositories and tasks otherwise stands in `tests/cmd/bad_input`.

use std::sync::atomic::{AtomicBool, Ordering};

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

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::empty();
    for flag in ["--bogus", "--benchmark"] {
        let output =
            place.command(&["run", flag]).arg(OsStr::from_bytes(b"\xff")).output().unwrap();
        Ran::of(output).failed().says(&["error: "]);
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
    let wanted =
        "fields 'choices' and 'pred' have different texts: remove the one that is not meant";
    named_everywhere(&place, "p.jsonl", &[&eval], wanted);
    place.write("p.jsonl", jsonl(&[both("store_12 = store(12)")]));
    assert!(!place.run(&eval).stderr.contains("have different texts"));
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
        (Value::Null, "has no checksum of it, 'output.blake3'"),
        (json!({"blake3": 3}), "has no checksum of it, 'output.blake3'"),
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
