//! `policy`, and the rows of `run` that retrieve by one.

use crate::support::frame::{assert_hold, frame};
use crate::support::server::{refusal, server};
use crate::support::{Place, jsonl, parse_jsonl};
use serde_json::{Value, json};

/// A judged instance: where `helps`, a fragment goes on where the file stops; else the file has it all.
fn label(repository: usize, number: usize) -> Value {
    let helps = number.is_multiple_of(3);
    let block = format!("    total = scale_{number}(total)\n    emit(total, {number})\n");
    let seen = if helps { format!("    first = start({})\n", number * 7) } else { block.clone() };
    let left = format!("def run_{number}(value):\n    total = 0\n{seen}{block}");
    let (text, score) = if helps {
        (format!("    emit(total, {number})\n    finish(total)\n    return total\n"), 0.4)
    } else {
        ("class Other:\n    pass\n".into(), 0.1)
    };
    let (infile, rg1) = if helps { (0.25, 1.0) } else { (0.75, 0.5) };
    let file = format!("repo{repository}/pkg/m{number}.py");
    json!({
        "metadata": {"task_id": format!("{file}/4_5"), "filename": file, "start_i": 4, "end_i": 5},
        "prompt": left, "groundtruth": "    finish(total)", "right_context": "\n    return total\n",
        "crossfile_context": {"text": format!("# {text}"), "list": [
            {"retrieved_chunk": text, "filename": "pkg/other.py", "score": score},
        ]},
        "es_infile": infile, "es_rg1": rg1, "em_infile": 0, "em_rg1": u8::from(helps),
        "min_logprob": if helps { -3.0 } else { -0.1 },
        "generation_model": "m", "label": helps, "threshold": 0.0,
    })
}

pub(crate) fn labels(repositories: std::ops::Range<usize>) -> Vec<Value> {
    repositories.flat_map(|r| (0..30).map(move |n| label(r, n))).collect()
}

fn place() -> Place {
    let place = Place::empty();
    place.write("labels.jsonl", jsonl(&labels(0..3)));
    place
}

/// The points of a sweep by policy.
fn points(place: &Place, more: &[&str]) -> Vec<Value> {
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "--format", "jsonl", "-q"];
    parse_jsonl(&place.run(&[&sweep[..], more].concat()).done().stdout)
}

fn of<'a>(points: &'a [Value], policy: &str) -> Vec<&'a Value> {
    points.iter().filter(|point| point["policy"] == policy).collect()
}

#[test]
fn a_sweep_tells_what_each_policy_comes_to() {
    let place = place();
    let all = points(&place, &["--generation-ms", "400", "--retrieval-ms", "100"]);
    let never = of(&all, "never");
    assert_eq!(never.len(), 1);
    let wanted = json!({"rag_rate": 0.0, "em": 0.0, "latency_ms": 400.0, "threshold": null});
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(never[0][name], *value, "{name}");
    }
    let close = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-9;
    assert!(close(&never[0]["es"], (0.25 + 2.0 * 0.75) / 3.0));
    assert!(close(&never[0]["speedup"], 0.2));
    // Tables have the same × 100.
    let tabs = [
        "policy", "sweep", "--labels", "labels.jsonl", "--policy", "never", "--format", "tsv",
        "--generation-ms", "400", "--retrieval-ms", "100",
    ];
    let tabs = place.run(&tabs).done().stdout;
    let wanted = "\nnever\t-\t-\t0.0000\t0.0000\t58.3333\t400.000\t20.0000\t";
    assert!(tabs.contains(wanted), "{tabs}");
    assert!(close(&of(&all, "always")[0]["es"], (1.0 + 2.0 * 0.5) / 3.0));
    // What tells the instances apart is known before and after retrieval: every policy but chance finds the oracle's point.
    let best = |policy: &str| {
        let es = of(&all, policy).into_iter().map(|point| point["es"].as_f64().unwrap());
        es.fold(0.0, f64::max)
    };
    for policy in ["oracle", "learned", "learned-scored", "trial-retrieval", "trial-generation"] {
        assert!(
            (best(policy) - (1.0 + 2.0 * 0.75) / 3.0).abs() < 1e-9,
            "{policy}: {}",
            best(policy)
        );
    }
    for point in of(&all, "learned") {
        let threshold = point["threshold"].as_f64();
        assert!(threshold.is_none_or(|t| (0.0..=1.0).contains(&t)), "{point}");
        assert!(point["auc"].as_f64().unwrap() > 0.99);
    }
    assert!(of(&all, "self").is_empty() && of(&all, "entropy").is_empty());
    // One thread or two, the same bytes; a list in JSON.
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "--format", "json"];
    let once = place.run(&sweep).done();
    once.says(&[
        "left out: policy self: no instance has its signal: cc_probability",
        "left out: policy entropy",
        "latencies are not known",
    ]);
    let list: Vec<Value> = serde_json::from_str(&place.run(&sweep).done().stdout).unwrap();
    assert!(list.len() > 20 && list[0].get("abstention_precision").is_some());
    let at: Vec<Value> =
        points(&place, &["--policy", "trial-retrieval", "--threshold", "0.3,0.05,0.5"]);
    let rates: Vec<f64> = at.iter().map(|point| point["rag_rate"].as_f64().unwrap()).collect();
    assert!(
        (rates[1] - 1.0 / 3.0).abs() < 1e-12 && rates[0] == 0.0 && rates[2] == 1.0,
        "{rates:?}"
    );
}

#[test]
fn data_frames_hold_points_features_and_what_a_policy_weighs() {
    let place = place();
    // A row for each retriever, whose times JSON has below its name.
    let times = ["--generation-ms", "400", "--retrieval-ms", "b,m=100", "--retrieval-ms", "d=300"];
    let mut wanted = Vec::new();
    for mut record in points(&place, &times) {
        let retrievers = record.as_object_mut().unwrap().remove("retrievers").unwrap();
        for name in ["b,m", "d"] {
            record["retriever"] = name.into();
            record["latency_ms"] = retrievers[name]["latency_ms"].clone();
            record["speedup"] = retrievers[name]["speedup"].clone();
            wanted.push(record.clone());
        }
    }
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "-q"];
    let (names, rows) = frame(&place, &[&sweep[..], &times].concat());
    assert_hold(&rows, &wanted);
    let (without, rows) = frame(&place, &sweep);
    assert_eq!(without, names);
    assert_hold(&rows, &points(&place, &[]));

    place.run(&["policy", "train", "--labels", "labels.jsonl", "-o", "policy.json"]).done();
    let explain = ["policy", "explain", "policy.json", "--top", "5"];
    let json = place.run(&[&explain[..], &["--format", "json"]].concat()).done().stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_hold(&frame(&place, &explain).1, json["features"].as_array().unwrap());

    let features = ["policy", "features", "--labels", "labels.jsonl"];
    let records = parse_jsonl(&place.run(&features).done().stdout);
    assert_hold(&frame(&place, &features).1, &records);
}

#[test]
fn retrievers_have_times_of_their_own_and_measured_ones_count() {
    let place = place();
    let times: Vec<Value> = (labels(0..3).iter())
        .map(|label| json!({"task_id": label["metadata"]["task_id"], "retrieval_ms": 50, "generation_ms": 100}))
        .collect();
    place.write("times.jsonl", jsonl(&times));
    let other = json!({"task_id": "other", "generation_ms": 9});
    place.write("other.jsonl", jsonl(&[other]));
    let more = [
        "--policy", "never", "--latency", "index=times.jsonl", "--retrieval-ms", "dense=300",
        "--generation-ms", "100",
    ];
    let never = points(&place, &more);
    let retrievers = &never[0]["retrievers"];
    assert_eq!(never[0]["latency_ms"], 100.0);
    assert!((retrievers["index"]["speedup"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(retrievers["dense"]["speedup"], 0.75);
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl"];
    for (flags, said) in [
        (&["--retrieval-ms", "3"][..], "add --generation-ms MS"),
        (&["--generation-ms", "3"], "add --retrieval-ms MS"),
        (&["--retrieval-ms", "x", "--generation-ms", "1"], "expected a number of milliseconds"),
        (
            &["--retrieval-ms", "1", "--retrieval-ms", "2", "--generation-ms", "1"],
            "two retrievers have the name",
        ),
        (&["--latency", "none.jsonl"], "none.jsonl"),
        (
            &["--latency", "times.jsonl", "--base-latency", "other.jsonl"],
            "no time of measured without retrieval belongs to these instances",
        ),
        (&["--base-latency", "times.jsonl"], "add --latency FILE"),
        (&["--policy", "sometimes"], "trial-retrieval"),
        (&["--policy", "self"], "--probability-of"),
    ] {
        place.run(&[&sweep[..], flags].concat()).failed().says(&[said]);
    }
}

#[test]
fn a_trained_policy_is_a_file() {
    let place = place();
    let train = ["policy", "train", "--labels", "labels.jsonl", "-o", "learned.json"];
    place
        .run(&train)
        .done()
        .says(&["learned: 90 instances of 3 repositories, 33.33 % positive, by model m"]);
    let text = place.read("learned.json");
    place.run(&train).done();
    assert_eq!(place.read("learned.json"), text, "the same labels, the same bytes");
    let explained = place.run(&["policy", "explain", "learned.json", "--top", "5"]).done().stdout;
    assert!(
        explained.contains("repo0, repo1, repo2") && explained.contains("spread"),
        "{explained}"
    );
    let explained =
        place.run(&["policy", "explain", "learned.json", "--format", "json"]).done().stdout;
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(explained["features"].as_array().unwrap().len(), 20);
    place
        .run(
            &[
                &train[..5],
                &["scored.json", "--policy", "learned-scored", "--calibration", "isotonic"],
            ]
            .concat(),
        )
        .done();
    // On repositories that it has not seen.
    place.write("more.jsonl", jsonl(&labels(5..7)));
    let sweep = [
        "policy", "sweep", "--labels", "more.jsonl", "--policy", "learned,learned-scored",
        "--format", "jsonl",
    ];
    let models = ["--model", "learned.json", "--model", "scored.json"];
    let ran = place.run(&[&sweep[..], &models].concat()).done();
    assert!(parse_jsonl(&ran.stdout).iter().all(|point| point["auc"].as_f64().unwrap() > 0.99));
    let seen = [
        "policy", "sweep", "--labels", "labels.jsonl", "--policy", "learned", "--model",
        "learned.json",
    ];
    place.run(&seen).done().says(&["trained on 3 of these repositories (repo0, repo1, repo2)"]);
    let others = [&sweep[..], &["--train-labels", "labels.jsonl"]].concat();
    assert!(parse_jsonl(&place.run(&others).done().stdout)[0]["auc"].as_f64().unwrap() > 0.99);
    place.write("learned.json", text.replace("\"version\": 1", "\"version\": 7"));
    place
        .run(&["policy", "explain", "learned.json"])
        .failed()
        .says(&["learned.json", "format version 7", "policy train"]);
    place.write("learned.json", text.replace("\"indent\"", "\"moon\""));
    place
        .run(&[&sweep[..], &models].concat())
        .failed()
        .says(&["this policy is damaged", "'record_checksum'", "policy train"]);
    let end = text.find(",\n  \"record_checksum\"").unwrap();
    let edited = text[..end].replace("\"indent\"", "\"moon\"") + "\n}\n";
    place.write("learned.json", edited);
    place
        .run(&[&sweep[..], &models].concat())
        .failed()
        .says(&["'moon'", "'indent'", "policy train"]);
    place.write("learned.json", "[]");
    place.run(&["policy", "explain", "learned.json"]).failed().says(&["not a trained policy"]);
}

#[test]
fn labels_that_do_not_serve_are_counted_or_refused() {
    let place = Place::empty();
    let mut odd = labels(0..2);
    odd[0].as_object_mut().unwrap().remove("es_infile");
    odd[3].as_object_mut().unwrap().remove("label");
    odd[1]["es_rg1"] = json!("high");
    place.write("odd.jsonl", jsonl(&odd) + "not json\n");
    let train = |file: &str| place.run(&["policy", "train", "--labels", file, "-o", "p.json"]);
    train("odd.jsonl").partly().says(&[
        "odd.jsonl:2: field 'es_rg1' must be a number",
        "odd.jsonl:61",
        "1 instance is left out: not labelled (no es_infile)",
        "58 instances",
    ]);
    let mut two = labels(0..2);
    two[59]["generation_model"] = json!("other");
    place.write("two.jsonl", jsonl(&two));
    train("two.jsonl").failed().says(&[
        "two.jsonl: line 60",
        "this label is of model other",
        "labels of a single model",
    ]);
    place.write("one.jsonl", jsonl(&labels(0..1)));
    train("one.jsonl").done().says(&["all instances belong to one repository (repo0)"]);
    place
        .run(&["policy", "sweep", "--labels", "one.jsonl", "--policy", "learned"])
        .failed()
        .says(&["belong to one repository", "--model FILE"]);
    let mut alike = labels(0..2);
    alike.iter_mut().for_each(|label| label["label"] = json!(false));
    place.write("alike.jsonl", jsonl(&alike));
    train("alike.jsonl").failed().says(&["all are equal"]);
    place.write("none.jsonl", "");
    train("none.jsonl").failed().says(&["label judge"]);
    let mut silent = labels(0..2);
    silent[3].as_object_mut().unwrap().remove("min_logprob");
    place.write("silent.jsonl", jsonl(&silent));
    place
        .run(&["policy", "sweep", "--labels", "silent.jsonl", "--policy", "trial-generation"])
        .partly()
        .says(&[
            "1 instance is left out of every curve: policy trial-generation lacks min_logprob",
        ]);
    let mut knowing = labels(0..2);
    knowing[7]["metadata"]["query_has_target"] = json!(true);
    place.write("knowing.jsonl", jsonl(&knowing));
    // Contexts alone do not give the target away.
    let trained = train("knowing.jsonl").done().says(&["60 instances of 2"]);
    assert!(!trained.stderr.contains("whose query"), "{}", trained.stderr);
    let scored = [
        "policy", "train", "--labels", "knowing.jsonl", "--policy", "learned-scored", "-o",
        "p.json",
    ];
    place
        .run(&scored)
        .done()
        .says(&["1 instances whose", "are left out", "--target-queries", "59 instances of 2"]);
    let kept = [&scored[..], &["--target-queries"]].concat();
    place.run(&kept).done().says(&["are kept, although", "60 instances of 2"]);
    place
        .run(&["policy", "sweep", "--labels", "knowing.jsonl"])
        .done()
        .says(&["1 instances whose", "are left out"]);
    knowing.iter_mut().for_each(|label| label["metadata"]["query_has_target"] = json!(true));
    place.write("knowing.jsonl", jsonl(&knowing));
    place
        .run(&scored)
        .failed()
        .says(&["the query of every labelled instance contained the target", "--target-queries"]);
    let mut mixed = labels(0..2);
    mixed[1]["metric"] = json!("repoformer");
    place.write("mixed.jsonl", jsonl(&mixed));
    train("mixed.jsonl").failed().says(&[
        "mixed.jsonl: line 2: this label uses metric repoformer",
        "(not named)",
        "judge all labels by one",
    ]);
    let same = ["policy", "features", "--labels", "one.jsonl", "-o", "one.jsonl"];
    place.run(&same).failed().says(&["would overwrite"]);
}

/// Instances that a model's own probability tells apart, and nothing else.
fn asked_labels() -> Vec<Value> {
    let alike = labels(0..3).into_iter().filter(|label| label["label"] == false);
    let mut all: Vec<Value> = alike.collect();
    for (at, label) in all.iter_mut().enumerate() {
        let helps = at.is_multiple_of(2);
        label["label"] = helps.into();
        label["es_rg1"] = if helps { 1.0 } else { 0.5 }.into();
        label["cc_probability"] = if helps { 0.45 } else { 0.05 }.into();
    }
    all
}

/// Trains a policy that follows a model's own probability.
pub(crate) fn train_self_scored(place: &Place, file: &str) {
    place.write("asked.jsonl", jsonl(&asked_labels()));
    let train = ["policy", "train", "--labels", "asked.jsonl", "--policy", "self-scored", "-o"];
    place.run(&[&train[..], &[file]].concat()).done();
}

#[test]
fn a_policy_that_asks_a_model_needs_a_server() {
    let place = Place::new();
    train_self_scored(&place, "joined.json");
    let run = [
        "run", "--mode", "none,rg1", "--policy", "self-scored@0.5", "--policy-model", "joined.json",
    ];
    place.stage(&run).partly().says(&["self-scored@0.5: left out: it needs a model on a server"]);
}

/// `run` on tasks that carry their context: as a list its scores serve, as one text they are missing.
#[test]
fn run_tells_of_missing_scores() {
    let place = Place::empty();
    let task = |number: usize, context: Value| {
        json!({
            "prompt": format!("def f{number}():\n"), "groundtruth": "    return start()\n", "right_context": "\n",
            "crossfile_context": context,
            "metadata": {"task_id": format!("r/{number}"), "repository": "r", "file": "m.py", "context_start_lineno": 0, "groundtruth_start_lineno": 1, "right_context_start_lineno": 2},
        })
    };
    let fragment =
        json!({"retrieved_chunk": "def start():\n    return 1", "filename": "s.py", "score": 0.5});
    let text =
        "# Here are some relevant code fragments from other files of the repo:\n\n# def start():\n";
    let lists: Vec<Value> =
        (0..4).map(|n| task(n, json!({"text": text, "list": [fragment]}))).collect();
    let texts: Vec<Value> = (0..4).map(|n| task(n, json!(text))).collect();
    place.write("lists.jsonl", jsonl(&lists));
    place.write("texts.jsonl", jsonl(&texts));
    let run = |file: &str| {
        place.run(&[
            "run", "--tasks", file, "--mode", "none,given", "--unit", "chunks", "--policy",
            "trial-retrieval@0.3", "--cache-dir", "cache", "--format", "jsonl", "--resamples",
            "100",
        ])
    };
    let rows = parse_jsonl(&run("lists.jsonl").done().stdout);
    assert_eq!((rows.len(), &rows[2]["with_retrieved"]), (3, &json!(1.0)));
    let texts = run("texts.jsonl").partly().says(&[
        "trial-retrieval@0.3: left out: 4 of 4 tasks lack the score of their best fragment",
        "plain-text cross-file context",
    ]);
    assert_eq!(parse_jsonl(&texts.stdout).len(), 2);
}

/// Metrics are one in tables and policies, and named in each.
#[test]
fn run_scores_by_one_metric() {
    let place = Place::empty();
    let run = |more: &[&str]| {
        let run = [
            "run", "--cache-dir", "cache", "--mode", "none,rg1", "--policy", "oracle", "--format",
            "jsonl", "--resamples", "100",
        ];
        parse_jsonl(&place.run(&[&run[..], more].concat()).done().stdout)
    };
    let rows = run(&[]);
    let of = |rows: &[Value], benchmark: &str, mode: &str| -> Value {
        let row = rows.iter().find(|row| row["benchmark"] == benchmark && row["mode"] == mode);
        row.unwrap().clone()
    };
    assert_eq!(of(&rows, "line", "rg1")["metric"], "repocoder");
    let body = of(&rows, "function", "rg1");
    assert_eq!(body["metric"], "repoformer (function-body)");
    let eval = |more: &[&str]| -> Value {
        let predictions = place.named("cache/predictions/function", "rg1-");
        let eval = [
            "eval",
            "--tasks",
            "cache/demo/data/tasks/function.jsonl",
            "--predictions",
            &predictions,
            "--format",
            "json",
        ];
        serde_json::from_str(&place.run(&[&eval[..], more].concat()).done().stdout).unwrap()
    };
    let scores = eval(&["--metrics", "repoformer"]);
    assert_eq!(scores["all"]["repoformer"]["es"], body["es"]);
    assert!(eval(&[])["all"]["repocoder"]["es"] != body["es"], "lines and bodies differ");
    let oracle = of(&rows, "function", "oracle")["es"].as_f64().unwrap();
    assert!(oracle >= body["es"].as_f64().unwrap());
    // Two metrics: a row of each, and the first decides.
    let two = run(&["--metrics", "repocoder,repoformer", "--postprocess", "lines"]);
    let two: Vec<&Value> = two
        .iter()
        .filter(|row| row["benchmark"] == "function" && row["mode"] == "oracle")
        .collect();
    assert_eq!(
        (&two[0]["metric"], &two[1]["metric"]),
        (&json!("repocoder (lines)"), &json!("repoformer"))
    );
    place.run(&["run", "--metrics", "bleu"]).failed().says(&["unknown metrics 'bleu'"]);
}

/// The base is one greedy completion; samples, whose entropy is a signal, are a file of their own.
#[test]
fn samples_do_not_take_the_place_of_the_base() {
    let place = Place::new();
    place.all_stages(&[]);
    let file = |mode: &str| place.named("cache/predictions/tasks", mode);
    let (base, rag) = (file("none"), file("rg1"));
    let judge = crate::support::judge("tasks.jsonl", &base, &rag);
    place.run(&[&judge[..], &["-o", "greedy.jsonl"]].concat()).done();
    let mut samples = place.records(&base);
    for record in &mut samples {
        let text = record["choices"][0]["text"].clone();
        record["choices"] = json!([{"text": text, "index": 0}, {"text": "other", "index": 1}]);
        record["entropy"] = json!(1.5);
    }
    place.write("samples.jsonl", jsonl(&samples));
    let of_samples = crate::support::judge("tasks.jsonl", "samples.jsonl", &rag);
    place.run(&[&of_samples[..], &["--model", "in-context"]].concat()).failed().says(&[
        "samples.jsonl",
        "has 2 samples, but a label compares two single completions",
        "--samples-from FILE",
    ]);
    let from = ["--samples-from", "samples.jsonl", "--model", "in-context", "-o", "drawn.jsonl"];
    place.run(&[&judge[..], &from].concat()).done();
    let (greedy, drawn) = (place.records("greedy.jsonl"), place.records("drawn.jsonl"));
    for (greedy, drawn) in greedy.iter().zip(&drawn) {
        assert_eq!((&drawn["entropy"], &greedy["entropy"]), (&json!(1.5), &Value::Null));
        assert_eq!(
            (&drawn["es_infile"], &drawn["label"]),
            (&greedy["es_infile"], &greedy["label"])
        );
    }
    place.write("plain.jsonl", jsonl(&place.records(&base)));
    let plain = ["--samples-from", "plain.jsonl", "--model", "in-context"];
    place
        .run(&[&judge[..], &plain].concat())
        .failed()
        .says(&["plain.jsonl:1: 'entropy' is missing"]);
    let run = ["run", "--mode", "none,rg1", "--policy", "entropy@1"];
    place.stage(&run).partly().says(&["3 of 3 tasks lack entropy", "--samples-from FILE"]);
    let with = [&run[..], &["--samples-from", "samples.jsonl", "--format", "jsonl"]].concat();
    let rows = parse_jsonl(&place.stage(&with).done().stdout);
    assert_eq!(rows[2]["with_retrieved"], 1.0);
}

/// Unit tests decide where they are asked for, of these predictions and no others.
#[test]
fn labels_go_by_unit_tests() {
    let place = Place::new();
    place.all_stages(&[]);
    let file = |mode: &str| place.named("cache/predictions/tasks", mode);
    let (base, rag) = (file("none"), file("rg1"));
    let judge = [
        &crate::support::judge("tasks.jsonl", &base, &rag)[..],
        &["--metric", "pass", "-o", "labels.jsonl"],
    ]
    .concat();
    place.run(&judge).failed().says(&["--base-exec FILE --rag-exec FILE"]);
    let tasks = place.records("tasks.jsonl");
    let result = |row: usize, passes: bool| {
        let status = if passes { "pass" } else { "fail" };
        json!({"task_id": tasks[row]["metadata"]["task_id"], "row": row, "exec": {"pass_1": f64::from(passes)}, "statuses": [status]})
    };
    let excluded = json!({"task_id": tasks[2]["metadata"]["task_id"], "row": 2, "excluded": {"status": null, "reason": "x"}});
    place.write("base.jsonl", jsonl(&[result(0, false), result(1, true), excluded.clone()]));
    place.write("rag.jsonl", jsonl(&[result(0, true), result(1, true), excluded]));
    let exec = ["--base-exec", "base.jsonl", "--rag-exec", "rag.jsonl"];
    let judged = [&judge[..], &exec].concat();
    place
        .run(&judged)
        .partly()
        .says(&["1 instance is left out: no conclusive unit tests", "2 instances by pass"]);
    let labels = place.records("labels.jsonl");
    assert_eq!(
        (&labels[0]["metric"], &labels[0]["label"], &labels[1]["label"]),
        (&json!("pass"), &json!(true), &json!(false))
    );
    assert_eq!((&labels[0]["pass_infile"], &labels[0]["pass_rg1"]), (&json!(0.0), &json!(1.0)));
    let points = points(&place, &["--policy", "never,always,oracle"]);
    assert_eq!(
        (&of(&points, "never")[0]["pass"], &of(&points, "always")[0]["pass"]),
        (&json!(0.5), &json!(1.0))
    );
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "--policy", "never,always"];
    let text = place.run(&sweep).done().stdout;
    assert!(text.contains("UT x 100: never 50.00, always 100.00"), "{text}");
    let by_es = [&sweep[..], &["--metric", "es"]].concat();
    assert!(place.run(&by_es).done().stdout.contains("ES x 100"));
    // A manifest tells whose results these are.
    place.write(
        "base.jsonl.manifest.json",
        r#"{"inputs": [{"name": "predictions.none", "blake3": "00"}]}"#,
    );
    place
        .run(&judged)
        .failed()
        .says(&["base.jsonl: contains test results of predictions other than", "eval --exec"]);
    place.shell("rm base.jsonl.manifest.json").done();
    let named = [&judge[..], &["--base-exec", "x=base.jsonl", "--rag-exec", "rag.jsonl"]].concat();
    let mut records = place.records("base.jsonl");
    records.iter_mut().for_each(|record| record["predictions"] = json!("none"));
    place.write("base.jsonl", jsonl(&records));
    place.run(&named).failed().says(&["no test results of predictions 'x'", "NAME=FILE"]);
}

/// Several sets of labels in one figure: rankers, or models.
#[test]
fn sets_of_labels_are_swept_apart() {
    let place = place();
    place.write("other.jsonl", jsonl(&labels(3..5)));
    let sets = [
        "policy", "sweep", "--labels", "a=labels.jsonl", "--labels", "b=other.jsonl", "--policy",
        "trial-retrieval",
    ];
    let points =
        parse_jsonl(&place.run(&[&sets[..], &["--format", "jsonl"]].concat()).done().stdout);
    let n = |name: &str| points.iter().find(|point| point["labels"] == name).unwrap()["n"].clone();
    assert_eq!((n("a"), n("b")), (json!(90), json!(60)));
    let text = place.run(&[&sets[..], &["--report", "page"]].concat()).done().stdout;
    assert!(text.contains("a: 90 instances") && text.contains("b: 60 instances"), "{text}");
    assert!(place.read("page/budget-es.svg").contains("a trial-retrieval"));
    // Where the policy retrieves, all instances gain: 0.75 each.
    let alone = [
        "policy", "sweep", "--labels", "labels.jsonl", "--policy", "trial-retrieval",
        "--threshold", "0.3",
    ];
    place.run(&[&alone[..], &["--report", "alone"]].concat()).done();
    assert!(place.read("alone/gains.svg").contains("trial-retrieval"));
    let one = parse_jsonl(&place.run(&[&alone[..], &["--format", "jsonl"]].concat()).done().stdout);
    let of = |name: &str| one[0][name].as_f64().unwrap();
    assert_eq!(
        (of("abstention_precision"), of("abstained_right"), of("abstained_harmed")),
        (1.0, 0.0, 0.0)
    );
    let mut by_tests = labels(3..5);
    by_tests.iter_mut().for_each(|label| label["metric"] = json!("repoformer"));
    place.write("other.jsonl", jsonl(&by_tests));
    place
        .run(&sets)
        .failed()
        .says(&["by metric repoformer, but earlier labels are by (not named)"]);
}

#[test]
fn a_page_shows_the_curves() {
    let place = place();
    let sweep = [
        "policy", "sweep", "--labels", "labels.jsonl", "--report", "page", "--generation-ms", "9",
        "--retrieval-ms", "1",
    ];
    let text = place.run(&sweep).done().says(&["page/index.html"]).stdout;
    assert!(text.contains("learned-scored") && text.contains("SU retrieval"), "{text}");
    let page = place.read("page/index.html");
    assert!(page.contains("When to retrieve") && page.matches("<figure").count() == 9);
    for name in ["budget-es", "budget-em", "abstention", "calibration", "latency-1"] {
        assert!(place.read(&format!("page/{name}.svg")).contains("<svg"), "{name}");
    }
}

#[test]
fn run_adds_a_row_a_policy() {
    let place = Place::empty();
    // Settings that name no data: the demonstration's.
    let run = [
        "run", "--profile", "repoformer-paper", "--cache-dir", "cache", "--mode", "none,rg1",
        "--format", "jsonl", "--resamples", "100",
    ];
    let ran = place.run(&run).done();
    let rows = parse_jsonl(&ran.stdout);
    let line: Vec<&Value> = rows.iter().filter(|row| row["benchmark"] == "line").collect();
    let named = |name: &str| *line.iter().find(|row| row["mode"] == name).unwrap();
    for row in &line {
        assert_eq!(row["n"], 180, "{row}");
    }
    assert_eq!(named("random@0.5")["prompt_tokens"], Value::Null);
    let es = |name: &str| named(name)["es"].as_f64().unwrap();
    assert!(es("oracle") > es("rg1") && es("oracle") > es("none"));
    let rate = |name: &str| named(name)["with_retrieved"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&rate("random@0.5")));
    for name in ["learned@0.2", "learned-scored@0.2", "trial-retrieval@0.3"] {
        assert!(rate(name) > 0.0 && rate(name) < 1.0, "{name}: {}", rate(name));
    }
    let with = |policy: &'static str| [&run[..], &["--policy", policy]].concat();
    let of_two = parse_jsonl(&place.run(&with("always,never")).done().stdout);
    let of = |name: &str, field: &str| {
        let row = of_two.iter().find(|row| row["benchmark"] == "api" && row["mode"] == name);
        row.unwrap()[field].clone()
    };
    for (policy, mode) in [("always", "rg1"), ("never", "none")] {
        assert_eq!(of(policy, "es_interval"), of(mode, "es_interval"), "{policy}");
        let latency = |name: &str| of(name, "latency_ms").as_f64().unwrap();
        let apart = (latency(policy) - latency(mode)).abs();
        assert!(latency(mode) > 0.0 && apart < 1e-9, "{policy}: {apart}");
    }
    let chosen = place.files("cache/predictions/line");
    // What earlier policies chose is kept: the predictions are the same.
    assert!(chosen.keys().any(|name| name.starts_with("learned@")), "{:?}", chosen.keys());
    // Shares are of the tasks at hand; a threshold that nothing reaches, or everything, is told.
    let ran = place.run(&with("learned@30%,learned@0.99,random@-1,random@0%")).done().says(&[
        "line learned@30%: retrieves for 54 of 180 tasks, those with a score above 0.",
        "line learned@0.99: no task has a score above 0.99 (the highest is 0.",
        "so its row equals none; learned@30% retrieves for the 30 % of tasks with the highest scores",
        "line random@-1: every task has a score above -1 (the lowest is 0.",
        "so its row equals rg1",
        "line random@0%: retrieves for 0 of 180 tasks, those with a score above ",
        "learned@30%: the threshold comes from the scores of these tasks (not from their results)",
        "policy sweep (`policy sweep --labels FILE --policy NAME --threshold T`) of learned at 30%",
    ]);
    let shares = parse_jsonl(&ran.stdout);
    let row = |name: &str| {
        shares.iter().find(|row| row["benchmark"] == "line" && row["mode"] == name).unwrap()
    };
    assert_eq!(row("learned@30%")["with_retrieved"], 0.3);
    for (policy, mode) in [("learned@0.99", "none"), ("random@-1", "rg1"), ("random@0%", "none")] {
        assert_eq!(row(policy)["es"], row(mode)["es"], "{policy}");
    }
    // Scores of other fragments have another scale.
    let bundled = |unit: &'static str| {
        let more = ["--policy-model", "bundled", "--unit", unit];
        place.run(&[&with("learned-scored@0.2")[..], &more].concat()).done()
    };
    let said = "trained on scores of chunks ranked by jaccard, but these scores are of windows \
                ranked by jaccard";
    bundled("windows").says(&[said]);
    bundled("chunks").silent_on("trained on scores");
    place.run(&with("always,always")).failed().says(&["'always' is given twice"]);
    place
        .run(&[&with("always")[..], &["--probabilities", "none.jsonl"]].concat())
        .failed()
        .says(&["file of probabilities (--probabilities) is used only by policy self"]);
    // What was measured is kept with what is current.
    assert_eq!(parse_jsonl(&place.run(&run).done().stdout), rows);
    // What a policy chose is a file of predictions like any other.
    let chosen = place.named("cache/predictions/line", "learned@0.2-");
    let scored = [
        "eval",
        "--tasks",
        "cache/demo/data/tasks/line.jsonl",
        "--predictions",
        &chosen,
        "--format",
        "json",
    ];
    let scores: Value = serde_json::from_str(&place.run(&scored).done().stdout).unwrap();
    assert_eq!(scores["all"]["repocoder"]["es"], named("learned@0.2")["es"]);
    place
        .run(&with("trial-retrieval"))
        .failed()
        .says(&["trial-retrieval@0.3", "trial-retrieval@30%"]);
    place
        .run(&with("learned@130%"))
        .failed()
        .says(&["policy 'learned@130%' needs a threshold: a number or a percentage"]);
    place
        .run(&with("perhaps"))
        .failed()
        .says(&["unknown policy 'perhaps' (from command line); known: never"]);
}

#[test]
fn any_tasks_are_judged() {
    let place = Place::new();
    place.all_stages(&[]);
    let file = |mode: &str| place.named("cache/predictions/tasks", mode);
    let (base, rag) = (file("none"), file("rg1"));
    let judge =
        [&crate::support::judge("tasks.jsonl", &base, &rag)[..], &["-o", "labels.jsonl"]].concat();
    place.run(&judge).done();
    let labels = place.records("labels.jsonl");
    assert_eq!(labels.len(), 3);
    assert!(labels[0]["min_logprob"].as_f64().unwrap() <= 0.0 && labels[0]["em_rg1"].is_number());
    assert_eq!(
        labels[0]["metadata"]["filename"].as_str().unwrap().split('/').next(),
        Some("alpha")
    );
    assert_eq!(labels[0]["crossfile_context"]["list"], json!([]));
    let prompts = place.named("cache/prompts/tasks", "rg1");
    place.run(&[&judge[..], &["--prompts", &prompts]].concat()).done();
    let fragments = place.records("labels.jsonl")[0]["crossfile_context"]["list"].clone();
    let scores = fragments.as_array().unwrap().iter().map(|f| f["score"].as_f64().unwrap());
    assert!(
        scores.is_sorted_by(|a, b| a >= b) && fragments[0]["filename"].is_string(),
        "{fragments}"
    );
    // A prompt that is missing is not one without fragments.
    place.write("some.jsonl", crate::support::jsonl(&place.records(&prompts)[..2]));
    let ran = place.run(&[&judge[..], &["--prompts", "some.jsonl"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("some.jsonl has no prompt for row 2"), "{}", ran.stderr);
    assert_eq!(place.records("labels.jsonl").len(), 2);
    place.write("none.jsonl", "");
    let ran = place.run(&[&judge[..], &["--prompts", "none.jsonl"]].concat());
    assert!(ran.stderr.contains("no instance could be judged"), "{}", ran.stderr);
    place.run(&["validate", "labels.jsonl"]);
    let features = place.run(&["policy", "features", "--labels", "labels.jsonl"]).done().stdout;
    assert!(parse_jsonl(&features)[0]["local"]["repeat_tokens"].is_number());
    // What is known of the query that an instance was drawn with does not hold for another one.
    let mut drawn = place.records("tasks.jsonl");
    drawn.iter_mut().for_each(|task| task["metadata"]["query_has_target"] = true.into());
    place.write("drawn.jsonl", crate::support::jsonl(&drawn));
    let judge =
        [&crate::support::judge("drawn.jsonl", &base, &rag)[..], &["-o", "labels.jsonl"]].concat();
    let knows = || place.records("labels.jsonl")[0]["metadata"].get("query_has_target").cloned();
    place.run(&judge).done();
    assert_eq!(knows(), Some(json!(true)));
    place.run(&[&judge[..], &["--prompts", &prompts]].concat()).done();
    assert_eq!(knows(), None);
}

/// A completion without a token is as doubtful as can be, where the others' doubts are known.
#[test]
fn empty_completions_have_a_score() {
    let place = Place::new();
    place.all_stages(&[]);
    let file = |mode: &str| place.named("cache/predictions/tasks", mode);
    let mut base = place.records(&file("none"));
    base[0]["choices"] = json!([{"text": "", "index": 0, "finish_reason": "stop"}]);
    place.write("base.jsonl", crate::support::jsonl(&base));
    let rag = file("rg1");
    let judge = [
        &crate::support::judge("tasks.jsonl", "base.jsonl", &rag)[..],
        &["--model", "in-context", "-o", "labels.jsonl"],
    ]
    .concat();
    place.run(&judge).done();
    let labels = place.records("labels.jsonl");
    let least = labels[0]["min_logprob"].as_f64().unwrap();
    assert!(least < -700.0, "{least}");
    assert!(labels[1]["min_logprob"].as_f64().unwrap() > -100.0);
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "--policy"];
    let ran = place.run(&[&sweep[..], &["trial-generation"]].concat()).done();
    assert!(ran.stdout.starts_with("3 instances"), "{}", ran.stdout);
}

#[test]
fn a_policy_without_predictions_has_no_score() {
    let place = Place::new();
    let (url, _) = server(|_| refusal("400 Bad Request", "no"));
    let run = ["run", "--mode", "none,rg1", "--policy", "always,random", "--format", "csv"];
    let ran = place.stage(&[&run[..], &["--endpoint", &url, "--model", "m"]].concat()).partly();
    assert!(!ran.stdout.contains("always"), "{}", ran.stdout);
    ran.says(&["tasks always, random: left out: no task has predictions of both none and rg1"]);
}
