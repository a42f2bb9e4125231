//! Sentences before and after code.

use repoformer_text::language::{BlockMarks, Language};
use repoformer_text::lines::{strip, unfinished_line};

use super::literal::{is_text, is_text_hole, line_ranges};
use crate::postprocess::hole::HoleContext;

/// Words of sentences that are not keywords and are rarely used as names.
const WORDS: [&str; 40] = [
    "the", "this", "that", "these", "those", "here", "here's", "there", "to", "of", "an", "be",
    "are", "was", "were", "will", "would", "should", "can", "could", "you", "your", "we", "our",
    "it", "its", "it's", "i'll", "i've", "i'm", "let's", "which", "below", "above", "following",
    "please", "sure", "have", "has", "by",
];

/// Words that appear alone before code or before its explanation.
const LABELS: [&str; 17] = [
    "sure", "certainly", "absolutely", "okay", "ok", "yes", "great", "explanation", "note",
    "notes", "answer", "solution", "code", "completion", "output", "example", "usage",
];

/// Words that join expressions in Python: an expression with a capital at its beginning then reads like a sentence.
const JOINS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "for"];

/// Types of fields in Python.
const TYPES: [&str; 15] = [
    "str", "int", "float", "bool", "bytes", "list", "dict", "set", "tuple", "Any", "Optional",
    "List", "Dict", "Set", "Union",
];

/// Ends of sentences.
const ENDS: [char; 6] = ['.', '!', '?', '。', '！', '？'];

/// Characters of code that do not occur in sentences.
const SIGNS: [char; 9] = ['=', ';', '{', '}', '[', ']', '<', '>', '|'];

/// Returns true if a line is a sentence, a heading, a rule, a row of a table, or an item of a list of sentences: it is not
/// indented, consists of words, and has signs of code only inside code spans.
pub(super) fn is_sentence(line: &str, language: Language) -> bool {
    let line = line.trim_end();
    let is_rule = |sign: char| line.len() > 2 && line.chars().all(|c| c == sign);
    if ['-', '*', '_'].into_iter().any(is_rule)
        || line.len() > 2 && line.starts_with('|') && line.ends_with('|')
    {
        return true;
    }
    let (text, mark) = without_mark(line, language);
    let text = text.trim_matches(|c: char| is_symbol(c) || c.is_whitespace());
    let is_span = text.starts_with('`');
    if line.starts_with([' ', '\t']) && mark != Mark::Item
        || line.starts_with(language.comment()) && mark != Mark::Heading
    {
        return false;
    }
    let text = without_spans(text);
    let text =
        text.trim_matches(|c: char| matches!(c, '*' | '_') || c.is_whitespace() || is_symbol(c));
    if text.is_empty() || text.starts_with(['@', '"', '\'', '(']) {
        return false;
    }
    let Some(first) = text.chars().next() else { return false };
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    let is_sentence_end = text.ends_with(ENDS) || text.ends_with(".)");
    let is_colon = text.ends_with([':', '：']);
    let is_label = LABELS.contains(&&*words[0]) || WORDS.contains(&&*words[0]);
    if !text.contains(SIGNS)
        && !text.is_ascii()
        && text.chars().filter(|c| is_ideograph(*c)).count() > 1
    {
        return mark != Mark::None || is_sentence_end || is_colon;
    }
    let is_call = text.find('(').is_some_and(|at| !text[..at].ends_with(' '));
    let is_lower = first.is_lowercase() && !is_span;
    let common = words.iter().filter(|word| WORDS.contains(&&***word)).count();
    // Long sentences quote code without marking it.
    let is_long = !is_lower && words.len() > 5 && common > 1 && is_sentence_end;
    if text.contains(SIGNS) && !is_long {
        return false;
    }
    if !first.is_alphanumeric() || is_call && is_lower {
        return false;
    }
    // Numbers, names with special characters and calls are words of code.
    let plain = text.split_whitespace().filter(|word| {
        word.trim_matches(['(', ')', ',', '.', ':', '!', '?', '"', '*', '—', '–', '：'])
            .chars()
            .all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-' | '/'))
    });
    if plain.count() * 5 < words.len() * 3 {
        return false;
    }
    let is_joined = words.iter().any(|word| JOINS.contains(&&**word));
    let begins_statement =
        is_lower && language.is_keyword(&words[0]) && !WORDS.contains(&&*words[0]);
    match (mark, words.len()) {
        (Mark::Heading | Mark::Bold, _) => true,
        (Mark::Item, count) => count > 1,
        (Mark::None, 1) => {
            let is_end = text.ends_with(['!', '.']) || text.ends_with(',') && !is_span;
            is_label && !is_lower && (is_colon || is_end)
        }
        (Mark::None, count) => {
            let is_statement_end = is_sentence_end && (count > 2 || !is_lower);
            !begins_statement && is_statement_end && !(is_lower && common == 0 && count < 4)
                || is_colon
                    && !begins_statement
                    && (common > 0 || is_label || !is_lower && !is_joined)
                || !is_lower && count > 2 && common > 1
        }
    }
}

/// Marks of Markdown at the beginning of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Heading,
    Item,
    Bold,
}

/// Returns a line without its mark of a heading, item, quotation or bold text, and the mark.
fn without_mark(line: &str, language: Language) -> (&str, Mark) {
    let hashes = line.len() - line.trim_start_matches('#').len();
    // One `#` may be a comment.
    let least = if language.comment() == "#" { 2 } else { 1 };
    if (least..=6).contains(&hashes) && line[hashes..].starts_with(' ') {
        return (line[hashes..].trim_start(), Mark::Heading);
    }
    let text = line.trim_start();
    let indentation = line.len() - text.len();
    let item = ["- ", "* ", "+ ", "• ", "> "].iter().find_map(|mark| text.strip_prefix(mark));
    let item = item.or_else(|| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
        text.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
    });
    // ` * ` continues a multi-line comment.
    let is_comment =
        text.starts_with("* ") && indentation > 0 && language.spec().layout == BlockMarks::Braces;
    if let Some(item) = item.filter(|_| indentation < 4 && !is_comment) {
        return (item.trim_start(), Mark::Item);
    }
    match line.strip_prefix("**") {
        Some(bold) if bold.contains("**") => (line, Mark::Bold),
        _ => (line, Mark::None),
    }
}

/// Returns a line in which a word replaces each code span.
fn without_spans(line: &str) -> String {
    let mut parts = line.split('`');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut is_inside = true;
    for part in parts {
        if !is_inside {
            text += "code";
            text += part;
        }
        is_inside = !is_inside;
    }
    text
}

/// Returns true for Chinese, Japanese and Korean characters, whose sentences have no spaces.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Returns true for emoji and arrows.
fn is_symbol(c: char) -> bool {
    matches!(
        c,
        '\u{200d}' | '\u{20e3}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
            | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{fe0f}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// Removes sentences before the code, and sentences after its last line. A text of sentences alone has no code.
pub(in super::super) fn without_sentences<'a>(hole: &HoleContext<'_>, text: &'a str) -> &'a str {
    if is_text_hole(hole) {
        return text;
    }
    let language = hole.language;
    let text = behind_introduction(hole, text);
    let end = explanation_start(text, language);
    if end == text.len() { text } else { text[..end].trim_end_matches(['\n', '\r']) }
}

fn behind_introduction<'a>(hole: &HoleContext<'_>, text: &'a str) -> &'a str {
    let language = hole.language;
    let (mut start, mut speaks) = (0, false);
    for line in line_ranges(text) {
        let content = text[line.clone()].trim_end();
        // Blank lines are removed only after a sentence, because code may begin with one.
        let is_introduction = if content.is_empty() {
            speaks
        } else {
            is_sentence(content, language) && !is_comment(content, &text[line.end..], language)
        };
        if is_introduction {
            (start, speaks) = (line.end, true);
            continue;
        }
        if !speaks && content.is_empty() {
            continue;
        }
        return behind_label(hole, &text[start..]);
    }
    &text[start..]
}

/// Returns true if a heading may be a comment: it is not a label, and no sentence follows.
fn is_comment(line: &str, behind: &str, language: Language) -> bool {
    let (title, mark) = without_mark(line, language);
    let word = title.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let next = behind.lines().find(|line| !strip(line).is_empty());
    language.comment() == "#"
        && mark == Mark::Heading
        && !LABELS.contains(&&*word)
        && !next.is_some_and(|next| !next.starts_with('#') && is_sentence(next, language))
}

/// Returns the code after a sentence and a colon in one line: `The line is: return a`.
fn behind_label<'a>(hole: &HoleContext<'_>, text: &'a str) -> &'a str {
    let line = text.split('\n').next().unwrap_or_default();
    let Some((label, code)) = line.split_once(": ") else { return text };
    let words = label.split_whitespace().count();
    let is_known = |word: &str| {
        matches!(word, "Answer" | "Assistant" | "Code" | "Completion" | "Output" | "Solution")
    };
    let is_label = match words {
        1 => is_known(label) && !may_be_key(hole.known_left(), code),
        _ => {
            label.starts_with(char::is_uppercase)
                && is_sentence(&format!("{label}:"), hole.language)
        }
    };
    if !is_label || strip(code).is_empty() { text } else { &text[label.len() + 2..] }
}

/// Returns true if a word and a colon before code may be a key or a field: a line or a bracket is open, a field is in the line
/// above, or the code is a type or ends with a comma.
fn may_be_key(left: &str, code: &str) -> bool {
    let unfinished = unfinished_line(left);
    let above = left.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '?'));
    let is_field = above.split_once(": ").is_some_and(|(name, _)| is_name(name));
    let first = code.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let behind = &code[first.len()..];
    !strip(unfinished).is_empty()
        || above.ends_with(['{', '(', '[', ','])
        || is_field
        || TYPES.contains(&first) && !behind.starts_with(['(', '.'])
        || code.trim_end().ends_with(',')
}

/// Returns the position after which only sentences follow.
fn explanation_start(text: &str, language: Language) -> usize {
    let lines: Vec<_> = line_ranges(text).collect();
    let content = |number: usize| text[lines[number].clone()].trim_end();
    let is_blank = |number: usize| content(number).is_empty();
    let mut start = lines.len();
    let mut number = lines.len();
    while number > 0 {
        number -= 1;
        if is_blank(number) {
            continue;
        }
        // A paragraph counts as sentences if its first line is one.
        let last = number;
        while number > 0 && !is_blank(number - 1) {
            number -= 1;
        }
        let is_explanation = is_sentence(content(number), language)
            && !is_comment(content(number), &text[lines[number].end..], language);
        if is_explanation {
            start = number;
            continue;
        }
        // Sentences directly below the code.
        let is_whole = |line: &usize| {
            is_sentence(content(*line), language)
                && content(*line)
                    .trim_end_matches(|c: char| is_symbol(c) || c.is_whitespace())
                    .ends_with(|c| ENDS.contains(&c) || c == ':')
        };
        let below = (number + 1..=last).rev().take_while(is_whole).last();
        start = below.unwrap_or(start);
        break;
    }
    let start = lines.get(start).map_or(text.len(), |line| line.start);
    // An answer may end within a string or a comment.
    if is_text(&text[..start], language) { text.len() } else { start }
}
