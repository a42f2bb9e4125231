//! Names that a file imports, and the reader with which a language's file takes them from its statements.

use tree_sitter::Node;

use super::walk::Span;

/// One name that an import brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import<'a> {
    /// Where the name comes from, as it is written, without quotes: `..pkg.module`, `java.util`, `System.Text`,
    /// `./store`.
    pub from: &'a str,
    /// The name that it binds, and to what.
    pub binding: Binding<'a>,
    /// Whether it brings in members of a type (Java's and C#'s `static`).
    pub is_static: bool,
    /// Whether it is for others: TypeScript's `export … from`, C#'s `global using`.
    pub is_passed_on: bool,
    /// The whole statement.
    pub span: Span,
}

/// Target that an import binds a name to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding<'a> {
    /// One member, under its own name or another: `from m import a as b`, `import m.a`, `import { a as b } from 'm'`.
    Member {
        /// Its name where it comes from; `default` for a TypeScript module's default export.
        member: &'a str,
        /// Its name here.
        local: &'a str,
    },
    /// The thing itself, under a name: `import m as a`, `using a = m`, `import * as a from 'm'`, `import a = require('m')`.
    Whole {
        /// Its name here; Python's `import a.b` binds `a.b`.
        local: &'a str,
    },
    /// All its members: `from m import *`, `import m.*`, `using m`, `export * from 'm'`.
    All,
    /// Nothing: `import 'm'`.
    Nothing,
}

/// Takes the names from one statement.
pub(crate) struct ImportReader<'r, 'a, 'tree> {
    pub(crate) text: &'a str,
    pub(crate) statement: Node<'tree>,
    /// Span of the statement.
    pub(crate) span: Span,
    pub(crate) found: &'r mut Vec<Import<'a>>,
}

impl<'a> ImportReader<'_, 'a, '_> {
    /// Text of a node.
    pub(crate) fn of(&self, node: Node<'_>) -> &'a str {
        let end = self.text.len();
        &self.text[node.start_byte().min(end)..node.end_byte().min(end)]
    }

    /// Text of a node's field.
    pub(crate) fn field(&self, node: Node<'_>, field: &str) -> Option<&'a str> {
        node.child_by_field_name(field).map(|node| self.of(node))
    }

    /// Adds a name that is neither `static` nor for others.
    pub(crate) fn push(&mut self, from: &'a str, binding: Binding<'a>) {
        self.push_as(from, binding, false, false);
    }

    /// Adds a name.
    pub(crate) fn push_as(
        &mut self,
        from: &'a str,
        binding: Binding<'a>,
        is_static: bool,
        is_passed_on: bool,
    ) {
        self.found.push(Import { from, binding, is_static, is_passed_on, span: self.span.clone() });
    }
}
