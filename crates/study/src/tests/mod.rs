//! Studies of the repository's sample data: runs, tables, figures and rejected requests.

mod cache;
mod identity;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use repoformer_core::retrieve::Mode;
use repoformer_pipeline::{Messages, StageReport};
use repoformer_store::remark::Remark;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::choices::modes;
use crate::experiments::{benchmark, completion_of, experiments, possible_modes};
use crate::run::{FinishedRun, RunRequest, RunResult, run};
use crate::settings::{DECLARED, Invocation, Setting, Settings};
use crate::{hint_of, message_of};

/// Log that keeps each message as a line.
#[derive(Debug, Default)]
struct MessageLog(Mutex<Vec<String>>);

impl MessageLog {
    fn add(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Messages for MessageLog {
    fn tell(&self, remark: Remark) {
        self.add(remark.to_string());
    }

    fn stage(&self, name: &str, report: &StageReport) {
        self.add(format!("{name}: {} written, {} current", report.built, report.current));
        self.remarks(report);
    }

    fn remarks(&self, report: &StageReport) {
        report.rebuilt.iter().for_each(|rebuilt| self.add(rebuilt.to_string()));
    }

    fn on_interruption(&self, _: Option<String>) -> Option<String> {
        None
    }
}

/// Sample repositories, the first tasks of a kind, and a separate cache.
struct Study {
    dir: TempDir,
    kind: &'static str,
    heard: Arc<MessageLog>,
}

type SettingTexts<'a> = (&'static Setting, &'a str);

impl Study {
    fn new(kind: &'static str, count: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tasks = fs::read_to_string(data().join(format!("tasks/{kind}.jsonl"))).unwrap();
        let first: String = tasks.split_inclusive('\n').take(count).collect();
        fs::write(dir.path().join(format!("{kind}.jsonl")), first).unwrap();
        Self { dir, kind, heard: Arc::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the files of the cache by their paths there.
    fn cached(&self) -> BTreeMap<String, Vec<u8>> {
        files_below(&self.path("cache"))
    }

    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path(&format!("{}.jsonl", self.kind))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn settings(&self, more: &[SettingTexts<'_>]) -> anyhow::Result<Settings> {
        let (repos, cache) = (data().join("repos"), self.path("cache"));
        let tasks = self.path(&format!("{}.jsonl", self.kind));
        let own = [
            (&DECLARED.repos_dir, repos.to_str().unwrap()),
            (&DECLARED.tasks, tasks.to_str().unwrap()),
            (&DECLARED.cache_dir, cache.to_str().unwrap()),
        ];
        let given = own.iter().chain(more);
        let mut invocation = Invocation::default();
        for (setting, text) in given {
            // A setting that is given again has several values.
            let mut texts = invocation.given.get(setting).unwrap_or_default().to_vec();
            texts.extend(setting.split(text));
            invocation.given.insert(setting, texts);
        }
        Settings::resolve(&invocation, Arc::clone(&self.heard) as Arc<dyn Messages>)
    }

    fn run(&self, more: &[SettingTexts<'_>], request: RunRequest) -> anyhow::Result<FinishedRun> {
        run(&self.settings(more)?, request)
    }

    /// Returns the records of a run, and its text.
    fn results(&self, more: &[SettingTexts<'_>], request: RunRequest) -> (Vec<Value>, String) {
        let done = self.run(more, request).unwrap_or_else(|error| panic!("{error:#}"));
        let printable = done.result.printable();
        let notes: String = printable.notes().iter().map(ToString::to_string).collect();
        (printable.lines().collect(), printable.text() + &notes)
    }

    /// Returns the message and the hint of a rejected run.
    fn refusal(&self, more: &[SettingTexts<'_>]) -> String {
        let error = self.run(more, RunRequest::default()).expect_err("a refusal");
        let hint = hint_of(&error).map_or_else(String::new, |hint| hint.to_string());
        format!("{}\n{hint}", message_of(&error))
    }

    /// Writes a file with the probability of each task.
    fn probabilities(&self, of: impl Fn(usize) -> f64) -> PathBuf {
        let records = self.records().into_iter().enumerate().map(|(row, task)| {
            let id = &task["metadata"]["task_id"];
            let metadata = json!({"task_id": id, "row": row});
            json!({"metadata": metadata, "next_token": {"probability": of(row)}}).to_string() + "\n"
        });
        fs::write(self.path("p.jsonl"), records.collect::<String>()).unwrap();
        self.path("p.jsonl")
    }
}

/// Returns the files in a folder by their paths there.
fn files_below(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                files.insert(name.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data")
}

/// Settings of the paper's tables and figures.
const PAPER: [SettingTexts<'static>; 2] =
    [(&DECLARED.mode, "none,rg1"), (&DECLARED.profile, "repoformer-paper")];

fn paper<'a>(more: &[SettingTexts<'a>]) -> Vec<SettingTexts<'a>> {
    PAPER.iter().chain(more).copied().collect()
}

#[test]
fn a_run_has_a_row_for_each_mode_and_makes_nothing_twice() {
    let study = Study::new("line", 6);
    let (rows, text) = study.results(&[], RunRequest::default());
    let modes: Vec<&str> = rows.iter().map(|row| row["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["none", "rg1", "rg-rg", "gt"]);
    assert!(rows.iter().all(|row| row["n"] == 6 && row["es"].is_f64()), "{rows:?}");
    assert!(text.lines().count() == 5, "{text}");
    let stages = |heard: &[String]| -> Vec<String> {
        let of = |line: &String| line.ends_with(" current").then(|| line.clone());
        heard.iter().filter_map(of).collect()
    };
    let made = stages(&study.heard.lines());
    let names: Vec<&str> = made.iter().map(|line| line.split(':').next().unwrap()).collect();
    let run = ["window", "vectorize", "search", "prompt", "complete", "rg-rg", "complete"];
    assert_eq!(names, run.map(|stage| format!("{stage} line")));
    assert!(made.iter().all(|line| line.ends_with(", 0 current")), "{made:?}");
    let again = study.run(&[], RunRequest::default()).unwrap();
    let found: Vec<String> = stages(&study.heard.lines()).split_off(made.len());
    assert_eq!(found.len(), made.len());
    assert!(found.iter().all(|line| line.contains(": 0 written")), "{found:?}");
    assert_eq!(again.result.printable().lines().collect::<Vec<_>>(), rows);
    again.tell(&*study.heard);
    let heard = study.heard.lines();
    assert!(heard.iter().any(|line| line.starts_with("window current · ")), "{heard:?}");
}

#[test]
fn a_plan_lists_what_a_run_would_make_and_makes_nothing() {
    let study = Study::new("line", 6);
    let dry = || RunRequest { is_dry: true, ..RunRequest::default() };
    let (planned, text) = study.results(&[], dry());
    assert!(!study.path("cache").exists());
    assert!(planned.iter().any(|one| one["stage"] == "window" && one["state"] == "missing"));
    assert!(text.contains("in all: "), "{text}");
    let done = study.run(&[], dry()).unwrap();
    assert!(matches!(done.result, RunResult::Plan(_)));
    study.run(&[], RunRequest::default()).unwrap();
    let (after, text) = study.results(&[], dry());
    assert!(after.iter().all(|one| one["state"] == "current"), "{after:?}");
    assert!(!text.contains("to build"), "{text}");
}

/// Each ranker and right context of a run has its own artifacts and rows.
#[test]
fn several_rankers_and_contexts_run_in_turn() {
    let study = Study::new("line", 6);
    let common = [
        (&DECLARED.mode, "none,rg1"),
        (&DECLARED.unit, "chunks"),
        (&DECLARED.prompt_style, "starcoder"),
    ];
    let with = |more: &[SettingTexts<'static>]| -> Vec<SettingTexts<'static>> {
        common.iter().chain(more).copied().collect()
    };
    let both = with(&[
        (&DECLARED.ranker, "jaccard"),
        (&DECLARED.ranker, "bm25"),
        (&DECLARED.right_context, "no,yes"),
    ]);
    let (rows, _) = study.results(&both, RunRequest::default());
    let of = |rows: &[Value]| -> Vec<Value> {
        let values = rows.iter();
        values.map(|row| json!([row["mode"], row["es"], row["em"], row["prompt_tokens"]])).collect()
    };
    for (ranker, right, name) in [
        ("jaccard", "no", "line_jaccard_left"),
        ("jaccard", "yes", "line_jaccard_left-right"),
        ("bm25", "no", "line_bm25_left"),
        ("bm25", "yes", "line_bm25_left-right"),
    ] {
        let mut together = rows.clone();
        together.retain(|row| row["benchmark"] == name);
        assert_eq!(together.len(), 2, "{name}: {rows:?}");
        // The same results as when each runs alone.
        let own = Study::new("line", 6);
        let alone = with(&[(&DECLARED.ranker, ranker), (&DECLARED.right_context, right)]);
        assert_eq!(of(&together), of(&own.results(&alone, RunRequest::default()).0), "{name}");
    }
    let table: Vec<_> = both.into_iter().chain([(&DECLARED.paper, "table-2")]).collect();
    assert!(study.refusal(&table).starts_with("table-2 has one row per model and policy"));
}

/// A bin contains the probabilities that fall into it, however its mean is rounded.
#[test]
fn each_bin_of_the_calibration_has_its_column() {
    let study = Study::new("line", 180);
    let given = paper(&[(&DECLARED.paper, "figure-11"), (&DECLARED.policy, "self")]);
    let probability = |row: usize| if row.is_multiple_of(2) { 0.05 } else { 0.1 };
    let probabilities = vec![study.probabilities(probability)];
    let request = RunRequest { probabilities, ..RunRequest::default() };
    let (rows, _) = study.results(&given, request);
    let row = rows.iter().find(|row| row["series"] == "self n").unwrap();
    assert_eq!((&row["values"]["0-10 %"], &row["values"]["10-20 %"]), (&json!(90.0), &json!(90.0)));
}

/// Table 5 prints the threshold of the threshold policy, before %RAG and ES.
#[test]
fn table_5_has_thresholds() {
    let study = Study::new("chunk", 12);
    let probabilities = vec![study.probabilities(|_| 0.3)];
    let table = |model: &'static str, policy: &'static str| {
        let given = paper(&[
            (&DECLARED.paper, "table-5"),
            (&DECLARED.paper_model, model),
            (&DECLARED.policy, policy),
        ]);
        let request = RunRequest { probabilities: probabilities.clone(), ..RunRequest::default() };
        study.results(&given, request)
    };
    let of = |rows: &[Value], policy: &str| -> Value {
        let row = rows.iter().find(|row| row["policy"] == policy && row["task"] == "chunk");
        row.unwrap_or_else(|| panic!("{policy}: {rows:?}")).clone()
    };
    let (rows, text) = table("Repoformer-1B", "self");
    let own = of(&rows, "self-threshold");
    assert_eq!(own["threshold"], json!({"measured": 0.2, "paper": 0.2}));
    assert_eq!(own["retrieved"], json!({"measured": 100.0, "paper": 75.0}));
    assert_eq!(own["metric"], "repoformer");
    assert_eq!(of(&rows, "always")["threshold"], json!({"measured": null, "paper": null}));
    let head = text.lines().find(|line| line.starts_with("model")).unwrap();
    let head: Vec<&str> = head.split("  ").filter(|name| !name.is_empty()).map(str::trim).collect();
    assert_eq!(
        head[2..],
        ["chunk T", "chunk %RAG", "chunk ES", "function T", "function %RAG", "function ES"]
            .map(|name| format!("CrossCodeLongEval {name}"))
    );
    assert!(text.contains("0.20 (0.20)"), "{text}");
    // A1 decides at 0.99: at another threshold, its row has only the paper's numbers.
    let (rows, _) = table("A1", "self");
    assert_eq!(of(&rows, "self-threshold")["es"]["paper"], Value::Null);
    let paper = of(&rows, "self@0.99");
    assert_eq!(
        (&paper["es"], &paper["threshold"]),
        (&json!({"measured": null, "paper": 70.21}), &json!({"measured": null, "paper": 0.99}))
    );
    let (rows, _) = table("A1", "self@0.99");
    let policies: Vec<&Value> =
        rows.iter().filter(|row| row["task"] == "chunk").map(|row| &row["policy"]).collect();
    assert_eq!(policies, ["none", "always", "self@0.99"]);
    assert_eq!(of(&rows, "self@0.99")["retrieved"], json!({"measured": 0.0, "paper": 100.0}));
}

/// Every policy of the paper for the chosen model has a row, and so does every data set of Table 6.
#[test]
fn rows_of_the_paper_that_a_run_lacks_are_shown() {
    let study = Study::new("line", 5);
    let given = paper(&[
        (&DECLARED.paper, "table-2"),
        (&DECLARED.paper_model, "Repoformer-3B"),
        (&DECLARED.policy, "oracle"),
    ]);
    let (rows, _) = study.results(&given, RunRequest::default());
    let greedy = rows.iter().find(|row| row["task"] == "line" && row["policy"] == "self-greedy");
    assert_eq!(greedy.unwrap()["em"], json!({"measured": null, "paper": 56.3}));
    let (rows, text) =
        study.results(&paper(&[(&DECLARED.paper, "table-6")]), RunRequest::default());
    let name = |row: &Value| format!("{} {}", row["dataset"], row["task"]).replace('"', "");
    assert_eq!(
        rows.iter().map(name).collect::<Vec<_>>(),
        [
            "RepoEval line",
            "RepoEval api",
            "RepoEval function",
            "CrossCodeLongEval chunk",
            "CrossCodeLongEval function"
        ]
    );
    assert_eq!(rows[0]["instances"], json!({"measured": 5.0, "paper": 1600.0}));
    assert_eq!(rows[4]["y_tokens"], json!({"measured": null, "paper": 111.2}));
    assert!(text.contains("- (1.47)"), "the paper's digits: {text}");
}

/// Table 8 is Table 3 with dense retrieval.
#[test]
fn a_table_of_dense_retrieval_takes_no_other() {
    let study = Study::new("line", 5);
    let table = |name: &'static str, more: &[SettingTexts<'static>]| {
        paper(&[&[(&DECLARED.paper, name)], more].concat())
    };
    for ranker in ["jaccard", "bm25", "rrf:dense,jaccard"] {
        let refusal = study.refusal(&table("table-8", &[(&DECLARED.ranker, ranker)]));
        assert!(
            refusal.contains("Table 8 is about dense retrieval, but the ranker is"),
            "{refusal}"
        );
        assert!(refusal.contains("table-3 is the same table for ranker jaccard"), "{refusal}");
    }
    let refusal = study.refusal(&table("table-8", &[(&DECLARED.ranker, "dense")]));
    assert!(refusal.contains("vectors"), "{refusal}");
    // The output names a ranker and a metric that differ from the paper's.
    let oracle = (&DECLARED.policy, "oracle");
    let shown = |name, more: &[SettingTexts<'static>]| {
        study.results(&table(name, more), RunRequest::default()).1
    };
    let text = shown("table-3", &[(&DECLARED.ranker, "bm25"), oracle]);
    assert!(text.contains("\nnot as in the paper: ranker = bm25 instead of jaccard\n"), "{text}");
    let of_metric = |metric| {
        let data_set = (&DECLARED.paper_dataset, "CrossCodeEval");
        shown("table-7", &[data_set, (&DECLARED.metrics, metric), oracle])
    };
    let text = of_metric("repoformer");
    let line = "\nnot as in the paper: metrics = repoformer instead of crosscodeeval\n";
    assert!(text.contains(line), "{text}");
    assert!(!of_metric("crosscodeeval").contains("not as in"));
    // Figure 8 has three curves in the paper.
    let policy = (&DECLARED.policy, "trial-retrieval@0.3");
    let text = shown("figure-8", &[policy, (&DECLARED.top_k, "5")]);
    assert!(text.contains("The paper's curve of UniXcoder is missing"), "{text}");
    assert!(text.contains("not as in the paper: top-k = 5 instead of 10"), "{text}");
}

#[test]
fn settings_that_contradict_each_other_are_refused_before_any_work() {
    let study = Study::new("line", 5);
    for (given, sentence) in [
        (&[(&DECLARED.chunk_size, "7")][..], "applies only to chunks"),
        (&[(&DECLARED.unit, "chunks"), (&DECLARED.query, "window")], "files are cut into chunks"),
        (&[(&DECLARED.policy, "learned,learned")], "policy 'learned' is given twice"),
        (&[(&DECLARED.policy, "always@0.5")], "always has no threshold"),
        (&[(&DECLARED.policy, "entropy")], "needs a threshold"),
        (&[(&DECLARED.align, "signature")], "shows definitions, but ranker jaccard"),
        (
            &[
                (&DECLARED.samples, "3"),
                (&DECLARED.endpoint, "http://127.0.0.1:1"),
                (&DECLARED.model, "m"),
            ],
            "greedy completions are all the same",
        ),
        (
            &[
                (&DECLARED.stop, ""),
                (&DECLARED.endpoint, "http://127.0.0.1:1"),
                (&DECLARED.model, "m"),
            ],
            "before its first token",
        ),
        (&[(&DECLARED.model, "m")], "model m needs a server"),
        (&[(&DECLARED.mode, "given")], "repocoder has none"),
        (&[(&DECLARED.paper, "figure-6"), (&DECLARED.mode, "rg1")], "without and with retrieval"),
        (&[(&DECLARED.paper_model, "A1")], "with tables and figures of the paper"),
        (&[(&DECLARED.paper, "table-6"), (&DECLARED.policy, "oracle")], "is not used by table-6"),
    ] {
        let refusal = study.refusal(given);
        assert!(refusal.contains(sentence), "{sentence}: {refusal}");
    }
    assert!(!study.path("cache/window").exists());
}

#[test]
fn a_mode_needs_the_repositories_or_contexts_that_its_tasks_name() {
    let study = Study::new("line", 3);
    let settings = study.settings(&[(&DECLARED.unit, "chunks")]).unwrap();
    let (experiment, _) = experiments(&settings).unwrap().remove(0);
    let asked = [Mode::Without, Mode::LeftContext, Mode::Given];
    let (possible, left_out) = possible_modes(&experiment, &asked);
    assert_eq!(possible, [Mode::Without, Mode::LeftContext]);
    let [(Mode::Given, reason)] = &left_out[..] else { panic!("{left_out:?}") };
    assert_eq!(reason, "line: given is left out: its tasks carry no cross-file context");
}

#[test]
fn modes_stand_in_the_order_of_a_table_and_once() {
    let study = Study::new("line", 1);
    let chosen = study.settings(&[(&DECLARED.mode, "gt,r-g,none,rg1")]).unwrap();
    let expected = [Mode::Without, Mode::LeftContext, Mode::GroundTruth];
    assert_eq!(modes(&chosen, &[Mode::Prediction]).unwrap(), expected);
    let settings = study.settings(&[]).unwrap();
    assert_eq!(modes(&settings, &[Mode::Prediction]).unwrap(), [Mode::Prediction]);
}

#[test]
fn a_benchmark_is_named_after_its_task_file() {
    let study = Study::new("line", 1);
    let settings = study.settings(&[]).unwrap();
    let name = |file: &str| benchmark(&settings, Some(Path::new(file)));
    assert_eq!(name("a/line_rg1.jsonl.gz").unwrap(), "line_rg1");
    assert_eq!(name("-").unwrap(), "stdin");
    let refused = name("repos.jsonl").unwrap_err().to_string();
    assert!(refused.contains("cannot be the name of the benchmark's cache folders"), "{refused}");
    let named = study.settings(&[(&DECLARED.benchmark, "mine")]).unwrap();
    assert_eq!(benchmark(&named, Some(Path::new("a/line.jsonl"))).unwrap(), "mine");
}

/// Earlier, the section `[function]` of a file was ignored except for the token limit.
#[test]
fn a_model_is_asked_as_the_settings_of_its_tasks_say() {
    let text = "endpoint = 'http://127.0.0.1:1'\nmodel = 'm'\n[function]\ntemperature = 0.7\nstop = 'end'\n";
    for (kind, temperature) in [("function", 0.7), ("line", 0.0)] {
        let study = Study::new(kind, 5);
        let config = study.path("own.toml");
        fs::write(&config, text).unwrap();
        let settings = study.settings(&[(&DECLARED.config, config.to_str().unwrap())]).unwrap();
        let (experiment, own) = experiments(&settings).unwrap().remove(0);
        let asked = completion_of(&experiment, &own, None, true).unwrap().server.unwrap().asking;
        assert_eq!(
            (asked.temperature, asked.stop.len()),
            (temperature, usize::from(temperature > 0.0))
        );
    }
}
