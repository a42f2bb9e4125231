//! Parts of a source text, by tree-sitter's grammars: functions with their bodies, scopes, imports, comments.
//!
//! Everything is given in bytes and in 0-based lines of the text that was parsed. Rows of a tree end at `\n` alone, so
//! a text whose lines are counted as Python counts them is parsed as [`Lines::text`](crate::lines::Lines::text) has it.
//! Broken code is read as far as tree-sitter makes sense of it, and says of each function whether an error
//! touches it. Trees are walked without recursion: code can be nested more deeply than a stack is.

mod body;
mod definitions;
mod names;

pub use body::Body;
pub use body::is_bare_string;
pub use definitions::{Function, Scope};
pub use names::{Callee, DeclaredType, Receiver};

pub use super::import::{Binding, Import};
pub use super::spec::ScopeKind;
pub use super::walk::Span;
pub use super::walk::{child, preorder, rows, walk};

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::import::ImportReader;
use super::{Grammar, Language, LanguageSpec, Parser, find};
use crate::lines::Lines;

/// Files beyond these sizes are data or generated.
const LARGEST_FILE: usize = 8 << 20;
const LONGEST_LINE: usize = 1 << 20;

/// How much of a file a grammar can parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParseExtent {
    /// All of it.
    Whole,
    /// All but some code; the 0-based row of the first error.
    Partly(usize),
    /// Nothing: it is so large, or has so long a line, that it is not parsed, or its parse takes too much time or memory.
    Not,
}

/// A file that its grammar cannot parse whole: functions, classes and names in it may not be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseGap {
    /// The language that was asked for.
    pub language: Language,
    /// Path, which begins with the name of the repository.
    pub path: String,
    /// How much was parsed: not the whole file.
    pub parsed: ParseExtent,
}

impl ParseGap {
    /// Returns the gap of a file of which so much was parsed, if there is one.
    pub fn find(language: Language, path: &str, parsed: ParseExtent) -> Option<Self> {
        (parsed != ParseExtent::Whole).then(|| Self { language, path: path.to_owned(), parsed })
    }
}

impl ParseExtent {
    /// Returns how much of a file its tree is of.
    pub fn from_syntax(syntax: Option<&Syntax<'_>>) -> Self {
        let Some(syntax) = syntax else { return Self::Not };
        if !syntax.has_error() {
            return Self::Whole;
        }
        let mut first = None;
        preorder(syntax.tree(), |node, _| {
            if node.is_error() || node.is_missing() {
                first.get_or_insert(node.start_position().row);
            }
            first.is_none() && node.has_error()
        });
        Self::Partly(first.unwrap_or_default())
    }
}

/// A text and its tree.
///
/// ```
/// use repoformer_text::language::Language;
/// use repoformer_text::language::syntax::Syntax;
/// let text = "class A {\n  int twice(int x) {\n    return add(x,\n      x);\n  }\n}\n";
/// let syntax = Syntax::parse(text, Language::Java).unwrap();
/// let functions = syntax.functions();
/// assert_eq!((functions[0].name, functions[0].span.lines.clone()), ("twice", 1..5));
/// assert_eq!(functions[0].body.as_ref().unwrap().span.lines, 2..4);
/// let scopes: Vec<_> = syntax.scopes().into_iter().map(|scope| (scope.name, scope.span.lines)).collect();
/// assert_eq!(scopes, [("A", 0..6), ("twice", 1..5)]);
/// ```
#[derive(Debug)]
pub struct Syntax<'a> {
    text: &'a str,
    grammar: Grammar,
    tree: Tree,
}

impl<'a> Syntax<'a> {
    /// Parses a text, whatever it holds. `None` if it has 4 GiB or more, which no tree can address, or if its parse takes
    /// more time or memory than its length allows, as of a text that is nested thousands of times and ends there.
    pub fn parse(text: &'a str, grammar: impl Into<Grammar>) -> Option<Self> {
        let grammar = grammar.into();
        let needs_newline = grammar.language().spec().needs_last_newline;
        let end = if needs_newline && !text.ends_with('\n') { "\n" } else { "" };
        let tree = Parser::new(grammar)?.parse(text, end, None)?;
        Some(Self { text, grammar, tree })
    }

    /// Parses the lines of a file as [`parse`](Self::parse) does; `None` also where it is so large, or has so long a line, that it is data
    /// or was written by a program: a tree takes many times their memory. Lines are those of the joined text, as a row ends at `\n` alone.
    pub fn of_lines(lines: &'a Lines, grammar: impl Into<Grammar>) -> Option<Self> {
        let is_code = lines.text().len() <= LARGEST_FILE
            && lines.iter().all(|line| line.len() <= LONGEST_LINE);
        is_code.then(|| Self::parse(lines.text(), grammar))?
    }

    /// The data of its language.
    pub fn spec(&self) -> &'static LanguageSpec {
        self.grammar.language().spec()
    }

    /// Its language.
    pub fn language(&self) -> Language {
        self.grammar.language()
    }

    /// The text that was parsed.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Whether the grammar could not make sense of some part.
    pub fn has_error(&self) -> bool {
        self.tree.root_node().has_error()
    }

    /// The names that imports bring in, one entry a name, in the order of the text.
    pub fn imports(&self) -> Vec<Import<'a>> {
        let mut found = Vec::new();
        preorder(&self.tree, |node, _| {
            found.extend(self.imports_of(node));
            true
        });
        found
    }

    /// The names that one node brings in, if it is a statement that imports.
    pub fn imports_of(&self, statement: Node<'_>) -> Vec<Import<'a>> {
        let mut found = Vec::new();
        let read = find(self.spec().imports, statement.kind()).filter(|_| statement.is_named());
        if let Some(read) = read {
            let span = self.span(statement);
            read(&mut ImportReader { text: self.text, statement, span, found: &mut found });
        }
        found
    }

    /// The comments in bytes, in the order of the text. Docstrings are strings.
    pub fn comments(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        preorder(&self.tree, |node, _| {
            let is_comment = is_comment(node);
            if is_comment {
                found.push(self.bytes(node));
            }
            !is_comment
        });
        found
    }

    /// A tree of this text that was parsed before.
    pub fn of_tree(text: &'a str, grammar: Grammar, tree: Tree) -> Self {
        Self { text, grammar, tree }
    }

    /// The tree alone.
    pub fn into_tree(self) -> Tree {
        self.tree
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The text of a node.
    pub fn of(&self, node: Node<'_>) -> &'a str {
        &self.text[self.bytes(node)]
    }

    /// The bytes of a node, without the newline that [`parse`](Self::parse) may have put behind the text.
    fn bytes(&self, node: Node<'_>) -> Range<usize> {
        let end = self.text.len();
        node.start_byte().min(end)..node.end_byte().min(end)
    }

    fn span(&self, node: Node<'_>) -> Span {
        Span { bytes: self.bytes(node), lines: rows(node) }
    }
}

/// Whether a node is a comment.
pub fn is_comment(node: Node<'_>) -> bool {
    matches!(node.kind(), "comment" | "line_comment" | "block_comment" | "html_comment")
}

#[cfg(test)]
mod tests;
