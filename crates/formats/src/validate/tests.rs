use serde_json::json;

use super::*;

fn check(lines: &[String], repos_dir: Option<&Path>) -> Validation {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let mut report = validate(&path, repos_dir).unwrap();
    report.path = "x.jsonl".into();
    report
}

/// Returns every finding as `line severity reason`, in order.
fn found(report: &Validation) -> Vec<String> {
    let findings = report.findings.iter();
    findings.map(|f| format!("{} {} {}", f.line, f.severity, f.reason)).collect()
}

fn record(metadata: Value) -> Value {
    let mut all = json!({"task_id": "r/0", "ground_truth": "b", "fpath_tuple": ["r", "a.py"], "context_start_lineno": 0, "line_no": 1});
    for (name, value) in metadata.as_object().unwrap() {
        all[name] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    json!({"prompt": "a\n", "metadata": all})
}

#[test]
fn labels_of_another_scale_than_the_files_are_found() {
    let label = |es: [f64; 2], em: f64| {
        json!({
            "prompt": "p", "groundtruth": "g", "right_context": "r", "crossfile_context": "# c",
            "metadata": {"task_id": "r/a.py/0_1", "filename": "r/a.py", "start_i": 0, "end_i": 1},
            "es_infile": es[0], "es_rg1": es[1], "em_infile": em, "em_rg1": em,
        })
        .to_string()
    };
    let scales = |lines: &[String]| -> Vec<String> {
        found(&check(lines, None)).into_iter().filter(|one| one.contains("must be")).collect()
    };
    let share = label([0.2, 0.4], 1.0);
    assert!(scales(&[share.clone(), label([1.0, 0.0], 0.0)]).is_empty());
    assert!(scales(&[label([20.0, 40.0], 0.0), label([0.5, 90.0], 0.0)]).is_empty());
    assert_eq!(
        scales(&[share.clone(), label([20.0, 0.4], 0.0), share, label([0.1, 0.2], 2.0)]),
        [
            "2 error field 'es_infile' must be between 0 and 1, like the other labels in this file, not 20",
            "4 error field 'em_infile' must be between 0 and 1, like the other labels in this file, not 2",
        ]
    );
}

#[test]
fn every_problem_of_a_task_file_has_its_line() {
    let lines = [
        format!("\u{feff}{}", record(json!({}))),
        record(json!({"line_no": null, "lineno": 1, "new": 1})).to_string(),
        "{".to_owned(),
        "[]".to_owned(),
        record(json!({"task_id": 3, "ground_truth": null, "line_no": -1, "fpath_tuple": ["r", 2]})).to_string(),
        record(json!({"task_id": "o--r/1", "fpath_tuple": ["..", "a.py"]})).to_string(),
        String::new(),
        record(json!({"task_id": "x", "context_start_lineno": 4})).to_string(),
        record(json!({"task_id": "y", "ground_truth": " \n", "fpath_tuple": ["o--r", "a.py"], "new": 2})).to_string(),
        json!({"prompt": "", "metadata": record(json!({"task_id": "z", "line_no": 0}))["metadata"]}).to_string(),
        record(json!({"task_id": "w", "line_no": 3})).to_string(),
        json!({"task_id": "a", "pred": "x"}).to_string(),
        json!({"colour": "red"}).to_string(),
    ];
    let report = check(&lines, None);
    let unknown = format!("13 error {}", RecordKind::unknown());
    assert_eq!(
        found(&report),
        [
            "1 note the file begins with a byte-order mark, which other programs reject",
            "2 note its id equals that of line 1; tasks are identified by their row",
            "2 note unknown field 'metadata.new' of repoeval; it is kept (first here, in 2 records)",
            "2 note its line is 'metadata.lineno', where other files have 'line_no'",
            "3 error not JSON: EOF while parsing an object (column 1)",
            "4 error a JSON object is expected, not a list",
            "5 error field 'metadata.task_id' must be a string, not a number",
            "5 error field 'metadata.ground_truth' is missing",
            "5 error field 'metadata.fpath_tuple[1]' must be a string, not a number",
            "5 error field 'metadata.line_no' must be a whole number from 0, not -1",
            "6 error field 'metadata.fpath_tuple' leads out of the repository: \"..\"",
            "8 error field 'metadata.context_start_lineno' (4) is after the hole's line (1)",
            "9 error its ground truth is empty: there is nothing to predict",
            "10 note no left context: its prompt is empty",
            "11 note its prompt ends 1 line, but from line 0 to 3 there are 3",
            "12 error mixed kinds: the file begins with repoeval, and from this line on there is 1 record of crosscodeeval-predictions",
            unknown.as_str(),
        ]
    );
    assert_eq!(
        (report.records, report.count(Severity::Error), report.count(Severity::Note)),
        (12, 11, 6)
    );
    assert_eq!(report.kind(), "repoeval+crosscodeeval-predictions");
    assert_eq!(
        report.message(&report.findings[10]).to_string(),
        "x.jsonl:6: task o--r/1: field 'metadata.fpath_tuple' leads out of the repository: \"..\""
    );
    let json = report.to_record();
    assert_eq!(
        json["findings"][0],
        json!({"line": 1, "task_id": null, "severity": "note", "message": "the file begins with a byte-order mark, which other programs reject"})
    );
    assert_eq!((&json["errors"], &json["records"]), (&json!(11), &json!(12)));
}

/// Records, one per line, each followed by its findings.
const RECORDS: &str = r#"
{"custom_id": "a", "method": "POST", "url": "u", "body": {"model": "m"}}
    error field 'body.prompt' or 'body.messages' is missing
{"custom_id": "a", "response": {"status_code": 500, "body": {}}, "error": null}
    error the endpoint answered "a" with an error: status 500, {}
{"repository": "r", "filepath": "r/../a", "content": [{"content": ""}]}
    error field 'filepath' leads out of the repository: ".."
{"repository": 1, "filepath": "r/a", "content": [{"content": 2}]}
    error field 'repository' must be a string, not a number
    error field 'content[0].content' must be a string, not a number
{"repo_name": "o/r", "files": [{"filepath": "a", "content": ""}, {"filepath": "a", "content": "", "metadata": {"size": "x"}}]}
    error field 'files[1].metadata.size' must be a whole number, not a string
{"repo_name": "o/r", "files": [{"filepath": "a", "content": "", "x": 1}, {"filepath": "a", "content": ""}]}
    error field 'files[1].filepath' is repeated: "a"
    note unknown field 'files[].x' of raw; it is kept
{"task_id": "a", "pred": ["", "x"]}
    note 1 of its 2 samples are empty
{"task_id": "a", "pred": 1}
    error field 'pred' must be a string or a list of strings, not a number
{"metadata": {"task_id": "a"}, "choices": []}
    error field 'choices' is empty: no sample
{"metadata": {}, "choices": [{"text": "x"}]}
    error field 'task_id' or 'metadata.task_id' is missing
{"context": "x", "metadata": [{"fpath_tuple": ["r"], "line_no": 0}]}
    error field 'metadata[0].start_line_no' is missing
    error field 'metadata[0].end_line_no' is missing
    error field 'metadata[0].window_size' is missing
    error field 'metadata[0].repo' is missing
    error field 'metadata[0].slice_size' is missing
{"metadata": {"task_id": "a", "filename": "r/f.py", "start_i": 3, "end_i": 3}, "prompt": "", "groundtruth": "x", "right_context": "r", "crossfile_context": ""}
    error field 'metadata.end_i' is not after 'start_i'
{"metadata": {"task_id": "a", "filename": "f", "start_i": 3, "end_i": 4}, "prompt": "p", "groundtruth": "x", "right_context": "r", "crossfile_context": ""}
    error field 'metadata.filename' must be repository/folder/…/file
{"metadata": {"task_id": "a", "filename": "r/f.py", "start_i": 3, "end_i": 4}, "prompt": "", "groundtruth": "x", "right_context": "r", "crossfile_context": ""}
    note no left context: its prompt is empty
    note no cross-file context: 'crossfile_context' is empty
{"prompt": "p", "groundtruth": "g", "right_context": "", "metadata": {"task_id": "a", "repository": "r", "file": "x.py", "context_start_lineno": 0, "groundtruth_start_lineno": 0}, "crossfile_context": {}}
    note its 'crossfile_context' is empty
    note no right context: 'right_context' is empty
{"prompt": "p", "groundtruth": "g", "right_context": "", "metadata": {"task_id": "a"}, "crossfile_context": {"list": [{"filename": 1}]}}
    error field 'crossfile_context.list[0].retrieved_chunk' is missing
    error field 'crossfile_context.list[0].filename' must be a string, not a number
{"prompt": "p", "groundtruth": "g", "right_context": "r", "full_left_context": "q", "full_right_context": "x", "metadata": {"task_id": "a", "filepath": "r/a.py"}}
    note 'full_left_context' does not end with 'prompt'
    note 'full_right_context' does not begin with 'right_context'
{"_id": "1", "title": "t", "text": 3}
    error field 'text' must be a string, not a number
{"task_id": "a", "em": 1, "es": 0.5}
{"pkg": "p", "fpath": "p/a.py", "input": "x", "gt": "y"}
"#;

#[test]
fn every_other_kind_is_checked_too() {
    for case in RECORDS.split("\n{").skip(1) {
        let mut lines = case.lines();
        let record = format!("{{{}", lines.next().unwrap());
        let report = check(std::slice::from_ref(&record), None);
        let wanted: Vec<String> = lines.map(|line| format!("1 {}", line.trim())).collect();
        assert_eq!(found(&report), wanted, "{record}");
    }
    for (twice, wanted) in [
        (
            r#"{"custom_id": "a", "method": "POST", "url": "u", "body": {"model": "m", "prompt": ""}}"#,
            "2 error its 'custom_id' equals that of line 1",
        ),
        (r#"{"task_id": "a", "pred": "x"}"#, "2 note its 'task_id' equals that of line 1"),
    ] {
        assert_eq!(found(&check(&[twice.to_owned(), twice.to_owned()], None)), [wanted]);
    }
    assert_eq!(found(&check(&[], None)), ["1 error the file contains no record"]);
}

#[test]
fn beside_the_repositories_other_texts_are_found() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    std::fs::write(dir.path().join("r/a.py"), "a\nb\nc\n").unwrap();
    let with_prompt = |prompt: &str, metadata: Value| {
        let mut record = record(metadata);
        record["prompt"] = prompt.into();
        record.to_string()
    };
    let lines = [
        with_prompt("a\n", json!({})),
        with_prompt("a\n", json!({"task_id": "1", "line_no": 9})),
        with_prompt("a\n", json!({"task_id": "2", "fpath_tuple": ["r", "gone.py"]})),
        with_prompt("a\n", json!({"task_id": "3", "ground_truth": "x"})),
        with_prompt("x\n", json!({"task_id": "4"})),
        with_prompt("x\na\n", json!({"task_id": "5"})),
    ];
    let report = check(&lines, Some(dir.path()));
    let found: Vec<String> =
        found(&report).into_iter().filter(|f| !f.contains("its prompt ends")).collect();
    assert_eq!(
        found[0],
        "2 error its hole is at line 9 (counted from 0) of r/a.py, which has 3 lines; is this the \
         repository version that the task was made from?"
    );
    assert!(
        found[1].starts_with("3 error ") && found[1].contains("gone.py: cannot be read: "),
        "{found:?}"
    );
    assert_eq!(
        found[2..],
        [
            "4 error r/a.py has different text in the hole (line 1, counted from 0); is this the \
             repository version that the task was made from?",
            "5 error r/a.py has different text before the hole (line 1, counted from 0); is this \
             the repository version that the task was made from?",
            "6 note 'prompt' differs from r/a.py",
        ]
    );
}

/// RepoEval's function-level files as they were released: `lineno`, prompts without the white space at their end, and one id
/// for all tasks of a repository. Line ends may differ in the checkout, and in the task's texts.
#[test]
fn function_level_files_have_one_note() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("o_r")).unwrap();
    let file = "def f(a):\n    \"\"\"Do.\"\"\"\n\n    b = a\n    return b\n\n\ndef g(a):\n    return f(a)\n";
    let write = |text: &str| std::fs::write(dir.path().join("o_r/a.py"), text).unwrap();
    let task = |prompt: &str, lineno: usize, target: &str| {
        json!({"prompt": prompt, "metadata": {"task_id": "o--r/idx", "ground_truth": target, "fpath_tuple": ["o_r", "a.py"],
            "context_start_lineno": 0, "lineno": lineno, "function_name": "f"}})
        .to_string()
    };
    let whole = "def f(a):\n    \"\"\"Do.\"\"\"\n\n    b = a\n    return b\n\n\ndef g(a):";
    let mut lines = vec![
        task("def f(a):\n    \"\"\"Do.\"\"\"", 3, "    b = a\n    return b"),
        task(whole, 8, "    return f(a)\n"),
        task(&whole.replace('\n', "\r\n"), 8, "    return f(a)\r\n"),
    ];
    let note = "its line is 'metadata.lineno', where other files have 'line_no'; all tasks of a \
                repository have the id NAME/idx; \
                prompts are stripped at their end, as in RepoEval's function-level files (first here, in 3 records)";
    for text in [file.to_owned(), file.replace('\n', "\r\n")] {
        write(&text);
        for repos_dir in [None, Some(dir.path())] {
            assert_eq!(found(&check(&lines, repos_dir)), [format!("1 note {note}")]);
        }
    }
    // Missing text that is not white space.
    lines[0] = task("def f(a):", 3, "    b = a\n    return b");
    lines[1] = task("def f(a):\n    \"\"\"Do.\"\"\"\n\n    b = a", 8, "    return f(a)");
    let report = check(&lines, Some(dir.path()));
    let errors = found(&report).into_iter().filter(|f| f.contains("error")).collect::<Vec<_>>();
    let reason = |line: usize| {
        format!(
            "o_r/a.py has different text before the hole, on its line (line {line}, counted from \
             0); is this the repository version that the task was made from?"
        )
    };
    assert_eq!(errors, [format!("1 error {}", reason(3)), format!("2 error {}", reason(8))]);
}

/// Our own files of tasks and repositories. A packages file does not follow links to folders. Repoformer's converter created
/// three tasks of blank lines, since it counts only `\n`, while the tasks' lines also end at form feeds.
#[test]
fn the_odd_repositorys_files_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("tests/fixtures");
    let dir = tempfile::tempdir().unwrap();
    let packages = folder.join("repoformer/edge_cases.packages.jsonl.gz");
    let outcome = crate::convert::to_folders(&packages, dir.path()).unwrap();
    assert_eq!((outcome.records, outcome.problems.len()), (42, 0));
    for (file, kind, records) in [
        ("repoformer/edge_cases.input.jsonl.gz", "repoformer", 191),
        ("repocoder/edge_cases.tasks.jsonl.gz", "repoeval", 198),
        ("repoformer/edge_cases.packages.jsonl.gz", "packages", 42),
    ] {
        let report = validate(&folder.join(file), Some(dir.path())).unwrap();
        assert_eq!((report.kind().as_str(), report.records), (kind, records));
        let errors: Vec<String> =
            found(&report).into_iter().filter(|f| f.contains(" error ")).collect();
        let (links, others): (Vec<_>, Vec<_>) =
            errors.iter().partition(|f| f.contains("linkdir/r.py: cannot be read"));
        assert_eq!(links.len(), if kind == "packages" { 0 } else { 5 }, "{links:?}");
        assert!(others.is_empty(), "{file}: {others:?}");
        // Repoformer's program creates such tasks.
        let blank = "note its ground truth is empty: there is nothing to predict";
        let wanted = if kind == "repoformer" { 3 } else { 0 };
        assert_eq!(found(&report).iter().filter(|f| f.ends_with(blank)).count(), wanted, "{file}");
    }
}

/// A record may have as many findings as elements, and each names the record's id.
#[test]
fn a_long_id_is_shortened_in_findings() {
    let id = "é".repeat(1000);
    let report = check(&[json!({"task_id": id, "pred": [0, 0]}).to_string()], None);
    let shortened = format!("{}…", "é".repeat(128));
    let ids: Vec<_> = report.findings.iter().map(|finding| finding.task_id.clone()).collect();
    assert_eq!(ids, [Some(shortened.clone()), Some(shortened)]);
}
