//! Figures of the paper: what `run --paper` makes of several models and of unit tests. Its tables, and runs of several rankers, are
//! tested in `repoformer-study`.

use serde_json::{Value, json};

use crate::support::server::{Request, ok, server};
use crate::support::{Place, jsonl, parse_jsonl};

/// A server whose model `good` completes better where fragments are shown, and whose other models never do.
fn models() -> String {
    let answer = |request: &Request| {
        let shown = request.prompt().contains("# the below code fragment");
        let is_good = request.body["model"] == "good" && shown;
        let text = if is_good { "    return self.items" } else { "zzz" };
        ok(&json!({"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]}))
    };
    server(answer).0
}

const RUN: [&str; 10] = [
    "run",
    "--repos-dir=repos",
    "--tasks=tasks.jsonl",
    "-q",
    "--mode=none,rg1",
    "--unit=chunks",
    "--prompt-style=starcoder",
    "--chunk-size=4",
    "--chunk-stride=2",
    "--max-tokens=9",
];

fn rows(place: &Place, more: &[&str]) -> Vec<Value> {
    let run = [&RUN[..], &["--format=jsonl"], more].concat();
    let mut rows = parse_jsonl(&place.run(&run).done().stdout);
    // The paper's numbers come behind the run's.
    rows.retain(|row| row.get("paper").is_none());
    rows
}

#[test]
fn another_model_is_drawn_on_the_same_instances() {
    let place = Place::new();
    let url = models();
    let (endpoint, figure) = (format!("--endpoint={url}"), "--paper=figure-6");
    let beside = [&endpoint, "--model=good", figure, "--policy=random@-1", "--beside=weak"];
    place.run(&[&RUN[..], &beside].concat()).failed().says(&[
        "no predictions of weak (none)",
        "run these tasks first with --model weak, in this cache; --beside weak@STYLE names its prompt style",
    ]);
    place.run(&[&RUN[..], &[&endpoint, "--model=weak"]].concat()).done();
    let found = rows(&place, &beside);
    let of = |series: &str, value: &str| {
        let row = found.iter().find(|row| row["series"] == series);
        row.unwrap_or_else(|| panic!("{series}: {found:?}"))["values"][value].clone()
    };
    let count = place.records("tasks.jsonl").len() as f64;
    assert_eq!(
        (of("good (random@-1)", "n"), of("weak (random@-1)", "n")),
        (json!(count), json!(count))
    );
    assert_eq!(of("weak (random@-1)", "same %"), json!(100.0));
    assert!(of("good (random@-1)", "better %").as_f64() > Some(0.0), "{found:?}");
    let svg = place.read("data/cache/report/figure-6/figure-6-repoeval-line.svg");
    assert!(svg.contains("good") && svg.contains("weak"), "{svg}");
    // Other limits, or other tasks, cannot stand beside these.
    let short = [&RUN[..], &[&endpoint, "--model=short"]].concat();
    let short: Vec<&str> = short.into_iter().filter(|flag| *flag != "--max-tokens=9").collect();
    place.run(&[&short[..], &["--max-tokens=3"]].concat()).done();
    let of_short = [&endpoint, "--model=good", figure, "--policy=random@-1", "--beside=short"];
    let refused = place.run(&[&RUN[..], &of_short].concat()).failed();
    refused.says(&["none-starcoder-short.jsonl: stale: max-tokens was 3, is 9"]);
    let few =
        [&RUN[..], &[&endpoint, "--model=few", "--top-k=1", "--prompt-style=codellama"]].concat();
    let few: Vec<&str> = few.into_iter().filter(|one| *one != "--prompt-style=starcoder").collect();
    place.run(&few).done();
    let of_few =
        [&endpoint, "--model=good", figure, "--policy=random@-1", "--beside=few@codellama"];
    let refused = place.run(&[&RUN[..], &of_few].concat()).failed();
    refused.says(&["codellama-chunk-4-stride-2.jsonl: stale: top-k was 1, is 20"]);
    // A policy that retrieves for nothing shows no instance of either.
    let none = [&endpoint, "--model=good", figure, "--policy=random@2", "--beside=weak"];
    assert!(rows(&place, &none).iter().all(|row| row["values"]["n"] == 0.0));
    let one = [
        &endpoint,
        "--model=good",
        "--paper=figure-8",
        "--policy=trial-retrieval@0",
        "--beside=weak",
    ];
    place.run(&[&RUN[..], &one].concat()).failed().says(&["figure-8 shows only one model"]);
}

#[test]
fn unit_tests_have_rows_of_their_own() {
    let place = Place::new();
    let tasks = place.records("tasks.jsonl");
    let result = |row: usize, passes: bool| {
        let status = if passes { "pass" } else { "fail" };
        json!({"task_id": tasks[row]["metadata"]["task_id"], "row": row, "exec": {"pass_1": f64::from(passes)}, "statuses": [status]})
    };
    place.write("base.jsonl", jsonl(&[result(0, false), result(1, true)]));
    place.write("rag.jsonl", jsonl(&[result(0, true), result(1, true)]));
    let found = rows(
        &place,
        &[
            "--paper=figure-5", "--policy=random@2", "--exec=none=base.jsonl",
            "--exec=rg1=rag.jsonl",
        ],
    );
    let values = |tasks: &str| {
        let row = found.iter().find(|row| row["tasks"] == tasks);
        row.unwrap_or_else(|| panic!("{tasks}: {found:?}"))["values"].clone()
    };
    assert_eq!(values("RepoEval line")["n"], tasks.len() as f64);
    let tested = values("RepoEval line UT");
    let parts = [
        "n",
        "abstentions",
        "already right",
        "retrieval does not help",
        "retrieval would help",
        "precision %",
    ];
    assert_eq!(parts.map(|part| tested[part].as_f64().unwrap()), [2.0, 2.0, 50.0, 0.0, 50.0, 50.0]);
}
