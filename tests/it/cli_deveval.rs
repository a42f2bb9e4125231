//! Records of DevEval and EvoCodeBench: tasks with their tests, completions, dependencies.

use serde_json::{Value, json};

use crate::support::{Place, jsonl, parse_jsonl};

const TYPES: &str = r#""""Types."""
LIMIT = 3


class Limit:
    """A limit."""

    def check(self, value):
        return value <= LIMIT


def is_small(value):
    """Says whether a value is small.

    :param value: a number
    """

    # compare
    return Limit().check(value)
"#;

const USE: &str = r#"from shapes.types import Limit, is_small


class Shape:
    @property
    async def area(
        self,
    ):
        return 0

    def scale(self, by):
        if not is_small(by):
            raise ValueError(by)
        return by * 2
"#;

const TEST: &str = r#"import sys
sys.path.insert(0, "src")
import unittest
from shapes.types import is_small
from shapes.use import Shape


class Types(unittest.TestCase):
    def test_small(self):
        self.assertTrue(is_small(3))
        self.assertFalse(is_small(4))

    def test_scale(self):
        self.assertEqual(Shape().scale(2), 4)
        self.assertRaises(ValueError, Shape().scale, 9)
"#;

fn record(namespace: &str, file: &str, signature: [u32; 2], body: [u32; 2], test: &str) -> Value {
    json!({
        "namespace": namespace, "type": "function", "project_path": "Text-Processing/shapes",
        "completion_path": format!("Text-Processing/shapes/{file}"),
        "signature_position": signature, "body_position": body,
        "dependency": {"intra_class": [], "intra_file": [], "cross_file": []},
        "requirement": {"Functionality": "f", "Arguments": "a"},
        "tests": [format!("tests.test_types.Types.{test}")], "indent": 4,
    })
}

fn place() -> Place {
    let place = Place::empty();
    place.write("repos/shapes/src/shapes/types.py", TYPES);
    place.write("repos/shapes/src/shapes/__init__.py", "");
    place.write("repos/shapes/src/shapes/use.py", USE);
    place.write("repos/shapes/tests/test_types.py", TEST);
    place.write("repos/shapes/tests/__init__.py", "");
    let mut scale =
        record("shapes.use.Shape.scale", "src/shapes/use.py", [11, 11], [12, 15], "test_scale");
    scale["dependency"]["cross_file"] = json!([
        "shapes.types.is_small",
        "shapes.types.Limit.check",
        "shapes.types.LIMIT",
        "shapes.types.nothing"
    ]);
    scale["indent"] = json!(8);
    let small =
        record("shapes.types.is_small", "src/shapes/types.py", [12, 12], [19, 19], "test_small");
    place.write("data.jsonl", jsonl(&[small, scale]));
    place
}

const CONVERT: [&str; 7] =
    ["convert", "data.jsonl", "--to", "repoeval", "--repos-dir", "repos", "-o"];

#[test]
fn records_become_tasks_with_their_definitions() {
    let place = place();
    let said = "3 of 4 dependencies in other files";
    place.run(&[&CONVERT[..], &["tasks.jsonl"]].concat()).done().says(&[said, "2 records"]);
    let tasks = place.records("tasks.jsonl");
    let [small, scale] = [&tasks[0]["metadata"], &tasks[1]["metadata"]];
    assert_eq!(small["task_id"], "shapes.types.is_small");
    assert_eq!(small["fpath_tuple"], json!(["shapes", "src", "shapes", "types.py"]));
    assert_eq!(small["ground_truth"], "    return Limit().check(value)");
    assert!(tasks[0]["prompt"].as_str().unwrap().ends_with("\n    # compare\n"));
    assert_eq!(small["definitions"], json!([]));
    // The line behind the file's last newline is counted in the record.
    let body =
        "        if not is_small(by):\n            raise ValueError(by)\n        return by * 2";
    assert_eq!(scale["ground_truth"], body);
    let place_of = |row: u32, code: u32, text: &str| json!({"path": "shapes/src/shapes/types.py", "line": row, "code_line": code, "text": text});
    assert_eq!(
        scale["definitions"],
        json!([
            place_of(11, 6, "def is_small(value):"),
            place_of(7, 4, "    def check(self, value):"),
            place_of(1, 1, "LIMIT = 3"),
        ])
    );
    assert_eq!(scale["requirement"], json!({"Functionality": "f", "Arguments": "a"}));
    place.run(&["validate", "--strict", "data.jsonl"]).done();
    place.run(&["validate", "--strict", "tasks.jsonl", "--repos-dir", "repos"]).done();
    // The gold dependencies are what the retrieval is measured by.
    let measured = [
        "eval", "--retrieval", "--repos-dir", "repos", "--tasks", "tasks.jsonl", "--ranker",
        "definitions", "--unit", "chunks", "--format", "jsonl",
    ];
    for stage in ["window", "vectorize", "search"] {
        let flags = ["--repos-dir", "repos", "--tasks", "tasks.jsonl", "--unit", "chunks"];
        place.run(&[&[stage], &flags[..], &["--ranker", "definitions"]].concat()).done();
    }
    let measured = place.run(&measured).done();
    assert!(measured.stdout.contains("definition_recall"), "{}", measured.stdout);
}

#[test]
fn records_of_another_version_are_named() {
    let place = place();
    let cases = [
        (json!([11, 11]), json!([19, 19]), "line 11 does not begin function is_small"),
        (json!([12, 12]), json!([10, 19]), "line 10 does not begin the body of is_small"),
        (json!([12, 12]), json!([19, 40]), "it has 19 lines, but the function ends at line 40"),
        (json!([40, 41]), json!([19, 19]), "it has 19 lines, but the function ends at line 41"),
        (json!([7, 7]), json!([9, 19]), "line 7 does not begin function is_small"),
        (json!([12, 12]), json!([13, 16]), "is_small ends at line 19, but its body at line 16"),
        (json!([12, 12]), json!([0, 19]), "field 'body_position' must be two lines"),
    ];
    let first = place.records("data.jsonl").remove(0);
    let records = cases.iter().map(|(signature, body, _)| {
        let mut record = first.clone();
        record["signature_position"] = signature.clone();
        record["body_position"] = body.clone();
        record
    });
    let mut records: Vec<Value> = records.collect();
    records.push(first.clone());
    place.write("data.jsonl", jsonl(&records));
    let run = place.run(&[&CONVERT[..], &["tasks.jsonl"]].concat()).partly();
    run.says(&cases.map(|(_, _, wanted)| wanted));
    assert_eq!(place.records("tasks.jsonl").len(), 1, "the others are not lost");
    // The records alone have no text.
    let without = ["convert", "data.jsonl", "--to", "repoeval", "-o", "t.jsonl"];
    place.run(&without).failed().says(&["the folder of repositories (--repos-dir) is needed"]);
    place
        .run(&["window", "--repos-dir", "repos", "--tasks", "data.jsonl"])
        .failed()
        .says(&["a function of DevEval or EvoCodeBench", "convert it to tasks"]);
}

#[cfg(target_os = "linux")]
#[test]
fn their_tests_judge_completions() {
    let place = place();
    place.run(&[&CONVERT[..], &["tasks.jsonl"]].concat()).done();
    let completions = [
        json!({"namespace": "shapes.types.is_small", "completion": "return value < 4\n", "idx": 0}),
        json!({"namespace": "shapes.use.Shape.scale", "completion": "    if by > 3:\n        return 9\n    return by * 2\n"}),
        json!({"namespace": "shapes.other", "completion": "pass"}),
    ];
    place.write("completion.jsonl", jsonl(&completions));
    let convert = [
        "convert",
        "completion.jsonl",
        "--to",
        "crosscodeeval-predictions",
        "-o",
        "predictions.jsonl",
    ];
    place.run(&convert).failed().says(&["the tasks file (--tasks) is needed"]);
    place
        .run(&[&convert[..], &["--tasks", "tasks.jsonl"]].concat())
        .partly()
        .says(&["task \"shapes.other\" is not in tasks.jsonl"]);
    let predictions = place.records("predictions.jsonl");
    let kept =
        json!({"task_id": "shapes.types.is_small", "pred": "    return value < 4\n", "idx": 0});
    assert_eq!(predictions[0], kept);
    let placed = "        if by > 3:\n            return 9\n        return by * 2\n";
    assert_eq!(predictions[1]["pred"], placed);
    let exec = [
        "eval", "--exec", "--repos-dir", "repos", "--tasks", "tasks.jsonl", "--predictions",
        "predictions.jsonl", "--per-task", "--format", "jsonl",
    ];
    let ran = place.run(&exec).done();
    let records = parse_jsonl(&ran.stdout);
    let statuses: Vec<&Value> =
        records.iter().filter_map(|record| record.get("statuses")).collect();
    assert_eq!(statuses, [&json!(["pass"]), &json!(["fail"])], "{}", ran.stdout);
    // A command that does not use the tests would run others.
    place
        .run(&[&exec[..], &["--test-cmd", "python3 -m unittest"]].concat())
        .failed()
        .says(&["tasks.jsonl names the tests of each task", "put {tests}"]);
    // Tests that are no names are refused, and a task without any runs all of its repository's.
    let tasks = place.records("tasks.jsonl");
    for (tests, is_right) in [(json!("tests"), false), (json!([1]), false), (json!([]), true)] {
        let mut tasks = tasks.clone();
        tasks.iter_mut().for_each(|task| task["metadata"]["tests"] = tests.clone());
        place.write("tasks.jsonl", jsonl(&tasks));
        let all = ["--test-cmd", "python3 -m unittest discover"];
        let ran = place.run(&[&exec[..], &all].concat());
        if is_right {
            drop(ran.done())
        } else {
            drop(ran.failed().says(&["tasks.jsonl:1", "field 'metadata.tests"]))
        }
    }
}
