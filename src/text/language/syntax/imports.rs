//! What a file brings in from others.

use tree_sitter::Node;

use super::walk::preorder;
use super::{Span, Syntax, child};
use crate::text::language::Grammar;

/// One name that an import brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import<'a> {
    /// What it is brought in from, as it is written, without quotes: `..pkg.module`, `java.util`, `System.Text`,
    /// `./store`.
    pub from: &'a str,
    /// What of it, and under which name.
    pub binding: Binding<'a>,
    /// Whether it brings in members of a type (Java's and C#'s `static`).
    pub is_static: bool,
    /// Whether it is for others: TypeScript's `export … from`, C#'s `global using`.
    pub is_passed_on: bool,
    /// The whole statement.
    pub span: Span,
}

/// What an import binds a name to.
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

pub(super) fn imports<'a>(syntax: &Syntax<'a>) -> Vec<Import<'a>> {
    let mut found = Vec::new();
    preorder(syntax.tree(), |node, _| {
        if !node.is_named() {
            return false;
        }
        let mut reader = Reader {
            syntax,
            statement: node,
            found: &mut found,
        };
        match (syntax.grammar(), node.kind()) {
            (Grammar::Python, "import_statement") => reader.python_import(),
            (Grammar::Python, "import_from_statement") => {
                let module = node.child_by_field_name("module_name");
                reader.python_from(module.map(|module| syntax.of(module)));
            }
            (Grammar::Python, "future_import_statement") => reader.python_from(Some("__future__")),
            (Grammar::Java, "import_declaration") => reader.java(),
            (Grammar::CSharp, "using_directive") => reader.csharp(),
            (Grammar::TypeScript | Grammar::Tsx, "import_statement") => reader.typescript_import(),
            (Grammar::TypeScript | Grammar::Tsx, "export_statement") => {
                reader.typescript_export();
                return true;
            }
            _ => return true,
        }
        false
    });
    found
}

/// Reads one statement.
struct Reader<'r, 'a, 'tree> {
    syntax: &'r Syntax<'a>,
    statement: Node<'tree>,
    found: &'r mut Vec<Import<'a>>,
}

impl<'a> Reader<'_, 'a, '_> {
    fn push(&mut self, from: &'a str, binding: Binding<'a>) {
        self.push_as(from, binding, false, false);
    }

    fn push_as(
        &mut self,
        from: &'a str,
        binding: Binding<'a>,
        is_static: bool,
        is_passed_on: bool,
    ) {
        self.found.push(Import {
            from,
            binding,
            is_static,
            is_passed_on,
            span: self.syntax.span(self.statement),
        });
    }

    fn field(&self, node: Node<'_>, field: &str) -> Option<&'a str> {
        node.child_by_field_name(field).map(|n| self.syntax.of(n))
    }

    fn python_import(&mut self) {
        let statement = self.statement;
        let mut cursor = statement.walk();
        for node in statement.children_by_field_name("name", &mut cursor) {
            let name = self
                .field(node, "name")
                .filter(|_| node.kind() == "aliased_import");
            let from = name.unwrap_or_else(|| self.syntax.of(node));
            let local = self.field(node, "alias").unwrap_or(from);
            self.push(from, Binding::Whole { local });
        }
    }

    fn python_from(&mut self, module: Option<&'a str>) {
        let (Some(from), statement) = (module, self.statement) else {
            return;
        };
        let mut cursor = statement.walk();
        for node in statement.children_by_field_name("name", &mut cursor) {
            let name = self
                .field(node, "name")
                .filter(|_| node.kind() == "aliased_import");
            let member = name.unwrap_or_else(|| self.syntax.of(node));
            let local = self.field(node, "alias").unwrap_or(member);
            self.push(from, Binding::Member { member, local });
        }
        if child(statement, "wildcard_import").is_some() {
            self.push(from, Binding::All);
        }
    }

    fn java(&mut self) {
        let name = child(self.statement, "scoped_identifier")
            .or_else(|| child(self.statement, "identifier"));
        let Some(name) = name else {
            return;
        };
        let is_static = child(self.statement, "static").is_some();
        if child(self.statement, "asterisk").is_some() {
            self.push_as(self.syntax.of(name), Binding::All, is_static, false);
            return;
        }
        let member = self
            .field(name, "name")
            .unwrap_or_else(|| self.syntax.of(name));
        let from = self.field(name, "scope").unwrap_or("");
        let local = member;
        self.push_as(from, Binding::Member { member, local }, is_static, false);
    }

    fn csharp(&mut self) {
        let alias = self.statement.child_by_field_name("name");
        let last = self.statement.named_child_count().checked_sub(1);
        let Some(name) = last.and_then(|last| self.statement.named_child(last as u32)) else {
            return;
        };
        let is = |word| child(self.statement, word).is_some();
        let from = self.syntax.of(name);
        let binding = alias.map_or(Binding::All, |alias| Binding::Whole {
            local: self.syntax.of(alias),
        });
        self.push_as(from, binding, is("static"), is("global"));
    }

    fn source(&self, node: Node<'_>) -> Option<&'a str> {
        let quoted = self.field(node, "source")?;
        Some(quoted.trim_matches(['"', '\'']))
    }

    fn typescript_import(&mut self) {
        let statement = self.statement;
        if let Some(require) = child(statement, "import_require_clause") {
            let local = child(require, "identifier").map(|n| self.syntax.of(n));
            if let (Some(from), Some(local)) = (self.source(require), local) {
                self.push(from, Binding::Whole { local });
            }
            return;
        }
        let Some(from) = self.source(statement) else {
            return;
        };
        let Some(clause) = child(statement, "import_clause") else {
            self.push(from, Binding::Nothing);
            return;
        };
        let mut cursor = clause.walk();
        for part in clause.named_children(&mut cursor) {
            match part.kind() {
                "identifier" => {
                    let (member, local) = ("default", self.syntax.of(part));
                    self.push(from, Binding::Member { member, local });
                }
                "namespace_import" => {
                    if let Some(local) = part.named_child(0).map(|n| self.syntax.of(n)) {
                        self.push(from, Binding::Whole { local });
                    }
                }
                "named_imports" => self.members(from, part, false),
                _ => {}
            }
        }
    }

    /// `export { a as b } from 'm'`, `export * from 'm'`, `export * as a from 'm'`.
    fn typescript_export(&mut self) {
        let statement = self.statement;
        let Some(from) = self.source(statement) else {
            return;
        };
        if let Some(clause) = child(statement, "export_clause") {
            self.members(from, clause, true);
        } else if let Some(name) =
            child(statement, "namespace_export").and_then(|n| n.named_child(0))
        {
            let local = self.syntax.of(name);
            self.push_as(from, Binding::Whole { local }, false, true);
        } else if child(statement, "*").is_some() {
            self.push_as(from, Binding::All, false, true);
        }
    }

    fn members(&mut self, from: &'a str, list: Node<'_>, is_passed_on: bool) {
        let mut cursor = list.walk();
        for node in list.named_children(&mut cursor) {
            if let Some(member) = self.field(node, "name") {
                let local = self.field(node, "alias").unwrap_or(member);
                self.push_as(from, Binding::Member { member, local }, false, is_passed_on);
            }
        }
    }
}
