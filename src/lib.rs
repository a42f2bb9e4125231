//! Repository-level code completion experiments, whole and exact.
//!
//! The chapters below stand in the order in which a task passes through them, from source text to a score. A chapter imports
//! only from those before it; a test holds the whole library to that. `ARCHITECTURE.md` walks through them at length.
//!
//! 1. [`error`]: typed errors that name the file, the line and the task.
//! 2. [`text`]: lines, tokens, edit distances, and what is known of each language.
//! 3. [`store`]: typed artifacts, JSONL, append-only logs, manifests and data frames, written whole or not at all.
//! 4. [`endpoint`]: the HTTP client for model servers.
//! 5. [`repository`]: a folder's source files, and the fragments that each file is cut into.
//! 6. [`task`]: a benchmark's holes in every benchmark's format; new ones drawn from any repository.
//! 7. [`retrieve`]: queries, vectors, rankers, the exact index, and which fragments a query may see.
//! 8. [`prompt`]: retrieved fragments and a task's contexts, laid out for a model within a budget of tokens.
//! 9. [`complete`]: prompts to predictions, by the embedded model, a server, or a batch.
//! 10. [`evaluate`]: predictions beside their tasks, scores, intervals, and comparisons of systems.
//! 11. `execute` (on Linux): a repository's own tests with each prediction in its place.
//! 12. [`selective`]: labels that say whether retrieval helps, and policies that decide when to retrieve.
//! 13. [`formats`]: checks files of the field and turns one format into another.
//! 14. [`report`]: the page that shows a comparison, and its figures.
//! 15. [`pipeline`]: the stages over all of this, and where their artifacts lie.
//!
//! The binary of the same name is the command line over the library.
//!
//! From source text to a score:
//!
//! ```
//! use repoformer::complete::in_context::{Limits, complete};
//! use repoformer::evaluate::metrics::Metric;
//! use repoformer::prompt::{Budget, Builder, BuilderSettings};
//! use repoformer::repository::corpus::{Repository, SourceFile};
//! use repoformer::repository::fragment::{Cut, RepoFragments, WindowShape};
//! use repoformer::retrieve::rank::{Ranker, Vocabulary, Words};
//! use repoformer::retrieve::{Align, FragmentTextSettings, HoleGuard, Mode, Queries, QueryForm, QuerySettings};
//! use repoformer::retrieve::{QueryVectors, RepositoryIndex, SearchSettings, Vectors, Visibility};
//! use repoformer::task::{Task, TaskSet};
//! use repoformer::text::language::Language;
//! use repoformer::text::tokenize::P50k;
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
//! let vectors = Vectors::Terms(Words::of(&windows.texts()));
//! let index = RepositoryIndex::new(&windows, vectors, &search);
//! let found = &index.search(&queries, QueryVectors::default()).found[0];
//! assert_eq!(found.hits.len(), 1, "the hole's own file stays out");
//!
//! // Prompt, completion, score.
//! let shown = FragmentTextSettings { align: Align::Extend, most: 10, full_paths: false, visibility };
//! let settings = BuilderSettings { mode, form: QueryForm::Window, shown, budget: Budget::default() };
//! let prompt = Builder::new(&windows, &P50k, settings).build(&task, Some(found));
//! assert!(prompt.text.contains("# io.py\n") && prompt.text.ends_with(&task.prompt));
//! let limits = Limits { max_lines: 1, max_tokens: 100 };
//! let prediction = complete(&prompt.text, &limits).text;
//! assert_eq!(Metric::RepoCoder.score(&task.ground_truth, &[prediction], task.language()), [1.0, 1.0]);
//! ```

// Two modules may: `retrieve::index::simd` calls code made for instructions that not every machine has, and
// `text::language::stack_nodes` counts the memory of a library in C.
#![deny(unsafe_code)]

// The order of the chapters. Blank lines keep the formatter from sorting them.
#[forbid(unsafe_code)]
pub mod error;

#[forbid(unsafe_code)]
pub mod store;

pub mod text;

#[forbid(unsafe_code)]
pub mod endpoint;

#[forbid(unsafe_code)]
pub mod repository;

#[forbid(unsafe_code)]
pub mod task;

pub mod retrieve;

#[forbid(unsafe_code)]
pub mod prompt;

#[forbid(unsafe_code)]
pub mod complete;

#[forbid(unsafe_code)]
pub mod evaluate;

#[cfg(target_os = "linux")]
#[forbid(unsafe_code)]
pub mod execute;

#[forbid(unsafe_code)]
pub mod selective;

#[forbid(unsafe_code)]
pub mod formats;

#[forbid(unsafe_code)]
pub mod report;

#[forbid(unsafe_code)]
pub mod pipeline;
