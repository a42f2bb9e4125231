//! The stages as separate commands: in their order, what each says where the one before it is missing, and that they
//! leave the same bytes as `run`, with any number of threads and whatever the cache held.

use crate::support::{Place, STAGES, TARGETS, assert_same, source, task};
use serde_json::Value;

/// Runs the stages before the one with this number.
fn place_before(stage: usize) -> Place {
    let place = Place::new();
    for stage in &STAGES[..stage] {
        place.stage(stage).done();
    }
    place
}

#[test]
fn each_stage_tells_what_it_wrote() {
    let place = Place::new();
    let said: Vec<String> = place
        .all_stages(&[])
        .into_iter()
        .map(|ran| {
            assert_eq!(ran.stdout, "", "stages write to the cache, not to stdout");
            ran.stderr
        })
        .collect();
    // 11 windows of two repositories (Place::new); 3 tasks in the two modes that retrieve without a prediction, in the
    // three that need none, and in rg-rg alone. rg-rg writes windows, vectors and results a repository, and the prompts.
    let wanted = [
        "window tasks: 17 records in 6 artifacts (written)\n",
        "vectorize tasks: 17 records in 6 artifacts (written)\n",
        "search tasks: 6 records in 4 artifacts (written)\n",
        "prompt tasks: 9 records in 3 artifacts (written)\n",
        "complete tasks: 9 records in 3 artifacts (written)\n",
        "rg-rg tasks: 12 records in 7 artifacts (written)\n",
        "complete tasks: 3 records in 1 artifact (written)\n",
    ];
    assert_eq!(said, wanted);
    let table = place.stage(&["eval", "--format", "tsv"]).done().stdout;
    let modes: Vec<&str> = table
        .lines()
        .filter(|line| line.contains("\tall\t3\t"))
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(modes, ["none", "rg1", "rg-rg", "gt"]);
}

#[test]
fn missing_artifacts_name_their_file_and_the_command_that_makes_them() {
    let cases: [(usize, &[&str], &str, &str); 8] = [
        (
            0,
            &["vectorize"],
            "cache/window/repos/alpha_ws20_slice2.bin: the repository fragments are missing",
            "`repoformer window`",
        ),
        (
            1,
            &["search"],
            "cache/vector/repos/alpha_ws20_slice2.one-gram.bin: the one-gram vectors are missing",
            "`repoformer vectorize`",
        ),
        (
            2,
            &["prompt", "--mode", "gt"],
            "cache/retrieval/tasks/gt/alpha_ws20_slice2.one-gram.top20.bin: the retrieval results are missing",
            "`repoformer search --mode gt`",
        ),
        (
            3,
            &["complete"],
            "cache/prompts/tasks/none-one-gram-ws-20-ss-2.jsonl: the prompts are missing",
            "`repoformer prompt --mode none`",
        ),
        (
            4,
            &["rg-rg"],
            "cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl: the predictions are missing",
            "`repoformer complete --mode rg1`",
        ),
        (
            5,
            &["complete", "--mode", "rg-rg"],
            "cache/prompts/tasks/rg-rg-one-gram-ws-20-ss-2.jsonl: the prompts are missing",
            "`repoformer rg-rg`",
        ),
        (
            4,
            &["eval", "--mode", "gt"],
            "cache/predictions/tasks/gt-one-gram-ws-20-ss-2-in-context.jsonl: the predictions are missing",
            "`repoformer complete --mode gt`",
        ),
        (0, &["eval"], "the cache holds no predictions", "`repoformer complete`"),
    ];
    for (before, stage, file, command) in cases {
        let said = place_before(before).stage(stage).failed().stderr;
        let (error, hint) = said.split_once("\nhint: ").unwrap_or_else(|| panic!("{said}"));
        assert!(error.starts_with("error: ") && error.contains(file), "{said}");
        assert!(hint.contains(command), "{said}");
    }
}

#[test]
fn the_commands_named_by_the_hints_lead_from_eval_back_to_the_windows() {
    let place = Place::new();
    let mut todo = vec![vec!["eval".to_owned(), "--mode".into(), "rg1".into()]];
    for _ in 0..12 {
        let Some(command) = todo.last().cloned() else {
            break;
        };
        let ran = place.stage(&command.iter().map(String::as_str).collect::<Vec<_>>());
        if ran.code == Some(0) {
            todo.pop();
            continue;
        }
        let named = ran.stderr.split("`repoformer ").nth(1);
        let named = named.and_then(|rest| rest.split('`').next());
        let named = named.unwrap_or_else(|| panic!("{}", ran.stderr));
        todo.push(named.split(' ').map(str::to_owned).collect());
    }
    assert_eq!(todo, Vec::<Vec<String>>::new(), "nothing is left to do");
}

#[test]
fn stage_by_stage_leaves_the_bytes_that_run_leaves() {
    let (by_hand, at_once) = (Place::new(), Place::new());
    by_hand.all_stages(&[]);
    by_hand.stage(&["eval"]).done();
    at_once.stage(&["run"]).done();
    assert_same(&by_hand.files("cache"), &at_once.files("cache"));
}

#[test]
fn a_second_run_does_nothing_and_answers_the_same() {
    let place = Place::new();
    let first = place.stage(&["run"]).done();
    let times = place.times("cache");
    let second = place.stage(&["run"]).done();
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(place.times("cache"), times);
    assert!(!second.stderr.contains("written"), "{}", second.stderr);
    for stage in STAGES {
        place.stage(stage).done().says(&["(current)"]);
    }
    assert_eq!(place.times("cache"), times);
}

#[test]
fn one_and_four_threads_leave_the_same_bytes() {
    let (one, four) = (Place::new(), Place::new());
    one.stage(&["run", "--threads", "1"]).done();
    four.stage(&["run", "--threads", "4"]).done();
    assert_same(&one.files("cache"), &four.files("cache"));
}

#[test]
fn a_warm_cache_and_a_cold_one_give_the_same_after_a_change() {
    let (warm, cold) = (Place::new(), Place::new());
    warm.stage(&["run"]).done();
    for place in [&warm, &cold] {
        place.write("repos/alpha/view.py", source("display", 33));
        place.write("repos/alpha/more.py", source("store", 14));
        place.write("repos/alpha/old/view.py", source("view", 30));
        place.write(
            "tasks.jsonl",
            task("alpha/9", "alpha/view.py", &source("display", 33), 3, 20).to_string(),
        );
        place.stage(&["run"]).done();
    }
    let mut warm_files = warm.files("cache");
    let repository_of_no_task = |name: &String| name.contains("/beta_");
    warm_files.retain(|name, _| !repository_of_no_task(name));
    assert_same(&warm_files, &cold.files("cache"));
}

#[test]
fn what_is_rebuilt_is_said_with_its_reason() {
    let place = Place::new();
    place.stage(&["run"]).done();
    place.write("repos/alpha/view.py", source("view", 31));
    place.stage(&["window"]).done().says(&[
        "warning: cache/window/repos/alpha_ws20_slice2.bin: stale (repository changed), rebuilt",
        "3 written, 3 current",
    ]);
    place.stage(&["vectorize"]).done();
    place.stage(&["search"]).done();
    place.stage(&["prompt", "--mode", "rg1", "--max-prompt-tokens", "99"]).done().says(&[
        "rg1-one-gram-ws-20-ss-2.jsonl: stale (max-prompt-tokens was 2000, is 99), rebuilt",
    ]);
}

#[test]
fn no_stage_takes_what_was_made_with_other_settings() {
    let place = Place::new();
    place.stage(&["run"]).done();
    // Prompts are those of the settings in force, or they are not completed.
    for (flag, value, said) in [
        ("--max-blocks", "1", "max-blocks was 10, is 1"),
        ("--max-prompt-tokens", "30", "max-prompt-tokens was 2000, is 30"),
        ("--hole-guard", "reference", "hole-guard was strict, is reference"),
        ("--top-k", "2", "top-k was 20, is 2"),
        ("--center", "step", "center was half, is step"),
    ] {
        let stage = ["complete", "--mode", "rg1", flag, value];
        place.stage(&stage).failed().says(&[said, "`repoformer prompt --mode rg1`"]);
        let stage = ["eval", "--mode", "rg1", flag, value];
        place.stage(&stage).failed().says(&[said]);
        place.stage(&["rg-rg", flag, value]).failed().says(&[said]);
    }
    for stage in [&["eval", "--mode", "rg1"][..], &["rg-rg"]] {
        let other = [stage, &["--max-tokens", "3"]].concat();
        let command = "`repoformer complete --mode rg1`";
        place.stage(&other).failed().says(&["max-tokens was 500, is 3", command]);
    }
    // Predictions are those of the prompts that are there, or they are not scored.
    place.stage(&["prompt", "--mode", "rg1", "--max-blocks", "1"]).done();
    let stage = ["eval", "--mode", "rg1", "--max-blocks", "1"];
    place
        .stage(&stage)
        .failed()
        .says(&["made from other prompts", "`repoformer complete --mode rg1`"]);
    place.stage(&["complete", "--mode", "rg1", "--max-blocks", "1"]).done();
    place.stage(&stage).done();
}

#[test]
fn fields_that_are_not_known_go_along() {
    let place = Place::new();
    let tasks = place.read("tasks.jsonl").replace("{\"prompt\"", "{\"extra\":{\"a\":1},\"prompt\"");
    place.write("tasks.jsonl", tasks);
    place.stage(&["run"]).done();
    for file in [
        "prompts/tasks/rg1-one-gram-ws-20-ss-2",
        "predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context",
    ] {
        let records = place.records(&format!("cache/{file}.jsonl"));
        assert!(records.iter().all(|record| record["extra"]["a"] == 1), "{file}");
    }
}

#[test]
fn prompts_and_predictions_are_no_tasks() {
    let place = Place::new();
    place.stage(&["run"]).done();
    for (file, said) in [
        ("cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl", "this is a prompt"),
        (
            "cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl",
            "this is a prediction",
        ),
    ] {
        let arguments = ["run", "--repos-dir", "repos", "--cache-dir", "other", "--tasks", file];
        place.run(&arguments).failed().says(&[said, ".jsonl:1: "]);
    }
}

#[cfg(unix)]
#[test]
fn other_names_of_the_holes_file_do_not_show_it() {
    let place = Place::new();
    let own = place.path("repos/alpha/store.py");
    std::fs::hard_link(&own, place.path("repos/alpha/a_hard_link.py")).unwrap();
    std::os::unix::fs::symlink(&own, place.path("repos/alpha/z_link.py")).unwrap();
    place.stage(&["run"]).done();
    for mode in ["rg1", "gt", "rg-rg"] {
        let prompts = place.read(&format!("cache/prompts/tasks/{mode}-one-gram-ws-20-ss-2.jsonl"));
        let first: Value = serde_json::from_str(prompts.lines().next().unwrap()).unwrap();
        let target = first["metadata"]["ground_truth"].as_str().unwrap().trim();
        assert!(!first["prompt"].as_str().unwrap().contains(target), "{mode}: {first}");
    }
    // The reference takes them for other files.
    let ran = place.stage(&["run", "--profile", "repocoder", "--cache-dir", "reference"]).done();
    assert!(ran.stdout.contains("rg1"));
    let prompts = place.read("reference/prompts/tasks/gt-one-gram-ws-20-ss-2.jsonl");
    let first: Value = serde_json::from_str(prompts.lines().next().unwrap()).unwrap();
    let target = first["metadata"]["ground_truth"].as_str().unwrap().trim();
    assert!(first["prompt"].as_str().unwrap().contains(target));
}

#[test]
fn tasks_of_another_version_of_the_repository_are_told() {
    let place = Place::new();
    let moved = format!("# a line more\n{}", place.read("repos/alpha/store.py"));
    place.write("repos/alpha/store.py", moved);
    let ran = place.stage(&["window"]);
    assert_eq!(ran.code, Some(0));
    ran.says(&[
        "its prompt does not end where its hole begins",
        "another version of the repository",
    ]);
}

#[test]
fn an_artifact_made_from_what_is_no_longer_there_is_not_built_upon() {
    let place = Place::new();
    place.all_stages(&[]);
    // Another hole in the task file: the query windows are those of the old one.
    let old = place.read("tasks.jsonl");
    place.write("tasks.jsonl", old.replace("\"line_no\":20", "\"line_no\":15"));
    for stage in ["vectorize", "search", "prompt"] {
        place.stage(&[stage, "--mode", "rg1"]).failed().says(&[
            "cache/window/tasks/rg1/alpha_ws20_slice2.bin: stale: made from other tasks than are there now",
            "hint: make it again with `repoformer window --mode rg1`",
        ]);
    }
    place.write("tasks.jsonl", old);
    // Other repository windows, while the query windows are those of the old ones.
    place.write("repos/alpha/view.py", source("view", 31));
    let all = ["window", "--repos-dir", "repos", "--cache-dir", "cache"];
    place.run(&all).done();
    place
        .stage(&["search"])
        .failed()
        .says(&["stale: made from other fragments than are there now"]);
    // Settings that are not part of a file's name.
    let place = Place::new();
    place.all_stages(&[]);
    place
        .stage(&["vectorize", "--center", "step"])
        .failed()
        .says(&["alpha_ws20_slice2.bin: stale: center was half, is step", "`repoformer window`"]);
    place
        .stage(&["prompt", "--mode", "gt", "--hole-guard", "reference"])
        .failed()
        .says(&["stale: hole-guard was strict, is reference", "`repoformer search --mode gt`"]);
}

#[test]
fn output_goes_to_a_file_or_to_stdout_besides_the_cache() {
    let place = Place::new();
    place.all_stages(&[]);
    let stages: [(&[&str], &str); 3] = [
        (&["prompt", "--mode", "rg1"], "cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl"),
        (
            &["complete", "--mode", "gt"],
            "cache/predictions/tasks/gt-one-gram-ws-20-ss-2-in-context.jsonl",
        ),
        (&["rg-rg"], "cache/prompts/tasks/rg-rg-one-gram-ws-20-ss-2.jsonl"),
    ];
    for (stage, artifact) in stages {
        let wanted = place.read(artifact);
        assert_eq!(wanted.lines().count(), 3, "{artifact}");
        let to_stdout = [stage, &["-o", "-"]].concat();
        assert_eq!(place.stage(&to_stdout).done().stdout, wanted, "{stage:?}");
        let to_file = [stage, &["-o", "some/where/out.jsonl"]].concat();
        assert_eq!(place.stage(&to_file).done().stdout, "");
        assert_eq!(place.read("some/where/out.jsonl"), wanted, "{stage:?}");
    }
    let prompts = "cache/prompts/tasks/gt-one-gram-ws-20-ss-2.jsonl";
    let predictions = place.read("cache/predictions/tasks/gt-one-gram-ws-20-ss-2-in-context.jsonl");
    let outside = place.run(&["complete", "--prompts", prompts]).done();
    assert_eq!(outside.stdout, predictions, "of a file of prompts, without any data set");
    let piped = place.shell(&format!("repoformer complete --prompts - -o p.jsonl < {prompts}"));
    assert_eq!(piped.done().stdout, "");
    assert_eq!(place.read("p.jsonl"), predictions);
}

#[test]
fn output_of_more_than_one_mode_is_refused_before_any_work() {
    let place = place_before(3);
    for stage in ["prompt", "complete"] {
        place
            .stage(&[stage, "-o", "out.jsonl"])
            .failed()
            .says(&["-o takes the records of one mode", "--mode"]);
    }
    assert!(!place.path("out.jsonl").exists());
    assert!(!place.path("cache/prompts").exists());
    place.write("other.jsonl", place.read("tasks.jsonl"));
    place
        .stage(&[
            "prompt",
            "--mode",
            "rg1",
            "--tasks",
            "tasks.jsonl",
            "--tasks",
            "other.jsonl",
            "-o",
            "-",
        ])
        .failed()
        .says(&["one task file"]);
}

#[test]
fn task_files_of_one_name_are_not_mixed_up() {
    let place = Place::new();
    place.write("a/tasks.jsonl", place.read("tasks.jsonl"));
    place
        .stage(&["window", "--tasks", "tasks.jsonl", "--tasks", "a/tasks.jsonl"])
        .failed()
        .says(&["tasks.jsonl", "a/tasks.jsonl", "'tasks'", "--benchmark"]);
}

#[test]
fn several_task_files_are_worked_on_one_after_the_other() {
    let place = Place::new();
    place.write("other.jsonl", place.read("tasks.jsonl"));
    let ran = place
        .stage(&[
            "run",
            "--mode",
            "none,rg1",
            "--tasks",
            "tasks.jsonl",
            "--tasks",
            "other.jsonl",
            "--format",
            "tsv",
        ])
        .done();
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split('\t').collect()).collect();
    let names: Vec<_> = rows[1..].iter().map(|row| (row[0], row[1], row[2])).collect();
    let wanted = [
        ("tasks", "none", "3"),
        ("tasks", "rg1", "3"),
        ("other", "none", "3"),
        ("other", "rg1", "3"),
    ];
    assert_eq!(names, wanted);
}

#[test]
fn repositories_can_be_chosen() {
    let place = Place::new();
    for stage in STAGES {
        place.stage(&[stage, &["--repo", "beta"]].concat()).done();
    }
    assert!(place.files("cache").keys().all(|name| !name.contains("alpha")));
    let predictions =
        place.records("cache/predictions/tasks/gt-one-gram-ws-20-ss-2-in-context.jsonl");
    assert_eq!(predictions.len(), 1);
    assert_eq!(predictions[0]["metadata"]["task_id"], TARGETS[2].0);
    assert_eq!(predictions[0]["metadata"]["row"], 2, "its place in the whole file");
    let eval = place.stage(&["eval", "--mode", "gt", "--repo", "beta", "--format", "json"]).done();
    let scores: Value = serde_json::from_str(&eval.stdout).unwrap();
    assert_eq!((&scores["all"]["n"], &scores["missing"]), (&1.into(), &0.into()));
    // Without tasks: every repository, or those chosen.
    let ran = place.run(&[
        "window",
        "--repos-dir",
        "repos",
        "--cache-dir",
        "c",
        "--repo",
        "alpha",
        "--repo",
        "beta",
    ]);
    ran.done().says(&["window: 11 records in 2 artifacts"]);
}

#[test]
fn a_stage_that_needs_tasks_says_so() {
    let place = place_before(2);
    for stage in ["search", "prompt", "complete", "rg-rg", "eval", "run"] {
        place
            .run(&[stage, "--repos-dir", "repos", "--cache-dir", "cache"])
            .failed()
            .says(&["error: ", "--tasks"]);
    }
    place.run(&["window"]).failed().says(&["--repos-dir is not set", "hint: "]);
}

#[test]
fn the_profile_of_the_reference_differs_where_it_shows_the_hole() {
    let (ours, reference) = (Place::new(), Place::new());
    ours.stage(&["run"]).done();
    reference.stage(&["run", "--profile", "repocoder"]).done();
    let (our_files, their_files) = (ours.files("cache"), reference.files("cache"));
    for (name, bytes) in &our_files {
        let before = name.starts_with("window/") || name.starts_with("vector/");
        let searched = name.starts_with("prompts/") && name.ends_with(".jsonl");
        if (before || searched) && !name.contains("/rg") {
            assert!(*bytes == their_files[name], "{name} differs");
        }
    }
    let rg1 = "cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl";
    let (our_prompts, their_prompts) = (ours.records(rg1), reference.records(rg1));
    assert_eq!(our_prompts[1..], their_prompts[1..]);
    // The window that ends where the prompt starts (line 10) is moved down by 10 lines, over the hole at line 12.
    let shows_the_hole =
        |prompt: &Value| prompt["prompt"].as_str().unwrap().contains("# store_12 = store(12)\n");
    assert!(!shows_the_hole(&our_prompts[0]));
    assert!(shows_the_hole(&their_prompts[0]));
}

#[test]
fn the_demonstration_runs_in_an_empty_folder() {
    let place = Place::empty();
    let ran = place.run(&["run", "--cache-dir", "cache", "--format", "tsv"]).done();
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0][..5], ["tasks", "mode", "n", "EM", "ES"]);
    let settings: Vec<_> = rows[1..].iter().map(|row| (row[0], row[1], row[2])).collect();
    let wanted: Vec<_> = ["line", "api", "function"]
        .iter()
        .flat_map(|tasks| ["none", "rg1", "rg-rg", "gt"].map(|mode| (*tasks, mode, "180")))
        .collect();
    assert_eq!(settings, wanted, "180 tasks a file, as data/tasks holds");
    let names: Vec<_> =
        std::fs::read_dir(place.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["cache"], "nothing is left elsewhere");
    // Retrieval must help, or the demonstration demonstrates nothing.
    let exact = |row: usize| rows[row][3].parse::<f64>().unwrap();
    assert!(exact(1) < exact(2) && exact(1) < exact(4), "{}", ran.stdout);
}
