//! Evaluation of predictions, which are joined with their tasks: scores with statistics, comparisons of systems, labels and
//! reports.
//!
//! - [`predictions`], [`pairs`], [`executed`], [`lm_eval`]: reading of predictions and results, each with its task.
//! - [`score`]: scores of every task by every metric. [`quality`]: quality of retrieval alone. [`uses`]: whether a completion
//!   uses the retrieved definitions.
//! - [`statistics`]: intervals and tests. [`comparison`]: comparison of systems whose [`conditions`] and [`origin`] agree.
//! - [`policy_scores`], [`sweep`]: scores of policies for labelled instances, and their curves.
//! - [`label`]: labels from completions without and with retrieved fragments.
//! - [`table`]: results as tables, records and columns; [`curve_charts`]: curves of policies as charts.
//! - [`report`]: the page that shows a comparison, and its figures.
//!
//! ```
//! use repoformer_core::metrics::Metric;
//! use repoformer_core::postprocess::Postprocess;
//! use repoformer_core::task::{Task, TaskSet};
//! use repoformer_evaluate::score::{MissingPredictions, score_tasks};
//!
//! let task = |id: &str| Task::new(id.into(), "demo/a.py", 0, 0, "x = 1", "");
//! let tasks = TaskSet::new("tasks.jsonl".into(), vec![task("demo/0"), task("demo/1")]);
//! let predictions = [vec!["x = 1\n".to_owned()], vec!["x = 12".to_owned()]];
//! let metric = Metric::Repoformer;
//! let scores = score_tasks(&tasks, &predictions, &[metric], &Postprocess::own(false), MissingPredictions::Skip)?;
//! let exact: Vec<_> = scores.tasks.iter().map(|task| task.get(metric, "em")).collect();
//! assert_eq!(exact, [Some(1.0), Some(0.0)]);
//! # Ok::<(), repoformer_store::error::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod comparison;
pub mod conditions;
pub mod curve_charts;
pub mod executed;
pub mod label;
pub mod lm_eval;
pub mod mode_scores;
pub mod origin;
pub mod pairs;
pub mod policy_scores;
pub mod predictions;
pub mod quality;
pub mod report;
pub mod score;
pub mod statistics;
pub mod sweep;
pub mod table;
pub mod unresolved;
pub mod uses;
