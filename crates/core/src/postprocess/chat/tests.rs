//! The rule's fast parts against obvious slow ones, and bounds of what they read.

use std::borrow::Cow;
use std::ops::Range;

use proptest::prelude::*;
use repoformer_text::language::Language;
use repoformer_text::lines::{indent, strip, unfinished_line};

use super::literal::{Strings, line_ranges};
use super::{echo, fences, marked_code, steps, without_echo};
use crate::postprocess::hole::HoleContext;

/// Finds strings as [`Strings`] does, and searches the text again for each mark.
struct SlowStrings<'a> {
    text: &'a str,
    read: usize,
    line: usize,
    open: Option<&'static str>,
}

const MARKS: [&str; 2] = ["\"\"\"", "'''"];

impl SlowStrings<'_> {
    fn restart(&mut self, place: usize, open: Option<&'static str>) {
        (self.read, self.line, self.open) = (place, place, open);
    }

    fn hold(&mut self, place: usize) -> bool {
        while self.read < place {
            let rest = &self.text[self.read..place];
            let marks = MARKS.into_iter().filter(|mark| self.open.is_none_or(|open| open == *mark));
            let found = marks.filter_map(|mark| Some((rest.find(mark)?, mark))).min();
            let Some((at, mark)) = found else {
                self.read = place;
                break;
            };
            let at = self.read + at;
            let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            self.line = self.line.max(line);
            self.read = at + mark.len();
            let begins = self.open.is_none() && !is_quoted(self.text, self.line..at, mark);
            self.open = begins.then_some(mark);
        }
        let last = self.open.and_then(|open| self.text.rfind(open));
        last.is_some_and(|last| last >= place)
    }
}

fn is_quoted(text: &str, before: Range<usize>, mark: &str) -> bool {
    let line = &text[before.clone()];
    let other = if mark.starts_with('"') { '\'' } else { '"' };
    line.trim_start().starts_with('#')
        || line.ends_with(other) && text[before.end + mark.len()..].starts_with(other)
}

/// Judges the code of one block as [`fences::definitions`] does.
fn slow_defines(code: &str, language: Language) -> bool {
    let end = MARKS.iter().filter_map(|mark| code.find(mark)).min();
    let before = &code[..end.unwrap_or(code.len())];
    let is_definition = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        language.is_keyword(first) && line.ends_with([':', '{'])
    };
    before.lines().map(str::trim).any(is_definition)
}

/// Removes repeated lines as [`without_echo`] does, with any shift.
fn slow_echo<'a>(left: &str, text: &'a str) -> Cow<'a, str> {
    let unfinished = unfinished_line(left);
    let whole = &left[..left.len() - unfinished.len()];
    let is_blank = |line: &&str| strip(line).is_empty();
    let has_name = |line: &&str| line.chars().any(char::is_alphanumeric);
    let lines: Vec<&str> = whole.lines().map(str::trim_end).filter(|l| !is_blank(l)).collect();
    let begins: Vec<Range<usize>> =
        line_ranges(text).filter(|range| !is_blank(&&text[range.clone()])).collect();
    let repeated = (1..=lines.len().min(begins.len())).rev().find_map(|count| {
        let lines = &lines[lines.len() - count..];
        let begins: Vec<&str> =
            begins[..count].iter().map(|range| text[range.clone()].trim_end()).collect();
        let blanks = indent(lines[0]).len();
        let mut shifts = (0..=blanks).map(|shift| &lines[0][..shift]);
        let repeats = |shift: &&str| {
            lines.iter().zip(&begins).all(|(line, begin)| *line == [shift, *begin].concat())
        };
        let shift = shifts.find(repeats)?;
        let opens_block = lines[count - 1].ends_with([':', '{']);
        let counts = shift.is_empty() || count > 1 || opens_block;
        (counts && lines.iter().any(has_name)).then_some((count, shift))
    });
    let rest = repeated.map_or(text.to_owned(), |(count, shift)| {
        let most = whole.lines().rev().take_while(is_blank).count();
        let rest = &text[begins[count - 1].end..];
        let blank = rest.split_inclusive('\n').take(most).take_while(is_blank).count();
        let lines = rest.split_inclusive('\n').skip(blank);
        lines
            .map(|line| if is_blank(&line) { line.into() } else { [shift, line].concat() })
            .collect()
    });
    let held = unfinished.trim_start();
    let own = rest.trim_start_matches([' ', '\t']);
    let own = own.strip_prefix(held).or_else(|| own.strip_prefix(strip(held)));
    own.filter(|_| has_name(&held)).map_or(rest.clone(), str::to_owned).into()
}

/// Returns a text of some of these parts.
fn text(parts: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(prop::sample::select(parts), 0..most);
    parts.prop_map(|parts| parts.concat())
}

const OF_STRINGS: &[&str] =
    &["\"\"\"", "'''", "\"", "'", "#", " ", "\n", "x", "def f():", "\n    ", "if x {", "\r\n", "é"];
const OF_LINES: &[&str] = &[
    "\n", "x = 1\n", "  x = 1\n", "    x = 1\n", "if x:\n", "  if x:\n", "}\n", "  }\n", "  ",
    "\t", "x", "y\n", "é\n", "\u{1c}\n", "\r\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn strings_are_those_of_a_new_search_for_each_mark(
        text in text(OF_STRINGS, 40),
        restarts in prop::collection::vec(prop::option::weighted(0.1, prop::option::of(0..2_usize)), 200),
        skipped in prop::collection::vec(any::<bool>(), 200),
    ) {
        let mut strings = Strings::new(&text, Language::Python);
        let mut slow = SlowStrings { text: &text, read: 0, line: 0, open: None };
        // A position within a mark would cut it; only starts of lines and of tags are asked for.
        let is_place = |at: &usize| text.is_char_boundary(*at) && !text[*at..].starts_with(['"', '\'']);
        for place in (0..=text.len()).filter(is_place) {
            if !skipped[place % 200] {
                prop_assert_eq!(strings.hold(place), slow.hold(place), "{:?} at {}", text, place);
            }
            if let Some(open) = restarts[place % 200] {
                let open = open.map(|mark| MARKS[mark]);
                strings.restart(place, open);
                slow.restart(place, open);
            }
        }
    }

    #[test]
    fn definitions_are_those_of_the_code_from_each_line_on(text in text(OF_STRINGS, 40)) {
        for language in [Language::Python, Language::Java] {
            let slow: Vec<bool> =
                line_ranges(&text).map(|line| slow_defines(&text[line.start..], language)).collect();
            prop_assert_eq!(fences::definitions(&text, language), slow);
        }
    }

    #[test]
    fn repeated_lines_are_those_of_a_new_reading_for_each_answer(
        (left, answer) in (text(OF_LINES, 8), text(OF_LINES, 8)),
    ) {
        for answer in [answer.clone(), [left.as_str(), &answer].concat()] {
            prop_assert_eq!(without_echo(&left, &answer), slow_echo(&left, &answer));
        }
    }
}

/// As in the slow twin, up to the widest shift.
#[test]
fn lines_that_lack_much_indentation_are_not_repeated_ones() {
    let of = |blanks: usize| {
        let left = format!("{}if x:\n", " ".repeat(blanks));
        without_echo(&left, "if x:\na\n\nb\n").into_owned()
    };
    let blanks = " ".repeat(200);
    assert_eq!(of(200), format!("{blanks}a\n\n{blanks}b\n"));
    assert_eq!(of(201), "if x:\na\n\nb\n");
    let left = format!("{}if x:\n", " ".repeat(300_000));
    assert_eq!(without_echo(&left, &format!("if x:\n{}", "a\n".repeat(20_000))).len(), 40_006);
}

/// Returns the number of bytes read for the marked code of an answer, for each byte of the answer and its left context.
fn read_per_byte(left: &str, answer: &str) -> usize {
    let hole = HoleContext {
        left_context: left,
        whole_left_context: None,
        target: "",
        language: Language::Python,
    };
    let bytes = steps::count(|| {
        marked_code(&hole, answer);
        echo::without_echo(left, answer);
    });
    bytes / (left.len() + answer.len())
}

#[test]
fn what_is_read_grows_with_the_answer_and_its_left_context() {
    let blank_lines = "\n".repeat(30_000) + "x = 1\n";
    let blocks = "```\ny\n```\n".repeat(3_000);
    assert!(read_per_byte(&blank_lines, &blocks) < 20);
    assert!(read_per_byte(&(" ".repeat(30_000) + "y"), &blocks) < 20);
    assert!(read_per_byte("x = \"\"\"\n", &"```x```\n".repeat(5_000)) < 20);
    for marks in [
        "\"\"\"\"\"\"".repeat(5_000) + "'''\n",
        " ".repeat(30_000) + &"\"\"\"\"\"\"".repeat(5_000) + "\n",
    ] {
        assert!(read_per_byte(&marks, &blocks) < 20);
        assert!(read_per_byte("x = 1\n", &(marks + &blocks)) < 20);
    }
}

/// The comment is read before the string below it begins.
#[test]
fn a_comment_hides_no_string_of_a_later_line() {
    let text = "# one\nx = \"\"\"\ntwo\n\"\"\"\n";
    let mut strings = Strings::new(text, Language::Python);
    assert_eq!([6, 14, 18, 22].map(|start| strings.hold(start)), [false, true, true, false]);
}
