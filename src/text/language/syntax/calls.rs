//! Calls of something that has a name.

use std::ops::Range;

use tree_sitter::Node;

use super::{Span, Syntax, preorder};
use crate::text::language::{Call as Rule, Part, find};

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

impl<'a> Syntax<'a> {
    /// The calls of something that has a name, `new` included, in the order of the text; an outer call comes before the
    /// calls in its arguments.
    pub fn calls(&self) -> Vec<Call<'a>> {
        let mut found = Vec::new();
        let mut broken_at: Option<usize> = None;
        preorder(self.tree(), |node, depth| {
            broken_at = broken_at.filter(|&outer| outer < depth);
            if node.is_error() {
                broken_at = broken_at.or(Some(depth));
            }
            if let Some(name) = name(self, node) {
                found.push(Call {
                    name: self.of(name),
                    name_bytes: self.bytes(name),
                    span: self.span(node),
                    is_broken: broken_at.is_some() || node.has_error(),
                });
            }
            true
        });
        found
    }
}

/// The node of the name that a call calls; `None` where the node is no call or calls no name.
fn name<'tree>(syntax: &Syntax<'_>, node: Node<'tree>) -> Option<Node<'tree>> {
    if !node.is_named() {
        return None;
    }
    let spec = syntax.spec();
    let field = |field| node.child_by_field_name(field);
    match find(spec.calls, node.kind())? {
        Rule::Function(function) => last_name(spec.expressions, field(function)?),
        Rule::Method(_, name) | Rule::Constructor(name) => field(name),
        Rule::New(class) => last_name(spec.types, field(class)?),
    }
}

/// The name that an expression or a type ends in.
fn last_name<'tree>(table: &[(&str, Part)], mut node: Node<'tree>) -> Option<Node<'tree>> {
    loop {
        node = match find(table, node.kind())? {
            Part::Name => return Some(node),
            Part::Inside(step) | Part::Partial(step) | Part::Member(_, step) => step.from(node)?,
            _ => return None,
        };
    }
}
