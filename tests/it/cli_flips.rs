//! Flipped bits: in every file that a run leaves, a flip is noticed and mended or refused, or does no harm.
//!
//! `FLIPS=all cargo test --locked --test it -- flips --nocapture` flips a bit in each 64 bytes of every file and prints how many
//! were named, refused, written over, or made no difference; without it, a few of each file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::completion;
use crate::support::server::{Request, ok, server};
use crate::support::{Place, Ran, jsonl, judge, task};

/// Bytes that one flip stands for.
const STRETCH: usize = 64;

/// Files of a place by their paths.
type Files = BTreeMap<String, Vec<u8>>;

/// A command that is run again on damaged files.
struct Again<'a> {
    place: &'a Place,
    /// Runs it.
    run: Box<dyn Fn(&Place) -> Ran + 'a>,
    /// Kind of a file that is to be flipped; `None` for other files.
    kind: fn(&str) -> Option<&'static str>,
    /// Whether a file holds measurements: made again, it has other ones.
    is_measured: fn(&str) -> bool,
}

/// How flips of one kind of file ended.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    flips: usize,
    /// Named, and the same result as ever.
    mended: usize,
    /// Named with a way out; no result.
    refused: usize,
    /// Written over without a word, with the bytes that it had.
    overwritten: usize,
    /// In the name of the checksum: the record counts as one without, and is whole.
    harmless: usize,
    /// Left as it is; the result is the same.
    unseen: usize,
    /// Left as it is, or worse, and the result is another.
    wrong: usize,
}

fn all_files(place: &Place) -> Files {
    place.every_file()
}

/// Puts files back as they were.
fn restore(place: &Place, was: &Files) {
    let now = all_files(place);
    for (path, bytes) in was {
        if now.get(path) != Some(bytes) {
            place.write(path, bytes);
        }
    }
    for path in now.keys().filter(|path| !was.contains_key(*path)) {
        std::fs::remove_file(place.path(path)).unwrap();
    }
}

/// The stretches of a file that are flipped.
fn stretches(length: usize) -> Vec<usize> {
    let all = length.div_ceil(STRETCH);
    let some = match std::env::var_os("FLIPS") {
        Some(_) => all,
        None => 2,
    };
    // From the last on, which has the checksum of many forms.
    let step = (all / some.max(1)).max(1);
    (0..all).rev().step_by(step).take(some).collect()
}

/// Flips one bit of a stretch, at a place that differs from stretch to stretch.
fn flipped(bytes: &[u8], stretch: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let begin = stretch * STRETCH;
    let length = (bytes.len() - begin).min(STRETCH);
    bytes[begin + (stretch * 37 + 11) % length] ^= 1 << (stretch * 5 % 7);
    bytes
}

/// Whether a byte is one of the name of a record's checksum.
fn is_in_name(bytes: &[u8], at: usize) -> bool {
    const NAME: &[u8] = b"\"record_checksum\"";
    let begins = at.saturating_sub(NAME.len() - 1)..=at;
    begins.into_iter().any(|begin| bytes[begin..].starts_with(NAME))
}

/// Output without measured times.
fn without_times(stdout: &str) -> String {
    stdout.split_inclusive('\n').filter(|line| !line.contains("_ms\"")).collect()
}

impl Again<'_> {
    /// Flips bits and runs the command each time; the counts by kind of file, and what went wrong.
    fn flip(&self) -> (BTreeMap<&'static str, Count>, Vec<String>) {
        let was = all_files(self.place);
        let wanted = (self.run)(self.place);
        assert_ne!(wanted.code, Some(2), "{}", wanted.stderr);
        let whole = all_files(self.place);
        restore(self.place, &was);
        let (mut counts, mut faults) = (BTreeMap::<_, Count>::new(), Vec::new());
        for (path, bytes) in &was {
            let Some(kind) = (self.kind)(path) else { continue };
            for stretch in stretches(bytes.len()) {
                let damaged = flipped(bytes, stretch);
                self.place.write(path, &damaged);
                let ran = (self.run)(self.place);
                let now = all_files(self.place);
                let count = counts.entry(kind).or_default();
                count.flips += 1;
                let at = bytes.iter().zip(&damaged).position(|(a, b)| a != b).unwrap();
                let is_same = without_times(&ran.stdout) == without_times(&wanted.stdout)
                    && ran.code == wanted.code
                    && whole.iter().all(|(other, bytes)| {
                        other == path || (self.is_measured)(other) || now.get(other) == Some(bytes)
                    });
                // A header's damage is its artifact's.
                let artifact = path.replace("/.", "/").replace(".header.json", "");
                let new_lines = ran
                    .stderr
                    .lines()
                    .filter(|line| !wanted.stderr.lines().any(|old| old == *line));
                let is_named = new_lines
                    .into_iter()
                    .any(|line| line.contains(path.as_str()) || line.contains(&artifact));
                let is_left = now.get(path) == Some(&damaged);
                let end = match (is_named, is_same) {
                    (true, _) if ran.code == Some(2) && ran.stderr.contains("hint: ") => {
                        &mut count.refused
                    }
                    (true, true) => &mut count.mended,
                    (false, true) if is_left && is_in_name(bytes, at) => &mut count.harmless,
                    (false, true) if is_left => &mut count.unseen,
                    (false, true) => &mut count.overwritten,
                    (_, false) => &mut count.wrong,
                };
                *end += 1;
                let is_harmless = is_same && is_in_name(bytes, at);
                if !is_named && is_left && !is_harmless || !is_same && ran.code != Some(2) {
                    let around = |bytes: &[u8]| {
                        let near = &bytes[at.saturating_sub(24)..(at + 8).min(bytes.len())];
                        String::from_utf8_lossy(near).into_owned()
                    };
                    let (code, said) = (ran.code, ran.stderr.lines().last().unwrap_or_default());
                    faults.push(format!(
                        "{kind}: {path}, byte {at}, same {is_same}, exit {code:?}: {:?} -> {:?}; {said}",
                        around(bytes),
                        around(&damaged),
                    ));
                }
                restore(self.place, &was);
            }
        }
        (counts, faults)
    }

    /// No flip may be unseen or change the result.
    fn check(&self) {
        let (counts, faults) = self.flip();
        for (kind, count) in &counts {
            let Count { flips, mended, refused, overwritten, harmless, unseen, wrong } = count;
            eprintln!(
                "{kind}: {flips} flips, {mended} named and mended, {refused} refused, {overwritten} written over, {harmless} harmless, {unseen} unseen, {wrong} wrong"
            );
        }
        assert!(!counts.is_empty());
        let shown = &faults[..faults.len().min(40)];
        assert!(faults.is_empty(), "{} faults, first:\n{}", faults.len(), shown.join("\n"));
    }
}

fn nothing_is_measured(_: &str) -> bool {
    false
}

/// Kind of a file of the cache: its stage's folder.
fn in_cache(path: &str) -> Option<&'static str> {
    let stage = path.strip_prefix("cache/")?.split('/').next()?;
    let header = path.ends_with(".header.json");
    Some(match stage {
        "window" => "windows",
        "vector" if path.contains("/dense/") => "dense vectors",
        "vector" => "vectors",
        "retrieval" if path.ends_with(".time.json") => "times of searches",
        "retrieval" => "retrieval",
        "prompts" if header => "headers of prompts",
        "prompts" => "prompts",
        "predictions" if header => "headers of predictions",
        "predictions" => "predictions",
        "scores" if header => "headers of scores",
        "scores" => "scores",
        "latency" => "latencies",
        "report" if path.ends_with("manifest.json") => "manifests of reports",
        "report" => "reports",
        "journal" => "journals",
        "exec" if path.ends_with(".manifest.json") => "manifests of test runs",
        "exec" => "results of test runs",
        "demo" => "files of the demonstration",
        _ => return None,
    })
}

fn is_time(path: &str) -> bool {
    path.contains("/latency/") || path.ends_with(".time.json") || path.ends_with(".times.jsonl")
}

#[test]
fn a_run_notices_flips_in_all_that_it_left() {
    let place = Place::new();
    let run =
        |place: &Place| place.stage(&["run", "--mode", "none,rg1", "--report", "--format", "json"]);
    run(&place).done();
    let again = Again { place: &place, run: Box::new(run), kind: in_cache, is_measured: is_time };
    again.check();
}

/// Chunks with right contexts, and vectors of a server, whose store is read where vectors are made again.
#[test]
fn a_run_of_chunks_notices_flips_in_all_that_it_left() {
    let place = Place::new();
    let (url, _) = server(|request: &Request| {
        let vector = |(index, text): (usize, &Value)| {
            let count = |letter| 1 + text.as_str().unwrap().matches(letter).count();
            let counts = ["a", "e", "m", "t"].map(count);
            json!({"index": index, "embedding": counts})
        };
        let texts = request.body["input"].as_array().unwrap();
        let data: Vec<Value> = texts.iter().enumerate().map(vector).collect();
        ok(&json!({ "data": data }))
    });
    let args = [
        "--mode", "none,rg1", "--unit", "chunks", "--vectorizer", "dense", "--endpoint", &url,
        "--embedding-model", "letters", "--chunk-size", "5", "--chunk-stride", "5",
        "--query-lines", "5", "--format", "json",
    ];
    let run = |place: &Place| place.stage(&[&["run"], &args[..]].concat());
    run(&place).done();
    let kind = |path: &str| in_cache(path).filter(|kind| *kind != "dense vectors");
    Again { place: &place, run: Box::new(run), kind, is_measured: is_time }.check();

    let run = |place: &Place| {
        std::fs::remove_dir_all(place.path("cache/vector/repos")).unwrap();
        std::fs::remove_dir_all(place.path("cache/vector/tasks")).unwrap();
        place.stage(&[&["vectorize"], &args[..args.len() - 2]].concat())
    };
    let kind = |path: &str| in_cache(path).filter(|kind| *kind == "dense vectors");
    Again { place: &place, run: Box::new(run), kind, is_measured: is_time }.check();
}

/// A run with a server, whose predictions are made again from the journal.
#[test]
fn a_journal_with_flips_is_asked_again() {
    let place = Place::new();
    let (url, _) = server(|request: &Request| {
        let last = request.prompt().lines().last().unwrap();
        completion(&format!("\n{}", last.replace('1', "2")))
    });
    let args = ["complete", "--mode", "none,rg1", "--endpoint", &url, "--model", "m"];
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    place.stage(&args).done();
    let run = |place: &Place| {
        std::fs::remove_dir_all(place.path("cache/predictions")).unwrap();
        place.stage(&args)
    };
    let kind = |path: &str| in_cache(path).filter(|kind| *kind == "journals");
    let is_measured = |path: &str| is_time(path) || path.contains("/journal/");
    Again { place: &place, run: Box::new(run), kind, is_measured }.check();
}

#[cfg(target_os = "linux")]
#[test]
fn results_of_tests_with_flips_are_run_again() {
    let text = "def add(a, b):\n    return a + b\n\n\n# done\n";
    let place = Place::empty();
    place.write("repos/demo/calc.py", text);
    place.write("tasks.jsonl", jsonl(&[task("demo/0", "demo/calc.py", text, 0, 1)]));
    place.write("p.jsonl", jsonl(&[json!({"task_id": "demo/0", "pred": ["    return b", "x"]})]));
    let args = [
        "eval", "--exec", "--test-cmd", "grep -q return calc.py", "--predictions", "p.jsonl",
        "--format", "jsonl", "--per-task",
    ];
    let run = |place: &Place| place.stage(&args);
    run(&place);
    let kind = |path: &str| {
        in_cache(path).filter(|kind| kind.ends_with("test runs") && !path.contains("/copies/"))
    };
    let is_measured = |path: &str| path.contains("/exec/");
    Again { place: &place, run: Box::new(run), kind, is_measured }.check();
}

/// Files that a user asked for, with what reads them.
#[test]
fn files_of_the_user_with_flips_are_refused() {
    let place = Place::new();
    place.stage(&["run", "--mode", "none,rg1"]).done();
    let file = |mode: &str| place.named("cache/predictions/tasks", mode);
    let (base, rag) = (file("none"), file("rg1"));
    for (predictions, scores) in [(&base, "a.jsonl"), (&rag, "b.jsonl")] {
        let eval = ["eval", "--predictions", predictions, "--per-task", "--format", "jsonl"];
        place.stage(&[&eval[..], &["-o", scores]].concat()).done();
    }
    let kind = |path: &str| match path {
        "a.jsonl" | "b.jsonl" => Some("scores of the user"),
        "a.jsonl.manifest.json" | "b.jsonl.manifest.json" => Some("manifests"),
        _ => None,
    };
    let compare = |place: &Place| place.run(&["compare", "a.jsonl", "b.jsonl", "--format", "json"]);
    let run = Box::new(compare);
    Again { place: &place, run, kind, is_measured: nothing_is_measured }.check();

    let labels = [&judge("tasks.jsonl", &base, &rag)[..], &["-o", "labels.jsonl"]].concat();
    place.run(&labels).done();
    let sweep = ["policy", "sweep", "--labels", "labels.jsonl", "--policy", "always,oracle"];
    let sweep = [&sweep[..], &["--format", "json"]].concat();
    let kind = |path: &str| path.starts_with("labels.jsonl").then_some("labels");
    let run = Box::new(|place: &Place| place.run(&sweep));
    Again { place: &place, run, kind, is_measured: nothing_is_measured }.check();
}

#[test]
fn policies_with_flips_are_refused() {
    let place = Place::empty();
    place.write("labels.jsonl", jsonl(&crate::cli_policy::labels(0..3)));
    let train = ["policy", "train", "--labels", "labels.jsonl", "-o", "learned.json"];
    place.run(&train).done();
    let kind = |path: &str| (path == "learned.json").then_some("policies");
    let explain =
        |place: &Place| place.run(&["policy", "explain", "learned.json", "--format", "json"]);
    let run = Box::new(explain);
    Again { place: &place, run, kind, is_measured: nothing_is_measured }.check();
}
