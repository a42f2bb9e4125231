use super::*;
use crate::text::language::Language;
use crate::text::language::syntax::Syntax;
use crate::text::lines::is_space;

fn hole<'a>(left_context: &'a str, target: &'a str, language: Language) -> Hole<'a> {
    Hole { left_context, target, language }
}

fn apply(names: &str, hole: Hole<'_>, prediction: &str) -> String {
    let recipe: Recipe = names.parse().unwrap();
    recipe.apply(hole, prediction).prediction.into_owned()
}

#[test]
fn names() {
    for step in Step::ALL {
        let recipe: Recipe = step.name().parse().unwrap();
        assert_eq!(recipe, Recipe::from(&[step][..]));
        assert_eq!(recipe.to_string(), step.name());
    }
    assert_eq!("none".parse::<Recipe>().unwrap().to_string(), "none");
    let unknown = "lines,none".parse::<Recipe>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("unknown post-processing 'none'; known: own, none, chat, fences"),
        "{unknown}"
    );
}

#[test]
fn lines_as_many_as_the_target_has() {
    let hole = hole("", "a\n \n\tb\n", Language::Python);
    assert_eq!(apply("lines", hole, "\n  x\r\n\n y\nz"), "  x\r\n y");
    assert_eq!(apply("lines", hole, "x"), "x");
    assert_eq!(apply("lines", Hole { target: " ", ..hole }, "x"), "");
}

#[test]
fn first_lines() {
    let of = |text, language| apply("first-line", hole("", "", language), text);
    assert_eq!(of("\n\n# no\n  x = 1\ny", Language::Python), "  x = 1");
    assert_eq!(of("'''\nno\n'''\nx", Language::Python), "x");
    // As in the program: the docstring that ends in its own line goes on.
    assert_eq!(of("\"\"\"no\"\"\"\nx\n\"\"\"\ny", Language::Python), "y");
    assert_eq!(of("# a\n# b", Language::Python), "# a");
    assert_eq!(of("/* a\n */\n// b\nint x;", Language::Java), "int x;");
}

#[test]
fn first_brackets() {
    let of = |text| apply("bracket", hole("", "", Language::Java), text);
    assert_eq!(of("f(x); g(y);"), "f(x);");
    assert_eq!(of("if (x) { y"), "if (x) {");
    assert_eq!(of("x"), "x");
    // As in the program: place 0 counts as none.
    assert_eq!(of("; x; y"), "; x; y");
    assert_eq!(apply("statement", hole("", "", Language::CSharp), "a; b"), "a;");
}

#[test]
fn first_statements() {
    let of = |left, text| apply("statement", hole(left, "", Language::Python), text);
    assert_eq!(of("x = f(", "a,\n  b)\ny = 1\n"), "a,\n  b)");
    assert_eq!(of("x = ", "1  \ny = 2\n"), "1");
    // The last line's end counts, its absence does not matter: nothing behind it is cut.
    assert_eq!(of("x = ", "1"), "1");
    assert_eq!(of("x = (", "1\n2\n"), "1\n2\n");
    // A line end at the very beginning is none that ends a statement.
    assert_eq!(of("x = 1", "\ny = 2\nz"), "\ny = 2");
}

/// Every character's end in turn, each parsed from the start, as the reference programs do it.
fn slow_first_statement<'a>(left: &str, prediction: &'a str) -> &'a str {
    let mut ends = prediction.char_indices().map(|(at, c)| at + c.len_utf8());
    let statement = ends.find(|&end| {
        let text = format!("{left}{}", &prediction[..end]);
        prediction[end..].starts_with('\n')
            && Syntax::parse(&text, Language::Python)
                .is_some_and(|syntax| prefix::is_valid(syntax.tree()))
    });
    statement.map_or(prediction, |end| prediction[..end].trim_end_matches(is_space))
}

#[test]
fn cuts_of_real_code_equal_the_reference_programs_way() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/function.jsonl");
    let tasks = crate::task::TaskSet::read(&root).unwrap().set.tasks;
    let mut cut = 0;
    for (task, other) in tasks.iter().zip(tasks.iter().skip(1)).step_by(9) {
        let right = format!("{}\n\n\nclass Next:\n    pass\n", other.ground_truth);
        let shortened = &task.ground_truth[..task.ground_truth.len() * 2 / 3];
        for prediction in [right.as_str(), shortened, "):\n  x = (1\n", "\"\"\"open\nx\n"] {
            let (fast, slow) = (
                cut::first_statement(&task.prompt, prediction),
                slow_first_statement(&task.prompt, prediction),
            );
            assert_eq!(fast, slow, "{}", task.id);
            let fast = body::longest_prefix(&task.prompt, prediction);
            assert_eq!(fast, body::slow_longest_prefix(&task.prompt, prediction), "{}", task.id);
            cut += usize::from(fast.is_some_and(|kept| kept.len() < prediction.len()));
        }
    }
    assert!(cut > 20, "{cut} cut");
}

#[test]
fn function_bodies() {
    let left = "def before():\n    return 0\n\n\ndef f(x):\n    \"\"\"Doc.\"\"\"\n";
    let target = "    y = x\n    return y\n";
    let in_file = hole(left, target, Language::Python);
    assert!(is_function_body(&in_file));
    assert!(!is_function_body(&Hole { target: "    return x\n", ..in_file }));
    assert!(!is_function_body(&Hole { left_context: &left[..24], ..in_file }));
    let recipe: Recipe = "function-body".parse().unwrap();
    let cut = recipe.apply(in_file, "    z = x\n    return z\n\n\ndef g():\n    retu");
    assert_eq!(cut.prediction, "\"\"\"Doc.\"\"\"\n    z = x\n    return z");
    assert_eq!(cut.target, "\"\"\"Doc.\"\"\"\n    y = x\n    return y");
    // Repoformer's data holds the indentation in the prompt.
    let indented = format!("{left}    ");
    let moved = hole(&indented, target.trim_start(), Language::Python);
    assert!(is_function_body(&moved));
    assert_eq!(
        recipe.apply(moved, "z = x\n    return z\nk = 1\n").prediction,
        "\"\"\"Doc.\"\"\"\n    z = x\n    return z"
    );
    // A left context that never parses leaves the prediction whole.
    let broken = hole("def f(:\n    )\n", target, Language::Python);
    assert_eq!(recipe.apply(broken, "return 1\n").prediction, "return 1\n");
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

#[test]
fn fences() {
    let of = |text| apply("fences", hole("", "", Language::Python), text);
    assert_eq!(of("Here:\n```python\nx = 1\n```\nIt works.\n```\nout\n```\n"), "x = 1\n");
    assert_eq!(of("```\nx = 1"), "x = 1");
    assert_eq!(of("    return x\n```\nThis returns x."), "    return x\n");
    assert_eq!(of("text\n~~~py\nx\n~~~"), "x\n");
    assert_eq!(of("`x = 1`"), "x = 1");
    assert_eq!(of("a = `b`"), "a = `b`");
    assert_eq!(of("x = '```'"), "x = '```'");
}

#[test]
fn chatter() {
    let of = |text| apply("chatter", hole("", "", Language::Python), text);
    assert_eq!(
        of("Sure! Here is the completed function:\n\n    return x<|im_end|>\nmore"),
        "    return x"
    );
    assert_eq!(of("return x\n\nThis returns the value of x."), "return x");
    assert_eq!(of("<think>what now</think>return x"), "return x");
    // Code that begins with such a word stays.
    assert_eq!(of("this = here\n\nthis.x = 1\n"), "this = here\n\nthis.x = 1\n");
    assert_eq!(of("ok, err = f()\n"), "ok, err = f()\n");
    assert_eq!(of("\n    return 1\n"), "\n    return 1\n");
}

#[test]
fn echoes() {
    let of = |left, text| apply("echo", hole(left, "", Language::Python), text);
    assert_eq!(of("import a\n\ndef f(x):\n", "def f(x):\n    return x\n"), "    return x\n");
    assert_eq!(
        of("import a\n\ndef f(x):\n", "import a\n\ndef f(x):\n    return x\n"),
        "    return x\n"
    );
    assert_eq!(of("y = 0\nx = f(", "x = f(1)"), "1)");
    assert_eq!(of("y = 0\nx = f(", "y = 0\nx = f(1)"), "1)");
    assert_eq!(of("}\n", "}\n"), "}\n");
    assert_eq!(of("", "x"), "x");
}

#[test]
fn hostile_predictions_end() {
    let left = "def f():\n    ";
    let deep = "(".repeat(100_000);
    let many = "x = (\n".repeat(100_000);
    for step in Step::ALL {
        for text in [deep.as_str(), many.as_str(), "\0\u{feff}\u{2028}\r"] {
            let recipe = Recipe::from(&[step][..]);
            // Where each character may be the last, the work is the square of the length, within its bound.
            let text = match step {
                Step::FunctionBody => &text[..text.len().min(300)],
                _ => text,
            };
            recipe.apply(hole(left, "return 1", Language::Python), text);
        }
    }
}
