//! Every setting, in the order of `--show-settings`.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer_core::completion::{Api, Ending};
use repoformer_core::metrics::Metric;
use repoformer_core::policy::Policy;
use repoformer_core::policy::sweep::Clock;
use repoformer_core::postprocess::{Postprocess, Step};
use repoformer_core::prompt::style::Style;
use repoformer_core::repository::Shard;
use repoformer_core::repository::corpus::Walk;
use repoformer_core::repository::fragment::Center;
use repoformer_core::retrieve::rank::Ranker;
use repoformer_core::retrieve::{Align, HoleGuard, Mode, QueryForm, Ties};
use repoformer_models::endpoint::{DEFAULT_KEY_VARIABLE, POLICY_KEY_VARIABLE};
use repoformer_pipeline::CompletionBound;
use repoformer_store::files;
use repoformer_text::language::Language;

use super::declaration::AllowedValues::{Number, OneOf, OneOfOr, Switch, Text, Whole};
use super::declaration::Arity::{Names, Paths, Texts};
use super::declaration::Effect::{Always, IfInProfile, Layout};
use super::declaration::{FlagCompletion, Group, Setting, variable};
use super::value::{
    FragmentPaths, FragmentUnit, MetricName, One, OtherModel, PolicyName, SettingValue,
    SourcedValue, StyleName, TokenizerName, Vectorizer,
};
use crate::paper::names as paper;

/// Subcommands that complete prompts (`all` is `label all`).
const COMPLETING: &[&str] = &["complete", "rg-rg", "run", "all", "merge"];
/// Subcommands that ask a server once for each completion.
const ASKING: &[&str] = &["complete", "rg-rg", "run", "all", "merge", "serve", "lsp"];
/// Subcommands that serve editors, and therefore have no tasks.
const EDITING: &[&str] = &["serve", "lsp"];
/// Subcommands in which policies choose.
const CHOOSING: &[&str] = &["run", "serve", "lsp"];
/// Subcommands that can work on a shard of the repositories (`sample` includes `label sample`).
const SHARED: &[&str] =
    &["window", "vectorize", "search", "prompt", "rg-rg", "complete", "sample", "eval"];
/// Subcommands that draw random numbers.
const DRAWING: &[&str] =
    &["complete", "rg-rg", "eval", "compare", "report", "run", "sample", "all"];
/// Subcommands that score predictions.
const SCORING: &[&str] = &["eval", "compare", "report", "run"];
/// Subcommands that cut predictions: to score them, or to search with them.
const CUTTING: &[&str] = &["eval", "compare", "report", "run", "rg-rg", "window"];
/// Greatest number: larger than any file, and small enough that sums do not overflow.
const MOST: u64 = u32::MAX as u64 / 4;
const COUNT: super::declaration::AllowedValues = Whole(1..=MOST);
const LIMIT: super::declaration::AllowedValues = Whole(0..=MOST);

/// Paper, or its released program, whose settings a profile contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// RepoCoder.
    RepoCoder,
    /// Repoformer.
    Repoformer,
    /// Repoformer's released program.
    RepoformerProgram,
    /// CrossCodeEval.
    CrossCodeEval,
}

impl Paper {
    /// Returns true if prompts have the same layout for all models.
    pub fn has_one_layout(self) -> bool {
        self != Self::Repoformer
    }
}

/// Profile that is bundled with the program.
#[derive(Debug)]
pub struct BundledProfile {
    /// Name of the profile.
    pub name: &'static str,
    /// Text of its file.
    pub text: &'static str,
    /// Paper of the profile; `None` for the demonstration.
    pub paper: Option<Paper>,
}

/// Defines profiles from rows of name and paper.
macro_rules! profiles {
    ($($name:literal $paper:expr;)*) => {
        [$(BundledProfile {
            name: $name,
            text: include_str!(concat!("../../configs/", $name, ".toml")),
            paper: $paper,
        },)*]
    };
}

/// Profiles that are bundled with the program.
pub static BUNDLED: [BundledProfile; 5] = profiles! {
    "demo" None;
    "repocoder" Some(Paper::RepoCoder);
    "repoformer-paper" Some(Paper::Repoformer);
    "repoformer-release" Some(Paper::RepoformerProgram);
    "crosscodeeval" Some(Paper::CrossCodeEval);
};

/// Returns the bundled profile with this name.
pub(super) fn find_bundled(name: &str) -> Option<&'static BundledProfile> {
    BUNDLED.iter().find(|profile| profile.name == name)
}

/// Defines settings from rows: field, type, key, name of the value, values => help, then the fields that differ from
/// [`Setting::new`].
macro_rules! settings {
    ($($group:ident {
        $($field:ident: $type:ty, $key:literal $name:literal $values:expr => $help:literal $(, $part:ident: $value:expr)*;)*
    })*) => {
        /// Declaration of each setting.
        #[derive(Debug)]
        pub struct Declarations {
            $($(#[doc = $help] pub $field: Setting,)*)*
        }

        /// Declarations of all settings.
        pub static DECLARED: Declarations = Declarations {
            $($($field: Setting {
                $($part: $value,)*
                ..Setting::new(Group::$group, $key, $name, $values, $help)
            },)*)*
        };

        /// Every declaration, in the order of `--show-settings`.
        pub static SETTINGS: &[&Setting] = &[$($(&DECLARED.$field,)*)*];

        /// Value of each setting.
        #[derive(Debug, Clone)]
        pub struct SettingValues {
            $($(#[doc = $help] pub $field: SourcedValue<$type>,)*)*
        }

        impl SettingValues {
            /// Returns the defaults.
            pub fn usual() -> Result<Self> {
                Ok(Self { $($($field: SourcedValue::usual(&DECLARED.$field)?,)*)* })
            }

            /// Returns every setting, in the order of the declarations.
            pub fn entries(&self) -> Vec<&dyn SettingValue> {
                vec![$($(&self.$field,)*)*]
            }

            pub(crate) fn entries_mut(&mut self) -> Vec<&mut dyn SettingValue> {
                vec![$($(&mut self.$field,)*)*]
            }
        }
    };
}

settings! {
    DataSet {
        repos_dir: Option<PathBuf>, "repos-dir" "DIR" Text => "Folder that holds one folder per repository, or one repository";
        repo: Vec<String>, "repo" "NAME" Text => "Use only this repository",
            arity: Names, default_text: Some("the repositories that the tasks name, or all");
        tasks: Vec<PathBuf>, "tasks" "FILE" Text => "Task file: JSONL, plain, gzip or zstd", arity: Paths, not_for: EDITING;
        benchmark: Option<String>, "benchmark" "NAME" Text => "Name of the benchmark's cache folders",
            default_text: Some("the task file's stem"), not_for: EDITING;
        cache_dir: One<PathBuf>, "cache-dir" "DIR" Text => "Folder of the cached artifacts", default: Some("data/cache");
        mode: Vec<Mode>, "mode" "MODE" OneOf(|| names(Mode::ALL)) =>
            "Retrieval mode, by the source of its query: none (no retrieval), rg1 (the left context), gt (the ground truth), \
             rg-rg (a prediction), given (no query; uses the cross-file context in the task); r-g and r-g-r-g also name rg1 and rg-rg",
            other_names: (&Mode::ALIASES, Mode::canonical), arity: Names, default_text: Some("the modes that the command supports"), not_for: EDITING;
        profile: Option<String>, "profile" "NAME" OneOfOr(
            || BUNDLED.iter().map(|profile| profile.name.to_owned()).collect(),
            |_| true,
            "the NAME of configs/NAME.toml in the working folder",
        ) =>
            "Named set of settings: demo (the demonstration), repocoder (RepoCoder's program), repoformer-paper (Repoformer's paper), \
             repoformer-release (Repoformer's program), crosscodeeval (CrossCodeEval's program), or the NAME of configs/NAME.toml in \
             the working folder";
        config: Option<PathBuf>, "config" "FILE" Text => "Configuration file (TOML)",
            default_text: Some("repoformer.toml in the working folder, if it exists; none for serve and lsp"), in_files: false;
        shard: Option<Shard>, "shard" "I/N" Text =>
            "Process one shard of the repositories, for example 2/8; combine the results with `merge`",
            default_text: Some("all"), in_files: false, commands: SHARED;
        threads: One<usize>, "threads" "N" Whole(0..=1024) => "Number of threads; the output does not depend on it",
            default: Some("0"), default_text: Some("all cores");
    }
    Fragments {
        unit: One<FragmentUnit>, "unit" "UNIT" OneOf(|| names(FragmentUnit::ALL)) =>
            "Kind of fragments: windows (overlapping, as in RepoCoder) or chunks (as in Repoformer and CrossCodeEval)",
            default: Some("windows");
        language: Option<Language>, "language" "NAME" OneOf(|| names(Language::ALL)) => "Language of the repositories",
            default_text: Some("the language of most of the tasks' files"), effect: IfInProfile;
        walk: One<Walk>, "walk" "NAME" OneOf(|| names(Walk::ALL)) =>
            "Source files to read: glob (no hidden files; follows links within the repository), glob-anywhere (also follows links \
             out of the repository, as in RepoCoder), rglob (includes hidden files; does not follow links to folders, as in \
             Repoformer), git (as glob, without the files that git ignores; default of serve and lsp)",
            default: Some("glob"), effect: IfInProfile;
        window_size: Vec<usize>, "window-size" "N" COUNT => "Number of lines of a window", default: Some("20"), only_for: Some("windows"), arity: Names;
        slice_size: Vec<usize>, "slice-size" "N" COUNT => "A window starts every window-size / slice-size lines", default: Some("2"), only_for: Some("windows"), arity: Names, alias: Some("slice");
        center: One<Center>, "center" "NAME" OneOf(|| names([Center::Half, Center::Step])) =>
            "Number of lines of a window before its centre line: half (half the window) or step (one step)",
            default: Some("half"), only_for: Some("windows");
        chunk_size: One<usize>, "chunk-size" "N" COUNT => "Number of non-blank lines of a chunk", default: Some("20"), only_for: Some("chunks");
        chunk_stride: One<usize>, "chunk-stride" "N" COUNT => "Number of lines between the starts of consecutive chunks", default: Some("10"), only_for: Some("chunks");
        hole_guard: One<HoleGuard>, "hole-guard" "NAME" OneOf(|| names(HoleGuard::ALL)) =>
            "How to keep the hole out of its own prompt: strict (always) or reference (as RepoCoder's program does)",
            default: Some("strict"), only_for: Some("windows");
    }
    Search {
        tokenizer: One<TokenizerName>, "tokenizer" "NAME|FILE" Text =>
            "Tokenizer for one-gram vectors and token budgets: p50k_base, words, or a model's tokenizer.json; prompt style \
             repocoder always counts p50k_base tokens",
            default: Some("p50k_base"), effect: IfInProfile;
        vectorizer: One<Vectorizer>, "vectorizer" "NAME" OneOf(|| names(Vectorizer::ALL)) =>
            "Terms that lexical rankers compare: one-gram (tokens of --tokenizer), words (as NLTK 3.9 to 3.9.2 splits them), \
             words-nltk-3.8 (as NLTK 3.6 to 3.8.1 does); dense computes embedding vectors instead",
            default: Some("one-gram"), default_text: Some("one-gram; with chunks, words unless --tokenizer is given");
        ranker: Vec<Ranker>, "ranker" "NAME" OneOfOr(|| names(Ranker::NAMES), |name| name.parse::<Ranker>().is_ok(), "several fused, as in rrf:jaccard,bm25, or one that prefers related files, as in graph:bm25") =>
            "Ranker of the fragments: jaccard (shared terms), bm25 (BM25), bm25-by-line (sum of BM25 over the query's lines), \
             bm25-by-line-reciprocal and bm25-by-line-exponential (the same, with less weight for lines far from the hole), \
             tf-idf (cosine of TF-IDF vectors), codebleu (CodeBLEU), weighted-ngram (one part of CodeBLEU), dense (embedding \
             vectors), definitions (definitions of the names near the hole), several fused by rank, as in rrf:jaccard,bm25, or \
             graph:RANKER (prefers files that the current file depends on)",
            default: Some("jaccard"), arity: Texts;
        top_k: One<usize>, "top-k" "N" Whole(1..=u32::MAX as u64) => "Number of fragments kept per query", default: Some("20");
        query: One<QueryForm>, "query" "NAME" OneOf(|| names(QueryForm::ALL)) =>
            "Text to search for: window (RepoCoder's query: lines around the hole, up to it in mode rg1), or, in one mode only: \
             last-n-lines and left-right (the end of the left context; and the start of the right one), first-n-lines (the start of \
             the right context), ground-truth (left context and target), prediction and prediction-left-right (left context and \
             prediction; and right context), surrounding and surrounding-without-target (both contexts of a label's instance)",
            default: Some("window"), default_text: Some("window with windows, last-n-lines with chunks");
        query_lines: One<usize>, "query-lines" "N" COUNT => "Number of lines of a query", default: Some("20");
        ties: One<Ties>, "ties" "NAME" OneOf(|| names([Ties::Nearest, Ties::Reference])) =>
            "Order of fragments with equal scores: nearest (nearest file first) or reference (as in Repoformer's program)",
            default: Some("nearest"), only_for: Some("chunks");
        max_files: Option<usize>, "max-files" "N" COUNT => "Maximum number of files ranked, the nearest first",
            default_text: Some("all"), only_for: Some("chunks");
        max_chunks: Option<usize>, "max-chunks" "N" COUNT => "Maximum number of chunks ranked, from the nearest files first",
            default_text: Some("all"), only_for: Some("chunks");
    }
    Embeddings {
        embedding_model: Option<String>, "embedding-model" "NAME" Text => "Embedding model of the server at --endpoint", not_for: EDITING;
        embedding_batch: One<usize>, "embedding-batch" "N" COUNT => "Number of texts per embedding request", default: Some("64"), not_for: EDITING;
        embedding_concurrency: One<usize>, "embedding-concurrency" "N" Whole(1..=256) => "Number of simultaneous embedding requests", default: Some("2"), not_for: EDITING;
        embedding_timeout: One<u64>, "embedding-timeout" "S" Whole(1..=86_400) => "Time limit of an embedding request, in seconds",
            default: Some("600"), not_for: EDITING;
        vectors: Option<PathBuf>, "vectors" "FILE" Text =>
            "Vectors computed elsewhere (JSONL or NPY) for the texts that `vectorize --write-texts` writes", not_for: EDITING;
        vector_texts: Option<PathBuf>, "vector-texts" "FILE" Text => "File of the texts that --vectors embeds, by row (NPY) or id (JSONL)", not_for: EDITING;
    }
    Prompts {
        max_blocks: One<usize>, "max-blocks" "N" COUNT => "Maximum number of fragments in a prompt", default: Some("10");
        max_prompt_tokens: One<usize>, "max-prompt-tokens" "N" LIMIT =>
            "Maximum tokens of a prompt; prompt style repocoder counts only the retrieved part, and keeps it below this number",
            default: Some("2000");
        align: One<Align>, "align" "NAME" OneOf(|| names(Align::ALL)) =>
            "Text shown for a retrieved fragment: none (the fragment itself), next (the next fragment), previous (the previous \
             fragment), extend (the lines one stride further down), enclosing (the function or class around the fragment), \
             signature (the signature of a definition that --ranker definitions found), auto (depends on the query)",
            default: Some("auto");
        fragment_paths: One<FragmentPaths>, "fragment-paths" "NAME" OneOf(|| names(FragmentPaths::ALL)) =>
            "Path shown for a fragment: repository (within its repository) or full (with the repository's folder)",
            default: Some("repository");
        prompt_style: One<StyleName>, "prompt-style" "NAME|FILE" OneOfOr(
            || names(["repocoder"].into_iter().chain(Style::names()).chain(["attach"])),
            |name| Path::new(name).exists(),
            "a template file",
        ) =>
            "Prompt layout: repocoder and plain (left to right, with fragments as comments), codegen (right context first, for models \
             without fill-in-the-middle tokens), starcoder, starcoder2, codellama, deepseek-coder, qwen2.5-coder, codestral \
             (fill-in-the-middle of these models), repoformer (with its tokens eof and cc), starcoder-released, repoformer-released (as in \
             Repoformer's program), or a template file; attach writes tasks with their cross-file context instead of prompts",
            default: Some("repocoder"), default_text: Some("repocoder with windows, plain with chunks"), effect: Layout;
        right_context: Vec<bool>, "right-context" "yes|no" OneOf(|| names(["yes", "no"])) => "Whether prompts include the right context",
            default: Some("yes"), arity: Names;
        max_left_tokens: Option<usize>, "max-left-tokens" "N" LIMIT => "Maximum tokens of the left context in a prompt",
            default_text: Some("all that --max-prompt-tokens allows");
        max_right_tokens: Option<usize>, "max-right-tokens" "N" LIMIT => "Maximum tokens of the right context in a prompt",
            default: Some("512");
        max_cross_file_tokens: Option<usize>, "max-cross-file-tokens" "N" LIMIT => "Maximum tokens of the cross-file context in a prompt",
            default: Some("512");
    }
    Model {
        model: One<String>, "model" "NAME" Text =>
            "Model that completes prompts: in-context (the embedded model), or the name of a model on the server at --endpoint",
            default: Some("in-context");
        endpoint: Option<String>, "endpoint" "URL" Text =>
            "OpenAI-compatible server, which completes prompts with --model and embeds texts with --embedding-model; \
             REPOFORMER_API_KEY holds its key";
        max_tokens: One<usize>, "max-tokens" "N" COUNT => "Maximum tokens of a completion", default: Some("500"), effect: Always;
        max_lines: Option<usize>, "max-lines" "N" LIMIT => "Maximum lines of a completion by the embedded model",
            default_text: Some("as many as the target has"), commands: &["complete"];
    }
    Server {
        api: One<Api>, "api" "NAME" OneOf(|| names([Api::Completions, Api::Chat])) =>
            "API of the server: completions (/v1/completions) or chat (/v1/chat/completions; its answers are cut with --postprocess \
             chat,own by default)",
            default: Some("completions"), commands: COMPLETING;
        until: Option<CompletionBound>, "until" "NAME" OneOf(|| names(CompletionBound::ALL)) =>
            "End of a completion: lines (stops the server after as many non-blank lines as the target has) or tokens (at --max-tokens)",
            default_text: Some("lines; tokens for function bodies and chat models, and if scores use more than the target's lines"),
            commands: COMPLETING;
        concurrency: One<usize>, "concurrency" "N" COUNT => "Number of simultaneous requests", default: Some("4"), commands: COMPLETING;
        samples: One<usize>, "samples" "N" COUNT => "Number of completions per prompt", default: Some("1"), commands: COMPLETING, effect: Always;
        temperature: One<f64>, "temperature" "T" Number(|number| (0.0..=100.0).contains(&number), "a number from 0 to 100") =>
            "Sampling temperature; 0 always chooses the most likely token",
            default: Some("0"), commands: ASKING, effect: Always;
        top_p: Option<f64>, "top-p" "P" Number(|number| number > 0.0 && number <= 1.0, "a number above 0 and at most 1") =>
            "Nucleus sampling: draws among the most likely tokens that together have this probability",
            default_text: Some("the server's"), commands: ASKING, effect: Always;
        stop: Vec<String>, "stop" "TEXT" Text => "Text that ends a completion, in addition to those of the prompt style",
            arity: Texts, commands: ASKING, effect: Always;
        prompt_end: One<Ending>, "prompt-end" "NAME" OneOf(|| names([Ending::BeforeWhitespace, Ending::AsIs])) =>
            "White space at the end of a prompt: as-is (is sent) or before-whitespace (is not sent, and is removed from the start of \
             the completion)",
            default: Some("before-whitespace"), commands: ASKING;
        instruction: Option<String>, "instruction" "TEXT" Text => "System message for a chat model",
            default_text: Some("asks to continue the code and write nothing else"), commands: COMPLETING;
        request_timeout: One<f64>, "request-timeout" "S" Number(|seconds| seconds > 0.0 && seconds < 1e9, "a number above 0") =>
            "Time limit of a request, in seconds",
            default: Some("600"), commands: ASKING;
        retry_failed: One<bool>, "retry-failed" "" Switch => "Repeat the requests that failed", default: Some("no"), commands: COMPLETING;
        journal: Option<PathBuf>, "journal" "FILE" Text => "File to which answers are saved as they arrive",
            default_text: Some("journal/MODEL.jsonl in the cache"), commands: COMPLETING;
    }
    Scores {
        paper: Option<String>, "paper" "TABLE" OneOf(paper::names) =>
            "Print this table or figure of the Repoformer paper instead, with this run's numbers and the paper's; figures are \
             drawn in the report's folder",
            commands: &["run"];
        paper_model: Option<String>, "paper-model" "NAME" Text => "Model whose numbers in the paper are printed next to this run's",
            commands: &["run"], default_text: Some("the first of the table");
        paper_dataset: Option<String>, "paper-dataset" "NAME" OneOf(|| names(paper::DATASETS)) =>
            "Data set of the paper that the tasks belong to, or stand for", commands: &["run"],
            default_text: Some("the data set that the task file's path names; otherwise RepoEval, or CrossCodeLongEval for chunks");
        beside: Vec<OtherModel>, "beside" "MODEL[@STYLE]" Text =>
            "Another model to show in figures 3, 6, 7 and 10, from the predictions of an earlier run in this cache; add @STYLE if its \
             prompt style differs",
            commands: &["run"], arity: Texts;
        metrics: Vec<MetricName>, "metrics" "NAME" OneOf(|| names(Metric::ALL).into_iter().chain(["all".into()]).collect()) =>
            "Metric to score predictions with: repocoder (stripped lines, as many as the target has), repoformer (lines and code \
             tokens; for functions, the body), repoformer-difflib (the same, with difflib's ratio), crosscodeeval (one statement \
             without comments; also identifiers), repobench (the first line that is not a comment), chars (the whole text), or all; \
             policies and gains use the first",
            arity: Names, commands: SCORING, effect: Always,
            default_text: Some(
                "repocoder; for chunks and function bodies repoformer, which eval and compare follow with repocoder; a report shows both"
            );
        postprocess: Option<Postprocess>, "postprocess" "STEPS" OneOfOr(
            || names(["own", "none", "chat"].into_iter().chain(Step::ALL.map(Step::name))),
            |text| text.parse::<Postprocess>().is_ok(),
            "several steps separated by commas (own only as the last)",
        ) =>
            "How to cut predictions before scoring: own (as each metric's program does), none (not at all), chat (keeps only the code \
             of chat answers, in queries of mode rg-rg too; short for thoughts,fences,chatter,echo), or steps: keep first-line (the first \
             line that is not a comment), lines (as many as the target has), stripped-lines (the same, stripped), statement (the first \
             one), bracket (up to the first ; { or }), function-body; remove comments, comment-signs (from # or // on), thoughts (and \
             tokens of a chat template), fences (around code), chatter (sentences around code), echo (repeated left context); several \
             separated by commas, own only as the last",
            commands: CUTTING, effect: Always, default_text: Some("own; chat,own for answers of the chat API; none for --pairs");
    }
    Policies {
        policy: Vec<PolicyName>, "policy" "NAME[@T]" OneOfOr(
            || names(Policy::ALL),
            |text| text.split_once('@').is_some_and(|(name, _)| name.parse::<Policy>().is_ok()),
            "one with a threshold, as in learned@0.2, or with a percentage of the tasks, as in learned@30%",
        ) => "Policy that decides when to retrieve (`run` prints a row for it): never, always, random, oracle (baselines; oracle \
              knows the gain), trial-retrieval (score of the best fragment), trial-generation (probability of the least probable \
              token of a completion without retrieval), entropy (of several such completions), self (probability that a trained \
              model asks for retrieval), self@greedy (whether it asks), learned (probability that retrieval helps, from the left \
              and right contexts), learned-scored (the same, from the fragments too), self-scored (from the fragments and the \
              probability of self); add a threshold, as in learned@0.2, or a percentage of the tasks, as in learned@30%",
            arity: Names, commands: CHOOSING;
        policy_endpoint: Option<String>, "policy-endpoint" "URL" Text =>
            "Server of the model that policy self asks, if it differs from the completion server; \
             REPOFORMER_POLICY_API_KEY holds its key",
            commands: &["run"];
        policy_model_name: Option<String>, "policy-model-name" "NAME" Text => "Name of the model that policy self asks", commands: &["run"];
        policy_prompt_style: One<StyleName>, "policy-prompt-style" "NAME|FILE" OneOfOr(
            || names(Style::names()),
            |name| Path::new(name).exists(),
            "a template file",
        ) => "Prompt layout of the model that policy self asks: a name or file as for the prompt style",
            default: Some("repoformer"), commands: &["run"];
        clock: One<Clock>, "clock" "NAME" OneOf(|| names(Clock::ALL)) =>
            "How column latency ms adds up the parts of a request: parallel (they run at the same time, as in the paper) or serial \
             (one after another)",
            default: Some("parallel"), commands: &["run"], effect: IfInProfile;
        policy_model: Vec<PathBuf>, "policy-model" "FILE" Text => "Trained policy from `policy train`, or `bundled`, a learned-scored policy",
            arity: Paths,
            default_text: Some(
                "`run` trains one for each repository on the other repositories; `serve` and `lsp` use bundled for learned-scored"
            ),
            commands: CHOOSING;
    }
    Statistics {
        seed: Option<u64>, "seed" "N" Whole(0..=u64::MAX) => "Seed of samples, intervals and tests: the same seed gives the same output",
            default_text: Some("0, or the server's"), commands: DRAWING;
        // With fewer resamples, none is outside of 95 %; a million already takes minutes.
        resamples: One<usize>, "resamples" "N" Whole(100..=1_000_000) => "Number of bootstrap resamples of an interval",
            default: Some("10000"), commands: SCORING;
    }
}

fn names<T: Display>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

/// Returns the setting with this key.
pub(super) fn find_setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key).copied()
}

/// Returns the values for completing a setting's flag in a shell, except the values that clap lists.
pub fn completable(key: &str) -> Option<FlagCompletion> {
    let setting = find_setting(key)?;
    let names = match &setting.values {
        OneOf(_) => Vec::new(),
        _ if *setting == DECLARED.profile => profiles(),
        _ if *setting == DECLARED.tokenizer => vec!["p50k_base".into(), "words".into()],
        _ if *setting == DECLARED.model => vec!["in-context".into()],
        _ => setting.names(),
    };
    Some(FlagCompletion { names, is_list: matches!(setting.arity, Names | Paths) })
}

/// Settings of servers, and the variables that hold their keys.
pub static KEY_VARIABLES: [(&Setting, &str); 2] =
    [(&DECLARED.endpoint, DEFAULT_KEY_VARIABLE), (&DECLARED.policy_endpoint, POLICY_KEY_VARIABLE)];

/// Returns the environment variable of a setting; `None` if no setting has the key.
pub fn variable_of(key: &str) -> Option<String> {
    find_setting(key).map(|setting| variable(setting.key))
}

/// Returns the names of the bundled profiles, and of those in the working folder.
pub(super) fn profiles() -> Vec<String> {
    let files = files::read_dir("configs").into_iter().flatten().flatten();
    let name =
        |file: files::DirEntry| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned());
    let mut own: Vec<String> = files.filter_map(name).collect();
    own.retain(|name| find_bundled(name).is_none());
    own.sort_unstable();
    BUNDLED.iter().map(|profile| profile.name.to_owned()).chain(own).collect()
}
