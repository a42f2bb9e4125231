//! Answers of chat models: one rule for scores, queries and labels.

use serde_json::{Value, json};

use crate::support::server::{ok, server};
use crate::support::{Place, TARGETS, jsonl, judge, parse_jsonl};

const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/chat/answers.jsonl");

/// A chat model's answer around a line of code.
fn answer(code: &str) -> String {
    format!(
        "<think>\nIt may be\n```python\nx = 1\n```\n</think>\nSure! Here is the line:\n```python\n{code}\n```\n"
    )
}

/// Predictions of the targets, as answers of an API.
fn predictions(place: &Place, file: &str, api: Option<&str>, text: impl Fn(&str) -> String) {
    let record = |(id, target): &(&str, &str)| {
        let mut record = json!({"task_id": id, "choices": [{"text": text(target)}]});
        if let Some(api) = api {
            record["asked"] =
                json!({"model": "m", "api": api, "max_tokens": 48, "temperature": 0.0});
        }
        record
    };
    place.write(file, jsonl(&TARGETS.iter().map(record).collect::<Vec<_>>()));
}

#[test]
fn shapes_of_answers_have_the_code_of_the_table() {
    let place = Place::empty();
    let table = parse_jsonl(&std::fs::read_to_string(ANSWERS).unwrap());
    for steps in ["chat", "chat,own"] {
        let eval = ["eval", "--pairs", ANSWERS, "--postprocess", steps, "--metrics", "chars"];
        let ran = place.run(&[&eval[..], &["--per-task", "--format", "jsonl"]].concat()).done();
        let scores = parse_jsonl(&ran.stdout);
        assert_eq!(scores.len(), table.len());
        for (score, row) in scores.iter().zip(&table) {
            assert_eq!(score["pred"], row["target"], "{}: {}", row["task_id"], row["reason"]);
        }
    }
    assert!(table.iter().all(|row| row["reason"].as_str().is_some_and(|why| !why.is_empty())));
}

/// Exact matches of a file of predictions.
fn matches(place: &Place, file: &str, more: &[&str]) -> f64 {
    let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", file, "--format", "json"];
    let ran = place.run(&[&eval[..], more].concat()).done();
    let scores: Value = serde_json::from_str(&ran.stdout).unwrap();
    scores["all"]["repocoder"]["em"].as_f64().unwrap_or_else(|| panic!("{scores}"))
}

#[test]
fn answers_of_the_chat_api_are_cut_unless_another_cut_is_chosen() {
    let place = Place::new();
    predictions(&place, "chat.jsonl", Some("chat"), answer);
    predictions(&place, "unknown.jsonl", None, answer);
    assert_eq!(matches(&place, "chat.jsonl", &[]), 1.0);
    assert_eq!(matches(&place, "chat.jsonl", &["--postprocess", "own"]), 0.0);
    assert_eq!(matches(&place, "unknown.jsonl", &[]), 0.0);
    assert_eq!(matches(&place, "unknown.jsonl", &["--postprocess", "chat,own"]), 1.0);
    // Both sides of a comparison are cut alike.
    predictions(&place, "plain.jsonl", Some("completions"), str::to_owned);
    let compare =
        ["compare", "plain.jsonl", "chat.jsonl", "--tasks", "tasks.jsonl", "--within", "0"];
    place.run(&compare).done();
    let report =
        ["report", "--tasks", "tasks.jsonl", "--predictions", "chat.jsonl", "-o", "report"];
    place.run(&report).done();
    let page = place.read("report/index.html");
    assert!(page.contains("chat,stripped-lines"), "the report names the cut");
}

#[test]
fn queries_of_predictions_hold_the_code_alone() {
    let place = Place::new();
    place.stage(&["window"]).done();
    place.stage(&["vectorize"]).done();
    predictions(&place, "plain.jsonl", None, str::to_owned);
    predictions(&place, "chat.jsonl", Some("chat"), answer);
    predictions(&place, "unknown.jsonl", None, answer);
    let queries = |file: &str, more: &[&str]| {
        let rg_rg = ["rg-rg", "--predictions", file, "-o", "prompts.jsonl"];
        place.stage(&[&rg_rg[..], more].concat()).done();
        place.read("prompts.jsonl")
    };
    let plain = queries("plain.jsonl", &[]);
    assert!(plain.contains("query_window") && !plain.contains("Sure!"), "{plain}");
    assert_eq!(queries("chat.jsonl", &[]), plain);
    assert_eq!(queries("unknown.jsonl", &["--postprocess", "chat"]), plain);
    // Queries with other texts replace them.
    let raw = queries("chat.jsonl", &["--postprocess", "own"]);
    assert!(raw.contains("Sure!"), "{raw}");
    assert_eq!(queries("unknown.jsonl", &[]), raw);
    assert_eq!(queries("chat.jsonl", &[]), plain);
}

#[test]
fn a_run_with_the_chat_api_searches_with_and_scores_the_code() {
    let place = Place::new();
    let (url, _) = server(|request| {
        let prompt = request.body["messages"][1]["content"].as_str().unwrap();
        let last = prompt.trim_end().lines().last().unwrap();
        let (name, number) = last.split(" = ").next().unwrap().split_once('_').unwrap();
        let next = number.parse::<u32>().unwrap() + 1;
        let code = format!("{name}_{next} = {name}({next})");
        let message = json!({"role": "assistant", "content": answer(&code)});
        ok(&json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    });
    let model = ["--endpoint", &url, "--model", "tiny"];
    let run =
        [&["run", "--mode", "rg1,rg-rg", "--api", "chat", "--format", "json"][..], &model].concat();
    let ran = place.stage(&run).done();
    assert!(ran.stdout.contains("chat,stripped-lines"), "{}", ran.stdout);
    let rows: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = rows["rows"].as_array().or_else(|| rows.as_array()).unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["em"] == json!(1.0)), "{rows:?}");
    let prompts = place.read(&place.named("cache/prompts/tasks", "rg-rg"));
    assert!(!prompts.contains("Sure!"), "{prompts}");
    // The cache records the API of its predictions.
    let eval = ["eval", "--mode", "rg-rg", "--model", "tiny", "--format", "json"];
    let scores = place.stage(&eval).done().stdout;
    let scores: Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(scores["all"]["repocoder"]["em"], json!(1.0), "{scores}");
    place.stage(&run).done().says(&["current"]);
}

#[test]
fn labels_of_chat_answers_are_those_of_their_code() {
    let place = Place::new();
    let wrong = |_: &str| "x = 1".to_owned();
    let in_mode = |file: &str, mode: &str| {
        let mut records = place.records(file);
        records.iter_mut().for_each(|record| record["metadata"] = json!({"mode": mode}));
        for record in &mut records {
            record["metadata"]["task_id"] = record["task_id"].clone();
        }
        place.write(file, jsonl(&records));
    };
    let labels = |api: Option<&str>, text: &dyn Fn(&str) -> String| {
        predictions(&place, "base.jsonl", api, |code| text(&wrong(code)));
        predictions(&place, "rag.jsonl", api, text);
        in_mode("base.jsonl", "none");
        in_mode("rag.jsonl", "rg1");
        let ran = place.run(&judge("tasks.jsonl", "base.jsonl", "rag.jsonl")).done();
        let labels = parse_jsonl(&ran.stdout);
        let pick = |record: &Value| json!([record["label"], record["es_infile"], record["es_rg1"]]);
        labels.iter().map(pick).collect::<Vec<_>>()
    };
    let plain = labels(None, &str::to_owned);
    assert_eq!(plain[0][2], json!(1.0));
    assert_eq!(labels(Some("chat"), &answer), plain);
}
