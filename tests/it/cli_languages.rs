//! `sample` on repositories of each language, through the binary; and on real ones that `REPOFORMER_CORPORA` names.

use std::path::PathBuf;
use std::time::Instant;

use crate::support::{Place, parse_jsonl};
use repoformer::repository::corpus::Repository;
use repoformer::task::Task;
use repoformer::task::sample::{Kind, Sampling, sample};
use repoformer::text::language::syntax::Syntax;
use repoformer::text::language::{Grammar, Language};
use serde_json::Value;

/// The fixtures of all languages, in one folder of repositories.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/languages");

fn drawn(place: &Place, language: &str, kind: &str) -> Vec<Value> {
    let args = [
        "sample",
        "--kind",
        kind,
        "--language",
        language,
        "--repos-dir",
        FIXTURES,
        "--repo",
        language,
    ];
    parse_jsonl(&place.run(&args).done().stdout)
}

/// `path:line` (from 0) of each task, sorted.
fn places(tasks: &[Value]) -> Vec<String> {
    let place = |task: &Value| {
        let path = task["metadata"]["fpath_tuple"].as_array().unwrap().iter();
        let path: Vec<&str> = path.map(|part| part.as_str().unwrap()).collect();
        format!("{}:{}", path[1..].join("/"), task["metadata"]["line_no"])
    };
    let mut places: Vec<String> = tasks.iter().map(place).collect();
    places.sort();
    places
}

/// Expectations by hand from the fixtures: where bodies begin. Of nested ones, one is drawn.
#[test]
fn bodies_of_each_language_are_drawn() {
    let place = Place::empty();
    let csharp = drawn(&place, "csharp", "function");
    assert_eq!(
        places(&csharp),
        [
            "Shop/Basket.cs:8",
            "Shop/Cart.Trace.cs:6",
            "Shop/Cart.cs:33",
            "Shop/Money.cs:12",
            "Shop/Money.cs:21",
            "Shop/Money.cs:32"
        ]
    );
    let operator = csharp.iter().find(|task| task["metadata"]["line_no"] == 21).unwrap();
    let truth = operator["metadata"]["ground_truth"].as_str().unwrap();
    assert!(truth.starts_with("            #region Check\n"), "{truth}");
    assert!(
        truth.ends_with("return new Money(one.Amount + other.Amount, one.Currency);"),
        "{truth}"
    );
    let prompt = operator["prompt"].as_str().unwrap();
    assert!(prompt.ends_with("operator +(Money one, Money other)\n        {\n"), "{prompt}");
    assert_eq!(drawn(&place, "python", "function").len(), 2);
    assert_eq!(drawn(&place, "typescript", "function").len(), 8);
    assert_eq!(drawn(&place, "go", "function").len(), 6);
    // Those of the broken file whose syntax is whole are among them.
    let java = places(&drawn(&place, "java", "function"));
    let whole = java.iter().filter(|place| !place.contains("Broken"));
    assert_eq!(whole.count(), 7);
}

#[test]
fn lines_chunks_and_calls_of_each_language_are_drawn_and_depend_on_the_seed_alone() {
    let place = Place::empty();
    for language in Language::ALL.map(Language::name) {
        let comment = language.parse::<Language>().unwrap().comment();
        for kind in ["line", "chunk", "api"] {
            let args = [
                "sample",
                "--kind",
                kind,
                "--language",
                language,
                "--repos-dir",
                FIXTURES,
                "--repo",
                language,
            ];
            let with =
                |threads| place.run(&[&args[..], &["--threads", threads]].concat()).done().stdout;
            let tasks = with("1");
            assert_eq!(tasks, with("4"));
            let endings = Language::extensions(language.parse().unwrap());
            for task in parse_jsonl(&tasks) {
                let path = task["metadata"]["fpath_tuple"].as_array().unwrap();
                let name = path.last().unwrap().as_str().unwrap();
                assert!(endings.iter().any(|end| name.ends_with(end)), "{name}");
                let truth = task["metadata"]["ground_truth"].as_str().unwrap().trim();
                let is_comment = [comment, "/*", "* "].iter().any(|sign| truth.starts_with(sign));
                assert!(!is_comment || kind == "chunk", "{language} {kind}: {truth}");
            }
        }
    }
    let calls = places(&drawn(&place, "typescript", "api"));
    assert!(calls.contains(&"src/view.tsx:8".to_owned()), "{calls:?}");
    let calls = places(&drawn(&place, "go", "api"));
    assert!(calls.contains(&"cart.go:34".to_owned()), "{calls:?}");
}

#[test]
fn a_language_without_files_or_support_is_named() {
    let place = Place::empty();
    let sample = ["sample", "--kind", "line", "--repos-dir", FIXTURES];
    let run = |more: &[&str]| place.run(&[&sample[..], more].concat()).failed();
    run(&["--language", "rust"]).says(&[
        "unknown language 'rust' (from command line); known: python, java, csharp, typescript, go",
    ]);
    run(&["--language", "java", "--repo", "python"])
        .says(&["no task could be drawn from the Java files of 1 repositories"]);
    // Without the flag it is Python's.
    let with = |more: &[&str]| {
        place.run(&[&sample[..], &["--repo", "python"], more].concat()).done().stdout
    };
    assert_eq!(with(&[]), with(&["--language", "python"]));
}

/// The repository below `REPOFORMER_CORPORA`, and the folder.
fn corpus(name: &str, language: Language) -> (PathBuf, Repository) {
    let folder = std::env::var_os("REPOFORMER_CORPORA")
        .expect("REPOFORMER_CORPORA names a folder of repositories");
    let folder = PathBuf::from(folder);
    let repository = Repository::read(&folder, name, language).unwrap().repository;
    (folder, repository)
}

/// The file, its lines joined by newlines, as the prompt, the target and what stands behind them give it back.
fn assert_cut_from_its_file(repository: &Repository, task: &Task) {
    let lines = repository.file(&task.path).unwrap().lines();
    let end = task.line_no + task.ground_truth.split('\n').count();
    let before: String =
        (0..task.context_start).map(|line| format!("{}\n", lines.line(line))).collect();
    let behind: String =
        (end..lines.count()).map(|line| format!("\n{}", lines.line(line))).collect();
    let whole = format!("{before}{}{}{behind}", task.prompt, task.ground_truth);
    assert!(whole == lines.text(), "{}", task.id);
}

/// Lines that look like the beginning of a method with a body on lines of its own, without any grammar: an independent
/// count of the same order as the parsed one.
fn looks_like_a_function(language: Language, line: &str, next: &str) -> bool {
    let text = line.trim();
    let words = [
        "if",
        "for",
        "foreach",
        "while",
        "switch",
        "catch",
        "lock",
        "using",
        "else",
        "do",
        "return",
        "new",
        "}",
        "fixed",
        "synchronized",
        "try",
        ".",
        "//",
        "*",
        "(",
    ];
    let is_statement = words.iter().any(|word| text.starts_with(word));
    let opens = match language {
        Language::CSharp => text.ends_with(')') && next.trim() == "{",
        _ => text.ends_with('{') && text.contains('('),
    };
    let has_sign = ["=>", "->", " = ", " => "].iter().any(|sign| text.contains(sign));
    opens && !is_statement && !(has_sign && language != Language::TypeScript)
}

/// Parses a real repository, samples each kind, and says how long it took.
fn real_repository(name: &str, language: Language) {
    let (_, repository) = corpus(name, language);
    let begin = Instant::now();
    let (mut functions, mut with_body, mut guessed, mut broken) = (0, 0, 0, 0);
    for file in &repository.files {
        let lines = file.lines();
        let syntax = Syntax::parse(lines.text(), Grammar::of(language, &file.path)).unwrap();
        broken += usize::from(syntax.has_error());
        let found = syntax.functions();
        functions += found.len();
        with_body += found
            .iter()
            .filter(|f| f.body.as_ref().is_some_and(|body| body.is_whole_lines))
            .count();
        let all: Vec<&str> = lines.iter().collect();
        guessed +=
            all.windows(2).filter(|pair| looks_like_a_function(language, pair[0], pair[1])).count();
    }
    let parsed = begin.elapsed();
    eprintln!(
        "{name}: {} files ({broken} with errors), {functions} functions ({with_body} in lines of their own, {guessed} guessed): {parsed:.2?}",
        repository.files.len()
    );
    assert!(broken * 20 <= repository.files.len(), "{broken} files with errors");
    let ratio = with_body as f64 / guessed as f64;
    assert!((0.7..1.4).contains(&ratio), "{with_body} parsed, {guessed} guessed");
    for kind in Kind::ALL {
        let begin = Instant::now();
        let sampling = Sampling {
            language,
            per_repository: 100_000,
            context_tokens: 500,
            ..Sampling::new(kind)
        };
        let tasks = sample(&repository, &sampling, &|text| text.split_whitespace().count());
        eprintln!("  {kind}: {} tasks: {:.2?}", tasks.len(), begin.elapsed());
        assert!(tasks.len() > 100, "{kind}: {}", tasks.len());
        tasks.iter().for_each(|task| assert_cut_from_its_file(&repository, task));
    }
}

#[test]
#[ignore = "needs REPOFORMER_CORPORA"]
fn real_java() {
    real_repository("apache_commons-lang", Language::Java);
}

#[test]
#[ignore = "needs REPOFORMER_CORPORA"]
fn real_csharp() {
    real_repository("keepass", Language::CSharp);
}

#[test]
#[ignore = "needs REPOFORMER_CORPORA"]
fn real_typescript() {
    real_repository("rxjs", Language::TypeScript);
}
