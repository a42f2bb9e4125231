//! How long the core's stages take, the fast path beside its plain twin where there is one.
//!
//! `cargo bench` runs on the sample repositories; `REPOFORMER_CORPUS=DIR cargo bench` on every repository below DIR.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use repoformer::complete::in_context::{InContextModel, Limits};
use repoformer::corpus::{Repository, repository_names};
use repoformer::metrics::levenshtein;
use repoformer::prompt::{Budget, Builder};
use repoformer::query::{Mode, QueryWindows};
use repoformer::retrieve::{HoleGuard, Index, Level, Retrieval, Scratch};
use repoformer::sample::{Kind, Sampling, sample};
use repoformer::task::TaskSet;
use repoformer::tokenize::{P50k, PieceCache};
use repoformer::vector::{TokenSet, TokenSets};
use repoformer::window::{RepoWindows, WindowShape};

#[path = "support/term_at_a_time.rs"]
mod term_at_a_time;

fn main() {
    divan::main();
}

struct Corpus {
    repository: Repository,
    windows: RepoWindows,
    vectors: TokenSets,
    tasks: TaskSet,
    queries: QueryWindows,
    query_vectors: TokenSets,
    retrieval: Retrieval,
    prompts: Vec<String>,
}

/// All repositories of the folder as one.
fn corpus() -> &'static Corpus {
    static CORPUS: OnceLock<Corpus> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let folder = std::env::var_os("REPOFORMER_CORPUS").map(PathBuf::from);
        let folder =
            folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/repos"));
        let mut files = Vec::new();
        for name in repository_names(&folder).unwrap() {
            let mut read = Repository::read(&folder, &name).unwrap().repository.files;
            read.iter_mut()
                .for_each(|file| file.path = format!("all/{}", file.path));
            files.extend(read);
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
            .iter_mut()
            .enumerate()
            .for_each(|(i, file)| file.same_as = i as u32);
        Corpus::of(Repository {
            name: "all".into(),
            files,
        })
    })
}

impl Corpus {
    fn of(repository: Repository) -> Self {
        let p50k = P50k::new();
        let sampling = Sampling {
            per_repository: 200,
            ..Sampling::new(Kind::Line)
        };
        let mut tasks = sample(&repository, &sampling, &|text| p50k.count(text));
        tasks
            .iter_mut()
            .enumerate()
            .for_each(|(row, task)| task.row = row);
        let tasks = TaskSet {
            path: "bench".into(),
            tasks,
        };
        let windows = RepoWindows::cut(repository.clone(), WindowShape::default());
        let vectors = TokenSets::of_windows(&windows, &p50k);
        let queries = QueryWindows::cut(Mode::LeftContext, &tasks, &windows).queries;
        let query_vectors = TokenSets::of_queries(&queries, &p50k);
        let parameters = (20, HoleGuard::Strict);
        let (retrieval, _) =
            Retrieval::search(&windows, &vectors, &queries, &query_vectors, parameters);
        let builder = Builder::new(
            &windows,
            &p50k,
            Mode::LeftContext,
            HoleGuard::Strict,
            Budget::default(),
        );
        let prompt = |(found, task): (_, _)| builder.build(task, Some(found)).text;
        let prompts = retrieval
            .found
            .iter()
            .zip(&tasks.tasks)
            .map(prompt)
            .collect();
        Self {
            repository,
            windows,
            vectors,
            tasks,
            queries,
            query_vectors,
            retrieval,
            prompts,
        }
    }

    fn bytes(&self) -> usize {
        self.repository
            .files
            .iter()
            .map(|file| file.text.len())
            .sum()
    }
}

#[divan::bench]
fn cut_windows(bencher: Bencher<'_, '_>) {
    let corpus = corpus();
    bencher
        .counter(ItemsCount::new(corpus.windows.len()))
        .with_inputs(|| corpus.repository.clone())
        .bench_values(|repository| RepoWindows::cut(repository, WindowShape::default()));
}

mod tokenize {
    use super::*;

    #[divan::bench]
    fn files(bencher: Bencher<'_, '_>) {
        let corpus = corpus();
        bencher.counter(BytesCount::new(corpus.bytes())).bench(|| {
            let mut cache = PieceCache::new();
            let count = |file: &repoformer::corpus::SourceFile| {
                P50k::new().count_with(&file.text, &mut cache)
            };
            corpus.repository.files.iter().map(count).sum::<usize>()
        });
    }

    #[divan::bench(sample_count = 5)]
    fn files_tiktoken(bencher: Bencher<'_, '_>) {
        let (corpus, tiktoken) = (corpus(), tiktoken_rs::p50k_base().unwrap());
        bencher.counter(BytesCount::new(corpus.bytes())).bench(|| {
            corpus
                .repository
                .files
                .iter()
                .map(|file| tiktoken.encode_ordinary(&file.text).len())
                .sum::<usize>()
        });
    }

    #[divan::bench]
    fn window_sets(bencher: Bencher<'_, '_>) {
        let corpus = corpus();
        bencher
            .counter(ItemsCount::new(corpus.windows.len()))
            .bench(|| TokenSets::of_windows(&corpus.windows, &P50k::new()));
    }
}

mod search {
    use super::*;

    #[divan::bench]
    fn build_index(bencher: Bencher<'_, '_>) {
        let corpus = corpus();
        bencher
            .counter(ItemsCount::new(corpus.vectors.len()))
            .bench(|| Index::new(&corpus.vectors));
    }

    /// All queries in one go, with each level of instructions of this machine.
    #[divan::bench(args = Level::available())]
    fn all_queries(bencher: Bencher<'_, '_>, level: Level) {
        let corpus = corpus();
        let index = Index::new(&corpus.vectors).with_level(level);
        bencher
            .counter(ItemsCount::new(corpus.query_vectors.len()))
            .bench_local(|| index.search_all(&corpus.query_vectors, 20, |_, _| true));
    }

    #[divan::bench]
    fn query_by_query(bencher: Bencher<'_, '_>) {
        let corpus = corpus();
        let (index, mut scratch) = (Index::new(&corpus.vectors), Scratch::default());
        bencher
            .counter(ItemsCount::new(corpus.query_vectors.len()))
            .bench_local(|| {
                let queries = corpus.query_vectors.iter();
                queries
                    .map(|query| index.search(query, 20, |_| true, &mut scratch).len())
                    .sum::<usize>()
            });
    }

    #[divan::bench]
    fn queries_term_at_a_time(bencher: Bencher<'_, '_>) {
        let corpus = corpus();
        let mut index = term_at_a_time::TermAtATime::new(&corpus.vectors);
        bencher
            .counter(ItemsCount::new(corpus.query_vectors.len()))
            .bench_local(|| {
                let mut hits = 0;
                for query in corpus.query_vectors.iter() {
                    let TokenSet::Narrow(query) = query else {
                        unreachable!()
                    };
                    hits += index.search(query, 20, |_| true).len();
                }
                hits
            });
    }

    /// The reference's way, in its own language's terms: a set intersection for every window.
    #[divan::bench(sample_count = 3)]
    fn ten_queries_by_hash_sets(bencher: Bencher<'_, '_>) {
        let corpus = corpus();
        let sets: Vec<HashSet<u32>> = corpus
            .vectors
            .iter()
            .map(|set| set.iter().collect())
            .collect();
        bencher.counter(ItemsCount::new(10_usize)).bench(|| {
            let score = |query: TokenSet<'_>| {
                let mut scores: Vec<(f64, usize)> = Vec::with_capacity(sets.len());
                for (window, set) in sets.iter().enumerate() {
                    let overlap = query.iter().filter(|token| set.contains(token)).count();
                    scores.push((
                        overlap as f64 / (set.len() + query.len() - overlap).max(1) as f64,
                        window,
                    ));
                }
                scores.sort_by(|a, b| a.0.total_cmp(&b.0));
                scores.pop()
            };
            corpus
                .query_vectors
                .iter()
                .take(10)
                .map(score)
                .filter(Option::is_some)
                .count()
        });
    }
}

#[divan::bench]
fn prompts(bencher: Bencher<'_, '_>) {
    let corpus = corpus();
    let p50k = P50k::new();
    bencher
        .counter(ItemsCount::new(corpus.retrieval.found.len()))
        .bench(|| {
            let builder = Builder::new(
                &corpus.windows,
                &p50k,
                Mode::LeftContext,
                HoleGuard::Strict,
                Budget::default(),
            );
            let build = |(i, found): (usize, _)| {
                let task = &corpus.tasks.tasks[i];
                let prompt = builder.build(task, Some(found));
                builder
                    .line(task, Some(&corpus.queries.windows[i]), &prompt)
                    .len()
            };
            corpus
                .retrieval
                .found
                .iter()
                .enumerate()
                .map(build)
                .sum::<usize>()
        });
}

#[divan::bench(sample_count = 5)]
fn complete_ten_lines(bencher: Bencher<'_, '_>) {
    let (corpus, model) = (corpus(), InContextModel::default());
    let limits = Limits {
        max_lines: 1,
        max_tokens: 500,
    };
    bencher.counter(ItemsCount::new(10_usize)).bench(|| {
        corpus
            .prompts
            .iter()
            .take(10)
            .map(|prompt| model.complete(black_box(prompt), &limits).text.len())
            .sum::<usize>()
    });
}

#[divan::bench]
fn edit_distance_of_lines(bencher: Bencher<'_, '_>) {
    let lines: Vec<&str> = corpus()
        .tasks
        .tasks
        .iter()
        .map(|task| task.ground_truth.as_str())
        .collect();
    bencher.counter(ItemsCount::new(lines.len() - 1)).bench(|| {
        lines
            .windows(2)
            .map(|pair| levenshtein::distance(pair[0], pair[1]))
            .sum::<usize>()
    });
}
