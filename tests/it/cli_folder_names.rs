//! Numbers do not depend on the names of repositories' folders: the same files and commands give the same tasks, scores,
//! intervals and splits under other names in another order.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Place, jsonl, parse_jsonl};

/// Number of repositories: more than the ten folds of a policy's training, and enough for intervals by repository.
const REPOSITORIES: usize = 12;

/// Names of the same repositories in two places; their orders are reversed, and one has capitals.
fn name(of: usize, is_renamed: bool) -> String {
    if is_renamed {
        let case = if of.is_multiple_of(2) { "Z" } else { "a" };
        format!("{case}{}_{of}", REPOSITORIES - of)
    } else {
        format!("repo{of:02}")
    }
}

/// Parts of the sample repositories, each a repository.
fn place(is_renamed: bool) -> Place {
    let samples = Place::empty();
    samples.add_samples();
    let place = Place::empty();
    for (number, (path, bytes)) in samples.files("repos").into_iter().enumerate() {
        let (_, below) = path.split_once('/').unwrap();
        place.write(&format!("repos/{}/{below}", name(number % REPOSITORIES, is_renamed)), bytes);
    }
    place
}

/// The places under both names.
fn places() -> [Place; 2] {
    [false, true].map(place)
}

/// Records by repository, in their order, without the repository's name.
fn by_repository(records: Vec<Value>, is_renamed: bool) -> BTreeMap<usize, Vec<String>> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for record in records {
        let text = record.to_string();
        let names = (0..REPOSITORIES).map(|of| name(of, is_renamed));
        let [(number, name)] = names
            .enumerate()
            .filter(|(_, name)| text.contains(&format!("\"task_id\":\"{name}/")))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        let plain =
            text.replace(&format!("\"{name}\""), "\"R\"").replace(&format!("\"{name}/"), "\"R/");
        found.entry(number).or_default().push(plain);
    }
    found
}

/// All numbers of a text of JSON lines, to nine digits: sums over tasks in another order differ in the last bits.
fn numbers(text: &str) -> Vec<String> {
    fn walk(value: &Value, at: &str, out: &mut Vec<String>) {
        match value {
            Value::Number(number) => {
                out.push(format!("{at} {:.9}", number.as_f64().unwrap() + 0.0));
            }
            Value::Array(all) => all.iter().for_each(|value| walk(value, at, out)),
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| walk(value, &format!("{at}.{name}"), out));
            }
            text => out.push(format!("{at} {text}")),
        }
    }
    let mut found = Vec::new();
    parse_jsonl(text).iter().for_each(|value| walk(value, "", &mut found));
    found
}

#[test]
fn tasks_are_drawn_by_content() {
    let drawn = |kind: &str, more: &[&str]| {
        let [one, other] = [false, true].map(|is_renamed| {
            let sample = [
                "sample", "--kind", kind, "--repos-dir", "repos", "--per-repo", "4", "--seed", "3",
            ];
            let ran = place(is_renamed).run(&[&sample[..], more].concat()).done();
            by_repository(parse_jsonl(&ran.stdout), is_renamed)
        });
        assert!(one.values().map(Vec::len).sum::<usize>() > 20, "{kind}: {one:?}");
        assert_eq!(one, other, "{kind}");
    };
    for kind in ["line", "api", "function", "chunk"] {
        drawn(kind, &[]);
    }
    drawn("line", &["--cursor", "any-token"]);
}

#[test]
fn instances_are_drawn_by_content() {
    let [one, other] = [false, true].map(|is_renamed| {
        let place = place(is_renamed);
        let sample =
            ["label", "sample", "--repos-dir", "repos", "-o", "labels.jsonl", "--seed", "5"];
        let chunks = ["--kind", "chunk", "--max-candidates", "9", "--no-filter"];
        place.run(&[&sample[..], &chunks].concat()).done();
        by_repository(place.records("labels.jsonl"), is_renamed)
    });
    assert_eq!(one, other);
}

/// 48 tasks of 12 repositories: intervals are resampled by repository, and signs are flipped by task at random.
#[test]
fn scores_and_intervals_are_equal() {
    let tables = [false, true].map(|is_renamed| {
        let place = place(is_renamed);
        let sample = [
            "sample", "--kind", "line", "--repos-dir", "repos", "--per-repo", "4", "-o", "t.jsonl",
        ];
        place.run(&sample).done();
        let run = [
            "run",
            "--repos-dir",
            "repos",
            "--tasks",
            "t.jsonl",
            "--mode",
            "none,rg1",
            "--policy",
            "random@0.5,oracle,learned@0.5",
            "--format",
            "jsonl",
            "--resamples",
            "300",
        ];
        let rows = parse_jsonl(&place.run(&run).done().stdout);
        let rows: Vec<Value> = rows
            .into_iter()
            .map(|mut row| {
                // Times depend on the machine.
                row.as_object_mut()
                    .unwrap()
                    .retain(|name, _| !name.contains("ms") && name != "speedup");
                row
            })
            .collect();
        let file = |mode: &str| place.named("data/cache/predictions/t", &format!("{mode}-"));
        let compare = [
            "compare",
            "--tasks",
            "t.jsonl",
            &file("none"),
            &file("rg1"),
            "--resamples",
            "300",
            "--format",
            "json",
        ];
        let mut compared: Value = serde_json::from_str(&place.run(&compare).done().stdout).unwrap();
        // Tasks and repositories stand in the order of the file.
        for name in ["tasks", "repositories", "per_task"] {
            compared.as_object_mut().unwrap().remove(name);
        }
        [numbers(&jsonl(&rows)), numbers(&compared.to_string())]
    });
    assert!(tables[0].iter().all(|table| table.len() > 20), "{tables:?}");
    assert_eq!(tables[0], tables[1]);
}

/// Instances with made-up judgements that follow from their content.
fn judged(place: &Place) {
    let sample = ["label", "sample", "--repos-dir", "repos", "-o", "drawn.jsonl", "--seed", "5"];
    place.run(&[&sample[..], &["--kind", "chunk", "--no-filter"]].concat()).done();
    let mut labels = place.records("drawn.jsonl");
    for label in &mut labels {
        let size = |name: &str| label[name].as_str().unwrap().len();
        let helps = (size("prompt") + size("right_context")) % 5 < 2;
        let (infile, rg1) = if helps { (0.25, 1.0) } else { (0.75, 0.5) };
        let fields = label.as_object_mut().unwrap();
        let judgement = json!({
            "es_infile": infile, "es_rg1": rg1, "em_infile": 0, "em_rg1": u8::from(helps),
            "generation_model": "m", "label": helps, "threshold": 0.0,
        });
        fields.extend(judgement.as_object().unwrap().clone());
    }
    place.write("labels.jsonl", jsonl(&labels));
}

/// Twelve repositories in ten folds: their content decides which share a fold.
#[test]
fn policies_and_splits_are_equal() {
    let outcomes = places().map(|place| {
        judged(&place);
        let sweep = [
            "policy",
            "sweep",
            "--labels",
            "labels.jsonl",
            "--policy",
            "random,learned,learned-scored",
            "--format",
            "jsonl",
        ];
        let points = numbers(&place.run(&sweep).done().stdout);
        let fixture =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tokenizers/starcoder.json");
        fs::copy(fixture, place.path("tokenizer.json")).unwrap();
        let verbalize = [
            "label", "verbalize", "--labels", "labels.jsonl", "--tokenizer", "tokenizer.json",
            "-o", "out", "--validation", "0.25", "--test", "0.25", "--prompt-style", "starcoder",
        ];
        place.run(&verbalize).done();
        let split = |name: &str| {
            let rows = place.records(&format!("out/{name}.jsonl"));
            let mut texts: Vec<String> =
                rows.iter().map(|row| row["input_ids"].to_string()).collect();
            texts.sort();
            assert!(!texts.is_empty());
            texts
        };
        (points, ["train", "validation", "test"].map(split))
    });
    assert!(outcomes[0].0.len() > 100);
    assert_eq!(outcomes[0], outcomes[1]);
}
