//! Repository-level code completion as the papers on RepoCoder and Repoformer define it.
//!
//! The modules are listed in the order in which a task passes through them:
//!
//! 1. [`repository`]: a folder's source files, and the fragments that each file is cut into: overlapping windows or chunks.
//! 2. [`task`]: a benchmark's holes in every benchmark's format; new ones drawn from any repository.
//! 3. [`retrieve`]: queries, vectors, rankers, the exact index, and which fragments a query may see.
//! 4. [`prompt`]: retrieved fragments and a task's contexts, laid out for a model within a budget of tokens.
//! 5. [`completion`]: requests to a model's server, and the completion in its answer.
//! 6. [`postprocess`], [`metrics`]: the part of a prediction that counts; exact match and edit similarity.
//! 7. [`label`], [`cluster`], [`policy`]: whether retrieval helped, and policies that decide when to retrieve.
//!
//! Nothing here uses the network, and nothing is written unless a path is given. The crates below this one are re-exported as
//! [`text`], [`store`] and [`repository`].
//!
//! From source text to a score:
//!
//! ```
//! use repoformer_core::metrics::Metric;
//! use repoformer_core::prompt::{RepoCoderBudget, Builder, BuilderSettings};
//! use repoformer_core::repository::corpus::{Repository, SourceFile};
//! use repoformer_core::repository::fragment::{Cut, RepoFragments, WindowShape};
//! use repoformer_core::retrieve::rank::{Ranker, Vocabulary, Words};
//! use repoformer_core::retrieve::{Align, FragmentTextSettings, HoleGuard, Mode, Queries, QueryForm, QuerySettings};
//! use repoformer_core::retrieve::{QueryVectors, RepositoryIndex, SearchSettings, FragmentVectors, Visibility};
//! use repoformer_core::task::{Task, TaskSet};
//! use repoformer_text::language::Language;
//! use repoformer_text::tokenize::P50k;
//!
//! // A repository of two files, with a hole in the second.
//! let text = "def read_json(path):\n    with open(path) as stream:\n        return json.load(stream)\n";
//! let hole = "def read_settings(path):\n    with open(path) as stream:\n        return NOTHING\n";
//! let file = |path: &str, text: &str, same_as| SourceFile { path: path.into(), text: text.into(), same_as };
//! let files = vec![file("demo/io.py", text, 0), file("demo/main.py", hole, 1)];
//! let repository = Repository { name: "demo".into(), files };
//! let prompt = "def read_settings(path):\n    with open(path) as stream:\n";
//! let task = Task::new("demo/0".into(), "demo/main.py", 0, 2, "        return json.load(stream)", prompt);
//! let tasks = TaskSet::new("tasks.jsonl".into(), vec![task.clone()]);
//!
//! // Fragments and queries.
//! let windows = RepoFragments::cut(repository, Language::Python, Cut::Windows(WindowShape::default()));
//! let mode = Mode::LeftContext;
//! let asked = QuerySettings { mode, form: QueryForm::Window, length: 20 };
//! let queries = Queries::of_tasks(asked, &tasks, &windows).queries;
//!
//! // Vectors and retrieval.
//! let visibility = Visibility::Guarded(HoleGuard::Strict);
//! let search = SearchSettings { ranker: Ranker::Jaccard, vocabulary: Vocabulary::Words, visibility, top_k: 20 };
//! let vectors = FragmentVectors::Terms(Words::new(&windows.texts()));
//! let index = RepositoryIndex::new(&windows, vectors, &search);
//! let found = &index.search(&queries, QueryVectors::default()).found[0];
//! assert_eq!(found.hits.len(), 1, "the hole's own file stays out");
//!
//! // Prompt, and the score of a model's prediction.
//! let shown = FragmentTextSettings { align: Align::Extend, most: 10, full_paths: false, visibility };
//! let settings = BuilderSettings { mode, form: QueryForm::Window, shown, budget: RepoCoderBudget::default() };
//! let prompt = Builder::new(&windows, &P50k, settings).build(&task, Some(found));
//! assert!(prompt.text.contains("# io.py\n") && prompt.text.ends_with(&*task.prompt));
//! let prediction = "        return json.load(stream)".to_owned();
//! assert_eq!(Metric::RepoCoder.score(&task.ground_truth, &[prediction], task.language()), [1.0, 1.0]);
//! ```

// Only `retrieve::index::simd` contains unsafe code: it calls code compiled for instructions that not every machine has.
#![deny(unsafe_code)]

pub mod cluster;
pub mod completion;
pub mod label;
pub mod metrics;
pub mod policy;
pub mod postprocess;
pub mod prompt;
pub mod retrieve;
pub mod task;

pub use repoformer_repository as repository;
pub use repoformer_store as store;
pub use repoformer_text as text;
