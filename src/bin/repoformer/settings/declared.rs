//! Every setting, in the order of `--show-settings`.

use std::fmt::Display;
use std::path::Path;

use repoformer::complete::server::{Api, Ending};
use repoformer::prompt::style::Style;
use repoformer::repository::corpus::Walk;
use repoformer::repository::window::Center;
use repoformer::retrieve::chunks::{Align, Order, QueryForm};
use repoformer::retrieve::query::Mode;
use repoformer::retrieve::rank::Ranker;
use repoformer::selective::policy::Policy;
use repoformer::text::language::Language;

use super::declaration::Group::{
    DataSet, Embeddings, Fragments, Model, Policies, Prompts, Search, Server, Statistics,
};
use super::declaration::{Number, Setting, Values};

/// The subcommands that complete prompts (`all`: `label all`).
const COMPLETING: &[&str] = &["complete", "rg-rg", "run", "all"];

const fn of_server(setting: Setting) -> Setting {
    setting.flag_of(COMPLETING)
}

pub(super) static SETTINGS: &[Setting] = &[
    DataSet.text("repos-dir", "DIR", "Folder that holds one folder per repository"),
    DataSet
        .text("repo", "NAME", "Use only this repository")
        .list(Number::Names)
        .otherwise("the repositories that the tasks name, or all"),
    DataSet
        .text("tasks", "FILE", "Task file: JSONL, plain, gzip or zstd")
        .list(Number::Paths),
    DataSet
        .text("benchmark", "NAME", "Name of the benchmark's cache folders")
        .otherwise("the task file's stem"),
    DataSet
        .text("cache-dir", "DIR", "Folder of the cached artifacts")
        .default("data/cache"),
    DataSet
        .one_of(
            "mode",
            || names(Mode::ALL),
            "Source of the queries: none, the left context (rg1), the ground truth (gt), a prediction (rg-rg); or, \
             without a query, the context that the tasks carry (given)",
        )
        .list(Number::Names)
        .otherwise("the modes that the stage can serve"),
    DataSet.text("profile", "NAME", "Bundled profile, or configs/NAME.toml in the working folder"),
    DataSet
        .text("config", "FILE", "File of settings (TOML)")
        .otherwise("repoformer.toml, where the working folder has one")
        .outside_files(),
    DataSet
        .whole("threads", 0, "Number of threads; the output does not depend on it")
        .values(Values::Whole(0..=1024))
        .default("0")
        .otherwise("all cores"),
    // How files are cut, and which of the fragments count.
    Fragments
        .one_of(
            "unit",
            || names(["windows", "chunks"]),
            "Kind of the fragments: overlapping windows, as in RepoCoder, or chunks, as in Repoformer and CrossCodeEval",
        )
        .default("windows"),
    Fragments
        .one_of("language", || names(Language::ALL), "Language of the repositories")
        .otherwise("the language of most of the tasks' files"),
    Fragments
        .one_of(
            "walk",
            || names([Walk::Glob, Walk::Rglob]),
            "Files that count: glob skips hidden files and follows links (RepoCoder); rglob takes hidden files and follows \
             no links to folders (Repoformer)",
        )
        .default("glob"),
    Fragments.whole("window-size", 1, "Lines of a window").default("20"),
    Fragments
        .whole("slice-size", 1, "A window starts every window-size / slice-size lines")
        .default("2"),
    Fragments
        .one_of(
            "center",
            || names([Center::Half, Center::Step]),
            "Lines of a window before the line that it is centred on: half a window, or one step",
        )
        .default("half"),
    Fragments
        .whole("chunk-size", 1, "Non-blank lines of a chunk")
        .default("20")
        .for_chunks(),
    Fragments
        .whole("chunk-stride", 1, "Lines between the starts of two chunks")
        .default("10")
        .for_chunks(),
    Fragments
        .one_of(
            "hole-guard",
            || names(["strict", "reference"]),
            "How the hole is kept out of its own prompt: strictly, or as in RepoCoder's program",
        )
        .default("strict"),
    Search
        .text(
            "tokenizer",
            "NAME|FILE",
            "Tokenizer of vectors and budgets: p50k_base; with chunks also words, or a model's tokenizer.json",
        )
        .default("p50k_base"),
    Search
        .one_of(
            "vectorizer",
            || names(["one-gram", "words", "dense"]),
            "Vectors: one-gram, the set of a window's tokens; of chunks words or dense, as the ranker needs",
        )
        .default("one-gram"),
    Search
        .text(
            "ranker",
            "NAME",
            "Ranker: {names}; or several fused, as in rrf:jaccard,bm25. Windows are ranked by jaccard",
        )
        .values(Values::OneOfOr(
            || names(Ranker::NAMES),
            |name| name.starts_with("rrf:"),
            "several fused, as in rrf:jaccard,bm25",
        ))
        .default("jaccard"),
    Search
        .whole("top-k", 1, "Fragments kept per query")
        .values(Values::Whole(1..=u32::MAX as u64))
        .default("20"),
    Search
        .one_of(
            "query",
            || names(QueryForm::ALL),
            "Text that is searched for, with chunks; each belongs to one mode",
        )
        .default("last-n-lines")
        .for_chunks(),
    Search
        .whole("query-lines", 1, "Lines of a query")
        .default("20")
        .for_chunks(),
    Search
        .one_of(
            "ties",
            || names([Order::Nearest, Order::Reference]),
            "Order of equal scores: the nearest file first, or as in the reference program",
        )
        .default("nearest")
        .for_chunks(),
    Search
        .whole("max-files", 1, "Maximum number of files ranked, nearest first")
        .otherwise("all")
        .for_chunks(),
    Search
        .whole("max-chunks", 1, "Maximum number of chunks ranked, those of the nearest files first")
        .otherwise("all")
        .for_chunks(),
    Embeddings
        .text("embedding-model", "NAME", "Model that the server at --endpoint embeds texts with")
        .for_chunks(),
    Embeddings
        .whole("embedding-batch", 1, "Texts per request")
        .default("64")
        .for_chunks(),
    Embeddings
        .whole("embedding-concurrency", 1, "Simultaneous requests")
        .values(Values::Whole(1..=256))
        .default("2")
        .for_chunks(),
    Embeddings
        .whole("embedding-timeout", 1, "Time limit of a request, in seconds")
        .values(Values::Whole(1..=86_400))
        .default("600")
        .for_chunks(),
    Embeddings
        .text(
            "vectors",
            "FILE",
            "Vectors computed elsewhere (JSONL or NPY), of the texts that `vectorize --write-texts` writes",
        )
        .for_chunks(),
    Embeddings
        .text(
            "vector-texts",
            "FILE",
            "Texts that the rows of an NPY file, or the ids of a JSONL file, belong to",
        )
        .for_chunks(),
    Prompts
        .whole("max-blocks", 1, "Maximum number of fragments in a prompt")
        .default("10"),
    Prompts
        .whole(
            "max-prompt-tokens",
            0,
            "With windows, tokens that the retrieved part of a prompt stays below; with chunks, maximum tokens of a prompt",
        )
        .default("2000"),
    Prompts
        .one_of(
            "align",
            || names(Align::ALL),
            "Text shown for a chunk: the chunk (none), the next or the previous one, the lines one stride further down (extend), \
             the function or class around it (enclosing), or what suits the query (auto)",
        )
        .default("auto")
        .for_chunks(),
    Prompts
        .one_of(
            "fragment-paths",
            || names(["repository", "full"]),
            "Start of a fragment's path: inside its repository, or with the repository's folder",
        )
        .default("repository")
        .for_chunks(),
    Prompts
        .text(
            "prompt-style",
            "NAME|FILE",
            "Layout of prompts: {names}, or a template file; attach writes the tasks with their cross-file context",
        )
        .values(Values::OneOfOr(
            || names(Style::names().chain(["attach"])),
            |name| Path::new(name).exists(),
            "a template file",
        ))
        .default("plain")
        .for_chunks(),
    Prompts
        .one_of(
            "right-context",
            || names(["yes", "no"]),
            "Whether prompts hold the right context",
        )
        .default("yes")
        .for_chunks(),
    Prompts
        .whole("max-left-tokens", 0, "Maximum tokens of the left context in a prompt")
        .otherwise("what remains")
        .for_chunks(),
    Prompts
        .whole("max-right-tokens", 0, "Maximum tokens of the right context in a prompt")
        .default("512")
        .for_chunks(),
    Prompts
        .whole(
            "max-cross-file-tokens",
            0,
            "Maximum tokens of the cross-file context in a prompt",
        )
        .default("512")
        .for_chunks(),
    Model
        .text(
            "model",
            "NAME",
            "Model that completes: in-context, the embedded one, or with --endpoint the server's name of it",
        )
        .default("in-context"),
    Model.text(
        "endpoint",
        "URL",
        "OpenAI-compatible server that completes prompts (with --model) or embeds texts (with --embedding-model); \
         REPOFORMER_API_KEY holds its key",
    ),
    Model
        .whole("max-tokens", 1, "Maximum tokens of a completion")
        .default("500"),
    Model
        .whole("max-lines", 0, "Maximum lines of a completion by the embedded model")
        .otherwise("the number of the target's lines")
        .flag_of(&["complete"]),
    of_server(Server.one_of(
        "api",
        || names([Api::Completions, Api::Chat]),
        "API of the server: /v1/completions or /v1/chat/completions",
    ))
    .default("completions"),
    of_server(Server.whole("concurrency", 1, "Simultaneous requests")).default("4"),
    of_server(Server.whole("samples", 1, "Completions per prompt")).default("1"),
    of_server(Server.text("temperature", "T", "Temperature; 0 takes the likeliest token at each step"))
        .values(Values::Number(
            |number| (0.0..=100.0).contains(&number),
            "a number from 0 to 100",
        ))
        .default("0"),
    of_server(Server.text("top-p", "P", "Share of the probability that tokens are drawn from"))
        .values(Values::Number(
            |number| number > 0.0 && number <= 1.0,
            "a number above 0 and at most 1",
        ))
        .otherwise("the server's"),
    of_server(Server.text(
        "stop",
        "TEXT",
        "Text that ends a completion, in addition to those of the prompt style",
    ))
    .list(Number::Texts),
    of_server(Server.one_of(
        "prompt-end",
        || names([Ending::BeforeWhitespace, Ending::AsIs]),
        "White space at the end of a prompt: before-whitespace keeps it back, and drops it from the completion",
    ))
    .default("before-whitespace"),
    of_server(Server.text("instruction", "TEXT", "System message for a chat model"))
        .otherwise("write what comes next, and nothing else"),
    of_server(Server.text("request-timeout", "S", "Time limit of a request, in seconds"))
        .values(Values::Number(
            |seconds| seconds > 0.0 && seconds < 1e9,
            "a number above 0",
        ))
        .default("600"),
    of_server(Server.text("retry-failed", "", "Repeat the requests that failed")).values(Values::Switch),
    of_server(Server.text("journal", "FILE", "File that keeps the answers as they arrive"))
        .otherwise("journal/MODEL.jsonl in the cache"),
    Policies
        .text(
            "policy",
            "NAME[@T]",
            "Add a row that retrieves by a policy above a threshold, as in learned@0.2. Policies: {names}",
        )
        .values(Values::OneOfOr(
            || names(Policy::ALL),
            |text| {
                let name = text.split_once('@').map(|(name, _)| name);
                name.is_some_and(|name| name.parse::<Policy>().is_ok())
            },
            "one with a threshold, as in learned@0.2",
        ))
        .list(Number::Names)
        .flag_of(&["run"]),
    Policies
        .text("policy-model", "FILE", "Trained policy")
        .list(Number::Paths)
        .otherwise("learned policies score each repository by what the others teach")
        .flag_of(&["run"]),
    Statistics
        .text(
            "seed",
            "N",
            "Seed of samples, intervals and tests: the same seed, the same bytes",
        )
        .values(Values::Whole(0..=u64::MAX))
        .otherwise("0")
        .flag_of(&[
            "complete", "rg-rg", "eval", "compare", "report", "run", "sample", "all",
        ]),
    // Fewer leave nothing outside of 95 %, and a million already take minutes.
    Statistics
        .whole("resamples", 100, "Number of resamples of an interval")
        .values(Values::Whole(100..=1_000_000))
        .default("10000")
        .flag_of(&["eval", "compare", "report", "run"]),
];

fn names<T: Display>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

/// The setting of a key.
pub(super) fn declared(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}
