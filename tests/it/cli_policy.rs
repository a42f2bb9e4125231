//! `policy`, and the rows of `run` that retrieve by one.

use crate::support::{Place, jsonl, parse_jsonl};
use serde_json::{Value, json};

/// A judged instance: where `helps`, a fragment goes on where the file stops; else the file has it all.
fn label(repository: usize, number: usize) -> Value {
    let helps = number.is_multiple_of(3);
    let block = format!("    total = scale_{number}(total)\n    emit(total, {number})\n");
    let seen = if helps { format!("    first = start({})\n", number * 7) } else { block.clone() };
    let left = format!("def run_{number}(value):\n    total = 0\n{seen}{block}");
    let (text, score) = match helps {
        true => (format!("    emit(total, {number})\n    finish(total)\n    return total\n"), 0.4),
        false => ("class Other:\n    pass\n".into(), 0.1),
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

fn labels(repositories: std::ops::Range<usize>) -> Vec<Value> {
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
        "no latencies",
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
            "the times of measured without retrieval belong to none of these instances",
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
        .says(&["learned.json", "of version 7", "policy train"]);
    place.write("learned.json", text.replace("\"indent\"", "\"moon\""));
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
        "1 instances are left out: not labelled (no es_infile)",
        "58 instances",
    ]);
    let mut two = labels(0..2);
    two[59]["generation_model"] = json!("other");
    place.write("two.jsonl", jsonl(&two));
    train("two.jsonl")
        .failed()
        .says(&["two.jsonl: line 60", "judged by model other", "give the labels of one"]);
    place.write("one.jsonl", jsonl(&labels(0..1)));
    train("one.jsonl").done().says(&["all instances are of one repository (repo0)"]);
    place
        .run(&["policy", "sweep", "--labels", "one.jsonl", "--policy", "learned"])
        .failed()
        .says(&["of one repository", "--model FILE"]);
    let mut alike = labels(0..2);
    alike.iter_mut().for_each(|label| label["label"] = json!(false));
    place.write("alike.jsonl", jsonl(&alike));
    train("alike.jsonl").failed().says(&["all equal"]);
    place.write("none.jsonl", "");
    train("none.jsonl").failed().says(&["label judge"]);
    let mut silent = labels(0..2);
    silent[3].as_object_mut().unwrap().remove("min_logprob");
    place.write("silent.jsonl", jsonl(&silent));
    place
        .run(&["policy", "sweep", "--labels", "silent.jsonl", "--policy", "trial-generation"])
        .partly()
        .says(&[
            "1 instances are left out of every curve: policy trial-generation lacks min_logprob",
        ]);
    let mut knowing = labels(0..2);
    knowing[7]["metadata"]["query_has_target"] = json!(true);
    place.write("knowing.jsonl", jsonl(&knowing));
    train("knowing.jsonl").done().says(&["1 instances whose", "60 instances of 2"]);
    let without =
        ["policy", "train", "--labels", "knowing.jsonl", "--no-target-queries", "-o", "p.json"];
    place.run(&without).done().says(&["are left out", "59 instances of 2"]);
    let same = ["policy", "features", "--labels", "one.jsonl", "-o", "one.jsonl"];
    place.run(&same).failed().says(&["would overwrite"]);
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
    assert!(page.contains("When to retrieve") && page.matches("<figure").count() == 5);
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
    assert!(chosen.keys().all(|name| !name.starts_with("learned@")), "{:?}", chosen.keys());
    place.run(&with("always,always")).failed().says(&["'always' is given twice"]);
    place
        .run(&[&with("always")[..], &["--probabilities", "none.jsonl"]].concat())
        .failed()
        .says(&["--probabilities is for policy self"]);
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
    place.run(&with("trial-retrieval")).failed().says(&["trial-retrieval@0.3"]);
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
    place.run(&["validate", "labels.jsonl"]);
    let features = place.run(&["policy", "features", "--labels", "labels.jsonl"]).done().stdout;
    assert!(parse_jsonl(&features)[0]["local"]["repeat_tokens"].is_number());
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
