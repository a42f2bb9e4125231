//! Function bodies: how they are recognised and cut where prompts show only the end of the files.

use std::path::Path;

use crate::support::{Place, jsonl, parse_jsonl};
use serde_json::{Value, json};

/// The sample repositories, with 40 of their tasks whose prompts show this many lines, and predictions that go on behind the
/// body.
fn place(lines: usize) -> Place {
    let place = Place::empty();
    place.add_samples();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/function.jsonl");
    let mut tasks = parse_jsonl(&std::fs::read_to_string(data).unwrap());
    tasks.truncate(40);
    let truths: Vec<String> = tasks
        .iter()
        .map(|task| task["metadata"]["ground_truth"].as_str().unwrap().into())
        .collect();
    for (row, task) in tasks.iter_mut().enumerate() {
        // The ids that `sample` writes name the kind.
        task["metadata"]["task_id"] = format!("parcelflow/hole {row}:").into();
        let prompt = task["prompt"].as_str().unwrap();
        let kept: Vec<&str> = prompt.split_inclusive('\n').collect();
        let kept = kept[kept.len().saturating_sub(lines)..].concat();
        task["prompt"] = kept.into();
    }
    let predictions = tasks.iter().enumerate().map(|(row, task)| {
        let id = &task["metadata"]["task_id"];
        let next = &truths[(row + 1) % truths.len()];
        json!({"task_id": id, "metadata": {"row": row}, "pred": format!("{next}\n\n\ndef more(x):\n    return (x")})
    });
    place.write("p.jsonl", jsonl(&predictions.collect::<Vec<_>>()));
    place.write("tasks.jsonl", jsonl(&tasks));
    place
}

fn scores(place: &Place, more: &[&str]) -> (Value, String) {
    let args = [
        "eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl", "--metrics", "repoformer",
        "--format", "json",
    ];
    let ran = place.run(&[&args[..], more].concat()).done();
    let record: Value = serde_json::from_str(&ran.stdout).unwrap();
    (json!([record["postprocess"], record["all"]]), ran.stderr)
}

#[test]
fn bodies_are_recognised_and_cut_by_the_whole_file() {
    let (whole, said) = scores(&place(usize::MAX), &[]);
    assert_eq!((&whole[0]["repoformer"], said.as_str()), (&json!("function-body"), ""));
    for lines in [20, 2, 1] {
        let place = place(lines);
        let (found, said) = scores(&place, &["--repos-dir", "repos"]);
        assert_eq!((&found, said.as_str()), (&whole, ""), "{lines} lines");
    }
}

#[test]
fn what_cannot_be_recognised_is_told() {
    let place = place(1);
    let (found, said) = scores(&place, &[]);
    assert_eq!(found[0]["repoformer"], "lines");
    let wanted = "of the first 40 holes are function bodies, and";
    assert!(said.contains(wanted) && said.contains("--postprocess function-body"), "{said}");
    let (found, said) = scores(&place, &["--postprocess", "function-body"]);
    assert_eq!(found[0]["repoformer"], "function-body");
    assert!(said.contains("40 of 40 prompts show only the end of the file"), "{said}");
    // Where the tasks say what they are, nothing is guessed.
    let mut tasks = place.records("tasks.jsonl");
    tasks.iter_mut().for_each(|task| task["metadata"]["function_name"] = "f".into());
    place.write("tasks.jsonl", jsonl(&tasks));
    assert_eq!(scores(&place, &[]).0[0]["repoformer"], "function-body");
}
