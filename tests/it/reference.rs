//! The windows, ranks and prompts of RepoCoder's own program, reproduced to the byte.
//!
//! `tests/fixtures/repocoder/` holds an odd repository and what the released program, made deterministic, gave for
//! it: digests of every window, token set, query and prompt, and the top 20 with their scores. The ignored test reads the same
//! for real repositories: `REPOFORMER_FIXTURES` names the folder of expectations, `REPOFORMER_CORPORA` the repositories.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use repoformer_core::prompt::{Builder, BuilderSettings, RepoCoderBudget};
use repoformer_core::repository::corpus::Repository;
use repoformer_core::repository::fragment::{Cut, RepoFragments, WindowShape};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{
    Align, FragmentTextSettings, FragmentVectors, HoleGuard, Mode, Queries, Query, QueryForm,
    QuerySettings, QueryVectors, RepositoryIndex, Retrieval, Score, SearchSettings, Visibility,
};
use repoformer_core::task::TaskSet;
use repoformer_text::language::Language;
use repoformer_text::tokenize::P50k;
use repoformer_text::tokenize::model::Tokenizer;
use serde_json::Value;
use sha2::{Digest, Sha256};

struct Fixture {
    folder: PathBuf,
    name: String,
    windows: RepoFragments,
    vectors: TokenSets,
    tasks: TaskSet,
}

/// The released program's guard.
const VISIBILITY: Visibility = Visibility::Guarded(HoleGuard::Reference);

fn window(mode: Mode) -> QuerySettings {
    QuerySettings { mode, form: QueryForm::Window, length: WindowShape::default().window_size }
}

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lines(path: &Path) -> impl Iterator<Item = Value> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let reader = BufReader::new(flate2::read::MultiGzDecoder::new(file));
    reader.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

impl Fixture {
    fn read(folder: &Path, repos: &Path, name: &str) -> Self {
        let reading = Repository::read(repos, name, Language::Python).unwrap();
        let cut = Cut::Windows(WindowShape::default());
        let windows = RepoFragments::cut(reading.repository, Language::Python, cut);
        let vectors = TokenSets::of_fragments(&windows, &P50k);
        let tasks = TaskSet::read(&folder.join(format!("{name}.tasks.jsonl.gz"))).unwrap();
        assert!(tasks.problems.is_empty(), "{:?}", tasks.problems);
        Self { folder: folder.into(), name: name.into(), windows, vectors, tasks: tasks.set }
    }

    fn expectations(&self, kind: &str) -> Vec<Value> {
        lines(&self.folder.join(format!("{}.{kind}.gz", self.name))).collect()
    }

    fn windows_and_tokens(&self) {
        let wanted = self.expectations("windows.json").remove(0);
        assert_eq!(self.windows.place_count() as u64, wanted["raw_windows"].as_u64().unwrap());
        assert_eq!(self.windows.len() as u64, wanted["merged_windows"].as_u64().unwrap());
        let digests: Vec<String> =
            (0..self.windows.len()).map(|w| sha256(self.windows.text(w))).collect();
        assert_eq!(sha256(digests.join("\n")), wanted["digest_contexts"].as_str().unwrap());
        let texts = (0..self.windows.len()).map(|w| {
            let ids: Vec<String> =
                P50k.encode(self.windows.text(w)).iter().map(u16::to_string).collect();
            ids.join(",")
        });
        assert_eq!(
            sha256(texts.collect::<Vec<_>>().join("\n")),
            wanted["digest_tokens"].as_str().unwrap()
        );
        assert_eq!(self.vectors.token_count() as u64, wanted["set_sizes_total"].as_u64().unwrap());
        let merged = (0..self.windows.len()).filter(|w| self.windows.places(*w).len() > 1).count();
        assert_eq!(merged as u64, wanted["merged_with_more_than_one_place"].as_u64().unwrap());
    }

    fn search(&self, queries: &Queries) -> (TokenSets, Retrieval) {
        let sets = TokenSets::of_queries(queries, &P50k);
        let settings = SearchSettings {
            ranker: Ranker::Jaccard,
            vocabulary: Vocabulary::Tokens(Tokenizer::p50k_base()),
            visibility: VISIBILITY,
            top_k: 20,
        };
        let query_vectors = QueryVectors { sets: Some(&sets), ..QueryVectors::default() };
        let vectors = FragmentVectors::Sets(self.vectors.clone());
        let index = RepositoryIndex::new(&self.windows, vectors, &settings);
        let retrieval = index.search(queries, query_vectors);
        (sets, retrieval)
    }

    /// One expected record against query `i` of `queries`.
    fn check(
        &self,
        i: usize,
        queries: &Queries,
        vectors: &TokenSets,
        retrieval: &Retrieval,
        wanted: &Value,
    ) {
        let query = &queries.queries[i];
        let task = &self.tasks.tasks()[query.row as usize];
        let at = format!("{} row {} {}", self.name, query.row, queries.mode);
        assert_eq!(sha256(&query.text), wanted["query_sha256"].as_str().unwrap(), "{at}: query");
        assert_eq!(u64::from(query.start), wanted["start_line_no"].as_u64().unwrap(), "{at}");
        assert_eq!(u64::from(query.end), wanted["end_line_no"].as_u64().unwrap(), "{at}");
        if let Some(size) = wanted["query_set_size"].as_u64() {
            assert_eq!(vectors.get(i).len() as u64, size, "{at}: query set");
        }
        let found = &retrieval.found[i];
        let top: Vec<Value> = found
            .hits
            .iter()
            .rev()
            .map(|hit| {
                let place = self.windows.first_place(hit.fragment as usize);
                let path = &self.windows.files[place.file as usize].path;
                let places = self.windows.places(hit.fragment as usize).len();
                let Score::Jaccard { overlap, union } = hit.score else {
                    panic!("{at}: {:?}", hit.score)
                };
                serde_json::json!([
                    path,
                    place.start,
                    place.end,
                    hit.score.value(),
                    overlap,
                    union,
                    places
                ])
            })
            .collect();
        for (ours, wanted) in top.iter().zip(wanted["top20"].as_array().unwrap()) {
            let columns = wanted.as_array().unwrap().len();
            assert_eq!(&ours.as_array().unwrap()[..columns], wanted.as_array().unwrap(), "{at}");
        }
        assert_eq!(top.len(), wanted["top20"].as_array().unwrap().len(), "{at}");
        let p50k = P50k;
        let budget = RepoCoderBudget::default();
        let shown = FragmentTextSettings {
            align: Align::Auto.resolve(queries.form, queries.mode),
            most: budget.blocks,
            full_paths: false,
            visibility: VISIBILITY,
        };
        let settings =
            BuilderSettings { mode: queries.mode, form: QueryForm::Window, shown, budget };
        let builder = Builder::new(&self.windows, &p50k, settings);
        let prompt = builder.build(task, Some(found));
        assert_eq!(prompt.chosen.len() as u64, wanted["chosen"].as_u64().unwrap(), "{at}: blocks");
        assert_eq!(sha256(&prompt.text), wanted["prompt_sha256"].as_str().unwrap(), "{at}: prompt");
        if let Some(tokens) = wanted["prompt_tokens"].as_u64() {
            assert_eq!(prompt.tokens as u64, tokens, "{at}: prompt tokens");
        }
    }

    fn first_retrieval(&self) {
        let expected = self.expectations("expected.jsonl");
        for (mode, field) in [(Mode::LeftContext, "r-g"), (Mode::GroundTruth, "gt")] {
            let cut = Queries::of_tasks(window(mode), &self.tasks, &self.windows);
            assert!(cut.skipped.is_empty(), "{:?}", cut.skipped);
            assert_eq!(cut.queries.queries.len(), expected.len());
            let (vectors, retrieval) = self.search(&cut.queries);
            for (i, wanted) in expected.iter().enumerate() {
                self.check(i, &cut.queries, &vectors, &retrieval, &wanted[field]);
            }
        }
    }

    fn second_retrieval(&self) {
        let expected = self.expectations("rg-rg.jsonl");
        let mut predictions = vec![Vec::new(); self.tasks.tasks().len()];
        let mut row = 0;
        for wanted in &expected {
            while self.tasks.tasks()[row].id != wanted["task_id"].as_str().unwrap() {
                row += 1;
            }
            predictions[row] = vec![wanted["prediction"].as_str().unwrap().to_owned()];
            row += 1;
        }
        let settings = window(Mode::Prediction);
        let predictions = Some(&predictions[..]);
        let cut = Queries::make(settings, &self.tasks, &self.windows, |_| None, predictions);
        let (vectors, retrieval) = self.search(&cut.queries);
        let mut queries = cut.queries.queries.iter().enumerate();
        let mut checked = 0;
        for wanted in expected.iter().filter(|wanted| wanted["query_sha256"].is_string()) {
            let of_this = |(_, query): &(usize, &Query)| {
                self.tasks.tasks()[query.row as usize].id == wanted["task_id"].as_str().unwrap()
            };
            let (i, _) = queries
                .find(of_this)
                .unwrap_or_else(|| panic!("no window for {}", wanted["task_id"]));
            self.check(i, &cut.queries, &vectors, &retrieval, wanted);
            checked += 1;
        }
        assert_eq!(checked, cut.queries.queries.len(), "windows that the reference does not have");
    }
}

/// Unpacks the odd repository: its odd names, links and bytes would not survive every checkout of this project.
fn edge_cases() -> (tempfile::TempDir, Fixture) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let dir = tempfile::tempdir().unwrap();
    let archive = File::open(fixtures.join("edge_cases.tar.gz")).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(archive)).unpack(dir.path()).unwrap();
    let fixture = Fixture::read(&fixtures.join("repocoder"), dir.path(), "edge_cases");
    (dir, fixture)
}

#[test]
fn edge_cases_windows_and_tokens() {
    let (_dir, fixture) = edge_cases();
    fixture.windows_and_tokens();
}

#[test]
fn edge_cases_first_retrieval() {
    let (_dir, fixture) = edge_cases();
    fixture.first_retrieval();
}

#[test]
fn edge_cases_second_retrieval() {
    let (_dir, fixture) = edge_cases();
    fixture.second_retrieval();
}

#[test]
fn edge_cases_holes_on_the_first_line_are_served() {
    let (_dir, mut fixture) = edge_cases();
    fixture.tasks =
        TaskSet::read(&fixture.folder.join("edge_cases.line0.tasks.jsonl.gz")).unwrap().set;
    for mode in [Mode::LeftContext, Mode::GroundTruth] {
        let cut = Queries::of_tasks(window(mode), &fixture.tasks, &fixture.windows);
        let (_, retrieval) = fixture.search(&cut.queries);
        assert_eq!(retrieval.found.len() + cut.skipped.len(), fixture.tasks.tasks().len());
        assert!(retrieval.found.iter().all(|found| found.hits.len() == 20));
    }
}

/// Repeats the comparison through the program: stage by stage with the profile, results read from what it prints and writes.
fn through_the_binary(fixture: &Fixture, repos: &Path, tasks: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let repoformer = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_repoformer"))
            .args(arguments)
            .env_clear()
            .output()
            .unwrap();
        // 1: the odd repository has files that are no UTF-8, and some predictions leave nothing to search with.
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    let cache = dir.path().join("cache");
    let place = [repos, tasks, &cache].map(|path| path.to_str().unwrap());
    let data = [
        "--profile", "repocoder", "--repos-dir", place[0], "--tasks", place[1], "--cache-dir",
        place[2], "--benchmark", "b",
    ];
    let stage = |name: &[&str]| repoformer(&[name, &data].concat());
    for name in ["window", "vectorize", "search"] {
        stage(&[name]);
    }
    let records = |text: Vec<u8>| -> Vec<Value> {
        String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let found_in = |mode: &str| {
        let file = cache
            .join(format!("retrieval/b/{mode}/{}_ws20_slice2.one-gram.top20.bin", fixture.name));
        records(repoformer(&["inspect", file.to_str().unwrap(), "--format", "jsonl"]))
    };
    let expected = fixture.expectations("expected.jsonl");
    for (mode, field) in [("rg1", "r-g"), ("gt", "gt")] {
        let prompts = records(stage(&["prompt", "--mode", mode, "-o", "-"]));
        let found = found_in(mode);
        assert_eq!((prompts.len(), found.len()), (expected.len(), expected.len()));
        for ((prompt, found), wanted) in prompts.iter().zip(&found).zip(&expected) {
            check_printed(prompt, found, &wanted[field]);
        }
    }
    let predictions = dir.path().join("predictions.jsonl");
    let second = fixture.expectations("rg-rg.jsonl");
    let line = |wanted: &Value| {
        let (id, text) = (&wanted["task_id"], &wanted["prediction"]);
        serde_json::json!({ "metadata": { "task_id": id }, "choices": [{ "text": text }] })
            .to_string()
            + "\n"
    };
    std::fs::write(&predictions, second.iter().map(line).collect::<String>()).unwrap();
    let prompts =
        records(stage(&["rg-rg", "--predictions", predictions.to_str().unwrap(), "-o", "-"]));
    let second: Vec<&Value> =
        second.iter().filter(|wanted| wanted["query_sha256"].is_string()).collect();
    let found = found_in("rg-rg");
    assert_eq!((prompts.len(), found.len()), (second.len(), second.len()));
    for ((prompt, found), wanted) in prompts.iter().zip(&found).zip(second) {
        check_printed(prompt, found, wanted);
    }
}

/// A prompt's record and a retrieval's record as the program gives them.
fn check_printed(prompt: &Value, found: &Value, wanted: &Value) {
    let query = prompt["metadata"]["query_window"]["context"].as_str().unwrap();
    assert_eq!(sha256(query), wanted["query_sha256"].as_str().unwrap());
    assert_eq!(
        sha256(prompt["prompt"].as_str().unwrap()),
        wanted["prompt_sha256"].as_str().unwrap()
    );
    let hits = found["top_k_context"].as_array().unwrap();
    let wanted = wanted["top20"].as_array().unwrap();
    assert_eq!(hits.len(), wanted.len());
    for (hit, wanted) in hits.iter().zip(wanted.iter().rev()) {
        let place = &hit["metadata"][0];
        let path: Vec<&str> = place["fpath_tuple"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part.as_str().unwrap())
            .collect();
        assert_eq!(path.join("/"), wanted[0].as_str().unwrap());
        let ours = [
            &place["start_line_no"], &place["end_line_no"], &hit["sim_score"], &hit["overlap"],
            &hit["union"],
        ];
        assert_eq!(ours.to_vec(), wanted.as_array().unwrap()[1..6].iter().collect::<Vec<_>>());
    }
}

#[test]
fn edge_cases_through_the_binary() {
    let (dir, fixture) = edge_cases();
    let tasks = fixture.folder.join("edge_cases.tasks.jsonl.gz");
    through_the_binary(&fixture, dir.path(), &tasks);
}

#[test]
#[ignore = "reads real repositories: set REPOFORMER_FIXTURES and REPOFORMER_CORPORA"]
fn real_repositories() {
    let folder =
        |name| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")));
    let (fixtures, corpora) = (folder("REPOFORMER_FIXTURES"), folder("REPOFORMER_CORPORA"));
    for name in ["huggingface_evaluate", "awslabs_fortuna"] {
        let fixture = Fixture::read(&fixtures.join("repocoder"), &corpora, name);
        fixture.windows_and_tokens();
        fixture.first_retrieval();
        fixture.second_retrieval();
        let tasks = fixture.folder.join(format!("{name}.tasks.jsonl.gz"));
        through_the_binary(&fixture, &corpora, &tasks);
    }
}
