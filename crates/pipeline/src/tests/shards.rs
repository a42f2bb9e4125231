//! The work of shards, and the merged results.

use std::time::{Duration, SystemTime};

use repoformer_core::repository::Shard;
use repoformer_evaluate::predictions;

use super::*;

const NAMES: [&str; 8] = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"];

const ALL_MODES: [Mode; 3] = [Mode::Without, Mode::LeftContext, Mode::Prediction];

/// Returns a cache of eight repositories with two tasks each; the tasks of a repository do not follow one another.
fn place() -> TestCache {
    let mut place = TestCache::with_repositories(&NAMES);
    NAMES.iter().for_each(|name| place.add_tasks(name, 25..26));
    place
}

/// Returns the experiment with another cache.
fn with_cache(place: &TestCache, name: &str) -> Experiment {
    let mut experiment = place.experiment.clone();
    experiment.layout.cache = place.dir.path().join(name);
    experiment
}

/// Returns the experiments of the shards, the last first.
fn parts(experiment: &Experiment, count: u64) -> Vec<Experiment> {
    let part = |shard| {
        let mut part = experiment.clone();
        part.restrict(shard);
        part
    };
    let mut parts: Vec<Experiment> = Shard::all(count).map(part).collect();
    parts.reverse();
    parts
}

/// Runs the stages up to the predictions without scoring: scores are computed from all tasks.
fn complete_first(experiment: &Experiment) -> StageReport {
    let mut report = StageReport::default();
    for (name, stage) in &STAGES[..5] {
        report.merge(stage(experiment).unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    report
}

/// Retrieves with the predictions of an experiment, or of all its shards, and completes.
fn complete_again(experiment: &Experiment) -> StageReport {
    let whole = experiment.of_all_shards.as_deref().unwrap_or(experiment);
    let (path, tasks) =
        (whole.paths().predictions(Mode::LeftContext, IN_CONTEXT), whole.tasks().unwrap());
    let mut joined = predictions::read(&path, tasks).unwrap();
    if let Some(shard) = experiment.layout.shard {
        joined = joined.of_tasks(tasks, |task| shard.holds(&task.repository));
    }
    joined.cached = Some(path);
    let mode = [Mode::Prediction];
    let mut report = window_queries(experiment, &mode, Some(&joined)).unwrap();
    report.merge(vectorize_queries(experiment, &mode).unwrap());
    report.merge(search(experiment, &mode).unwrap());
    report.merge(prompt(experiment, &mode).unwrap());
    report.merge(complete(experiment, &mode, &embedded()).unwrap());
    report
}

/// Merges shards; returns how many artifacts were made, and how many were current.
fn merge_parts(experiment: &Experiment, count: u64, modes: &[Mode]) -> (usize, usize) {
    let report = merge(experiment, count, modes, &embedded()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    (report.built, report.current)
}

/// Returns the rows of the tasks whose completions have a time.
fn timed_rows(experiment: &Experiment) -> Vec<Option<u64>> {
    let times = latencies(experiment, Mode::LeftContext, IN_CONTEXT).unwrap();
    times.into_iter().map(|time| time.row).collect()
}

#[test]
fn the_cache_of_all_shards_is_that_of_one_process() {
    let place = place();
    let whole = with_cache(&place, "whole");
    complete_first(&whole);
    complete_again(&whole);
    // One shard, several, and more than there are repositories.
    for count in [1, 3, 20] {
        let experiment = with_cache(&place, &format!("cache-{count}"));
        let parts = parts(&experiment, count);
        parts.iter().for_each(|part| drop(complete_first(part)));
        assert_eq!(merge_parts(&experiment, count, &MODES), (4, 0));
        parts.iter().for_each(|part| drop(complete_again(part)));
        assert_eq!(merge_parts(&experiment, count, &ALL_MODES), (2, 4));
        let mut files = cached(&experiment);
        files.retain(|path, _| !path.to_str().unwrap().contains(".shard-"));
        let of_one = cached(&whole);
        assert_eq!(files.keys().collect::<Vec<_>>(), of_one.keys().collect::<Vec<_>>());
        let differing = files.iter().find(|(path, bytes)| of_one[*path] != **bytes);
        assert_eq!(differing.map(|(path, _)| path), None);
        assert_eq!(timed_rows(&experiment).len(), 2 * NAMES.len());
        assert_eq!(timed_rows(&experiment), timed_rows(&whole));
        assert_eq!(merge_parts(&experiment, count, &ALL_MODES), (0, 6));
        assert_eq!(complete_first(&experiment).built, 0);
        assert_eq!(complete_again(&experiment).built, 0);
        assert_eq!(STAGES[5].1(&experiment).unwrap().built, MODES.len());
    }
}

#[test]
fn a_shard_that_is_lost_stale_or_damaged_is_named_and_costs_its_mode_alone() {
    let place = place();
    let experiment = &place.experiment;
    parts(experiment, 2).iter().for_each(|part| drop(complete_first(part)));
    let path = |mode, number: u64| {
        let shard = Shard::all(2).nth(number as usize - 1).unwrap();
        experiment.paths().of_shard(shard).prompts(mode)
    };
    // Settings that differ from those of the shards.
    let mut other = experiment.clone();
    other.prompts.budget.total = 300;
    let report = merge(&other, 2, &[Mode::LeftContext], &embedded()).unwrap();
    let said = report.problems[0].to_string();
    assert!(said.contains("stale: max-prompt-tokens was 2048, is 300"), "{said}");
    fs::remove_file(path(Mode::LeftContext, 2)).unwrap();
    let report = merge(experiment, 2, &MODES, &embedded()).unwrap();
    let [Error::Artifact { reason, hint, .. }] = &report.problems[..] else {
        panic!("{:?}", report.problems)
    };
    assert_eq!(reason, "the prompts of shard 2/2 are missing");
    let prompt = MessagePart::Stage(StageRun::InMode("prompt", "rg1"));
    assert!(hint.parts().contains(&prompt), "{hint:?}");
    let merged = cached(experiment).into_keys();
    let merged = merged.filter(|path| !path.to_str().unwrap().contains(".shard-"));
    let merged =
        merged.filter(|path| path.starts_with("prompts") || path.starts_with("predictions"));
    let merged: Vec<PathBuf> = merged.collect();
    assert_eq!(merged.len(), 4, "two artifacts without retrieval, and their headers: {merged:?}");
    let damaged = path(Mode::Without, 1);
    let text = fs::read_to_string(&damaged).unwrap();
    fs::write(&damaged, text.replace("ant", "ANT")).unwrap();
    let report = merge(experiment, 2, &MODES, &embedded()).unwrap();
    let said: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert!(said[0].contains("the prompts of shard 1/2 are damaged"), "{said:?}");
    assert_eq!((report.built, report.current), (0, 0));
}

/// Machines whose clocks differ by decades: no result depends on the time of a file.
#[test]
fn the_times_of_files_say_nothing() {
    const DECADES: Duration = Duration::from_secs(1_000_000_000);
    let place = place();
    let date = |folders: &[&str], time: SystemTime| {
        for entry in
            folders.iter().flat_map(|name| walkdir::WalkDir::new(place.dir.path().join(name)))
        {
            let entry = entry.unwrap();
            if entry.file_type().is_file() {
                let file = fs::File::options().append(true).open(entry.path()).unwrap();
                file.set_modified(time).unwrap();
            }
        }
    };
    let [past, future] = [SystemTime::now() - DECADES, SystemTime::now() + DECADES];
    for (part, time) in parts(&place.experiment, 2).iter().zip([future, past]) {
        complete_first(part);
        date(&["cache", "repos"], time);
    }
    date(&["repos"], future);
    assert_eq!(merge_parts(&place.experiment, 2, &MODES), (4, 0));
    date(&["cache"], past);
    assert_eq!(complete_first(&place.experiment).built, 0);
    // A file that is newer by its time, and another by its content.
    let file = place.dir.path().join("repos/ant/more.py");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("load", "LOAD")).unwrap();
    date(&["repos"], past);
    let rebuilt = STAGES[0].1(&place.experiment).unwrap().rebuilt;
    assert!(rebuilt.iter().any(|one| one.reason == "repository changed"), "{rebuilt:?}");
}
