//! `eval --definitions`: the definitions that predictions use. `eval --unresolved`: their names that resolve nowhere.

use serde_json::{Value, json};

use crate::support::{Place, jsonl, parse_jsonl};

const DATA: [&str; 4] = ["--repos-dir", "repos", "--tasks", "tasks.jsonl"];

fn predictions(place: &Place, of: impl Fn(&Value) -> Value) {
    let tasks = place.records("tasks.jsonl");
    let line = |task: &Value| json!({"task_id": task["metadata"]["task_id"], "pred": of(task)});
    place.write("p.jsonl", jsonl(&tasks.iter().map(line).collect::<Vec<_>>()));
}

fn truth(task: &Value) -> Value {
    task["metadata"]["ground_truth"].clone()
}

#[test]
fn predictions_are_held_against_the_definitions_that_targets_use() {
    let place = Place::empty();
    place.add_samples();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/api.jsonl");
    let all = parse_jsonl(&std::fs::read_to_string(data).unwrap());
    let tasks = all.len();
    place.write("tasks.jsonl", jsonl(&all));
    let eval = [&["eval", "--definitions"], &DATA[..], &["--predictions", "p.jsonl"]].concat();
    let to = |file: &'static str| [&eval[..], &["-o", file]].concat();
    predictions(&place, truth);
    place
        .run(&to("truth.jsonl"))
        .done()
        .says(&["p.jsonl: predictions use 100.00 % of the definitions that"]);
    let found = place.records("truth.jsonl");
    assert!(
        10 * found.len() >= 9 * tasks,
        "{} of {tasks} targets are seen to use any",
        found.len()
    );
    assert!(found.iter().all(|line| line["definitions"]["recall"] == 1.0));
    // A name that is written after the target's lines does not count.
    predictions(&place, |task| {
        format!("    pass\n{}", task["metadata"]["ground_truth"].as_str().unwrap()).into()
    });
    place.run(&to("late.jsonl")).done();
    let lines = |task: &Value| truth(task).as_str().unwrap().lines().count();
    let of_one_line: Vec<&Value> = all
        .iter()
        .filter(|task| lines(task) == 1)
        .map(|task| &task["metadata"]["task_id"])
        .collect();
    let late = place.records("late.jsonl");
    let late: Vec<&Value> =
        late.iter().filter(|line| of_one_line.contains(&&line["task_id"])).collect();
    assert!(late.len() > 5 && late.iter().all(|line| line["definitions"]["recall"] == 0.0));
    let compared =
        place.run(&["compare", "truth.jsonl", "late.jsonl", "--format", "json"]).done().stdout;
    let compared: Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(compared["measures"][0]["measure"], "definitions.recall", "{compared}");
    // Those of the cache, of one mode.
    for stage in [&["window"][..], &["vectorize"], &["search"], &["prompt"], &["complete"]] {
        place.run(&[stage, &DATA[..], &["--mode", "rg1"]].concat()).done();
    }
    let of_cache = [&["eval", "--definitions"], &DATA[..], &["--mode", "rg1", "-o", "rg1.jsonl"]];
    place.run(&of_cache.concat()).done().says(&["rg1: "]);
    // Tasks that name none.
    let mut tasks = all;
    for task in &mut tasks {
        task["metadata"].as_object_mut().unwrap().remove("definitions");
    }
    place.write("tasks.jsonl", jsonl(&tasks));
    place.run(&to("none.jsonl")).failed().says(&["no task names the definitions"]);
    assert!(!place.path("none.jsonl").exists());
}

#[test]
fn declared_types_say_what_is_used() {
    let place = Place::empty();
    place.write("repos/shop/Cart.java", "class Cart {\n    int total(int price) {\n        return price;\n    }\n\n    int other() {\n        return 1;\n    }\n}\n");
    place.write("repos/shop/Order.java", "class Order {\n    int sum(Cart cart) {\n        int price = 2;\n        return cart.total(price);\n    }\n}\n");
    place
        .run(&[
            "sample", "--repos-dir", "repos", "--repo", "shop", "--language", "java", "--kind",
            "api", "-o", "tasks.jsonl",
        ])
        .done();
    assert_eq!(place.records("tasks.jsonl").len(), 1);
    let eval = [&["eval", "--definitions"], &DATA[..], &["--predictions", "p.jsonl"]].concat();
    for (prediction, says) in [
        (None, "100.00 %"),
        (Some("        return cart.other();"), "0.00 %"),
        (Some("        int all = cart.total(price);"), "100.00 %"),
    ] {
        predictions(&place, |task| prediction.map_or_else(|| truth(task), Value::from));
        place.run(&eval).done().says(&[says]);
    }
}

#[test]
fn invented_names_are_found_and_those_of_targets_are_not() {
    let place = Place::empty();
    place.add_samples();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/api.jsonl");
    place.write("tasks.jsonl", std::fs::read(data).unwrap());
    let eval = [&["eval", "--unresolved"], &DATA[..], &["--predictions", "p.jsonl"]].concat();
    let to = |file: &'static str| [&eval[..], &["-o", file]].concat();
    predictions(&place, truth);
    place.run(&to("truth.jsonl")).done().says(&["p.jsonl: ", "so do "]);
    let found = place.records("truth.jsonl");
    for line in &found {
        assert!(line["names"].is_null() || line["names"]["resolved"] == 1.0, "{line}");
        assert_eq!(line["target_unresolved"], json!([]));
    }
    assert!(found.iter().filter(|line| !line["names"].is_null()).count() > found.len() / 2);
    predictions(&place, |task| {
        let text = task["metadata"]["ground_truth"].as_str().unwrap();
        let indentation = &text[..text.len() - text.trim_start().len()];
        json!([text, format!("{indentation}nobody_defines_this()\n")])
    });
    place.run(&to("half.jsonl")).done();
    // Within a bracket, a statement does not parse.
    let half = place.records("half.jsonl");
    let names = half.iter().filter(|line| line["unresolved"][1] == json!(["nobody_defines_this"]));
    assert!(10 * names.count() > 9 * half.len());
    assert!(half.iter().all(|line| line["unresolved"][1] != json!([]) || line["checked"][1] == 0));
    let compared = place.run(&["compare", "truth.jsonl", "half.jsonl", "--format", "json"]).done();
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!(compared["measures"][0]["measure"], "names.resolved", "{compared}");
    std::fs::remove_dir_all(place.path("repos/quillpad")).unwrap();
    place.run(&eval).partly().says(&["quillpad"]);
}
