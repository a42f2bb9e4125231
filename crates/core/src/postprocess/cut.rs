//! Cuts by lines, brackets and statements.

use repoformer_text::language::Language;
use repoformer_text::lines::{is_space, strip};

use super::HoleContext;
use super::prefix::Prefixes;
use super::uncut::{Cut, UncutReason};

/// Maximum number of line ends tried as the end of a first statement. No statement that is asked for is longer, and if the left
/// context never parses, every line of a long answer would be tried.
const STATEMENT_LINES: usize = 1_000;

/// Keeps the first non-blank lines, as many as the target has.
///
/// `process_examples` of Repoformer's `eval_metric.py`: lines end with `\n` alone.
pub(super) fn lines(target: &str, prediction: &str) -> String {
    let is_code = |line: &&str| !strip(line).is_empty();
    let count = target.split('\n').filter(is_code).count();
    let kept: Vec<&str> = prediction.split('\n').filter(is_code).take(count).collect();
    kept.join("\n")
}

/// Keeps the first line that is neither blank nor a comment; the first line if there is no such line.
///
/// This is RepoBench's `get_first_line_not_comment`, including its treatment of docstrings and block comments: one that ends on
/// its first line continues until another one ends.
pub(super) fn first_line(prediction: &str, language: Language) -> &str {
    let spec = language.spec();
    let prediction = prediction.trim_start_matches('\n');
    let mut within = false;
    for line in prediction.split('\n') {
        let text = strip(line);
        if text.is_empty() {
        } else if !within && spec.comment_begins.iter().any(|sign| text.starts_with(sign)) {
            within = true;
        } else if within {
            within = !spec.comment_ends.iter().any(|sign| text.ends_with(sign));
        } else if !text.starts_with(spec.comment) {
            return line;
        }
    }
    prediction.split('\n').next().unwrap_or_default()
}

/// Keeps the text up to and including the first of `; { }`; the whole text if there is none or, as in the program, if the first
/// character is one.
///
/// `get_bracket_lang_statement` of CrossCodeEval's `eval_utils.py`.
pub(super) fn bracket(prediction: &str) -> &str {
    match prediction.find([';', '{', '}']) {
        None | Some(0) => prediction,
        Some(at) => &prediction[..=at],
    }
}

/// Keeps the shortest run of whole lines that has no syntax error after the left context, without trailing white space; the
/// whole text if there is no such run.
///
/// This is `get_python_one_statement` of CrossCodeEval's `eval_utils.py`, which tries every character but can only stop before
/// a line end. The program counts a parse that takes more than five seconds, or a tree too deep for Python, as an error; this
/// function does not.
pub(super) fn first_statement(hole: &HoleContext<'_>, prediction: &str) -> Cut {
    let left_context = hole.left_context;
    let mut prefixes = Prefixes::new(left_context, prediction);
    let ends = memchr::memchr_iter(b'\n', prediction.as_bytes());
    let (mut is_uncut, mut limit) = (false, usize::MAX);
    for (line, end) in ends.filter(|&end| end > 0).take(STATEMENT_LINES).enumerate() {
        if end > limit {
            break;
        }
        if prefixes.parses(end) {
            return Cut::of_prediction(prediction[..end].trim_end_matches(is_space));
        }
        is_uncut |= !strip(&prediction[end..]).is_empty();
        // Most statements are shorter. If the left context never parses, finding the limit takes only one more parse.
        if line == 2 {
            limit = prefixes.bounds().limit;
        }
    }
    // A single line is the statement, whether it parses or not.
    let uncut = is_uncut.then(|| {
        if prefixes.are_exceeded() {
            UncutReason::Bound
        } else {
            UncutReason::from_texts(left_context, hole.target)
        }
    });
    Cut { uncut, ..Cut::of_prediction(prediction) }
}
