//! Functions, and the scopes that lines stand in.

use std::ops::Range;

use tree_sitter::Node;

use super::body::{self, Body};
use super::walk::walk;
use super::{Span, Syntax, rows};
use crate::text::language::{Grammar, Language};

/// A function, method or constructor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name; a constructor's is that of its class, but `__init__` in Python and `constructor` in TypeScript.
    pub name: &'a str,
    /// All of it: decorators, annotations and modifiers too, comments before it not.
    pub span: Span,
    /// What it does, where it has a body with anything in it.
    pub body: Option<Body>,
    /// Whether a syntax error lies in it or around it.
    pub is_broken: bool,
}

/// What lines can stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// Of C# and TypeScript (`namespace`, `module`); that of a whole file (`namespace A;`) reaches to its end.
    Namespace,
    /// Classes, structs and records.
    Class,
    /// Interfaces and annotation types.
    Interface,
    /// Enums.
    Enum,
    /// A C# property, indexer or event.
    Property,
    /// What [`Syntax::functions`] gives.
    Function,
}

/// Something that lines can stand in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope<'a> {
    /// What it is.
    pub kind: ScopeKind,
    /// Its name; empty where it has none.
    pub name: &'a str,
    /// All of it: decorators, annotations and modifiers too, comments before it not.
    pub span: Span,
}

/// The scopes of a text, each before those within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes<'a>(Vec<Scope<'a>>);

impl<'a> Scopes<'a> {
    /// All of them, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = &Scope<'a>> {
        self.0.iter()
    }

    /// Those that hold all of a run of lines, innermost first; what encloses the first line, if the run is empty.
    pub fn enclosing(&self, lines: Range<usize>) -> impl Iterator<Item = &Scope<'a>> {
        let end = lines.end.max(lines.start + 1);
        let holds = move |scope: &&Scope<'_>| {
            scope.span.lines.start <= lines.start && end <= scope.span.lines.end
        };
        self.0.iter().rev().filter(holds)
    }
}

pub(super) fn functions<'a>(syntax: &Syntax<'a>) -> Vec<Function<'a>> {
    let mut found = Vec::new();
    definitions(syntax, |definition| {
        if definition.kind == ScopeKind::Function {
            let mut body = body::of(syntax, definition.node);
            // In torn code a statement may take the line's end along that its function does not have.
            if let Some(body) = &mut body {
                let end = definition.span.bytes.end;
                body.span.bytes.end = body.span.bytes.end.min(end);
            }
            found.push(Function {
                name: definition.name,
                span: definition.span,
                body,
                is_broken: definition.is_broken,
            });
        }
    });
    found
}

pub(super) fn scopes<'a>(syntax: &Syntax<'a>) -> Scopes<'a> {
    let mut found = Vec::new();
    definitions(
        syntax,
        |Definition {
             kind, name, span, ..
         }| {
            found.push(Scope { kind, name, span });
        },
    );
    Scopes(found)
}

/// Something that has a name and lines within it.
struct Definition<'a, 'tree> {
    kind: ScopeKind,
    name: &'a str,
    span: Span,
    node: Node<'tree>,
    is_broken: bool,
}

fn definitions<'a, 'tree>(syntax: &'tree Syntax<'a>, mut found: impl FnMut(Definition<'a, 'tree>)) {
    let language = syntax.grammar().language();
    let is_typescript = language == Language::TypeScript;
    let mut broken_at: Option<usize> = None;
    // The first of the decorators before a method: they stand beside it in TypeScript's tree.
    let mut decorator: Option<Node<'tree>> = None;
    walk(syntax.tree(), |node, ancestors| {
        let depth = ancestors.len();
        broken_at = broken_at.filter(|&outer| outer < depth);
        if node.is_error() {
            broken_at = broken_at.or(Some(depth));
        }
        let is_member = is_typescript && ancestors.last().is_some_and(|n| n.kind() == "class_body");
        if is_member && node.kind() == "decorator" {
            decorator = decorator.or(Some(node));
            return true;
        }
        let decorated = decorator.filter(|_| is_member && node.is_named());
        if is_member && node.is_named() && !super::is_comment(node) {
            decorator = None;
        }
        let Some(kind) = kind(syntax.grammar(), node) else {
            // On one line Python has room for no other definition than the line's own; most nodes are spared the visit.
            let is_one_line = node.start_position().row == node.end_position().row;
            return language != Language::Python || !is_one_line || depth == 0 || node.has_error();
        };
        let Some(name) = name(syntax, node, ancestors) else {
            return true;
        };
        let mut span = whole(syntax, node, ancestors);
        if let Some(first) = decorated {
            span.bytes.start = first.start_byte();
            span.lines.start = rows(first).start;
        }
        let is_broken = broken_at.is_some() || node.has_error();
        found(Definition {
            kind,
            name,
            span,
            node,
            is_broken,
        });
        true
    });
}

fn kind(grammar: Grammar, node: Node<'_>) -> Option<ScopeKind> {
    if !node.is_named() {
        return None;
    }
    let kind = node.kind();
    match grammar {
        Grammar::Python => Some(match kind {
            "function_definition" => ScopeKind::Function,
            "class_definition" => ScopeKind::Class,
            _ => return None,
        }),
        Grammar::Java => java_kind(kind),
        Grammar::CSharp => csharp_kind(kind),
        Grammar::TypeScript | Grammar::Tsx => typescript_kind(kind),
    }
}

fn java_kind(kind: &str) -> Option<ScopeKind> {
    Some(match kind {
        "class_declaration" | "record_declaration" => ScopeKind::Class,
        "interface_declaration" | "annotation_type_declaration" => ScopeKind::Interface,
        "enum_declaration" => ScopeKind::Enum,
        "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => {
            ScopeKind::Function
        }
        _ => return None,
    })
}

fn csharp_kind(kind: &str) -> Option<ScopeKind> {
    Some(match kind {
        "namespace_declaration" | "file_scoped_namespace_declaration" => ScopeKind::Namespace,
        "class_declaration" | "struct_declaration" | "record_declaration" => ScopeKind::Class,
        "interface_declaration" => ScopeKind::Interface,
        "enum_declaration" => ScopeKind::Enum,
        "property_declaration" | "indexer_declaration" | "event_declaration" => ScopeKind::Property,
        "method_declaration"
        | "constructor_declaration"
        | "destructor_declaration"
        | "operator_declaration"
        | "conversion_operator_declaration"
        | "local_function_statement" => ScopeKind::Function,
        _ => return None,
    })
}

fn typescript_kind(kind: &str) -> Option<ScopeKind> {
    Some(match kind {
        "internal_module" | "module" => ScopeKind::Namespace,
        "class_declaration" | "abstract_class_declaration" | "class" => ScopeKind::Class,
        "interface_declaration" => ScopeKind::Interface,
        "enum_declaration" => ScopeKind::Enum,
        "function_declaration"
        | "generator_function_declaration"
        | "function_signature"
        | "method_definition"
        | "method_signature"
        | "abstract_method_signature"
        | "function_expression"
        | "generator_function"
        | "arrow_function" => ScopeKind::Function,
        _ => return None,
    })
}

/// The name of a definition, its own or the one that it is bound to; `None` for a lambda without one.
fn name<'a>(syntax: &Syntax<'a>, node: Node<'_>, ancestors: &[Node<'_>]) -> Option<&'a str> {
    match node.kind() {
        "indexer_declaration" => return Some("this"),
        "conversion_operator_declaration" => {
            return node.child_by_field_name("type").map(|to| syntax.of(to));
        }
        "operator_declaration" => {
            return node
                .child_by_field_name("operator")
                .map(|sign| syntax.of(sign));
        }
        "class" | "function_expression" | "generator_function" | "arrow_function" => {
            let bound = ancestors
                .last()
                .and_then(|parent| bound_name(*parent, node));
            let own = node.child_by_field_name("name");
            return bound.or(own).map(|name| syntax.of(name));
        }
        _ => {}
    }
    let name = node.child_by_field_name("name")?;
    Some(syntax.of(name).trim_matches(['"', '\'']))
}

/// What a function or class expression is called by where it is: `name = …`, `name: …`, `export default …`.
fn bound_name<'tree>(parent: Node<'tree>, node: Node<'tree>) -> Option<Node<'tree>> {
    let (name, value) = match parent.kind() {
        "variable_declarator" | "public_field_definition" => ("name", "value"),
        "pair" => ("key", "value"),
        "assignment_expression" => ("left", "right"),
        "export_statement" => {
            let mut cursor = parent.walk();
            return parent
                .children(&mut cursor)
                .find(|child| child.kind() == "default");
        }
        _ => return None,
    };
    if parent.child_by_field_name(value) != Some(node) {
        return None;
    }
    let name = parent.child_by_field_name(name)?;
    match name.kind() {
        "member_expression" => name.child_by_field_name("property"),
        "object_pattern" | "array_pattern" | "subscript_expression" => None,
        _ => Some(name),
    }
}

/// The definition with what belongs to it around it: decorators, `export`, the statement that binds its name.
fn whole(syntax: &Syntax<'_>, node: Node<'_>, ancestors: &[Node<'_>]) -> Span {
    let mut outer = node;
    for ancestor in ancestors.iter().rev() {
        let belongs = match ancestor.kind() {
            "decorated_definition" | "export_statement" | "ambient_declaration" => true,
            "variable_declarator"
            | "public_field_definition"
            | "pair"
            | "assignment_expression" => outer == node,
            // `const f = …, g = …` is not all f's.
            "lexical_declaration" | "variable_declaration" => ancestor.named_child_count() == 1,
            "expression_statement" => {
                matches!(outer.kind(), "assignment_expression" | "internal_module")
            }
            _ => false,
        };
        if !belongs {
            break;
        }
        outer = *ancestor;
    }
    let mut span = syntax.span(outer);
    if node.kind() == "file_scoped_namespace_declaration" {
        let lines = rows(syntax.tree().root_node()).end;
        span.bytes.end = syntax.text().len();
        span.lines.end = lines.max(span.lines.end);
    }
    span
}
