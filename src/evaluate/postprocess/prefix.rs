//! Which prefixes of a prediction parse behind its left context.

use tree_sitter::{InputEdit, Parser, Point, Tree};

use crate::text::language::{Grammar, Language};

/// Prefixes of a Python text that are parsed one after the other. They share what comes before the last line of the left
/// context that is not indented; where that is whole statements, its tree is taken over by each.
pub(super) struct Prefixes {
    text: String,
    /// Where the prediction begins.
    start: usize,
    parser: Option<Parser>,
    /// The tree of what all share, without any error, and its length. A tree with errors is never built on: what
    /// grows from it can keep an error that a parse from the start would not have.
    shared: Option<(Tree, usize)>,
}

impl Prefixes {
    pub(super) fn new(left_context: &str, prediction: &str) -> Self {
        let text = format!("{left_context}{prediction}");
        let mut parser = Parser::new();
        let is_usable = u32::try_from(text.len()).is_ok()
            && parser.set_language(&Grammar::from(Language::Python).tables()).is_ok();
        let mut parser = is_usable.then_some(parser);
        let length = last_statement(left_context);
        let tree = parser.as_mut().and_then(|parser| parser.parse(&text[..length], None));
        let shared = tree.filter(|tree| length > 0 && !tree.root_node().has_error());
        Self { shared: shared.map(|tree| (tree, length)), start: left_context.len(), parser, text }
    }

    /// Whether the left context and this many bytes of the prediction have no syntax error. Tokens that the parser
    /// had to add are none, as in the reference programs.
    pub(super) fn parses(&mut self, length: usize) -> bool {
        let end = self.start + length;
        let old = self.shared.as_ref().map(|(tree, length)| {
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
        let parser = self.parser.as_mut();
        let tree = parser.and_then(|parser| parser.parse(&self.text[..end], old.as_ref()));
        tree.is_some_and(|tree| is_valid(&tree))
    }
}

/// Where the last line begins that is neither blank, indented, a comment, nor the end of something; 0 where that is the first.
fn last_statement(text: &str) -> usize {
    let mut starts = memchr::memrchr_iter(b'\n', text.as_bytes()).map(|newline| newline + 1);
    let begins = |start: &usize| {
        let first = text[*start..].chars().next();
        first.is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '@'))
    };
    starts.find(begins).unwrap_or(0)
}

fn point(text: &str) -> Point {
    let bytes = text.as_bytes();
    let line_start = memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
    Point { row: memchr::memchr_iter(b'\n', bytes).count(), column: bytes.len() - line_start }
}

/// Whether no node is an error.
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
            let mut prefixes = Prefixes::new(left, text);
            for step in 0..=text.len() {
                let length = step * 7 % (text.len() + 1);
                let wanted = slow_parses(&format!("{left}{}", &text[..length]));
                assert_eq!(prefixes.parses(length), wanted, "{left:?} {length}");
            }
        }
        // An open bracket, a closed one, one too many.
        let mut prefixes = Prefixes::new(lefts[0], text);
        let ends = ["+", ")", "\n)"].map(|end| text.find(end).unwrap() + end.len());
        let found = ends.map(|length| prefixes.parses(length));
        assert_eq!(found, [false, true, false]);
    }

    #[test]
    fn a_deep_text_needs_no_deep_stack() {
        let deep = "(".repeat(200_000);
        let mut prefixes = Prefixes::new("x = ", &deep);
        assert!(!prefixes.parses(deep.len()));
    }
}
