//! Two sets of scores beside each other: what the program prints of their differences, and what it refuses.

use crate::support::{Place, jsonl, parse_jsonl};
use serde_json::{Value, json};

/// Edit similarities of the baseline and of the system, two repositories of four tasks. The gains of alpha are 0.5, 0.25, 0
/// and 0.25, of beta −0.25, 0, 0 and 0.25: means 0.25 and 0, together 0.125.
const VALUES: [(f64, f64); 8] = [
    (0.25, 0.75),
    (0.25, 0.5),
    (1.0, 1.0),
    (0.5, 0.75),
    (0.5, 0.25),
    (0.5, 0.5),
    (0.0, 0.0),
    (0.75, 1.0),
];

fn record(row: usize, es: f64) -> Value {
    let repository = if row < 4 { "alpha" } else { "beta" };
    let em = if es == 1.0 { 1 } else { 0 };
    json!({"task_id": format!("{repository}/{row}"), "row": row, "repository": repository,
        "repocoder": {"em": em, "es": es}})
}

fn baseline() -> Vec<Value> {
    (0..8).map(|row| record(row, VALUES[row].0)).collect()
}

fn system() -> Vec<Value> {
    (0..8).map(|row| record(row, VALUES[row].1)).collect()
}

/// The baseline as one object, the system as lines.
fn place() -> Place {
    let place = Place::empty();
    let document = json!({"predictions": "none", "all": {"n": 8}, "tasks": baseline()});
    place.write("a.json", serde_json::to_string_pretty(&document).unwrap());
    place.write("b.jsonl", jsonl(&system()));
    place
}

fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["compare", "a.json", "b.jsonl"], more].concat()
}

fn json_of(place: &Place, args: &[&str]) -> Value {
    let ran = place.run(args);
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", ran.stdout, ran.stderr))
}

/// All by hand. Drawn twice from two repositories the mean gain is 0.25, 0.125 twice, or 0. Flipping five gains of 0.5,
/// 0.25 four times (one of them below 0): the sum is 1 and can be ±(1.5, 1, …); the 2⁵ sums in quarters are ±2 plus ±1 four
/// times: 4 or more in 1 + 4 ways, and as many below 0: 10 of 32. Repositories: ±1 alone, beta's sum being 0.
#[test]
fn a_table_the_gains_by_size_and_how_they_came_about() {
    let ran = place().run(&compare(&["--measure", "repocoder.es"])).done();
    assert_eq!(ran.stderr, "");
    let wanted = format!(
        "\
A  a.json
B  b.jsonl

measure       n      A      B            B - A [95 %]  p (tasks)  p (repositories)  better  same  worse
repocoder.es  8  46.88  59.38  +12.50 [+0.00, +25.00]     0.3125            1.0000       4     3      1

repocoder.es: gain × 100 of 8 tasks
  -90       0    0.0 %
  -70       0    0.0 %
  -50       0    0.0 %
  -30       1   12.5 %  {third}
  -10       0    0.0 %
    0       3   37.5 %  {most}
  +10       0    0.0 %
  +30       3   37.5 %  {most}
  +50       1   12.5 %  {third}
  +70       0    0.0 %
  +90       0    0.0 %

intervals: 2 repositories drawn anew 10,000 times, each with its tasks (seed 0)
  2 repositories are few: intervals of fewer than 20 are too short
p: signs of the differences flipped in all ways, two-sided
",
        third = "█".repeat(13),
        most = "█".repeat(40),
    );
    assert_eq!(ran.stdout, wanted);
}

#[test]
fn json_has_everything_between_0_and_1() {
    let place = place();
    let value = json_of(&place, &compare(&["--format", "json"]));
    assert_eq!(value["a"], json!({"name": "a.json", "tasks": 8, "alone": []}));
    assert_eq!(value["n"], 8);
    assert_eq!(
        value["bootstrap"],
        json!({"unit": "repositories", "units": 2, "resamples": 10_000, "level": 0.95, "seed": 0})
    );
    let es = json!({
        "measure": "repocoder.es", "n": 8,
        "a": {"mean": 0.46875, "low": 0.4375, "high": 0.5},
        "b": {"mean": 0.59375, "low": 0.4375, "high": 0.75},
        "difference": {"mean": 0.125, "low": 0.0, "high": 0.25},
        "p": {"tasks": {"p": 0.3125, "exact": true, "units": 5},
            "repositories": {"p": 1.0, "exact": true, "units": 1}},
        "better": 4, "same": 3, "worse": 1,
        "buckets": {"-90": 0, "-70": 0, "-50": 0, "-30": 1, "-10": 0, "0": 3, "10": 0, "30": 3, "50": 1, "70": 0, "90": 0},
    });
    assert_eq!(value["measures"][1], es);
    assert_eq!(value["measures"][0]["measure"], "repocoder.em");
    assert_eq!(value["measures"][0]["buckets"], Value::Null);
    assert!(value.get("tasks").is_none() && value.get("repositories").is_none());
    // The same, a measure a line.
    let lines = parse_jsonl(&place.run(&compare(&["--format", "jsonl"])).done().stdout);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["names"], json!({"a": "a.json", "b": "b.jsonl"}));
    for (key, wanted) in es.as_object().unwrap() {
        assert_eq!(&lines[1][key], wanted, "{key}");
    }
}

#[test]
fn each_task_and_each_repository() {
    let place = place();
    let more = ["--format", "json", "--per-task", "--by-repository"];
    let value = json_of(&place, &compare(&more));
    let task = json!({"task_id": "alpha/3", "row": 3, "repository": "alpha",
        "repocoder.em": {"a": 0.0, "b": 0.0, "difference": 0.0},
        "repocoder.es": {"a": 0.5, "b": 0.75, "difference": 0.25}});
    assert_eq!(value["tasks"][3], task);
    assert_eq!(value["repositories"]["alpha"][1]["difference"]["mean"], 0.25);
    assert_eq!(value["repositories"]["beta"][1]["difference"]["mean"], 0.0);
    let tasks = place.run(&compare(&["--format", "jsonl", "--per-task"])).done();
    assert_eq!(Value::from(parse_jsonl(&tasks.stdout)), value["tasks"]);
    let tasks = place.run(&compare(&["--format", "tsv", "--per-task"])).done().stdout;
    let rows: Vec<&str> = tasks.lines().collect();
    assert!(rows[0].ends_with("\trepocoder.es A\trepocoder.es B\trepocoder.es B - A"));
    assert_eq!(rows[4], "alpha/3\t3\talpha\t0.00\t0.00\t+0.00\t50.00\t75.00\t+25.00");
    assert_eq!(rows.len(), 9);
    // For programs: the same rows as in the text, a number a column, the buckets last.
    let table = place.run(&compare(&["--format", "tsv", "--by-repository"])).done().stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split('\t').collect()).collect();
    let names: Vec<_> = rows[1..].iter().map(|row| (row[1], row[0])).collect();
    let (em, es) = ("repocoder.em", "repocoder.es");
    assert_eq!(
        names,
        [("alpha", em), ("alpha", es), ("beta", em), ("beta", es), ("all", em), ("all", es)]
    );
    let cell = |row: usize, name: &str| {
        rows[row][rows[0].iter().position(|column| *column == name).unwrap()]
    };
    assert_eq!(cell(6, "difference_high"), "25.00");
    assert_eq!(cell(6, "gain -30"), "1");
    assert_eq!((cell(2, "p_repositories"), cell(6, "p_repositories")), ("", "1"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let text = place.run(&compare(&["--by-repository", "--per-task"])).done().stdout;
    for wanted in
        ["repocoder.es        beta  4", "within a repository its tasks are drawn", "alpha/3  "]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn what_eval_writes_is_compared() {
    let place = Place::new();
    let predictions = |texts: [&str; 3]| {
        let records = crate::support::TARGETS.iter().zip(texts);
        let records: Vec<Value> =
            records.map(|((id, _), text)| json!({"task_id": id, "pred": text})).collect();
        jsonl(&records)
    };
    let targets = crate::support::TARGETS.map(|(_, target)| target);
    place.write("none.jsonl", predictions(["", targets[1], ""]));
    place.write("rg1.jsonl", predictions([targets[0], "", targets[2]]));
    for (name, format, scores) in
        [("none.jsonl", "json", "none.json"), ("rg1.jsonl", "jsonl", "rg1.scores")]
    {
        let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", name];
        place.run(&[&eval[..], &["--per-task", "--format", format, "-o", scores]].concat()).done();
    }
    let value = json_of(&place, &["compare", "none.json", "rg1.scores", "--format", "json"]);
    let es = &value["measures"][1];
    assert_eq!((&es["better"], &es["same"], &es["worse"]), (&2.into(), &0.into(), &1.into()));
    assert_eq!(es["difference"]["mean"], 1.0 / 3.0);
    // Of the sums of ±1 ±1 ±1, all are as far from 0 as 1.
    assert_eq!(es["p"]["tasks"]["p"], 1.0);
    // The cache's own scores.
    let place = Place::new();
    place.all_stages(&[]);
    place.stage(&["run"]).done();
    let scores =
        |mode: &str| format!("cache/scores/tasks/{mode}-one-gram-ws-20-ss-2-in-context.json");
    let value = json_of(&place, &["compare", &scores("none"), &scores("rg1"), "--format", "json"]);
    assert_eq!((&value["n"], value["measures"].as_array().unwrap().len()), (&3.into(), 2));
}

#[test]
fn a_system_beside_itself_gains_nothing() {
    let value = json_of(&place(), &["compare", "b.jsonl", "b.jsonl", "--format", "json"]);
    for measure in value["measures"].as_array().unwrap() {
        assert_eq!(measure["difference"], json!({"mean": 0.0, "low": 0.0, "high": 0.0}));
        assert_eq!(measure["p"]["tasks"]["p"], 1.0);
        assert_eq!((&measure["same"], &measure["better"]), (&8.into(), &0.into()));
    }
}

#[test]
fn tasks_of_one_side_alone_are_told_and_left_out() {
    let place = place();
    place.write("b.jsonl", jsonl(&[&system()[..6], &[record(9, 1.0)]].concat()));
    let ran = place.run(&compare(&[])).done();
    let ran = ran.says(&[
        "warning: left out: 2 tasks (beta/6, beta/7) in a.json only, not in b.jsonl",
        "warning: left out: 1 task (beta/9) in b.jsonl only, not in a.json",
    ]);
    assert!(
        ran.stdout.contains("left out: 2 tasks (beta/6, beta/7) in A alone\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("repocoder.es  6 "), "{}", ran.stdout);
    let value = json_of(&place, &compare(&["--format", "json"]));
    assert_eq!(value["b"], json!({"name": "b.jsonl", "tasks": 7, "alone": ["beta/9"]}));
}

#[test]
fn unusable_records_are_named_and_fail() {
    let place = place();
    let mut records = system();
    records[2] = json!({"task_id": "alpha/2"});
    records[5] = records[4].clone();
    place.write("b.jsonl", jsonl(&records));
    let ran = place.run(&compare(&["--format", "tsv"])).partly();
    assert!(ran.stdout.contains("repocoder.es\tall\t5\t"), "{}", ran.stdout);
    ran.says(&[
        "error: b.jsonl:3: has no scores",
        "error: b.jsonl: 2 records have the task_id \"beta/4\" and row 4; none of them is compared",
    ]);
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_way_out() {
    let place = place();
    place.write("preds.jsonl", jsonl(&[json!({"task_id": "alpha/0", "pred": "x"})]));
    place.write("other.jsonl", jsonl(&[json!({"task_id": "z", "row": 0, "repocoder": {"es": 1}})]));
    place.write(
        "both.json",
        json!([
            {"predictions": "none", "tasks": baseline()}, {"predictions": "rg1", "tasks": system()},
        ])
        .to_string(),
    );
    let refused = |args: &[&str], says: &[&str]| {
        place.run(&[&["compare"], args].concat()).failed().says(says);
    };
    refused(
        &["a.json", "preds.jsonl"],
        &[
            "error: preds.jsonl: holds a prediction (it has 'pred'), and no task's scores",
            "hint: score them first: `repoformer eval --per-task --format json -o FILE` writes them, with --tasks and --predictions",
        ],
    );
    refused(
        &["a.json", "other.jsonl"],
        &[
            "a.json and other.jsonl have no task in common; the first begins with \"alpha/0\" at row 0, the second with \"z\" at row 0",
            "hint: score both with the same task file",
        ],
    );
    refused(
        &["a.json", "both.json"],
        &["several predictions: none, rg1", "hint: name one of them: both.json#none"],
    );
    refused(
        &["a.json", "b.jsonl", "--measure", "exec.pass"],
        &[
            "exec.pass is in neither; a.json has repocoder.em, repocoder.es; b.jsonl has repocoder.em, repocoder.es",
            "--measure",
        ],
    );
    refused(&["a.json", "no.json"], &["no.json: cannot open this file", "hint: check the path"]);
    refused(&["-", "-"], &["cannot both be standard input"]);
    refused(&["a.json", "b.jsonl", "-o", "b.jsonl"], &["-o would overwrite b.jsonl"]);
    refused(
        &["both.json#none", "both.json#rg1", "-o", "both.json"],
        &["-o would overwrite both.json"],
    );
    refused(&["a.json", "b.jsonl", "--resamples", "7"], &["from 100 to 1000000"]);
    let one = ["both.json#none", "both.json#rg1", "--format", "json"];
    let value = json_of(&place, &[&["compare"], &one[..]].concat());
    assert_eq!(value["a"]["name"], "both.json#none");
    let mut wanted = json_of(&place, &compare(&["--format", "json"]));
    wanted["a"]["name"] = "both.json#none".into();
    wanted["b"]["name"] = "both.json#rg1".into();
    assert_eq!(value, wanted);
}

#[test]
fn the_same_bytes_with_any_threads_and_order_and_others_with_another_seed() {
    let place = Place::empty();
    // Two hundred tasks of ten repositories, so that flips are random.
    let side = |factor: usize| -> Vec<Value> {
        let record = |row: usize| {
            json!({"task_id": format!("t{row}"), "row": row, "repository": format!("r{}", row % 10),
                "repocoder": {"es": ((row * factor) % 101) as f64 / 100.0}})
        };
        (0..200).map(record).collect()
    };
    let (a, mut b) = (side(37), side(41));
    place.write("a.json", json!({"tasks": a}).to_string());
    place.write("b.jsonl", jsonl(&b));
    b.reverse();
    place.write("reversed.jsonl", jsonl(&b));
    let run = |b: &str, threads: &str, more: &[&str]| {
        let args = [&["compare", "a.json", b, "--format", "tsv"], more].concat();
        let mut command = place.command(&args);
        let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
        crate::support::Ran::of(output).done().stdout
    };
    let wanted = run("b.jsonl", "1", &[]);
    assert_eq!(run("b.jsonl", "3", &[]), wanted);
    assert_eq!(run("reversed.jsonl", "2", &[]), wanted);
    assert_eq!(run("b.jsonl", "2", &["--seed", "0"]), wanted);
    assert_ne!(run("b.jsonl", "2", &["--seed", "1"]), wanted);
    let by_task = json_of(
        &place,
        &["compare", "a.json", "b.jsonl", "--resample", "task", "--format", "json"],
    );
    assert_eq!(by_task["bootstrap"]["unit"], "tasks");
    assert_eq!(by_task["bootstrap"]["units"], 200);
    assert_eq!(by_task["measures"][0]["p"]["tasks"]["exact"], false);
    assert_eq!(by_task["measures"][0]["p"]["repositories"]["exact"], true);
}

/// Tasks whose unit tests cannot tell are no damaged lines.
#[test]
fn excluded_tasks_take_no_part() {
    let place = Place::empty();
    let of = |row: usize, rate: f64| json!({"task_id": row.to_string(), "row": row, "exec": {"pass_1": rate}, "statuses": ["pass"]});
    let out = json!({"task_id": "9", "row": 9, "excluded": {"status": null, "reason": "x"}});
    place.write("a.jsonl", jsonl(&[of(0, 0.0), of(1, 0.5), out.clone()]));
    place.write("b.jsonl", jsonl(&[of(0, 1.0), of(1, 0.5), out]));
    let ran = place.run(&["compare", "a.jsonl", "b.jsonl", "--format", "json"]).done();
    let record: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(record["n"], 2, "{}", ran.stdout);
    ran.says(&["a.jsonl: 1 tasks are excluded"]);
}
