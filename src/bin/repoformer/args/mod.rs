//! The command line: flags parsed into plain values, nothing built from them here.

mod evaluation;
mod label;
mod policy;
mod server;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(target_os = "linux")]
pub(crate) use evaluation::GuardArgs;
use evaluation::parse_resamples;
pub(crate) use evaluation::{
    CompareArgs, EvalArgs, ExecArgs, Isolation, ReportArgs, ResampledUnit, Switch,
};
pub(crate) use label::{
    LabelAllArgs, LabelArgs, LabelCommand, LabelJudgeArgs, LabelSampleArgs, LabelVerbalizeArgs,
    SequenceFlags,
};
pub(crate) use policy::{
    ExplainFormat, LabelFlags, PolicyArgs, PolicyCommand, PolicyExplainArgs, PolicyFeaturesArgs,
    PolicySweepArgs, PolicyTrainArgs, SweepFormat,
};
pub(crate) use server::{ProbabilityArgs, ServerArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Repository-level code completion experiments: window, retrieve, prompt, complete, retrieve again, score.
#[derive(Debug, Parser)]
#[command(name = "repoformer", version, styles = STYLES, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Run `repoformer run` for the embedded demonstration. Exit status: 0 done, 1 done but something was\nskipped or a check failed, 2 could not run."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) screen: ScreenFlags,
}

/// How much is said, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ScreenFlags {
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more: every path, every problem
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Draw no progress bar (none is drawn where stderr is no terminal)
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// When to colour what is said; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Cut repositories into windows, and tasks into query windows of each mode
    Window(WindowArgs),
    /// Turn windows into vectors
    Vectorize(VectorizeArgs),
    /// Find the windows most similar to each query
    Search(SearchArgs),
    /// Build prompts from tasks and retrieval results
    Prompt(PromptArgs),
    /// Complete prompts with the embedded model, a server's, or by batches
    Complete(CompleteArgs),
    /// Search again with predictions: their windows, vectors, retrieval and prompts
    RgRg(RgRgArgs),
    /// Score predictions against tasks, or pairs of texts
    Eval(EvalArgs),
    /// Compare two sets of scores task by task: differences, intervals, tests, better and worse
    Compare(CompareArgs),
    /// Write one page of HTML and its figures: tables, gains, and every task with what was retrieved and predicted
    Report(ReportArgs),
    /// Run the whole experiment and print its table; without flags, the embedded demonstration
    Run(RunArgs),
    /// Print any cached artifact: its header, or its records as JSONL
    Inspect(InspectArgs),
    /// Make a benchmark from repositories: holes with their prompts, in RepoEval's format
    Sample(SampleArgs),
    /// Make labelled data for selective retrieval: draw instances, judge them by completions without and with retrieval
    Label(LabelArgs),
    /// Decide when to retrieve: train, explain and sweep policies on judged instances
    Policy(PolicyArgs),
    /// Turn records of one format into another: tasks, predictions, repositories, batch requests and answers
    Convert(ConvertArgs),
    /// Look files of records through and list every problem with its line
    Validate(ValidateArgs),
    /// Run one test command so that it harms nothing and leaves nothing behind (`eval --exec` starts it)
    #[cfg(target_os = "linux")]
    #[command(name = repoformer::execute::guard::SUBCOMMAND, hide = true)]
    Guard(GuardArgs),
}

/// What every stage can be told; each flag has an environment variable `REPOFORMER_…` and a key of the same name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Data set")]
pub(crate) struct SettingFlags {
    /// Folder with one folder a repository
    #[arg(long, value_name = "DIR")]
    pub(crate) repos_dir: Option<String>,
    /// Only this repository (repeatable, or separated by commas) [default: those that the tasks name, or all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) repo: Vec<String>,
    /// Task file: JSONL, plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Vec<String>,
    /// Name of the benchmark's cache folders [default: the task file's stem]
    #[arg(long, value_name = "NAME")]
    pub(crate) benchmark: Option<String>,
    /// Where artifacts are kept [default: data/cache]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<String>,
    /// Where queries come from: none, rg1, gt, rg-rg; given: no query, but the context that the tasks carry (repeatable,
    /// or separated by commas) [default: those that the stage can serve]
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    pub(crate) mode: Vec<String>,
    /// A bundled profile, or configs/NAME.toml here
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// A file of settings (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Threads [default: all cores]; output never depends on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<String>,
    /// Print the settings in force and where each comes from, and stop
    #[arg(long)]
    pub(crate) show_settings: bool,
    /// Lines of a window [default: 20]
    #[arg(long, value_name = "N", help_heading = "Stages")]
    pub(crate) window_size: Option<String>,
    /// A new window starts every window-size / slice-size lines [default: 2]
    #[arg(long, value_name = "N", help_heading = "Stages")]
    pub(crate) slice_size: Option<String>,
    /// Lines of a window before the one it is cut around: half a window, or one step [default: half]
    #[arg(long, value_name = "half|step", help_heading = "Stages")]
    pub(crate) center: Option<String>,
    /// Tokenizer of one-grams and budgets: p50k_base; where chunks are searched also words, or a model's tokenizer.json
    /// [default: p50k_base]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Stages")]
    pub(crate) tokenizer: Option<String>,
    /// What a vector is: one-gram, the set of a window's tokens; of chunks: words, dense [default: one-gram; words]
    #[arg(long, value_name = "NAME", help_heading = "Stages")]
    pub(crate) vectorizer: Option<String>,
    /// How windows are ranked: jaccard; and chunks: jaccard, bm25, bm25-by-line[-reciprocal|-exponential], tf-idf,
    /// weighted-ngram, dense, or several fused: rrf:jaccard,bm25 [default: jaccard]
    #[arg(long, value_name = "NAME", help_heading = "Stages")]
    pub(crate) ranker: Option<String>,
    /// Windows or chunks kept a query [default: 20]
    #[arg(long, value_name = "N", help_heading = "Stages")]
    pub(crate) top_k: Option<String>,
    /// Blocks or fragments in a prompt, at most [default: 10]
    #[arg(long, value_name = "N", help_heading = "Stages")]
    pub(crate) max_blocks: Option<String>,
    /// Tokens of a prompt's retrieved part stay below this; of a whole prompt, at most, where chunks are searched
    /// [default: 2000]
    #[arg(long, value_name = "N", help_heading = "Stages")]
    pub(crate) max_prompt_tokens: Option<String>,
    #[command(flatten)]
    pub(crate) chunks: ChunkFlags,
    /// How a hole is kept out of its own prompt: strict, or as the reference program does [default: strict]
    #[arg(long, value_name = "strict|reference", help_heading = "Stages")]
    pub(crate) hole_guard: Option<String>,
    /// The model that completes: in-context, the embedded one, or with --endpoint what the server calls it [default:
    /// in-context]
    #[arg(long, value_name = "NAME", help_heading = "Stages")]
    pub(crate) model: Option<String>,
    /// Tokens of a completion, at most [default: 500]
    #[arg(long, value_name = "N", help_heading = "Stages")]
    pub(crate) max_tokens: Option<String>,
}

/// What the stages can be told where chunks are searched, in Repoformer's manner.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Chunks")]
pub(crate) struct ChunkFlags {
    /// What is searched: windows, as RepoCoder, or chunks, as Repoformer and CrossCodeEval [default: windows]
    #[arg(long, value_name = "windows|chunks")]
    pub(crate) unit: Option<String>,
    /// What the repositories are written in: python, java, csharp, typescript, go [default: what the tasks' files are]
    #[arg(long, value_name = "NAME")]
    pub(crate) language: Option<String>,
    /// Which files count: those of RepoCoder (glob: no hidden ones, links followed) or of Repoformer (rglob: hidden ones
    /// too, no links to folders) [default: glob]
    #[arg(long, value_name = "glob|rglob")]
    pub(crate) walk: Option<String>,
    /// Non-blank lines of a chunk [default: 20]
    #[arg(long, value_name = "N")]
    pub(crate) chunk_size: Option<String>,
    /// Lines between the starts of two chunks [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) chunk_stride: Option<String>,
    /// What is searched for: last-n-lines, first-n-lines, left-right, surrounding-without-target (mode rg1),
    /// ground-truth, surrounding (gt), prediction, prediction-left-right (rg-rg) [default: last-n-lines]
    #[arg(long, value_name = "NAME")]
    pub(crate) query: Option<String>,
    /// Lines of a query [default: 20]
    #[arg(long, value_name = "N")]
    pub(crate) query_lines: Option<String>,
    /// What is shown for a chunk: none (itself), next, previous, extend, enclosing (its function or class), auto (what
    /// the query asks for) [default: auto]
    #[arg(long, value_name = "NAME")]
    pub(crate) align: Option<String>,
    /// Order of equal scores: the nearest file first, or as the reference program [default: nearest]
    #[arg(long, value_name = "nearest|reference")]
    pub(crate) ties: Option<String>,
    /// Files that are ranked, the nearest first [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) max_files: Option<String>,
    /// Chunks that are ranked, those of the nearest files first [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) max_chunks: Option<String>,
    /// How a fragment's path begins: in its repository, or with the repository's folder [default: repository]
    #[arg(long, value_name = "repository|full")]
    pub(crate) fragment_paths: Option<String>,
    /// Layout of prompts: plain, codegen, starcoder, starcoder-released, repoformer, repoformer-released, starcoder2,
    /// codellama, deepseek-coder, qwen2.5-coder, codestral, a template file; or attach: the tasks with their cross-file context
    /// [default: plain]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) prompt_style: Option<String>,
    /// Whether prompts hold the right context [default: yes]
    #[arg(long, value_name = "yes|no")]
    pub(crate) right_context: Option<String>,
    /// Tokens of a prompt's left context, at most [default: what remains]
    #[arg(long, value_name = "N")]
    pub(crate) max_left_tokens: Option<String>,
    /// Tokens of a prompt's right context, at most [default: 512]
    #[arg(long, value_name = "N")]
    pub(crate) max_right_tokens: Option<String>,
    /// Tokens of a prompt's cross-file context, at most [default: 512]
    #[arg(long, value_name = "N")]
    pub(crate) max_cross_file_tokens: Option<String>,
    /// An OpenAI-compatible server that completes prompts (`complete`, with --model) or embeds texts (its key, if any, in
    /// REPOFORMER_API_KEY)
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// The model that it embeds them with
    #[arg(long, value_name = "NAME")]
    pub(crate) embedding_model: Option<String>,
    /// Texts a request [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) embedding_batch: Option<String>,
    /// Requests at a time [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) embedding_concurrency: Option<String>,
    /// Seconds that one request may take [default: 600]
    #[arg(long, value_name = "S")]
    pub(crate) embedding_timeout: Option<String>,
    /// Vectors computed elsewhere: JSONL or NPY, for the texts that `vectorize --write-texts` writes
    #[arg(long, value_name = "FILE")]
    pub(crate) vectors: Option<String>,
    /// The texts that the rows of an NPY file, or the ids of a JSONL file, belong to
    #[arg(long, value_name = "FILE")]
    pub(crate) vector_texts: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Also write what was found in the one mode asked for in a format of information retrieval (chunks alone)
    #[arg(long, value_name = "FORMAT", requires = "output")]
    pub(crate) export: Option<ExportFormat>,
    /// Where that goes: a file (`-`: standard output) for trec, a folder for beir
    #[arg(short, long, value_name = "PATH", requires = "export")]
    pub(crate) output: Option<PathBuf>,
}

/// How rankings are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The lines of a TREC run
    Trec,
    /// A BEIR collection; its judgements are what the ground truth finds (search with --mode gt first)
    Beir,
}

#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions for mode rg-rg [default: the model's for mode rg1, in the cache]
    #[arg(long, value_name = "FILE")]
    pub(crate) predictions: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VectorizeArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Instead write the texts that dense vectors are needed of, for a model that runs elsewhere: `{"_id", "digest",
    /// "text"}` a line
    #[arg(long, value_name = "FILE")]
    pub(crate) write_texts: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Also write the prompts of the one mode asked for here (`-`: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Prompts to complete [default: those of the data set in the cache, mode by mode]
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// Where predictions go (`-`: standard output) [default: the cache; standard output with --prompts]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Lines of a completion by the embedded model, at most [default: as many as the task's target has]
    #[arg(long, value_name = "N")]
    pub(crate) max_lines: Option<usize>,
    /// Seed of the first sample; each further one has the next
    #[arg(long, value_name = "N", help_heading = "With --endpoint")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) probability: ProbabilityArgs,
    /// Instead of asking a server, write the requests that have no answer yet for a batch endpoint (`-`: standard output)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Batches", conflicts_with_all = ["output", "concurrency", "request_timeout", "retry_failed"]
    )]
    pub(crate) write_batch: Option<PathBuf>,
    /// Instead of asking a server, take a batch endpoint's answers, in any order; its file of errors too (repeatable)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Batches", conflicts_with_all = ["write_batch", "concurrency", "request_timeout", "retry_failed"]
    )]
    pub(crate) read_batch: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RgRgArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Predictions to search with, from any model [default: the model's for mode rg1, in the cache]
    #[arg(long, value_name = "FILE")]
    pub(crate) predictions: Option<PathBuf>,
    /// Also write the prompts here (`-`: standard output), of several iterations those of the last
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also complete, search with what that gives, and so on, so many times; prints a table of the iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) iterations: Option<u32>,
    /// How the table of the iterations is written
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        requires = "iterations"
    )]
    pub(crate) format: ScoreFormat,
    /// Seed of the first sample; each further one has the next
    #[arg(long, value_name = "N", help_heading = "With --endpoint")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// How scores are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreFormat {
    /// An aligned table
    Text,
    /// The same with tabs
    Tsv,
    /// One object, or a list of them for several modes; values between 0 and 1
    Json,
    /// One object a line, values between 0 and 1
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// How the table is written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ScoreFormat,
    /// Also leave a report of each task file: BENCHMARK/index.html and its figures in this folder [default: report below
    /// the cache folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(crate) report: Option<Option<PathBuf>>,
    /// Resamples of the means' intervals
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = parse_resamples)]
    pub(crate) resamples: usize,
    /// Same seed, same intervals (and the same samples, where a server is asked for some)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Add a row that retrieves by a policy, with its threshold: learned@0.2, trial-retrieval@0.3 (repeatable, or separated
    /// by commas; names as in `policy sweep`)
    #[arg(long, value_name = "NAME[@T]", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// A trained policy (repeatable); without one learned policies score each repository by what the others teach
    #[arg(long, value_name = "FILE")]
    pub(crate) policy_model: Vec<String>,
    /// The model's probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of`
    /// (repeatable) [default: the server is asked, where the prompt style says which token it is]
    #[arg(long, value_name = "FILE")]
    pub(crate) probabilities: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// An artifact below the cache folder
    pub(crate) file: PathBuf,
    /// `text`: the header; `jsonl`: the records
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: InspectFormat,
    /// Give the windows' texts too
    #[arg(long)]
    pub(crate) context: bool,
}

/// What `inspect` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    Text,
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// What a hole is: line (a line of code), api (a call of what another file defines), function (a body of 3 to 30
    /// lines), chunk (a short run of lines)
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: String,
    /// Tasks a repository, at most
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) per_repo: usize,
    /// Same seed, same bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Tokens of the left context, at most
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) context_tokens: usize,
    /// Tokens of a sampled line, at least
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) min_tokens: usize,
    /// Where the tasks go (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// File to convert: JSONL, plain, gzip or zstd; what it is, its records tell (`-`: standard input)
    #[arg(required_unless_present = "repos_dir")]
    pub(crate) file: Option<PathBuf>,
    /// What to: repoeval, repoformer, crosscodeeval, crosscodelongeval (tasks); repocoder-predictions,
    /// crosscodeeval-predictions; batch-requests (from prompts or tasks); labels; repos (folders below -o, from packages
    /// or raw repositories), packages, raw (also from --repos-dir without a file)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: String,
    /// Where the records go (`-`: standard output; compressed where the name ends in .gz or .zst), or of repos the folder
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Folder with one folder a repository, to take from what records do not have
    #[arg(long, value_name = "DIR")]
    pub(crate) repos_dir: Option<PathBuf>,
    /// Of --repos-dir only this repository (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) repo: Vec<String>,
    /// Language of the files of --repos-dir that go into packages and raw records: python, java, csharp, typescript, go
    #[arg(long, value_name = "NAME", default_value = "python")]
    pub(crate) language: String,
    /// The tasks that predictions or batch responses belong to
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,
    /// Model of batch requests
    #[arg(long, value_name = "NAME", required_if_eq("to", "batch-requests"))]
    pub(crate) model: Option<String>,
    /// Tokens of a completion of batch requests, at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) max_tokens: usize,
    /// Temperature of batch requests
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub(crate) temperature: f64,
    /// Text that ends a completion of batch requests (repeatable)
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Files: JSONL, plain, gzip or zstd; what each is, its records tell (`-`: standard input)
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Also look at tasks beside their files, in this folder with one folder a repository
    #[arg(long, value_name = "DIR")]
    pub(crate) repos_dir: Option<PathBuf>,
    /// Take notes (what is legal but worth knowing: repeated ids, `lineno`, `owner--name`, empty contexts, unknown fields)
    /// for errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// How the summary is written: `text`, a line a file (findings go to stderr); `json`, an object a file, findings in it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ReportFormat,
}

/// How `validate` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}
