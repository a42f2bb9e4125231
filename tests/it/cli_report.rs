//! Reports from the cache and from files of predictions: what lies where, and what cannot be shown.

use crate::support::{Place, STAGES, TARGETS, jsonl};
use serde_json::{Value, json};

fn pred(row: usize, text: &str) -> Value {
    json!({"task_id": TARGETS[row].0, "pred": text})
}

/// A place with predictions of two systems; the second has one right and lacks one.
fn with_predictions() -> Place {
    let place = Place::new();
    let base = [pred(0, "store"), pred(1, "view_20 = view(2)"), pred(2, "x")];
    place.write("base.jsonl", jsonl(&base));
    place.write("better.jsonl", jsonl(&[pred(0, TARGETS[0].1), pred(1, "view_20 = view(2)")]));
    place
}

fn report<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["report", "--tasks", "tasks.jsonl"], more].concat()
}

#[test]
fn a_page_and_figures_from_files() {
    let place = with_predictions();
    let given = [
        "--predictions",
        "base.jsonl",
        "--predictions",
        "new=better.jsonl",
        "--title",
        "A <b>title</b>",
    ];
    place.run(&report(&given)).partly().says(&["report: report/index.html"]);
    let page = place.read("report/index.html");
    assert!(page.contains("A &lt;b&gt;title&lt;/b&gt;"), "the title is text");
    assert!(page.contains("new: 1 of 3 tasks have no prediction"), "what is missing is said");
    assert!(!page.contains("http://") || page.contains("http://www.w3.org/2000/svg"));
    for figure in ["means.svg", "gain-new.svg", "outcomes.svg", "es-by-length.svg"] {
        let text = place.read(&format!("report/figures/{figure}"));
        assert!(text.starts_with("<svg") || text.starts_with("<?xml"), "{figure}");
    }
    let manifest: Value =
        serde_json::from_str(&place.read("report/figures/manifest.json")).unwrap();
    assert_eq!(
        (&manifest["counts"]["tasks"], &manifest["counts"]["systems"]),
        (&json!(3), &json!(2))
    );
    // The same bytes again, at any number of threads, under another name.
    let again = [&given[..], &["-o", "again.html", "--threads", "1"]].concat();
    place.run(&report(&again)).partly();
    assert_eq!(place.read("again.html"), page);
    assert_eq!(place.read("again.figures/means.svg"), place.read("report/figures/means.svg"));
}

#[test]
fn modes_of_the_cache_show_what_was_retrieved() {
    let place = Place::new();
    for stage in STAGES {
        place.stage(stage).done();
    }
    place.stage(&["report", "-o", "out"]).done();
    let page = place.read("out/index.html");
    for mode in ["none", "rg1", "gt", "rg-rg"] {
        assert!(page.contains(mode), "{mode}");
    }
    assert!(!place.read("out/figures/es-by-identifiers.svg").is_empty());
    // `run` leaves the same page beside its table.
    let ran = place.stage(&["run", "--report=runs", "--format", "json"]).done();
    assert_eq!(place.read("runs/tasks/index.html"), page);
    let rows: Value = serde_json::from_str(&ran.stdout).unwrap();
    let interval = rows[0]["es_interval"].as_array().unwrap();
    let es = rows[0]["es"].as_f64().unwrap();
    assert!(interval[0].as_f64().unwrap() <= es && es <= interval[1].as_f64().unwrap(), "{rows}");
}

#[test]
fn what_cannot_be_shown() {
    let place = with_predictions();
    place
        .run(&report(&[]))
        .failed()
        .says(&["the cache holds no predictions to report on", "--predictions NAME=FILE"]);
    place
        .run(&report(&["--predictions", "base.jsonl", "--predictions", "base=better.jsonl"]))
        .failed()
        .says(&["two predictions have the name 'base'"]);
    place
        .run(&report(&["--predictions", "base.jsonl", "--baseline", "none"]))
        .failed()
        .says(&["unknown --baseline 'none'; known: base"]);
    place.run(&["report", "--predictions", "base.jsonl"]).failed().says(&["--tasks is not set"]);
    place.run(&report(&["--predictions", "no.jsonl"])).failed().says(&["no.jsonl"]);
}

#[test]
fn predictions_are_compared_as_they_are() {
    let place = with_predictions();
    let ran = place
        .run(&[
            "compare",
            "base.jsonl",
            "better.jsonl",
            "--tasks",
            "tasks.jsonl",
            "--format",
            "json",
        ])
        .partly();
    let compared: Value = serde_json::from_str(&ran.stdout).unwrap();
    // "store" is 5 of 20 characters; the second is the same in both, the third in one alone.
    let es = compared["measures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["measure"] == "repocoder.es")
        .unwrap();
    assert_eq!(
        (&es["n"], &es["better"], &es["same"], &es["worse"]),
        (&json!(2), &json!(1), &json!(1), &json!(0)),
        "{es}"
    );
    ran.says(&["left out: 1 task (beta/0) in base.jsonl only"]);
    place
        .run(&["compare", "none", "rg1", "--tasks", "tasks.jsonl"])
        .failed()
        .says(&["complete --mode none"]);
}

/// Files of executions beside predictions: statuses, the pass rate as a column, and what is none of it.
#[test]
fn unit_tests_are_shown() {
    let place = with_predictions();
    let of = |row: usize, rate: f64, status: &str| json!({"task_id": TARGETS[row].0, "row": row, "repository": "alpha", "exec": {"pass_1": rate}, "statuses": [status]});
    let out = json!({"task_id": TARGETS[2].0, "row": 2, "repository": "beta",
        "excluded": {"status": "fail", "reason": "its truth does not pass"}});
    place.write("base-exec.jsonl", jsonl(&[of(0, 0.0, "fail"), of(1, 1.0, "pass"), out.clone()]));
    let tasks = json!([of(0, 1.0, "pass"), of(1, 1.0, "pass"), out]);
    place.write("new-exec.json", json!({"predictions": "better", "tasks": tasks}).to_string());
    let with = |exec: &'static str| {
        report(&[
            "--predictions",
            "base=base.jsonl",
            "--predictions",
            "new=better.jsonl",
            "--exec",
            exec,
        ])
        .into_iter()
        .collect::<Vec<_>>()
    };
    let mut both = with("base=base-exec.jsonl");
    both.extend(["--exec", "new=new-exec.json"]);
    place.run(&both).partly();
    let page = place.read("report/index.html");
    // By hand: 0 and 1 of two tasks, and both.
    assert!(page.contains("pass@1") && page.contains("<span class=\"value\">50.00</span>"));
    assert!(place.read("report/figures/means.svg").contains("unit-test pass rate"));
    place
        .run(&with("other=base-exec.jsonl"))
        .failed()
        .says(&["unknown system 'other'; known: base, new"]);
    place
        .run(&with("base=tasks.jsonl"))
        .failed()
        .says(&["tasks.jsonl:1:", "eval --exec --per-task"]);
    // Figures of fewer systems leave none of the others behind.
    place.run(&report(&["--predictions", "base=base.jsonl"])).done();
    assert!(!place.path("report/figures/gain-new.svg").exists());
}
