//! Flags of what judges predictions: `eval`, `compare`, `report`, and the guard of test runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ScoreFormat, SettingFlags};

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions to score, of any model and mode [default: the model's in the cache, mode by mode]
    #[arg(long, value_name = "FILE")]
    pub(crate) predictions: Option<PathBuf>,
    /// Measure instead what was retrieved, without any model: its overlap with the targets (chunks alone)
    #[arg(long, conflicts_with_all = ["pairs", "check_references", "metrics"])]
    pub(crate) retrieval: bool,
    /// Rankers to compare with --retrieval (repeatable, or separated by commas where none is a fusion) [default: the one that is set]
    #[arg(long, value_name = "NAME", requires = "retrieval")]
    pub(crate) rankers: Vec<String>,
    /// Queries to compare with --retrieval (repeatable, or separated by commas) [default: the one that is set]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "retrieval"
    )]
    pub(crate) queries: Vec<String>,
    /// Score pairs `{"task_id", "target", "pred"}` instead, without any task file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["predictions", "check_references", "tasks"])]
    pub(crate) pairs: Option<PathBuf>,
    /// Metric (repeatable): repocoder, repoformer, repoformer-difflib, crosscodeeval, repobench, chars, or all
    /// [default: repocoder]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,
    /// What of a prediction is compared: own (for each metric as its program cuts it), none, or steps one after the other:
    /// fences, chatter, echo (chat: these three), first-line, lines, stripped-lines, statement, bracket, function-body,
    /// comments, comment-signs [default: own; none for --pairs]
    #[arg(long, value_name = "STEPS")]
    pub(crate) postprocess: Option<String>,
    /// Resamples of the means' intervals
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = parse_resamples)]
    pub(crate) resamples: usize,
    /// Same seed, same intervals
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also write CrossCodeEval's results.json, detailed_results.json, prediction_truncated.jsonl and
    /// exact_match_idx.jsonl to this folder, with a manifest; below a folder a mode where several are scored
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check_references", "exec", "pairs"])]
    pub(crate) results: Option<PathBuf>,
    /// Also give each task's scores
    #[arg(long)]
    pub(crate) per_task: bool,
    /// How the scores are written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ScoreFormat,
    /// What a task without prediction means: error (score nothing), zero (it scores 0), skip (leave it out)
    #[arg(long, value_name = "POLICY", default_value = "error")]
    pub(crate) missing: String,
    /// Score the references against themselves: less than the best that a metric has for them is a failure
    #[arg(long, conflicts_with = "predictions")]
    pub(crate) check_references: bool,
    /// Where the scores go (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) exec: Box<ExecArgs>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// The baseline: scores as `eval --per-task --format json` (or jsonl) writes them, FILE#NAME where a file holds those of
    /// several predictions (`-`: standard input); or, with --tasks, a file of predictions, or a mode whose predictions are
    /// in the cache
    pub(crate) a: String,
    /// Scores of the system; every difference is B - A
    pub(crate) b: String,
    /// Metric that predictions are scored by (repeatable), as eval takes it [default: repocoder]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,
    /// What of predictions is compared, as eval takes it [default: own]
    #[arg(long, value_name = "STEPS")]
    pub(crate) postprocess: Option<String>,
    /// Measure, as METRIC.VALUE: repocoder.es (repeatable, or separated by commas) [default: all that both have]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) measure: Vec<String>,
    /// What intervals draw anew: repositories with all of their tasks, or single tasks [default: repository, where the
    /// scores name two or more]
    #[arg(long, value_name = "UNIT")]
    pub(crate) resample: Option<ResampledUnit>,
    /// Resamples of an interval
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = parse_resamples)]
    pub(crate) resamples: usize,
    /// Same seed, same resamples and sign flips
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also compare within each repository
    #[arg(long)]
    pub(crate) by_repository: bool,
    /// Also give each task's values; with tsv and jsonl, instead
    #[arg(long)]
    pub(crate) per_task: bool,
    /// How the comparison is written; in tsv and jsonl a measure a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ScoreFormat,
    /// Where it goes (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// What intervals draw anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResampledUnit {
    Repository,
    Task,
}

/// Fewer leave nothing outside of 95 %, and a million already take minutes to tell hardly more.
pub(super) fn parse_resamples(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 100..=1_000_000) => Ok(number),
        _ => Err("a whole number from 100 to 1000000 is expected".into()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions to show, as FILE or NAME=FILE (repeatable) [default: the model's in the cache, mode by mode]
    #[arg(long, value_name = "[NAME=]FILE")]
    pub(crate) predictions: Vec<String>,
    /// How the unit tests went: what `eval --exec --per-task --format jsonl` wrote, of one system as NAME=FILE (repeatable)
    #[arg(long, value_name = "[NAME=]FILE")]
    pub(crate) exec: Vec<String>,
    /// What the others are compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Metric (repeatable), as eval takes it; the first one's edit similarity is plotted
    /// [default: repocoder,repoformer]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,
    /// What of a prediction is compared, as eval takes it [default: own]
    #[arg(long, value_name = "STEPS")]
    pub(crate) postprocess: Option<String>,
    /// Headline [default: the benchmark's name]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Resamples of an interval
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = parse_resamples)]
    pub(crate) resamples: usize,
    /// Same seed, same intervals
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder for index.html, figures/*.svg and figures/manifest.json; or FILE.html, with its figures in FILE.figures
    #[arg(short, long, value_name = "DIR", default_value = "report")]
    pub(crate) output: PathBuf,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// enclosed, enclosed-with-network, inside or open
    pub(crate) stage: String,
}

/// How predictions are judged by the repository's own tests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecArgs {
    /// Put each prediction in its place and run the repository's tests, in a copy: the unit-test pass rate
    #[arg(long, conflicts_with_all = ["pairs", "retrieval", "metrics"])]
    pub(crate) exec: bool,
    /// What runs a task's tests, for the shell; {tests}, {repository}, {task_id} and {path} are filled in [default: pytest
    /// or unittest, as the repository looks]
    #[arg(long, value_name = "COMMAND", requires = "exec")]
    pub(crate) test_cmd: Option<String>,
    /// What makes a copy ready for its tests, once; {repository} is filled in
    #[arg(long, value_name = "COMMAND", requires = "exec")]
    pub(crate) setup_cmd: Option<String>,
    /// Seconds that setting up, and a run of the whole suite that mines tests, may take [default: 1800]
    #[arg(long, value_name = "S", requires = "exec")]
    pub(crate) setup_timeout: Option<f64>,
    /// The tests of each task: lines `{"task_id", "tests": […]}` [default: all of the repository's]
    #[arg(long, value_name = "FILE", requires = "exec")]
    pub(crate) tests: Option<PathBuf>,
    /// Instead find the tests of each task, and write them as --tests reads them (to -o)
    #[arg(long, requires = "exec", conflicts_with_all = ["predictions", "tests", "check_references"])]
    pub(crate) mine_tests: bool,
    /// What prints the tests of a repository, one a line, to mine from (Python needs none)
    #[arg(long, value_name = "COMMAND", requires = "mine_tests")]
    pub(crate) list_tests_cmd: Option<String>,
    /// Tests that are mined a task, at most [default: 10]
    #[arg(long, value_name = "N", requires = "mine_tests")]
    pub(crate) max_tests: Option<usize>,
    /// How the command's end is read: auto, pytest, unittest, exit-code [default: auto]
    #[arg(long, value_name = "NAME", requires = "exec")]
    pub(crate) runner: Option<String>,
    /// Seconds that one run may take [default: 60]
    #[arg(long, value_name = "S", requires = "exec")]
    pub(crate) timeout: Option<f64>,
    /// Seconds of processor time that all processes of one run may take [default: 4 times --timeout]
    #[arg(long, value_name = "S", requires = "exec")]
    pub(crate) cpu_limit: Option<f64>,
    /// Megabytes of memory of all processes of one run [default: 4096]
    #[arg(long, value_name = "MB", requires = "exec")]
    pub(crate) memory_limit: Option<u64>,
    /// Megabytes that one run may write [default: 1024]
    #[arg(long, value_name = "MB", requires = "exec")]
    pub(crate) disk_limit: Option<u64>,
    /// Processes of one run at a time [default: 256]
    #[arg(long, value_name = "N", requires = "exec")]
    pub(crate) process_limit: Option<usize>,
    /// Whether tests have the network: off, on (setting up always has) [default: off]
    #[arg(long, value_name = "off|on", requires = "exec")]
    pub(crate) network: Option<Switch>,
    /// Whether runs are closed off: auto (as far as the system allows), required (or not at all), off [default: auto]
    #[arg(long, value_name = "WHEN", requires = "exec")]
    pub(crate) isolation: Option<Isolation>,
    /// How often the truth is run; tasks whose runs disagree are left out [default: 1]
    #[arg(long, value_name = "N", requires = "exec")]
    pub(crate) oracle_runs: Option<usize>,
    /// The k of pass@k (repeatable, or separated by commas) [default: 1]
    #[arg(long, value_name = "K", value_delimiter = ',', requires = "exec")]
    pub(crate) pass_k: Vec<usize>,
    /// Make results again that have this status: pass, fail, error, timeout, out-of-memory, no-tests, or all (repeatable, or
    /// separated by commas)
    #[arg(long, value_name = "STATUS", value_delimiter = ',', requires = "exec")]
    pub(crate) rerun: Vec<String>,
    /// Where results are appended, and what was run is looked up [default: exec/BENCHMARK/results.jsonl in the cache]
    #[arg(long, value_name = "FILE", requires = "exec")]
    pub(crate) exec_results: Option<PathBuf>,
    /// Where copies of repositories lie [default: exec/BENCHMARK/copies in the cache]
    #[arg(long, value_name = "DIR", requires = "exec")]
    pub(crate) work_dir: Option<PathBuf>,
}

/// Something that is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    Off,
    On,
}

/// Whether runs of tests are closed off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Isolation {
    Auto,
    Required,
    Off,
}
