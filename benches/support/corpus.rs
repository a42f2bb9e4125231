//! The corpus and the results of each stage, computed on first use and kept.
//!
//! The corpus is the sample repositories or, with `REPOFORMER_CORPUS=DIR`, all repositories in DIR, combined into one.

use std::path::PathBuf;
use std::sync::LazyLock;

use repoformer_core::prompt::{Builder, BuilderSettings, RepoCoderBudget};
use repoformer_core::repository::corpus::{Repository, folder_names};
use repoformer_core::repository::fragment::{Cut, RepoFragments, WindowShape};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{
    Align, FragmentTextSettings, FragmentVectors, HoleGuard, Mode, Queries, QueryForm,
    QuerySettings, QueryVectors, RepositoryIndex, Retrieval, SearchSettings, Visibility,
};
use repoformer_core::task::sample::{Kind, Sampling, sample};
use repoformer_core::task::{Task, TaskSet};
use repoformer_text::language::Language;
use repoformer_text::tokenize::P50k;
use repoformer_text::tokenize::model::Tokenizer;

use super::growth::{self, QUERIES};

/// Maximum total size of the sample's files in bytes.
const SAMPLE_BYTES: usize = 16 << 20;

/// All repositories of the folder as one, named `all`.
pub static REPOSITORY: LazyLock<Repository> = LazyLock::new(|| {
    let folder = std::env::var_os("REPOFORMER_CORPUS").map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/repos"));
    let mut files = Vec::new();
    for name in folder_names(&folder).unwrap() {
        let mut read = Repository::read(&folder, &name, Language::Python).unwrap().repository.files;
        read.iter_mut().for_each(|file| file.path = format!("all/{}", file.path));
        files.extend(read);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    as_repository(files)
});

fn as_repository(mut files: Vec<repoformer_core::repository::corpus::SourceFile>) -> Repository {
    files.iter_mut().enumerate().for_each(|(i, file)| file.same_as = i as u32);
    Repository { name: "all".into(), files }
}

/// Files that tasks are drawn from and that are tokenized: all files of a small corpus, an even sample of a large one.
pub static SAMPLE: LazyLock<Repository> = LazyLock::new(|| {
    let mut bytes = 0;
    let shuffled = growth::shuffled(&REPOSITORY.files).into_iter();
    let mut files: Vec<_> = shuffled
        .take_while(|file| {
            bytes += file.text.len();
            bytes <= SAMPLE_BYTES
        })
        .cloned()
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    as_repository(files)
});

fn draw(kind: Kind) -> Vec<Task> {
    let p50k = P50k;
    let sampling = Sampling { per_repository: QUERIES, ..Sampling::new(kind) };
    let mut tasks = sample(&SAMPLE, &sampling, &|text| p50k.count(text)).tasks;
    tasks.iter_mut().enumerate().for_each(|(row, task)| task.row = row);
    tasks
}

pub static LINE_TASKS: LazyLock<TaskSet> =
    LazyLock::new(|| TaskSet::new("bench".into(), draw(Kind::Line)));

pub static FUNCTION_TASKS: LazyLock<Vec<Task>> = LazyLock::new(|| draw(Kind::Function));

fn windows(repository: &Repository) -> RepoFragments {
    let cut = Cut::Windows(WindowShape::default());
    RepoFragments::cut(repository.clone(), Language::Python, cut)
}

pub static WINDOWS: LazyLock<RepoFragments> = LazyLock::new(|| windows(&REPOSITORY));

pub static SAMPLE_WINDOWS: LazyLock<RepoFragments> = LazyLock::new(|| windows(&SAMPLE));

pub static VECTORS: LazyLock<TokenSets> =
    LazyLock::new(|| TokenSets::of_fragments(&WINDOWS, &P50k));

const VISIBILITY: Visibility = Visibility::Guarded(HoleGuard::Strict);

/// Queries and results of one mode, one query per line task.
pub struct Searched {
    pub mode: Mode,
    pub queries: Queries,
    pub retrieval: Retrieval,
}

impl Searched {
    fn with(mode: Mode) -> Self {
        let asked = QuerySettings {
            mode,
            form: QueryForm::Window,
            length: WindowShape::default().window_size,
        };
        let queries = Queries::of_tasks(asked, &LINE_TASKS, &WINDOWS).queries;
        let sets = TokenSets::of_queries(&queries, &P50k);
        let settings = SearchSettings {
            ranker: Ranker::Jaccard,
            vocabulary: Vocabulary::Tokens(Tokenizer::p50k_base()),
            visibility: VISIBILITY,
            top_k: 20,
        };
        let vectors = FragmentVectors::Sets(VECTORS.clone());
        let query_vectors = QueryVectors { sets: Some(&sets), ..QueryVectors::default() };
        let index = RepositoryIndex::new(&WINDOWS, vectors, &settings);
        let retrieval = index.search(&queries, query_vectors);
        Self { mode, queries, retrieval }
    }

    pub fn builder(&self) -> Builder<'static> {
        let budget = RepoCoderBudget::default();
        let shown = FragmentTextSettings {
            align: Align::Auto.resolve(QueryForm::Window, self.mode),
            most: budget.blocks,
            full_paths: false,
            visibility: VISIBILITY,
        };
        let settings = BuilderSettings { mode: self.mode, form: QueryForm::Window, shown, budget };
        Builder::new(&WINDOWS, &P50k, settings)
    }
}

pub static RG1: LazyLock<Searched> = LazyLock::new(|| Searched::with(Mode::LeftContext));
pub static GT: LazyLock<Searched> = LazyLock::new(|| Searched::with(Mode::GroundTruth));

/// Prompts of mode rg1.
pub static PROMPTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let builder = RG1.builder();
    let found = RG1.retrieval.found.iter();
    found
        .map(|found| {
            let task = &LINE_TASKS.tasks()[found.row as usize];
            builder.build(task, Some(found)).text
        })
        .collect()
});

/// Returns pairs of texts to compare: the targets of adjacent tasks.
pub fn pairs(tasks: &[Task]) -> Vec<(&str, &str)> {
    tasks
        .windows(2)
        .map(|pair| (pair[0].ground_truth.as_str(), pair[1].ground_truth.as_str()))
        .collect()
}

/// Returns the number of bytes in a repository's files.
pub fn bytes(repository: &Repository) -> usize {
    repository.files.iter().map(|file| file.text.len()).sum()
}
