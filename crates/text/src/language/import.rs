//! Names that a file imports, and the reader that collects them from a language's import statements.

use tree_sitter::Node;

use super::walk::Span;

/// Name that an import brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import<'a> {
    /// Source of the name as written, without quotes: `..pkg.module`, `java.util`, `System.Text`, `./store`.
    pub from: &'a str,
    /// Local name and the target it is bound to.
    pub binding: Binding<'a>,
    /// Whether the import brings in static members of a type (`static` in Java and C#).
    pub is_static: bool,
    /// Whether other files see the name: `export … from` in TypeScript, `global using` in C#.
    pub is_passed_on: bool,
    /// Span of the whole statement.
    pub span: Span,
}

/// Target that an import binds a name to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding<'a> {
    /// One member, under its own name or an alias: `from m import a as b`, `import m.a`, `import { a as b } from 'm'`.
    Member {
        /// Name of the member in its module; `default` for a TypeScript module's default export.
        member: &'a str,
        /// Local name.
        local: &'a str,
    },
    /// The module itself, under a name: `import m as a`, `using a = m`, `import * as a from 'm'`, `import a = require('m')`.
    Whole {
        /// Local name; Python's `import a.b` binds `a.b`.
        local: &'a str,
    },
    /// All members: `from m import *`, `import m.*`, `using m`, `export * from 'm'`.
    All,
    /// Nothing: `import 'm'`.
    Nothing,
}

/// Reader of the names in one import statement.
pub(crate) struct ImportReader<'r, 'a, 'tree> {
    pub(crate) text: &'a str,
    pub(crate) statement: Node<'tree>,
    /// Span of the statement.
    pub(crate) span: Span,
    pub(crate) found: &'r mut Vec<Import<'a>>,
}

impl<'a> ImportReader<'_, 'a, '_> {
    /// Returns the text of a node.
    pub(crate) fn of(&self, node: Node<'_>) -> &'a str {
        let end = self.text.len();
        &self.text[node.start_byte().min(end)..node.end_byte().min(end)]
    }

    /// Returns the text of a node's field.
    pub(crate) fn field(&self, node: Node<'_>, field: &str) -> Option<&'a str> {
        node.child_by_field_name(field).map(|node| self.of(node))
    }

    /// Adds a name that is neither `static` nor exported.
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
