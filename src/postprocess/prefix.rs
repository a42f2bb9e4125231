//! Which prefixes of a prediction parse behind its left context.

use tree_sitter::{InputEdit, Parser, Point, Tree};

use crate::language::Grammar;
use crate::language::syntax::Syntax;

/// Prefixes of a Python text that are parsed one after the other. Neighbours share nearly all of their text, so that
/// each parse takes over the tree of the one before; what then seems to parse is parsed once more from the start.
pub(super) struct Prefixes {
    text: String,
    /// Where the prediction begins.
    start: usize,
    newlines: Vec<usize>,
    parser: Option<Parser>,
    /// The last tree, and the length of the text that it is of.
    last: Option<(Tree, usize)>,
}

impl Prefixes {
    pub(super) fn new(left_context: &str, prediction: &str) -> Self {
        let text = format!("{left_context}{prediction}");
        let mut parser = Parser::new();
        let is_usable = u32::try_from(text.len()).is_ok()
            && parser.set_language(&Grammar::Python.tables()).is_ok();
        Self {
            start: left_context.len(),
            newlines: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
            parser: is_usable.then_some(parser),
            last: None,
            text,
        }
    }

    /// Whether the left context and this many bytes of the prediction have no syntax error. Tokens that the parser
    /// had to add are none, as in the reference programs.
    pub(super) fn parses(&mut self, length: usize) -> bool {
        let end = self.start + length;
        self.parses_again(end)
            && Syntax::parse(&self.text[..end], Grammar::Python)
                .is_some_and(|syntax| is_valid(syntax.tree()))
    }

    /// The same with the last tree's help.
    fn parses_again(&mut self, end: usize) -> bool {
        let edited = self.last.take().map(|(mut tree, old_end)| {
            let kept = end.min(old_end);
            tree.edit(&InputEdit {
                start_byte: kept,
                old_end_byte: old_end,
                new_end_byte: end,
                start_position: self.point(kept),
                old_end_position: self.point(old_end),
                new_end_position: self.point(end),
            });
            tree
        });
        let Some(parser) = &mut self.parser else {
            return false;
        };
        let tree = parser.parse(&self.text[..end], edited.as_ref());
        let Some(tree) = tree else {
            return false;
        };
        let valid = is_valid(&tree);
        self.last = Some((tree, end));
        valid
    }

    fn point(&self, at: usize) -> Point {
        let row = self.newlines.partition_point(|&newline| newline < at);
        let line_start = row
            .checked_sub(1)
            .map_or(0, |above| self.newlines[above] + 1);
        Point {
            row,
            column: at - line_start,
        }
    }
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
    use super::*;

    #[test]
    fn prefixes_in_any_order() {
        let (left, text) = ("def f(x):\n    ", "return (x +\n  1)\ny = 2\n)");
        let mut prefixes = Prefixes::new(left, text);
        let slow = |length: usize| {
            let text = format!("{left}{}", &text[..length]);
            Syntax::parse(&text, Grammar::Python).is_some_and(|syntax| is_valid(syntax.tree()))
        };
        let lengths = (0..=text.len()).map(|step| step * 7 % (text.len() + 1));
        for length in lengths {
            assert_eq!(prefixes.parses(length), slow(length), "{length}");
        }
        // "return (x +\n  1)" ends at 16.
        assert_eq!(
            [11, 16, text.len()].map(|length| prefixes.parses(length)),
            [false, true, false]
        );
    }

    #[test]
    fn a_deep_text_needs_no_deep_stack() {
        let deep = "(".repeat(200_000);
        let mut prefixes = Prefixes::new("x = ", &deep);
        assert!(!prefixes.parses(deep.len()));
    }
}
