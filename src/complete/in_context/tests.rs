//! The model as a whole: what it must find in small prompts, and what holds for every prompt.

use super::*;
use proptest::prelude::*;

fn complete(prompt: &str, max_lines: usize) -> Generation {
    InContextModel::default().complete(prompt, &Limits { max_lines, max_tokens: 1000 })
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
        assert_eq!(generation.finish, Finish::NoCandidate);
        assert!(generation.text.is_empty() && generation.tokens.is_empty());
    }
}

#[test]
fn limits_of_zero_give_nothing() {
    let model = InContextModel::default();
    let none = model.complete("a = 1\n", &Limits { max_lines: 0, max_tokens: 5 });
    assert_eq!((none.text.as_str(), none.finish), ("", Finish::Lines));
    let none = model.complete("a = 1\n", &Limits { max_lines: 5, max_tokens: 0 });
    assert_eq!((none.text.as_str(), none.finish), ("", Finish::Tokens));
}

#[test]
fn the_token_limit_cuts_a_line() {
    let model = InContextModel::default();
    let generation = model.complete("a = 1\n", &Limits { max_lines: 1, max_tokens: 2 });
    // The only line there is to copy, cut after two of its tokens.
    assert_eq!((generation.text.as_str(), generation.finish), ("a =", Finish::Tokens));
}

#[test]
fn a_repeated_passage_is_continued() {
    let prompt =
        "def f():\n    start()\n    work()\n    stop()\n\ndef g():\n    start()\n    work()\n";
    let generation = complete(prompt, 1);
    assert_eq!(generation.text, "    stop()\n");
    let texts: Vec<_> = generation.tokens.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(texts, ["    ", "stop", "(", ")", "\n"]);
}

#[test]
fn a_retrieved_block_is_seen_through_its_comments() {
    let block = "def load(path):\n    with open(path) as file:\n        return parse(file)\n";
    let file = "import os\n\ndef load(path):\n    with open(path) as file:\n";
    let generation = complete(&with_block(block, file), 1);
    assert_eq!(generation.text, "        return parse(file)\n");
    assert_eq!(generation.finish, Finish::Lines);
}

#[test]
fn several_lines_follow_a_block_at_the_margin_of_the_file() {
    let block = "a = first()\nb = second(a)\nc = third(b)\nd = fourth(c)\n";
    let file = "def f():\n    a = first()\n    b = second(a)\n";
    let generation = complete(&with_block(block, file), 2);
    assert_eq!(generation.text, "    c = third(b)\n    d = fourth(c)\n");
}

#[test]
fn names_are_replaced_as_in_the_line_before() {
    let block = "old = make(config)\nold.run(config)\nfinish(log)\n";
    let file = "fresh = make(config)\n";
    let generation = complete(&with_block(block, file), 1);
    assert_eq!(generation.text, "fresh.run(config)\n");
}

#[test]
fn tabs_stay_tabs() {
    let prompt = "if a:\n\tx()\n\ty()\nif b:\n\tx()\n";
    assert_eq!(complete(prompt, 1).text, "\ty()\n");
}

#[test]
fn line_ends_of_two_characters_are_line_ends() {
    let prompt = "s()\r\nw()\r\ne()\r\n\r\ns()\r\nw()\r\n";
    assert_eq!(complete(prompt, 1).text, "e()\n");
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
    let most = Parameters::default().max_line_tokens + 2;
    assert!(generation.tokens.len() <= 2 * most);
    assert!(!complete(&"é\n".repeat(1 << 20), 1).text.is_empty());
}

/// Text in which lines repeat, so that contexts match.
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
    fn what_holds_for_every_prompt(prompt in code(), max_lines in 0_usize..6, max_tokens in 0_usize..40) {
        let model = InContextModel::default();
        let limits = Limits { max_lines, max_tokens };
        let generation = model.complete(&prompt, &limits);
        let joined: String = generation.tokens.iter().map(|token| token.text.as_str()).collect();
        prop_assert_eq!(&joined, &generation.text);
        prop_assert!(generation.tokens.len() <= max_tokens);
        prop_assert!(generation.tokens.iter().all(|t| t.probability > 0.0 && t.probability <= 1.0));
        let lines: Vec<&str> = generation.text.lines().collect();
        prop_assert!(lines.len() <= max_lines);
        // Only a cut line may end in nothing but its indentation.
        let blank = lines.iter().filter(|line| line.trim().is_empty()).count();
        prop_assert!(blank == 0 || (blank == 1 && generation.finish == Finish::Tokens));
        if generation.finish == Finish::Lines {
            prop_assert_eq!(lines.len(), max_lines);
        }
        prop_assert_eq!(model.complete(&prompt, &limits), generation);
    }

    #[test]
    fn any_text_is_taken(prompt in any::<String>(), max_lines in 0_usize..4) {
        let generation = complete(&prompt, max_lines);
        prop_assert!(generation.text.lines().count() <= max_lines);
    }

    #[test]
    fn odd_parameters_do_no_harm(prompt in code(), odd in prop::num::f64::ANY, size in 0_usize..9) {
        let mut parameters = Parameters::default();
        parameters.line_weights.alignment = odd;
        parameters.contexts.growth = odd;
        parameters.search.temperature = odd;
        parameters.search.beam = size;
        parameters.search.lines = size;
        parameters.max_line_tokens = size;
        parameters.max_prompt_bytes = 8 * size;
        let limits = Limits { max_lines: 3, max_tokens: 30 };
        let generation = InContextModel::new(parameters).complete(&prompt, &limits);
        prop_assert!(generation.tokens.iter().all(|t| t.probability > 0.0 && t.probability <= 1.0));
    }
}
