//! Repository-level code completion experiments, whole and exact.
//!
//! The pipeline is RepoCoder's and Repoformer's, and each module is one step of it:
//!
//! 1. [`corpus`]: a folder → a repository's source files in one [`language`], decoded, in one fixed order; [`lines`] counts
//!    their lines.
//! 2. [`window`]: files → overlapping windows of lines, merged by text; or [`chunk`]: files → chunks of non-blank lines, with
//!    the queries that search them, what each task sees of them, and what is shown for those found.
//! 3. [`task`]: a benchmark's holes, in every benchmark's format; [`sample`] draws new ones from any repository.
//! 4. [`query`]: holes → what is searched for: the left context (rg1), the lines around the hole (gt), a prediction (rg-rg).
//! 5. [`tokenize`] and [`vector`]: windows → sets of `p50k_base` tokens; [`dense`]: → vectors of an embedding model, computed
//!    by a server ([`endpoint`]) or by the user.
//! 6. [`retrieve`]: for each query the most similar windows, its own hole kept out; [`rank`]: the rankers of chunks.
//! 7. [`prompt`]: the windows as comment blocks within a budget, before the task's own prompt; [`prompt::style`]: left context,
//!    right context and [`cross_file`] context in a model's own order.
//! 8. [`complete`]: prompts → predictions, with an embedded model that needs nothing but the prompt; [`generate`]: by a
//!    language model on a server.
//! 9. [`predictions`], [`metrics`] and [`score`]: predictions beside their tasks → exact match and edit similarity.
//!    [`quality`] says how near what was retrieved comes to what stood in the hole, without any model.
//! 10. [`statistics`] and [`comparison`]: how far a mean can be trusted, and whether one system gains over another.
//!
//! 11. `execution` (on Linux): the repository's own tests with each prediction in its place → the unit-test pass rate.
//!
//! 12. [`label`]: does retrieval help? Instances of varied code, drawn by [`cluster`], labels from completions without and with what
//!     was retrieved, and sequences that teach a model to tell ([`label::verbalize`]).
//!
//! 13. [`policy`]: when to retrieve: every policy as a score and a threshold, learned ones trained on labels, and what each makes
//!     of accuracy and latency.
//!
//! The one room with unsafe code is the search's choice of instructions (`retrieve/index/simd.rs`); every other forbids it.
//!
//! [`pipeline`] runs these steps over typed artifacts on disk ([`artifact`]), [`records`] shows them as JSON, [`exchange`] as the
//! collections and runs of information retrieval. [`kind`] tells what any file of the field holds, [`validate`] what is wrong with
//! it, [`convert`] turns it into another. The binary of the same name is the command line over it all.
//!
//! From source text to a score:
//!
//! ```
//! use repoformer::complete::in_context::{InContextModel, Limits};
//! use repoformer::corpus::{Repository, SourceFile};
//! use repoformer::metrics::Metric;
//! use repoformer::prompt::{Budget, Builder};
//! use repoformer::query::{Mode, QueryWindows};
//! use repoformer::retrieve::{HoleGuard, Retrieval};
//! use repoformer::task::{Task, TaskSet};
//! use repoformer::tokenize::P50k;
//! use repoformer::vector::TokenSets;
//! use repoformer::window::{RepoWindows, WindowShape};
//!
//! // A repository of two files, with a hole in the second.
//! let text = "def read_json(path):\n    with open(path) as stream:\n        return json.load(stream)\n";
//! let hole = "def read_settings(path):\n    with open(path) as stream:\n        return NOTHING\n";
//! let file = |path: &str, text: &str, same_as| SourceFile { path: path.into(), text: text.into(), same_as };
//! let files = vec![file("demo/io.py", text, 0), file("demo/main.py", hole, 1)];
//! let prompt = "def read_settings(path):\n    with open(path) as stream:\n";
//! let task = Task::new("demo/0".into(), "demo/main.py", 0, 2, "        return json.load(stream)", prompt);
//! let tasks = TaskSet { path: "tasks.jsonl".into(), tasks: vec![task.clone()] };
//!
//! // Windows, queries, vectors, retrieval.
//! let windows = RepoWindows::cut(Repository { name: "demo".into(), files }, WindowShape::default());
//! let queries = QueryWindows::cut(Mode::LeftContext, &tasks, &windows).queries;
//! let p50k = P50k::new();
//! let (vectors, query_vectors) = (TokenSets::of_windows(&windows, &p50k), TokenSets::of_queries(&queries, &p50k));
//! let parameters = (20, HoleGuard::Strict);
//! let retrieval = Retrieval::search(&windows, &vectors, &queries, &query_vectors, parameters);
//! assert_eq!(retrieval.found[0].hits.len(), 1, "the hole's own file stays out");
//!
//! // Prompt, completion, score.
//! let builder = Builder::new(&windows, &p50k, Mode::LeftContext, HoleGuard::Strict, Budget::default());
//! let prompt = builder.build(&task, Some(&retrieval.found[0]));
//! assert!(prompt.text.contains("# io.py\n") && prompt.text.ends_with(&task.prompt));
//! let limits = Limits { max_lines: 1, max_tokens: 100 };
//! let prediction = InContextModel::default().complete(&prompt.text, &limits).text;
//! assert_eq!(Metric::RepoCoder.score(&task.ground_truth, &[prediction], task.language()), [1.0, 1.0]);
//! ```

// One module calls code made for instructions that not every machine has: `retrieve::index::simd`. Nothing else may.
#![deny(unsafe_code)]

#[forbid(unsafe_code)]
mod appended;
pub mod artifact;
#[forbid(unsafe_code)]
pub mod batch;
#[forbid(unsafe_code)]
pub mod chunk;
#[forbid(unsafe_code)]
pub mod cluster;
#[forbid(unsafe_code)]
pub mod comparison;
#[forbid(unsafe_code)]
pub mod complete;
#[forbid(unsafe_code)]
pub mod convert;
#[forbid(unsafe_code)]
pub mod corpus;
#[forbid(unsafe_code)]
pub mod cross_file;
#[forbid(unsafe_code)]
pub mod dense;
#[forbid(unsafe_code)]
pub mod endpoint;
#[forbid(unsafe_code)]
pub mod error;
#[forbid(unsafe_code)]
pub mod exchange;
#[cfg(target_os = "linux")]
#[forbid(unsafe_code)]
pub mod execution;
#[forbid(unsafe_code)]
pub mod generate;
pub mod jsonl;
#[forbid(unsafe_code)]
pub mod kind;
#[forbid(unsafe_code)]
pub mod label;
#[forbid(unsafe_code)]
pub mod language;
#[forbid(unsafe_code)]
pub mod lines;
#[forbid(unsafe_code)]
pub mod manifest;
#[forbid(unsafe_code)]
pub mod metrics;
#[forbid(unsafe_code)]
pub mod pairs;
#[forbid(unsafe_code)]
pub mod pipeline;
#[forbid(unsafe_code)]
pub mod policy;
#[forbid(unsafe_code)]
pub mod postprocess;
#[forbid(unsafe_code)]
pub mod predictions;
#[forbid(unsafe_code)]
pub mod prompt;
#[forbid(unsafe_code)]
pub mod quality;
#[forbid(unsafe_code)]
pub mod query;
#[forbid(unsafe_code)]
pub mod rank;
#[forbid(unsafe_code)]
pub mod records;
#[forbid(unsafe_code)]
pub mod report;
#[forbid(unsafe_code)]
pub mod repository_file;
pub mod retrieve;
#[forbid(unsafe_code)]
pub mod sample;
#[forbid(unsafe_code)]
pub mod score;
#[forbid(unsafe_code)]
pub mod statistics;
#[forbid(unsafe_code)]
pub mod task;
#[forbid(unsafe_code)]
pub mod tokenize;
#[forbid(unsafe_code)]
pub mod validate;
#[forbid(unsafe_code)]
pub mod vector;
#[forbid(unsafe_code)]
pub mod window;
