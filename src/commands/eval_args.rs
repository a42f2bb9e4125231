//! Flags of `eval`.

use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::{Args, ValueEnum};
use repoformer_core::retrieve::QueryForm;
use repoformer_core::retrieve::rank::Ranker;
use repoformer_evaluate::score::MissingPredictions;

use crate::settings::{SettingFlags, ValueList};
use crate::table::ScoreFormat;

/// Returns the names of the statuses of test runs, and `all`.
fn statuses() -> ValueList {
    #[cfg(target_os = "linux")]
    let known = ValueList::new(repoformer_execute::Status::ALL);
    #[cfg(not(target_os = "linux"))]
    let known = ValueList::new([""; 0]);
    known.and("all")
}

/// Parses a number that cannot be 0.
fn parse_positive<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "must be a whole number from 1")
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions to score, of any model and mode [default: the model's predictions in the cache, mode by mode]
    #[arg(long, value_name = "FILE")]
    pub(crate) predictions: Option<PathBuf>,
    /// Score retrieval instead of predictions: how much the retrieved fragments overlap with the targets
    #[arg(long, conflicts_with_all = [
        "pairs", "check_references", "metrics", "postprocess", "results", "missing", "allow_mixed",
    ])]
    pub(crate) retrieval: bool,
    /// Score used definitions instead of similarity: of the definitions in other files that the target uses, how many the prediction
    /// uses; `compare` reads the output
    #[arg(long, conflicts_with_all = [
        "pairs", "check_references", "metrics", "retrieval", "exec", "results", "per_task", "format", "allow_mixed", "shard",
    ])]
    pub(crate) definitions: bool,
    /// Find names instead of scoring similarity: those in each prediction that resolve nowhere, neither in its file nor in the
    /// repository nor in the language; `compare` reads the output
    #[arg(long, conflicts_with_all = [
        "pairs", "check_references", "metrics", "retrieval", "definitions", "exec", "results", "per_task", "format", "allow_mixed", "shard",
    ])]
    pub(crate) unresolved: bool,
    /// Ranker to compare with --retrieval, or several fused, as in rrf:jaccard,bm25 (repeatable, or separated by commas unless
    /// fused) [default: --ranker]
    #[arg(long, value_name = "NAME", requires = "retrieval", value_parser = ValueList::new(Ranker::NAMES))]
    pub(crate) rankers: Vec<String>,
    /// Query to compare with --retrieval (repeatable, or separated by commas) [default: --query]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "retrieval",
        value_parser = ValueList::new(QueryForm::ALL))]
    pub(crate) queries: Vec<String>,
    /// Score the pairs in this file instead of a data set, one `{"task_id", "target", "pred"}` per line
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "predictions", "check_references", "tasks", "missing", "allow_mixed",
    ])]
    pub(crate) pairs: Option<PathBuf>,
    /// Also write CrossCodeEval's results.json, detailed_results.json, prediction_truncated.jsonl and
    /// exact_match_idx.jsonl to this folder, with a manifest; without --predictions, to a subfolder for each mode
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check_references", "exec", "pairs"])]
    pub(crate) results: Option<PathBuf>,
    /// Compare predictions even if their sampling, limits, cuts or targets differ; the differences are printed
    #[arg(long)]
    pub(crate) allow_mixed: bool,
    /// Also write the scores of each task (with csv, jsonl and parquet, only these)
    #[arg(long)]
    pub(crate) per_task: bool,
    /// Format of the scores [default: from the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ScoreFormat>,
    /// Treatment of tasks without a prediction: error (stop), zero (score 0) or skip (leave out)
    #[arg(long, value_name = "HOW", default_value = "error",
        value_parser = ValueList::new([MissingPredictions::Error, MissingPredictions::Zero, MissingPredictions::Skip]))]
    pub(crate) missing: String,
    /// Score the references against themselves; a score below a metric's maximum is a failure
    #[arg(long, conflicts_with_all = ["predictions", "missing", "allow_mixed"])]
    pub(crate) check_references: bool,
    /// File for the scores (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) exec: Box<ExecArgs>,
}

/// How the repositories' own tests judge predictions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecArgs {
    /// Measure the unit-test pass rate: put each prediction into a copy of its repository and run the tests
    #[arg(long, conflicts_with_all = ["pairs", "retrieval", "metrics"])]
    pub(crate) exec: bool,
    /// Shell command that runs a task's tests; {tests}, {repository}, {task_id} and {path} are replaced [default: pytest or
    /// unittest, whichever the repository uses]
    #[arg(long, value_name = "COMMAND", requires = "exec")]
    pub(crate) test_cmd: Option<String>,
    /// Shell command that prepares a copy for its tests, once; {repository} is replaced
    #[arg(long, value_name = "COMMAND", requires = "exec")]
    pub(crate) setup_cmd: Option<String>,
    /// Time limit of the setup, and of the whole test suite for --mine-tests, in seconds [default: 1800]
    #[arg(long, value_name = "S", requires = "exec")]
    pub(crate) setup_timeout: Option<f64>,
    /// File with the tests of each task, one `{"task_id", "tests": […]}` per line [default: all tests of the repository]
    #[arg(long, value_name = "FILE", requires = "exec")]
    pub(crate) tests: Option<PathBuf>,
    /// Find the tests of each task instead of judging predictions, and write them to -o, as a file for --tests
    #[arg(long, requires = "exec", conflicts_with_all = ["predictions", "tests", "check_references"])]
    pub(crate) mine_tests: bool,
    /// Shell command that prints the tests of a repository, one per line, for --mine-tests (not needed for Python)
    #[arg(long, value_name = "COMMAND", requires = "mine_tests")]
    pub(crate) list_tests_cmd: Option<String>,
    /// Maximum number of tests mined per task [default: 10]
    #[arg(long, value_name = "N", requires = "mine_tests", value_parser = parse_positive::<NonZero<usize>>)]
    pub(crate) max_tests: Option<NonZero<usize>>,
    /// How to read the test command's result [default: auto]
    #[arg(long, value_name = "NAME", requires = "exec",
        value_parser = ValueList::new(["auto", "pytest", "unittest", "exit-code"]))]
    pub(crate) runner: Option<String>,
    /// Time limit of a run, in seconds [default: 60]
    #[arg(long, value_name = "S", requires = "exec")]
    pub(crate) timeout: Option<f64>,
    /// Limit of the total processor time of a run's processes, in seconds [default: 4 times --timeout]
    #[arg(long, value_name = "S", requires = "exec")]
    pub(crate) cpu_limit: Option<f64>,
    /// Limit of the total memory of a run's processes, in megabytes [default: 4096]
    #[arg(long, value_name = "MB", requires = "exec", value_parser = parse_positive::<NonZero<u64>>)]
    pub(crate) memory_limit: Option<NonZero<u64>>,
    /// Limit of the disk space of a run, in megabytes [default: 1024]
    #[arg(long, value_name = "MB", requires = "exec", value_parser = parse_positive::<NonZero<u64>>)]
    pub(crate) disk_limit: Option<NonZero<u64>>,
    /// Limit of simultaneous processes of a run [default: 256]
    #[arg(long, value_name = "N", requires = "exec", value_parser = parse_positive::<NonZero<usize>>)]
    pub(crate) process_limit: Option<NonZero<usize>>,
    /// Whether tests can use the network (the setup always can) [default: off]
    #[arg(long, value_name = "WHEN", requires = "exec")]
    pub(crate) network: Option<Switch>,
    /// Isolation of runs: required (complete, or else an error), auto (as far as the system allows), off [default: required]
    #[arg(long, value_name = "WHEN", requires = "exec")]
    pub(crate) isolation: Option<Isolation>,
    /// Number of runs with the reference; tasks whose runs disagree are left out [default: 1]
    #[arg(long, value_name = "N", requires = "exec", value_parser = parse_positive::<NonZero<usize>>)]
    pub(crate) oracle_runs: Option<NonZero<usize>>,
    /// Value of k in pass@k (repeatable, or separated by commas) [default: 1]
    #[arg(long, value_name = "K", value_delimiter = ',', requires = "exec")]
    pub(crate) pass_k: Vec<usize>,
    /// Repeat known runs with this status (repeatable, or separated by commas)
    #[arg(long, value_name = "STATUS", value_delimiter = ',', requires = "exec",
        value_parser = statuses())]
    pub(crate) rerun: Vec<String>,
    /// File to append results to and to read known results from [default: exec/BENCHMARK/results.jsonl in the cache]
    #[arg(long, value_name = "FILE", requires = "exec")]
    pub(crate) exec_results: Option<PathBuf>,
    /// Folder of the repositories' copies [default: exec/BENCHMARK/copies in the cache]
    #[arg(long, value_name = "DIR", requires = "exec")]
    pub(crate) work_dir: Option<PathBuf>,
}

impl EvalArgs {
    /// Returns the format of the scores, after checking that the output can have it.
    pub(crate) fn format(&self) -> Result<ScoreFormat> {
        ScoreFormat::choose(self.format, &self.output)
    }
}

/// Choice between off and on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    Off,
    On,
}

/// Isolation of test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Isolation {
    Auto,
    Required,
    Off,
}
