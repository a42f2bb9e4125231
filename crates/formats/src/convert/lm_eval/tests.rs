use repoformer_core::task::{Task, TaskSet};

use super::*;

fn tasks() -> TaskSet {
    let task = |(row, id): (usize, &str)| {
        let task = Task::new(id.into(), "r/a.py", 0, row, "x = 1", "p\n");
        Task { row, line: row + 1, ..task }
    };
    let tasks = ["a", "b", "c"].into_iter().enumerate().map(task).collect();
    TaskSet::new("folder/my tasks.jsonl.gz".into(), tasks)
}

fn prompt(id: &str, row: usize, prompt: &str) -> Value {
    json!({
        "prompt": prompt,
        "metadata": {"task_id": id, "ground_truth": "x = 1", "row": row, "mode": "rg1", "top_k_context": []},
    })
}

/// Converts prompts; messages do not contain the folder of the file.
fn converted(
    prompts: &[Value],
    change: impl FnOnce(&mut LmEvalSettings<'_>),
) -> Result<LmEvalTask, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.jsonl");
    let lines: String = prompts.iter().map(|prompt| format!("{prompt}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let set = tasks();
    let mut settings = LmEvalSettings {
        tasks: &set,
        bodies: FunctionBodies::default(),
        metrics: &[Metric::RepoCoder],
        name: None,
        max_tokens: 500,
        stop: &[],
        ending: Ending::AsIs,
    };
    change(&mut settings);
    lm_eval(&path, &settings).map_err(|error| without_folder(&error))
}

/// Returns texts that live as long as the settings.
fn texts(texts: &[&str]) -> &'static [String] {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    texts.leak()
}

fn without_folder(error: &Error) -> String {
    let text = error.to_string();
    text.split_once("p.jsonl:").map_or(text.clone(), |(_, reason)| reason.to_owned())
}

fn documents(task: &LmEvalTask) -> Vec<Value> {
    task.files[0].1.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn documents_are_in_the_order_of_the_tasks() {
    let prompts = [prompt("c", 2, "third\n"), prompt("a", 0, "first\n  ")];
    let task = converted(&prompts, |_| {}).unwrap();
    assert_eq!(task.name, "repoformer_my_tasks_rg1");
    let names: Vec<&str> = task.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["repoformer_my_tasks_rg1.jsonl", "utils.py", "repoformer_my_tasks_rg1.yaml"]
    );
    let first = json!({
        "prompt": "first\n  ", "withheld": "", "target": "x = 1", "task_id": "a", "metrics": ["repocoder"],
        "metadata": {
            "fpath_tuple": ["r", "a.py"], "line_no": 0, "row": 0, "mode": "rg1", "prompt_style": null,
            "prompt_style_digest": null, "prompt_end": "as-is",
        },
    });
    let found = documents(&task);
    assert_eq!((&found[0], &found[1]["task_id"], found.len()), (&first, &json!("c"), 2));
    assert_eq!(task.conversion.records, 2);
    let missing = "1 task of folder/my tasks.jsonl.gz has no prompt; means are over the other 2";
    assert_eq!(task.conversion.warnings, [missing.into()]);
}

/// The task requests completions as `complete` does: with the requested stop texts, then the style's.
#[test]
fn a_task_asks_as_completions_do() {
    let mut styled = prompt("a", 0, "<fim_prefix>x\n  ");
    styled["metadata"]["prompt_style"] = "starcoder".into();
    styled["metadata"]["prompt_style_digest"] = "d".into();
    let stop = texts(&["\u{e9}\"\\\n\u{1f600}", "<|endoftext|>"]);
    let task = converted(&[styled], |settings| {
        (settings.stop, settings.max_tokens) = (stop, 40);
        settings.ending = Ending::BeforeWhitespace;
        settings.metrics = &[Metric::Repoformer, Metric::Chars];
    })
    .unwrap();
    assert_eq!(task.name, "repoformer_my_tasks_rg1_starcoder");
    let document = &documents(&task)[0];
    assert_eq!(
        (&document["prompt"], &document["withheld"]),
        (&json!("<fim_prefix>x"), &json!("\n  "))
    );
    assert_eq!(document["metadata"]["prompt_style_digest"], "d");
    let yaml = &task.files[2].1;
    for line in [
        r#"  until: ["\U000000e9\"\\\U0000000a\U0001f600", "<|endoftext|>", "<filename>", "<reponame>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>"]"#,
        "  max_gen_toks: 40",
        "  - metric: repoformer.es_fuzz",
        "  - metric: chars.em",
        "  prompt_end: before-whitespace",
        "  prompt_styles: [\"starcoder\"]",
    ] {
        assert!(yaml.lines().any(|found| found == line), "{line}\n{yaml}");
    }
    assert!(!yaml.contains("repocoder."), "{yaml}");
}

#[test]
fn a_record_that_cannot_be_asked_costs_no_other() {
    let prompts = [
        prompt("a", 0, ""),
        prompt("z", 9, "p"),
        json!({"task_id": "a", "pred": "x"}),
        prompt("c", 2, "p"),
    ];
    let task = converted(&prompts, |_| {}).unwrap();
    assert_eq!(task.conversion.records, 1);
    let problems: Vec<String> = task.conversion.problems.iter().map(without_folder).collect();
    assert_eq!(
        problems,
        [
            "1: task a: its prompt is empty, which lm-evaluation-harness cannot send",
            "2: task \"z\" is not in folder/my tasks.jsonl.gz",
            "3: this is a prediction (it has 'pred'), which cannot become lm-eval",
        ]
    );
}

#[test]
fn prompts_of_other_tasks_are_refused() {
    let mut other = prompt("b", 1, "p");
    other["metadata"]["ground_truth"] = "x = 2".into();
    let refused = converted(&[prompt("a", 0, "p"), other], |_| {}).unwrap_err();
    assert_eq!(
        refused,
        "2: belongs to a task other than \"b\" of folder/my tasks.jsonl.gz: its target differs"
    );
}

#[test]
fn what_would_be_scored_otherwise_is_refused() {
    let one = || [prompt("a", 0, "p\n")];
    let refused = |prompts: &[Value], change: &dyn Fn(&mut LmEvalSettings<'_>)| {
        converted(prompts, |settings| change(settings)).unwrap_err()
    };
    let has = |text: String, wanted: &str| assert!(text.contains(wanted), "{text}");
    has(
        refused(&[prompt("a", 0, "p"), prompt("a", 0, "q")], &|_| {}),
        "lines 1 and 2 are prompts of the same task, a",
    );
    let mut styled = prompt("b", 1, "p");
    styled["metadata"]["stop"] = json!(["<eof>"]);
    has(
        refused(&[prompt("a", 0, "p"), styled], &|_| {}),
        "lines 1 and 2 have different stop texts, [] and [\"<eof>\"]",
    );

    let newline = texts(&["\n"]);
    has(
        refused(&one(), &|settings| {
            settings.stop = newline;
            settings.ending = Ending::BeforeWhitespace;
        }),
        "line 1: stop text \"\\n\" can match the white space removed",
    );
    has(
        refused(&one(), &|settings| settings.metrics = &[Metric::CrossCodeEval]),
        "cannot compute crosscodeeval like `eval`; use repocoder, repoformer, chars",
    );
    let bodies = FunctionBodies { looked_at: 2, found: 2, unknown: 0 };
    has(
        refused(&one(), &|settings| {
            (settings.metrics, settings.bodies) = (&[Metric::Repoformer], bodies);
        }),
        "2 of the first 2 holes are function bodies",
    );
    let lines = |settings: &mut LmEvalSettings<'_>| settings.bodies = bodies;
    assert_eq!(converted(&one(), lines).unwrap().conversion.records, 1);
    for name in ["", "a b", "a,b", "../a", "é"] {
        has(
            refused(&one(), &|settings| settings.name = Some(name)),
            "may contain only letters, digits, '_', '-' and '.'",
        );
    }
}
