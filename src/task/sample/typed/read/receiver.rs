//! What a method is called on.

use tree_sitter::Node;

use super::names::{LONGEST_CHAIN, dotted, type_path};
use crate::task::sample::typed::unit::{Callee, Declared, Receiver};
use crate::text::language::syntax::{Syntax, child};

/// What the function of a C# or TypeScript call is; `None` where it has no name.
pub(super) fn callee(syntax: &Syntax<'_>, function: Node<'_>) -> Option<Callee> {
    let field = |field| function.child_by_field_name(field);
    let of = |node: Node<'_>| syntax.of(node).to_owned();
    let member = |object: Node<'_>, name: String| Callee::Member(self::of(syntax, object), name);
    Some(match function.kind() {
        "identifier" => Callee::Bare(of(function)),
        "generic_name" => Callee::Bare(of(child(function, "identifier")?)),
        "member_access_expression" => member(field("expression")?, simple(syntax, field("name")?)?),
        "member_expression" => member(field("object")?, of(field("property")?)),
        "conditional_access_expression" => {
            let binding = child(function, "member_binding_expression")?;
            let name = binding.child_by_field_name("name")?;
            member(field("condition")?, simple(syntax, name)?)
        }
        "non_null_expression" | "instantiation_expression" => {
            return callee(syntax, function.named_child(0)?);
        }
        _ => return None,
    })
}

/// A name without its type arguments.
fn simple(syntax: &Syntax<'_>, name: Node<'_>) -> Option<String> {
    let name = match name.kind() {
        "generic_name" => child(name, "identifier")?,
        _ => name,
    };
    Some(syntax.of(name).to_owned())
}

/// The receiver that an expression is.
pub(super) fn of(syntax: &Syntax<'_>, expression: Node<'_>) -> Receiver {
    let mut parts: Vec<String> = Vec::new();
    let mut node = expression;
    while parts.len() < LONGEST_CHAIN {
        match step(syntax, node) {
            Step::Member(before, name) => {
                parts.push(name);
                node = before;
            }
            Step::Inside(inner) => node = inner,
            Step::Root(name) => {
                parts.push(name);
                parts.reverse();
                return Receiver::Chain(parts);
            }
            Step::Typed(node) if parts.is_empty() => {
                return match type_path(syntax, node) {
                    Declared::Type(name) => Receiver::Typed(name),
                    Declared::Unknown => Receiver::Unknown,
                };
            }
            Step::New(node) if parts.is_empty() => {
                return dotted(syntax, node).map_or(Receiver::Unknown, Receiver::Typed);
            }
            Step::Literal if parts.is_empty() => return Receiver::Typed("[]".into()),
            Step::Typed(_) | Step::New(_) | Step::Literal | Step::Other => break,
        }
    }
    Receiver::Unknown
}

/// How a receiver goes on to the left.
enum Step<'tree> {
    Member(Node<'tree>, String),
    Inside(Node<'tree>),
    Root(String),
    /// A type stands there.
    Typed(Node<'tree>),
    /// The class of `new`.
    New(Node<'tree>),
    Literal,
    Other,
}

fn step<'tree>(syntax: &Syntax<'_>, node: Node<'tree>) -> Step<'tree> {
    let field = |field| node.child_by_field_name(field);
    let text = || syntax.of(node).to_owned();
    let member = |object: Option<Node<'tree>>, name: Option<Node<'tree>>| match (object, name) {
        (Some(object), Some(name)) => simple(syntax, name).map(|name| Step::Member(object, name)),
        _ => None,
    };
    let found = match node.kind() {
        "identifier" | "this" | "super" => Some(Step::Root(text())),
        "this_expression" => Some(Step::Root("this".into())),
        "base" | "base_expression" => Some(Step::Root("super".into())),
        "generic_name" => simple(syntax, node).map(Step::Root),
        "predefined_type" => Some(Step::Typed(node)),
        "field_access" => member(field("object"), field("field")),
        "member_access_expression" => member(field("expression"), field("name")),
        "member_expression" => member(field("object"), field("property")),
        "qualified_name" => member(field("qualifier"), field("name")),
        "alias_qualified_name" => field("name").map(Step::Inside),
        "conditional_access_expression" => {
            let binding = child(node, "member_binding_expression");
            member(
                field("condition"),
                binding.and_then(|b| b.child_by_field_name("name")),
            )
        }
        "parenthesized_expression" | "non_null_expression" => node.named_child(0).map(Step::Inside),
        "cast_expression" => field("type").map(Step::Typed),
        "as_expression" => field("right")
            .or_else(|| node.named_child(1))
            .map(Step::Typed),
        "object_creation_expression" => field("type").map(Step::New),
        "new_expression" => field("constructor").map(Step::New),
        "string_literal"
        | "string"
        | "template_string"
        | "array"
        | "number"
        | "regex"
        | "class_literal"
        | "interpolated_string_expression"
        | "verbatim_string_literal"
        | "raw_string_literal"
        | "typeof_expression"
        | "array_creation_expression" => Some(Step::Literal),
        _ => None,
    };
    found.unwrap_or(Step::Other)
}
