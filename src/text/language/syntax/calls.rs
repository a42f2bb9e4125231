//! Calls of something that has a name.

use std::ops::Range;

use tree_sitter::Node;

use super::walk::walk;
use super::{Span, Syntax, child};
use crate::text::language::Grammar;

/// A call, arguments included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The last name of what is called: `c` of `a.b.c(…)`, `C` of `new a.C<T>(…)`.
    pub name: &'a str,
    /// Where that name stands, in bytes.
    pub name_bytes: Range<usize>,
    /// The whole call, from the start of the chain before its name.
    pub span: Span,
    /// Whether a syntax error lies in it or around it.
    pub is_broken: bool,
}

pub(super) fn calls<'a>(syntax: &Syntax<'a>) -> Vec<Call<'a>> {
    let mut found = Vec::new();
    let mut broken_at: Option<usize> = None;
    walk(syntax.tree(), |node, ancestors| {
        let depth = ancestors.len();
        broken_at = broken_at.filter(|&outer| outer < depth);
        if node.is_error() {
            broken_at = broken_at.or(Some(depth));
        }
        if let Some(name) = name(syntax.grammar(), node) {
            found.push(Call {
                name: syntax.of(name),
                name_bytes: syntax.bytes(name),
                span: syntax.span(node),
                is_broken: broken_at.is_some() || node.has_error(),
            });
        }
        true
    });
    found
}

/// The node of the name that a call calls; `None` where the node is no call or calls no name.
fn name<'tree>(grammar: Grammar, node: Node<'tree>) -> Option<Node<'tree>> {
    if !node.is_named() {
        return None;
    }
    let field = |field| node.child_by_field_name(field);
    match (grammar, node.kind()) {
        (Grammar::Python, "call") => last_name(field("function")?),
        (Grammar::Java, "method_invocation") => field("name"),
        (Grammar::Java, "explicit_constructor_invocation") => field("constructor"),
        (Grammar::Java | Grammar::CSharp, "object_creation_expression") => {
            type_name(field("type")?)
        }
        (Grammar::CSharp, "invocation_expression") => last_name(field("function")?),
        (Grammar::TypeScript | Grammar::Tsx, "call_expression") => last_name(field("function")?),
        (Grammar::TypeScript | Grammar::Tsx, "new_expression") => last_name(field("constructor")?),
        _ => None,
    }
}

/// The name that an expression ends in.
fn last_name(mut node: Node<'_>) -> Option<Node<'_>> {
    loop {
        node = match node.kind() {
            "identifier"
            | "property_identifier"
            | "private_property_identifier"
            | "super"
            | "import" => {
                return Some(node);
            }
            "attribute" => return node.child_by_field_name("attribute"),
            "member_expression" => return node.child_by_field_name("property"),
            "member_access_expression"
            | "member_binding_expression"
            | "qualified_name"
            | "alias_qualified_name" => node.child_by_field_name("name")?,
            "generic_name" => return child(node, "identifier"),
            "conditional_access_expression" => {
                node.named_child(node.named_child_count().checked_sub(1)? as u32)?
            }
            "non_null_expression" | "instantiation_expression" => node.named_child(0)?,
            _ => return None,
        };
    }
}

/// The last name of a type: `C` of `a.b.C<T>`, of `C?` and of `C | null`; `None` for arrays, tuples and the like.
fn type_name(mut node: Node<'_>) -> Option<Node<'_>> {
    loop {
        node = match node.kind() {
            "identifier" | "type_identifier" | "predefined_type" => return Some(node),
            "generic_type" => match node.child_by_field_name("name") {
                Some(name) => name,
                None => node.named_child(0)?,
            },
            "generic_name" => return child(node, "identifier"),
            "qualified_name" | "alias_qualified_name" | "nested_type_identifier" => {
                node.child_by_field_name("name")?
            }
            "scoped_type_identifier" => {
                node.named_child(node.named_child_count().checked_sub(1)? as u32)?
            }
            "nullable_type" => node
                .child_by_field_name("type")
                .or_else(|| node.named_child(0))?,
            "annotated_type" => node.named_child(node.named_child_count().checked_sub(1)? as u32)?,
            "type_annotation" | "parenthesized_type" | "ref_type" | "readonly_type" => {
                node.named_child(0)?
            }
            "union_type" => the_one_that_is_not_null(node)?,
            _ => return None,
        };
    }
}

fn the_one_that_is_not_null(union: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = union.walk();
    let mut types = union.named_children(&mut cursor).filter(|node| {
        let literal = node.named_child(0).map_or("", |literal| literal.kind());
        node.kind() != "literal_type" || !matches!(literal, "null" | "undefined")
    });
    types.next().filter(|_| types.next().is_none())
}
