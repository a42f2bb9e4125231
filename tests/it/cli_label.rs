//! `label`: instances drawn from repositories, completed by the embedded model, and labelled.

use crate::support::{Place, parse_jsonl};
use serde_json::{Value, json};

/// The sample repositories.
fn sample_place() -> Place {
    let place = Place::empty();
    place.add_samples();
    place
}

const SAMPLE: [&str; 5] = ["label", "sample", "--repos-dir", "repos", "--no-filter"];

#[test]
fn instances_depend_on_seed_and_names_alone() {
    let place = sample_place();
    let drawn = |more: &[&str]| place.run(&[&SAMPLE[..], more].concat()).done().stdout;
    let all = drawn(&[]);
    let records = parse_jsonl(&all);
    assert!(records.len() > 80, "{}", records.len());
    assert_eq!(all, drawn(&["--threads", "1"]));
    assert_ne!(all, drawn(&["--seed", "1"]));
    // The parts are the whole, in whatever order.
    let mut parts: Vec<String> = (1..=7)
        .flat_map(|index| {
            // Some of seven parts of three repositories have none.
            let shard = format!("{index}/7");
            let ran = place.run(&[&SAMPLE[..], &["--shard", &shard]].concat()).done();
            ran.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let mut whole: Vec<String> = all.lines().map(str::to_owned).collect();
    parts.sort();
    whole.sort();
    assert!(parts == whole);
    // The same from records.
    let raw = ["convert", "--repos-dir", "repos", "--to", "raw", "-o", "raw.jsonl.gz"];
    place.run(&raw).done();
    let from_raw = ["label", "sample", "--raw", "raw.jsonl.gz", "--no-filter"];
    assert!(place.run(&from_raw).done().stdout == all);
    let function = parse_jsonl(&drawn(&["--kind", "function"]));
    assert_eq!(function[0]["metadata"]["kind"], "function");
    let tasks = parse_jsonl(&drawn(&["--as-benchmark"]));
    assert_eq!(tasks.len(), records.len());
    assert_eq!(tasks[0]["crossfile_context"]["text"], "");
    place.run(&[&SAMPLE[..], &["--as-benchmark", "-o", "bench.jsonl"]].concat()).done();
    place.run(&["validate", "bench.jsonl", "--repos-dir", "repos"]).done();
    let prompt =
        ["prompt", "--mode", "none", "--unit", "chunks", "--tasks", "bench.jsonl", "-o", "p.jsonl"];
    place.run(&prompt).done();
    assert_eq!(place.records("p.jsonl").len(), tasks.len());
    let one = [&from_raw[..], &["--repo", "quillpad"]].concat();
    let of_one = parse_jsonl(&place.run(&one).done().stdout);
    assert!(of_one.iter().all(|record| {
        record["metadata"]["filename"].as_str().unwrap().starts_with("quillpad/")
    }));
    let release = ["--profile", "repoformer-release"];
    assert!(parse_jsonl(&drawn(&release)).len() < records.len() * 6 / 10);
}

#[test]
fn repositories_that_do_not_serve_are_counted_by_reason() {
    let place = Place::new();
    let ran = place.run(&["label", "sample", "--repos-dir", "repos"]).failed();
    ran.says(&[
        "2 repositories left out: too few files",
        "no instance could be drawn",
        "--no-filter",
    ]);
    for (flags, said) in [
        (["--shard", "3/2"], "2/8"),
        (["--shard", "x"], "2/8"),
        (["--ratio", "0"], "--ratio"),
        (["--kind", "line"], "chunk, function"),
        // What has no say is not passed over in silence.
        (["--top-k", "3"], "--top-k is not used by label sample, which draws from --repos-dir"),
        (["--tasks", "t.jsonl"], "--tasks is not used"),
    ] {
        place.run(&[&SAMPLE[..], &flags].concat()).failed().says(&[said]);
    }
    place.write("raw.jsonl", "{\"repo_name\": \"a/b\"}\n");
    place
        .run(&["label", "sample", "--raw", "raw.jsonl", "--repos-dir", "repos"])
        .failed()
        .says(&["--repos-dir is not used by label sample, which draws from --raw"]);
    place.run(&["label", "sample", "--raw", "raw.jsonl"]).failed().says(&["raw.jsonl:1", "files"]);
}

#[test]
fn labels_by_the_embedded_model() {
    let place = sample_place();
    place.run(&[&SAMPLE[..], &["-o", "instances.jsonl"]].concat()).done();
    let data = ["--tasks", "instances.jsonl", "--unit", "chunks", "--mode", "none,given"];
    for stage in ["prompt", "complete"] {
        place.run(&[&[stage, "--cache-dir", "cache"][..], &data].concat()).done();
    }
    let file = |mode: &str| place.named("cache/predictions/instances", mode);
    let (base, rag) = (file("none"), file("given"));
    let judge = crate::support::judge("instances.jsonl", &base, &rag);
    let ran = place.run(&[&judge[..], &["-o", "labels.jsonl"]].concat()).done();
    let labels = place.records("labels.jsonl");
    assert_eq!(labels.len(), place.records("instances.jsonl").len());
    let mut positive = 0;
    for label in &labels {
        let [without, with] = ["es_infile", "es_rg1"].map(|name| label[name].as_f64().unwrap());
        assert_eq!(label["label"], json!(with > without));
        assert_eq!(label["generation_model"], "in-context");
        positive += usize::from(with > without);
    }
    assert!((1..labels.len()).contains(&positive));
    let share = format!("{:.2} % positive", 100.0 * positive as f64 / labels.len() as f64);
    ran.says(&[&share, "gain × 100", "lines  instances"]);
    let valid = place.run(&["validate", "labels.jsonl"]).done();
    assert!(valid.stdout.contains("labels"), "{}", valid.stdout);
    // A higher threshold, fewer positives.
    let strict = place.run(&[&judge[..], &["--threshold", "0.2"]].concat()).done();
    let helped = |record: &Value| record["label"] == true;
    assert!(parse_jsonl(&strict.stdout).iter().filter(|record| helped(record)).count() < positive);

    // What lacks a half is counted, and the rest is judged.
    let lines = place.read(&base);
    let some: String = lines.lines().skip(3).map(|line| format!("{line}\n")).collect();
    place.write("some.jsonl", some);
    let partly = crate::support::judge("instances.jsonl", "some.jsonl", &rag);
    place.run(&partly).failed().says(&["does not name the model of its predictions", "--model"]);
    let named = [&partly[..], &["--model", "in-context"]].concat();
    let ran = place
        .run(&named)
        .partly()
        .says(&["3 instances are left out: no completion without retrieval"]);
    assert_eq!(parse_jsonl(&ran.stdout).len(), labels.len() - 3);
    let twice = crate::support::judge("labels.jsonl", &rag, &rag);
    place.run(&twice).failed().says(&["--base"]);
    // Completions of two models cannot be compared.
    let of = |model: &str| {
        let lines = lines.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["asked"] = json!({"model": model});
            format!("{record}\n")
        });
        lines.collect::<String>()
    };
    place.write("a.jsonl", of("a"));
    place.write("b.jsonl", of("b"));
    let mixed = crate::support::judge("instances.jsonl", "a.jsonl", "b.jsonl");
    place.run(&mixed).failed().says(&["are of model b, and others of a"]);
}
