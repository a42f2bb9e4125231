//! `--dry-run`: it writes nothing, and what it says is what the run then does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::server::{completion, refusal, server};
use crate::support::{Place, task};

/// Artifacts that a dry run lists. What is in two benchmarks' plans is listed with the first of them.
struct Plan(BTreeMap<String, Value>);

impl Plan {
    fn of(place: &Place, args: &[&str]) -> Self {
        let before = place.times(".");
        let dry = place.stage(&[args, &["--dry-run", "--format", "json"]].concat()).done();
        assert_eq!(place.times("."), before, "a dry run wrote something");
        let records: Vec<Value> = serde_json::from_str(&dry.stdout).unwrap();
        let mut artifacts = BTreeMap::new();
        for record in records {
            let path = record["artifact"].as_str().unwrap().to_owned();
            artifacts.entry(path).or_insert(record);
        }
        Self(artifacts)
    }

    /// The states, each with the number of its artifacts.
    fn states(&self) -> BTreeMap<&str, usize> {
        let mut states = BTreeMap::new();
        for record in self.0.values() {
            *states.entry(record["state"].as_str().unwrap()).or_default() += 1;
        }
        states
    }

    /// The artifacts of a state.
    fn of_state(&self, state: &str) -> Vec<&str> {
        let of_it = self.0.iter().filter(|(_, record)| record["state"] == state);
        of_it.map(|(path, _)| path.as_str()).collect()
    }

    /// All that was written is not said to be current, and all that is said to be made was written.
    fn check(&self, place: &Place, args: &[&str]) {
        let before = place.times(".");
        let ran = place.stage(&[args, &["--verbose"]].concat()).done();
        let after = place.times(".");
        let written: BTreeSet<&str> = after
            .iter()
            .filter(|(path, time)| before.get(*path) != Some(*time))
            .map(|(path, _)| path.as_str())
            .filter(|path| !is_beside(path))
            .collect();
        for path in &written {
            let record = self.0.get(*path).unwrap_or_else(|| panic!("{path} is not in the plan"));
            assert_ne!(record["state"], "current", "{path} was written");
        }
        for (path, record) in &self.0 {
            let is_sure = !["current", "upstream"].contains(&record["state"].as_str().unwrap());
            assert!(
                !is_sure || written.contains(path.as_str()),
                "{path} was not written: {record}"
            );
            // The run gives the same reason, or the first of them.
            let said = match (&record["state"], record["reason"].as_str()) {
                (state, Some(reason)) if *state == "stale" => {
                    format!("{path}: stale ({}", reason.split(", ").next().unwrap())
                }
                (state, Some(reason)) if *state == "damaged" => {
                    format!("{path}: {reason}; rebuilt")
                }
                _ => continue,
            };
            assert!(ran.stderr.contains(&said), "{said}\nis not in\n{}", ran.stderr);
        }
    }
}

/// Headers, measurements, answers of servers and a page's figures, which are no artifacts.
fn is_beside(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap();
    name.starts_with('.')
        || name.ends_with(".time.json")
        || path.starts_with("cache/latency/")
        || path.starts_with("cache/journal/")
        || path.starts_with("page/") && name != "index.html"
}

/// Plans a run, checks it, and returns the states.
fn planned(place: &Place, args: &[&str]) -> Plan {
    let plan = Plan::of(place, args);
    plan.check(place, args);
    plan
}

#[test]
fn a_run_does_what_was_planned() {
    let place = Place::new();
    let run = ["run"];
    let empty = planned(&place, &run);
    assert_eq!(empty.states(), [("missing", 34)].into());
    let done = planned(&place, &run);
    assert_eq!(done.states(), [("current", 34)].into());

    // Another parameter: the search is of another name, prompts are stale, and all behind them depends on them.
    let other = planned(&place, &["run", "--top-k", "3"]);
    assert_eq!(
        other.states(),
        [("missing", 6), ("stale", 3), ("upstream", 10), ("current", 15)].into()
    );
    let prompts = &other.0["cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl"];
    assert_eq!(prompts["reason"], "top-k was 20, is 3");
    assert_eq!(prompts["differences"], json!([{"parameter": "top-k", "was": "20", "is": "3"}]));
    let predictions = &other.0["cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl"];
    let upstream = json!([{"input": "prompts", "artifact": "cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl"}]);
    assert_eq!(predictions["upstream"], upstream);
    assert_eq!(predictions["reason"], "made again if its input changes: prompts");
    planned(&place, &run);

    // An edited file: its repository's fragments, and all that may depend on them.
    let source = place.read("repos/alpha/view.py");
    place.write("repos/alpha/view.py", format!("{source}last = view(30)\n"));
    let edited = planned(&place, &run);
    assert_eq!(edited.of_state("stale"), ["cache/window/repos/alpha_ws20_slice2.bin"]);
    let window = &edited.0["cache/window/repos/alpha_ws20_slice2.bin"];
    assert_eq!(window["reason"], "repository changed");
    let [difference] = &window["differences"].as_array().unwrap()[..] else { panic!("{window}") };
    assert_eq!(difference["input"], "repository");
    assert_ne!(difference["was"], difference["is"]);
    assert_eq!(edited.of_state("missing"), [""; 0]);
    assert!(edited.of_state("current").iter().any(|path| path.contains("repos/beta")));

    // A deleted and a damaged artifact come out as they were: nothing behind them is made again.
    let retrieval = "cache/retrieval/tasks/gt/beta_ws20_slice2.one-gram.top20.bin";
    std::fs::remove_file(place.path(retrieval)).unwrap();
    let vectors = "cache/vector/repos/alpha_ws20_slice2.one-gram.bin";
    let mut bytes = std::fs::read(place.path(vectors)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    place.write(vectors, bytes);
    let broken = planned(&place, &run);
    assert_eq!(broken.of_state("missing"), [retrieval]);
    assert_eq!(broken.of_state("damaged"), [vectors]);
    assert!(!broken.of_state("upstream").is_empty());
    assert_eq!(Plan::of(&place, &run).states(), [("current", 34)].into());
}

#[test]
fn other_versions_benchmarks_and_profiles_are_planned_too() {
    let place = Place::new();
    place.stage(&["run"]).done();
    let header = "cache/prompts/tasks/.gt-one-gram-ws-20-ss-2.header.json";
    let text = place.read(header).replace(env!("CARGO_PKG_VERSION"), "0.0.9");
    place.write(header, text);
    let plan = planned(&place, &["run"]);
    let prompts = "cache/prompts/tasks/gt-one-gram-ws-20-ss-2.jsonl";
    assert_eq!(plan.of_state("stale"), [prompts]);
    assert_eq!(plan.0[prompts]["reason"], "it was written by repoformer 0.0.9");

    place.write("more.jsonl", place.read("tasks.jsonl"));
    let both = ["run", "--tasks", "tasks.jsonl", "--tasks", "more.jsonl"];
    let plan = planned(&place, &both);
    // The fragments of both are the same.
    assert_eq!(plan.states(), [("current", 34), ("missing", 30)].into());
    let dry = place.stage(&[&both[..], &["--dry-run"]].concat()).done();
    assert!(dry.stdout.ends_with("in all: 68 current\n"), "{}", dry.stdout);

    for (profile, each_time) in [("repoformer-paper", 1), ("crosscodeeval", 0)] {
        let mut run = vec!["run", "--profile", profile, "--mode", "none,rg1", "--report=page"];
        if each_time > 0 {
            run.extend(["--policy", "always"]);
        }
        let plan = planned(&place, &run);
        assert!(plan.states()["missing"] > 8, "{profile}: {:?}", plan.states());
        // Besides what a policy chooses, the page.
        let again = planned(&place, &run);
        let states = again.states();
        assert_eq!(
            states.keys().copied().collect::<Vec<_>>(),
            ["current", "each-time"],
            "{profile}"
        );
        assert_eq!(states["each-time"], each_time + 1, "{profile}");
    }
}

/// Twelve tasks more, each with another line.
pub(crate) fn add_tasks(place: &Place) {
    let main = place.read("repos/beta/main.py");
    let tasks: Vec<Value> =
        (5..17).map(|line| task(&format!("more/{line}"), "beta/main.py", &main, 0, line)).collect();
    place.add_tasks(&tasks);
}

#[test]
fn requests_are_counted_and_no_server_is_asked() {
    let place = Place::new();
    let (url, seen) = server(|request| match request.prompt().contains("view") {
        true => refusal("400 Bad Request", "too long"),
        false => completion("\nstore_11 = store(1)"),
    });
    let run = |more: &[&'static str]| -> Vec<String> {
        let flags = ["run", "--mode", "none", "--model", "m", "--endpoint", &url];
        [&flags[..], more].concat().into_iter().map(str::to_owned).collect()
    };
    let plan = |place: &Place, more: &[&'static str]| {
        let args = run(more);
        Plan::of(place, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let predictions = "cache/predictions/tasks/none-one-gram-ws-20-ss-2-m.jsonl";
    // Without the prompts, nobody knows.
    assert_eq!(plan(&place, &[]).0[predictions].get("requests"), None);
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    assert_eq!(plan(&place, &[]).0[predictions]["requests"], 3);
    assert!(!place.path("cache/journal").exists());
    assert!(seen.lock().unwrap().is_empty());

    let args = run(&[]);
    place.stage(&args.iter().map(String::as_str).collect::<Vec<_>>()).partly();
    let asked = seen.lock().unwrap().len();
    // What failed is asked for again only if that is wished.
    assert_eq!(plan(&place, &[]).0[predictions]["state"], "current");
    let again = plan(&place, &["--retry-failed"]);
    assert_eq!(again.0[predictions]["state"], "incomplete");
    assert_eq!(again.0[predictions]["requests"], 1);
    assert_eq!(again.0[predictions]["reason"], "1 of 3 prompts have no prediction");
    add_tasks(&place);
    place.stage(&["window"]).done();
    place.stage(&["prompt", "--mode", "none"]).done();
    assert_eq!(plan(&place, &[]).0[predictions]["requests"], 12);
    assert_eq!(seen.lock().unwrap().len(), asked);
}

#[test]
fn a_stage_without_its_inputs_fails_as_it_would() {
    let place = Place::new();
    let real = place.stage(&["search"]).failed();
    let dry = place.stage(&["search", "--dry-run"]).failed();
    assert_eq!(dry.stderr, real.stderr);
    place.stage(&["window", "--dry-run"]).done();
    assert!(!place.path("cache").exists());
}

#[test]
fn a_plan_takes_the_place_of_no_results() {
    let place = Place::new();
    place.write("table.txt", "results\n");
    let dry = place.stage(&["run", "--dry-run", "-o", "table.txt"]).done();
    assert!(dry.stdout.starts_with("window tasks: "), "{}", dry.stdout);
    assert_eq!(place.read("table.txt"), "results\n");
}

#[test]
fn the_demonstration_outside_its_project_is_planned_without_its_files() {
    let place = Place::empty();
    let dry = place.run(&["run", "--dry-run"]).done();
    assert!(dry.stdout.contains("to make\n"), "{}", dry.stdout);
    assert_eq!(place.count("."), 0, "a dry run wrote something");
}
