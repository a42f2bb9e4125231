use std::path::Path;

use repoformer_store::error::Result;
use repoformer_store::jsonl;

use repoformer_text::lines::IndexedText;

use super::*;

fn read(text: &str) -> Result<TaskReading> {
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
    assert_eq!(reading.set.of_repository("o--r").count(), 1);
    assert_eq!(reading.set.tasks()[0].path, "o--r/a.py", "the folder is there");
    reading.set.name_folders(&["o_r".into()]);
    assert_eq!(reading.set.of_repository("o_r").count(), 1, "as its tasks are named now");
    assert_eq!(reading.set.of_repository("o--r").count(), 0);
    let task = &reading.set.tasks()[0];
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
        bad(r#""lineno": 1"#, r#""lineno": -1"#),
        bad(r#"["o--r", "a.py"]"#, r#"["o--r"]"#),
        bad(r#""context_start_lineno": 0"#, r#""context_start_lineno": 2"#),
        bad(r#""prompt": "a\n", "#, ""),
        GOOD.to_owned(),
    ]
    .join("\n");
    let reading = read(&text).unwrap();
    assert_eq!(reading.set.tasks().iter().map(|t| t.row).collect::<Vec<_>>(), [0, 5]);
    assert_eq!(reading.repeated_ids, 1);
    let wanted = [
        "t.jsonl:2: field 'metadata.lineno' must be a whole number from 0, not -1",
        "t.jsonl:3: field 'metadata.fpath_tuple' must be [repository, folder, …, file]",
        "t.jsonl:4: field 'metadata.context_start_lineno' (2) is after the hole's line (1)",
        "t.jsonl:5: field 'prompt' is missing",
    ];
    assert_eq!(reading.problems.len(), wanted.len());
    for (problem, wanted) in reading.problems.iter().zip(wanted) {
        assert!(problem.to_string().ends_with(wanted), "{problem} / {wanted}");
    }
}

fn task(record: Value) -> Result<Task> {
    let at = jsonl::RecordAddress { line: 3, row: 2 };
    Task::from_record(Path::new("t.jsonl"), at, object_of(record))
}

fn reason(record: Value) -> String {
    let text = task(record).unwrap_err().to_string();
    text.strip_prefix("t.jsonl:3: ").unwrap().to_owned()
}

fn repoformer() -> Value {
    json!({
        "prompt": "a = 1\n    ", "groundtruth": "b = 2", "right_context": "\nc = 3\n",
        "full_right_context": "\nc = 3\n", "full_left_context": "import x\na = 1\n    ",
        "metadata": {"task_id": "r/0", "filepath": "r/d/a.py", "repository": "https://h/r", "url": "https://h/r"},
        "crossfile_context": "# text", "ranking_latency": 0.5, "mine": {"kept": [1, null]},
    })
}

fn cross_code_eval() -> Value {
    json!({
        "prompt": "let a = ", "groundtruth": "b()", "right_context": ";\n",
        "metadata": {"task_id": "p/7", "repository": "o-r-1f", "file": "src/x.ts", "context_start_lineno": 4, "groundtruth_start_lineno": 4, "right_context_start_lineno": 5},
        "crossfile_context": {"text": "// t", "list": [{"retrieved_chunk": "c", "filename": "src/y.ts", "score": 0.25}, {"retrieved_chunk": "d", "filename": "z.ts", "score": null}]},
    })
}

/// Fields as named in `formats.md`; expectations written by hand.
#[test]
fn every_format_fills_the_same_fields_and_is_written_as_it_was_read() {
    let first = task(repoformer()).unwrap();
    assert_eq!((first.format, first.row, first.line), (Format::Repoformer, 2, 3));
    assert_eq!(
        (first.id.as_str(), first.repository.as_str(), first.path.as_str()),
        ("r/0", "r", "r/d/a.py")
    );
    assert_eq!(
        (first.context_start, first.line_no),
        (1, 2),
        "of three lines the last two are shown"
    );
    assert_eq!(first.cross_file.as_ref().unwrap().text, "# text");
    assert_eq!(first.right_context.as_deref(), Some("\nc = 3\n"));
    assert_eq!(first.to_record().to_string(), repoformer().to_string());

    let second = task(cross_code_eval()).unwrap();
    assert_eq!((second.repository.as_str(), second.path.as_str()), ("o-r-1f", "o-r-1f/src/x.ts"));
    assert_eq!((second.context_start, second.line_no), (4, 4));
    let fragments = &second.cross_file.as_ref().unwrap().fragments;
    assert_eq!((fragments[0].score, fragments[1].score), (Some(0.25), None));
    assert_eq!(fragments[0].path, "src/y.ts");
    assert_eq!(second.to_record().to_string(), cross_code_eval().to_string());

    let long = json!({"prompt": "p\n", "groundtruth": "g", "right_context": null, "metadata": {"task_id": 7, "x": 1}, "crossfile_context": ""});
    let third = task(long.clone()).unwrap();
    assert_eq!((third.format, third.id.as_str()), (Format::CrossCodeLongEval, "7"));
    assert_eq!((third.path.as_str(), third.line_no, third.right_context.as_deref()), ("", 0, None));
    assert_eq!(third.to_record(), long);
}

#[test]
fn read_only_formats_are_adapted() {
    let bench = json!({
        "repo_name": "o/r", "file_path": "src/A.java", "level": "2k",
        "context": [{"identifier": "B", "path": "src/B.java", "snippet": "class B {\n}"}],
        "import_statement": "import b.B;", "cropped_code": "class A {\n  B b;", "next_line": "  int x;",
        "all_code": "import b.B;\nclass A {\n  B b;\n  int x;\n}\n",
    });
    let read = task(bench.clone()).unwrap();
    assert_eq!((read.path.as_str(), read.id.as_str()), ("o_r/src/A.java", "o/r/2"));
    assert_eq!(read.prompt, "import b.B;\nclass A {\n  B b;\n");
    assert_eq!(read.full_left_context.as_deref(), Some("import b.B;\nclass A {\n  B b;\n"));
    assert_eq!(read.line_no, 3);
    let text = &read.cross_file.as_ref().unwrap().text;
    assert!(text.ends_with("// src/B.java\n// class B {\n// }\n\n"), "{text}");
    let record = read.to_record();
    assert_eq!(record["metadata"]["file"], "src/A.java");
    assert_eq!(record["level"], "2k");
    let again = task(record).unwrap();
    assert_eq!((again.format, &again.cross_file), (Format::CrossCodeEval, &read.cross_file));
    // The code occurs twice in the file; the hole is after the occurrence that the target follows.
    let mut twice = bench.clone();
    twice["all_code"] = json!("class A {\n  B b;\n  int x;\nclass A {\n  B b;\n}\n");
    assert_eq!(task(twice).unwrap().line_no, 2);
    assert!(reason(json!({"repo_name": "o/..", "file_path": "../x", "context": [], "cropped_code": "", "import_statement": "", "next_line": ""})).contains("leads out"));

    let recc = json!({"pkg": "a13e", "fpath": "a13e/a13e-0.0.1/a.py", "input": "import x\ny = ", "gt": "x.f()"});
    let read = task(recc).unwrap();
    assert_eq!(
        (read.path.as_str(), read.repository.as_str(), read.line_no),
        ("a13e/a13e-0.0.1/a.py", "a13e", 1)
    );
    assert_eq!((read.prompt.as_str(), read.ground_truth.as_str()), ("import x\ny = ", "x.f()"));
}

#[test]
fn empty_cross_file_contexts_stay_as_they_were_written() {
    for empty in [json!(""), json!({}), json!({"text": "", "list": []}), Value::Null] {
        let mut record = cross_code_eval();
        record["crossfile_context"] = empty.clone();
        let mut read = task(record.clone()).unwrap();
        assert_eq!(read.cross_file.is_none(), empty.is_null());
        assert!(read.cross_file.iter().all(CrossFile::is_empty));
        assert_eq!(read.to_record(), record);
        // An attached context replaces the one that was read.
        read.cross_file = Some(CrossFile { text: "// new".into(), fragments: Vec::new() });
        assert_eq!(read.to_record()["crossfile_context"], json!({"text": "// new", "list": []}));
    }
    let mut attached = task(serde_json::from_str(GOOD).unwrap()).unwrap();
    attached.cross_file = Some(CrossFile::default());
    assert_eq!(attached.to_record()["crossfile_context"], json!({"text": "", "list": []}));
}

/// Paths are read in the same way as by Python's `os.path.join` and the operating system.
#[test]
fn paths_are_normalised_and_records_keep_theirs() {
    let mut with_path = repoformer();
    with_path["metadata"]["filepath"] = json!("r/./a//b.py");
    let mut with_file = cross_code_eval();
    with_file["metadata"]["file"] = json!("./src//A.java");
    let mut with_names: Value = serde_json::from_str(GOOD).unwrap();
    with_names["metadata"]["fpath_tuple"] = json!(["r", "", "./a", "b/c.py"]);
    let repository = with_file["metadata"]["repository"].as_str().unwrap().to_owned();
    for (record, path) in [
        (with_path, "r/a/b.py"),
        (with_file, &*format!("{repository}/src/A.java")),
        (with_names, "r/a/b/c.py"),
    ] {
        let read = task(record.clone()).unwrap();
        assert_eq!(read.path, path);
        assert_eq!(read.to_record(), record);
    }
}

#[test]
fn what_is_wrong_is_named_by_its_field() {
    let with = |mut record: Value, field: &str, value: Value| {
        match field.strip_prefix("metadata.") {
            Some(field) => record["metadata"][field] = value,
            None => record[field] = value,
        }
        reason(record)
    };
    for (field, value, wanted) in [
        ("groundtruth", json!(1), "' must be a string, not a number"),
        ("full_left_context", json!([]), "' must be a string, not a list"),
        ("metadata.filepath", json!("r/../x"), "' leads out of the repository: \"..\""),
        (
            "metadata.filepath",
            json!("r\\x.py"),
            "' contains a backslash: \"r\\\\x.py\"; separate its folders with '/'",
        ),
        ("metadata.filepath", json!("a.py"), "' must be repository/folder/…/file"),
        ("crossfile_context", json!(1), "' must be a string or an object, not a number"),
        ("crossfile_context", json!({"text": 1}), ".text' must be a string, not a number"),
        ("crossfile_context", json!({"list": [3]}), ".list[0]' must be an object, not a number"),
        (
            "crossfile_context",
            json!({"text": "", "list": [{"filename": "a", "retrieved_chunk": 2}]}),
            ".list[0].retrieved_chunk' must be a string, not a number",
        ),
    ] {
        assert_eq!(with(repoformer(), field, value), format!("field '{field}{wanted}"));
    }
    assert_eq!(
        with(cross_code_eval(), "metadata.repository", json!("/etc")),
        "field 'metadata.file' leads out of the repository: \"/etc\""
    );
    assert!(reason(json!({"task_id": "a", "pred": "x"})).starts_with(
        "this is a prediction (it has 'pred'), not a task; use it as the predictions file"
    ));
    assert!(reason(json!({"prompt": "x"})).starts_with("field 'metadata' is missing"));
    assert!(reason(json!({"x": 1})).starts_with(
        "unknown kind of record; known: a task of RepoEval (it has 'metadata.fpath_tuple'); "
    ));
}

#[test]
fn mixed_files_are_read_record_by_record() {
    let text = [GOOD.to_owned(), cross_code_eval().to_string(), GOOD.to_owned()].join("\n");
    let reading = read(&text).unwrap();
    assert!(reading.problems.is_empty());
    assert_eq!(reading.formats, [(Format::RepoEval, 2), (Format::CrossCodeEval, 1)]);
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    let unknown = "swebench".parse::<Format>().unwrap_err().to_string();
    assert!(unknown.contains("repoformer, crosscodeeval"), "{unknown}");
}

#[test]
fn a_digest_sees_every_text() {
    let digest = |record: &Value| {
        let set = TaskSet::new("t".into(), vec![task(record.clone()).unwrap()]);
        set.digest()
    };
    let plain = cross_code_eval();
    for change in ["prompt", "groundtruth", "right_context", "new"] {
        let mut changed = plain.clone();
        changed[change] = json!("other");
        assert_ne!(digest(&plain), digest(&changed), "{change}");
    }
    let mut changed = plain.clone();
    changed["crossfile_context"]["list"][0]["retrieved_chunk"] = json!("other");
    assert_ne!(digest(&plain), digest(&changed));
}

const FILE: &str =
    "import x\nclass A:\n    def f(self):\n        return 1\n\n    def g(self):\n        pass\n";

/// Expectations by the rules of `convert.py`: the left context up to the indent, the hole without it, and 50 lines after it.
#[test]
fn repoeval_becomes_repoformer_as_its_converter_has_it() {
    let line = Task::new("r/0".into(), "r/a.py", 2, 3, "        return 1", "    def f(self):\n");
    let mut filled = line.clone();
    filled.fill(&IndexedText::new(FILE)).unwrap();
    let record = filled.to_format(Format::Repoformer).unwrap().record;
    assert_eq!(
        record,
        json!({
            "prompt": "import x\nclass A:\n    def f(self):\n        ", "groundtruth": "return 1",
            "right_context": "\n\n    def g(self):\n        pass\n", "full_right_context": "\n\n    def g(self):\n        pass\n",
            "full_left_context": "import x\nclass A:\n    def f(self):\n        ",
            "metadata": {"task_id": "r/0", "filepath": "r/a.py", "repository": "r", "url": "", "context_start_lineno": 2},
        })
    );
    let back = task(record).unwrap().to_format(Format::RepoEval).unwrap();
    assert_eq!(back.record, line.to_record());
    assert_eq!(back.left_out, ["right_context"], "the others say no more");
    let body = Task { ground_truth: "        return 1\n".into(), ..filled };
    assert_eq!(body.to_format(Format::Repoformer).unwrap().record["groundtruth"], "return 1");
    assert!(line.to_format(Format::ReccEval).unwrap_err().to_string().contains("not written"));
    let bare = json!({"prompt": "", "groundtruth": "x", "metadata": {"task_id": "a"}});
    let error = task(bare).unwrap().to_format(Format::Repoformer).unwrap_err();
    assert_eq!(
        error.to_string(),
        "'metadata.filepath' is missing: crosscodelongeval tasks do not name a file"
    );

    // 51 newlines: the rest of the line and 50 lines.
    let mut first = Task::new("r/1".into(), "r/a.py", 0, 0, "a = 1", "");
    first.fill(&IndexedText::new(format!("a = 1\n{}", "b\n".repeat(80)))).unwrap();
    let record = first.to_format(Format::Repoformer).unwrap().record;
    assert_eq!(record["right_context"].as_str().unwrap().matches('\n').count(), 50);
    assert_eq!(record["prompt"], "", "line 0 is a line like any other");
}

#[test]
fn code_before_a_hole_stays_in_the_prompt() {
    let read = task(cross_code_eval()).unwrap();
    let written = read.to_format(Format::RepoEval).unwrap();
    assert_eq!(written.record["prompt"], "let a = ");
    assert_eq!(written.record["metadata"]["ground_truth"], "b()");
    assert_eq!(written.record["metadata"]["fpath_tuple"], json!(["o-r-1f", "src", "x.ts"]));
    assert_eq!(written.left_out, ["right_context", "crossfile_context"]);
    let mut back = task(written.record).unwrap();
    assert_eq!(back.line_no, 4);
    back.right_context = read.right_context.clone();
    back.cross_file = read.cross_file.clone();
    assert_eq!(back.to_format(Format::CrossCodeEval).unwrap().record, cross_code_eval());
}

#[test]
fn a_hole_is_found_or_what_differs_is_named() {
    let at = |line_no: usize, target: &str, prompt: &str| {
        Task::new("r/0".into(), "r/a.py", 0, line_no, target, prompt)
            .hole("a = 1\n\u{c}\nb = 2\r\nc = 3")
    };
    assert_eq!(at(0, "a = 1", ""), Ok(Hole { start: 0, end: 5 }));
    assert_eq!(
        at(3, "b = 2\nc = 3", "a = 1\n\n\n"),
        Ok(Hole { start: 8, end: 20 }),
        "line ends may differ"
    );
    assert_eq!(at(3, "b = 2\n", "a = 1\n\n\n"), Ok(Hole { start: 8, end: 15 }));
    assert_eq!(at(4, "= 3", "b = 2\nc "), Ok(Hole { start: 17, end: 20 }));
    for stripped in ["a = 1", "a = 1\n\u{c}"] {
        assert_eq!(at(3, "b = 2\nc = 3", stripped), Ok(Hole { start: 8, end: 20 }), "{stripped:?}");
    }
    for (found, wanted) in [
        (
            at(5, "x", ""),
            "its hole is at line 5 (counted from 0) of r/a.py, which has 5 lines; is this",
        ),
        (at(3, "b", "x\n"), "r/a.py has different text before the hole (line 3"),
        (at(3, "b = 3", "a = 1\n"), "r/a.py has different text in the hole (line 3"),
        (at(3, "b = 2\nc", "a = 1\n"), "r/a.py has different text in the hole (line 3"),
        (at(3, "x", "a = 1\nc"), "r/a.py has different text before the hole, on its line"),
    ] {
        let reason = found.unwrap_err();
        assert!(reason.starts_with(wanted), "{reason}");
    }
}

#[test]
fn a_stripped_prompt_gets_its_blank_end_back() {
    let text = "def f():\n    \"\"\"Do.\"\"\"\n\n    return 1\n";
    let prompt = "def f():\n    \"\"\"Do.\"\"\"";
    let mut task = Task::new("r/0".into(), "r/a.py", 0, 3, "    return 1", prompt);
    task.fill(&IndexedText::new(text)).unwrap();
    assert_eq!(task.prompt, "def f():\n    \"\"\"Do.\"\"\"\n\n");
    assert_eq!(task.full_left_context.as_ref(), Some(&task.prompt));
    let record = task.to_format(Format::CrossCodeEval).unwrap().record;
    assert_eq!(
        (&record["prompt"], &record["groundtruth"]),
        (&json!(format!("{}    ", task.prompt)), &json!("return 1"))
    );
}

mod there_and_back {
    use proptest::prelude::*;

    use super::*;

    /// Returns a file, the first and last line of a hole in it, and the first line shown.
    fn holes() -> impl Strategy<Value = (Vec<String>, usize, usize, usize)> {
        let line = "( {0,4}|\t)[a-z=]{1,5}[ (]?[é#]?";
        prop::collection::vec(line, 2..12).prop_flat_map(|lines| {
            let n = lines.len();
            (Just(lines), 0..n, 1..3_usize, any::<prop::sample::Index>()).prop_map(
                |(lines, at, more, shown)| {
                    let end = (at + more).min(lines.len());
                    let shown = shown.index(at + 1);
                    (lines, at, end, shown)
                },
            )
        })
    }

    fn back_through(task_in: &Task, text: &str, format: Format) -> Value {
        let mut filled = task_in.clone();
        filled.fill(&IndexedText::new(text)).unwrap();
        let there = filled.to_format(format).unwrap().record;
        let mut read = super::task(there).unwrap();
        assert_eq!(read.format, format);
        read.fill(&IndexedText::new(text)).unwrap();
        read.to_format(task_in.format).unwrap().record
    }

    proptest! {
        #[test]
        fn repoeval_and_those_that_name_a_file((lines, at, end, shown) in holes(), newline: bool, hub: bool, extra: u8) {
            let text = lines.join("\n") + "\n";
            let mut target = lines[at..end].join("\n");
            if newline {
                target.push('\n');
            }
            let prompt: String = lines[shown..at].iter().map(|line| format!("{line}\n")).collect();
            let mut task = Task::new("r/0".into(), "r/d/a.py", shown, at, &target, &prompt);
            if hub {
                let line_no = task.metadata.remove("line_no").unwrap();
                task.metadata.insert("lineno", line_no);
            }
            task.metadata.insert("more", extra.into());
            task.extra.insert("mine", extra.into());
            for format in [Format::Repoformer, Format::CrossCodeEval] {
                prop_assert_eq!(back_through(&task, &text, format), task.to_record(), "{}", format);
            }
        }

        #[test]
        fn repoformer_and_crosscodeeval((lines, at, end, shown) in holes(), column in 0..4_usize, url: bool, extra: u8) {
            let text = lines.join("\n") + "\n";
            let start: usize = lines[..at].iter().map(|line| line.len() + 1).sum();
            let column = lines[at].char_indices().map(|(i, _)| i).nth(column).unwrap_or(0);
            let stop = start + lines[at..end].join("\n").len();
            let start = start + column;
            prop_assume!(!text[start..stop].trim().is_empty());
            let url = if url { "https://h/r" } else { "" };
            let repository = if url.is_empty() { "r" } else { url };
            let record = json!({
                "prompt": text[..start], "groundtruth": text[start..stop], "right_context": text[stop..],
                "full_right_context": text[stop..], "full_left_context": text[..start],
                "metadata": {"task_id": "r/0", "filepath": "r/a.py", "repository": repository, "url": url, "more": extra},
                "crossfile_context": "# c", "mine": extra,
            });
            let mut original = super::task(record.clone()).unwrap();
            original.row = 0;
            prop_assert_eq!(back_through(&original, &text, Format::CrossCodeEval), record);

            let from: usize = lines[..shown].iter().map(|line| line.len() + 1).sum();
            let record = json!({
                "prompt": text[from..start], "groundtruth": text[start..stop], "right_context": text[stop..],
                "metadata": {
                    "task_id": "r/0", "repository": "r", "file": "a.py", "context_start_lineno": shown,
                    "groundtruth_start_lineno": at, "right_context_start_lineno": end, "more": extra,
                },
                "crossfile_context": {"text": "# c", "list": []}, "mine": extra,
            });
            let original = super::task(record.clone()).unwrap();
            prop_assert_eq!(back_through(&original, &text, Format::Repoformer), record.clone());
            // Also without the repositories, as in CrossCodeEval.
            let there = original.to_format(Format::Repoformer).unwrap().record;
            prop_assert_eq!(super::task(there).unwrap().to_format(Format::CrossCodeEval).unwrap().record, record);
        }
    }
}

/// Compares records of our own file, as Repoformer's program read them, with the same tasks in RepoEval's format.
#[test]
fn the_odd_repository_in_both_formats() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("tests/fixtures");
    let input = folder.join("repoformer/edge_cases.input.jsonl.gz");
    let ours = TaskSet::read(&input).unwrap();
    assert!(ours.problems.is_empty());
    assert_eq!(ours.formats, [(Format::Repoformer, 191)]);
    let theirs = TaskSet::read(&folder.join("repocoder/edge_cases.tasks.jsonl.gz")).unwrap();
    let mut compared = 0;
    for task in &ours.set.tasks {
        let mut tasks = theirs.set.tasks().iter();
        let same = tasks.find(|other| other.id == task.id).unwrap();
        assert_eq!(task.path, same.path);
        // Repoformer's converter counts only `\n`, and therefore takes another line after a form feed.
        if task.path.ends_with("formfeed.py") && task.line_no != same.line_no {
            continue;
        }
        assert_eq!(task.line_no, same.line_no, "{}", task.id);
        let mut written = task.to_format(Format::RepoEval).unwrap().record;
        // Fields that Repoformer's converter adds.
        for added in ["repository", "url"] {
            written["metadata"].as_object_mut().unwrap().shift_remove(added);
        }
        if same.context_start == 0 {
            assert_eq!(written, same.to_record(), "{}", task.id);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn a_digest_is_of_all_that_a_stage_reads() {
    let fragment = |score| CrossFileFragment { path: "b.py".into(), text: "b = 2".into(), score };
    let task = Task {
        format: Format::CrossCodeEval,
        cross_file: Some(CrossFile { text: "# b".into(), fragments: vec![fragment(Some(0.5))] }),
        ..Task::new("r/0".into(), "r/a.py", 0, 1, "x", "y\n")
    };
    let changes: [fn(&mut Task); 15] = [
        |task| task.row = 1,
        |task| task.prompt = "y\nz".into(),
        |task| task.ground_truth.push('z'),
        |task| task.path.push('z'),
        |task| task.repository.push('z'),
        |task| task.line_no = 7,
        |task| task.context_start = 7,
        |task| task.right_context = Some("".into()),
        |task| task.full_left_context = Some("".into()),
        |task| task.full_right_context = Some("".into()),
        |task| task.cross_file = None,
        |task| task.cross_file.as_mut().unwrap().fragments[0].score = Some(0.25),
        |task| task.cross_file.as_mut().unwrap().fragments[0].score = None,
        |task| task.metadata.insert("more", json!(1)),
        |task| task.extra.insert("more", json!(1)),
    ];
    let mut digests: Vec<String> = (changes.iter())
        .map(|change| {
            let mut task = task.clone();
            change(&mut task);
            digest([&task].into_iter())
        })
        .chain([digest([&task].into_iter())])
        .collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), changes.len() + 1);
}
