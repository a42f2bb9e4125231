//! Structure of a source text by tree-sitter's grammars: functions with their bodies, scopes, imports, comments.
//!
//! Positions are bytes and 0-based lines of the parsed text. Rows of a tree end only at `\n`; to count lines as Python does,
//! parse the text of [`Lines::text`](crate::lines::Lines::text). Broken code is read as far as tree-sitter can make sense of
//! it, and each function states whether an error affects it. Trees are walked without recursion, since code can be nested too
//! deeply for the call stack.

mod body;
mod definitions;
mod names;
mod uses;

pub use body::Body;
pub use body::is_bare_string;
pub use definitions::{Function, Scope};
pub use names::{Callee, DeclaredType, Receiver};
pub use uses::{NameUse, NameUses, UseRole};

pub use super::import::{Binding, Import};
pub use super::spec::ScopeKind;
pub use super::walk::Span;
pub use super::walk::{child, preorder, rows, walk};

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::import::ImportReader;
use super::{Grammar, Language, LanguageSpec, Parser, find};
use crate::lines::Lines;

/// Files larger than this, or with longer lines, are data or generated.
const LARGEST_FILE: usize = 8 << 20;
const LONGEST_LINE: usize = 1 << 20;

/// Extent to which a grammar can parse a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParseExtent {
    /// The whole file.
    Whole,
    /// The file except for some code; the value is the 0-based row of the first error.
    Partly(usize),
    /// Nothing: the file is too large, has too long a line, or takes too much time or memory to parse.
    Not,
}

/// File that its grammar cannot parse completely, so that functions, classes and names in the file may be missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseGap {
    /// Requested language.
    pub language: Language,
    /// Path, which begins with the name of the repository.
    pub path: String,
    /// Extent that was parsed, which is not the whole file.
    pub parsed: ParseExtent,
}

impl ParseGap {
    /// Returns the gap of a file parsed to this extent; `None` if it was parsed completely.
    pub fn find(language: Language, path: &str, parsed: ParseExtent) -> Option<Self> {
        (parsed != ParseExtent::Whole).then(|| Self { language, path: path.to_owned(), parsed })
    }
}

impl ParseExtent {
    /// Returns the extent to which a file was parsed.
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

/// Text and its tree.
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
    /// Parses any text. Returns `None` if the text has 4 GiB or more, which no tree can address, or if its parse takes more
    /// time or memory than its length allows, for example because the text ends inside thousands of nested brackets.
    pub fn parse(text: &'a str, grammar: impl Into<Grammar>) -> Option<Self> {
        let grammar = grammar.into();
        let needs_newline = grammar.language().spec().needs_last_newline;
        let end = if needs_newline && !text.ends_with('\n') { "\n" } else { "" };
        let tree = Parser::new(grammar)?.parse(text, end, None)?;
        Some(Self { text, grammar, tree })
    }

    /// Parses the lines of a file as [`parse`](Self::parse) does. Also returns `None` if the file is so large, or has so long a
    /// line, that it must be data or generated code: a tree takes many times the memory of its text. The joined text is parsed,
    /// since a row ends only at `\n`.
    pub fn of_lines(lines: &'a Lines, grammar: impl Into<Grammar>) -> Option<Self> {
        let is_code = lines.text().len() <= LARGEST_FILE
            && lines.iter().all(|line| line.len() <= LONGEST_LINE);
        is_code.then(|| Self::parse(lines.text(), grammar))?
    }

    /// Returns the data of its language.
    pub fn spec(&self) -> &'static LanguageSpec {
        self.grammar.language().spec()
    }

    /// Returns its language.
    pub fn language(&self) -> Language {
        self.grammar.language()
    }

    /// Returns the text that was parsed.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns true if the grammar could not make sense of some part.
    pub fn has_error(&self) -> bool {
        self.tree.root_node().has_error()
    }

    /// Returns the names that imports bring in, one entry per name, in the order of the text.
    pub fn imports(&self) -> Vec<Import<'a>> {
        let mut found = Vec::new();
        preorder(&self.tree, |node, _| {
            found.extend(self.imports_of(node));
            true
        });
        found
    }

    /// Returns the names that one node brings in, if it is an import statement.
    pub fn imports_of(&self, statement: Node<'_>) -> Vec<Import<'a>> {
        let mut found = Vec::new();
        let read = find(self.spec().imports, statement.kind()).filter(|_| statement.is_named());
        if let Some(read) = read {
            let span = self.span(statement);
            read(&mut ImportReader { text: self.text, statement, span, found: &mut found });
        }
        found
    }

    /// Returns the byte ranges of the comments in the order of the text. Docstrings are strings, not comments.
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

    /// Combines this text with its tree from an earlier parse.
    pub fn of_tree(text: &'a str, grammar: Grammar, tree: Tree) -> Self {
        Self { text, grammar, tree }
    }

    /// Returns only the tree.
    pub fn into_tree(self) -> Tree {
        self.tree
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the text of a node.
    pub fn of(&self, node: Node<'_>) -> &'a str {
        &self.text[self.bytes(node)]
    }

    /// Returns the byte range of a node, without the newline that [`parse`](Self::parse) may have appended to the text.
    fn bytes(&self, node: Node<'_>) -> Range<usize> {
        let end = self.text.len();
        node.start_byte().min(end)..node.end_byte().min(end)
    }

    fn span(&self, node: Node<'_>) -> Span {
        Span { bytes: self.bytes(node), lines: rows(node) }
    }
}

/// Returns true if a node is a comment.
pub fn is_comment(node: Node<'_>) -> bool {
    matches!(node.kind(), "comment" | "line_comment" | "block_comment" | "html_comment")
}

#[cfg(test)]
mod tests;
