//! `--dry-run`: it writes nothing, and what it says is what the run then does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::completion;
use crate::support::server::server;
use crate::support::{Place, Ran, parse_jsonl};

/// Artifacts that a dry run lists. What is in two benchmarks' plans is listed with the first of them.
struct Plan(BTreeMap<String, Value>);

impl Plan {
    fn new(place: &Place, args: &[&str]) -> Self {
        let before = place.times(".");
        let dry = started(place, &[args, &["--dry-run", "--format", "json"]].concat()).done();
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
        let ran = started(place, &[args, &["--verbose"]].concat()).done();
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
            let may_be = ["current", "upstream", "perhaps"];
            let is_sure = !may_be.contains(&record["state"].as_str().unwrap());
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

/// A command with the data of a place; without any, that of the demonstration.
fn started(place: &Place, args: &[&str]) -> Ran {
    if place.path("tasks.jsonl").exists() { place.stage(args) } else { place.run(args) }
}

/// Headers, times of searches, and answers of servers: what goes with an artifact, and is listed as none.
fn is_beside(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap();
    name.starts_with('.') || name.ends_with(".time.json") || path.starts_with("cache/journal/")
}

/// Plans a run, checks it, and returns the states.
fn planned(place: &Place, args: &[&str]) -> Plan {
    let plan = Plan::new(place, args);
    plan.check(place, args);
    plan
}

#[test]
fn a_run_does_what_was_planned() {
    let place = Place::new();
    let run = ["run"];
    let empty = planned(&place, &run);
    assert_eq!(empty.states(), [("missing", 38)].into());
    let done = planned(&place, &run);
    assert_eq!(done.states(), [("current", 38)].into());

    // Another parameter: the search is of another name, prompts are stale, and all behind them depends on them.
    let other = planned(&place, &["run", "--top-k", "3"]);
    assert_eq!(
        other.states(),
        [("missing", 6), ("stale", 3), ("upstream", 13), ("current", 16)].into()
    );
    let prompts = &other.0["cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl"];
    assert_eq!(prompts["reason"], "top-k was 20, is 3");
    assert_eq!(prompts["differences"], json!([{"parameter": "top-k", "was": "20", "is": "3"}]));
    let predictions = &other.0["cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl"];
    let upstream = json!([{"input": "prompts", "artifact": "cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl"}]);
    assert_eq!(predictions["upstream"], upstream);
    assert_eq!(predictions["reason"], "rebuilt if its input changes: prompts");
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
    assert_eq!(Plan::new(&place, &run).states(), [("current", 38)].into());
}

#[test]
fn benchmarks_and_profiles_are_planned_too() {
    let place = Place::new();
    place.stage(&["run"]).done();
    place.write("more.jsonl", place.read("tasks.jsonl"));
    let both = ["run", "--tasks", "tasks.jsonl", "--tasks", "more.jsonl"];
    let plan = planned(&place, &both);
    // The fragments of both are the same.
    assert_eq!(plan.states(), [("current", 38), ("missing", 34)].into());
    let dry = place.stage(&[&both[..], &["--dry-run"]].concat()).done();
    assert!(dry.stdout.ends_with("in all: 76 current\n"), "{}", dry.stdout);

    for (profile, each_time) in [("repoformer-paper", 1), ("crosscodeeval", 0)] {
        let mut run = vec!["run", "--profile", profile, "--mode", "none,rg1", "--report=page"];
        if each_time > 0 {
            run.extend(["--policy", "always"]);
        }
        let plan = planned(&place, &run);
        assert!(plan.states()["missing"] > 8, "{profile}: {:?}", plan.states());
        // The page, its manifest and figures of means, gains, outcomes and lengths; with a policy also what it chooses, and its
        // gains. Whether identifiers are found is known then.
        let again = planned(&place, &run);
        let states = again.states();
        assert_eq!(
            states.keys().copied().collect::<Vec<_>>(),
            ["current", "each-time", "perhaps"],
            "{profile}"
        );
        assert_eq!(states["each-time"], 2 * each_time + 6, "{profile}");
    }
}

#[test]
fn a_plan_says_how_many_requests_a_server_would_get() {
    let place = Place::new();
    let (url, seen) = server(|_| completion("x"));
    place.stage(&["window"]).done();
    place.stage(&["prompt", "--mode", "none"]).done();
    let run = ["run", "--mode", "none", "--model", "m", "--endpoint", &url, "--dry-run"];
    let text = place.stage(&run).done().stdout;
    assert!(text.contains("\n  3 requests to the server\n"), "{text}");
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn a_plan_takes_the_place_of_no_results() {
    let place = Place::new();
    place.write("table.txt", "results\n");
    let dry = place.stage(&["run", "--dry-run", "-o", "table.txt"]).done();
    assert!(dry.stdout.starts_with("window tasks: "), "{}", dry.stdout);
    assert_eq!(place.read("table.txt"), "results\n");
}

/// Outside its project, its files are part of what a run writes; of its three benchmarks there is a report each, and a page that
/// links them.
#[test]
fn the_demonstration_is_planned_with_all_that_it_writes() {
    let place = Place::empty();
    let dry = place.run(&["run", "--dry-run"]).done();
    assert!(dry.stdout.contains("to build\n"), "{}", dry.stdout);
    assert_eq!(place.count("."), 0, "a dry run wrote something");
    let run = ["run", "--report=page", "--policy=always,learned@30%", "--mode=none,rg1"];
    let plan = planned(&place, &run);
    for path in [
        "data/cache/demo/data/tasks/line.jsonl",
        "data/cache/latency/api/rg1-one-gram-ws-20-ss-2-in-context.jsonl",
        "page/line/figures/gain-rg1.svg",
        "page/line/figures/manifest.json",
        "page/index.html",
    ] {
        assert!(plan.0.contains_key(path), "{path}");
    }
    let again = planned(&place, &run);
    assert_eq!(
        again.states().keys().copied().collect::<Vec<_>>(),
        ["current", "each-time", "perhaps"]
    );
    let index = place.read("page/index.html");
    for benchmark in ["line", "api", "function"] {
        let link = format!("<li><a href=\"{benchmark}/index.html\">{benchmark}</a>: <b>");
        assert!(index.contains(&link), "{index}");
    }
    assert!(!index.contains("<script"), "{index}");
}

/// A page that is not the program's own list of reports stays.
#[test]
fn the_page_of_several_reports_takes_the_place_of_no_other() {
    let place = Place::new();
    place.write("more.jsonl", place.read("tasks.jsonl"));
    place.write("page/index.html", "mine");
    let both = ["--tasks", "tasks.jsonl", "--tasks", "more.jsonl"];
    let run = [&["run", "--mode=none", "--report=page"][..], &both].concat();
    let refused =
        ["page/index.html: a report (--report) would overwrite this page", "name another folder"];
    place.stage(&run).failed().says(&refused);
    place.stage(&[&run[..], &["--dry-run"]].concat()).failed().says(&refused);
    assert_eq!(place.read("page/index.html"), "mine");
    assert!(!place.path("cache").exists());
    std::fs::remove_file(place.path("page/index.html")).unwrap();
    for _ in 0..2 {
        place.stage(&run).done().says(&["reports: page/index.html"]);
    }
}

/// Policies that a run leaves out are not planned, and what leaves them out is said in both.
#[test]
fn policies_that_cannot_choose_are_not_planned() {
    let place = Place::new();
    let run = ["run", "--mode=none,rg1", "--policy=always,self@0.5,entropy@1"];
    let left_out =
        ["self@0.5: left out: it needs a model", "entropy@1: left out: 3 of 3 tasks lack"];
    let dry = place.stage(&[&run[..], &["--dry-run", "--format=jsonl"]].concat()).partly();
    let dry = dry.says(&left_out);
    let of_policies = |paths: &mut dyn Iterator<Item = String>| -> Vec<String> {
        paths.filter(|path| path.contains("predictions/tasks/") && path.contains("rg1")).collect()
    };
    let planned = parse_jsonl(&dry.stdout);
    let mut paths = planned.iter().map(|one| one["artifact"].as_str().unwrap().to_owned());
    let mut planned = of_policies(&mut paths);
    place.stage(&run).partly().says(&left_out);
    let written = place.times(".");
    let mut written = of_policies(&mut written.into_keys().filter(|path| !is_beside(path)));
    planned.sort();
    written.sort();
    assert_eq!(planned.len(), 2, "{planned:?}");
    assert_eq!(written, planned);
    // Without retrieval, there is nothing to choose.
    let none = ["run", "--mode=none", "--policy=always", "--dry-run"];
    place
        .stage(&none)
        .partly()
        .says(&["policies are left out, since they choose between modes none and rg1"]);
    // Nor can a policy learn from one repository.
    let first = place.read("tasks.jsonl").lines().next().unwrap().to_owned();
    place.write("tasks.jsonl", first + "\n");
    let learned = ["run", "--mode=none,rg1", "--policy=learned", "--dry-run"];
    let one = "policy learned: all instances belong to one repository";
    let dry = place.stage(&learned).partly().says(&[one]);
    assert!(!dry.stdout.contains("learned-rg1"), "{}", dry.stdout);
}

#[test]
fn figures_of_the_paper_are_planned() {
    let place = Place::new();
    let run = ["run", "--mode=none,rg1", "--paper=figure-3", "--report=page"];
    let plan = Plan::new(&place, &run);
    let page = "page/figure-3/index.html";
    assert_eq!(plan.0[page]["kind"], "page, with its charts beside it");
    place.stage(&run).done();
    assert!(place.path(page).exists());
    let sets: BTreeSet<String> = place.times("page").into_keys().collect();
    assert!(sets.iter().all(|path| path.starts_with("figure-3/")), "{sets:?}");
}

#[test]
fn a_page_links_all_reports_of_its_folder() {
    let place = Place::new();
    std::fs::copy(place.path("tasks.jsonl"), place.path("more.jsonl")).unwrap();
    let run = |tasks| place.stage(&["run", "--mode", "none", "--report=pages", "--tasks", tasks]);
    run("tasks.jsonl,more.jsonl").done();
    assert!(place.read("pages/index.html").contains("more/index.html"));
    std::fs::remove_file(place.path("pages/index.html")).unwrap();
    run("tasks.jsonl").done().says(&["reports: pages/index.html"]);
    for name in ["tasks", "more"] {
        assert!(place.read("pages/index.html").contains(&format!("{name}/index.html")), "{name}");
    }
    // Another's stays.
    place.write("pages/index.html", "<p>mine</p>");
    run("tasks.jsonl").done();
    assert_eq!(place.read("pages/index.html"), "<p>mine</p>");
}
