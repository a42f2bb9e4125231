//! Names of types and kinds of nodes.

use tree_sitter::Node;

use crate::task::sample::typed::unit::Declared;
use crate::text::language::syntax::{Syntax, child};

/// Longer chains of names are not followed.
pub(super) const LONGEST_CHAIN: usize = 16;

/// Whether a node of this kind declares its parameters and variables in a scope of its own.
pub(super) fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "method_declaration"
            | "constructor_declaration"
            | "compact_constructor_declaration"
            | "destructor_declaration"
            | "operator_declaration"
            | "conversion_operator_declaration"
            | "local_function_statement"
            | "lambda_expression"
            | "anonymous_method_expression"
            | "function_declaration"
            | "generator_function_declaration"
            | "function_signature"
            | "function_expression"
            | "generator_function"
            | "arrow_function"
            | "method_definition"
            | "method_signature"
            | "abstract_method_signature"
    )
}

/// The declared type of something: unknown for `var` and for types that are several.
pub(super) fn type_path(syntax: &Syntax<'_>, node: Node<'_>) -> Declared {
    let mut node = node;
    loop {
        node = match node.kind() {
            "type_annotation" | "parenthesized_type" | "nullable_type" | "ref_type"
            | "scoped_type" | "catch_type" => match node.named_child(0) {
                Some(inner) => inner,
                None => return Declared::Unknown,
            },
            "implicit_type" | "intersection_type" | "function_type" | "conditional_type"
            | "infer_type" | "type_query" | "lookup_type" | "this_type" | "object_type" => {
                return Declared::Unknown;
            }
            "union_type" => match only_one(node) {
                Some(only) => only,
                None => return Declared::Unknown,
            },
            // Java's and TypeScript's words for what C# has a node for.
            "type_identifier" | "predefined_type"
                if matches!(syntax.of(node), "var" | "any" | "unknown") =>
            {
                return Declared::Unknown;
            }
            _ => return Declared::Type(dotted(syntax, node).unwrap_or_else(|| "[]".into())),
        };
    }
}

/// The type of `T | null`.
fn only_one(union: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = union.walk();
    let is_nothing = |node: &Node<'_>| {
        let literal = node.named_child(0).map_or("", |literal| literal.kind());
        node.kind() == "literal_type" && matches!(literal, "null" | "undefined")
    };
    let mut types = union
        .named_children(&mut cursor)
        .filter(|node| !is_nothing(node));
    types.next().filter(|_| types.next().is_none())
}

/// `a.b.C` of a name or type, without type arguments and annotations; `None` where it has no name.
pub(super) fn dotted(syntax: &Syntax<'_>, node: Node<'_>) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let mut next = Some(node);
    while let Some(node) = next {
        if parts.len() > LONGEST_CHAIN {
            return None;
        }
        let field = |field| node.child_by_field_name(field);
        next = match node.kind() {
            "identifier"
            | "type_identifier"
            | "property_identifier"
            | "predefined_type"
            | "integral_type"
            | "floating_point_type"
            | "boolean_type"
            | "void_type" => {
                parts.push(syntax.of(node));
                None
            }
            "generic_type" => Some(field("name").or_else(|| node.named_child(0))?),
            "generic_name" => {
                parts.push(syntax.of(child(node, "identifier")?));
                None
            }
            "annotated_type" | "scoped_type_identifier" => {
                let last = node.named_child(node.named_child_count().checked_sub(1)? as u32)?;
                if node.kind() == "annotated_type" {
                    Some(last)
                } else {
                    parts.push(syntax.of(last));
                    Some(node.named_child(0).filter(|first| *first != last)?)
                }
            }
            "qualified_name"
            | "scoped_identifier"
            | "nested_type_identifier"
            | "nested_identifier"
            | "member_expression" => {
                let name = field("name").or_else(|| field("property"))?;
                parts.push(match name.kind() {
                    "generic_name" => syntax.of(child(name, "identifier")?),
                    _ => syntax.of(name),
                });
                let before = ["qualifier", "scope", "module", "object"]
                    .into_iter()
                    .find_map(field);
                Some(before?)
            }
            // `global::A.B` is a full name.
            "alias_qualified_name" => Some(field("name")?),
            _ => return None,
        };
    }
    parts.reverse();
    Some(parts.join("."))
}
