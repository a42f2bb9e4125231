//! Functions and scopes of a text.

use std::ops::Range;

use tree_sitter::Node;

use super::body::{self, Body};
use super::{ScopeKind, Span, Syntax, rows};
use crate::language::BlockMarks;
use crate::language::spec::DefinitionName;
use crate::language::walk::walk;

/// Function, method or constructor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Name; a constructor has the name of its class, except `__init__` in Python and `constructor` in TypeScript.
    pub name: &'a str,
    /// Span of the whole function, including decorators, annotations and modifiers, but not the comments before it.
    pub span: Span,
    /// Rows from its signature to its last statement or brace, without decorators.
    pub lines: Range<usize>,
    /// Statements; `None` if there are none.
    pub body: Option<Body>,
    /// Whether a syntax error is in it or around it.
    pub is_broken: bool,
}

/// Scope that contains lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope<'a> {
    /// Kind of the scope.
    pub kind: ScopeKind,
    /// Name; empty if it has none.
    pub name: &'a str,
    /// Span of the whole scope, including decorators, annotations and modifiers, but not the comments before it.
    pub span: Span,
    /// Row after its signature and the first paragraph of its docstring, of which at most three lines count.
    pub head_end: usize,
}

impl<'a> Syntax<'a> {
    /// Returns the functions, methods and constructors in the order of the text; a nested function follows the enclosing one.
    ///
    /// Functions without a body (in interfaces, or abstract) are included. Lambdas and function expressions are included only
    /// if they are given a name: `const f = () => …`, a field, a property. Accessors of C# properties are not included.
    pub fn functions(&self) -> Vec<Function<'a>> {
        let mut found = Vec::new();
        definitions(self, |definition| {
            if definition.kind == ScopeKind::Function {
                let mut body = body::find_body(self, definition.node);
                // In broken code, a statement may include a line end that is not part of its function.
                if let Some(body) = &mut body {
                    let end = definition.span.bytes.end;
                    body.span.bytes.end = body.span.bytes.end.min(end);
                }
                let first = rows(definition.node).start;
                found.push(Function {
                    name: definition.name,
                    lines: first.max(definition.span.lines.start)..definition.span.lines.end,
                    span: definition.span,
                    body,
                    is_broken: definition.is_broken,
                });
            }
        });
        found
    }

    /// Returns the namespaces, classes, interfaces, enums, functions and C# properties, each before its nested scopes.
    pub fn scopes(&self) -> Vec<Scope<'a>> {
        let mut found = Vec::new();
        definitions(self, |definition| {
            found.push(Scope {
                kind: definition.kind,
                name: definition.name,
                head_end: body::head_end(self, definition.node).min(definition.span.lines.end),
                span: definition.span,
            });
        });
        found
    }
}

/// Named definition that contains lines.
struct Definition<'a, 'tree> {
    kind: ScopeKind,
    name: &'a str,
    span: Span,
    node: Node<'tree>,
    is_broken: bool,
}

fn definitions<'a, 'tree>(syntax: &'tree Syntax<'a>, mut found: impl FnMut(Definition<'a, 'tree>)) {
    let spec = syntax.spec();
    let mut broken_at: Option<usize> = None;
    // The first of the decorators before a method, if they are its siblings.
    let mut decorator: Option<Node<'tree>> = None;
    walk(syntax.tree(), |node, ancestors| {
        let depth = ancestors.len();
        broken_at = broken_at.filter(|&outer| outer < depth);
        if node.is_error() {
            broken_at = broken_at.or(Some(depth));
        }
        let around = ancestors.last().map(|node| node.kind());
        let is_member = spec.decorators_in.is_some() && spec.decorators_in == around;
        if is_member && node.kind() == "decorator" {
            decorator = decorator.or(Some(node));
            return true;
        }
        let decorated = decorator.filter(|_| is_member && node.is_named());
        if is_member && node.is_named() && !super::is_comment(node) {
            decorator = None;
        }
        let mut definitions = spec.definitions.iter().filter(|_| node.is_named());
        let Some(definition) = definitions.find(|definition| definition.kind == node.kind()) else {
            // If a line contains no other definition, most nodes need no visit.
            let is_one_line = node.start_position().row == node.end_position().row;
            let may_hold = spec.layout != BlockMarks::Indentation || !is_one_line;
            return may_hold || depth == 0 || node.has_error();
        };
        let name = match definition.name {
            DefinitionName::Word(word) => Some(word),
            DefinitionName::Field(field) => node
                .child_by_field_name(field)
                .map(|name| syntax.of(name).trim_matches(['"', '\''])),
            DefinitionName::Bound => ancestors
                .last()
                .and_then(|parent| (spec.bound_name)(*parent, node))
                .or_else(|| node.child_by_field_name("name"))
                .map(|name| syntax.of(name)),
        };
        let Some(name) = name else {
            return true;
        };
        let mut span = whole(syntax, node, ancestors);
        if definition.to_end {
            let lines = rows(syntax.tree().root_node()).end;
            span.bytes.end = syntax.text().len();
            span.lines.end = lines.max(span.lines.end);
        }
        if let Some(first) = decorated {
            span.bytes.start = first.start_byte();
            span.lines.start = rows(first).start;
        }
        let is_broken = broken_at.is_some() || node.has_error();
        found(Definition { kind: definition.scope, name, span, node, is_broken });
        true
    });
}

/// Returns the definition with its decorators, its `export`, and the statement that binds its name.
fn whole(syntax: &Syntax<'_>, node: Node<'_>, ancestors: &[Node<'_>]) -> Span {
    let mut outer = node;
    for ancestor in ancestors.iter().rev() {
        if !(syntax.spec().is_part)(*ancestor, outer, node) {
            break;
        }
        outer = *ancestor;
    }
    syntax.span(outer)
}
