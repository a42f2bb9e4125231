//! Dotted names of types, and the callees of calls, by the tables of the language.

use tree_sitter::Node;

use super::Syntax;
use crate::language::{Call, NodeRole, find};

/// Limit on the names of a chain; longer chains are not followed.
const LONGEST_CHAIN: usize = 16;

/// Type of a variable or field, as far as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeclaredType {
    /// `A.B` for `A.B<C>`; `[]` for arrays and all types without a name.
    Type(String),
    /// Undeclared or inferred.
    Unknown,
}

/// Callee of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Callee {
    /// `new a.B()`
    New(String),
    /// `m()`
    Bare(String),
    /// `….m()`
    Member(Receiver, String),
}

/// Object that a method is called on.
#[derive(Debug, PartialEq, Eq)]
pub enum Receiver {
    /// `a.b.c`; the first may be `this` or `super`.
    Chain(Vec<String>),
    /// An object of this type: `new a.B()`, `(a.B) x`.
    Typed(String),
    /// Any other expression.
    Unknown,
}

impl Syntax<'_> {
    /// Returns the callee of a node; `None` if the node calls nothing that has a name.
    pub fn callee(&self, node: Node<'_>) -> Option<Callee> {
        let field = |field| node.child_by_field_name(field);
        match find(self.spec().calls, node.kind())? {
            Call::Function(function) => self.find_callee(field(function)?),
            Call::Method(object, name) => {
                let name = self.of(field(name)?).to_owned();
                Some(match field(object) {
                    Some(object) => Callee::Member(self.receiver(object), name),
                    None => Callee::Bare(name),
                })
            }
            Call::New(class) => self.dotted_name(field(class)?).map(Callee::New),
        }
    }

    /// Returns the callee that an expression names.
    fn find_callee(&self, mut function: Node<'_>) -> Option<Callee> {
        loop {
            function = match find(self.spec().expressions, function.kind())? {
                NodeRole::Name => return Some(Callee::Bare(self.of(function).to_owned())),
                NodeRole::Inside(step) => step.from(function)?,
                NodeRole::Member(object, name) => {
                    let name = self.simple(self.spec().expressions, name.from(function)?)?;
                    return Some(Callee::Member(self.receiver(object.from(function)?), name));
                }
                _ => return None,
            };
        }
    }

    /// Returns a name without its type arguments.
    fn simple(&self, table: &[(&str, NodeRole)], mut node: Node<'_>) -> Option<String> {
        loop {
            node = match find(table, node.kind()) {
                Some(NodeRole::Inside(step) | NodeRole::Partial(step)) => step.from(node)?,
                Some(NodeRole::Name | NodeRole::Object(_)) => {
                    return Some(self.of(node).to_owned());
                }
                _ => return None,
            };
        }
    }

    /// Returns the receiver that an expression represents.
    fn receiver(&self, expression: Node<'_>) -> Receiver {
        self.chain(expression).unwrap_or(Receiver::Unknown)
    }

    fn chain(&self, expression: Node<'_>) -> Option<Receiver> {
        let table = self.spec().expressions;
        let mut parts: Vec<String> = Vec::new();
        let mut node = expression;
        while parts.len() < LONGEST_CHAIN {
            let is_whole = parts.is_empty();
            let root = match find(table, node.kind())? {
                NodeRole::Name => self.of(node),
                NodeRole::Object(word) => word,
                NodeRole::Member(object, name) => {
                    parts.push(self.simple(table, name.from(node)?)?);
                    node = object.from(node)?;
                    continue;
                }
                NodeRole::Inside(step) | NodeRole::Group(step) => {
                    node = step.from(node)?;
                    continue;
                }
                NodeRole::Typed(step) if is_whole => match self.declared_type(step.from(node)?) {
                    DeclaredType::Type(name) => return Some(Receiver::Typed(name)),
                    DeclaredType::Unknown => return None,
                },
                NodeRole::New(step) if is_whole => {
                    return self.dotted_name(step.from(node)?).map(Receiver::Typed);
                }
                NodeRole::Literal if is_whole => return Some(Receiver::Typed("[]".into())),
                _ => return None,
            };
            parts.push(root.to_owned());
            parts.reverse();
            return Some(Receiver::Chain(parts));
        }
        None
    }

    /// Returns the type of the new object that an expression creates.
    pub fn constructed_type(&self, mut value: Node<'_>) -> DeclaredType {
        loop {
            let next = match find(self.spec().expressions, value.kind()) {
                Some(NodeRole::Inside(step)) => step.from(value),
                Some(NodeRole::New(step)) => {
                    let class = step.from(value).and_then(|class| self.dotted_name(class));
                    return class.map_or(DeclaredType::Unknown, DeclaredType::Type);
                }
                _ => None,
            };
            match next {
                Some(inner) => value = inner,
                None => return DeclaredType::Unknown,
            }
        }
    }

    /// Returns the declared type of a node; unknown for `var` and for unions of types.
    pub fn declared_type(&self, node: Node<'_>) -> DeclaredType {
        let mut node = node;
        loop {
            let next = match find(self.spec().types, node.kind()) {
                Some(NodeRole::Unknown) => None,
                Some(NodeRole::Union) => the_one_that_is_not_null(node),
                Some(NodeRole::Inside(step)) => step.from(node),
                _ => {
                    let name = self.dotted_name(node).unwrap_or_else(|| "[]".into());
                    return if self.spec().untyped.contains(&name.as_str()) {
                        DeclaredType::Unknown
                    } else {
                        DeclaredType::Type(name)
                    };
                }
            };
            match next {
                Some(inner) => node = inner,
                None => return DeclaredType::Unknown,
            }
        }
    }

    /// Returns `a.b.C` for a name or type, without type arguments and annotations; `None` if it has no name.
    pub fn dotted_name(&self, mut node: Node<'_>) -> Option<String> {
        let table = self.spec().types;
        let mut parts = Vec::new();
        while parts.len() <= LONGEST_CHAIN {
            match find(table, node.kind())? {
                NodeRole::Name => {
                    parts.push(self.of(node).to_owned());
                    parts.reverse();
                    return Some(parts.join("."));
                }
                NodeRole::Inside(step) => node = step.from(node)?,
                NodeRole::Member(before, name) => {
                    parts.push(self.simple(table, name.from(node)?)?);
                    node = before.from(node)?;
                }
                _ => return None,
            }
        }
        None
    }
}

/// Returns the non-null type of `T | null`.
fn the_one_that_is_not_null(union: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = union.walk();
    let mut types = union.named_children(&mut cursor).filter(|node| {
        let literal = node.named_child(0).map_or("", |literal| literal.kind());
        node.kind() != "literal_type" || !matches!(literal, "null" | "undefined")
    });
    types.next().filter(|_| types.next().is_none())
}
