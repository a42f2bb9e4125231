//! Figures of the paper: what `run --paper` makes of several models, of unit tests, and of several rankers and contexts.

use serde_json::{Value, json};

use crate::support::server::{Request, ok, server};
use crate::support::{Place, jsonl, parse_jsonl, sampled};

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
    place.run(&[&RUN[..], &one].concat()).failed().says(&["figure-8 shows one model"]);
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

/// Rankers and right contexts of one run have each their own artifacts and rows.
#[test]
fn several_rankers_and_contexts_run_in_turn() {
    let place = Place::new();
    let both = ["--ranker=jaccard", "--ranker=bm25", "--right-context=no,yes"];
    let rows = self::rows(&place, &both);
    let names: Vec<&str> = rows.iter().map(|row| row["benchmark"].as_str().unwrap()).collect();
    for name in [
        "tasks_jaccard_left",
        "tasks_jaccard_left-right",
        "tasks_bm25_left",
        "tasks_bm25_left-right",
    ] {
        assert_eq!(names.iter().filter(|other| **other == name).count(), 2, "{names:?}");
    }
    // The same as each alone.
    for (ranker, right, name) in
        [("bm25", "no", "tasks_bm25_left"), ("jaccard", "yes", "tasks_jaccard_left-right")]
    {
        let (ranker, right) = (format!("--ranker={ranker}"), format!("--right-context={right}"));
        let alone = self::rows(&place, &["--cache-dir=other", &ranker, &right]);
        let of = |rows: &[Value]| -> Vec<Value> {
            rows.iter()
                .map(|row| json!([row["mode"], row["es"], row["em"], row["prompt_tokens"]]))
                .collect()
        };
        let mut together = rows.clone();
        together.retain(|row| row["benchmark"] == name);
        assert_eq!(of(&together), of(&alone), "{name}");
    }
    let table = [&RUN[..], &["--paper=table-2"], &both].concat();
    place.run(&table).failed().says(&["table-2 has one row for a model and policy"]);
    let single = [
        "eval", "--retrieval", "--repos-dir=repos", "--tasks=tasks.jsonl", "--unit=chunks",
        "--ranker=jaccard", "--ranker=bm25",
    ];
    place.run(&single).failed().says(&["one window size, slice size, ranker and right context"]);
}

/// Bins keep the number that their probabilities fell into, whatever their mean is rounded to.
#[test]
fn each_bin_of_the_calibration_has_its_column() {
    let (place, repos) = sampled(&["line"], usize::MAX);
    let probability = |row: usize| if row.is_multiple_of(2) { 0.05 } else { 0.1 };
    let records = place.records("line.jsonl");
    let records = records.iter().enumerate().map(|(row, task)| {
        json!({"metadata": {"task_id": task["metadata"]["task_id"], "row": row}, "next_token": {"probability": probability(row)}})
    });
    place.write("p.jsonl", jsonl(&records.collect::<Vec<_>>()));
    let run = [
        "run",
        "-q",
        &repos,
        "--tasks=line.jsonl",
        "--mode=none,rg1",
        "--profile=repoformer-paper",
        "--paper=figure-11",
        "--policy=self",
        "--probabilities=p.jsonl",
        "--format=jsonl",
    ];
    let rows = parse_jsonl(&place.run(&run).done().stdout);
    let row = rows.iter().find(|row| row["series"] == "self n").unwrap();
    assert_eq!((&row["values"]["0-10 %"], &row["values"]["10-20 %"]), (&json!(90.0), &json!(90.0)));
}

/// Table 5 prints the threshold of the threshold policy, before %RAG and ES.
#[test]
fn table_5_has_thresholds() {
    let (place, repos) = sampled(&["chunk"], 12);
    let records = place.records("chunk.jsonl");
    let probabilities = records.iter().enumerate().map(|(row, task)| {
        json!({"metadata": {"task_id": task["metadata"]["task_id"], "row": row}, "next_token": {"probability": 0.3}})
    });
    place.write("p.jsonl", jsonl(&probabilities.collect::<Vec<_>>()));
    let table = |model: &str, policy: &str, format: &str| {
        let [model, policy, format] =
            [("paper-model", model), ("policy", policy), ("format", format)]
                .map(|(name, value)| format!("--{name}={value}"));
        let run = [
            "run",
            "-q",
            &repos,
            "--tasks=chunk.jsonl",
            "--mode=none,rg1",
            "--profile=repoformer-paper",
            "--paper=table-5",
            "--probabilities=p.jsonl",
            &model,
            &policy,
            &format,
        ];
        place.run(&run).done().stdout
    };
    let of = |rows: &[Value], policy: &str| -> Value {
        let row = rows.iter().find(|row| row["policy"] == policy && row["task"] == "chunk");
        row.unwrap_or_else(|| panic!("{policy}: {rows:?}")).clone()
    };
    let rows = parse_jsonl(&table("Repoformer-1B", "self", "jsonl"));
    let own = of(&rows, "self-threshold");
    assert_eq!(own["threshold"], json!({"measured": 0.2, "paper": 0.2}));
    assert_eq!(own["retrieved"], json!({"measured": 100.0, "paper": 75.0}));
    assert_eq!(own["metric"], "repoformer");
    assert_eq!(of(&rows, "always")["threshold"], json!({"measured": null, "paper": null}));
    let text = table("Repoformer-1B", "self", "text");
    let head: Vec<&str> = text
        .lines()
        .find(|line| line.starts_with("model"))
        .unwrap()
        .split("  ")
        .filter(|name| !name.is_empty())
        .map(str::trim)
        .collect();
    assert_eq!(
        head[2..],
        ["chunk T", "chunk %RAG", "chunk ES", "function T", "function %RAG", "function ES"]
            .map(|name| format!("CrossCodeLongEval {name}"))
    );
    assert!(text.contains("0.20 (0.20)"), "{text}");
    // A1 decides at 0.99: at another threshold its row has only the paper's numbers.
    let rows = parse_jsonl(&table("A1", "self", "jsonl"));
    assert_eq!(of(&rows, "self-threshold")["es"]["paper"], Value::Null);
    let paper = of(&rows, "self@0.99");
    assert_eq!(
        (&paper["es"], &paper["threshold"]),
        (&json!({"measured": null, "paper": 70.21}), &json!({"measured": null, "paper": 0.99}))
    );
    let rows = parse_jsonl(&table("A1", "self@0.99", "jsonl"));
    let policies: Vec<&Value> =
        rows.iter().filter(|row| row["task"] == "chunk").map(|row| &row["policy"]).collect();
    assert_eq!(policies, ["none", "always", "self@0.99"]);
    assert_eq!(of(&rows, "self@0.99")["retrieved"], json!({"measured": 0.0, "paper": 100.0}));
}

/// Every policy of the paper for the chosen model has a row, and so has every data set of Table 6.
#[test]
fn rows_of_the_paper_that_a_run_lacks_are_shown() {
    let (place, repos) = sampled(&["line"], 5);
    let run = |more: &[&str]| {
        let common = [
            "run",
            "-q",
            &repos,
            "--tasks=line.jsonl",
            "--mode=none,rg1",
            "--profile=repoformer-paper",
            "--format=jsonl",
        ];
        parse_jsonl(&place.run(&[&common[..], more].concat()).done().stdout)
    };
    let rows = run(&["--paper=table-2", "--paper-model=Repoformer-3B", "--policy=oracle"]);
    let of_line: Vec<&Value> = rows.iter().filter(|row| row["task"] == "line").collect();
    let greedy = of_line.iter().find(|row| row["policy"] == "self-greedy").unwrap();
    assert_eq!(greedy["em"], json!({"measured": null, "paper": 56.3}));
    let rows = run(&["--paper=table-6"]);
    let found: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", row["dataset"], row["task"]).replace('"', ""))
        .collect();
    assert_eq!(
        found,
        [
            "RepoEval line",
            "RepoEval api",
            "RepoEval function",
            "CrossCodeLongEval chunk",
            "CrossCodeLongEval function"
        ]
    );
    assert_eq!(rows[0]["instances"], json!({"measured": 5.0, "paper": 1600.0}));
    assert_eq!(rows[4]["y_tokens"], json!({"measured": null, "paper": 111.2}));
    let table = [
        "run",
        "-q",
        &repos,
        "--tasks=line.jsonl",
        "--profile=repoformer-paper",
        "--paper=table-6",
    ];
    let text = place.run(&table).done().stdout;
    assert!(text.contains("- (1.47)"), "the paper's digits: {text}");
}

/// Table 8 is Table 3 with dense retrieval.
#[test]
fn a_table_of_dense_retrieval_takes_no_other() {
    let (place, repos) = sampled(&["line"], 5);
    let table = |number: usize, more: &[&str]| {
        let paper = format!("--paper=table-{number}");
        let common = [
            "run",
            &repos,
            "--tasks=line.jsonl",
            "--mode=none,rg1",
            "--profile=repoformer-paper",
            &paper,
        ];
        place.run(&[&common[..], more].concat())
    };
    for ranker in [&[][..], &["--ranker=bm25"], &["--ranker=rrf:dense,jaccard"]] {
        table(8, ranker).failed().says(&[
            "Table 8 is of dense retrieval, and the ranker is",
            "add --ranker dense with --embedding-model NAME --endpoint URL, or with --vectors FILE; table-3 is the same table of ranker jaccard",
        ]);
    }
    table(8, &["--ranker=dense"]).failed().says(&["vectors"]);
    // The output names a ranker that differs from the paper's.
    let shown = table(3, &["--ranker=bm25", "--policy=oracle"]).done().stdout;
    assert!(shown.contains("\nnot as in the paper: ranker = bm25 instead of jaccard\n"), "{shown}");
    let shown =
        table(7, &["--paper-dataset=CrossCodeEval", "--metrics=repoformer", "--policy=oracle"])
            .done()
            .stdout;
    assert!(
        shown.contains("\nnot as in the paper: metrics = repoformer instead of crosscodeeval\n"),
        "{shown}"
    );
    let shown =
        table(7, &["--paper-dataset=CrossCodeEval", "--metrics=crosscodeeval", "--policy=oracle"])
            .done()
            .stdout;
    assert!(!shown.contains("not as in"), "{shown}");
    // Figure 8 has three curves in the paper.
    let figure = [
        "run",
        &repos,
        "--tasks=line.jsonl",
        "--mode=none,rg1",
        "--profile=repoformer-paper",
        "--paper=figure-8",
        "--policy=trial-retrieval@0.3",
        "--top-k=5",
    ];
    let shown = place.run(&figure).done().stdout;
    assert!(shown.contains("The paper's curve of UniXcoder is missing"), "{shown}");
    assert!(shown.contains("not as in the paper: top-k = 5 instead of 10"), "{shown}");
}
