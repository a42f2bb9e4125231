//! Tables as data: CSV and Parquet hold what JSON holds, value by value, in columns that do not depend on the data.

use serde_json::{Value, json};

use crate::support::frame::{assert_hold, csv_cells, frame};
use crate::support::{Place, jsonl, parse_jsonl, source, task};

/// Tasks with names, and predictions with texts, that separators and quotes stand in. Row 3 has an empty prediction.
fn place() -> Place {
    let place = Place::new();
    let text = source("odd", 20);
    place.write("repos/o,d \"d\"/x.py", &text);
    place.add_tasks(&[task("say \"a,b\"\n", "o,d \"d\"/x.py", &text, 0, 9)]);
    let mut predictions = Vec::new();
    for (task, pred) in place.records("tasks.jsonl").iter().zip([
        "store_12 = store(12)",
        "view_20 = view(\"é,\r\n\")",
        "NA",
        "",
    ]) {
        predictions.push(json!({"task_id": task["metadata"]["task_id"], "pred": pred}));
    }
    place.write("p,\"q\".jsonl", jsonl(&predictions));
    place
}

const DATA: [&str; 6] = ["--tasks", "tasks.jsonl", "--repos-dir", "repos", "--cache-dir", "cache"];

fn eval<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["eval", "--predictions", "p,\"q\".jsonl", "-q"][..], &DATA, more].concat()
}

fn json(place: &Place, command: &[&str]) -> Value {
    let ran = place.run(&[command, &["--format", "json"]].concat()).done();
    serde_json::from_str(&ran.stdout).unwrap()
}

fn lines(place: &Place, command: &[&str]) -> Vec<Value> {
    parse_jsonl(&place.run(&[command, &["--format", "jsonl"]].concat()).done().stdout)
}

#[test]
fn scores_of_tasks_are_those_of_json() {
    let place = place();
    let command = eval(&["--per-task", "--metrics", "repocoder,crosscodeeval"]);
    let mut records = lines(&place, &command);
    for record in &mut records {
        record["predictions"] = "p,\"q\"".into();
    }
    let (names, rows) = frame(&place, &command);
    assert_hold(&rows, &records);
    let wanted = "predictions task_id row repository repocoder_em repocoder_es crosscodeeval_em crosscodeeval_es \
        crosscodeeval_id_em crosscodeeval_id_precision crosscodeeval_id_recall crosscodeeval_id_f1 target_digest \
        pred_raw pred pred_by_crosscodeeval uncut_crosscodeeval_prediction";
    assert_eq!(names.join(" "), wanted);
    // Texts that readers could take for a missing value are there.
    assert_eq!((&rows[2]["pred"], &rows[3]["pred"]), (&json!("NA"), &json!("")));
    let cells = csv_cells(&place.read("frame.csv"));
    assert_eq!(cells[4][14].as_deref(), Some(""), "an empty text is no missing value");
    // The manifest lies beside, as for other files.
    assert!(place.path("frame.csv.manifest.json").exists());
    assert!(place.path("frame.parquet.manifest.json").exists());
}

#[test]
fn means_and_intervals_are_those_of_json() {
    let place = place();
    let command = eval(&[]);
    let record = json(&place, &command);
    let mut wanted = Vec::new();
    for (repository, means) in record["repositories"].as_object().unwrap() {
        let mut row = means.clone();
        row["repository"] = repository.as_str().into();
        wanted.push(row);
    }
    let mut all = record["all"].clone();
    for value in ["em", "es"] {
        all["repocoder"][format!("{value}_interval")] =
            record["intervals"]["repocoder"][value].clone();
    }
    for name in ["unit", "units"] {
        all[name] = record["intervals"][name].clone();
    }
    all["interval"] = record["intervals"]["kind"].clone();
    all["missing"] = record["missing"].clone();
    all["samples"] = 1.into();
    wanted.push(all);
    wanted.iter_mut().for_each(|row| row["predictions"] = "p,\"q\"".into());
    let (names, rows) = frame(&place, &command);
    assert_hold(&rows, &wanted);
    // One task has no interval, and the same columns.
    let one = place.records("tasks.jsonl").remove(0);
    place.write("tasks.jsonl", jsonl(&[one]));
    let prediction = place.records("p,\"q\".jsonl").remove(0);
    place.write("p,\"q\".jsonl", jsonl(&[prediction]));
    let (of_one, rows) = frame(&place, &command);
    assert_eq!(of_one, names);
    assert_eq!(rows[1]["repocoder_es_low"], Value::Null);
}

#[test]
fn a_run_and_what_is_measured_of_it_are_those_of_json() {
    let place = Place::new();
    let run = [&["run", "-q"][..], &DATA].concat();
    place.run(&run).done();
    let mut records = lines(&place, &run);
    records.iter_mut().for_each(|record| record["without_embedding"] = false.into());
    let (names, rows) = frame(&place, &run);
    assert_hold(&rows, &records);
    assert_eq!(
        names.join(" "),
        "benchmark mode n metric em es em_low em_high es_low es_high interval unit units prompt_tokens \
            with_retrieved retrieval_ms without_embedding ut generation_ms latency_ms speedup unchanged profile departures"
    );
    // No retrieval took no time: it is not known rather than 0.
    assert_eq!((&rows[0]["mode"], &rows[0]["retrieval_ms"]), (&json!("none"), &Value::Null));

    let compare = [&["compare", "none", "gt", "--by-repository", "-q"][..], &DATA].concat();
    let records = lines(&place, &compare);
    assert_hold(&frame(&place, &compare).1, &records);
    let compare = [&compare[..], &["--per-task"]].concat();
    let records = lines(&place, &compare);
    assert_hold(&frame(&place, &compare).1, &records);

    let retrieval =
        [&["eval", "--retrieval", "--rankers", "jaccard,bm25", "-q"][..], &DATA].concat();
    place.run(&retrieval).done();
    let records = lines(&place, &retrieval);
    let (names, rows) = frame(&place, &retrieval);
    let mut wanted = Vec::new();
    for record in &records {
        let mut each: Vec<Value> = Vec::new();
        for (repository, means) in record["repositories"].as_object().unwrap() {
            each.push(means.clone());
            each.last_mut().unwrap()["repository"] = repository.as_str().into();
        }
        each.push(record["all"].clone());
        each.last_mut().unwrap()["retrieval_ms"] = record["retrieval_ms"].clone();
        each.last_mut().unwrap()["without_embedding"] = false.into();
        for mut row in each {
            for name in ["retrieval", "query", "align"] {
                row[name] = record[name].clone();
            }
            wanted.push(row);
        }
    }
    assert_eq!(wanted.len(), 6);
    assert_hold(&rows, &wanted);
    assert!(names.contains(&"gt_recall_at_10_mean".to_owned()), "{names:?}");
    let retrieval = [&retrieval[..], &["--per-task"]].concat();
    let records = lines(&place, &retrieval);
    let mut wanted = Vec::new();
    for record in &records {
        for task in record["tasks"].as_array().unwrap() {
            let mut row = task.clone();
            for name in ["retrieval", "query", "align"] {
                row[name] = record[name].clone();
            }
            wanted.push(row);
        }
    }
    assert_hold(&frame(&place, &retrieval).1, &wanted);

    let stats = ["stats", "tasks.jsonl", "-q"];
    let records = lines(&place, &stats);
    assert_hold(&frame(&place, &stats).1, &records);
}

/// A terminal is no place for Parquet, which is refused before any work; a pipe takes it.
#[cfg(target_os = "linux")]
#[test]
fn parquet_goes_to_files_and_pipes() {
    let place = place();
    let program =
        "repoformer eval --tasks tasks.jsonl --predictions 'p,\"q\".jsonl' --format parquet";
    place.write("command", program);
    let shown = place.shell("script -qec 'sh command' /dev/null; echo \" $?\"").stdout;
    assert!(shown.contains("Parquet cannot be printed on a terminal"), "{shown}");
    assert!(shown.ends_with(" 2\n"), "{shown}");
    let bytes = place.shell("sh command | head -c 4").done().stdout;
    assert_eq!(bytes, "PAR1");
}
