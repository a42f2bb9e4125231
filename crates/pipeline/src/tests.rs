//! Stages in their order, on two small repositories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use repoformer_core::metrics::Metric;
use repoformer_core::prompt::style::Budget;
use repoformer_core::repository::corpus::Walk;
use repoformer_core::repository::fragment::{Cut, WindowShape};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::{Align, HoleGuard, Mode, QueryForm, SearchSettings, Visibility};
use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::{MissingPredictions, Scoring};
use repoformer_store::artifact;
use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::message::{MessagePart, StageRun};
use repoformer_text::tokenize::model::Tokenizer;
use serde_json::json;

use super::*;

mod shards;

/// Two repositories with a task each, and a cache.
pub(crate) struct TestCache {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) experiment: Experiment,
}

/// A stage, by the name of its command.
pub(crate) type Stage = (&'static str, fn(&Experiment) -> Result<StageReport>);

pub(crate) const MODES: [Mode; 2] = [Mode::Without, Mode::LeftContext];

pub(crate) const STAGES: [Stage; 6] = [
    ("window", |experiment| {
        let mut report = window_repositories(experiment)?;
        report.merge(window_queries(experiment, &MODES, None)?);
        Ok(report)
    }),
    ("vectorize", |experiment| {
        let mut report = vectorize_repositories(experiment)?;
        report.merge(vectorize_queries(experiment, &MODES)?);
        Ok(report)
    }),
    ("search", |experiment| search(experiment, &MODES)),
    ("prompt", |experiment| prompt(experiment, &MODES)),
    ("complete", |experiment| complete(experiment, &MODES, &embedded())),
    ("eval", |experiment| {
        let mut all = StageReport::default();
        for mode in MODES {
            let (scores, report) = scores(experiment, mode, IN_CONTEXT, &experiment.scoring, None)?;
            assert_eq!(scores.is_none(), experiment.plan.is_some());
            all.merge(report);
        }
        Ok(all)
    }),
];

fn embedded() -> Completion {
    Completion { model: IN_CONTEXT.into(), max_tokens: 20, max_lines: None, server: None }
}

/// Returns the lines of a repository's file.
fn lines(name: &str, repository: &str) -> Vec<String> {
    (0..30).map(|n| format!("{name}_{n} = load_{repository}({n})\n")).collect()
}

/// Returns the line of the task file for the task at a line of `main.py`.
fn task_line(repository: &str, line: usize) -> String {
    let main = lines("main", repository);
    let metadata = json!({
        "task_id": format!("{repository}/{}", line - 20), "ground_truth": main[line].trim_end(),
        "fpath_tuple": [repository, "main.py"], "context_start_lineno": 0, "line_no": line,
    });
    json!({"prompt": main[..line].concat(), "metadata": metadata}).to_string() + "\n"
}

impl TestCache {
    pub(crate) fn new() -> Self {
        Self::with_repositories(&["east", "west"])
    }

    /// Returns a cache of repositories with a task each, in the order of their names.
    fn with_repositories(names: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut tasks = String::new();
        for &repository in names {
            let folder = dir.path().join("repos").join(repository);
            fs::create_dir_all(&folder).unwrap();
            for name in ["main", "more"] {
                let text = lines(name, repository).concat();
                fs::write(folder.join(format!("{name}.py")), text).unwrap();
            }
            tasks += &task_line(repository, 20);
        }
        let file = dir.path().join("tasks.jsonl");
        fs::write(&file, tasks).unwrap();
        let cut = Cut::Windows(WindowShape::default());
        let search = SearchSettings {
            ranker: Ranker::Jaccard,
            vocabulary: Vocabulary::Tokens(Tokenizer::p50k_base()),
            visibility: Visibility::Guarded(HoleGuard::Strict),
            top_k: 5,
        };
        let experiment = Experiment {
            name: "tasks".into(),
            repos_dir: dir.path().join("repos"),
            repositories: names.iter().map(|&name| name.into()).collect(),
            tasks: Some(Arc::new(TaskSet::read(&file).unwrap().set)),
            of_all_shards: None,
            layout: Layout {
                cache: dir.path().join("cache"),
                benchmark: "tasks".into(),
                language: Language::Python,
                cut,
                iteration: 1,
                shard: None,
            },
            walk: Walk::Glob,
            retrieval: RetrievalSettings {
                form: QueryForm::Window,
                query_lines: 20,
                search,
                dense: None,
            },
            prompts: PromptSettings {
                align: Align::Auto,
                most: 10,
                full_paths: false,
                layout: PromptLayout::RepoCoder,
                budget: Budget { total: 2048, left: None, right: None, cross_file: None },
                tokenizer: Tokenizer::p50k_base(),
            },
            scoring: Scoring::new(&[], &[Metric::RepoCoder]),
            plan: None,
            messages: Arc::new(NoMessages),
        };
        Self { dir, experiment }
    }

    /// Returns a cache with the prompts of both modes.
    pub(crate) fn with_prompts() -> Self {
        let place = Self::new();
        for (name, stage) in &STAGES[..4] {
            stage(&place.experiment).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        place
    }

    /// Adds tasks of a repository, one for each line.
    pub(crate) fn add_tasks(&mut self, repository: &str, lines: std::ops::Range<usize>) {
        let file = self.dir.path().join("tasks.jsonl");
        let more: String = lines.map(|line| task_line(repository, line)).collect();
        fs::write(&file, fs::read_to_string(&file).unwrap() + &more).unwrap();
        self.experiment.tasks = Some(Arc::new(TaskSet::read(&file).unwrap().set));
    }

    fn change(&self, repository: &str) {
        let path = self.dir.path().join("repos").join(repository).join("more.py");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.replace("more_7 ", "seventh ")).unwrap();
    }

    /// Returns the files of the cache, except measured times.
    fn cached(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        cached(&self.experiment)
    }
}

/// Returns the files of an experiment's cache, except measured times.
fn cached(experiment: &Experiment) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = &experiment.layout.cache;
    let files = walkdir::WalkDir::new(root).into_iter().filter_map(|entry| {
        let entry = entry.ok().filter(|entry| entry.file_type().is_file())?;
        let path = entry.path().strip_prefix(root).unwrap().to_owned();
        let name = path.to_str().unwrap();
        let is_time = name.starts_with("latency") || name.ends_with(".time.json");
        (!is_time).then(|| (path, fs::read(entry.path()).unwrap()))
    });
    files.collect()
}

/// Runs the stages; returns how many artifacts each made, and how many were current.
fn run(experiment: &Experiment) -> Vec<(usize, usize)> {
    let run = |(name, stage): &Stage| {
        let report = stage(experiment).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(report.problems.is_empty(), "{name}: {:?}", report.problems);
        (report.built, report.current)
    };
    STAGES.iter().map(run).collect()
}

#[test]
fn each_stage_makes_its_artifacts_once() {
    let place = TestCache::new();
    // Fragments and queries of two repositories, their vectors, two searches; then prompts, predictions and scores of two modes.
    let made = [4, 4, 2, 2, 2, 2];
    assert_eq!(run(&place.experiment), made.map(|count| (count, 0)));
    assert_eq!(run(&place.experiment), made.map(|count| (0, count)));
    let joined = evaluate(
        &place.experiment,
        &place.experiment.paths().predictions(Mode::LeftContext, IN_CONTEXT),
        &place.experiment.scoring,
        MissingPredictions::Error,
    );
    let joined = joined.unwrap();
    assert_eq!(joined.samples.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    assert!(joined.scores.is_ok() && joined.problems.is_empty());
}

/// The kept scores are the result, if they are of the same predictions and settings.
#[test]
fn scores_are_computed_once() {
    let place = TestCache::new();
    run(&place.experiment);
    let predictions = place.experiment.paths().predictions(Mode::LeftContext, IN_CONTEXT);
    let kept = place.experiment.paths().scores(Mode::LeftContext, IN_CONTEXT);
    assert_eq!(place.experiment.paths().scores_of(&predictions).as_ref(), Some(&kept));
    let em = |experiment: &Experiment, scoring: &Scoring| {
        let missing = MissingPredictions::Skip;
        let scores = evaluate(experiment, &predictions, scoring, missing).unwrap().scores.unwrap();
        scores.all.means[0].get("em").unwrap()
    };
    let scoring = place.experiment.scoring.clone();
    let computed = em(&place.experiment, &scoring);
    let (header, text) = artifact::read_jsonl(&kept).unwrap();
    let mut record: serde_json::Value = serde_json::from_slice(&text).unwrap();
    record["tasks"][0]["repocoder"]["em"] = json!(0.25);
    let total = artifact::LineTotals { records: 1, ..artifact::LineTotals::default() };
    artifact::write_lines(&kept, &header.identity, |sink| {
        sink.write(record.to_string().as_bytes())?;
        Ok(total)
    })
    .unwrap();
    let other = computed + (0.25 - record_em(&text)) / 2.0;
    assert_eq!(em(&place.experiment, &scoring), other);
    // By another metric, too.
    let by = Scoring { metrics: vec![Metric::RepoCoder, Metric::Repoformer], ..scoring.clone() };
    assert_eq!(em(&place.experiment, &by), computed);
}

/// Returns the exact match of the first task in an artifact of scores.
fn record_em(text: &[u8]) -> f64 {
    let record: serde_json::Value = serde_json::from_slice(text).unwrap();
    record["tasks"][0]["repocoder"]["em"].as_f64().unwrap()
}

#[test]
fn each_stage_names_the_one_that_it_needs() {
    let place = TestCache::new();
    let needs = ["window", "window", "vectorize", "search", "prompt", "complete"];
    for (needed, (name, stage)) in needs.into_iter().zip(STAGES).skip(1) {
        let error = stage(&place.experiment).unwrap_err();
        let Error::Artifact { hint, .. } = &error else { panic!("{name}: {error}") };
        let names = |part: &MessagePart| match part {
            MessagePart::Stage(StageRun::Any(stage) | StageRun::InMode(stage, _)) => {
                *stage == needed
            }
            _ => false,
        };
        assert!(hint.parts().iter().any(names), "{name}: {hint:?}");
        let before = STAGES.iter().position(|(stage, _)| *stage == needed).unwrap();
        STAGES[before].1(&place.experiment).unwrap();
    }
}

/// Only artifacts that depend on a change are made again, with the reason.
#[test]
fn a_change_reaches_what_depends_on_it() {
    let place = TestCache::new();
    run(&place.experiment);
    place.change("east");
    let mut reasons = Vec::new();
    for (name, stage) in STAGES {
        let report = stage(&place.experiment).unwrap();
        reasons.extend(report.rebuilt.iter().map(|one| (name, one.reason.clone(), one.follows)));
        assert!(report.rebuilt.iter().all(|one| one.is_stale), "{name}: {:?}", report.rebuilt);
        let is_west = |one: &RebuiltArtifact| one.path.to_str().unwrap().contains("west");
        assert!(!report.rebuilt.iter().any(is_west), "{name}: {:?}", report.rebuilt);
    }
    let (first, others) = reasons.split_first().unwrap();
    assert_eq!(*first, ("window", "repository changed".into(), false));
    assert!(others.iter().all(|(_, _, follows)| *follows), "{others:?}");
    let mut reached: Vec<&str> = others.iter().map(|(name, ..)| *name).collect();
    reached.dedup();
    assert_eq!(reached, STAGES.map(|(name, _)| name));
    let cold = TestCache::new();
    cold.change("east");
    run(&cold.experiment);
    assert_eq!(place.cached().keys().collect::<Vec<_>>(), cold.cached().keys().collect::<Vec<_>>());
}

#[test]
fn a_plan_is_what_the_stages_then_do() {
    let place = TestCache::new();
    let planned = |place: &TestCache| {
        let before = place.cached();
        let experiment = Experiment { plan: Some(Plan::default()), ..place.experiment.clone() };
        let mut verdicts = BTreeMap::new();
        for (_, stage) in STAGES {
            for one in stage(&experiment).unwrap().planned {
                verdicts.insert(one.path, one.verdict);
            }
        }
        assert_eq!(place.cached(), before, "a plan makes nothing");
        verdicts
    };
    let is_made = |path: &Path| path.strip_prefix(&place.experiment.layout.cache).is_ok();
    let first = planned(&place);
    assert!(first.keys().all(|path| is_made(path)));
    run(&place.experiment);
    let made = place.cached();
    let beside = |path: &Path| path.file_name().unwrap().to_str().unwrap().starts_with('.');
    for path in made.keys().filter(|path| !beside(path)) {
        let verdict = &first[&place.experiment.layout.cache.join(path)];
        assert_eq!(*verdict, PlanVerdict::Missing, "{}", path.display());
    }
    assert!(planned(&place).values().all(|verdict| *verdict == PlanVerdict::Current));
    place.change("west");
    let changed = planned(&place);
    let of = |name: &str| {
        changed.iter().find(|(path, _)| path.ends_with(name)).map(|(_, verdict)| verdict).unwrap()
    };
    assert!(matches!(of("window/repos/west_ws20_slice2.bin"), PlanVerdict::Stale(_)));
    assert!(matches!(of("vector/repos/west_ws20_slice2.one-gram.bin"), PlanVerdict::Upstream(_)));
    assert_eq!(*of("window/repos/east_ws20_slice2.bin"), PlanVerdict::Current);
}

#[test]
fn a_plan_without_inputs_fails_as_the_stage_would() {
    let place = TestCache::new();
    for (name, stage) in &STAGES[1..] {
        let dry = Experiment { plan: Some(Plan::default()), ..place.experiment.clone() };
        let [real, planned] = [&place.experiment, &dry].map(|one| stage(one).unwrap_err());
        let words = |error: &Error| (error.to_string(), error.hint());
        assert_eq!(words(&planned), words(&real), "{name}");
    }
    assert!(!place.experiment.layout.cache.exists());
}

#[test]
fn an_artifact_of_another_version_is_planned() {
    let place = TestCache::new();
    run(&place.experiment);
    let prompts = place.experiment.paths().prompts(Mode::LeftContext);
    let header = repoformer_store::artifact::header_path(&prompts);
    let text = fs::read_to_string(&header).unwrap();
    let text = text.replace(env!("CARGO_PKG_VERSION"), "0.0.9");
    fs::write(&header, text.replace("record_checksum", "former_checksum")).unwrap();
    let dry = Experiment { plan: Some(Plan::default()), ..place.experiment.clone() };
    let planned = prompt(&dry, &MODES).unwrap().planned;
    let planned = planned.into_iter().filter(|one| one.verdict != PlanVerdict::Current);
    let reasons: Vec<_> = planned.map(|one| (one.path, one.verdict.reason().unwrap())).collect();
    assert_eq!(reasons, [(prompts, "it was written by repoformer 0.0.9".to_owned())]);
}
