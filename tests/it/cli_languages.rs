//! Syntax and tasks of real repositories of each language, which `REPOFORMER_CORPORA` names.

use std::path::PathBuf;
use std::time::Instant;

use repoformer_core::repository::corpus::Repository;
use repoformer_core::task::Task;
use repoformer_core::task::sample::{Kind, Sampling, sample};
use repoformer_text::language::syntax::Syntax;
use repoformer_text::language::{Grammar, Language};

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
        "if", "for", "foreach", "while", "switch", "catch", "lock", "using", "else", "do",
        "return", "new", "}", "fixed", "synchronized", "try", ".", "//", "*", "(",
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
        let syntax = Syntax::parse(lines.text(), Grammar::for_path(language, &file.path)).unwrap();
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
        let tasks = sample(&repository, &sampling, &|text| text.split_whitespace().count()).tasks;
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
