use std::path::{Path, PathBuf};

use repoformer_core::repository::corpus::Walk;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Format, Task, TaskSet};
use repoformer_models::batch::BatchSettings;
use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::message::Message;
use serde_json::{Value, json};

use super::*;

/// Returns a file with these records, one per line.
fn file(records: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

/// Returns the words of warnings.
fn words(warnings: &[Message]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

/// Returns the records that a conversion emits, and its outcome.
fn collected(
    convert: impl FnOnce(&mut Emit<'_>) -> Result<Conversion>,
) -> (Vec<Value>, Conversion) {
    let mut given = Vec::new();
    let outcome = convert(&mut |record| {
        given.push(record.clone());
        Ok(())
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.records, given.len());
    (given, outcome)
}

/// Returns the records that a conversion emits, and the reasons of its problems.
fn converted(
    records: &[Value],
    convert: impl FnOnce(&Path, &mut Emit<'_>) -> Result<Conversion>,
) -> (Vec<Value>, Vec<String>) {
    let (_dir, path) = file(records);
    let (given, outcome) = collected(|emit| convert(&path, emit));
    let reason = |problem: &Error| {
        let text = problem.to_string();
        text.split_once("jsonl:").map_or(text.clone(), |(_, reason)| reason.to_owned())
    };
    (given, outcome.problems.iter().map(reason).collect())
}

fn set() -> TaskSet {
    let task = |(row, (id, line_no)): (usize, (&str, usize))| {
        let task = Task::new(id.into(), "r/a.py", 0, line_no, "x", "p\n");
        Task { row, line: row + 1, ..task }
    };
    let tasks = [("a", 1), ("b", 2), ("i", 3), ("i", 3)].into_iter().enumerate().map(task);
    TaskSet::new("t.jsonl".into(), tasks.collect())
}

const REPO_CODER: RecordKind = RecordKind::RepoCoderPrediction;
const CROSS_CODE_EVAL: RecordKind = RecordKind::CrossCodeEvalPrediction;

#[test]
fn predictions_go_there_and_back_with_all_their_fields() {
    let records = [
        json!({"prompt": "p", "metadata": {"task_id": "a", "line_no": 1}, "choices": [{"text": "x"}]}),
        json!({"prompt": "", "metadata": {"task_id": "b"}, "choices": [{"text": "x"}, {"text": ""}], "mine": 1}),
        json!({"prompt": "p", "metadata": {"task_id": "a"}, "choices": [{"text": "x", "index": 0, "logprobs": null}]}),
    ];
    let (there, problems) =
        converted(&records, |path, emit| predictions(path, CROSS_CODE_EVAL, None, emit));
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        there[0],
        json!({"task_id": "a", "pred": "x", "prompt": "p", "metadata": {"task_id": "a", "line_no": 1}})
    );
    assert_eq!(there[1]["pred"], json!(["x", ""]));
    let (back, problems) =
        converted(&there, |path, emit| predictions(path, REPO_CODER, None, emit));
    assert_eq!((back, problems), (records.to_vec(), vec![]));
    // Records that are already of the target kind stay unchanged.
    let (same, _) = converted(&there, |path, emit| predictions(path, CROSS_CODE_EVAL, None, emit));
    assert_eq!(same, there);
}

#[test]
fn predictions_without_their_task_are_joined() {
    let alike = |pred: &str| json!({"metadata": {"task_id": "i", "fpath_tuple": ["r", "a.py"], "line_no": 3}, "pred": pred});
    let records = [
        json!({"task_id": "b", "pred": "B", "retrieval_prob": 0.5}),
        alike("1"),
        alike("2"),
        alike("3"),
        json!({"task_id": "z", "pred": ""}),
        json!({"pkg": "", "fpath": "r/a.py", "input": "", "gt": ""}),
    ];
    let tasks = set();
    let (given, problems) =
        converted(&records, |path, emit| predictions(path, REPO_CODER, Some(&tasks), emit));
    assert_eq!(
        given[0],
        json!({
            "prompt": "p\n", "choices": [{"text": "B"}], "retrieval_prob": 0.5,
            "metadata": {"task_id": "b", "ground_truth": "x", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 2, "row": 1},
        })
    );
    assert_eq!(
        (&given[1]["metadata"]["row"], &given[2]["metadata"]["row"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(
        problems,
        [
            "4: 2 tasks match this prediction, and as many predictions precede it; add metadata.row",
            "5: task \"z\" is not in t.jsonl",
            "6: this is a task of ReccEval (it has 'fpath'), which cannot become repocoder-predictions",
        ]
    );
    let (given, problems) =
        converted(&records[..1], |path, emit| predictions(path, REPO_CODER, None, emit));
    assert!(given.is_empty() && problems[0].ends_with("the tasks file is needed"), "{problems:?}");
}

#[test]
fn completions_get_the_indent_of_the_first_task_of_their_name() {
    let task = |(row, (id, indent)): (usize, (&str, u64))| {
        let mut task = Task::new(id.into(), "r/a.py", 0, 1, "x", "p\n");
        task.metadata.insert("indent", indent.into());
        Task { row, line: row + 1, ..task }
    };
    let tasks = [("a", 4), ("b", 200), ("a", 8), ("c", 201)].into_iter().enumerate().map(task);
    let tasks = TaskSet::new("t.jsonl".into(), tasks.collect());
    let names = ["b", "a", "z", "c", "a"];
    let records = names.map(|name| json!({"namespace": name, "completion": "x\n\n y"}));
    let (given, problems) =
        converted(&records, |path, emit| predictions(path, CROSS_CODE_EVAL, Some(&tasks), emit));
    let placed = |name: &str, indent: usize| {
        let blanks = " ".repeat(indent);
        json!({"task_id": name, "pred": format!("{blanks}x\n\n{blanks} y")})
    };
    assert_eq!(given, [placed("b", 200), placed("a", 4), placed("a", 4)]);
    assert_eq!(
        problems,
        ["3: task \"z\" is not in t.jsonl", "4: task \"c\" needs 'metadata.indent', from 0 to 200",]
    );
}

#[test]
fn prompts_become_requests_and_answers_in_any_order_predictions() {
    let prompts = [
        json!({"prompt": "P0", "metadata": {"task_id": "a", "row": 0, "top_k_context": []}}),
        json!({"prompt": "P1", "metadata": {"task_id": "b", "row": 1, "sample": 0, "top_k_context": []}}),
        json!({"prompt": "P1'", "metadata": {"task_id": "b", "row": 1, "sample": 1, "top_k_context": []}}),
        json!({"prompt": "P0", "metadata": {"task_id": "a", "row": 0, "top_k_context": []}}),
        json!({"prompt": "L", "groundtruth": "g", "metadata": {"task_id": "long"}}),
        json!({"prompt": 1, "metadata": {"task_id": "a", "query_window": {}}}),
        // Without fragments: tasks of CrossCodeEval and an instance of training data.
        json!({"prompt": "C", "groundtruth": "g", "metadata": {"task_id": "c", "repository": "r", "file": "a.py", "row": 5, "mode": "none", "stop": ["<eof>"]}}),
        json!({"prompt": "I", "groundtruth": "g", "metadata": {"task_id": "d", "filename": "r/a.py", "start_i": 0, "row": 7, "mode": "given", "stop": []}}),
    ];
    let sampling = BatchSettings {
        model: "m".into(),
        max_tokens: 9,
        temperature: 0.5,
        stop: vec!["\n".into()],
    };
    let (asked, problems) = converted(&prompts, |path, emit| requests(path, &sampling, emit));
    let ids: Vec<&str> =
        asked.iter().map(|request| request["custom_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["row-0", "row-1", "row-1-sample-1", "row-4", "row-5", "row-7"]);
    let own = BatchSettings { stop: vec![], ..sampling.clone() };
    let (own, _) = converted(&prompts, |path, emit| requests(path, &own, emit));
    assert_eq!(own[4]["body"]["stop"], json!(["<eof>"]));
    assert_eq!(
        asked[2]["body"],
        json!({"model": "m", "prompt": "P1'", "max_tokens": 9, "temperature": 0.5, "stop": ["\n"]})
    );
    assert_eq!(
        problems,
        [
            "4: an earlier prompt has the same custom_id \"row-0\", because both have the same \
             'metadata.row'",
            "6: field 'prompt' must be a string, not a number",
        ]
    );

    let answer = |id: &str, text: &str| json!({"id": "x", "custom_id": id, "response": {"status_code": 200, "body": {"choices": [{"text": text}]}}, "error": null});
    let answers = [
        answer("row-1-sample-1", "B1"),
        answer("row-2", "I"),
        answer("row-1", "B0"),
        answer("a", "A"),
        answer("row-1", "again"),
        answer("i", "?"),
        answer("row-9", "?"),
        json!({"custom_id": "row-3", "response": {"status_code": 500, "body": {}}, "error": null}),
    ];
    let tasks = set();
    let (given, problems) =
        converted(&answers, |path, emit| predictions(path, CROSS_CODE_EVAL, Some(&tasks), emit));
    let preds: Vec<&Value> = given.iter().map(|record| &record["pred"]).collect();
    assert_eq!(preds, [&json!("A"), &json!(["B0", "B1"]), &json!("I")]);
    assert_eq!(
        problems,
        [
            "5: custom_id \"row-1\" was answered before",
            "6: 2 tasks have the id \"i\"",
            "7: custom_id \"row-9\" belongs to no task in t.jsonl",
            "8: the endpoint answered \"row-3\" with an error: status 500, {}",
            "4: task i: it has no answer",
        ]
    );
    let (given, _) =
        converted(&answers, |path, emit| predictions(path, REPO_CODER, Some(&tasks), emit));
    assert_eq!(given[1]["choices"], json!([{"text": "B0"}, {"text": "B1"}]));
}

#[test]
fn repositories_go_into_folders_and_back() {
    let package = |repository: &str, path: &str, text: &str| json!({"repository": format!("u/{repository}"), "filepath": path, "content": [{"content": text}]});
    let packages = [
        package("r", "r/a.py", "import b\r\n"),
        package("s", "s/x.py", ""),
        package("r", "r/d/b.py", "def f(): pass\n"),
        package("r", "r/../../b.py", "bad"),
        package("r", "r/a.py", "twice"),
    ];
    let (dir, path) = file(&packages);
    let repos = dir.path().join("repos");
    let outcome = to_folders(&path, &repos).unwrap();
    assert_eq!((outcome.records, outcome.problems.len()), (3, 2));
    assert_eq!(std::fs::read(repos.join("r/a.py")).unwrap(), b"import b\r\n");
    assert!(!dir.path().join("b.py").exists());
    let names = ["r".to_owned(), "s".to_owned(), "gone".to_owned()];
    let (raw, outcome) = collected(|emit| {
        from_folders(&repos, &names, Language::Python, Walk::Glob, RecordKind::RawRepository, emit)
    });
    assert_eq!((raw.len(), outcome.problems.len()), (2, 1));
    assert_eq!(raw[0]["files"][0]["metadata"]["local_imports"], json!(["b"]));
    // Raw → packages → raw, and raw → raw.
    let (there, _) = converted(&raw, |path, emit| records(path, RecordKind::Package, emit));
    let (own, _) = collected(|emit| {
        from_folders(&repos, &names[..2], Language::Python, Walk::Glob, RecordKind::Package, emit)
    });
    assert_eq!(there, own);
    for from in [&there, &raw] {
        let (back, _) =
            converted(from, |path, emit| records(path, RecordKind::RawRepository, emit));
        assert_eq!(back, raw);
    }
}

#[test]
fn what_packages_say_of_their_repository_comes_back() {
    let package = |folder: &str, repository: &str| {
        json!({
            "source": "gitlab", "url": "https://x/y", "license": "MIT", "patent": "NO_PATENT_INFO",
            "repository": repository, "filepath": format!("{folder}/a.py"),
            "content": [{"type": "code", "lang": "python", "content": "x"}],
        })
    };
    let packages = [package("r", "r"), package("o_r", "o/r"), package("s", "https://x/s")];
    let convert = |from: &[Value], to| {
        let (_dir, path) = file(from);
        collected(|emit| records(&path, to, emit))
    };
    let (raw, outcome) = convert(&packages, RecordKind::RawRepository);
    assert_eq!(words(&outcome.warnings), [""; 0]);
    assert_eq!(raw[1]["repo_name"], "o/r");
    assert_eq!(convert(&raw, RecordKind::Package).0, packages);
    let mut more = [packages[0].clone()];
    more[0]["mine"] = 1.into();
    more[0]["content"] = json!([{"content": "x"}, {"content": "y"}]);
    let (_, outcome) = convert(&more, RecordKind::RawRepository);
    let of = |name, to| format!("'{name}' of 1 record is dropped: {to} has no such field");
    assert_eq!(words(&outcome.warnings), [of("content[1]", "raw"), of("mine", "raw")]);
    let mut more = [raw[0].clone()];
    (more[0]["stars_count"], more[0]["files"][0]["metadata"]["mine"]) = (3.into(), 4.into());
    let (_, outcome) = convert(&more, RecordKind::Package);
    let names = ["files[].metadata.mine", "stars_count"];
    assert_eq!(words(&outcome.warnings), names.map(|name| of(name, "packages")));
}

#[test]
fn raw_repositories_do_not_share_a_folder() {
    let raw =
        |name: &str| json!({"repo_name": name, "files": [{"filepath": "m.py", "content": name}]});
    let both = [raw("a/b_c"), raw("a_b/c")];
    let wanted = "2: its folder 'a_b_c' already belongs to repository 'a/b_c'; rename one of them";
    let (given, problems) = converted(&both, |path, emit| records(path, RecordKind::Package, emit));
    assert_eq!((given.len(), problems), (1, vec![wanted.to_owned()]));
    let (dir, path) = file(&both);
    let outcome = to_folders(&path, &dir.path().join("repos")).unwrap();
    assert_eq!(outcome.records, 1);
    assert!(outcome.problems[0].to_string().ends_with(wanted), "{:?}", outcome.problems);
}

#[test]
fn tasks_take_what_is_missing_from_the_repositories() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("o_r")).unwrap();
    std::fs::write(dir.path().join("o_r/a.py"), "a = 1\r\n  b = 2\r\nc = 3\r\n").unwrap();
    let task = |path: &str, line_no: usize| {
        Task::new("i".into(), path, 0, line_no, "  b = 2", "a = 1\n").to_record()
    };
    let input = [
        task("o--r/a.py", 1),
        task("o_r/gone.py", 1),
        task("o_r/a.py", 2),
        json!({"pred": "", "task_id": ""}),
    ];
    let (given, problems) =
        converted(&input, |path, emit| tasks(path, Format::Repoformer, Some(dir.path()), emit));
    assert_eq!(given.len(), 1);
    assert_eq!(given[0]["right_context"], "\nc = 3\n");
    assert_eq!(given[0]["metadata"]["filepath"], "o_r/a.py");
    assert!(problems[0].contains("gone.py: cannot be read"), "{problems:?}");
    assert!(problems[1].starts_with("3: task i: o_r/a.py has different text"), "{problems:?}");
    assert!(problems[2].starts_with("4: this is a prediction"), "{problems:?}");
    for target in TargetFormat::ALL {
        assert_eq!(target.to_string().parse::<TargetFormat>().ok(), Some(target));
    }
}

#[test]
fn what_a_format_has_no_place_for_is_told_of() {
    let record = json!({
        "prompt": "a", "groundtruth": "b", "right_context": "", "metadata": {"task_id": "i", "repository": "r", "file": "a.py", "context_start_lineno": 3, "groundtruth_start_lineno": 3},
        "crossfile_context": {"text": "# x", "list": [{"retrieved_chunk": "x", "filename": "y"}]},
    });
    let (_dir, path) = file(&[record]);
    let warnings = |to| {
        let found = tasks(&path, to, None, &mut |_| Ok(())).unwrap();
        words(&found.warnings)
    };
    assert_eq!(
        warnings(Format::RepoEval),
        [
            "'crossfile_context' of 1 task is dropped: repoeval has no such field",
            "'right_context' of 1 task is dropped: repoeval has no such field",
        ]
    );
    assert_eq!(
        warnings(Format::Repoformer),
        [
            "'crossfile_context.list' of 1 task is dropped: repoformer has no such field",
            "'full_left_context' of 1 task is unknown and not written; a folder of repositories would supply it",
            "'full_right_context' of 1 task is unknown and not written; a folder of repositories would supply it",
        ]
    );
    assert_eq!(warnings(Format::CrossCodeEval), [""; 0]);
    let dropped = |name| {
        format!("'metadata.{name}' of 1 task is dropped: crosscodelongeval has no such field")
    };
    let of_place = ["context_start_lineno", "file", "groundtruth_start_lineno", "repository"];
    assert_eq!(warnings(Format::CrossCodeLongEval), of_place.map(dropped));
    let record = json!({
        "prompt": "a", "groundtruth": "b", "right_context": "", "full_left_context": "a", "full_right_context": "",
        "metadata": {"task_id": "i", "filepath": "r/a.py", "repository": "o/r", "url": "u"},
    });
    let (_dir, path) = file(&[record]);
    let warnings = tasks(&path, Format::CrossCodeEval, None, &mut |_| Ok(())).unwrap().warnings;
    let wanted = "'metadata.repository' of 1 task is dropped: crosscodeeval has no such field";
    assert_eq!(words(&warnings), [wanted]);
}

/// If `emit` fails, nothing more is read.
#[test]
fn labels_are_written_as_they_were_read_until_the_taker_fails() {
    let label = json!({
        "metadata": {"task_id": "o/r/a.py/3_5", "filename": "o/r/a.py", "start_i": 3, "end_i": 5}, "prompt": "p",
        "groundtruth": "g", "right_context": "r", "crossfile_context": "# c", "es_infile": 0.5, "es_rg1": 1, "mine": null,
    });
    let (given, problems) = converted(&[label.clone(), json!({"x": 1})], labels);
    assert_eq!(given[0].to_string(), label.to_string());
    assert!(problems[0].starts_with("2: unknown kind of record; known: "), "{problems:?}");
    let (_dir, path) = file(&[label.clone(), label]);
    let mut taken = 0;
    let outcome = labels(&path, &mut |_| {
        taken += 1;
        Err(Error::record(Path::new("out"), 1, "full"))
    });
    assert_eq!((taken, outcome.unwrap_err().to_string()), (1, "out:1: full".to_owned()));
}
