//! Tests of the whole model: completions it must find in small prompts, and properties of every prompt.

use super::{CompletionEnd, CompletionLimits, Generation, parameters};
use proptest::prelude::*;

fn complete(prompt: &str, max_lines: usize) -> Generation {
    super::complete(prompt, &CompletionLimits { max_lines, max_tokens: 1000 })
}

fn with_block(block: &str, file: &str) -> String {
    let rule = format!("# {}", "-".repeat(50));
    let block: String = block.lines().map(|line| format!("# {line}\n")).collect();
    format!(
        "# Here are some relevant code fragments from other files of the repo:\n{rule}\n\
         # the below code fragment can be found in:\n# a/b.py\n{rule}\n{block}{rule}\n\n{file}"
    )
}

#[test]
fn an_empty_prompt_has_no_candidate() {
    for prompt in ["", "\n", "  \n\n", "\u{feff}\u{b}\r\n"] {
        let generation = complete(prompt.trim_start_matches('\u{feff}'), 1);
        assert_eq!(generation.finish, CompletionEnd::NoCandidate);
        assert!(generation.text.is_empty() && generation.tokens.is_empty());
    }
}

#[test]
fn limits_end_a_completion() {
    // The only line that can be copied, cut after two of its tokens in the last case.
    for (max_lines, max_tokens, text, finish) in [
        (0, 5, "", CompletionEnd::Lines),
        (5, 0, "", CompletionEnd::Tokens),
        (1, 2, "a =", CompletionEnd::Tokens),
    ] {
        let generation = super::complete("a = 1\n", &CompletionLimits { max_lines, max_tokens });
        assert_eq!((generation.text.as_str(), generation.finish), (text, finish));
    }
}

#[test]
fn the_tokens_of_a_line_are_told() {
    let prompt =
        "def f():\n    start()\n    work()\n    stop()\n\ndef g():\n    start()\n    work()\n";
    let texts: Vec<_> = complete(prompt, 1).tokens.into_iter().map(|token| token.text).collect();
    assert_eq!(texts, ["    ", "stop", "(", ")", "\n"]);
}

#[test]
fn prompts_are_continued_from_what_they_repeat() {
    let load = "def load(path):\n    with open(path) as file:\n        return parse(file)\n";
    for (what, prompt, max_lines, text) in [
        (
            "a block is seen through its comments",
            with_block(load, "import os\n\ndef load(path):\n    with open(path) as file:\n"),
            1,
            "        return parse(file)\n",
        ),
        (
            "several lines follow a block at the margin of the file",
            with_block(
                "a = first()\nb = second(a)\nc = third(b)\nd = fourth(c)\n",
                "def f():\n    a = first()\n    b = second(a)\n",
            ),
            2,
            "    c = third(b)\n    d = fourth(c)\n",
        ),
        (
            "names are replaced as in the line before",
            with_block("old = make(config)\nold.run(config)\nend(log)\n", "new = make(config)\n"),
            1,
            "new.run(config)\n",
        ),
        ("tabs stay tabs", "if a:\n\tx()\n\ty()\nif b:\n\tx()\n".into(), 1, "\ty()\n"),
        ("CR LF ends a line", "s()\r\nw()\r\ne()\r\n\r\ns()\r\nw()\r\n".into(), 1, "e()\n"),
    ] {
        let generation = complete(&prompt, max_lines);
        assert_eq!(
            (generation.text.as_str(), generation.finish),
            (text, CompletionEnd::Lines),
            "{what}"
        );
    }
}

#[test]
fn a_sure_token_is_likelier_than_a_doubtful_one() {
    let sure = "s()\nw()\ne()\n\ns()\nw()\ne()\n\ns()\nw()\n";
    let doubtful = "s()\nw()\nd()\n\ns()\nw()\ne()\n\ns()\nw()\n";
    let first = |prompt: &str| complete(prompt, 1).tokens[0].probability;
    assert!(first(sure) > first(doubtful));
    assert!(first(doubtful) > 0.25);
}

#[test]
fn a_huge_line_is_bounded_work() {
    let prompt = "x = (y + 1) ".repeat(1 << 20);
    let generation = complete(&prompt, 2);
    assert!(generation.tokens.len() <= 2 * (parameters::MAX_LINE_TOKENS + 2));
    assert!(!complete(&"é\n".repeat(1 << 20), 1).text.is_empty());
}

/// Generates text whose lines repeat, so that contexts match.
fn code() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[ ]{0,8}[ab(=.:,)#\"']{0,12}",
        Just("    self.a = a".to_owned()),
        Just("\"\"\"".to_owned()),
        Just("# the below code fragment can be found in:".to_owned()),
        Just("# a/b.py".to_owned()),
        Just(format!("# {}", "-".repeat(50))),
        Just("#     return f(a, b)\r".to_owned()),
        "\\PC{0,20}",
        "[\\t\\x0b\\x0c\\x1c\u{2028}é漢]{0,6}",
    ];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_holds_for_every_prompt(
        prompt in prop_oneof![code(), any::<String>()], max_lines in 0_usize..6, max_tokens in 0_usize..40,
    ) {
        let limits = CompletionLimits { max_lines, max_tokens };
        let generation = super::complete(&prompt, &limits);
        let joined: String = generation.tokens.iter().map(|token| token.text.as_str()).collect();
        prop_assert_eq!(&joined, &generation.text);
        prop_assert!(generation.tokens.len() <= max_tokens);
        prop_assert!(generation.tokens.iter().all(|t| t.probability > 0.0 && t.probability <= 1.0));
        let lines: Vec<&str> = generation.text.lines().collect();
        prop_assert!(lines.len() <= max_lines);
        // Only a truncated line may consist of nothing but its indentation.
        let blank = lines.iter().filter(|line| line.trim().is_empty()).count();
        prop_assert!(blank == 0 || (blank == 1 && generation.finish == CompletionEnd::Tokens));
        if generation.finish == CompletionEnd::Lines {
            prop_assert_eq!(lines.len(), max_lines);
        }
        prop_assert_eq!(super::complete(&prompt, &limits), generation);
    }
}
