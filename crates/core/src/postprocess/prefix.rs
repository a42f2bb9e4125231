//! Prefixes of a prediction that parse after its left context.

use std::cell::RefCell;
use std::sync::mpsc;

use repoformer_text::language::syntax::preorder;
use repoformer_text::language::{Language, Parser};
use repoformer_text::lines::{strip, unfinished_line};
use tree_sitter::{InputEdit, Point, Tree};

use super::unclosed::UnclosedEnds;

/// Maximum work of all parses of a prediction together, which takes about two seconds. For each byte of the text, some more
/// work is allowed, since the first parse reads the whole text. After the maximum is reached, parses return no tree.
///
/// For 895 predictions with the functions of the sample tasks, whole, cut off and with syntax errors, finding the longest
/// prefix took at most 4.8 million units of work (99th percentile: 1.4 million, median: 0.1 million).
const MOST_WORK: u64 = 5_000_000;
const MOST_WORK_OF_BYTE: u64 = 64;

/// Prefixes of a Python text that are parsed one after another. If the left context begins with whole statements without an error, only
/// the text after them is parsed: a statement may follow any other.
pub(super) struct Prefixes {
    text: String,
    /// Start of the prediction in the text.
    start: usize,
    parser: Option<Parser>,
    /// Work left for parses.
    work_left: u64,
    /// Trees of text that many prefixes share, without any error, and the lengths of this text in ascending order. A tree with
    /// errors is never reused: a tree built on it can keep an error that a parse from the start would not have.
    shared: Vec<(Tree, usize)>,
    /// Start of the earliest line above which sharing was tried.
    tried: Option<usize>,
}

/// Parsed beginning of a left context.
struct ParsedBeginning {
    text: String,
    /// Whether it parses without an error.
    is_whole: bool,
    /// Work of the parse.
    work: u64,
}

thread_local! {
    /// Beginning that was parsed last: samples of a task are cut one after another, and have the same left context.
    static LAST: RefCell<Option<ParsedBeginning>> = const { RefCell::new(None) };
}

impl Prefixes {
    pub(super) fn new(left_context: &str, prediction: &str) -> Self {
        let mut prefixes = Self {
            shared: Vec::new(),
            tried: None,
            start: left_context.len(),
            parser: Parser::new(Language::Python),
            work_left: MOST_WORK
                + MOST_WORK_OF_BYTE * (left_context.len() + prediction.len()) as u64,
            text: String::new(),
        };
        let beginning = &left_context[..last_statement(left_context)];
        let left = if prefixes.is_whole(beginning) {
            &left_context[beginning.len()..]
        } else {
            left_context
        };
        prefixes.start = left.len();
        prefixes.text = format!("{left}{prediction}");
        prefixes
    }

    /// Returns the start of the prediction in the text.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Returns true if the beginning of a left context parses without an error. It is parsed once for all samples of a task; each sample
    /// is charged for it, so that its cut is the same without the other samples.
    fn is_whole(&mut self, beginning: &str) -> bool {
        LAST.with_borrow_mut(|last| {
            if let Some(last) = last.as_ref().filter(|last| last.text == beginning) {
                self.work_left = self.work_left.saturating_sub(last.work);
                return last.is_whole;
            }
            let Some(parser) = &mut self.parser else { return false };
            let tree = parser.parse(beginning, "", None);
            let work = parser.work.total();
            self.work_left = self.work_left.saturating_sub(work);
            let is_whole = tree.is_some_and(|tree| !tree.root_node().has_error());
            *last = Some(ParsedBeginning { text: beginning.to_owned(), is_whole, work });
            is_whole
        })
    }

    /// Shares the text above the line in which the prediction begins.
    pub(super) fn share_context(&mut self) {
        let left = &self.text[..self.start];
        self.share(left.len() - unfinished_line(left).len());
    }

    /// Shares the text above the line in which a prefix ends, unless this was tried for this line or an earlier one. Prefixes
    /// that end in the same line are then parsed from there.
    fn share_line(&mut self, end: usize) {
        let line = end - unfinished_line(&self.text[..end]).len();
        if line > self.start && self.tried.is_none_or(|tried| line < tried) {
            self.tried = Some(line);
            self.share(line);
        }
    }

    /// Parses the whole prediction, which does not parse without an error, and returns where shorter prefixes may.
    ///
    /// The parser reads all prefixes alike up to near their ends, and its log shows how many ways to read the text remain. If no
    /// way remains without an error, and the parser adds no missing token there, every longer prefix has an error too; likewise
    /// if only one way remains after an error node.
    pub(super) fn bounds(&mut self) -> PrefixBounds {
        let all = self.text.len() - self.start;
        let mut bounds = PrefixBounds { limit: all, first_error: 0 };
        let (sender, messages) = mpsc::channel();
        let Some(parser) = &mut self.parser else {
            return bounds;
        };
        parser.set_logger(Some(Box::new(move |_, message| {
            if let Some(message) = LogMessage::read(message) {
                let _ = sender.send(message); // the receiver outlives the parse
            }
        })));
        let tree = self.parse(self.text.len());
        if let Some(parser) = &mut self.parser {
            parser.set_logger(None);
        }
        let Some(error) = tree.as_ref().and_then(first_error) else {
            return bounds;
        };
        let messages: Vec<LogMessage> = messages.try_iter().collect();
        let recovery = messages.iter().position(|message| *message == LogMessage::Recovery);
        let (before, after) = messages.split_at(recovery.unwrap_or(messages.len()));
        let reached = last_errors(before).min().and_then(|place| self.byte(place));
        bounds.first_error = reached.unwrap_or(0).saturating_sub(self.start).min(all);
        // White space and comments after an error may later be moved out of it, and the parser looks ahead over them.
        let limit = self.behind_code(error).and_then(|behind| {
            let behind = point(&self.text[..behind]);
            let place = after.iter().find_map(|message| match message {
                LogMessage::Place { place, versions: 1 } if *place >= behind => Some(place),
                _ => None,
            })?;
            self.behind_code(self.line_start(place.row)?)
        });
        let limit = limit.into_iter().chain(self.certain_limit(before, after)).min();
        bounds.limit = limit.map_or(all, |limit| limit.saturating_sub(self.start).min(all));
        bounds
    }

    /// Returns places in the text before which a bracket or a string is open, so that the prefixes up to them do not parse: the
    /// parser adds neither brackets nor quotes at the end of a text without an error before it.
    pub(super) fn unclosed_ends(&self, bounds: PrefixBounds) -> UnclosedEnds {
        let start = self.shared.last().map_or(0, |(_, length)| *length);
        let end = self.start + bounds.first_error;
        UnclosedEnds::new(&self.text, start, self.start, end)
    }

    /// Returns the place in the text behind which every prefix ends with an error, if the parser's log before and after its first
    /// recovery shows it: all ways to read the text ended in an error, and the parser added no missing token.
    fn certain_limit(&self, before: &[LogMessage], after: &[LogMessage]) -> Option<usize> {
        let mut rest = after.iter().skip_while(|message| **message == LogMessage::Recovery);
        let adds =
            rest.find(|message| matches!(message, LogMessage::Missing | LogMessage::Place { .. }));
        if after.is_empty() || adds == Some(&LogMessage::Missing) {
            return None;
        }
        let versions = before.iter().rev().find_map(LogMessage::versions)?;
        if last_errors(before).count() < versions {
            return None;
        }
        let reached = before.iter().filter_map(LogMessage::place).max()?;
        self.behind_token(self.byte(reached)?)
    }

    /// Returns the start of the second word at or after this byte, if both words are in one line and the first contains no quote,
    /// comment or backslash: no token that begins at this byte depends on the text from there.
    fn behind_token(&self, at: usize) -> Option<usize> {
        let line = self.text[at..].split(['\n', '\r', '\x0c']).next()?;
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        let (first, second) = (words.next()?, words.next()?);
        let start = second.as_ptr() as usize - self.text.as_ptr() as usize;
        (!first.contains(['"', '\'', '#', '\\'])).then_some(start)
    }

    /// Returns the end of the first line with code that begins at this byte or later.
    fn behind_code(&self, at: usize) -> Option<usize> {
        let mut end = at + memchr::memchr(b'\n', &self.text.as_bytes()[at..])? + 1;
        loop {
            let line = self.text[end..].split_inclusive('\n').next()?;
            end += line.len();
            if !strip(line).is_empty() && !strip(line).starts_with('#') {
                return line.ends_with('\n').then_some(end);
            }
        }
    }

    /// Returns the start of a row, counted from 0.
    fn line_start(&self, row: usize) -> Option<usize> {
        let newlines = memchr::memchr_iter(b'\n', self.text.as_bytes());
        std::iter::once(0).chain(newlines.map(|newline| newline + 1)).nth(row)
    }

    /// Returns the byte at a place.
    fn byte(&self, place: Point) -> Option<usize> {
        Some(self.line_start(place.row)? + place.column)
    }

    /// Keeps the tree of the text's first bytes, if it has no error.
    fn share(&mut self, end: usize) {
        if let Some(tree) = self.parse(end).filter(|tree| end > 0 && !tree.root_node().has_error())
        {
            let place = self.shared.partition_point(|(_, length)| *length < end);
            self.shared.insert(place, (tree, end));
        }
    }

    /// Returns true if the bound of all parses is reached, so that a longer prefix may exist.
    pub(super) fn are_exceeded(&self) -> bool {
        self.work_left == 0
    }

    /// Returns true if the left context and the whole prediction have no syntax error.
    pub(super) fn parses_whole(&mut self) -> bool {
        self.parse(self.text.len()).is_some_and(|tree| is_valid(&tree))
    }

    /// Returns true if the left context and this many bytes of the prediction have no syntax error. Tokens that the parser had
    /// to add are not errors, as in the reference programs.
    pub(super) fn parses(&mut self, length: usize) -> bool {
        self.share_line(self.start + length);
        self.parse(self.start + length).is_some_and(|tree| is_valid(&tree))
    }

    /// Parses the text's first bytes.
    fn parse(&mut self, end: usize) -> Option<Tree> {
        let shared = self.shared.iter().rev().find(|(_, length)| *length <= end);
        let old = shared.map(|(tree, length)| {
            let mut tree = tree.clone();
            tree.edit(&InputEdit {
                start_byte: *length,
                old_end_byte: *length,
                new_end_byte: end,
                start_position: point(&self.text[..*length]),
                old_end_position: point(&self.text[..*length]),
                new_end_position: point(&self.text[..end]),
            });
            tree
        });
        let parser = self.parser.as_mut().filter(|_| self.work_left > 0)?;
        let tree = parser.parse(&self.text[..end], "", old.as_ref());
        self.work_left = self.work_left.saturating_sub(parser.work.total());
        tree
    }
}

/// Bounds of the prefixes that parse.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrefixBounds {
    /// Number of bytes of the prediction after which no longer prefix parses.
    pub(super) limit: usize,
    /// Number of bytes of the prediction before which the parser finds no error.
    pub(super) first_error: usize,
}

/// Message of the parser's log.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LogMessage {
    /// Place that is reached, and the number of ways to read the text that remain.
    Place { place: Point, versions: usize },
    /// The next token does not fit the way to read the text that was followed last.
    Error,
    /// No way remains to read the text without an error.
    Recovery,
    /// The parser adds a token that is missing.
    Missing,
}

impl LogMessage {
    fn place(&self) -> Option<Point> {
        if let Self::Place { place, .. } = self { Some(*place) } else { None }
    }

    fn versions(&self) -> Option<usize> {
        if let Self::Place { versions, .. } = self { Some(*versions) } else { None }
    }

    fn read(message: &str) -> Option<Self> {
        if message.starts_with("detect_error") {
            return Some(Self::Error);
        }
        if message.starts_with("resume version") {
            return Some(Self::Recovery);
        }
        if message.starts_with("recover_with_missing") {
            return Some(Self::Missing);
        }
        let (_, rest) = message.strip_prefix("process ")?.split_once(" version_count:")?;
        let versions = rest.split_once(',')?.0.parse().ok()?;
        let (row, column) = rest.split_once("row:")?.1.split_once(", col:")?;
        let place = Point { row: row.parse().ok()?, column: column.parse().ok()? };
        Some(Self::Place { place, versions })
    }
}

/// Returns the places of the errors at the end of the log.
fn last_errors(log: &[LogMessage]) -> impl Iterator<Item = Point> {
    log.rchunks(2).map_while(|pair| match pair {
        [LogMessage::Place { place, .. }, LogMessage::Error] => Some(*place),
        _ => None,
    })
}

/// Returns the end of the error node that ends first.
fn first_error(tree: &Tree) -> Option<usize> {
    let mut first: Option<usize> = None;
    preorder(tree, |node, _| {
        if node.is_error() {
            first = Some(first.map_or(node.end_byte(), |end| end.min(node.end_byte())));
        }
        node.has_error()
    });
    first
}

/// Returns the start of the last line that probably begins a statement: it begins with a letter, `_` or `@` but not with a word that
/// continues a statement, and is not decorated or continued from the line before. Returns 0 if there is none after the first line.
fn last_statement(text: &str) -> usize {
    let mut starts = memchr::memrchr_iter(b'\n', text.as_bytes()).map(|newline| newline + 1);
    let begins = |start: &usize| {
        let (before, rest) = text.split_at(*start);
        let line = before[..start - 1].rsplit('\n').next().unwrap_or_default();
        let is_apart = !line.starts_with('@') && !line.trim_end_matches('\r').ends_with('\\');
        let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        let first = rest.chars().next();
        is_apart
            && first.is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '@'))
            && !CONTINUING.contains(&&rest[..end])
    };
    starts.find(begins).unwrap_or(0)
}

/// Words that continue a statement.
const CONTINUING: [&str; 4] = ["elif", "else", "except", "finally"];

fn point(text: &str) -> Point {
    let bytes = text.as_bytes();
    let line_start = memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
    Point { row: memchr::memchr_iter(b'\n', bytes).count(), column: bytes.len() - line_start }
}

/// Returns true if no node is an error.
pub(super) fn is_valid(tree: &Tree) -> bool {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() {
            return false;
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::slow_parses;
    use super::*;

    #[test]
    fn prefixes_in_any_order() {
        let lefts = [
            "def f(x):\n    ",
            "import a\n\n\nclass A:\n    x = 1\n\n    def f(x):\n        ",
            "import a\nx = [\n    1,\n]\ny = f(\n    ",
            "in the middle of a text.\n\"\"\"\nimport a\n\ndef f(x):\n    ",
            "s = \"\"\"\nnot code\nx\n\"\"\"\nt = ",
            "@a\n@b(1)\ndef f(x):\n    if x:\n        ",
            "if x:\n    a = 1\nelse:\n    ",
            "try:\n    a = 1\nexcept E:\n    b = 2\nfinally:\n    ",
            "",
        ];
        let text = "return (x +\n        1)\ny = 2\n)\nelse:\n  '''a\n'''\ndef g(): pass\n  z";
        for left in lefts {
            let mut all = [Prefixes::new(left, text), Prefixes::new(left, text)];
            all[1].share_context();
            for step in 0..=text.len() {
                let length = step * 7 % (text.len() + 1);
                let wanted = slow_parses(&format!("{left}{}", &text[..length]));
                for prefixes in &mut all {
                    assert_eq!(prefixes.parses(length), wanted, "{left:?} {length}");
                }
            }
        }
        // An open bracket, a closed bracket, and one bracket too many.
        let mut prefixes = Prefixes::new(lefts[0], text);
        let ends = ["+", ")", "\n)"].map(|end| text.find(end).unwrap() + end.len());
        let found = ends.map(|length| prefixes.parses(length));
        assert_eq!(found, [false, true, false]);
    }

    /// Computed by hand: the error is in the first line, and lines with code follow directly.
    #[test]
    fn a_beginning_is_charged_to_each_sample() {
        let left = format!("{}def f(x):\n    ", "x = [1, 2]\n".repeat(500));
        let of = |left: &str| Prefixes::new(left, "return x\n");
        let (first, broken) = (of(&left), of(&format!("x = )\n{left}")));
        let again = [of(&left), of(&left)];
        for prefixes in &again {
            assert_eq!((prefixes.work_left, &*prefixes.text), (first.work_left, &*first.text));
        }
        assert_eq!(first.text, "def f(x):\n    return x\n");
        assert!(first.work_left < MOST_WORK + MOST_WORK_OF_BYTE * (left.len() as u64));
        assert_eq!(broken.text.len(), 6 + left.len() + "return x\n".len());
    }

    #[test]
    fn statements_begin_where_nothing_continues() {
        for (text, start) in [
            ("a = 1\nb = 2\n  c", 6),
            ("if a:\n  b\nelse:\n  c", 0),
            ("a\nif a:\n  b\nelif c:\n  d\nexcept_ = 1", 24),
            ("a\n@b\n@c(1)\ndef d():\n  e", 2),
            ("a\nb = \\\nc", 2),
            ("a\nb = \\\r\nc", 2),
            ("a", 0),
        ] {
            assert_eq!(last_statement(text), start, "{text:?}");
        }
    }

    #[test]
    fn an_early_error_limits_the_prefixes() {
        let text = format!("return x = ) else (\n{}", "    y = 1\n".repeat(50));
        // The parser stops at `=`; what follows `)` changes nothing.
        let limit = Prefixes::new("def f(x):\n    ", &text).bounds().limit;
        assert_eq!(&text[..limit], "return x = ");
        // Without a second word in the line, the limit is behind further lines with code.
        let text = text.replacen("= ) else (", "=)", 1);
        let limit = Prefixes::new("def f(x):\n    ", &text).bounds().limit;
        assert!((15..100).contains(&limit), "{limit}");
        let whole = "return x\n";
        assert_eq!(Prefixes::new("def f(x):\n    ", whole).bounds().limit, whole.len());
    }

    #[test]
    fn all_prefixes_together_have_a_bound() {
        for unit in ["a?b:", "a()", "(", "\"\"\"x "] {
            let text = unit.repeat(4_000 / unit.len());
            let mut prefixes = Prefixes::new("def f(x):\n    ", &text);
            prefixes.share_context();
            let parsed = (0..text.len()).rev().take_while(|end| {
                prefixes.parses(*end);
                !prefixes.are_exceeded()
            });
            let parsed = parsed.count();
            assert!((10..2_500).contains(&parsed), "{unit:?}: {parsed} parses");
            assert!(!prefixes.parses(0));
        }
    }

    #[test]
    fn a_deep_text_needs_no_deep_stack() {
        let deep = "(".repeat(200_000);
        let mut prefixes = Prefixes::new("x = ", &deep);
        assert!(!prefixes.parses(deep.len()));
    }
}
