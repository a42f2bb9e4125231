//! Records of RepoExec: tasks that bring their files of tests along.

use serde_json::{Value, json};

use crate::support::{Place, jsonl, parse_jsonl};

const CHECKS: &str = r#"LIMIT = 3


def is_text(value):
    return isinstance(value, str)
"#;

const CHANGE: &str = r#"from .checks import is_text
from .checks import *

SIGN = "-"


def keep(function):
    return function


@keep
def reverse(text: str) -> str:
    """
    Turns a text around.
    """
    # the guard
    if not is_text(text) or len(text) > LIMIT:
        raise ValueError(SIGN)

    return text[::-1]
"#;

/// Dependencies as the record shows them, and the function.
const CODE: &str = r#"from .checks import is_text

SIGN = "-"
LIMIT = 3

def is_text(value):
    return isinstance(value, str)

def unknown(value):
    return value

def reverse(text: str) -> str:
    return text[::-1]
"#;

const TEST: &str = r#"import unittest
from .checks import is_text
from texts.change import reverse


class Tests(unittest.TestCase):
    def test_it(self):
        self.assertEqual(reverse("abc"), "cba")
        self.assertTrue(is_text(reverse("a")))
        self.assertRaises(ValueError, reverse, "long")
"#;

fn record() -> Value {
    let start = CHANGE.find("def reverse").unwrap();
    json!({
        "problem_ids": 498, "project": "test-apps/words/src", "focal_function": &CHANGE[start..],
        "module": "texts.change", "code": CODE, "entry_point": "reverse", "test": TEST, "test_list": [],
    })
}

fn place(records: &[Value]) -> Place {
    let place = Place::empty();
    place.write("repos/words/src/texts/checks.py", CHECKS);
    place.write("repos/words/src/texts/change.py", CHANGE);
    place.write("repos/words/src/texts/__init__.py", "");
    place.write("data.jsonl", jsonl(records));
    place
}

const CONVERT: [&str; 8] =
    ["convert", "data.jsonl", "--to", "repoeval", "--repos-dir", "repos", "-o", "tasks.jsonl"];

#[test]
fn records_become_tasks_with_files_of_tests() {
    let place = place(&[record()]);
    place.run(&CONVERT).done().says(&["2 of 3 dependencies in other files", "1 record"]);
    let tasks = place.records("tasks.jsonl");
    let task = &tasks[0]["metadata"];
    assert_eq!(task["task_id"], "words/498");
    assert_eq!(task["fpath_tuple"], json!(["words", "src", "texts", "change.py"]));
    let body = "    # the guard\n    if not is_text(text) or len(text) > LIMIT:\n        raise ValueError(SIGN)\n\n    return text[::-1]";
    assert_eq!(task["ground_truth"], body);
    assert!(tasks[0]["prompt"].as_str().unwrap().ends_with("around.\n    \"\"\"\n"));
    let name = "src/texts/test_repoexec_498.py";
    assert_eq!(task["tests"], json!([name]));
    assert_eq!(task["test_files"], json!({ name: TEST }));
    // A constant by `import *`, a function by its name. What the file defines itself is left out, and what no file has is not found.
    let found: Vec<&Value> =
        task["definitions"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
    assert_eq!(found, ["LIMIT = 3", "def is_text(value):"]);
    place.run(&["validate", "--strict", "data.jsonl"]).done();
    place.run(&["validate", "--strict", "tasks.jsonl", "--repos-dir", "repos"]).done();
}

#[test]
fn records_that_do_not_fit_are_named() {
    let with = |name: &str, value: &str| {
        let mut record = record();
        record[name] = value.into();
        record
    };
    let records = [
        with("module", "texts.gone"),
        with("entry_point", "gone"),
        with("focal_function", "def reverse(text):\n    return 1\n"),
        record(),
    ];
    let place = place(&records);
    let wanted = [
        "texts/gone.py: cannot be read",
        "does this folder belong to the project?",
        "it has no function gone; is this the repository version",
        "function reverse has different text; is this the repository version",
    ];
    place.run(&CONVERT).partly().says(&wanted);
    assert_eq!(place.records("tasks.jsonl").len(), 1, "the others are not lost");
    place
        .run(&["window", "--repos-dir", "repos", "--tasks", "data.jsonl"])
        .failed()
        .says(&["a function of RepoExec", "convert it to tasks"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_files_of_tests_are_there_while_they_run() {
    let place = place(&[record()]);
    place.run(&CONVERT).done();
    let predictions = |text: &str| {
        place.write("predictions.jsonl", jsonl(&[json!({"task_id": "words/498", "pred": text})]));
    };
    let exec = || {
        let exec = [
            "eval",
            "--exec",
            "--repos-dir",
            "repos",
            "--tasks",
            "tasks.jsonl",
            "--predictions",
            "predictions.jsonl",
            "--per-task",
            "--format",
            "jsonl",
            "--test-cmd",
            "cd src && python3 -m unittest texts.test_repoexec_498 # {tests}",
        ];
        place.run(&exec)
    };
    let statuses = |text: &str| {
        let records = parse_jsonl(text);
        let found = records.iter().filter_map(|record| record.get("statuses").cloned());
        found.collect::<Vec<Value>>()
    };
    predictions(
        "    if len(text) > LIMIT:\n        raise ValueError\n    return ''.join(reversed(text))\n",
    );
    assert_eq!(statuses(&exec().done().stdout), [json!(["pass"])]);
    predictions("    return text\n");
    assert_eq!(statuses(&exec().done().stdout), [json!(["fail"])]);
    assert!(!place.path("repos/words/src/texts/test_repoexec_498.py").exists());
    // Other tests are another run.
    let tasks = place.records("tasks.jsonl");
    let name = "src/texts/test_repoexec_498.py";
    let with = |files: Value| {
        let mut tasks = tasks.clone();
        tasks[0]["metadata"]["test_files"] = files;
        place.write("tasks.jsonl", jsonl(&tasks));
    };
    with(json!({ name: TEST.replace("\"cba\"", "\"abc\"").replace("ValueError", "TypeError") }));
    exec().says(&["its reference text does not pass"]);
    // Other files than those of tests in the repository are refused.
    std::os::unix::fs::symlink(place.path(""), place.path("repos/words/out")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("repos/words/gone")).unwrap();
    for (files, wanted) in [
        (json!({"../a.py": ""}), "its path leads out of the repository"),
        (json!({"/a.py": ""}), "its path leads out of the repository"),
        (json!({"src//texts/change.py": ""}), "is the file with the hole"),
        (json!({"src/texts/change.py": ""}), "is the file with the hole"),
        (json!({"out/new/a.py": ""}), "a link that leads out of the repository"),
        (json!({"gone": ""}), "a link that leads nowhere"),
        (json!({ name: 1 }), "must be a string, not a number"),
        (json!([name]), "'metadata.test_files' must be an object, not a list"),
    ] {
        with(files);
        exec().says(&[wanted]);
    }
}
