//! Parsing with limits: the cost of parsing any text grows in proportion to its length.

use std::cell::Cell;
use std::ops::ControlFlow;

use foldhash::HashSet;
use tree_sitter::{LogType, ParseOptions, ParseState, Point, Tree};

use super::stack_nodes::Counts;
use super::{Grammar, Language};

/// Greatest work of a parse, for each byte of its text plus [`SPARE`] bytes.
///
/// Measured on 21,000 files of six languages, each whole and cut at three places. The greatest values were 4.5 operations
/// (99.9th percentile: 2.7), 3.3 allocations (2.4), 36 bytes read (13), and 1.8 blocks (1.0), which is 172 bytes of memory.
const MOST: ParseWork = ParseWork { operations: 48, allocations: 48, bytes: 400, blocks: 20 };
/// Bytes added to the length of a text when its limits are computed.
const SPARE: u64 = 4096;
/// Greatest number of nodes on the stack. The library recurses to this depth, and may look at all nodes for each token. The
/// measured files had at most 723 (99.9th percentile: 440 in TypeScript, 121 in the other languages).
const MOST_STACK: u64 = 8192;
/// Greatest number of nodes on the stack after a syntax error: at each further error, the library looks at all of them.
const MOST_WITH_ERRORS: u64 = 1024;
/// Greatest number of nodes on the stack at the end of a text. There the library copies each path through the stack: 4,000
/// nodes took 100 MB, and memory grows with the square. The measured files had at most 722 (99.9th percentile: 444 in
/// TypeScript, 111 in the other languages).
const MOST_AT_END: u64 = 4096;
/// Bytes handed out at once; repeated reads are counted only in whole pieces.
const PIECE: usize = 64;
/// Text that the library reads after the budget is used up. Any token ends in this text, so that the library soon asks whether
/// to continue. It never reaches the end of the text, at which it would copy its stack.
const REST: &[u8] = b"\0\n*/;\"'`\n-->\n{<\"\"\"'''\n";
/// Number of bytes of this text after which the text ends after all.
const MOST_REST: u64 = 1 << 20;
/// Operations between two callbacks in which the library asks whether to continue.
const STEP: u64 = 100;
/// Greatest number of indentation widths in a Python text. The grammar's scanner saves the open indentations (2 bytes each) and
/// up to 255 open strings into 1,024 bytes. If an odd number of strings is open, it writes past the end of this buffer and
/// aborts the process.
const MOST_INDENTS: usize = 380;

/// Work of a parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParseWork {
    /// Steps of the parser: a token or a reduction, in one of the possible readings of the text.
    pub(crate) operations: u64,
    /// Allocated blocks of memory, most of them nodes: one operation may try thousands of reductions.
    pub(crate) allocations: u64,
    /// Bytes handed to the lexer, which reads some of them repeatedly.
    pub(crate) bytes: u64,
    /// Largest number of blocks held at the same time.
    pub(crate) blocks: u64,
}

impl ParseWork {
    /// Returns the sum of operations, allocations and bytes, which take about the same time each.
    pub fn total(&self) -> u64 {
        self.operations + self.allocations + self.bytes
    }

    /// Returns the greatest work allowed for a text.
    fn most(length: usize) -> Self {
        let length = length as u64 + SPARE;
        Self {
            operations: MOST.operations * length,
            allocations: MOST.allocations * length,
            bytes: MOST.bytes * length,
            blocks: MOST.blocks * length,
        }
    }

    fn exceeds(&self, most: &Self) -> bool {
        self.operations > most.operations
            || self.allocations > most.allocations
            || self.bytes > most.bytes
            || self.blocks > most.blocks
    }
}

/// Receiver of a parser's log.
pub(crate) type Logger = Box<dyn FnMut(LogType, &str) + Send>;

/// Parser of a grammar. No other type calls tree-sitter's parser.
pub struct Parser {
    parser: tree_sitter::Parser,
    grammar: Grammar,
    /// Work of the last parse.
    pub work: ParseWork,
}

impl Parser {
    /// Creates a parser; `None` if the library cannot read the grammar.
    pub fn new(grammar: impl Into<Grammar>) -> Option<Self> {
        let grammar = grammar.into();
        let _counts = Counts::start();
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&grammar.tables()).ok()?;
        Some(Self { parser, grammar, work: ParseWork::default() })
    }

    /// Sets the receiver of the parser's log; `None` removes it.
    pub fn set_logger(&mut self, logger: Option<Logger>) {
        self.parser.set_logger(logger);
    }

    /// Parses a text followed by `end`, and reuses the unchanged parts of `old`. Returns `None` if the text is too long for a
    /// tree's addresses, or if parsing exceeds the limits for its length.
    pub fn parse(&mut self, text: &str, end: &'static str, old: Option<&Tree>) -> Option<Tree> {
        u32::try_from(text.len() as u64 + MOST_REST).ok()?;
        if self.grammar.language() == Language::Python && indents(text) > MOST_INDENTS {
            self.work = ParseWork::default();
            return None;
        }
        let counts = Counts::start();
        let most = ParseWork::most(text.len());
        let work = Cell::new(ParseWork::default());
        let (is_over, rest) = (Cell::new(false), Cell::new(0));
        let mut read = |at: usize, _: Point| {
            if !is_over.get() {
                let piece = piece(text, end, at);
                work.set(ParseWork { bytes: work.get().bytes + piece.len() as u64, ..work.get() });
                let is_at_end = piece.is_empty();
                let is_high = is_at_end && is_high(counts.stack_nodes(), text, self.grammar);
                is_over.set(is_high || work.get().exceeds(&most));
                if !is_over.get() {
                    return piece;
                }
            }
            rest.set(rest.get() + REST.len() as u64);
            if rest.get() > MOST_REST { b"" } else { &REST[at % REST.len()..] }
        };
        let mut go_on = |state: &ParseState| {
            let ParseWork { operations, allocations: _, bytes, blocks } = work.get();
            let (operations, allocations) = (operations + STEP, counts.allocations());
            let blocks = blocks.max(counts.blocks());
            work.set(ParseWork { operations, allocations, bytes, blocks });
            let most_nodes = if state.has_error() { MOST_WITH_ERRORS } else { MOST_STACK };
            let is_high = counts.stack_nodes() > most_nodes;
            is_over.set(is_over.get() || is_high || work.get().exceeds(&most));
            if is_over.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut go_on);
        let tree = self.parser.parse_with_options(&mut read, old, Some(options));
        self.work = ParseWork { allocations: counts.allocations(), ..work.get() };
        if is_over.get() {
            self.parser.reset();
        }
        tree.filter(|_| !is_over.get())
    }
}

/// Returns the bytes from a position to the end of its piece, which is also the end of a character.
fn piece<'t>(text: &'t str, end: &'static str, at: usize) -> &'t [u8] {
    let Some(length) = text.len().checked_sub(at) else { return b"" };
    if length == 0 {
        return end.as_bytes();
    }
    let to = text.len().min((at / PIECE + 1) * PIECE);
    &text.as_bytes()[at..text.ceil_char_boundary(to)]
}

/// Returns the number of indentation widths in a Python text, which is at least the number of indentations that can be open at
/// once, since each open one is wider than the one before. Widths are counted as the grammar's scanner does: in 16 bits, and
/// across lines that a backslash joins.
fn indents(text: &str) -> usize {
    let mut widths: HashSet<u16> = HashSet::default();
    // Width of the line alone, and width including the lines that are joined to it.
    let (mut own, mut joined) = (0_u16, 0_u16);
    let (mut is_indent, mut is_escaped) = (true, false);
    for byte in text.bytes() {
        let was_escaped = std::mem::replace(&mut is_escaped, byte == b'\\');
        match byte {
            b'\n' => {
                if !(is_indent && was_escaped) {
                    joined = 0;
                }
                (own, is_indent) = (0, true);
            }
            b'\r' if was_escaped => is_escaped = true,
            _ if !is_indent || byte == b'\\' => {}
            b' ' => (own, joined) = (own.wrapping_add(1), joined.wrapping_add(1)),
            b'\t' => (own, joined) = (own.wrapping_add(8), joined.wrapping_add(8)),
            b'\r' | b'\x0c' => (own, joined) = (0, 0),
            _ => {
                widths.extend([own, joined]);
                is_indent = false;
            }
        }
    }
    widths.len()
}

/// Returns true if the stack at the end of a text is so high that its copies take too much memory. Comments after the last
/// token are also on the stack, but there is only one way to read them.
fn is_high(nodes: u64, text: &str, grammar: Grammar) -> bool {
    if nodes <= MOST_AT_END {
        return false;
    }
    let sign = grammar.language().spec().comment;
    let lines = text.lines().rev().map(str::trim_start);
    let comments = lines.take_while(|line| line.is_empty() || line.starts_with(sign)).count();
    nodes.saturating_sub(comments as u64).saturating_mul(nodes) > MOST_AT_END * MOST_AT_END
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that, when repeated, make the library's work or memory grow with the square of the length.
    const SQUARES: [(Language, &str); 14] = [
        (Language::Python, "\\\n"),
        (Language::Python, "f("),
        (Language::TypeScript, "/["),
        (Language::TypeScript, "}a=>"),
        (Language::JavaScript, "/["),
        (Language::JavaScript, "f{"),
        (Language::Java, "x=>"),
        (Language::Java, "class H {\n"),
        (Language::Java, "if(a)instanceof ->"),
        (Language::CSharp, "f{"),
        (Language::CSharp, "class A {as &"),
        (Language::CSharp, "$\"{var"),
        (Language::Go, "&#*/else"),
        (Language::Go, "'<-|"),
    ];

    fn parse(language: Language, text: &str) -> (bool, ParseWork) {
        let mut parser = Parser::new(language).unwrap();
        let is_parsed = parser.parse(text, "", None).is_some();
        (is_parsed, parser.work)
    }

    #[test]
    fn work_stays_within_its_bound_whatever_the_text_holds() {
        for (language, part) in SQUARES {
            for length in [10_000, 100_000] {
                let text = part.repeat(length / part.len());
                let (_, work) = parse(language, &text);
                let most = ParseWork::most(text.len());
                // The library may do this much work before it asks again.
                assert!(work.operations <= most.operations + STEP, "{language} {part:?} {work:?}");
                assert!(work.bytes <= most.bytes + PIECE as u64, "{language} {part:?} {work:?}");
                assert!(work.allocations <= 2 * most.allocations, "{language} {part:?} {work:?}");
                assert!(work.blocks <= 2 * most.blocks, "{language} {part:?} {work:?}");
            }
        }
    }

    /// 511 widths and an open string aborted the process.
    #[test]
    fn more_indentations_than_the_scanner_saves_are_refused() {
        let nested = |depth: usize, open: &str| -> String {
            let lines = (0..depth).map(|width| format!("{}if a:\n", " ".repeat(width)));
            lines.collect::<String>() + &format!("{}{open}\n", " ".repeat(depth))
        };
        assert!(parse(Language::Python, &nested(MOST_INDENTS - 1, "x = \"abc\"")).0);
        let strings = "f\"{".repeat(255);
        parse(Language::Python, &nested(MOST_INDENTS - 1, &strings));
        for depth in [MOST_INDENTS, 511, 3_000] {
            assert!(!parse(Language::Python, &nested(depth, "x = \"abc\"")).0, "{depth}");
        }
    }

    #[test]
    fn indentations_are_counted_across_joined_lines() {
        assert_eq!(indents("a\n  b\n  c\n\td\n"), 3);
        // No blank, then the last line's three blanks, which are six together with the blanks of the joined lines.
        assert_eq!(indents("x\n \\\n  \\\r\n   y"), 3);
        assert_eq!(indents("x\n \\\n  \\\n   y\n \\\n  z"), 4);
        assert_eq!(indents("x = 1 \\\n  y"), 2);
        assert_eq!(indents(&format!("x\n{}y\n z", " ".repeat(65_537))), 2);
    }

    /// By hand: stack nodes for open brackets, and for comments, one per token.
    #[test]
    fn a_high_stack_is_seen_and_comments_on_it_are_not_counted() {
        let language = Language::Python;
        assert!(parse(language, &"(".repeat(4_000)).0);
        assert!(
            !parse(language, &"(".repeat(4_200)).0,
            "the library's stack nodes have another size"
        );
        assert!(parse(language, &"# x\n".repeat(8_000)).0);
        for count in [4_200, 9_000] {
            let closed = format!("{}{}\n", "(".repeat(count), ")".repeat(count));
            assert_eq!(parse(language, &closed).0, count < MOST_STACK as usize, "{count}");
        }
    }

    /// The first line is an error, and each further line stays on the stack.
    #[test]
    fn a_stack_is_lower_where_errors_are() {
        let language = Language::Python;
        let parses = |line: &str| {
            let text = format!("x = )\n{}", line.repeat(5_000));
            [parse(language, &text[6..]).0, parse(language, &text).0]
        };
        assert_eq!(parses("# x\n"), [true, false]);
        assert_eq!(parses("x = 1\n"), [true, true]);
    }

    /// A tree can be deep although the stack is low.
    #[test]
    fn deep_trees_are_parsed_and_dropped() {
        for language in Language::ALL {
            let text = format!("x = {}a;\n", "a + ".repeat(100_000));
            assert!(parse(language, &text).0, "{language}");
        }
    }

    #[test]
    fn pieces_end_with_characters() {
        let text = format!("x = \"{}\"\n", "\u{e9}\u{1d11e}a".repeat(100));
        let mut at = 0;
        while at < text.len() {
            let piece = piece(&text, "", at);
            assert!((1..=PIECE + 3).contains(&piece.len()) && str::from_utf8(piece).is_ok());
            at += piece.len();
        }
        let mut parser = Parser::new(Language::Python).unwrap();
        assert!(!parser.parse(&text, "", None).unwrap().root_node().has_error());
    }
}
