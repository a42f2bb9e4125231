//! `cache`: it calls current what it compared, and removes what the program wrote.

use serde_json::Value;

use crate::support::Place;

/// The states of one stage's artifacts, as `cache list` gives them with these flags.
fn states(place: &Place, stage: &str, flags: &[&str]) -> Vec<(String, String)> {
    let list = ["cache", "list", "--cache-dir", "cache", "--format", "json", "--stage", stage];
    let files: Vec<Value> =
        serde_json::from_str(&place.run(&[&list[..], flags].concat()).done().stdout).unwrap();
    let text = |file: &Value, name: &str| file[name].as_str().unwrap_or_default().to_owned();
    files.iter().map(|file| (text(file, "state"), text(file, "reason"))).collect()
}

fn all_are(states: &[(String, String)], state: &str, reason: &str) {
    assert!(!states.is_empty());
    let is_so = |(found, why): &(String, String)| found == state && why == reason;
    assert!(states.iter().all(is_so), "{states:?}");
}

#[test]
fn what_is_not_compared_is_not_called_current() {
    let place = Place::new();
    place.stage(&["run", "--mode", "none,rg1"]).done();
    let named = ["--repos-dir", "repos", "--tasks", "tasks.jsonl"];
    for stage in ["window", "vector", "retrieval", "prompts", "predictions", "scores"] {
        all_are(&states(&place, stage, &named), "current", "");
    }
    all_are(
        &states(&place, "retrieval", &[]),
        "unknown",
        "the folder of repositories is not known",
    );
    let repos = ["--repos-dir", "repos", "--benchmark", "tasks"];
    all_are(
        &states(&place, "window", &repos),
        "unknown",
        "the task file of its benchmark is not known",
    );
    // Another task: queries are stale, fragments are not.
    let first = place.read("tasks.jsonl").lines().next().unwrap().to_owned();
    place.write("tasks.jsonl", first + "\n");
    let queries = states(&place, "window", &[&named[..], &["--benchmark", "tasks"]].concat());
    let changed = |(state, why): &&(String, String)| state == "stale" && why == "tasks changed";
    assert_eq!(queries.iter().filter(changed).count(), 2, "{queries:?}");
    let fragments = [&named[..], &["--benchmark", "repos"]].concat();
    all_are(&states(&place, "window", &fragments), "current", "");
    std::fs::remove_dir_all(place.path("repos/beta")).unwrap();
    assert!(
        states(&place, "window", &fragments)
            .contains(&("unknown".into(), "its repository was not found".into()))
    );
}

/// Benchmarks share fragments, and queries of two kinds a folder: each is compared with its own.
#[test]
fn artifacts_that_lie_together_are_told_apart() {
    let place = Place::new();
    let first = place.read("tasks.jsonl").lines().next().unwrap().to_owned();
    place.write("one.jsonl", first + "\n");
    let run = |more: &[&str]| {
        let run = ["run", "--repos-dir", "repos", "--cache-dir", "cache", "--mode", "none,rg1"];
        place.run(&[&run[..], more].concat()).done();
    };
    for tasks in ["tasks.jsonl", "one.jsonl"] {
        run(&["--tasks", tasks]);
        for query in ["last-n-lines", "left-right"] {
            run(&["--tasks", tasks, "--unit", "chunks", "--query", query]);
        }
    }
    let named = ["--repos-dir", "repos", "--tasks", "tasks.jsonl", "--tasks", "one.jsonl"];
    for stage in ["retrieval", "prompts", "predictions", "scores"] {
        all_are(&states(&place, stage, &named), "current", "");
    }
    // Retrieval of one kind is another than its prompts were made from.
    place.stage(&["search", "--mode", "rg1", "--hole-guard", "reference", "-q"]).done();
    let stage = [&named[..], &["--benchmark", "tasks", "--mode", "rg1"]].concat();
    let mut conditions: Vec<String> =
        states(&place, "prompts", &stage).into_iter().map(|(state, _)| state).collect();
    conditions.sort();
    assert_eq!(conditions, ["current", "current", "unknown"]);
}

#[test]
fn a_checkout_is_compared_as_one_repository() {
    let place = Place::new();
    place.write("repos/alpha/pyproject.toml", "");
    let checkout = ["--repos-dir", "repos/alpha"];
    place.run(&["window", "--repos-dir", "repos/alpha", "--cache-dir", "cache"]).done();
    all_are(&states(&place, "window", &checkout), "current", "");
    place.write("repos/alpha/view.py", "x = 1\n");
    all_are(&states(&place, "window", &checkout), "stale", "repository changed");
}

#[test]
fn files_of_others_stay_wherever_they_lie() {
    let place = Place::new();
    place.stage(&["run", "--mode", "none,rg1", "--report"]).done();
    let others = [
        ("cache/report/2024/index.html", "<html>thesis</html>"),
        ("cache/report/2024/fig.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("cache/report/tasks/notes.html", "<!doctype html><p>mine</p>"),
        ("cache/latency/tasks/mine.jsonl", "{\"task_id\": \"a\", \"note\": 1}\n"),
        ("cache/exec/tasks/mine.jsonl", "{\"task_id\":\"a\",\"note\":1}\n"),
        ("cache/exec/tasks/mine.manifest.json", "{\"mine\": 1}"),
        ("cache/vector/dense/mine.jsonl", "{\"digest\": 1}\n"),
    ];
    for (path, text) in others {
        place.write(path, text);
    }
    let stages = "report,latency,exec,dense";
    let prune = ["cache", "prune", "--cache-dir", "cache", "--stage", stages, "--yes"];
    let removed = place.run(&prune).done().stdout;
    for (path, text) in others {
        assert_eq!(place.read(path), text);
        assert!(!removed.contains(path), "{removed}");
    }
    for own in ["report/tasks/index.html", "report/tasks/figures/means.svg", "latency/tasks/none"] {
        assert!(removed.contains(own), "{removed}");
        assert!(!place.path("cache").join(own).exists());
    }
}

/// Files that a stopped run leaves are the program's own, and are removed once nobody holds them.
#[test]
fn files_of_a_stopped_run_are_the_programs_own() {
    let place = Place::new();
    place.write("cache/prompts/tasks/.writing-left00", "half");
    place.write("cache/prompts/tasks/.writing-held00", "half");
    place.write("cache/journal/m.jsonl", "");
    place.write("cache/exec/tasks/results.jsonl", "");
    place.write("cache/vector/dense/m.times.jsonl", "");
    let held = std::fs::File::open(place.path("cache/prompts/tasks/.writing-held00")).unwrap();
    held.lock().unwrap();
    let mut found = states(&place, "prompts", &[]);
    found.sort();
    let no_reason = |state: &str| (state.to_owned(), String::new());
    assert_eq!(found, ["in use", "temporary"].map(no_reason));
    for stage in ["journal", "exec", "dense"] {
        all_are(&states(&place, stage, &[]), "kept", "");
    }
    let prune = ["cache", "prune", "--cache-dir", "cache", "--temporary", "--yes"];
    let removed = place.run(&prune).done().stdout;
    assert_eq!(removed, "cache/prompts/tasks/.writing-left00\n");
    drop(held);
    let prune = ["cache", "prune", "--cache-dir", "cache", "--stage", "prompts,journal", "--yes"];
    let removed = place.run(&prune).done().stdout;
    assert_eq!(removed, "cache/prompts/tasks/.writing-held00\ncache/journal/m.jsonl\n");
}

#[test]
fn each_benchmark_says_why_its_artifacts_are_made_again() {
    let place = Place::new();
    place.write("more.jsonl", place.read("tasks.jsonl"));
    let both = ["run", "--tasks", "tasks.jsonl", "--tasks", "more.jsonl", "--mode", "none"];
    place.stage(&both).done();
    for file in ["tasks.jsonl", "more.jsonl"] {
        // One of the two tasks of alpha.
        let text = place.read(file);
        let lines: Vec<&str> = text.lines().collect();
        place.write(file, format!("{}\n{}\n", lines[0], lines[2]));
    }
    let said = place.stage(&both).done().stderr;
    assert_eq!(said.matches("tasks changed").count(), 2, "{said}");
}

#[test]
fn a_cache_among_repositories_is_none_however_deep_it_lies() {
    let place = Place::new();
    place
        .run(&place.args(&["run", "--mode", "none,rg1", "--cache-dir", "repos/data/cache"]))
        .done();
    place.write("repos/data/cache/demo/data/repos/tidewatch/clock.py", "tick = 1\n");
    let sample = ["sample", "--kind", "line", "--repos-dir", "repos", "--min-tokens", "1"];
    let ran = place.run(&sample).done();
    ran.says(&["repos: 1 folder without a source file left out: data", "from 2 repositories"]);
}
