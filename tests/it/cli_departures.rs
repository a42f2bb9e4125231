//! Settings that contradict a paper's profile, settings that a command does not use, and predictions of no task.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli_policy;
use crate::support::{Place, Ran, jsonl, judge, sampled};

/// Papers that give all models one layout of prompts: RepoCoder, CrossCodeEval (section 3: the retrieved context before the left
/// one) and Repoformer's released program. Repoformer's paper completes with models of several layouts (section 5.1).
#[test]
fn another_layout_than_the_papers_is_named() {
    let (place, repos) = sampled(&["line"], 2);
    let table = |profile: &str, style: &str| {
        let [profile, style] = [format!("--profile={profile}"), format!("--prompt-style={style}")];
        let run = ["run", "-q", "--tasks=line.jsonl", &repos, "--mode=none", &profile, &style];
        place.run(&run).done().stdout
    };
    for (profile, usual) in [
        ("repocoder", "repocoder"),
        ("crosscodeeval", "plain"),
        ("repoformer-release", "repoformer-released"),
    ] {
        let line = format!("prompt-style = codellama instead of {usual}");
        assert!(table(profile, "codellama").contains(&line), "{profile}");
        assert!(!table(profile, usual).contains("not as in"), "{profile}");
    }
    assert!(!table("repoformer-paper", "codellama").contains("not as in"));
}

/// Scores in text name departures themselves; with other formats, and where there is no table of scores, a warning does.
#[test]
fn every_way_of_eval_names_departures() {
    let (place, repos) = sampled(&["api"], 4);
    let tasks = place.records("api.jsonl");
    let prediction = |task: &Value| json!({"task_id": task["metadata"]["task_id"], "pred": task["metadata"]["ground_truth"]});
    place.write("mine.jsonl", jsonl(&tasks.iter().map(prediction).collect::<Vec<_>>()));
    let common = ["--tasks=api.jsonl", "--profile=crosscodeeval", &repos];
    let eval = |more: &[&str]| place.run(&[&["eval"], more, &common[..]].concat()).done();
    let line = "not as in profile crosscodeeval: metrics = repocoder instead of crosscodeeval";
    let mine = ["--predictions=mine.jsonl", "--metrics=repocoder"];
    let text = eval(&mine);
    assert!(text.stdout.contains(line) && !text.stderr.contains(line), "{}", text.stderr);
    for format in ["csv", "tsv", "json", "jsonl", "parquet"] {
        let [format, file] = [format!("--format={format}"), format!("-o=scores.{format}")];
        eval(&[&mine[..], &[&format, &file]].concat()).says(&["warning", line]);
        let manifest: Value =
            serde_json::from_str(&place.read(&format!("scores.{}.manifest.json", &format[9..])))
                .unwrap();
        assert_eq!(manifest["settings"]["departures"][0]["value"], "repocoder");
    }
    eval(&[&mine[..], &["--per-task", "--format=jsonl"]].concat()).says(&[line]);
    eval(&[&mine[..], &["--results=out"]].concat());
    let manifest: Value = serde_json::from_str(&place.read("out/manifest.json")).unwrap();
    assert_eq!(manifest["settings"]["profile"], "crosscodeeval");
    assert_eq!(manifest["settings"]["departures"][0]["usual"], "crosscodeeval");
    let lines = "query-lines = 5 instead of 10";
    eval(&["--retrieval", "--query-lines=5"]).says(&[lines]);
    eval(&["--definitions", "--predictions=mine.jsonl", "--query-lines=5"]).says(&[lines]);
}

/// Commands that draw name the settings that they use, and refuse the flags of later stages.
#[test]
fn commands_that_draw_name_departures() {
    let place = Place::empty();
    place.add_samples();
    let draw = |command: &[&str], more: &[&str]| {
        let common = ["--repos-dir=repos", "--profile=repoformer-release", "-o=drawn.jsonl"];
        place.run(&[command, &common[..], more].concat())
    };
    let walk = "not as in profile repoformer-release: walk = glob instead of rglob";
    let (sample, label) = (["sample", "--kind=line"], ["label", "sample"]);
    draw(&sample, &["--walk=glob"]).done().says(&[walk]);
    draw(&label, &["--walk=glob"]).done().says(&[walk]);
    draw(&sample, &[]).done().silent_on("not as in");
    draw(&label, &[]).done().silent_on("not as in");
    for (command, name) in [(&sample[..], "sample"), (&label, "label sample")] {
        let refused = draw(command, &["--top-k=5"]).failed();
        refused.says(&[&format!("--top-k is not used by {name}, which draws from --repos-dir")]);
    }
    // Algorithm 2 and `1_create_function.py`: a tenth of the functions, at most 1,000, by the lines of the body.
    let functions = ["--kind=function", "--ratio=0.2", "--counted-lines=function"];
    let named = "ratio = 0.2 instead of 0.1, counted-lines = function instead of body";
    draw(&label, &functions).done().says(&[named]);
    draw(&label, &["--kind=function", "--ratio=0.1"]).done().silent_on("not as in");
    draw(&label, &["--no-filter"]).done().says(&["no-filter = yes instead of no"]);
    let limit = "min-files = 2 instead of 5";
    draw(&label, &["--min-files=2"]).done().says(&[limit]);
    let all =
        ["label", "all", "--repos-dir=repos", "--tokenizer=t.json", "-o=all", "--ranker=bm25"];
    place.run(&all).failed().says(&["--ranker is not used by label all"]);
}

/// A sweep's clock and the metric of labels are the paper's (section 5.2: decision and completion run at the same time as retrieval;
/// edit similarity), unless a flag says otherwise.
#[test]
fn labels_and_sweeps_name_departures() {
    let place = Place::empty();
    let labels = cli_policy::labels(0..2);
    place.write("labels.jsonl", jsonl(&labels));
    let prediction = |label: &Value| json!({"task_id": label["metadata"]["task_id"], "pred": "x"});
    for file in ["base.jsonl", "rag.jsonl"] {
        place.write(file, jsonl(&labels.iter().map(prediction).collect::<Vec<_>>()));
    }
    let run = |args: &[&str], profile: &str| {
        let mut command = place.command(args);
        Ran::new(command.env("REPOFORMER_PROFILE", profile).output().unwrap()).done()
    };
    let sweep = ["policy", "sweep", "--labels=labels.jsonl", "--policy=always"];
    let serial = [&sweep[..], &["--clock=serial"]].concat();
    let clock = "not as in profile repoformer-paper: clock = serial instead of parallel";
    run(&serial, "repoformer-paper").says(&[clock]);
    run(&serial, "crosscodeeval").silent_on("not as in");
    run(&sweep, "repoformer-paper").silent_on("not as in");
    let judge = judge("labels.jsonl", "base.jsonl", "rag.jsonl");
    let judge = [&judge[..], &["--model=m", "-o=judged.jsonl"]].concat();
    let chars = [&judge[..], &["--metric=chars"]].concat();
    let metric = "not as in profile repoformer-paper: metrics = chars instead of repoformer";
    run(&chars, "repoformer-paper").says(&[metric]);
    run(&judge, "repoformer-paper").silent_on("not as in");
}

/// A file with predictions of other tasks alone: nothing is left to score, so there is no mean.
#[test]
fn predictions_of_no_task_have_no_score() {
    let place = Place::new();
    let other = json!({"task_id": "other/line-0123456789ab", "pred": "x"});
    place.write("other.jsonl", jsonl(&[other]));
    let none = "other.jsonl: contains no predictions for the tasks of tasks.jsonl, so there is \
                nothing to score";
    let way = "give the tasks file (--tasks) that the predictions were made for";
    let predictions = "--predictions=other.jsonl";
    for command in [
        &["eval", "--missing=skip", predictions][..],
        &["eval", "--missing=skip", "--results=out", predictions],
        &["report", predictions],
        &["compare", "other.jsonl", "other.jsonl"],
    ] {
        let ran = place.run(&[command, &["--tasks=tasks.jsonl"]].concat()).failed();
        ran.says(&[none, way]).silent_on("has no prediction");
    }
    assert!(!place.path("out").exists() && !place.path("report").exists());
    // Whose predictions are left out is known; whose count as wrong too.
    let first = &place.records("tasks.jsonl")[0]["metadata"]["task_id"];
    place.write("one.jsonl", jsonl(&[json!({"task_id": first, "pred": "x"})]));
    let eval = ["eval", "--tasks=tasks.jsonl", "--predictions=one.jsonl", "--missing=skip"];
    place.run(&eval).partly().says(&["has no prediction"]);
}

/// Each mode of the cache has its folder, one mode too: a script need not know how many there are.
#[test]
fn results_of_the_cache_have_a_folder_for_each_mode() {
    let (place, repos) = sampled(&["line"], 3);
    place.run(&["run", "-q", "--tasks=line.jsonl", &repos, "--mode=none,rg1"]).done();
    let eval = |more: &[&str]| {
        place.run(&[&["eval", "-q", "--tasks=line.jsonl"], more].concat()).done();
    };
    eval(&["--results=one", "--mode=rg1"]);
    eval(&["--results=both"]);
    let names = |folder: &str| place.files(folder).into_keys().collect::<Vec<_>>();
    let of_modes = |modes: &[&str]| -> Vec<String> {
        let files = [
            "detailed_results.json",
            "exact_match_idx.jsonl",
            "manifest.json",
            "prediction_truncated.jsonl",
            "results.json",
        ];
        modes.iter().flat_map(|mode| files.map(|file| format!("{mode}/{file}"))).collect()
    };
    assert_eq!(names("one"), of_modes(&["rg1"]));
    assert_eq!(names("both"), of_modes(&["none", "rg1"]));
    let help = place.run(&["eval", "--help"]).done().stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("without --predictions, to a subfolder for each mode"), "{help}");
    // What has no predictions to write refuses the flag.
    let retrieval = ["eval", "--retrieval", "--results=none", "--tasks=line.jsonl", &repos];
    place.run(&retrieval).failed().says(&["--results"]);
}

/// A baseline is one of the systems shown.
#[test]
fn an_unknown_baseline_is_refused() {
    let (place, repos) = sampled(&["line"], 3);
    place.run(&["run", "-q", "--tasks=line.jsonl", &repos, "--mode=none,rg1"]).done();
    let report = |baseline: &str| {
        let baseline = format!("--baseline={baseline}");
        place.run(&["report", "--tasks=line.jsonl", "-o=page", &baseline])
    };
    report("rg2")
        .failed()
        .says(&["unknown baseline (--baseline) 'rg2'; known: none, rg1", "did you mean 'rg1'?"]);
    report("r-g-r-g").failed().says(&["unknown baseline (--baseline) 'rg-rg'; known: none, rg1"]);
    assert!(!place.path("page").exists());
    // RepoCoder's name of a mode is read wherever a mode is.
    report("r-g").done();
    assert!(place.read("page/index.html").contains("baseline"));
}

/// Tasks of `sample` say in their ids which kind they are, and chunks have their paper's metric.
#[test]
fn drawn_chunks_have_their_papers_metric() {
    let (place, repos) = sampled(&["chunk"], 4);
    place.add_samples();
    let bench = ["label", "sample", "--repos-dir=repos", "--as-benchmark", "--no-filter"];
    place.run(&[&bench[..], &["-o=bench.jsonl"]].concat()).done();
    assert_eq!(place.records("bench.jsonl")[0]["metadata"]["kind"], "chunk");
    let line = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/line.jsonl"),
    );
    let line = line.unwrap().lines().next().unwrap().to_owned();
    place.write("mixed.jsonl", format!("{}{line}\n", place.read("chunk.jsonl")));
    for (tasks, metric) in
        [("chunk", "repoformer"), ("bench", "repoformer"), ("mixed", "repocoder")]
    {
        let tasks = format!("--tasks={tasks}.jsonl");
        let run = ["run", "-q", &tasks, &repos, "--mode=none", "--format=json"];
        let rows: Value = serde_json::from_str(&place.run(&run).done().stdout).unwrap();
        assert_eq!(rows[0]["metric"], metric, "{tasks}");
    }
}
