//! Tests of every library error as users of the command line see it.

use std::io;
use std::path::Path;

use repoformer_store::error::{Error, LabelInput, RequestPart};
use repoformer_text::message;
use repoformer_text::message::{StageRun, UserChoice};
use repoformer_text::tokenize::model::{TokenizerError, TokenizerFault};

use crate::output::error_and_hint;

/// Lists errors of each variant, with their sentences and hints; an empty hint stands for none. A variant that is left out
/// is an error of the compiler.
macro_rules! shown {
    ($($variant:ident { $($error:expr => $sentence:literal, $hint:literal;)+ })+) => {
        [$($((stringify!($variant), $error, $sentence, $hint),)+)+]
            .map(|(variant, error, sentence, hint)| {
                let name = match &error {
                    $(Error::$variant { .. } => stringify!($variant),)+
                };
                assert_eq!(name, variant, "{error}");
                (error, sentence, hint)
            })
    };
}

fn data() -> &'static Path {
    Path::new("data.jsonl")
}

fn io_error(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "the system's words")
}

fn read(kind: io::ErrorKind) -> Error {
    Error::reading(data(), "open this file", io_error(kind))
}

fn write(kind: io::ErrorKind) -> Error {
    Error::writing(data(), "write this file", io_error(kind))
}

/// Checks the sentence and the hint printed for an error.
fn check(error: impl Into<anyhow::Error>, sentence: &str, hint: &str) {
    let error = error.into();
    let (text, way) = error_and_hint(&error);
    assert_eq!((text.as_str(), way.as_deref().unwrap_or_default()), (sentence, hint));
    // Without the hint, the words differ only in the flags.
    let words = format!("{error:#}");
    let first = |text: &str| text.split(['(', '`']).next().unwrap_or_default().trim().to_owned();
    assert!(words.starts_with(&first(sentence)), "{words}");
}

#[test]
fn every_error_is_shown_with_the_flags_of_its_choices() {
    use io::ErrorKind as Kind;
    let shown = shown! {
        Io {
            read(Kind::NotFound) =>
                "data.jsonl: cannot open this file: the system's words",
                "check the path; relative paths start at the current folder";
            read(Kind::PermissionDenied) =>
                "data.jsonl: cannot open this file: the system's words",
                "make the file readable, or choose another file";
            read(Kind::IsADirectory) =>
                "data.jsonl: cannot open this file: the system's words",
                "name a file in it";
            read(Kind::NotADirectory) =>
                "data.jsonl: cannot open this file: the system's words",
                "check the path: part of it is a file, not a folder";
            read(Kind::TimedOut) => "data.jsonl: cannot open this file: the system's words", "";
            write(Kind::StorageFull) =>
                "data.jsonl: cannot write this file: the system's words",
                "free some space, or choose another cache folder (--cache-dir) or output path (-o); no partial file was kept";
            write(Kind::NotADirectory) =>
                "data.jsonl: cannot write this file: the system's words",
                "part of the path is a file, not a folder; choose another cache folder \
                 (--cache-dir) or output path (-o)";
            write(Kind::ReadOnlyFilesystem) =>
                "data.jsonl: cannot write this file: the system's words",
                "choose a writable cache folder (--cache-dir) or output path (-o)";
        }
        SourceFile {
            Error::SourceFile { path: "r/a.py".into(), reason: "not UTF-8".into() } =>
                "r/a.py: left out: not UTF-8",
                "repair or remove the file and run the command again; all other files are used";
        }
        Repository {
            Error::Repository {
                path: "repos/x".into(),
                reason: message!["put it there, or choose other ", UserChoice::Repositories],
            } => "repos/x: put it there, or choose other repositories (--repo)", "";
        }
        Form {
            Error::Form {
                path: "x.parquet".into(),
                reason: "a Parquet table, not JSON lines".into(),
                hint: message![UserChoice::WriteAsJsonLines, ", or read it with pandas"],
            } =>
                "x.parquet: a Parquet table, not JSON lines",
                "write it as JSON lines (`--format jsonl`; `repoformer inspect --format jsonl` prints its rows), or read it with pandas";
        }
        Record {
            Error::record(data(), 3, message!["use it as the ", UserChoice::TasksFile]) =>
                "data.jsonl:3: use it as the tasks file (--tasks)",
                "correct or remove the line; the other lines are used";
        }
        Further {
            Error::Further { path: data().into(), count: 7 } =>
                "data.jsonl: 7 more problems, which are not listed", "";
        }
        OtherTasks {
            Error::OtherTasks {
                path: data().into(),
                line: 2,
                task_id: "r/0".into(),
                tasks: "tasks.jsonl".into(),
                difference: "its target differs",
                count: 3,
            } =>
                "data.jsonl:2: belongs to a task other than \"r/0\" of tasks.jsonl: its target \
                 differs (and 2 more records)",
                "give the tasks file (--tasks) that this file was made for; if these are the right \
                 tasks, remove targets and prompts from the file's records";
        }
        NoPrediction {
            Error::NoPrediction { path: data().into(), tasks: "tasks.jsonl".into() } =>
                "data.jsonl: contains no predictions for the tasks of tasks.jsonl, so there is \
                 nothing to score",
                "give the tasks file (--tasks) that the predictions were made for";
        }
        Task {
            Error::Task {
                path: data().into(),
                line: 4,
                task_id: "r/1".into(),
                reason: message!["a ", UserChoice::NewBatch, " holds what has no answer"],
            } => "data.jsonl:4: task r/1: a new batch (--write-batch) holds what has no answer", "";
        }
        Artifact {
            Error::artifact(data(), "stale", message!["make it with ", &StageRun::InMode("search", "rg1")]) =>
                "data.jsonl: stale", "make it with `repoformer search --mode rg1`";
            Error::from_damage(data(), "its header is not JSON") =>
                "data.jsonl: damaged: its header is not JSON",
                "run the command that writes it again to rebuild it";
        }
        Labelling {
            Error::labelling(data(), "has one sample", LabelInput::Samples) =>
                "data.jsonl: has one sample",
                "pass one completion of each task here, and the other samples, for the entropy, as \
                 a file of samples (--samples-from FILE)";
            Error::labelling(data(), "has none", LabelInput::Likelihoods) =>
                "data.jsonl: has none", "write likelihoods of targets (`complete --likelihood --mode MODE -o FILE`)";
            Error::labelling(data(), "has none", LabelInput::TestResults) =>
                "data.jsonl: has none", "run the tests of these predictions, for their unit-test results of each task (`eval --exec --per-task --format jsonl`)";
            Error::labelling(data(), "has none", LabelInput::TestedName) =>
                "data.jsonl: has none", "pass the name in the results (--base-exec NAME=FILE, --rag-exec NAME=FILE) that its records use";
            Error::labelling(data(), "is of model a", LabelInput::Model) =>
                "data.jsonl: is of model a",
                "a label compares completions of one model: complete both with the same model, or \
                 pass the name of the model (--model) if a file lacks it";
        }
        NoTime {
            Error::NoTime { path: data().into(), part: RequestPart::Retrieval } =>
                "data.jsonl: has no retrieval_ms",
                "pass the latencies of a mode that retrieves, or pass the time of a retrieval \
                 (--retrieval-ms) instead of this file";
            Error::NoTime { path: data().into(), part: RequestPart::Generation } =>
                "data.jsonl: has no generation_ms",
                "pass the latencies of a mode that retrieves, or add the time of a generation \
                 (--generation-ms)";
            Error::NoTime { path: data().into(), part: RequestPart::BaseGeneration } =>
                "data.jsonl: has no generation_ms",
                "pass the latencies of mode none, or add the time of a generation (--generation-ms)";
        }
        Endpoint {
            Error::Endpoint {
                url: "http://h/v1/completions".into(),
                reason: "the server answers 400: raise the prompt budget".into(),
                hint: message!["lower the ", UserChoice::PromptBudget, " or the ", UserChoice::NewTokens],
                status: Some(400),
            } =>
                "http://h/v1/completions: the server answers 400: raise the prompt budget",
                "lower the prompt budget (--max-prompt-tokens) or the number of new tokens (--max-tokens)";
        }
        UnknownToken {
            Error::UnknownToken { url: "http://h/tokenize".into(), reason: "no such token".into() } =>
                "http://h/tokenize: no such token",
                "give its token number (--token-id), which is in the model's tokenizer.json";
        }
        FailedAnswer {
            Error::FailedAnswer {
                url: "http://h/v1/completions".into(),
                reason: "the answer has no 'choices'".into(),
                hint: message!["the ", UserChoice::ChatApi, " needs messages"],
            } => "http://h/v1/completions: the answer has no 'choices'", "the chat API (--api chat) needs messages";
        }
        Vectors {
            Error::vectors(data(), ":3", "no text has the id", message!["see the ", UserChoice::FileOfTexts]) =>
                "data.jsonl:3: no text has the id",
                "see the current file of texts (`vectorize --write-texts`, --vector-texts)";
        }
        Tokenizer {
            Error::Tokenizer { path: "t.json".into(), reason: "it is not JSON".into() } =>
                "t.json: it is not JSON",
                "pass p50k_base, words, or the path of a tokenizer.json of a model, for example \
                 from the Hugging Face hub";
        }
        Style {
            Error::Style { path: "s.toml".into(), line: 2, reason: "unknown key".into(), hint: Some("'stop'".into()) } =>
                "s.toml:2: unknown key", "'stop'";
            Error::Style { path: "s.toml".into(), line: 2, reason: "unknown key".into(), hint: None } =>
                "s.toml:2: unknown key", "";
        }
        Room {
            Error::Room { reason: "left 8, right 8, but only 12".into() } =>
                "left 8, right 8, but only 12",
                "raise the prompt's token budget, or lower the budgets of the right and cross-file context";
        }
        Execution {
            Error::execution("/w: in use", message!["choose another ", UserChoice::WorkFolder]) =>
                "/w: in use", "choose another work folder (--work-dir)";
        }
        Parameter {
            Error::parameter("tasks", message!["this stage needs the ", UserChoice::TasksFile]) =>
                "tasks: this stage needs the tasks file (--tasks)", "";
        }
        Refused {
            Error::from_refusal("two shards of one name", message!["choose another ", UserChoice::OutputPath]) =>
                "two shards of one name", "choose another output path (-o)";
        }
        Unknown {
            Error::unknown("mode", "rg2", ["none", "rg1"]) =>
                "unknown mode 'rg2'; known: none, rg1", "did you mean 'rg1'?";
        }
        Comparison {
            Error::Comparison { reason: "a and b have no task in common".into(), hint: "score the same tasks".into() } =>
                "a and b have no task in common", "score the same tasks";
        }
    };
    for (error, sentence, hint) in shown {
        check(error, sentence, hint);
    }
}

#[test]
fn causes_and_hints_of_the_program_keep_their_flags() {
    let named = || message!["choose another ", UserChoice::CacheFolder];
    let inner = || Error::parameter("cache", named());
    check(
        anyhow::Error::from(inner()).context("while looking at /a/cache folder"),
        "while looking at /a/cache folder: cache: choose another cache folder (--cache-dir)",
        "",
    );
    check(
        crate::output::add_hint(inner(), named().then(" with --cache-dir")),
        "cache: choose another cache folder (--cache-dir)",
        "choose another cache folder (--cache-dir) with --cache-dir",
    );
    check(
        crate::output::fail::<()>(named(), "the work folder is yours").unwrap_err(),
        "choose another cache folder (--cache-dir)",
        "the work folder is yours",
    );
    check(
        TokenizerError { path: "t".into(), fault: TokenizerFault::Unusable("no JSON".into()) },
        "t: no JSON",
        "pass p50k_base, words, or the path of a tokenizer.json of a model, for example from the \
         Hugging Face hub",
    );
}

/// Returns the sources of the libraries as one text, without the definition of the choices.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| {
        let is_source = path.extension().is_some_and(|ending| ending == "rs");
        if path.is_dir() {
            sources(&path)
        } else if is_source && !path.ends_with("text/src/message.rs") {
            std::fs::read_to_string(&path).unwrap()
        } else {
            String::new()
        }
    };
    entries.map(text).collect()
}

/// A test next to `way` checks that the named flags and commands exist.
#[test]
fn every_choice_is_named_by_a_library() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let folders = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let named: String = folders.map(|folder| sources(&folder.join("src"))).collect();
    let is_unnamed = |choice: &UserChoice| {
        let name = format!("UserChoice::{choice:?}");
        let mut places = named.match_indices(&name).map(|(at, _)| &named[at + name.len()..]);
        !places.any(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let unnamed: Vec<UserChoice> = UserChoice::ALL.into_iter().filter(is_unnamed).collect();
    assert_eq!(unnamed, [], "no library names these");
}
