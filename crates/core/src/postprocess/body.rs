//! Body of the function that contains the hole: Repoformer's function completion.

use repoformer_text::language::syntax::{Syntax, is_bare_string, is_comment, preorder, walk};
use repoformer_text::language::{BlockMarks, Language};
use repoformer_text::lines::{is_space, strip, unfinished_line};

use super::HoleContext;
use super::context::LeftContext;
use super::prefix::Prefixes;
use super::uncut::{Cut, UncutReason};

/// Version of the rule; a later version may cut predictions that took too much work before.
pub(super) const REVISION: u32 = 4;
/// Maximum number of characters of a prediction that are read. Each may be the end of the longest prefix, within the bound of
/// [`Prefixes`]. A body of 30 lines has a third of this number, and text after a body is dropped anyway.
const MOST_CHARACTERS: usize = 4_000;

/// Cuts target and prediction to the function's body.
///
/// In Python this follows `process_examples` of Repoformer's `eval_metric.py`. First, the prediction is cut to the longest
/// prefix that has no syntax error after the left context. Then both texts are cut to one body: the body whose number is the
/// number of the last function in the left context followed by `pass`. If no prefix parses, the prediction stays whole; if that
/// function does not exist, the prefix stays as it is. If the left context ends with a complete line, the target's indentation
/// is appended to it first; the program's own data has the indentation there.
///
/// In other languages, which the program does not support, the prediction ends before the brace that closes the body. The left
/// context is the whole file before the hole, if it is known.
pub(super) fn function_body(hole: &HoleContext<'_>, prediction: &str) -> Cut {
    if hole.language.spec().layout == BlockMarks::Braces {
        return Cut::of_parsed(prediction, to_closing_brace(hole, prediction));
    }
    let left = SplitContext::new(hole);
    let (target, prediction) = (left.continuation(hole.target), left.continuation(prediction));
    body_after(&LeftContext::shorten(&left.context, target), target, prediction)
}

/// Cuts target and prediction to the body of the last function in the context.
pub(super) fn body_after(left: &LeftContext, target: &str, prediction: &str) -> Cut {
    let context = left.text();
    let parsed = match longest_prefix(context, prediction) {
        Ok(parsed) => parsed,
        Err(unparsed) => {
            let uncut = match unparsed {
                ParseFailure::Bound => UncutReason::Bound,
                ParseFailure::None => UncutReason::from_texts(context, target),
            };
            return Cut { uncut: Some(uncut), ..Cut::of_prediction(prediction) };
        }
    };
    let of_target = left.target_body(target);
    match of_target.number.and_then(|number| body_of(number, &format!("{context}{parsed}"))) {
        Some(cut) => Cut::of_both(of_target.body.clone(), cut),
        None => Cut::of_prediction(parsed),
    }
}

/// Body of the function around a hole, with the target in the hole.
#[derive(Debug, Clone)]
pub(super) struct TargetBody {
    target: String,
    /// Number of bodies up to the hole; `None` if a function has no body.
    number: Option<usize>,
    /// The body, if there is one.
    body: Option<String>,
}

impl TargetBody {
    /// Finds the body after a left context.
    pub(super) fn new(context: &str, target: &str) -> Self {
        let number = bodies(&format!("{context}pass")).map(|bodies| bodies.len());
        let body = number.and_then(|number| body_of(number, &format!("{context}{target}")));
        Self { target: target.to_owned(), number, body }
    }

    /// Returns true if the body is of this target.
    pub(super) fn is_of(&self, target: &str) -> bool {
        self.target == target
    }
}

/// Returns the body with this number, counted from 1. If there is no function before the hole, the program uses number -1: the
/// last.
fn body_of(number: usize, text: &str) -> Option<String> {
    let bodies = bodies(text)?;
    let place = number.checked_sub(1).or_else(|| bodies.len().checked_sub(1))?;
    bodies.into_iter().nth(place)
}

/// Returns true if a hole may be a function's body: in Python, if the target has more than one line.
pub(super) fn may_be_function_body(hole: &HoleContext<'_>) -> bool {
    let code_lines = hole.target.split('\n').filter(|line| !strip(line).is_empty());
    hole.language.spec().layout != BlockMarks::Braces && code_lines.count() >= 2
}

/// Returns true if a hole begins at the start of a function's body (after the docstring, if there is one) and its target has
/// more than one line.
pub fn is_function_body(hole: &HoleContext<'_>) -> bool {
    if !may_be_function_body(hole) {
        return false;
    }
    let left = SplitContext::new(hole).context;
    let text = format!("{left}pass");
    let Some(syntax) = Syntax::parse(&text, Language::Python) else {
        return false;
    };
    let mut is_body = false;
    walk(syntax.tree(), |node, around| {
        if node.kind() == "block"
            && around.last().is_some_and(|parent| parent.kind() == "function_definition")
        {
            let mut cursor = node.walk();
            let mut children = node.children(&mut cursor);
            let first = children.find(|child| !is_comment(*child) && !is_bare_string(*child));
            is_body |= first.is_some_and(|first| first.start_byte() == left.len());
        }
        true
    });
    is_body
}

/// Left context up to a place within the first line of the hole.
struct SplitContext {
    context: String,
    /// Whether the indentation was appended to the context; texts after the context then start without theirs.
    is_lengthened: bool,
}

impl SplitContext {
    fn new(hole: &HoleContext<'_>) -> Self {
        let is_lengthened = unfinished_line(hole.known_left()).is_empty();
        let mut lines = hole.target.split('\n').filter(|_| is_lengthened);
        let first = lines.find(|line| !strip(line).is_empty()).unwrap_or("");
        let indentation = &first[..first.len() - first.trim_start_matches(is_space).len()];
        Self { context: format!("{}{indentation}", hole.known_left()), is_lengthened }
    }

    /// Returns the part of a text that continues after the context.
    fn continuation<'a>(&self, text: &'a str) -> &'a str {
        if self.is_lengthened { text.trim_start_matches(is_space) } else { text }
    }
}

/// Reason why no longest prefix was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParseFailure {
    /// No prefix parses.
    None,
    /// Finding it takes too much work.
    Bound,
}

/// Returns the longest prefix that parses, without trailing white space.
pub(super) fn longest_prefix<'a>(
    left_context: &str,
    prediction: &'a str,
) -> Result<&'a str, ParseFailure> {
    let longest =
        prediction.char_indices().nth(MOST_CHARACTERS).map_or(prediction.len(), |(at, _)| at);
    let mut prefixes = Prefixes::new(left_context, &prediction[..longest]);
    prefixes.share_context();
    if prefixes.parses_whole() {
        return Ok(prediction[..longest].trim_end_matches(is_space));
    }
    let bounds = prefixes.bounds();
    let unclosed = prefixes.unclosed_ends(bounds);
    let ends = prediction[..longest].char_indices().map(|(at, _)| at);
    let mut refused = None;
    let end = ends.rev().filter(|&end| end <= bounds.limit).find(|&end| {
        let last = last_token(left_context, &prediction[..end]);
        if last.is_some() && last == refused {
            return false;
        }
        let is_parsed = !unclosed.has(prefixes.start() + end) && prefixes.parses(end);
        refused = last.or(refused);
        is_parsed
    });
    match end {
        Some(end) => Ok(prediction[..end].trim_end_matches(is_space)),
        None if prefixes.are_exceeded() => Err(ParseFailure::Bound),
        None => Err(ParseFailure::None),
    }
}

/// Last token of a prefix that parses like each shorter prefix with the same last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastToken {
    /// Name that begins here.
    Name(usize),
    /// White space that begins here, with or without an end of line.
    Space(usize, bool),
}

/// Words that are not names everywhere, and those with which only some statements of Python 2 begin.
pub(super) const WORDS: [&str; 42] = [
    "False", "None", "True", "__future__", "_", "and", "as", "assert", "async", "await", "break",
    "case", "class", "continue", "def", "del", "elif", "else", "except", "exec", "finally", "for",
    "from", "global", "if", "import", "in", "is", "lambda", "match", "nonlocal", "not", "or",
    "pass", "print", "raise", "return", "try", "type", "while", "with", "yield",
];

/// Returns the last token of a prefix; `None` if it may be read in another way than a shorter one, like the end of a keyword or
/// of a number.
fn last_token(left_context: &str, prefix: &str) -> Option<LastToken> {
    let rest = prefix.trim_end_matches([' ', '\n']);
    if rest.len() < prefix.len() {
        let before = if rest.is_empty() { left_context } else { rest };
        let space = LastToken::Space(rest.len(), prefix[rest.len()..].contains('\n'));
        return (!before.ends_with('\\')).then_some(space);
    }
    let start = prefix.trim_end_matches(|c: char| c == '_' || c.is_ascii_alphanumeric()).len();
    let name = &prefix[start..];
    let is_name = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    let before = prefix[..start].chars().next_back().or_else(|| left_context.chars().next_back());
    // Escapes, numbers such as `1.e5`, conversions such as `!r`, and names with other letters.
    let is_apart = before.is_none_or(|c| {
        c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '\\' | '.' | '!' | '_')
    });
    (is_name && is_apart && !WORDS.contains(&name)).then_some(LastToken::Name(start))
}

/// Returns the bodies of the functions, each before the bodies inside it; `None` if a function has no body.
fn bodies(text: &str) -> Option<Vec<String>> {
    let syntax = Syntax::parse(text, Language::Python)?;
    let (mut found, mut whole) = (Vec::new(), true);
    preorder(syntax.tree(), |node, _| {
        if node.kind() == "function_definition" {
            let last = node.child_count().checked_sub(1).and_then(|last| node.child(last));
            match last.filter(|last| last.kind() == "block") {
                Some(block) => found.push(syntax.of(block).to_owned()),
                None => whole = false,
            }
        }
        whole
    });
    whole.then_some(found)
}

/// Returns the prediction up to the brace that closes the block around the hole; `None` if the prediction cannot be parsed
/// within bounds.
fn to_closing_brace<'a>(hole: &HoleContext<'_>, prediction: &'a str) -> Option<&'a str> {
    let left = hole.known_left();
    let text = format!("{left}{prediction}");
    let syntax = Syntax::parse(&text, hole.language)?;
    let start = left.len();
    let (mut depth, mut end) = (0usize, None);
    preorder(syntax.tree(), |node, _| {
        if end.is_none()
            && node.child_count() == 0
            && node.start_byte() >= start
            && !node.is_missing()
        {
            match node.kind() {
                "{" | "${" => depth += 1,
                "}" if depth == 0 => end = Some(node.start_byte() - start),
                "}" => depth -= 1,
                _ => {}
            }
        }
        end.is_none()
    });
    let kept = end.and_then(|end| prediction.get(..end)).unwrap_or(prediction);
    Some(kept.trim_end_matches(is_space))
}
