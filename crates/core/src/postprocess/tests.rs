use std::path::Path;

use repoformer_text::language::Language;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::lines::is_space;
use serde_json::Value;

use super::context::LeftContext;
use super::*;

fn hole<'a>(left_context: &'a str, target: &'a str, language: Language) -> HoleContext<'a> {
    HoleContext { left_context, whole_left_context: None, target, language }
}

fn apply(names: &str, hole: HoleContext<'_>, prediction: &str) -> String {
    let recipe: Recipe = names.parse().unwrap();
    recipe.apply(hole, prediction).prediction.into_owned()
}

fn python(names: &str, left_context: &str, prediction: &str) -> String {
    apply(names, hole(left_context, "", Language::Python), prediction)
}

#[test]
fn names() {
    for name in Step::ALL.map(Step::name).into_iter().chain(["none"]) {
        assert_eq!(name.parse::<Recipe>().unwrap().to_string(), name);
    }
    assert!("lines,none".parse::<Recipe>().is_err());
}

#[test]
fn first_lines() {
    let of = |text, language| apply("first-line", hole("", "", language), text);
    assert_eq!(of("\n\n# no\n  x = 1\ny", Language::Python), "  x = 1");
    assert_eq!(of("'''\nno\n'''\nx", Language::Python), "x");
    // As in the program, a docstring that ends on its own line continues.
    assert_eq!(of("\"\"\"no\"\"\"\nx\n\"\"\"\ny", Language::Python), "y");
    assert_eq!(of("# a\n# b", Language::Python), "# a");
    assert_eq!(of("/* a\n */\n// b\nint x;", Language::Java), "int x;");
}

#[test]
fn first_brackets() {
    // As in the program, position 0 is treated as not found.
    for (text, wanted) in [("if (x) { y", "if (x) {"), ("x", "x"), ("; x; y", "; x; y")] {
        for step in ["bracket", "statement"] {
            assert_eq!(apply(step, hole("", "", Language::CSharp), text), wanted);
        }
    }
}

#[test]
fn first_statements() {
    let of = |left, text| python("statement", left, text);
    assert_eq!(of("x = f(", "a,\n  b)\ny = 1\n"), "a,\n  b)");
    assert_eq!(of("x = ", "1  \ny = 2\n"), "1");
    // The end of the last line counts, but may be missing: no text after it is cut.
    assert_eq!(of("x = ", "1"), "1");
    assert_eq!(of("x = (", "1\n2\n"), "1\n2\n");
    // A line end at the very beginning does not end a statement.
    assert_eq!(of("x = 1", "\ny = 2\nz"), "\ny = 2");
}

/// Returns true if a text, parsed from the start, has no syntax error.
pub(super) fn slow_parses(text: &str) -> bool {
    Syntax::parse(text, Language::Python).is_some_and(|syntax| prefix::is_valid(syntax.tree()))
}

/// Returns the first statement and the longest prefix, found by trying the end of every character, as the reference programs
/// do.
fn slow_cuts<'a>(left: &str, prediction: &'a str) -> (&'a str, Option<&'a str>) {
    let ends = prediction.char_indices().map(|(at, _)| at).chain([prediction.len()]);
    let parses = |end: &usize| slow_parses(&format!("{left}{}", &prediction[..*end]));
    let cut = |end: usize| prediction[..end].trim_end_matches(is_space);
    let ends: Vec<usize> = ends.collect();
    let ends_line = |end: &&usize| **end > 0 && prediction[**end..].starts_with('\n');
    let statement = ends.iter().filter(ends_line).copied().find(parses);
    let longest = ends.iter().rev().copied().find(parses);
    (statement.map_or(prediction, cut), longest.map(cut))
}

#[test]
fn cuts_of_real_code_equal_the_reference_programs_way() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join("data/tasks/function.jsonl");
    let tasks = crate::task::TaskSet::read(&root).unwrap().set.into_tasks();
    let mut cut = 0;
    for (task, other) in tasks.iter().zip(tasks.iter().skip(1)).step_by(9) {
        let right = format!("{}\n\n\nclass Next:\n    pass\n", other.ground_truth);
        let shortened = &task.ground_truth[..task.ground_truth.len() * 2 / 3];
        for prediction in [right.as_str(), shortened, "):\n  x = (1\n", "\"\"\"open\nx\n"] {
            let statement = cut::first_statement(&HoleContext::new(task), prediction).prediction;
            let longest = body::longest_prefix(&task.prompt, prediction).ok();
            let slow = slow_cuts(&task.prompt, prediction);
            assert_eq!((&*statement, longest), slow, "{}", task.id);
            cut += usize::from(longest.is_some_and(|kept| kept.len() < prediction.len()));
        }
    }
    assert!(cut > 20, "{cut} cut");
}

/// Text after an early error is not read, and is not part of the longest prefix anyway.
#[test]
fn cuts_before_an_early_error_equal_the_reference_programs_way() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join("data/tasks/function.jsonl");
    let tasks = crate::task::TaskSet::read(&root).unwrap().set.into_tasks();
    for (task, other) in tasks.iter().zip(tasks.iter().skip(1)).step_by(45) {
        let code = &other.ground_truth;
        for prediction in [
            format!("x = ) else (\n{code}\n    # why\n    y = 1\n{code}"),
            format!("Here is the code, it's short:\n```python\n{code}\n```\n{code}"),
            format!("x = (1\n{code}\n    '''open\n\n{code}"),
            // Brackets and strings that are open, closed wrongly, or closed by a token that the parser adds.
            code.replacen(')', "]", 1),
            code.replacen('(', "(f'{x[\"a\"]}', ", 1),
            code.replacen(':', ":=", 1),
            code.replacen('"', "'", 1),
            format!("if f(a:\n        {code}"),
            format!("x = [f(a, \"b\", r'c]\n{code}"),
        ] {
            let statement = cut::first_statement(&HoleContext::new(task), &prediction).prediction;
            let longest = body::longest_prefix(&task.prompt, &prediction).ok();
            let slow = slow_cuts(&task.prompt, &prediction);
            assert_eq!((&*statement, longest), slow, "{}", task.id);
        }
    }
}

/// The parser recovers from the error at the end by leaving out text far before it.
#[test]
fn an_error_at_the_end_does_not_count_before_it() {
    let left = "def connect(\n    sess,\n    cache=None,\n    cache_etags=True,\n    serializer=None,\n    heuristic=None,\n    controller_class=None,\n    adapter_class=None,\n    cacheable_methods=None,\n):\n\n    ";
    let prediction = "        include = join(self.si.WindowsSdkDir, 'include')\n\n        if self.vs_ver <= 10.0:\n            return [include, join(include, 'gl')]\n\n        else:\n            if self.vs_ver >= 14.0:\n                sdkver = self._sdk_subdir\n            else:\n                sdkver = ''\n            return [join(include, '%sshared' % sdkver),\n  ";
    let longest = body::longest_prefix(left, prediction).ok();
    assert_eq!(longest, slow_cuts(left, prediction).1);
    assert!(longest.is_some_and(|longest| longest.ends_with("return")));
}

/// Shortened contexts give the cuts of whole files.
#[test]
fn bodies_after_shortened_contexts_equal_those_after_whole_files() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let path = data.join("tasks/function.jsonl");
    let mut tasks = crate::task::TaskSet::read(&path).unwrap().set.into_tasks();
    let repos = data.join("repos");
    let mut files = TaskFiles::below(&repos).unwrap();
    let mut shortened = 0;
    let others: Vec<String> = tasks.iter().map(|task| task.ground_truth.clone()).collect();
    for (task, other) in tasks.iter_mut().zip(others.iter().skip(1)).step_by(9) {
        files.take_left(task);
        let (left, own) = (HoleContext::new(task).known_left(), &task.ground_truth);
        let first = own.split('\n').find(|line| !line.trim().is_empty()).unwrap();
        let left = format!("{left}{}", &first[..first.len() - first.trim_start().len()]);
        shortened += usize::from(LeftContext::shorten(&left, own).text().len() < left.len());
        for prediction in [
            format!("{own}\n\n\nclass Next:\n    def f(self):\n        return 1\n"),
            format!("{own}\n    def next(self):\n{other}\nelse:\n    pass\n"),
            format!("{other}):\n  x = (1\n{own}"),
            format!("\"\"\"open\n{other}"),
            own.replace(['(', ':'], ""),
        ] {
            let [target, start] = [own, &prediction].map(|text| text.trim_start_matches(is_space));
            let whole = body::body_after(&LeftContext::new(&*left), target, start);
            let short = body::function_body(&HoleContext::new(task), &prediction);
            let of = |cut: uncut::Cut| (cut.target, cut.prediction, cut.uncut);
            assert_eq!(of(short), of(whole), "{} {prediction}", task.id);
        }
    }
    assert!(shortened > 10, "{shortened} contexts are shortened");
}

#[test]
fn function_bodies() {
    let left = "def before():\n    return 0\n\n\ndef f(x):\n    \"\"\"Doc.\"\"\"\n";
    let target = "    y = x\n    return y\n";
    let in_file = hole(left, target, Language::Python);
    assert!(is_function_body(&in_file));
    assert!(!is_function_body(&HoleContext { target: "    return x\n", ..in_file }));
    assert!(!is_function_body(&HoleContext { left_context: &left[..24], ..in_file }));
    let recipe: Recipe = "function-body".parse().unwrap();
    let cut = recipe.apply(in_file, "    z = x\n    return z\n\n\ndef g():\n    retu");
    assert_eq!(cut.prediction, "\"\"\"Doc.\"\"\"\n    z = x\n    return z");
    assert_eq!(cut.target, "\"\"\"Doc.\"\"\"\n    y = x\n    return y");
    // Repoformer's data has the indentation in the prompt.
    let indented = format!("{left}    ");
    let moved = hole(&indented, target.trim_start(), Language::Python);
    assert!(is_function_body(&moved));
    assert_eq!(
        recipe.apply(moved, "z = x\n    return z\nk = 1\n").prediction,
        "\"\"\"Doc.\"\"\"\n    z = x\n    return z"
    );
    // If the left context never parses, the prediction stays whole.
    let broken = hole("def f(:\n    )\n", target, Language::Python);
    let whole = recipe.apply(broken, "return 1\n");
    assert_eq!((&*whole.prediction, whole.uncut), ("return 1\n", Some(UncutReason::File)));
}

/// Type parameters have defaults since Python 3.13 (PEP 696), which the grammar does not support.
#[test]
fn what_is_not_cut_has_a_reason() {
    let [known, unknown] = ["T", "T = int"].map(|parameter| {
        format!("def first[{parameter}](xs: list[T]) -> T:\n    y = xs\n    return y[0]\n\n\ndef f(x):\n")
    });
    let (target, answer) = ("    y = x\n    return y\n", "    y = x\n    return y\n\n\nf(1)\n");
    for (left, step, answer, uncut) in [
        (&known, "function-body", answer, None),
        (&unknown, "function-body", answer, Some(UncutReason::File)),
        (&known, "statement", answer, None),
        (&unknown, "statement", answer, Some(UncutReason::File)),
        (&known, "statement", "    y = (\n    1]\n", Some(UncutReason::Prediction)),
        // A single line is a statement.
        (&unknown, "statement", "    y = x\n", None),
        (&unknown, "lines", answer, None),
    ] {
        let recipe: Recipe = step.parse().unwrap();
        let cut = recipe.apply(hole(left, target, Language::Python), answer);
        assert_eq!(cut.uncut, uncut, "{step} {answer:?} behind {left}");
        let is_whole = cut.prediction.trim_start() == answer.trim_start();
        assert!(uncut.is_none() || is_whole, "{step}: compared whole");
    }
}

#[test]
fn function_bodies_end_with_their_brace() {
    let left = "class A {\n  int f(int x) {\n    ";
    let answer =
        "if (x > 0) { return \"}\".length(); }\n    return x;\n  }\n\n  int g() { return 0; }\n}";
    let cut = apply("function-body", hole(left, "", Language::Java), answer);
    assert_eq!(cut, "if (x > 0) { return \"}\".length(); }\n    return x;");
    let left = "function f(x: number) {\n  ";
    let cut =
        apply("function-body", hole(left, "", Language::TypeScript), "return `${x}`;\n}\nf(1);");
    assert_eq!(cut, "return `${x}`;");
}

#[test]
fn comments() {
    let hole = hole("", "x = 1  # one", Language::Python);
    let recipe: Recipe = "comments".parse().unwrap();
    let cut = recipe.apply(hole, "x = '#'  # two");
    assert_eq!((&*cut.target, &*cut.prediction), ("x = 1  ", "x = '#'  "));
    let recipe: Recipe = "comment-signs".parse().unwrap();
    assert_eq!(recipe.apply(hole, "x = '#'  # two").prediction, "x = '");
}

/// Shapes of chat answers, each with the code that the rule finds and the reason.
#[test]
fn chat_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join("tests/fixtures/chat/answers.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let answers: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers.len() >= 100, "{} answers", answers.len());
    let mut others = Vec::new();
    for answer in &answers {
        let field = |name: &str| answer[name].as_str().unwrap();
        let hole = hole(field("prompt"), "", field("language").parse().unwrap());
        let code = apply("chat", hole, field("pred"));
        if code != field("target") {
            others.push((field("task_id"), code, field("target")));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// The rule leaves code as it is: the functions of the sample tasks, as they are written and between fences.
#[test]
fn code_is_its_own_answer() {
    for file in ["data/tasks/function.jsonl", "data/tasks/line.jsonl", "data/tasks/api.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        for task in crate::task::TaskSet::read(&path).unwrap().set.tasks() {
            let (hole, code) = (HoleContext::new(task), task.ground_truth.as_str());
            assert_eq!(apply("chat", hole, code), code, "{}", task.id);
            let fenced = format!("Sure, this is the code:\n```python\n{code}\n```\nIt works.");
            assert_eq!(apply("chat", hole, &fenced), code, "{}", task.id);
        }
    }
}

#[test]
fn fences() {
    let of = |text| python("fences", "", text);
    assert_eq!(of("Here:\n```python\nx = 1\n```\nIt works.\n```\nout\n```\n"), "x = 1");
    assert_eq!(of("x = '```'"), "x = '```'");
    // Of equally good blocks, the longest; of equally long ones, the last.
    assert_eq!(of("```\na\nb\n```\n```\nc\nd\n```\n```\ne\n```"), "c\nd");
}

#[test]
fn chatter() {
    let of = |text| python("chatter", "", text);
    assert_eq!(of("Sure! Here is the function:\n\n    return x"), "    return x");
    assert_eq!(of("return x\n\nThis returns the value of x."), "return x");
    // Code that begins with such a word stays.
    assert_eq!(of("this = here\n\nthis.x = 1\n"), "this = here\n\nthis.x = 1\n");
    assert_eq!(of("ok, err = f()\n"), "ok, err = f()\n");
    assert_eq!(of("\n    return 1\n"), "\n    return 1\n");
}

#[test]
fn echoes() {
    let of = |left, text| python("echo", left, text);
    assert_eq!(of("import a\n\ndef f(x):\n", "def f(x):\n    return x\n"), "    return x\n");
    assert_eq!(of("import a\ndef f(x):\n", "import a\ndef f(x):\n    return\n"), "    return\n");
    assert_eq!(of("y = 0\nx = f(", "x = f(1)"), "1)");
    assert_eq!(of("y = 0\nx = f(", "y = 0\nx = f(1)"), "1)");
    assert_eq!(of("}\n", "}\n"), "}\n");
    // White space before the hole is part of the repeated line.
    assert_eq!(of("x = ", "x = 1"), "1");
    assert_eq!(of("for", "for x in y"), " x in y");
    // A single line with other indentation may belong to another block.
    assert_eq!(of("if a:\n        x()\n", "    x()\n"), "    x()\n");
    assert_eq!(of("", "x"), "x");
}

/// Each prefix of this text takes a parse of all the text before it.
#[test]
fn a_prediction_that_takes_too_many_parses_is_compared_whole() {
    let text = "a?b:".repeat(1_000);
    let left = "import os\n\n\ndef f(x):\n    ";
    let recipe: Recipe = "function-body".parse().unwrap();
    let cut = recipe.apply(hole(left, "return 1\n", Language::Python), &text);
    assert_eq!((&*cut.prediction, cut.uncut), (&*text, Some(UncutReason::Bound)));
}

#[test]
fn hostile_predictions_end() {
    let left = "def f():\n    ";
    let deep = "(".repeat(100_000);
    let many = "x = (\n".repeat(100_000);
    for step in Step::ALL {
        for text in [deep.as_str(), many.as_str(), "\0\u{feff}\u{2028}\r"] {
            Recipe(vec![step]).apply(hole(left, "return 1", Language::Python), text);
        }
    }
}
