//! Compares data flow with plain readings of the text.

use proptest::prelude::*;
use repoformer_text::language::Parser;

use super::*;

/// Returns the data flow of a text, and its data flow if each nested loop is read twice as often, as in codebleu.
fn flows(text: &str, language: Language) -> [Vec<Flow>; 2] {
    let tree = Parser::new(language).unwrap().parse(text, "", None).unwrap();
    let rules = Rules::from_language(language).unwrap();
    [Pass::Again, Pass::First].map(|second| {
        let mut reader = Reader::new(&tree, text, rules).unwrap();
        (reader.second, reader.room) = (second, usize::MAX);
        reader.read(tree.root_node(), &mut States::default()).unwrap();
        reader.flows()
    })
}

fn flow(text: &str, language: Language) -> Vec<Flow> {
    let tree = Parser::new(language).unwrap().parse(text, "", None).unwrap();
    data_flow(&tree, text, Rules::from_language(language).unwrap())
}

/// A statement of a language, with the statements inside it, by the letters of its names.
#[derive(Clone, Debug)]
struct Statement {
    kind: usize,
    names: [char; 3],
    within: Vec<Statement>,
}

fn statement() -> impl Strategy<Value = Statement> {
    let name = || prop::sample::select(vec!['a', 'b', 'c', 'd']);
    let names = move || [name(), name(), name()];
    let simple = (0_usize..9, names());
    let simple = simple.prop_map(|(kind, names)| Statement { kind, names, within: Vec::new() });
    simple.prop_recursive(6, 40, 4, move |inner| {
        (0_usize..9, names(), prop::collection::vec(inner, 1..4))
            .prop_map(|(kind, names, within)| Statement { kind, names, within })
    })
}

fn write(statement: &Statement, language: Language, depth: usize, text: &mut String) {
    let Statement { kind, names: [a, b, c], within } = statement;
    let margin = "    ".repeat(depth);
    let (simple, around) = match language {
        Language::Python => (
            [
                format!("{a} = {b}"),
                format!("{a} += {b} * {c}"),
                format!("{a}, {b} = {c}, {a}"),
                format!("{a}.{b} = {c}[{a}]"),
                format!("f({a}, {b}={c})"),
                format!("{a}"),
                format!("{a} = [{b} for {b} in {c} if {a}]"),
                format!("{a}, {b} = {c}"),
                format!("def g({a}={b}): return {c}"),
            ],
            [
                format!("for {a} in {b}:"),
                format!("for {a}, {b} in {c}:"),
                format!("while {a} < {b}:"),
                format!("if {a}:"),
                format!("if {a} == {b}:\n{margin}    {c} = {a}\n{margin}elif {b}:"),
                format!("if {a}:\n{margin}    {b} = {c}\n{margin}else:"),
                format!("with {a} as {b}:"),
                format!("for {a} in {b}[{c}]:"),
                format!("while {a}:"),
            ],
        ),
        Language::Go => (
            [
                format!("{a} = {b}"),
                format!("{a} += {b} * {c}"),
                format!("{a}, {b} = {c}, {a}"),
                format!("{a}++"),
                format!("f({a}, {b}, {c})"),
                format!("var {a} int = {b}"),
                format!("{a} := {b} + {c}"),
                format!("var {a} {b}"),
                format!("return {c}"),
            ],
            [
                format!("for {a} := {b}; {a} < {c}; {a}++ {{"),
                format!("for {a} = {b}; ; {c} = {a} {{"),
                format!("for {a} < {b} {{"),
                format!("if {a} {{"),
                format!("if {a} == {b} {{ {c} = {a} }} else {{"),
                format!("if {a} {{ {b} = {c} }} else if {b} {{"),
                format!("for _, {a} := range {b} {{"),
                format!("for {a}++; {b}; {a} = {a} + {c} {{"),
                "{".to_owned(),
            ],
        ),
        _ => (
            [
                format!("{a} = {b};"),
                format!("{a} += {b} * {c};"),
                format!("int {a} = {b}, {c};"),
                format!("{a}++;"),
                format!("f({a}, {b}, {c});"),
                format!("int {a};"),
                format!("{a}.{b} = {c}[{a}];"),
                format!("--{a};"),
                format!("return {c};"),
            ],
            [
                format!("for (int {a} = {b}; {a} < {c}; {a}++) {{"),
                format!("for ({a} = {b}; ; {c} = {a}) {{"),
                format!("while ({a} < {b}) {{"),
                format!("if ({a}) {{"),
                format!("if ({a} == {b}) {{ {c} = {a}; }} else {{"),
                format!("if ({a}) {{ {b} = {c}; }} else if ({b}) {{"),
                match language {
                    Language::Java => format!("for (int {a} : {b}) {{"),
                    _ => format!("foreach (var {a} in {b}) {{"),
                },
                format!("for (int {a} = {b}, {c} = {b}; {a}; {a} = {c}) {{"),
                "{".to_owned(),
            ],
        ),
    };
    if within.is_empty() {
        text.push_str(&format!("{margin}{}\n", simple[*kind]));
        return;
    }
    text.push_str(&format!("{margin}{}\n", around[*kind]));
    within.iter().for_each(|one| write(one, language, depth + 1, text));
    if language != Language::Python {
        text.push_str(&format!("{margin}}}\n"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reading_inner_loops_more_often_finds_nothing_new(
        statements in prop::collection::vec(statement(), 1..4),
    ) {
        for language in [Language::Python, Language::Java, Language::CSharp, Language::Go] {
            let mut text = String::new();
            statements.iter().for_each(|one| write(one, language, 0, &mut text));
            let [once, twice] = flows(&text, language);
            prop_assert_eq!(once, twice, "{} {}", language, text);
        }
    }

    #[test]
    fn nor_in_broken_code(parts in prop::collection::vec(prop::sample::select(vec![
        "for (int a = b; a < c; a++)", "for (;;)", "while (a)", "while a:\n", "for a in b:\n", "for a = b; c; a++ {",
        "if (a)", "if a:\n", "if a {", "else", "{", "}", "(", ")", "a = b;", "b = a\n", "a, b = c, a\n", "    ", " ",
        "c++;", "int c = a;", "foreach (var a in b)", "for (int a : b)", "var b = c", "\n", "b := a\n", "a", "d",
    ]), 0..25)) {
        let text = parts.concat();
        for language in [Language::Python, Language::Java, Language::CSharp, Language::Go] {
            let [once, twice] = flows(&text, language);
            prop_assert_eq!(once, twice, "{} {}", language, text);
        }
    }
}

/// If each loop were read twice as often as the loop around it, this would take 2^30 readings.
#[test]
fn loops_in_loops_are_read_as_often_as_they_are_deep() {
    for (language, text) in [
        (Language::Java, format!("x = y; {} y = x;", "while (x) ".repeat(30))),
        (Language::CSharp, format!("{} y = x;", "for (int x = y; ; x++) ".repeat(30))),
        (
            Language::Go,
            format!("{} y = x {}", "for x = y; y < x; x++ {".repeat(30), "}".repeat(30)),
        ),
    ] {
        assert!(!flow(&text, language).is_empty(), "{language}");
    }
}

/// Each value of a left side has all values of the right side as sources.
#[test]
fn what_grows_with_the_square_of_a_text_has_no_data_flow() {
    let wide = |n: usize| format!("{} = {}", vec!["a"; n].join(", "), vec!["b"; n + 1].join(", "));
    // The left side has 20 values and the right side 21.
    assert_eq!(flow(&wide(20), Language::Python).len(), 41);
    assert!(flow(&wide(5_000), Language::Python).is_empty());
}

/// After each branch, `a` comes from this branch or any earlier one. Each branch has five values.
#[test]
fn branches_are_known_by_what_they_change() {
    let branches: String =
        (0..20_000).map(|k| format!("if a:\n    b{k} = a\n    a = b{k}\n")).collect();
    assert_eq!(flow(&branches, Language::Python).len(), 100_000);
}
