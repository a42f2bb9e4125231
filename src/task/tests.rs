use super::*;

fn read(text: &str) -> Result<Reading> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    std::fs::write(&path, text).unwrap();
    TaskSet::read(&path)
}

const GOOD: &str = r#"{"prompt": "a\n", "metadata": {"task_id": "o--r/0", "ground_truth": "x = 1", "fpath_tuple": ["o--r", "a.py"], "context_start_lineno": 0, "lineno": 1, "extra": [1]}}"#;

#[test]
fn function_files_and_unknown_fields() {
    let mut reading = read(GOOD).unwrap();
    reading.set.name_folders(&["o--r".into(), "o_r".into()]);
    assert_eq!(
        reading.set.tasks[0].path, "o--r/a.py",
        "the folder is there"
    );
    reading.set.name_folders(&["o_r".into()]);
    let task = &reading.set.tasks[0];
    assert_eq!(
        (task.repository.as_str(), task.path.as_str(), task.line_no),
        ("o_r", "o_r/a.py", 1)
    );
    assert_eq!(task.to_record()["metadata"]["extra"], json!([1]));
}

#[test]
fn each_bad_record_is_named_and_keeps_its_row() {
    let bad = |from: &str, to: &str| GOOD.replace(from, to);
    let text = [
        GOOD.to_owned(),
        bad(r#""lineno": 1"#, r#""lineno": "1""#),
        bad(r#""lineno": 1"#, r#""lineno": -1"#),
        bad(
            r#"["o--r", "a.py"]"#,
            r#"["o--r", "..", "..", "etc", "passwd"]"#,
        ),
        bad(r#"["o--r", "a.py"]"#, r#"["/etc", "a.py"]"#),
        bad(r#"["o--r", "a.py"]"#, r#"["o--r"]"#),
        bad(
            r#""context_start_lineno": 0"#,
            r#""context_start_lineno": 2"#,
        ),
        bad(r#""prompt": "a\n", "#, ""),
        "{".to_owned(),
        GOOD.to_owned(),
    ]
    .join("\n");
    let reading = read(&text).unwrap();
    assert_eq!(
        reading.set.tasks.iter().map(|t| t.row).collect::<Vec<_>>(),
        [0, 9]
    );
    assert_eq!(reading.repeated_ids, 1);
    let wanted = [
        "t.jsonl:2: field 'metadata.lineno' must be a whole number, not a string",
        "t.jsonl:3: field 'metadata.lineno' must be a whole number from 0, not -1",
        "t.jsonl:4: field 'metadata.fpath_tuple' leads out of the repository: \"..\"",
        "t.jsonl:5: field 'metadata.fpath_tuple' leads out of the repository: \"/etc\"",
        "t.jsonl:6: field 'metadata.fpath_tuple' must be [repository, folder, …, file]",
        "t.jsonl:7: field 'metadata.context_start_lineno' (2) lies behind the hole's line (1)",
        "t.jsonl:8: field 'prompt' is missing",
        "t.jsonl:9: not JSON: EOF while parsing an object (column 1)",
    ];
    assert_eq!(reading.problems.len(), wanted.len());
    for (problem, wanted) in reading.problems.iter().zip(wanted) {
        assert!(
            problem.to_string().ends_with(wanted),
            "{problem} / {wanted}"
        );
    }
}
