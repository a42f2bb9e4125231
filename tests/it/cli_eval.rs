//! Predictions from any model: joined to their tasks, scored, searched with — and never lost without a word.

use crate::support::{Place, TARGETS, jsonl, parse_jsonl, source};
use serde_json::{Value, json};

/// Row 0 exact; in row 1 one character of 18 differs; in row 2 eleven of 18 are missing.
const TEXTS: [&str; 3] = ["store_12 = store(12)", "view_20 = view(21)", "main_30"];

/// A prediction as RepoCoder's program writes it.
fn choices(row: usize, texts: &[&str]) -> Value {
    let choices: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    json!({"prompt": "p", "metadata": {"task_id": TARGETS[row].0}, "choices": choices})
}

/// A prediction as CrossCodeEval's program writes it.
fn pred(row: usize, text: &str) -> Value {
    json!({"task_id": TARGETS[row].0, "pred": text})
}

fn all() -> Vec<Value> {
    (0..3).map(|row| choices(row, &[TEXTS[row]])).collect()
}

fn place_with(predictions: &[Value]) -> Place {
    let place = Place::new();
    place.write("mine.jsonl", jsonl(predictions));
    place
}

/// `eval` on nothing but tasks and predictions: scoring reads no repository.
fn eval<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["eval", "--tasks", "tasks.jsonl", "--predictions", "mine.jsonl"], more].concat()
}

fn scores(place: &Place, more: &[&str]) -> Value {
    let ran = place.run(&eval(&[&["--format", "json"], more].concat()));
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", ran.stdout, ran.stderr))
}

#[test]
fn a_table_of_repositories_and_all() {
    let place = place_with(&all());
    let ran = place.run(&eval(&[])).done();
    assert_eq!(ran.stderr, "");
    // Edit similarities: 1, 17/18 and 7/18; means over tasks, × 100.
    let wanted = "\
predictions  repository  n   repocoder.em    repocoder.es
mine              alpha  2          50.00           97.22
mine               beta  1           0.00           38.89
mine                all  3          33.33           77.78
                   95 %     [0.00, 50.00]  [38.89, 97.22]

95 %: 10000 resamples of the 2 repositories, seed 0
repocoder: predictions cut by stripped-lines
";
    assert_eq!(ran.stdout, wanted);
    // With tabs a number a cell, and no more than the means.
    let means = wanted.lines().take(4);
    let tabs: Vec<String> =
        means.map(|line| line.split_whitespace().collect::<Vec<_>>().join("\t")).collect();
    assert_eq!(place.run(&eval(&["--format", "tsv"])).done().stdout, tabs.join("\n") + "\n");
}

#[test]
fn json_gives_values_between_0_and_1() {
    let place = place_with(&all());
    let value = scores(&place, &[]);
    assert_eq!(value["predictions"], "mine");
    assert_eq!(
        value["repositories"]["alpha"],
        json!({"n": 2, "repocoder": {"em": 0.5, "es": (1.0 + 17.0 / 18.0) / 2.0}})
    );
    assert_eq!(value["all"]["n"], 3);
    assert_eq!(value["missing"], 0);
    assert!(value.get("tasks").is_none());
    let lines = place.run(&eval(&["--format", "jsonl"])).done().stdout;
    assert_eq!(parse_jsonl(&lines), [value]);
}

#[test]
fn each_tasks_scores() {
    let place = place_with(&all());
    let wanted = [(1.0, 1.0), (0.0, 1.0 - 1.0 / 18.0), (0.0, 1.0 - 11.0 / 18.0)];
    let record = |(row, (em, es)): (usize, &(f64, f64))| {
        json!({"task_id": TARGETS[row].0, "row": row, "repository": TARGETS[row].0.split('/').next(),
            "repocoder": {"em": em, "es": es}, "pred_raw": TEXTS[row], "pred": TEXTS[row]})
    };
    let wanted: Vec<Value> = wanted.iter().enumerate().map(record).collect();
    let lines = place.run(&eval(&["--per-task", "--format", "jsonl"])).done().stdout;
    assert_eq!(parse_jsonl(&lines), wanted);
    assert_eq!(scores(&place, &["--per-task"])["tasks"], Value::from(wanted.clone()));
    let table = place.run(&eval(&["--per-task", "--format", "tsv"])).done().stdout;
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[1], "mine\talpha\t1\t0\talpha/0\t100.00\t100.00");
    assert_eq!(rows[3], "mine\tbeta\t1\t2\tbeta/0\t0.00\t38.89");
    assert_eq!(rows.len(), 1 + 3 + 3);
}

#[test]
fn scores_go_to_a_file() {
    let place = place_with(&all());
    let ran = place.run(&eval(&["-o", "out/scores.txt"])).done();
    assert_eq!(ran.stdout, "");
    assert_eq!(place.read("out/scores.txt"), place.run(&eval(&[])).done().stdout);
    place.run(&eval(&["-o", "/dev/full"])).failed().says(&[
        "/dev/full",
        "No space left",
        "hint: free some space",
    ]);
}

#[test]
fn every_format_and_order_of_predictions_scores_alike() {
    // The files differ, and so do the digests of what was read.
    let scores = |place: &Place, more: &[&str]| {
        let mut value = scores(place, more);
        value["manifest"].take();
        value
    };
    let wanted = scores(&place_with(&all()), &[]);
    let turned: Vec<Value> = all().into_iter().rev().collect();
    assert_eq!(scores(&place_with(&turned), &[]), wanted);
    let preds: Vec<Value> = (0..3).map(|row| pred(row, TEXTS[row])).collect();
    assert_eq!(scores(&place_with(&preds), &[]), wanted);
    let listed: Vec<Value> =
        (0..3).map(|row| json!({"task_id": TARGETS[row].0, "pred": [TEXTS[row]]})).collect();
    assert_eq!(scores(&place_with(&listed), &[]), wanted);
    let piped = place_with(&all())
        .shell("repoformer eval --tasks tasks.jsonl --predictions - --format tsv < mine.jsonl")
        .done();
    assert!(piped.stdout.contains("all\t3\t33.33\t77.78"), "{}", piped.stdout);
}

#[test]
fn the_best_of_several_samples_counts() {
    let one_record = choices(1, &["zzz", TARGETS[1].1, "view_20 = view(21)"]);
    let place = place_with(&[
        choices(0, &["x"]),
        one_record,
        choices(2, &["main_30"]),
        choices(2, &["main_30 = main(3"]),
    ]);
    let tasks = scores(&place, &["--per-task"])["tasks"].clone();
    assert_eq!(tasks[1]["repocoder"], json!({"em": 1.0, "es": 1.0}));
    assert_eq!(tasks[2]["repocoder"], json!({"em": 0.0, "es": 1.0 - 2.0 / 18.0}), "of two records");
}

#[test]
fn a_missing_prediction_is_an_error_a_zero_or_left_out() {
    let place = place_with(&[pred(0, TEXTS[0]), pred(2, TEXTS[2])]);
    place.run(&eval(&[])).failed().says(&[
        "error: tasks.jsonl:2: task alpha/1: it has no prediction (1 of 3 tasks have none)",
        "--missing zero",
        "--missing skip",
    ]);
    let zero = scores(&place, &["--missing", "zero"]);
    assert_eq!((&zero["all"]["n"], &zero["missing"]), (&3.into(), &1.into()));
    assert_eq!(zero["repositories"]["alpha"]["repocoder"], json!({"em": 0.5, "es": 0.5}));
    place.run(&eval(&["--missing", "zero"])).done();
    let skip = scores(&place, &["--missing", "skip"]);
    assert_eq!((&skip["all"]["n"], &skip["missing"]), (&2.into(), &1.into()));
    assert_eq!(skip["repositories"]["alpha"]["repocoder"], json!({"em": 1.0, "es": 1.0}));
    let ran = place.run(&eval(&["--missing", "skip"])).partly();
    ran.says(&["error: tasks.jsonl:2: task alpha/1: has no prediction"]);
    place
        .run(&eval(&["--missing", "drop"]))
        .failed()
        .says(&["unknown treatment of missing predictions 'drop'; known: error, zero, skip"]);
}

#[test]
fn empty_and_unusable_predictions_are_told() {
    let records = [
        choices(0, &[""]),
        choices(1, &[]),
        json!({"task_id": "beta/0", "pred": 7}),
        json!({"task_id": "gamma/7", "pred": ""}),
    ];
    let place = place_with(&records);
    place.run(&eval(&[])).failed().says(&[
        "error: mine.jsonl:2: field 'choices' is empty: no sample",
        "error: mine.jsonl:3: field 'pred' must be a string, not a number",
        "error: mine.jsonl:4: task \"gamma/7\" is not in tasks.jsonl",
        "error: tasks.jsonl:2: task alpha/1: it has no prediction (2 of 3 tasks have none)",
    ]);
    let ran = place.run(&eval(&["--missing", "zero", "--format", "tsv"])).partly();
    assert!(ran.stdout.contains("all\t3\t0.00\t0.00"), "{}", ran.stdout);
    ran.says(&[
        "warning: mine.jsonl: 1 empty predictions; they are scored as empty text",
        "mine.jsonl:2: ",
    ]);
}

#[test]
fn predictions_of_tasks_of_one_id_want_their_place() {
    let place = Place::new();
    let same_ids = place.read("tasks.jsonl").replace("alpha/1", "alpha/0");
    place.write("tasks.jsonl", same_ids);
    place.write("mine.jsonl", jsonl(&[pred(0, "x"), pred(0, "y"), pred(2, "z")]));
    place.run(&eval(&[])).failed().says(&[
        "error: mine.jsonl:1: 2 tasks have the id \"alpha/0\"; add metadata.fpath_tuple and metadata.line_no",
        "error: mine.jsonl:2: ",
        "error: tasks.jsonl:1: task alpha/0: it has no prediction (2 of 3 tasks have none)",
    ]);
    let ids = ["alpha/0", "alpha/0", "beta/0"];
    let with_row = |row: usize| {
        let id = ids[row];
        json!({"metadata": {"row": row}, "pred": TEXTS[row], "task_id": id})
    };
    let with_rows: Vec<Value> = (0..3).map(with_row).collect();
    place.write("mine.jsonl", jsonl(&with_rows));
    assert_eq!(scores(&place, &[])["repositories"]["alpha"]["repocoder"]["em"], 0.5);
}

#[test]
fn repositories_named_as_on_the_hub_find_their_predictions() {
    let predictions = jsonl(&[json!({"pred": "x", "metadata": {
        "task_id": "o--r/0", "fpath_tuple": ["o_r", "a.py"], "lineno": 3}})]);
    let hub = json!({"prompt": "a\n", "metadata": {"task_id": "o--r/0", "ground_truth": "x",
        "fpath_tuple": ["o--r", "a.py"], "context_start_lineno": 0, "lineno": 3}});
    for folder in ["o--r", "o_r"] {
        let place = place_with(&[]);
        place.write("mine.jsonl", &predictions);
        place.write("tasks.jsonl", jsonl(std::slice::from_ref(&hub)));
        place.write(&format!("repos/{folder}/a.py"), source("a", 9));
        for more in [&[][..], &["--repos-dir", "repos"], &["--repo", folder]] {
            let value = scores(&place, more);
            assert_eq!(value["all"]["repocoder"]["em"], 1.0, "{folder} {more:?}");
        }
    }
}

#[test]
fn pairs_need_no_tasks() {
    let place = Place::empty();
    let pairs = [
        json!({"task_id": "a", "target": "x = 1", "pred": "x = 1\ny = 2"}),
        json!({"task_id": 7, "target": "x = 1", "pred": ["zzzzz", "x = 2"]}),
    ];
    place.write("pairs.jsonl", jsonl(&pairs));
    let ran =
        place.run(&["eval", "--pairs", "pairs.jsonl", "--per-task", "--format", "jsonl"]).done();
    // The second line is cut away: the target has one. Then one character of five.
    let wanted = [
        json!({"task_id": "a", "row": 0, "repocoder": {"em": 1.0, "es": 1.0}}),
        json!({"task_id": "7", "row": 1, "repocoder": {"em": 0.0, "es": 0.8}}),
    ];
    assert_eq!(parse_jsonl(&ran.stdout), wanted);
    place.write(
        "pairs.jsonl",
        jsonl(&[pairs[0].clone(), json!({"task_id": "b", "pred": "x"}), json!([1])]),
    );
    let ran = place.run(&["eval", "--pairs", "pairs.jsonl", "--format", "tsv"]).partly();
    assert!(ran.stdout.contains("pairs\tall\t1\t100.00\t100.00"), "{}", ran.stdout);
    ran.says(&[
        "pairs.jsonl:2: field 'target' is missing",
        "pairs.jsonl:3: a JSON object is expected, not a list",
        "hint: correct the line",
    ]);
    place
        .run(&["eval", "--pairs", "no.jsonl"])
        .failed()
        .says(&["no.jsonl: cannot open this file", "hint: check the path"]);
    place
        .run(&["eval", "--pairs", "pairs.jsonl", "--threads", "x"])
        .failed()
        .says(&["invalid threads 'x'"]);
}

#[test]
fn references_score_as_perfect() {
    let place = Place::new();
    let ran = place
        .run(&["eval", "--tasks", "tasks.jsonl", "--check-references", "--format", "tsv"])
        .done();
    assert!(ran.stdout.ends_with("references\tall\t3\t100.00\t100.00\n"), "{}", ran.stdout);
}

#[test]
fn every_metric_cuts_as_its_own_program() {
    let text = "  store_12  =  store(12)  # why\nstore_13 = store(13)\n";
    let place = place_with(&[pred(0, text), pred(1, TEXTS[1]), pred(2, TEXTS[2])]);
    let value = scores(&place, &["--metrics", "all", "--per-task"]);
    let first = &value["tasks"][0];
    // Cut to one line, RepoCoder has the comment left, CrossCodeEval's has only blanks to differ in.
    assert_eq!(first["pred_raw"], text);
    assert_eq!(first["pred"], "store_12  =  store(12)  # why");
    assert_eq!(first["pred_by"]["repoformer"], "  store_12  =  store(12)  # why");
    assert_eq!(first["pred_by"]["chars"], text);
    assert_eq!(first["repocoder"]["em"], 0.0);
    assert_eq!(first["crosscodeeval"]["id_em"], 1.0);
    assert_eq!(first["crosscodeeval"]["em"], 0.0);
    // By words: RepoBench's comment is two words more.
    assert_eq!(first["repobench"]["em"], 0.0);
    assert_eq!(value["postprocess"]["crosscodeeval"], "statement");
    // The second: one character of 18 differs; of 36 characters two are inserted and deleted: 94 %.
    let second = &value["tasks"][1];
    assert_eq!(second["repoformer"]["es_fuzz"], 0.94);
    assert_eq!(second["chars"]["es"], 1.0 - 1.0 / 18.0);
    assert_eq!(value["manifest"]["settings"]["metrics"].as_array().unwrap().len(), 6);
    assert_eq!(value["manifest"]["counts"]["tasks"], 3);

    let cut =
        scores(&place, &["--metrics", "all", "--postprocess", "lines,comments", "--per-task"]);
    let first = &cut["tasks"][0];
    assert_eq!(first["pred"], "  store_12  =  store(12)  ");
    assert!(first.get("pred_by").is_none(), "{first}");
    assert_eq!((&first["repocoder"]["em"], &first["repobench"]["em"]), (&json!(0.0), &json!(1.0)));
    let bare = scores(&place, &["--metrics", "repoformer", "--postprocess", "none", "--per-task"]);
    assert_eq!(bare["tasks"][0]["pred"], text);
    assert_eq!(bare["tasks"][0]["repoformer"]["em"], 0.0);
    place
        .run(&eval(&["--postprocess", "line"]))
        .failed()
        .says(&["unknown post-processing 'line'; known: own, none, chat, fences"]);
}

#[test]
fn crosscodeevals_files() {
    let place = place_with(&[pred(0, "store_12 = store(12)  # x\ny"), pred(1, TEXTS[1])]);
    place
        .run(&eval(&["--metrics", "crosscodeeval", "--results", "out", "--missing", "skip"]))
        .partly();
    let results: Value = serde_json::from_str(&place.read("out/results.json")).unwrap();
    // 94 % of characters by InDel; both have their identifiers right.
    let (total, em, es) = (&results["total"], &results["em"], &results["es"]);
    assert_eq!((total, em, es), (&json!(2), &json!(50.0), &json!(97.0)));
    let details = place.records("out/detailed_results.json");
    assert_eq!((&details[1]["em"], &details[1]["id_em"]), (&json!(0), &json!(1)));
    let cut = place.records("out/prediction_truncated.jsonl");
    assert_eq!(cut[0]["pred_ids"], json!(["store_12", "store"]));
    assert_eq!(place.read("out/exact_match_idx.jsonl"), "alpha/0\n");
    let manifest: Value = serde_json::from_str(&place.read("out/manifest.json")).unwrap();
    assert_eq!(manifest["settings"]["postprocess.crosscodeeval"], "statement");
    let names: Vec<&str> = manifest["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], ["tasks", "predictions", "results.json"]);
}

#[test]
fn pairs_by_every_metric() {
    let place = Place::empty();
    let pairs = [
        json!({"task_id": "a", "target": "return f(x);", "pred": "return f(y); }", "language": "java", "prompt": "class A {"}),
        json!({"task_id": "b", "target": "x", "pred": "x", "language": "cobol"}),
    ];
    place.write("pairs.jsonl", jsonl(&pairs));
    let run = |more: &[&str]| {
        let base = [
            "eval",
            "--pairs",
            "pairs.jsonl",
            "--metrics",
            "all",
            "--per-task",
            "--format",
            "jsonl",
        ];
        let ran = place.run(&[&base[..], more].concat()).partly();
        let record = parse_jsonl(&ran.stdout).remove(0);
        ran.says(&["pairs.jsonl:2: field 'language': unknown language 'cobol'; known: python"]);
        record
    };
    let whole = run(&[]);
    assert!(whole.get("pred").is_none(), "{whole}");
    // f of {f, y}: `return` is a keyword.
    assert_eq!(whole["crosscodeeval"]["id_precision"], 0.5);
    assert_eq!(whole["chars"]["es"], 1.0 - 3.0 / 14.0);
    let cut = run(&["--postprocess", "statement"]);
    assert_eq!(
        (&cut["pred_raw"], &cut["pred"]),
        (&json!("return f(y); }"), &json!("return f(y);"))
    );
    assert_eq!(cut["chars"]["es"], 1.0 - 1.0 / 12.0);
    place
        .run(&["eval", "--pairs", "pairs.jsonl", "--results", "out"])
        .failed()
        .says(&["--results"]);
}

#[test]
fn metrics_are_named() {
    let place = place_with(&all());
    assert_eq!(scores(&place, &["--metrics", "repocoder,repocoder"]), scores(&place, &[]));
    place
        .run(&eval(&["--metrics", "bleu"]))
        .failed()
        .says(&["unknown metric 'bleu'; known: repocoder"]);
    place.run(&["eval", "--predictions", "mine.jsonl"]).failed().says(&["--tasks is not set"]);
    let chosen = scores(&place, &["--repo", "beta"]);
    assert_eq!(chosen["all"]["n"], 1);
}

#[test]
fn rg_rg_searches_with_any_models_predictions() {
    let (ours, theirs) = (Place::new(), Place::new());
    for place in [&ours, &theirs] {
        for stage in ["window", "vectorize"] {
            place.stage(&[stage]).done();
        }
    }
    ours.write("mine.jsonl", jsonl(&all()));
    let preds: Vec<Value> = (0..3).map(|row| pred(row, TEXTS[row])).collect();
    theirs.write("mine.jsonl", jsonl(&preds));
    let rg_rg = ["rg-rg", "--predictions", "mine.jsonl", "-o", "-"];
    let prompts = ours.stage(&rg_rg).done().stdout;
    assert_eq!(theirs.stage(&rg_rg).done().stdout, prompts);
    let first = &parse_jsonl(&prompts)[0];
    // The lines that the prompt shows before the hole, and the prediction in its place.
    let query = "store_10 = store(10)\nstore_11 = store(11)\nstore_12 = store(12)";
    assert_eq!(first["metadata"]["query_window"]["context"], query);
    ours.stage(&rg_rg).done().says(&["(current)"]);
    // Other predictions make other prompts.
    ours.write(
        "mine.jsonl",
        jsonl(&[choices(0, &["x", "y"]), choices(1, &["z"]), choices(2, &["z"])]),
    );
    let ran = ours.stage(&rg_rg).done().says(&["stale (predictions changed), rebuilt"]);
    let samples: Vec<(Value, Value)> = parse_jsonl(&ran.stdout)
        .iter()
        .map(|record| (record["metadata"]["row"].clone(), record["metadata"]["sample"].clone()))
        .collect();
    let wanted = [(0, 0), (0, 1), (1, 0), (2, 0)]
        .map(|(row, sample)| (Value::from(row), Value::from(sample)));
    assert_eq!(samples, wanted, "a prompt a sample");
}

#[test]
fn the_windows_of_predictions_can_be_cut_alone() {
    let place = place_with(&all());
    let window = ["window", "--predictions", "mine.jsonl"];
    place.stage(&window).failed().says(&["mode rg-rg alone", "--mode rg-rg"]);
    let ran = place.stage(&[&window[..], &["--mode", "rg-rg"]].concat());
    ran.done().says(&["window tasks: 14 records in 4 artifacts"]);
    let ran = place.stage(&["rg-rg", "--predictions", "mine.jsonl"]);
    ran.failed().says(&["`repoformer vectorize"]);
}

#[test]
fn rg_rg_tells_which_tasks_it_cannot_serve() {
    let place = place_with(&[pred(0, TEXTS[0]), json!({"task_id": "alpha/1"}), pred(2, "")]);
    for stage in ["window", "vectorize"] {
        place.stage(&[stage]).done();
    }
    let ran = place.stage(&["rg-rg", "--predictions", "mine.jsonl", "-o", "-"]).partly();
    let rows: Vec<Value> =
        parse_jsonl(&ran.stdout).iter().map(|record| record["metadata"]["row"].clone()).collect();
    assert_eq!(rows, [0, 2], "an empty prediction leaves the lines before the hole to search with");
    ran.says(&[
        "mine.jsonl:2: field 'choices' or 'pred' is missing",
        "tasks.jsonl:2: task alpha/1: has no prediction",
    ]);
}

#[test]
fn ones_own_predictions_in_the_cache_are_not_overwritten() {
    let place = Place::new();
    let path = "cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl";
    place.write(path, jsonl(&all()));
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place.stage(&["complete", "--mode", "rg1"]).failed().says(&[
        path,
        "not written by repoformer",
        "hint: move them away",
    ]);
    assert_eq!(place.read(path), jsonl(&all()));
}
